/* SPDX-License-Identifier: MIT */
#include "cache/redis_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define PASSWORD_MAX 1024
#define ELEMENTS_MAX 100000             /* of one array */
#define PART_MAX     ((size_t)1 << 20)  /* bytes received at once */
#define REPLY_MAX    ((size_t)16 << 20) /* bytes of one reply: far above a page of keys */
#define SHOWN_MAX    100                /* of what a server says in an error */

struct cache_redis_conn {
	struct cache_conn *conn;
	redisReader *reader;
	redisReplyObjectFunctions make;  /* hiredis' own, but for arrays */
	redisReplyObjectFunctions plain; /* hiredis' own */
	size_t held;                     /* bytes fed since the last whole reply */
	unsigned timeout_ms;
	int64_t deadline_ms;
};

/* hiredis 0.14 allocates whatever length an array claims to have. */
static void *small_array(const redisReadTask *task, int n)
{
	const struct cache_redis_conn *c = task->privdata;

	return n >= 0 && n <= ELEMENTS_MAX ? c->plain.createArray(task, n) : NULL;
}

/* ---- batches ---- */

bool cache_redis_quiet(const struct cache_redis_conn *c)
{
	return c->held == 0 && cache_conn_quiet(c->conn);
}

int cache_redis_add(struct cache_redis_conn *c, size_t n, const char *const *words,
		    const size_t *lengths, struct aqe_err *e)
{
	const char *list[16];
	char *text = NULL;
	int len, rc;

	if (n > AQE_COUNT(list))
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "a command of %zu words", n);
	memcpy(list, words, n * sizeof(list[0])); /* hiredis' type lacks a const */
	len = redisFormatCommandArgv(&text, (int)n, list, lengths);
	if (len < 0)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = cache_conn_send(c->conn, text, (size_t)len, e);
	redisFreeCommand(text);
	return rc;
}

void cache_redis_start(struct cache_redis_conn *c)
{
	c->deadline_ms = cache_conn_clock() + c->timeout_ms;
}

static int feed(struct cache_redis_conn *c, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf part = AQE_BUF_INIT(PART_MAX);
	int rc = cache_conn_exchange(c->conn, c->deadline_ms, &part, e);

	if (rc)
		return rc;
	c->held += part.len;
	if (c->held > REPLY_MAX)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "a reply of more than %zu bytes",
				   REPLY_MAX);
	if (redisReaderFeed(c->reader, part.p, part.len) != REDIS_OK)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	return 0;
}

int cache_redis_reply(struct cache_redis_conn *c, struct redisReply **ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(256);
	void *r = NULL;
	int rc = 0;

	while (!rc) {
		if (redisReaderGetReply(c->reader, &r) != REDIS_OK) {
			aqe_buf_quote(&shown, c->reader->errstr, SHOWN_MAX);
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "not Redis' protocol: %s",
					   aqe_buf_str(&shown));
		}
		if (r) {
			c->held = c->reader->len - c->reader->pos;
			*ret = r;
			return 0;
		}
		rc = feed(c, e);
	}
	return rc;
}

void cache_redis_free(struct redisReply *r)
{
	if (r)
		freeReplyObject(r);
}

int cache_redis_refusal(const struct redisReply *r, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(512);

	aqe_buf_quote(&shown, r->str ? r->str : "", SHOWN_MAX);
	return aqe_err_set(e, AQE_E_REFUSED, 0, "the server says '%s'", aqe_buf_str(&shown));
}

/* ---- setting up ---- */

static int read_password(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	int rc = aqe_fs_read_secret(path, "password file", b, e);

	return rc < 0 || b->len > 0 ? rc
				    : aqe_err_set(e, AQE_E_UNTRUSTED, 0, "password file: empty");
}

/* One command whose reply must be the status `want`. */
static int say(struct cache_redis_conn *c, size_t n, const char *const *words, const char *want,
	       struct aqe_err *e)
{
	size_t lengths[4];
	redisReply *r = NULL;
	int rc;

	for (size_t i = 0; i < n; i++)
		lengths[i] = strlen(words[i]);
	rc = cache_redis_add(c, n, words, lengths, e);
	if (!rc)
		rc = cache_redis_reply(c, &r, e);
	if (rc || !r)
		return rc;
	if (r->type == REDIS_REPLY_ERROR)
		rc = cache_redis_refusal(r, e);
	else if (r->type != REDIS_REPLY_STATUS || !aqe_str_eq(r->str, want))
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "not '%s' to %s", want, words[0]);
	cache_redis_free(r);
	return rc;
}

static int introduce(struct cache_redis_conn *c, const struct cache_redis_where *w,
		     struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf password = AQE_BUF_INIT(PASSWORD_MAX);
	char db[16];
	int rc = 0;

	(void)snprintf(db, sizeof(db), "%u", w->db);
	if (w->password_file || w->password) {
		rc = w->password ? aqe_buf_puts(&password, w->password)
				 : read_password(w->password_file, &password, e);
		if (!rc && w->username)
			rc = say(c, 3,
				 (const char *const[]){ "AUTH", w->username,
							aqe_buf_str(&password) },
				 "OK", e);
		else if (!rc)
			rc = say(c, 2, (const char *const[]){ "AUTH", aqe_buf_str(&password) },
				 "OK", e);
	}
	if (!rc && w->db)
		rc = say(c, 2, (const char *const[]){ "SELECT", db }, "OK", e);
	return rc ? rc : say(c, 1, (const char *const[]){ "PING" }, "PONG", e);
}

int cache_redis_connect(const struct cache_redis_where *w, struct cache_redis_conn **ret,
			struct aqe_err *e)
{
	struct cache_redis_conn *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	c->timeout_ms = w->timeout_ms;
	c->deadline_ms = cache_conn_clock() + w->connect_timeout_ms;
	c->reader = redisReaderCreate();
	rc = c->reader ? cache_conn_open(&w->at, c->deadline_ms, &c->conn, e)
		       : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (!rc && c->reader) {
		c->plain = *c->reader->fn;
		c->make = c->plain;
		c->make.createArray = small_array;
		c->reader->fn = &c->make;
		c->reader->privdata = c;
		rc = introduce(c, w, e);
	}
	if (rc) {
		cache_redis_disconnect(c);
		return rc;
	}
	*ret = c;
	return 0;
}

void cache_redis_disconnect(struct cache_redis_conn *c)
{
	if (!c)
		return;
	cache_conn_close(c->conn);
	if (c->reader)
		redisReaderFree(c->reader);
	free(c);
}
