/* SPDX-License-Identifier: MIT */
/* The saved states, one after the other, behind a list that says whose they are:
 *
 *   "AQERATE1", n    12   magic; states
 *   name, length  72*n    "": the type's own, the first; length 0: lost
 *   SHA-256          32   of everything before it
 *   states                as netpol_limiter_save() writes them, each with a checksum of its own
 */
#include "netpolicy/egress/rates.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"

#define MAGIC      "AQERATE1"
#define MAGIC_LEN  8
#define SUM_LEN    32
#define N_MAX      ((size_t)NETPOL_RATES_GATES + 1)
#define STATE_HEAD 256 /* of one state at most, beside its admissions */

struct head {
	char magic[MAGIC_LEN];
	uint32_t n;
};
struct row {
	char name[NETPOL_GATEWAY_NAME_MAX + 4];
	uint32_t len;
};
#define LIST_MAX (sizeof(struct head) + N_MAX * sizeof(struct row) + SUM_LEN)
_Static_assert(sizeof(struct head) == 12 && sizeof(struct row) == 72, "no padding in a file");
/* The type's own always has room, and every route that did little. */
_Static_assert(LIST_MAX + N_MAX * STATE_HEAD + 8 * (size_t)NETPOL_RATE_MAX < NETPOL_SHARED_STATE,
	       "room");

const struct netpol_shared_place *netpol_shared_get(const struct netpol_shared *s,
						    uint32_t *ret_len, uint32_t *ret_n_log)
{
	uint32_t turn = __atomic_load_n(&s->turn, __ATOMIC_ACQUIRE);
	const struct netpol_shared_place *p;

	if (turn < 1 || turn > 2)
		return NULL;
	p = &s->place[turn - 1];
	*ret_len = __atomic_load_n(&p->len, __ATOMIC_RELAXED);
	*ret_n_log = __atomic_load_n(&p->n_log, __ATOMIC_ACQUIRE);
	return *ret_len <= NETPOL_SHARED_STATE && *ret_n_log <= NETPOL_SHARED_LOG ? p : NULL;
}

/* ---- writing ---- */

struct saving {
	struct aqe_buf list, states;
	const struct netpol_when *at;
};

static bool save_one(struct saving *s, const char *name, const struct netpol_limiter *l)
{
	struct netpol_limiter_status now;
	const size_t before = s->states.len;
	struct row row;

	memset(&row, 0, sizeof(row));
	memcpy(row.name, name, strlen(name));
	netpol_limiter_status(l, s->at->boottime_ns, &now);
	if (before + STATE_HEAD + (size_t)8 * now.in_hour <= s->states.max &&
	    netpol_limiter_save(l, s->at, &s->states, NULL) < 0)
		return false;
	row.len = (uint32_t)(s->states.len - before);
	return aqe_buf_add(&s->list, &row, sizeof(row)) == 0;
}

static bool save_all(struct saving *s, const struct netpol_rates *r)
{
	struct head head = { MAGIC, (uint32_t)r->gates->n + 1 };
	uint8_t sum[SUM_LEN];
	bool ok = r->gates->n <= NETPOL_RATES_GATES &&
		  aqe_buf_add(&s->list, &head, sizeof(head)) == 0 && save_one(s, "", r->own);

	for (size_t i = 0; ok && i < r->gates->n; i++)
		ok = save_one(s, r->gates->list[i].name, r->gates->list[i].limiter);
	if (!ok)
		return false;
	aqe_sha256(s->list.p, s->list.len, sum);
	return aqe_buf_add(&s->list, sum, sizeof(sum)) == 0;
}

size_t netpol_rates_share(struct netpol_shared *s, const struct netpol_rates *r,
			  const struct netpol_when *at)
{
	struct saving saving = { AQE_BUF_INIT(LIST_MAX),
				 AQE_BUF_INIT(NETPOL_SHARED_STATE - LIST_MAX), at };
	uint32_t slot = __atomic_load_n(&s->turn, __ATOMIC_RELAXED) == 1 ? 1 : 0;
	struct netpol_shared_place *p = &s->place[slot];
	size_t len = 0;

	if (save_all(&saving, r)) {
		len = saving.list.len + saving.states.len;
		p->n_log = 0;
		p->len = (uint32_t)len;
		memcpy(p->state, saving.list.p, saving.list.len);
		memcpy(p->state + saving.list.len, saving.states.p, saving.states.len);
		__atomic_store_n(&s->turn, slot + 1, __ATOMIC_RELEASE);
	}
	aqe_buf_done(&saving.list);
	aqe_buf_done(&saving.states);
	return len;
}

