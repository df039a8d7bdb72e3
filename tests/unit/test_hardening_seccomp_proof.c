/* SPDX-License-Identifier: MIT */
#include "hardening/seccomp_proof.h"

#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/scmp.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

/* Reads tests/corpus/spec/NAME or tests/samples/NAME and proves its filter. */
static struct hard_proof prove_file(struct aqe_arena *a, const char *path)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *root = NULL;
	struct hard_proof proof;

	ck_assert_msg(fd >= 0, "%s cannot be opened", path);
	ck_assert_msg(aqe_fs_read_fd(fd, &b, &e) == 0, "%s: %s", path, e.text);
	ck_assert_msg(oci_doc_parse(a, OCI_DOC_CONFIG, b.p, b.len, &root, &e) == 0, "%s: %s", path,
		      e.text);
	ck_assert_msg(hard_proof_spec(a, aqe_json_at(root, "/linux/seccomp"), &proof, &e) == 0,
		      "%s: %s", path, e.text);
	return proof;
}

static bool has_hole(const struct hard_proof *p, const char *call)
{
	for (size_t i = 0; i < p->n_holes; i++) {
		if (aqe_str_eq(p->holes[i].call, call))
			return true;
	}
	return false;
}

static const struct {
	const char *path;
	const char *holes[8]; /* among those found; none: the filter is proved */
	bool only;            /* and no others */
} cases[] = {
	{ "tests/corpus/spec/ok-base.json", { NULL }, true },
	{ "tests/corpus/spec/ok-seccomp-kill.json", { NULL }, true },
	{ "tests/corpus/spec/ok-seccomp-flag-log.json", { NULL }, true },
	{ "tests/corpus/spec/seccomp-allow-unshare.json", { "unshare" }, true },
	{ "tests/corpus/spec/seccomp-allow-setns.json", { "setns" }, true },
	{ "tests/corpus/spec/seccomp-allow-bpf.json", { "bpf" }, true },
	{ "tests/corpus/spec/seccomp-allow-io_uring_setup.json", { "io_uring_setup" }, true },
	{ "tests/corpus/spec/seccomp-allow-perf_event_open.json", { "perf_event_open" }, true },
	{ "tests/corpus/spec/seccomp-allow-pivot_root.json", { "pivot_root" }, true },
	{ "tests/corpus/spec/seccomp-allow-move_mount.json", { "move_mount" }, true },
	{ "tests/corpus/spec/seccomp-allow-fsopen.json", { "fsopen" }, true },
	{ "tests/corpus/spec/seccomp-allow-kexec_load.json", { "kexec_load" }, true },
	{ "tests/corpus/spec/seccomp-allow-init_module.json", { "init_module" }, true },
	{ "tests/corpus/spec/seccomp-allow-add_key.json", { "add_key" }, true },
	{ "tests/corpus/spec/seccomp-allow-pidfd_getfd.json", { "pidfd_getfd" }, true },
	{ "tests/corpus/spec/seccomp-clone-wrong-mask.json", { "clone(CLONE_NEWUSER)" }, true },
	{ "tests/corpus/spec/seccomp-log-rule.json", { "unshare" }, true },
	/* bypassed through the high half of the 64-bit argument */
	{ "tests/corpus/spec/seccomp-socket-ne-vsock.json",
	  { "socket(AF_VSOCK)", "socket(AF_ALG)" },
	  false },
	{ "tests/corpus/spec/seccomp-socket-ranges.json",
	  { "socket(AF_VSOCK)", "socket(AF_ALG)" },
	  false },
	{ "tests/corpus/spec/seccomp-docker-20.10.json",
	  { "io_uring_setup", "io_uring_enter", "modify_ldt", "socket(AF_VSOCK)",
	    "socket(AF_ALG)" },
	  false },
	{ "tests/samples/docker-bridge.json",
	  { "io_uring_setup", "modify_ldt", "socket(AF_VSOCK)" },
	  false },
	{ "tests/samples/podman-default.json",
	  { "mount", "unshare", "setns", "clone(CLONE_NEWUSER)", "clone3", "keyctl", "pidfd_getfd",
	    "socket(AF_VSOCK)" },
	  false },
};

START_TEST(proof__names_the_reachable_calls)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(32 << 20);
	struct hard_proof p = prove_file(a, cases[_i].path);
	size_t n = 0;

	for (; n < AQE_COUNT(cases[_i].holes) && cases[_i].holes[n]; n++)
		ck_assert_msg(has_hole(&p, cases[_i].holes[n]), "%s: '%s' not found",
			      cases[_i].path, cases[_i].holes[n]);
	if (cases[_i].only)
		ck_assert_msg(p.n_all == n, "%s: %zu holes, first '%s'", cases[_i].path, p.n_all,
			      p.n_holes ? p.holes[0].call : "");
}
END_TEST

/* ---- filters made here ---- */

static struct hard_proof prove_text(struct aqe_arena *a, const char *text)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;
	struct hard_proof p;

	ck_assert_msg(aqe_json_parse(a, text, strlen(text), &AQE_JSON_LIMITS_DEFAULT, &v, &e) == 0,
		      "%s", e.text);
	ck_assert_msg(hard_proof_spec(a, v, &p, &e) == 0, "%s", e.text);
	return p;
}

