/* SPDX-License-Identifier: MIT */
#include "netpolicy/limiters.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "netpolicy/limiter_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define FILE_MAX  ((size_t)256 << 20)
#define MAGIC     "AQEKEYS1"
#define MAGIC_LEN 8
#define HEAD_LEN  (4 + 4 + 3 * 4) /* lengths of key and state; the rate */

struct row {
	char *key; /* NULL: free */
	struct netpol_limiter *limiter;
};

struct netpol_limiters {
	struct row *rows; /* open addressing, at most half full */
	size_t n_rows, n, max;
	const struct netpol_limiter *last; /* handed out last: still in its caller's hands */
	bool suspect;                      /* a state was lost: new keys begin drained */
	int64_t suspect_until;
};

static size_t hash(const char *s)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32);
}

static struct row *find(const struct netpol_limiters *t, const char *key)
{
	for (size_t i = hash(key) & (t->n_rows - 1);; i = (i + 1) & (t->n_rows - 1)) {
		struct row *r = &t->rows[i];

		if (!r->key || strcmp(r->key, key) == 0)
			return r;
	}
}

int netpol_limiters_new(size_t max, struct netpol_limiters **ret, struct aqe_err *e)
{
	struct netpol_limiters *t = calloc(1, sizeof(*t));

	if (t) {
		t->n_rows = 4;
		while (t->n_rows < max * 2)
			t->n_rows *= 2;
		t->rows = calloc(t->n_rows, sizeof(*t->rows));
	}
	if (!t || !t->rows) {
		free(t);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for rate limiters");
	}
	t->max = max;
	*ret = t;
	return AQE_OK;
}

static void free_row(struct row *r)
{
	free(r->key);
	netpol_limiter_free(r->limiter);
	*r = (struct row){ NULL, NULL };
}

void netpol_limiters_free(struct netpol_limiters *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_rows; i++)
		free_row(&t->rows[i]);
	free(t->rows);
	free(t);
}

size_t netpol_limiters_count(const struct netpol_limiters *t)
{
	return t->n;
}

const struct netpol_rate *netpol_limiter_rate(const struct netpol_limiter *l)
{
	return &l->rate;
}

struct netpol_limiter *netpol_limiters_find(const struct netpol_limiters *t, const char *key)
{
	return find(t, key)->limiter;
}

/* Takes a row out and closes the hole: what came after it in its run moves up. */
static void remove_row(struct netpol_limiters *t, struct row *r)
{
	size_t i = (size_t)(r - t->rows);

	free_row(r);
	t->n--;
	for (i = (i + 1) & (t->n_rows - 1); t->rows[i].key; i = (i + 1) & (t->n_rows - 1)) {
		const struct row moved = t->rows[i];

		t->rows[i] = (struct row){ NULL, NULL };
		*find(t, moved.key) = moved;
	}
}

static bool as_new(const struct netpol_limiter *l, int64_t now_ns)
{
	const int64_t now = now_ns > l->at ? now_ns : l->at;

	return netpol_limiter_debt(l, now) == 0 &&
	       netpol_limiter_count(l, now, NETPOL_HOUR_NS) == 0;
}

static bool make_place(struct netpol_limiters *t, int64_t now_ns)
{
	if (t->n < t->max)
		return true;
	for (size_t i = 0; i < t->n_rows; i++) {
		if (t->rows[i].key && t->rows[i].limiter != t->last &&
		    as_new(t->rows[i].limiter, now_ns)) {
			remove_row(t, &t->rows[i]);
			return true;
		}
	}
	return false;
}

static int add(struct netpol_limiters *t, const char *key, const struct netpol_rate *rate,
	       int64_t now_ns, struct aqe_err *e)
{
	struct row fresh = { NULL, NULL };
	int rc;

	if (strlen(key) > NETPOL_LIMITERS_KEY_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "name is over %d bytes",
				   NETPOL_LIMITERS_KEY_MAX);
	if (!make_place(t, now_ns))
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu agents at once", t->max);
	rc = netpol_limiter_new(rate, &fresh.limiter, e);
	if (rc)
		return rc;
	fresh.key = strdup(key);
	if (!fresh.key) {
		free_row(&fresh);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a rate limiter");
	}
	*find(t, key) = fresh;
	t->n++;
	return AQE_OK;
}

static bool same_rate(const struct netpol_rate *a, const struct netpol_rate *b)
{
	return a->per_minute == b->per_minute && a->per_hour == b->per_hour && a->burst == b->burst;
}

