/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int netpol_handoff_write(const struct netpol_policy *p, const char *type,
			 struct netpol_msg_policy *ret, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(NETPOL_HANDOFF_MAX);
	AQE_AUTO_FD int fd = -1;
	int rc = netpol_policy_emit(p, netpol_policy_type(p, type), &b, e);

	if (rc < 0)
		return rc;
	fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "memfd_create");
	rc = aqe_fs_write_all(fd, b.p, b.len, e);
	if (rc < 0)
		return rc;
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "sealing the policy");
	memset(ret, 0, sizeof(*ret));
	ret->type = NETPOL_MSG_POLICY;
	ret->size = (uint32_t)b.len;
	memcpy(ret->digest, p->digest, sizeof(ret->digest));
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}

int netpol_memfd_read(int fd, size_t size, struct aqe_buf *b, struct aqe_err *e)
{
	size_t room;

	if (size > b->max)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "what is handed over is too long");
	while (b->len < size) {
		char *p = aqe_buf_room(b, size - b->len, &room);
		/* not mmap(2): the reader's filter then needs no file mappings */
		ssize_t n = p ? pread(fd, p, size - b->len, (off_t)b->len) : 0;

		if (!p)
			return aqe_buf_ok(b, e);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return aqe_err_set(e, AQE_E_SYS, n < 0 ? errno : EIO,
					   "reading what is handed over");
		aqe_buf_grown(b, (size_t)n);
	}
	return 0;
}

static int build(const struct aqe_json *root, const char *type, struct netpol_policy **ret,
		 struct aqe_err *e)
{
	/* Rows that allow nothing; the section says everything about `type`. */
	struct netpol_base base[] = { { type, false, "", { 1, 1, 1 }, 1000 },
				      { "default", false, "", { 1, 1, 1 }, 1000 } };
	struct netpol_section section = { "handoff", root, false };
	bool same = aqe_str_eq(type, "default");

	return netpol_policy_build(same ? base + 1 : base, same ? 1 : 2, &section, 1, ret, e);
}

int netpol_handoff_read(const struct netpol_msg_policy *msg, int fd, const char *type,
			struct netpol_policy **ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)8 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(NETPOL_HANDOFF_MAX);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *root = NULL;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the policy");
	limits.bytes = NETPOL_HANDOFF_MAX;
	rc = netpol_memfd_read(fd, msg->size, &b, e);
	if (rc == 0)
		rc = aqe_json_parse(a, aqe_buf_str(&b), b.len, &limits, &root, e);
	if (rc == 0)
		rc = build(root, type, ret, e);
	if (rc == 0)
		memcpy((*ret)->digest, msg->digest, sizeof((*ret)->digest));
	return rc;
}
