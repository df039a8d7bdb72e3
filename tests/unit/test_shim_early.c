/* SPDX-License-Identifier: MIT */
/* What is decided before libc starts must be what the ordinary way would do: each call that is
 * passed on early is read alike by shim_argv_parse(), and its folder is the record's. */
#include "shim/early.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "shim/argv.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/record.h"
#include "tests/unit/unit.h"

static const struct {
	const char *words[11];
	const char *id, *root; /* id NULL: left to main() */
} calls[] = {
	{ { "state", "c1" }, "c1", NULL },
	{ { "--root", "/run/x", "state", "c1" }, "c1", "/run/x" },
	{ { "--root=/run/x/", "--systemd-cgroup", "state", "c1" }, "c1", "/run/x/" },
	{ { "--root", "/a", "--root=/b", "state", "c1" }, "c1", "/b" },
	{ { "--root", "/r", "--log", "/l", "--log-format", "json", "state", "c1" }, "c1", "/r" },
	{ { "--debug", "--log-level=debug", "state", "c1" }, "c1", NULL },
	{ { "kill", "c1" }, "c1", NULL },
	{ { "kill", "c1", "KILL" }, "c1", NULL },
	{ { "kill", "-a", "--all", "c1", "WINCH" }, "c1", NULL },
	{ { "pause", "c_1+x.y-z" }, "c_1+x.y-z", NULL },
	{ { "resume", "c1" }, "c1", NULL },
	{ { "delete", "c1" }, "c1", NULL },
	{ { "--root=/r", "delete", "--force", "-f", "c1" }, "c1", "/r" },
	/* not plain */
	{ { "create", "c1" }, NULL, NULL },
	{ { "start", "c1" }, NULL, NULL },
	{ { "delete" }, NULL, NULL },
	{ { "delete", "--regex", "c1" }, NULL, NULL },
	{ { "delete", "--all", "c1" }, NULL, NULL },
	{ { "delete", "c1", "--force" }, NULL, NULL },
	{ { "delete", "c1", "c2" }, NULL, NULL },
	{ { "delete", "--help" }, NULL, NULL },
	{ { "state", "-f", "c1" }, NULL, NULL },
	{ { "kill", "--force", "c1" }, NULL, NULL },
	{ { "verify", "c1" }, NULL, NULL },
	{ { "state" }, NULL, NULL },
	{ { "kill" }, NULL, NULL },
	{ { NULL }, NULL, NULL },
	{ { "" }, NULL, NULL },
	{ { "state", "" }, NULL, NULL },
	{ { "state", "." }, NULL, NULL },
	{ { "state", ".." }, NULL, NULL },
	{ { "state", "a/b" }, NULL, NULL },
	{ { "state", "../x" }, NULL, NULL },
	{ { "state", "-x" }, NULL, NULL },
	{ { "state", "--", "c1" }, NULL, NULL },
	{ { "state", "--help" }, NULL, NULL },
	{ { "state", "--all", "c1" }, NULL, NULL },
	{ { "state", "c1", "c2" }, NULL, NULL },
	{ { "kill", "c1", "9", "9" }, NULL, NULL },
	{ { "kill", "c1", "-9" }, NULL, NULL },
	{ { "kill", "c1", "" }, NULL, NULL },
	{ { "kill", "c1", "/r" }, NULL, NULL },
	{ { "kill", "c1", ".." }, NULL, NULL },
	{ { "kill", "--regex", "c1" }, NULL, NULL },
	{ { "kill", "--al", "c1" }, NULL, NULL },
	{ { "kill", "-ar", "c1" }, NULL, NULL },
	{ { "kill", "c1", "--all" }, NULL, NULL },
	{ { "--root" }, NULL, NULL },
	{ { "--root", "state" }, NULL, NULL },
	{ { "--root=", "state", "c1" }, NULL, NULL },
	{ { "--root", "", "state", "c1" }, NULL, NULL },
	{ { "--log=", "state", "c1" }, NULL, NULL },
	{ { "--roo", "/x", "state", "c1" }, NULL, NULL },
	{ { "--rootless", "true", "state", "c1" }, NULL, NULL },
	{ { "--systemd-cgroup=1", "state", "c1" }, NULL, NULL },
	{ { "--help", "state", "c1" }, NULL, NULL },
	{ { "--version" }, NULL, NULL },
	{ { "-v", "state", "c1" }, NULL, NULL },
	{ { "--", "state", "c1" }, NULL, NULL },
};

static char *word(const char *s)
{
	union {
		const char *in;
		char *out;
	} u = { s };

	return u.out;
}

