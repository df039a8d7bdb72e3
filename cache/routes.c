/* SPDX-License-Identifier: MIT */
/* What the gateway answers, without sockets. */
#include <string.h>

#include "cache/gateway.h"
#include "cache/request.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)128 << 20)
#define DENY_MAX  63 /* bytes of a reason */

struct reply {
	int status;
	bool keep;
	bool measured; /* the counts below are told */
	size_t hits, fetched, shared;
	int64_t retry_after_s;
	char deny[DENY_MAX + 1]; /* the network policy's reason, "": it did not refuse */
	struct aqe_buf body;
};

static const char *reason(int status)
{
	static const struct {
		int status;
		const char *text;
	} REASONS[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 411, "Length Required" },
		{ 413, "Content Too Large" },
		{ 414, "URI Too Long" },
		{ 429, "Too Many Requests" },
		{ 431, "Request Header Fields Too Large" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
		{ 505, "HTTP Version Not Supported" },
	};

	for (size_t i = 0; i < AQE_COUNT(REASONS); i++)
		if (REASONS[i].status == status)
			return REASONS[i].text;
	return "Status";
}

/* "hit": all was there; "miss": nothing was; "partial". Shared texts were not paid for here. */
static const char *verdict(const struct reply *r)
{
	if (r->fetched == 0)
		return "hit";
	return r->hits + r->shared > 0 ? "partial" : "miss";
}

static void emit(const struct reply *r, bool with_body, struct aqe_buf *b)
{
	aqe_buf_addf(b,
		     "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
		     "Connection: %s\r\n",
		     r->status, reason(r->status), r->body.len, r->keep ? "keep-alive" : "close");
	if (r->measured)
		aqe_buf_addf(
			b,
			"X-Aqe-Cache: %s\r\nX-Aqe-Cache-Hits: %zu\r\nX-Aqe-Cache-Misses: %zu\r\n"
			"X-Aqe-Cache-Shared: %zu\r\n",
			verdict(r), r->hits, r->fetched, r->shared);
	if (r->retry_after_s >= 0)
		aqe_buf_addf(b, "Retry-After: %lld\r\n", (long long)r->retry_after_s);
	if (r->deny[0])
		aqe_buf_addf(b, "X-Aqe-Reason: %s\r\nX-Aqe-Deny: %s\r\n", r->deny, r->deny);
	aqe_buf_puts(b, "\r\n");
	if (with_body)
		aqe_buf_add(b, r->body.p, r->body.len);
}

static void fail(struct reply *r, enum cache_dialect d, int status, const char *text)
{
	r->status = status;
	aqe_buf_clear(&r->body);
	cache_proto_fault(d, status, text, &r->body);
}

/* The policy's word ends the text (upstream.h), through all that wraps and passes it on. Anything
 * but a plain word is none: it stands in a head. */
static void note_deny(struct reply *r, const struct aqe_err *e)
{
	static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
	const char *word = strrchr(e->text, ' ');
	size_t n;

	if (e->code != AQE_E_REFUSED || r->status == 404) /* that one is no model of ours */
		return;
	word = word ? word + 1 : e->text;
	n = strlen(word);
	if (word - e->text < 2 || word[-2] != ':' || n == 0 || n > DENY_MAX ||
	    strspn(word, LETTERS) != n)
		word = r->status == 429 ? "rate_limit_exceeded" : "policy_denied";
	memcpy(r->deny, word, strlen(word) + 1);
}

/* A failure on the way to the upstream. */
static void fail_as(struct reply *r, enum cache_dialect d, int status, const struct aqe_err *e)
{
	fail(r, d, status >= 400 ? status : 500, e->text);
	note_deny(r, e);
}

/* ---- routes ---- */

struct asked {
	struct cache_embedder *em;
	struct cache *cache;
	const struct cache_request *request;
	enum cache_dialect dialect;
};

static void embed(const struct asked *q, struct reply *r)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct cache_embedded got = CACHE_EMBEDDED_INIT;
	const struct aqe_buf *body = &q->request->body;
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_ask ask = { .n = 0 };
	int rc = a ? cache_ask_read(a, q->dialect, aqe_buf_str(body), body->len, &ask, &e)
		   : aqe_err_set(&e, AQE_E_NOMEM, 0, "out of memory");

	if (rc) {
		fail(r, q->dialect, rc == AQE_E_NOMEM ? 500 : 400, e.text);
		return;
	}
	if (ask.n == 0 && q->dialect == CACHE_OPENAI) {
		fail(r, q->dialect, 400, "'input' is empty");
		return;
	}
	if (ask.n > 0)
		rc = cache_embed(q->em, &ask, &got, &e);
	if (!rc)
		rc = cache_proto_reply(&ask, got.items, got.tokens, &r->body, &e);
	if (rc) {
		fail_as(r, q->dialect, got.status, &e);
		r->retry_after_s = got.retry_after_s;
	} else {
		r->measured = true;
		r->hits = got.hits;
		r->fetched = got.fetched;
		r->shared = got.shared;
	}
	cache_embedded_done(&got);
}

static void tags(const struct asked *q, struct reply *r)
{
	struct aqe_err e = AQE_ERR_INIT;
	int status = 500;

	if (cache_embed_tags(q->em, &r->body, &status, &e))
		fail_as(r, q->dialect, status, &e);
}

