/* SPDX-License-Identifier: MIT */
/* Cases from public bug reports, through the command that a CI engineer calls: U27 (which digest
 * was compared), U29 (dialects of inspect), U31 (waivers). Every input of their "Try" line. */
#include <fcntl.h>
#include <sys/stat.h>

#include "hardening/inspect.h"
#include "shim/core/clock.h"
#include "tests/unit/cmd_util.h"
#include "tests/unit/inspect_util.h"

#define SPEC  "tests/corpus/spec/"
#define HEX63 "000000000000000000000000000000000000000000000000000000000000000"
#define INDEX "sha256:1" HEX63 /* of a list of manifests */
#define CHILD "sha256:2" HEX63 /* its amd64 manifest */
#define CONF  "sha256:3" HEX63 /* that one's config: docker's image id */
#define DAY_S 86400

static int run(const char *const *words)
{
	return cmd_run(shim_cmd_verify, "verify", words);
}

#define RUN(...) run((const char *const[]){ "--policy", __VA_ARGS__, NULL })

/* The document with up to three edits, in the way the engine writes it. */
struct change {
	const char *pointer, *text;
};

static const char *changed(const char *file, const struct change *list, size_t n)
{
	struct aqe_json *root = in_parse_file(file);

	for (size_t i = 0; i < n && list[i].pointer; i++)
		rw_edit(in_object(root), list[i].pointer, list[i].text);
	return cmd_json("doc.json", root);
}

static const char *policy_with(const char *key, const char *text)
{
	struct aqe_json *doc = rw_parse_file(RW_POLICY);

	rw_edit(doc, key, text);
	return cmd_json("policy.json", doc);
}

/* ---- U27 ---- */

#define PIN(key, digest) "[{\"" key "\":\"" digest "\"}]"
#define DESCRIPTOR(type, digest)                                                             \
	"{\"mediaType\":\"application/vnd.oci.image." type ".v1+json\",\"digest\":\"" digest \
	"\",\"size\":1}"

static const struct {
	const char *images; /* of the policy */
	const char *file;
	struct change changes[3];
	const char *said; /* part of the digest's failure; NULL: it holds */
} digests[] = {
	/* the index is pinned and the amd64 manifest presented, and the reverse */
	{ PIN("digest", INDEX),
	  PODMAN,
	  { { "/ImageDigest", "\"" CHILD "\"" } },
	  "found '" CHILD "', wanted a manifest digest or image id that the policy pins" },
	{ PIN("digest", CHILD),
	  PODMAN,
	  { { "/ImageDigest", "\"" INDEX "\"" } },
	  "found '" INDEX "', wanted a manifest digest or image id that the policy pins" },
	{ PIN("digest", CHILD), PODMAN, { { "/ImageDigest", "\"" CHILD "\"" } }, NULL },
	{ PIN("digest", INDEX),
	  IMAGE,
	  { { "/Digest", "\"" INDEX "\"" },
	    { "/ManifestType", "\"application/vnd.oci.image.index.v1+json\"" } },
	  "wanted an image manifest" },
	/* the image id where a manifest digest belongs: said, whatever is pinned */
	{ PIN("imageId", CONF),
	  PODMAN,
	  { { "/ImageDigest", "\"" CONF "\"" } },
	  "found '" CONF "', which is an image id, wanted a manifest digest" },
	/* docker's classic store: Image is the config's digest */
	{ PIN("imageId", CONF), DOCKER, { { "/Image", "\"" CONF "\"" } }, NULL },
	{ PIN("digest", CONF),
	  DOCKER,
	  { { "/Image", "\"" CONF "\"" } },
	  "found '" CONF "', which is a manifest digest, wanted an image id" },
	/* its containerd store: Image is a manifest's or an index's, the descriptor tells */
	{ PIN("digest", CHILD),
	  DOCKER,
	  { { "/Image", "\"" INDEX "\"" },
	    { "/ImageManifestDescriptor", DESCRIPTOR("manifest", CHILD) } },
	  NULL },
	{ PIN("digest", INDEX),
	  DOCKER,
	  { { "/Image", "\"" INDEX "\"" },
	    { "/ImageManifestDescriptor", DESCRIPTOR("manifest", CHILD) } },
	  "found '" CHILD "', wanted a manifest digest" },
	{ PIN("digest", INDEX),
	  DOCKER,
	  { { "/Image", "\"" INDEX "\"" },
	    { "/ImageManifestDescriptor", DESCRIPTOR("index", INDEX) } },
	  "wanted an image manifest" },
	{ PIN("digest", CHILD),
	  DOCKER,
	  { { "/Image", "\"" CHILD "\"" } },
	  "which is a manifest digest, wanted an image id" },
	/* never a prefix, never another spelling */
	{ PIN("digest", CHILD),
	  PODMAN,
	  { { "/ImageDigest", "\"sha256:2"
			      "00000\"" } },
	  "found" },
	{ PIN("digest", CHILD), PODMAN, { { "/ImageDigest", "\"" CHILD "0\"" } }, "found" },
	{ PIN("digest", CHILD), PODMAN, { { "/ImageDigest", "\"2" HEX63 "\"" } }, "found" },
	{ PIN("digest", CHILD), PODMAN, { { "/ImageDigest", "\"SHA256:2" HEX63 "\"" } }, "found" },
	{ PIN("digest", CHILD), PODMAN, { { "/ImageDigest", "\"sha512:2" HEX63 "\"" } }, "found" },
};

