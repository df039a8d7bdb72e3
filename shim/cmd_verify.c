/* SPDX-License-Identifier: MIT */
#include "shim/cmds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/input.h"
#include "shim/verify_engine.h"
#include "shim/verify_explain.h"
#include "shim/verify_judge.h"

#define CONTAINERS_MAX 64
#define HELP_MAX       ((size_t)64 << 10)
#define PATH_ARENA_MAX ((size_t)64 << 10)

enum opt { OPT_POLICY = 1, OPT_INFO, OPT_DIGEST, OPT_FORMAT, OPT_ALL, OPT_EXPLAIN, OPT_CONTAINER };

static const struct aqe_cli_opt OPTS[] = {
	{ "policy", 'p', "FILE", "the policy (default: " HARD_POLICY_DIR "/policy.json)",
	  OPT_POLICY },
	{ "engine-info", 0, "FILE", "`podman info` or `docker info` as JSON: is it rootless?",
	  OPT_INFO },
	{ "image-digest", 0, "DIGEST", "the image's digest or id, sha256:...", OPT_DIGEST },
	{ "format", 0, "FORMAT", "text (default), json (one document a file), sarif or junit",
	  OPT_FORMAT },
	{ "all", 'a', NULL, "text and sarif: also what holds, and every finding", OPT_ALL },
	{ "container", 0, "ENGINE:NAME",
	  "podman:NAME or docker:NAME: ask the engine, and the shim's record", OPT_CONTAINER },
	{ "explain", 0, "PROPERTY",
	  "rule, reason and references; 'seccomp' also proves a FILE's filter", OPT_EXPLAIN },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "verify",
	.synopsis =
		"[--policy FILE] [--engine-info FILE] [--image-digest DIGEST] "
		"[--format text|json|sarif|junit] [--all] [--container ENGINE:NAME]... [FILE...] | "
		"--explain PROPERTY [FILE]",
	.about = "Judges config.json files of the OCI runtime-spec, and what podman and docker say "
		 "with inspect and info, against the frozen profile. "
		 "'-' is standard input. Exit status: 0 conform, 1 violate, 2 usage, 3 malformed, "
		 "4 could not decide; of several files the highest.",
	.opts = OPTS,
};

/* What the command line asks for. */
struct request {
	const char *policy, *info, *digest;
	struct shim_info engine; /* what `info` says */
	enum shim_format format;
	unsigned text_flags;
	const char *containers[CONTAINERS_MAX];
	int n_containers;
	enum hard_prop explain; /* HARD_PROP_COUNT: judge */
	struct shim_out *out;
};

static int fail(int status, const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe-shim: %s\n", e->text);
	return status;
}

/* Without an option the policy that a start by this user would find. */
static int load_policy(const struct request *r, struct hard_policy **ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(PATH_ARENA_MAX);
	int rc;

	if (r->policy)
		return hard_policy_load_file(r->policy, ret, e);
	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	rc = hard_policy_load(HARD_POLICY_DIR, geteuid() ? shim_env_policy_dir(a, environ) : NULL,
			      ret, e);
	if (rc != AQE_E_ABSENT)
		return rc;
	(void)fputs("aqe-shim: no policy: judging as if it pinned no image and no mount\n", stderr);
	return hard_policy_empty(ret, e);
}

static int load_info(const char *path, struct shim_info *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_DOC_MAX);
	int rc = shim_input_read(path, &b, e);

	if (rc == 0)
		rc = shim_engine_info(aqe_buf_str(&b), b.len, ret, e);
	return rc < 0 ? aqe_err_wrap(e, "%s", path) : 0;
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
	case OPT_CONTAINER:
		if (r->n_containers == CONTAINERS_MAX)
			return aqe_err_set(e, AQE_E_USAGE, 0, "verify: more than %d containers",
					   CONTAINERS_MAX);
		r->containers[r->n_containers++] = value;
		return shim_engine_check(value, e);
	case OPT_EXPLAIN:
		r->explain = hard_prop_by_id(value);
		if (r->explain == HARD_PROP_COUNT)
			return aqe_err_set(e, AQE_E_USAGE, 0,
					   "verify: no such property '%.64s'; `aqe-shim profile` "
					   "lists them",
					   value);
		return 0;
	case OPT_FORMAT:
		r->format = shim_format_by_name(value);
		if (r->format == SHIM_FORMAT_COUNT)
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
	if (r->explain != HARD_PROP_COUNT)
		return n <= (r->explain == HARD_SECCOMP) && r->format < SHIM_FORMAT_SARIF
			       ? n
			       : aqe_err_set(e, AQE_E_USAGE, 0,
					     "verify: --explain takes one file for 'seccomp' and "
					     "none for others, and writes text or json");
	if (n == 0 && r->n_containers == 0)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "verify: no file given; '-' is standard input");
	return n;
}

static int help(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(HELP_MAX);
	struct aqe_err e = AQE_ERR_INIT;

	aqe_cli_help(&CMD, &b);
	return shim_output(&b, &e) < 0 ? fail(SHIM_EXIT_UNDECIDED, &e) : SHIM_EXIT_OK;
}

/* What counts for all files; an exit status other than 0 with `e` filled when nothing can be
 * judged.
 */
static int prepare(struct request *r, struct hard_ctx *ctx, struct hard_policy **policy,
		   struct aqe_err *e)
{
	int rc;

