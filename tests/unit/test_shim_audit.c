/* SPDX-License-Identifier: MIT */
#include "shim/audit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/log.h"
#include "audit/lost.h"
#include "audit/query.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"
#include "tests/unit/unit.h"

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER  "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ROWS   32

static char base[64], dir[96]; /* the test's directory, and the log's below it */
static struct shim_rt rt;
static struct hard_policy policy;
static struct aqe_err e;

static void setup(void)
{
	char template[] = "/tmp/aqe-test-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(template));
	(void)snprintf(base, sizeof(base), "%s", template);
	(void)snprintf(dir, sizeof(dir), "%s/log", base);
	rt = (struct shim_rt){ .arena = aqe_arena_new((size_t)16 << 20),
			       .state = SHIM_STATE_INIT,
			       .audit = SHIM_AUDIT_INIT };
	ck_assert_ptr_nonnull(rt.arena);
	rt.state.fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rt.state.path = base;
	rt.av.verb = SHIM_VERB_CREATE;
	rt.av.id = "c1";
	policy = (struct hard_policy){ .mode = HARD_MODE_ENFORCE,
				       .digest = DIGEST,
				       .files = "/etc/aqe-shim/policy.json",
				       .audit = { HARD_AUDIT_REQUIRED, dir, dir, 1000 } };
	e = (struct aqe_err)AQE_ERR_INIT;
}

static void teardown(void)
{
	AQE_AUTO_FD int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)close(rt.state.fd);
	aqe_arena_free(rt.arena);
	ck_assert_int_eq(aqe_fs_remove_tree(fd, base + strlen("/tmp/"), NULL), 0);
}

/* Another call about the same container. */
static void next_call(enum shim_verb verb)
{
	rt.av.verb = verb;
	rt.audit = (struct shim_audit)SHIM_AUDIT_INIT;
	shim_audit_words(&rt);
}

static const struct hard_waiver waivers[] = {
	{ .prop = HARD_DIGEST, .reason = "by hand", .owner = "o", .expires = 86400 },
	{ .prop = HARD_PIDS_LIMIT, .reason = "v1", .owner = "o", .expires = 86400 },
};

static struct shim_record record(void)
{
	return (struct shim_record){ .id = "c1",
				     .image_id = DIGEST,
				     .agent = *hard_agent_default(),
				     .agent_id = "me",
				     .policy_digest = DIGEST,
				     .audit_mode = HARD_AUDIT_REQUIRED,
				     .audit_dir = dir,
				     .audit_start = "{\"command\":\"sh\"}",
				     .changed = true,
				     .waivers = waivers,
				     .n_waivers = AQE_COUNT(waivers) };
}

/* ---- reading the log ---- */

struct rows {
	struct audit_row row[ROWS];
	size_t n;
};

static int keep(void *arg, const struct audit_row *r, struct aqe_err *err)
{
	struct rows *rows = arg;

	ck_assert_uint_lt(rows->n, ROWS);
	return audit_row_copy(rt.arena, r, &rows->row[rows->n++], err);
}

static struct rows read_log(const char *where)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	const struct audit_opts o = { .dir = where, .mode = AUDIT_READ };
	const struct audit_filter f = AUDIT_FILTER_INIT;
	struct rows rows = { .n = 0 };
	struct aqe_err err = AQE_ERR_INIT;

	ck_assert_msg(audit_open(&o, &log, &err) == 0, "%s", err.text);
	ck_assert_msg(audit_query(log, &f, keep, &rows, &err) == 0, "%s", err.text);
	return rows;
}

static void make_log(void)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_SYSTEM, AUDIT_ALLOWED);
	const struct audit_opts o = { .dir = dir, .spare_dir = base };

	ck_assert_msg(audit_record(&o, &r, 1, &e) == 0, "%s", e.text);
}

/* ---- start ---- */

