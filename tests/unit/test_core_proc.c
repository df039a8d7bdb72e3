/* SPDX-License-Identifier: MIT */
#include "shim/core/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static char *const ENV[] = { (char[]){ "A=1" }, (char[]){ "B=two words" }, NULL };

/* Runs a shell script; out and err may be NULL. */
static int run_script(const char *script, struct aqe_buf *out, struct aqe_buf *err, int *status,
		      struct aqe_err *e)
{
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	char text[500], *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, text, NULL };

	(void)snprintf(text, sizeof(text), "%s", script);
	o.path = "/bin/sh";
	o.argv = argv;
	o.envp = ENV;
	o.in_fd = AQE_PROC_NULL;
	o.out = out;
	o.err = err;
	return aqe_proc_run(&o, status, e);
}

static int64_t now_ms(void)
{
	return AQE_CLOCK_SYSTEM.mono_ns(AQE_CLOCK_SYSTEM.self) / 1000000;
}

START_TEST(run__captures)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(100);
	AQE_AUTO_BUF struct aqe_buf err = AQE_BUF_INIT(100);
	struct aqe_err e = AQE_ERR_INIT;
	int status = -1;

	ck_assert_ok(run_script("echo out; echo err >&2; exit 7", &out, &err, &status, &e), e);
	ck_assert_str_eq(aqe_buf_str(&out), "out\n");
	ck_assert_str_eq(aqe_buf_str(&err), "err\n");
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	ck_assert_ok(run_script("echo more", &out, NULL, &status, &e), e);
	ck_assert_str_eq(aqe_buf_str(&out), "out\nmore\n");
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(run__passes_words_and_environment_as_they_are)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(200);
	char *argv[] = { (char[]){ "zero" },
			 (char[]){ "-c" },
			 (char[]){ "printf '<%s>' \"$0\" \"$@\" \"$A\" \"$B\" \"$HOME\"" },
			 (char[]){ "" },
			 (char[]){ "a b" },
			 (char[]){ "*" },
			 NULL };
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	int status = -1;

	o.path = "/bin/sh";
	o.argv = argv;
	o.envp = ENV;
	o.out = &out;
	ck_assert_ok(aqe_proc_run(&o, &status, &e), e);
	ck_assert_str_eq(aqe_buf_str(&out), "<><a b><*><1><two words><>");
}
END_TEST

START_TEST(run__tells_signals)
{
	struct aqe_err e = AQE_ERR_INIT;
	int status = -1;

	ck_assert_ok(run_script("kill -TERM $$", NULL, NULL, &status, &e), e);
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), SIGTERM);
}
END_TEST

/* More than pipes can hold, on both at once, and more than is wanted. */
START_TEST(run__drops_what_is_too_much)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1000);
	AQE_AUTO_BUF struct aqe_buf err = AQE_BUF_INIT((size_t)1 << 22);
	struct aqe_err e = AQE_ERR_INIT;
	int status = -1;

	ck_assert_ok(run_script("head -c 1000000 /dev/zero & head -c 1000000 /dev/zero >&2; wait",
				&out, &err, &status, &e),
		     e);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(out.len, 1000);
	ck_assert_uint_eq(err.len, 1000000);
	ck_assert_int_eq(aqe_buf_ok(&out, &e), 0);
}
END_TEST

static const struct {
	const char *path;
	int code, sys;
} BAD_PATHS[] = {
	{ "/nonexistent/program", AQE_E_SYS, ENOENT },
	{ "/etc/passwd", AQE_E_SYS, EACCES },
	{ "/etc", AQE_E_SYS, EACCES },
	{ "sh", AQE_E_INTERNAL, 0 },
	{ "", AQE_E_INTERNAL, 0 },
	{ NULL, AQE_E_INTERNAL, 0 },
};

