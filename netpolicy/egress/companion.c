/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/companion.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netpolicy/egress/handoff.h"
#include "netpolicy/egress/secrets.h"
#include "shim/core/cleanup.h"

/* What is special about each. */
static const struct {
	const char *name;                                                /* --role */
	bool (*wanted)(const struct netpol_policy *p, const char *type); /* NULL: with content */
	const char *started, *ended, *closed, *secrets, *no_secrets;     /* events */
} ROLES[NETPOL_COMPANION_COUNT] = {
	[NETPOL_COMPANION_GATEWAY] = { "gateway", netpol_secrets_wanted, "gateway_started",
				       "gateway_ended", "gateway_closed", "credential_changed",
				       "credential_unavailable" },
	[NETPOL_COMPANION_CACHE] = { "cache", NULL, "cache_started", "cache_ended", "cache_closed",
				     "cache_changed", "cache_unavailable" },
};

struct netpol_companion {
	struct netpol_companion_opts o;
	struct netpol_policy *policy; /* a reference */
	struct netpol_watch chan;
	struct netpol_ward ward;
	struct netpol_timer look;
	uint64_t pings; /* sent: number of the last one */
	bool answered;  /* that one */
	int64_t cpu_ns; /* used when it was sent */
	bool started;   /* once at least */
	pid_t pid;      /* 0: none */
	bool wanted, ready;
	uint64_t stamp; /* of the files as they were handed over */
};

static void tell(struct netpol_companion *c, const char *reason, bool good)
{
	c->o.event(c->o.self, reason, good);
}

/* ---- handing over ---- */

/* Content has no files of its own to be looked at. */
static uint64_t stamp_of(const struct netpol_companion *c)
{
	return c->o.content ? 0 : netpol_secrets_stamp(c->policy, c->o.agent_type);
}

static int send_secrets(struct netpol_companion *c, struct aqe_err *e)
{
	struct netpol_msg_secrets m = { NETPOL_MSG_SECRETS, 0 };
	struct aqe_err why = AQE_ERR_INIT;
	AQE_AUTO_FD int fd = -1;
	int rc;

	c->stamp = stamp_of(c);
	rc = c->o.content ? netpol_secrets_seal_by(c->o.content, c->o.content_self, &fd, &m.size,
						   &why, e)
			  : netpol_secrets_seal(c->policy, c->o.agent_type, &fd, &m.size, &why, e);
	/* What cannot be read is not handed over: its gateway answers 503 from now on. A cache
	 * goes on with what it was given. */
	if (rc == 0 && why.code != AQE_OK) {
		tell(c, ROLES[c->o.role].no_secrets, false);
		if (c->o.content)
			return c->ready ? 0 : aqe_err_set(e, why.code, why.sys, "%s", why.text);
	}
	if (rc == 0 && netpol_wire_send(c->chan.fd, &m, sizeof(m), fd) != NETPOL_WIRE_SENT)
		rc = aqe_err_set(e, AQE_E_SYS, EPIPE, "the companion is gone");
	return rc;
}

/* Secrets first: no moment in which a new gateway has none. */
static int hand_over(struct netpol_companion *c, struct aqe_err *e)
{
	struct netpol_msg_policy m;
	AQE_AUTO_FD int fd = -1;
	int rc = send_secrets(c, e);

	if (rc < 0 || c->o.content) /* the network policy is the worker's; it may end by now */
		return rc;
	if (rc == 0)
		rc = netpol_handoff_write(c->policy, c->o.agent_type, &m, &fd, e);
	if (rc == 0 && netpol_wire_send(c->chan.fd, &m, sizeof(m), fd) != NETPOL_WIRE_SENT)
		rc = aqe_err_set(e, AQE_E_SYS, EPIPE, "the companion is gone");
	return rc;
}

static void on_look(struct netpol_timer *t)
{
	struct netpol_companion *c = NETPOL_OWNER(t, struct netpol_companion, look);
	struct aqe_err e = AQE_ERR_INIT;

	netpol_loop_arm(c->o.loop, t, netpol_loop_now(c->o.loop) + NETPOL_COMPANION_LOOK_MS);
	if (c->chan.fd < 0 || c->stamp == stamp_of(c))
		return;
	tell(c, ROLES[c->o.role].secrets, true);
	if (send_secrets(c, &e) < 0 && c->pid > 0)
		(void)kill(c->pid, SIGKILL); /* better anew than with the old ones */
}

/* ---- the process ---- */

static void place(int fd, int at)
{
	if (fd == at)
		(void)fcntl(fd, F_SETFD, 0);
	else
		(void)dup2(fd, at);
}

