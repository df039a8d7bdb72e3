/* SPDX-License-Identifier: MIT */
#include "shim/cmds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardening/inspect.h"
#include "hardening/verify.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/engine_info.h"
#include "shim/verdict.h"
#include "shim/verify_container.h"
#include "shim/verify_explain.h"
#include "shim/verify_out.h"

#define FILE_MAX       ((size_t)1 << 20)
#define ARENA_MAX      ((size_t)64 << 20)
#define CONTAINERS_MAX 64
#define HELP_MAX       ((size_t)64 << 10)

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

static int load_info(const char *path, struct shim_info *ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	int rc = read_input(path, &b, e);

	if (rc == 0)
		rc = shim_engine_info(aqe_buf_str(&b), b.len, ret, e);
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

/* One file: a spec, or an inspect or info document with one object or, wrongly, several. */
struct doc {
	struct aqe_arena *arena;
	enum oci_inspect_kind kind; /* NONE: a spec */
	struct aqe_json *root;
	struct aqe_err shape; /* what is wrong with the document as a whole */
};

static int parse(struct doc *d, const struct aqe_buf *text, struct aqe_err *e)
{
	const char *tool = NULL;
	int rc;

	if (aqe_json_parse(d->arena, aqe_buf_str(text), text->len, &OCI_INSPECT_LIMITS, &d->root,
			   NULL) == 0)
		d->kind = oci_inspect_kind(d->root, &tool);
	if (d->kind == OCI_INSPECT_FOREIGN)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "a document of %s, which is not judged",
				   tool);
	if (d->kind != OCI_INSPECT_NONE) {
		/* each object is judged all the same, but the verdict is the document's */
		rc = oci_inspect_shape(d->root, d->kind, &d->shape);
		return rc == AQE_E_MALFORMED ? 0 : rc;
	}
	rc = oci_doc_parse(d->arena, OCI_DOC_CONFIG, aqe_buf_str(text), text->len, &d->root, e);
	if (rc < 0)
		return rc;
	if (!oci_doc_is_config(d->root))
		return aqe_err_at(e, AQE_E_MALFORMED, d->root->line, d->root->col,
				  "neither a runtime-spec document nor one of podman or docker");
	return 0;
}

static int read_doc(const char *file, struct doc *d, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(FILE_MAX);
	const int rc = read_input(file, &text, e);

	return rc < 0 ? rc : parse(d, &text, e);
}

/* The engine that told us about itself must be the one that told us about the container. */
static void set_info(struct hard_ctx *ctx, const struct shim_info *info, bool podman)
{
	ctx->info_rootless = info && info->rootless && info->podman == podman;
	ctx->info_no_filter = info && info->no_filter && info->podman == podman;
}

static int judge_object(struct hard_ctx ctx, const struct request *r, enum oci_inspect_kind kind,
			const struct aqe_json *object, struct hard_report *report,
			struct aqe_err *e)
{
	const int rc = oci_inspect_check(kind, object, e);

	if (kind == OCI_INSPECT_NONE || kind == OCI_INSPECT_FOREIGN)
		return aqe_err_at(e, AQE_E_MALFORMED, object->line, object->col,
				  "not what podman or docker write");
	if (rc < 0)
		return rc;
	set_info(&ctx, r->info ? &r->engine : NULL, oci_inspect_is_podman(kind));
	return hard_verify_inspect(&ctx, kind, object, report, e);
}

/* ---- one file ---- */

static const char *kind_word(enum oci_inspect_kind kind)
{
	static const char *const words[] = {
		[OCI_INSPECT_NONE] = "spec",
		[OCI_INSPECT_PODMAN_CONTAINER] = "inspect",
		[OCI_INSPECT_DOCKER_CONTAINER] = "inspect",
		[OCI_INSPECT_PODMAN_IMAGE] = "image",
		[OCI_INSPECT_DOCKER_IMAGE] = "image",
		[OCI_INSPECT_PODMAN_INFO] = "info",
		[OCI_INSPECT_DOCKER_INFO] = "info",
		[OCI_INSPECT_FOREIGN] = "inspect",
	};

	return words[kind];
}

/* One report: of a whole document that could not be judged (`rc`), a spec, or one object. */
struct item {
	const char *file;
	const struct doc *doc;
	const struct aqe_json *object; /* NULL: the spec */
	int rc;
	const struct aqe_err *error; /* for rc */
};

