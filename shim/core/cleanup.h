/* SPDX-License-Identifier: MIT */
/* Owned locals that release themselves at the end of their scope. */
#ifndef AQE_CORE_CLEANUP_H
#define AQE_CORE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shim/core/arena.h"
#include "shim/core/buf.h"

static inline void aqe_cleanup_free(void *pp)
{
	free(*(void **)pp);
}
static inline void aqe_cleanup_fd(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd); /* nothing useful can be done about a failed close here */
}
static inline void aqe_cleanup_file(FILE *const *f)
{
	if (*f)
		(void)fclose(*f); /* read-only streams: no data can be lost */
}
static inline void aqe_cleanup_arena(struct aqe_arena *const *a)
{
	aqe_arena_free(*a);
}

#ifdef AQE_CPPCHECK /* cppcheck 2.10 does not know the attribute and reports every owned local */
#define AQE_CLEANUP(f) static
#else
#define AQE_CLEANUP(f) __attribute__((cleanup(f)))
#endif

#define AQE_AUTO_FREE   AQE_CLEANUP(aqe_cleanup_free)  /* char *p */
#define AQE_AUTO_FD     AQE_CLEANUP(aqe_cleanup_fd)    /* int fd = -1 */
#define AQE_AUTO_FILE   AQE_CLEANUP(aqe_cleanup_file)  /* FILE *f = NULL */
#define AQE_AUTO_BUF    AQE_CLEANUP(aqe_buf_done)      /* struct aqe_buf b = AQE_BUF_INIT(n) */
#define AQE_AUTO_SECRET AQE_CLEANUP(aqe_buf_wipe)      /* the same, overwritten at the end */
#define AQE_AUTO_ARENA  AQE_CLEANUP(aqe_cleanup_arena) /* struct aqe_arena *a = NULL */

/* Give an owned local away: its value, leaving the local empty. */
#define AQE_TAKE_FD(fd)               \
	__extension__({               \
		int taken_fd_ = (fd); \
		(fd) = -1;            \
		taken_fd_;            \
	})
#define AQE_TAKE_PTR(p)                         \
	__extension__({                         \
		__typeof__(p) taken_ptr_ = (p); \
		(p) = NULL;                     \
		taken_ptr_;                     \
	})

#endif
