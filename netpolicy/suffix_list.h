/* SPDX-License-Identifier: MIT */
/* A Public Suffix List, as publicsuffix.org and Debian's package have it: an administrator's
 * addition to the built-in part of it (suffix.h). */
#ifndef AQE_NETPOLICY_SUFFIX_LIST_H
#define AQE_NETPOLICY_SUFFIX_LIST_H

#include <stddef.h>

enum netpol_suffix {
	NETPOL_SUFFIX_NONE,
	NETPOL_SUFFIX_PUBLIC,  /* of the first section: registrars sell names below it */
	NETPOL_SUFFIX_PRIVATE, /* of the second: its owner gives names away */
};
/* What `base` (lower case, A-labels, no dots at the ends) is by the `n` bytes of the list: a rule,
 * or a name below a "*." rule that no "!" rule excepts. Lines that are no rules are passed over. */
enum netpol_suffix netpol_suffix_list(const char *list, size_t n, const char *base);

#endif
