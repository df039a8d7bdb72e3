/* SPDX-License-Identifier: MIT */
/* What the tests of inspect documents share: files, one edit, the judgement. */
#ifndef AQE_UNIT_INSPECT_UTIL_H
#define AQE_UNIT_INSPECT_UTIL_H

#include "hardening/inspect.h"
#include "tests/unit/rewrite_util.h"

#define INSPECT      "tests/corpus/inspect/"
#define PODMAN       INSPECT "podman-ok-capdrop-all.json"
#define PODMAN_14    INSPECT "podman-ok-caps-empty-lists.json"
#define ROOTLESS     INSPECT "rootless-podman-ok.json"
#define DOCKER       INSPECT "docker-ok-base.json"
#define IMAGE        INSPECT "image-podman-ok.json"
#define DOCKER_IMAGE INSPECT "image-docker-user-root.json"
#define PODMAN_INFO  INSPECT "info-podman-ok.json"
#define DOCKER_INFO  INSPECT "info-docker-ok.json"

static inline struct aqe_json *in_parse(const char *text, size_t len)
{
	struct aqe_json *root = NULL;
	const int rc = aqe_json_parse(arena, text, len, &OCI_INSPECT_LIMITS, &root, &err);

	ck_assert_msg(rc == 0, "%s: %.100s", err.text, text);
	return root;
}

static inline struct aqe_json *in_parse_file(const char *path)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);

	rw_read_file(path, &b);
	return in_parse(aqe_buf_str(&b), b.len);
}

static inline struct aqe_json *in_object(struct aqe_json *root)
{
	return root->type == AQE_JSON_ARRAY ? root->first : root;
}

/* The failed properties, "malformed", or "-" when all hold. */
static inline const char *in_judge(struct aqe_json *root)
{
	struct aqe_json *object = in_object(root);
	const enum oci_inspect_kind kind = oci_inspect_object(object, NULL);
	const char *failed;

	hard_report_init(&report, arena);
	if (!object || kind == OCI_INSPECT_NONE)
		return "malformed";
	if (oci_inspect_shape(root, kind, &err) < 0 || oci_inspect_check(kind, object, &err) < 0)
		return "malformed";
	ck_assert_ok(hard_verify_inspect(&ctx, kind, object, &report, &err), err);
	failed = rw_failed(&report);
	return failed[0] ? failed : "-";
}

static inline void in_setup(void)
{
	rw_setup();
	ctx.image_digest = NULL;
	ctx.agent = NULL; /* chosen from the document */
}

#endif
