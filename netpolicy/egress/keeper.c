/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netpolicy/egress/companion.h"
#include "netpolicy/egress/confine.h"
#include "netpolicy/egress/dialer.h"
#include "netpolicy/egress/handoff.h"
#include "netpolicy/egress/loop.h"
#include "netpolicy/egress/state.h"
#include "netpolicy/egress/store.h"
#include "netpolicy/egress/via.h"
#include "netpolicy/egress/ward.h"
#include "netpolicy/egress/wire.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define BATCH 64 /* records of one store */
/* Nothing waits for the record of an end: it is stored with the next decision, so that an agent
 * that asks one thing after the other costs one flush of the disk a request, or after this time. */
#define LATE_MS       100
#define SAVE_EVERY_MS 10000
#define STOP_MS       700 /* from STOP to SIGKILL: the whole end takes less than a second */
#define CONTROL_MAX   4096
#define CONTROL_US    200000
#define WORKER_FILES  1024
#define DIALER_FILES  1024

enum phase { RUNNING, WAITING, STOPPING, OVER };

struct keeper {
	const struct netpol_keeper_opts *o;
	struct netpol_loop *loop;
	struct netpol_watch signals, container, control, worker, dialer;
	struct netpol_ward ward; /* the pair; closed from the beginning of the end on */
	struct netpol_timer save, stop;
	uint64_t pings;                        /* sent: number of the last one */
	bool worker_answered, dialer_answered; /* that one */
	int64_t worker_cpu_ns, dialer_cpu_ns;  /* used when it was sent */
	uint32_t starts;
	struct netpol_store_keep *store; /* of the shared limiter */
	struct netpol_shared *shared;
	const struct netpol_shared_place *saved; /* what the file holds already */
	struct netpol_when when;
	pid_t worker_pid, dialer_pid; /* 0: none */
	enum phase phase;
	enum netpol_keeper_end end;
	int ready_fd;
	bool worker_ready;
	struct netpol_companions companions;
	sigset_t before;
	struct netpol_record batch[BATCH];
	size_t n_batch;
	bool batch_urgent; /* somebody waits for one of them */
	struct netpol_timer late;
	uint64_t batch_serial;
	uint64_t last_id;
};

static void say(struct keeper *k, const char *line)
{
	if (k->o->say)
		k->o->say(k->o->say_self, line);
}

/* ---- records of our own ---- */

static void tell_event(struct keeper *k, const char *reason, bool good)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct netpol_record r;

	netpol_record_init(&r);
	r.phase = NETPOL_PHASE_EVENT;
	r.action = good ? NETPOL_ALLOWED : NETPOL_BLOCKED;
	r.at_ns = netpol_wall_ns();
	netpol_record_text(r.listener, sizeof(r.listener), "keeper", 6);
	netpol_record_text(r.reason, sizeof(r.reason), reason, strlen(reason));
	netpol_record_text(r.policy, sizeof(r.policy), k->o->live->now->digest,
			   strlen(k->o->live->now->digest));
	say(k, reason);
	if (k->o->audit.ops->store(k->o->audit.self, &r, 1, &e) < 0)
		say(k, e.text); /* the event happened; nothing can be refused for it */
}

/* ---- the limiter's state ---- */

static void save_state(struct keeper *k)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (netpol_state_save(k->o->state_dir, k->o->state_name, k->shared, &k->saved, &e) < 0)
		say(k, e.text);
}

static void on_save(struct netpol_timer *t)
{
	struct keeper *k = NETPOL_OWNER(t, struct keeper, save);

	save_state(k);
	netpol_loop_arm(k->loop, &k->save, netpol_loop_now(k->loop) + SAVE_EVERY_MS);
}

/* ---- children ---- */

static void close_watch(struct keeper *k, struct netpol_watch *w)
{
	if (w->fd < 0)
		return;
	netpol_loop_unwatch(k->loop, w);
	(void)close(w->fd);
	w->fd = -1;
}

/* Children die without a word when they cannot be confined: whatever happened is on stderr. */
__attribute__((noreturn)) static void die(const struct aqe_err *e)
{
	char line[AQE_ERR_TEXT_MAX + 32];
	int n = snprintf(line, sizeof(line), "aqe egress: %s\n", e->text);

	if (n > 0)
		(void)!write(STDERR_FILENO, line, (size_t)n);
	_exit(1);
}

