/* SPDX-License-Identifier: MIT */
/* The reports that programs read: SARIF against the facts of its schema, the formats against each
 * other, and what is said about waivers. */
#include "shim/core/clock.h"
#include "shim/verify_out.h"
#include "tests/unit/cmd_util.h"
#include "tests/unit/sarif_facts.h"

#define SPEC "tests/corpus/spec/"
#define BAD  "tests/corpus/malformed/"

static int run(const char *const *words)
{
	return cmd_run(shim_cmd_verify, "verify", words);
}

#define RUN(...) run((const char *const[]){ "--policy", __VA_ARGS__, NULL })

/* ---- a policy with a waiver ---- */

/* Seconds are of no use in a test: dates around today, as the policy writes them. */
static const char *date(int64_t days)
{
	char *text = aqe_arena_alloc(arena, AQE_TIME_TEXT);

	ck_assert_ptr_nonnull(text);
	aqe_time_format(AQE_CLOCK_SYSTEM.now_s(NULL) + days * 86400, text);
	return text;
}

static const char *waiver_policy(const char *property, const char *who, int64_t days)
{
	struct aqe_json *doc = rw_parse_file(RW_POLICY);

	rw_edit(doc, "/waivers",
		aqe_arena_fmt(arena,
			      "[{\"property\":\"%s\",\"%s\",\"reason\":\"a <b> & "
			      "\\\"c\\\"\",\"owner\":\"o\",\"expires\":\"%s\"}]",
			      property, who, date(days)));
	return cmd_json("policy.json", doc);
}

#define TYPE "agentType\":\"default"

/* ---- SARIF ---- */

/* The members of one object of a shape: known, of the right kind, and none missing. */
static const struct aqe_json *sarif_object_wrong(const char *shape, const struct aqe_json *o)
{
	if (o->type != AQE_JSON_OBJECT)
		return o;
	for (const struct aqe_json *m = o->first; m; m = m->next) {
		const struct sarif_fact *f = sarif_fact(shape, m->key);

		if (!f || !sarif_value_ok(f, m))
			return m;
	}
	for (size_t i = 0; i < AQE_COUNT(SARIF_FACTS); i++)
		if (aqe_str_eq(SARIF_FACTS[i].shape, shape) && SARIF_FACTS[i].required &&
		    !aqe_json_get(o, SARIF_FACTS[i].member))
			return o;
	return NULL;
}

/* The first value that the schema does not allow, or NULL. */
static const struct aqe_json *sarif_wrong(const struct aqe_json *root)
{
	static struct {
		const char *shape;
		const struct aqe_json *v;
	} todo[4096];
	size_t n = 1;

	todo[0].shape = "log";
	todo[0].v = root;

	while (n) {
		const char *shape = todo[--n].shape;
		const struct aqe_json *o = todo[n].v, *wrong;

		if (aqe_str_eq(shape, "bag"))
			continue;
		wrong = sarif_object_wrong(shape, o);
		if (wrong)
			return wrong;
		for (const struct aqe_json *m = o->first; m; m = m->next) {
			const char *of = sarif_fact(shape, m->key)->of;
			const struct aqe_json *i = m->type == AQE_JSON_ARRAY ? m->first : m;

			for (; of && i; i = m->type == AQE_JSON_ARRAY ? i->next : NULL) {
				if (n == AQE_COUNT(todo))
					return i;
				todo[n].shape = of;
				todo[n++].v = i;
			}
		}
	}
	return NULL;
}

static const struct aqe_json *need(const struct aqe_json *o, const char *name,
				   enum aqe_json_type type)
{
	const struct aqe_json *v = aqe_json_get(o, name);

	ck_assert_msg(v && v->type == type, "'%s' is missing or of the wrong type", name);
	return v;
}

static const char *need_text(const struct aqe_json *o, const char *name)
{
	const char *s = aqe_json_str(need(o, name, AQE_JSON_STRING));

	ck_assert_msg(*s, "'%s' is empty", name);
	return s;
}

static void need_message(const struct aqe_json *o, const char *name)
{
	(void)need_text(need(o, name, AQE_JSON_OBJECT), "text");
}

/* What we promise beyond the schema: a place in a file, by a URI reference (RFC 3986). */
static void check_location(const struct aqe_json *l)
{
	const struct aqe_json *p = need(l, "physicalLocation", AQE_JSON_OBJECT);
	const char *uri = need_text(need(p, "artifactLocation", AQE_JSON_OBJECT), "uri");

	for (const char *c = uri; *c; c++)
		ck_assert_msg(*c > ' ' && *c < 0x7f && !strchr("\"<>\\^`{|}", *c), "uri '%s'", uri);
	ck_assert(uri[0] != '/');
}

