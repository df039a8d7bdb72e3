/* SPDX-License-Identifier: MIT */
/* Debian's redis-server as a child of the test, on a free port of the loopback address, without a
 * disk. It ends with the test. */
#ifndef AQE_FAKES_REAL_REDIS_H
#define AQE_FAKES_REAL_REDIS_H

#include <stdbool.h>
#include <sys/types.h>

struct real_redis {
	int port; /* 0 = choose one */
	pid_t pid;
	const char *const *more; /* further arguments, NULL ends; NULL = none */
	bool tls;                /* the port speaks TLS only; `more` names the certificates */
};

/* False when the program is not installed; then a test that must run fails. */
bool real_redis_start(struct real_redis *r);
/* Kills it. start() again restarts it on the same port, empty. */
void real_redis_stop(struct real_redis *r);
void real_redis_freeze(const struct real_redis *r);
void real_redis_thaw(const struct real_redis *r);
/* Runs redis-cli with these words (NULL ends) against it; true when it exits with 0. */
bool real_redis_cli(const struct real_redis *r, const char *const *words);

#endif