START_TEST(run__reports_what_cannot_run)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1000);
	char *argv[] = { (char[]){ "x" }, NULL };
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	int status = 77;

	o.path = BAD_PATHS[_i].path;
	o.argv = argv;
	o.envp = ENV;
	o.out = &out;
	o.timeout_ms = 1000;
	ck_assert_fault(aqe_proc_run(&o, &status, &e), BAD_PATHS[_i].code, e, NULL);
	ck_assert_int_eq(e.sys, BAD_PATHS[_i].sys);
	ck_assert_int_eq(status, 77);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(run__kills_at_the_timeout)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1000);
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "echo begun; exec sleep 50" }, NULL };
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	int status = 77;
	int64_t start = now_ms();

	o.path = "/bin/sh";
	o.argv = argv;
	o.envp = ENV;
	o.timeout_ms = 300;
	o.out = _i == 0 ? &out : NULL;
	o.out_fd = AQE_PROC_NULL;
	ck_assert_fault(aqe_proc_run(&o, &status, &e), AQE_E_TIMEOUT, e, "within 300 ms");
	ck_assert_int_ge(now_ms() - start, 300);
	ck_assert_int_lt(now_ms() - start, 20000);
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	o.argv = (char *[]){ (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ ":" }, NULL };
	o.timeout_ms = 60000;
	ck_assert_ok(aqe_proc_run(&o, &status, &e), e);
}
END_TEST

START_TEST(run__does_not_wait_for_grandchildren)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1000);
	struct aqe_err e = AQE_ERR_INIT;
	int64_t start = now_ms();
	int status = -1;
	pid_t pid;

	ck_assert_ok(run_script("sleep 55 & echo $!", &out, NULL, &status, &e), e);
	ck_assert_int_lt(now_ms() - start, 20000);
	pid = (pid_t)strtoul(aqe_buf_str(&out), NULL, 10);
	ck_assert_int_gt(pid, 1);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
}
END_TEST

START_TEST(run__connects_descriptors)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1000);
	char *argv[] = { (char[]){ "cat" }, NULL };
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	int status = -1, fd[2];

	ck_assert_int_eq(pipe2(fd, O_CLOEXEC), 0);
	ck_assert_int_eq(write(fd[1], "input", 5), 5);
	(void)close(fd[1]);
	o.path = "/bin/cat";
	o.argv = argv;
	o.envp = ENV;
	o.in_fd = fd[0];
	o.out = &out;
	o.err_fd = AQE_PROC_NULL;
	ck_assert_ok(aqe_proc_run(&o, &status, &e), e);
	ck_assert_int_eq(status, 0);
	ck_assert_str_eq(aqe_buf_str(&out), "input");
	ck_assert_int_eq(fcntl(fd[0], F_GETFD), FD_CLOEXEC); /* still ours */
	(void)close(fd[0]);
	o.in_fd = AQE_PROC_NULL;
	aqe_buf_clear(&out);
	ck_assert_ok(aqe_proc_run(&o, &status, &e), e);
	ck_assert_str_eq(aqe_buf_str(&out), "");
	o.in_fd = 999;
	ck_assert_fault(aqe_proc_run(&o, &status, &e), AQE_E_SYS, e, "999");
}
END_TEST

/* Our own 0, 1 and 2 crosswise: none may overwrite another before it was copied. */
static int run_crossed(void)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "read line; echo $line >&2; echo out" }, NULL };
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	int in[2], two[2], one[2], status = -1;
	char data[20] = "";

	if (pipe2(in, O_CLOEXEC) || pipe2(one, O_CLOEXEC) || pipe2(two, O_CLOEXEC))
		return 1;
	if (write(in[1], "line\n", 5) != 5)
		return 2;
	/* in our process: 1 = input, 0 = output, 2 = errors */
	if (dup2(in[0], 1) < 0 || dup2(one[1], 2) < 0 || dup2(two[1], 0) < 0)
		return 3;
	o.path = "/bin/sh";
	o.argv = argv;
	o.envp = ENV;
	o.in_fd = 1;
	o.out_fd = 2;
	o.err_fd = 0;
	if (aqe_proc_run(&o, &status, NULL) != 0 || status != 0)
		return 4;
	if (read(one[0], data, sizeof(data)) != 4 || memcmp(data, "out\n", 4) != 0)
		return 5;
	if (read(two[0], data, sizeof(data)) != 5 || memcmp(data, "line\n", 5) != 0)
		return 6;
	return 0;
}

