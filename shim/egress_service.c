/* SPDX-License-Identifier: MIT */
#include "shim/egress_service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "netpolicy/egress/keeper.h"
#include "netpolicy/egress/netns.h"
#include "netpolicy/egress/secrets.h"
#include "shim/aqe/audit_at.h"
#include "shim/aqe/unix_socket.h"
#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/egress_audit.h"
#include "shim/egress_cache.h"
#include "shim/egress_control.h"
#include "shim/egress_id.h"
#include "shim/egress_watch.h"
#include "shim/env.h"
#include "shim/exit.h"
#include "shim/net_policy.h"

#define ARENA_MAX   ((size_t)1 << 20)
#define HTTPS       443
#define HTTP        80
#define DNS         53
#define COMPANION   "aqe"
#define CACHE_PLACE "127.0.0.1:3130"
#define LINES_MAX   2000 /* of the log, in the life of a service */

enum opt {
	OPT_LISTEN = 1,
	OPT_SOCKS,
	OPT_DNS,
	OPT_TLS,
	OPT_HOST,
	OPT_GATEWAY,
	OPT_NETNS,
	OPT_CONTAINER,
	OPT_AGENT,
	OPT_IMAGE,
	OPT_TYPE,
	OPT_POLICY,
	OPT_METRICS,
	OPT_CONTROL,
	OPT_STATE,
	OPT_READY,
	OPT_LINES,
	OPT_AUDIT,
	OPT_AUDIT_MODE,
};
static const struct aqe_cli_opt OPTS[] = {
	{ "listen", 'l', "ADDR:PORT",
	  "HTTP proxy there; with --netns the default is 127.0.0.1:3128", OPT_LISTEN },
	{ "socks", 0, "ADDR:PORT", "SOCKS5 proxy there", OPT_SOCKS },
	{ "dns", 0, "ADDR:PORT", "DNS stub there, UDP and TCP", OPT_DNS },
	{ "tls", 0, "ADDR:PORT", "transparent TLS (by SNI) there", OPT_TLS },
	{ "http", 0, "ADDR:PORT", "transparent HTTP (by Host) there", OPT_HOST },
	{ "gateway", 0, "ADDR:PORT", "the policy's gateways there", OPT_GATEWAY },
	{ "netns", 0, "PID", "serve inside this process's network namespace, until it ends",
	  OPT_NETNS },
	{ "container", 0, "ID", "container id, for audit rows", OPT_CONTAINER },
	{ "agent-id", 0, "ID", "the agent's own name, for audit rows", OPT_AGENT },
	{ "image", 0, "DIGEST", "image, for audit rows", OPT_IMAGE },
	{ "type", 't', "TYPE", "agent type: its row of the policy is enforced", OPT_TYPE },
	{ "policy", 'p', "FILE", "this policy file instead of the system's and the user's",
	  OPT_POLICY },
	{ "metrics", 0, "SOCKET", "unix socket that answers with Prometheus text", OPT_METRICS },
	{ "control", 0, "SOCKET", "unix socket for `aqe policy reload`", OPT_CONTROL },
	{ "state", 0, "FILE", "keep the rate limiter's state here", OPT_STATE },
	{ "ready-fd", 0, "FD", "write a byte there when it listens", OPT_READY },
	{ "audit-lines", 0, "FILE", "append JSON lines there instead of rows to the audit log",
	  OPT_LINES },
	{ "audit", 0, "DIR", "folder of the audit log, instead of the usual one", OPT_AUDIT },
	{ "audit-mode", 0, "MODE",
	  "required (default), optional (what cannot be recorded goes on) or off", OPT_AUDIT_MODE },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe egress",
	.synopsis = "--type TYPE (--listen ADDR:PORT | --netns PID) [OPTION...]",
	.about =
		"Lets an agent reach exactly what its policy names. Inside a container's network "
		"namespace it is the container's only way out; with --listen alone it is a forward "
		"proxy. SIGHUP reads the policy anew, SIGTERM ends it.\n"
		"Exit status: 0 ended as asked or with the container, 1 could not start or crashed "
		"too often, 2 usage.",
	.opts = OPTS,
};

