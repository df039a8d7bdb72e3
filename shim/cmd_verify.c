/* SPDX-License-Identifier: MIT */
#include "shim/cmds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardening/verify.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/engine_info.h"
#include "shim/verdict.h"

#define FILE_MAX  ((size_t)1 << 20)
#define ARENA_MAX ((size_t)64 << 20)
#define OUT_MAX   ((size_t)4 << 20)

enum format { FORMAT_TEXT, FORMAT_JSON };
enum opt { OPT_POLICY = 1, OPT_INFO, OPT_DIGEST, OPT_FORMAT, OPT_ALL };

static const struct aqe_cli_opt OPTS[] = {
	{ "policy", 'p', "FILE", "the policy (default: " HARD_POLICY_DIR "/policy.json)",
	  OPT_POLICY },
	{ "engine-info", 0, "FILE", "`podman info` or `docker info` as JSON: is it rootless?",
	  OPT_INFO },
	{ "image-digest", 0, "DIGEST", "the image's digest or id, sha256:...", OPT_DIGEST },
	{ "format", 0, "FORMAT", "text (default) or json, one document a file", OPT_FORMAT },
	{ "all", 'a', NULL, "text: also what holds, and every finding", OPT_ALL },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "verify",
	.synopsis = "[--policy FILE] [--engine-info FILE] [--image-digest DIGEST] "
		    "[--format text|json] [--all] FILE...",
	.about = "Judges config.json files of the OCI runtime-spec against the frozen profile. "
		 "'-' is standard input. Exit status: 0 conform, 1 violate, 2 usage, 3 malformed, "
		 "4 could not decide; of several files the highest.",
	.opts = OPTS,
};

/* What the command line asks for. */
struct request {
	const char *policy, *info, *digest;
	enum format format;
	unsigned text_flags;
};

static int fail(int status, const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe-shim: %s\n", e->text);
	return status;
}

/* ---- reading ---- */

/* Opens a named input. Only regular files: a FIFO could show us one document and the next reader
 * another, and a link may point elsewhere by then. */
static int open_file(const char *path, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0,
				   "a symbolic link: name the file itself, or pipe it to '-'");
	if (fd < 0 || fstat(fd, &st) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open");
	if (!S_ISREG(st.st_mode))
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0,
				   "not a regular file: pipe the document to '-'");
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}

static int read_input(const char *path, struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	int rc;

	if (strcmp(path, "-") == 0)
		return aqe_fs_read_fd(STDIN_FILENO, b, e);
	rc = open_file(path, &fd, e);
	if (rc < 0)
		return rc;
	return aqe_fs_read_fd(fd, b, e);
}

static int load_policy(const struct request *r, struct hard_policy **ret, struct aqe_err *e)
{
	int rc;

	if (r->policy)
		return hard_policy_load_file(r->policy, ret, e);
	rc = hard_policy_load(HARD_POLICY_DIR, NULL, ret, e);
	if (rc != AQE_E_ABSENT)
		return rc;
	(void)fputs("aqe-shim: no policy: judging as if it pinned no image and no mount\n", stderr);
	return hard_policy_empty(ret, e);
}

static int load_info(const char *path, bool *ret_rootless, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	int rc = read_input(path, &b, e);

	if (rc == 0)
		rc = shim_engine_info(aqe_buf_str(&b), b.len, ret_rootless, e);
	return rc < 0 ? aqe_err_wrap(e, "%s", path) : 0;
}

/* ---- judging ---- */

/* Whose ceilings apply: a marker's, or what the image's entry leaves no choice about; else the
 * frozen profile's own. */
static void choose_agent(struct hard_ctx *ctx, const struct aqe_json *spec, struct hard_report *r)
{
	const struct hard_image *entry = hard_verify_entry(ctx->policy, spec, ctx->image_digest);
	const char *marker = hard_agent_marker(spec, NULL);
	struct aqe_err e = AQE_ERR_INIT;

	ctx->agent = hard_agent_profile();
	if (!entry || (!marker && entry->n_types == 0))
		return;
	if (hard_agent_choose(ctx->policy, entry, marker, &ctx->agent, &e) < 0)
		hard_report_fail(r, HARD_DIGEST, NULL, "",
				 "an agent type that the image may run as", "%s", e.text);
}

static enum shim_verdict verdict_of(const struct hard_report *r)
{
	if (hard_report_ok(r))
		return SHIM_VERDICT_CONFORM;
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		if (r->result[i] == HARD_FAIL)
			return SHIM_VERDICT_VIOLATE;
	return SHIM_VERDICT_UNKNOWN;
}

static enum shim_verdict verdict_of_error(int code)
{
	return code == AQE_E_MALFORMED || code == AQE_E_LIMIT ? SHIM_VERDICT_MALFORMED
							      : SHIM_VERDICT_UNKNOWN;
}

static int parse(struct aqe_arena *a, const struct aqe_buf *text, struct aqe_json **ret,
		 struct aqe_err *e)
{
	struct aqe_json *root;
	const int rc = oci_doc_parse(a, OCI_DOC_CONFIG, aqe_buf_str(text), text->len, &root, e);

	if (rc < 0)
		return rc;
	if (!oci_doc_is_config(root))
		return aqe_err_at(e, AQE_E_MALFORMED, root->line, root->col,
				  "not a runtime-spec document");
	*ret = root;
	return 0;
}

