/* SPDX-License-Identifier: MIT */
/* `aqe-shim verify`: exit statuses, streams, and the two formats against tests/golden. After a
 * wanted change of a format: `make golden`, and read the difference. */
#include "shim/engine_info.h"
#include "shim/verdict.h"
#include "tests/unit/cmd_util.h"

#define SPEC  "tests/corpus/spec/"
#define BAD   "tests/corpus/malformed/"
#define OTHER "sha256:0000000000000000000000000000000000000000000000000000000000000001"

static int run(const char *const *words)
{
	return cmd_run(shim_cmd_verify, "verify", words);
}

#define RUN(...) run((const char *const[]){ "--policy", RW_POLICY, __VA_ARGS__, NULL })

static void check_golden(const char *name)
{
	const char *path = aqe_arena_fmt(arena, "tests/golden/%s", name);
	AQE_AUTO_BUF struct aqe_buf want = AQE_BUF_INIT(RW_FILE_MAX);

	if (getenv("AQE_GOLDEN_UPDATE")) {
		FILE *f = fopen(path, "we");

		ck_assert_ptr_nonnull(f);
		ck_assert_uint_eq(fwrite(aqe_buf_str(&out), 1, out.len, f), out.len);
		ck_assert_int_eq(fclose(f), 0);
	}
	rw_read_file(path, &want);
	ck_assert_msg(aqe_str_eq(aqe_buf_str(&out), aqe_buf_str(&want)),
		      "%s differs; after a wanted change: make golden\n%s", path,
		      aqe_buf_str(&out));
}

/* ---- exit statuses ---- */

static const struct {
	const char *file;
	int status;
} files[] = {
	{ SPEC "ok-base.json", SHIM_EXIT_OK },
	{ SPEC "user-uid-0.json", SHIM_EXIT_FAILED },
	{ BAD "dup-uid.json", SHIM_EXIT_MALFORMED },
	{ BAD "empty.json", SHIM_EXIT_MALFORMED },
	{ "tests/corpus/inspect/podman-ok-tighter.json", SHIM_EXIT_OK },
	{ "tests/corpus/inspect/docker-ok-base.json", SHIM_EXIT_FAILED }, /* without an info */
	{ "tests/corpus/inspect/image-podman-ok.json", SHIM_EXIT_OK },
	{ "tests/corpus/inspect/info-podman-ok.json", SHIM_EXIT_OK },
	{ "tests/corpus/inspect/podman-doc-object.json", SHIM_EXIT_MALFORMED },
	{ "tests/no-such-file", SHIM_EXIT_UNDECIDED },
	{ "tests", SHIM_EXIT_UNDECIDED },
	{ "/dev/null", SHIM_EXIT_UNDECIDED },
};

START_TEST(verify__exit_status)
{
	ck_assert_int_eq(RUN(files[_i].file), files[_i].status);
	ck_assert_uint_eq(errors.len, 0);
}
END_TEST

START_TEST(verify__the_worst_of_several)
{
	ck_assert_int_eq(RUN(SPEC "ok-base.json", SPEC "user-uid-0.json"), SHIM_EXIT_FAILED);
	ck_assert_int_eq(RUN(SPEC "user-uid-0.json", SPEC "ok-base.json"), SHIM_EXIT_FAILED);
	ck_assert_int_eq(RUN(BAD "dup-uid.json", SPEC "user-uid-0.json"), SHIM_EXIT_MALFORMED);
	ck_assert_int_eq(RUN("/none", BAD "dup-uid.json", SPEC "ok-base.json"),
			 SHIM_EXIT_UNDECIDED);
}
END_TEST

static const struct {
	const char *words[5], *part;
} usages[] = {
	{ { NULL }, "no file given" },
	{ { "--format", "json", NULL }, "no file given" },
	{ { "--format", "xml", "f", NULL }, "no such format 'xml'" },
	{ { "--format", NULL }, "value is missing" },
	{ { "--image-digest", "latest", "f", NULL }, "sha256:" },
	{ { "--image-digest", "SHA256:00", "f", NULL }, "sha256:" },
	{ { "--container", "nerdctl:x", NULL }, "podman:NAME or docker:NAME" },
	{ { "--container", "podman:", NULL }, "podman:NAME" },
	{ { "--container", "podman:-x", NULL }, "podman:NAME" },
	{ { "--container", "docker:a b", NULL }, "podman:NAME" },
	{ { "--frobnicate", "f", NULL }, "unknown option" },
	{ { "--pol", "f", "f", NULL }, "unknown option" },
};