/* Ollama's list in OpenAI's form. */
static void models(const struct asked *q, struct reply *r)
{
	AQE_AUTO_BUF struct aqe_buf list = AQE_BUF_INIT((size_t)4 << 20);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *root = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	const struct aqe_json *array;
	int status = 500;

	if (cache_embed_tags(q->em, &list, &status, &e) || !a ||
	    aqe_json_parse(a, aqe_buf_str(&list), list.len, &AQE_JSON_LIMITS_DEFAULT, &root, &e)) {
		fail_as(r, q->dialect, status, &e);
		return;
	}
	array = aqe_json_get(root, "models");
	aqe_buf_puts(&r->body, "{\"object\":\"list\",\"data\":[");
	for (const struct aqe_json *v = array ? array->first : NULL; v; v = v->next) {
		aqe_buf_puts(&r->body, v == array->first ? "{\"id\":" : ",{\"id\":");
		aqe_json_emit_str(&r->body, aqe_json_str(aqe_json_get(v, "name")));
		aqe_buf_puts(&r->body, ",\"object\":\"model\",\"created\":0,\"owned_by\":\"\"}");
	}
	aqe_buf_puts(&r->body, "]}");
}

void cache_gateway_stats(struct cache *c, struct aqe_buf *b)
{
	struct cache_stats s;
	uint64_t too_old;

	cache_stats(c, &s);
	too_old = s.store.expired + s.too_old;
	aqe_buf_addf(
		b,
		"{\"version\":1,\"backend\":\"%s\",\"twoLevel\":%s,\"degraded\":%s,"
		"\"entries\":%llu,\"bytes\":%llu,\"hits\":%llu,\"misses\":%llu,\"hitRate\":%.4f,"
		"\"stored\":%llu,",
		s.backend, s.two_level ? "true" : "false", s.store.degraded ? "true" : "false",
		(unsigned long long)s.store.entries, (unsigned long long)s.store.bytes,
		(unsigned long long)s.hits, (unsigned long long)s.misses, cache_stats_rate(&s),
		(unsigned long long)s.stored);
	aqe_buf_addf(
		b,
		"\"evictions\":%llu,\"expired\":%llu,\"damaged\":%llu,\"wrongDimension\":%llu,"
		"\"refused\":%llu,\"readErrors\":%llu,\"writeErrors\":%llu,\"storeErrors\":%llu,"
		"\"outages\":%llu,",
		(unsigned long long)s.store.evictions, (unsigned long long)too_old,
		(unsigned long long)s.damaged, (unsigned long long)s.wrong_dimension,
		(unsigned long long)s.store.refused, (unsigned long long)s.read_errors,
		(unsigned long long)s.write_errors, (unsigned long long)s.store.errors,
		(unsigned long long)s.store.outages);
	aqe_buf_addf(b, "\"lookupUs\":{\"p50\":%.1f,\"p90\":%.1f,\"p99\":%.1f,\"max\":%.1f}}",
		     s.p50_us, s.p90_us, s.p99_us, s.max_us);
}

static void stats(const struct asked *q, struct reply *r)
{
	cache_gateway_stats(q->cache, &r->body);
}

static void hello(const struct asked *q, struct reply *r)
{
	(void)q;
	aqe_buf_puts(&r->body, "{\"service\":\"aqe embedding cache\"}");
}

static const struct {
	const char *method, *path;
	void (*fn)(const struct asked *q, struct reply *r);
	enum cache_dialect dialect;
} ROUTES[] = {
	{ "POST", "/api/embed", embed, CACHE_OLLAMA_EMBED },
	{ "POST", "/api/embeddings", embed, CACHE_OLLAMA_LEGACY },
	{ "POST", "/v1/embeddings", embed, CACHE_OPENAI },
	{ "GET", "/api/tags", tags, CACHE_OLLAMA_EMBED },
	{ "GET", "/v1/models", models, CACHE_OPENAI },
	{ "GET", "/aqe/cache/stats", stats, CACHE_OLLAMA_EMBED },
	{ "GET", "/", hello, CACHE_OLLAMA_EMBED },
};

void cache_gateway_answer(struct cache_embedder *em, struct cache *c, const struct cache_request *q,
			  struct aqe_buf *b)
{
	struct reply r = { .status = 404,
			   .keep = q->keep,
			   .retry_after_s = -1,
			   .body = AQE_BUF_INIT(CACHE_ANSWER_MAX) };
	struct asked asked = { em, c, q, CACHE_OLLAMA_EMBED };
	const bool head = strcmp(q->method, "HEAD") == 0;
	size_t i;

	for (i = 0; i < AQE_COUNT(ROUTES); i++) {
		if (strcmp(ROUTES[i].path, q->path) != 0)
			continue;
		r.status = 405;
		if (strcmp(ROUTES[i].method, head ? "GET" : q->method) == 0)
			break;
	}
	if (i < AQE_COUNT(ROUTES)) {
		asked.dialect = ROUTES[i].dialect;
		r.status = 200;
		ROUTES[i].fn(&asked, &r);
	} else {
		fail(&r, strncmp(q->path, "/v1/", 4) == 0 ? CACHE_OPENAI : CACHE_OLLAMA_EMBED,
		     r.status, r.status == 405 ? "method not allowed" : "no such path");
	}
	if (r.body.failed)
		fail(&r, asked.dialect, 500, "the answer is too large");
	emit(&r, !head, b);
	aqe_buf_done(&r.body);
}

void cache_gateway_refuse(int status, struct aqe_buf *b)
{
	struct reply r = { .status = status, .retry_after_s = -1, .body = AQE_BUF_INIT(1024) };

	cache_proto_fault(CACHE_OLLAMA_EMBED, status, reason(status), &r.body);
	emit(&r, true, b);
	aqe_buf_done(&r.body);
}
