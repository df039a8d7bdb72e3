/* SPDX-License-Identifier: MIT */
#include "cache/embed.h"

#include <time.h>

#include "cache/numbers.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/fakes/fake_store.h"
#include "tests/fakes/fake_upstream.h"
#include "tests/unit/cache_util.h"

#define DIM 8U

static struct aqe_err e;
static struct fake_upstream up;
static struct cache_config cfg;
static struct cache *cache;
static struct cache_embedder *em;
static struct util_clock clk;
static struct fake_store *store;

static void start(const char *kind)
{
	struct cache_store s = CACHE_STORE_INIT;
	struct cache_embed_opts o;

	util_clock_init(&clk);
	fake_upstream_init(&up, DIM);
	cache_config_init(&cfg);
	cfg.own_ticks = true;
	cfg.upstream.kind = kind;
	cfg.upstream.url = "http://up";
	cfg.upstream.batch = 4;
	cfg.upstream.backoff_ms = 1;
	store = fake_store_new(&s);
	ck_assert_ok(cache_open_store(&s, &cfg, &clk.port, &cache, &e), e);
	o = (struct cache_embed_opts){ cache, &cfg.upstream, NULL, up.port, up.gate };
	ck_assert_ok(cache_embedder_new(&o, &em, &e), e);
}

static void setup(void)
{
	start("openai");
}

static void teardown(void)
{
	cache_embedder_free(em);
	cache_close(cache);
}

static void as(const char *kind)
{
	teardown();
	start(kind);
}

/* Asks for `n` texts "chunk FROM", ...; what came back is looked at. */
static int embed_some(enum cache_dialect d, unsigned from, unsigned n, struct cache_embedded *got,
		      struct aqe_err *err)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	struct cache_ask ask = { .dialect = d, .model = "m", .extra = "", .n = n };
	struct cache_value v;
	int rc;

	ask.texts = aqe_arena_calloc(a, n, sizeof(*ask.texts));
	for (unsigned i = 0; i < n; i++) {
		ask.texts[i].p = aqe_arena_fmt(a, "chunk %u", from + i);
		ask.texts[i].n = strlen(ask.texts[i].p);
	}
	rc = cache_embed(em, &ask, got, err);
	for (unsigned i = 0; i < n && !rc; i++) {
		float x[DIM];

		cache_item_value(&got->items[i], &v);
		ck_assert_uint_eq(v.dim, DIM);
		cache_value_floats(&v, x);
		for (unsigned k = 0; k < DIM; k++)
			ck_assert(fabsf(x[k] - fake_upstream_number(ask.texts[i].p, k)) < 1e-9f);
	}
	return rc;
}

static struct cache_embedded want(enum cache_dialect d, unsigned from, unsigned n)
{
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	ck_assert_ok(embed_some(d, from, n, &got, &e), e);
	ck_assert_uint_eq(got.n, n);
	ck_assert_int_eq(got.status, 200);
	cache_embedded_done(&got);
	return got;
}

/* ---- misses, hits, parts (NE-07, NE-08, EG-batch) ---- */

START_TEST(embed__pays_once)
{
	struct cache_embedded got = want(CACHE_OPENAI, 0, 1);

	ck_assert(got.hits == 0 && got.fetched == 1 && got.tokens == 10);
	got = want(CACHE_OPENAI, 0, 1);
	ck_assert(got.hits == 1 && got.fetched == 0 && got.tokens == 0);
	ck_assert_uint_eq(up.calls, 1);
	ck_assert_str_eq(up.last_path, "/v1/embeddings");
}
END_TEST

