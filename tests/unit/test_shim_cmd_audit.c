/* SPDX-License-Identifier: MIT */
/* The query semantics of the original (AL-01 to AL-30) through the command line, exit statuses,
 * and what each command says. */
#include "audit/prune.h"
#include "audit/query.h"
#include "tests/unit/audit_util.h"

/* ---- the fixture of the original: four requests ---- */

static struct audit_row request(int64_t at_s, const char *agent, const char *type,
				const char *domain, enum audit_action action)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, action);

	r.time_ns = START + at_s * S;
	r.agent_id = agent;
	r.agent_type = type;
	r.domain = domain;
	return r;
}

static void four(void)
{
	struct audit_row rows[] = {
		request(0, "a1", "coder", "api.anthropic.com", AUDIT_ALLOWED),
		request(1, "a1", "coder", "evil.example", AUDIT_BLOCKED),
		request(2, "a2", "coder", "api.anthropic.com", AUDIT_ALLOWED),
		request(3, "a3", "tester", "github.com", AUDIT_RATE_LIMITED),
	};

	rows[0].response_ns = 100 * S / 1000;
	rows[0].status = 200;
	rows[1].reason = "domain_not_allowed";
	rows[2].response_ns = 200 * S / 1000;
	rows[3].reason = AUDIT_REASON_RATE;
	log_add(rows, AQE_COUNT(rows));
}

/* The sequence numbers of the jsonl lines of the last output: "1 2 3 ". */
static const char *seqs(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	for (const char *p = aqe_buf_str(&out); (p = strstr(p, "{\"seq\":")); p++)
		(void)aqe_buf_addf(&b, "%.*s ", (int)strcspn(p + 7, ","), p + 7);
	return aqe_arena_dup(arena, aqe_buf_str(&b));
}

#define MAX_WORDS 10
static const struct {
	const char *words[MAX_WORDS];
	const char *want;
} QUERIES[] = {
	{ { NULL }, "1 2 3 4 " },                        /* AL-10 */
	{ { "--agent", "a1" }, "1 2 " },                 /* AL-11 */
	{ { "--type", "coder" }, "1 2 3 " },             /* AL-12 */
	{ { "--domain", "api.anthropic.com" }, "1 3 " }, /* AL-13 */
	{ { "--domain", "anthropic.com" }, "" },         /* exact text */
	{ { "--action", "allowed" }, "1 3 " },           /* AL-14 */
	{ { "--since", "2026-02-01T00:00:01Z", "--until", "2026-02-01T00:00:02Z" },
	  "2 3 " }, /* AL-15: both inclusive */
	{ { "--since", "2026-02-01", "--until", "2026-02-01" }, "1 2 3 4 " },
	{ { "--since", "2026-02-01T00:00:03.000000001Z" }, "" },
	{ { "--until", "2026-01-31" }, "" },
	{ { "--limit", "2" }, "1 2 " },                  /* AL-16 */
	{ { "--offset", "2" }, "3 4 " },                 /* AL-17 */
	{ { "--offset", "1", "--limit", "2" }, "2 3 " }, /* offset, then limit */
	{ { "--limit", "0" }, "" },
	{ { "--offset", "9" }, "" },
	{ { "--agent", "a1", "--action", "blocked" }, "2 " }, /* AL-18 */
	{ { "--agent", "a1", "--action", "rate_limited" }, "" },
	{ { "--recent", "3" }, "2 3 4 " },    /* AL-25 */
	{ { "--recent", "10" }, "1 2 3 4 " }, /* AL-26 */
	{ { "--recent", "1", "--agent", "a1" }, "2 " },
	{ { "--reverse", "--limit", "2" }, "4 3 " },
	{ { "--kind", "request" }, "1 2 3 4 " },
	{ { "--kind", "start" }, "" },
	{ { "--since", "all" }, "1 2 3 4 " },
	{ { "--since", "2999-01-01" }, "" },
};

