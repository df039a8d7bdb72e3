/* SPDX-License-Identifier: MIT */
#include "cache/proto.h"

#include "cache/numbers.h"
#include "shim/core/base64.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/unit/cache_util.h"

static struct aqe_err e;

static int ask(struct aqe_arena *a, enum cache_dialect d, const char *text, struct cache_ask *ret)
{
	return cache_ask_read(a, d, text, strlen(text), ret, &e);
}

/* ---- what agents ask ---- */

static const struct {
	enum cache_dialect dialect;
	const char *text;
	size_t n;
	const char *first, *last, *extra;
	uint32_t dims;
	bool base64, tokens;
} ASKS[] = {
	{ CACHE_OLLAMA_EMBED, "{\"model\":\"m\",\"input\":\"a\"}", 1, "a", "a", "", 0, false,
	  false },
	{ CACHE_OLLAMA_EMBED, "{\"model\":\"m\",\"input\":[\"a\",\"b\"]}", 2, "a", "b", "", 0,
	  false, false },
	{ CACHE_OLLAMA_EMBED, "{\"model\":\"m\",\"input\":[]}", 0, NULL, NULL, "", 0, false,
	  false },
	{ CACHE_OLLAMA_EMBED,
	  "{\"model\":\"m\",\"input\":\"a\",\"truncate\":false,\"keep_alive\":\"5m\","
	  "\"options\":{\"num_ctx\":8,\"a\":1}}",
	  1, "a", "a", "{\"options\":{\"a\":1,\"num_ctx\":8},\"truncate\":false}", 0, false,
	  false },
	{ CACHE_OLLAMA_EMBED, "{\"model\":\"m\",\"input\":\"a\",\"options\":{},\"truncate\":null}",
	  1, "a", "a", "", 0, false, false },
	{ CACHE_OLLAMA_LEGACY, "{\"model\":\"m\",\"prompt\":\"\"}", 1, "", "", "", 0, false,
	  false },
	{ CACHE_OPENAI,
	  "{\"input\":[\"a\"],\"model\":\"m\",\"dimensions\":5,\"encoding_format\":\"base64\","
	  "\"user\":\"u\"}",
	  1, "a", "a", "", 5, true, false },
	{ CACHE_OPENAI, "{\"input\":[1,2,3],\"model\":\"m\",\"encoding_format\":\"float\"}", 1,
	  "[1,2,3]", "[1,2,3]", "", 0, false, true },
	{ CACHE_OPENAI, "{\"input\":[[1,2],[ 3 ]],\"model\":\"m\",\"dimensions\":null}", 2, "[1,2]",
	  "[3]", "", 0, false, true },
	{ CACHE_OPENAI, "{\"input\":\"\\u00e9\\n\",\"model\":\"m\",\"input_type\":\"query\"}", 1,
	  "\xc3\xa9\n", "\xc3\xa9\n", "{\"input_type\":\"query\"}", 0, false, false },
};

START_TEST(ask__takes)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	struct cache_ask q;

	ck_assert_ok(ask(a, ASKS[_i].dialect, ASKS[_i].text, &q), e);
	ck_assert_str_eq(q.model, "m");
	ck_assert_uint_eq(q.n, ASKS[_i].n);
	if (q.n > 0) {
		ck_assert_str_eq(q.texts[0].p, ASKS[_i].first);
		ck_assert_str_eq(q.texts[q.n - 1].p, ASKS[_i].last);
		ck_assert_uint_eq(q.texts[0].n, strlen(ASKS[_i].first));
	}
	ck_assert_str_eq(q.extra, ASKS[_i].extra);
	ck_assert_uint_eq(q.dimensions, ASKS[_i].dims);
	ck_assert_int_eq(q.base64, ASKS[_i].base64);
	ck_assert_int_eq(q.tokens, ASKS[_i].tokens);
}
END_TEST

