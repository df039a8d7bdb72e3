/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_ship.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/emit.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define MARK         "aqe-audit-ship 1 chain="
#define HEX          64
#define MS_PER_S     1000
#define RETRY_MAX_S  3600
#define DOUBLINGS    32
#define FILE_MODE    0600
#define ROW_TEXT_MAX ((size_t)256 << 10) /* a row as JSON, every byte escaped */

/* ---- the position ---- */

static void hex(const uint8_t *p, char ret[HEX + 1])
{
	for (size_t i = 0; i < HEX / 2; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", p[i]);
}

static unsigned digit(char c)
{
	return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* 64 hex digits at *p, moving it on. */
static bool take_hex(const char **p, uint8_t ret[HEX / 2])
{
	char text[HEX + 1];

	if (strnlen(*p, HEX) < HEX)
		return false;
	memcpy(text, *p, HEX);
	text[HEX] = '\0';
	if (!aqe_is_hex(text, HEX))
		return false;
	for (size_t i = 0; i < HEX / 2; i++)
		ret[i] = (uint8_t)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
	*p += HEX;
	return true;
}

static bool take_word(const char **p, const char *word)
{
	const size_t n = strlen(word);

	if (strncmp(*p, word, n) != 0)
		return false;
	*p += n;
	return true;
}

void shim_ship_format(const struct shim_ship_position *p, char ret[SHIM_SHIP_LINE])
{
	char chain[HEX + 1], hash[HEX + 1];

	hex(p->chain, chain);
	hex(p->hash, hash);
	(void)snprintf(ret, SHIM_SHIP_LINE, MARK "%s seq=%" PRId64 " hash=%s\n", chain, p->seq,
		       hash);
}

bool shim_ship_parse(const char *line, size_t n, struct shim_ship_position *ret)
{
	struct shim_ship_position v;
	char text[SHIM_SHIP_LINE], again[SHIM_SHIP_LINE], number[32];
	const char *p = text;
	size_t digits;

	if (n >= sizeof(text))
		return false;
	memcpy(text, line, n);
	text[n] = '\0';
	if (!take_word(&p, MARK) || !take_hex(&p, v.chain) || !take_word(&p, " seq="))
		return false;
	digits = strspn(p, "0123456789");
	if (digits >= sizeof(number))
		return false;
	memcpy(number, p, digits);
	number[digits] = '\0';
	p += digits;
	if (!aqe_parse_i64(number, 0, INT64_MAX, &v.seq) || !take_word(&p, " hash=") ||
	    !take_hex(&p, v.hash))
		return false;
	shim_ship_format(&v, again); /* only what we would write */
	if (strcmp(again, text) != 0)
		return false;
	*ret = v;
	return true;
}

int shim_ship_load(int dirfd, const char *name, struct shim_ship_position *ret, bool *ret_there,
		   struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_SHIP_LINE);
	int rc = aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, &b, e);

	*ret_there = rc == AQE_OK;
	if (rc == AQE_E_ABSENT)
		return AQE_OK;
	if (rc < 0)
		return aqe_err_wrap(e, "position");
	if (!shim_ship_parse(aqe_buf_str(&b), b.len, ret))
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "position file '%.200s' is damaged; without it all rows are "
				   "shipped again",
				   name);
	return AQE_OK;
}

int shim_ship_store(int dirfd, const char *name, const struct shim_ship_position *p,
		    struct aqe_err *e)
{
	char line[SHIM_SHIP_LINE];

	shim_ship_format(p, line);
	return aqe_fs_write_file(dirfd, name, FILE_MODE, line, strlen(line), e);
}

/* ---- is it still the same log ---- */

struct first_row {
	int64_t seq;
	uint8_t hash[32];
};

static int keep_first(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct first_row *f = arg;

	(void)e;
	f->seq = r->seq;
	memcpy(f->hash, r->hash, sizeof(f->hash));
	return AQE_OK;
}

/* The row at the position, or the first after it. */
static int row_at(struct audit_log *log, int64_t seq, struct first_row *ret, struct aqe_err *e)
{
	struct audit_filter f = AUDIT_FILTER_INIT;

	f.after_seq = seq > 0 ? seq - 1 : 0;
	f.limit = 1;
	*ret = (struct first_row){ 0 };
	return audit_query(log, &f, keep_first, ret, e);
}

int shim_ship_check(struct audit_log *log, struct shim_ship_position *p, bool *ret_other,
		    uint64_t *ret_pruned, struct aqe_err *e)
{
	struct first_row first = { 0 };
	struct audit_id id = { .created_ns = 0 };
	int64_t last = 0;
	int rc = audit_identity(log, &id, e);

	*ret_other = false;
	*ret_pruned = 0;
	if (rc == AQE_OK && memcmp(id.chain, p->chain, sizeof(id.chain)) != 0) {
		*p = (struct shim_ship_position){ .seq = 0 };
		memcpy(p->chain, id.chain, sizeof(p->chain));
		*ret_other = true;
	}
	if (rc == AQE_OK)
		rc = audit_last_seq(log, &last, e);
	if (rc == AQE_OK && last < p->seq)
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "the log ends at row %" PRId64 ", but row %" PRId64
				   " was shipped: it was cut or put back; see aqe audit verify",
				   last, p->seq);
	if (rc == AQE_OK)
		rc = row_at(log, p->seq, &first, e);
	if (rc < 0 || !first.seq)
		return rc;
	if (p->seq && first.seq == p->seq && memcmp(first.hash, p->hash, sizeof(p->hash)) != 0)
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "row %" PRId64 " is not the one that was shipped: the log was "
				   "rewritten; see aqe audit verify",
				   p->seq);
	if (first.seq > p->seq + 1)
		*ret_pruned = (uint64_t)(first.seq - p->seq - 1);
	return AQE_OK;
}

