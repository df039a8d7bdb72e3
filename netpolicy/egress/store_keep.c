/* SPDX-License-Identifier: MIT */
/* The keeper's side of the store process: one that hangs or ends is replaced, for ever, because
 * without it nothing opens: the policy's onStoreError says what holds meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netpolicy/egress/confine.h"
#include "netpolicy/egress/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define PASSWORD_MAX 1024
#define STORE_FILES  64
#define FIRST_MS     500
#define LAST_MS      8000
#define SETTLED_MS   60000 /* alive for so long: the wait begins anew */
#define SILENCES     2

/* Everything the process goes by; without padding, because it is compared as bytes. */
struct wanted {
	char address[512], username[NETPOL_CLUSTER_KEY_MAX], prefix[NETPOL_CLUSTER_KEY_MAX];
	char key[NETPOL_CLUSTER_KEY_MAX], password_file[4096], ca_file[4096];
	char server_name[256];
	struct netpol_rate rate;
	unsigned db;
	uint32_t timeout_ms;
	uint32_t strict, tls; /* yes or no */
};

struct netpol_store_keep {
	struct netpol_store_keep_opts o;
	struct netpol_watch chan;
	struct netpol_timer again;
	struct wanted now;
	bool is_wanted;
	int worker;
	pid_t pid;
	uint64_t pings, pongs;
	unsigned silences, failures;
	int64_t started_ms;
};

static void say(const struct netpol_store_keep *s, const char *line)
{
	if (s->o.say)
		s->o.say(s->o.say_self, line);
}

/* ---- what is wanted ---- */

static bool copy(char *ret, size_t size, const char *from)
{
	int n = snprintf(ret, size, "%s", from ? from : "");

	return n >= 0 && (size_t)n < size;
}

/* An id of any length and any bytes becomes part of a key; braces in it would move the tag. */
static bool make_key(const struct netpol_store_keep *s, enum netpol_share share, char *ret,
		     size_t size)
{
	char digest[AQE_DIGEST_TEXT] = "";
	int n;

	if (share == NETPOL_SHARE_TYPE) {
		n = snprintf(ret, size, "t:%s", s->o.agent_type);
	} else {
		if (s->o.agent_id)
			aqe_sha256_text(s->o.agent_id, strlen(s->o.agent_id), digest);
		n = snprintf(ret, size, "a:%s:%s", s->o.agent_type, digest);
	}
	return n >= 0 && (size_t)n < size;
}

/* False when no process is wanted, or what is wanted cannot be. */
static bool read_wanted(const struct netpol_store_keep *s, const struct netpol_policy *p,
			struct wanted *ret)
{
	const struct netpol_type *t = netpol_policy_type(p, s->o.agent_type);
	const struct netpol_cluster_conf *c = &p->cluster;

	memset(ret, 0, sizeof(*ret)); /* compared as bytes */
	if (!c->address)
		return false;
	ret->rate = t->has_shared ? t->shared : t->rate;
	ret->db = c->db;
	ret->timeout_ms = c->timeout_ms;
	ret->strict = c->on_store_error == NETPOL_STORE_DENY;
	ret->tls = c->tls;
	if (copy(ret->address, sizeof(ret->address), c->address) &&
	    copy(ret->username, sizeof(ret->username), c->username) &&
	    copy(ret->prefix, sizeof(ret->prefix), c->prefix) &&
	    copy(ret->password_file, sizeof(ret->password_file), c->password_file) &&
	    copy(ret->ca_file, sizeof(ret->ca_file), c->ca_file) &&
	    copy(ret->server_name, sizeof(ret->server_name), c->server_name) &&
	    make_key(s, c->share, ret->key, sizeof(ret->key)))
		return true;
	say(s, "shared limiter: a text of the policy is too long");
	return false;
}

static int read_password(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	int rc = aqe_fs_read_secret(path, "password file", b, e);

	return rc < 0 || b->len > 0 ? rc
				    : aqe_err_set(e, AQE_E_UNTRUSTED, 0, "password file: empty");
}

