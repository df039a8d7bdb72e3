/* SPDX-License-Identifier: MIT */
#include "hardening/verify.h"

#include <string.h>

#include "hardening/caps.h"
#include "hardening/verify_in.h"
#include "oci/doc.h"
#include "shim/core/text.h"

#define QUOTE_MAX 120 /* bytes of foreign text in one message */

const char *hard_verify_quote(struct hard_verifier *v, const char *s)
{
	struct aqe_buf b = AQE_BUF_INIT((size_t)8 * QUOTE_MAX);
	const char *copy;

	aqe_buf_quote(&b, s, QUOTE_MAX);
	copy = aqe_arena_fmt(v->r->arena, "'%s'", aqe_buf_str(&b));
	aqe_buf_done(&b);
	return copy ? copy : "(out of memory)";
}

/* The nearest ancestor of `pointer` that exists; *ret_rest gets what is missing below it. */
static const struct aqe_json *nearest(const struct aqe_json *root, const char *pointer,
				      const char **ret_rest)
{
	const struct aqe_json *at = root;
	const char *rest = pointer;

	while (*rest == '/') {
		char name[64];
		const size_t n = strcspn(rest + 1, "/");
		const struct aqe_json *child;

		if (n >= sizeof(name))
			break;
		memcpy(name, rest + 1, n);
		name[n] = '\0';
		child = aqe_json_get(at, name);
		if (!child)
			break;
		at = child;
		rest += 1 + n;
	}
	*ret_rest = rest;
	return at;
}

const struct aqe_json *hard_verify_need(struct hard_verifier *v, enum hard_prop prop,
					const char *pointer, const char *wanted)
{
	const char *rest;
	const struct aqe_json *at = nearest(v->spec, pointer, &rest);

	if (*rest == '\0')
		return at;
	hard_report_fail(v->r, prop, at, rest, wanted, "absent");
	if (prop != HARD_MISSING_FIELD)
		hard_report_fail(v->r, HARD_MISSING_FIELD, at, rest, wanted, "absent");
	return NULL;
}

const struct aqe_json *hard_verify_member(struct hard_verifier *v, enum hard_prop prop,
					  const struct aqe_json *at, const char *name,
					  const char *wanted)
{
	const struct aqe_json *value = aqe_json_get(at, name);
	const char *pointer;

	if (value)
		return value;
	pointer = aqe_arena_fmt(v->r->arena, "/%s", name);
	hard_report_fail(v->r, prop, at, pointer, wanted, "absent");
	if (prop != HARD_MISSING_FIELD)
		hard_report_fail(v->r, HARD_MISSING_FIELD, at, pointer, wanted, "absent");
	return NULL;
}

/* Every subject, and the properties it decides together with the others: they count as passed only
 * here, after all subjects ran. A property that no row names stays unknown and refuses (R11). */
static const struct {
	void (*judge)(struct hard_verifier *v);
	enum hard_prop decides[8];
	size_t n;
} subjects[] = {
	{ hard_verify_document,
	  { HARD_UNKNOWN_FIELD, HARD_MISSING_FIELD, HARD_HOOKS, HARD_PRIVILEGED },
	  4 },
	{ hard_verify_image, { HARD_DIGEST, HARD_ANNOTATIONS }, 2 },
	{ hard_verify_process,
	  { HARD_CAPABILITIES, HARD_NO_NEW_PRIVILEGES, HARD_RLIMITS, HARD_LSM },
	  4 },
	{ hard_verify_ids, { HARD_ROOTLESS, HARD_USER }, 2 },
	{ hard_verify_mounts,
	  { HARD_MOUNTS, HARD_TMPFS, HARD_PROPAGATION, HARD_ENGINE_SOCKET, HARD_READONLY_ROOTFS },
	  5 },
	{ hard_verify_linux,
	  { HARD_NAMESPACES, HARD_NETWORK, HARD_MASKED_PATHS, HARD_SYSCTL, HARD_SECCOMP },
	  5 },
	{ hard_verify_resources,
	  { HARD_PIDS_LIMIT, HARD_MEMORY_LIMIT, HARD_CPU_LIMIT, HARD_DEVICES },
	  4 },
};

/* The annotation, if it is a digest. */
static const char *note_digest(const struct aqe_json *spec, const char *pointer)
{
	const char *s = aqe_json_str(aqe_json_at(spec, pointer));

	return s && aqe_is_sha256_digest(s) ? s : NULL;
}

const struct hard_image *hard_verify_entry(const struct hard_policy *policy,
					   const struct aqe_json *spec, const char *image_digest)
{
	const char *digest = note_digest(spec, "/annotations/io.aqe.image.digest");
	const char *id = note_digest(spec, "/annotations/io.aqe.image.id");
	const struct hard_image *entry;

	if (image_digest) { /* either kind */
		entry = hard_policy_image(policy, NULL, &image_digest, 1);
		return entry ? entry : hard_policy_image(policy, image_digest, NULL, 0);
	}
	/* an entry may pin either; what it pins and the document claims agrees */
	return hard_policy_image(policy, id, &digest, digest ? 1 : 0);
}

int hard_verify(const struct hard_ctx *ctx, const struct aqe_json *spec, struct hard_report *report,
		struct aqe_err *e)
{
	struct hard_verifier v = { .ctx = ctx, .spec = spec, .r = report };

