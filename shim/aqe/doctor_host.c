/* SPDX-License-Identifier: MIT */
/* What the egress service needs of this host, looked at as it will look itself. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cache/redis_conn.h"
#include "netpolicy/egress/secrets.h"
#include "shim/aqe/curl.h"
#include "shim/aqe/doctor.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/core/tls.h"

#define KERNEL_MAX  4096
#define MODES       "root's or the service user's, chmod 0600, one line of 8 characters or more"
#define CONNECT_MS  3000
#define FIX_DEBIAN  "install the package "
#define ROW_DROPPED "more than this command can show"

void shim_doctor_add(struct shim_doctor_rows *r, enum shim_doctor_state state, const char *what,
		     const char *fix, const char *format, ...)
{
	struct shim_doctor_row *row;
	va_list ap;
	char text[1024];

	if (r->n == SHIM_DOCTOR_ROWS) {
		r->row[r->n - 1] =
			(struct shim_doctor_row){ SHIM_DOCTOR_FAIL, "rows", ROW_DROPPED, NULL };
		return;
	}
	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	row = &r->row[r->n++];
	*row = (struct shim_doctor_row){ state, aqe_arena_dup(r->a, what),
					 aqe_arena_dup(r->a, text), NULL };
	if (state != SHIM_DOCTOR_OK)
		row->fix = fix;
	if (!row->what || !row->found)
		*row = (struct shim_doctor_row){ SHIM_DOCTOR_FAIL, "memory", "none", NULL };
}

static void look_program(const struct shim_doctor_host *h, struct shim_doctor_rows *r)
{
	struct stat st;

	if (stat(h->egress, &st) < 0)
		shim_doctor_add(r, SHIM_DOCTOR_FAIL, "aqe-egress",
				"install aqe-egress beside aqe and aqe-shim", "%s: %s", h->egress,
				strerror(errno));
	else if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, h->egress, X_OK, AT_EACCESS) < 0)
		shim_doctor_add(r, SHIM_DOCTOR_FAIL, "aqe-egress", "chmod 0755",
				"%s cannot be executed", h->egress);
	else if (st.st_mode & (S_IWGRP | S_IWOTH))
		shim_doctor_add(r, SHIM_DOCTOR_WARN, "aqe-egress", "chmod go-w",
				"%s: others may write to it", h->egress);
	else
		shim_doctor_add(r, SHIM_DOCTOR_OK, "aqe-egress", NULL, "%s", h->egress);
}

/* ---- the kernel ---- */

static bool read_proc(int proc_fd, const char *path, struct aqe_buf *b)
{
	struct aqe_err e = AQE_ERR_INIT;

	return aqe_fs_read_kernel(proc_fd, path, b, &e) == 0;
}

/* A namespace that the kernel has, and of which some may be made. */
static void look_namespace(int proc_fd, const char *kind, bool needed, struct shim_doctor_rows *r)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(KERNEL_MAX);
	const enum shim_doctor_state bad = needed ? SHIM_DOCTOR_FAIL : SHIM_DOCTOR_WARN;
	char path[64], what[32];
	struct stat st;

	(void)snprintf(what, sizeof(what), "%s namespaces", kind);
	(void)snprintf(path, sizeof(path), "self/ns/%s", kind);
	if (fstatat(proc_fd, path, &st, 0) < 0) {
		shim_doctor_add(r, bad, what, "a kernel that has them", "the kernel has none");
		return;
	}
	(void)snprintf(path, sizeof(path), "sys/user/max_%s_namespaces", kind);
	if (read_proc(proc_fd, path, &b) && b.len && aqe_buf_str(&b)[0] == '0')
		shim_doctor_add(r, bad, what, "raise it by sysctl", "/proc/%s is 0", path);
	else
		shim_doctor_add(r, SHIM_DOCTOR_OK, what, NULL, "the kernel has them");
}

static void look_calls(int proc_fd, struct shim_doctor_rows *r)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(KERNEL_MAX);
	AQE_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0)
		shim_doctor_add(r, SHIM_DOCTOR_FAIL, "pidfd_open", "Linux 5.10 or later", "%s",
				strerror(errno));
	else
		shim_doctor_add(r, SHIM_DOCTOR_OK, "pidfd_open", NULL, "works");
	if (!read_proc(proc_fd, "sys/kernel/seccomp/actions_avail", &b) ||
	    !strstr(aqe_buf_str(&b), "kill_process") || !strstr(aqe_buf_str(&b), "errno"))
		shim_doctor_add(r, SHIM_DOCTOR_FAIL, "seccomp",
				"a kernel with CONFIG_SECCOMP_FILTER",
				"filters are not available: worker and dialer cannot be confined");
	else
		shim_doctor_add(r, SHIM_DOCTOR_OK, "seccomp", NULL, "filters are available");
}

static void look_kernel(const struct shim_doctor_host *h, struct shim_doctor_rows *r)
{
	AQE_AUTO_FD int fd = open(h->proc, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		shim_doctor_add(r, SHIM_DOCTOR_FAIL, "proc", "mount it", "%s: %s", h->proc,
				strerror(errno));
		return;
	}
	look_namespace(fd, "net", true, r);
	/* root's containers may do without; a user's cannot */
	look_namespace(fd, "user", geteuid() != 0, r);
	look_calls(fd, r);
}

/* ---- libraries ---- */