static void check_rules(const struct aqe_json *driver)
{
	const struct aqe_json *rules = need(driver, "rules", AQE_JSON_ARRAY);

	ck_assert_uint_eq(rules->len, HARD_PROP_COUNT + 2);
	for (const struct aqe_json *r = rules->first; r; r = r->next) {
		const char *id = need_text(r, "id");

		for (const struct aqe_json *q = rules->first; q != r; q = q->next)
			ck_assert_str_ne(need_text(q, "id"), id);
		need_message(r, "shortDescription");
		need_message(r, "fullDescription");
		need_message(r, "help");
		(void)need_text(need(r, "help", AQE_JSON_OBJECT), "markdown");
		(void)need_text(need(r, "defaultConfiguration", AQE_JSON_OBJECT), "level");
	}
}

static void check_result(const struct aqe_json *rules, const struct aqe_json *r)
{
	uint64_t index = 0;

	/* 3.27.10: any kind but "fail" has the level "none" */
	ck_assert_int_eq(strcmp(need_text(r, "kind"), "fail") == 0,
			 strcmp(need_text(r, "level"), "none") != 0);
	need_message(r, "message");
	ck_assert(aqe_json_to_u64(need(r, "ruleIndex", AQE_JSON_NUMBER), rules->len - 1, &index));
	ck_assert_str_eq(need_text(aqe_json_item(rules, index), "id"), need_text(r, "ruleId"));
	ck_assert_uint_ge(need(r, "locations", AQE_JSON_ARRAY)->len, 1);
	for (const struct aqe_json *l = need(r, "locations", AQE_JSON_ARRAY)->first; l; l = l->next)
		check_location(l);
	/* 3.27.23: of all results of a run, or of none */
	for (const struct aqe_json *s = need(r, "suppressions", AQE_JSON_ARRAY)->first; s;
	     s = s->next) {
		(void)need_text(s, "justification");
		check_location(need(s, "location", AQE_JSON_OBJECT));
	}
}

static void check_notes(const struct aqe_json *driver, const struct aqe_json *list)
{
	for (const struct aqe_json *n = list->first; n; n = n->next) {
		const struct aqe_json *locations = aqe_json_get(n, "locations"), *known;
		const char *id = need_text(need(n, "descriptor", AQE_JSON_OBJECT), "id");

		need_message(n, "message");
		known = need(driver, "notifications", AQE_JSON_ARRAY)->first;
		while (known && strcmp(need_text(known, "id"), id) != 0)
			known = known->next;
		ck_assert_msg(known != NULL, "'%s' is not described", id);
		for (const struct aqe_json *l = locations ? locations->first : NULL; l; l = l->next)
			check_location(l);
	}
}

/* Returns the run. */
static const struct aqe_json *check_sarif(int status)
{
	const struct aqe_json *root = rw_value(aqe_buf_str(&out)), *wrong = sarif_wrong(root);
	AQE_AUTO_BUF struct aqe_buf at = AQE_BUF_INIT(4096);
	const struct aqe_json *run, *calls, *rules, *driver;
	int64_t exit_code = -1;

	if (wrong)
		aqe_json_pointer(wrong, &at);
	ck_assert_msg(!wrong, "the schema does not allow %s", aqe_buf_str(&at));
	run = need(root, "runs", AQE_JSON_ARRAY)->first;
	ck_assert(run && !run->next);
	driver = aqe_json_at(run, "/tool/driver");
	check_rules(driver);
	rules = aqe_json_get(driver, "rules");
	for (const struct aqe_json *r = need(run, "results", AQE_JSON_ARRAY)->first; r; r = r->next)
		check_result(rules, r);
	calls = need(run, "invocations", AQE_JSON_ARRAY)->first;
	ck_assert(need(calls, "executionSuccessful", AQE_JSON_BOOL)->boolean == (status < 2));
	ck_assert(aqe_json_to_i64(aqe_json_get(calls, "exitCode"), 0, 255, &exit_code));
	ck_assert_int_eq((int)exit_code, status);
	check_notes(driver, need(calls, "toolExecutionNotifications", AQE_JSON_ARRAY));
	check_notes(driver, need(calls, "toolConfigurationNotifications", AQE_JSON_ARRAY));
	return run;
}