/* In the child. It confines itself when its libraries are loaded. */
__attribute__((noreturn)) static void become(const struct netpol_companion *c, int chan)
{
	char role[64], id[32], type[128], path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
					  *env[] = { path, NULL };
	char name[] = "aqe", command[] = "gateway";
	char *argv[] = { name, command, role, type, id, NULL };
	/* out of the way of the places they go to */
	int high = fcntl(chan, F_DUPFD_CLOEXEC, 16);
	int listener = c->o.listen_fd < 0 ? -1 : fcntl(c->o.listen_fd, F_DUPFD_CLOEXEC, 16);
	sigset_t none;

	(void)snprintf(role, sizeof(role), "--role=%s", ROLES[c->o.role].name);
	(void)snprintf(type, sizeof(type), "--type=%s", c->o.agent_type);
	(void)snprintf(id, sizeof(id), "--id=%u", (unsigned)c->o.id);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	place(high, NETPOL_COMPANION_FD);
	if (listener >= 0)
		place(listener, NETPOL_COMPANION_LISTEN);
	if (close_range(listener < 0 ? NETPOL_COMPANION_FD + 1 : NETPOL_COMPANION_LISTEN + 1, ~0U,
			0) == 0)
		(void)execve(c->o.program, argv, env);
	_exit(127);
}

static void drop_chan(struct netpol_companion *c)
{
	if (c->chan.fd < 0)
		return;
	netpol_loop_unwatch(c->o.loop, &c->chan);
	(void)close(c->chan.fd); /* the process sees its end */
	c->chan.fd = -1;
	c->ready = false;
}

/* False: it says what it should not. */
static bool take(struct netpol_companion *c, const union netpol_msg *m)
{
	if (m->head.type == NETPOL_MSG_READY && !c->ready) {
		c->ready = true;
		c->o.ready(c->o.self);
		return true;
	}
	if (m->head.type != NETPOL_MSG_PONG || m->ping.serial > c->pings)
		return false;
	if (m->ping.serial == c->pings && !c->answered) {
		c->answered = true;
		netpol_ward_tell(&c->ward, NETPOL_SUP_ANSWERED);
	}
	return true;
}

static void on_chan(struct netpol_watch *w, uint32_t events)
{
	struct netpol_companion *c = NETPOL_OWNER(w, struct netpol_companion, chan);
	union netpol_msg m;
	bool good = true;
	int got = 0;

	(void)events;
	while (good && w->fd >= 0 && (got = netpol_wire_recv_bare(w->fd, &m)) > 0)
		good = take(c, &m);
	if (good && got == 0)
		return;
	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL); /* it ended, or is no program of ours */
	drop_chan(c);
}

static int start(struct netpol_companion *c, struct aqe_err *e)
{
	int pair[2] = { -1, -1 };
	int rc = netpol_wire_pair(pair, e);

	if (rc < 0)
		return rc;
	c->pid = fork();
	if (c->pid == 0)
		become(c, pair[1]);
	(void)close(pair[1]); /* the child's */
	c->chan = (struct netpol_watch){ pair[0], on_chan, 0 };
	if (c->pid < 0) {
		c->pid = 0;
		rc = aqe_err_set(e, AQE_E_SYS, errno, "fork");
	} else if (!netpol_loop_watch(c->o.loop, &c->chan, EPOLLIN)) {
		rc = aqe_err_set(e, AQE_E_SYS, errno, "epoll_ctl");
	}
	if (rc == 0)
		rc = hand_over(c, e);
	return rc;
}

static bool start_again(void *self)
{
	struct netpol_companion *c = self;

	if (start(c, NULL) < 0)
		return false;
	if (c->started)
		tell(c, ROLES[c->o.role].started, true);
	c->started = true;
	return true;
}

static void ping(void *self)
{
	struct netpol_companion *c = self;
	struct netpol_msg_ping m;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_PING;
	m.serial = ++c->pings;
	c->answered = false;
	c->cpu_ns = netpol_ward_cpu_ns(c->pid);
	(void)netpol_wire_send(c->chan.fd, &m, sizeof(m), -1); /* else it does not answer */
}

static bool busy(void *self)
{
	const struct netpol_companion *c = self;

	return netpol_ward_cpu_ns(c->pid) > c->cpu_ns;
}

static void failed(void *self, enum netpol_sup_failure why)
{
	struct netpol_companion *c = self;

	(void)why;
	tell(c, ROLES[c->o.role].ended, false);
}

static bool end(void *self)
{
	struct netpol_companion *c = self;

	drop_chan(c);
	if (c->pid <= 0)
		return true;
	(void)kill(c->pid, SIGKILL);
	return false;
}

static void closed(void *self)
{
	struct netpol_companion *c = self;

	netpol_loop_disarm(c->o.loop, &c->look);
	tell(c, ROLES[c->o.role].closed, false);
}

static const struct netpol_ward_ops COMPANION = { .failed = failed,
						  .kill = end,
						  .start = start_again,
						  .ping = ping,
						  .busy = busy,
						  .close = closed };

/* ---- the keeper's calls ---- */

int netpol_companion_new(const struct netpol_companion_opts *o, struct netpol_companion **ret,
			 struct aqe_err *e)
{
	struct netpol_companion *c = calloc(1, sizeof(*c));

