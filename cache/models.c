/* SPDX-License-Identifier: MIT */
#include "cache/models.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/core/cleanup.h"

#define MODELS_MAX 512
#define FRESH_MS   60000 /* how long a list is believed */
#define RETRY_MS   5000  /* pause after a failure, while an old list is there */
#define AGAIN_MS   1000 /* an unknown model may just have been pulled: look again, not more often */
#define ARENA_MAX  ((size_t)64 << 20)
#define ANSWER_MAX ((size_t)4 << 20)

struct cache_models {
	const struct cache_fetcher *fetcher;
	pthread_mutex_t asking; /* held by the one who asks; never taken under `lock` */
	pthread_mutex_t lock;   /* of all below */
	struct aqe_arena *arena;
	struct cache_model *list; /* NULL: none was had yet */
	size_t n;
	int64_t got_ms, tried_ms;
};

static int64_t mono_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct cache_models *cache_models_new(const struct cache_fetcher *f)
{
	struct cache_models *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->fetcher = f;
	pthread_mutex_init(&m->asking, NULL);
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void cache_models_free(struct cache_models *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->asking);
	pthread_mutex_destroy(&m->lock);
	aqe_arena_free(m->arena);
	free(m);
}

/* A list of at most `age_ms`; *ret_has: there is one, however old. */
static bool is_fresh(struct cache_models *m, int64_t age_ms, bool *ret_has)
{
	const int64_t now = mono_ms();
	bool fresh;

	pthread_mutex_lock(&m->lock);
	*ret_has = m->list != NULL;
	fresh = m->list &&
		(now - m->got_ms < age_ms || (age_ms == FRESH_MS && now - m->tried_ms < RETRY_MS));
	pthread_mutex_unlock(&m->lock);
	return fresh;
}

/* Asks the upstream; the new list takes the place of the old one. */
static int ask(struct cache_models *m, int *ret_status, struct aqe_err *e)
{
	static const struct aqe_buf ANSWER = AQE_BUF_INIT(ANSWER_MAX);
	struct cache_exchange x = { .method = "GET", .path = "/api/tags", .retry_after_s = -1 };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct cache_model *list = a ? aqe_arena_calloc(a, MODELS_MAX, sizeof(*list)) : NULL;
	struct aqe_arena *old = NULL;
	size_t n = 0;
	int rc;

	*ret_status = 500;
	if (!list)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	x.answer = ANSWER;
	rc = cache_fetch(m->fetcher, &x, 0, e);
	*ret_status = rc ? x.status : 502;
	if (!rc) {
		rc = cache_proto_models(a, &x.answer, list, MODELS_MAX, &n, e);
		rc = rc && e ? aqe_err_wrap(e, "upstream") : rc;
	}
	aqe_buf_done(&x.answer);
	pthread_mutex_lock(&m->lock);
	m->tried_ms = mono_ms();
	if (!rc) {
		m->got_ms = m->tried_ms;
		m->list = list;
		m->n = n;
		old = m->arena;
		m->arena = AQE_TAKE_PTR(a);
	}
	pthread_mutex_unlock(&m->lock);
	aqe_arena_free(old);
	return rc;
}

/* Sees to a list of at most `age_ms`. Whoever finds an old one while another asks uses the old one.
 */
static int refresh(struct cache_models *m, int64_t age_ms, int *ret_status, struct aqe_err *e)
{
	bool has;
	int rc = 0;

	if (is_fresh(m, age_ms, &has))
		return 0;
	if (has && pthread_mutex_trylock(&m->asking) != 0)
		return 0;
	if (!has)
		pthread_mutex_lock(&m->asking);
	if (!is_fresh(m, age_ms, &has)) /* somebody may have been quicker */
		rc = ask(m, ret_status, e);
	pthread_mutex_unlock(&m->asking);
	return has ? 0 : rc;
}

static bool is_model(const char *listed, const char *asked)
{
	const size_t n = strlen(asked);

	if (strcmp(listed, asked) == 0)
		return true;
	return !strchr(asked, ':') && strncmp(listed, asked, n) == 0 &&
	       strcmp(listed + n, ":latest") == 0;
}

static bool look(struct cache_models *m, const char *name, char ret[CACHE_REVISION_MAX])
{
	bool found = false;

	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->n && !found; i++) {
		found = is_model(m->list[i].name, name);
		if (found)
			(void)snprintf(ret, CACHE_REVISION_MAX, "%s", m->list[i].digest);
	}
	pthread_mutex_unlock(&m->lock);
	return found;
}

int cache_models_find(struct cache_models *m, const char *name, char ret[CACHE_REVISION_MAX],
		      int *ret_status, struct aqe_err *e)
{
	int rc = refresh(m, FRESH_MS, ret_status, e);

	if (rc || look(m, name, ret))
		return rc;
	rc = refresh(m, AGAIN_MS, ret_status, e);
	if (rc || look(m, name, ret))
		return rc;
	*ret_status = 404;
	return aqe_err_set(e, AQE_E_ABSENT, 0, "model '%.128s' not found, try pulling it first",
			   name);
}

int cache_models_each(struct cache_models *m,
		      void (*fn)(void *self, const struct cache_model *model), void *self,
		      int *ret_status, struct aqe_err *e)
{
	const int rc = refresh(m, FRESH_MS, ret_status, e);

	if (rc)
		return rc;
	pthread_mutex_lock(&m->lock);
	for (size_t i = 0; i < m->n; i++)
		fn(self, &m->list[i]);
	pthread_mutex_unlock(&m->lock);
	return 0;
}
