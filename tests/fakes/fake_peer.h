/* SPDX-License-Identifier: MIT */
/* A server on the loopback address for tests of clients: a child process that gives each connection
 * to a function in a thread of its own. It ends with the test. */
#ifndef AQE_FAKES_FAKE_PEER_H
#define AQE_FAKES_FAKE_PEER_H

#include <stddef.h>
#include <sys/types.h>

struct fake_peer {
	int port;
	pid_t pid;
};
/* Serves one connection, which is closed when it returns. `arg` is shared with the test only where
 * it points into memory of fake_peer_shared(). */
typedef void fake_peer_fn(int fd, void *arg);

void fake_peer_start(struct fake_peer *p, fake_peer_fn *serve, void *arg);
/* Ends it; connections break. */
void fake_peer_stop(struct fake_peer *p);
/* Zeroed memory that test and peer share. */
void *fake_peer_shared(size_t n);
/* Reads an HTTP request with its Content-Length body into `buf`, NUL-terminated; its length, or 0
 * at the end of the connection. */
size_t fake_peer_request(int fd, char *buf, size_t max);
/* Writes all; a broken connection is ignored. */
void fake_peer_write(int fd, const void *p, size_t n);
void fake_peer_puts(int fd, const char *s);
/* A port of the loopback address on which nobody listens at the moment. */
int fake_peer_free_port(void);

#endif
