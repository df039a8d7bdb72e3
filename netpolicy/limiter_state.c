/* SPDX-License-Identifier: MIT */
/* A limiter's state across restarts. All numbers little-endian:
 *
 *   "AQELIM1\n"  8   magic
 *   boot id     36   text
 *   boottime     8   ns, when saved
 *   wall         8   ns, when saved
 *   debt         8   at that time
 *   burst        4   that the debt belongs to
 *   n            4   admissions of the last hour
 *   ages       8*n   ns before that time, falling
 *   SHA-256     32   of everything before it
 */
#include <string.h>
#include <time.h>

#include "netpolicy/limiter_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/sha256.h"

#define MAGIC        "AQELIM1\n"
#define MAGIC_LEN    8
#define BOOT_LEN     36
#define HEAD_LEN     (MAGIC_LEN + BOOT_LEN + 3 * 8 + 2 * 4)
#define SUM_LEN      32
#define STATE_MAX    (HEAD_LEN + (size_t)NETPOL_RATE_MAX * 8 + SUM_LEN)
#define BOOT_ID_PATH "sys/kernel/random/boot_id"
#define TOKEN        ((uint64_t)60 * 1000000000)

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(id, &ts); /* cannot fail with a valid clock and pointer */
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t netpol_boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

int netpol_when_now(struct netpol_when *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(64);
	AQE_AUTO_FD int proc = -1;
	int rc = aqe_fs_open_dir("/proc", &proc, e);

	if (!rc)
		rc = aqe_fs_read_kernel(proc, BOOT_ID_PATH, &b, e);
	if (rc)
		return aqe_err_wrap(e, "boot id");
	if (b.len < BOOT_LEN)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "boot id is too short");
	memcpy(ret->boot_id, b.p, BOOT_LEN);
	ret->boot_id[BOOT_LEN] = '\0';
	ret->boottime_ns = netpol_boottime_ns();
	ret->wall_ns = clock_ns(CLOCK_REALTIME);
	return AQE_OK;
}

/* ---- writing ---- */

static void put_le(struct aqe_buf *b, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		(void)aqe_buf_putc(b, (char)(v >> (8 * i)));
}

int netpol_limiter_save(const struct netpol_limiter *l, const struct netpol_when *at,
			struct aqe_buf *b, struct aqe_err *e)
{
	const int64_t now = at->boottime_ns > l->at ? at->boottime_ns : l->at;
	const uint32_t n = netpol_limiter_count(l, now, NETPOL_HOUR_NS);
	const size_t start = b->len;
	uint8_t sum[SUM_LEN];

	(void)aqe_buf_add(b, MAGIC, MAGIC_LEN);
	(void)aqe_buf_addf(b, "%-36.36s", at->boot_id);
	put_le(b, (uint64_t)now, 8);
	put_le(b, (uint64_t)at->wall_ns, 8);
	put_le(b, netpol_limiter_debt(l, now), 8);
	put_le(b, l->rate.burst, 4);
	put_le(b, n, 4);
	for (uint32_t k = n; k; k--)
		put_le(b, (uint64_t)(now - netpol_limiter_kth_last(l, k)), 8);
	if (aqe_buf_ok(b, e))
		return aqe_err_wrap(e, "state of a rate limiter");
	aqe_sha256(b->p + start, b->len - start, sum);
	(void)aqe_buf_add(b, sum, sizeof(sum));
	return aqe_buf_ok(b, e) ? aqe_err_wrap(e, "state of a rate limiter") : AQE_OK;
}

int netpol_limiter_save_file(const struct netpol_limiter *l, int dirfd, const char *name,
			     const struct netpol_when *at, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(STATE_MAX);
	int rc = netpol_limiter_save(l, at, &b, e);

	return rc ? rc : aqe_fs_write_file(dirfd, name, 0600, b.p, b.len, e);
}

/* ---- reading ---- */

static uint64_t get_le(const uint8_t *p, size_t bytes)
{
	uint64_t v = 0;

	while (bytes)
		v = v << 8 | p[--bytes];
	return v;
}

struct state {
	const uint8_t *boot, *ages;
	int64_t boottime, wall;
	uint64_t debt;
	uint32_t burst, n;
};