	if (r->info && (rc = load_info(r->info, &r->engine, e)) < 0)
		return (int)shim_verdict_exit(shim_gate_verdict_of_error(rc));
	ctx->info_rootless = r->engine.rootless;
	if (load_policy(r, policy, e) < 0)
		return SHIM_EXIT_UNDECIDED;
	ctx->policy = *policy;
	ctx->image_digest = r->digest;
	rc = shim_out_policy(r->out, *policy, ctx->now_s, e);
	return rc < 0 ? SHIM_EXIT_UNDECIDED : SHIM_EXIT_OK;
}

/* Nothing could be judged: standard error has said why, and a program must not find an empty
 * report that looks like a good one. */
static int without(const struct request *r, const char *file, const struct aqe_err *fault,
		   struct aqe_err *e)
{
	struct hard_report report;
	const struct shim_judged j = { .file = file,
				       .kind = "spec",
				       .verdict = SHIM_VERDICT_UNKNOWN,
				       .report = &report,
				       .error = *fault };

	if (r->format == SHIM_FORMAT_TEXT)
		return 0;
	hard_report_init(&report, NULL);
	return shim_out_add(r->out, &j, e);
}

static int without_any(const struct request *r, int files, char **argv, const struct aqe_err *fault,
		       struct aqe_err *e)
{
	int rc = 0;

	for (int i = 0; rc == 0 && i < files + r->n_containers; i++)
		rc = without(r, i < files ? argv[i] : r->containers[i - files], fault, e);
	return rc;
}

static int judge(const struct request *r, const struct hard_ctx *ctx, int files, char **argv)
{
	const struct shim_gate gate = { *ctx, r->info ? &r->engine : NULL, r->out };
	int status, worst = SHIM_EXIT_OK;

	for (int i = 0; i < files; i++) {
		status = (int)shim_gate_file(&gate, argv[i]);
		worst = status > worst ? status : worst;
	}
	status = (int)shim_gate_containers(&gate, r->containers, (size_t)r->n_containers);
	return status > worst ? status : worst;
}

static int verify(struct request *r, struct hard_ctx *ctx, int files, char **argv)
{
	struct hard_policy *policy = NULL;
	struct aqe_err e = AQE_ERR_INIT, fault = AQE_ERR_INIT;
	int worst = prepare(r, ctx, &policy, &fault);
	int rc = 0;

	if (worst == SHIM_EXIT_OK)
		worst = judge(r, ctx, files, argv);
	else
		rc = without_any(r, files, argv, &fault, &e);
	if (fault.code != AQE_OK)
		(void)fail(worst, &fault); /* the status is known */
	if (rc == 0)
		rc = shim_out_end(r->out, (enum shim_exit)worst, &e);
	if (rc < 0)
		worst = fail(SHIM_EXIT_UNDECIDED, &e);
	hard_policy_free(policy);
	return worst;
}

/* ---- explaining ---- */

static enum shim_exit explained_exit(const struct shim_explained *x)
{
	if (x->error.code == AQE_OK)
		return x->proof.n_all ? SHIM_EXIT_FAILED : SHIM_EXIT_OK;
	if (x->error.code == AQE_E_REFUSED)
		return SHIM_EXIT_FAILED;
	return shim_verdict_exit(shim_gate_verdict_of_error(x->error.code));
}

static int explain(const struct request *r, const char *file)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(SHIM_DOC_ARENA_MAX);
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(SHIM_DOC_MAX);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(HELP_MAX);
	struct shim_explained x = { .file = file, .error = AQE_ERR_INIT };
	struct aqe_err e = AQE_ERR_INIT;

	if (!a) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return fail(SHIM_EXIT_UNDECIDED, &e);
	}
	if (file && shim_input_read(file, &text, &x.error) == 0)
		shim_explain_filter(a, aqe_buf_str(&text), text.len, &x);
	if (r->format == SHIM_FORMAT_JSON)
		shim_explain_json(r->explain, file ? &x : NULL, &out);
	else
		shim_explain_text(r->explain, file ? &x : NULL, &out);
	if (shim_output(&out, &e) < 0)
		return fail(SHIM_EXIT_UNDECIDED, &e);
	return file ? (int)explained_exit(&x) : SHIM_EXIT_OK;
}

/* no-color.org: any value but an empty one */
static bool wants_colour(void)
{
	const char *no = getenv("NO_COLOR");

	return isatty(STDOUT_FILENO) && (!no || !*no);
}

int shim_cmd_verify(int argc, char **argv)
{
	struct shim_out out;
	struct request r = { .format = SHIM_FORMAT_TEXT, .explain = HARD_PROP_COUNT, .out = &out };
	struct hard_ctx ctx = { .now_s = AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self) };
	struct aqe_err e = AQE_ERR_INIT;
	const int files = read_words(argc, argv, &r, &e);
	int status;

	if (files == AQE_CLI_HELP)
		return help();
	if (files < 0)
		return fail(SHIM_EXIT_USAGE, &e);
	if (r.explain != HARD_PROP_COUNT)
		return explain(&r, files ? argv[0] : NULL);
	if (wants_colour())
		r.text_flags |= SHIM_TEXT_COLOUR;
	shim_out_init(&out, r.format, r.text_flags);
	status = verify(&r, &ctx, files, argv);
	shim_out_done(&out);
	return status;
}
