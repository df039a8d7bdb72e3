/* SPDX-License-Identifier: MIT */
/* Reading whole heads and vector files, for the tests of the HTTP/1.1 code. */
#ifndef AQE_UNIT_HTTP1_UTIL_H
#define AQE_UNIT_HTTP1_UTIL_H

#include <stdio.h>
#include <string.h>

#include "netpolicy/http1.h"
#include "shim/core/buf.h"

struct http1_util {
	struct netpol_h1_head head;
	struct netpol_h1_request req;
	struct netpol_h1_response resp;
};

/* Scans all of `p` in steps of `step` bytes (0: at once). */
static inline enum netpol_h1_step http1_scan(struct netpol_h1_head *h, bool response, const char *p,
					     size_t n, size_t step)
{
	enum netpol_h1_step s = NETPOL_H1_MORE;

	netpol_h1_head_init(h, response);
	for (size_t have = step ? 0 : n; s == NETPOL_H1_MORE && have <= n; have += step ? step : 1)
		s = netpol_h1_head_scan(h, p, have);
	if (s == NETPOL_H1_MORE && step > 1)
		s = netpol_h1_head_scan(h, p, n);
	return s;
}

/* The fault of a request; NETPOL_H1_FAULT_COUNT when it has no end. */
static inline enum netpol_h1_fault http1_request(struct http1_util *u, enum netpol_h1_front front,
						 const char *p, size_t n)
{
	switch (http1_scan(&u->head, false, p, n, 0)) {
	case NETPOL_H1_BAD:
		return u->head.fault;
	case NETPOL_H1_DONE:
		return netpol_h1_request_read(&u->head, p, front, &u->req);
	case NETPOL_H1_MORE:
		break;
	}
	return NETPOL_H1_FAULT_COUNT;
}

static inline enum netpol_h1_fault http1_response(struct http1_util *u, bool to_head, const char *p,
						  size_t n)
{
	switch (http1_scan(&u->head, true, p, n, 0)) {
	case NETPOL_H1_BAD:
		return u->head.fault;
	case NETPOL_H1_DONE:
		return netpol_h1_response_read(&u->head, p, to_head, &u->resp);
	case NETPOL_H1_MORE:
		break;
	}
	return NETPOL_H1_FAULT_COUNT;
}

/* The contents of a file, at most `max` bytes. */
static inline size_t http1_file(const char *path, char *out, size_t max)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(out, 1, max, f) : 0;

	if (f)
		(void)fclose(f);
	return n;
}

/* A span as a string, in a static buffer. */
static inline const char *http1_text(const char *p, struct netpol_h1_span s)
{
	static char text[NETPOL_H1_HEAD_MAX + 1];

	memcpy(text, p + s.at, s.n);
	text[s.n] = '\0';
	return text;
}

#endif
