/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/metrics.h"

#include <inttypes.h>
#include <string.h>

#include "shim/core/text.h"

static const struct {
	uint64_t us;
	const char *text; /* seconds, as the exposition format wants them */
} BUCKETS[NETPOL_METRIC_BUCKETS] = {
	{ 500, "0.0005" },  { 1000, "0.001" },  { 2500, "0.0025" }, { 5000, "0.005" },
	{ 10000, "0.01" },  { 25000, "0.025" }, { 50000, "0.05" },  { 100000, "0.1" },
	{ 250000, "0.25" }, { 1000000, "1" },   { 2500000, "2.5" }, { 10000000, "10" },
};

static void put_number(struct aqe_buf *b, const char *name, const char *kind, const char *type,
		       uint64_t v)
{
	(void)aqe_buf_addf(b,
			   "# TYPE aqe_egress_%s %s\naqe_egress_%s{agent_type=\"%s\"} %" PRIu64
			   "\n",
			   name, kind, name, type, v);
}

static const char *action_name(uint8_t action)
{
	static const char *const names[NETPOL_ACTION_COUNT] = { "allowed", "blocked",
								"rate_limited" };

	return action < NETPOL_ACTION_COUNT ? names[action] : "?";
}

void netpol_metrics_decision(struct netpol_metrics *m, const struct netpol_record *r)
{
	size_t i = 0;

	while (i < m->n_decisions && (m->decisions[i].action != r->action ||
				      !aqe_str_eq(m->decisions[i].reason, r->reason)))
		i++;
	if (i == NETPOL_METRIC_REASONS)
		return; /* reasons are ours and fewer */
	if (i == m->n_decisions) {
		m->n_decisions++;
		m->decisions[i].action = r->action;
		memcpy(m->decisions[i].reason, r->reason, sizeof(r->reason));
	}
	m->decisions[i].n++;
}

void netpol_metrics_close(struct netpol_metrics *m, const struct netpol_record *r)
{
	size_t i = 0;

	m->up += r->up;
	m->down += r->down;
	while (i < m->n_closes && !aqe_str_eq(m->closes[i].reason, r->reason))
		i++;
	if (i == NETPOL_METRIC_REASONS)
		return;
	if (i == m->n_closes) {
		m->n_closes++;
		memcpy(m->closes[i].reason, r->reason, sizeof(r->reason));
	}
	m->closes[i].n++;
}

void netpol_histogram_add(struct netpol_histogram *h, int64_t us)
{
	size_t i = 0;

	if (us < 0)
		return;
	while (i < NETPOL_METRIC_BUCKETS && (uint64_t)us > BUCKETS[i].us)
		i++;
	h->bucket[i]++;
	h->sum_us += (uint64_t)us;
	h->count++;
}

static void put_histogram(struct aqe_buf *b, const char *name, const char *type,
			  const struct netpol_histogram *h)
{
	uint64_t sum = 0;

	(void)aqe_buf_addf(b, "# TYPE aqe_egress_%s_seconds histogram\n", name);
	for (size_t i = 0; i <= NETPOL_METRIC_BUCKETS; i++) {
		sum += h->bucket[i];
		(void)aqe_buf_addf(
			b,
			"aqe_egress_%s_seconds_bucket{agent_type=\"%s\",le=\"%s\"} %" PRIu64 "\n",
			name, type, i < NETPOL_METRIC_BUCKETS ? BUCKETS[i].text : "+Inf", sum);
	}
	(void)aqe_buf_addf(b,
			   "aqe_egress_%s_seconds_sum{agent_type=\"%s\"} %" PRIu64 ".%06" PRIu64
			   "\n",
			   name, type, h->sum_us / 1000000, h->sum_us % 1000000);
	(void)aqe_buf_addf(b, "aqe_egress_%s_seconds_count{agent_type=\"%s\"} %" PRIu64 "\n", name,
			   type, h->count);
}

void netpol_metrics_emit(const struct netpol_metrics *m, const struct netpol_gauges *g,
			 const char *agent_type, struct aqe_buf *b)
{
	(void)aqe_buf_puts(b, "# TYPE aqe_egress_decisions_total counter\n");
	for (size_t i = 0; i < m->n_decisions; i++)
		(void)aqe_buf_addf(b,
				   "aqe_egress_decisions_total{agent_type=\"%s\",action=\"%s\","
				   "reason=\"%s\"} %" PRIu64 "\n",
				   agent_type, action_name(m->decisions[i].action),
				   m->decisions[i].reason, m->decisions[i].n);
	(void)aqe_buf_puts(b, "# TYPE aqe_egress_closes_total counter\n");
	for (size_t i = 0; i < m->n_closes; i++)
		(void)aqe_buf_addf(
			b, "aqe_egress_closes_total{agent_type=\"%s\",cause=\"%s\"} %" PRIu64 "\n",
			agent_type, m->closes[i].reason, m->closes[i].n);
	put_histogram(b, "dns", agent_type, &m->dns);
	put_histogram(b, "connect", agent_type, &m->connect);
	put_number(b, "bytes_up_total", "counter", agent_type, m->up);
	put_number(b, "bytes_down_total", "counter", agent_type, m->down);
	put_number(b, "accepted_total", "counter", agent_type, m->accepted);
	put_number(b, "overloaded_total", "counter", agent_type, m->overloaded);
	put_number(b, "dns_answers_total", "counter", agent_type, m->dns_answers);
	put_number(b, "dns_dropped_total", "counter", agent_type, m->dns_dropped);
	put_number(b, "reloads_total", "counter", agent_type, m->reloads);
	put_number(b, "restarts_total", "counter", agent_type, m->restarts);
	put_number(b, "lost_records_total", "counter", agent_type, m->lost_records);
	put_number(b, "shared_limit_asked_total", "counter", agent_type, g->shared_asked);
	put_number(b, "shared_limit_refused_total", "counter", agent_type, g->shared_limited);
	put_number(b, "shared_limit_away_total", "counter", agent_type, g->shared_away);
	put_number(b, "connections", "gauge", agent_type, g->connections);
	put_number(b, "tunnels", "gauge", agent_type, g->tunnels);
	put_number(b, "rate_remaining", "gauge", agent_type, g->rate_remaining);
}
