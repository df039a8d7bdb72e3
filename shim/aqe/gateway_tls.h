/* SPDX-License-Identifier: MIT */
/* TLS by libcurl over connections that stand already: libcurl makes the handshake, checks the
 * certificate, and carries bytes; it resolves and connects nothing. One thread, under the
 * companion's seccomp filter: libcurl 7.88 wants connect(2) on a connected socket to answer
 * EINPROGRESS. */
#ifndef AQE_AQE_GATEWAY_TLS_H
#define AQE_AQE_GATEWAY_TLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/core/err.h"

struct pollfd;
struct shim_tls_pool;
struct shim_tls_stream;

/* shim_curl_load() comes before, while libraries may still be loaded. */
AQE_MUST_CHECK int shim_tls_pool_new(struct shim_tls_pool **ret, struct aqe_err *e);
/* Streams must be closed before. NULL is accepted. */
void shim_tls_pool_free(struct shim_tls_pool *p);

struct shim_tls_opts {
	int fd;           /* connected; owned from here on, also on failure */
	const char *host; /* for SNI and the certificate */
	uint16_t port;
	const char *ca; /* PEM; NULL or "": the system's authorities */
	unsigned timeout_ms;
	/* The handshake's end, once, from shim_tls_poll(). `why` says what failed. */
	void (*done)(void *self, bool ok, const char *why);
	void *self;
};
/* Strings are copied. */
AQE_MUST_CHECK int shim_tls_open(struct shim_tls_pool *p, const struct shim_tls_opts *o,
				 struct shim_tls_stream **ret, struct aqe_err *e);
/* Not from inside `done`. NULL is accepted. */
void shim_tls_close(struct shim_tls_stream *s);
/* After a good handshake: the descriptor to wait for. */
int shim_tls_fd(const struct shim_tls_stream *s);
#define SHIM_TLS_AGAIN  (-1)
#define SHIM_TLS_BROKEN (-2)
/* Bytes, SHIM_TLS_AGAIN or SHIM_TLS_BROKEN; recv: 0 is the end. After SHIM_TLS_AGAIN a send must be
 * repeated with the same bytes at the same place. */
ssize_t shim_tls_send(struct shim_tls_stream *s, const void *p, size_t n);
ssize_t shim_tls_recv(struct shim_tls_stream *s, void *p, size_t n);

/* Waits at most `timeout_ms` for one of `n` descriptors (revents are set) or a handshake's step. */
AQE_MUST_CHECK int shim_tls_poll(struct shim_tls_pool *p, struct pollfd *fds, size_t n,
				 int timeout_ms, struct aqe_err *e);

#endif
