/* SPDX-License-Identifier: MIT */
#include "audit/sign.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/checkpoint.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define SECRET_MARK "aqe-audit-secret-key 1 "
#define PUBLIC_MARK "aqe-audit-key 1 "
#define KEY_BYTES   256 /* more than either file has */

_Static_assert(crypto_sign_SECRETKEYBYTES == 64, "size of a secret key");
_Static_assert(crypto_sign_PUBLICKEYBYTES == 32, "size of a public key");
_Static_assert(crypto_sign_BYTES == 64, "size of a signature");
_Static_assert(crypto_sign_SEEDBYTES == 32, "size of a seed");

void audit_hex(const uint8_t *p, size_t n, char *ret)
{
	static const char HEX[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*ret++ = HEX[p[i] >> 4];
		*ret++ = HEX[p[i] & 15];
	}
	*ret = '\0';
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool audit_unhex(const char *text, size_t n, uint8_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		int high = nibble(text[2 * i]);
		int low = high < 0 ? -1 : nibble(text[2 * i + 1]);

		if (low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* ---- the key's files ---- */

static const char *key_dir(const struct audit_opts *o)
{
	return o->key_dir ? o->key_dir : o->dir;
}

static int open_key_dir(const struct audit_opts *o, int *ret_fd, struct aqe_err *e)
{
	int rc = aqe_fs_open_dir(key_dir(o), ret_fd, e);

	return rc ? aqe_err_wrap(e, "folder of the signing key") : AQE_OK;
}

bool audit_sign_has_key(const struct audit_opts *o)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/" AUDIT_KEY_FILE, key_dir(o));

	/* what cannot be looked at is not "no key": only the absence itself is */
	return n > 0 && (size_t)n < sizeof(path) &&
	       (lstat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR));
}

static bool parse_key(const char *mark, const char *text, size_t n, uint8_t ret[32])
{
	size_t skip = strlen(mark);

	if (n > 0 && text[n - 1] == '\n')
		n--;
	return n == skip + 64 && memcmp(text, mark, skip) == 0 && audit_unhex(text + skip, 32, ret);
}

bool audit_public_parse(const char *text, size_t n, uint8_t ret[32])
{
	return parse_key(PUBLIC_MARK, text, n, ret);
}

void audit_public_format(const uint8_t key[32], char ret[AUDIT_PUBLIC_TEXT])
{
	char hex[65];

	audit_hex(key, 32, hex);
	(void)snprintf(ret, AUDIT_PUBLIC_TEXT, PUBLIC_MARK "%s\n", hex);
}

static int read_key_file(const struct audit_opts *o, const char *name, struct aqe_buf *b,
			 struct aqe_err *e)
{
	AQE_AUTO_FD int dirfd = -1;
	int rc = open_key_dir(o, &dirfd, e);

	if (rc == 0)
		rc = aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, b, e);
	return rc;
}

int audit_key_public(const struct audit_opts *o, uint8_t ret[32], struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(KEY_BYTES);
	int rc = read_key_file(o, AUDIT_PUBLIC_FILE, &b, e);

	if (rc)
		return aqe_err_wrap(e, "public key of the audit log");
	if (!audit_public_parse(aqe_buf_str(&b), b.len, ret))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s/%s' is no public key", key_dir(o),
				   AUDIT_PUBLIC_FILE);
	return AQE_OK;
}

static int start_sodium(struct aqe_err *e)
{
	return sodium_init() >= 0 ? AQE_OK
				  : aqe_err_set(e, AQE_E_INTERNAL, 0, "libsodium does not start");
}

