/* SPDX-License-Identifier: MIT */
/* The rewrite where more is known than the document: host, image and waivers. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/rewrite_edit_util.h"

/* ---- at a start: host and image are known ---- */

static struct hard_host host;
static struct oci_identity image;
static const char *const digests[] = {
	"sha256:"
	"1111111111111111111111111111111111111111111111111111111111111111",
	DIGEST
};

static void start_setup(void)
{
	rw_setup();
	host = (struct hard_host){ .cgroup_limits = true,
				   .rlim_nofile_max = 20000,
				   .rlim_nproc_max = 4096,
				   .rlim_core_max = 0 };
	image = (struct oci_identity){ .engine = OCI_ENGINE_PODMAN,
				       .known = true,
				       .image_id = IMAGE_ID,
				       .digests = digests,
				       .n_digests = 2 };
	image.dirs[0] = "/run/containers/storage/overlay-containers/" ID "/userdata";
	image.n_dirs = 1;
	ctx.host = &host;
	ctx.image = &image;
	ctx.entry = &policy->images[0];
	ctx.image_digest = NULL;
	ctx.container_id = ID;
}

START_TEST(start__writes_only_proved_annotations)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	ctx.agent = hard_policy_agent(policy, "qe-test-writer");
	image.label_agent_id = "a-7";
	rw_edit(doc, "/annotations/io.aqe.image.digest", "\"sha256:bad\"");
	rw_edit(doc, "/annotations/io.aqe.image.id", "\"other\"");
	rw_edit(doc, "/annotations/io.aqe.agent-type", "\"qe-security-scanner\"");
	doc = rw_rewrite_ok(doc);
	rw_check_value(doc, "/annotations/io.aqe.image.digest", "\"" DIGEST "\"");
	rw_check_value(doc, "/annotations/io.aqe.image.id", "\"" IMAGE_ID "\"");
	rw_check_value(doc, "/annotations/io.aqe.agent-type", "\"qe-test-writer\"");
	rw_check_value(doc, "/annotations/io.aqe.agent-id", "\"a-7\"");
}
END_TEST

START_TEST(start__refuses_an_unknown_or_unpinned_image)
{
	image.known = false;
	image.why_unknown = "buildah names no image";
	ck_assert_ptr_null(rw_rewrite(rw_parse_file(RW_BASE)));
	ck_assert_str_eq(rw_failed(&report), "digest");
	image.known = true;
	ctx.entry = NULL;
	ck_assert_ptr_null(rw_rewrite(rw_parse_file(RW_BASE)));
	ck_assert_str_eq(rw_failed(&report), "digest");
}
END_TEST

START_TEST(start__believes_the_engines_record)
{
	image.asked_network = "host";
	ck_assert_ptr_null(rw_rewrite(rw_parse_file(RW_BASE)));
	ck_assert_str_eq(rw_failed(&report), "network");
	image.asked_network = "none";
	image.asked_privileged = true;
	ck_assert_ptr_null(rw_rewrite(rw_parse_file(RW_BASE)));
	ck_assert_str_eq(rw_failed(&report), "privileged");
}
END_TEST

/* A path that leads to the host's network namespace, by any name. */
START_TEST(start__sees_the_hosts_network_by_inode)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "\"/proc/%d/ns/net\"", (int)getpid());
	ck_assert_int_eq(stat("/proc/self/ns/net", &st), 0);
	host.ns_net_dev = st.st_dev;
	host.ns_net_ino = st.st_ino;
	rw_edit(doc, "/linux/namespaces/1/path", path);
	ck_assert_ptr_null(rw_rewrite(doc));
	ck_assert_str_eq(rw_failed(&report), "network");
}
END_TEST

START_TEST(start__makes_an_own_cgroup_where_none_is_given)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_edit(doc, "/linux/cgroupsPath", NULL);
	rw_check_value(rw_rewrite_ok(doc), "/linux/cgroupsPath", "\"/aqe-shim/" ID "\"");
	doc = rw_parse_file(RW_BASE);
	rw_check_value(rw_rewrite_ok(doc), "/linux/cgroupsPath",
		       "\"/libpod_parent/libpod-" ID "\"");
}
END_TEST