/* The command line, read. */
struct service {
	struct aqe_arena *arena;
	const char *policy_file, *type, *metrics, *control, *state, *lines, *audit_dir, *audit_mode;
	const char *container, *agent_id, *image;
	bool cache; /* the type has the listener */
	uid_t cache_id;
	struct netpol_listen_spec specs[NETPOL_LISTEN_MAX];
	size_t n_specs;
	pid_t netns;
	unsigned lines_said;
	int ready_fd;
	struct hard_policy *files; /* as read at the start, until the cache was judged */
	struct netpol_live live;
	struct audit_log *log;
	struct shim_egress_audit rows;
	struct netpol_audit audit;
	int lines_fd, state_fd, metrics_fd, control_fd, pidfd, netns_fd, cache_fd;
	struct netpol_listen_fd listen[NETPOL_LISTEN_MAX];
	size_t n_listen;
};

/* ---- the command line ---- */

static int add_spec(struct service *s, enum netpol_front front, const struct netpol_addr *addr,
		    uint16_t port, struct aqe_err *e)
{
	if (s->n_specs == NETPOL_LISTEN_MAX - 1) /* one stays for the metrics */
		return aqe_err_set(e, AQE_E_USAGE, 0, "too many listeners");
	s->specs[s->n_specs++] = (struct netpol_listen_spec){ front, *addr, port };
	return 0;
}

static int add_place(struct service *s, enum netpol_front front, const char *text,
		     struct aqe_err *e)
{
	const char *port_text = NULL;
	size_t host_n = 0, port_n = 0;
	struct netpol_host host;
	uint16_t port = 0;
	int rc;

	netpol_authority_split(text, strlen(text), &host_n, &port_text, &port_n);
	if (!port_text || !netpol_host_parse(text, host_n, &host, NULL) ||
	    host.kind != NETPOL_HOST_LITERAL || !netpol_port_parse(port_text, port_n, &port))
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.80s' is no ADDRESS:PORT", text);
	rc = add_spec(s, front, &host.addr, port, e);
	if (rc == 0 && front == NETPOL_FRONT_DNS)
		rc = add_spec(s, NETPOL_FRONT_DNS_TCP, &host.addr, port, e);
	return rc;
}

static int take_number(const char *text, uint64_t max, int *ret, struct aqe_err *e)
{
	uint64_t v = 0;

	if (!aqe_parse_u64(text, max, &v))
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.80s' is no number", text);
	*ret = (int)v;
	return 0;
}

static int take_option(struct service *s, int id, const char *value, struct aqe_err *e)
{
	static const enum netpol_front fronts[] = {
		[OPT_LISTEN] = NETPOL_FRONT_HTTP, [OPT_SOCKS] = NETPOL_FRONT_SOCKS,
		[OPT_DNS] = NETPOL_FRONT_DNS,     [OPT_TLS] = NETPOL_FRONT_TLS,
		[OPT_HOST] = NETPOL_FRONT_HOST,   [OPT_GATEWAY] = NETPOL_FRONT_GATEWAY,
	};
	const struct {
		int id;
		const char **to;
	} texts[] = {
		{ OPT_CONTAINER, &s->container },   { OPT_AGENT, &s->agent_id },
		{ OPT_IMAGE, &s->image },           { OPT_TYPE, &s->type },
		{ OPT_POLICY, &s->policy_file },    { OPT_METRICS, &s->metrics },
		{ OPT_CONTROL, &s->control },       { OPT_STATE, &s->state },
		{ OPT_LINES, &s->lines },           { OPT_AUDIT, &s->audit_dir },
		{ OPT_AUDIT_MODE, &s->audit_mode },
	};

	if (id <= OPT_GATEWAY)
		return add_place(s, fronts[id], value, e);
	if (id == OPT_NETNS)
		return take_number(value, INT32_MAX, &s->netns, e);
	if (id == OPT_READY)
		return take_number(value, INT32_MAX, &s->ready_fd, e);
	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		if (texts[i].id == id)
			*texts[i].to = value;
	}
	return 0;
}

/* 1: the help was asked for. */
static int read_words(struct service *s, int argc, char **argv, struct aqe_err *e)
{
	static const char *const modes[] = { "required", "optional", "off", NULL };
	struct aqe_cli c;
	int id;

	aqe_cli_init(&c, &CMD, argc, argv);
	while ((id = aqe_cli_next(&c, e)) != AQE_CLI_END) {
		int rc = id;

		if (id == AQE_CLI_HELP)
			return 1;
		if (id == AQE_CLI_OPERAND)
			return aqe_err_set(e, AQE_E_USAGE, 0, "surplus word '%.80s'", c.value);
		if (id > 0)
			rc = take_option(s, id, c.value, e);
		if (rc < 0)
			return rc;
	}
	if (!s->type)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--type is missing");
	if (s->audit_mode && !aqe_str_in(s->audit_mode, modes))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--audit-mode: required, optional or off");
	if (s->netns == 0 && s->n_specs == 0)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--listen or --netns is missing");
	return 0;
}

