/* SPDX-License-Identifier: MIT */
#include "shim/core/sha256.h"

#include <errno.h>
#include <sha2.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/sha256_ni.h"
#include "shim/core/text.h"

#define READ_BYTES ((size_t)12 * 1024)

_Static_assert(SHA256_DIGEST_LENGTH == 32, "libmd's digest length");

static void to_text(const uint8_t digest[32], char ret[AQE_DIGEST_TEXT])
{
	static const char PREFIX[] = "sha256:", HEX[] = "0123456789abcdef";
	char *p = ret + sizeof(PREFIX) - 1;

	memcpy(ret, PREFIX, sizeof(PREFIX));
	for (size_t i = 0; i < 32; i++) {
		*p++ = HEX[digest[i] >> 4];
		*p++ = HEX[digest[i] & 15];
	}
	*p = '\0';
}

/* ---- the hash: padding and byte order here, the compression by the processor or libmd ---- */

void aqe_sha256_init(struct aqe_sha256_ctx *h)
{
	SHA2_CTX start;

	SHA256Init(&start);
	memcpy(h->state, start.state.st32, sizeof(h->state));
	h->bytes = 0;
	h->ni = aqe_sha256_ni_usable();
}

static void blocks(struct aqe_sha256_ctx *h, const uint8_t *p, size_t n)
{
	if (h->ni) {
		aqe_sha256_ni(h->state, p, n);
		return;
	}
	for (; n > 0; n--, p += SHA256_BLOCK_LENGTH)
		SHA256Transform(h->state, p);
}

void aqe_sha256_add(struct aqe_sha256_ctx *h, const void *data, size_t n)
{
	const uint8_t *p = data;
	const size_t have = h->bytes % sizeof(h->part);
	size_t take = sizeof(h->part) - have;

	if (n == 0)
		return;
	h->bytes += n;
	if (have) {
		take = n < take ? n : take;
		memcpy(h->part + have, p, take);
		p += take;
		n -= take;
		if (have + take < sizeof(h->part))
			return;
		blocks(h, h->part, 1);
	}
	blocks(h, p, n / sizeof(h->part));
	memcpy(h->part, p + n / sizeof(h->part) * sizeof(h->part), n % sizeof(h->part));
}

static void big_endian(uint8_t *p, uint64_t v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(v >> (8 * (n - 1 - i)));
}

/* FIPS 180-4, 5.1.1: a one bit, zeros, and the length in bits at the end of a block. */
void aqe_sha256_end(struct aqe_sha256_ctx *h, uint8_t ret[32])
{
	static const uint8_t one[SHA256_BLOCK_LENGTH] = { 0x80 };
	const uint64_t bits = h->bytes * 8;
	const size_t have = h->bytes % sizeof(h->part);
	uint8_t length[8];

	big_endian(length, bits, sizeof(length));
	aqe_sha256_add(h, one, have < 56 ? 56 - have : 120 - have);
	aqe_sha256_add(h, length, sizeof(length));
	for (size_t i = 0; i < AQE_COUNT(h->state); i++)
		big_endian(ret + 4 * i, h->state[i], 4);
}

void aqe_sha256(const void *p, size_t n, uint8_t ret[32])
{
	struct aqe_sha256_ctx h;

	aqe_sha256_init(&h);
	aqe_sha256_add(&h, p, n);
	aqe_sha256_end(&h, ret);
}

void aqe_sha256_text(const void *p, size_t n, char ret[AQE_DIGEST_TEXT])
{
	uint8_t digest[32];

	aqe_sha256(p, n, digest);
	to_text(digest, ret);
}

int aqe_sha256_fd(int fd, uint64_t max, char ret[AQE_DIGEST_TEXT], struct aqe_err *e)
{
	uint8_t data[READ_BYTES], digest[32];
	uint64_t left = max;
	struct aqe_sha256_ctx h;
	ssize_t n;

	aqe_sha256_init(&h);
	for (;;) {
		n = read(fd, data, sizeof(data));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "read");
		if (n == 0)
			break;
		if ((uint64_t)n > left)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "file is larger than %llu bytes",
					   (unsigned long long)max);
		left -= (uint64_t)n;
		aqe_sha256_add(&h, data, (size_t)n);
	}
	aqe_sha256_end(&h, digest);
	to_text(digest, ret);
	return AQE_OK;
}