START_TEST(started__has_a_row_for_each_waiver_and_one_for_the_start)
{
	const struct hard_waiver *by_effect[HARD_PROP_COUNT] = { NULL };
	struct shim_record rec = record();
	struct rows rows;

	rec.waived[HARD_DIGEST] = true;
	by_effect[HARD_PIDS_LIMIT] = &waivers[1];
	next_call(SHIM_VERB_START);
	shim_audit_record(&rt, &rec);
	ck_assert_msg(shim_audit_started(&rt, &rec, by_effect, &e) == 0, "%s", e.text);
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct audit_row *r = &rows.row[i];

		ck_assert_str_eq(r->container, "c1");
		ck_assert_str_eq(r->image, DIGEST);
		ck_assert_str_eq(r->agent_type, "default");
		ck_assert_str_eq(r->agent_id, "me");
		ck_assert_str_eq(r->policy, DIGEST);
		ck_assert_str_eq(r->method, "start");
		ck_assert_int_gt(r->time_ns, 0);
	}
	ck_assert_int_eq(rows.row[0].kind, AUDIT_WAIVER);
	ck_assert_str_eq(rows.row[0].waiver, "pids_limit");
	ck_assert_str_eq(rows.row[1].waiver, "digest");
	ck_assert_str_eq(rows.row[1].reason, "by hand");
	ck_assert_str_eq(rows.row[1].meta,
			 "{\"owner\":\"o\",\"expires\":\"1970-01-02T00:00:00Z\"}");
	ck_assert_int_eq(rows.row[2].kind, AUDIT_START);
	ck_assert_int_eq(rows.row[2].action, AUDIT_CHANGED);
	ck_assert_str_eq(rows.row[2].meta, "{\"command\":\"sh\"}");
}
END_TEST

START_TEST(started__unchanged_is_allowed)
{
	const struct hard_waiver *none[HARD_PROP_COUNT] = { NULL };
	struct shim_record rec = record();
	struct rows rows;

	rec.changed = false;
	next_call(SHIM_VERB_START);
	shim_audit_record(&rt, &rec);
	ck_assert_int_eq(shim_audit_started(&rt, &rec, none, &e), 0);
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, 1);
	ck_assert_int_eq(rows.row[0].action, AUDIT_ALLOWED);
}
END_TEST

/* ---- policies ---- */

static void load(const char *digest)
{
	(void)snprintf(policy.digest, sizeof(policy.digest), "%s", digest);
	next_call(SHIM_VERB_CREATE);
	shim_audit_policy(&rt, &policy);
	ck_assert_msg(shim_audit_loaded(&rt, &policy, &e) == 0, "%s", e.text);
}

START_TEST(loaded__has_a_row_only_for_another_policy)
{
	struct rows rows;

	load(DIGEST);
	load(DIGEST);
	load(OTHER);
	load(OTHER);
	/* the state folder is lost in a reboot, the log is not */
	ck_assert_int_eq(unlinkat(rt.state.fd, SHIM_AUDIT_POLICY, 0), 0);
	load(OTHER);
	load(DIGEST);
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, 3);
	for (size_t i = 0; i < 3; i++) {
		ck_assert_int_eq(rows.row[i].kind, AUDIT_POLICY);
		ck_assert_int_eq(rows.row[i].action, AUDIT_CHANGED);
		ck_assert_str_eq(rows.row[i].policy, i == 1 ? OTHER : DIGEST);
		ck_assert_ptr_null(rows.row[i].container);
	}
	ck_assert_str_eq(rows.row[0].meta, "{\"mode\":\"enforce\",\"files\":\"/etc/aqe-shim/"
					   "policy.json\",\"images\":0,\"waivers\":0}");
}
END_TEST

START_TEST(loaded__tells_a_new_log)
{
	AQE_AUTO_FD int fd = -1;
	struct rows rows;

	load(DIGEST);
	fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(renameat(fd, "log", fd, "old"), 0);
	load(DIGEST);
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, 1);
}
END_TEST

/* ---- refusals ---- */

static void refuse(enum shim_verb verb, const struct hard_report *report, struct aqe_buf *text)
{
	next_call(verb);
	rt.audit.dir = dir;
	aqe_buf_clear(text);
	aqe_buf_puts(text, "refused: no");
	shim_audit_refused(&rt, report, text);
}

START_TEST(refused__is_a_row_of_the_verbs_that_decide)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(4096);
	size_t want = 0;
	struct rows rows;

	for (int v = 0; v < SHIM_VERB_COUNT; v++) {
		refuse((enum shim_verb)v, NULL, &text);
		ck_assert_str_eq(aqe_buf_str(&text), "refused: no");
		want += v >= SHIM_VERB_CREATE && v <= SHIM_VERB_CHECKPOINT;
	}
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, want);
	for (size_t i = 0; i < rows.n; i++) {
		ck_assert_int_eq(rows.row[i].kind, AUDIT_REFUSAL);
		ck_assert_int_eq(rows.row[i].action, AUDIT_REFUSED);
		ck_assert_str_eq(rows.row[i].reason, "refused: no");
		ck_assert_str_eq(rows.row[i].method, SHIM_VERBS[SHIM_VERB_CREATE + i].name);
		ck_assert_ptr_null(rows.row[i].rule);
		ck_assert_ptr_null(rows.row[i].meta);
	}
}
END_TEST