START_TEST(list__finds_what_the_original_finds)
{
	const char *words[MAX_WORDS + 4] = { "list", "--format", "jsonl" };

	four();
	for (size_t i = 0; QUERIES[_i].words[i]; i++)
		words[i + 3] = QUERIES[_i].words[i];
	ck_assert_int_eq(audit_run(words), SHIM_EXIT_OK);
	ck_assert_uint_eq(errors.len, 0);
	ck_assert_str_eq(seqs(), QUERIES[_i].want);
}
END_TEST

/* AL-06 to AL-09: what was given comes back, with number and time added (AL-03). */
START_TEST(list__keeps_every_field)
{
	four();
	ck_assert_int_eq(AUDIT("list", "--format", "jsonl", "--limit", "1"), SHIM_EXIT_OK);
	ck_assert(aqe_starts(out.p, "{\"seq\":1,\"time\":\"2026-02-01T00:00:00.000000000Z\","
				    "\"kind\":\"request\",\"action\":\"allowed\","
				    "\"agent_id\":\"a1\",\"agent_type\":\"coder\","
				    "\"domain\":\"api.anthropic.com\",\"status\":200,"
				    "\"response_ns\":100000000,"));
	ck_assert_int_eq(AUDIT("list", "--format", "jsonl", "--action", "blocked"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "\"reason\":\"domain_not_allowed\""));
	ck_assert_int_eq(AUDIT("list", "--format", "jsonl", "--action", "rate_limited"),
			 SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "\"reason\":\"Rate limit exceeded\""));
}
END_TEST

static struct aqe_json *json(void)
{
	struct aqe_json *v = NULL;

	ck_assert_ok(aqe_json_parse(arena, aqe_buf_str(&out), out.len, &AQE_JSON_LIMITS_DEFAULT, &v,
				    &err),
		     err);
	return v;
}

static int64_t number_at(const struct aqe_json *v, const char *pointer)
{
	int64_t n = -1;

	ck_assert_msg(aqe_json_to_i64(aqe_json_at(v, pointer), 0, INT64_MAX, &n), "%s", pointer);
	return n;
}

static const struct {
	const char *pointer;
	int64_t want;
} STATS[] = {
	{ "/version", 1 },
	{ "/total", 4 },
	{ "/requests/total", 4 },   /* AL-19 */
	{ "/requests/allowed", 2 }, /* AL-20 */
	{ "/requests/blocked", 1 },
	{ "/requests/rate_limited", 1 },
	{ "/by_domain/values/0/total", 2 }, /* AL-21 */
	{ "/by_domain/values/0/allowed", 2 },
	{ "/by_domain/values/1/total", 1 },
	{ "/by_domain/values/2/total", 1 },
	{ "/by_agent_type/values/0/total", 3 }, /* AL-22 */
	{ "/by_agent_type/values/1/total", 1 },
	{ "/response/rows", 2 },
	{ "/response/mean_ns", 150000000 }, /* AL-23 */
	{ "/response/max_ns", 200000000 },
	{ "/by_kind/request", 4 },
	{ "/by_action/blocked", 1 },
	{ "/not_recorded", 0 },
};

START_TEST(stats__count_what_the_original_counts)
{
	four();
	ck_assert_int_eq(AUDIT("stats", "--since", "all", "--format", "json"), SHIM_EXIT_OK);
	ck_assert_int_eq(number_at(json(), STATS[_i].pointer), STATS[_i].want);
}
END_TEST

/* AL-24, the default of a day, and AL-23 without any time. */
START_TEST(stats__since)
{
	struct audit_row now = request(0, "a1", "coder", "github.com", AUDIT_ALLOWED);

	four();
	ck_assert_int_eq(AUDIT("stats", "--since", "2200-01-01", "--format", "json"), SHIM_EXIT_OK);
	ck_assert_int_eq(number_at(json(), "/total"), 0);
	ck_assert_int_eq(number_at(json(), "/response/mean_ns"), 0);
	now.time_ns = 0; /* the present */
	log_add(&now, 1);
	ck_assert_int_eq(AUDIT("stats", "--format", "json"), SHIM_EXIT_OK);
	ck_assert_int_eq(number_at(json(), "/total"), 1);
	ck_assert_int_eq(AUDIT("stats", "--since", "2026-02-01", "--until", "2026-02-01",
			       "--format", "json"),
			 SHIM_EXIT_OK);
	ck_assert_int_eq(number_at(json(), "/total"), 4);
}
END_TEST