/* What every child does first. The name (15 bytes at most) is for people who look with ps. */
static void be_named(const struct keeper *k, const char *name)
{
	(void)prctl(PR_SET_NAME, name, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &k->before, NULL);
}

__attribute__((noreturn)) static void be_worker(struct keeper *k, int keeper, int dialer)
{
	struct netpol_worker_opts o = { .keeper = keeper,
					.dialer = dialer,
					.policy = k->o->live->now,
					.agent_type = k->o->agent_type,
					.shared = k->shared,
					.when = k->when,
					.first_id = k->last_id,
					.restarts = k->starts };
	struct netpol_confine c = { .role = NETPOL_ROLE_WORKER,
				    .id = k->o->worker_id,
				    .nofile = WORKER_FILES };
	int keep[NETPOL_LISTEN_MAX + 2] = { keeper, dialer };
	struct aqe_err e = AQE_ERR_INIT;

	c.fds = keep;
	c.n_fds = 2;
	for (size_t i = 0; i < k->o->n_listen; i++) {
		o.listen[o.n_listen++] = k->o->listen[i];
		keep[c.n_fds++] = k->o->listen[i].fd;
	}
	be_named(k, "egress-worker");
	if (netpol_confine(&c, &e) < 0 || netpol_worker_run(&o, &e) < 0)
		die(&e);
	_exit(0);
}

__attribute__((noreturn)) static void be_dialer(struct keeper *k, int keeper, int worker)
{
	char auth[NETPOL_VIA_VALUE] = "";
	struct netpol_dialer_opts o = { worker, keeper, k->o->live->now, k->o->agent_type, auth };
	const char *file = o.policy->proxy_credential;
	int keep[] = { keeper, worker };
	struct netpol_confine c = { .role = NETPOL_ROLE_DIALER,
				    .id = k->o->dialer_id,
				    .fds = keep,
				    .n_fds = AQE_COUNT(keep),
				    .nofile = DIALER_FILES };
	struct aqe_err e = AQE_ERR_INIT;

	be_named(k, "egress-dialer");
	/* Here, where no other process inherits it. */
	if ((file && netpol_via_auth(file, auth, &e) < 0) || netpol_confine(&c, &e) < 0 ||
	    netpol_dialer_run(&o, &e) < 0)
		die(&e);
	_exit(0);
}

static void on_worker(struct netpol_watch *w, uint32_t events);
static void on_dialer(struct netpol_watch *w, uint32_t events);

static int watch_child(struct keeper *k, struct netpol_watch *w, int fd,
		       void (*fn)(struct netpol_watch *, uint32_t), struct aqe_err *e)
{
	*w = (struct netpol_watch){ fd, fn, 0 };
	return netpol_loop_watch(k->loop, w, EPOLLIN)
		       ? 0
		       : aqe_err_set(e, AQE_E_SYS, errno, "epoll_ctl");
}

/* Three channels: to the worker, to the dialer, and between them. The ends that are not ours are
 * closed here; a pair of which one half is missing ends by itself, and both are started anew. */
static int start_pair(struct keeper *k, struct aqe_err *e)
{
	int w[2] = { -1, -1 }, d[2] = { -1, -1 }, wd[2] = { -1, -1 };
	int rc = netpol_wire_pair(w, e);

	if (rc == 0)
		rc = netpol_wire_pair(d, e);
	if (rc == 0)
		rc = netpol_wire_pair(wd, e);
	if (rc == 0) {
		k->dialer_pid = fork();
		if (k->dialer_pid == 0)
			be_dialer(k, d[1], wd[1]);
		k->worker_pid = k->dialer_pid > 0 ? fork() : -1;
		if (k->worker_pid == 0)
			be_worker(k, w[1], wd[0]);
		if (k->worker_pid < 0 || k->dialer_pid < 0)
			rc = aqe_err_set(e, AQE_E_SYS, errno, "fork");
	}
	if (w[1] >= 0)
		(void)close(w[1]); /* the children's ends */
	if (d[1] >= 0)
		(void)close(d[1]);
	if (wd[0] >= 0)
		(void)close(wd[0]);
	if (wd[1] >= 0)
		(void)close(wd[1]);
	k->worker.fd = w[0];
	k->dialer.fd = d[0];
	if (rc == 0)
		rc = watch_child(k, &k->worker, w[0], on_worker, e);
	if (rc == 0)
		rc = watch_child(k, &k->dialer, d[0], on_dialer, e);
	k->phase = RUNNING;
	netpol_companions_link(&k->companions, k->worker.fd);
	return rc;
}

