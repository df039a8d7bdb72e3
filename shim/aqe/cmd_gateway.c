/* SPDX-License-Identifier: MIT */
/* aqe gateway: the egress service's companion that holds credentials and speaks TLS. Started by the
 * keeper, never by people; it reads from two channels only (wire.h), and has no network. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netpolicy/egress/companion.h"
#include "netpolicy/egress/confine.h"
#include "netpolicy/egress/handoff.h"
#include "netpolicy/egress/secrets.h"
#include "shim/aqe/cmds.h"
#include "shim/aqe/curl.h"
#include "shim/aqe/gateway_cache.h"
#include "shim/aqe/gateway_session.h"
#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define SESSIONS_MAX 256
#define FILES        1024
#define ARENA_MAX    ((size_t)16 << 20)

enum opt { OPT_ROLE = 1, OPT_ID, OPT_TYPE };
static const struct aqe_cli_opt OPTS[] = {
	{ "role", 0, "NAME", "gateway or cache", OPT_ROLE },
	{ "id", 0, "UID", "user and group to become", OPT_ID },
	{ "type", 0, "TYPE", "agent type", OPT_TYPE },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe gateway",
	.synopsis = "--role=ROLE --type=TYPE [--id=UID]",
	.about = "The companion of an egress service. Its keeper starts it.",
	.opts = OPTS,
};

struct running {
	struct running *next;
	struct shim_session *s;
	uint64_t id; /* the worker's, until it was answered */
	bool again;
};

struct gateway {
	const char *type, *role;
	uint64_t id;
	struct netpol_policy *policy; /* NULL until it came */
	struct aqe_arena *arena;      /* of secrets */
	struct aqe_json *secrets;     /* NULL until they came */
	struct shim_tls_pool *pool;
	int keeper, worker; /* worker -1: not yet, or lost */
	bool said_ready, stop;
	struct running *list;
	size_t n;
};

/* ---- what holds ---- */

static bool find(void *self, const char *name, struct shim_route *ret)
{
	const struct gateway *g = self;
	const struct aqe_json *o;
	const char *text;

	ret->gateway = g->policy ? netpol_policy_gateway(g->policy, g->type, name) : NULL;
	o = g->secrets ? aqe_json_get(g->secrets, name) : NULL;
	if (!ret->gateway || !o)
		return false;
	text = aqe_json_str(aqe_json_get(o, "credential"));
	ret->credential = text ? text : "";
	text = aqe_json_str(aqe_json_get(o, "ca"));
	ret->ca = text ? text : "";
	/* A gateway that shall have one never goes without. */
	return !ret->gateway->credential_file || *ret->credential;
}

static int take_secrets(struct gateway *g, const struct netpol_msg_secrets *m, int fd,
			struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf b = AQE_BUF_INIT(NETPOL_SECRETS_MAX);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *root = NULL;
	int rc = a ? netpol_memfd_read(fd, m->size, &b, e)
		   : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	limits.bytes = NETPOL_SECRETS_MAX;
	if (rc == 0)
		rc = aqe_json_parse(a, aqe_buf_str(&b), b.len, &limits, &root, e);
	if (rc < 0)
		return rc;
	aqe_arena_free(g->arena);
	g->arena = AQE_TAKE_PTR(a);
	g->secrets = root;
	return 0;
}

static int take_policy(struct gateway *g, const struct netpol_msg_policy *m, int fd,
		       struct aqe_err *e)
{
	struct netpol_policy *p = NULL;
	int rc = netpol_handoff_read(m, fd, g->type, &p, e);

	if (rc < 0)
		return rc;
	netpol_policy_unref(g->policy);
	g->policy = p;
	return 0;
}

/* ---- the worker asks ---- */

static void answer(struct gateway *g, uint64_t id, enum netpol_wrap_result result, int fd)
{
	struct netpol_msg_wrapped m;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_WRAPPED;
	m.id = id;
	m.result = (uint8_t)result;
	/* A worker that is gone or does not read gets nothing: it has its own deadline. */
	if (g->worker >= 0)
		(void)netpol_wire_send(g->worker, &m, sizeof(m), fd);
}

