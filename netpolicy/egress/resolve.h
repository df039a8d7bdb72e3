/* SPDX-License-Identifier: MIT */
/* Names to addresses: getaddrinfo(3) in threads of its own, because it blocks, and because the
 * host's own rules (hosts file, nsswitch) must hold. Results are remembered for a moment, never
 * trusted: the caller vets each address every time. */
#ifndef AQE_EGRESS_RESOLVE_H
#define AQE_EGRESS_RESOLVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/address.h"
#include "netpolicy/host.h"
#include "shim/core/err.h"

enum {
	NETPOL_RESOLVE_ADDRS = 16,    /* addresses kept of one name */
	NETPOL_RESOLVE_WAITING = 128, /* questions waiting or running */
	NETPOL_RESOLVE_THREADS = 4,
	NETPOL_RESOLVE_CACHE = 64, /* names */
	NETPOL_RESOLVE_CACHE_MS = 5000,
};

struct netpol_resolved {
	uint64_t id;
	size_t n;   /* 0: no address, or the look-up failed */
	int64_t us; /* it took */
	struct netpol_addr addrs[NETPOL_RESOLVE_ADDRS];
};

struct netpol_resolver;
AQE_MUST_CHECK int netpol_resolver_new(struct netpol_resolver **ret, struct aqe_err *e);
/* Threads that hang in a look-up are left to the process's end. NULL is accepted. */
void netpol_resolver_free(struct netpol_resolver *r);
/* Readable when netpol_resolver_next() has something. */
int netpol_resolver_fd(const struct netpol_resolver *r);
/* True when the answer was remembered: *ret is filled at once. */
bool netpol_resolver_recall(struct netpol_resolver *r, const char *name, int64_t now_ms,
			    struct netpol_resolved *ret);
/* Asks; false when too many are waiting or no thread can be started. */
bool netpol_resolver_ask(struct netpol_resolver *r, uint64_t id, const char *name);
/* The next finished one; false when there is none. */
bool netpol_resolver_next(struct netpol_resolver *r, int64_t now_ms, struct netpol_resolved *ret);

#endif
