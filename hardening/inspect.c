/* SPDX-License-Identifier: MIT */
#include "hardening/inspect.h"

#include <string.h>

#include "hardening/inspect_in.h"
#include "shim/core/text.h"

/* ---- shared ---- */

const struct aqe_json *hard_inspect_need(struct hard_inspector *i, enum hard_prop prop,
					 const char *pointer, const char *wanted)
{
	return hard_verify_need(&i->v, prop, pointer, wanted);
}

const struct aqe_json *hard_inspect_get(const struct hard_inspector *i, const char *pointer)
{
	const struct aqe_json *v = aqe_json_at(i->v.spec, pointer);

	return v && v->type != AQE_JSON_NULL ? v : NULL;
}

static bool is_empty(const struct aqe_json *v)
{
	switch (v->type) {
	case AQE_JSON_NULL:
		return true;
	case AQE_JSON_BOOL:
		return !v->boolean;
	case AQE_JSON_NUMBER:
		return aqe_str_eq(v->text, "0");
	case AQE_JSON_STRING:
	case AQE_JSON_ARRAY:
	case AQE_JSON_OBJECT:
		return v->len == 0;
	}
	return false;
}

void hard_inspect_empty(struct hard_inspector *i, enum hard_prop prop, const char *pointer,
			const char *wanted)
{
	const struct aqe_json *v = hard_inspect_get(i, pointer);

	if (!v || is_empty(v))
		return;
	if (v->type == AQE_JSON_STRING)
		hard_report_fail(i->v.r, prop, v, NULL, wanted, "%s",
				 hard_verify_quote(&i->v, v->text));
	else if (v->type == AQE_JSON_ARRAY || v->type == AQE_JSON_OBJECT)
		hard_report_fail(i->v.r, prop, v, NULL, wanted, "%zu", v->len);
	else
		hard_report_fail(i->v.r, prop, v, NULL, wanted, "%s",
				 v->type == AQE_JSON_NUMBER ? v->text : "true");
}

void hard_inspect_split(struct hard_inspector *i, const char *text,
			void (*fn)(struct hard_inspector *i, const char *word, void *arg),
			void *arg)
{
	while (*text) {
		const size_t n = strcspn(text, ",");
		const char *word = aqe_arena_ndup(i->v.r->arena, text, n);

		if (!word) {
			i->v.r->nomem = true;
			return;
		}
		fn(i, word, arg);
		text += n + (text[n] == ',');
	}
}

bool hard_inspect_pinned(const struct hard_inspector *i, const char *digest)
{
	for (size_t k = 0; digest && k < i->ctx.policy->n_images; k++)
		if (aqe_str_eq(i->ctx.policy->images[k].digest, digest))
			return true;
	return false;
}

bool hard_inspect_pinned_id(const struct hard_inspector *i, const char *id)
{
	for (size_t k = 0; id && k < i->ctx.policy->n_images; k++)
		if (aqe_str_eq(i->ctx.policy->images[k].image_id, id))
			return true;
	return false;
}

/* ---- subjects ---- */

/* What a kind of document leaves to the engine's word. */
static const char not_shown[] = "the document does not show it";
static const char by_flag[] = "the document shows what was asked for, not what runs";
static const char engine_filter[] =
	"the engine's default filter, or the named one: the document has "
	"no filter";

struct declared {
	enum hard_prop prop;
	const char *why;
};

/* hardening.md section 9: inspect alone cannot prove masked paths, filters and device rules */
static const struct declared podman_declares[] = {
	{ HARD_SECCOMP, engine_filter }, { HARD_MASKED_PATHS, not_shown },
	{ HARD_SYSCTL, not_shown },      { HARD_HOOKS, not_shown },
	{ HARD_DEVICES, by_flag },       { HARD_PIDS_LIMIT, by_flag },
	{ HARD_MEMORY_LIMIT, by_flag },  { HARD_CPU_LIMIT, by_flag },
};
static const struct declared docker_declares[] = {
	{ HARD_SECCOMP, engine_filter },
	{ HARD_HOOKS, not_shown },
	{ HARD_DEVICES, by_flag },
	{ HARD_PIDS_LIMIT, by_flag },
	{ HARD_MEMORY_LIMIT, by_flag },
	{ HARD_CPU_LIMIT, by_flag },
	{ HARD_MASKED_PATHS, by_flag },
	{ HARD_NO_NEW_PRIVILEGES, by_flag },
	{ HARD_ROOTLESS, "the engine's info document says so" },
};

