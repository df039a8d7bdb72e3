/* SPDX-License-Identifier: MIT */
/* SHA-256 (FIPS 180-4) by the processor's own instructions or libmd, which was chosen over
 * libcrypto for its load cost at container start. */
#ifndef AQE_CORE_SHA256_H
#define AQE_CORE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/err.h"

/* "sha256:" + 64 hex + NUL. */
#define AQE_DIGEST_TEXT 72

/* A hash in pieces: init, any number of add (`p` may be NULL when `n` is 0), end. */
struct aqe_sha256_ctx {
	uint32_t state[8];
	uint64_t bytes;
	uint8_t part[64]; /* an unfinished block: bytes % 64 of it are filled */
	bool ni;          /* by the processor's own instructions */
};
void aqe_sha256_init(struct aqe_sha256_ctx *h);
void aqe_sha256_add(struct aqe_sha256_ctx *h, const void *p, size_t n);
void aqe_sha256_end(struct aqe_sha256_ctx *h, uint8_t ret[32]);

void aqe_sha256(const void *p, size_t n, uint8_t ret[32]);
/* The digest of `n` bytes as OCI writes it, "sha256:<64 lower-case hex>". */
void aqe_sha256_text(const void *p, size_t n, char ret[AQE_DIGEST_TEXT]);
/* Digest of the rest of a file, read through `fd`; at most `max` bytes, more is AQE_E_LIMIT. */
AQE_MUST_CHECK int aqe_sha256_fd(int fd, uint64_t max, char ret[AQE_DIGEST_TEXT],
				 struct aqe_err *e);

#endif