START_TEST(start__stays_below_the_hosts_own_limits)
{
	struct aqe_json *doc = rw_parse_file(RW_BASE);

	rw_edit(doc, "/process/rlimits",
		"[{\"type\":\"RLIMIT_NOFILE\",\"hard\":65536,\"soft\":30000},"
		"{\"type\":\"RLIMIT_NPROC\",\"hard\":65536,\"soft\":1}]");
	rw_check_value(rw_rewrite_ok(doc), "/process/rlimits",
		       "[{\"type\":\"RLIMIT_NOFILE\",\"hard\":20000,\"soft\":20000},"
		       "{\"type\":\"RLIMIT_NPROC\",\"hard\":4096,\"soft\":1}]");
}
END_TEST

/* ---- waivers ---- */

/* A policy like the corpus's, with waivers for these properties. */
static void waive(const char *const *props)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	char path[] = "/tmp/aqe-test-rewrite-XXXXXX";

	aqe_buf_puts(&b, "{\"version\":1,\"images\":[{\"name\":\"i\",\"digest\":\"" DIGEST
			 "\",\"imageId\":\"" IMAGE_ID "\"}],\"mounts\":["
			 "{\"source\":\"/srv/aqe/workspace\",\"destination\":\"/workspace\"}],"
			 "\"waivers\":[");
	for (size_t i = 0; props[i]; i++)
		aqe_buf_addf(&b,
			     "%s{\"property\":\"%s\",\"image\":\"i\",\"reason\":\"r\","
			     "\"owner\":\"o\",\"expires\":\"2099-01-01\"}",
			     i ? "," : "", props[i]);
	aqe_buf_puts(&b, "]}");
	const int fd = mkostemp(path, O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, b.p, b.len), (ssize_t)b.len);
	(void)close(fd);
	hard_policy_free(policy);
	policy = NULL;
	const int rc = hard_policy_load_file(path, &policy, &err);

	(void)unlink(path);
	ck_assert_ok(rc, err);
	ctx.policy = policy;
	ctx.entry = &policy->images[0];
	ctx.image_digest = ctx.image ? NULL : DIGEST;
}

#define WAIVE(...) waive((const char *const[]){ __VA_ARGS__, NULL })

/* What is waived stays as it was asked for; everything else is still rewritten. */
START_TEST(waiver__keeps_what_was_asked)
{
	static const struct {
		const char *prop;
		struct edit edit;
		const char *pointer, *want;
	} rows[] = {
		{ "pids_limit",
		  { "/linux/resources/pids/limit", "2000" },
		  "/linux/resources/pids/limit",
		  "2000" },
		{ "memory_limit",
		  { "/linux/resources/memory", "{\"limit\":9,\"swap\":-1}" },
		  "/linux/resources/memory",
		  "{\"limit\":9,\"swap\":-1}" },
		{ "readonly_rootfs", { "/root/readonly", "false" }, "/root/readonly", "false" },
		{ "seccomp",
		  { "/linux/seccomp", "{\"defaultAction\":\"SCMP_ACT_ALLOW\"}" },
		  "/linux/seccomp/defaultAction",
		  "\"SCMP_ACT_ALLOW\"" },
		{ "user", { "/process/user/umask", "0" }, "/process/user/umask", "0" },
		{ "devices",
		  { "/linux/devices",
		    "[{\"path\":\"/dev/fuse\",\"type\":\"c\",\"major\":10,\"minor\":229}]" },
		  "/linux/devices/0/path",
		  "\"/dev/fuse\"" },
		{ "rlimits",
		  { "/process/rlimits", "[{\"type\":\"RLIMIT_CORE\",\"hard\":1,\"soft\":1}]" },
		  "/process/rlimits/0/hard",
		  "1" },
		{ "sysctl",
		  { "/linux/sysctl", "{\"net.core.somaxconn\":\"9\"}" },
		  "/linux/sysctl",
		  "{\"net.core.somaxconn\":\"9\"}" },
		{ "masked_paths", { "/linux/maskedPaths", "[]" }, "/linux/maskedPaths", "[]" },
		{ "lsm",
		  { "/process/apparmorProfile", "\"unconfined\"" },
		  "/process/apparmorProfile",
		  "\"unconfined\"" },
		{ "mounts",
		  { "/mounts/-", BIND("/srv/data", "/data") },
		  "/mounts/9",
		  "{\"destination\":\"/data\",\"type\":\"bind\",\"source\":\"/srv/data\","
		  "\"options\":[\"rbind\",\"rw\",\"rprivate\",\"nosuid\",\"nodev\"]}" },
		{ "rootless",
		  { "/linux/namespaces/5", NULL },
		  "/linux/namespaces/5",
		  "{\"type\":\"cgroup\"}" },
	};

	for (size_t i = 0; i < AQE_COUNT(rows); i++) {
		struct aqe_json *doc = rw_parse_file(RW_BASE);

		WAIVE(rows[i].prop);
		if (aqe_str_eq(rows[i].prop, "rootless")) {
			rw_edit(doc, "/linux/uidMappings", NULL);
			rw_edit(doc, "/linux/gidMappings", NULL);
		}
		rw_edit(doc, "/mounts/10", NULL); /* the shorter policy has one mount */
		rw_apply(doc, &rows[i].edit);
		rw_edit(doc, "/process/noNewPrivileges", NULL);
		doc = rw_rewrite(doc);
		ck_assert_msg(doc != NULL, "%s: refused for %s", rows[i].prop, rw_failed(&report));
		rw_check_value(doc, rows[i].pointer, rows[i].want);
		rw_check_value(doc, "/process/noNewPrivileges", "true");
		hard_report_init(&report, arena);
		ck_assert_ok(hard_verify(&ctx, doc, &report, &err), err);
		ck_assert_msg(hard_report_ok(&report), "%s: %s", rows[i].prop, rw_failed(&report));
	}
}
END_TEST