START_TEST(refused__names_the_property_and_all_findings)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(4096);
	struct hard_report report;
	struct rows rows;

	hard_report_init(&report, rt.arena);
	for (int p = 0; p < HARD_PROP_COUNT; p++)
		hard_report_pass(&report, (enum hard_prop)p);
	hard_report_fail(&report, HARD_NETWORK, NULL, "/linux", "none", "the host's");
	hard_report_fail(&report, HARD_ENGINE_SOCKET, NULL, "/mounts/3", "none", "a socket");
	refuse(SHIM_VERB_CREATE, &report, &text);
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, 1);
	ck_assert_str_eq(rows.row[0].rule, "network");
	ck_assert_ptr_nonnull(strstr(rows.row[0].meta, "\"property\":\"engine_socket\""));
}
END_TEST

/* ---- a log that takes no rows ---- */

/* Ways to make it so; the text that a refusal must have. */
enum fault { NO_FOLDER, FOREIGN_MODE, CORRUPT, NOT_OURS, LINK };
static const struct {
	enum fault fault;
	const char *says;
} faults[] = {
	{ NO_FOLDER, "log" },
	{ FOREIGN_MODE, "open to others" },
	{ CORRUPT, "not a database" },
	{ NOT_OURS, "not a regular file" },
	{ LINK, "log" },
};

static void overwrite(const char *name)
{
	char path[160], junk[4096];
	AQE_AUTO_FD int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	memset(junk, 'x', sizeof(junk));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), 0), sizeof(junk));
}

static void spoil(enum fault fault)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/" AUDIT_DB_FILE, dir);
	switch (fault) {
	case NO_FOLDER:
		(void)snprintf(dir, sizeof(dir), "%s/file", base);
		ck_assert_int_eq(close(open(dir, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
		return;
	case FOREIGN_MODE:
		ck_assert_int_eq(chmod(dir, 0755), 0);
		return;
	case CORRUPT:
		overwrite(AUDIT_DB_FILE);
		return;
	case NOT_OURS:
		ck_assert_int_eq(unlink(path), 0);
		ck_assert_int_eq(mkdir(path, 0700), 0);
		return;
	case LINK:
		ck_assert_int_eq(symlinkat("log", rt.state.fd, "link"), 0);
		(void)snprintf(dir, sizeof(dir), "%s/link", base);
		return;
	}
}

START_TEST(log__that_takes_no_row_refuses_and_says_why)
{
	const struct hard_waiver *none[HARD_PROP_COUNT] = { NULL };
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(4096);
	struct shim_record rec = record();
	struct audit_lost lost;
	const struct audit_opts o = { .dir = dir, .spare_dir = base };

	rec.waived[HARD_DIGEST] = true; /* two rows, one decision */
	make_log();
	spoil(faults[_i].fault);
	next_call(SHIM_VERB_START);
	shim_audit_record(&rt, &rec);
	ck_assert_int_lt(shim_audit_started(&rt, &rec, none, &e), 0);
	ck_assert_msg(aqe_starts(e.text, "not recorded: audit log"), "%s", e.text);
	ck_assert_msg(strstr(e.text, faults[_i].says), "%s", e.text);
	/* the refusal that follows is the same loss: it does not wait for the log again */
	aqe_buf_puts(&text, "refused");
	shim_audit_refused(&rt, NULL, &text);
	ck_assert_str_eq(aqe_buf_str(&text), "refused");
	/* what is no folder has no counter to read, but there is the spare one */
	if (faults[_i].fault != NO_FOLDER) {
		ck_assert_int_eq(audit_lost_read(&o, &lost, &e), 0);
		ck_assert_uint_eq(lost.count, 1);
	}
	/* a refusal of its own says that it left no trace */
	refuse(SHIM_VERB_EXEC, NULL, &text);
	ck_assert_msg(aqe_starts(aqe_buf_str(&text),
				 "refused: no\n(this refusal was not recorded: audit log"),
		      "%s", aqe_buf_str(&text));
}
END_TEST

START_TEST(log__optional_or_off_refuses_nothing)
{
	const struct hard_waiver *none[HARD_PROP_COUNT] = { NULL };
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(4096);
	struct shim_record rec = record();

	make_log();
	spoil(CORRUPT);
	rec.audit_mode = (enum hard_audit_mode)_i;
	next_call(SHIM_VERB_START);
	shim_audit_record(&rt, &rec);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(shim_audit_started(&rt, &rec, none, &e), 0);
	aqe_buf_puts(&text, "refused");
	shim_audit_refused(&rt, NULL, &text);
	ck_assert_str_eq(aqe_buf_str(&text), "refused");
}
END_TEST

START_TEST(off__makes_nothing)
{
	const struct hard_waiver *none[HARD_PROP_COUNT] = { NULL };
	struct shim_record rec = record();
	struct stat st;

	rec.audit_mode = policy.audit.mode = HARD_AUDIT_OFF;
	load(DIGEST);
	next_call(SHIM_VERB_START);
	shim_audit_record(&rt, &rec);
	ck_assert_int_eq(shim_audit_started(&rt, &rec, none, &e), 0);
	shim_audit_stopped(&rt, &rec, 0);
	ck_assert_int_lt(lstat(dir, &st), 0);
}
END_TEST

/* ---- where ---- */

START_TEST(place__is_the_last_one_without_policy_and_record)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(4096);
	struct rows rows;

	load(DIGEST); /* leaves the link */
	next_call(SHIM_VERB_START);
	aqe_buf_puts(&text, "refused");
	shim_audit_refused(&rt, NULL, &text);
	ck_assert_str_eq(aqe_buf_str(&text), "refused");
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, 2);
	ck_assert_int_eq(rows.row[1].kind, AUDIT_REFUSAL);
}
END_TEST

