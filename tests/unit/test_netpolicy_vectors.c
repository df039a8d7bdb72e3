/* SPDX-License-Identifier: MIT */
/* Every row of tests/vectors through the library; run_vectors.sh does the same with the binary. */
#include <stdio.h>

#include "netpolicy/decide.h"
#include "netpolicy/limiter.h"
#include "shim/aqe/tsv.h"
#include "shim/core/arena.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define MS_NS 1000000

/* Calls `row` for every row after the header; returns their number. */
static size_t each_row(const char *path, void (*row)(struct shim_tsv *t))
{
	struct shim_tsv t = SHIM_TSV_INIT(fopen(path, "re"));
	struct aqe_err e = AQE_ERR_INIT;
	size_t n = 0;

	ck_assert_ptr_nonnull(t.in);
	ck_assert_int_eq(shim_tsv_next(&t, &e), 1);
	for (; shim_tsv_next(&t, &e) == 1; n++)
		row(&t);
	(void)fclose(t.in);
	shim_tsv_done(&t);
	return n;
}

/* ---- names ---- */

static const char *judge_name(struct shim_tsv *t, bool apex)
{
	struct aqe_arena *a = aqe_arena_new((size_t)1 << 20);
	struct netpol_type type = { .mode = NETPOL_MODE_ENFORCE, .wildcard_apex = apex };
	const struct netpol_where where = { "vectors", 1 };
	static const char *const words[] = { [NETPOL_DENY] = "deny",
					     [NETPOL_LIMITED] = "limit",
					     [NETPOL_INVALID] = "invalid",
					     [NETPOL_ALLOW] = "allow" };
	struct netpol_request rq = { NETPOL_PROTO_ANY, t->field[1], t->len[1], 443 };
	struct netpol_answer n;
	int rc;

	ck_assert_ptr_nonnull(a);
	type.rules = netpol_rules_new(a);
	rc = netpol_rules_add_list(type.rules, t->field[0], t->len[0], where, NULL);
	netpol_decide(&type, NULL, 0, &rq, NETPOL_PEEK, &n);
	aqe_arena_free(a);
	return rc ? "invalid" : words[n.verdict];
}

static void name_row(struct shim_tsv *t)
{
	ck_assert(shim_tsv_unescape(t, 1));
	ck_assert_msg(strcmp(judge_name(t, true), shim_tsv_at(t, 2)) == 0, "line %zu: %s | %s: %s",
		      t->number, t->field[0], t->field[1], shim_tsv_at(t, 3));
}

/* Without the apex nothing is admitted more, and only bases of wildcards less. */
static size_t strict_less;

static void strict_row(struct shim_tsv *t)
{
	const char *strict;

	ck_assert(shim_tsv_unescape(t, 1));
	strict = judge_name(t, false);
	if (strcmp(strict, shim_tsv_at(t, 2)) == 0)
		return;
	strict_less++;
	ck_assert_str_eq(strict, "deny");
	ck_assert_str_eq(shim_tsv_at(t, 2), "allow");
	ck_assert_msg(strstr(shim_tsv_at(t, 0), "*."), "line %zu", t->number);
}

START_TEST(names__all_rows)
{
	ck_assert_uint_ge(each_row("tests/vectors/domain_vectors.tsv", name_row), 116);
}
END_TEST

START_TEST(names__strict_denies_the_apex_only)
{
	each_row("tests/vectors/domain_vectors.tsv", strict_row);
	ck_assert_uint_eq(strict_less, 3);
}
END_TEST

/* ---- addresses ---- */

static void address_row(struct shim_tsv *t)
{
	const struct netpol_vet vet = { NULL, 0, NULL, 0 };
	enum netpol_class class = NETPOL_CLASS_INVALID;
	struct netpol_addr a;
	bool allowed = false;

	ck_assert(shim_tsv_unescape(t, 0));
	if (netpol_addr_parse(t->field[0], t->len[0], &a))
		allowed = netpol_addr_allowed(&vet, &a, &class);
	ck_assert_msg(strcmp(netpol_class_name(class), shim_tsv_at(t, 1)) == 0,
		      "line %zu: %s is %s", t->number, t->field[0], netpol_class_name(class));
	ck_assert_msg(strcmp(allowed ? "allow" : "deny", shim_tsv_at(t, 2)) == 0, "line %zu: %s",
		      t->number, t->field[0]);
}

START_TEST(addresses__all_rows)
{
	ck_assert_uint_ge(each_row("tests/vectors/ip_vectors.tsv", address_row), 98);
}
END_TEST

/* ---- rates ---- */

static struct netpol_limiter *limiter;
static char scenario[64];

static uint32_t number(const struct shim_tsv *t, size_t i)
{
	uint64_t n = 0;

	ck_assert(aqe_parse_u64(shim_tsv_at(t, i), UINT32_MAX, &n));
	return (uint32_t)n;
}

static void begin(const struct shim_tsv *t)
{
	const struct netpol_rate rate = { number(t, 1), number(t, 2), number(t, 3) };

	if (strcmp(scenario, shim_tsv_at(t, 0)) == 0)
		return;
	(void)snprintf(scenario, sizeof(scenario), "%s", shim_tsv_at(t, 0));
	netpol_limiter_free(limiter);
	ck_assert_int_eq(netpol_limiter_new(&rate, &limiter, NULL), 0);
}

static bool change(const char *op, int64_t now)
{
	struct netpol_rate r = { 0, 0, 0 };

	if (strcmp(op, "reset") == 0) {
		netpol_limiter_reset(limiter);
		return true;
	}
	if (sscanf(op, "reconf:%u,%u,%u", &r.per_minute, &r.per_hour, &r.burst) != 3)
		return false;
	ck_assert_int_eq(netpol_limiter_reconf(limiter, now, &r, NULL), 0);
	return true;
}

static void rate_row(struct shim_tsv *t)
{
	const int64_t now = (int64_t)number(t, 4) * MS_NS;
	const char *op = shim_tsv_at(t, 6);
	struct netpol_limit peek, limit;

	begin(t);
	if (change(op, now))
		return;
	netpol_limiter_peek(limiter, now, &peek);
	limit = peek;
	if (strcmp(op, "consume") == 0)
		netpol_limiter_consume(limiter, now, &limit);
	/* a look says what the next request gets */
	ck_assert_int_eq(peek.allowed, limit.allowed);
	ck_assert_uint_eq(peek.retry_ms, limit.retry_ms);
	ck_assert_msg(strcmp(limit.allowed ? "allow" : "limit", shim_tsv_at(t, 7)) == 0, "line %zu",
		      t->number);
	if (!limit.allowed)
		ck_assert_uint_eq(limit.retry_ms, number(t, 8));
}

START_TEST(rates__all_rows_exactly)
{
	ck_assert_uint_ge(each_row("tests/vectors/rate_vectors.tsv", rate_row), 814);
	netpol_limiter_free(limiter);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy_vectors");
	TCase *t = tcase_create("vectors");

	tcase_add_test(t, names__all_rows);
	tcase_add_test(t, names__strict_denies_the_apex_only);
	tcase_add_test(t, addresses__all_rows);
	tcase_add_test(t, rates__all_rows_exactly);
	suite_add_tcase(s, t);
	return unit_run(s);
}