/* ---- what the service stands on ---- */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static int read_files(const struct service *s, struct hard_policy **ret, struct aqe_err *e)
{
	return s->policy_file ? hard_policy_load_file(s->policy_file, ret, e)
			      : hard_policy_load(HARD_POLICY_DIR,
						 shim_env_policy_dir(s->arena, environ), ret, e);
}

static int load_policy(void *self, struct netpol_policy **ret, struct aqe_err *e)
{
	struct service *s = self;
	struct hard_policy *files = NULL;
	struct netpol_policy *p = NULL;
	int rc = read_files(s, &files, e);

	if (rc == 0)
		rc = shim_net_policy_build(files, &p, e);
	if (s->live.now)
		hard_policy_free(files);
	else
		s->files = files;
	if (rc < 0)
		return rc;
	/* The dialer read it when it was started, and cannot read another. */
	if (s->live.now && !same_text(p->proxy_credential, s->live.now->proxy_credential)) {
		netpol_policy_unref(p);
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "policy: the upstream proxy's credentialFile cannot change "
				   "while the service runs");
	}
	/* A credential that cannot be used is no reason to go without one. */
	if (s->type)
		rc = netpol_secrets_check(p, netpol_policy_type(p, s->type)->name, e);
	if (rc < 0) {
		netpol_policy_unref(p);
		return rc;
	}
	*ret = p;
	return 0;
}

/* In a container all places are known; what the type does not want is left out. */
static int default_places(struct service *s, const struct netpol_type *t, struct aqe_err *e)
{
	const struct {
		enum netpol_front front;
		const char *place;
		bool wanted;
	} places[] = {
		{ NETPOL_FRONT_HTTP, "127.0.0.1:3128", true },
		{ NETPOL_FRONT_SOCKS, "127.0.0.1:1080", t->socks },
		{ NETPOL_FRONT_DNS, "127.0.0.1:53", t->transparent },
		{ NETPOL_FRONT_TLS, NETPOL_STUB_ADDR ":443", t->transparent },
		{ NETPOL_FRONT_HOST, NETPOL_STUB_ADDR ":80", t->transparent },
		{ NETPOL_FRONT_GATEWAY, "127.0.0.1:3129", true },
	};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < AQE_COUNT(places); i++) {
		if (places[i].wanted)
			rc = add_place(s, places[i].front, places[i].place, e);
	}
	return rc;
}

static int open_policy(struct service *s, struct aqe_err *e)
{
	const struct netpol_type *t;
	bool changed;
	int rc;

	s->live.load = load_policy;
	s->live.self = s;
	rc = netpol_live_reload(&s->live, &changed, e);
	if (rc < 0)
		return rc;
	t = netpol_policy_type(s->live.now, s->type);
	if (t->access != NETPOL_ACCESS_WHITELISTED)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "agent type '%s' is isolated: no egress",
				   t->name);
	s->type = aqe_arena_dup(s->arena, t->name); /* an unknown type is "default" */
	if (!s->type)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	return s->n_specs == 0 ? default_places(s, t, e) : 0;
}

/* ---- the cache: only inside a container ---- */

static int cache_content(void *self, struct aqe_buf *b, struct aqe_err *e)
{
	const struct service *s = self;
	const struct shim_egress_cache_for who = { s->type, s->agent_id, s->container };
	struct hard_policy *p = NULL;
	int rc = read_files(s, &p, e);

	if (rc == 0)
		rc = shim_egress_cache_give(p, &who, b, e);
	hard_policy_free(p);
	return rc;
}

