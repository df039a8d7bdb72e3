/* SPDX-License-Identifier: MIT */
/* Tables of the report's page. Pure. */
#ifndef AQE_AQE_AUDIT_PAGE_H
#define AQE_AQE_AUDIT_PAGE_H

#include "shim/aqe/audit_report.h"

/* By agent type, by domain, refusals by property, by reason, waivers. */
void shim_page_tallies(struct aqe_buf *b, const struct shim_report *r);
/* Response times. */
void shim_page_times(struct aqe_buf *b, const struct shim_report *r);
/* The newest rows of each list. */
void shim_page_rows(struct aqe_buf *b, const struct shim_report *r);

#endif