static const struct {
	const char *files[4];
	int status;
	size_t at_least; /* results */
} calls[] = {
	{ { SPEC "ok-base.json" }, SHIM_EXIT_OK, 0 },
	{ { SPEC "user-uid-gid-0.json", SPEC "ok-base.json" }, SHIM_EXIT_FAILED, 4 },
	{ { BAD "dup-uid.json" }, SHIM_EXIT_MALFORMED, 1 },
	{ { "/none here?#" }, SHIM_EXIT_UNDECIDED, 1 },
	{ { BAD "empty.json", SPEC "seccomp-docker-20.10.json", "/none" }, SHIM_EXIT_UNDECIDED, 3 },
};

START_TEST(sarif__keeps_to_its_schema)
{
	const char *const *f = calls[_i].files;
	const struct aqe_json *one;

	ck_assert_int_eq(RUN(RW_POLICY, "--format", "sarif", f[0], f[1], f[2]), calls[_i].status);
	one = check_sarif(calls[_i].status);
	ck_assert_uint_ge(aqe_json_get(one, "results")->len, calls[_i].at_least);
	ck_assert_int_eq(aqe_json_get(one, "results")->len == 0, calls[_i].status == SHIM_EXIT_OK);
	ck_assert_uint_eq(errors.len, 0);
	if (calls[_i].status > SHIM_EXIT_FAILED)
		ck_assert_uint_ge(
			aqe_json_at(one, "/invocations/0/toolExecutionNotifications")->len, 1);
}
END_TEST

START_TEST(sarif__all_has_a_result_a_property)
{
	const struct aqe_json *one;

	ck_assert_int_eq(RUN(RW_POLICY, "--all", "--format", "sarif", SPEC "ok-base.json"), 0);
	one = check_sarif(SHIM_EXIT_OK);
	ck_assert_uint_eq(aqe_json_get(one, "results")->len, HARD_PROP_COUNT);
}
END_TEST

/* Without a policy nothing is judged: no report may look as if all were well. */
START_TEST(sarif__is_not_empty_when_nothing_was_judged)
{
	const struct aqe_json *one;

	ck_assert_int_eq(RUN("/none", "--format", "sarif", SPEC "ok-base.json"),
			 SHIM_EXIT_UNDECIDED);
	one = check_sarif(SHIM_EXIT_UNDECIDED);
	ck_assert_uint_eq(aqe_json_get(one, "results")->len, 1);
	ck_assert_uint_gt(errors.len, 0);
	ck_assert_int_eq(RUN("/none", "--format", "junit", SPEC "ok-base.json"),
			 SHIM_EXIT_UNDECIDED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "errors=\"27\""));
	ck_assert_int_eq(RUN("/none", "--format", "json", SPEC "ok-base.json"),
			 SHIM_EXIT_UNDECIDED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "\"verdict\":\"unknown\""));
}
END_TEST

/* The facts are strict: whatever is changed in a good report is noticed. `v` is put back. */
static void break_value(const struct aqe_json *root, struct aqe_json *v)
{
	struct aqe_json was = *v;
	bool closed = v->key != NULL; /* in every shape one of a few words */

	for (size_t i = 0; closed && i < AQE_COUNT(SARIF_FACTS); i++)
		closed = !aqe_str_eq(SARIF_FACTS[i].member, v->key) || SARIF_FACTS[i].values;
	v->type = v->type == AQE_JSON_NULL ? AQE_JSON_BOOL : AQE_JSON_NULL; /* another type */
	v->first = v->last = NULL;
	ck_assert_msg(sarif_wrong(root) != NULL, "type of %s", v->key ? v->key : "an item");
	*v = was;
	if (v->key) { /* another name */
		v->key = "x";
		ck_assert_msg(sarif_wrong(root) != NULL, "name of %s", was.key);
		*v = was;
	}
	if (closed && v->type == AQE_JSON_STRING) { /* another word */
		v->text = "x";
		ck_assert_msg(sarif_wrong(root) != NULL, "value of %s", was.key);
		*v = was;
	}
	if (v->type == AQE_JSON_NUMBER) {
		v->text = "-2147483649";
		ck_assert_msg(sarif_wrong(root) != NULL, "value of %s", was.key);
		*v = was;
	}
}

static struct aqe_json *after(struct aqe_json *v)
{
	if (v->first && !aqe_str_eq(v->key, "properties")) /* property bags are open */
		return v->first;
	while (v && !v->next)
		v = v->parent;
	return v ? v->next : NULL;
}

