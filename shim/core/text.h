/* SPDX-License-Identifier: MIT */
/* Small pure helpers on strings and numbers. */
#ifndef AQE_CORE_TEXT_H
#define AQE_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/buf.h"

#define AQE_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Equality of NUL-terminated strings; NULL equals only NULL. */
bool aqe_str_eq(const char *a, const char *b);
bool aqe_starts(const char *s, const char *prefix);
bool aqe_ends(const char *s, const char *suffix);
/* True when `s` is one of the NULL-terminated `list`. */
bool aqe_str_in(const char *s, const char *const *list);
/* Strict decimal: -?(0|[1-9][0-9]*), not "-0", in range. False leaves *ret untouched. */
bool aqe_parse_u64(const char *s, uint64_t max, uint64_t *ret);
bool aqe_parse_i64(const char *s, int64_t min, int64_t max, int64_t *ret);
/* A size as people and kernels write it: decimal digits and one optional suffix k m g (any case,
 * powers of 1024). False when it does not fit, is empty, or has anything else. */
bool aqe_parse_size(const char *s, uint64_t *ret_bytes);
/* True for "sha256:" + 64 lower-case hex digits, nothing else. */
bool aqe_is_sha256_digest(const char *s);
/* True for exactly `n` lower-case hex digits and the end. */
bool aqe_is_hex(const char *s, size_t n);
/* Strict UTF-8 (no overlong form, no surrogate, at most U+10FFFF); *ret_bad gets the offset. */
bool aqe_utf8_ok(const char *p, size_t n, size_t *ret_bad);
/* Length (1-4) of the character at `p`, looking at no more than `n` bytes; 0 when it is none. */
size_t aqe_utf8_len(const char *p, size_t n);
/* A path in canonical spelling: absolute, no empty, "." or ".." component, no trailing slash
 * ("/" itself is canonical). Purely lexical. */
bool aqe_path_is_canonical(const char *path);
/* True when canonical `path` is `dir` or lies below it (component-wise). */
bool aqe_path_is_under(const char *path, const char *dir);
/* Appends foreign text for a message: control characters, quotes and backslashes escaped, cut after
 * `max` bytes with "...". */
void aqe_buf_quote(struct aqe_buf *b, const char *s, size_t max);

/* Overflow-checked arithmetic on sizes; false on overflow. */
bool aqe_size_add(size_t a, size_t b, size_t *ret);
bool aqe_size_mul(size_t a, size_t b, size_t *ret);

#endif
