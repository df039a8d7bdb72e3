/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/resolve.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "netpolicy/egress/loop.h"

#define STACK_BYTES ((size_t)256 * 1024)

/* One question, from ask to next. */
struct job {
	struct job *next;
	char name[NETPOL_HOST_MAX + 1];
	struct netpol_resolved result;
};
struct queue {
	struct job *first, **last;
};
struct memory {
	char name[NETPOL_HOST_MAX + 1]; /* "": free */
	int64_t until_ms;
	size_t n;
	struct netpol_addr addrs[NETPOL_RESOLVE_ADDRS];
};

struct netpol_resolver {
	int event;
	pthread_mutex_t lock; /* guards what follows, up to the cache */
	pthread_cond_t wanted;
	struct queue waiting, finished;
	unsigned threads, idle, queued;
	bool closed;
	unsigned jobs; /* of the owner's thread only, like the cache */
	struct memory *cache;
};

static void push(struct queue *q, struct job *j)
{
	j->next = NULL;
	*q->last = j;
	q->last = &j->next;
}

static struct job *pop(struct queue *q)
{
	struct job *j = q->first;

	if (!j)
		return NULL;
	q->first = j->next;
	if (!q->first)
		q->last = &q->first;
	return j;
}

int netpol_resolver_new(struct netpol_resolver **ret, struct aqe_err *e)
{
	struct netpol_resolver *r = calloc(1, sizeof(*r));

	if (!r)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the resolver");
	r->cache = calloc(NETPOL_RESOLVE_CACHE, sizeof(*r->cache));
	r->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (!r->cache || r->event < 0) {
		int sys = errno;

		if (r->event >= 0)
			(void)close(r->event);
		free(r->cache);
		free(r);
		return aqe_err_set(e, AQE_E_SYS, sys, "eventfd");
	}
	(void)pthread_mutex_init(&r->lock, NULL); /* cannot fail with default attributes */
	(void)pthread_cond_init(&r->wanted, NULL);
	r->waiting.last = &r->waiting.first;
	r->finished.last = &r->finished.first;
	*ret = r;
	return 0;
}

static void free_jobs(struct queue *q)
{
	for (struct job *j = pop(q); j; j = pop(q))
		free(j);
}

void netpol_resolver_free(struct netpol_resolver *r)
{
	bool gone;

	if (!r)
		return;
	(void)pthread_mutex_lock(&r->lock);
	r->closed = true;
	gone = r->threads == 0;
	free_jobs(&r->waiting);
	free_jobs(&r->finished);
	(void)pthread_cond_broadcast(&r->wanted);
	(void)pthread_mutex_unlock(&r->lock);
	free(r->cache);
	r->cache = NULL;
	if (!gone)
		return; /* the last thread to leave frees the rest */
	(void)close(r->event);
	free(r);
}

int netpol_resolver_fd(const struct netpol_resolver *r)
{
	return r->event;
}

static void look_up(struct job *j)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	int64_t start = netpol_mono_us();

	if (getaddrinfo(j->name, NULL, &hints, &list) == 0) {
		for (struct addrinfo *a = list; a && j->result.n < NETPOL_RESOLVE_ADDRS;
		     a = a->ai_next) {
			if (netpol_addr_from_sockaddr(a->ai_addr, &j->result.addrs[j->result.n]))
				j->result.n++;
		}
		freeaddrinfo(list);
	}
	j->result.us = netpol_mono_us() - start;
}

static void *serve(void *arg)
{
	struct netpol_resolver *r = arg;
	struct job *j;
	bool last;

	(void)pthread_mutex_lock(&r->lock);
	while (!r->closed) {
		j = pop(&r->waiting);
		if (!j) {
			r->idle++;
			(void)pthread_cond_wait(&r->wanted, &r->lock);
			r->idle--;
			continue;
		}
		r->queued--;
		(void)pthread_mutex_unlock(&r->lock);
		look_up(j);
		(void)pthread_mutex_lock(&r->lock);
		push(&r->finished, j);
		(void)eventfd_write(r->event, 1); /* EAGAIN: it is readable already */
	}
	last = --r->threads == 0;
	free_jobs(&r->finished);
	(void)pthread_mutex_unlock(&r->lock);
	if (last) {
		(void)close(r->event);
		free(r);
	}
	return NULL;
}

/* Called with the lock. More threads only while all are busy. */
static void ensure_thread(struct netpol_resolver *r)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (r->idle > r->queued || r->threads >= NETPOL_RESOLVE_THREADS ||
	    pthread_attr_init(&attr) != 0)
		return;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (pthread_create(&thread, &attr, serve, r) == 0)
		r->threads++;
	(void)pthread_attr_destroy(&attr);
}

bool netpol_resolver_ask(struct netpol_resolver *r, uint64_t id, const char *name)
{
	size_t n = strlen(name);
	struct job *j;
	bool served;

	if (r->jobs >= NETPOL_RESOLVE_WAITING || n > NETPOL_HOST_MAX)
		return false;
	j = calloc(1, sizeof(*j));
	if (!j)
		return false;
	memcpy(j->name, name, n);
	j->result.id = id;
	(void)pthread_mutex_lock(&r->lock);
	ensure_thread(r);
	served = r->threads > 0;
	if (served) {
		push(&r->waiting, j);
		r->queued++;
		(void)pthread_cond_signal(&r->wanted);
	}
	(void)pthread_mutex_unlock(&r->lock);
	if (!served)
		free(j);
	r->jobs += served;
	return served;
}

static struct memory *find(struct netpol_resolver *r, const char *name)
{
	for (size_t i = 0; i < NETPOL_RESOLVE_CACHE; i++) {
		if (strcmp(r->cache[i].name, name) == 0)
			return &r->cache[i];
	}
	return NULL;
}

bool netpol_resolver_recall(struct netpol_resolver *r, const char *name, int64_t now_ms,
			    struct netpol_resolved *ret)
{
	const struct memory *m = find(r, name);

	if (!m || m->until_ms <= now_ms)
		return false;
	ret->n = m->n;
	ret->us = 0;
	memcpy(ret->addrs, m->addrs, m->n * sizeof(m->addrs[0]));
	return true;
}

/* The name's own place, else the one that is oldest. Failures are not remembered. */
static void remember(struct netpol_resolver *r, const struct job *j, int64_t now_ms)
{
	struct memory *m = find(r, j->name);

	if (j->result.n == 0)
		return;
	for (size_t i = 0; !m || i < NETPOL_RESOLVE_CACHE; i++) {
		if (!m || (strcmp(m->name, j->name) != 0 && r->cache[i].until_ms < m->until_ms))
			m = &r->cache[i];
	}
	memcpy(m->name, j->name, sizeof(m->name));
	m->until_ms = now_ms + NETPOL_RESOLVE_CACHE_MS;
	m->n = j->result.n;
	memcpy(m->addrs, j->result.addrs, m->n * sizeof(m->addrs[0]));
}

bool netpol_resolver_next(struct netpol_resolver *r, int64_t now_ms, struct netpol_resolved *ret)
{
	eventfd_t count;
	struct job *j;

	(void)eventfd_read(r->event, &count); /* EAGAIN: a second call for the same event */
	(void)pthread_mutex_lock(&r->lock);
	j = pop(&r->finished);
	if (r->finished.first)
		(void)eventfd_write(r->event, 1);
	(void)pthread_mutex_unlock(&r->lock);
	if (!j)
		return false;
	r->jobs--;
	remember(r, j, now_ms);
	*ret = j->result;
	free(j);
	return true;
}
