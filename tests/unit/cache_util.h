/* SPDX-License-Identifier: MIT */
/* Shared by the tests of cache/: keys, embeddings and items by number, a clock that is set. */
#ifndef AQE_UNIT_CACHE_UTIL_H
#define AQE_UNIT_CACHE_UTIL_H

#include <fcntl.h>
#include <math.h>
#include <stdio.h>

#include "cache/store.h"
#include "shim/core/fs.h"
#include "tests/unit/unit.h"

#define UTIL_DIM    32U
#define UTIL_START  ((int64_t)1750000000000) /* ms */
#define UTIL_TTL_MS ((int64_t)60000)

static inline struct cache_key util_key(unsigned n)
{
	char text[32];
	struct cache_key k;

	snprintf(text, sizeof(text), "chunk %u", n);
	cache_key_make(&(struct cache_key_parts){ .provider = "test",
						  .model = "m",
						  .content = text,
						  .len = strlen(text) },
		       &k);
	return k;
}

/* The `i`-th number of embedding `n`. */
static inline float util_number(unsigned n, size_t i)
{
	return (float)n + (float)i / 64.0f - 0.5f;
}

static inline void util_floats(unsigned n, uint32_t dim, float *out)
{
	for (size_t i = 0; i < dim; i++)
		out[i] = util_number(n, i);
}

/* Item `n`, created at `created_ms`; its value must be freed. */
static inline struct cache_item util_item(unsigned n, uint32_t dim, int64_t created_ms,
					  int64_t ttl_ms)
{
	struct cache_item it = CACHE_ITEM_INIT;
	struct cache_value head = { .dim = dim, .created_ms = created_ms, .ttl_ms = ttl_ms };
	float *v = calloc(dim, sizeof(*v));
	struct aqe_err e = AQE_ERR_INIT;

	it.key = util_key(n);
	it.created_ms = created_ms;
	it.ttl_ms = ttl_ms;
	util_floats(n, dim, v);
	ck_assert_ok(cache_value_encode(&it.key, &head, v, &it.value, &e), e);
	free(v);
	return it;
}

/* True when the bytes are embedding `n`, whole. */
static inline bool util_is(const struct cache_item *it, unsigned n)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_value v;
	float x;

	if (cache_value_decode(&it->key, it->value.p, it->value.len, &v, &e))
		return false;
	for (size_t i = 0; i < v.dim; i++) {
		memcpy(&x, v.floats + 4 * i, sizeof(x));
		if (x != util_number(n, i)) /* exact: nothing was computed */
			return false;
	}
	return true;
}

/* A private folder of this test process; removed by util_dir_done(). */
static char util_dir[64];
static inline void util_dir_init(void)
{
	snprintf(util_dir, sizeof(util_dir), "/tmp/aqe-cache-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(util_dir));
}
static inline void util_dir_done(void)
{
	int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(aqe_fs_remove_tree(fd, util_dir + 5, NULL), 0);
	close(fd);
}
static inline const char *util_path(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", util_dir, name);
	return path;
}

/* A clock that stands still until it is set; several threads may read it. */
struct util_clock {
	struct cache_clock port;
	struct cache_now now;
};
static inline void util_clock_now(void *self, struct cache_now *ret)
{
	struct util_clock *c = self;

	ret->wall_ms = __atomic_load_n(&c->now.wall_ms, __ATOMIC_SEQ_CST);
	ret->mono_ms = __atomic_load_n(&c->now.mono_ms, __ATOMIC_SEQ_CST);
}
static inline void util_clock_init(struct util_clock *c)
{
	c->port = (struct cache_clock){ util_clock_now, c };
	c->now = (struct cache_now){ UTIL_START, 1000000 };
}
/* Time passes. */
static inline void util_clock_add(struct util_clock *c, int64_t ms)
{
	__atomic_add_fetch(&c->now.wall_ms, ms, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&c->now.mono_ms, ms, __ATOMIC_SEQ_CST);
}
/* Somebody sets the wall clock. */
static inline void util_clock_jump(struct util_clock *c, int64_t ms)
{
	__atomic_add_fetch(&c->now.wall_ms, ms, __ATOMIC_SEQ_CST);
}

#endif