START_TEST(verify__usage)
{
	ck_assert_int_eq(run(usages[_i].words), SHIM_EXIT_USAGE);
	ck_assert_uint_eq(out.len, 0);
	ck_assert_msg(strstr(aqe_buf_str(&errors), usages[_i].part) != NULL, "%s",
		      aqe_buf_str(&errors));
}
END_TEST

START_TEST(verify__help)
{
	ck_assert_int_eq(run((const char *const[]){ "--help", NULL }), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "--image-digest"));
	ck_assert_uint_eq(errors.len, 0);
}
END_TEST

START_TEST(verify__policy_that_cannot_be_read)
{
	const char *broken = cmd_file("policy.json", "{", 1);

	ck_assert_int_eq(run((const char *const[]){ "--policy", broken, SPEC "ok-base.json",
						    NULL }),
			 SHIM_EXIT_UNDECIDED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), "policy.json"));
	ck_assert_uint_eq(out.len, 0);
	ck_assert_int_eq(run((const char *const[]){ "--policy", cmd_path("none"),
						    SPEC "ok-base.json", NULL }),
			 SHIM_EXIT_UNDECIDED);
}
END_TEST

/* ---- what is read ---- */

START_TEST(verify__links_and_fifos)
{
	ck_assert_int_eq(symlink("/etc/passwd", cmd_path("link")), 0);
	ck_assert_int_eq(RUN(cmd_path("link")), SHIM_EXIT_UNDECIDED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "pipe it to '-'"));
	ck_assert_int_eq(mkfifo(cmd_path("fifo"), 0600), 0);
	ck_assert_int_eq(RUN(cmd_path("fifo")), SHIM_EXIT_UNDECIDED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "'-'"));
}
END_TEST

START_TEST(verify__size_limit)
{
	const size_t max = (size_t)1 << 20;
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(2 * ((size_t)1 << 20));
	char *blanks = aqe_arena_alloc(arena, max);

	ck_assert_ptr_nonnull(blanks);
	memset(blanks, ' ', max);
	rw_read_file(SPEC "ok-base.json", &text);
	ck_assert_int_eq(aqe_buf_add(&text, blanks, max), 0);
	ck_assert_int_eq(RUN(cmd_file("full", aqe_buf_str(&text), max)), SHIM_EXIT_OK);
	ck_assert_int_eq(RUN(cmd_file("over", aqe_buf_str(&text), max + 1)), SHIM_EXIT_MALFORMED);
}
END_TEST

START_TEST(verify__standard_input)
{
	ck_assert_ptr_nonnull(freopen(SPEC "ok-base.json", "re", stdin));
	ck_assert_int_eq(RUN("-"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "(standard input): conform"));
}
END_TEST

START_TEST(verify__image_digest_beside_the_document)
{
	const char *const digest = policy->images[0].digest;

	ck_assert_int_eq(RUN(SPEC "digest-missing.json"), SHIM_EXIT_FAILED);
	ck_assert_int_eq(RUN("--image-digest", digest, SPEC "digest-missing.json"), SHIM_EXIT_OK);
	ck_assert_int_eq(RUN("--image-digest", OTHER, SPEC "ok-base.json"), SHIM_EXIT_FAILED);
}
END_TEST

START_TEST(verify__agent_type_of_the_document)
{
	static const char text[] =
		"{\"version\":1,\"images\":[{\"digest\":\"sha256:"
		"8bef762011d9d6a4add126b5d9d2ae2aed9621"
		"d380631d96bc16e5a6b3bc2e79\",\"types\":[\"qe-security-scanner\"]}],\"mounts\":["
		"{\"source\":\"/srv/aqe/workspace\",\"destination\":\"/workspace\"},"
		"{\"source\":\"/srv/aqe/realms/qe/state\",\"destination\":\"/var/lib/aqe\"}]}";
	const char *p = cmd_file("types.json", text, strlen(text));
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	struct aqe_json *doc = rw_parse_file(RW_BASE);
	const char *file;

	/* the only type the image may run as: its ceiling is 4 GiB */
	rw_edit(doc, "/linux/resources/memory", "{\"limit\":4294967296,\"swap\":4294967296}");
	ck_assert_ok(aqe_json_emit(doc, AQE_JSON_COMPACT, &b, &err), err);
	file = cmd_file("big.json", aqe_buf_str(&b), b.len);
	ck_assert_int_eq(run((const char *const[]){ "--policy", p, file, NULL }), SHIM_EXIT_OK);
	ck_assert_int_eq(RUN(file), SHIM_EXIT_FAILED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "memory_limit"));
	/* another type, which the image may not run as */
	rw_edit(doc, "/annotations/io.aqe.agent-type", "\"qe-test-generator\"");
	aqe_buf_clear(&b);
	ck_assert_ok(aqe_json_emit(doc, AQE_JSON_COMPACT, &b, &err), err);
	file = cmd_file("other.json", aqe_buf_str(&b), b.len);
	ck_assert_int_eq(run((const char *const[]){ "--policy", p, file, NULL }), SHIM_EXIT_FAILED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "fail digest"));
}
END_TEST