static const char *read_state(const uint8_t *p, size_t n, struct state *ret)
{
	const uint8_t *at = p + MAGIC_LEN + BOOT_LEN;
	uint8_t sum[SUM_LEN];

	if (n < HEAD_LEN + SUM_LEN || memcmp(p, MAGIC, MAGIC_LEN) != 0)
		return "not a state of a rate limiter";
	aqe_sha256(p, n - SUM_LEN, sum);
	if (memcmp(sum, p + n - SUM_LEN, SUM_LEN) != 0)
		return "its checksum is wrong";
	ret->boot = p + MAGIC_LEN;
	ret->boottime = (int64_t)get_le(at, 8);
	ret->wall = (int64_t)get_le(at + 8, 8);
	ret->debt = get_le(at + 16, 8);
	ret->burst = (uint32_t)get_le(at + 24, 4);
	ret->n = (uint32_t)get_le(at + 28, 4);
	ret->ages = at + 32;
	/* the checksum keeps accidents out, not a forger: every number is checked */
	if (ret->n > NETPOL_RATE_MAX || n != HEAD_LEN + (size_t)ret->n * 8 + SUM_LEN ||
	    ret->burst < 1 || ret->burst > NETPOL_RATE_MAX || ret->debt > ret->burst * TOKEN)
		return "its numbers are impossible";
	return NULL;
}

/* How much time went by since the state was saved; never negative, at most a day: after an hour
 * nothing of it matters. */
static int64_t gone_by(const struct state *s, const struct netpol_when *now)
{
	const int64_t most = 24 * NETPOL_HOUR_NS;
	const bool same_boot = memcmp(s->boot, now->boot_id, BOOT_LEN) == 0;
	const int64_t from = same_boot ? s->boottime : s->wall;
	const int64_t to = same_boot ? now->boottime_ns : now->wall_ns;
	int64_t d = 0;

	if (__builtin_sub_overflow(to, from, &d))
		return to > from ? most : 0;
	if (d < 0)
		return 0;
	return d < most ? d : most;
}

/* Ages fall, and all are below an hour. */
static const char *check_ages(const struct state *s)
{
	uint64_t before = (uint64_t)NETPOL_HOUR_NS;

	for (uint32_t i = 0; i < s->n; i++) {
		const uint64_t age = get_le(s->ages + (size_t)8 * i, 8);

		if (age > before)
			return "its times are out of order";
		before = age;
	}
	return NULL;
}

static int take_over(struct netpol_limiter *l, const struct state *s, int64_t gone, int64_t now,
		     struct aqe_err *e)
{
	const struct netpol_rate want = l->rate;
	struct netpol_rate was = want;

	/* the state as it was, under the burst it was saved with; then the change to ours */
	was.burst = s->burst;
	if (!netpol_limiter_room(l, s->n))
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a rate limiter");
	netpol_limiter_reset(l);
	l->rate = was;
	for (uint32_t i = 0; i < s->n; i++)
		netpol_limiter_push(l, now - gone - (int64_t)get_le(s->ages + (size_t)8 * i, 8));
	l->debt = s->debt;
	l->at = now - gone;
	return netpol_limiter_reconf(l, now, &want, e);
}

int netpol_limiter_restore(struct netpol_limiter *l, const void *p, size_t n,
			   const struct netpol_when *now, struct aqe_err *e)
{
	struct state s = { 0 };
	const char *why = read_state(p, n, &s);
	int rc;

	if (!why)
		why = check_ages(&s);
	rc = why ? aqe_err_set(e, AQE_E_MALFORMED, 0, "state of a rate limiter: %s", why)
		 : take_over(l, &s, gone_by(&s, now), now->boottime_ns, e);
	if (rc)
		netpol_limiter_drain(l, now->boottime_ns);
	return rc;
}

int netpol_limiter_load_file(struct netpol_limiter *l, int dirfd, const char *name,
			     const struct netpol_when *now, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(STATE_MAX);
	int rc = aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, &b, e);

	if (rc == AQE_E_ABSENT)
		return AQE_OK;
	if (rc) {
		netpol_limiter_drain(l, now->boottime_ns);
		return aqe_err_wrap(e, "state of a rate limiter '%s'", name);
	}
	return netpol_limiter_restore(l, b.p ? b.p : "", b.len, now, e);
}
