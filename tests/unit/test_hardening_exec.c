/* SPDX-License-Identifier: MIT */
/* The process document of an exec, in a container whose config.json was rewritten. */
#include <stdlib.h>

#include "tests/unit/rewrite_util.h"

static struct aqe_json *container;

static void setup(void)
{
	rw_setup();
	container = rw_parse_file(RW_BASE);
}

/* What the engines send (engines.md section 1.6). */
#define PODMAN                                                                          \
	"{\"user\":{\"uid\":1000,\"gid\":1000,\"umask\":18,\"additionalGids\":[1000]}," \
	"\"args\":[\"id\"],\"env\":[\"A=b\"],\"cwd\":\"/\",\"rlimits\":[{\"type\":"     \
	"\"RLIMIT_NOFILE\",\"hard\":20000,\"soft\":20000}]}"
#define DOCKER                                                                              \
	"{\"user\":{\"uid\":0,\"gid\":0,\"additionalGids\":[0]},\"args\":[\"sh\"],\"env\":" \
	"[\"PATH=/bin\"],\"cwd\":\"/\",\"terminal\":true,\"capabilities\":{\"bounding\":"   \
	"[\"CAP_CHOWN\",\"CAP_MKNOD\"],\"effective\":[\"CAP_CHOWN\"],\"permitted\":"        \
	"[\"CAP_CHOWN\"]},\"oomScoreAdj\":0}"

static struct aqe_json *parse(const char *text)
{
	struct aqe_json *doc = NULL;
	const int rc = oci_doc_parse(arena, OCI_DOC_PROCESS, text, strlen(text), &doc, &err);

	ck_assert_msg(rc == 0, "%s: %s", text, err.text);
	return doc;
}

static struct aqe_json *rewrite(const struct aqe_json *process)
{
	struct aqe_json *result = NULL;

	hard_report_init(&report, arena);
	ck_assert_ok(hard_exec_rewrite(&ctx, arena, container, process, &report, &result, &err),
		     err);
	return result;
}

/* The result is our writer's to write, and in the container's document it verifies. */
static struct aqe_json *rewrite_ok(const struct aqe_json *process)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	struct aqe_json *result = rewrite(process), *spec, *again = NULL;
	struct hard_report r;

	ck_assert_msg(result != NULL, "refused: %s", rw_failed(&report));
	ck_assert_ok(oci_doc_emit(OCI_DOC_PROCESS, result, &b, &err), err);
	ck_assert_ok(oci_doc_parse(arena, OCI_DOC_PROCESS, aqe_buf_str(&b), b.len, &again, &err),
		     err);
	ck_assert(aqe_json_equal(result, again));
	spec = aqe_json_copy(arena, container);
	ck_assert_int_eq(aqe_json_set(arena, spec, "process", aqe_json_copy(arena, result)), 0);
	hard_report_init(&r, arena);
	ck_assert_ok(hard_verify(&ctx, spec, &r, &err), err);
	ck_assert_msg(hard_report_ok(&r), "in the container: %s", rw_failed(&r));
	return result;
}

static void check_value(const struct aqe_json *doc, const char *pointer, const char *want)
{
	const struct aqe_json *v = aqe_json_at(doc, pointer);

	ck_assert_msg((v != NULL) == (want != NULL), "%s", pointer);
	ck_assert_msg(!want || aqe_json_equal(v, rw_value(want)), "%s is not %s", pointer, want);
}

START_TEST(exec__takes_everything_from_a_default_exec)
{
	static const char *const texts[] = { PODMAN, DOCKER, "{\"args\":[\"x\"],\"cwd\":\"/\"}" };
	const struct aqe_json *p = rewrite_ok(parse(texts[_i]));

	check_value(p, "/noNewPrivileges", "true");
	check_value(p, "/capabilities",
		    "{\"bounding\":[],\"effective\":[],\"inheritable\":[],\"permitted\":[],"
		    "\"ambient\":[]}");
	check_value(p, "/user/uid", "1000");
	check_value(p, "/user/gid", "1000");
	check_value(p, "/user/umask", "18");
	check_value(p, "/terminal", _i == 1 ? "true" : NULL);
}
END_TEST