/* True when the call is passed on early; then the ordinary way agrees. */
static bool agree(struct aqe_arena *a, char **argv, int argc, struct shim_early *call)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv av;
	char name[SHIM_EARLY_NAME];

	if (!shim_early_plan(argv, call))
		return false;
	ck_assert_msg(shim_argv_parse(a, argc, argv, &av, &e) == 0, "%s", e.text);
	ck_assert(!av.help);
	ck_assert(av.verb == SHIM_VERB_STATE || av.verb == SHIM_VERB_KILL ||
		  av.verb == SHIM_VERB_PAUSE || av.verb == SHIM_VERB_RESUME ||
		  av.verb == SHIM_VERB_DELETE);
	ck_assert_int_eq(call->deletes, av.verb == SHIM_VERB_DELETE);
	ck_assert_str_eq(av.id, call->id);
	ck_assert_int_eq(call->ends, av.verb == SHIM_VERB_KILL &&
					     shim_early_is_end(av.n_rest ? av.rest[0] : NULL));
	ck_assert(aqe_str_eq(shim_argv_global(&av, "root"), call->root) ||
		  (!shim_argv_global(&av, "root") && !call->root));
	shim_early_name(call, name);
	ck_assert_str_eq(shim_record_name(a, av.id, shim_argv_global(&av, "root")), name);
	return true;
}

START_TEST(plan__takes_plain_calls_only)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct shim_early call = { NULL, NULL, false, false };
	char *argv[12] = { word("aqe-shim") };
	int argc = 1;

	for (; calls[_i].words[argc - 1]; argc++)
		argv[argc] = word(calls[_i].words[argc - 1]);
	ck_assert_int_eq(agree(a, argv, argc, &call), calls[_i].id != NULL);
	ck_assert(aqe_str_eq(call.id, calls[_i].id) || (!call.id && !calls[_i].id));
	ck_assert(aqe_str_eq(call.root, calls[_i].root) || (!call.root && !calls[_i].root));
}
END_TEST

/* Any words in any order. */
START_TEST(plan__agrees_with_the_ordinary_way)
{
	static const char *const pool[] = {
		"state",   "kill",  "pause",    "resume",        "delete", "--root",
		"/r",      "--log", "--root=x", "--log-format",  "json",   "--all",
		"-a",      "c1",    "9",        "--help",        "--",     "--systemd-cgroup",
		"--regex", "-f",    "--debug",  "--log-level=e", ".",      "",
	};
	uint32_t seed = 7;
	size_t early = 0;

	for (int round = 0; round < 200000; round++) {
		struct shim_early call = { NULL, NULL, false, false };
		char *argv[8] = { word("aqe-shim") };
		int argc = 1;

		seed = seed * 1664525 + 1013904223;
		for (int n = (int)(seed >> 29) % 7; argc <= n; argc++) {
			seed = seed * 1664525 + 1013904223;
			argv[argc] = word(pool[(seed >> 16) % AQE_COUNT(pool)]);
		}
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);

		early += agree(a, argv, argc, &call);
	}
	ck_assert_uint_gt(early, 200);
}
END_TEST

START_TEST(is_end__knows_the_signals_that_end)
{
	static const char *const yes[] = { NULL, "TERM", "SIGTERM", "15", "KILL", "SIGKILL",
					   "9",  "INT",  "SIGINT",  "2",  "QUIT", "SIGQUIT",
					   "3",  "HUP",  "SIGHUP",  "1" };
	static const char *const no[] = { "",    "USR1",  "SIGUSR1", "10", "WINCH", "SIG",
					  "ERM", "TERMX", "term",    "0",  "19",    "STOP" };

	for (size_t i = 0; i < AQE_COUNT(yes); i++)
		ck_assert_msg(shim_early_is_end(yes[i]), "%s", yes[i] ? yes[i] : "NULL");
	for (size_t i = 0; i < AQE_COUNT(no); i++)
		ck_assert_msg(!shim_early_is_end(no[i]), "%s", no[i]);
}
END_TEST

START_TEST(plan__ids_up_to_the_limit)
{
	char id[SHIM_EARLY_ID_MAX + 2];
	char *argv[] = { word("aqe-shim"), word("state"), id, NULL };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct shim_early call;

	memset(id, 'a', sizeof(id));
	id[SHIM_EARLY_ID_MAX] = '\0';
	ck_assert(agree(a, argv, 3, &call));
	id[SHIM_EARLY_ID_MAX] = 'a';
	id[SHIM_EARLY_ID_MAX + 1] = '\0';
	ck_assert(!shim_early_plan(argv, &call));
	ck_assert_int_eq(shim_record_name(a, id, NULL)[0], '%');
}
END_TEST

static const struct {
	const char *words[6];
	bool joins;
} joiners[] = {
	{ { "create", "--bundle", "/b", "c1" }, true },
	{ { "run", "c1" }, true },
	{ { "--root", "/r", "--systemd-cgroup", "exec", "c1" }, true },
	{ { "--root=create", "start", "c1" }, false },
	{ { "--root", "create", "delete", "c1" }, false },
	{ { "start", "create" }, false },
	{ { "creates" }, false },
	{ { "creat" }, false },
	{ { "--log" }, false },
	{ { "--version" }, false },
	{ { "" }, false },
	{ { NULL }, false },
};