START_TEST(u27__like_is_compared_with_like)
{
	const char *path = policy_with("/images", digests[_i].images);
	const char *file =
		changed(digests[_i].file, digests[_i].changes, AQE_COUNT(digests[_i].changes));

	(void)RUN(path, "--engine-info", DOCKER_INFO, "--all", file);
	if (!digests[_i].said) {
		ck_assert_msg(cmd_said(": pass digest\n"), "%s", aqe_buf_str(&out));
		return;
	}
	ck_assert_msg(cmd_said(": fail digest at /"), "%s", aqe_buf_str(&out));
	ck_assert_msg(cmd_said(digests[_i].said), "%s", aqe_buf_str(&out));
}
END_TEST

/* Upper-case hex, another algorithm, 63 and 65 digits: in the policy and on the command line. */
static const char *const spellings[] = {
	"sha256:A" HEX63,     "SHA256:a" HEX63, "sha512:a" HEX63,     "sha256:" HEX63,
	"sha256:a" HEX63 "0", "a" HEX63,        "sha256:a" HEX63 " ", "sha256:g" HEX63,
};

START_TEST(u27__other_spellings_are_refused)
{
	const char *digest = spellings[_i];
	static const char *const keys[] = { "digest", "imageId" };

	for (size_t i = 0; i < AQE_COUNT(keys); i++) {
		const char *path = policy_with("/images", aqe_arena_fmt(arena, "[{\"%s\":\"%s\"}]",
									keys[i], digest));

		ck_assert_int_eq(RUN(path, SPEC "ok-base.json"), SHIM_EXIT_UNDECIDED);
		ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), "policy.json:"));
		ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), keys[i]));
		ck_assert_uint_eq(out.len, 0);
	}
	ck_assert_int_eq(RUN(RW_POLICY, "--image-digest", digest, SPEC "ok-base.json"),
			 SHIM_EXIT_USAGE);
}
END_TEST

/* At a start the engine's own store says what belongs together: the index counts only when the
 * store has it for this image. */
static const struct {
	const char *pinned;
	const char *digests[3];
	bool found;
} stores[] = {
	{ INDEX, { CHILD }, false },       { INDEX, { CHILD, INDEX }, true },
	{ CHILD, { CHILD, INDEX }, true }, { CHILD, { INDEX }, false },
	{ CONF, { CHILD, INDEX }, false },
};

