/* SPDX-License-Identifier: MIT */
/* What the tests of our own commands share: a folder, and a call with its streams caught. Tests run
 * in processes of their own, so the streams may stay redirected. */
#ifndef AQE_UNIT_CMD_UTIL_H
#define AQE_UNIT_CMD_UTIL_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/cmds.h"
#include "shim/core/fs.h"
#include "shim/exit.h"
#include "tests/unit/rewrite_util.h"

static char cmd_dir[] = "/tmp/aqe-test-cmd-XXXXXX";
/* What the last call wrote to its standard output and error. */
static struct aqe_buf out = AQE_BUF_INIT(RW_FILE_MAX), errors = AQE_BUF_INIT(RW_FILE_MAX);

static inline void cmd_setup(void)
{
	rw_setup();
	ck_assert_ptr_nonnull(mkdtemp(cmd_dir));
	ck_assert_int_eq(unsetenv("NO_COLOR"), 0);
}

static inline void cmd_teardown(void)
{
	AQE_AUTO_FD int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(aqe_fs_remove_tree(tmp, cmd_dir + strlen("/tmp/"), NULL), 0);
	aqe_buf_done(&out);
	aqe_buf_done(&errors);
	rw_teardown();
}

static inline const char *cmd_path(const char *name)
{
	return aqe_arena_fmt(arena, "%s/%s", cmd_dir, name);
}

/* Writes a file of the folder; its path. */
static inline const char *cmd_file(const char *name, const char *p, size_t n)
{
	const char *path = cmd_path(name);
	FILE *f = fopen(path, "we");

	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(p, 1, n, f), n);
	ck_assert_int_eq(fclose(f), 0);
	return path;
}

static inline const char *cmd_json(const char *name, const struct aqe_json *doc)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);

	ck_assert_ok(aqe_json_emit(doc, AQE_JSON_PRETTY, &b, &err), err);
	return cmd_file(name, aqe_buf_str(&b), b.len);
}

/* Calls `fn` with its name and the words up to NULL; its exit status. */
static inline int cmd_run(int (*fn)(int argc, char **argv), const char *name,
			  const char *const *words)
{
	char *argv[24] = { NULL };
	int argc = 0;

	argv[argc++] = aqe_arena_dup(arena, name);
	for (; *words; words++) {
		ck_assert_int_lt(argc, (int)AQE_COUNT(argv) - 1);
		argv[argc++] = aqe_arena_dup(arena, *words);
	}
	ck_assert_ptr_nonnull(freopen(cmd_path("out"), "we", stdout));
	ck_assert_ptr_nonnull(freopen(cmd_path("err"), "we", stderr));
	const int rc = fn(argc, argv);

	(void)fflush(stdout);
	(void)fflush(stderr);
	rw_read_file(cmd_path("out"), &out);
	rw_read_file(cmd_path("err"), &errors);
	return rc;
}

static inline bool cmd_said(const char *part)
{
	return strstr(aqe_buf_str(&out), part) != NULL;
}

#endif
