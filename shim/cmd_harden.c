/* SPDX-License-Identifier: MIT */
/* `aqe-shim harden`: what mode `enforce` would make of a config.json. */
#include "shim/cmds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/rewrite_diff.h"
#include "hardening/verify.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"
#include "shim/engine_info.h"
#include "shim/exit.h"
#include "shim/input.h"

#define FILE_MAX  ((size_t)1 << 20)
#define INFO_MAX  ((size_t)1 << 20)
#define ARENA_MAX ((size_t)64 << 20)
#define OUT_MAX   ((size_t)8 << 20)

enum opt { OPT_POLICY = 1, OPT_TYPE, OPT_DIGEST, OPT_INFO, OPT_ID, OPT_FORMAT };

static const struct aqe_cli_opt OPTS[] = {
	{ "policy", 'p', "FILE", "the policy (default: " HARD_POLICY_DIR "/policy.json)",
	  OPT_POLICY },
	{ "agent-type", 't', "TYPE", "whose ceilings apply (default: as at a start)", OPT_TYPE },
	{ "image-digest", 0, "DIGEST", "the image's digest or id, sha256:...", OPT_DIGEST },
	{ "engine-info", 0, "FILE", "`podman info` or `docker info` as JSON: is it rootless?",
	  OPT_INFO },
	{ "id", 0, "ID", "the container's id, where the document does not tell", OPT_ID },
	{ "format", 0, "FORMAT", "diff (default), json-patch or document", OPT_FORMAT },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "harden",
	.synopsis = "[--policy FILE] [--agent-type TYPE] [--image-digest DIGEST] "
		    "[--engine-info FILE] [--id ID] [--format diff|json-patch|document] FILE",
	.about = "Shows how a start would rewrite a config.json of the OCI runtime-spec, or why it "
		 "would refuse it. '-' is standard input. Exit status: 0 rewritten, 1 refused, "
		 "2 usage, 3 malformed, 4 could not decide.",
	.opts = OPTS,
};

struct request {
	const char *policy, *type, *digest, *info, *id, *file;
	const struct format *format;
};

/* ---- output formats ---- */

static int emit_document(const struct aqe_json *before, const struct aqe_json *after,
			 struct aqe_buf *b, struct aqe_err *e)
{
	(void)before;
	const int rc = aqe_json_emit(after, AQE_JSON_PRETTY, b, e);

	aqe_buf_putc(b, '\n');
	return rc;
}

struct format {
	const char *name;
	int (*emit)(const struct aqe_json *before, const struct aqe_json *after, struct aqe_buf *b,
		    struct aqe_err *e);
};
static const struct format FORMATS[] = {
	{ "diff", hard_diff_text }, /* the default */
	{ "json-patch", hard_diff_patch },
	{ "document", emit_document },
};

/* ---- the command line ---- */

static int fail(int status, const char *what, const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe-shim: %s%s%s\n", what ? what : "", what ? ": " : "", e->text);
	return status;
}

static int take_format(struct request *r, const char *name, struct aqe_err *e)
{
	for (size_t i = 0; i < AQE_COUNT(FORMATS); i++) {
		if (aqe_str_eq(name, FORMATS[i].name)) {
			r->format = &FORMATS[i];
			return 0;
		}
	}
	return aqe_err_set(e, AQE_E_USAGE, 0, "harden: no such format '%.64s'", name);
}

static int take_option(struct request *r, int id, const char *value, struct aqe_err *e)
{
	switch (id) {
	case OPT_POLICY:
		r->policy = value;
		return 0;
	case OPT_TYPE:
		r->type = value;
		return 0;
	case OPT_DIGEST:
		r->digest = value;
		if (aqe_is_sha256_digest(value))
			return 0;
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "harden: --image-digest wants sha256: and 64 lower-case hex "
				   "digits");
	case OPT_INFO:
		r->info = value;
		return 0;
	case OPT_ID:
		r->id = value;
		if (oci_id_ok(value))
			return 0;
		return aqe_err_set(e, AQE_E_USAGE, 0, "harden: no container id: '%.64s'", value);
	case OPT_FORMAT:
		return take_format(r, value, e);
	default:
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "harden: option %d", id);
	}
}

/* 0, AQE_CLI_HELP or AQE_E_USAGE. */
static int read_words(int argc, char **argv, struct request *r, struct aqe_err *e)
{
	struct aqe_cli c;
	int id;

	aqe_cli_init(&c, &CMD, argc, argv);
	while ((id = aqe_cli_next(&c, e)) != AQE_CLI_END) {
		if (id < 0 && id != AQE_CLI_OPERAND)
			return id;
		if (id != AQE_CLI_OPERAND) {
			if (take_option(r, id, c.value, e) < 0)
				return AQE_E_USAGE;
			continue;
		}
		if (r->file)
			return aqe_err_set(e, AQE_E_USAGE, 0, "harden: one file only, not '%.64s'",
					   c.value);
		r->file = c.value;
	}
	if (!r->file)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "harden: no file given; '-' is standard input");
	return 0;
}

/* ---- what the decision rests on ---- */

static int load_policy(const char *file, struct hard_policy **ret, struct aqe_err *e)
{
	if (file)
		return hard_policy_load_file(file, ret, e);
	const int rc = hard_policy_load(HARD_POLICY_DIR, NULL, ret, e);

	if (rc != AQE_E_ABSENT)
		return rc;
	(void)fputs("aqe-shim: no policy: judging as if it pinned no image and no mount\n", stderr);
	return hard_policy_empty(ret, e);
}

