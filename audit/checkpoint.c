/* SPDX-License-Identifier: MIT */
#include "audit/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "audit/encode.h"
#include "audit/sign.h"
#include "audit/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define POINT_MARK "aqe-point1"
#define ANCHOR     "aqe-audit-anchor 1 "
#define SIGNED_LEN (sizeof(POINT_MARK) - 1 + 32 + 8 + 8 + 32 + 8 + 8 + 32)

static const char *const KINDS[] = {
	[AUDIT_POINT_HEAD] = "head",
	[AUDIT_POINT_PRUNE] = "prune",
};

/* ---- signing ---- */

static uint8_t *put(uint8_t *to, const void *p, size_t n)
{
	memcpy(to, p, n);
	return to + n;
}

static uint8_t *put_int(uint8_t *to, int64_t v)
{
	audit_enc_be(to, (uint64_t)v, 8);
	return to + 8;
}

static void signed_bytes(const struct audit_point *p, uint8_t ret[SIGNED_LEN])
{
	uint8_t *at = put(ret, POINT_MARK, sizeof(POINT_MARK) - 1);

	at = put(at, p->chain, 32);
	at = put_int(at, p->kind);
	at = put_int(at, p->seq);
	at = put(at, p->hash, 32);
	at = put_int(at, p->time_ns);
	at = put_int(at, p->every);
	(void)put(at, p->key, 32);
}

bool audit_point_verify(const struct audit_point *p)
{
	uint8_t data[SIGNED_LEN];

	if (!p->is_signed)
		return false;
	signed_bytes(p, data);
	return audit_sign_check(p->key, data, sizeof(data), p->sig);
}

/* The statement about `head`, not yet signed. */
static int point_of(struct audit_log *log, enum audit_point_kind kind,
		    const struct audit_head *head, struct audit_point *ret, struct aqe_err *e)
{
	struct audit_id id;
	int rc = audit_identity(log, &id, e);

	if (rc)
		return rc;
	memset(ret, 0, sizeof(*ret));
	memcpy(ret->chain, id.chain, 32);
	ret->kind = kind;
	ret->seq = head->seq;
	memcpy(ret->hash, head->hash, 32);
	ret->time_ns = audit_now_ns();
	ret->every = log->o.sign_every;
	return AQE_OK;
}

static int sign_point(const struct audit_opts *o, struct audit_point *p, struct aqe_err *e)
{
	uint8_t data[SIGNED_LEN];
	struct audit_key k;
	int rc = audit_sign_load(o, &k, e);

	if (rc)
		return rc;
	memcpy(p->key, k.public_key, 32);
	signed_bytes(p, data);
	rc = audit_sign(&k, data, sizeof(data), p->sig, e);
	audit_sign_wipe(&k);
	p->is_signed = rc == 0;
	return rc;
}

static int store_point(struct audit_log *log, const struct audit_point *p, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	int rc = aqe_db_prepare(log->db,
				"INSERT OR REPLACE INTO point (" AUDIT_POINT_COLUMNS
				") VALUES (?,?,?,?,?,?,?)",
				&s, e);

	if (rc)
		return rc;
	aqe_stmt_bind_i64(s, 1, p->kind);
	aqe_stmt_bind_i64(s, 2, p->seq);
	aqe_stmt_bind_blob(s, 3, p->hash, 32);
	aqe_stmt_bind_i64(s, 4, p->time_ns);
	aqe_stmt_bind_i64(s, 5, p->every);
	aqe_stmt_bind_blob(s, 6, p->key, 32);
	aqe_stmt_bind_blob(s, 7, p->sig, 64);
	return aqe_stmt_run(s, e);
}

int audit_point_add(struct audit_log *log, enum audit_point_kind kind,
		    const struct audit_head *head, struct audit_point *ret, struct aqe_err *e)
{
	struct audit_point p;
	int rc = point_of(log, kind, head, &p, e);

	if (rc == 0)
		rc = sign_point(&log->o, &p, e);
	if (rc == 0)
		rc = store_point(log, &p, e);
	if (rc == 0 && ret)
		*ret = p;
	return rc;
}

