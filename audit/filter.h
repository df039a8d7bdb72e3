/* SPDX-License-Identifier: MIT */
/* Internal to audit/: a filter as SQL. Texts are bound, never pasted. */
#ifndef AQE_AUDIT_FILTER_H
#define AQE_AUDIT_FILTER_H

#include "audit/query.h"
#include "shim/core/buf.h"
#include "shim/core/db.h"

/* Appends " WHERE ..." over table `row`, with parameters ?1 to ?4, and binds them. */
void audit_filter_sql(const struct audit_filter *f, struct aqe_buf *sql);
void audit_filter_bind(const struct audit_filter *f, struct aqe_stmt *s);
/* Prepares `select` + the filter + `tail` and binds the filter's texts, which must stay. */
AQE_MUST_CHECK int audit_filter_prepare(struct audit_log *log, const char *select,
					const struct audit_filter *f, const char *tail,
					struct aqe_stmt **ret, struct aqe_err *e);

#endif