/* ---- the process ---- */

/* Before it is confined: the library can only be loaded now, and files are read once. NULL: TLS is
 * not wanted. */
static int prepare_tls(const struct wanted *w, struct aqe_tls **ret, struct aqe_err *e)
{
	const struct aqe_tls_opts o = { .ca_file = *w->ca_file ? w->ca_file : NULL,
					.server_name = "none" };
	int rc = w->tls ? aqe_tls_new(&o, ret, e) : 0;

	return rc < 0 ? aqe_err_wrap(e, "shared limiter") : 0;
}

__attribute__((noreturn)) static void be_store(const struct netpol_store_keep *s, int keeper,
					       int worker, const char *password)
{
	const struct wanted *w = &s->now;
	struct netpol_store_opts o = {
		.worker = worker,
		.keeper = keeper,
		.address = w->address,
		.server_name = *w->server_name ? w->server_name : NULL,
		.cluster = { .username = *w->username ? w->username : NULL,
			     .password = password,
			     .db = w->db,
			     .prefix = w->prefix,
			     .key = w->key,
			     .rate = w->rate,
			     .strict = w->strict },
		.timeout_ms = w->timeout_ms,
		.say = s->o.say,
		.say_self = s->o.say_self,
	};
	const int keep[] = { keeper, worker };
	const struct netpol_confine c = { .role = NETPOL_ROLE_DIALER, /* sockets and look-ups */
					  .id = s->o.id,
					  .fds = keep,
					  .n_fds = AQE_COUNT(keep),
					  .nofile = STORE_FILES };
	struct aqe_tls *tls = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	(void)prctl(PR_SET_NAME, "egress-store", 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, s->o.signals, NULL);
	rc = prepare_tls(w, &tls, &e);
	o.tls = tls;
	if (rc == 0)
		rc = netpol_confine(&c, &e);
	if (rc == 0 && netpol_store_run(&o, &e) == 0)
		_exit(0);
	say(s, e.text);
	_exit(1);
}

static void close_chan(struct netpol_store_keep *s)
{
	if (s->chan.fd < 0)
		return;
	netpol_loop_unwatch(s->o.loop, &s->chan);
	(void)close(s->chan.fd);
	s->chan.fd = -1;
}

static void on_chan(struct netpol_watch *w, uint32_t events)
{
	struct netpol_store_keep *s = NETPOL_OWNER(w, struct netpol_store_keep, chan);
	union netpol_msg m;
	int got;

	(void)events;
	while ((got = netpol_wire_recv_bare(w->fd, &m)) > 0) {
		if (m.head.type == NETPOL_MSG_PONG && m.ping.serial == s->pings)
			s->pongs = m.ping.serial;
	}
	if (got < 0)
		close_chan(s); /* it ends, or speaks what it should not: silence ends it */
}

/* Forks it and sends the worker its end. The one before ends when the worker lets go of it. */
static int start(struct netpol_store_keep *s, const char *password, struct aqe_err *e)
{
	struct netpol_msg_head m = { NETPOL_MSG_STORE };
	int mine[2] = { -1, -1 }, its[2] = { -1, -1 };
	int rc = netpol_wire_pair(mine, e);

	if (rc == 0)
		rc = netpol_wire_pair(its, e);
	if (rc == 0) {
		s->pid = fork();
		if (s->pid == 0)
			be_store(s, mine[1], its[1], password);
		if (s->pid < 0)
			rc = aqe_err_set(e, AQE_E_SYS, errno, "fork");
	}
	if (rc == 0 && netpol_wire_send(s->worker, &m, sizeof(m), its[0]) != NETPOL_WIRE_SENT)
		rc = aqe_err_set(e, AQE_E_SYS, 0, "the worker does not read");
	for (size_t i = 0; i < 2; i++) {
		if (its[i] >= 0)
			(void)close(its[i]); /* the others' ends */
	}
	if (mine[1] >= 0)
		(void)close(mine[1]);
	close_chan(s);
	s->chan = (struct netpol_watch){ mine[0], on_chan, 0 };
	if (rc == 0 && !netpol_loop_watch(s->o.loop, &s->chan, EPOLLIN))
		rc = aqe_err_set(e, AQE_E_SYS, errno, "epoll_ctl");
	return rc;
}

