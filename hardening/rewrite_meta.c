/* SPDX-License-Identifier: MIT */
/* What surrounds the container: version, hooks, annotations. */
#include "hardening/rewrite.h"

#include <ctype.h>

#include "shim/core/text.h"

/* ---- hooks ---- */

/* Docker's hook that configures the network namespace: {"path": "/proc/PID/exe", "args":
 * ["libnetwork-setkey", ...]} (engines.md section 4). The rewritten container has no network to
 * configure. */
static bool is_network_hook(const struct aqe_json *hook)
{
	static const char head[] = "/proc/";
	const char *path = aqe_json_str(aqe_json_get(hook, "path"));
	const char *name = aqe_json_str(aqe_json_item(aqe_json_get(hook, "args"), 0));

	if (!path || !name || !aqe_starts(path, head) || !aqe_str_eq(name, "libnetwork-setkey"))
		return false;
	path += sizeof(head) - 1;
	const char *digits = path;

	while (isdigit((unsigned char)*path))
		path++;
	return path != digits && aqe_str_eq(path, "/exe");
}

/* The hooks of one stage; false when one was refused. */
static bool judge_stage(struct hard_rw *rw, struct aqe_json *stage)
{
	const bool prestart = aqe_str_eq(stage->key, "prestart");

	for (struct aqe_json *h = stage->first, *next; h; h = next) {
		next = h->next;
		if (prestart && is_network_hook(h))
			aqe_json_detach(h);
		else
			hard_rw_refuse(rw, HARD_HOOKS, h, NULL, "a %s hook, '%s'", stage->key,
				       hard_rw_quote(rw, aqe_json_str(aqe_json_get(h, "path"))));
	}
	return stage->len == 0;
}

static void judge_hooks(struct hard_rw *rw)
{
	struct aqe_json *hooks = aqe_json_get(rw->doc, "hooks");
	bool empty = true;

	for (struct aqe_json *stage = hooks ? hooks->first : NULL; stage; stage = stage->next)
		empty = judge_stage(rw, stage) && empty;
	if (hooks && empty)
		aqe_json_remove(rw->doc, "hooks");
}

/* ---- annotations ---- */

static void judge_annotation(struct hard_rw *rw, struct aqe_json *a)
{
	const char *value = aqe_json_str(a);

	if (!value || hard_rule_annotation_allowed(NULL, a->key, value))
		return;
	const struct hard_active *row = hard_rule_active(a->key);

	/* the filter that podman was asked for does not matter: ours replaces it */
	if (!row || row->engine_default || aqe_str_eq(a->key, "io.podman.annotations.seccomp")) {
		aqe_json_detach(a);
		return;
	}
	hard_rw_refuse(rw, HARD_ANNOTATIONS, a, NULL, "'%s': %s", hard_rw_quote(rw, a->key),
		       row->why);
	if (row->also != HARD_ANNOTATIONS)
		hard_rw_refuse(rw, row->also, a, NULL, "annotation '%s': %s",
			       hard_rw_quote(rw, a->key), row->why);
}

/* The digest that the policy pins, if the engine's store proved it, else the store's first. */
static const char *proved_digest(const struct hard_rw *rw, const struct oci_identity *image)
{
	for (size_t i = 0; rw->entry && i < image->n_digests; i++)
		if (aqe_str_eq(image->digests[i], rw->entry->digest))
			return image->digests[i];
	return image->n_digests ? image->digests[0] : NULL;
}

/* At a start our own names say only what we know; what the engine's user or the image wrote there
 * goes. */
static void write_proved(struct hard_rw *rw, struct aqe_json *list)
{
	const struct oci_identity *image = rw->ctx->image;
	const char *digest = image->known ? proved_digest(rw, image) : NULL;

	aqe_json_remove(list, "io.aqe.image.digest");
	aqe_json_remove(list, "io.aqe.image.id");
	aqe_json_remove(list, "io.aqe.agent-type");
	if (digest)
		hard_rw_set_str(rw, list, "io.aqe.image.digest", digest);
	if (image->known)
		hard_rw_set_str(rw, list, "io.aqe.image.id", image->image_id);
	/* an id is only a name for the agent's own records: the label serves where the engine has
	 * no annotations */
	if (image->label_agent_id && !aqe_json_get(list, "io.aqe.agent-id"))
		hard_rw_set_str(rw, list, "io.aqe.agent-id", image->label_agent_id);
}

/* In the gate a document keeps its claim, and gets the caller's where it has none. */
static void write_claimed(struct hard_rw *rw, struct aqe_json *list)
{
	const char *digest = rw->ctx->image_digest;
	const bool is_id = rw->entry && aqe_str_eq(rw->entry->image_id, digest);
	const char *name = is_id ? "io.aqe.image.id" : "io.aqe.image.digest";

	if (digest && !aqe_json_get(list, name))
		hard_rw_set_str(rw, list, name, digest);
}

static void write_own(struct hard_rw *rw, struct aqe_json *list)
{
	if (rw->ctx->image)
		write_proved(rw, list);
	else
		write_claimed(rw, list);
	if (rw->ctx->agent != hard_agent_profile())
		hard_rw_set_str(rw, list, "io.aqe.agent-type", rw->ctx->agent->type);
}

static void judge_annotations(struct hard_rw *rw)
{
	struct aqe_json *list = aqe_json_get(rw->doc, "annotations");

	for (struct aqe_json *a = list ? list->first : NULL, *next; a; a = next) {
		next = a->next;
		judge_annotation(rw, a);
	}
	list = hard_rw_object(rw, rw->doc, "annotations");
	if (list)
		write_own(rw, list);
	if (list && list->len == 0)
		aqe_json_remove(rw->doc, "annotations");
}

void hard_rw_meta(struct hard_rw *rw)
{
	const struct aqe_json *version = aqe_json_get(rw->doc, "ociVersion");

	/* an unknown one may stand for rules we do not know: left for verify to refuse */
	if (aqe_json_str(version) && oci_version_known(aqe_json_str(version)))
		hard_rw_set_str(rw, rw->doc, "ociVersion", OCI_VERSION_OUT);
	judge_hooks(rw);
	judge_annotations(rw);
}
