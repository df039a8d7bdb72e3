/* SPDX-License-Identifier: MIT */
#include "cache/flight.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS 256

struct cache_flight {
	struct cache_key key;
	struct cache_flight *next; /* in its bucket, while others can join */
	unsigned refs;
	bool landed;
	struct cache_item item; /* value, when status is 0 */
	int status;
	struct aqe_err e;
};

struct cache_flights {
	pthread_mutex_t lock;
	pthread_cond_t landed;
	struct cache_flight *bucket[BUCKETS];
};

struct cache_flights *cache_flights_new(void)
{
	struct cache_flights *fs = calloc(1, sizeof(*fs));
	pthread_condattr_t mono;

	if (!fs)
		return NULL;
	pthread_mutex_init(&fs->lock, NULL);
	pthread_condattr_init(&mono);
	pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
	pthread_cond_init(&fs->landed, &mono);
	pthread_condattr_destroy(&mono);
	return fs;
}

void cache_flights_free(struct cache_flights *fs)
{
	if (!fs)
		return;
	pthread_mutex_destroy(&fs->lock);
	pthread_cond_destroy(&fs->landed);
	free(fs);
}

struct cache_flight *cache_flight_join(struct cache_flights *fs, const struct cache_key *k,
				       bool *ret_owner)
{
	static const struct cache_item EMPTY = CACHE_ITEM_INIT;
	struct cache_flight **at = &fs->bucket[k->b[0] % BUCKETS], *f;

	pthread_mutex_lock(&fs->lock);
	for (f = *at; f && !cache_key_equal(&f->key, k); f = f->next)
		;
	*ret_owner = !f;
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f) {
			f->key = *k;
			f->item = EMPTY;
			f->next = *at;
			*at = f;
		}
	}
	if (f)
		f->refs++;
	pthread_mutex_unlock(&fs->lock);
	return f;
}

/* Under the lock. */
static void unref(struct cache_flight *f)
{
	if (--f->refs > 0)
		return;
	aqe_buf_done(&f->item.value);
	free(f);
}

void cache_flight_land(struct cache_flights *fs, struct cache_flight *f,
		       const struct cache_item *item, int status, const struct aqe_err *e)
{
	struct cache_flight **at = &fs->bucket[f->key.b[0] % BUCKETS];

	pthread_mutex_lock(&fs->lock);
	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	f->landed = true;
	f->status = status;
	if (e)
		f->e = *e;
	if (item && f->refs > 1) {
		f->item.created_ms = item->created_ms;
		f->item.ttl_ms = item->ttl_ms;
		aqe_buf_add(&f->item.value, item->value.p, item->value.len);
		if (aqe_buf_ok(&f->item.value, &f->e))
			f->status = 500;
	}
	unref(f);
	pthread_cond_broadcast(&fs->landed);
	pthread_mutex_unlock(&fs->lock);
}

int cache_flight_wait(struct cache_flights *fs, struct cache_flight *f, unsigned timeout_ms,
		      struct cache_item *item, int *ret_status, struct aqe_err *e)
{
	struct timespec until = { 0, 0 };
	int rc = 0;

	(void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail with a valid clock */
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&fs->lock);
	while (!f->landed && !rc)
		rc = pthread_cond_timedwait(&fs->landed, &fs->lock, &until);
	*ret_status = f->landed ? f->status : 504;
	if (!f->landed) {
		rc = aqe_err_set(e, AQE_E_TIMEOUT, 0,
				 "the request for the same text takes too long");
	} else if (f->status) {
		rc = aqe_err_set(e, f->e.code ? f->e.code : AQE_E_INTERNAL, 0, "%s", f->e.text);
	} else {
		aqe_buf_clear(&item->value);
		aqe_buf_add(&item->value, f->item.value.p, f->item.value.len);
		item->created_ms = f->item.created_ms;
		item->ttl_ms = f->item.ttl_ms;
		item->found = true;
		rc = aqe_buf_ok(&item->value, e);
		if (rc)
			*ret_status = 500;
	}
	unref(f);
	pthread_mutex_unlock(&fs->lock);
	return rc;
}