/* AL-01: a new log has no rows; AL-04: each one is one more. */
START_TEST(size__grows_by_one)
{
	log_add(NULL, 0);
	for (int64_t i = 0; i < 3; i++) {
		struct audit_row r = request(i, "a", "coder", "x.example", AUDIT_ALLOWED);

		ck_assert_int_eq(AUDIT("list", "--format", "json"), SHIM_EXIT_OK);
		ck_assert_int_eq(number_at(json(), "/count"), i);
		log_add(&r, 1);
	}
}
END_TEST

/* AL-05: the oldest go, the newest stay. AL-27: all go. */
START_TEST(prune__keeps_the_newest)
{
	four();
	ck_assert_int_eq(AUDIT("prune", "--max-rows", "3"), SHIM_EXIT_FAILED); /* no key */
	ck_assert_ptr_nonnull(strstr(errors.p, "key"));
	log_key();
	ck_assert_int_eq(AUDIT("prune", "--max-rows", "3", "--dry-run"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "2 rows would be removed"));
	ck_assert_int_eq(AUDIT("prune", "--max-rows", "3"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "2 rows removed, up to row 2;"));
	ck_assert_int_eq(AUDIT("list", "--format", "jsonl"), SHIM_EXIT_OK);
	ck_assert_str_eq(seqs(), "3 4 5 ");
	ck_assert_int_eq(AUDIT("verify"), SHIM_EXIT_OK);
	/* the prune is a row */
	ck_assert_int_eq(AUDIT("list", "--kind", "system"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "rows: prune"));
	ck_assert_int_eq(AUDIT("prune", "--keep", "0"), SHIM_EXIT_OK);
	ck_assert_int_eq(AUDIT("list", "--format", "json"), SHIM_EXIT_OK);
	ck_assert_int_eq(number_at(json(), "/count"), 1);
	ck_assert_int_eq(AUDIT("verify"), SHIM_EXIT_OK);
}
END_TEST

START_TEST(prune__by_age_and_size)
{
	four();
	log_key();
	/* the rows are of 2026-02-01: older than any of these */
	ck_assert_int_eq(AUDIT("prune", "--keep", "200y", "--dry-run"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "0 rows would be removed"));
	ck_assert_int_eq(AUDIT("prune", "--keep", "1ms", "--dry-run"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "4 rows would be removed"));
	ck_assert_int_eq(AUDIT("prune", "--max-size", "1G"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, "0 rows removed;"));
	ck_assert_int_eq(AUDIT("prune", "--max-size", "1G", "--dry-run"), SHIM_EXIT_OK);
	ck_assert_int_eq(AUDIT("list", "--format", "jsonl"), SHIM_EXIT_OK);
	ck_assert_str_eq(seqs(), "1 2 3 4 ");
}
END_TEST

/* AL-28: what was exported is imported, our own form and the original's; AL-29: no file, no
 * entries, no error; AL-30: what was stored is there when it is opened again (every call here opens
 * the log anew). */
START_TEST(import__takes_exports)
{
	static const char old[] = "[\n  {\"id\":\"x\",\"timestamp\":\"2026-02-01T00:00:00.000Z\","
				  "\"agentId\":\"a1\",\"agentType\":\"coder\",\"action\":"
				  "\"allowed\",\"domain\":\"github.com\",\"responseTimeMs\":150},\n"
				  "  {\"id\":\"y\",\"timestamp\":\"2026-02-01T00:00:01.000Z\","
				  "\"agentId\":\"a2\",\"agentType\":\"tester\",\"action\":"
				  "\"blocked\",\"domain\":\"evil.example\",\"reason\":\"no\"}\n]\n";
	const char *mine = cmd_path("mine.jsonl"), *other = cmd_path("other");

	ck_assert_int_eq(AUDIT("import", cmd_path("nothing.json")), SHIM_EXIT_OK);
	ck_assert_str_eq(out.p, "0 entries imported\n");
	ck_assert_int_eq(AUDIT("import", cmd_file("old.json", old, sizeof(old) - 1)), SHIM_EXIT_OK);
	ck_assert_str_eq(out.p, "2 entries imported\n");
	ck_assert_int_eq(AUDIT("stats", "--since", "all", "--kind", "request", "--format", "json"),
			 SHIM_EXIT_OK);
	ck_assert_int_eq(number_at(json(), "/total"), 2);
	ck_assert_int_eq(number_at(json(), "/response/mean_ns"), 150000000);
	ck_assert_int_eq(AUDIT("export", "-o", mine), SHIM_EXIT_OK);
	ck_assert_int_eq(cmd_run(shim_cmd_audit, "audit",
				 (const char *const[]){ "import", mine, "--log", other, NULL }),
			 SHIM_EXIT_OK);
	ck_assert_int_eq(cmd_run(shim_cmd_audit, "audit",
				 (const char *const[]){ "list", "--kind", "request", "--format",
							"json", "--log", other, NULL }),
			 SHIM_EXIT_OK);
	ck_assert_int_eq(number_at(json(), "/count"), 2);
}
END_TEST