START_TEST(embed__fetches_only_what_is_missing)
{
	struct cache_embedded got;

	(void)want(CACHE_OPENAI, 10, 3);
	up.texts = up.calls = 0;
	got = want(CACHE_OPENAI, 5, 15);
	ck_assert(got.hits == 3 && got.fetched == 12);
	ck_assert_uint_eq(up.texts, 12);
	ck_assert_uint_eq(up.calls, 3); /* in batches of 4 */
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(up.batch[i], 4);
	got = want(CACHE_OPENAI, 0, 20);
	ck_assert(got.hits == 15 && got.fetched == 5);
	ck_assert(up.batch[3] == 4 && up.batch[4] == 1);
}
END_TEST

START_TEST(embed__knows_equal_texts)
{
	static struct cache_text texts[100];
	struct cache_ask ask = {
		.dialect = CACHE_OPENAI, .model = "m", .extra = "", .texts = texts, .n = 100
	};
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	for (int i = 0; i < 100; i++)
		texts[i] = (struct cache_text){ i % 3 == 0 ? "a" : "b", 1 };
	ck_assert_ok(cache_embed(em, &ask, &got, &e), e);
	ck_assert(got.fetched == 2 && got.shared == 98 && got.hits == 0 && up.texts == 2);
	for (int i = 3; i < 100; i++) {
		ck_assert_uint_eq(got.items[i].value.len, CACHE_VALUE_HEAD + (size_t)DIM * 4);
		ck_assert_mem_eq(got.items[i].value.p, got.items[i % 3 == 0 ? 0 : 1].value.p,
				 got.items[i].value.len);
	}
	cache_embedded_done(&got);
	ck_assert_ok(cache_embed(em, &ask, &got, &e), e);
	ck_assert(got.hits == 100 && got.fetched == 0);
	cache_embedded_done(&got);
}
END_TEST

START_TEST(embed__speaks_the_upstreams_language)
{
	static const struct {
		const char *kind;
		enum cache_dialect asked;
		const char *path;
		unsigned calls; /* for 3 texts one by one or together */
	} ROWS[] = {
		{ "openai", CACHE_OPENAI, "/v1/embeddings", 1 },
		{ "openai", CACHE_OLLAMA_EMBED, "/v1/embeddings", 1 },
		{ "openai", CACHE_OLLAMA_LEGACY, "/v1/embeddings", 1 },
		{ "ollama", CACHE_OPENAI, "/api/embed", 1 },
		{ "ollama", CACHE_OLLAMA_EMBED, "/api/embed", 1 },
		{ "ollama", CACHE_OLLAMA_LEGACY, "/api/embeddings", 3 },
	};

	as(ROWS[_i].kind);
	(void)want(ROWS[_i].asked, 0, 3);
	ck_assert_str_eq(up.last_path, ROWS[_i].path);
	ck_assert_uint_eq(up.calls, ROWS[_i].calls);
}
END_TEST

/* Numbers that are normalised and numbers that are not are not the same; dialects with the same
 * numbers share them. */
START_TEST(embed__keeps_normalised_apart)
{
	as("ollama");
	(void)want(CACHE_OLLAMA_EMBED, 0, 1);
	ck_assert_uint_eq(want(CACHE_OPENAI, 0, 1).hits, 1);
	ck_assert_uint_eq(want(CACHE_OLLAMA_LEGACY, 0, 1).hits, 0);
	ck_assert_uint_eq(want(CACHE_OLLAMA_LEGACY, 0, 1).hits, 1);
}
END_TEST

/* ---- models (NE-14) ---- */

START_TEST(models__have_revisions)
{
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	as("ollama");
	(void)want(CACHE_OLLAMA_EMBED, 0, 1);
	(void)want(CACHE_OLLAMA_EMBED, 0, 1);
	ck_assert_uint_eq(up.tags, 1);
	/* another process, after the model was pulled anew */
	cache_embedder_free(em);
	up.digest = "d2";
	ck_assert_ok(cache_embedder_new(&(struct cache_embed_opts){ cache, &cfg.upstream, NULL,
								    up.port, up.gate },
					&em, &e),
		     e);
	ck_assert_uint_eq(want(CACHE_OLLAMA_EMBED, 0, 1).fetched, 1);
	cache_embedder_free(em);
	up.digest = NULL;
	ck_assert_ok(cache_embedder_new(&(struct cache_embed_opts){ cache, &cfg.upstream, NULL,
								    up.port, up.gate },
					&em, &e),
		     e);
	ck_assert_fault(embed_some(CACHE_OLLAMA_EMBED, 0, 1, &got, &e), AQE_E_ABSENT, e,
			"model 'm' not found");
	ck_assert_int_eq(got.status, 404);
}
END_TEST