static int load_info(const char *path, bool *ret_rootless, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(INFO_MAX);
	struct shim_info info;
	int rc = shim_input_read(path, &b, e);

	if (!rc)
		rc = shim_engine_info(aqe_buf_str(&b), b.len, &info, e);
	if (!rc)
		*ret_rootless = info.rootless;
	return rc ? aqe_err_wrap(e, "%s", path) : 0;
}

/* The folder of the file is the bundle, as for the runtimes; NULL for standard input. */
static char *bundle_of(const char *file)
{
	const char *slash = strrchr(file, '/');
	AQE_AUTO_FREE char *dir = NULL;

	if (strcmp(file, "-") == 0)
		return NULL;
	if (!slash)
		return realpath(".", NULL);
	dir = strndup(file, slash == file ? 1 : (size_t)(slash - file));
	return dir ? realpath(dir, NULL) : NULL;
}

/* The ceilings that a start would choose: the caller's word, the document's marker, or the only
 * type the image may run as; without a pinned image the frozen profile's own. */
static int choose_agent(struct hard_ctx *ctx, const struct request *r, const struct aqe_json *spec,
			struct aqe_err *e)
{
	const char *marker = r->type ? r->type : hard_agent_marker(spec, NULL);

	ctx->entry = hard_verify_entry(ctx->policy, spec, ctx->image_digest);
	ctx->agent = hard_agent_profile();
	if (ctx->entry && (marker || ctx->entry->n_types))
		return hard_agent_choose(ctx->policy, ctx->entry, marker, &ctx->agent, e);
	if (!r->type)
		return 0;
	ctx->agent = hard_policy_agent(ctx->policy, r->type);
	if (!ctx->agent)
		return aqe_err_set(e, AQE_E_USAGE, 0, "harden: no agent type '%.64s'", r->type);
	return 0;
}

/* ---- the work ---- */

static int exit_of(int code)
{
	switch (code) {
	case AQE_E_MALFORMED:
	case AQE_E_LIMIT:
		return SHIM_EXIT_MALFORMED;
	case AQE_E_USAGE:
		return SHIM_EXIT_USAGE;
	case AQE_E_REFUSED:
		return SHIM_EXIT_FAILED;
	default:
		return SHIM_EXIT_UNDECIDED;
	}
}

static int parse(struct aqe_arena *a, const char *file, struct aqe_json **ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(FILE_MAX);
	struct aqe_json *root;
	int rc = shim_input_read(file, &text, e);

	if (!rc)
		rc = oci_doc_parse(a, OCI_DOC_CONFIG, aqe_buf_str(&text), text.len, &root, e);
	if (rc)
		return rc;
	if (!oci_doc_is_config(root))
		return aqe_err_at(e, AQE_E_MALFORMED, root->line, root->col,
				  "not a runtime-spec document");
	*ret = root;
	return 0;
}

static int refused(const struct hard_report *report)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(FILE_MAX);

	hard_report_refusal(report, &text);
	(void)fprintf(stderr, "%s\n", aqe_buf_str(&text));
	return SHIM_EXIT_FAILED;
}

static int harden(struct hard_ctx *ctx, const struct request *r, struct aqe_arena *a)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(OUT_MAX);
	struct aqe_json *spec = NULL, *result = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_report report;

	int rc = parse(a, r->file, &spec, &e);
	if (!rc)
		rc = choose_agent(ctx, r, spec, &e);
	if (rc)
		return fail(exit_of(rc), r->file, &e);
	hard_report_init(&report, a);
	rc = hard_rewrite(ctx, a, spec, &report, &result, &e);
	if (!rc && !result)
		return refused(&report);
	if (!rc)
		rc = r->format->emit(spec, result, &out, &e);
	if (!rc)
		rc = shim_output(&out, &e);
	return rc ? fail(SHIM_EXIT_UNDECIDED, r->file, &e) : SHIM_EXIT_OK;
}

static int help(void)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;

	aqe_cli_help(&CMD, &b);
	return shim_output(&b, &e) ? fail(SHIM_EXIT_UNDECIDED, NULL, &e) : SHIM_EXIT_OK;
}

int shim_cmd_harden(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	AQE_AUTO_FREE char *bundle = NULL;
	struct request r = { .format = &FORMATS[0] };
	struct hard_policy *policy = NULL;
	struct hard_ctx ctx = { .now_s = AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self) };
	struct aqe_err e = AQE_ERR_INIT;

	int rc = read_words(argc, argv, &r, &e);
	if (rc == AQE_CLI_HELP)
		return help();
	if (rc || !r.file)
		return fail(SHIM_EXIT_USAGE, NULL, &e);
	if (!a) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return fail(SHIM_EXIT_UNDECIDED, NULL, &e);
	}
	rc = load_policy(r.policy, &policy, &e);
	if (!rc && r.info)
		rc = load_info(r.info, &ctx.info_rootless, &e);
	if (rc) {
		hard_policy_free(policy);
		return fail(SHIM_EXIT_UNDECIDED, NULL, &e);
	}
	bundle = bundle_of(r.file);
	ctx.policy = policy;
	ctx.image_digest = r.digest;
	ctx.container_id = r.id;
	ctx.bundle = bundle;
	rc = harden(&ctx, &r, a);
	hard_policy_free(policy);
	return rc;
}