/* ---- a batch ---- */

struct filling {
	struct shim_ship_batch *b;
	struct aqe_buf row;
};

static int add_row(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct filling *f = arg;
	struct shim_ship_batch *b = f->b;
	int rc;

	aqe_buf_clear(&f->row);
	audit_row_json(r, &f->row);
	(void)aqe_buf_putc(&f->row, '\n');
	rc = aqe_buf_ok(&f->row, e);
	if (rc < 0)
		return rc;
	if (b->rows && b->body.len + f->row.len > SHIM_SHIP_BYTES)
		return 1; /* the next batch begins with it */
	(void)aqe_buf_add(&b->body, f->row.p, f->row.len);
	if (!b->rows++)
		b->first = r->seq;
	b->after.seq = r->seq;
	memcpy(b->after.hash, r->hash, sizeof(b->after.hash));
	return aqe_buf_ok(&b->body, e);
}

int shim_ship_fill(struct audit_log *log, const struct shim_ship_position *from, uint64_t limit,
		   struct shim_ship_batch *b, struct aqe_err *e)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct filling filling = { .b = b, .row = AQE_BUF_INIT(ROW_TEXT_MAX) };
	int rc;

	aqe_buf_clear(&b->body);
	b->rows = 0;
	b->first = 0;
	b->after = *from;
	f.after_seq = from->seq;
	f.limit = limit;
	rc = audit_query(log, &f, add_row, &filling, e);
	aqe_buf_done(&filling.row);
	return rc < 0 ? rc : AQE_OK;
}

/* ---- what to do ---- */

enum shim_ship_verdict shim_ship_judge(int rc, int status)
{
	if (rc == AQE_E_USAGE || rc == AQE_E_REFUSED)
		return SHIM_SHIP_REFUSED;
	if (rc < 0 || status == 408 || status == 425 || status == 429 || status >= 500 ||
	    status < 200)
		return SHIM_SHIP_AGAIN;
	if (status < 300)
		return SHIM_SHIP_TAKEN;
	return status == 413 ? SHIM_SHIP_SMALLER : SHIM_SHIP_REFUSED;
}

uint64_t shim_ship_wait_ms(unsigned failures, uint64_t first_ms, uint64_t max_ms,
			   int64_t retry_after_s, uint32_t random)
{
	uint64_t wait = first_ms, asked;

	for (unsigned i = 1; i < failures && i < DOUBLINGS && wait < max_ms; i++)
		wait *= 2;
	if (wait > max_ms)
		wait = max_ms;
	wait = wait / 2 + (wait - wait / 2) * random / UINT32_MAX;
	if (retry_after_s > RETRY_MAX_S)
		retry_after_s = RETRY_MAX_S;
	asked = retry_after_s > 0 ? (uint64_t)retry_after_s * MS_PER_S : 0;
	return wait > asked ? wait : asked;
}

static bool is_loopback(const char *host, size_t n)
{
	static const char *const names[] = { "localhost", "[::1]" };
	char text[64];
	uint64_t part;
	char *rest = text, *word;
	int parts = 0;

	if (n >= sizeof(text))
		return false;
	memcpy(text, host, n);
	text[n] = '\0';
	for (size_t i = 0; i < AQE_COUNT(names); i++) {
		if (strcmp(text, names[i]) == 0)
			return true;
	}
	if (!aqe_starts(text, "127."))
		return false;
	while ((word = strsep(&rest, "."))) {
		if (!aqe_parse_u64(word, UINT8_MAX, &part))
			return false;
		parts++;
	}
	return parts == 4;
}

int shim_ship_url(const char *url, bool *ret_plain, struct aqe_err *e)
{
	const bool plain = aqe_starts(url, "http://");
	const char *host = url + strlen(plain ? "http://" : "https://");
	size_t n;

	if (!plain && !aqe_starts(url, "https://"))
		return aqe_err_set(e, AQE_E_USAGE, 0, "--url: wants https://HOST/PATH");
	n = strcspn(host, "/?#");
	if (memchr(host, '@', n))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "--url: no user name or password; put it into --header-file");
	n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
	if (n == 0)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--url: has no host");
	if (plain && !is_loopback(host, n))
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "--url: http:// only to this machine (localhost, 127.0.0.1, "
				   "[::1]): rows would be readable on the way");
	*ret_plain = plain;
	return AQE_OK;
}