START_TEST(waiver__never_covers_sockets_or_the_kernels_places)
{
	static const struct {
		const char *mount, *props;
	} rows[] = {
		{ BIND("/run/docker.sock", "/x"), "engine_socket" },
		{ BIND("/x", "/proc"), "mounts" },
		{ BIND("/x", "/workspace"), "mounts" },
	};

	WAIVE("mounts");
	for (size_t i = 0; i < AQE_COUNT(rows); i++) {
		struct aqe_json *doc = rw_parse_file(RW_BASE);

		rw_edit(doc, "/mounts/10", NULL);
		rw_edit(doc, "/mounts/-", rows[i].mount);
		ck_assert_ptr_null(rw_rewrite(doc));
		ck_assert_str_eq(rw_failed(&report), rows[i].props);
	}
}
END_TEST

/* Rootless on cgroup v1: limits cannot be had. Refused, or left out whole with waivers. */
START_TEST(start__without_cgroup_limits)
{
	struct aqe_json *doc = rw_parse_file("tests/samples/podman-rootless-hardened.json");
	struct aqe_json *mounts = aqe_json_get(doc, "mounts");

	for (struct aqe_json *m = mounts->first, *next; m; m = next) {
		next = m->next;
		if (aqe_str_eq(aqe_json_str(aqe_json_get(m, "destination")), "/vol") ||
		    aqe_str_eq(aqe_json_str(aqe_json_get(m, "type")), "bind"))
			aqe_json_detach(m);
	}
	host.in_userns = true;
	host.cgroup_limits = false;
	host.n_uid = host.n_gid = 2;
	host.uid_map[0] = host.gid_map[0] = (struct hard_idmap){ 0, 1001, 1 };
	host.uid_map[1] = host.gid_map[1] = (struct hard_idmap){ 1, 100000, 65536 };
	ck_assert_ptr_null(rw_rewrite(doc));
	ck_assert_str_eq(rw_failed(&report), "pids_limit memory_limit cpu_limit");
	WAIVE("pids_limit", "memory_limit", "cpu_limit");
	doc = rw_rewrite_ok(doc);
	rw_check_value(doc, "/linux/resources", NULL);
	rw_check_value(doc, "/linux/cgroupsPath", NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_rewrite_start");
	TCase *start = tcase_create("start"), *waivers = tcase_create("waivers");

	tcase_add_checked_fixture(start, start_setup, rw_teardown);
	tcase_add_test(start, start__writes_only_proved_annotations);
	tcase_add_test(start, start__refuses_an_unknown_or_unpinned_image);
	tcase_add_test(start, start__believes_the_engines_record);
	tcase_add_test(start, start__sees_the_hosts_network_by_inode);
	tcase_add_test(start, start__makes_an_own_cgroup_where_none_is_given);
	tcase_add_test(start, start__stays_below_the_hosts_own_limits);
	tcase_add_test(start, start__without_cgroup_limits);
	suite_add_tcase(s, start);
	tcase_add_checked_fixture(waivers, rw_setup, rw_teardown);
	tcase_add_test(waivers, waiver__keeps_what_was_asked);
	tcase_add_test(waivers, waiver__never_covers_sockets_or_the_kernels_places);
	suite_add_tcase(s, waivers);
	return unit_run(s);
}
