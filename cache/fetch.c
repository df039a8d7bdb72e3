/* SPDX-License-Identifier: MIT */
#include "cache/fetch.h"

#include <stdbool.h>
#include <sys/random.h>
#include <time.h>

#include "cache/proto.h"
#include "shim/core/cleanup.h"

#define RETRY_AFTER_MAX_S 10 /* a longer one is passed on instead */

static int64_t mono_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void sleep_ms(uint64_t ms)
{
	const struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };

	(void)nanosleep(&t, NULL); /* woken early: asked early */
}

/* Half of it to all of it, so that many agents do not come back at once. */
static uint64_t jitter(uint64_t ms)
{
	uint32_t r = 0;

	(void)!getrandom(&r, sizeof(r), GRND_NONBLOCK); /* 0 will do */
	return ms / 2 + (ms / 2) * r / UINT32_MAX;
}

/* Whether another try may help. */
static bool is_passing(int rc, int status)
{
	if (rc)
		return rc == AQE_E_SYS || rc == AQE_E_MALFORMED;
	return status == 429 || status == 500 || (status >= 502 && status <= 504);
}

/* What the agent gets for a failure of the way to the upstream. */
static int status_of(int rc)
{
	return rc == AQE_E_TIMEOUT ? 504 : rc == AQE_E_REFUSED ? 403 : 502;
}

static int one_try(const struct cache_fetcher *f, struct cache_exchange *x,
		   const struct cache_fetch *what, struct aqe_err *e)
{
	const int64_t began = mono_ms();
	int rc;

	aqe_buf_clear(&x->answer);
	x->status = 0;
	x->retry_after_s = -1;
	x->timeout_ms = (unsigned)f->cfg->timeout_ms;
	rc = f->upstream.send(f->upstream.self, x, e);
	if (rc && rc != AQE_E_REFUSED)
		x->status = 0;
	if (f->gate.fetched)
		f->gate.fetched(f->gate.self, what, x->status, mono_ms() - began);
	return rc;
}

static int say_status(struct cache_exchange *x, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf words = AQE_BUF_INIT(2048);
	const int status = x->status;

	cache_proto_error(&x->answer, &words);
	if (status < 400 || status > 599)
		x->status = 502; /* a redirect, or nothing a client would understand */
	return aqe_err_set(e, AQE_E_UNKNOWN, 0, "upstream: status %d%s%s", status,
			   words.len ? ": " : "", aqe_buf_str(&words));
}

int cache_fetch(const struct cache_fetcher *f, struct cache_exchange *x, uint64_t texts,
		struct aqe_err *e)
{
	struct cache_fetch what = { f->cfg->url, x->method, x->path, texts, 0 };
	uint64_t pause = f->cfg->backoff_ms, wait;
	int rc = 0;

	for (;;) {
		what.attempt++;
		x->status = 403;
		if (f->gate.may_fetch) {
			rc = f->gate.may_fetch(f->gate.self, &what, &x->status, &x->retry_after_s,
					       e);
			if (rc)
				return rc;
		}
		rc = one_try(f, x, &what, e);
		if (!rc && x->status >= 200 && x->status < 300)
			return 0;
		wait = jitter(pause);
		if (x->retry_after_s > 0 && wait < (uint64_t)x->retry_after_s * 1000)
			wait = (uint64_t)x->retry_after_s * 1000;
		if (!is_passing(rc, x->status) || what.attempt >= f->cfg->tries ||
		    x->retry_after_s > RETRY_AFTER_MAX_S)
			break;
		sleep_ms(wait);
		pause *= 2;
	}
	if (!rc)
		return say_status(x, e);
	if (rc != AQE_E_REFUSED || x->status < 400) /* who refuses may say how */
		x->status = status_of(rc);
	return e ? aqe_err_wrap(e, "upstream") : rc;
}
