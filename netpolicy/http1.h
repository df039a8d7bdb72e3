/* SPDX-License-Identifier: MIT */
/* Strict HTTP/1.1 heads. Sans-IO: the caller owns the bytes, feeds a growing prefix, and gets spans
 * into it. A head is read once; what goes out is written anew from the spans (http1_emit.h), never
 * the received bytes. Where RFC 9112 lets a recipient repair something, we refuse: two readers of a
 * repaired message may disagree, and the second one is behind us. */
#ifndef AQE_NETPOLICY_HTTP1_H
#define AQE_NETPOLICY_HTTP1_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits, in bytes unless named otherwise. */
enum {
	NETPOL_H1_LINE_MAX = 8192,   /* first line, without CRLF */
	NETPOL_H1_BLOCK_MAX = 32768, /* field lines with the empty line that ends them */
	NETPOL_H1_NAME_MAX = 256,    /* a field's name */
	NETPOL_H1_METHOD_MAX = 32,
	NETPOL_H1_FIELDS_MAX = 128, /* fields */
	/* the largest head: an empty line that is skipped, the first line, the block */
	NETPOL_H1_HEAD_MAX = 2 + NETPOL_H1_LINE_MAX + 2 + NETPOL_H1_BLOCK_MAX,
};

/* What is wrong with a message; each has a status and a public reason (netpol_h1_reason()). */
enum netpol_h1_fault {
	NETPOL_H1_OK,
	NETPOL_H1_REQUEST_LINE,
	NETPOL_H1_LINE_TOO_LONG,
	NETPOL_H1_VERSION,
	NETPOL_H1_METHOD_OR_TARGET,
	NETPOL_H1_TARGET,
	NETPOL_H1_NOT_PROXY,  /* origin-form sent to the proxy */
	NETPOL_H1_NOT_ORIGIN, /* absolute-form or CONNECT sent to a transparent listener */
	NETPOL_H1_PORT_MISSING,
	NETPOL_H1_PORT,
	NETPOL_H1_HOST_FIELD,
	NETPOL_H1_FIELD,
	NETPOL_H1_FIELDS_TOO_LARGE,
	NETPOL_H1_FRAMING,
	NETPOL_H1_CODING,
	NETPOL_H1_EXPECT,
	NETPOL_H1_CHUNK,
	NETPOL_H1_STATUS_LINE, /* from here on: the upstream's message */
	NETPOL_H1_RESPONSE,
	NETPOL_H1_FAULT_COUNT
};
unsigned netpol_h1_status(enum netpol_h1_fault fault);
const char *netpol_h1_reason(enum netpol_h1_fault fault);

/* A piece of the caller's bytes. */
struct netpol_h1_span {
	uint16_t at, n;
};

/* Fields that mean something to a proxy; all others are NETPOL_H1_F_OTHER. */
enum netpol_h1_field_id {
	NETPOL_H1_F_OTHER,
	NETPOL_H1_F_CONNECTION,
	NETPOL_H1_F_CONTENT_LENGTH,
	NETPOL_H1_F_EXPECT,
	NETPOL_H1_F_HOST,
	NETPOL_H1_F_HTTP2_SETTINGS,
	NETPOL_H1_F_KEEP_ALIVE,
	NETPOL_H1_F_MAX_FORWARDS,
	NETPOL_H1_F_PROXY, /* any name that starts with "proxy-" */
	NETPOL_H1_F_TE,
	NETPOL_H1_F_TRAILER,
	NETPOL_H1_F_TRANSFER_ENCODING,
	NETPOL_H1_F_UPGRADE,
	NETPOL_H1_F_COUNT
};
struct netpol_h1_field {
	struct netpol_h1_span name, value; /* value without white space around it */
	uint8_t id;                        /* enum netpol_h1_field_id */
	bool hop;                          /* named by a Connection field: not forwarded */
};

enum netpol_h1_step { NETPOL_H1_MORE, NETPOL_H1_DONE, NETPOL_H1_BAD };

/* A head being scanned. Place it anywhere; netpol_h1_head_init() before each message. */
struct netpol_h1_head {
	bool response;
	uint8_t state;
	enum netpol_h1_fault fault;    /* after NETPOL_H1_BAD */
	uint32_t at;                   /* bytes scanned; the head's length after NETPOL_H1_DONE */
	uint32_t line_at, block_at;    /* where the first line and the field block start */
	uint32_t word_at;              /* where the word being read starts */
	struct netpol_h1_span word[3]; /* method target version, or version status reason */
	unsigned count;
	struct netpol_h1_field fields[NETPOL_H1_FIELDS_MAX];
};
void netpol_h1_head_init(struct netpol_h1_head *h, bool response);
/* Scans on: `p` is the start of the message, `n` all bytes had so far (never fewer than before).
 * NETPOL_H1_MORE: everything so far could begin a head. Never looks past the head's end. */
enum netpol_h1_step netpol_h1_head_scan(struct netpol_h1_head *h, const char *p, size_t n);

enum netpol_h1_body { NETPOL_H1_NO_BODY, NETPOL_H1_LENGTH, NETPOL_H1_CHUNKED, NETPOL_H1_TO_CLOSE };

enum netpol_h1_front {
	NETPOL_H1_PROXY,  /* CONNECT and absolute-form only */
	NETPOL_H1_ORIGIN, /* origin-form only: transparent listener, gateway, metrics */
};

struct netpol_h1_request {
	struct netpol_h1_span method;
	struct netpol_h1_span host; /* bytes of the decision's host, [] kept; not yet canonical */
	uint16_t port;              /* 0: none was written */
	struct netpol_h1_span path; /* path and query as sent; may be empty or start with '?' */
	const char *base;           /* put before the path when it goes on; NULL: nothing */
	struct netpol_h1_span
		host_field; /* host part of the Host field; n = 0 when there is none */
	bool connect;
	bool options, head; /* the method is OPTIONS, HEAD */
	bool http10;
	bool close;       /* the connection must not be used after this exchange */
	bool expect;      /* Expect: 100-continue */
	bool websocket;   /* Upgrade: websocket, nominated by Connection */
	int max_forwards; /* -1: none */
	enum netpol_h1_body body;
	uint64_t length; /* of NETPOL_H1_LENGTH */
};
/* Judges a scanned request head. NETPOL_H1_OK, or the fault and *ret untouched. Marks the fields
 * that a Connection field names. */
enum netpol_h1_fault netpol_h1_request_read(struct netpol_h1_head *h, const char *p,
					    enum netpol_h1_front front,
					    struct netpol_h1_request *ret);

struct netpol_h1_response {
	unsigned status;
	bool close; /* the upstream connection ends with this message */
	bool websocket;
	enum netpol_h1_body body;
	uint64_t length;
};
/* Judges a scanned response head; `to_head`: the request was HEAD. */
enum netpol_h1_fault netpol_h1_response_read(struct netpol_h1_head *h, const char *p, bool to_head,
					     struct netpol_h1_response *ret);

#endif