static int open_cache(struct service *s, struct aqe_err *e)
{
	struct aqe_err why = AQE_ERR_INIT;
	struct shim_egress_ids ids;
	uint32_t size = 0;
	int fd = -1;
	int rc = s->netns > 0 ? shim_egress_cache_wanted(s->files, s->type, &s->cache, e) : 0;

	shim_egress_ids(s->container ? s->container : s->type, &ids);
	if (rc == 0 && s->cache)
		rc = shim_egress_cache_id(s->files, s->type, ids.cache, &s->cache_id, e);
	hard_policy_free(s->files);
	s->files = NULL;
	if (rc < 0 || !s->cache)
		return rc;
	/* What cannot be used refuses the start, with its reason. */
	rc = netpol_secrets_seal_by(cache_content, s, &fd, &size, &why, e);
	if (rc < 0)
		return rc;
	(void)close(fd); /* judged; it is read again when it is handed over */
	if (why.code != AQE_OK)
		return aqe_err_set(e, why.code, why.sys, "%s", why.text);
	return add_place(s, NETPOL_FRONT_CACHE, CACHE_PLACE, e);
}

static int open_audit(struct service *s, struct aqe_err *e)
{
	struct audit_opts at;
	int rc;

	if (aqe_str_eq(s->audit_mode, "off")) {
		s->audit = shim_egress_audit_none();
		return 0;
	}
	if (s->lines) {
		s->lines_fd = open(s->lines, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		if (s->lines_fd < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "open '%.200s'", s->lines);
		s->audit = netpol_audit_lines(s->lines_fd);
		return 0;
	}
	rc = s->audit_dir ? shim_audit_at_path(s->arena, s->audit_dir, AUDIT_WRITE, &at, e)
			  : shim_audit_at(s->arena, environ, AUDIT_WRITE, &at, e);
	if (rc == 0)
		rc = audit_open(&at, &s->log, e);
	if (rc < 0)
		return rc;
	s->rows = (struct shim_egress_audit){ .log = s->log,
					      .container = s->container,
					      .agent_id = s->agent_id,
					      .agent_type = s->type,
					      .image = s->image,
					      .optional = aqe_str_eq(s->audit_mode, "optional") };
	s->audit = shim_egress_audit_port(&s->rows);
	return 0;
}

/* The folder of --state; its last part is the file's name. */
static int open_state(struct service *s, struct aqe_err *e)
{
	char *folder = s->state ? aqe_arena_dup(s->arena, s->state) : NULL, *slash;

	if (!s->state)
		return 0;
	slash = folder ? strrchr(folder, '/') : NULL;
	if (!slash || slash == folder || slash[1] == '\0')
		return aqe_err_set(e, AQE_E_USAGE, 0, "--state wants the path of a file");
	*slash = '\0';
	s->state = slash + 1;
	return aqe_fs_open_dir(folder, &s->state_fd, e);
}

static int open_sockets(struct service *s, struct aqe_err *e)
{
	int rc = 0;

	if (s->metrics)
		rc = shim_unix_listen(s->metrics, NETPOL_BACKLOG, &s->metrics_fd, e);
	if (rc == 0 && s->control)
		rc = shim_unix_listen(s->control, NETPOL_BACKLOG, &s->control_fd, e);
	return rc;
}

static int open_listeners(struct service *s, struct aqe_err *e)
{
	int rc = 0;

	if (s->netns > 0) {
		s->pidfd = (int)syscall(SYS_pidfd_open, s->netns, 0);
		if (s->pidfd < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "process %d", (int)s->netns);
		rc = netpol_netns_open(s->pidfd, s->netns, &s->netns_fd, e);
	}
	if (rc == 0)
		rc = netpol_netns_listen(s->netns_fd, s->specs, s->n_specs, s->listen, e);
	if (rc < 0)
		return rc;
	s->n_listen = s->n_specs;
	if (s->cache) /* its companion's, not the worker's */
		s->cache_fd = s->listen[--s->n_listen].fd;
	if (s->metrics_fd >= 0)
		s->listen[s->n_listen++] =
			(struct netpol_listen_fd){ s->metrics_fd, NETPOL_FRONT_METRICS };
	/* The keeper holds no other way into the namespace than the sockets. */
	if (s->netns_fd >= 0)
		(void)close(s->netns_fd);
	s->netns_fd = -1;
	return 0;
}

/* ---- running ---- */

static void say(void *self, const char *line)
{
	struct service *s = self;

	/* An agent can cause lines (a full audit disk): the log must not fill the host's memory. */
	if (s->lines_said++ >= LINES_MAX)
		return;
	(void)fprintf(stderr, "aqe egress: %s%s%s\n", s->container ? s->container : "",
		      s->container ? ": " : "", line);
}

static int run(struct service *s, enum netpol_keeper_end *ret, struct aqe_err *e)
{
	struct shim_egress_watch watch, companions[NETPOL_COMPANION_COUNT];
	int64_t now = netpol_boottime_ns() / 1000000;
	struct shim_egress_ids ids;
	char program[PATH_MAX];
	struct netpol_keeper_opts o = {
		.listen = s->listen,
		.n_listen = s->n_listen,
		.pidfd = s->pidfd,
		.live = &s->live,
		.agent_type = s->type,
		.agent_id = s->agent_id,
		.audit = s->audit,
		.supervise = shim_egress_watch_port(&watch, now),
		.state_dir = s->state_fd,
		.state_name = s->state,
		.ready_fd = s->ready_fd,
		.control_fd = s->control_fd,
		.control = &SHIM_EGRESS_CONTROL,
		.say = say,
		.say_self = s,
	};

	shim_egress_ids(s->container ? s->container : s->type, &ids);
	o.worker_id = ids.worker;
	o.dialer_id = ids.dialer;
	if (aqe_proc_beside(COMPANION, program, sizeof(program), NULL) == 0)
		o.program = program;
	o.companions[NETPOL_COMPANION_GATEWAY].id = ids.gateway;
	for (size_t i = 0; i < NETPOL_COMPANION_COUNT; i++) {
		o.companions[i].listen_fd = -1;
		o.companions[i].supervise = shim_egress_watch_port(&companions[i], now);
	}
	o.companions[NETPOL_COMPANION_CACHE].id = s->cache_id;
	o.companions[NETPOL_COMPANION_CACHE].listen_fd = s->cache_fd;
	o.companions[NETPOL_COMPANION_CACHE].content = s->cache ? cache_content : NULL;
	o.companions[NETPOL_COMPANION_CACHE].content_self = s;
	return netpol_keeper_run(&o, ret, e);
}

static int serve(struct service *s, struct aqe_err *e)
{
	enum netpol_keeper_end end = NETPOL_ENDED_ASKED;
	int rc = open_policy(s, e);

	if (rc == 0)
		rc = open_cache(s, e);
	if (rc == 0)
		rc = open_audit(s, e);
	if (rc == 0)
		rc = open_state(s, e);
	if (rc == 0)
		rc = open_sockets(s, e);
	if (rc == 0)
		rc = open_listeners(s, e);
	if (rc == 0)
		rc = run(s, &end, e);
	if (rc == 0 && end == NETPOL_ENDED_CRASHED)
		rc = aqe_err_set(e, AQE_E_INTERNAL, 0, "the worker ended too often: closed");
	return rc;
}

static void done(struct service *s)
{
	const int fds[] = { s->lines_fd, s->state_fd, s->control_fd,
			    s->pidfd,    s->netns_fd, s->cache_fd };

	for (size_t i = 0; i < AQE_COUNT(fds); i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]); /* the process ends */
	}
	if (s->metrics)
		(void)unlink(s->metrics);
	if (s->control)
		(void)unlink(s->control);
	hard_policy_free(s->files);
	audit_close(s->log);
	netpol_live_done(&s->live);
	aqe_arena_free(s->arena);
}

static int help(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(16384);

	aqe_cli_help(&CMD, &b);
	return fputs(aqe_buf_str(&b), stdout) < 0 || fflush(stdout) != 0 ? SHIM_EXIT_FAILED
									 : SHIM_EXIT_OK;
}

int shim_egress_main(int argc, char **argv)
{
	struct service s = { .arena = aqe_arena_new(ARENA_MAX),
			     .ready_fd = -1,
			     .lines_fd = -1,
			     .state_fd = -1,
			     .metrics_fd = -1,
			     .control_fd = -1,
			     .pidfd = -1,
			     .netns_fd = -1,
			     .cache_fd = -1 };
	struct aqe_err e = AQE_ERR_INIT;
	int rc = s.arena ? read_words(&s, argc, argv, &e)
			 : aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");

	if (rc == 0)
		rc = serve(&s, &e);
	done(&s);
	if (rc == 1)
		return help();
	if (rc == 0)
		return SHIM_EXIT_OK;
	(void)fprintf(stderr, "aqe egress: %s\n", aqe_cli_fault(&CMD, &e));
	return e.code == AQE_E_USAGE ? SHIM_EXIT_USAGE : SHIM_EXIT_FAILED;
}