static int judge(struct hard_ctx ctx, const char *file, struct aqe_arena *a, struct hard_report *r,
		 struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(FILE_MAX);
	struct aqe_json *spec = NULL;
	int rc = read_input(file, &text, e);

	if (rc == 0)
		rc = parse(a, &text, &spec, e);
	if (rc < 0)
		return rc;
	if (!spec)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "a document that is not there");
	choose_agent(&ctx, spec, r);
	return hard_verify(&ctx, spec, r, e);
}

/* ---- output ---- */

static int print(const struct aqe_buf *b, struct aqe_err *e)
{
	const int rc = aqe_buf_ok(b, e);

	if (rc < 0)
		return rc;
	if (fwrite(aqe_buf_str(b), 1, b->len, stdout) != b->len || fflush(stdout) == EOF)
		return aqe_err_set(e, AQE_E_SYS, errno, "write to standard output");
	return 0;
}

static enum shim_exit verify_file(const struct request *r, const struct hard_ctx *ctx,
				  const char *file)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUT_MAX);
	struct hard_report report;
	struct shim_judged j = { .file = file,
				 .kind = "spec",
				 .report = &report,
				 .error = AQE_ERR_INIT,
				 .now_s = ctx->now_s };
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	if (!a) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return (enum shim_exit)fail(SHIM_EXIT_UNDECIDED, &e);
	}
	hard_report_init(&report, a);
	rc = judge(*ctx, file, a, &report, &j.error);
	if (rc < 0)
		hard_report_init(&report, a); /* nothing of a half-judged document is shown */
	j.verdict = rc < 0 ? verdict_of_error(rc) : verdict_of(&report);
	if (r->format == FORMAT_JSON)
		shim_report_json(&j, &out);
	else
		shim_report_text(&j, r->text_flags, &out);
	if (print(&out, &e) < 0)
		return (enum shim_exit)fail(SHIM_EXIT_UNDECIDED, &e);
	return shim_verdict_exit(j.verdict);
}

/* ---- the command ---- */

static int take_option(struct request *r, int id, const char *value, struct aqe_err *e)
{
	switch (id) {
	case OPT_POLICY:
		r->policy = value;
		return 0;
	case OPT_INFO:
		r->info = value;
		return 0;
	case OPT_DIGEST:
		r->digest = value;
		if (!aqe_is_sha256_digest(value))
			return aqe_err_set(e, AQE_E_USAGE, 0,
					   "verify: --image-digest wants sha256: and 64 lower-case "
					   "hex digits");
		return 0;
	case OPT_ALL:
		r->text_flags |= SHIM_TEXT_ALL;
		return 0;
	case OPT_FORMAT:
		r->format = strcmp(value, "json") == 0 ? FORMAT_JSON : FORMAT_TEXT;
		if (r->format == FORMAT_TEXT && strcmp(value, "text") != 0)
			return aqe_err_set(e, AQE_E_USAGE, 0, "verify: no such format '%.64s'",
					   value);
		return 0;
	default:
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "verify: option %d", id);
	}
}

/* Fills the request and moves the files to the front of argv; their number, AQE_CLI_HELP or an
 * error. */
static int read_words(int argc, char **argv, struct request *r, struct aqe_err *e)
{
	struct aqe_cli c;
	int n = 0, id;

	aqe_cli_init(&c, &CMD, argc, argv);
	while ((id = aqe_cli_next(&c, e)) != AQE_CLI_END) {
		if (id < 0 && id != AQE_CLI_OPERAND)
			return id;
		if (id == AQE_CLI_OPERAND)
			argv[n++] = argv[c.pos - 1]; /* n < pos: already read */
		else if (take_option(r, id, c.value, e) < 0)
			return AQE_E_USAGE;
	}
	if (n == 0)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "verify: no file given; '-' is standard input");
	return n;
}

static int help(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;

	aqe_cli_help(&CMD, &b);
	return print(&b, &e) < 0 ? fail(SHIM_EXIT_UNDECIDED, &e) : SHIM_EXIT_OK;
}

int shim_cmd_verify(int argc, char **argv)
{
	struct request r = { .format = FORMAT_TEXT };
	struct hard_policy *policy = NULL;
	struct hard_ctx ctx = { .now_s = AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self) };
	struct aqe_err e = AQE_ERR_INIT;
	const int files = read_words(argc, argv, &r, &e);
	int worst = SHIM_EXIT_OK, rc;

	if (files == AQE_CLI_HELP)
		return help();
	if (files < 0)
		return fail(SHIM_EXIT_USAGE, &e);
	if (isatty(STDOUT_FILENO) && !getenv("NO_COLOR"))
		r.text_flags |= SHIM_TEXT_COLOUR;
	if (r.info && (rc = load_info(r.info, &ctx.info_rootless, &e)) < 0)
		return fail((int)shim_verdict_exit(verdict_of_error(rc)), &e);
	if (load_policy(&r, &policy, &e) < 0)
		return fail(SHIM_EXIT_UNDECIDED, &e);
	ctx.policy = policy;
	ctx.image_digest = r.digest;
	for (int i = 0; i < files; i++) {
		const int status = (int)verify_file(&r, &ctx, argv[i]);

		worst = status > worst ? status : worst;
	}
	hard_policy_free(policy);
	return worst;
}