START_TEST(u27__an_index_counts_with_its_document)
{
	struct hard_image images[] = { { .name = "x", .digest = stores[_i].pinned } };
	struct oci_identity image = { .engine = OCI_ENGINE_PODMAN,
				      .known = true,
				      .image_id = CONF,
				      .digests = stores[_i].digests };
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	while (image.n_digests < 3 && stores[_i].digests[image.n_digests])
		image.n_digests++;
	rw_edit(doc, "/annotations", "{}");
	policy->images = images;
	policy->n_images = 1;
	ctx.image_digest = NULL;
	ctx.image = &image;
	ctx.entry = hard_policy_image(policy, image.image_id, image.digests, image.n_digests);
	ck_assert_int_eq(ctx.entry != NULL, stores[_i].found);
	ck_assert_ok(hard_verify(&ctx, doc, &report, &err), err);
	ck_assert_int_eq(report.result[HARD_DIGEST] == HARD_PASS, stores[_i].found);
}
END_TEST

/* What the rewrite writes into a document, in the gate: the policy may pin either. */
static const struct {
	const char *images, *digest, *id;
	bool holds;
} notes[] = {
	{ PIN("imageId", CONF), CHILD, CONF, true },
	{ PIN("digest", CHILD), CHILD, CONF, true },
	{ PIN("imageId", CONF), CHILD, INDEX, false },
	{ PIN("digest", CHILD), INDEX, CONF, false },
	{ "[{\"digest\":\"" CHILD "\",\"imageId\":\"" CONF "\"}]", CHILD, CONF, true },
	{ "[{\"digest\":\"" CHILD "\",\"imageId\":\"" CONF "\"}]", CHILD, INDEX, false },
	{ "[{\"digest\":\"" CHILD "\",\"imageId\":\"" CONF "\"}]", INDEX, CONF, false },
};

START_TEST(u27__either_pin_holds_for_both_notes)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);
	const char *text =
		aqe_arena_fmt(arena, "{\"io.aqe.image.digest\":\"%s\",\"io.aqe.image.id\":\"%s\"}",
			      notes[_i].digest, notes[_i].id);

	rw_edit(doc, "/annotations", text);
	ck_assert_int_eq(RUN(policy_with("/images", notes[_i].images), cmd_json("doc.json", doc)),
			 notes[_i].holds ? SHIM_EXIT_OK : SHIM_EXIT_FAILED);
	ck_assert_int_eq(cmd_said("fail digest at /annotations"), !notes[_i].holds);
}
END_TEST

/* ---- U29 ---- */

#define ALL_14                                                                                   \
	"[\"CAP_AUDIT_WRITE\",\"CAP_CHOWN\",\"CAP_DAC_OVERRIDE\",\"CAP_FOWNER\",\"CAP_FSETID\"," \
	"\"CAP_KILL\",\"CAP_MKNOD\",\"CAP_NET_BIND_SERVICE\",\"CAP_NET_RAW\",\"CAP_SETFCAP\","   \
	"\"CAP_SETGID\",\"CAP_SETPCAP\",\"CAP_SETUID\",\"CAP_SYS_CHROOT\"]"

