/* SPDX-License-Identifier: MIT */
#include "shim/core/sha256.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define E0 "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* FIPS 180-4 examples. */
static const struct {
	const char *text;
	const char *digest;
} VECTORS[] = {
	{ "", E0 },
	{ "abc", "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
	{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	  "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

/* The processor's instructions and libmd must be told apart on any machine. */
static bool allow_ni = true;
bool __real_aqe_sha256_ni_usable(void);
bool __wrap_aqe_sha256_ni_usable(void);

bool __wrap_aqe_sha256_ni_usable(void)
{
	return allow_ni && __real_aqe_sha256_ni_usable();
}

/* A file in memory with this content, read from its start. */
static int file_of(const void *p, size_t n)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, p, n), (ssize_t)n);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

START_TEST(sha256__gives_the_standard_digests)
{
	const char *text = VECTORS[_i].text;
	AQE_AUTO_FD int fd = file_of(text, strlen(text));
	struct aqe_err e = AQE_ERR_INIT;
	char digest[AQE_DIGEST_TEXT];
	uint8_t raw[32];
	char hex[3];

	aqe_sha256_text(text, strlen(text), digest);
	ck_assert_str_eq(digest, VECTORS[_i].digest);
	ck_assert(aqe_is_sha256_digest(digest));
	memset(digest, 0, sizeof(digest));
	ck_assert_ok(aqe_sha256_fd(fd, strlen(text), digest, &e), e);
	ck_assert_str_eq(digest, VECTORS[_i].digest);
	aqe_sha256(text, strlen(text), raw);
	(void)snprintf(hex, sizeof(hex), "%02x", raw[31]);
	ck_assert_str_eq(hex, VECTORS[_i].digest + AQE_DIGEST_TEXT - 3);
}
END_TEST

/* Every length around the borders of six blocks; the digest of all digests is from another program
 * (python3's hashlib). */
START_TEST(sha256__pads_every_length)
{
	uint8_t all[400][32], data[400], raw[32];
	char digest[AQE_DIGEST_TEXT];

	allow_ni = _i == 0;
	for (size_t n = 0; n < AQE_COUNT(all); n++) {
		for (size_t i = 0; i < n; i++)
			data[i] = (uint8_t)(i * 7 + n * 13);
		aqe_sha256(data, n, all[n]);
		aqe_sha256(data, n, raw);
		ck_assert_mem_eq(raw, all[n], sizeof(raw));
	}
	aqe_sha256_text(all, sizeof(all), digest);
	ck_assert_str_eq(digest,
			 "sha256:9530bfcc42c927210897710a199721cd62fb2ec6b515a346e22e7a5ffb98a413");
}
END_TEST

/* Pieces of every length up to two blocks give the digest of the whole. */
START_TEST(sha256_add__does_not_depend_on_the_pieces)
{
	uint8_t data[1000], whole[32], parts[32];
	struct aqe_sha256_ctx h;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7);
	aqe_sha256(data, sizeof(data), whole);
	for (size_t step = 1; step <= 130; step++) {
		aqe_sha256_init(&h);
		for (size_t at = 0; at < sizeof(data); at += step) {
			const size_t left = sizeof(data) - at;

			aqe_sha256_add(&h, data + at, left < step ? left : step);
			aqe_sha256_add(&h, NULL, 0);
		}
		aqe_sha256_end(&h, parts);
		ck_assert_mem_eq(parts, whole, 32);
	}
}
END_TEST

START_TEST(sha256_fd__reads_a_million_bytes)
{
	char *data = malloc(1000000);
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	char digest[AQE_DIGEST_TEXT];

	memset(data, 'a', 1000000);
	fd = file_of(data, 1000000);
	free(data);
	ck_assert_ok(aqe_sha256_fd(fd, 1000000, digest, &e), e);
	ck_assert_str_eq(digest,
			 "sha256:cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

START_TEST(sha256_fd__holds_its_limit)
{
	for (uint64_t max = 2; max <= 4; max++) {
		AQE_AUTO_FD int fd = file_of("abc", 3);
		struct aqe_err e = AQE_ERR_INIT;
		char digest[AQE_DIGEST_TEXT] = "untouched";
		int rc = aqe_sha256_fd(fd, max, digest, &e);

		if (max < 3) {
			ck_assert_fault(rc, AQE_E_LIMIT, e, "larger than 2 bytes");
			ck_assert_str_eq(digest, "untouched");
		} else {
			ck_assert_ok(rc, e);
		}
	}
}
END_TEST

START_TEST(sha256_fd__reads_the_rest_only)
{
	AQE_AUTO_FD int fd = file_of("xabc", 4);
	struct aqe_err e = AQE_ERR_INIT;
	char digest[AQE_DIGEST_TEXT];

	ck_assert_int_eq(lseek(fd, 1, SEEK_SET), 1);
	ck_assert_ok(aqe_sha256_fd(fd, 3, digest, &e), e);
	ck_assert_str_eq(digest, VECTORS[1].digest);
	ck_assert_ok(aqe_sha256_fd(fd, 0, digest, &e), e);
	ck_assert_str_eq(digest, E0);
}
END_TEST

START_TEST(sha256_fd__reports_read_errors)
{
	struct aqe_err e = AQE_ERR_INIT;
	char digest[AQE_DIGEST_TEXT];

	ck_assert_fault(aqe_sha256_fd(-1, 9, digest, &e), AQE_E_SYS, e, "read");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/sha256");
	TCase *t = tcase_create("sha256");

	tcase_add_loop_test(t, sha256__gives_the_standard_digests, 0, (int)AQE_COUNT(VECTORS));
	tcase_add_loop_test(t, sha256__pads_every_length, 0, 2);
	tcase_add_test(t, sha256_add__does_not_depend_on_the_pieces);
	tcase_add_test(t, sha256_fd__reads_a_million_bytes);
	tcase_add_test(t, sha256_fd__holds_its_limit);
	tcase_add_test(t, sha256_fd__reads_the_rest_only);
	tcase_add_test(t, sha256_fd__reports_read_errors);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
