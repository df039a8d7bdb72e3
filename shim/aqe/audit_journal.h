/* SPDX-License-Identifier: MIT */
/* Rows to systemd's journal, as structured fields over its native datagram socket; libsystemd is
 * not needed. A convenience beside the log: best effort, never waits, never fails a decision. */
#ifndef AQE_AQE_AUDIT_JOURNAL_H
#define AQE_AQE_AUDIT_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "audit/row.h"
#include "shim/core/buf.h"

#define SHIM_JOURNAL_SOCKET     "/run/systemd/journal/socket"
#define SHIM_JOURNAL_MESSAGE_ID "5f1c2b7e0d9a4c36a3e8d41f7b6c9025" /* of every row */

/* Tells the journal of rows that are stored: call it after audit_append() or audit_record()
 * returned 0. Rows without a time were not stored and are left out; those that wait in the spool
 * have neither number nor hash yet. Nothing happens when there is no journal or it does not keep
 * up. */
void shim_journal_row(const struct audit_row *r);
void shim_journal_rows(const struct audit_row *rows, size_t n);

/* The parts, for tests. One row in the journal's export form: MESSAGE, PRIORITY,
 * SYSLOG_IDENTIFIER=aqe-audit, MESSAGE_ID, and every field that is there as AQE_<NAME>. */
void shim_journal_emit(const struct audit_row *r, struct aqe_buf *b);
/* Sends it to the socket at `path`; what is too large for a datagram goes as a sealed memory file.
 * False when it could not be sent. */
bool shim_journal_send(const char *path, const struct audit_row *rows, size_t n);

#endif