int audit_checkpoint(struct audit_log *log, struct audit_point *ret, struct aqe_err *e)
{
	struct audit_head head;
	int rc = aqe_db_begin(log->db, e);

	if (rc)
		return aqe_err_wrap(e, "audit log");
	rc = audit_store_head(log, &head, e);
	if (rc == 0)
		rc = audit_point_add(log, AUDIT_POINT_HEAD, &head, ret, e);
	if (rc == 0)
		rc = aqe_db_commit(log->db, e);
	aqe_db_rollback(log->db); /* nothing after a commit */
	return rc ? aqe_err_wrap(e, "audit log") : AQE_OK;
}

int audit_head(struct audit_log *log, struct audit_point *ret, struct aqe_err *e)
{
	struct audit_head head;
	int rc = audit_store_head(log, &head, e);

	if (rc == 0)
		rc = point_of(log, AUDIT_POINT_HEAD, &head, ret, e);
	if (rc == 0 && log->o.mode == AUDIT_WRITE && audit_sign_has_key(&log->o))
		rc = sign_point(&log->o, ret, e);
	return rc ? aqe_err_wrap(e, "audit log") : AQE_OK;
}

int audit_key_make(const struct audit_opts *o, struct aqe_err *e)
{
	struct audit_opts write = *o;
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	int rc;

	write.mode = AUDIT_WRITE;
	write.file = NULL;
	/* The log comes first: its folder is usually the key's too, and its head is signed. */
	rc = audit_open(&write, &log, e);
	if (rc == 0)
		rc = audit_sign_make(&write, e);
	return rc ? rc : audit_checkpoint(log, NULL, e);
}

/* ---- stored points ---- */

bool audit_point_read(struct aqe_stmt *s, const struct audit_id *id, struct audit_point *ret)
{
	size_t n_key, n_sig;
	const void *key = aqe_stmt_bytes(s, 5, &n_key), *sig = aqe_stmt_bytes(s, 6, &n_sig);
	int64_t kind = aqe_stmt_i64(s, 0);

	memset(ret, 0, sizeof(*ret));
	if (!audit_store_hash(s, 2, ret->hash) || aqe_stmt_type(s, 1) != AQE_DB_INT ||
	    aqe_stmt_type(s, 3) != AQE_DB_INT || aqe_stmt_type(s, 4) != AQE_DB_INT ||
	    aqe_stmt_type(s, 5) != AQE_DB_BLOB || n_key != 32 ||
	    aqe_stmt_type(s, 6) != AQE_DB_BLOB || n_sig != 64)
		return false;
	if (kind != AUDIT_POINT_HEAD && kind != AUDIT_POINT_PRUNE)
		return false;
	memcpy(ret->chain, id->chain, 32);
	ret->kind = (enum audit_point_kind)kind;
	ret->seq = aqe_stmt_i64(s, 1);
	ret->time_ns = aqe_stmt_i64(s, 3);
	ret->every = aqe_stmt_i64(s, 4);
	memcpy(ret->key, key, 32);
	memcpy(ret->sig, sig, 64);
	ret->is_signed = true;
	return ret->seq >= 0 && ret->time_ns >= 0 && ret->every >= 0;
}

int audit_points(struct audit_log *log, audit_point_fn *fn, void *arg, struct aqe_err *e)
{
	AQE_AUTO_STMT struct aqe_stmt *s = NULL;
	struct audit_point p;
	struct audit_id id;
	int rc = audit_identity(log, &id, e);

	if (rc == 0)
		rc = aqe_db_prepare(log->db,
				    "SELECT " AUDIT_POINT_COLUMNS " FROM point ORDER BY seq, kind",
				    &s, e);
	if (rc)
		return rc;
	while ((rc = aqe_stmt_step(s, e)) == 1) {
		if (!audit_point_read(s, &id, &p))
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "audit log: a checkpoint has a value of a wrong type");
		rc = fn(arg, &p, e);
		if (rc)
			return rc;
	}
	return rc;
}

/* ---- as text ---- */

struct point_text {
	char chain[65], hash[65], key[65], sig[129], time[AUDIT_TIME_TEXT];
};

static void to_text(const struct audit_point *p, struct point_text *t)
{
	audit_hex(p->chain, 32, t->chain);
	audit_hex(p->hash, 32, t->hash);
	audit_hex(p->key, 32, t->key);
	audit_hex(p->sig, 64, t->sig);
	audit_time_format(p->time_ns, t->time);
}

