/* SPDX-License-Identifier: MIT */
#include "shim/aqe/gateway_mask.h"

#include <string.h>

void shim_mask_init(struct shim_mask *m, size_t max)
{
	static const struct aqe_buf empty = AQE_BUF_INIT(0);

	m->secret = "";
	m->n = 0;
	m->held = empty;
	m->held.max = 2 * max + 16384; /* and a secret's beginning */
}

void shim_mask_done(struct shim_mask *m)
{
	aqe_buf_wipe(&m->held);
}

void shim_mask_set(struct shim_mask *m, const char *secret)
{
	m->secret = secret ? secret : "";
	m->n = strlen(m->secret);
}

/* How many of the last bytes could begin the secret. */
static size_t beginning(const struct shim_mask *m, const char *p, size_t n)
{
	size_t len = m->n - 1 < n ? m->n - 1 : n;

	while (len > 0 && memcmp(p + n - len, m->secret, len) != 0)
		len--;
	return len;
}

int shim_mask_feed(struct shim_mask *m, const char *p, size_t n, struct aqe_buf *out)
{
	size_t keep;
	char *at;

	if (m->n == 0 && m->held.len == 0)
		return aqe_buf_add(out, p, n);
	(void)aqe_buf_add(&m->held, p, n);
	if (aqe_buf_ok(&m->held, NULL) < 0)
		return AQE_E_NOMEM;
	at = m->held.p;
	while (m->n > 0 &&
	       (at = memmem(at, m->held.len - (size_t)(at - m->held.p), m->secret, m->n)) != NULL) {
		memset(at, '*', m->n);
		at += m->n;
	}
	keep = m->n > 0 ? beginning(m, m->held.p, m->held.len) : 0;
	(void)aqe_buf_add(out, m->held.p, m->held.len - keep);
	memmove(m->held.p, m->held.p + m->held.len - keep, keep);
	m->held.len = keep;
	m->held.p[keep] = 0;
	return aqe_buf_ok(out, NULL);
}

int shim_mask_end(struct shim_mask *m, struct aqe_buf *out)
{
	int rc = aqe_buf_add(out, aqe_buf_str(&m->held), m->held.len);

	m->held.len = 0;
	return rc;
}