static const struct {
	const char *file;
	struct change changes[3];
	const char *failed; /* properties; "-": it conforms */
} dialects[] = {
	{ DOCKER, { { NULL, NULL } }, "-" },
	{ PODMAN, { { NULL, NULL } }, "-" },
	{ IMAGE, { { NULL, NULL } }, "-" },
	{ PODMAN_INFO, { { NULL, NULL } }, "-" },
	/* ALL is the fourteen */
	{ PODMAN, { { "/HostConfig/CapDrop", ALL_14 } }, "-" },
	{ DOCKER, { { "/HostConfig/CapDrop", "[\"ALL\"]" } }, "-" },
	{ DOCKER, { { "/HostConfig/CapDrop", "[\"all\"]" } }, "capabilities" },
	/* letter case */
	{ DOCKER,
	  { { "/HostConfig/CpuQuota", NULL },
	    { "/HostConfig/NanoCpus", "0" },
	    { "/HostConfig/CPUQuota", "100000" } },
	  "cpu_limit unknown_field missing_field" },
	{ PODMAN,
	  { { "/HostConfig/CpuQuota", NULL }, { "/HostConfig/CPUQuota", "100000" } },
	  "cpu_limit unknown_field missing_field" },
	{ DOCKER,
	  { { "/HostConfig/PidsLimit", NULL }, { "/HostConfig/pidsLimit", "100" } },
	  "pids_limit unknown_field missing_field" },
	/* NanoCpus against quota and period */
	{ DOCKER,
	  { { "/HostConfig/NanoCpus", "0" },
	    { "/HostConfig/CpuQuota", "200000" },
	    { "/HostConfig/CpuPeriod", "100000" } },
	  "-" },
	{ DOCKER,
	  { { "/HostConfig/NanoCpus", "0" },
	    { "/HostConfig/CpuQuota", "0" },
	    { "/HostConfig/CpuPeriod", "0" } },
	  "cpu_limit" },
	{ DOCKER,
	  { { "/HostConfig/NanoCpus", "1000000000" },
	    { "/HostConfig/CpuQuota", "300000" },
	    { "/HostConfig/CpuPeriod", "100000" } },
	  "cpu_limit" },
	{ PODMAN,
	  { { "/HostConfig/NanoCpus", "1000000000" }, { "/HostConfig/CpuQuota", "200000" } },
	  "cpu_limit" },
	/* PidsLimit */
	{ DOCKER, { { "/HostConfig/PidsLimit", "null" } }, "pids_limit" },
	{ DOCKER, { { "/HostConfig/PidsLimit", "0" } }, "pids_limit" },
	{ DOCKER, { { "/HostConfig/PidsLimit", "-1" } }, "pids_limit" },
	{ DOCKER, { { "/HostConfig/PidsLimit", "2048" } }, "pids_limit" },
	{ PODMAN, { { "/HostConfig/PidsLimit", "0" } }, "pids_limit" },
	{ PODMAN, { { "/HostConfig/PidsLimit", "-1" } }, "pids_limit" },
	{ PODMAN, { { "/HostConfig/PidsLimit", "2048" } }, "pids_limit" },
	/* ignored without a word by a rootless engine on cgroup v1: inspect shows the effect, 0 */
	{ ROOTLESS,
	  { { "/HostConfig/Memory", "0" }, { "/HostConfig/MemorySwap", "0" } },
	  "memory_limit" },
};

START_TEST(u29__dialects_and_their_fields)
{
	const bool docker = strstr(dialects[_i].file, "docker") != NULL;
	const char *file =
		changed(dialects[_i].file, dialects[_i].changes, AQE_COUNT(dialects[_i].changes));
	const char *info = docker ? DOCKER_INFO : PODMAN_INFO;
	AQE_AUTO_BUF struct aqe_buf failed = AQE_BUF_INIT(4096);
	const struct aqe_json *list;
	const int rc = RUN(RW_POLICY, "--engine-info", info, "--format", "json", file);

	list = aqe_json_get(rw_value(aqe_buf_str(&out)), "properties");
	for (const struct aqe_json *p = list ? list->first : NULL; p; p = p->next)
		if (!aqe_str_eq(aqe_json_str(aqe_json_get(p, "result")), "pass"))
			aqe_buf_addf(&failed, "%s%s", failed.len ? " " : "",
				     aqe_json_str(aqe_json_get(p, "id")));
	ck_assert_str_eq(failed.len ? aqe_buf_str(&failed) : "-", dialects[_i].failed);
	ck_assert_int_eq(rc, failed.len ? SHIM_EXIT_FAILED : SHIM_EXIT_OK);
}
END_TEST

/* 0, 1, 3 objects, one without its array: each object is reported, and the shape decides. */
static const struct {
	int objects; /* -1: one, not in an array */
	int status;
	size_t reports;
} shapes[] = {
	{ 0, SHIM_EXIT_MALFORMED, 1 },
	{ 1, SHIM_EXIT_OK, 1 },
	{ 3, SHIM_EXIT_MALFORMED, 3 },
	{ -1, SHIM_EXIT_MALFORMED, 1 },
};

