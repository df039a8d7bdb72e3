/* SPDX-License-Identifier: MIT */
#include "shim/aqe/gateway_tls.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/aqe/curl.h"
#include "shim/core/text.h"

/* Nothing is there: the literal only keeps libcurl from looking a name up. */
#define NOWHERE "::127.0.0.1:9"

struct shim_tls_pool {
	CURLM *multi;
	struct curl_waitfd *fds;
	size_t room;
};

struct shim_tls_stream {
	struct shim_tls_pool *pool;
	CURL *easy;
	struct curl_slist *connect_to;
	int given; /* the connected socket until libcurl asks for it, then -1 */
	int fd;    /* the same, afterwards */
	void (*done)(void *self, bool ok, const char *why);
	void *self;
};

int shim_tls_pool_new(struct shim_tls_pool **ret, struct aqe_err *e)
{
	struct shim_tls_pool *p = calloc(1, sizeof(*p));

	if (p)
		p->multi = shim_curl.multi_init();
	if (!p || !p->multi) {
		free(p);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "libcurl does not start");
	}
	*ret = p;
	return 0;
}

void shim_tls_pool_free(struct shim_tls_pool *p)
{
	if (!p)
		return;
	(void)shim_curl.multi_cleanup(p->multi);
	free(p->fds);
	free(p);
}

static curl_socket_t on_open(void *self, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct shim_tls_stream *s = self;
	int fd = purpose == CURLSOCKTYPE_IPCXN ? s->given : -1;

	(void)to;
	s->given = -1; /* libcurl's: it closes it */
	s->fd = fd;
	return fd;
}

static int on_option(void *self, curl_socket_t fd, curlsocktype purpose)
{
	(void)self;
	(void)fd;
	(void)purpose;
	return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static bool set_texts(CURL *c, const struct shim_tls_opts *o)
{
	char url[512];
	const struct {
		CURLoption option;
		const char *value;
	} texts[] = {
		{ CURLOPT_URL, url },
		{ CURLOPT_PROTOCOLS_STR, "https" },
		{ CURLOPT_PROXY, "" }, /* not even from the environment */
	};

	if (snprintf(url, sizeof(url), "https://%s:%u/", o->host, o->port) >= (int)sizeof(url))
		return false;
	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		if (shim_curl.easy_setopt(c, texts[i].option, texts[i].value) != CURLE_OK)
			return false;
	}
	return true;
}

static bool set_longs(CURL *c, const struct shim_tls_opts *o)
{
	const struct {
		CURLoption option;
		long value;
	} longs[] = {
		{ CURLOPT_CONNECT_ONLY, 1 },
		{ CURLOPT_NOSIGNAL, 1 },
		{ CURLOPT_SSL_VERIFYPEER, 1 },
		{ CURLOPT_SSL_VERIFYHOST, 2 },
		{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
		{ CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1 },
		{ CURLOPT_NETRC, CURL_NETRC_IGNORED },
		{ CURLOPT_FRESH_CONNECT, 1 },
		{ CURLOPT_CONNECTTIMEOUT_MS, (long)o->timeout_ms },
	};

	for (size_t i = 0; i < AQE_COUNT(longs); i++) {
		if (shim_curl.easy_setopt(c, longs[i].option, longs[i].value) != CURLE_OK)
			return false;
	}
	return true;
}

/* With authorities of its own the system's do not count. */
static bool set_ca(CURL *c, const char *pem)
{
	struct curl_blob blob = { (void *)(uintptr_t)pem, pem ? strlen(pem) : 0, CURL_BLOB_COPY };

	if (blob.len == 0)
		return true;
	return shim_curl.easy_setopt(c, CURLOPT_CAINFO_BLOB, &blob) == CURLE_OK &&
	       shim_curl.easy_setopt(c, CURLOPT_CAINFO, NULL) == CURLE_OK &&
	       shim_curl.easy_setopt(c, CURLOPT_CAPATH, NULL) == CURLE_OK;
}

static bool set_callbacks(struct shim_tls_stream *s)
{
	CURL *c = s->easy;

	s->connect_to = shim_curl.slist_append(NULL, NOWHERE);
	return s->connect_to &&
	       shim_curl.easy_setopt(c, CURLOPT_CONNECT_TO, s->connect_to) == CURLE_OK &&
	       shim_curl.easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_open) == CURLE_OK &&
	       shim_curl.easy_setopt(c, CURLOPT_OPENSOCKETDATA, s) == CURLE_OK &&
	       shim_curl.easy_setopt(c, CURLOPT_SOCKOPTFUNCTION, on_option) == CURLE_OK &&
	       shim_curl.easy_setopt(c, CURLOPT_PRIVATE, s) == CURLE_OK;
}