START_TEST(verify__engine_info)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(RW_FILE_MAX);
	struct aqe_json *doc = rw_parse_file(RW_BASE);
	const char *plain;

	rw_edit(doc, "/linux/uidMappings", NULL);
	rw_edit(doc, "/linux/gidMappings", NULL);
	aqe_json_detach(aqe_json_at(doc, "/linux/namespaces/5"));
	ck_assert_ok(aqe_json_emit(doc, AQE_JSON_COMPACT, &text, &err), err);
	plain = cmd_file("plain.json", aqe_buf_str(&text), text.len);
	ck_assert_int_eq(RUN(plain), SHIM_EXIT_FAILED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "rootless"));
	ck_assert_int_eq(RUN("--engine-info", "tests/corpus/inspect/info-podman-ok.json", plain),
			 SHIM_EXIT_OK);
	ck_assert_int_eq(RUN("--engine-info", "tests/corpus/inspect/info-docker-lookalike.json",
			     plain),
			 SHIM_EXIT_FAILED);
	ck_assert_int_eq(RUN("--engine-info", "tests/corpus/inspect/info-podman-empty.json", plain),
			 SHIM_EXIT_UNDECIDED);
	ck_assert_int_eq(RUN("--engine-info", BAD "dup-uid.json", plain), SHIM_EXIT_MALFORMED);
}
END_TEST

#define INSPECT "tests/corpus/inspect/"

/* An engine's word counts for its own containers only. */
START_TEST(verify__engine_info_of_the_same_engine)
{
	ck_assert_int_eq(RUN("--engine-info", INSPECT "info-docker-ok.json",
			     INSPECT "docker-ok-base.json"),
			 SHIM_EXIT_OK);
	ck_assert_int_eq(RUN("--engine-info", INSPECT "info-podman-ok.json",
			     INSPECT "docker-ok-base.json"),
			 SHIM_EXIT_FAILED);
	ck_assert_int_eq(RUN("--engine-info", INSPECT "info-docker-seccomp-unconfined.json",
			     INSPECT "docker-ok-base.json"),
			 SHIM_EXIT_FAILED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "fail seccomp"));
}
END_TEST

static size_t count(const char *needle)
{
	size_t n = 0;

	for (const char *p = aqe_buf_str(&out); (p = strstr(p, needle)); p++)
		n++;
	return n;
}

/* The document is not one container's, but each of its containers is judged and shown. */
START_TEST(verify__several_containers)
{
	ck_assert_int_eq(RUN("--format", "json", INSPECT "docker-doc-two-containers.json"),
			 SHIM_EXIT_MALFORMED);
	ck_assert_uint_eq(count("\"verdict\":\"malformed\""), 2);
	ck_assert_uint_eq(count("\"pointer\":\"/0/HostConfig/UsernsMode\""), 1);
	ck_assert_uint_eq(count("\"pointer\":\"/1/HostConfig/UsernsMode\""), 1);
	ck_assert_int_eq(RUN(INSPECT "docker-doc-two-containers.json"), SHIM_EXIT_MALFORMED);
	ck_assert_uint_eq(count("fail rootless"), 2);
	ck_assert_uint_eq(count("2 objects, where docker container inspect"), 2);
}
END_TEST