static void wrap(struct gateway *g, const struct netpol_msg_wrap *m, int fd)
{
	struct running *r = g->n < SESSIONS_MAX ? calloc(1, sizeof(*r)) : NULL;
	struct shim_route route = { NULL, "", "" };
	enum netpol_wrap_result result = NETPOL_WRAP_BUSY;

	if (!memchr(m->gateway, '\0', sizeof(m->gateway)) || !find(g, m->gateway, &route)) {
		result = route.gateway ? NETPOL_WRAP_CREDENTIAL : NETPOL_WRAP_UNKNOWN;
		(void)close(fd); /* not to be used */
	} else if (!r) {
		(void)close(fd);
	} else {
		r->s = shim_session_new(g->pool, fd, m->gateway, &route, find, g);
	}
	if (!r || !r->s) {
		free(r);
		answer(g, m->id, result, -1);
		return;
	}
	r->id = m->id;
	r->next = g->list;
	g->list = r;
	g->n++;
}

static void on_worker(struct gateway *g)
{
	union netpol_msg m;
	int fd, got = 0;

	while (g->worker >= 0 && (got = netpol_wire_recv(g->worker, &m, &fd)) > 0) {
		if (m.head.type == NETPOL_MSG_WRAP && fd >= 0)
			wrap(g, &m.wrap, fd);
		else if (fd >= 0)
			(void)close(fd); /* of no message for us */
	}
	if (got >= 0)
		return;
	(void)close(g->worker);
	g->worker = -1;
}

/* ---- the keeper ---- */

static int take(struct gateway *g, const union netpol_msg *m, int fd, struct aqe_err *e)
{
	struct netpol_msg_head ready = { NETPOL_MSG_READY };
	int rc = 0;

	if (m->head.type == NETPOL_MSG_PING)
		netpol_wire_pong(g->keeper, &m->ping);
	else if (m->head.type == NETPOL_MSG_SECRETS && fd >= 0)
		rc = take_secrets(g, &m->secrets, fd, e);
	else if (m->head.type == NETPOL_MSG_POLICY && fd >= 0)
		rc = take_policy(g, &m->policy, fd, e);
	if (rc < 0 || g->said_ready || !g->policy || !g->secrets)
		return rc;
	g->said_ready = true;
	if (netpol_wire_send(g->keeper, &ready, sizeof(ready), -1) != NETPOL_WIRE_SENT)
		return aqe_err_set(e, AQE_E_SYS, EPIPE, "the keeper is gone");
	return 0;
}

static int on_keeper(struct gateway *g, struct aqe_err *e)
{
	union netpol_msg m;
	int fd, got = 0, rc = 0;

	while (rc == 0 && (got = netpol_wire_recv(g->keeper, &m, &fd)) > 0) {
		if (m.head.type == NETPOL_MSG_LINK && fd >= 0) {
			if (g->worker >= 0)
				(void)close(g->worker); /* the one before is gone */
			g->worker = fd;
			continue;
		}
		rc = take(g, &m, fd, e);
		if (fd >= 0)
			(void)close(fd); /* read */
	}
	g->stop = got < 0;
	return rc;
}

/* ---- the loop ---- */

/* A session whose handshake ended is answered for; one that is over goes. True: it stays. */
static bool settle(struct gateway *g, struct running *r)
{
	int fd;

	switch (shim_session_state(r->s)) {
	case SHIM_SESSION_READY:
		fd = shim_session_plain(r->s);
		answer(g, r->id, fd < 0 ? NETPOL_WRAP_BUSY : NETPOL_WRAP_OK, fd);
		if (fd >= 0)
			(void)close(fd); /* the worker's */
		return fd >= 0;
	case SHIM_SESSION_FAILED:
		answer(g, r->id, NETPOL_WRAP_TLS, -1);
		return false;
	case SHIM_SESSION_ENDED:
		return false;
	case SHIM_SESSION_SHAKING:
	case SHIM_SESSION_OPEN:
		break;
	}
	return true;
}

static void settle_all(struct gateway *g)
{
	struct running **at = &g->list, *r;

	while ((r = *at) != NULL) {
		if (settle(g, r)) {
			at = &r->next;
			continue;
		}
		*at = r->next;
		g->n--;
		shim_session_free(r->s);
		free(r);
	}
}

static size_t gather(const struct gateway *g, struct pollfd *fds, bool *ret_again)
{
	size_t n = 0;

	fds[n++] = (struct pollfd){ g->keeper, POLLIN, 0 };
	fds[n++] = (struct pollfd){ g->worker, POLLIN, 0 }; /* -1 is passed over */
	*ret_again = false;
	for (const struct running *r = g->list; r; r = r->next) {
		if (shim_session_state(r->s) != SHIM_SESSION_OPEN)
			continue;
		shim_session_want(r->s, fds + n);
		*ret_again = *ret_again || r->again;
		n += 2;
	}
	return n;
}