static void kill_pair(struct keeper *k)
{
	if (k->worker_pid > 0)
		(void)kill(k->worker_pid, SIGKILL);
	if (k->dialer_pid > 0)
		(void)kill(k->dialer_pid, SIGKILL);
}

static void finish(struct keeper *k)
{
	k->phase = OVER;
	netpol_loop_stop(k->loop);
}

/* ---- supervision ---- */

static bool start_again(void *self)
{
	struct keeper *k = self;
	struct aqe_err e = AQE_ERR_INIT;

	if (start_pair(k, &e) < 0) {
		say(k, e.text);
		return false;
	}
	netpol_store_keep_link(k->store, k->o->live->now, k->worker.fd, true);
	if (k->starts++ > 0)
		tell_event(k, "worker_restarted", true);
	return true;
}

static bool all_gone(const struct keeper *k)
{
	return k->worker_pid <= 0 && k->dialer_pid <= 0;
}

/* A full channel is as good as no answer. */
static void ping(void *self)
{
	struct keeper *k = self;
	struct netpol_msg_ping m;

	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_PING;
	m.serial = ++k->pings;
	k->worker_answered = k->dialer_answered = false;
	k->worker_cpu_ns = netpol_ward_cpu_ns(k->worker_pid);
	k->dialer_cpu_ns = netpol_ward_cpu_ns(k->dialer_pid);
	(void)netpol_wire_send(k->worker.fd, &m, sizeof(m), -1);
	(void)netpol_wire_send(k->dialer.fd, &m, sizeof(m), -1);
	netpol_store_keep_ping(k->store);
}

static bool busy(void *self)
{
	const struct keeper *k = self;

	return (k->worker_answered || netpol_ward_cpu_ns(k->worker_pid) > k->worker_cpu_ns) &&
	       (k->dialer_answered || netpol_ward_cpu_ns(k->dialer_pid) > k->dialer_cpu_ns);
}

/* False: that was no answer to anything we asked. */
static bool take_pong(struct keeper *k, const struct netpol_msg_ping *m, bool *io_answered)
{
	if (m->serial > k->pings)
		return false;
	if (m->serial < k->pings || *io_answered)
		return true; /* a late one */
	*io_answered = true;
	if (k->worker_answered && k->dialer_answered && k->phase == RUNNING)
		netpol_ward_tell(&k->ward, NETPOL_SUP_ANSWERED);
	return true;
}

static void closed(void *self)
{
	struct keeper *k = self;

	tell_event(k, "closed_after_crashes", false);
	k->end = NETPOL_ENDED_CRASHED;
	finish(k);
}

/* Channels whose other ends are gone, or never were. */
static void close_both(struct keeper *k)
{
	netpol_store_keep_unlink(k->store);
	close_watch(k, &k->worker);
	close_watch(k, &k->dialer);
}

static void failed(void *self, enum netpol_sup_failure why)
{
	tell_event(self, why == NETPOL_SUP_HUNG ? "worker_hung" : "worker_ended", false);
}

static bool end_pair(void *self)
{
	struct keeper *k = self;

	kill_pair(k);
	if (!all_gone(k))
		return false;
	close_both(k);
	return true;
}

static const struct netpol_ward_ops PAIR = { .failed = failed,
					     .kill = end_pair,
					     .start = start_again,
					     .ping = ping,
					     .busy = busy,
					     .close = closed };

/* Both are gone. */
static void pair_ended(struct keeper *k)
{
	if (k->phase == STOPPING) {
		finish(k);
		return;
	}
	k->phase = WAITING;
	close_both(k);
	netpol_ward_gone(&k->ward);
}

/* ---- what the worker says ---- */

static bool store_batch(struct keeper *k)
{
	struct netpol_msg_stored m;
	struct aqe_err e = AQE_ERR_INIT;

	if (k->n_batch == 0)
		return true;
	memset(&m, 0, sizeof(m));
	m.type = NETPOL_MSG_STORED;
	m.serial = k->batch_serial;
	m.ok = k->o->audit.ops->store(k->o->audit.self, k->batch, k->n_batch, &e) == 0;
	if (!m.ok)
		say(k, e.text);
	k->n_batch = 0;
	k->batch_urgent = false;
	netpol_loop_disarm(k->loop, &k->late);
	/* A worker that does not read its answers has no right to go on. */
	return netpol_wire_send(k->worker.fd, &m, sizeof(m), -1) == NETPOL_WIRE_SENT;
}

