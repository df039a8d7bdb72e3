/* SPDX-License-Identifier: MIT */
/* The same document in different places: gate, rootful and rootless engine, known image. */
#include <check.h>
#include <string.h>

#include "hardening/rules.h"
#include "hardening/seccomp.h"
#include "tests/unit/rewrite_util.h"

#define ID    "870be1aecc262829c55beaf6a183a8b7d8b189bd495c8976cbd920927adb0a8d"
#define OTHER "sha256:0000000000000000000000000000000000000000000000000000000000000001"

static struct aqe_json *base;
static struct hard_host host;
static struct oci_identity image;

static void setup(void)
{
	rw_setup();
	ctx.image_digest = NULL;
	base = rw_parse_file(RW_BASE);
	host = (struct hard_host){ .cgroup_limits = true, .n_uid = 1, .n_gid = 1 };
	host.uid_map[0] = host.gid_map[0] = (struct hard_idmap){ 0, 0, UINT32_MAX };
	image = (struct oci_identity){ .engine = OCI_ENGINE_PODMAN, .known = true };
	memcpy(image.image_id, policy->images[0].image_id, AQE_DIGEST_TEXT);
}

static void expect(const char *name, const char *failed)
{
	ck_assert_ok(oci_doc_check(OCI_DOC_CONFIG, base, &err), err);
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify(&ctx, base, &report, &err), err);
	ck_assert_msg(aqe_str_eq(rw_failed(&report), failed), "%s: '%s', wanted '%s'", name,
		      rw_failed(&report), failed);
}

/* True when some finding of the property says this. */
static bool says(enum hard_prop prop, const char *part)
{
	for (const struct hard_finding *f = report.first; f; f = f->next)
		if (f->prop == prop && (strstr(f->found, part) || strstr(f->wanted, part)))
			return true;
	return false;
}

/* A rootless engine: the user is 1001, subordinate ids from 100000. */
static void rootless(bool v2)
{
	host.in_userns = true;
	host.cgroup_v2 = host.cgroup_limits = v2;
	host.n_uid = host.n_gid = 2;
	host.uid_map[0] = host.gid_map[0] = (struct hard_idmap){ 0, 1001, 1 };
	host.uid_map[1] = host.gid_map[1] = (struct hard_idmap){ 1, 100000, 65536 };
	ctx.host = &host;
}

static void without_userns(void)
{
	rw_edit(base, "/linux/namespaces",
		"[{\"type\":\"pid\"},{\"type\":\"network\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},"
		"{\"type\":\"mount\"}]");
	rw_edit(base, "/linux/uidMappings", NULL);
	rw_edit(base, "/linux/gidMappings", NULL);
}

static void set_maps(const char *lines)
{
	rw_edit(base, "/linux/uidMappings", lines);
	rw_edit(base, "/linux/gidMappings", lines);
}

/* ---- rootless or not ---- */

START_TEST(gate__info_document_says_rootless)
{
	without_userns();
	expect("nothing says so", "rootless");
	ctx.info_rootless = true;
	expect("info says so", "");
	rw_edit(base, "/linux/uidMappings", "[{\"containerID\":0,\"hostID\":0,\"size\":9}]");
	expect("mappings without a namespace", "rootless");
}
END_TEST

START_TEST(gate__info_document_and_mappings)
{
	ctx.info_rootless = true;
	set_maps("[{\"containerID\":0,\"hostID\":1,\"size\":2000}]");
	expect("counted in the engine's namespace", "");
	set_maps("[{\"containerID\":1000,\"hostID\":0,\"size\":1}]");
	expect("the invoking user", "user");
}
END_TEST

START_TEST(rootful__needs_mappings)
{
	ctx.host = &host;
	expect("mapped", "");
	without_userns();
	expect("not mapped", "rootless");
	ck_assert(says(HARD_ROOTLESS, "rootful"));
	ctx.info_rootless = true; /* what the engine is shows here, not in a document */
	expect("not mapped, whatever was said", "rootless");
}
END_TEST