static const struct {
	const char *pointer, *text;   /* edit of PODMAN */
	const char *changed, *result; /* NULL: no such member */
} TIGHTENED[] = {
	{ "/user/uid", "0", "/user/uid", "1000" },
	{ "/user/uid", "1234", "/user/uid", "1234" },
	{ "/user/gid", "0", "/user/gid", "1000" },
	{ "/user/umask", "0", "/user/umask", "18" },
	{ "/user/additionalGids", "[0]", "/user/additionalGids", "[]" },
	{ "/noNewPrivileges", "false", "/noNewPrivileges", "true" },
	{ "/env", "[\"LD_PRELOAD=/x\",\"A=b\"]", "/env", "[\"A=b\"]" },
	{ "/rlimits", "[{\"type\":\"RLIMIT_CORE\",\"hard\":1,\"soft\":1}]", "/rlimits/0/hard",
	  "0" },
	{ "/user/username", "\"x\"", "/user/username", NULL },
	{ "/consoleSize", "{\"width\":80,\"height\":25}", "/consoleSize/width", "80" },
	{ "/oomScoreAdj", "500", "/oomScoreAdj", "500" },
};

START_TEST(exec__tightens)
{
	struct aqe_json *p = parse(PODMAN);

	rw_edit(p, TIGHTENED[_i].pointer, TIGHTENED[_i].text);
	check_value(rewrite_ok(p), TIGHTENED[_i].changed, TIGHTENED[_i].result);
}
END_TEST

static const struct {
	const char *pointer, *text; /* edit of PODMAN */
	const char *props, *at;
} REFUSED[] = {
	{ "/capabilities", "{\"effective\":[\"CAP_SYS_ADMIN\"]}", "capabilities",
	  "/capabilities/effective" },
	{ "/capabilities", "{\"bounding\":[\"CAP_NET_ADMIN\"]}", "capabilities",
	  "/capabilities/bounding" },
	{ "/user/uid", "4294967295", "user", "/user/uid" },
	{ "/user/uid", "70000", "user", "/user/uid" },
	{ "/user/gid", "70000", "user", "/user/gid" },
	{ "/cwd", "\"/proc/self/fd/7\"", "mounts", "/cwd" },
	{ "/cwd", "\"relative\"", "mounts", "/cwd" },
	{ "/cwd", NULL, "mounts missing_field", "/cwd" },
	{ "/args", "[]", "missing_field", "/args" },
	{ "/args", "[\"/proc/self/exe\"]", "mounts", "/args/0" },
	{ "/env", "[\"x\"]", "missing_field", "/env/0" },
	{ "/rlimits", "[{\"type\":\"RLIMIT_NICE\",\"hard\":1,\"soft\":1}]", "rlimits",
	  "/rlimits/0" },
	{ "/apparmorProfile", "\"unconfined\"", "lsm", "/apparmorProfile" },
	{ "/apparmorProfile", "\"docker-default\"", "lsm", "/apparmorProfile" },
	{ "/selinuxLabel", "\"system_u:system_r:container_t:s0:c1,c2\"", "lsm", "/selinuxLabel" },
	{ "/oomScoreAdj", "-1", "memory_limit", "/oomScoreAdj" },
	{ "/scheduler", "{\"policy\":\"SCHED_FIFO\"}", "unknown_field", "/scheduler" },
	{ "/Capabilities", "{}", "unknown_field", "/Capabilities" },
};

START_TEST(exec__refuses)
{
	struct aqe_json *p = parse(PODMAN);

	rw_edit(p, REFUSED[_i].pointer, REFUSED[_i].text);
	ck_assert_ptr_null(rewrite(p));
	ck_assert_str_eq(rw_failed(&report), REFUSED[_i].props);
	ck_assert_str_eq(hard_report_worst(&report)->pointer, REFUSED[_i].at);
}
END_TEST

