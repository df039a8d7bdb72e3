/* SPDX-License-Identifier: MIT */
/* What is said about one decision, as it goes from the worker to the keeper and from there into
 * whatever log the composition brings. Fixed size, no pointers: it crosses a process boundary, and
 * the reader checks it (netpol_record_ok()). */
#ifndef AQE_EGRESS_RECORD_H
#define AQE_EGRESS_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/err.h"
#include "shim/core/sha256.h"

enum netpol_phase {
	NETPOL_PHASE_DECISION, /* before any byte leaves */
	NETPOL_PHASE_CLOSE,    /* bytes, duration and cause of an allowed one */
	NETPOL_PHASE_REPEATED, /* `count` more denials like it, not stored one by one */
	NETPOL_PHASE_EVENT,    /* of the service: started, restarted, closed, policy changed */
	NETPOL_PHASE_COUNT
};
enum netpol_action { NETPOL_ALLOWED, NETPOL_BLOCKED, NETPOL_RATE_LIMITED, NETPOL_ACTION_COUNT };

enum netpol_flag {
	NETPOL_FLAG_WOULD_DENY = 1U << 0, /* report mode */
	NETPOL_FLAG_HOST_MISMATCH = 1U << 1,
	NETPOL_FLAG_ECH = 1U << 2,
	NETPOL_FLAG_SNI_AUDIT = 1U << 3, /* would have been closed under sni: enforce */
	NETPOL_FLAG_WEBSOCKET = 1U << 4,
	NETPOL_FLAG_LOCAL_LIMIT = 1U << 5, /* the shared limiter could not be asked */
	NETPOL_FLAG_COUNT = 6
};
/* "would_deny", ... of bit `i`; never NULL. */
const char *netpol_flag_name(unsigned i);

/* Longest texts, without the NUL. */
enum {
	NETPOL_RECORD_WORD = 47,
	NETPOL_RECORD_HOST = 253,
	NETPOL_RECORD_TEXT = 255,
	NETPOL_RECORD_PATH = 511,
};
struct netpol_record {
	uint64_t id;   /* of the request: CLOSE has its DECISION's */
	int64_t at_ns; /* wall clock */
	uint8_t phase, action;
	uint8_t flags;
	uint16_t port, status;
	uint32_t count;
	uint64_t up, down;                       /* bytes to the upstream, to the client */
	int64_t duration_us, dns_us, connect_us; /* -1: not there */
	char listener[NETPOL_RECORD_WORD + 1];   /* "http", "socks", "tls", "dns", "gateway" */
	char method[NETPOL_RECORD_WORD + 1];
	char reason[NETPOL_RECORD_WORD + 1];   /* reason of the decision, cause of the close */
	char host[NETPOL_RECORD_HOST + 1];     /* canonical, or "" when it was invalid */
	char raw_host[NETPOL_RECORD_TEXT + 1]; /* as sent, escaped, when different */
	char rule[NETPOL_RECORD_TEXT + 1];
	char address[NETPOL_RECORD_WORD + 1]; /* dialled */
	char dropped[NETPOL_RECORD_TEXT + 1]; /* addresses that were not: "ADDR class, ..." */
	char sni[NETPOL_RECORD_HOST + 1];
	char alpn[NETPOL_RECORD_TEXT + 1];
	char path[NETPOL_RECORD_PATH + 1]; /* of a request that can be read, without the query */
	char policy[AQE_DIGEST_TEXT];
};
/* All zero but the numbers that are not there. */
void netpol_record_init(struct netpol_record *r);
/* Numbers in range, texts ended and printable ASCII. */
bool netpol_record_ok(const struct netpol_record *r);
/* The same in as many bytes as its texts need, at most NETPOL_RECORD_PACKED: what the room at `out`
 * is too small for is 0 bytes. Reading gives the bytes that were used, or 0 for what is no such
 * thing; the texts are ended, and all else is netpol_record_ok()'s to judge. */
#define NETPOL_RECORD_PACKED sizeof(struct netpol_record)
size_t netpol_record_pack(const struct netpol_record *r, char *out, size_t room);
size_t netpol_record_unpack(const char *p, size_t n, struct netpol_record *ret);
/* Copies foreign bytes into a text of `size` bytes: printable ASCII as is, '\\' doubled, others as
 * \xNN, cut where it would not fit. */
void netpol_record_text(char *ret, size_t size, const char *p, size_t n);

/* Where records go. Blocking; called by the keeper only, one thread. */
struct netpol_audit_ops {
	const char *name;
	/* Stores all `n` records for good, or none and an error: then what they decide is refused.
	 */
	int (*store)(void *self, const struct netpol_record *r, size_t n, struct aqe_err *e);
	void (*close)(void *self);
};
struct netpol_audit {
	const struct netpol_audit_ops *ops;
	void *self;
};
/* One JSON object a line to `fd` (borrowed). Its `store` is no promise beyond write(2). */
struct netpol_audit netpol_audit_lines(int fd);

#endif
