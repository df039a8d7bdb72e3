/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netpolicy/egress/via.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static bool is_mine(const struct netpol_policy *p, const char *type, const struct netpol_gateway *g)
{
	return netpol_policy_gateway(p, type, g->name) == g;
}

bool netpol_secrets_wanted(const struct netpol_policy *p, const char *type)
{
	for (size_t i = 0; i < p->n_gateways; i++) {
		if (is_mine(p, type, &p->gateways[i]))
			return true;
	}
	return false;
}

/* FNV-1a: compared with itself only. */
static uint64_t mix(uint64_t h, const void *p, size_t n)
{
	const unsigned char *c = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ c[i]) * 0x100000001b3;
	return h;
}

static uint64_t mix_file(uint64_t h, const char *path)
{
	struct stat st;

	if (!path || stat(path, &st) < 0)
		return mix(h, "absent", 6);
	h = mix(h, &st.st_dev, sizeof(st.st_dev));
	h = mix(h, &st.st_ino, sizeof(st.st_ino));
	h = mix(h, &st.st_size, sizeof(st.st_size));
	h = mix(h, &st.st_mode, sizeof(st.st_mode));
	h = mix(h, &st.st_uid, sizeof(st.st_uid));
	h = mix(h, &st.st_mtim, sizeof(st.st_mtim));
	return mix(h, &st.st_ctim, sizeof(st.st_ctim));
}

uint64_t netpol_secrets_stamp(const struct netpol_policy *p, const char *type)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < p->n_gateways; i++) {
		const struct netpol_gateway *g = &p->gateways[i];

		if (is_mine(p, type, g))
			h = mix_file(mix_file(h, g->credential_file), g->ca_file);
	}
	return h;
}

static int read_ca(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	int rc;

	if (fd < 0)
		return aqe_err_set(e, AQE_E_UNTRUSTED, errno, "'%.200s'", path);
	rc = aqe_fs_check(fd, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_NO_WRITE, b->max, path, NULL,
			  e);
	return rc == 0 ? aqe_fs_read_fd(fd, b, e) : rc;
}

int netpol_credential_read(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf text = AQE_BUF_INIT(NETPOL_CREDENTIAL_MAX);
	int rc = aqe_fs_read_secret(path, path, &text, e);

	for (size_t i = 0; rc == 0 && i < text.len; i++) {
		if (text.p[i] < ' ' || text.p[i] >= 0x7f)
			rc = aqe_err_set(e, AQE_E_MALFORMED, 0,
					 "'%.200s': not one line of printable ASCII", path);
	}
	if (rc == 0 && text.len < NETPOL_CREDENTIAL_MIN)
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "'%.200s': shorter than %d characters",
				 path, NETPOL_CREDENTIAL_MIN);
	if (rc == 0)
		rc = aqe_buf_add(b, text.p, text.len);
	return rc;
}

/* One gateway's members. */
static int read_one(const struct netpol_gateway *g, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf secret = AQE_BUF_INIT(NETPOL_CREDENTIAL_MAX);
	AQE_AUTO_BUF struct aqe_buf ca = AQE_BUF_INIT(NETPOL_CA_FILE_MAX);
	int rc = g->credential_file ? netpol_credential_read(g->credential_file, &secret, e) : 0;

	if (rc == 0 && g->ca_file)
		rc = read_ca(g->ca_file, &ca, e);
	if (rc == 0) {
		(void)aqe_buf_puts(b, b->len > 1 ? "," : "");
		aqe_json_emit_str(b, g->name);
		(void)aqe_buf_puts(b, ":{\"credential\":");
		aqe_json_emit_str(b, aqe_buf_str(&secret));
		(void)aqe_buf_puts(b, ",\"ca\":");
		aqe_json_emit_str(b, aqe_buf_str(&ca));
		(void)aqe_buf_putc(b, '}');
	} else {
		(void)aqe_err_wrap(e, "gateway '%s'", g->name);
	}
	return rc;
}

