/* SPDX-License-Identifier: MIT */
/* Running `aqe policy` in a child with its own stdout; for the tests of its commands. */
#ifndef AQE_TESTS_UNIT_CMD_POLICY_UTIL_H
#define AQE_TESTS_UNIT_CMD_POLICY_UTIL_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#include "shim/aqe/cmds.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "tests/unit/unit.h"

#define WORDS   16
#define OUT_MAX ((size_t)1 << 20)

static char dir[] = "/tmp/aqe-test-XXXXXX";
static struct aqe_buf out, err;
static struct aqe_arena *arena;

static const char *path(const char *name)
{
	static char text[4][256];
	static unsigned at;

	at = (at + 1) % 4;
	(void)snprintf(text[at], sizeof(text[at]), "%s/%s", dir, name);
	return text[at];
}

static void put(const char *name, const char *text)
{
	AQE_AUTO_FD int fd = open(path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(aqe_fs_write_all(fd, text, strlen(text), &e), e);
}

static void setup(void)
{
	memcpy(dir + strlen(dir) - 6, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	out = (struct aqe_buf)AQE_BUF_INIT(OUT_MAX);
	err = (struct aqe_buf)AQE_BUF_INIT(OUT_MAX);
	arena = aqe_arena_new((size_t)16 << 20);
	put("policy.json",
	    "{\"version\":1,\n\"network\":{\"agents\":{\n\"qe-test-writer\":{\"domains\":"
	    "[\"*.example.com\",\n\"raw.githubusercontent.com\"],\"mode\":\"report\",\n"
	    "\"rate\":{\"perMinute\":7}},\"tight\":{\"domains\":[\"a.example\",\"10.1.2.3\"]}}}}");
	put("bad.json",
	    "{\"version\":1,\"network\":{\"agents\":{\"default\":{\n\"domains\":[\"*.com\"]}}}}");
	put("unknown.json",
	    "{\"version\":1,\"network\":{\"agents\":{\"default\":{\n\"domain\":[]}}}}");
}

static void teardown(void)
{
	AQE_AUTO_FD int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	aqe_buf_done(&out);
	aqe_buf_done(&err);
	aqe_arena_free(arena);
	ck_assert_int_eq(aqe_fs_remove_tree(tmp, dir + 5, NULL), 0);
}

static int open_new(const char *name)
{
	return open(path(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* Starts `aqe policy WORDS...` with `in` as standard input; its pid. */
static pid_t start(const char *const *words, const char *in)
{
	char *argv[WORDS + 2] = { NULL };
	static char copies[WORDS][512];
	int argc = 1;
	pid_t pid;

	put("in", in);
	argv[0] = copies[0];
	(void)snprintf(copies[0], sizeof(copies[0]), "policy");
	for (; words[argc - 1]; argc++) {
		ck_assert_int_lt(argc, WORDS);
		(void)snprintf(copies[argc], sizeof(copies[argc]), "%s", words[argc - 1]);
		argv[argc] = copies[argc];
	}
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid)
		return pid;
	if (dup2(open(path("in"), O_RDONLY | O_CLOEXEC), 0) < 0 || dup2(open_new("out"), 1) < 0 ||
	    dup2(open_new("err"), 2) < 0)
		_exit(99);
	argc = shim_cmd_policy(argc, argv);
	(void)fflush(NULL);
	_exit(argc);
}

static void slurp(const char *name, struct aqe_buf *b)
{
	AQE_AUTO_FD int fd = open(path(name), O_RDONLY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;

	aqe_buf_clear(b);
	ck_assert_ok(aqe_fs_read_fd(fd, b, &e), e);
}

static int finish(pid_t pid)
{
	int status = 0;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
	slurp("out", &out);
	slurp("err", &err);
	return WEXITSTATUS(status);
}

#define RUN_IN(in, ...) finish(start((const char *const[]){ __VA_ARGS__, NULL }, in))
#define RUN(...)        RUN_IN("", __VA_ARGS__)
#define POLICY          "--policy", path("policy.json")

#define ck_has(b, part) ck_assert_msg(strstr(aqe_buf_str(b), part), "%s", aqe_buf_str(b))

static const struct aqe_json *json(void)
{
	struct aqe_json *root = NULL;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(aqe_json_parse(arena, aqe_buf_str(&out), out.len, &AQE_JSON_LIMITS_DEFAULT,
				    &root, &e),
		     e);
	ck_assert_str_eq(aqe_json_get(root, "version")->text, "1");
	return root;
}

#endif
