/* SPDX-License-Identifier: MIT */
/* HTTP(S) requests to others, by libcurl; http.c is the only user of libcurl. No redirects, no
 * proxy or credentials from the environment, certificates always checked, TLS 1.2 or later,
 * everything limited. An object belongs to one thread at a time. */
#ifndef AQE_AQE_HTTP_H
#define AQE_AQE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

struct pollfd;
struct sockaddr;

enum shim_http_flag {
	SHIM_HTTP_PLAIN = 1U << 0, /* http:// is allowed, too */
};
/* What a sink may answer beside 0 and a negative code: stop reading until shim_http_resume(); the
 * same bytes are offered again. Only in a loop. */
#define SHIM_HTTP_PAUSE 1

/* How to dial. Strings are copied. Zeroed is usable. */
struct shim_http_opts {
	unsigned flags;
	unsigned connect_timeout_ms;      /* 0 = 10,000 */
	const char *user_agent;           /* NULL = "aqe/VERSION" */
	const char *ca_file;              /* PEM; NULL = the system's authorities */
	const char *cert_file, *key_file; /* our certificate and its key, PEM; NULL = none */
	const char *unix_socket;          /* connect here instead of to the URL's host */
	/* Asked with the address before each connect; false refuses. NULL = any address. */
	bool (*may_dial)(void *self, const struct sockaddr *to, size_t len);
	/* Instead of dialling: a connected socket (owned from there on) to an egress worker as an
	 * HTTP proxy, a new one for each request, so that each is a decision; -1 = none. What it
	 * refuses is AQE_E_REFUSED with its status, what it cannot do a failure like our own. */
	int (*open_proxy)(void *self);
	void *self; /* for may_dial and open_proxy */
};

/* One request. Borrowed: all of it must stay until the call returns, or `done` was called. */
struct shim_http_req {
	const char *method;         /* NULL = "GET" */
	const char *url;            /* no user name or password in it */
	const char *const *headers; /* "Name: value", NULL ends; NULL = none */
	const void *body;           /* NULL = none */
	size_t body_len;
	/* A streamed body instead: bytes put to `p`, 0 at its end, negative ends the request. */
	ssize_t (*source)(void *self, void *p, size_t n);
	int64_t source_len; /* of a streamed body; -1 = unknown (chunked) */
	/* Connect to this vetted "ADDRESS:PORT" or "[ADDRESS]:PORT" and no other; names in the URL
	 * still decide Host, SNI and certificate. NULL = resolve the URL's host. */
	const char *connect_to;
	unsigned timeout_ms; /* whole request; 0 = none */
	unsigned idle_ms; /* end it when nothing moved for so long, in whole seconds; 0 = never */
	size_t max_body;  /* bytes of the answer's body, as transferred; 0 = 64 MiB */
	/* Each header line of the answer, without CR LF, the status line first; non-zero ends it.
	 */
	int (*on_header)(void *self, const char *line, size_t n);
	/* Takes the body instead of resp.body: 0, SHIM_HTTP_PAUSE, or negative to end it. */
	int (*sink)(void *self, const void *p, size_t n);
	void *self; /* for source, on_header, sink */
};

struct shim_http_resp {
	int status;              /* 0 when no answer was begun */
	struct aqe_buf body;     /* empty with a sink */
	char content_type[128];  /* "" when absent or longer */
	int64_t retry_after_s;   /* -1 when absent or no number */
	uint64_t sent, received; /* bytes of the bodies */
	int64_t connect_us, total_us;
	char peer[64]; /* address of the other side, "" when there was no connection */
	bool reused;   /* on a connection that was open already */
};
#define SHIM_HTTP_RESP_INIT                                                      \
	{                                                                        \
		0, AQE_BUF_INIT((size_t)64 << 20), "", -1, 0, 0, 0, 0, "", false \
	}
/* NULL is accepted. */
void shim_http_resp_done(struct shim_http_resp *r);

/* Loads libcurl now, for a process that soon cannot open files. */
AQE_MUST_CHECK int shim_http_load(struct aqe_err *e);

/* ---- one at a time: connections stay open between requests ---- */
struct shim_http;
/* `o` may be NULL. */
AQE_MUST_CHECK int shim_http_new(const struct shim_http_opts *o, struct shim_http **ret,
				 struct aqe_err *e);
void shim_http_free(struct shim_http *h);
/* Sends and waits. 0 when an answer arrived whole, whatever its status. AQE_E_USAGE: URL, method or
 * header unusable; AQE_E_REFUSED: may_dial or the proxy said no; AQE_E_UNTRUSTED: certificate or
 * TLS; AQE_E_TIMEOUT; AQE_E_LIMIT: body too large; AQE_E_MALFORMED: not HTTP, or cut short;
 * AQE_E_SYS: name or connection; AQE_E_UNKNOWN: ended by a callback. Texts never contain the URL.
 * `resp` is cleared first; on failure it holds what is known. */
AQE_MUST_CHECK int shim_http_send(struct shim_http *h, const struct shim_http_req *req,
				  struct shim_http_resp *resp, struct aqe_err *e);

/* ---- many at once, in the caller's own poll loop ---- */
struct shim_http_loop;
struct shim_http_ticket; /* one running request; gone when its `done` returns */
/* `rc` and `e` as of shim_http_send(); `resp` is freed after it returns. */
typedef void shim_http_done_fn(void *self, int rc, struct shim_http_resp *resp,
			       const struct aqe_err *e);
AQE_MUST_CHECK int shim_http_loop_new(const struct shim_http_opts *o, struct shim_http_loop **ret,
				      struct aqe_err *e);
/* Running requests end without their `done`. */
void shim_http_loop_free(struct shim_http_loop *l);
/* Begins a request; `done` is called from shim_http_loop_poll(), never from here. `ret` may be
 * NULL. */
AQE_MUST_CHECK int shim_http_start(struct shim_http_loop *l, const struct shim_http_req *req,
				   shim_http_done_fn *done, struct shim_http_ticket **ret,
				   struct aqe_err *e);
/* Ends a request now, without its `done`. Not from inside its callbacks. */
void shim_http_cancel(struct shim_http_ticket *t);
/* Offers a paused body again. Not from inside its callbacks. */
void shim_http_resume(struct shim_http_ticket *t);
/* Waits at most `timeout_ms` for any request or one of `n` further descriptors (revents are set),
 * moves bytes, calls `done` of what ended. */
AQE_MUST_CHECK int shim_http_loop_poll(struct shim_http_loop *l, struct pollfd *extra, size_t n,
				       int timeout_ms, struct aqe_err *e);
/* Makes a running shim_http_loop_poll() return; the one call for other threads. */
void shim_http_loop_wake(struct shim_http_loop *l);
size_t shim_http_loop_running(const struct shim_http_loop *l);

#endif