void audit_point_format(const struct audit_point *p, char ret[AUDIT_POINT_TEXT])
{
	struct point_text t;

	to_text(p, &t);
	(void)snprintf(ret, AUDIT_POINT_TEXT,
		       ANCHOR
		       "chain=%s kind=%s seq=%lld hash=%s time=%s every=%lld key=%s sig=%s\n",
		       t.chain, KINDS[p->kind], (long long)p->seq, t.hash, t.time,
		       (long long)p->every, p->is_signed ? t.key : "-", p->is_signed ? t.sig : "-");
}

void audit_point_emit(const struct audit_point *p, struct aqe_buf *b)
{
	struct point_text t;

	to_text(p, &t);
	aqe_buf_addf(
		b,
		"{\"chain\":\"%s\",\"kind\":\"%s\",\"seq\":%lld,\"hash\":\"%s\",\"time\":\"%s\","
		"\"every\":%lld",
		t.chain, KINDS[p->kind], (long long)p->seq, t.hash, t.time, (long long)p->every);
	if (p->is_signed)
		aqe_buf_addf(b, ",\"key\":\"%s\",\"sig\":\"%s\"", t.key, t.sig);
	aqe_buf_putc(b, '}');
}

/* Takes "name=value" and the blank after it from *at; the value, or NULL. */
static char *take_word(char **at, const char *name)
{
	size_t n = strlen(name);
	char *value, *end;

	if (strncmp(*at, name, n) != 0 || (*at)[n] != '=')
		return NULL;
	value = *at + n + 1;
	end = strchr(value, ' ');
	*at = end ? end + 1 : value + strlen(value);
	if (end)
		*end = '\0';
	return value;
}

static bool hex_word(const char *v, size_t bytes, uint8_t *ret)
{
	return v && strlen(v) == 2 * bytes && audit_unhex(v, bytes, ret);
}

static bool kind_word(const char *v, enum audit_point_kind *ret)
{
	for (int k = AUDIT_POINT_HEAD; v && k <= AUDIT_POINT_PRUNE; k++) {
		if (strcmp(v, KINDS[k]) == 0) {
			*ret = (enum audit_point_kind)k;
			return true;
		}
	}
	return false;
}

static bool number_word(const char *v, int64_t *ret)
{
	return v && aqe_parse_i64(v, 0, INT64_MAX, ret);
}

static bool parse_words(char *at, struct audit_point *p)
{
	const char *key, *sig;

	if (!hex_word(take_word(&at, "chain"), 32, p->chain) ||
	    !kind_word(take_word(&at, "kind"), &p->kind) ||
	    !number_word(take_word(&at, "seq"), &p->seq) ||
	    !hex_word(take_word(&at, "hash"), 32, p->hash) ||
	    !audit_time_parse(take_word(&at, "time"), &p->time_ns) ||
	    !number_word(take_word(&at, "every"), &p->every))
		return false;
	key = take_word(&at, "key");
	sig = take_word(&at, "sig");
	if (!key || !sig || *at)
		return false;
	if (strcmp(key, "-") == 0 && strcmp(sig, "-") == 0)
		return true;
	p->is_signed = true;
	return hex_word(key, 32, p->key) && hex_word(sig, 64, p->sig);
}

/* One spelling only: what is read must be what would be written. */
static bool parse_line(const char *line, size_t n, struct audit_point *p)
{
	char copy[AUDIT_POINT_TEXT], again[AUDIT_POINT_TEXT];

	memset(p, 0, sizeof(*p));
	if (n >= sizeof(copy) || n <= strlen(ANCHOR) || memchr(line, '\0', n) ||
	    memcmp(line, ANCHOR, strlen(ANCHOR)) != 0)
		return false;
	memcpy(copy, line, n);
	copy[n] = '\0';
	if (!parse_words(copy + strlen(ANCHOR), p))
		return false;
	audit_point_format(p, again);
	return strlen(again) == n + 1 && memcmp(again, line, n) == 0;
}

int audit_point_parse(const char *line, size_t n, struct audit_point *ret, struct aqe_err *e)
{
	struct audit_point p;

	if (!parse_line(line, n, &p))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not an anchor of the audit log");
	*ret = p;
	return AQE_OK;
}
