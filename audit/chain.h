/* SPDX-License-Identifier: MIT */
/* The hash chain: pure. hash(row) = SHA-256(hash of the row before || encoding(row)).
 *
 * encoding(row), version 1: the bytes "aqe-row1", then every field of AUDIT_FIELDS in order:
 *   'n'                          not there
 *   'i' + 8 bytes, big endian    a number (two's complement); kind and action are their numbers
 *   't' + 4 bytes, big endian, the length + that many bytes     a text
 * so that no two different rows have the same encoding. The row before the first is the genesis:
 * SHA-256("aqe-genesis1" || chain id (32 bytes) || created_ns (8 bytes, big endian)). */
#ifndef AQE_AUDIT_CHAIN_H
#define AQE_AUDIT_CHAIN_H

#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "audit/row.h"

/* Most bytes of an encoding: every text at its maximum. */
#define AUDIT_ENCODING_MAX 14592

/* The encoding of `r` at `out`; returns its length, or 0 when a text is longer than its maximum or
 * it would not fit. Works for rows that audit_row_check() would refuse. */
size_t audit_encode(const struct audit_row *r, uint8_t *out, size_t size);
/* Reads an encoding back; texts are copies in `a`. AQE_E_MALFORMED with the field's name unless
 * encoding the result gives the same bytes. For tests and fuzzing of the format. */
AQE_MUST_CHECK int audit_decode(struct aqe_arena *a, const uint8_t *p, size_t n,
				struct audit_row *ret, struct aqe_err *e);

void audit_genesis(const struct audit_id *id, uint8_t ret[32]);
/* Hash of `r` after a row (or genesis) with hash `prev`; false when it has no encoding. */
bool audit_row_hash(const uint8_t prev[32], const struct audit_row *r, uint8_t ret[32]);

#endif