START_TEST(verify__kinds_and_what_is_only_declared)
{
	ck_assert_int_eq(RUN("--format", "json", INSPECT "podman-ok-tighter.json",
			     INSPECT "image-podman-ok.json", INSPECT "info-podman-ok.json"),
			 SHIM_EXIT_OK);
	ck_assert_uint_eq(count("\"kind\":\"inspect\",\"dialect\":\"podman container inspect\""),
			  1);
	ck_assert_uint_eq(count("\"kind\":\"image\""), 1);
	ck_assert_uint_eq(count("\"kind\":\"info\""), 1);
	ck_assert_uint_gt(count("\"declared\":"), 3);
	ck_assert_int_eq(RUN("--all", INSPECT "podman-ok-tighter.json"), SHIM_EXIT_OK);
	ck_assert_uint_gt(count("(declared only: "), 3);
}
END_TEST

/* Another tool's document never passes, and is named. */
START_TEST(verify__foreign_document)
{
	static const char crictl[] = "{\"info\":{},\"status\":{\"id\":\"x\"}}";

	ck_assert_int_eq(RUN(cmd_file("c.json", crictl, strlen(crictl))), SHIM_EXIT_UNDECIDED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "a document of crictl"));
}
END_TEST

static const struct {
	const char *text;
	int rc;
	bool rootless;
} infos[] = {
	{ "{\"host\":{\"security\":{\"rootless\":true}}}", 0, true },
	{ "{\"host\":{\"security\":{\"rootless\":false}},\"x\":0.123456789012345678901}", 0,
	  false },
	{ "{\"SecurityOptions\":[\"name=rootless\"]}", 0, true },
	{ "{\"SecurityOptions\":[\"name=seccomp,profile=default\",\"name=userns\"]}", 0, true },
	{ "{\"SecurityOptions\":[\"name=rootless,x=y\"]}", 0, true },
	{ "{\"SecurityOptions\":[\"name=rootless-not\",\"rootless\",\"name=usernsx\"]}", 0, false },
	{ "{\"SecurityOptions\":[]}", 0, false },
	{ "{}", AQE_E_UNKNOWN, false },
	{ "{\"host\":{}}", AQE_E_UNKNOWN, false },
	{ "{\"host\":{\"security\":{\"rootless\":\"true\"}}}", AQE_E_MALFORMED, false },
	{ "{\"SecurityOptions\":null}", AQE_E_MALFORMED, false },
	{ "{\"SecurityOptions\":[1]}", AQE_E_MALFORMED, false },
	{ "[]", AQE_E_MALFORMED, false },
	{ "", AQE_E_MALFORMED, false },
};

START_TEST(shim_engine_info__podman_and_docker)
{
	struct shim_info info = { 0 };

	ck_assert_msg(shim_engine_info(infos[_i].text, strlen(infos[_i].text), &info, &err) ==
			      infos[_i].rc,
		      "%s: %s", infos[_i].text, err.text);
	ck_assert(info.rootless == infos[_i].rootless);
}
END_TEST

/* ---- what is written ---- */

START_TEST(verify__golden_text)
{
	ck_assert_int_eq(RUN(SPEC "ok-base.json", SPEC "user-uid-gid-0.json",
			     SPEC "tmpfs-run-type-but-bind-run.json", BAD "dup-uid.json"),
			 SHIM_EXIT_MALFORMED);
	check_golden("verify.txt");
}
END_TEST

START_TEST(verify__golden_text_all)
{
	ck_assert_int_eq(RUN("--all", SPEC "caps-empty-object.json"), SHIM_EXIT_FAILED);
	check_golden("verify-all.txt");
}
END_TEST

START_TEST(verify__golden_json)
{
	ck_assert_int_eq(RUN("--format", "json", SPEC "user-empty.json", BAD "dup-uid.json"),
			 SHIM_EXIT_MALFORMED);
	check_golden("verify.json");
}
END_TEST

START_TEST(verify__golden_sarif)
{
	ck_assert_int_eq(RUN("--format", "sarif", SPEC "ok-base.json", SPEC "user-uid-gid-0.json",
			     BAD "dup-uid.json"),
			 SHIM_EXIT_MALFORMED);
	check_golden("verify.sarif");
}
END_TEST

START_TEST(verify__golden_junit)
{
	ck_assert_int_eq(RUN("--format", "junit", SPEC "user-uid-gid-0.json", BAD "dup-uid.json"),
			 SHIM_EXIT_MALFORMED);
	check_golden("verify.junit.xml");
}
END_TEST