bool netpol_rates_spent(struct netpol_shared *s, unsigned which, int64_t at_ns)
{
	uint32_t turn = __atomic_load_n(&s->turn, __ATOMIC_RELAXED);
	struct netpol_shared_place *p = &s->place[turn == 2];

	if (turn == 0 || p->n_log == NETPOL_SHARED_LOG)
		return false;
	p->log_ns[p->n_log] = at_ns;
	p->log_of[p->n_log] = (uint16_t)which;
	__atomic_store_n(&p->n_log, p->n_log + 1, __ATOMIC_RELEASE);
	return true;
}

/* ---- reading ---- */

static struct netpol_limiter *limiter_of(const struct netpol_rates *r, const char *name)
{
	if (!*name)
		return r->own;
	for (size_t i = 0; i < r->gates->n; i++) {
		if (aqe_str_eq(r->gates->list[i].name, name))
			return r->gates->list[i].limiter;
	}
	return NULL;
}

static struct row row_at(const uint8_t *p, uint32_t i)
{
	struct row row;

	memcpy(&row, p + sizeof(struct head) + i * sizeof(row), sizeof(row));
	return row;
}

/* The number of states, *ret_list the bytes before them; 0: not ours, or damaged. */
static uint32_t read_list(const uint8_t *p, size_t len, size_t *ret_list)
{
	struct head head;
	size_t list, states = 0;
	uint8_t sum[SUM_LEN];

	if (len < sizeof(head))
		return 0;
	memcpy(&head, p, sizeof(head));
	list = sizeof(head) + head.n * sizeof(struct row);
	if (memcmp(head.magic, MAGIC, MAGIC_LEN) != 0 || head.n < 1 || head.n > N_MAX ||
	    len < list + SUM_LEN)
		return 0;
	aqe_sha256(p, list, sum);
	if (memcmp(sum, p + list, SUM_LEN) != 0)
		return 0;
	for (uint32_t i = 0; i < head.n; i++) {
		const struct row row = row_at(p, i);

		states += row.len;
		if (!memchr(row.name, '\0', sizeof(row.name)) || (i == 0) != !*row.name)
			return 0;
	}
	*ret_list = list + SUM_LEN;
	return states == len - *ret_list ? head.n : 0;
}

static void drain_all(const struct netpol_rates *r, int64_t now_ns)
{
	netpol_limiter_drain(r->own, now_ns);
	for (size_t i = 0; i < r->gates->n; i++)
		netpol_limiter_drain(r->gates->list[i].limiter, now_ns);
}

/* False: the list is damaged. `to`: the limiters by their places in it, NULL for one that is gone.
 */
static bool restore_all(const struct netpol_shared_place *p, uint32_t len,
			const struct netpol_rates *r, const struct netpol_when *when,
			struct netpol_limiter *to[N_MAX])
{
	size_t at = 0;
	const uint32_t n = read_list(p->state, len, &at);

	for (uint32_t i = 0; i < n; i++) {
		const struct row row = row_at(p->state, i);

		to[i] = limiter_of(r, row.name);
		if (to[i]) /* one that fails is drained */
			(void)!netpol_limiter_restore(to[i], p->state + at, row.len, when, NULL);
		at += row.len;
	}
	return n > 0;
}

bool netpol_rates_restore(const struct netpol_shared *s, const struct netpol_rates *r,
			  const struct netpol_when *now)
{
	struct netpol_limiter *to[N_MAX] = { NULL };
	struct netpol_when when = *now;
	uint32_t len = 0, n_log = 0;
	const struct netpol_shared_place *p = netpol_shared_get(s, &len, &n_log);
	struct netpol_limit l;

	if (!p)
		return false;
	/* as of the first admission behind them, so that each finds what it found then */
	if (n_log > 0 && p->log_ns[0] < now->boottime_ns)
		when.boottime_ns = p->log_ns[0];
	if (!restore_all(p, len, r, &when, to)) {
		drain_all(r, now->boottime_ns);
		return true;
	}
	for (uint32_t i = 0; i < n_log; i++) {
		const int64_t at =
			p->log_ns[i] < now->boottime_ns ? p->log_ns[i] : now->boottime_ns;

		if (p->log_of[i] < N_MAX && to[p->log_of[i]])
			netpol_limiter_consume(to[p->log_of[i]], at, &l);
	}
	return true;
}