/* ---- exit statuses ---- */

static const struct {
	const char *words[6];
	int status;
	const char *said; /* part of what is on standard error */
} BAD[] = {
	{ { "list", "--since", "yore" }, SHIM_EXIT_USAGE, "aqe audit list: --since: 'yore'" },
	{ { "list", "--until", "2026-02-30" }, SHIM_EXIT_USAGE, "--until" },
	{ { "list", "--kind", "starts" }, SHIM_EXIT_USAGE, "'starts' is not a kind" },
	{ { "list", "--action", "deny" }, SHIM_EXIT_USAGE, "'deny' is not an action" },
	{ { "list", "--limit", "-1" }, SHIM_EXIT_USAGE, "--limit" },
	{ { "list", "--offset", "1x" }, SHIM_EXIT_USAGE, "--offset" },
	{ { "list", "--format", "html" }, SHIM_EXIT_USAGE, "--format" },
	{ { "list", "surplus" }, SHIM_EXIT_USAGE, "surplus argument 'surplus'" },
	{ { "list", "--nope" }, SHIM_EXIT_USAGE, "unknown option '--nope'" },
	{ { "list", "--since" }, SHIM_EXIT_USAGE, "--since" },
	{ { "stats", "--top", "x" }, SHIM_EXIT_USAGE, "--top" },
	{ { "stats", "--limit", "3" }, SHIM_EXIT_USAGE, "unknown option '--limit'" },
	{ { "tail", "--format", "json" }, SHIM_EXIT_USAGE, "--format" },
	{ { "export", "--format", "xml" }, SHIM_EXIT_USAGE, "--format" },
	{ { "export", "-o", "/nonexistent/x" }, SHIM_EXIT_FAILED, "/nonexistent/x" },
	{ { "verify", "surplus" }, SHIM_EXIT_USAGE, "surplus" },
	{ { "verify", "--anchor", "/nonexistent" }, SHIM_EXIT_UNDECIDED, "/nonexistent" },
	{ { "verify", "--public-key", "/dev/null" }, SHIM_EXIT_UNDECIDED, "no public key" },
	{ { "verify", "--export", "/nonexistent" }, SHIM_EXIT_UNDECIDED, "/nonexistent" },
	{ { "verify", "--format", "html" }, SHIM_EXIT_USAGE, "--format" },
	{ { "anchor", "--command", "tee" }, SHIM_EXIT_USAGE, "absolute path" },
	{ { "anchor", "--command=/bin/cat" }, SHIM_EXIT_USAGE, "word of its own" },
	{ { "anchor", "-o", "/nonexistent/x" }, SHIM_EXIT_FAILED, "/nonexistent/x" },
	{ { "checkpoint" }, SHIM_EXIT_FAILED, "key" },
	{ { "key" }, SHIM_EXIT_USAGE, "generate, show, public" },
	{ { "key", "make" }, SHIM_EXIT_USAGE, "generate, show, public" },
	{ { "key", "show" }, SHIM_EXIT_FAILED, "aqe audit key generate" },
	{ { "key", "public", "x" }, SHIM_EXIT_USAGE, "surplus" },
	{ { "prune" }, SHIM_EXIT_USAGE, "--keep" },
	{ { "prune", "--keep", "90" }, SHIM_EXIT_USAGE, "'90' is not a duration" },
	{ { "prune", "--max-size", "big" }, SHIM_EXIT_USAGE, "'big' is not a size" },
	{ { "import" }, SHIM_EXIT_USAGE, "a file is missing" },
	{ { "import", "a", "b" }, SHIM_EXIT_USAGE, "surplus argument 'b'" },
	{ { "ship" }, SHIM_EXIT_USAGE, "--url" },
	{ { "ship", "--url", "http://192.0.2.1/", "--once" }, SHIM_EXIT_USAGE, "http://" },
	{ { "ship", "--url", "ftp://x/" }, SHIM_EXIT_USAGE, "https" },
	{ { "ship", "--batch", "0" }, SHIM_EXIT_USAGE, "'0'" },
	{ { "ship", "--retry-wait", "0" }, SHIM_EXIT_USAGE, "--retry-wait" },
	{ { "nope" }, SHIM_EXIT_USAGE, "no such command 'nope'" },
};

