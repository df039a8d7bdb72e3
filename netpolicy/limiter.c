/* SPDX-License-Identifier: MIT */
#include "netpolicy/limiter.h"

#include <stdlib.h>
#include <string.h>

#include "netpolicy/limiter_int.h"

#define SECOND_NS ((int64_t)1000000000)
#define MINUTE_NS (60 * SECOND_NS)
#define HOUR_NS   NETPOL_HOUR_NS
#define MS_NS     ((uint64_t)1000000)
#define MS_S      1000

/* One token in units of debt. Debt falls by per_minute units a nanosecond, so a token comes back
 * after exactly 60 s / per_minute, whatever that is as a fraction: nothing is ever rounded. */
#define TOKEN ((uint64_t)MINUTE_NS)

bool netpol_rate_ok(const struct netpol_rate *r)
{
	const uint32_t v[] = { r->per_minute, r->per_hour, r->burst };

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		if (v[i] < 1 || v[i] > NETPOL_RATE_MAX)
			return false;
	}
	return true;
}

static int check_rate(const struct netpol_rate *r, struct aqe_err *e)
{
	if (!netpol_rate_ok(r))
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "rate %u/min, %u/h, burst %u: each must be 1 to %d",
				   r->per_minute, r->per_hour, r->burst, NETPOL_RATE_MAX);
	return AQE_OK;
}

int netpol_limiter_new(const struct netpol_rate *r, struct netpol_limiter **ret, struct aqe_err *e)
{
	struct netpol_limiter *l;
	int rc = check_rate(r, e);

	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	/* untouched pages of a large ring cost nothing */
	if (l)
		l->ring = calloc(r->per_hour, sizeof(*l->ring));
	if (!l || !l->ring) {
		netpol_limiter_free(l);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a rate limiter");
	}
	l->rate = *r;
	l->cap = r->per_hour;
	*ret = l;
	return AQE_OK;
}

void netpol_limiter_free(struct netpol_limiter *l)
{
	if (!l)
		return;
	free(l->ring);
	free(l);
}

/* ---- time ---- */

/* Time never goes back: an earlier one counts as the last one seen. */
static int64_t forward(const struct netpol_limiter *l, int64_t now_ns)
{
	return now_ns > l->at ? now_ns : l->at;
}

uint64_t netpol_limiter_debt(const struct netpol_limiter *l, int64_t now)
{
	const uint64_t elapsed = (uint64_t)now - (uint64_t)l->at;

	/* checked by division first: the product of a long time would overflow */
	if (elapsed >= l->debt / l->rate.per_minute + 1)
		return 0;
	return l->debt - elapsed * l->rate.per_minute;
}

/* Brings the debt up to `now`. */
static void settle(struct netpol_limiter *l, int64_t now)
{
	l->debt = netpol_limiter_debt(l, now);
	l->at = now;
}

/* ---- the windows ---- */

int64_t netpol_limiter_kth_last(const struct netpol_limiter *l, uint32_t k)
{
	return l->ring[(l->next + l->cap - k) % l->cap];
}

/* How long until fewer than `max` admissions lie in the `window` before that moment. */
static uint64_t window_wait(const struct netpol_limiter *l, int64_t now, uint32_t max,
			    int64_t window)
{
	int64_t age;

	if (l->n < max)
		return 0;
	age = now - netpol_limiter_kth_last(l, max);
	return age >= window ? 0 : (uint64_t)(window - age);
}

