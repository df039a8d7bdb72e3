/* SPDX-License-Identifier: MIT */
/* aqe audit head, anchor, checkpoint, key: signed statements about the log, and who signs. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "audit/checkpoint.h"
#include "shim/aqe/audit_args.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/sha256.h"
#include "shim/exit.h"

#define ARENA_MAX  ((size_t)1 << 20)
#define OUT_MAX    ((size_t)16 << 10)
#define COMMAND_MS 60000

enum format { AS_TEXT, AS_JSON };
static const char *const FORMATS[] = { "text", "json", NULL };

/* Opened for writing when that can be done, because only then a head is signed; reading first, so
 * that nothing is made where there is no log. */
static int open_for_head(const struct shim_audit_args *args, struct audit_log **ret,
			 struct aqe_err *e)
{
	struct audit_log *writable = NULL;
	struct aqe_err ignored = AQE_ERR_INIT;
	int rc = shim_audit_open(args, AUDIT_READ, ret, e);

	if (rc == AQE_OK && shim_audit_open(args, AUDIT_WRITE, &writable, &ignored) == AQE_OK) {
		audit_close(*ret);
		*ret = writable;
	}
	return rc;
}

static int take_head(const struct shim_audit_args *args, struct audit_point *ret, struct aqe_err *e)
{
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	int rc = open_for_head(args, &log, e);

	return rc < 0 ? rc : audit_head(log, ret, e);
}

static int print_point(const struct audit_point *p, enum format format, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	char line[AUDIT_POINT_TEXT];

	if (format == AS_JSON) {
		audit_point_emit(p, &b);
		(void)aqe_buf_putc(&b, '\n');
	} else {
		audit_point_format(p, line);
		(void)aqe_buf_puts(&b, line);
	}
	return shim_audit_write(&b, e);
}

/* ---- head ---- */

