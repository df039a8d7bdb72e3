/* SPDX-License-Identifier: MIT */
#include "hardening/verify_in.h"

#include <string.h>

#include "shim/core/text.h"

#define DIGEST_NOTE "/annotations/io.aqe.image.digest"
#define ID_NOTE     "/annotations/io.aqe.image.id"

/* ---- digest (R30) ---- */

static bool is_own_digest(const struct hard_verifier *v, const char *digest)
{
	const struct oci_identity *image = v->ctx->image;

	if (v->ctx->entry && aqe_str_eq(v->ctx->entry->digest, digest))
		return true;
	for (size_t i = 0; i < image->n_digests; i++)
		if (aqe_str_eq(image->digests[i], digest))
			return true;
	return false;
}

/* The line of policy that would admit the image. */
static const char *entry_line(const struct hard_verifier *v)
{
	return aqe_arena_fmt(v->r->arena, "an entry {\"imageId\": \"%s\"} in 'images'",
			     v->ctx->image->image_id);
}

/* At a start the engine's store decides; what the annotations say must not contradict it. */
static void check_store_digest(struct hard_verifier *v)
{
	const struct oci_identity *image = v->ctx->image;
	const struct aqe_json *digest = aqe_json_at(v->spec, DIGEST_NOTE);
	const struct aqe_json *id = aqe_json_at(v->spec, ID_NOTE);
	static const char wanted[] = "an image that the policy pins";

	if (!image->known)
		hard_report_fail(v->r, HARD_DIGEST, NULL, "", wanted, "an unknown image: %s",
				 image->why_unknown ? image->why_unknown : "no record of it");
	else if (!v->ctx->entry)
		hard_report_fail(v->r, HARD_DIGEST, NULL, "", entry_line(v),
				 "%s, which no entry pins", image->image_id);
	if (!image->known)
		return;
	if (digest && !is_own_digest(v, aqe_json_str(digest)))
		hard_report_fail(v->r, HARD_DIGEST, digest, NULL, "the image's own digest", "%s",
				 hard_verify_quote(v, aqe_json_str(digest)));
	if (id && !aqe_str_eq(aqe_json_str(id), image->image_id))
		hard_report_fail(v->r, HARD_DIGEST, id, NULL, image->image_id, "%s",
				 hard_verify_quote(v, aqe_json_str(id)));
}

static bool has_digest(const struct hard_policy *policy, const char *digest)
{
	for (size_t i = 0; i < policy->n_images; i++)
		if (aqe_str_eq(policy->images[i].digest, digest))
			return true;
	return false;
}

static bool has_image_id(const struct hard_policy *policy, const char *id)
{
	for (size_t i = 0; i < policy->n_images; i++)
		if (aqe_str_eq(policy->images[i].image_id, id))
			return true;
	return false;
}

/* In the gate: what the caller says, else what the document claims. */
static void check_claimed_digest(struct hard_verifier *v)
{
	const struct hard_policy *policy = v->ctx->policy;
	const struct aqe_json *note = aqe_json_at(v->spec, DIGEST_NOTE);
	const struct aqe_json *id = aqe_json_at(v->spec, ID_NOTE);
	const char *given = v->ctx->image_digest;
	static const char wanted[] = "a digest that the policy pins";

	const bool both = note && id && hard_verify_entry(policy, v->spec, NULL);

	if (given && !has_digest(policy, given) && !has_image_id(policy, given))
		hard_report_fail(v->r, HARD_DIGEST, NULL, "", wanted, "%s",
				 hard_verify_quote(v, given));
	/* the rewrite writes both, and the entry may pin either */
	if (note && !both && !has_digest(policy, aqe_json_str(note)))
		hard_report_fail(v->r, HARD_DIGEST, note, NULL, wanted, "%s",
				 hard_verify_quote(v, aqe_json_str(note)));
	if (id && !both && !has_image_id(policy, aqe_json_str(id)))
		hard_report_fail(v->r, HARD_DIGEST, id, NULL, "an image id that the policy pins",
				 "%s", hard_verify_quote(v, aqe_json_str(id)));
	if (given && note && has_digest(policy, given) && !aqe_str_eq(given, aqe_json_str(note)))
		hard_report_fail(v->r, HARD_DIGEST, note, NULL, given, "%s",
				 hard_verify_quote(v, aqe_json_str(note)));
	if (!given && !note && !id)
		(void)hard_verify_need(v, HARD_DIGEST, DIGEST_NOTE, wanted); /* reports */
}

/* ---- annotations (R29) ---- */

/* Values are the creator's text and stay out of the message. */
static void check_annotation(struct hard_verifier *v, const struct aqe_json *note)
{
	const struct hard_active *active;
	const char *value = aqe_json_str(note);

	if (hard_rule_annotation_allowed(v->ctx->policy, note->key, value))
		return;
	active = hard_rule_active(note->key);
	hard_report_fail(v->r, HARD_ANNOTATIONS, note, NULL, "names that only describe", "%s%s%s",
			 hard_verify_quote(v, note->key), active ? ": " : ", an unknown name",
			 active ? active->why : "");
	if (active && active->also != HARD_ANNOTATIONS)
		hard_report_fail(v->r, active->also, note, NULL, "no such annotation", "%s: %s",
				 hard_verify_quote(v, note->key), active->why);
}

void hard_verify_image(struct hard_verifier *v)
{
	const struct aqe_json *notes = aqe_json_get(v->spec, "annotations");

	if (v->ctx->image)
		check_store_digest(v);
	else
		check_claimed_digest(v);
	for (const struct aqe_json *n = notes ? notes->first : NULL; n; n = n->next)
		check_annotation(v, n);
}
