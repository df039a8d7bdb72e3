/* SPDX-License-Identifier: MIT */
/* Old exports into the log: ours (jsonl) and the original's (a JSON array of entries). */
#ifndef AQE_AUDIT_IMPORT_H
#define AQE_AUDIT_IMPORT_H

#include <stdint.h>

#include "audit/log.h"
#include "shim/core/err.h"

#define AUDIT_IMPORT_BYTES_MAX ((uint64_t)1 << 30) /* of a jsonl file; an array: 64 MiB */
#define AUDIT_IMPORT_ARRAY_MAX ((uint64_t)64 << 20)

/* Appends the entries of `path` as new rows of this log. Rows keep their time and have no boot_ns;
 * meta tells where they came from: {"imported":{"file":DIGEST,...},"metadata":{...}}. The file is
 * judged whole before anything is stored (our own exports are verified), and stored in transactions
 * of 1,000 rows. *ret is the number of entries; an absent file is 0 and no error. AQE_E_MALFORMED,
 * AQE_E_LIMIT, AQE_E_REFUSED (an export that does not verify), and as audit_append(). */
AQE_MUST_CHECK int audit_import(struct audit_log *log, const char *path, uint64_t *ret,
				struct aqe_err *e);

#endif