uint32_t netpol_limiter_count(const struct netpol_limiter *l, int64_t now, int64_t window)
{
	uint32_t low = 0, high = l->n; /* low are younger, those beyond high are not */

	while (low < high) {
		const uint32_t mid = low + (high - low + 1) / 2;

		if (now - netpol_limiter_kth_last(l, mid) < window)
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}

/* ---- the gate ---- */

static uint64_t bucket_wait(const struct netpol_limiter *l, int64_t now)
{
	const uint64_t limit = (l->rate.burst - 1) * TOKEN, debt = netpol_limiter_debt(l, now);

	if (debt <= limit)
		return 0;
	return (debt - limit + l->rate.per_minute - 1) / l->rate.per_minute;
}

/* The longest wait of the three constraints, in ns. */
static uint64_t wait_ns(const struct netpol_limiter *l, int64_t now)
{
	const uint64_t waits[] = {
		bucket_wait(l, now),
		/* with fewer an hour than a minute the hour says it all */
		l->rate.per_minute <= l->rate.per_hour
			? window_wait(l, now, l->rate.per_minute, MINUTE_NS)
			: 0,
		window_wait(l, now, l->rate.per_hour, HOUR_NS),
	};
	uint64_t longest = 0;

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		longest = waits[i] > longest ? waits[i] : longest;
	return longest;
}

void netpol_limiter_peek(const struct netpol_limiter *l, int64_t now_ns, struct netpol_limit *ret)
{
	const uint64_t wait = wait_ns(l, forward(l, now_ns));

	ret->allowed = wait == 0;
	ret->retry_ms = (wait + MS_NS - 1) / MS_NS;
}

void netpol_limiter_push(struct netpol_limiter *l, int64_t when)
{
	l->ring[l->next] = when;
	l->next = (l->next + 1) % l->cap;
	if (l->n < l->cap)
		l->n++;
}

void netpol_limiter_consume(struct netpol_limiter *l, int64_t now_ns, struct netpol_limit *ret)
{
	const int64_t now = forward(l, now_ns);

	netpol_limiter_peek(l, now, ret);
	settle(l, now);
	if (!ret->allowed)
		return;
	netpol_limiter_push(l, now);
	l->debt += TOKEN;
}

uint64_t netpol_retry_after_s(uint64_t retry_ms)
{
	const uint64_t s = (retry_ms + MS_S - 1) / MS_S;

	return s ? s : 1;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

void netpol_limiter_status(const struct netpol_limiter *l, int64_t now_ns,
			   struct netpol_limiter_status *ret)
{
	const int64_t now = forward(l, now_ns);
	const uint64_t debt = netpol_limiter_debt(l, now), full = l->rate.burst * TOKEN;
	const uint32_t tokens = debt >= full ? 0 : (uint32_t)((full - debt) / TOKEN);
	uint32_t room;

	ret->current = netpol_limiter_count(l, now, MINUTE_NS);
	ret->in_hour = netpol_limiter_count(l, now, HOUR_NS);
	/* after the limits were lowered there can be more in a window than may be */
	room = l->rate.per_minute - min_u32(ret->current, l->rate.per_minute);
	room = min_u32(room, l->rate.per_hour - min_u32(ret->in_hour, l->rate.per_hour));
	ret->remaining = min_u32(room, tokens);
	ret->limited = ret->remaining == 0;
	ret->reset_in_ms = 0;
	if (ret->current) {
		const int64_t left = MINUTE_NS - (now - netpol_limiter_kth_last(l, ret->current));

		ret->reset_in_ms = ((uint64_t)left + MS_NS - 1) / MS_NS;
	}
}

/* ---- changes ---- */

bool netpol_limiter_room(struct netpol_limiter *l, uint32_t cap)
{
	int64_t *ring;

	if (cap <= l->cap)
		return true;
	ring = calloc(cap, sizeof(*ring));
	if (!ring)
		return false;
	for (uint32_t i = 0; i < l->n; i++)
		ring[i] = netpol_limiter_kth_last(l, l->n - i);
	free(l->ring);
	l->ring = ring;
	l->cap = cap;
	l->next = l->n; /* below cap: it was at most the old one */
	return true;
}

int netpol_limiter_reconf(struct netpol_limiter *l, int64_t now_ns, const struct netpol_rate *r,
			  struct aqe_err *e)
{
	const uint64_t before = l->rate.burst * TOKEN, full = r->burst * TOKEN;
	int rc = check_rate(r, e);

	if (rc)
		return rc;
	if (!netpol_limiter_room(l, r->per_hour))
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a rate limiter");
	settle(l, forward(l, now_ns));
	/* tokens are burst - debt: what there was, at most the new burst */
	l->debt = full + l->debt > before ? full + l->debt - before : 0;
	l->rate = *r;
	return AQE_OK;
}

void netpol_limiter_reset(struct netpol_limiter *l)
{
	l->debt = 0;
	l->n = l->next = 0;
}

void netpol_limiter_drain(struct netpol_limiter *l, int64_t now_ns)
{
	const uint32_t spent = min_u32(l->rate.per_minute, l->rate.per_hour);

	netpol_limiter_reset(l);
	settle(l, forward(l, now_ns));
	for (uint32_t i = 0; i < spent; i++)
		netpol_limiter_push(l, l->at);
	l->debt = l->rate.burst * TOKEN;
}