	if (!c)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the companion");
	c->o = *o;
	c->chan.fd = -1;
	c->ward = (struct netpol_ward){
		.loop = o->loop, .port = o->supervise, .ops = &COMPANION, .self = c
	};
	netpol_ward_init(&c->ward);
	c->look.fn = on_look;
	*ret = c;
	return 0;
}

void netpol_companion_free(struct netpol_companion *c)
{
	if (!c)
		return;
	netpol_ward_close(&c->ward);
	netpol_loop_disarm(c->o.loop, &c->look);
	drop_chan(c);
	if (c->pid > 0)
		(void)kill(c->pid, SIGKILL);
	netpol_policy_unref(c->policy);
	free(c);
}

int netpol_companion_policy(struct netpol_companion *c, struct netpol_policy *p, struct aqe_err *e)
{
	bool before = c->wanted;

	netpol_policy_unref(c->policy);
	c->policy = netpol_policy_ref(p);
	c->wanted = before || (ROLES[c->o.role].wanted ? ROLES[c->o.role].wanted(p, c->o.agent_type)
						       : c->o.content != NULL);
	if (!c->wanted || c->ward.closed)
		return 0;
	if (before) /* it runs, or will soon and gets the newest then */
		return c->chan.fd >= 0 ? hand_over(c, e) : 0;
	netpol_loop_arm(c->o.loop, &c->look, netpol_loop_now(c->o.loop) + NETPOL_COMPANION_LOOK_MS);
	if (access(c->o.program, X_OK) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "'%.200s', which serves gateways",
				   c->o.program);
	netpol_ward_tell(&c->ward, NETPOL_SUP_BEGIN);
	return c->ward.closed ? aqe_err_set(e, AQE_E_INTERNAL, 0, "the companion does not start")
			      : 0;
}

void netpol_companion_link(struct netpol_companion *c, int worker_chan)
{
	struct netpol_msg_link m = { NETPOL_MSG_LINK, c ? c->o.role : 0 };
	int pair[2] = { -1, -1 };

	if (!c || !c->ready || worker_chan < 0 || netpol_wire_pair(pair, NULL) < 0)
		return;
	/* One that gets no channel has none: requests are answered 503. */
	if (netpol_wire_send(c->chan.fd, &m, sizeof(m), pair[0]) == NETPOL_WIRE_SENT)
		(void)netpol_wire_send(worker_chan, &m, sizeof(m), pair[1]);
	(void)close(pair[0]); /* theirs now */
	(void)close(pair[1]);
}

bool netpol_companion_reaped(struct netpol_companion *c, pid_t pid)
{
	if (!c || pid != c->pid || pid <= 0)
		return false;
	c->pid = 0;
	drop_chan(c);
	netpol_ward_gone(&c->ward);
	return true;
}

bool netpol_companion_serves(const struct netpol_companion *c)
{
	return !c || !c->wanted || c->ready;
}

/* ---- all of them ---- */

int netpol_companions_make(struct netpol_companions *s, const struct netpol_companion_opts *common,
			   const struct netpol_companion_each *each, struct aqe_err *e)
{
	struct netpol_companion_opts o = *common;
	int rc = 0;

	for (size_t i = 0; rc == 0 && o.program && i < NETPOL_COMPANION_COUNT; i++) {
		o.role = (enum netpol_companion_role)i;
		o.id = each[i].id;
		o.listen_fd = each[i].listen_fd;
		o.supervise = each[i].supervise;
		o.content = each[i].content;
		o.content_self = each[i].content_self;
		rc = netpol_companion_new(&o, &s->one[i], e);
	}
	return rc;
}

int netpol_companions_policy(struct netpol_companions *s, struct netpol_policy *p,
			     struct aqe_err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < NETPOL_COMPANION_COUNT; i++) {
		if (s->one[i])
			rc = netpol_companion_policy(s->one[i], p, e);
	}
	return rc;
}

void netpol_companions_link(struct netpol_companions *s, int worker_chan)
{
	for (size_t i = 0; i < NETPOL_COMPANION_COUNT; i++)
		netpol_companion_link(s->one[i], worker_chan);
}

void netpol_companions_reaped(struct netpol_companions *s, pid_t pid)
{
	for (size_t i = 0; i < NETPOL_COMPANION_COUNT; i++)
		(void)netpol_companion_reaped(s->one[i], pid);
}

bool netpol_companions_serve(const struct netpol_companions *s)
{
	for (size_t i = 0; i < NETPOL_COMPANION_COUNT; i++) {
		if (!netpol_companion_serves(s->one[i]))
			return false;
	}
	return true;
}

void netpol_companions_free(struct netpol_companions *s)
{
	for (size_t i = 0; i < NETPOL_COMPANION_COUNT; i++) {
		netpol_companion_free(s->one[i]);
		s->one[i] = NULL;
	}
}