/* The rules of AQE_FS_TRUSTED, and that nobody else can read it. */
static int read_secret(const struct audit_opts *o, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int dirfd = -1, fd = -1;
	struct stat st;
	int rc = open_key_dir(o, &dirfd, e);

	if (rc == 0)
		rc = aqe_fs_open_beneath(dirfd, AUDIT_KEY_FILE, O_RDONLY, 0, &fd, e);
	if (rc == 0)
		rc = aqe_fs_check(fd, AQE_FS_TRUSTED, KEY_BYTES, AUDIT_KEY_FILE, &st, e);
	if (rc == 0 && (st.st_mode & 077))
		rc = aqe_err_set(e, AQE_E_UNTRUSTED, 0,
				 "'%s' can be read by others (wanted mode 0600)", AUDIT_KEY_FILE);
	return rc ? rc : aqe_fs_read_fd(fd, b, e);
}

int audit_sign_load(const struct audit_opts *o, struct audit_key *ret, struct aqe_err *e)
{
	struct aqe_buf b = AQE_BUF_INIT(KEY_BYTES);
	uint8_t seed[32];
	int rc = start_sodium(e);

	if (rc == 0)
		rc = read_secret(o, &b, e);
	if (rc == 0 && !parse_key(SECRET_MARK, aqe_buf_str(&b), b.len, seed))
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s/%s' is no key", key_dir(o),
				 AUDIT_KEY_FILE);
	if (rc == 0)
		(void)crypto_sign_seed_keypair(ret->public_key, ret->secret, seed); /* always 0 */
	sodium_memzero(seed, sizeof(seed));
	if (b.p)
		sodium_memzero(b.p, b.len);
	aqe_buf_done(&b);
	return rc ? aqe_err_wrap(e, "signing key of the audit log") : AQE_OK;
}

void audit_sign_wipe(struct audit_key *k)
{
	sodium_memzero(k, sizeof(*k));
}

/* The secret comes into being under its own name or not at all: two makers cannot both win. */
static int write_secret(int dirfd, const uint8_t seed[32], struct aqe_err *e)
{
	char text[KEY_BYTES], hex[65];
	AQE_AUTO_FD int fd = openat(dirfd, AUDIT_KEY_FILE,
				    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int n, rc;

	if (fd < 0 && errno == EEXIST)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "there is a signing key already");
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make '%s'", AUDIT_KEY_FILE);
	audit_hex(seed, 32, hex);
	n = snprintf(text, sizeof(text), SECRET_MARK "%s\n", hex);
	rc = aqe_fs_write_all(fd, text, (size_t)n, e);
	if (rc == 0 && fsync(fd) != 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "write '%s'", AUDIT_KEY_FILE);
	if (rc)
		(void)unlinkat(dirfd, AUDIT_KEY_FILE, 0); /* a half key is worse than none */
	sodium_memzero(text, sizeof(text));
	sodium_memzero(hex, sizeof(hex));
	return rc;
}

int audit_sign_make(const struct audit_opts *o, struct aqe_err *e)
{
	AQE_AUTO_FD int dirfd = -1;
	char text[AUDIT_PUBLIC_TEXT];
	struct audit_key k;
	uint8_t seed[32];
	int rc = start_sodium(e);

	if (rc == 0)
		rc = open_key_dir(o, &dirfd, e);
	if (rc)
		return rc;
	randombytes_buf(seed, sizeof(seed));
	(void)crypto_sign_seed_keypair(k.public_key, k.secret, seed); /* always 0 */
	rc = write_secret(dirfd, seed, e);
	sodium_memzero(seed, sizeof(seed));
	audit_public_format(k.public_key, text);
	audit_sign_wipe(&k);
	if (rc)
		return rc;
	return aqe_fs_write_file(dirfd, AUDIT_PUBLIC_FILE, 0644, text, strlen(text), e);
}

/* ---- signatures ---- */

int audit_sign(const struct audit_key *k, const void *p, size_t n, uint8_t sig[64],
	       struct aqe_err *e)
{
	if (crypto_sign_detached(sig, NULL, p, n, k->secret) != 0)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "signing failed");
	return AQE_OK;
}

bool audit_sign_check(const uint8_t public_key[32], const void *p, size_t n, const uint8_t sig[64])
{
	return sodium_init() >= 0 && crypto_sign_verify_detached(sig, p, n, public_key) == 0;
}
