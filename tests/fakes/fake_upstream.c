/* SPDX-License-Identifier: MIT */
#include "tests/fakes/fake_upstream.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "shim/core/cleanup.h"
#include "shim/core/json.h"

float fake_upstream_number(const char *text, size_t i)
{
	unsigned h = 2166136261U + (unsigned)i;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619U;
	return (float)(h >> 8) / 16777216.0f - 0.5f;
}

static void emit(const struct fake_upstream *u, const char *text, struct aqe_buf *b)
{
	aqe_buf_putc(b, '[');
	for (unsigned i = 0; i < u->dim; i++)
		aqe_buf_addf(b, "%s%.9g", i ? "," : "", (double)fake_upstream_number(text, i));
	aqe_buf_putc(b, ']');
}

static void tags(struct fake_upstream *u, struct cache_exchange *x)
{
	u->tags++;
	aqe_buf_puts(&x->answer, "{\"models\":[{\"name\":\"other\",\"digest\":\"o\"}");
	if (u->digest)
		aqe_buf_addf(&x->answer, ",{\"name\":\"m:latest\",\"digest\":\"%s\"}", u->digest);
	aqe_buf_puts(&x->answer, "]}");
}

/* A text, or the JSON of what stands for one. */
static void text_of(const struct aqe_json *v, struct aqe_buf *b)
{
	aqe_buf_clear(b);
	if (v->type == AQE_JSON_STRING)
		aqe_buf_puts(b, v->text);
	else
		(void)!aqe_json_emit(v, AQE_JSON_COMPACT, b, NULL);
}

static unsigned answer(struct fake_upstream *u, struct cache_exchange *x, const struct aqe_json *q)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(1 << 22);
	const struct aqe_json *input = aqe_json_get(q, "input");
	const int openai = strstr(x->path, "/v1/") != NULL;
	unsigned n = 0;

	if (!input) {
		aqe_buf_puts(&x->answer, "{\"embedding\":");
		emit(u, aqe_json_str(aqe_json_get(q, "prompt")), &x->answer);
		aqe_buf_putc(&x->answer, '}');
		return 1;
	}
	aqe_buf_puts(&x->answer, openai ? "{\"data\":[" : "{\"embeddings\":[");
	for (const struct aqe_json *v = input->first; v; v = v->next, n++) {
		aqe_buf_puts(&x->answer, n ? "," : "");
		if (openai)
			aqe_buf_addf(&x->answer, "{\"index\":%u,\"embedding\":", n);
		text_of(v, &text);
		emit(u, aqe_buf_str(&text), &x->answer);
		aqe_buf_puts(&x->answer, openai ? "}" : "");
	}
	aqe_buf_addf(&x->answer,
		     openai ? "],\"usage\":{\"total_tokens\":%u}}" : "],\"prompt_eval_count\":%u}",
		     n * 10);
	return n;
}

static int respond(struct fake_upstream *u, struct cache_exchange *x, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	struct aqe_json *q = NULL;
	unsigned n;
	int rc = 0;

	x->status = 200;
	x->retry_after_s = u->retry_after_s;
	if (u->plan[u->planned])
		rc = u->plan[u->planned++];
	if (rc < 0)
		return aqe_err_set(e, (enum aqe_code)rc, 0, "as told");
	if (rc > 0) {
		x->status = rc;
		aqe_buf_puts(&x->answer, "{\"error\":\"as told\"}");
		return 0;
	}
	if (u->body) {
		aqe_buf_puts(&x->answer, u->body);
		return 0;
	}
	limits.string = (size_t)4 << 20;
	limits.bytes = (size_t)8 << 20;
	rc = aqe_json_parse(a, x->body->p, x->body->len, &limits, &q, e);
	if (rc)
		return rc;
	n = answer(u, x, q);
	u->texts += n;
	if (u->calls <= FAKE_UPSTREAM_LOG)
		u->batch[u->calls - 1] = n;
	return 0;
}

static int send_to(void *self, struct cache_exchange *x, struct aqe_err *e)
{
	struct fake_upstream *u = self;
	const struct timespec slow = { u->delay_ms / 1000, (long)(u->delay_ms % 1000) * 1000000 };
	int rc = 0;

	if (u->delay_ms)
		nanosleep(&slow, NULL);
	pthread_mutex_lock(&u->lock);
	snprintf(u->last_path, sizeof(u->last_path), "%s", x->path);
	if (strcmp(x->path, "/api/tags") == 0 && !u->plan[u->planned]) {
		x->status = 200;
		tags(u, x);
	} else {
		u->calls += strcmp(x->path, "/api/tags") != 0;
		rc = respond(u, x, e);
	}
	pthread_mutex_unlock(&u->lock);
	return rc;
}

static int may_fetch(void *self, const struct cache_fetch *f, int *ret_status,
		     int64_t *ret_retry_after_s, struct aqe_err *e)
{
	struct fake_upstream *u = self;
	int rc = 0;

	(void)f;
	pthread_mutex_lock(&u->lock);
	u->asked++;
	if (u->refuse_status) {
		*ret_status = u->refuse_status;
		*ret_retry_after_s = 12;
		rc = aqe_err_set(e, AQE_E_REFUSED, 0, "%s",
				 u->refuse_words ? u->refuse_words : "the policy says no");
	}
	pthread_mutex_unlock(&u->lock);
	return rc;
}

static void fetched(void *self, const struct cache_fetch *f, int status, int64_t took_ms)
{
	struct fake_upstream *u = self;

	(void)f;
	(void)took_ms;
	pthread_mutex_lock(&u->lock);
	u->told++;
	u->told_status = status;
	pthread_mutex_unlock(&u->lock);
}

void fake_upstream_init(struct fake_upstream *u, unsigned dim)
{
	memset(u, 0, sizeof(*u));
	u->port = (struct cache_upstream){ send_to, u };
	u->gate = (struct cache_gate){ may_fetch, fetched, u };
	u->dim = dim;
	u->digest = "d1";
	u->retry_after_s = -1;
	pthread_mutex_init(&u->lock, NULL);
}