	v.id = hard_rule_container_id(ctx, spec, v.id_buf);
	v.entry = ctx->entry || ctx->image
			  ? ctx->entry
			  : hard_verify_entry(ctx->policy, spec, ctx->image_digest);
	v.no_cgroup =
		ctx->no_cgroup || (ctx->host && ctx->host->in_userns && !ctx->host->cgroup_limits);
	for (size_t i = 0; i < AQE_COUNT(subjects); i++)
		subjects[i].judge(&v);
	for (size_t i = 0; i < AQE_COUNT(subjects); i++)
		for (size_t k = 0; k < subjects[i].n; k++)
			hard_report_pass(report, subjects[i].decides[k]);
	if (report->nomem)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the findings");
	hard_report_waive(report, ctx->policy, ctx->agent->type, v.entry, ctx->now_s);
	return 0;
}

/* ---- the document as a whole ---- */

static int report_issue(void *arg, const struct oci_issue *issue)
{
	struct hard_verifier *v = arg;
	const char *name = issue->at->key ? hard_verify_quote(v, issue->at->key) : "a member";

	switch (issue->kind) {
	case OCI_ISSUE_UNKNOWN:
		hard_report_fail(v->r, HARD_UNKNOWN_FIELD, issue->at, NULL,
				 "members of the runtime-spec only", "%s, which no version has",
				 name);
		break;
	case OCI_ISSUE_CASE:
		hard_report_fail(v->r, HARD_UNKNOWN_FIELD, issue->at, NULL,
				 "members of the runtime-spec only", "%s, which runc reads as '%s'",
				 name, issue->near);
		break;
	case OCI_ISSUE_FOLD:
		hard_report_fail(v->r, HARD_UNKNOWN_FIELD, issue->at, NULL,
				 "names that differ in more than case",
				 "%s beside a name that differs only in case", name);
		break;
	case OCI_ISSUE_UNUSED:
		hard_report_fail(v->r, HARD_UNKNOWN_FIELD, issue->at, NULL,
				 "nothing a hardened container has no use for", "%s", name);
		break;
	}
	return 0;
}

static void check_version(struct hard_verifier *v)
{
	const struct aqe_json *version =
		hard_verify_need(v, HARD_MISSING_FIELD, "/ociVersion", "a known version");

	if (version && !oci_version_known(aqe_json_str(version)))
		hard_report_fail(v->r, HARD_UNKNOWN_FIELD, version, NULL,
				 "1.0.0 to 1.0.2, 1.1.0, 1.2.0, 1.2.1 or 1.3.0", "%s",
				 hard_verify_quote(v, aqe_json_str(version)));
}

static void check_hooks(struct hard_verifier *v)
{
	const struct aqe_json *hooks = aqe_json_get(v->spec, "hooks");

	for (const struct aqe_json *h = hooks ? hooks->first : NULL; h; h = h->next)
		if (h->type == AQE_JSON_ARRAY && h->len > 0)
			hard_report_fail(v->r, HARD_HOOKS, h, NULL, "no hooks",
					 "%zu hook(s) that run on the host", h->len);
}

/* Podman's --privileged grants 40 capabilities, Docker's 38, the kernel knows 41; the largest
 * default of any engine is 15. */
static bool grants_most_caps(const struct aqe_json *spec)
{
	const struct aqe_json *set = aqe_json_at(spec, "/process/capabilities/bounding");
	size_t n = 0;

	for (const struct aqe_json *c = set ? set->first : NULL; c; c = c->next)
		n += aqe_json_str(c) && hard_cap_known(aqe_json_str(c));
	return set && n * 4 >= (size_t)hard_cap_count() * 3;
}

static bool allows_all_devices(const struct aqe_json *spec)
{
	const struct aqe_json *rules = aqe_json_at(spec, "/linux/resources/devices");

	for (const struct aqe_json *d = rules ? rules->first : NULL; d; d = d->next) {
		const struct aqe_json *allow = aqe_json_get(d, "allow");

		if (allow && allow->type == AQE_JSON_BOOL && allow->boolean &&
		    !aqe_json_get(d, "major") && !aqe_json_get(d, "minor"))
			return true;
	}
	return false;
}

static void check_privileged(struct hard_verifier *v)
{
	const struct aqe_json *annotations = aqe_json_get(v->spec, "annotations");
	const struct aqe_json *mark = aqe_json_get(annotations, "io.podman.annotations.privileged");
	const struct aqe_json *masked = aqe_json_at(v->spec, "/linux/maskedPaths");
	static const char wanted[] = "a container without --privileged";

	if (mark && !aqe_str_eq(aqe_json_str(mark), "FALSE"))
		hard_report_fail(v->r, HARD_PRIVILEGED, mark, NULL, wanted, "%s",
				 hard_verify_quote(v, aqe_json_str(mark)));
	if (v->ctx->image && v->ctx->image->asked_privileged)
		hard_report_fail(v->r, HARD_PRIVILEGED, NULL, "", wanted,
				 "--privileged in the engine's record of this container");
	if (grants_most_caps(v->spec))
		hard_report_fail(v->r, HARD_PRIVILEGED,
				 aqe_json_at(v->spec, "/process/capabilities/bounding"), NULL,
				 wanted, "nearly every capability of the kernel");
	if (allows_all_devices(v->spec) && !aqe_json_at(v->spec, "/linux/seccomp") &&
	    (!masked || masked->len == 0))
		hard_report_fail(v->r, HARD_PRIVILEGED,
				 aqe_json_at(v->spec, "/linux/resources/devices"), NULL, wanted,
				 "every device, no seccomp filter and no masked path");
}

void hard_verify_document(struct hard_verifier *v)
{
	if (oci_doc_issues(OCI_DOC_CONFIG, v->spec, report_issue, v) != 0)
		hard_report_fail(v->r, HARD_UNKNOWN_FIELD, v->spec, NULL, "a readable document",
				 "a document whose members could not be listed");
	check_version(v);
	check_hooks(v);
	check_privileged(v);
}