static const struct {
	enum cache_dialect dialect;
	const char *text, *why;
} REFUSALS[] = {
	{ CACHE_OPENAI, "", NULL },
	{ CACHE_OPENAI, "[]", "'model'" },
	{ CACHE_OPENAI, "{}", "'model'" },
	{ CACHE_OPENAI, "{\"model\":1,\"input\":\"a\"}", "'model'" },
	{ CACHE_OPENAI, "{\"model\":\"\",\"input\":\"a\"}", "'model'" },
	{ CACHE_OPENAI, "{\"model\":\"m\"}", "'input' is missing" },
	{ CACHE_OLLAMA_LEGACY, "{\"model\":\"m\",\"input\":\"a\"}", "'prompt' is missing" },
	{ CACHE_OLLAMA_LEGACY, "{\"model\":\"m\",\"prompt\":[\"a\"]}", "'prompt': wanted a text" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":7}", "wanted a text" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":[\"a\",1]}", "wanted a text" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":[1,\"a\"]}", "wanted texts or token" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":[\"a\",[1]]}", "together" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":[-1]}", "token numbers" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":[1.5]}", "token numbers" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":[[]]}", "1 to 16384 tokens" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":null}", "wanted a text" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\",\"dimensions\":0}", "'dimensions'" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\",\"dimensions\":\"5\"}", "'dimensions'" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\",\"encoding_format\":\"int8\"}",
	  "float or base64" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\",\"input\":\"b\"}", "duplicate" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\",\"Input\":\"b\"}", "letter case" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\",\"DIMENSIONS\":9}", "unusual letters" },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\\u0000b\"}", NULL },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"\\ud800\"}", NULL },
	{ CACHE_OPENAI, "{\"model\":\"m\",\"input\":\"a\"} x", NULL },
};

START_TEST(ask__refuses)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	struct cache_ask q;

	ck_assert_fault(ask(a, REFUSALS[_i].dialect, REFUSALS[_i].text, &q), AQE_E_MALFORMED, e,
			REFUSALS[_i].why);
}
END_TEST

START_TEST(ask__holds_its_limits)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 26);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	struct cache_ask q;

	aqe_buf_puts(&b, "{\"model\":\"m\",\"input\":[");
	for (unsigned i = 0; i < CACHE_ASK_TEXTS_MAX + (unsigned)_i; i++)
		aqe_buf_puts(&b, i ? ",\"x\"" : "\"x\"");
	aqe_buf_puts(&b, "]}");
	if (_i == 0)
		ck_assert_ok(ask(a, CACHE_OPENAI, aqe_buf_str(&b), &q), e);
	else
		ck_assert_fault(ask(a, CACHE_OPENAI, aqe_buf_str(&b), &q), AQE_E_LIMIT, e,
				"2048 texts");
	aqe_buf_clear(&b);
	aqe_buf_puts(&b, "{\"model\":\"m\",\"input\":\"a\",\"instruction\":\"");
	for (size_t i = 0; i < CACHE_ASK_EXTRA_MAX; i++)
		aqe_buf_putc(&b, 'x');
	aqe_buf_puts(&b, "\"}");
	ck_assert_int_eq(ask(a, CACHE_OPENAI, aqe_buf_str(&b), &q), AQE_E_LIMIT);
}
END_TEST

/* What decides the numbers decides the key; what does not, does not. */
START_TEST(key__depends_on_what_matters)
{
	static const char *const ASK[] = {
		"{\"model\":\"m\",\"input\":\"[1]\"}",
		"{\"model\":\"m\",\"input\":[1]}",
		"{\"model\":\"n\",\"input\":\"[1]\"}",
		"{\"model\":\"m\",\"input\":\"[1]\",\"dimensions\":5}",
		"{\"model\":\"m\",\"input\":\"[1]\",\"task\":\"x\"}",
	};
	static const char *const SAME[] = {
		"{\"input\":[\"[1]\"],\"model\":\"m\",\"user\":\"u\",\"encoding_format\":"
		"\"base64\"}",
		"{\"input\":\"\\u005b1]\",\"model\":\"m\",\"stream\":false}",
	};
	/* the same text of one agent type is another entry than of the next: U44 */
	static const struct cache_source FROM[] = {
		{ NULL, "p", "r", true },     { NULL, "p2", "r", true },
		{ NULL, "p", "r2", true },    { NULL, "p", "r", false },
		{ "type:a", "p", "r", true }, { "type:b", "p", "r", true },
		{ "p", "r", "", true },
	};
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	struct cache_key k[AQE_COUNT(ASK) + AQE_COUNT(FROM)], other;
	struct cache_ask q;
	size_t n = 0;

	for (size_t i = 0; i < AQE_COUNT(ASK); i++) {
		ck_assert_ok(ask(a, CACHE_OPENAI, ASK[i], &q), e);
		cache_ask_key(&q, 0, &FROM[0], &k[n++]);
	}
	ck_assert_ok(ask(a, CACHE_OPENAI, ASK[0], &q), e);
	for (size_t i = 1; i < AQE_COUNT(FROM); i++)
		cache_ask_key(&q, 0, &FROM[i], &k[n++]);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			ck_assert(!cache_key_equal(&k[i], &k[j]));
	for (size_t i = 0; i < AQE_COUNT(SAME); i++) {
		ck_assert_ok(ask(a, CACHE_OPENAI, SAME[i], &q), e);
		cache_ask_key(&q, 0, &FROM[0], &other);
		ck_assert(cache_key_equal(&other, &k[0]));
	}
}
END_TEST