START_TEST(rootless__agent_lands_in_the_subordinate_range)
{
	rootless(true);
	without_userns();
	expect("no namespace of its own", "");
	rw_edit(base, "/process/user/uid", "65536");
	expect("last subordinate id", "");
	rw_edit(base, "/process/user/uid", "65537");
	expect("behind the range", "user");
}
END_TEST

START_TEST(rootless__maps_are_composed)
{
	rootless(true);
	set_maps("[{\"containerID\":0,\"hostID\":1,\"size\":65536}]");
	expect("nomap", "");
	set_maps("[{\"containerID\":0,\"hostID\":0,\"size\":1001}]");
	expect("as the engine's own", "");
	/* podman --userns=keep-id */
	set_maps("[{\"containerID\":0,\"hostID\":1,\"size\":1000},"
		 "{\"containerID\":1000,\"hostID\":0,\"size\":1}]");
	expect("keep-id", "user");
	set_maps("[{\"containerID\":0,\"hostID\":1,\"size\":65537}]");
	expect("more than we have", "rootless");
	set_maps("[{\"containerID\":0,\"hostID\":200000,\"size\":65536}]");
	expect("not ours", "rootless user");
	ck_assert(says(HARD_USER, "mapped nowhere"));
}
END_TEST

START_TEST(rootless__system_accounts_are_no_target)
{
	rootless(true);
	host.uid_map[1] = (struct hard_idmap){ 1, 100, 65436 };
	without_userns();
	expect("uid 1000 is host uid 1099", "user");
}
END_TEST

START_TEST(rootless__limits_on_cgroup_v1)
{
	rootless(false);
	without_userns();
	rw_edit(base, "/linux/resources", NULL);
	rw_edit(base, "/linux/cgroupsPath", NULL);
	expect("nothing asked for", "pids_limit memory_limit cpu_limit");
	ck_assert(says(HARD_PIDS_LIMIT, "rootless engine on cgroup v1"));
	rw_edit(base, "/linux/resources", "{\"devices\":[{\"allow\":true,\"access\":\"rwm\"}]}");
	expect("devices are judged when they are there",
	       "pids_limit memory_limit cpu_limit devices");
}
END_TEST

START_TEST(rootless__limits_can_be_waived)
{
	const struct hard_waiver list[] = {
		{ HARD_PIDS_LIMIT, "default", NULL, "v1 host", "ops", RW_NOW + 1, { "f", 1 } },
		{ HARD_MEMORY_LIMIT, "default", NULL, "v1 host", "ops", RW_NOW + 1, { "f", 2 } },
		{ HARD_CPU_LIMIT, "default", NULL, "v1 host", "ops", RW_NOW, { "f", 3 } },
	};
	struct hard_policy p = *policy;

	p.waivers = list;
	p.n_waivers = AQE_COUNT(list);
	ctx.policy = &p;
	rootless(false);
	without_userns();
	rw_edit(base, "/linux/resources", NULL);
	rw_edit(base, "/linux/cgroupsPath", NULL);
	expect("the third has ended", "cpu_limit");
	ck_assert_int_eq(report.result[HARD_PIDS_LIMIT], HARD_WAIVED);
	ck_assert_ptr_eq(report.waiver[HARD_MEMORY_LIMIT], &list[1]);
}
END_TEST

/* ---- the container ---- */

START_TEST(container_id__cgroup_is_its_own)
{
	ctx.container_id = ID;
	expect("its own", "");
	ctx.container_id = "c1";
	expect("another's", "pids_limit memory_limit cpu_limit");
}
END_TEST

