/* SPDX-License-Identifier: MIT */
/* A connection that speaks Redis' protocol: commands out in batches, replies in. hiredis formats
 * and parses; conn.c moves the bytes, so that every wait has its end and TLS is possible. */
#ifndef AQE_CACHE_REDIS_CONN_H
#define AQE_CACHE_REDIS_CONN_H

#include <stddef.h>
#include <stdint.h>

#include "cache/conn.h"
#include "shim/core/err.h"

struct redisReply; /* of hiredis */

struct cache_redis_where {
	struct cache_conn_opts at;
	const char *username;      /* NULL = the default user */
	const char *password_file; /* read anew for every connection; NULL = no password */
	const char *password;      /* or itself */
	unsigned db;
	unsigned connect_timeout_ms, timeout_ms; /* of the set-up; of one batch */
};

struct cache_redis_conn;
/* Connects, proves who we are, chooses the database, and hears a PONG. AQE_E_REFUSED: the server
 * says no; AQE_E_UNTRUSTED: the password's file is not safe; else as of cache_conn_open(). */
AQE_MUST_CHECK int cache_redis_connect(const struct cache_redis_where *w,
				       struct cache_redis_conn **ret, struct aqe_err *e);
void cache_redis_disconnect(struct cache_redis_conn *c);
/* True when it can take a new batch. */
bool cache_redis_quiet(const struct cache_redis_conn *c);

/* Adds a command of `n` words to the batch; the words are copied. */
AQE_MUST_CHECK int cache_redis_add(struct cache_redis_conn *c, size_t n, const char *const *words,
				   const size_t *lengths, struct aqe_err *e);
/* Begins to wait: the batch has `timeout_ms` from now. */
void cache_redis_start(struct cache_redis_conn *c);
/* The next reply, to be freed by cache_redis_free(). An error reply is a reply. AQE_E_MALFORMED:
 * not Redis, or beyond every limit. After a failure only disconnect is of use. */
AQE_MUST_CHECK int cache_redis_reply(struct cache_redis_conn *c, struct redisReply **ret,
				     struct aqe_err *e);
void cache_redis_free(struct redisReply *r);
/* An error reply as AQE_E_REFUSED. */
int cache_redis_refusal(const struct redisReply *r, struct aqe_err *e);

#endif