START_TEST(u29__arrays_of_objects)
{
	static const char *const files[] = { PODMAN, DOCKER };

	for (size_t i = 0; i < AQE_COUNT(files); i++) {
		struct aqe_json *object = in_object(in_parse_file(files[i]));
		struct aqe_json *root = aqe_json_new_array(arena);
		size_t reports = 0;

		for (int n = 0; n < shapes[_i].objects; n++)
			ck_assert_int_eq(aqe_json_append(root, aqe_json_copy(arena, object)), 0);
		if (shapes[_i].objects < 0)
			root = aqe_json_copy(arena, object);
		ck_assert_int_eq(RUN(RW_POLICY, "--engine-info", i ? DOCKER_INFO : PODMAN_INFO,
				     "--format", "json", cmd_json("many.json", root)),
				 shapes[_i].status);
		for (const char *s = aqe_buf_str(&out); (s = strstr(s, "\"verdict\"")); s++)
			reports++;
		ck_assert_uint_eq(reports, shapes[_i].reports);
	}
}
END_TEST

/* What other tools write is named, and is never a pass. */
static const struct {
	const char *text, *said;
	int status;
} others[] = {
	{ "{\"status\":{\"id\":\"x\",\"state\":\"CONTAINER_RUNNING\"},\"info\":{\"pid\":1}}",
	  "crictl", SHIM_EXIT_UNDECIDED },
	{ "[{\"ID\":\"x\",\"Image\":\"y\",\"Spec\":{\"ociVersion\":\"1.1.0\"},\"Snapshotter\":"
	  "\"overlayfs\"}]",
	  "nerdctl", SHIM_EXIT_UNDECIDED },
	{ "[{\"Id\":\"x\",\"Image\":\"y\",\"HostConfig\":{},\"NetworkSettings\":{},\"Config\":{"
	  "\"Labels\":"
	  "{\"nerdctl/namespace\":\"default\"}}}]",
	  "nerdctl", SHIM_EXIT_UNDECIDED },
	{ "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", "kubectl", SHIM_EXIT_UNDECIDED },
	{ "[{\"Something\":1}]", "malformed", SHIM_EXIT_MALFORMED },
	{ "{\"Something\":1}", "malformed", SHIM_EXIT_MALFORMED },
	{ "{}", "violate", SHIM_EXIT_FAILED },
	{ "null", "malformed", SHIM_EXIT_MALFORMED },
};

START_TEST(u29__other_tools_are_named)
{
	const char *file = cmd_file("doc.json", others[_i].text, strlen(others[_i].text));

	ck_assert_int_eq(RUN(RW_POLICY, file), others[_i].status);
	ck_assert_msg(cmd_said(others[_i].said), "%s", aqe_buf_str(&out));
	ck_assert(!cmd_said(": conform"));
}
END_TEST

/* ---- U31 ---- */

static const char *day(int64_t days)
{
	char *text = aqe_arena_alloc(arena, AQE_TIME_TEXT);

	ck_assert_ptr_nonnull(text);
	aqe_time_format(AQE_CLOCK_SYSTEM.now_s(NULL) + days * DAY_S, text);
	text[strlen("2026-01-01")] = '\0'; /* 00:00 UTC */
	return text;
}

static const char *waiver(const char *property, const char *type, const char *expires)
{
	return aqe_arena_fmt(arena,
			     "{\"property\":\"%s\",\"agentType\":\"%s\",\"reason\":\"r\",\"owner\":"
			     "\"o\",\"expires\":\"%s\"}",
			     property, type, expires);
}

static const char *policy_waiving(const char *first, const char *second)
{
	return policy_with("/waivers", aqe_arena_fmt(arena, "[%s%s%s]", first, second ? "," : "",
						     second ? second : ""));
}

/* Yesterday, today from 00:00 UTC, tomorrow: the same answer from every command that judges. */
static const struct {
	int64_t days;
	bool counts;
} expiries[] = { { -1, false }, { 0, false }, { 1, true } };

