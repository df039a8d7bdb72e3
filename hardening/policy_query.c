/* SPDX-License-Identifier: MIT */
/* Questions to a loaded policy. */
#include <string.h>

#include "hardening/policy.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define MARKER_ANNOTATION "io.aqe.agent-type"
#define TYPES_SHOWN       200 /* bytes of a list of types in a message */
#define CLOCK_SLACK_S     86400

/* ---- images ---- */

static bool has_digest(const char *digest, const char *const *digests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (aqe_str_eq(digest, digests[i]))
			return true;
	}
	return false;
}

/* What the entry says and the engine can tell must agree, and something must. */
static bool image_matches(const struct hard_image *img, const char *image_id,
			  const char *const *digests, size_t n_digests)
{
	const bool by_id = img->image_id && image_id;
	const bool by_digest = img->digest && n_digests;

	if (by_id && strcmp(img->image_id, image_id) != 0)
		return false;
	if (by_digest && !has_digest(img->digest, digests, n_digests))
		return false;
	return by_id || by_digest;
}

/* The identity is mentioned at all, in agreement or not. */
static bool image_touches(const struct hard_image *img, const char *image_id,
			  const char *const *digests, size_t n_digests)
{
	return (image_id && aqe_str_eq(img->image_id, image_id)) ||
	       (img->digest && has_digest(img->digest, digests, n_digests));
}

const struct hard_image *hard_policy_image(const struct hard_policy *p, const char *image_id,
					   const char *const *digests, size_t n_digests)
{
	const struct hard_image *found = NULL;

	for (size_t i = 0; i < p->n_images; i++) {
		const struct hard_image *img = &p->images[i];

		if (!image_touches(img, image_id, digests, n_digests))
			continue;
		/* A second entry, or one that contradicts: which one rules is not decidable. */
		if (found || !image_matches(img, image_id, digests, n_digests))
			return NULL;
		found = img;
	}
	return found;
}

/* ---- agent types ---- */

const struct hard_agent *hard_policy_agent(const struct hard_policy *p, const char *type)
{
	for (size_t i = 0; i < p->n_agents; i++) {
		if (aqe_str_eq(p->agents[i].type, type))
			return &p->agents[i];
	}
	return NULL;
}

static bool image_allows(const struct hard_image *img, const char *type)
{
	if (!img || !img->n_types)
		return strcmp(type, hard_agent_default()->type) == 0;
	for (size_t i = 0; i < img->n_types; i++) {
		if (strcmp(img->types[i], type) == 0)
			return true;
	}
	return false;
}

/* The type of a container without a marker; NULL when the policy does not say. */
static const char *unmarked_type(const struct hard_policy *p, const struct hard_image *img)
{
	const char *def = hard_agent_default()->type;

	if (!img || !img->n_types)
		return def;
	if (img->n_types == 1)
		return img->types[0];
	return !p->unmarked_refuse && image_allows(img, def) ? def : NULL;
}

/* ": policy.json:4 allows a, b for image 'x'" */
static void add_allowed(struct aqe_buf *b, const struct hard_image *img)
{
	if (!img) {
		(void)aqe_buf_puts(b, "the policy pins no such image, so only default is allowed");
		return;
	}
	(void)aqe_buf_addf(b, "%s:%u allows ", img->where.file, img->where.line);
	if (!img->n_types)
		(void)aqe_buf_puts(b, hard_agent_default()->type);
	for (size_t i = 0; i < img->n_types; i++)
		(void)aqe_buf_addf(b, "%s%s", i ? ", " : "", img->types[i]);
	if (!img->name)
		return;
	(void)aqe_buf_puts(b, " for image '");
	aqe_buf_quote(b, img->name, TYPES_SHOWN);
	(void)aqe_buf_putc(b, '\'');
}

int hard_agent_choose(const struct hard_policy *p, const struct hard_image *image,
		      const char *asked, const struct hard_agent **ret, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)4 * AQE_ERR_TEXT_MAX);
	const struct hard_agent *row;
	const char *type = asked;

	if (!asked)
		type = unmarked_type(p, image);
	else if (!hard_policy_agent(p, asked))
		type = hard_agent_default()->type;
	row = type ? hard_policy_agent(p, type) : NULL;
	if (row && image_allows(image, type)) {
		*ret = row;
		return AQE_OK;
	}
	add_allowed(&b, image);
	if (!type)
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "no agent type is named (annotation " MARKER_ANNOTATION
				   " or AQE_AGENT_TYPE): %s",
				   aqe_buf_str(&b));
	return aqe_err_set(e, AQE_E_REFUSED, 0, "agent type '%s'%s is not allowed: %s", type,
			   asked && strcmp(asked, type) != 0 ? " (what was asked for is unknown)"
							     : "",
			   aqe_buf_str(&b));
}

/* The value of `name` in a list of "NAME=value"; empty counts as absent. */
static const char *env_value(const struct aqe_json *env, const char *name)
{
	const size_t n = strlen(name);

	for (const struct aqe_json *v = env ? env->first : NULL; v; v = v->next) {
		const char *s = aqe_json_str(v);

		if (s && strncmp(s, name, n) == 0 && s[n] == '=' && s[n + 1])
			return s + n + 1;
	}
	return NULL;
}

const char *hard_agent_marker(const struct aqe_json *spec, const char *label)
{
	static const char *const variables[] = { "AQE_AGENT_TYPE", "AGENT_TYPE" };
	const struct aqe_json *env = aqe_json_get(aqe_json_get(spec, "process"), "env");
	const char *s =
		aqe_json_str(aqe_json_get(aqe_json_get(spec, "annotations"), MARKER_ANNOTATION));

	if (s && !*s)
		s = NULL;
	for (size_t i = 0; !s && i < AQE_COUNT(variables); i++)
		s = env_value(env, variables[i]);
	return s ? s : label && *label ? label : NULL;
}

/* ---- waivers ---- */

static bool waiver_image(const struct hard_waiver *w, const struct hard_image *img)
{
	return img && (aqe_str_eq(w->image, img->name) || aqe_str_eq(w->image, img->digest) ||
		       aqe_str_eq(w->image, img->image_id));
}

/* The gate judges a document without a type by the profile's own ceilings; at a start the same
 * container is a "default". */
static bool waiver_type(const struct hard_waiver *w, const char *type)
{
	if (aqe_str_eq(type, hard_agent_profile()->type))
		type = hard_agent_default()->type;
	return aqe_str_eq(w->agent_type, type);
}

bool hard_waiver_applies(const struct hard_waiver *w, const char *agent_type,
			 const struct hard_image *image)
{
	if (w->agent_type && !waiver_type(w, agent_type))
		return false;
	return !w->image || waiver_image(w, image);
}

bool hard_policy_clock_ok(const struct hard_policy *p, int64_t now_s)
{
	return now_s >= p->changed_s - CLOCK_SLACK_S;
}

const struct hard_waiver *hard_policy_waiver(const struct hard_policy *p, enum hard_prop prop,
					     const char *agent_type, const struct hard_image *image,
					     int64_t now_s)
{
	if (!hard_policy_clock_ok(p, now_s))
		return NULL;
	for (size_t i = 0; i < p->n_waivers; i++) {
		const struct hard_waiver *w = &p->waivers[i];

		if (w->prop != prop || now_s >= w->expires)
			continue;
		if (hard_waiver_applies(w, agent_type, image))
			return w;
	}
	return NULL;
}