typedef void subject_fn(struct hard_inspector *i);

static subject_fn *const container_subjects[] = {
	hard_inspect_image_id, hard_inspect_process,   hard_inspect_options,
	hard_inspect_command,  hard_inspect_mounts,    hard_inspect_tmpfs,
	hard_inspect_limits,   hard_inspect_isolation, NULL,
};
static subject_fn *const image_subjects[] = { hard_inspect_image, NULL };
static subject_fn *const info_subjects[] = { hard_inspect_info, NULL };

#define PROP(p) (1U << (p))
#define SHOWN_BY_IMAGE                                                                          \
	(PROP(HARD_DIGEST) | PROP(HARD_USER) | PROP(HARD_MOUNTS) | PROP(HARD_READONLY_ROOTFS) | \
	 PROP(HARD_ANNOTATIONS) | PROP(HARD_HOOKS) | PROP(HARD_DEVICES) |                       \
	 PROP(HARD_UNKNOWN_FIELD) | PROP(HARD_MISSING_FIELD))
#define SHOWN_BY_INFO (PROP(HARD_ROOTLESS) | PROP(HARD_SECCOMP) | PROP(HARD_MISSING_FIELD))

static const struct {
	subject_fn *const *subjects;
	const struct declared *declares;
	size_t n_declares;
	unsigned shown; /* bits of properties the document is about; 0: all */
} kinds[] = {
	[OCI_INSPECT_PODMAN_CONTAINER] = { container_subjects, podman_declares,
					   AQE_COUNT(podman_declares), 0 },
	[OCI_INSPECT_DOCKER_CONTAINER] = { container_subjects, docker_declares,
					   AQE_COUNT(docker_declares), 0 },
	[OCI_INSPECT_PODMAN_IMAGE] = { image_subjects, NULL, 0, SHOWN_BY_IMAGE },
	[OCI_INSPECT_DOCKER_IMAGE] = { image_subjects, NULL, 0, SHOWN_BY_IMAGE },
	[OCI_INSPECT_PODMAN_INFO] = { info_subjects, NULL, 0, SHOWN_BY_INFO },
	[OCI_INSPECT_DOCKER_INFO] = { info_subjects, NULL, 0, SHOWN_BY_INFO },
};

/* Every subject has run: what was not reported holds, as far as the document goes. */
static void conclude(struct hard_inspector *i)
{
	const unsigned shown = kinds[i->kind].shown;
	struct hard_report *r = i->v.r;

	for (unsigned p = 0; p < HARD_PROP_COUNT; p++) {
		if (shown && !(shown & PROP(p)))
			r->declared[p] = not_shown;
		hard_report_pass(r, (enum hard_prop)p);
	}
	for (size_t k = 0; k < kinds[i->kind].n_declares; k++)
		r->declared[kinds[i->kind].declares[k].prop] = kinds[i->kind].declares[k].why;
}

static int report_issue(void *arg, const struct oci_issue *issue)
{
	struct hard_inspector *i = arg;
	const char *name = hard_verify_quote(&i->v, issue->at->key);
	const char *wanted = aqe_arena_fmt(i->v.r->arena, "members of %s that are known",
					   oci_inspect_name(i->kind));

	if (issue->near)
		hard_report_fail(i->v.r, HARD_UNKNOWN_FIELD, issue->at, NULL, wanted,
				 "%s, which the engine spells '%s'", name, issue->near);
	else
		hard_report_fail(i->v.r, HARD_UNKNOWN_FIELD, issue->at, NULL, wanted, "%s", name);
	return 0;
}

/* ---- whose ceilings ---- */

/* podman's id of an image is the bare hex of its config's digest. */
static const char *full_id(const struct hard_inspector *i, const char *id)
{
	const char *full = id && i->podman ? aqe_arena_fmt(i->v.r->arena, "sha256:%s", id) : id;

	return full && aqe_is_sha256_digest(full) ? full : NULL;
}