static bool take_record(struct keeper *k, uint64_t serial, const struct netpol_record *r)
{
	if (!netpol_record_ok(r) || r->phase == NETPOL_PHASE_EVENT)
		return false;
	if (r->id > k->last_id)
		k->last_id = r->id;
	if (r->phase == NETPOL_PHASE_DECISION)
		k->batch_urgent = true;
	k->n_batch++;
	k->batch_serial = serial;
	return k->n_batch < BATCH || store_batch(k);
}

static bool take_records(struct keeper *k, const struct netpol_msg_records *m)
{
	size_t at = 0;

	if (m->serial < m->n)
		return false;
	for (unsigned i = 0; i < m->n; i++) {
		struct netpol_record *r = &k->batch[k->n_batch];
		size_t n = netpol_record_unpack(m->packed + at, m->len - at, r);

		if (n == 0 || !take_record(k, m->serial - m->n + i + 1, r))
			return false;
		at += n;
	}
	return m->n > 0 && at == m->len;
}

/* What nobody waits for waits for company. */
static bool store_urgent(struct keeper *k)
{
	if (k->batch_urgent)
		return store_batch(k);
	if (k->n_batch > 0 && !k->late.next)
		netpol_loop_arm(k->loop, &k->late, netpol_loop_now(k->loop) + LATE_MS);
	return true;
}

static void on_late(struct netpol_timer *t)
{
	struct keeper *k = NETPOL_OWNER(t, struct keeper, late);

	if (!store_batch(k))
		kill_pair(k);
}

static void tell_ready(struct keeper *k)
{
	if (k->ready_fd < 0 || !k->worker_ready || !netpol_companions_serve(&k->companions))
		return;
	if (write(k->ready_fd, "1", 1) != 1)
		say(k, "nobody waits for the service");
	(void)close(k->ready_fd); /* said */
	k->ready_fd = -1;
}

static bool take_message(struct keeper *k, const union netpol_msg *m)
{
	if (m->head.type == NETPOL_MSG_RECORDS)
		return take_records(k, &m->records);
	if (m->head.type == NETPOL_MSG_PONG)
		return take_pong(k, &m->ping, &k->worker_answered);
	if (m->head.type == NETPOL_MSG_READY) {
		k->worker_ready = true;
		tell_ready(k);
	}
	return m->head.type == NETPOL_MSG_READY;
}

static void on_worker(struct netpol_watch *w, uint32_t events)
{
	struct keeper *k = NETPOL_OWNER(w, struct keeper, worker);
	union netpol_msg m;
	bool good = true;
	int got = 0;

	(void)events;
	while (good && (got = netpol_wire_recv_bare(w->fd, &m)) > 0)
		good = take_message(k, &m);
	if (!store_urgent(k) || !good || got < 0)
		kill_pair(k); /* ended, or speaks what no worker of ours would */
}

static void on_dialer(struct netpol_watch *w, uint32_t events)
{
	struct keeper *k = NETPOL_OWNER(w, struct keeper, dialer);
	union netpol_msg m;
	bool good = true;
	int got = 0;

	(void)events;
	/* it has nothing to say but that it lives, and its end */
	while (good && (got = netpol_wire_recv_bare(w->fd, &m)) > 0)
		good = m.head.type == NETPOL_MSG_PONG && take_pong(k, &m.ping, &k->dialer_answered);
	if (!good || got < 0)
		kill_pair(k);
}

/* ---- signals and the container ---- */

static void begin_stop(struct keeper *k, enum netpol_keeper_end end)
{
	struct netpol_msg_head m = { NETPOL_MSG_STOP };

	if (k->phase == STOPPING || k->phase == OVER)
		return;
	k->end = end;
	netpol_ward_close(&k->ward);
	if (k->phase == WAITING) {
		finish(k);
		return;
	}
	k->phase = STOPPING;
	/* The dialer follows the worker. */
	if (netpol_wire_send(k->worker.fd, &m, sizeof(m), -1) != NETPOL_WIRE_SENT)
		kill_pair(k);
	netpol_loop_arm(k->loop, &k->stop, netpol_loop_now(k->loop) + STOP_MS);
}

static void on_stop(struct netpol_timer *t)
{
	kill_pair(NETPOL_OWNER(t, struct keeper, stop));
}

static void on_container(struct netpol_watch *w, uint32_t events)
{
	(void)events;
	begin_stop(NETPOL_OWNER(w, struct keeper, container), NETPOL_ENDED_CONTAINER);
}

