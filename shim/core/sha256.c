/* SPDX-License-Identifier: MIT */
#include "shim/core/sha256.h"

#include <errno.h>
#include <sha2.h>
#include <string.h>
#include <unistd.h>

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

void aqe_sha256(const void *p, size_t n, uint8_t ret[32])
{
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	if (n > 0)
		SHA256Update(&ctx, p, n);
	SHA256Final(ret, &ctx);
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
	SHA2_CTX ctx;
	ssize_t n;

	SHA256Init(&ctx);
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
		SHA256Update(&ctx, data, (size_t)n);
	}
	SHA256Final(digest, &ctx);
	to_text(digest, ret);
	return AQE_OK;
}