START_TEST(audit__exit_status)
{
	four();
	ck_assert_int_eq(audit_run(BAD[_i].words), BAD[_i].status);
	ck_assert_uint_eq(out.len, 0);
	ck_assert_msg(strstr(aqe_buf_str(&errors), BAD[_i].said), "%s", aqe_buf_str(&errors));
	/* one line, not the help */
	ck_assert_ptr_eq(strchr(errors.p, '\n'), errors.p + errors.len - 1);
}
END_TEST

static const char *const NO_LOG[] = { "list", "stats", "tail", "export", "head", "checkpoint" };

START_TEST(audit__without_a_log)
{
	const bool makes = aqe_str_eq(NO_LOG[_i], "checkpoint");

	ck_assert_int_eq(AUDIT(NO_LOG[_i]), SHIM_EXIT_FAILED);
	ck_assert_uint_eq(out.len, 0);
	ck_assert_uint_gt(errors.len, 0);
	if (!makes) {
		ck_assert_ptr_nonnull(strstr(errors.p, "no audit log"));
		ck_assert_int_eq(access(log_dir(), F_OK), -1);
	}
}
END_TEST

static const char *const COMMANDS[] = {
	"list",   "stats",      "tail", "export", "verify", "head",
	"anchor", "checkpoint", "key",  "prune",  "import", "ship",
};

START_TEST(audit__help)
{
	size_t column = 0;

	ck_assert_int_eq(AUDIT(COMMANDS[_i], "--help"), SHIM_EXIT_OK);
	ck_assert_uint_eq(errors.len, 0);
	ck_assert(aqe_starts(out.p, aqe_arena_fmt(arena, "usage: aqe audit %s", COMMANDS[_i])));
	for (size_t i = 0; i < out.len; i++) {
		column = out.p[i] == '\n' ? 0 : column + 1;
		ck_assert_uint_le(column, 80);
	}
	ck_assert_int_eq(cmd_run(shim_cmd_audit, "audit", (const char *const[]){ "--help", NULL }),
			 SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, aqe_arena_fmt(arena, "\n  %s ", COMMANDS[_i])));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/cmd_audit");
	TCase *t = tcase_create("audit");

	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_loop_test(t, list__finds_what_the_original_finds, 0, (int)AQE_COUNT(QUERIES));
	tcase_add_test(t, list__keeps_every_field);
	tcase_add_loop_test(t, stats__count_what_the_original_counts, 0, (int)AQE_COUNT(STATS));
	tcase_add_test(t, stats__since);
	tcase_add_test(t, size__grows_by_one);
	tcase_add_test(t, prune__keeps_the_newest);
	tcase_add_test(t, prune__by_age_and_size);
	tcase_add_test(t, import__takes_exports);
	tcase_add_loop_test(t, audit__exit_status, 0, (int)AQE_COUNT(BAD));
	tcase_add_loop_test(t, audit__without_a_log, 0, (int)AQE_COUNT(NO_LOG));
	tcase_add_loop_test(t, audit__help, 0, (int)AQE_COUNT(COMMANDS));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
