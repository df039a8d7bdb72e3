/* SPDX-License-Identifier: MIT */
/* Internal to audit/: the lines of an export that are not rows. */
#ifndef AQE_AUDIT_EXPORT_H
#define AQE_AUDIT_EXPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/checkpoint.h"
#include "audit/log.h"
#include "shim/core/buf.h"
#include "shim/core/json.h"

#define AUDIT_EXPORT_VERSION 1
/* Longest line: every byte of every text of a row as \u00xx. */
#define AUDIT_LINE_MAX ((size_t)128 * 1024)

struct audit_export_header {
	struct audit_id id;
	int64_t made_ns;
	bool complete;
	uint64_t rows;
	int64_t after_seq, head_seq;
	uint8_t after_hash[32], head_hash[32];
};
struct audit_export_trailer {
	uint64_t rows, points;
	uint8_t sha256[32];
	bool is_signed;
	uint8_t key[32], sig[64];
};

/* As objects, appended without a newline; and back, AQE_E_MALFORMED. */
void audit_header_emit(const struct audit_export_header *h, struct aqe_buf *b);
void audit_trailer_emit(const struct audit_export_trailer *t, struct aqe_buf *b);
AQE_MUST_CHECK int audit_header_parse(const struct aqe_json *obj, struct audit_export_header *ret,
				      struct aqe_err *e);
AQE_MUST_CHECK int audit_trailer_parse(const struct aqe_json *obj, struct audit_export_trailer *ret,
				       struct aqe_err *e);
AQE_MUST_CHECK int audit_point_parse_json(const struct aqe_json *obj, struct audit_point *ret,
					  struct aqe_err *e);

/* The bytes that a trailer's signature is over. */
#define AUDIT_EXPORT_MARK   "aqe-export1"
#define AUDIT_EXPORT_SIGNED (sizeof(AUDIT_EXPORT_MARK) - 1 + 32 + 32)
void audit_trailer_signed(const struct audit_export_trailer *t, uint8_t ret[AUDIT_EXPORT_SIGNED]);

/* As audit_row_json(), with the hash of the row before when that is left out (NULL: it is not). */
void audit_row_json_after(const struct audit_row *r, const uint8_t *prev, struct aqe_buf *b);

#endif