START_TEST(root_path__in_the_bundle_or_the_store)
{
	rw_edit(base, "/root/path", "\"/b/c1/rootfs\"");
	expect("no store's", "readonly_rootfs");
	ctx.bundle = "/b/c1";
	expect("below the bundle", "");
	ctx.bundle = "/b/c";
	expect("beside the bundle", "readonly_rootfs");
	ctx.bundle = "/b/c1/rootfs";
	expect("the bundle itself", "readonly_rootfs");
	ctx.bundle = NULL;
	ctx.image = &image;
	ctx.entry = &policy->images[0];
	expect("compared with the store", "");
}
END_TEST

/* The gate and a start judge a filter alike: frozen, or proved. */
START_TEST(seccomp__frozen_or_proved)
{
	rw_edit(base, "/linux/seccomp/defaultAction", "\"SCMP_ACT_KILL_PROCESS\"");
	rw_edit(base, "/linux/seccomp/defaultErrnoRet", NULL);
	expect("stronger, at the gate", "");
	ctx.host = &host;
	expect("stronger, at a start", "");
	rw_edit(base, "/linux/seccomp/syscalls/-",
		"{\"names\":[\"unshare\"],\"action\":\"SCMP_ACT_ALLOW\"}");
	expect("weaker, at a start", "seccomp");
	ck_assert(says(HARD_SECCOMP, "unshare is let through on x86_64"));
	ctx.host = NULL;
	expect("weaker, at the gate", "seccomp");
	ck_assert_int_eq(aqe_json_set(arena, aqe_json_get(base, "linux"), "seccomp",
				      hard_seccomp_frozen(arena)),
			 0);
	expect("frozen", "");
}
END_TEST

START_TEST(lsm__asked_for_where_the_kernel_has_it)
{
	ctx.host = &host;
	host.apparmor = true;
	expect("no profile", "lsm");
	rw_edit(base, "/process/apparmorProfile", "\"containers-default-0.50.1\"");
	expect("profile", "");
	host.selinux = true;
	expect("no label", "lsm");
	rw_edit(base, "/process/selinuxLabel", "\"system_u:system_r:container_t:s0:c1,c2\"");
	expect("label", "");
}
END_TEST

START_TEST(agent__own_ceilings)
{
	const struct hard_agent *a = hard_agent_default();

	ctx.agent = a;
	rw_edit(base, "/linux/resources/memory",
		aqe_arena_fmt(arena, "{\"limit\":%llu,\"swap\":%llu}",
			      (unsigned long long)a->memory_bytes,
			      (unsigned long long)a->memory_bytes));
	rw_edit(base, "/linux/resources/cpu/quota",
		aqe_arena_fmt(arena, "%u", a->cpus_milli * 100));
	expect("at the ceiling", "");
	rw_edit(base, "/linux/resources/cpu/quota",
		aqe_arena_fmt(arena, "%u", a->cpus_milli * 100 + 1));
	rw_edit(base, "/linux/resources/memory",
		aqe_arena_fmt(arena, "{\"limit\":%llu,\"swap\":%llu}",
			      (unsigned long long)a->memory_bytes + 1,
			      (unsigned long long)a->memory_bytes + 1));
	expect("above", "memory_limit cpu_limit");
}
END_TEST

/* ---- the image ---- */

START_TEST(image__from_the_store)
{
	const char *const digests[] = { policy->images[0].digest };

	ctx.image = &image;
	image.digests = digests;
	image.n_digests = 1;
	expect("no entry", "digest");
	ck_assert(says(HARD_DIGEST, image.image_id));
	ck_assert(says(HARD_DIGEST, "imageId"));
	ctx.entry = &policy->images[0];
	expect("pinned", "");
	rw_edit(base, "/annotations/io.aqe.image.digest", "\"" OTHER "\"");
	expect("the annotation lies", "digest");
	rw_edit(base, "/annotations/io.aqe.image.digest", NULL);
	expect("no annotation needed", "");
	rw_edit(base, "/annotations/io.aqe.image.id", "\"" OTHER "\"");
	expect("the id lies", "digest");
	rw_edit(base, "/annotations/io.aqe.image.id", NULL);
	image.known = false;
	image.why_unknown = "buildah names no image";
	expect("unknown", "digest"); /* root.path still has the shape of a store */
	ck_assert(says(HARD_DIGEST, "buildah names no image"));
}
END_TEST

