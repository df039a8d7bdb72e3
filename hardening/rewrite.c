/* SPDX-License-Identifier: MIT */
/* The rewrite's order of work. */
#include "hardening/rewrite.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"

/* ---- the container's id ---- */

/* The id in ".../<driver>-containers/ID/userdata/..." or ".../containers/ID/...", or NULL. */
static const char *id_in_source(const char *source)
{
	static const char mark[] = "containers/";
	const char *id = strstr(source, mark);

	for (; id; id = strstr(id, mark)) {
		id += sizeof(mark) - 1;
		if (strspn(id, "0123456789abcdef") == HARD_ID_HEX && id[HARD_ID_HEX] == '/')
			return id;
	}
	return NULL;
}

/* Gate only: a rootless podman's document has no cgroup path, but the engine's files name the
 * container. Two names, or none: unknown. */
static bool id_from_mounts(struct hard_rw *rw)
{
	const struct aqe_json *mounts = aqe_json_get(rw->doc, "mounts");
	const char *found = NULL;

	for (const struct aqe_json *m = mounts ? mounts->first : NULL; m; m = m->next) {
		const char *destination = aqe_json_str(aqe_json_get(m, "destination"));
		const char *source = aqe_json_str(aqe_json_get(m, "source"));
		const char *id = source ? id_in_source(source) : NULL;

		if (!id || !destination || !hard_rule_engine_file(destination))
			continue;
		if (found && memcmp(found, id, HARD_ID_HEX) != 0)
			return false;
		found = id;
	}
	if (!found)
		return false;
	memcpy(rw->id_buf, found, HARD_ID_HEX);
	rw->id_buf[HARD_ID_HEX] = '\0';
	return true;
}

/* A document that names no container gets a name of its own, made of its content, so that two of
 * them never share a cgroup. */
static void id_from_content(struct hard_rw *rw)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(16U << 20);
	char digest[AQE_DIGEST_TEXT];

	if (aqe_json_emit(rw->doc, AQE_JSON_COMPACT, &text, NULL) != 0) {
		rw->nomem = true;
		return;
	}
	aqe_sha256_text(aqe_buf_str(&text), text.len, digest);
	memcpy(rw->id_buf, digest + strlen("sha256:"), HARD_ID_HEX + 1);
	/* engines name the host after the id's first 12 digits, and verify compares them */
	const char *hostname = aqe_json_str(aqe_json_get(rw->doc, "hostname"));
	const size_t short_id = 12;

	if (hostname && aqe_is_hex(hostname, short_id))
		memcpy(rw->id_buf, hostname, short_id);
}

static void find_id(struct hard_rw *rw)
{
	rw->id = hard_rule_container_id(rw->ctx, rw->doc, rw->id_buf);
	if (rw->id || rw->ctx->image || aqe_json_at(rw->doc, "/linux/cgroupsPath"))
		return;
	if (!id_from_mounts(rw))
		id_from_content(rw);
	rw->id = rw->id_buf;
}

/* ---- the driver ---- */

int hard_rw_init(struct hard_rw *rw, const struct hard_ctx *ctx, struct aqe_arena *arena,
		 struct aqe_json *doc, struct hard_report *report, struct aqe_err *e)
{
	*rw = (struct hard_rw){ .ctx = ctx, .arena = arena, .report = report, .doc = doc };
	if (!doc)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a copy of the document");
	rw->entry = ctx->entry || ctx->image
			    ? ctx->entry
			    : hard_verify_entry(ctx->policy, doc, ctx->image_digest);
	rw->no_cgroup = ctx->host && ctx->host->in_userns && !ctx->host->cgroup_limits;
	return 0;
}

int hard_rw_done(const struct hard_rw *rw, struct aqe_err *e)
{
	if (rw->nomem || rw->report->nomem)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the rewritten document");
	return 0;
}