/* ---- what the upstream is asked, and answers ---- */

START_TEST(question__asks_for_some)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	const size_t which[] = { 2, 0 };
	struct cache_ask q;

	ck_assert_ok(ask(a, CACHE_OPENAI,
			 "{\"model\":\"m\\\"\",\"input\":[\"a\\n\",\"b\",\"c\"],\"dimensions\":7,"
			 "\"task\":1}",
			 &q),
		     e);
	ck_assert_ok(cache_proto_question(&q, CACHE_OPENAI, which, 2, &b, &e), e);
	ck_assert_str_eq(aqe_buf_str(&b),
			 "{\"model\":\"m\\\"\",\"input\":[\"c\",\"a\\n\"],"
			 "\"encoding_format\":\"float\",\"dimensions\":7,\"task\":1}");
	aqe_buf_clear(&b);
	ck_assert_int_eq(cache_proto_dialect(&q, true), CACHE_OLLAMA_EMBED);
	ck_assert_ok(cache_proto_question(&q, CACHE_OLLAMA_EMBED, which, 1, &b, &e), e);
	ck_assert_str_eq(aqe_buf_str(&b),
			 "{\"model\":\"m\\\"\",\"input\":[\"c\"],\"dimensions\":7,\"task\":1}");
	aqe_buf_clear(&b);
	ck_assert_ok(ask(a, CACHE_OLLAMA_LEGACY, "{\"model\":\"m\",\"prompt\":\"p\"}", &q), e);
	ck_assert_int_eq(cache_proto_dialect(&q, true), CACHE_OLLAMA_LEGACY);
	ck_assert_int_eq(cache_proto_dialect(&q, false), CACHE_OPENAI);
	ck_assert_ok(cache_proto_question(&q, CACHE_OLLAMA_LEGACY, &which[1], 1, &b, &e), e);
	ck_assert_str_eq(aqe_buf_str(&b), "{\"model\":\"m\",\"prompt\":\"p\"}");
	aqe_buf_clear(&b);
	ck_assert_ok(ask(a, CACHE_OPENAI, "{\"model\":\"m\",\"input\":[[1,2],[3]]}", &q), e);
	ck_assert_ok(cache_proto_question(&q, CACHE_OPENAI, &which[1], 1, &b, &e), e);
	ck_assert_str_eq(aqe_buf_str(&b),
			 "{\"model\":\"m\",\"input\":[[1,2]],\"encoding_format\":\"float\"}");
}
END_TEST

static int answer(struct aqe_arena *a, enum cache_dialect d, const char *text,
		  struct cache_answer *ret)
{
	struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	int rc;

	aqe_buf_puts(&b, text);
	rc = cache_proto_answer(a, d, &b, ret, &e);
	aqe_buf_done(&b);
	return rc;
}

static const struct {
	enum cache_dialect d;
	const char *text;
	uint64_t tokens;
} ANSWERS[] = {
	{ CACHE_OPENAI,
	  "{\"data\":[{\"index\":1,\"embedding\":[3,4]},{\"index\":0,\"embedding\":[1,2.5e0]}],"
	  "\"usage\":{\"total_tokens\":9}}",
	  9 },
	{ CACHE_OPENAI, "{\"data\":[{\"embedding\":\"AACAPwAAIEA=\"},{\"embedding\":[3,4]}]}", 0 },
	{ CACHE_OLLAMA_EMBED,
	  "{\"model\":\"m\",\"embeddings\":[[1,2.5],[3,4]],\"prompt_eval_count\":3,\"x\":null}",
	  3 },
};

