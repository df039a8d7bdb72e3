/* SPDX-License-Identifier: MIT */
/* Every allocation fails once: what comes back is right or an error, and
 * afterwards all works. */
#include "cache/config.h"
#include "cache/export.h"
#include "cache/gateway.h"
#include "cache/memory.h"
#include "cache/request.h"
#include "cache/twolevel.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/fakes/fake_alloc.h"
#include "tests/unit/cache_util.h"

static struct util_clock clk;
static struct cache_config cfg;
static struct cache *cache;
static struct cache_embedder *em;

/* An upstream that knows "a" and "b", and allocates nothing but its answer. */
static int send_to(void *self, struct cache_exchange *x, struct aqe_err *e)
{
	const char *at[2] = { strstr(aqe_buf_str(x->body), "\"a\""),
			      strstr(aqe_buf_str(x->body), "\"b\"") };
	static const char *const ANSWERS[] = {
		"{\"data\":[{\"index\":0,\"embedding\":[1]}]}",
		"{\"data\":[{\"index\":0,\"embedding\":[2]}]}",
		"{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":1,\"embedding\":[2]}]}",
		"{\"data\":[{\"index\":0,\"embedding\":[2]},{\"index\":1,\"embedding\":[1]}]}",
	};

	(void)self;
	x->status = 200;
	aqe_buf_puts(&x->answer, ANSWERS[at[0] && at[1] ? 2 + (at[1] < at[0]) : !at[0]]);
	return aqe_buf_ok(&x->answer, e);
}

static void setup(void)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_embed_opts o;

	util_clock_init(&clk);
	cache_config_init(&cfg);
	cfg.own_ticks = true;
	cfg.upstream.kind = "openai";
	cfg.upstream.url = "http://up";
	cfg.upstream.tries = 1;
	ck_assert_ok(cache_open(&cfg, &clk.port, &cache, &e), e);
	o = (struct cache_embed_opts){ .cache = cache,
				       .cfg = &cfg.upstream,
				       .upstream = { send_to, NULL } };
	ck_assert_ok(cache_embedder_new(&o, &em, &e), e);
}

static void teardown(void)
{
	cache_embedder_free(em);
	cache_close(cache);
}

START_TEST(config__is_whole_or_not_there)
{
	static const char TEXT[] = "{\"backend\":\"redis\",\"redis\":{\"host\":\"h\","
				   "\"tls\":{\"caFile\":\"/c\"}},"
				   "\"front\":{},\"upstream\":{\"kind\":\"openai\","
				   "\"url\":\"http://u\",\"models\":"
				   "[\"a\",\"b\"]},\"agents\":{\"t\":{\"models\":["
				   "\"c\"],\"scope\":\"agent\"}}}";
	AQE_AUTO_ARENA struct aqe_arena *doc = aqe_arena_new(1 << 20);
	struct aqe_json *root = NULL;
	bool failed = true;

	ck_assert_int_eq(aqe_json_parse(doc, TEXT, strlen(TEXT), &AQE_JSON_LIMITS_DEFAULT, &root,
					NULL),
			 0);
	for (unsigned n = 1; failed; n++) {
		const struct cache_config_part part = { "f", root, false };
		struct aqe_arena *a = aqe_arena_new(1 << 16);
		struct aqe_err e = AQE_ERR_INIT;
		struct cache_config c;
		int rc;

		cache_config_init(&c);
		fake_alloc_arm(n);
		rc = cache_config_load_parts(a, &part, 1, "t", &c, &e);
		failed = fake_alloc_disarm();
		ck_assert(rc == (failed ? AQE_E_NOMEM : 0));
		if (!rc)
			ck_assert_str_eq(c.upstream.models[0], "c");
		aqe_arena_free(a);
	}
}
END_TEST