static void again_later(struct netpol_store_keep *s)
{
	int64_t wait = FIRST_MS;

	for (unsigned i = 1; i < s->failures && wait < LAST_MS; i++)
		wait *= 2;
	netpol_loop_arm(s->o.loop, &s->again, netpol_loop_now(s->o.loop) + wait);
}

static void begin(struct netpol_store_keep *s)
{
	AQE_AUTO_SECRET struct aqe_buf password = AQE_BUF_INIT(PASSWORD_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	int rc = 0;

	netpol_loop_disarm(s->o.loop, &s->again);
	if (s->worker < 0) /* the next one brings its own */
		return;
	s->pid = 0;
	s->pings = s->pongs = s->silences = 0;
	s->started_ms = netpol_loop_now(s->o.loop);
	if (*s->now.password_file)
		rc = read_password(s->now.password_file, &password, &e);
	if (rc == 0)
		rc = start(s, *s->now.password_file ? aqe_buf_str(&password) : NULL, &e);
	if (rc == 0)
		return;
	say(s, e.text);
	s->failures++;
	again_later(s);
}

static void on_again(struct netpol_timer *t)
{
	begin(NETPOL_OWNER(t, struct netpol_store_keep, again));
}

/* ---- the keeper's calls ---- */

int netpol_store_keep_new(const struct netpol_store_keep_opts *o, struct netpol_store_keep **ret,
			  struct aqe_err *e)
{
	struct netpol_store_keep *s = calloc(1, sizeof(*s));

	if (!s)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the shared limiter");
	s->o = *o;
	s->chan.fd = s->worker = -1;
	s->again.fn = on_again;
	*ret = s;
	return 0;
}

static void end(struct netpol_store_keep *s)
{
	netpol_loop_disarm(s->o.loop, &s->again);
	close_chan(s);
	if (s->pid > 0)
		(void)kill(s->pid, SIGKILL);
	s->pid = 0;
}

void netpol_store_keep_free(struct netpol_store_keep *s)
{
	if (!s)
		return;
	end(s);
	free(s);
}

void netpol_store_keep_link(struct netpol_store_keep *s, const struct netpol_policy *p, int worker,
			    bool worker_is_new)
{
	struct wanted next;
	bool is_wanted, same;

	if (!s)
		return;
	is_wanted = read_wanted(s, p, &next);
	same = is_wanted == s->is_wanted && memcmp(&next, &s->now, sizeof(next)) == 0;
	s->now = next;
	s->is_wanted = is_wanted;
	s->worker = worker;
	if (!is_wanted)
		end(s);
	else if (!same || worker_is_new)
		begin(s);
}

void netpol_store_keep_unlink(struct netpol_store_keep *s)
{
	if (s)
		s->worker = -1;
}

void netpol_store_keep_ping(struct netpol_store_keep *s)
{
	struct netpol_msg_ping m;

	if (!s || s->pid <= 0)
		return;
	s->silences = s->pongs == s->pings ? 0 : s->silences + 1;
	if (s->silences >= SILENCES) {
		say(s, "shared limiter: its process does not answer");
		(void)kill(s->pid, SIGKILL);
		return;
	}
	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_PING;
	m.serial = ++s->pings;
	if (s->chan.fd >= 0)
		(void)netpol_wire_send(s->chan.fd, &m, sizeof(m), -1);
}

bool netpol_store_keep_reaped(struct netpol_store_keep *s, pid_t pid)
{
	if (!s || pid <= 0 || pid != s->pid)
		return false;
	s->pid = 0;
	close_chan(s);
	if (netpol_loop_now(s->o.loop) - s->started_ms >= SETTLED_MS)
		s->failures = 0;
	s->failures++;
	if (s->is_wanted)
		again_later(s);
	return true;
}