/* The sections without which there is nothing to harden. Mounts are ours to write. */
static bool has_sections(struct hard_rw *rw)
{
	static const char *const needed[] = { "process", "root", "linux", NULL };
	bool all = true;

	for (size_t i = 0; needed[i]; i++) {
		const struct aqe_json *v = aqe_json_get(rw->doc, needed[i]);

		if (v && v->type == AQE_JSON_OBJECT)
			continue;
		hard_report_fail(rw->report, HARD_MISSING_FIELD, rw->doc,
				 hard_rw_fmt(rw, "/%s", needed[i]), "a section of this name",
				 "absent");
		all = false;
	}
	return all;
}

static void run_steps(struct hard_rw *rw)
{
	struct aqe_json *user = aqe_json_at(rw->doc, "/process/user");

	/* a name that only Windows reads */
	aqe_json_remove(user, "username");
	hard_rw_schema(rw, OCI_DOC_CONFIG);
	if (!has_sections(rw))
		return;
	rw->process = aqe_json_get(rw->doc, "process");
	rw->lin = aqe_json_get(rw->doc, "linux");
	find_id(rw);
	hard_rw_process(rw);
	hard_rw_root(rw);
	hard_rw_linux(rw);
	hard_rw_mounts(rw);
	hard_rw_meta(rw);
}

void hard_rw_adopt(struct hard_rw *rw, const struct hard_finding *f, const char *pointer)
{
	const struct aqe_json *at = aqe_json_at(rw->doc, pointer);

	if (f->unknown)
		hard_report_unknown(rw->report, f->prop, pointer, f->wanted, "%s", f->found);
	else
		hard_report_fail(rw->report, f->prop, at, at ? NULL : pointer, f->wanted, "%s",
				 f->found);
}

/* What is still off the profile was neither an engine's default nor judged by a step: the id
 * mappings, labels, the image. Verify names it. */
static int refuse_rest(struct hard_rw *rw, bool refused, struct aqe_err *e)
{
	struct hard_report rest;

	hard_report_init(&rest, rw->arena);
	int rc = hard_verify(rw->ctx, rw->doc, &rest, e);
	if (rc)
		return rc;
	for (const struct hard_finding *f = rest.first; f; f = f->next) {
		if (rest.result[f->prop] == HARD_WAIVED || rest.result[f->prop] == HARD_PASS)
			continue;
		/* beside refusals only the image matters: the rest would repeat them */
		if (!refused || f->prop == HARD_DIGEST)
			hard_rw_adopt(rw, f, f->pointer);
	}
	/* what verify neither passed nor gave a reason for is no pass either */
	for (unsigned i = 0; !refused && i < HARD_PROP_COUNT; i++)
		if ((rest.result[i] == HARD_UNKNOWN || rest.result[i] == HARD_FAIL) &&
		    rw->report->result[i] == HARD_PASS)
			hard_report_fail(rw->report, (enum hard_prop)i, rw->doc, NULL, NULL,
					 "not decided");
	return 0;
}

int hard_rewrite_own(const struct hard_ctx *ctx, struct aqe_arena *arena, struct aqe_json *spec,
		     struct hard_report *report, struct aqe_json **ret, struct aqe_err *e)
{
	struct hard_rw rw;

	int rc = hard_rw_init(&rw, ctx, arena, spec, report, e);
	if (rc)
		return rc;
	run_steps(&rw);
	rc = hard_rw_done(&rw, e);
	if (rc)
		return rc;
	rc = refuse_rest(&rw, !hard_rw_settle(&rw), e);
	if (rc)
		return rc;
	rc = hard_rw_done(&rw, e);
	if (rc)
		return rc;
	if (hard_rw_settle(&rw))
		*ret = rw.doc;
	return 0;
}

int hard_rewrite(const struct hard_ctx *ctx, struct aqe_arena *arena, const struct aqe_json *spec,
		 struct hard_report *report, struct aqe_json **ret, struct aqe_err *e)
{
	return hard_rewrite_own(ctx, arena, aqe_json_copy(arena, spec), report, ret, e);
}