START_TEST(image__what_the_engine_recorded)
{
	ctx.image = &image;
	ctx.entry = &policy->images[0];
	image.asked_network = "none";
	expect("none", "");
	image.asked_network = "host";
	expect("host", "network");
	image.asked_network = NULL;
	image.asked_privileged = true;
	expect("privileged", "privileged");
}
END_TEST

START_TEST(image__digest_of_the_command_line)
{
	rw_edit(base, "/annotations/io.aqe.image.digest", NULL);
	ctx.image_digest = policy->images[0].digest;
	expect("digest", "");
	ctx.image_digest = policy->images[0].image_id;
	expect("image id", "");
	ctx.image_digest = OTHER;
	expect("not pinned", "digest");
	ctx.image_digest = NULL;
	rw_edit(base, "/annotations/io.aqe.image.id",
		aqe_arena_fmt(arena, "\"%s\"", policy->images[0].image_id));
	expect("annotated id", "");
	rw_edit(base, "/annotations/io.aqe.image.digest", "\"" OTHER "\"");
	expect("a wrong digest beside it", "digest");
}
END_TEST

START_TEST(findings__hold_no_values_of_the_environment)
{
	rw_edit(base, "/process/env", "[\"LD_PRELOAD=hunter2\",\"NVIDIA_X=hunter2\",\"hunter2\"]");
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify(&ctx, base, &report, &err), err);
	ck_assert_uint_ge(report.n_findings, 4);
	for (const struct hard_finding *f = report.first; f; f = f->next)
		ck_assert_ptr_null(strstr(f->found, "hunter2"));
}
END_TEST

/* Whatever runs out of memory is never a pass. */
START_TEST(no_memory__is_an_error)
{
	struct aqe_json *bad = rw_parse_file("tests/corpus/spec/default-runc-spec.json");
	size_t failures = 0;
	int rc = AQE_E_NOMEM;

	for (size_t max = 16; rc < 0 && max < ((size_t)1 << 20); max += 240) {
		AQE_AUTO_ARENA struct aqe_arena *small = aqe_arena_new(max);

		ck_assert_ptr_nonnull(small);
		hard_report_init(&report, small);
		rc = hard_verify(&ctx, bad, &report, &err);
		ck_assert(!hard_report_ok(&report));
		ck_assert(rc == 0 || rc == AQE_E_NOMEM);
		failures += rc < 0;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_gt(failures, 5);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/verify_ctx");
	TCase *c = tcase_create("context");

	tcase_add_checked_fixture(c, setup, rw_teardown);
	tcase_add_test(c, gate__info_document_says_rootless);
	tcase_add_test(c, gate__info_document_and_mappings);
	tcase_add_test(c, rootful__needs_mappings);
	tcase_add_test(c, rootless__agent_lands_in_the_subordinate_range);
	tcase_add_test(c, rootless__maps_are_composed);
	tcase_add_test(c, rootless__system_accounts_are_no_target);
	tcase_add_test(c, rootless__limits_on_cgroup_v1);
	tcase_add_test(c, rootless__limits_can_be_waived);
	tcase_add_test(c, container_id__cgroup_is_its_own);
	tcase_add_test(c, root_path__in_the_bundle_or_the_store);
	tcase_add_test(c, seccomp__frozen_or_proved);
	tcase_add_test(c, lsm__asked_for_where_the_kernel_has_it);
	tcase_add_test(c, agent__own_ceilings);
	tcase_add_test(c, image__from_the_store);
	tcase_add_test(c, image__what_the_engine_recorded);
	tcase_add_test(c, image__digest_of_the_command_line);
	tcase_add_test(c, no_memory__is_an_error);
	tcase_add_test(c, findings__hold_no_values_of_the_environment);
	suite_add_tcase(s, c);
	return unit_run(s);
}
