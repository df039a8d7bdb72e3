/* SPDX-License-Identifier: MIT */
#include "hardening/inspect_in.h"

#include <string.h>

#include "shim/core/text.h"

static const char pinned_digest[] = "a manifest digest that the policy pins";
static const char pinned_image[] = "a manifest digest or image id that the policy pins";
static const char pinned_id[] = "an image id that the policy pins";

/* Where the platform's manifest begins; an index or list names several images. */
static const char *const manifest_types[] = {
	"application/vnd.oci.image.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.v2+json",
	"application/vnd.docker.distribution.manifest.v1+json",
	"application/vnd.docker.distribution.manifest.v1+prettyjws",
	NULL,
};

static void check_digest(struct hard_inspector *i, const struct aqe_json *digest)
{
	const char *text = aqe_json_str(digest);

	if (hard_inspect_pinned(i, text))
		return;
	hard_report_fail(i->v.r, HARD_DIGEST, digest, NULL, pinned_digest, "%s%s",
			 hard_verify_quote(&i->v, text),
			 hard_inspect_pinned_id(i, text) ? ", which is an image id" : "");
}

/* podman shows both: an entry may pin either. */
static void check_both(struct hard_inspector *i, const struct aqe_json *digest)
{
	const char *text = aqe_json_str(digest);

	if (hard_inspect_pinned(i, text) || hard_inspect_entry(i))
		return;
	hard_report_fail(i->v.r, HARD_DIGEST, digest, NULL, pinned_image, "%s%s",
			 hard_verify_quote(&i->v, text),
			 hard_inspect_pinned_id(i, text) ? ", which is an image id" : "");
}

static void check_id(struct hard_inspector *i, const struct aqe_json *id)
{
	const char *text = aqe_json_str(id);

	if (hard_inspect_pinned_id(i, text))
		return;
	hard_report_fail(i->v.r, HARD_DIGEST, id, NULL, pinned_id, "%s%s",
			 hard_verify_quote(&i->v, text),
			 hard_inspect_pinned(i, text) ? ", which is a manifest digest" : "");
}

/* The platform's manifest as docker's containerd store describes it. */
static void check_descriptor(struct hard_inspector *i, const struct aqe_json *d)
{
	const struct aqe_json *digest =
		hard_verify_member(&i->v, HARD_DIGEST, d, "digest", pinned_digest);
	const struct aqe_json *type =
		hard_verify_member(&i->v, HARD_DIGEST, d, "mediaType", "an image manifest");

	if (digest)
		check_digest(i, digest);
	if (type && !aqe_str_in(aqe_json_str(type), manifest_types))
		hard_report_fail(i->v.r, HARD_DIGEST, type, NULL, "an image manifest", "%s",
				 hard_verify_quote(&i->v, aqe_json_str(type)));
}

/* What the caller says must be what the document says. */
static void check_given(struct hard_inspector *i, const struct aqe_json *digest,
			const struct aqe_json *id)
{
	const char *given = i->ctx.image_digest;
	const char *hex = aqe_json_str(id);

	if (!given)
		return;
	if (!hard_inspect_pinned(i, given) && !hard_inspect_pinned_id(i, given))
		hard_report_fail(i->v.r, HARD_DIGEST, NULL, "", pinned_digest, "%s",
				 hard_verify_quote(&i->v, given));
	if (aqe_str_eq(given, aqe_json_str(digest)) || aqe_str_eq(given, hex) ||
	    (hex && aqe_str_eq(given + strlen("sha256:"), hex)))
		return;
	hard_report_fail(i->v.r, HARD_DIGEST,
			 digest ? digest
			 : id   ? id
				: i->v.spec,
			 NULL, given, "another image");
}

void hard_inspect_image_id(struct hard_inspector *i)
{
	const struct aqe_json *id =
		i->podman ? hard_inspect_get(i, "/Image")
			  : hard_inspect_need(i, HARD_DIGEST, "/Image", pinned_id);
	const struct aqe_json *descriptor = hard_inspect_get(i, "/ImageManifestDescriptor");
	const struct aqe_json *digest = NULL;

	if (i->podman) {
		digest = hard_inspect_need(i, HARD_DIGEST, "/ImageDigest", pinned_digest);
		if (digest)
			check_both(i, digest);
		hard_inspect_empty(i, HARD_DIGEST, "/Rootfs", "an image");
	} else if (descriptor) {
		digest = aqe_json_get(descriptor, "digest");
		check_descriptor(i, descriptor);
	} else if (id) {
		check_id(i, id);
	}
	check_given(i, digest, id);
}

