/* SPDX-License-Identifier: MIT */
/* Rows of what aqe itself does to what it runs: sandboxes, supervised things. */
#ifndef AQE_AQE_AUDIT_OWN_H
#define AQE_AQE_AUDIT_OWN_H

#include "audit/row.h"

/* Stores one row, durably, where the policy's section `audit` says; nothing with mode `off`. Texts
 * that are too long are cut. Without a policy, or with one that cannot be read, it is the usual
 * log. Waits for other writers as audit_record() does. */
AQE_MUST_CHECK int shim_audit_own(struct audit_row *row, struct aqe_err *e);

#endif