static int judge_item(const struct request *r, const struct hard_ctx *ctx, const struct item *it,
		      struct shim_judged *j, struct hard_report *report)
{
	struct hard_ctx mine = *ctx;
	enum oci_inspect_kind kind;

	if (it->rc < 0) {
		j->error = *it->error;
		return it->rc;
	}
	if (!it->object) {
		choose_agent(&mine, it->doc->root, report);
		return hard_verify(&mine, it->doc->root, report, &j->error);
	}
	kind = oci_inspect_object(it->object, NULL);
	j->kind = kind_word(kind);
	j->dialect = oci_inspect_name(kind);
	return judge_object(mine, r, kind, it->object, report, &j->error);
}

static enum shim_exit verify_item(const struct request *r, const struct hard_ctx *ctx,
				  const struct item *it)
{
	struct hard_report report;
	struct shim_judged j = { .file = it->file,
				 .kind = kind_word(it->doc->kind),
				 .report = &report,
				 .error = AQE_ERR_INIT,
				 .now_s = ctx->now_s };
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	hard_report_init(&report, it->doc->arena);
	rc = judge_item(r, ctx, it, &j, &report);
	if (rc < 0)
		hard_report_init(&report, it->doc->arena); /* nothing half-judged is shown */
	j.verdict = rc < 0 ? verdict_of_error(rc) : verdict_of(&report);
	if (rc >= 0 && it->doc->shape.code != AQE_OK) {
		j.error = it->doc->shape;
		j.judged = true;
		j.verdict = verdict_of_error(it->doc->shape.code);
	}
	if (shim_out_add(r->out, &j, &e) < 0)
		return (enum shim_exit)fail(SHIM_EXIT_UNDECIDED, &e);
	return shim_verdict_exit(j.verdict);
}

static enum shim_exit verify_file(const struct request *r, const struct hard_ctx *ctx,
				  const char *file)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct doc d = { .arena = a, .shape = AQE_ERR_INIT };
	struct aqe_err e = AQE_ERR_INIT;
	struct item it = { .file = file, .doc = &d, .error = &e };
	int worst = SHIM_EXIT_OK;

	if (!a) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return (enum shim_exit)fail(SHIM_EXIT_UNDECIDED, &e);
	}
	it.rc = read_doc(file, &d, &e);
	if (it.rc < 0 || d.kind == OCI_INSPECT_NONE)
		return verify_item(r, ctx, &it);
	it.object = d.root->type == AQE_JSON_ARRAY ? d.root->first : d.root;
	for (; it.object; it.object = it.object->next) {
		const int status = (int)verify_item(r, ctx, &it);

		worst = status > worst ? status : worst;
	}
	return (enum shim_exit)worst;
}

/* ---- a container ---- */

static int read_engine(const char *word, struct request *mine, struct doc *d, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf inspect = AQE_BUF_INIT(FILE_MAX);
	AQE_AUTO_BUF struct aqe_buf info = AQE_BUF_INIT(FILE_MAX);
	int rc = shim_container_ask(word, &inspect, &info, e);

	if (rc == 0)
		rc = shim_engine_info(aqe_buf_str(&info), info.len, &mine->engine, e);
	if (rc == 0)
		rc = parse(d, &inspect, e);
	if (rc < 0)
		return rc;
	mine->info = word;
	if (d->shape.code != AQE_OK ||
	    (d->kind != OCI_INSPECT_PODMAN_CONTAINER && d->kind != OCI_INSPECT_DOCKER_CONTAINER))
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "the engine did not write one container");
	return 0;
}

/* What the engine says, and what the container really is when the shim knows it: that decides. */
static int judge_container(struct request *mine, struct hard_ctx ctx, struct doc *d,
			   struct shim_judged *j, struct hard_report *reports)
{
	struct shim_effective eff = { false, NULL };
	struct item it = { .file = j->file, .doc = d, .error = &j->error };
	const struct aqe_json *state;
	int64_t pid = 0;
	int rc = read_engine(j->file, mine, d, &j->error);