START_TEST(sarif__facts_notice_every_change)
{
	const char *p = waiver_policy("user", TYPE, 5);
	struct aqe_json *root;
	size_t n = 0;

	ck_assert_int_eq(RUN(p, "--format", "sarif", SPEC "user-uid-0.json", "/none"),
			 SHIM_EXIT_UNDECIDED);
	root = rw_value(aqe_buf_str(&out));
	ck_assert_ptr_null(sarif_wrong(root));
	for (struct aqe_json *v = root; v; v = after(v), n++)
		break_value(root, v);
	ck_assert_uint_gt(n, 400);
	/* every fact is about something in it */
	for (size_t i = 0; i < AQE_COUNT(SARIF_FACTS); i++)
		ck_assert_msg(strstr(aqe_buf_str(&out), SARIF_FACTS[i].member) != NULL, "%s",
			      SARIF_FACTS[i].member);
}
END_TEST

/* ---- the formats agree ---- */

static const char *const same[] = {
	SPEC "ok-base.json",
	SPEC "user-uid-gid-0.json",
	SPEC "tmpfs-run-type-but-bind-run.json",
	SPEC "caps-empty-object.json",
	SPEC "seccomp-docker-20.10.json",
	"tests/samples/podman-privileged.json",
	"tests/samples/docker-bridge.json",
};

static bool sarif_has(const struct aqe_json *results, const char *line, const char *id)
{
	for (const struct aqe_json *r = results->first; r; r = r->next) {
		const struct aqe_json *at =
			aqe_json_at(r, "/locations/0/physicalLocation/region/startLine");

		if (strcmp(need_text(r, "ruleId"), id) == 0 && aqe_str_eq(at ? at->text : "", line))
			return true;
	}
	return false;
}

/* Every line "FILE:LINE:COL: fail ID ..." is a result at that line, and JUnit and JSON have as many
 * failures as the summary says. */
START_TEST(formats__say_the_same)
{
	const char *file = same[_i], *text, *json, *junit;
	const struct aqe_json *results, *list;
	const int status = RUN(RW_POLICY, "--all", file);
	size_t failed = 0;

	text = aqe_arena_dup(arena, aqe_buf_str(&out));
	ck_assert_int_eq(RUN(RW_POLICY, "--format", "sarif", file), status);
	results = aqe_json_get(check_sarif(status), "results");
	ck_assert_int_eq(RUN(RW_POLICY, "--format", "junit", file), status);
	junit = aqe_arena_dup(arena, aqe_buf_str(&out));
	ck_assert_int_eq(RUN(RW_POLICY, "--format", "json", file), status);
	json = aqe_buf_str(&out);
	list = aqe_json_get(rw_value(json), "properties");
	for (const struct aqe_json *p = list->first; p; p = p->next) {
		const char *id = need_text(p, "id"), *result = need_text(p, "result");
		const struct aqe_json *line = aqe_json_get(p, "line");
		const char *at = line ? line->text : "";

		ck_assert_ptr_nonnull(strstr(text, aqe_arena_fmt(arena, ": %s %s", result, id)));
		ck_assert(sarif_has(results, at, id) == (strcmp(result, "pass") != 0));
		failed += strcmp(result, "fail") == 0;
	}
	ck_assert_ptr_nonnull(
		strstr(junit, aqe_arena_fmt(arena, "tests=\"26\" failures=\"%zu\"", failed)));
	ck_assert_ptr_nonnull(strstr(text, aqe_arena_fmt(arena, " %zu failed", failed)));
}
END_TEST

/* ---- waivers ---- */

static const struct {
	const char *property;
	int64_t days; /* from now */
	int status;
	const char *id, *text; /* NULL: no warning */
} waivers[] = {
	{ "user", 100, SHIM_EXIT_OK, NULL, NULL },
	{ "user", 15, SHIM_EXIT_OK, NULL, NULL },
	{ "user", 13, SHIM_EXIT_OK, "waiver_soon", "expires soon" },
	{ "user", 0, SHIM_EXIT_FAILED, "waiver_expired", "counts as absent" },
	{ "user", -1, SHIM_EXIT_FAILED, "waiver_expired", "counts as absent" },
	{ "network", 100, SHIM_EXIT_FAILED, "waiver_unused", "is not needed" },
	{ "network", 3, SHIM_EXIT_FAILED, "waiver_unused", "is not needed" },
};

