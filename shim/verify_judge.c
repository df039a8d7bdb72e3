/* SPDX-License-Identifier: MIT */
#include "shim/verify_judge.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "hardening/inspect.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/input.h"

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

enum shim_verdict shim_gate_verdict(const struct hard_report *r)
{
	if (hard_report_ok(r))
		return SHIM_VERDICT_CONFORM;
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		if (r->result[i] == HARD_FAIL)
			return SHIM_VERDICT_VIOLATE;
	return SHIM_VERDICT_UNKNOWN;
}

enum shim_verdict shim_gate_verdict_of_error(int code)
{
	return code == AQE_E_MALFORMED || code == AQE_E_LIMIT ? SHIM_VERDICT_MALFORMED
							      : SHIM_VERDICT_UNKNOWN;
}

int shim_doc_parse(struct shim_doc *d, const struct aqe_buf *text, struct aqe_err *e)
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
		if (rc == 0 || rc == AQE_E_MALFORMED)
			return 0;
		*e = d->shape;
		return rc;
	}
	rc = oci_doc_parse(d->arena, OCI_DOC_CONFIG, aqe_buf_str(text), text->len, &d->root, e);
	if (rc < 0)
		return rc;
	if (!oci_doc_is_config(d->root))
		return aqe_err_at(e, AQE_E_MALFORMED, d->root->line, d->root->col,
				  "neither a runtime-spec document nor one of podman or docker");
	return 0;
}

void shim_gate_info(struct hard_ctx *ctx, const struct shim_info *info, bool podman)
{
	ctx->info_rootless = info && info->rootless && info->podman == podman;
	ctx->info_no_filter = info && info->no_filter && info->podman == podman;
}

static int judge_object(struct hard_ctx ctx, const struct shim_gate *g, enum oci_inspect_kind kind,
			const struct aqe_json *object, struct hard_report *report,
			struct aqe_err *e)
{
	const int rc = oci_inspect_check(kind, object, e);

	if (kind == OCI_INSPECT_NONE || kind == OCI_INSPECT_FOREIGN)
		return aqe_err_at(e, AQE_E_MALFORMED, object->line, object->col,
				  "not what podman or docker write");
	if (rc < 0)
		return rc;
	shim_gate_info(&ctx, g->info, oci_inspect_is_podman(kind));
	return hard_verify_inspect(&ctx, kind, object, report, e);
}

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

int shim_doc_judge(const struct shim_gate *g, const struct shim_doc *d,
		   const struct aqe_json *object, struct shim_judged *j, struct hard_report *report)
{
	struct hard_ctx mine = g->ctx;
	enum oci_inspect_kind kind;

	if (!object) {
		choose_agent(&mine, d->root, report);
		return hard_verify(&mine, d->root, report, &j->error);
	}
	kind = oci_inspect_object(object, NULL);
	j->kind = kind_word(kind);
	j->dialect = oci_inspect_name(kind);
	return judge_object(mine, g, kind, object, report, &j->error);
}

/* ---- one file ---- */

static enum shim_exit fail(const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe-shim: %s\n", e->text);
	return SHIM_EXIT_UNDECIDED;
}

/* `fault`: the whole document could not be judged. */
static enum shim_exit judge_item(const struct shim_gate *g, const char *file,
				 const struct shim_doc *d, const struct aqe_json *object,
				 const struct aqe_err *fault)
{
	struct hard_report report;
	struct shim_judged j = { .file = file,
				 .kind = kind_word(d->kind),
				 .report = &report,
				 .error = *fault,
				 .now_s = g->ctx.now_s };
	struct aqe_err e = AQE_ERR_INIT;
	int rc = (int)fault->code;

	hard_report_init(&report, d->arena);
	if (rc == 0)
		rc = shim_doc_judge(g, d, object, &j, &report);
	if (rc < 0)
		hard_report_init(&report, d->arena); /* nothing half-judged is shown */
	j.verdict = rc < 0 ? shim_gate_verdict_of_error(rc) : shim_gate_verdict(&report);
	if (rc >= 0 && d->shape.code != AQE_OK) {
		j.error = d->shape;
		j.judged = true;
		j.verdict = shim_gate_verdict_of_error(d->shape.code);
	}
	if (shim_out_add(g->out, &j, &e) < 0)
		return fail(&e);
	return shim_verdict_exit(j.verdict);
}

static int read_doc(const char *file, struct shim_doc *d, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(SHIM_DOC_MAX);
	const int rc = shim_input_read(file, &text, e);

	return rc < 0 ? rc : shim_doc_parse(d, &text, e);
}

enum shim_exit shim_gate_file(const struct shim_gate *g, const char *file)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(SHIM_DOC_ARENA_MAX);
	struct shim_doc d = SHIM_DOC_INIT(a);
	struct aqe_err e = AQE_ERR_INIT;
	const struct aqe_json *object;
	int rc, worst = SHIM_EXIT_OK;

	if (!a) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return fail(&e);
	}
	rc = read_doc(file, &d, &e);
	assert((rc < 0) == (e.code != AQE_OK));
	if (rc < 0 || d.kind == OCI_INSPECT_NONE)
		return judge_item(g, file, &d, NULL, &e);
	object = d.root->type == AQE_JSON_ARRAY ? d.root->first : d.root;
	for (; object; object = object->next) {
		const int status = (int)judge_item(g, file, &d, object, &e);

		worst = status > worst ? status : worst;
	}
	return (enum shim_exit)worst;
}
