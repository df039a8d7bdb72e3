/* SPDX-License-Identifier: MIT */
/* Makes one allocation of our code fail. A test that includes this header is linked with
 * --wrap=malloc,calloc,realloc (see the Makefile); calls inside shared libraries are not caught. */
#ifndef AQE_FAKES_FAKE_ALLOC_H
#define AQE_FAKES_FAKE_ALLOC_H

#include <stdbool.h>

/* From now on the `nth` allocation (1 = the next) returns NULL; the others work. */
void fake_alloc_arm(unsigned nth);
/* Counts one allocation of another allocator (SQLite's) as one of ours; true when it has to fail.
 */
bool fake_alloc_fails(void);
/* Back to normal. True when an allocation has failed since fake_alloc_arm(). */
bool fake_alloc_disarm(void);

#endif
