/* SPDX-License-Identifier: MIT */
#include "shim/aqe/gateway_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/egress/companion.h"
#include "netpolicy/egress/confine.h"
#include "netpolicy/egress/handoff.h"
#include "shim/aqe/cache_serve.h"
#include "shim/aqe/http.h"
#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"
#include "shim/core/tls.h"
#include "shim/egress_cache.h"

#define FILES     1024
#define THREADS   8
#define ARENA_MAX ((size_t)32 << 20)
#define FIRST_MS  10000 /* for the configuration to come */
/* Requests at work, beside what the cache itself may hold. */
#define WORK_BYTES ((rlim_t)2 << 30)

struct companion {
	int keeper, listener;
	struct aqe_arena *arena;
	struct shim_egress_cache_given given;
	bool has; /* given */
	uint8_t digest[32];
	pthread_mutex_t lock;
	int worker; /* under the lock; -1: not yet, or lost */
	struct shim_cache_service *service;
	pthread_t thread;
	bool serving, stop;
	struct aqe_err ended; /* why the service did */
};

/* ---- the way out ---- */

/* One end becomes a client of the worker, which is an HTTP proxy; called by the service's threads.
 * The number is in the range that the seccomp filter knows. */
static int open_proxy(void *self)
{
	struct netpol_msg_head m = { NETPOL_MSG_CLIENT };
	struct companion *c = self;
	int pair[2], ours = -1;
	bool sent;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	pthread_mutex_lock(&c->lock);
	sent = c->worker >= 0 &&
	       netpol_wire_send(c->worker, &m, sizeof(m), pair[1]) == NETPOL_WIRE_SENT;
	pthread_mutex_unlock(&c->lock);
	if (sent)
		ours = fcntl(pair[0], F_DUPFD_CLOEXEC, NETPOL_CONNECTED_FROM);
	(void)close(pair[0]); /* `ours` is the one in use */
	(void)close(pair[1]); /* the worker's now */
	return ours;
}

static void take_worker(struct companion *c, int fd)
{
	pthread_mutex_lock(&c->lock);
	if (c->worker >= 0)
		(void)close(c->worker); /* the one before is gone */
	c->worker = fd;
	pthread_mutex_unlock(&c->lock);
}

/* ---- the keeper ---- */

/* The first is taken; another one is for the process that the keeper starts when this one ends. */
static int take_given(struct companion *c, size_t size, int fd, struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf b = AQE_BUF_INIT(SHIM_EGRESS_CACHE_MAX);
	uint8_t digest[32];
	int rc = netpol_memfd_read(fd, size, &b, e);

	if (rc == 0) {
		aqe_sha256(aqe_buf_str(&b), b.len, digest);
		if (c->has)
			c->stop = memcmp(digest, c->digest, sizeof(digest)) != 0;
		else
			rc = shim_egress_cache_take(c->arena, &b, &c->given, e);
		memcpy(c->digest, digest, sizeof(digest));
		c->has = rc == 0;
	}
	return rc;
}

static int on_keeper(struct companion *c, struct aqe_err *e)
{
	union netpol_msg m;
	int fd, got = 0, rc = 0;

	while (rc == 0 && (got = netpol_wire_recv(c->keeper, &m, &fd)) > 0) {
		if (m.head.type == NETPOL_MSG_LINK && fd >= 0) {
			take_worker(c, fd);
			continue;
		}
		if (m.head.type == NETPOL_MSG_PING)
			netpol_wire_pong(c->keeper, &m.ping);
		else if (m.head.type == NETPOL_MSG_SECRETS && fd >= 0)
			rc = take_given(c, m.secrets.size, fd, e);
		if (fd >= 0)
			(void)close(fd); /* read, or of no message for us */
	}
	c->stop = c->stop || got < 0;
	return rc;
}

static int wait_keeper(const struct companion *c, int timeout_ms, struct aqe_err *e)
{
	struct pollfd p = { .fd = c->keeper, .events = POLLIN };
	int n = poll(&p, 1, timeout_ms);

	if (n < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "poll");
	return n == 0 && timeout_ms >= 0 ? aqe_err_set(e, AQE_E_TIMEOUT, 0, "no configuration came")
					 : 0;
}

/* ---- serving ---- */

static void *serve(void *self)
{
	struct companion *c = self;

	(void)!shim_cache_service_run(c->service, &c->ended); /* told when the channel ends */
	/* the keeper sees the end of the process, and starts another one */
	(void)shutdown(c->keeper, SHUT_RDWR);
	return NULL;
}