START_TEST(waivers__are_warned_of)
{
	const char *p = waiver_policy(waivers[_i].property, TYPE, waivers[_i].days);
	const char *id = waivers[_i].id, *file = SPEC "user-uid-0.json";
	const struct aqe_json *one, *notes, *list;

	ck_assert_int_eq(RUN(p, file), waivers[_i].status);
	ck_assert_int_eq(errors.len != 0, id != NULL);
	if (id)
		ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), waivers[_i].text));
	ck_assert_ptr_null(strstr(aqe_buf_str(&out), "warning"));
	ck_assert_int_eq(RUN(p, "--format", "json", file), waivers[_i].status);
	list = aqe_json_get(rw_value(aqe_buf_str(&out)), "warnings");
	ck_assert_uint_eq(list->len, id ? 1 : 0);
	ck_assert_uint_eq(errors.len, 0);
	if (id)
		ck_assert_str_eq(need_text(list->first, "id"), id);
	ck_assert_int_eq(RUN(p, "--format", "sarif", file), waivers[_i].status);
	one = check_sarif(waivers[_i].status);
	notes = aqe_json_at(one, "/invocations/0/toolConfigurationNotifications");
	ck_assert_uint_eq(notes->len, id ? 1 : 0);
	ck_assert_uint_eq(errors.len, 0);
	if (id)
		ck_assert_str_eq(aqe_json_str(aqe_json_at(notes, "/0/descriptor/id")), id);
	/* waived findings stay visible, suppressed */
	list = aqe_json_at(one, "/results/0/suppressions");
	ck_assert_uint_eq(list->len, waivers[_i].status == SHIM_EXIT_OK ? 1 : 0);
	if (list->len)
		ck_assert_ptr_nonnull(strstr(need_text(list->first, "justification"),
					     "a <b> & \"c\" (owner o, expires 2"));
}
END_TEST

START_TEST(waivers__of_others_are_not_mentioned)
{
	const char *p = waiver_policy("user", "agentType\":\"qe-security-scanner", -1);

	ck_assert_int_eq(RUN(p, SPEC "ok-base.json"), SHIM_EXIT_OK);
	ck_assert_uint_eq(errors.len, 0);
}
END_TEST

/* Used by one of two files: it is needed. */
START_TEST(waivers__are_judged_over_all_files)
{
	const char *p = waiver_policy("user", TYPE, 100);

	ck_assert_int_eq(RUN(p, SPEC "ok-base.json", SPEC "user-uid-0.json"), SHIM_EXIT_OK);
	ck_assert_uint_eq(errors.len, 0);
	ck_assert_int_eq(RUN(p, "--format", "junit", SPEC "user-uid-0.json"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "a &lt;b&gt; &amp; &quot;c&quot; (o)"));
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "skipped=\"1\""));
}
END_TEST

/* ---- explaining ---- */

#define EXPLAIN(...) run((const char *const[]){ "--explain", __VA_ARGS__, NULL })

static const struct {
	const char *file;
	int status;
	const char *parts[3];
} filters[] = {
	{ SPEC "ok-base.json",
	  SHIM_EXIT_OK,
	  { "the frozen filter", " 0 forbidden calls reachable", NULL } },
	{ "tests/samples/docker-bridge.json",
	  SHIM_EXIT_FAILED,
	  { "socket(AF_VSOCK) on x86_64: allowed", "io_uring_setup on x86_64: allowed", NULL } },
	{ "tests/samples/podman-default.json",
	  SHIM_EXIT_FAILED,
	  { "clone(CLONE_NEWUSER) on x86_64: allowed", "  unshare on x86_64: allowed", NULL } },
	{ "tests/samples/podman-seccomp-unconfined.json", SHIM_EXIT_FAILED, { "no filter", NULL } },
	{ BAD "dup-uid.json", SHIM_EXIT_MALFORMED, { ":12:4: duplicate key", NULL } },
	{ "/none", SHIM_EXIT_UNDECIDED, { "/none: open", NULL } },
};

START_TEST(explain__proves_a_filter)
{
	const char *file = filters[_i].file;
	const struct aqe_json *f;

	ck_assert_int_eq(EXPLAIN("seccomp", file), filters[_i].status);
	for (size_t i = 0; filters[_i].parts[i]; i++)
		ck_assert_msg(strstr(aqe_buf_str(&out), filters[_i].parts[i]) != NULL, "%s: %s",
			      filters[_i].parts[i], aqe_buf_str(&out));
	ck_assert_int_eq(EXPLAIN("seccomp", "--format", "json", file), filters[_i].status);
	f = aqe_json_get(rw_value(aqe_buf_str(&out)), "filter");
	ck_assert_str_eq(need_text(f, "file"), file);
	ck_assert(aqe_json_get(f, "error") || need(f, "forbidden", AQE_JSON_ARRAY));
}
END_TEST