START_TEST(place__without_any_is_no_place)
{
	static char *no_env[] = { NULL };
	struct shim_judged j = { .policy = &policy };

	if (geteuid() == 0)
		return; /* root's has a fixed place */
	policy.audit.user_path = NULL;
	rt.envp = no_env;
	shim_audit_policy(&rt, &policy);
	ck_assert_int_eq(shim_audit_loaded(&rt, &policy, &e), AQE_E_ABSENT);
	(void)j;
}
END_TEST

/* ---- stop ---- */

START_TEST(stopped__has_a_row_in_a_log_that_is_there)
{
	struct shim_record rec = record();
	struct rows rows;
	struct stat st;

	rec.creator_start = 1;
	next_call(SHIM_VERB_DELETE);
	shim_audit_stopped(&rt, &rec, 0);
	ck_assert_int_lt(lstat(dir, &st), 0); /* not made again */
	make_log();
	shim_audit_stopped(&rt, &rec, 7);
	rows = read_log(dir);
	ck_assert_uint_eq(rows.n, 2);
	ck_assert_int_eq(rows.row[1].kind, AUDIT_STOP);
	ck_assert_int_eq(rows.row[1].status, 7);
	ck_assert_int_gt(rows.row[1].duration_ns, 0);
	ck_assert_str_eq(rows.row[1].container, "c1");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_audit");
	TCase *t = tcase_create("audit");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, started__has_a_row_for_each_waiver_and_one_for_the_start);
	tcase_add_test(t, started__unchanged_is_allowed);
	tcase_add_test(t, loaded__has_a_row_only_for_another_policy);
	tcase_add_test(t, loaded__tells_a_new_log);
	tcase_add_test(t, refused__is_a_row_of_the_verbs_that_decide);
	tcase_add_test(t, refused__names_the_property_and_all_findings);
	tcase_add_loop_test(t, log__that_takes_no_row_refuses_and_says_why, 0,
			    (int)AQE_COUNT(faults));
	tcase_add_loop_test(t, log__optional_or_off_refuses_nothing, HARD_AUDIT_OFF,
			    HARD_AUDIT_REQUIRED);
	tcase_add_test(t, off__makes_nothing);
	tcase_add_test(t, place__is_the_last_one_without_policy_and_record);
	tcase_add_test(t, place__without_any_is_no_place);
	tcase_add_test(t, stopped__has_a_row_in_a_log_that_is_there);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
