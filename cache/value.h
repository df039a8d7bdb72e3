/* SPDX-License-Identifier: MIT */
/* An embedding as stored bytes: a header of 32 bytes, then float32, all little-endian. The checksum
 * (CRC-32C) covers the key, too: bytes found under another key are damage. */
#ifndef AQE_CACHE_VALUE_H
#define AQE_CACHE_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "cache/key.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

#define CACHE_DIM_MAX    65536U /* numbers in an embedding */
#define CACHE_VALUE_HEAD ((size_t)32)
#define CACHE_VALUE_MAX  (CACHE_VALUE_HEAD + (size_t)CACHE_DIM_MAX * 4)
#define CACHE_TTL_MAX_MS ((int64_t)10 * 366 * 86400000) /* ten years */
#define CACHE_FUTURE_MS  5000 /* clocks of hosts that share a store may differ by so much */

struct cache_value {
	uint32_t dim;
	int64_t created_ms, ttl_ms;
	const uint8_t *floats; /* dim * 4 bytes */
};

/* What was lost when float64 became float32, round to nearest: at most 2^-24 of the number itself
 * for numbers of at least 2^-126, at most 2^-150 below. */
struct cache_narrowing {
	double max_abs; /* largest difference */
	double max_rel; /* largest difference in proportion to its number (of at least 2^-126) */
};

/* Appends the bytes. AQE_E_LIMIT: dimension 0 or over CACHE_DIM_MAX, ttl not in
 * 1..CACHE_TTL_MAX_MS; AQE_E_MALFORMED: a number is not finite (in float32). */
AQE_MUST_CHECK int cache_value_encode(const struct cache_key *k, const struct cache_value *head,
				      const float *v, struct aqe_buf *b, struct aqe_err *e);
/* As above from float64; `ret` may be NULL. */
AQE_MUST_CHECK int cache_value_encode_f64(const struct cache_key *k, const struct cache_value *head,
					  const double *v, struct aqe_buf *b,
					  struct cache_narrowing *ret, struct aqe_err *e);
/* Reads the bytes; *ret borrows them. AQE_E_MALFORMED: damaged, of another key, or not ours. */
AQE_MUST_CHECK int cache_value_decode(const struct cache_key *k, const void *p, size_t n,
				      struct cache_value *ret, struct aqe_err *e);
/* The life that the first bytes of a value claim, unchecked; false when they are not ours. */
bool cache_value_peek(const void *p, size_t n, int64_t *ret_created_ms, int64_t *ret_ttl_ms);
/* The numbers of a decoded value; `out` has room for v->dim. */
void cache_value_floats(const struct cache_value *v, float *out);

/* True while `now_ms` lies in the life of an entry: not before its creation (a clock that jumped
 * must not make it eternal), and less than both its ttl and `ttl_max_ms` after. */
bool cache_value_alive(int64_t created_ms, int64_t ttl_ms, int64_t ttl_max_ms, int64_t now_ms);

/* CRC-32C (RFC 3720), by the processor where it can; `crc` is 0 or the result for the bytes before.
 */
uint32_t cache_crc32c(uint32_t crc, const void *p, size_t n);

#endif
