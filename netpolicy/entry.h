/* SPDX-License-Identifier: MIT */
/* Inside the rules: one entry of a list, from its text. */
#ifndef AQE_NETPOLICY_ENTRY_H
#define AQE_NETPOLICY_ENTRY_H

#include "netpolicy/rules.h"

/* Makes a rule in `a` from an entry; `where` and `same` are left empty. AQE_E_MALFORMED names the
 * entry and what is wrong with it. */
AQE_MUST_CHECK int netpol_entry_parse(struct aqe_arena *a, const char *entry, size_t n,
				      struct netpol_rule **ret, struct aqe_err *e);

#endif