/* A store of each kind that needs no server. */
static void store_new(int kind, struct cache_store *ret)
{
	const struct cache_memory_opts o = { 3, 1 << 20, 0 };
	struct cache_store front = CACHE_STORE_INIT, back = CACHE_STORE_INIT;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(cache_memory_new(&o, kind ? &back : ret, &e), e);
	if (kind) {
		ck_assert_ok(cache_memory_new(&o, &front, &e), e);
		ck_assert_ok(cache_twolevel_new(&front, &back, ret, &e), e);
	}
	ck_assert_ok(cache_store_init(ret, &e), e);
}

START_TEST(store__never_has_a_wrong_value)
{
	const struct cache_now now = { UTIL_START, 1 };
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		struct cache_store s = CACHE_STORE_INIT;
		struct cache_item in[4], *out = cache_items_new(4);
		struct aqe_err e = AQE_ERR_INIT;
		int set, get;

		store_new(_i, &s);
		for (unsigned i = 0; i < 4; i++) {
			in[i] = util_item(i, UTIL_DIM, UTIL_START, UTIL_TTL_MS);
			out[i].key = in[i].key;
		}
		fake_alloc_arm(n);
		set = cache_store_set(&s, in, 4, &now, &e); /* one more than it takes */
		get = cache_store_get(&s, out, 4, &now, &e);
		failed = fake_alloc_disarm();
		ck_assert(failed || (set == 0 && get == 0 && out[3].found && !out[0].found));
		for (unsigned i = 0; i < 4; i++)
			if (!get && out[i].found)
				ck_assert(out[i].value.len == in[i].value.len &&
					  memcmp(out[i].value.p, in[i].value.p, in[i].value.len) ==
						  0);
		ck_assert_ok(cache_store_set(&s, in, 3, &now, &e), e); /* it works again */
		ck_assert_ok(cache_store_get(&s, out, 3, &now, &e), e);
		ck_assert(out[0].found && out[1].found && out[2].found);
		for (unsigned i = 0; i < 4; i++)
			aqe_buf_done(&in[i].value);
		cache_items_free(out, 4);
		cache_store_close(&s);
	}
}
END_TEST

START_TEST(embed__is_right_or_an_error)
{
	struct cache_text texts[3] = { { "a", 1 }, { "b", 1 }, { "a", 1 } };
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		const struct cache_ask ask = {
			.dialect = CACHE_OPENAI, .model = "m", .extra = "", .texts = texts, .n = 3
		};
		struct cache_embedded got = CACHE_EMBEDDED_INIT;
		struct aqe_err e = AQE_ERR_INIT;
		int rc;

		ck_assert_ok(cache_clear(cache, &e), e);
		fake_alloc_arm(n);
		rc = cache_embed(em, &ask, &got, &e);
		failed = fake_alloc_disarm();
		ck_assert(rc ? failed && got.status >= 500 && !got.items : got.n == 3);
		for (size_t i = 0; i < got.n && !rc; i++) {
			struct cache_value v;
			float x = 0;

			cache_item_value(&got.items[i], &v);
			ck_assert_uint_eq(v.dim, 1);
			cache_value_floats(&v, &x);
			ck_assert(fabsf(x - (*texts[i].p == 'a' ? 1.0f : 2.0f)) < 1e-9f);
		}
		cache_embedded_done(&got);
		/* nobody waits for a flight that will not land */
		e = (struct aqe_err)AQE_ERR_INIT;
		ck_assert_ok(cache_embed(em, &ask, &got, &e), e);
		cache_embedded_done(&got);
	}
}
END_TEST