static void hand_over(struct keeper *k)
{
	struct netpol_msg_policy m;
	struct aqe_err e = AQE_ERR_INIT;
	int fd = -1;

	if (netpol_companions_policy(&k->companions, k->o->live->now, &e) < 0)
		say(k, e.text);  /* it is started anew, with the new policy */
	if (k->phase != RUNNING) /* the next pair starts with it */
		return;
	if (netpol_handoff_write(k->o->live->now, k->o->agent_type, &m, &fd, &e) < 0 ||
	    netpol_wire_send(k->dialer.fd, &m, sizeof(m), fd) != NETPOL_WIRE_SENT ||
	    netpol_wire_send(k->worker.fd, &m, sizeof(m), fd) != NETPOL_WIRE_SENT)
		kill_pair(k); /* better anew than by the old policy */
	else
		netpol_store_keep_link(k->store, k->o->live->now, k->worker.fd, false);
	if (fd >= 0)
		(void)close(fd); /* sent */
}

static int reload(struct keeper *k, bool *ret_changed, struct aqe_err *e)
{
	*ret_changed = false;
	if (netpol_live_reload(k->o->live, ret_changed, e) < 0) {
		say(k, e->text);
		tell_event(k, "policy_rejected", false);
		return (int)e->code;
	}
	if (*ret_changed) {
		tell_event(k, "policy_changed", true);
		hand_over(k);
		return 0;
	}
	/* what companions are given may have changed all the same */
	return netpol_companions_policy(&k->companions, k->o->live->now, e);
}

static void reload_by_signal(struct keeper *k)
{
	struct aqe_err e = AQE_ERR_INIT;
	bool changed;

	(void)!reload(k, &changed, &e); /* a failure was said */
}

/* The peer is root or ourselves; it still gets only a moment. */
static void serve_control(struct keeper *k, int fd)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CONTROL_MAX);
	struct timeval moment = { 0, CONTROL_US };
	struct aqe_err e = AQE_ERR_INIT;
	char line[CONTROL_MAX];
	bool changed = false;
	ssize_t n;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof(moment));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &moment, sizeof(moment));
	n = recv(fd, line, sizeof(line), 0);
	if (n <= 0 || line[n - 1] != '\n' ||
	    k->o->control->read(line, (size_t)n) != NETPOL_CONTROL_RELOAD)
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "no such operation");
	else
		(void)!reload(k, &changed, &e); /* `e` says it */
	k->o->control->answer(&b, k->o->live->now->digest, changed, e.code == AQE_OK ? NULL : &e);
	(void)send(fd, aqe_buf_str(&b), b.len, MSG_NOSIGNAL);
}

static void on_control(struct netpol_watch *w, uint32_t events)
{
	struct keeper *k = NETPOL_OWNER(w, struct keeper, control);
	int fd;

	(void)events;
	while ((fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		if (k->o->control->peer_ok(fd))
			serve_control(k, fd);
		(void)close(fd); /* answered, or not to be */
	}
}

static void reap(struct keeper *k)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		if (pid == k->worker_pid) {
			k->worker_pid = 0; /* the number is free from here on: never signalled */
			on_worker(&k->worker, 0); /* its last records */
			(void)store_batch(k);     /* nobody is there to be told */
			netpol_store_keep_unlink(k->store);
			close_watch(k, &k->worker);
		} else if (pid == k->dialer_pid) {
			close_watch(k, &k->dialer);
			k->dialer_pid = 0;
		} else {
			netpol_companions_reaped(&k->companions, pid);
			(void)netpol_store_keep_reaped(k->store, pid);
			continue;
		}
		if (k->worker_pid > 0 || k->dialer_pid > 0)
			kill_pair(k); /* one without the other is of no use */
		else
			pair_ended(k);
	}
}

static void on_signals(struct netpol_watch *w, uint32_t events)
{
	struct keeper *k = NETPOL_OWNER(w, struct keeper, signals);
	struct signalfd_siginfo info;

	(void)events;
	while (read(w->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(k);
		else if (info.ssi_signo == SIGHUP)
			reload_by_signal(k);
		else
			begin_stop(k, NETPOL_ENDED_ASKED);
	}
}

/* ---- start ---- */

static int take_signals(struct keeper *k, struct aqe_err *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGCHLD);
	(void)signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, &k->before) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "sigprocmask");
	k->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	k->signals.fn = on_signals;
	if (k->signals.fd < 0 || !netpol_loop_watch(k->loop, &k->signals, EPOLLIN))
		return aqe_err_set(e, AQE_E_SYS, errno, "signalfd");
	return 0;
}

