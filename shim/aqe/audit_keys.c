/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"

#define KEY_FILE_MAX    ((size_t)4 << 10)
#define ANCHOR_FILE_MAX ((size_t)8 << 20)

static int read_file(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%.300s'", path);
	return aqe_fs_read_fd(fd, b, e) < 0 ? aqe_err_wrap(e, "%.300s", path) : AQE_OK;
}

static int add_key(struct shim_audit_trust *t, const uint8_t key[32], struct aqe_err *e)
{
	if (t->n_keys == SHIM_AUDIT_KEYS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d public keys",
				   SHIM_AUDIT_KEYS_MAX);
	memcpy(t->keys[t->n_keys++], key, 32);
	return AQE_OK;
}

int shim_audit_trust_key(struct shim_audit_trust *t, const char *path, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(KEY_FILE_MAX);
	uint8_t key[32];
	int rc = read_file(path, &b, e);

	if (rc < 0)
		return rc;
	if (!audit_public_parse(aqe_buf_str(&b), b.len, key))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%.300s' is no public key", path);
	return add_key(t, key, e);
}

static int add_anchor(struct shim_audit_trust *t, const char *line, size_t n, struct aqe_err *e)
{
	if (t->n_anchors == SHIM_AUDIT_ANCHORS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d anchors",
				   SHIM_AUDIT_ANCHORS_MAX);
	return audit_point_parse(line, n, &t->anchors[t->n_anchors++], e);
}

int shim_audit_trust_anchors(struct shim_audit_trust *t, struct aqe_arena *a, const char *path,
			     struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(ANCHOR_FILE_MAX);
	const size_t before = t->n_anchors;
	const char *p;
	int rc = read_file(path, &b, e);

	if (rc == AQE_OK && !t->anchors) {
		t->anchors = aqe_arena_calloc(a, SHIM_AUDIT_ANCHORS_MAX, sizeof(*t->anchors));
		if (!t->anchors)
			rc = aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for anchors");
	}
	if (rc < 0)
		return rc;
	p = aqe_buf_str(&b);
	if (strlen(p) != b.len)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%.300s' is no text", path);
	for (; *p; p += *p == '\n') {
		const size_t n = strcspn(p, "\n");

		if (n && *p != '#')
			rc = add_anchor(t, p, n, e);
		if (rc < 0)
			return aqe_err_wrap(e, "%.300s", path);
		p += n;
	}
	if (t->n_anchors == before)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%.300s' has no anchor", path);
	return AQE_OK;
}

int shim_audit_trust_own(struct shim_audit_trust *t, const struct audit_opts *at, bool *ret,
			 struct aqe_err *e)
{
	uint8_t key[32];
	int rc = audit_key_public(at, key, e);

	*ret = rc == AQE_OK;
	if (rc == AQE_E_ABSENT)
		return AQE_OK;
	return rc < 0 ? rc : add_key(t, key, e);
}