START_TEST(joins__names_the_verbs_that_enter_a_cgroup)
{
	char *argv[8] = { word("aqe-shim") };

	for (int i = 0; joiners[_i].words[i]; i++)
		argv[i + 1] = word(joiners[_i].words[i]);
	ck_assert_int_eq(shim_early_joins(argv), joiners[_i].joins);
}
END_TEST

static const struct {
	const char *text, *path; /* path NULL: none */
} groups[] = {
	{ "0::/\n", "/sys/fs/cgroup//cgroup.procs" },
	{ "0::/user.slice/a b.scope\n", "/sys/fs/cgroup/user.slice/a b.scope/cgroup.procs" },
	{ "0::/a:b\n1:x:/c\n", "/sys/fs/cgroup/a:b/cgroup.procs" },
	{ "9:name=systemd:/x\n8:pids:/y\n", "/sys/fs/cgroup/systemd/x/cgroup.procs" },
	{ "12:cpu,cpuacct:/x/y\n0::/z\n", "/sys/fs/cgroup/cpu,cpuacct/x/y/cgroup.procs" },
	{ "0::/x", "/sys/fs/cgroup/x/cgroup.procs" },
	{ "0::/..x/y..\n", NULL },
	{ "0::/../x\n", NULL },
	{ "0::/x/..\n", NULL },
	{ "0::/x\n0::/..\n", "/sys/fs/cgroup/x/cgroup.procs" },
	{ "0::\n", NULL },
	{ "0::x\n", NULL },
	{ "0:pids\n", NULL },
	{ "0:a/b:/x\n", NULL },
	{ "0\n::/x", NULL },
	{ "::/x\n", NULL },
	{ "x::/x\n", NULL },
	{ "\n0::/x\n", NULL },
	{ "", NULL },
};

START_TEST(procs__is_the_list_of_the_first_line)
{
	char path[SHIM_EARLY_PROCS];
	const bool found = shim_early_procs(groups[_i].text, path);

	ck_assert_msg(found == (groups[_i].path != NULL), "%s", groups[_i].text);
	if (found)
		ck_assert_str_eq(path, groups[_i].path);
}
END_TEST

START_TEST(procs__fit_or_are_none)
{
	char text[SHIM_EARLY_PROCS + 8] = "0::/", path[SHIM_EARLY_PROCS + 1];
	const size_t rest = strlen(SHIM_EARLY_CGROUPS) + strlen("/cgroup.procs") + 1;
	const size_t most = SHIM_EARLY_PROCS - rest; /* of a group's name, with its "/" */

	memset(text + 4, 'a', most - 1);
	path[SHIM_EARLY_PROCS] = '!';
	ck_assert(shim_early_procs(text, path));
	ck_assert_uint_eq(strlen(path), SHIM_EARLY_PROCS - 1);
	text[3 + most] = 'a';
	ck_assert(!shim_early_procs(text, path));
	ck_assert_int_eq(path[SHIM_EARLY_PROCS], '!');
}
END_TEST

/* FNV's own test vectors. */
START_TEST(root_hash__is_fnv_1a)
{
	ck_assert_uint_eq(shim_early_root_hash(NULL), 0xcbf29ce484222325);
	ck_assert_uint_eq(shim_early_root_hash(""), 0xcbf29ce484222325);
	ck_assert_uint_eq(shim_early_root_hash("a"), 0xaf63dc4c8601ec8c);
	ck_assert_uint_eq(shim_early_root_hash("foobar"), 0x85944171f73967e8);
	ck_assert_uint_eq(shim_early_root_hash("foobar///"), 0x85944171f73967e8);
	ck_assert_uint_eq(shim_early_root_hash("/"), shim_early_root_hash("//"));
	ck_assert_uint_ne(shim_early_root_hash("/"), shim_early_root_hash(""));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim/early");
	TCase *c = tcase_create("early");

	tcase_add_loop_test(c, plan__takes_plain_calls_only, 0, AQE_COUNT(calls));
	tcase_add_test(c, plan__agrees_with_the_ordinary_way);
	tcase_add_test(c, is_end__knows_the_signals_that_end);
	tcase_add_test(c, plan__ids_up_to_the_limit);
	tcase_add_test(c, root_hash__is_fnv_1a);
	tcase_add_loop_test(c, joins__names_the_verbs_that_enter_a_cgroup, 0, AQE_COUNT(joiners));
	tcase_add_loop_test(c, procs__is_the_list_of_the_first_line, 0, AQE_COUNT(groups));
	tcase_add_test(c, procs__fit_or_are_none);
	suite_add_tcase(s, c);
	return unit_run(s);
}