int netpol_limiters_get(struct netpol_limiters *t, const char *key, const struct netpol_rate *rate,
			int64_t now_ns, struct netpol_limiter **ret, struct aqe_err *e)
{
	struct netpol_limiter *l = netpol_limiters_find(t, key);
	int rc = AQE_OK;

	if (!l) {
		rc = add(t, key, rate, now_ns, e);
		l = netpol_limiters_find(t, key);
		if (l && t->suspect && now_ns < t->suspect_until)
			netpol_limiter_drain(l, now_ns);
	} else if (!same_rate(&l->rate, rate)) {
		rc = netpol_limiter_reconf(l, now_ns, rate, e);
	}
	if (!rc)
		*ret = l;
	t->last = l;
	return rc;
}

/* ---- one file ---- */

static void put_u32(struct aqe_buf *b, uint64_t v)
{
	for (size_t i = 0; i < 4; i++)
		(void)aqe_buf_putc(b, (char)(v >> (8 * i)));
}

static uint32_t get_u32(const char *p)
{
	const unsigned char *u = (const unsigned char *)p;

	return u[0] | (uint32_t)u[1] << 8 | (uint32_t)u[2] << 16 | (uint32_t)u[3] << 24;
}

static int save_row(const struct row *r, const struct netpol_when *at, struct aqe_buf *b,
		    struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf state = AQE_BUF_INIT(FILE_MAX);
	const struct netpol_rate *rate = &r->limiter->rate;
	int rc = netpol_limiter_save(r->limiter, at, &state, e);

	if (rc)
		return rc;
	put_u32(b, strlen(r->key));
	put_u32(b, state.len);
	put_u32(b, rate->per_minute);
	put_u32(b, rate->per_hour);
	put_u32(b, rate->burst);
	(void)aqe_buf_puts(b, r->key);
	(void)aqe_buf_add(b, state.p, state.len);
	return aqe_buf_ok(b, e);
}

int netpol_limiters_save(const struct netpol_limiters *t, int dirfd, const char *name,
			 const struct netpol_when *at, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	int rc = aqe_buf_add(&b, MAGIC, MAGIC_LEN);

	for (size_t i = 0; !rc && i < t->n_rows; i++) {
		/* a limiter without history needs no place */
		if (t->rows[i].key && !as_new(t->rows[i].limiter, at->boottime_ns))
			rc = save_row(&t->rows[i], at, &b, e);
	}
	return rc ? rc : aqe_fs_write_file(dirfd, name, 0600, b.p, b.len, e);
}

/* Reads one record; *io_at moves on. */
static int load_row(struct netpol_limiters *t, const struct aqe_buf *b, size_t *io_at,
		    const struct netpol_when *now, struct aqe_err *e)
{
	const char *p = b->p + *io_at;
	const size_t left = b->len - *io_at;
	char key[NETPOL_LIMITERS_KEY_MAX + 1] = "";
	struct netpol_rate rate;
	size_t key_n, state_n;
	int rc;

	if (left < HEAD_LEN)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "cut short");
	key_n = get_u32(p);
	state_n = get_u32(p + 4);
	rate = (struct netpol_rate){ get_u32(p + 8), get_u32(p + 12), get_u32(p + 16) };
	if (key_n > NETPOL_LIMITERS_KEY_MAX || key_n > left - HEAD_LEN ||
	    state_n > left - HEAD_LEN - key_n || !netpol_rate_ok(&rate))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "impossible numbers");
	memcpy(key, p + HEAD_LEN, key_n);
	if (strlen(key) != key_n || find(t, key)->key)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "a key twice, or with a NUL");
	rc = add(t, key, &rate, now->boottime_ns, e);
	*io_at += HEAD_LEN + key_n + state_n;
	return rc ? rc
		  : netpol_limiter_restore(netpol_limiters_find(t, key), p + HEAD_LEN + key_n,
					   state_n, now, e);
}

static int load_rows(struct netpol_limiters *t, const struct aqe_buf *b,
		     const struct netpol_when *now, struct aqe_err *e)
{
	size_t at = MAGIC_LEN;
	int rc = AQE_OK;

	if (b->len < MAGIC_LEN || memcmp(b->p, MAGIC, MAGIC_LEN) != 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not a file of rate limiters");
	while (!rc && at < b->len)
		rc = load_row(t, b, &at, now, e);
	return rc;
}

int netpol_limiters_load(struct netpol_limiters *t, int dirfd, const char *name,
			 const struct netpol_when *now, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	int rc = aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, &b, e);

	if (rc == AQE_E_ABSENT)
		return AQE_OK;
	if (!rc)
		rc = load_rows(t, &b, now, e);
	if (!rc)
		return AQE_OK;
	/* after an hour no history matters any more */
	t->suspect = true;
	t->suspect_until = now->boottime_ns + NETPOL_HOUR_NS;
	return aqe_err_wrap(e, "states of rate limiters '%s'", name);
}