START_TEST(u31__expiry_is_one_for_all_commands)
{
	const char *policy_path =
		policy_waiving(waiver("user", "default", day(expiries[_i].days)), NULL);
	const int status = expiries[_i].counts ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
	const char *warned =
		expiries[_i].counts ? "expires soon: " : "counts as absent: it expired";
	static const char *const image_user[] = { "\"0\"", "\"root\"" };
	struct hard_policy *p = NULL;
	struct aqe_json *doc = rw_parse_file(SPEC "user-uid-0.json"), *result = NULL;

	/* verify */
	ck_assert_int_eq(RUN(policy_path, SPEC "user-uid-0.json"), status);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), warned));
	/* the image gate */
	for (size_t i = 0; i < AQE_COUNT(image_user); i++) {
		const struct change root = { "/Config/User", image_user[i] };

		ck_assert_int_eq(RUN(policy_path, changed(IMAGE, &root, 1)), status);
	}
	/* a start: what it waives stays as it was asked for, what is over is tightened */
	ck_assert_ok(hard_policy_load_file(policy_path, &p, &err), err);
	ctx.policy = p;
	ctx.agent = hard_agent_default();
	ctx.now_s = AQE_CLOCK_SYSTEM.now_s(NULL);
	ck_assert_ok(hard_rewrite(&ctx, arena, doc, &report, &result, &err), err);
	ck_assert_ptr_nonnull(result);
	ck_assert_str_eq(aqe_json_at(result, "/process/user/uid")->text,
			 expiries[_i].counts ? "0" : "1000");
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify(&ctx, doc, &report, &err), err);
	ck_assert_int_eq(report.result[HARD_USER], expiries[_i].counts ? HARD_WAIVED : HARD_FAIL);
	hard_policy_free(p);
	/* explain knows the rule and no policy */
	ck_assert_int_eq(RUN(policy_path, "--explain", "user"), SHIM_EXIT_OK);
	ck_assert(!cmd_said("waived"));
}
END_TEST

/* Refused when the policy is loaded, with its line: nothing is judged by half a policy. */
static const struct {
	const char *waiver, *said;
} bad_waivers[] = {
	{ "{\"property\":\"user\",\"agentType\":\"default\",\"reason\":\"r\",\"owner\":\"o\"}",
	  "has no 'expires'" },
	{ "{\"property\":\"user\",\"agentType\":\"default\",\"reason\":\"r\",\"expires\":\"2099-01-"
	  "01\"}",
	  "has no 'owner'" },
	{ "{\"property\":\"user\",\"agentType\":\"default\",\"owner\":\"o\",\"expires\":\"2099-01-"
	  "01\"}",
	  "has no 'reason'" },
	{ "{\"property\":\"users\",\"agentType\":\"default\",\"reason\":\"r\",\"owner\":\"o\","
	  "\"expires\":"
	  "\"2099-01-01\"}",
	  "/property' is 'users'" },
	{ "{\"property\":\"user\",\"agentType\":\"default\",\"reason\":\"r\",\"owner\":\"o\","
	  "\"expires\":"
	  "\"\"}",
	  "/expires' is ''" },
};

START_TEST(u31__incomplete_waivers_are_refused)
{
	const char *path = policy_waiving(bad_waivers[_i].waiver, NULL);

	ck_assert_int_eq(RUN(path, SPEC "ok-base.json"), SHIM_EXIT_UNDECIDED);
	ck_assert_msg(strstr(aqe_buf_str(&errors), bad_waivers[_i].said) != NULL, "%s",
		      aqe_buf_str(&errors));
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), "policy.json:"));
	ck_assert_uint_eq(out.len, 0);
}
END_TEST

START_TEST(u31__core_rules_cannot_be_waived)
{
	const struct hard_prop_row *row = &HARDENING_PROFILE[_i];
	const char *path = policy_waiving(waiver(row->id, "default", "2099-01-01"), NULL);
	const int rc = RUN(path, SPEC "ok-base.json");

	ck_assert_int_eq(rc, row->waivable ? SHIM_EXIT_OK : SHIM_EXIT_UNDECIDED);
	if (row->waivable)
		return;
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), "policy.json:"));
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), row->id));
}
END_TEST

/* The first waiver is for another type, another property, or over: the second counts. */
static const struct {
	const char *property, *type;
	int64_t days;
} first_waivers[] = {
	{ "user", "qe-test-writer", 100 },
	{ "lsm", "default", 100 },
};

START_TEST(u31__the_first_that_matches_counts)
{
	const char *other = waiver(first_waivers[_i].property, first_waivers[_i].type,
				   day(first_waivers[_i].days));
	const char *path = policy_waiving(other, waiver("user", "default", day(100)));

	ck_assert_int_eq(RUN(path, SPEC "user-uid-0.json"), SHIM_EXIT_OK);
	ck_assert(cmd_said("waived user"));
}
END_TEST