int shim_tls_open(struct shim_tls_pool *p, const struct shim_tls_opts *o,
		  struct shim_tls_stream **ret, struct aqe_err *e)
{
	struct shim_tls_stream *s = calloc(1, sizeof(*s));

	if (!s) {
		(void)close(o->fd);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	s->pool = p;
	s->given = o->fd;
	s->fd = -1;
	s->done = o->done;
	s->self = o->self;
	s->easy = shim_curl.easy_init();
	if (s->easy && set_texts(s->easy, o) && set_longs(s->easy, o) && set_ca(s->easy, o->ca) &&
	    set_callbacks(s) && shim_curl.multi_add_handle(p->multi, s->easy) == CURLM_OK) {
		*ret = s;
		return 0;
	}
	shim_tls_close(s);
	return aqe_err_set(e, AQE_E_NOMEM, 0, "libcurl does not take a connection");
}

void shim_tls_close(struct shim_tls_stream *s)
{
	if (!s)
		return;
	/* Taking a CONNECT_ONLY handle out closes its connection. */
	if (s->easy)
		(void)shim_curl.multi_remove_handle(s->pool->multi, s->easy);
	shim_curl.easy_cleanup(s->easy);
	shim_curl.slist_free_all(s->connect_to);
	if (s->given >= 0)
		(void)close(s->given); /* libcurl never asked for it */
	free(s);
}

int shim_tls_fd(const struct shim_tls_stream *s)
{
	return s->fd;
}

ssize_t shim_tls_send(struct shim_tls_stream *s, const void *p, size_t n)
{
	size_t sent = 0;
	CURLcode rc = shim_curl.easy_send(s->easy, p, n, &sent);

	if (rc == CURLE_AGAIN || (rc == CURLE_OK && sent == 0))
		return SHIM_TLS_AGAIN;
	return rc == CURLE_OK ? (ssize_t)sent : SHIM_TLS_BROKEN;
}

ssize_t shim_tls_recv(struct shim_tls_stream *s, void *p, size_t n)
{
	size_t got = 0;
	CURLcode rc = shim_curl.easy_recv(s->easy, p, n, &got);

	if (rc == CURLE_AGAIN)
		return SHIM_TLS_AGAIN;
	return rc == CURLE_OK ? (ssize_t)got : SHIM_TLS_BROKEN;
}

static void finish(struct shim_tls_pool *p)
{
	const CURLMsg *m;
	int left;

	while ((m = shim_curl.multi_info_read(p->multi, &left))) {
		struct shim_tls_stream *s = NULL;
		CURLcode rc = m->data.result;

		if (m->msg == CURLMSG_DONE &&
		    shim_curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &s) == CURLE_OK && s)
			s->done(s->self, rc == CURLE_OK, shim_curl.easy_strerror(rc));
	}
}

int shim_tls_poll(struct shim_tls_pool *p, struct pollfd *fds, size_t n, int timeout_ms,
		  struct aqe_err *e)
{
	int running;

	if (n > p->room) {
		struct curl_waitfd *more = realloc(p->fds, n * sizeof(*more));

		if (!more)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
		p->fds = more;
		p->room = n;
	}
	for (size_t i = 0; i < n; i++) { /* CURL_WAIT_POLLIN... are poll(2)'s values */
		p->fds[i] = (struct curl_waitfd){ fds[i].fd, fds[i].events, 0 };
	}
	if (shim_curl.multi_perform(p->multi, &running) != CURLM_OK)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libcurl fails");
	finish(p);
	if (shim_curl.multi_poll(p->multi, p->fds, (unsigned)n, timeout_ms, NULL) != CURLM_OK ||
	    shim_curl.multi_perform(p->multi, &running) != CURLM_OK)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libcurl fails");
	finish(p);
	/* libcurl does not tell of POLLHUP and POLLERR */
	if (poll(fds, n, 0) < 0 && errno != EINTR)
		return aqe_err_set(e, AQE_E_SYS, errno, "poll");
	return 0;
}