/* One document a file, every property in each, in the profile's order. */
START_TEST(verify__json_lists_every_property)
{
	const char *line;
	size_t documents = 0;

	ck_assert_int_eq(RUN("--format=json", SPEC "ok-base.json", SPEC "root-rw.json",
			     BAD "array.json", "/none"),
			 SHIM_EXIT_UNDECIDED);
	line = aqe_buf_str(&out);
	for (; *line; line += strcspn(line, "\n") + 1, documents++) {
		const char *one = aqe_arena_ndup(arena, line, strcspn(line, "\n"));
		const struct aqe_json *list = aqe_json_get(rw_value(one), "properties");

		ck_assert_uint_eq(list->len, HARD_PROP_COUNT);
		for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
			ck_assert_str_eq(aqe_json_str(aqe_json_get(aqe_json_item(list, i), "id")),
					 HARDENING_PROFILE[i].id);
	}
	ck_assert_uint_eq(documents, 4);
}
END_TEST

START_TEST(verify__terminal_is_not_told_to_do_things)
{
	static const char text[] = "{\"\\u001b[2Jprocess\":1,\"ociVersion\":\"\\u0007\"}";

	ck_assert_int_eq(RUN("--all", cmd_file("e\033[2J", text, strlen(text))), SHIM_EXIT_FAILED);
	ck_assert_ptr_null(strchr(aqe_buf_str(&out), '\033'));
	ck_assert_ptr_null(strchr(aqe_buf_str(&out), '\007'));
}
END_TEST

START_TEST(report__waivers_are_shown)
{
	const struct hard_waiver w = { HARD_ROOTLESS, "default",           NULL, "old host", "ops",
				       RW_NOW,        { "/etc/p.json", 7 } };
	struct shim_judged j = { .file = "f",
				 .kind = "spec",
				 .report = &report,
				 .error = AQE_ERR_INIT,
				 .now_s = RW_NOW - 86400 };

	hard_report_fail(&report, HARD_ROOTLESS, NULL, "/linux", "w", "f");
	report.result[HARD_ROOTLESS] = HARD_WAIVED;
	report.waiver[HARD_ROOTLESS] = &w;
	shim_report_text(&j, SHIM_TEXT_COLOUR, &out);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "\033[33mwaived\033[0m rootless: old host "
							"(ops, until 2027-01-15T08:00:00Z, which "
							"is soon)"));
	aqe_buf_clear(&out);
	shim_report_json(&j, NULL, &out);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out),
				     "\"waiver\":{\"reason\":\"old host\",\"owner\":\"ops\","
				     "\"expires\":\"2027-01-15T08:00:00Z\",\"file\":"
				     "\"/etc/p.json\",\"line\":7}"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim/cmd_verify");
	TCase *c = tcase_create("verify");

	tcase_add_checked_fixture(c, cmd_setup, cmd_teardown);
	tcase_add_loop_test(c, verify__exit_status, 0, AQE_COUNT(files));
	tcase_add_test(c, verify__the_worst_of_several);
	tcase_add_loop_test(c, verify__usage, 0, AQE_COUNT(usages));
	tcase_add_test(c, verify__help);
	tcase_add_test(c, verify__policy_that_cannot_be_read);
	tcase_add_test(c, verify__links_and_fifos);
	tcase_add_test(c, verify__size_limit);
	tcase_add_test(c, verify__standard_input);
	tcase_add_test(c, verify__image_digest_beside_the_document);
	tcase_add_test(c, verify__agent_type_of_the_document);
	tcase_add_test(c, verify__engine_info);
	tcase_add_test(c, verify__engine_info_of_the_same_engine);
	tcase_add_test(c, verify__several_containers);
	tcase_add_test(c, verify__kinds_and_what_is_only_declared);
	tcase_add_test(c, verify__foreign_document);
	tcase_add_loop_test(c, shim_engine_info__podman_and_docker, 0, AQE_COUNT(infos));
	tcase_add_test(c, verify__golden_text);
	tcase_add_test(c, verify__golden_text_all);
	tcase_add_test(c, verify__golden_json);
	tcase_add_test(c, verify__golden_sarif);
	tcase_add_test(c, verify__golden_junit);
	tcase_add_test(c, verify__json_lists_every_property);
	tcase_add_test(c, verify__terminal_is_not_told_to_do_things);
	tcase_add_test(c, report__waivers_are_shown);
	suite_add_tcase(s, c);
	return unit_run(s);
}