START_TEST(answer__is_read)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	struct cache_vector v[2];
	struct cache_answer got = { v, 2, 77 };

	ck_assert_ok(answer(a, ANSWERS[_i].d, ANSWERS[_i].text, &got), e);
	ck_assert(v[0].dim == 2 && v[1].dim == 2);
	ck_assert_mem_eq(v[0].v, ((const float[]){ 1.0f, 2.5f }), 8);
	ck_assert_mem_eq(v[1].v, ((const float[]){ 3.0f, 4.0f }), 8);
	ck_assert_uint_eq(got.tokens, ANSWERS[_i].tokens);
}
END_TEST

static const struct {
	enum cache_dialect d;
	size_t n;
	const char *text, *why;
} BROKEN[] = {
	{ CACHE_OPENAI, 1, "", NULL },
	{ CACHE_OPENAI, 1, "<html>", NULL },
	{ CACHE_OPENAI, 1, "{}", "not 1 embeddings" },
	{ CACHE_OPENAI, 1, "{\"data\":[]}", "not 1 embeddings" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":[1]},{\"embedding\":[1]}]}", "not 1" },
	{ CACHE_OPENAI, 2, "{\"data\":[{\"embedding\":[1]}]}", "not 2" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"index\":1,\"embedding\":[1]}]}", "out of range" },
	{ CACHE_OPENAI, 2,
	  "{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":0,\"embedding\":[1]}]}",
	  "two embeddings" },
	{ CACHE_OPENAI, 1, "{\"data\":[{}]}", "no embedding" },
	{ CACHE_OPENAI, 1, "{\"data\":[7]}", "no embedding" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":[]}]}", "1 to 65536" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":[\"x\"]}]}", "array of numbers" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":[null]}]}", "array of numbers" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":[1e39]}]}", "beyond float32" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":[NaN]}]}", NULL },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":\"AACAPw=\"}]}", "base64" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":\"AACA\"}]}", "base64" },
	{ CACHE_OPENAI, 1, "{\"data\":[{\"embedding\":\"AADAfw==\"}]}", "finite" },
	{ CACHE_OLLAMA_EMBED, 1, "{\"embedding\":[1]}", "'embeddings'" },
	{ CACHE_OLLAMA_EMBED, 1, "{\"embeddings\":[1]}", "array of numbers" },
	{ CACHE_OLLAMA_LEGACY, 1, "{\"embeddings\":[[1]]}", "no embedding" },
	{ CACHE_OLLAMA_LEGACY, 1, "{\"embedding\":[]}", "1 to 65536" },
};

START_TEST(answer__may_be_broken)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	struct cache_vector v[2];
	struct cache_answer got = { v, BROKEN[_i].n, 0 };
	const int rc = answer(a, BROKEN[_i].d, BROKEN[_i].text, &got);

	ck_assert(rc == AQE_E_MALFORMED || rc == AQE_E_LIMIT);
	ck_assert(!BROKEN[_i].why || strstr(e.text, BROKEN[_i].why));
}
END_TEST

START_TEST(error__shows_the_words)
{
	static const struct {
		const char *text, *want;
	} ROWS[] = {
		{ "{\"error\":\"no such model\"}", "no such model" },
		{ "{\"error\":{\"message\":\"slow down\",\"code\":1}}", "slow down" },
		{ "{\"message\":\"m\"}", "m" },
		{ "{\"error\":7}", "" },
		{ "<html>", "" },
		{ "{\"error\":\"a\\u001b[1mb\"}", "a\\x1b[1mb" },
	};

	for (size_t i = 0; i < AQE_COUNT(ROWS); i++) {
		struct aqe_buf body = AQE_BUF_INIT(1000), b = AQE_BUF_INIT(1000);

		aqe_buf_puts(&body, ROWS[i].text);
		cache_proto_error(&body, &b);
		ck_assert_str_eq(aqe_buf_str(&b), ROWS[i].want);
		aqe_buf_done(&body);
		aqe_buf_done(&b);
	}
}
END_TEST