START_TEST(explain__every_property)
{
	const char *id = HARDENING_PROFILE[_i].id;
	const struct aqe_json *doc;

	ck_assert_int_eq(EXPLAIN(id), SHIM_EXIT_OK);
	ck_assert(aqe_starts(aqe_buf_str(&out), id));
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), HARDENING_PROFILE[_i].why));
	ck_assert_int_eq(EXPLAIN(id, "--format", "json"), SHIM_EXIT_OK);
	doc = rw_value(aqe_buf_str(&out));
	ck_assert_str_eq(need_text(doc, "id"), id);
	ck_assert(*need_text(doc, "rules") == 'R');
	for (const struct aqe_json *r = need(doc, "references", AQE_JSON_ARRAY)->first; r;
	     r = r->next) {
		ck_assert(aqe_starts(aqe_json_str(aqe_json_at(r, "/ids/0")), "CVE-"));
		ck_assert_uint_eq(strlen(need_text(r, "date")), 7);
		(void)need_text(r, "source");
	}
}
END_TEST

START_TEST(explain__usage)
{
	ck_assert_int_eq(EXPLAIN("nothing"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(EXPLAIN("user", SPEC "ok-base.json"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(EXPLAIN("seccomp", "a", "b"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(EXPLAIN("user", "--format", "sarif"), SHIM_EXIT_USAGE);
}
END_TEST

/* ---- foreign words ---- */

START_TEST(junit__holds_no_character_that_xml_forbids)
{
	static const char word[] = "a\x01\x1b\x7f\xff\xef\xbf\xbf\xc3\xa9<&>\"\n";
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	struct shim_junit_sums sums = { 0, 0, 0, 0 };
	const struct shim_judged j = { .file = word,
				       .kind = "spec",
				       .report = &report,
				       .verdict = SHIM_VERDICT_UNKNOWN,
				       .error = AQE_ERR_INIT };

	shim_junit_add(&j, &b, &sums);
	ck_assert_ptr_nonnull(
		strstr(aqe_buf_str(&b), "name=\"a?????\xc3\xa9&lt;&amp;&gt;&quot;&#10;\""));
	ck_assert_uint_eq(sums.errors, HARD_PROP_COUNT);
}
END_TEST

START_TEST(report__lost_findings_are_an_error)
{
	struct shim_judged j = { .file = "f",
				 .kind = "spec",
				 .report = &report,
				 .verdict = SHIM_VERDICT_UNKNOWN,
				 .error = AQE_ERR_INIT };
	struct shim_out o;

	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		hard_report_pass(&report, (enum hard_prop)i);
	report.nomem = true;
	shim_out_init(&o, SHIM_FORMAT_SARIF, 0);
	ck_assert_ok(shim_out_add(&o, &j, &err), err);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&o.body), "undecided_document"));
	shim_out_done(&o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim/report");
	TCase *c = tcase_create("report");

	tcase_add_checked_fixture(c, cmd_setup, cmd_teardown);
	tcase_add_loop_test(c, sarif__keeps_to_its_schema, 0, AQE_COUNT(calls));
	tcase_add_test(c, sarif__all_has_a_result_a_property);
	tcase_add_test(c, sarif__is_not_empty_when_nothing_was_judged);
	tcase_add_test(c, sarif__facts_notice_every_change);
	tcase_add_loop_test(c, formats__say_the_same, 0, AQE_COUNT(same));
	tcase_add_loop_test(c, waivers__are_warned_of, 0, AQE_COUNT(waivers));
	tcase_add_test(c, waivers__of_others_are_not_mentioned);
	tcase_add_test(c, waivers__are_judged_over_all_files);
	tcase_add_loop_test(c, explain__proves_a_filter, 0, AQE_COUNT(filters));
	tcase_add_loop_test(c, explain__every_property, 0, HARD_PROP_COUNT);
	tcase_add_test(c, explain__usage);
	tcase_add_test(c, junit__holds_no_character_that_xml_forbids);
	tcase_add_test(c, report__lost_findings_are_an_error);
	suite_add_tcase(s, c);
	return unit_run(s);
}