START_TEST(run__connects_descriptors_crosswise)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(run_crossed());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static void let_go(void *self)
{
	int *ends = self;

	(void)close(ends[0]); /* the test looks at the program's status */
	(void)close(ends[1]);
	ends[0] = -2;
}

/* The program waits for the end of its input, which the work brings about. */
START_TEST(run__does_the_work_while_the_program_runs)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "read line; exit 7" },
			 NULL };
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	int ends[2], status = -1;

	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	o.path = "/bin/sh";
	o.argv = argv;
	o.envp = ENV;
	o.in_fd = ends[0];
	o.work = (struct aqe_proc_work){ let_go, ends };
	ck_assert_ok(aqe_proc_run(&o, &status, &e), e);
	ck_assert_int_eq(WEXITSTATUS(status), 7);
	ck_assert_int_eq(ends[0], -2);
}
END_TEST

static size_t count_fds(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 500; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			n++;
	return n;
}

START_TEST(run__neither_leaks_nor_passes_on_descriptors)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1000);
	AQE_AUTO_BUF struct aqe_buf err = AQE_BUF_INIT(1000);
	AQE_AUTO_FD int other = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;
	size_t before = count_fds();
	int status = -1;

	ck_assert_int_gt(other, 2);
	ck_assert_ok(aqe_proc_cloexec_from(3, &e), e); /* what the test was started with */
	ck_assert_ok(run_script("for f in /proc/self/fd/*; do [ -e $f ] && echo ${f##*/}; done; :",
				&out, &err, &status, &e),
		     e);
	ck_assert_uint_eq(count_fds(), before);
	/* the shell itself may have some above 9; what it inherits would be 3 to 9 */
	ck_assert_int_eq(strncmp(aqe_buf_str(&out), "0\n1\n", 4), 0);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&out), "\n2\n"));
	for (const char *p = "3456789"; *p; p++) {
		char line[] = { '\n', *p, '\n', '\0' };

		ck_assert_ptr_null(strstr(aqe_buf_str(&out), line));
	}
}
END_TEST

START_TEST(run__refuses_without_the_childs_status)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(1000);
	struct aqe_err e = AQE_ERR_INIT;
	int status = 77, rc;

	(void)signal(SIGCHLD, SIG_IGN); /* the kernel then throws the status away */
	rc = run_script("exit 3", _i == 0 ? &out : NULL, NULL, &status, &e);
	(void)signal(SIGCHLD, SIG_DFL);
	ck_assert_fault(rc, AQE_E_SYS, e, NULL);
	ck_assert_int_eq(status, 77);
}
END_TEST

START_TEST(wait__gives_the_status_of_a_child_once)
{
	struct aqe_err e = AQE_ERR_INIT;
	int status = 77;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(3);
	ck_assert_ok(aqe_proc_wait(pid, &status, &e), e);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 3);
	status = 77;
	ck_assert_fault(aqe_proc_wait(pid, &status, &e), AQE_E_SYS, e, "wait for process");
	ck_assert_int_eq(e.sys, ECHILD);
	ck_assert_int_eq(status, 77);
}
END_TEST

static int check_cloexec(void)
{
	int a = fcntl(2, F_DUPFD, 20), b = fcntl(2, F_DUPFD, 30);

	if (aqe_proc_cloexec_from(25, NULL) != 0)
		return 1;
	if (fcntl(a, F_GETFD) != 0 || fcntl(b, F_GETFD) != FD_CLOEXEC)
		return 2;
	return aqe_proc_cloexec_from(3, NULL) != 0 || fcntl(a, F_GETFD) != FD_CLOEXEC ||
	       fcntl(2, F_GETFD) != 0;
}

START_TEST(cloexec_from__marks_all_above)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(check_cloexec());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* What goes wrong in a process whose streams are closed; 0: nothing. */
static int fill_closed(void)
{
	char c = 'x';
	int next;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		(void)close(fd); /* the harness may have closed it */
	aqe_proc_fill_streams();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) != 0) /* open, and in a program that we start too */
			return 1;
	}
	if (read(STDIN_FILENO, &c, 1) >= 0 || errno != EBADF)
		return 2;
	for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
		if (write(fd, &c, 1) >= 0 || errno != EBADF) /* a report that is lost is an error */
			return 3;
	}
	next = open("/dev/null", O_RDWR | O_CLOEXEC);
	return next > STDERR_FILENO ? 0 : 4;
}