/* ---- an image's own document ---- */

/* REPOSITORY@sha256:... */
static void check_repo_digests(struct hard_inspector *i)
{
	const struct aqe_json *list =
		hard_inspect_need(i, HARD_DIGEST, "/RepoDigests", pinned_digest);

	if (list && list->len == 0)
		hard_report_fail(i->v.r, HARD_DIGEST, list, NULL, pinned_digest,
				 "none: the image was built or imported here");
	for (const struct aqe_json *d = list ? list->first : NULL; d; d = d->next) {
		const char *at = strrchr(aqe_json_str(d), '@');

		if (!at || !hard_inspect_pinned(i, at + 1))
			hard_report_fail(i->v.r, HARD_DIGEST, d, NULL, pinned_digest, "%s",
					 hard_verify_quote(&i->v, aqe_json_str(d)));
	}
}

static void check_identity(struct hard_inspector *i)
{
	const struct aqe_json *descriptor = hard_inspect_get(i, "/Descriptor");
	const struct aqe_json *type = hard_inspect_get(i, "/ManifestType");
	const struct aqe_json *id = hard_inspect_need(i, HARD_DIGEST, "/Id", pinned_id);
	const struct aqe_json *digest = NULL;

	if (i->podman) {
		digest = hard_inspect_need(i, HARD_DIGEST, "/Digest", pinned_digest);
		if (digest)
			check_both(i, digest);
		if (!type)
			(void)hard_inspect_need(i, HARD_DIGEST, "/ManifestType",
						"an image manifest");
		else if (!aqe_str_in(aqe_json_str(type), manifest_types))
			hard_report_fail(i->v.r, HARD_DIGEST, type, NULL, "an image manifest", "%s",
					 hard_verify_quote(&i->v, aqe_json_str(type)));
	} else if (descriptor) {
		digest = aqe_json_get(descriptor, "digest");
		check_descriptor(i, descriptor);
	} else {
		if (id)
			check_id(i, id);
		check_repo_digests(i);
	}
	check_given(i, digest, id);
}

/* The frozen filter is made for one architecture, and the pinned image runs on it. */
static void check_platform(struct hard_inspector *i)
{
#if defined(__x86_64__)
	static const char machine[] = "amd64";
#elif defined(__aarch64__)
	static const char machine[] = "arm64";
#else
	static const char machine[] = "";
#endif
	static const struct {
		const char *pointer, *wanted;
	} rows[] = { { "/Architecture", machine }, { "/Os", "linux" } };

	for (size_t k = 0; k < AQE_COUNT(rows); k++) {
		const struct aqe_json *v =
			hard_inspect_need(i, HARD_DIGEST, rows[k].pointer, rows[k].wanted);

		if (v && !aqe_str_eq(aqe_json_str(v), rows[k].wanted))
			hard_report_fail(i->v.r, HARD_DIGEST, v, NULL, rows[k].wanted, "%s",
					 hard_verify_quote(&i->v, aqe_json_str(v)));
	}
}

static void check_volumes(struct hard_inspector *i)
{
	const struct aqe_json *volumes = hard_inspect_get(i, "/Config/Volumes");

	for (const struct aqe_json *v = volumes ? volumes->first : NULL; v; v = v->next) {
		if (hard_rule_policy_mount(&i->ctx, v->key))
			continue; /* the policy's mount takes its place */
		hard_report_fail(i->v.r, HARD_MOUNTS, v, NULL, "no VOLUME",
				 "%s, where the engine mounts a volume of its own",
				 hard_verify_quote(&i->v, v->key));
		hard_report_fail(i->v.r, HARD_READONLY_ROOTFS, v, NULL, "no VOLUME",
				 "%s, which becomes writable", hard_verify_quote(&i->v, v->key));
	}
}

void hard_inspect_image(struct hard_inspector *i)
{
	const struct aqe_json *user =
		hard_inspect_need(i, HARD_USER, "/Config/User", "UID or UID:GID");

	check_identity(i);
	check_platform(i);
	if (user)
		hard_inspect_user(i, user, false);
	check_volumes(i);
	hard_inspect_env(i, hard_inspect_get(i, "/Config/Env"));
	hard_inspect_labels(i, hard_inspect_get(i, "/Config/Labels"));
	hard_inspect_labels(i, hard_inspect_get(i, "/Labels"));
	hard_inspect_labels(i, hard_inspect_get(i, "/Annotations"));
	hard_inspect_empty(i, HARD_HOOKS, "/Config/OnBuild", "no ONBUILD");
}
