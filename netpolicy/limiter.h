/* SPDX-License-Identifier: MIT */
/* Rate limit of one key: GCRA for the burst and exact sliding minute and hour, all or nothing, in
 * integers. Times are nanoseconds of CLOCK_BOOTTIME given by the caller; a time before the last one
 * counts as the last one. */
#ifndef AQE_NETPOLICY_LIMITER_H
#define AQE_NETPOLICY_LIMITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

#define NETPOL_RATE_MAX 1000000 /* largest value of each member */

struct netpol_rate {
	uint32_t per_minute, per_hour, burst; /* 1 to NETPOL_RATE_MAX each */
};
bool netpol_rate_ok(const struct netpol_rate *r);

struct netpol_limiter;

/* A full bucket without history. 8 bytes an admission of the last hour, at most per_hour. */
AQE_MUST_CHECK int netpol_limiter_new(const struct netpol_rate *r, struct netpol_limiter **ret,
				      struct aqe_err *e);
void netpol_limiter_free(struct netpol_limiter *l);

struct netpol_limit {
	bool allowed;
	uint64_t retry_ms; /* exact wait, rounded up, when nobody else consumes; 0 when allowed */
};
/* The only gate: admits and spends, or refuses and changes nothing. */
void netpol_limiter_consume(struct netpol_limiter *l, int64_t now_ns, struct netpol_limit *ret);
/* What consume would answer. */
void netpol_limiter_peek(const struct netpol_limiter *l, int64_t now_ns, struct netpol_limit *ret);
/* Retry-After in seconds: at least 1. */
uint64_t netpol_retry_after_s(uint64_t retry_ms);

struct netpol_limiter_status {
	bool limited;
	uint32_t current;     /* admitted in the last 60 s */
	uint32_t in_hour;     /* admitted in the last 3600 s */
	uint32_t remaining;   /* would be admitted now, one after the other */
	uint64_t reset_in_ms; /* until `current` falls; 0 when it is 0 */
};
void netpol_limiter_status(const struct netpol_limiter *l, int64_t now_ns,
			   struct netpol_limiter_status *ret);

/* New limits: history stays, tokens are cut to the new burst, nothing is refilled. The limiter is
 * unchanged on failure. */
AQE_MUST_CHECK int netpol_limiter_reconf(struct netpol_limiter *l, int64_t now_ns,
					 const struct netpol_rate *r, struct aqe_err *e);
/* A full bucket without history again. */
void netpol_limiter_reset(struct netpol_limiter *l);
/* As if a minute's worth had just been spent: what is left when a state cannot be trusted. */
void netpol_limiter_drain(struct netpol_limiter *l, int64_t now_ns);

/* ---- state across restarts ---- */

/* Where in time a state was saved or is restored. */
struct netpol_when {
	char boot_id[37];    /* /proc/sys/kernel/random/boot_id */
	int64_t boottime_ns; /* CLOCK_BOOTTIME */
	int64_t wall_ns;     /* CLOCK_REALTIME */
};
AQE_MUST_CHECK int netpol_when_now(struct netpol_when *ret, struct aqe_err *e);
/* CLOCK_BOOTTIME, ns. */
int64_t netpol_boottime_ns(void);

/* Appends the state as bytes with a checksum. */
AQE_MUST_CHECK int netpol_limiter_save(const struct netpol_limiter *l, const struct netpol_when *at,
				       struct aqe_buf *b, struct aqe_err *e);
/* Takes a saved state over (under the limiter's own limits). The time between: same boot, the
 * difference of CLOCK_BOOTTIME; else that of the wall clock; never negative. On any failure
 * (AQE_E_MALFORMED: not ours, damaged) the limiter is drained, never full. */
AQE_MUST_CHECK int netpol_limiter_restore(struct netpol_limiter *l, const void *p, size_t n,
					  const struct netpol_when *now, struct aqe_err *e);
/* The same with file `name` below `dirfd` (written anew, mode 0600, renamed into place). Loading an
 * absent file is success and changes nothing. */
AQE_MUST_CHECK int netpol_limiter_save_file(const struct netpol_limiter *l, int dirfd,
					    const char *name, const struct netpol_when *at,
					    struct aqe_err *e);
AQE_MUST_CHECK int netpol_limiter_load_file(struct netpol_limiter *l, int dirfd, const char *name,
					    const struct netpol_when *now, struct aqe_err *e);

#endif