START_TEST(models__may_be_limited)
{
	static const char *const ONLY[] = { "n" };
	struct cache_embedded got = CACHE_EMBEDDED_INIT;
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
	int status;

	cfg.upstream.models = ONLY;
	cfg.upstream.n_models = 1;
	ck_assert_fault(embed_some(CACHE_OPENAI, 0, 1, &got, &e), AQE_E_REFUSED, e, "not found");
	ck_assert_int_eq(got.status, 404);
	ck_assert_uint_eq(up.asked, 0);
	ck_assert_ok(cache_embed_tags(em, &b, &status, &e), e);
	ck_assert_str_eq(aqe_buf_str(&b),
			 "{\"models\":[{\"name\":\"n\",\"model\":\"n\",\"digest\":\"\"}]}");
	as("ollama");
	aqe_buf_clear(&b);
	ck_assert_ok(cache_embed_tags(em, &b, &status, &e), e);
	ck_assert_str_eq(aqe_buf_str(&b),
			 "{\"models\":[{\"name\":\"other\",\"model\":\"other\",\"digest\":\"o\"},"
			 "{\"name\":\"m:latest\",\"model\":\"m:latest\",\"digest\":\"d1\"}]}");
}
END_TEST

/* ---- failures (NE-21) ---- */

static const struct {
	int plan[6];
	unsigned calls;
	int status; /* 200: it works in the end */
	const char *text;
} PLANS[] = {
	{ { 500 }, 2, 200, NULL },
	{ { 429, 503 }, 3, 200, NULL },
	{ { AQE_E_SYS, AQE_E_MALFORMED }, 3, 200, NULL },
	{ { 500, 500, 500 }, 3, 500, "upstream: status 500: as told" },
	{ { 429, 429, 429 }, 3, 429, "status 429" },
	{ { 504, 502, 503 }, 3, 503, "status 503" },
	{ { 400 }, 1, 400, "status 400: as told" },
	{ { 401 }, 1, 401, "status 401" },
	{ { 404 }, 1, 404, "status 404" },
	{ { 302 }, 1, 502, "status 302" },
	{ { AQE_E_SYS, AQE_E_SYS, AQE_E_SYS }, 3, 502, "upstream: as told" },
	{ { AQE_E_TIMEOUT }, 1, 504, "as told" },
	{ { AQE_E_UNTRUSTED }, 1, 502, "as told" },
	{ { AQE_E_LIMIT }, 1, 502, "as told" },
	{ { AQE_E_REFUSED }, 1, 403, "as told" },
};

START_TEST(upstream__fails)
{
	struct cache_embedded got = CACHE_EMBEDDED_INIT;
	int rc;

	memcpy(up.plan, PLANS[_i].plan, sizeof(PLANS[_i].plan));
	rc = embed_some(CACHE_OPENAI, 0, 2, &got, &e);
	ck_assert_uint_eq(up.calls, PLANS[_i].calls);
	ck_assert_uint_eq(up.asked, PLANS[_i].calls); /* every try is asked for, and told */
	ck_assert_uint_eq(up.told, PLANS[_i].calls);
	ck_assert_int_eq(got.status, PLANS[_i].status);
	if (PLANS[_i].status == 200) {
		ck_assert_ok(rc, e);
	} else {
		ck_assert_int_lt(rc, 0);
		ck_assert_ptr_nonnull(strstr(e.text, PLANS[_i].text));
		ck_assert_ptr_null(got.items);
		memset(up.plan, 0, sizeof(up.plan));
		(void)want(CACHE_OPENAI, 0, 2); /* nothing of it is remembered */
	}
	cache_embedded_done(&got);
}
END_TEST