/* A waiver for what holds anyway is reported, and what is waived stays visible everywhere. */
START_TEST(u31__waived_and_unused_are_shown)
{
	const char *path = policy_waiving(waiver("user", "default", day(100)), NULL);

	ck_assert_int_eq(RUN(path, SPEC "ok-base.json"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors), "is not needed"));
	ck_assert_int_eq(RUN(path, SPEC "user-uid-0.json"), SHIM_EXIT_OK);
	ck_assert(cmd_said("waived user"));
	ck_assert_int_eq(RUN(path, "--format", "json", SPEC "user-uid-0.json"), SHIM_EXIT_OK);
	ck_assert(cmd_said("\"result\":\"waived\""));
	ck_assert_int_eq(RUN(path, "--format", "sarif", SPEC "user-uid-0.json"), SHIM_EXIT_OK);
	ck_assert(cmd_said("\"suppressions\":[{\"kind\":\"external\",\"status\":\"accepted\""));
	ck_assert_int_eq(RUN(path, "--format", "junit", SPEC "user-uid-0.json"), SHIM_EXIT_OK);
	ck_assert(cmd_said("skipped=\"1\""));
}
END_TEST

/* The clock set back a year, so that a waiver that ended would count again: the policy was changed
 * later than now, which cannot be. A day's difference between two machines can. */
static const struct {
	int64_t days; /* of the policy's last change, from now */
	int status;
} changes[] = {
	{ 365, SHIM_EXIT_FAILED },
	{ 2, SHIM_EXIT_FAILED },
	{ 0, SHIM_EXIT_OK },
	{ -365, SHIM_EXIT_OK },
};

START_TEST(u31__a_clock_set_back_revives_nothing)
{
	const char *path = policy_waiving(waiver("user", "default", day(100)), NULL);
	const struct timespec t = { AQE_CLOCK_SYSTEM.now_s(NULL) + changes[_i].days * DAY_S, 0 };

	ck_assert_int_eq(utimensat(AT_FDCWD, path, (const struct timespec[]){ t, t }, 0), 0);
	ck_assert_int_eq(RUN(path, SPEC "user-uid-0.json"), changes[_i].status);
	if (changes[_i].status != SHIM_EXIT_OK)
		ck_assert_ptr_nonnull(strstr(aqe_buf_str(&errors),
					     "the clock is before the policy's last change"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim/verify_cases");
	TCase *c = tcase_create("cases");

	tcase_add_checked_fixture(c, cmd_setup, cmd_teardown);
	tcase_add_loop_test(c, u27__like_is_compared_with_like, 0, AQE_COUNT(digests));
	tcase_add_loop_test(c, u27__other_spellings_are_refused, 0, AQE_COUNT(spellings));
	tcase_add_loop_test(c, u27__an_index_counts_with_its_document, 0, AQE_COUNT(stores));
	tcase_add_loop_test(c, u27__either_pin_holds_for_both_notes, 0, AQE_COUNT(notes));
	tcase_add_loop_test(c, u29__dialects_and_their_fields, 0, AQE_COUNT(dialects));
	tcase_add_loop_test(c, u29__arrays_of_objects, 0, AQE_COUNT(shapes));
	tcase_add_loop_test(c, u29__other_tools_are_named, 0, AQE_COUNT(others));
	tcase_add_loop_test(c, u31__expiry_is_one_for_all_commands, 0, AQE_COUNT(expiries));
	tcase_add_loop_test(c, u31__incomplete_waivers_are_refused, 0, AQE_COUNT(bad_waivers));
	tcase_add_loop_test(c, u31__core_rules_cannot_be_waived, 0, HARD_PROP_COUNT);
	tcase_add_loop_test(c, u31__the_first_that_matches_counts, 0, AQE_COUNT(first_waivers));
	tcase_add_test(c, u31__waived_and_unused_are_shown);
	tcase_add_loop_test(c, u31__a_clock_set_back_revives_nothing, 0, AQE_COUNT(changes));
	suite_add_tcase(s, c);
	return unit_run(s);
}