static int watch_container(struct keeper *k, struct aqe_err *e)
{
	k->container = (struct netpol_watch){ k->o->pidfd, on_container, 0 };
	if (k->o->pidfd < 0 || netpol_loop_watch(k->loop, &k->container, EPOLLIN))
		return 0;
	return aqe_err_set(e, AQE_E_SYS, errno, "watching the container");
}

static int watch_control(struct keeper *k, struct aqe_err *e)
{
	k->control = (struct netpol_watch){ k->o->control_fd, on_control, 0 };
	if (k->o->control_fd < 0 || netpol_loop_watch(k->loop, &k->control, EPOLLIN))
		return 0;
	return aqe_err_set(e, AQE_E_SYS, errno, "watching the control socket");
}

static void companion_event(void *self, const char *reason, bool good)
{
	tell_event(self, reason, good);
}

static void companion_ready(void *self)
{
	struct keeper *k = self;

	if (k->phase == RUNNING)
		netpol_companions_link(&k->companions, k->worker.fd);
	tell_ready(k);
}

/* They start first: loading their libraries takes longest. */
static int make_companions(struct keeper *k, struct aqe_err *e)
{
	const struct netpol_companion_opts common = { .program = k->o->program,
						      .agent_type = k->o->agent_type,
						      .loop = k->loop,
						      .event = companion_event,
						      .ready = companion_ready,
						      .self = k };
	int rc = netpol_companions_make(&k->companions, &common, k->o->companions, e);

	return rc == 0 ? netpol_companions_policy(&k->companions, k->o->live->now, e) : rc;
}

static int make_store(struct keeper *k, struct aqe_err *e)
{
	const struct netpol_store_keep_opts o = {
		.loop = k->loop,
		.agent_type = k->o->agent_type,
		.agent_id = k->o->agent_id,
		.id = k->o->dialer_id,
		.signals = &k->before,
		.say = k->o->say,
		.say_self = k->o->say_self,
	};

	return netpol_store_keep_new(&o, &k->store, e);
}

static int prepare(struct keeper *k, struct aqe_err *e)
{
	int rc = netpol_loop_new(&k->loop, e);

	if (rc == 0)
		rc = netpol_when_now(&k->when, e);
	if (rc == 0)
		rc = netpol_state_map(k->o->state_dir, k->o->state_name, &k->shared, e);
	if (rc == 0)
		rc = take_signals(k, e);
	if (rc == 0)
		rc = watch_container(k, e);
	if (rc == 0)
		rc = watch_control(k, e);
	if (rc == 0)
		rc = make_companions(k, e);
	if (rc == 0)
		rc = make_store(k, e);
	if (rc < 0)
		return rc;
	k->ward = (struct netpol_ward){
		.loop = k->loop, .port = k->o->supervise, .ops = &PAIR, .self = k
	};
	netpol_ward_init(&k->ward);
	netpol_ward_tell(&k->ward, NETPOL_SUP_BEGIN);
	return 0;
}

int netpol_keeper_run(const struct netpol_keeper_opts *o, enum netpol_keeper_end *ret,
		      struct aqe_err *e)
{
	struct keeper *k = calloc(1, sizeof(*k));
	int rc;

	if (!k)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the keeper");
	k->o = o;
	k->ready_fd = o->ready_fd;
	k->signals.fd = k->container.fd = k->control.fd = k->worker.fd = k->dialer.fd = -1;
	k->save.fn = on_save;
	k->stop.fn = on_stop;
	k->late.fn = on_late;
	/* Request ids of different runs do not meet. */
	k->last_id = (uint64_t)netpol_wall_ns() / 1000;
	rc = prepare(k, e);
	if (rc == 0) {
		tell_event(k, "started", true);
		netpol_loop_arm(k->loop, &k->save, netpol_loop_now(k->loop) + SAVE_EVERY_MS);
		rc = netpol_loop_run(k->loop, e);
		save_state(k);
		tell_event(k, "stopped", true);
	}
	kill_pair(k);
	netpol_companions_free(&k->companions);
	netpol_store_keep_free(k->store);
	for (size_t i = 0; i < o->n_listen; i++)
		(void)close(o->listen[i].fd); /* nobody answers there any more */
	netpol_loop_free(k->loop);
	*ret = k->end;
	free(k);
	return rc;
}