START_TEST(models__are_read)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 24);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
	struct cache_model m[2];
	size_t n;

	aqe_buf_puts(&b,
		     "{\"models\":[{\"name\":\"a\"},{\"name\":\"b:latest\",\"digest\":\"d1\"},7,"
		     "{\"name\":\"c\",\"digest\":\"d2\"},{\"name\":\"d\",\"digest\":\"d3\"}]}");
	ck_assert_ok(cache_proto_models(a, &b, m, 2, &n, &e), e);
	ck_assert_uint_eq(n, 2);
	ck_assert_str_eq(m[0].name, "b:latest");
	ck_assert_str_eq(m[1].digest, "d2");
	aqe_buf_clear(&b);
	aqe_buf_puts(&b, "{\"models\":{}}");
	ck_assert_fault(cache_proto_models(a, &b, m, 2, &n, &e), AQE_E_MALFORMED, e, "no list");
}
END_TEST

/* ---- what agents are told ---- */

START_TEST(reply__is_what_clients_read)
{
	static const char *const WANT[] = {
		[CACHE_OLLAMA_EMBED] =
			"{\"model\":\"m\",\"embeddings\":[[0.5,1.5],[0.5,1.5]],"
			"\"total_duration\":0,\"load_duration\":0,\"prompt_eval_count\":4}",
		[CACHE_OLLAMA_LEGACY] = "{\"embedding\":[0.5,1.5]}",
		[CACHE_OPENAI] =
			"{\"object\":\"list\",\"data\":["
			"{\"object\":\"embedding\",\"index\":0,\"embedding\":\"AAAAPwAAwD8=\"},"
			"{\"object\":\"embedding\",\"index\":1,\"embedding\":\"AAAAPwAAwD8=\"}],"
			"\"model\":\"m\",\"usage\":{\"prompt_tokens\":4,\"total_tokens\":4}}",
	};
	static const float V[] = { 0.5f, 1.5f };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
	struct cache_item *it = cache_items_new(2);
	const struct cache_value head = { .dim = 2, .created_ms = 1, .ttl_ms = 1 };
	struct cache_ask q = {
		.dialect = (enum cache_dialect)_i, .model = "m", .extra = "", .base64 = true, .n = 2
	};

	for (int i = 0; i < 2; i++)
		ck_assert_ok(cache_value_encode(&it[i].key, &head, V, &it[i].value, &e), e);
	ck_assert_ok(cache_proto_reply(&q, it, 4, &b, &e), e);
	ck_assert_str_eq(aqe_buf_str(&b), WANT[_i]);
	cache_items_free(it, 2);
}
END_TEST

START_TEST(fault__is_what_clients_read)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);

	cache_proto_fault(CACHE_OLLAMA_EMBED, 404, "no \"m\"", &b);
	ck_assert_str_eq(aqe_buf_str(&b), "{\"error\":\"no \\\"m\\\"\"}");
	aqe_buf_clear(&b);
	cache_proto_fault(CACHE_OPENAI, 429, "slow", &b);
	ck_assert_str_eq(aqe_buf_str(&b), "{\"error\":{\"message\":\"slow\",\"type\":"
					  "\"rate_limit_exceeded\",\"param\":null,\"code\":null}}");
}
END_TEST

/* ---- numbers and base64 ---- */

/* Nine digits bring every float32 back. */
START_TEST(numbers__come_back)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 26);
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(1 << 20), value = AQE_BUF_INIT(1 << 20);
	const struct cache_value head = { .dim = 5000, .created_ms = 1, .ttl_ms = 1 };
	const struct cache_key k = util_key(1);
	struct aqe_json *root = NULL;
	static float in[5000];
	struct cache_value v;
	uint32_t dim, bits = 12345;
	float *out;

	for (int i = 0; i < 5000; i++) {
		do {
			bits = bits * 1664525 + 1013904223;
			memcpy(&in[i], &bits, 4);
		} while (!isfinite(in[i]));
	}
	ck_assert_ok(cache_value_encode(&k, &head, in, &value, &e), e);
	ck_assert_ok(cache_value_decode(&k, value.p, value.len, &v, &e), e);
	for (int encoding = 0; encoding < 2; encoding++) {
		aqe_buf_clear(&text);
		if (encoding == 0)
			cache_numbers_emit(&v, &text);
		else
			cache_numbers_emit_base64(&v, &text);
		ck_assert_ok(aqe_json_parse(a, text.p, text.len, &CACHE_NUMBERS_LIMITS, &root, &e),
			     e);
		ck_assert_ok(cache_numbers_read(a, root, &out, &dim, &e), e);
		ck_assert_uint_eq(dim, 5000);
		ck_assert_mem_eq(out, in, sizeof(in));
	}
}
END_TEST