static const struct {
	const char *seccomp, *hole;
} made[] = {
	/* two conditions on one argument are alternatives for both runtimes: NEWUSER passes the
	   second */
	{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\"],"
	  "\"syscalls\":[{\"names\":[\"clone\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":["
	  "{\"index\":0,\"value\":2114060288,\"valueTwo\":0,\"op\":\"SCMP_CMP_MASKED_EQ\"},"
	  "{\"index\":0,\"value\":1,\"valueTwo\":0,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}]}",
	  "clone(CLONE_NEWUSER)" },
	/* default allow, one call denied: the rest is open, numbers nobody knows too */
	{ "{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":[\"SCMP_ARCH_X86_64\"],"
	  "\"syscalls\":[{\"names\":[\"unshare\"],\"action\":\"SCMP_ACT_ERRNO\"}]}",
	  "number 700" },
	/* errno 0 lets the call "succeed" */
	{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":1,\"architectures\":"
	  "[\"SCMP_ARCH_X86_64\"],\"syscalls\":[{\"names\":[\"unshare\"],\"action\":"
	  "\"SCMP_ACT_ERRNO\",\"errnoRet\":0}]}",
	  "unshare" },
	/* a second architecture is judged too */
	{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\","
	  "\"SCMP_ARCH_X86\"],\"syscalls\":[{\"names\":[\"socketcall\"],\"action\":"
	  "\"SCMP_ACT_ALLOW\"}]}",
	  "socketcall" },
	{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\","
	  "\"SCMP_ARCH_X32\"],\"syscalls\":[{\"names\":[\"mount\"],\"action\":"
	  "\"SCMP_ACT_ALLOW\"}]}",
	  "mount" },
	/* a tracer or a listener decides: not a refusal */
	{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\"],"
	  "\"syscalls\":[{\"names\":[\"setns\"],\"action\":\"SCMP_ACT_TRACE\",\"errnoRet\":1}]}",
	  "setns" },
	/* NETLINK_ROUTE is all of netlink that is allowed */
	{ "{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_X86_64\"],"
	  "\"syscalls\":[{\"names\":[\"socket\"],\"action\":\"SCMP_ACT_ALLOW\",\"args\":["
	  "{\"index\":0,\"value\":4294967295,\"valueTwo\":16,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}]}",
	  "socket(NETLINK_NETFILTER)" },
};

START_TEST(proof__finds_the_hole_in_a_made_filter)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(32 << 20);
	struct hard_proof p = prove_text(a, made[_i].seccomp);

	ck_assert_msg(has_hole(&p, made[_i].hole), "'%s' not found among %zu", made[_i].hole,
		      p.n_all);
}
END_TEST

START_TEST(compile__refuses_what_it_cannot_read)
{
	static const char *const texts[] = {
		"{}",
		"{\"defaultAction\":\"SCMP_ACT_NOPE\"}",
		"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"architectures\":[\"SCMP_ARCH_NOPE\"]}",
		"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"read\"],"
		"\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":6,\"value\":0,\"op\":"
		"\"SCMP_CMP_EQ\"}]}]}",
		"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"syscalls\":[{\"names\":[\"read\"],"
		"\"action\":\"SCMP_ACT_ALLOW\",\"args\":[{\"index\":0,\"value\":0,\"op\":"
		"\"SCMP_CMP_SAME\"}]}]}",
	};
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);

	for (size_t i = 0; i < AQE_COUNT(texts); i++) {
		const struct hard_bpf_insn *prog = NULL;
		struct aqe_err e = AQE_ERR_INIT;
		struct aqe_json *v = NULL;
		size_t n = 0;

		ck_assert_int_eq(aqe_json_parse(a, texts[i], strlen(texts[i]),
						&AQE_JSON_LIMITS_DEFAULT, &v, &e),
				 0);
		ck_assert_msg(hard_scmp_compile(a, v, &prog, &n, &e) == AQE_E_MALFORMED, "%s: %s",
			      texts[i], e.text);
	}
}
END_TEST

START_TEST(arg_rules__rows_of_one_call_stand_together)
{
	/* the prover looks a call's number up once for a run of rows */
	for (size_t i = 1; i < HARD_ARG_RULES_COUNT; i++) {
		if (aqe_str_eq(HARD_ARG_RULES[i].call, HARD_ARG_RULES[i - 1].call))
			continue;
		for (size_t j = 0; j < i; j++)
			ck_assert_msg(!aqe_str_eq(HARD_ARG_RULES[j].call, HARD_ARG_RULES[i].call) ||
					      aqe_str_eq(HARD_ARG_RULES[i].call, "socket"),
				      "'%s' is in two runs", HARD_ARG_RULES[i].call);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/seccomp_proof");
	TCase *t = tcase_create("proof");
	SRunner *r;
	int failed;

	tcase_add_loop_test(t, proof__names_the_reachable_calls, 0, (int)AQE_COUNT(cases));
	tcase_add_loop_test(t, proof__finds_the_hole_in_a_made_filter, 0, (int)AQE_COUNT(made));
	tcase_add_test(t, compile__refuses_what_it_cannot_read);
	tcase_add_test(t, arg_rules__rows_of_one_call_stand_together);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