	if (rc < 0)
		return rc;
	it.object = d->root->type == AQE_JSON_ARRAY ? d->root->first : d->root;
	rc = judge_item(mine, &ctx, &it, j, &reports[0]);
	if (rc < 0)
		return rc;
	state = aqe_json_get(it.object, "State");
	if (aqe_json_get_i64(state, "Pid", 0, INT32_MAX, &pid, &j->error) < 0)
		return j->error.code;
	set_info(&ctx, &mine->engine, oci_inspect_is_podman(d->kind));
	rc = shim_container_effective(d->arena, &ctx, aqe_json_str(aqe_json_get(it.object, "Id")),
				      (pid_t)pid, &reports[1], &eff, &j->error);
	if (eff.found) {
		j->kind = "container";
		j->report = &reports[1];
		j->inspect = &reports[0];
		j->kernel = eff.kernel;
	}
	return rc;
}

static enum shim_exit verify_container(const struct request *r, const struct hard_ctx *ctx,
				       const char *word)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct doc d = { .arena = a, .shape = AQE_ERR_INIT };
	struct request mine = *r;
	struct hard_report reports[2];
	struct shim_judged j = { .file = word,
				 .kind = "inspect",
				 .report = &reports[0],
				 .error = AQE_ERR_INIT,
				 .now_s = ctx->now_s };
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	if (!a) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return (enum shim_exit)fail(SHIM_EXIT_UNDECIDED, &e);
	}
	hard_report_init(&reports[0], a);
	hard_report_init(&reports[1], a);
	rc = judge_container(&mine, *ctx, &d, &j, reports);
	if (rc < 0) {
		hard_report_init(&reports[0], a); /* nothing half-judged is shown */
		j.report = &reports[0];
		j.inspect = NULL;
		j.verdict = verdict_of_error(rc);
	} else {
		j.verdict = verdict_of(j.report);
	}
	if (shim_out_add(r->out, &j, &e) < 0)
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
	case OPT_CONTAINER:
		if (r->n_containers == CONTAINERS_MAX)
			return aqe_err_set(e, AQE_E_USAGE, 0, "verify: more than %d containers",
					   CONTAINERS_MAX);
		r->containers[r->n_containers++] = value;
		return shim_container_check(value, e);
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
	return shim_out_print(&b, &e) < 0 ? fail(SHIM_EXIT_UNDECIDED, &e) : SHIM_EXIT_OK;
}

/* What counts for all files; an exit status other than 0 with `e` filled when nothing can be
 * judged.
 */
static int prepare(struct request *r, struct hard_ctx *ctx, struct hard_policy **policy,
		   struct aqe_err *e)
{
	int rc;

	if (r->info && (rc = load_info(r->info, &r->engine, e)) < 0)
		return (int)shim_verdict_exit(verdict_of_error(rc));
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

static int verify(struct request *r, struct hard_ctx *ctx, int files, char **argv)
{
	struct hard_policy *policy = NULL;
	struct aqe_err e = AQE_ERR_INIT, fault = AQE_ERR_INIT;
	int worst = prepare(r, ctx, &policy, &fault);
	const bool ready = worst == SHIM_EXIT_OK;
	int rc = 0;

	if (!ready)
		worst = fail(worst, &fault);
	for (int i = 0; rc == 0 && i < r->n_containers + files; i++) {
		const bool asked = i < r->n_containers;
		const char *word = asked ? r->containers[i] : argv[i - r->n_containers];
		int status = worst;

		if (!ready)
			rc = without(r, word, &fault, &e);
		else
			status = (int)(asked ? verify_container : verify_file)(r, ctx, word);
		worst = status > worst ? status : worst;
	}
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
	return shim_verdict_exit(verdict_of_error(x->error.code));
}

static int explain(const struct request *r, const char *file)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(FILE_MAX);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(HELP_MAX);
	struct shim_explained x = { .file = file, .error = AQE_ERR_INIT };
	struct aqe_err e = AQE_ERR_INIT;

	if (!a) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return fail(SHIM_EXIT_UNDECIDED, &e);
	}
	if (file && read_input(file, &text, &x.error) == 0)
		shim_explain_filter(a, aqe_buf_str(&text), text.len, &x);
	if (r->format == SHIM_FORMAT_JSON)
		shim_explain_json(r->explain, file ? &x : NULL, &out);
	else
		shim_explain_text(r->explain, file ? &x : NULL, &out);
	if (shim_out_print(&out, &e) < 0)
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
