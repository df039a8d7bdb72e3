/* SPDX-License-Identifier: MIT */
/* Embeddings as JSON: arrays of numbers, or base64 of float32 (OpenAI's encoding_format). */
#ifndef AQE_CACHE_NUMBERS_H
#define AQE_CACHE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "cache/value.h"
#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"
#include "shim/core/json.h"

/* For documents with embeddings: 64 MiB, a million values, numbers of 40 characters. */
extern const struct aqe_json_limits CACHE_NUMBERS_LIMITS;

/* Reads an array of numbers, or a text of base64, into `a`: 1 to CACHE_DIM_MAX finite float32. Each
 * number is rounded once, from its text. AQE_E_MALFORMED, AQE_E_LIMIT, AQE_E_NOMEM. */
AQE_MUST_CHECK int cache_numbers_read(struct aqe_arena *a, const struct aqe_json *v, float **ret,
				      uint32_t *ret_dim, struct aqe_err *e);
/* As above, an array only, as float64. */
AQE_MUST_CHECK int cache_numbers_read_f64(struct aqe_arena *a, const struct aqe_json *v,
					  double **ret, uint32_t *ret_dim, struct aqe_err *e);
/* Appends "[0.1,...]": nine digits, which read back as the same float32. */
void cache_numbers_emit(const struct cache_value *v, struct aqe_buf *b);
/* Appends a quoted text of base64. */
void cache_numbers_emit_base64(const struct cache_value *v, struct aqe_buf *b);

#endif