/* All of them; the first fault is returned after all were read. */
static int read_all(const struct netpol_policy *p, const char *type, struct aqe_buf *b,
		    struct aqe_err *e)
{
	struct aqe_err first = AQE_ERR_INIT;
	char value[NETPOL_VIA_VALUE];
	int rc = 0;

	(void)aqe_buf_putc(b, '{');
	for (size_t i = 0; i < p->n_gateways; i++) {
		struct aqe_err one = AQE_ERR_INIT;

		if (is_mine(p, type, &p->gateways[i]) && read_one(&p->gateways[i], b, &one) < 0 &&
		    rc == 0) {
			first = one;
			rc = (int)one.code;
		}
	}
	(void)aqe_buf_putc(b, '}');
	if (rc == 0 && p->proxy_credential && netpol_via_auth(p->proxy_credential, value, &first))
		rc = (int)first.code; /* only judged: the dialer reads it for itself */
	if (aqe_buf_ok(b, e) < 0)
		return (int)AQE_E_NOMEM;
	if (rc < 0)
		*e = first;
	return rc;
}

/* ---- apart ---- */

/* In memory that parent and child share. */
struct said {
	bool whole;
	uint32_t size;
	struct aqe_err why;
};

__attribute__((noreturn)) static void child(netpol_secrets_fn *fn, void *self, int fd,
					    struct said *ret)
{
	struct aqe_buf b = AQE_BUF_INIT(NETPOL_SECRETS_MAX);
	struct aqe_err why = AQE_ERR_INIT;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (fn(self, &b, &why) < 0)
		ret->why = why;
	ret->size = (uint32_t)b.len;
	ret->whole = !b.failed && aqe_fs_write_all(fd, b.p, b.len, NULL) == 0;
	_exit(0);
}

static int wait_child(pid_t pid, struct aqe_err *e)
{
	int status = 0;
	pid_t got;

	if (pid < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "fork");
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got == pid && status == 0
		       ? 0
		       : aqe_err_set(e, AQE_E_INTERNAL, 0, "reading the gateways' files failed");
}

int netpol_secrets_seal_by(netpol_secrets_fn *fn, void *self, int *ret_fd, uint32_t *ret_size,
			   struct aqe_err *why, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = memfd_create("secrets", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct said *said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;
	int rc = 0;

	if (said == MAP_FAILED)
		return aqe_err_set(e, AQE_E_SYS, errno, "mmap");
	pid = fd >= 0 ? fork() : -1;
	if (pid == 0)
		child(fn, self, fd, said);
	rc = wait_child(pid, e);
	if (rc == 0 && !said->whole)
		rc = aqe_err_set(e, AQE_E_LIMIT, 0, "the gateways' files are too large");
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "sealing the secrets");
	if (rc == 0) {
		*why = said->why;
		*ret_size = said->size;
		*ret_fd = AQE_TAKE_FD(fd);
	}
	(void)munmap(said, sizeof(*said));
	return rc;
}

/* The gateways of a type. */
struct gateways {
	const struct netpol_policy *p;
	const char *type;
};

static int read_gateways(void *self, struct aqe_buf *b, struct aqe_err *e)
{
	const struct gateways *g = self;

	return read_all(g->p, g->type, b, e);
}

int netpol_secrets_seal(const struct netpol_policy *p, const char *type, int *ret_fd,
			uint32_t *ret_size, struct aqe_err *why, struct aqe_err *e)
{
	struct gateways g = { p, type };

	return netpol_secrets_seal_by(read_gateways, &g, ret_fd, ret_size, why, e);
}

int netpol_secrets_check(const struct netpol_policy *p, const char *type, struct aqe_err *e)
{
	struct aqe_err why = AQE_ERR_INIT;
	uint32_t size = 0;
	int fd = -1, rc;

	if (!netpol_secrets_wanted(p, type) && !p->proxy_credential)
		return 0;
	rc = netpol_secrets_seal(p, type, &fd, &size, &why, e);
	if (rc < 0)
		return rc;
	(void)close(fd); /* judged */
	if (why.code != AQE_OK && e)
		*e = why;
	return (int)why.code;
}
