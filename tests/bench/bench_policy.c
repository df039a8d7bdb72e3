/* SPDX-License-Identifier: MIT */
/* What a policy decision costs without I/O: canonical host, loopback, domain, port, rate limit.
 * Prints the median of ROUNDS runs of BATCH decisions in millions a second, and fails under the
 * budget. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netpolicy/decide.h"
#include "shim/core/arena.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"

#define ROUNDS   41
#define BATCH    200000
#define BUDGET_M 2.0 /* million decisions a second */

struct input {
	struct netpol_type type;
	struct netpol_limiter *limiter;
};

static const char *const HOSTS[] = {
	"api.anthropic.com", "API.GitHub.com.", "registry.npmjs.org",      "a.b.c.wild.example.com",
	"evil.example.org",  "93.184.216.34",   "deep.a.b.c.d.e.evil.net", "localhost",
};

/* A list as long as a generous policy's. */
static bool fill(struct input *in, struct aqe_arena *a)
{
	static const struct netpol_where where = { "bench", 1 };
	const struct netpol_rate rate = { 60, 1000, 10 };
	char entry[64];

	memset(&in->type, 0, sizeof(in->type));
	in->type.mode = NETPOL_MODE_ENFORCE;
	in->type.wildcard_apex = true;
	in->type.rate = rate;
	in->type.rules = netpol_rules_new(a);
	for (size_t i = 0; i < 4; i++) {
		if (netpol_rules_add(in->type.rules, HOSTS[i % 3], strlen(HOSTS[i % 3]), where,
				     NULL))
			return false;
	}
	for (unsigned i = 0; i < 200; i++) {
		const int n = snprintf(entry, sizeof(entry), "%shost%u.example.com",
				       i % 4 ? "" : "*.", i);

		if (netpol_rules_add(in->type.rules, entry, (size_t)n, where, NULL))
			return false;
	}
	return !netpol_rules_add(in->type.rules, "*.wild.example.com", 18, where, NULL) &&
	       !netpol_limiter_new(&rate, &in->limiter, NULL);
}

static int cmp_double(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Million decisions a second of one round. */
static double round_of(const struct input *in, bool limited, unsigned *io_allowed)
{
	int64_t now = AQE_CLOCK_SYSTEM.mono_ns(NULL);
	const int64_t t0 = now;
	struct netpol_answer n;

	for (unsigned i = 0; i < BATCH; i++) {
		const char *host = HOSTS[i % AQE_COUNT(HOSTS)];
		const struct netpol_request rq = { NETPOL_PROTO_CONNECT, host, strlen(host), 443 };

		netpol_decide(&in->type, limited ? in->limiter : NULL, t0 + (int64_t)i * 20000000,
			      &rq, NETPOL_CONSUME, &n);
		*io_allowed += n.verdict == NETPOL_ALLOW;
	}
	now = AQE_CLOCK_SYSTEM.mono_ns(NULL);
	return BATCH * 1000.0 / (double)(now - t0);
}

static bool run(const struct input *in, const char *what, bool limited)
{
	double rate[ROUNDS];
	unsigned allowed = 0;

	for (size_t i = 0; i < ROUNDS; i++)
		rate[i] = round_of(in, limited, &allowed);
	qsort(rate, ROUNDS, sizeof(rate[0]), cmp_double);
	(void)printf("%-44s %8.2f M/s   budget >= %.1f%s\n", what, rate[ROUNDS / 2], BUDGET_M,
		     rate[ROUNDS / 2] < BUDGET_M ? "   MISSED" : "");
	return allowed && rate[ROUNDS / 2] >= BUDGET_M;
}

int main(void)
{
	struct aqe_arena *a = aqe_arena_new((size_t)4 << 20);
	struct input in = { .limiter = NULL };
	bool ok = a && fill(&in, a);

	if (ok)
		ok = run(&in, "policy decision, names and addresses", false);
	if (ok)
		ok = run(&in, "the same with the rate limit", true);
	netpol_limiter_free(in.limiter);
	aqe_arena_free(a);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
