/* SPDX-License-Identifier: MIT */
/* Output that is lost is said once, whoever wrote it, and is no success. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/exit.h"
#include "shim/input.h"
#include "tests/unit/unit.h"

#define LARGE 70000 /* more than a buffer of stdio holds */

/* What writes, and how the command that called it ends. */
static int quiet(void)
{
	return SHIM_EXIT_OK;
}
static int small(void)
{
	(void)puts("a line");
	return SHIM_EXIT_OK;
}
static int large(void)
{
	for (int i = 0; i < LARGE; i++)
		(void)putchar('x');
	return SHIM_EXIT_OK;
}
static int silent_failure(void)
{
	(void)puts("a line");
	return fflush(stdout) == 0 ? SHIM_EXIT_OK : SHIM_EXIT_UNDECIDED;
}
static int told(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(100);
	struct aqe_err e = AQE_ERR_INIT;

	(void)aqe_buf_puts(&b, "a line\n");
	if (shim_output(&b, &e) == 0)
		return SHIM_EXIT_OK;
	(void)fprintf(stderr, "told: %s\n", e.text);
	return SHIM_EXIT_FAILED;
}

#define LOST "aqe x: write to standard output: No space left on device\n"

static const struct {
	int (*fn)(void);
	const char *to, *says;
	int status;
} CASES[] = {
	{ quiet, "/dev/full", "", SHIM_EXIT_OK },
	{ small, "/dev/null", "", SHIM_EXIT_OK },
	{ small, "/dev/full", LOST, SHIM_EXIT_FAILED },
	{ large, "/dev/full", LOST, SHIM_EXIT_FAILED },
	{ silent_failure, "/dev/full", "aqe x: write to standard output: a part is lost\n",
	  SHIM_EXIT_UNDECIDED },
	{ told, "/dev/null", "", SHIM_EXIT_OK },
	{ told, "/dev/full", "told: write to standard output: No space left on device\n",
	  SHIM_EXIT_FAILED },
};

START_TEST(lost_output__is_said_once_and_fails)
{
	AQE_AUTO_BUF struct aqe_buf said = AQE_BUF_INIT(4096);
	struct aqe_err e = AQE_ERR_INIT;
	int ends[2], status = 0;
	pid_t pid;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		const int fd = open(CASES[_i].to, O_WRONLY | O_CLOEXEC);

		if (fd < 0 || dup2(fd, 1) < 0 || dup2(ends[1], 2) < 0)
			_exit(99);
		_exit(shim_output_end("aqe x", CASES[_i].fn()));
	}
	ck_assert_int_gt(pid, 0);
	(void)close(ends[1]);
	ck_assert_ok(aqe_fs_read_fd(ends[0], &said, &e), e);
	(void)close(ends[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_str_eq(aqe_buf_str(&said), CASES[_i].says);
	ck_assert_int_eq(WEXITSTATUS(status), CASES[_i].status);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_output");
	TCase *t = tcase_create("end");

	tcase_add_loop_test(t, lost_output__is_said_once_and_fails, 0,
			    (int)(sizeof(CASES) / sizeof(CASES[0])));
	suite_add_tcase(s, t);
	return unit_run(s);
}