START_TEST(fill_streams__closed_ones_are_taken_and_do_not_work)
{
	struct aqe_err e = AQE_ERR_INIT;
	pid_t child = fork();
	int status = 0;

	if (child == 0)
		_exit(fill_closed());
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(aqe_proc_wait(child, &status, &e), 0);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(fill_streams__open_ones_stay_as_they_are)
{
	struct stat before[3], after;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		ck_assert_int_eq(fstat(fd, &before[fd]), 0);
	aqe_proc_fill_streams();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		ck_assert_int_eq(fstat(fd, &after), 0);
		ck_assert_uint_eq(after.st_ino, before[fd].st_ino);
		ck_assert_uint_eq(after.st_dev, before[fd].st_dev);
	}
}
END_TEST

START_TEST(start_time__identifies_a_process)
{
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t first = 0, renamed = 0, init = 0, none = 77;

	ck_assert_ok(aqe_proc_start_time(getpid(), &first, &e), e);
	ck_assert_uint_gt(first, 0);
	ck_assert_int_eq(prctl(PR_SET_NAME, "x) R 1 2 (y"), 0);
	ck_assert_ok(aqe_proc_start_time(getpid(), &renamed, &e), e);
	ck_assert_uint_eq(first, renamed);
	ck_assert_ok(aqe_proc_start_time(1, &init, &e), e);
	ck_assert_uint_le(init, first);
	ck_assert_fault(aqe_proc_start_time(0, &none, &e), AQE_E_ABSENT, e, "no process 0");
	ck_assert_fault(aqe_proc_start_time(-1, &none, &e), AQE_E_ABSENT, e, "no process -1");
	ck_assert_fault(aqe_proc_start_time(2147483647, &none, &e), AQE_E_ABSENT, e, "no process");
	ck_assert_uint_eq(none, 77);
}
END_TEST

START_TEST(beside__is_in_our_own_folder)
{
	struct aqe_err e = AQE_ERR_INIT;
	char self[PATH_MAX], got[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t folder;

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	folder = (size_t)(strrchr(self, '/') + 1 - self);
	ck_assert_ok(aqe_proc_beside("other", got, sizeof(got), &e), e);
	ck_assert_int_eq(strncmp(got, self, folder), 0);
	ck_assert_str_eq(got + folder, "other");
	/* as long as our own name, so that only the new one is too long; then both */
	ck_assert_fault(aqe_proc_beside(self, got, (size_t)n + 2, &e), AQE_E_LIMIT, e, "too long");
	ck_assert_fault(aqe_proc_beside("x", got, folder, &e), AQE_E_LIMIT, e, "too long");
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/proc");
	TCase *t = tcase_create("proc");

	tcase_add_test(t, run__captures);
	tcase_add_test(t, run__passes_words_and_environment_as_they_are);
	tcase_add_test(t, run__tells_signals);
	tcase_add_test(t, run__drops_what_is_too_much);
	tcase_add_loop_test(t, run__reports_what_cannot_run, 0, (int)AQE_COUNT(BAD_PATHS));
	tcase_add_loop_test(t, run__kills_at_the_timeout, 0, 2);
	tcase_add_test(t, run__does_not_wait_for_grandchildren);
	tcase_add_test(t, run__connects_descriptors);
	tcase_add_test(t, run__connects_descriptors_crosswise);
	tcase_add_test(t, run__does_the_work_while_the_program_runs);
	tcase_add_test(t, run__neither_leaks_nor_passes_on_descriptors);
	tcase_add_loop_test(t, run__refuses_without_the_childs_status, 0, 2);
	tcase_add_test(t, wait__gives_the_status_of_a_child_once);
	tcase_add_test(t, cloexec_from__marks_all_above);
	tcase_add_test(t, fill_streams__closed_ones_are_taken_and_do_not_work);
	tcase_add_test(t, fill_streams__open_ones_stay_as_they_are);
	tcase_add_test(t, start_time__identifies_a_process);
	tcase_add_test(t, beside__is_in_our_own_folder);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