/* A store that cannot be opened is no reason for an agent to stop: memory stands in. */
static int open_service(struct companion *c, struct aqe_err *e)
{
	const struct shim_cache_way way = { open_proxy, c };
	struct cache_config *cfg = &c->given.cfg;
	struct aqe_err why = AQE_ERR_INIT;
	int fd = fcntl(c->listener, F_DUPFD_CLOEXEC, 0);
	int rc = fd < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "the listening socket") : 0;

	if (rc == 0)
		rc = shim_cache_service_through(cfg, fd, THREADS, &way, &c->service, &why);
	if (rc == 0 || fd < 0)
		return rc;
	if (cfg->backend == CACHE_MEMORY)
		return aqe_err_set(e, why.code, why.sys, "%s", why.text);
	(void)fprintf(stderr, "aqe gateway: cache: %s; memory stands in\n", why.text);
	cfg->backend = CACHE_MEMORY;
	cfg->two_level = false;
	fd = fcntl(c->listener, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "the listening socket");
	return shim_cache_service_through(cfg, fd, THREADS, &way, &c->service, e);
}

static int start(struct companion *c, struct aqe_err *e)
{
	const struct netpol_msg_head ready = { NETPOL_MSG_READY };
	int rc = open_service(c, e);

	if (rc)
		return rc;
	rc = pthread_create(&c->thread, NULL, serve, c);
	if (rc)
		return aqe_err_set(e, AQE_E_SYS, rc, "a thread");
	c->serving = true;
	if (netpol_wire_send(c->keeper, &ready, sizeof(ready), -1) != NETPOL_WIRE_SENT)
		return aqe_err_set(e, AQE_E_SYS, EPIPE, "the keeper is gone");
	return 0;
}

/* Whatever agents make it do, it takes no more than this of the host's memory. */
static void limit_memory(const struct companion *c)
{
#ifndef __SANITIZE_ADDRESS__
	const struct cache_config *cfg = &c->given.cfg;
	const uint64_t held = cfg->backend == CACHE_MEMORY ? cfg->max_bytes
			      : cfg->two_level             ? cfg->front_bytes
							   : 0;
	const uint64_t spare = cfg->fallback && cfg->backend == CACHE_REDIS ? cfg->max_bytes : 0;
	const struct rlimit l = { WORK_BYTES + held + spare, WORK_BYTES + held + spare };

	(void)setrlimit(RLIMIT_AS, &l); /* lower than allowed already: as good */
#else
	(void)c;
#endif
}

static int confine(const struct companion *c, uint64_t id, struct aqe_err *e)
{
	static const int keep[] = { NETPOL_COMPANION_FD, NETPOL_COMPANION_LISTEN };
	const bool redis = c->given.cfg.backend == CACHE_REDIS;
	struct netpol_confine conf = { .role = redis ? NETPOL_ROLE_CACHE_REDIS : NETPOL_ROLE_CACHE,
				       .id = (uid_t)id,
				       .fds = keep,
				       .n_fds = AQE_COUNT(keep),
				       .nofile = FILES };

	if (!redis)
		(void)unshare(CLONE_NEWNET); /* socket(2) is forbidden all the same */
	limit_memory(c);
	return netpol_confine(&conf, e);
}

int shim_gateway_cache(uint64_t id, struct aqe_err *e)
{
	struct companion c = { .keeper = NETPOL_COMPANION_FD,
			       .listener = NETPOL_COMPANION_LISTEN,
			       .arena = aqe_arena_new(ARENA_MAX),
			       .worker = -1 };
	int rc = c.arena ? shim_http_load(e) : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	if (rc == 0) /* for a Redis server; the library that libcurl brought along */
		rc = aqe_tls_load(e);
	pthread_mutex_init(&c.lock, NULL);
	while (rc == 0 && !c.has && !c.stop) {
		rc = wait_keeper(&c, FIRST_MS, e);
		if (rc == 0)
			rc = on_keeper(&c, e);
	}
	if (rc == 0 && !c.stop)
		rc = confine(&c, id, e);
	if (rc == 0 && !c.stop)
		rc = start(&c, e);
	while (rc == 0 && !c.stop) {
		rc = wait_keeper(&c, -1, e);
		if (rc == 0)
			rc = on_keeper(&c, e);
	}
	if (c.service)
		shim_cache_service_stop(c.service);
	if (c.serving)
		(void)pthread_join(c.thread, NULL);
	if (rc == 0 && c.ended.code)
		rc = aqe_err_set(e, c.ended.code, c.ended.sys, "%s", c.ended.text);
	shim_cache_service_free(c.service);
	aqe_arena_free(c.arena);
	pthread_mutex_destroy(&c.lock);
	return rc;
}