static const char *const REQUESTS[] = {
	"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 31\r\n\r\n"
	"{\"model\":\"m\",\"input\":[\"a\",\"b\"]}",
	"POST /api/embed HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	"1d\r\n{\"model\":\"m\",\"input\":[\"a\",1]}\r\n0\r\n\r\n",
	"GET /api/tags HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /aqe/cache/stats HTTP/1.1\r\nHost: x\r\n\r\n",
};

/* An answer is whole, or the connection ends without one. */
START_TEST(gateway__answers_whole)
{
	const char *text = REQUESTS[_i];
	bool failed = true;

	for (unsigned n = 1; failed; n++) {
		struct cache_request q = CACHE_REQUEST_INIT;
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
		const char *body, *length;
		size_t used = 0;
		int status;

		fake_alloc_arm(n);
		status = cache_request_parse(&q, text, strlen(text), &used);
		if (status == 0 && used > 0)
			cache_gateway_answer(em, cache, &q, &b);
		failed = fake_alloc_disarm();
		ck_assert(failed || (status == 0 && used == strlen(text)));
		body = b.failed || !b.len ? NULL : strstr(aqe_buf_str(&b), "\r\n\r\n");
		if (body) {
			length = strstr(b.p, "Content-Length: ");
			ck_assert(aqe_starts(b.p, "HTTP/1.1 ") && length && length < body);
			ck_assert_uint_eq((size_t)atol(length + 16), strlen(body + 4));
		}
		ck_assert(failed || body);
		cache_request_done(&q);
	}
}
END_TEST

static int to_buf(void *self, const void *p, size_t n, struct aqe_err *e)
{
	aqe_buf_add(self, p, n);
	return aqe_buf_ok(self, e);
}

/* Reads an export; the number of entries, or a code. */
static int import(const struct aqe_buf *b, struct aqe_err *e)
{
	struct cache_item item = CACHE_ITEM_INIT;
	enum cache_import_line what;
	struct cache_import im;
	const char *at = b->p, *end;
	int rc = 0;

	cache_import_init(&im);
	while (!rc && at < b->p + b->len && (end = memchr(at, '\n', b->len)) != NULL) {
		rc = cache_import_line(&im, at, (size_t)(end - at), &item, &what, e);
		at = end + 1;
	}
	if (!rc)
		rc = cache_import_end(&im, e);
	aqe_buf_done(&item.value);
	return rc ? rc : (int)im.entries;
}

START_TEST(export__is_whole_or_an_error)
{
	struct cache_item item = util_item(1, UTIL_DIM, UTIL_START, UTIL_TTL_MS);
	struct aqe_err e = AQE_ERR_INIT;
	bool failed = true;

	ck_assert_ok(cache_put(cache, &item, 1, &e), e);
	for (unsigned n = 1; failed; n++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
		const struct cache_export_opts o = { to_buf, NULL, &b };
		uint64_t entries = 0;
		int rc, got;

		fake_alloc_arm(n);
		rc = cache_export(cache, &o, &entries, &e);
		failed = fake_alloc_disarm();
		ck_assert(rc == 0 || rc == AQE_E_NOMEM);
		ck_assert(failed || rc == 0);
		got = rc ? 0 : import(&b, &e);
		ck_assert(rc || (got >= 0 && (uint64_t)got == entries));
		ck_assert(failed || entries == 1);
	}
	aqe_buf_done(&item.value);
}
END_TEST

START_TEST(import__is_right_or_an_error)
{
	struct cache_item item = util_item(1, UTIL_DIM, UTIL_START, UTIL_TTL_MS);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	const struct cache_export_opts o = { to_buf, NULL, &b };
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t entries = 0;
	bool failed = true;

	ck_assert_ok(cache_put(cache, &item, 1, &e), e);
	ck_assert_ok(cache_export(cache, &o, &entries, &e), e);
	for (unsigned n = 1; failed; n++) {
		int rc;

		fake_alloc_arm(n);
		rc = import(&b, &e);
		failed = fake_alloc_disarm();
		ck_assert_msg(failed ? rc < 0 || rc <= 1 : rc == 1, "%d", rc);
	}
	aqe_buf_done(&item.value);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cache_alloc");
	TCase *t = tcase_create("alloc");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, config__is_whole_or_not_there);
	tcase_add_loop_test(t, store__never_has_a_wrong_value, 0, 2);
	tcase_add_test(t, embed__is_right_or_an_error);
	tcase_add_loop_test(t, gateway__answers_whole, 0, AQE_COUNT(REQUESTS));
	tcase_add_test(t, export__is_whole_or_an_error);
	tcase_add_test(t, import__is_right_or_an_error);
	suite_add_tcase(s, t);
	return unit_run(s);
}
