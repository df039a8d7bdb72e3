/* SPDX-License-Identifier: MIT */
/* `aqe-shim harden`: exit statuses, and what goes to which stream. */
#include "tests/unit/cmd_util.h"

static int run(const char *const *words)
{
	return cmd_run(shim_cmd_harden, "harden", words);
}

#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static const char *in_file(const char *text)
{
	return cmd_file("in.json", text, strlen(text));
}

START_TEST(harden__prints_a_diff_by_default)
{
	ck_assert_int_eq(RUN("--policy", RW_POLICY, "tests/corpus/spec/nnp-missing.json"),
			 SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "- /process/noNewPrivileges: absent\n"
							"+ /process/noNewPrivileges: true\n"));
	ck_assert_uint_eq(errors.len, 0);
}
END_TEST

START_TEST(harden__prints_a_document_that_verifies)
{
	struct aqe_json *doc = NULL;

	ck_assert_int_eq(RUN("--policy=" RW_POLICY, "--format=document",
			     "tests/corpus/spec/user-uid-0.json"),
			 SHIM_EXIT_OK);
	ck_assert_ok(oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(&out), out.len, &doc, &err),
		     err);
	rw_check_result("document", doc);
}
END_TEST

START_TEST(harden__prints_a_patch)
{
	ck_assert_int_eq(RUN("-p", RW_POLICY, "--format", "json-patch",
			     "tests/corpus/spec/nnp-missing.json"),
			 SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "{\"op\":\"add\",\"path\":\"/process/"
							"noNewPrivileges\",\"value\":true}"));
}
END_TEST

START_TEST(harden__refuses_on_stderr)
{
	ck_assert_int_eq(RUN("-p", RW_POLICY, "tests/samples/podman-privileged.json"),
			 SHIM_EXIT_FAILED);
	ck_assert_uint_eq(out.len, 0);
	ck_assert(aqe_starts(aqe_buf_str(&errors), "refused: privileged at "
						   "/process/capabilities/bounding"));
}
END_TEST

START_TEST(harden__takes_the_digest_and_the_info)
{
	struct aqe_json *doc = rw_parse_file("tests/samples/docker-tty.json");
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);

	ck_assert_ok(aqe_json_emit(doc, AQE_JSON_COMPACT, &b, &err), err);
	ck_assert_int_eq(RUN("-p", RW_POLICY, "--image-digest", DIGEST, "--engine-info",
			     "tests/corpus/inspect/info-docker-userns.json",
			     in_file(aqe_buf_str(&b))),
			 SHIM_EXIT_OK);
}
END_TEST

START_TEST(harden__takes_the_agent_types_ceilings)
{
	ck_assert_int_eq(RUN("-p", RW_POLICY, "-t", "default", "--format", "document",
			     "tests/corpus/spec/ok-base.json"),
			 SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "\"limit\": 536870912"));
}
END_TEST

static const struct {
	const char *text;
	int status;
	const char *error; /* part of stderr */
} INPUTS[] = {
	{ "{", SHIM_EXIT_MALFORMED, "in.json" },
	{ "{\"process\":1}", SHIM_EXIT_MALFORMED, "process" },
	{ "[]", SHIM_EXIT_MALFORMED, "in.json" },
	{ "{\"a\":1}", SHIM_EXIT_MALFORMED, "runtime-spec" },
	{ "{\"ociVersion\":\"1.0.0\"}", SHIM_EXIT_FAILED, "missing_field" },
};

START_TEST(harden__tells_malformed_from_refused)
{
	ck_assert_int_eq(RUN("-p", RW_POLICY, in_file(INPUTS[_i].text)), INPUTS[_i].status);
	ck_assert_msg(strstr(aqe_buf_str(&errors), INPUTS[_i].error), "'%s'", aqe_buf_str(&errors));
	ck_assert_uint_eq(out.len, 0);
}
END_TEST

START_TEST(harden__usage)
{
	ck_assert_int_eq(RUN("-p", RW_POLICY), SHIM_EXIT_USAGE);
	ck_assert_int_eq(RUN("-p", RW_POLICY, "a", "b"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(RUN("--format", "yaml", "a"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(RUN("--image-digest", "latest", "a"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(RUN("--id", "../x", "a"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(RUN("--surprise", "a"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(RUN("--help"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "json-patch"));
}
END_TEST

START_TEST(harden__cannot_decide)
{
	const char *link = cmd_path("link");

	ck_assert_int_eq(RUN("-p", RW_POLICY, "/nonexistent"), SHIM_EXIT_UNDECIDED);
	ck_assert_int_eq(RUN("-p", "/nonexistent", "tests/corpus/spec/ok-base.json"),
			 SHIM_EXIT_UNDECIDED);
	ck_assert_int_eq(symlink("in.json", link), 0);
	(void)in_file("{}");
	ck_assert_int_eq(RUN("-p", RW_POLICY, link), SHIM_EXIT_UNDECIDED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), "symbolic link"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_cmd_harden");
	TCase *t = tcase_create("harden");

	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_test(t, harden__prints_a_diff_by_default);
	tcase_add_test(t, harden__prints_a_document_that_verifies);
	tcase_add_test(t, harden__prints_a_patch);
	tcase_add_test(t, harden__refuses_on_stderr);
	tcase_add_test(t, harden__takes_the_digest_and_the_info);
	tcase_add_test(t, harden__takes_the_agent_types_ceilings);
	tcase_add_loop_test(t, harden__tells_malformed_from_refused, 0, (int)AQE_COUNT(INPUTS));
	tcase_add_test(t, harden__usage);
	tcase_add_test(t, harden__cannot_decide);
	suite_add_tcase(s, t);
	return unit_run(s);
}
