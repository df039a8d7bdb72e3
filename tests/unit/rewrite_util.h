/* SPDX-License-Identifier: MIT */
/* What the tests of the rewrite share: documents from files, edits by pointer, one context. */
#ifndef AQE_UNIT_REWRITE_UTIL_H
#define AQE_UNIT_REWRITE_UTIL_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "hardening/verify.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define RW_ARENA_MAX ((size_t)256 << 20)
#define RW_FILE_MAX  ((size_t)8 << 20)
#define RW_POLICY    "tests/corpus/policy.json"
#define RW_BASE      "tests/corpus/spec/ok-base.json"
#define RW_NOW       1800000000

/* names of the base document */
#define ID         "870be1aecc262829c55beaf6a183a8b7d8b189bd495c8976cbd920927adb0a8d"
#define USERDATA   "/run/containers/storage/overlay-containers/" ID "/userdata/"
#define DOCKER_DIR "/var/lib/docker/containers/" ID "/"
#define DIGEST     "sha256:8bef762011d9d6a4add126b5d9d2ae2aed9621d380631d96bc16e5a6b3bc2e79"
#define IMAGE_ID   "sha256:00b0f7c89f80f2e7d0fbc23349de2e3644427554abc758ac6d2958e7d3e256fe"

static struct aqe_arena *arena;
static struct hard_policy *policy;
static struct hard_ctx ctx;
static struct hard_report report;
static struct aqe_err err;

static inline void rw_setup(void)
{
	arena = aqe_arena_new(RW_ARENA_MAX);
	ck_assert_ptr_nonnull(arena);
	err = (struct aqe_err)AQE_ERR_INIT;
	ck_assert_ok(hard_policy_load_file(RW_POLICY, &policy, &err), err);
	policy->changed_s = 0; /* the tests have a clock of their own */
	ctx = (struct hard_ctx){ .policy = policy,
				 .agent = hard_agent_profile(),
				 .image_digest = policy->images[0].digest,
				 .now_s = RW_NOW };
	hard_report_init(&report, arena);
}

static inline void rw_teardown(void)
{
	hard_policy_free(policy);
	aqe_arena_free(arena);
}

static inline void rw_read_file(const char *path, struct aqe_buf *b)
{
	AQE_AUTO_FILE FILE *f = fopen(path, "re");
	char data[8192];
	size_t n;

	ck_assert_msg(f != NULL, "%s", path);
	aqe_buf_clear(b);
	while ((n = fread(data, 1, sizeof(data), f)) > 0)
		ck_assert_int_eq(aqe_buf_add(b, data, n), 0);
}

static inline struct aqe_json *rw_parse_file(const char *path)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	struct aqe_json *doc = NULL;

	rw_read_file(path, &b);
	const int rc = oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(&b), b.len, &doc, &err);
	ck_assert_msg(rc == 0, "%s: %s", path, err.text);
	return doc;
}

static inline struct aqe_json *rw_value(const char *text)
{
	struct aqe_json *v = NULL;
	const int rc =
		aqe_json_parse(arena, text, strlen(text), &AQE_JSON_LIMITS_DEFAULT, &v, &err);

	ck_assert_msg(rc == 0, "%s: %s", text, err.text);
	return v;
}

/* Sets the value at `pointer` (its parent must exist; the last token "-" appends to an array), or
 * removes it when `text` is NULL. */
static inline void rw_edit(struct aqe_json *doc, const char *pointer, const char *text)
{
	const char *slash = strrchr(pointer, '/');
	const char *parent = aqe_arena_ndup(arena, pointer, (size_t)(slash - pointer));
	struct aqe_json *at = aqe_json_at(doc, parent);
	struct aqe_json *old = aqe_json_at(doc, pointer);

	ck_assert_msg(at != NULL, "no %s", parent);
	if (!text) {
		ck_assert_msg(old != NULL, "no %s", pointer);
		aqe_json_detach(old);
	} else if (at->type == AQE_JSON_ARRAY) {
		ck_assert_str_eq(slash + 1, "-");
		ck_assert_int_eq(aqe_json_append(at, rw_value(text)), 0);
	} else {
		ck_assert_int_eq(aqe_json_set(arena, at, slash + 1, rw_value(text)), 0);
	}
}

/* The ids of the failed properties, in the profile's order, separated by blanks. */
static inline const char *rw_failed(const struct hard_report *r)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);

	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		if (r->result[i] != HARD_PASS && r->result[i] != HARD_WAIVED)
			aqe_buf_addf(&b, "%s%s", b.len ? " " : "", HARDENING_PROFILE[i].id);
	return aqe_arena_dup(arena, aqe_buf_str(&b));
}

/* What must hold for every document the rewrite accepts: it verifies with the same context, our
 * writer takes it, what is read back is equal and verifies too, and a second rewrite changes
 * nothing. */
static inline void rw_check_result(const char *name, const struct aqe_json *result)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RW_FILE_MAX);
	struct aqe_json *again = NULL, *second = NULL;
	struct hard_report r;

	hard_report_init(&r, arena);
	ck_assert_ok(hard_verify(&ctx, result, &r, &err), err);
	ck_assert_msg(hard_report_ok(&r), "%s: rewritten fails: %s", name, rw_failed(&r));
	ck_assert_ok(oci_doc_emit(OCI_DOC_CONFIG, result, &b, &err), err);
	ck_assert_ok(oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(&b), b.len, &again, &err),
		     err);
	ck_assert_msg(aqe_json_equal(result, again), "%s: re-read differs", name);
	hard_report_init(&r, arena);
	ck_assert_ok(hard_rewrite(&ctx, arena, again, &r, &second, &err), err);
	ck_assert_msg(second != NULL, "%s: second rewrite refused: %s", name, rw_failed(&r));
	ck_assert_msg(aqe_json_equal(result, second), "%s: second rewrite differs", name);
}

#endif