const struct hard_image *hard_inspect_entry(const struct hard_inspector *i)
{
	static const char *const digests[] = { "/ImageDigest", "/Digest",
					       "/ImageManifestDescriptor/digest",
					       "/Descriptor/digest", NULL };
	const char *digest = NULL, *id = aqe_json_str(hard_inspect_get(i, "/Image"));
	const struct hard_image *entry;

	for (size_t k = 0; digests[k] && !digest; k++)
		digest = aqe_json_str(hard_inspect_get(i, digests[k]));
	if (!id)
		id = aqe_json_str(hard_inspect_get(i, "/Id"));
	id = full_id(i, id);
	if (!digest)
		return id ? hard_policy_image(i->ctx.policy, id, NULL, 0) : NULL;
	if (!aqe_is_sha256_digest(digest))
		return NULL;
	/* docker has a descriptor only where its id is that of a manifest or an index */
	entry = i->podman && id ? hard_policy_image(i->ctx.policy, id, &digest, 1) : NULL;
	return entry ? entry : hard_policy_image(i->ctx.policy, NULL, &digest, 1);
}

static const char *env_marker(const struct aqe_json *env)
{
	static const char *const names[] = { "AQE_AGENT_TYPE=", "AGENT_TYPE=" };

	for (size_t k = 0; k < AQE_COUNT(names); k++)
		for (const struct aqe_json *e = env ? env->first : NULL; e; e = e->next)
			if (aqe_starts(aqe_json_str(e), names[k]) &&
			    aqe_json_str(e)[strlen(names[k])])
				return aqe_json_str(e) + strlen(names[k]);
	return NULL;
}

/* As hard_agent_marker() reads a spec: annotation, environment, label. */
static const char *find_marker(const struct hard_inspector *i)
{
	static const char name[] = "io.aqe.agent-type";
	const char *s =
		aqe_json_str(aqe_json_get(hard_inspect_get(i, "/Config/Annotations"), name));

	if (!s || !*s)
		s = aqe_json_str(
			aqe_json_get(hard_inspect_get(i, "/HostConfig/Annotations"), name));
	if (!s || !*s)
		s = env_marker(hard_inspect_get(i, "/Config/Env"));
	if (!s || !*s)
		s = aqe_json_str(aqe_json_get(hard_inspect_get(i, "/Config/Labels"), name));
	return s && *s ? s : NULL;
}

static void choose_agent(struct hard_inspector *i)
{
	const char *marker = find_marker(i);
	struct aqe_err e = AQE_ERR_INIT;

	i->ctx.agent = hard_agent_profile();
	if (!i->v.entry || (!marker && i->v.entry->n_types == 0))
		return;
	if (hard_agent_choose(i->ctx.policy, i->v.entry, marker, &i->ctx.agent, &e) < 0)
		hard_report_fail(i->v.r, HARD_DIGEST, i->v.spec, NULL,
				 "an agent type that the image may run as", "%s", e.text);
}

int hard_verify_inspect(const struct hard_ctx *ctx, enum oci_inspect_kind kind,
			const struct aqe_json *object, struct hard_report *report,
			struct aqe_err *e)
{
	struct hard_inspector i = { .v = { .spec = object, .r = report },
				    .ctx = *ctx,
				    .kind = kind,
				    .podman = oci_inspect_is_podman(kind) };

	if ((size_t)kind >= AQE_COUNT(kinds) || !kinds[kind].subjects)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "%s is not judged", oci_inspect_name(kind));
	i.v.ctx = &i.ctx;
	i.v.entry = hard_inspect_entry(&i);
	choose_agent(&i);
	if (oci_inspect_issues(kind, object, report_issue, &i) != 0)
		hard_report_fail(report, HARD_UNKNOWN_FIELD, object, NULL, "a readable document",
				 "members that could not be listed");
	for (subject_fn *const *judge = kinds[kind].subjects; *judge; judge++)
		(*judge)(&i);
	conclude(&i);
	if (report->nomem)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the findings");
	hard_report_waive(report, ctx->policy, i.ctx.agent->type, i.v.entry, ctx->now_s);
	return 0;
}
