/* SPDX-License-Identifier: MIT */
/* What the cache promises of memory and of an agent's day. */
#include <math.h>

#include "cache/embed.h"
#include "cache/memory.h"
#include "shim/core/text.h"
#include "tests/fakes/fake_upstream.h"
#include "tests/unit/cache_util.h"

#define ENTRIES 10000U
#define CHUNKS  3000U
#define LOOKUPS 20000U
#define SLOW_US 500000.0

/* ---- resident memory ---- */

static double resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%*d %ld", &pages), 1);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static const struct {
	uint32_t dim;
	double most;
} SIZES[] = { { 1536, 100e6 }, { 768, 50e6 } };

START_TEST(memory__holds_10000_embeddings)
{
	const struct cache_memory_opts o = { ENTRIES, (uint64_t)1 << 30, 0 };
	const double payload = (double)ENTRIES * SIZES[_i].dim * 4;
	const struct cache_now now = { UTIL_START, 1 };
	struct cache_store s = CACHE_STORE_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	double before = resident(), took;
	uint64_t entries = 0, bytes = 0;

	ck_assert_ok(cache_memory_new(&o, &s, &e), e);
	ck_assert_ok(cache_store_init(&s, &e), e);
	for (unsigned i = 0; i < ENTRIES; i++) {
		struct cache_item it = util_item(i, SIZES[_i].dim, UTIL_START, UTIL_TTL_MS);

		ck_assert_ok(cache_store_set(&s, &it, 1, &now, &e), e);
		aqe_buf_done(&it.value);
	}
	took = resident() - before;
	ck_assert_ok(cache_store_size(&s, &entries, &bytes, &e), e);
	ck_assert_uint_eq(entries, ENTRIES);
	ck_assert((double)bytes >= payload && (double)bytes <= 1.1 * payload);
#ifndef __SANITIZE_ADDRESS__
	if (unit_has_openat2()) /* not under valgrind, either */
		ck_assert_msg(took <= SIZES[_i].most && took <= 1.1 * payload, "%.0f bytes", took);
#endif
	ck_assert(took > 0);
	cache_store_close(&s);
}
END_TEST

/* ---- a replayed trace: chunks of a code base, popular ones often (Zipf), 2 % edits ---- */

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static unsigned draw_chunk(const double *sums, unsigned *seed)
{
	const double at = (double)rand_r(seed) / RAND_MAX * sums[CHUNKS - 1];
	unsigned chunk = 0;

	while (chunk + 1 < CHUNKS && sums[chunk] < at)
		chunk++;
	return chunk;
}

START_TEST(trace__hits_and_is_faster)
{
	static double t[LOOKUPS], sums[CHUNKS];
	static unsigned version[CHUNKS];
	struct fake_upstream up;
	struct cache_config cfg;
	struct cache_embed_opts o;
	struct cache_embedder *em = NULL;
	struct cache *c = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_stats st;
	unsigned seed = 1;
	double sum = 0;

	fake_upstream_init(&up, UTIL_DIM);
	cache_config_init(&cfg);
	cfg.own_ticks = true;
	cfg.upstream.kind = "openai";
	cfg.upstream.url = "http://up";
	ck_assert_ok(cache_open(&cfg, NULL, &c, &e), e);
	o = (struct cache_embed_opts){ c, &cfg.upstream, NULL, up.port, up.gate };
	ck_assert_ok(cache_embedder_new(&o, &em, &e), e);
	for (unsigned i = 0; i < CHUNKS; i++)
		sums[i] = sum += 1.0 / pow(i + 1, 1.1);
	for (unsigned i = 0; i < LOOKUPS; i++) {
		const unsigned chunk = draw_chunk(sums, &seed);
		struct cache_embedded got = CACHE_EMBEDDED_INIT;
		char text[64];
		struct cache_text one = { text, 0 };
		const struct cache_ask ask = {
			.dialect = CACHE_OPENAI, .model = "m", .extra = "", .texts = &one, .n = 1
		};
		double began;

		version[chunk] += rand_r(&seed) % 100 < 2;
		one.n = (size_t)snprintf(text, sizeof(text), "chunk %u, edit %u", chunk,
					 version[chunk]);
		began = now_us();
		ck_assert_ok(cache_embed(em, &ask, &got, &e), e);
		/* the upstream's 500 ms are counted, not slept */
		t[i] = now_us() - began + (double)got.fetched * SLOW_US;
		cache_embedded_done(&got);
	}
	cache_stats(c, &st);
	qsort(t, LOOKUPS, sizeof(t[0]), by_size);
	ck_assert_msg(cache_stats_rate(&st) >= 0.8, "hit rate %f", cache_stats_rate(&st));
	ck_assert_uint_eq(up.texts, st.misses); /* nothing was paid for twice */
	ck_assert_msg(t[LOOKUPS / 2] * 10 <= SLOW_US, "median %f us", t[LOOKUPS / 2]);
	printf("hit rate %.1f %%, median %.1f us, p99 %.0f us\n", cache_stats_rate(&st) * 100,
	       t[LOOKUPS / 2], t[LOOKUPS / 100 * 99]);
	cache_embedder_free(em);
	cache_close(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cache_trace");
	TCase *t = tcase_create("trace");

	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, memory__holds_10000_embeddings, 0, AQE_COUNT(SIZES));
	tcase_add_test(t, trace__hits_and_is_faster);
	suite_add_tcase(s, t);
	return unit_run(s);
}
