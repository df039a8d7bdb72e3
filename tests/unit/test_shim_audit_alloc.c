/* SPDX-License-Identifier: MIT */
/* Every allocation of a command fails in turn: the command says so, or what it printed is whole. */
#include "tests/fakes/fake_alloc.h"
#include "tests/unit/audit_util.h"

#define FAULTS_MAX 3000

static void fill(void)
{
	static const enum audit_kind kinds[] = { AUDIT_START, AUDIT_REFUSAL, AUDIT_WAIVER,
						 AUDIT_SYSTEM, AUDIT_POLICY };
	struct audit_row rows[6] = { AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_BLOCKED) };

	rows[0].domain = "example.com";
	rows[0].reason = "domain_not_allowed";
	rows[0].response_ns = 5;
	for (size_t i = 0; i < AQE_COUNT(kinds); i++) {
		rows[i + 1] = (struct audit_row)AUDIT_ROW_INIT(kinds[i], AUDIT_ALLOWED);
		rows[i + 1].rule = "rule";
		rows[i + 1].waiver = "waiver";
		rows[i + 1].agent_type = "coder";
	}
	for (size_t i = 0; i < AQE_COUNT(rows); i++)
		rows[i].time_ns = START + (int64_t)i * S;
	log_add(rows, AQE_COUNT(rows));
}

/* As audit_run(), with the n-th allocation inside the command failing. */
static unsigned fault;
static bool fault_hit;

static int with_fault(int argc, char **argv)
{
	int status;

	fake_alloc_arm(fault);
	status = shim_cmd_audit(argc, argv);
	fault_hit = fake_alloc_disarm();
	return status;
}

static int audit_run_fault(const char *const *words, unsigned n, bool *ret_hit)
{
	const char *all[12] = { NULL };
	size_t at = 0;
	int status;

	for (; words[at]; at++)
		all[at] = words[at];
	all[at] = "--log";
	all[at + 1] = log_dir();
	fault = n;
	status = cmd_run(with_fault, "audit", all);
	*ret_hit = fault_hit;
	return status;
}

static const char *const COMMANDS[][6] = {
	{ "list" },
	{ "list", "--format", "json" },
	{ "tail" },
	{ "stats", "--since", "all" },
	{ "stats", "--since", "all", "--format", "json" },
	{ "export", "--format", "jsonl" },
	{ "export", "--format", "csv" },
	{ "export", "--format", "ocsf" },
	{ "export", "--format", "html" },
	{ "verify" },
	{ "head" },
	{ "prune", "--max-rows", "100", "--dry-run" },
};

/* The output with the times that differ from call to call masked. */
static const char *printed(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	char *text, *p;

	mask(&out, &b);
	text = aqe_arena_dup(arena, aqe_buf_str(&b));
	/* of the report: the three times of its head are of now */
	for (p = strstr(text, "<h1>"); p && p < strstr(text, "</header>"); p++) {
		if (*p >= '0' && *p <= '9')
			*p = '0';
	}
	/* of totals: until now */
	p = strstr(text, "\"until\":");
	if (p)
		memset(p, '#', strlen("\"until\":\"2026-01-01T00:00:00.000000000Z"));
	/* of a head: its time and signature */
	p = strstr(text, " time=");
	if (p)
		*p = '\0';
	return text;
}

/* Tells where they differ: a message must be short. */
static void same(const char *got, const char *want, unsigned n)
{
	size_t at = 0;

	while (got[at] && got[at] == want[at])
		at++;
	ck_assert_msg(got[at] == want[at], "allocation %u: '%.80s', not '%.80s'", n, got + at,
		      want + at);
}

START_TEST(audit__refuses_at_every_failed_allocation)
{
	const char *want;
	bool hit = true;
	unsigned n;

	fill();
	ck_assert_int_eq(audit_run(COMMANDS[_i]), SHIM_EXIT_OK);
	want = printed();
	for (n = 1; hit && n < FAULTS_MAX; n++) {
		struct aqe_arena *before = arena;
		int status;

		arena = aqe_arena_new((size_t)64 << 20); /* what a call needs goes with it */
		ck_assert_ptr_nonnull(arena);
		status = audit_run_fault(COMMANDS[_i], n, &hit);
		if (status == SHIM_EXIT_OK)
			same(printed(), want, n);
		else
			ck_assert_uint_gt(errors.len, 0);
		aqe_arena_free(arena);
		arena = before;
	}
	ck_assert_uint_gt(n, 5);
	ck_assert_uint_lt(n, FAULTS_MAX);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_alloc");
	TCase *t = tcase_create("alloc");

	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_loop_test(t, audit__refuses_at_every_failed_allocation, 0,
			    (int)AQE_COUNT(COMMANDS));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