/* RFC 4648, section 10. */
START_TEST(base64__is_the_standard_one)
{
	static const struct {
		const char *plain, *text;
	} ROWS[] = { { "", "" },
		     { "f", "Zg==" },
		     { "fo", "Zm8=" },
		     { "foo", "Zm9v" },
		     { "foob", "Zm9vYg==" },
		     { "fooba", "Zm9vYmE=" },
		     { "foobar", "Zm9vYmFy" } };
	static const char *const WRONG[] = { "Z",    "Zg",    "Zg=",   "Zg==Zg==", "Zh==",
					     "Zm9=", "====",  "Z===",  "Zm 8",     "Zm8-",
					     "Zm8_", "\nZg=", "Zg==\n" };
	struct aqe_buf b = AQE_BUF_INIT(100);

	for (size_t i = 0; i < AQE_COUNT(ROWS); i++) {
		aqe_buf_clear(&b);
		aqe_base64_encode(&b, ROWS[i].plain, strlen(ROWS[i].plain));
		ck_assert_str_eq(aqe_buf_str(&b), ROWS[i].text);
		aqe_buf_clear(&b);
		ck_assert(aqe_base64_decode(&b, ROWS[i].text, strlen(ROWS[i].text)));
		ck_assert_str_eq(aqe_buf_str(&b), ROWS[i].plain);
	}
	for (size_t i = 0; i < AQE_COUNT(WRONG); i++) {
		aqe_buf_clear(&b);
		aqe_buf_puts(&b, "x");
		ck_assert_msg(!aqe_base64_decode(&b, WRONG[i], strlen(WRONG[i])), "%s", WRONG[i]);
		ck_assert_uint_eq(b.len, 1);
	}
	aqe_buf_done(&b);
}
END_TEST

START_TEST(base64__comes_back)
{
	struct aqe_buf text = AQE_BUF_INIT(10000), plain = AQE_BUF_INIT(10000);
	unsigned char data[2000];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 31 + i / 256);
	for (size_t n = 0; n < sizeof(data); n += 13) {
		aqe_buf_clear(&text);
		aqe_buf_clear(&plain);
		aqe_base64_encode(&text, data, n);
		ck_assert_uint_eq(text.len, (n + 2) / 3 * 4);
		ck_assert(aqe_base64_decode(&plain, aqe_buf_str(&text), text.len));
		ck_assert_uint_eq(plain.len, n);
		ck_assert(n == 0 || memcmp(plain.p, data, n) == 0);
	}
	aqe_buf_done(&text);
	aqe_buf_done(&plain);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("proto");
	TCase *t = tcase_create("proto");

	tcase_add_loop_test(t, ask__takes, 0, AQE_COUNT(ASKS));
	tcase_add_loop_test(t, ask__refuses, 0, AQE_COUNT(REFUSALS));
	tcase_add_loop_test(t, ask__holds_its_limits, 0, 2);
	tcase_add_test(t, key__depends_on_what_matters);
	tcase_add_test(t, question__asks_for_some);
	tcase_add_loop_test(t, answer__is_read, 0, AQE_COUNT(ANSWERS));
	tcase_add_loop_test(t, answer__may_be_broken, 0, AQE_COUNT(BROKEN));
	tcase_add_test(t, error__shows_the_words);
	tcase_add_test(t, models__are_read);
	tcase_add_loop_test(t, reply__is_what_clients_read, 0, 3);
	tcase_add_test(t, fault__is_what_clients_read);
	tcase_add_test(t, numbers__come_back);
	tcase_add_test(t, base64__is_the_standard_one);
	tcase_add_test(t, base64__comes_back);
	suite_add_tcase(s, t);
	return unit_run(s);
}
