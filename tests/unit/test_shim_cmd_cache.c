/* SPDX-License-Identifier: MIT */
/* aqe cache: words that must not be taken for something else. Each in a child with its own stderr;
 * a `serve` that starts in spite of its words runs into the test's time limit. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shim/aqe/cmds.h"
#include "shim/aqe/unix_socket.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "tests/unit/cache_util.h"

#define WORDS 12

/* `aqe cache WORDS...`; its exit status. */
static int cache(const char *const *words, struct aqe_buf *said)
{
	static char copies[WORDS][512];
	char *argv[WORDS + 2] = { copies[0] };
	struct aqe_err e = AQE_ERR_INIT;
	int ends[2], status = 0, argc = 1;
	pid_t pid;

	(void)snprintf(copies[0], sizeof(copies[0]), "cache");
	for (; words[argc - 1]; argc++) {
		ck_assert_int_lt(argc, WORDS);
		(void)snprintf(copies[argc], sizeof(copies[argc]), "%s", words[argc - 1]);
		argv[argc] = copies[argc];
	}
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (dup2(open("/dev/null", O_RDWR | O_CLOEXEC), 1) < 0 || dup2(ends[1], 2) < 0)
			_exit(99);
		_exit(shim_cmd_cache(argc, argv));
	}
	ck_assert_int_gt(pid, 0);
	(void)close(ends[1]);
	aqe_buf_clear(said);
	ck_assert_ok(aqe_fs_read_fd(ends[0], said, &e), e);
	(void)close(ends[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int serve_at(const char *where, struct aqe_buf *said)
{
	const char *const words[] = { "serve",
				      "--backend",
				      "memory",
				      "--upstream-kind",
				      "ollama",
				      "--upstream-url",
				      "http://127.0.0.1:1",
				      "--listen",
				      where,
				      NULL };

	return cache(words, said);
}

static const char *const BAD_LISTEN[] = {
	"127.0.0.1:65536", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:+80", "127.0.0.1:http",
	"127.0.0.1:",      "127.0.0.1",       ":3130",        "127.0.0.1: 1",
};

START_TEST(listen__takes_no_other_port)
{
	AQE_AUTO_BUF struct aqe_buf said = AQE_BUF_INIT(4096);

	ck_assert_int_eq(serve_at(BAD_LISTEN[_i], &said), SHIM_EXIT_USAGE);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&said), BAD_LISTEN[_i]));
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&said), "wanted ADDRESS:PORT or unix:PATH"));
}
END_TEST

START_TEST(listen__leaves_a_socket_in_use)
{
	AQE_AUTO_BUF struct aqe_buf said = AQE_BUF_INIT(4096);
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	struct stat before, after;
	char where[300];

	ck_assert_ok(shim_unix_listen(util_path("socket"), 1, &fd, &e), e);
	ck_assert_int_eq(stat(util_path("socket"), &before), 0);
	(void)snprintf(where, sizeof(where), "unix:%s", util_path("socket"));
	ck_assert_int_eq(serve_at(where, &said), SHIM_EXIT_FAILED);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&said), "is in use"));
	ck_assert_int_eq(stat(util_path("socket"), &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

static const struct {
	const char *scope;
	int status;
} SCOPES[] = {
	{ "type:default", SHIM_EXIT_FAILED }, /* not there */
	{ "agent:a", SHIM_EXIT_FAILED },      { "container:c1", SHIM_EXIT_FAILED },
	{ "bogus:x", SHIM_EXIT_USAGE },       { "type:", SHIM_EXIT_USAGE },
	{ "type", SHIM_EXIT_USAGE },          { "all", SHIM_EXIT_USAGE },
	{ "Type:default", SHIM_EXIT_USAGE },
};

START_TEST(scope__is_one_that_containers_have)
{
	AQE_AUTO_BUF struct aqe_buf said = AQE_BUF_INIT(4096);
	char file[300];
	const char *const words[] = { "get",       "--path", file, "--scope", SCOPES[_i].scope,
				      "--content", "x",      NULL };

	ck_assert_int_eq(mkdir(util_path("d"), 0700), 0);
	(void)snprintf(file, sizeof(file), "%s/c.db", util_path("d"));
	ck_assert_int_eq(cache(words, &said), SCOPES[_i].status);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&said), SCOPES[_i].status == SHIM_EXIT_USAGE
								 ? "wanted type:NAME"
								 : "not there"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_cmd_cache");
	TCase *t = tcase_create("words");

	tcase_add_checked_fixture(t, util_dir_init, util_dir_done);
	tcase_add_loop_test(t, listen__takes_no_other_port, 0, (int)AQE_COUNT(BAD_LISTEN));
	tcase_add_test(t, listen__leaves_a_socket_in_use);
	tcase_add_loop_test(t, scope__is_one_that_containers_have, 0, (int)AQE_COUNT(SCOPES));
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
