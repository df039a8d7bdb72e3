/* SPDX-License-Identifier: MIT */
/* Counters of one worker, as Prometheus text. Labels: front end, agent type, reason; never a host
 * or a container, whose number an agent could grow. */
#ifndef AQE_EGRESS_METRICS_H
#define AQE_EGRESS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "netpolicy/egress/record.h"
#include "shim/core/buf.h"

enum {
	NETPOL_METRIC_REASONS = 64, /* different (action, reason) pairs */
	NETPOL_METRIC_BUCKETS = 12,
};
struct netpol_histogram {
	uint64_t bucket[NETPOL_METRIC_BUCKETS + 1]; /* the last is +Inf */
	uint64_t sum_us, count;
};
struct netpol_metrics {
	struct {
		uint8_t action;
		char reason[NETPOL_RECORD_WORD + 1];
		uint64_t n;
	} decisions[NETPOL_METRIC_REASONS], closes[NETPOL_METRIC_REASONS];
	size_t n_decisions, n_closes;
	struct netpol_histogram dns, connect;
	uint64_t up, down;
	uint64_t accepted, overloaded, dns_answers, dns_dropped, reloads, lost_records;
	uint64_t restarts; /* of worker and dialer */
};
void netpol_metrics_decision(struct netpol_metrics *m, const struct netpol_record *r);
void netpol_metrics_close(struct netpol_metrics *m, const struct netpol_record *r);
void netpol_histogram_add(struct netpol_histogram *h, int64_t us);

/* Values at the moment of asking. */
struct netpol_gauges {
	unsigned connections, tunnels;
	uint32_t rate_remaining;
	uint64_t shared_asked, shared_limited, shared_away; /* counters of the shared limiter */
};
/* Appends the exposition format, version 0.0.4. */
void netpol_metrics_emit(const struct netpol_metrics *m, const struct netpol_gauges *g,
			 const char *agent_type, struct aqe_buf *b);

#endif