static const struct aqe_cli_opt HEAD_OPTS[] = {
	{ "format", 0, "FORMAT", "text (default: the line that `anchor` writes) or json",
	  SHIM_OPT_FORMAT },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_KEY_DIR,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd HEAD = {
	.name = "aqe audit head",
	.synopsis = "[--format text|json]",
	.about = "Prints the last row's number and hash, signed when this user may write the log "
		 "and "
		 "there is a key. Nothing is stored.",
	.opts = HEAD_OPTS,
};

int shim_audit_head(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct shim_audit_args args = { .arena = a, .formats = FORMATS };
	struct audit_point p;
	struct aqe_err e = AQE_ERR_INIT;
	int rc, status = shim_audit_parse(&args, &HEAD, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	rc = take_head(&args, &p, &e);
	if (rc == AQE_OK)
		rc = print_point(&p, (enum format)args.format, &e);
	return rc < 0 ? shim_audit_fail(&HEAD, &e) : SHIM_EXIT_OK;
}

/* ---- anchor ---- */

enum { OPT_OUTPUT = SHIM_OPT_OWN, OPT_COMMAND };
static const struct aqe_cli_opt ANCHOR_OPTS[] = {
	{ "output", 'o', "FILE", "append the line to FILE, flushed to disk", OPT_OUTPUT },
	{ "command", 0, "CMD...",
	  "give the line to this program (absolute path) on its standard "
	  "input; all words after it are its arguments; no shell is used",
	  OPT_COMMAND },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_KEY_DIR,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd ANCHOR = {
	.name = "aqe audit anchor",
	.synopsis = "[-o FILE | --command CMD...]",
	.about = "Writes the head as one line to keep outside this machine: with it, `verify "
		 "--anchor` finds a cut tail, a replaced log, and a history rewritten by who holds "
		 "the key. Without -o and --command it is printed.",
	.opts = ANCHOR_OPTS,
};

struct anchor {
	const char *output;
	char **command; /* NULL-terminated; NULL = none */
};

static int take_anchor(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	struct anchor *a = self;

	switch (id) {
	case OPT_OUTPUT:
		a->output = c->value;
		return AQE_OK;
	case OPT_COMMAND:
		/* argv ends with NULL; "--command=/x" and "--command /x" both leave pos behind it
		 */
		if (c->value[0] != '/' || strcmp(c->argv[c->pos - 1], c->value) != 0)
			return aqe_err_set(e, AQE_E_USAGE, 0,
					   "--command wants an absolute path as a word of its own");
		a->command = &c->argv[c->pos - 1];
		c->pos = c->argc;
		return AQE_OK;
	default:
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	}
}

static int append_line(const char *path, const char *line, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
	int rc;

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%.300s'", path);
	rc = aqe_fs_write_all(fd, line, strlen(line), e);
	if (rc == AQE_OK && fsync(fd) < 0 && errno != EINVAL && errno != EROFS)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "flush");
	return rc < 0 ? aqe_err_wrap(e, "'%.300s'", path) : AQE_OK;
}

static int give_line(char **command, const char *line, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = memfd_create("aqe-anchor", MFD_CLOEXEC);
	struct aqe_proc_opts o = AQE_PROC_OPTS_INIT;
	int rc, status = 0;

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "memory file");
	rc = aqe_fs_write_all(fd, line, strlen(line), e);
	if (rc < 0)
		return rc;
	(void)lseek(fd, 0, SEEK_SET); /* cannot fail for a memory file */
	o.path = command[0];
	o.argv = command;
	o.envp = environ;
	o.in_fd = fd;
	o.timeout_ms = COMMAND_MS;
	rc = aqe_proc_run(&o, &status, e);
	if (rc < 0)
		return aqe_err_wrap(e, "'%.300s'", command[0]);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0,
				   "'%.300s' failed with %s %d: the anchor may "
				   "not have been kept",
				   command[0], WIFEXITED(status) ? "exit status" : "signal",
				   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	return AQE_OK;
}

int shim_audit_anchor(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct anchor to = { NULL, NULL };
	struct shim_audit_args args = { .arena = a, .own = take_anchor, .self = &to };
	struct audit_point p;
	struct aqe_err e = AQE_ERR_INIT;
	char line[AUDIT_POINT_TEXT];
	int rc, status = shim_audit_parse(&args, &ANCHOR, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	rc = take_head(&args, &p, &e);
	if (rc == AQE_OK) {
		audit_point_format(&p, line);
		if (to.output)
			rc = append_line(to.output, line, &e);
		if (rc == AQE_OK && to.command)
			rc = give_line(to.command, line, &e);
		if (rc == AQE_OK && !to.output && !to.command)
			rc = print_point(&p, AS_TEXT, &e);
	}
	return rc < 0 ? shim_audit_fail(&ANCHOR, &e) : SHIM_EXIT_OK;
}

/* ---- checkpoint ---- */

static const struct aqe_cli_cmd CHECKPOINT = {
	.name = "aqe audit checkpoint",
	.synopsis = "[--format text|json]",
	.about =
		"Signs the head now, stores that in the log and prints it. Without it this happens "
		"every so many rows.",
	.opts = HEAD_OPTS,
};

int shim_audit_checkpoint(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct shim_audit_args args = { .arena = a, .formats = FORMATS };
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_point p;
	struct aqe_err e = AQE_ERR_INIT;
	int rc, status = shim_audit_parse(&args, &CHECKPOINT, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	rc = shim_audit_open(&args, AUDIT_WRITE, &log, &e);
	if (rc == AQE_OK)
		rc = audit_checkpoint(log, &p, &e);
	if (rc == AQE_OK)
		rc = print_point(&p, (enum format)args.format, &e);
	return rc < 0 ? shim_audit_fail(&CHECKPOINT, &e) : SHIM_EXIT_OK;
}

/* ---- key ---- */

static const struct aqe_cli_opt KEY_OPTS[] = {
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_KEY_DIR,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd KEY = {
	.name = "aqe audit key",
	.synopsis = "generate|show|public",
	.about =
		"The key that signs checkpoints, heads and exports (Ed25519). 'generate' makes one "
		"and signs the head; there must be none yet. 'public' prints the public half as "
		"`verify --public-key` reads it: keep it elsewhere. 'show' says where the key is "
		"and its fingerprint; the secret half is never printed.",
	.opts = KEY_OPTS,
};

static int take_verb(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	const char **verb = self;

	if (id != AQE_CLI_OPERAND || *verb)
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	*verb = c->value;
	return AQE_OK;
}

static int key_print(const struct audit_opts *at, bool all, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	char line[AUDIT_PUBLIC_TEXT], digest[AQE_DIGEST_TEXT];
	const char *dir = at->key_dir ? at->key_dir : at->dir;
	uint8_t key[32];
	int rc = audit_key_public(at, key, e);

	if (rc == AQE_E_ABSENT)
		return aqe_err_set(e, AQE_E_ABSENT, 0,
				   "there is no key in '%.300s'; make one: aqe audit key generate",
				   dir);
	if (rc < 0)
		return rc;
	audit_public_format(key, line);
	aqe_sha256_text((const char *)key, sizeof(key), digest);
	if (all)
		(void)aqe_buf_addf(&b, "secret key   %s/%s\npublic key   %s/%s\nfingerprint  %s\n",
				   dir, AUDIT_KEY_FILE, dir, AUDIT_PUBLIC_FILE, digest);
	(void)aqe_buf_puts(&b, line);
	return shim_audit_write(&b, e);
}

int shim_audit_key(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	const char *verb = NULL;
	struct shim_audit_args args = { .arena = a, .own = take_verb, .self = &verb };
	struct audit_opts at;
	struct aqe_err e = AQE_ERR_INIT;
	int rc, status = shim_audit_parse(&args, &KEY, argc, argv);
	bool make;

	if (status != SHIM_AUDIT_RUN)
		return status;
	make = verb && strcmp(verb, "generate") == 0;
	if (!verb || (!make && strcmp(verb, "show") != 0 && strcmp(verb, "public") != 0)) {
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "wants one of generate, show, public");
		return shim_audit_fail(&KEY, &e);
	}
	rc = shim_audit_place(&args, make ? AUDIT_WRITE : AUDIT_READ, &at, &e);
	if (rc == AQE_OK && make)
		rc = audit_key_make(&at, &e);
	if (rc == AQE_OK)
		rc = key_print(&at, strcmp(verb, "public") != 0, &e);
	return rc < 0 ? shim_audit_fail(&KEY, &e) : SHIM_EXIT_OK;
}