static void add_library(struct shim_doctor_rows *r, int rc, const char *what, bool needed,
			const char *fix, const struct aqe_err *e)
{
	if (rc == 0)
		shim_doctor_add(r, SHIM_DOCTOR_OK, what, NULL, "loads");
	else
		shim_doctor_add(r, needed ? SHIM_DOCTOR_FAIL : SHIM_DOCTOR_WARN, what, fix, "%s%s",
				e->text, needed ? "" : "; this policy does not need it");
}

static void look_libraries(const struct shim_doctor_host *h, struct shim_doctor_rows *r)
{
	const bool gateways = h->net && netpol_secrets_wanted(h->net, h->type);
	const bool tls = h->net && h->net->cluster.address && h->net->cluster.tls;
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_curl_load(&e);

	add_library(r, rc, "libcurl", gateways, FIX_DEBIAN "libcurl4", &e);
	e = (struct aqe_err)AQE_ERR_INIT;
	rc = aqe_tls_load(&e);
	add_library(r, rc, "libssl", tls, FIX_DEBIAN "libssl3", &e);
}

/* ---- what the policy names outside ---- */

static void look_credential(const char *what, const char *path, struct shim_doctor_rows *r)
{
	AQE_AUTO_SECRET struct aqe_buf b = AQE_BUF_INIT(NETPOL_CREDENTIAL_MAX);
	struct aqe_err e = AQE_ERR_INIT;

	if (netpol_credential_read(path, &b, &e) == 0)
		shim_doctor_add(r, SHIM_DOCTOR_OK, what, NULL, "credential in %s", path);
	else
		shim_doctor_add(r, SHIM_DOCTOR_FAIL, what, MODES, "%s", e.text);
}

static void look_authorities(const char *what, const char *path, struct shim_doctor_rows *r)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct aqe_err e = AQE_ERR_INIT;

	if (fd < 0)
		(void)aqe_err_set(&e, AQE_E_UNTRUSTED, errno, "'%.200s'", path);
	else if (aqe_fs_check(fd, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_NO_WRITE,
			      NETPOL_CA_FILE_MAX, path, NULL, &e) == 0)
		return;
	shim_doctor_add(r, SHIM_DOCTOR_FAIL, what, "a PEM file of root's that others cannot write",
			"%s", e.text);
}

static void look_gateways(const struct shim_doctor_host *h, struct shim_doctor_rows *r)
{
	for (size_t i = 0; i < h->net->n_gateways; i++) {
		const struct netpol_gateway *g = &h->net->gateways[i];
		char what[NETPOL_GATEWAY_NAME_MAX + 16];

		if (netpol_policy_gateway(h->net, h->type, g->name) != g)
			continue;
		(void)snprintf(what, sizeof(what), "gateway %s", g->name);
		if (g->credential_file)
			look_credential(what, g->credential_file, r);
		else
			shim_doctor_add(r, SHIM_DOCTOR_OK, what, NULL, "without a credential");
		if (g->ca_file)
			look_authorities(what, g->ca_file, r);
	}
	if (h->net->upstream_proxy && h->net->proxy_credential)
		look_credential("upstream proxy", h->net->proxy_credential, r);
}

static bool read_address(const char *text, char host[NETPOL_HOST_MAX + 1],
			 struct cache_conn_opts *ret)
{
	size_t host_n = 0, port_n = 0;
	const char *port = NULL;
	struct netpol_host h;

	if (text[0] == '/') {
		ret->socket = text;
		return true;
	}
	netpol_authority_split(text, strlen(text), &host_n, &port, &port_n);
	if (!port || !netpol_port_parse(port, port_n, &ret->port) ||
	    !netpol_host_parse(text, host_n, &h, NULL))
		return false;
	if (h.kind == NETPOL_HOST_LITERAL)
		netpol_addr_format(&h.addr, host);
	else
		(void)snprintf(host, NETPOL_HOST_MAX + 1, "%s", h.text);
	ret->host = host;
	return true;
}

static void look_cluster(const struct shim_doctor_host *h, struct shim_doctor_rows *r)
{
	const struct netpol_cluster_conf *c = &h->net->cluster;
	const bool deny = c->on_store_error == NETPOL_STORE_DENY;
	char host[NETPOL_HOST_MAX + 1] = "";
	const struct aqe_tls_opts tls = { c->ca_file, NULL, NULL,
					  c->server_name ? c->server_name : host };
	struct cache_redis_where w = { .at = { .tls = c->tls ? &tls : NULL },
				       .username = c->username,
				       .password_file = c->password_file,
				       .db = c->db,
				       .connect_timeout_ms = CONNECT_MS,
				       .timeout_ms = CONNECT_MS };
	struct cache_redis_conn *conn = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	if (!read_address(c->address, host, &w.at))
		(void)aqe_err_set(&e, AQE_E_MALFORMED, 0, "the address is none");
	else if (cache_redis_connect(&w, &conn, &e) == 0)
		shim_doctor_add(r, SHIM_DOCTOR_OK, "cluster", NULL, "%s answers", c->address);
	cache_redis_disconnect(conn);
	if (e.code)
		shim_doctor_add(r, SHIM_DOCTOR_FAIL, "cluster",
				"start the server, or mend address, passwordFile or tls",
				"%s: %s; %s", c->address, e.text,
				deny ? "every request is refused (limiter_unavailable)"
				     : "each container has its own limit alone");
}

void shim_doctor_host(const struct shim_doctor_host *h, struct shim_doctor_rows *r)
{
	look_program(h, r);
	look_kernel(h, r);
	look_libraries(h, r);
	if (!h->net)
		return;
	look_gateways(h, r);
	if (h->net->cluster.address)
		look_cluster(h, r);
}