static void run_sessions(struct gateway *g, const struct pollfd *fds, size_t n)
{
	size_t at = 2;

	/* Handshakes that ended meanwhile have no entry: entries are in order of the list, and
	 * known by their descriptor. */
	for (struct running *r = g->list; r && at + 1 < n; r = r->next) {
		struct pollfd mine[2];

		if (shim_session_state(r->s) != SHIM_SESSION_OPEN)
			continue;
		shim_session_want(r->s, mine);
		if (mine[0].fd != fds[at].fd)
			continue;
		if (r->again || fds[at].revents || fds[at + 1].revents)
			r->again = shim_session_run(r->s, fds + at);
		at += 2;
	}
}

static int serve(struct gateway *g, struct aqe_err *e)
{
	static struct pollfd fds[2 * SESSIONS_MAX + 2];
	int rc = 0;

	while (rc == 0 && !g->stop) {
		bool again;
		size_t n = gather(g, fds, &again);

		rc = shim_tls_poll(g->pool, fds, n, again ? 0 : 60000, e);
		if (rc == 0)
			run_sessions(g, fds, n);
		if (rc == 0 && fds[1].revents)
			on_worker(g);
		if (rc == 0 && fds[0].revents)
			rc = on_keeper(g, e);
		settle_all(g);
	}
	return rc;
}

/* ---- start ---- */

static int read_words(struct gateway *g, int argc, char **argv, struct aqe_err *e)
{
	static const char *const roles[] = { "gateway", "cache", NULL };
	struct aqe_cli c;
	int id;

	aqe_cli_init(&c, &CMD, argc, argv);
	while ((id = aqe_cli_next(&c, e)) != AQE_CLI_END) {
		if (id == OPT_ROLE)
			g->role = c.value;
		else if (id == OPT_TYPE)
			g->type = c.value;
		else if (id < 0)
			return id;
		else if (id != OPT_ID || !aqe_parse_u64(c.value, INT32_MAX, &g->id))
			return aqe_err_set(e, AQE_E_USAGE, 0, "it is started by an egress service");
	}
	if (!g->type || !g->role || !aqe_str_in(g->role, roles))
		return aqe_err_set(e, AQE_E_USAGE, 0, "it is started by an egress service");
	return 0;
}

static int confine(const struct gateway *g, struct aqe_err *e)
{
	static const int keep[] = { NETPOL_COMPANION_FD };
	struct netpol_confine c = { .role = NETPOL_ROLE_COMPANION,
				    .id = (uid_t)g->id,
				    .fds = keep,
				    .n_fds = AQE_COUNT(keep),
				    .nofile = FILES };

	/* Nothing is dialled here: the filter forbids socket(2). This only takes the sight of
	 * interfaces, and is not possible everywhere. */
	(void)unshare(CLONE_NEWNET);
	return netpol_confine(&c, e);
}

static int run(struct gateway *g, struct aqe_err *e)
{
	int rc;

	if (aqe_str_eq(g->role, "cache"))
		return shim_gateway_cache(g->id, e);
	rc = shim_curl_load(e);
	if (rc == 0)
		rc = confine(g, e);
	if (rc == 0)
		rc = shim_tls_pool_new(&g->pool, e);
	return rc == 0 ? serve(g, e) : rc;
}

static void done(struct gateway *g)
{
	while (g->list) {
		struct running *r = g->list;

		g->list = r->next;
		shim_session_free(r->s);
		free(r);
	}
	shim_tls_pool_free(g->pool);
	netpol_policy_unref(g->policy);
	aqe_arena_free(g->arena);
}

int shim_cmd_gateway(int argc, char **argv)
{
	struct gateway g = { .keeper = NETPOL_COMPANION_FD, .worker = -1 };
	struct aqe_err e = AQE_ERR_INIT;
	int rc = read_words(&g, argc, argv, &e);

	if (rc == 0)
		rc = run(&g, &e);
	done(&g);
	if (rc == 0)
		return SHIM_EXIT_OK;
	(void)fprintf(stderr, "aqe gateway: %s\n", aqe_cli_fault(&CMD, &e));
	return e.code == AQE_E_USAGE ? SHIM_EXIT_USAGE : SHIM_EXIT_FAILED;
}