/* podman exec --privileged: 40 names; docker's: 38. */
START_TEST(exec__refuses_privileged)
{
	struct aqe_json *p = parse(PODMAN), *set;

	rw_edit(p, "/capabilities", "{\"bounding\":[]}");
	set = aqe_json_at(p, "/capabilities/bounding");
	for (int i = 0; i < 38; i++)
		ck_assert_int_eq(aqe_json_append(set, aqe_json_new_str(arena, "CAP_BPF")), 0);
	ck_assert_ptr_null(rewrite(p));
	ck_assert_str_eq(rw_failed(&report), "privileged");
}
END_TEST

START_TEST(exec__takes_the_containers_label)
{
	static const char profile[] = "\"containers-default-0.50.1\"";
	struct aqe_json *p = parse(PODMAN);

	rw_edit(container, "/process/apparmorProfile", profile);
	check_value(rewrite_ok(p), "/apparmorProfile", profile);
	rw_edit(p, "/apparmorProfile", profile);
	check_value(rewrite_ok(p), "/apparmorProfile", profile);
	rw_edit(p, "/apparmorProfile", "\"docker-default\"");
	ck_assert_ptr_null(rewrite(p));
	ck_assert_str_eq(rw_failed(&report), "lsm");
}
END_TEST

/* The container's own user, not the policy's: it owns what the container made. */
START_TEST(exec__root_becomes_the_containers_user)
{
	rw_edit(container, "/process/user/uid", "4000");
	rw_edit(container, "/process/user/gid", "4001");
	rw_edit(container, "/process/user/additionalGids", "[]");
	rw_edit(container, "/mounts", "[]");
	container = aqe_json_copy(arena, container);

	struct aqe_json *hardened = NULL;

	hard_report_init(&report, arena);
	ck_assert_ok(hard_rewrite(&ctx, arena, container, &report, &hardened, &err), err);
	ck_assert_ptr_nonnull(hardened);
	container = hardened;

	const struct aqe_json *p = rewrite_ok(parse(DOCKER));

	check_value(p, "/user/uid", "4000");
	check_value(p, "/user/gid", "4001");
}
END_TEST

START_TEST(exec__leaves_its_input_alone)
{
	struct aqe_json *p = parse(DOCKER), *copy = aqe_json_copy(arena, p),
			*spec = aqe_json_copy(arena, container);

	(void)rewrite(p);
	ck_assert(aqe_json_equal(p, copy));
	ck_assert(aqe_json_equal(container, spec));
}
END_TEST

START_TEST(exec__fails_whole_without_memory)
{
	struct aqe_json *p = parse(DOCKER);
	size_t ok = 0;

	for (size_t max = 512; max < ((size_t)1 << 20) && !ok; max += 1024 + max / 8) {
		struct aqe_arena *small = aqe_arena_new(max);
		struct aqe_json *result = NULL;

		hard_report_init(&report, small);
		const int rc = hard_exec_rewrite(&ctx, small, container, p, &report, &result, &err);

		ck_assert_msg(rc == 0 || rc == AQE_E_NOMEM, "%zu: %d", max, rc);
		ck_assert(rc == 0 || !result);
		ok += result != NULL;
		aqe_arena_free(small);
	}
	ck_assert_uint_eq(ok, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_exec");
	TCase *t = tcase_create("exec");

	tcase_add_checked_fixture(t, setup, rw_teardown);
	tcase_add_loop_test(t, exec__takes_everything_from_a_default_exec, 0, 3);
	tcase_add_loop_test(t, exec__tightens, 0, (int)AQE_COUNT(TIGHTENED));
	tcase_add_loop_test(t, exec__refuses, 0, (int)AQE_COUNT(REFUSED));
	tcase_add_test(t, exec__refuses_privileged);
	tcase_add_test(t, exec__takes_the_containers_label);
	tcase_add_test(t, exec__root_becomes_the_containers_user);
	tcase_add_test(t, exec__leaves_its_input_alone);
	tcase_add_test(t, exec__fails_whole_without_memory);
	suite_add_tcase(s, t);
	return unit_run(s);
}