/* What was paid for before the failure stays paid. */
START_TEST(upstream__fails_in_the_middle)
{
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	(void)want(CACHE_OPENAI, 0, 1);
	/* the second batch of three fails */
	up.plan[0] = 0;
	up.delay_ms = 0;
	cfg.upstream.tries = 1;
	for (unsigned i = 0; i < 2; i++) {
		struct cache_embedded first = want(CACHE_OPENAI, 4 * i, 4);

		ck_assert(first.fetched > 0);
	}
	up.plan[0] = 500;
	ck_assert_int_lt(embed_some(CACHE_OPENAI, 0, 12, &got, &e), 0);
	ck_assert_int_eq(got.status, 500);
	up.texts = 0;
	ck_assert_uint_eq(want(CACHE_OPENAI, 0, 12).hits, 8);
	ck_assert_uint_eq(up.texts, 4);
}
END_TEST

START_TEST(upstream__asks_for_patience)
{
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	up.plan[0] = 429;
	up.retry_after_s = 60;
	ck_assert_int_lt(embed_some(CACHE_OPENAI, 0, 1, &got, &e), 0);
	ck_assert_uint_eq(up.calls, 1); /* too long to wait for here */
	ck_assert(got.status == 429 && got.retry_after_s == 60);
}
END_TEST

static const char *const NONSENSE[] = {
	"",
	"<html>",
	"{}",
	"{\"data\":[]}",
	"{\"data\":[{\"embedding\":[1,2]},{\"embedding\":[1,2]}]}",
	"{\"data\":[{\"embedding\":[1e99]}]}",
};

START_TEST(upstream__talks_nonsense)
{
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	up.body = NONSENSE[_i];
	ck_assert_int_lt(embed_some(CACHE_OPENAI, 0, 1, &got, &e), 0);
	ck_assert_int_eq(got.status, 502);
	ck_assert_ptr_nonnull(strstr(e.text, "upstream"));
	ck_assert_uint_eq(fake_store_calls(store, FAKE_SET), 0);
}
END_TEST

START_TEST(upstream__has_another_dimension)
{
	struct cache_text text = { "a", 1 };
	struct cache_ask ask = { .dialect = CACHE_OPENAI,
				 .model = "m",
				 .extra = "",
				 .dimensions = DIM + 1,
				 .texts = &text,
				 .n = 1 };
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	ck_assert_fault(cache_embed(em, &ask, &got, &e), AQE_E_MALFORMED, e,
			"8 numbers, not the 9");
	ck_assert_int_eq(got.status, 502);
}
END_TEST

START_TEST(policy__is_asked)
{
	struct cache_embedded got = CACHE_EMBEDDED_INIT;

	(void)want(CACHE_OPENAI, 0, 1);
	up.refuse_status = 429;
	ck_assert_uint_eq(want(CACHE_OPENAI, 0, 1).hits, 1); /* hits need no leave */
	ck_assert_fault(embed_some(CACHE_OPENAI, 1, 1, &got, &e), AQE_E_REFUSED, e,
			"policy says no");
	ck_assert(got.status == 429 && got.retry_after_s == 12);
	ck_assert_uint_eq(up.calls, 1);
	ck_assert(up.told == 1 && up.told_status == 200);
}
END_TEST

/* A cache that is away costs money, but no failure. */
START_TEST(cache__may_be_away)
{
	fake_store_fail(store, AQE_E_SYS);
	ck_assert_uint_eq(want(CACHE_OPENAI, 0, 5).fetched, 5);
	ck_assert_uint_eq(want(CACHE_OPENAI, 0, 5).fetched, 5);
	fake_store_fail(store, 0);
	(void)want(CACHE_OPENAI, 0, 5);
	ck_assert_uint_eq(want(CACHE_OPENAI, 0, 5).hits, 5);
}
END_TEST

/* ---- at the same time ---- */

struct asking {
	pthread_t thread;
	unsigned from, n;
	int rc;
	struct cache_embedded got;
	struct aqe_err err;
};

static void *ask_thread(void *self)
{
	static const struct cache_embedded EMPTY = CACHE_EMBEDDED_INIT;
	struct asking *a = self;

	a->got = EMPTY;
	a->rc = embed_some(CACHE_OPENAI, a->from, a->n, &a->got, &a->err);
	cache_embedded_done(&a->got);
	return NULL;
}

/* Twenty ask for overlapping texts: each text is fetched once. */
START_TEST(embed__shares_equal_misses)
{
	static struct asking a[20];
	size_t fetched = 0, shared = 0, hits = 0;

	up.delay_ms = 30;
	for (unsigned i = 0; i < 20; i++) {
		a[i].from = i % 5;
		a[i].n = 6;
		ck_assert_int_eq(pthread_create(&a[i].thread, NULL, ask_thread, &a[i]), 0);
	}
	for (unsigned i = 0; i < 20; i++) {
		pthread_join(a[i].thread, NULL);
		ck_assert_ok(a[i].rc, a[i].err);
		fetched += a[i].got.fetched;
		shared += a[i].got.shared;
		hits += a[i].got.hits;
	}
	ck_assert_uint_eq(up.texts, 10);
	ck_assert_uint_eq(fetched, 10);
	ck_assert_uint_eq(fetched + shared + hits, 120);
	ck_assert_uint_gt(shared, 0);
}
END_TEST

/* The failure of the one who fetches is everybody's who waits; afterwards it is tried anew. */
START_TEST(embed__shares_failures)
{
	static struct asking a[8];

	up.delay_ms = 50;
	for (int i = 0; i < 8; i++)
		up.plan[i] = 400;
	for (unsigned i = 0; i < 8; i++) {
		a[i].from = 0;
		a[i].n = 3;
		ck_assert_int_eq(pthread_create(&a[i].thread, NULL, ask_thread, &a[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(a[i].thread, NULL);
		ck_assert_int_lt(a[i].rc, 0);
		ck_assert_int_eq(a[i].got.status, 400);
		ck_assert_ptr_nonnull(strstr(a[i].err.text, "as told"));
	}
	ck_assert_uint_lt(up.calls, 8);
	memset(up.plan, 0, sizeof(up.plan));
	up.delay_ms = 0;
	(void)want(CACHE_OPENAI, 0, 3);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("embed");
	TCase *t = tcase_create("embed");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, embed__pays_once);
	tcase_add_test(t, embed__fetches_only_what_is_missing);
	tcase_add_test(t, embed__knows_equal_texts);
	tcase_add_loop_test(t, embed__speaks_the_upstreams_language, 0, 6);
	tcase_add_test(t, embed__keeps_normalised_apart);
	tcase_add_test(t, models__have_revisions);
	tcase_add_test(t, models__may_be_limited);
	tcase_add_loop_test(t, upstream__fails, 0, AQE_COUNT(PLANS));
	tcase_add_test(t, upstream__fails_in_the_middle);
	tcase_add_test(t, upstream__asks_for_patience);
	tcase_add_loop_test(t, upstream__talks_nonsense, 0, AQE_COUNT(NONSENSE));
	tcase_add_test(t, upstream__has_another_dimension);
	tcase_add_test(t, policy__is_asked);
	tcase_add_test(t, cache__may_be_away);
	tcase_add_test(t, embed__shares_equal_misses);
	tcase_add_test(t, embed__shares_failures);
	suite_add_tcase(s, t);
	return unit_run(s);
}
