/* SPDX-License-Identifier: MIT */
/* Inspect and info documents: kinds, shapes, types, unknown members. */
#include <check.h>

#include "tests/unit/inspect_util.h"

static const struct {
	const char *text;
	enum oci_inspect_kind kind;
	const char *tool;
} kinds[] = {
	{ "[]", OCI_INSPECT_NONE, NULL },
	{ "{}", OCI_INSPECT_NONE, NULL },
	{ "[1]", OCI_INSPECT_NONE, NULL },
	{ "[[{\"HostConfig\":{}}]]", OCI_INSPECT_NONE, NULL },
	{ "{\"ociVersion\":\"1.0.2\",\"mounts\":[]}", OCI_INSPECT_NONE, NULL },
	{ "{\"ociVersion\":\"1.0.2\",\"HostConfig\":{}}", OCI_INSPECT_NONE, NULL },
	{ "[{\"HostConfig\":{},\"ImageDigest\":\"\"}]", OCI_INSPECT_PODMAN_CONTAINER, NULL },
	{ "[{\"Mounts\":[],\"Pod\":\"\"}]", OCI_INSPECT_PODMAN_CONTAINER, NULL },
	{ "{\"HostConfig\":{},\"Pod\":\"\"}", OCI_INSPECT_PODMAN_CONTAINER, NULL },
	{ "[{\"HostConfig\":{},\"Platform\":\"linux\"}]", OCI_INSPECT_DOCKER_CONTAINER, NULL },
	{ "[{\"HostConfig\":{},\"Image\":\"sha256:00\"}]", OCI_INSPECT_DOCKER_CONTAINER, NULL },
	{ "[{\"HostConfig\":{},\"Image\":\"0011\"}]", OCI_INSPECT_PODMAN_CONTAINER, NULL },
	/* the first object with a kind counts */
	{ "[{},{\"HostConfig\":{},\"Pod\":\"\"}]", OCI_INSPECT_PODMAN_CONTAINER, NULL },
	{ "[{\"RepoTags\":[],\"Digest\":\"\"}]", OCI_INSPECT_PODMAN_IMAGE, NULL },
	{ "[{\"RepoTags\":[],\"DockerVersion\":\"\"}]", OCI_INSPECT_DOCKER_IMAGE, NULL },
	{ "[{\"RepoTags\":[],\"Id\":\"sha256:00\"}]", OCI_INSPECT_DOCKER_IMAGE, NULL },
	{ "{\"host\":{}}", OCI_INSPECT_PODMAN_INFO, NULL },
	{ "{\"SecurityOptions\":[]}", OCI_INSPECT_DOCKER_INFO, NULL },
	{ "{\"ServerVersion\":\"20.10\"}", OCI_INSPECT_DOCKER_INFO, NULL },
	{ "{\"status\":{},\"info\":{}}", OCI_INSPECT_FOREIGN, "crictl" },
	{ "[{\"ID\":\"x\",\"Spec\":{},\"Snapshotter\":\"overlayfs\"}]", OCI_INSPECT_FOREIGN,
	  "nerdctl (native mode) or ctr" },
	{ "[{\"HostConfig\":{},\"Platform\":\"linux\",\"Config\":{\"Labels\":{\"nerdctl/name\":"
	  "\"x\"}}}]",
	  OCI_INSPECT_FOREIGN, "nerdctl" },
	{ "{\"FromImage\":\"x\",\"Docker\":{}}", OCI_INSPECT_FOREIGN, "buildah" },
	{ "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}", OCI_INSPECT_FOREIGN, "kubectl" },
};

START_TEST(oci_inspect_kind__by_content)
{
	const char *tool = NULL;
	const struct aqe_json *root = in_parse(kinds[_i].text, strlen(kinds[_i].text));

	ck_assert_int_eq(oci_inspect_kind(root, &tool), kinds[_i].kind);
	ck_assert_pstr_eq(tool, kinds[_i].tool);
}
END_TEST

static const struct {
	const char *text;
	enum oci_inspect_kind kind;
	bool ok;
} shapes[] = {
	{ "[{}]", OCI_INSPECT_PODMAN_CONTAINER, true },
	{ "[]", OCI_INSPECT_PODMAN_CONTAINER, false },
	{ "[{},{}]", OCI_INSPECT_DOCKER_CONTAINER, false },
	{ "{}", OCI_INSPECT_DOCKER_CONTAINER, false },
	{ "{}", OCI_INSPECT_PODMAN_IMAGE, false },
	{ "[{}]", OCI_INSPECT_DOCKER_IMAGE, true },
	{ "{}", OCI_INSPECT_PODMAN_INFO, true },
	{ "[{}]", OCI_INSPECT_DOCKER_INFO, false },
};

START_TEST(oci_inspect_shape__one_object_in_an_array)
{
	const struct aqe_json *root = in_parse(shapes[_i].text, strlen(shapes[_i].text));
	const int rc = oci_inspect_shape(root, shapes[_i].kind, &err);

	if (shapes[_i].ok)
		ck_assert_ok(rc, err);
	else
		ck_assert_fault(rc, AQE_E_MALFORMED, err, oci_inspect_name(shapes[_i].kind));
}
END_TEST

/* One edit of a good document; `part` NULL: still the right type. */
static const struct {
	const char *file, *pointer, *text, *part;
} types[] = {
	{ DOCKER, "/HostConfig/PidsLimit", "null", NULL },
	{ PODMAN, "/HostConfig/PidsLimit", "null", "/HostConfig/PidsLimit' is null" },
	{ PODMAN, "/HostConfig/PidsLimit", "512.0", "is no whole number" },
	{ PODMAN, "/HostConfig/PidsLimit", "5e2", "is no whole number" },
	{ PODMAN, "/HostConfig/PidsLimit", "\"512\"", "is string, not a whole number" },
	{ DOCKER, "/HostConfig/OomKillDisable", "null", NULL },
	{ PODMAN, "/HostConfig/OomKillDisable", "null", "is null" },
	{ DOCKER, "/HostConfig/CapDrop", "null", NULL },
	{ DOCKER, "/HostConfig/CapDrop", "[1]", "/HostConfig/CapDrop/0' is" },
	{ DOCKER, "/HostConfig/CapDrop", "{}", "is object, not a list of strings" },
	{ DOCKER, "/HostConfig/Binds", "null", NULL },
	{ PODMAN, "/HostConfig/Binds", "null", "is null" },
	{ PODMAN, "/HostConfig/Tmpfs", "{\"/tmp\":1}", "/HostConfig/Tmpfs/~1tmp" },
	{ PODMAN, "/HostConfig/IDMappings/UidMap", "\"0:1:2\"", "UidMap" },
	{ DOCKER, "/HostConfig/Ulimits", "[{\"Name\":1}]", "/Ulimits/0/Name" },
	{ DOCKER, "/HostConfig/Mounts", "[{\"Type\":1}]", "/Mounts/0/Type" },
	{ DOCKER, "/HostConfig/Mounts", "[{\"TmpfsOptions\":{\"SizeBytes\":\"1\"}}]", "SizeBytes" },
	{ DOCKER, "/HostConfig", "[]", "HostConfig' is array" },
	{ DOCKER, "/HostConfig", "null", "HostConfig' is null" },
	{ DOCKER, "/Config", "null", "Config' is null" },
	{ DOCKER, "/Mounts", "[1]", "/Mounts/0" },
	{ DOCKER, "/NetworkSettings/Networks", "{\"none\":1}", "/Networks/none" },
	{ PODMAN, "/Config/Entrypoint", "[\"sh\"]", NULL }, /* podman 5 */
	{ PODMAN, "/Config/StopSignal", "\"SIGTERM\"", NULL },
	{ PODMAN, "/EffectiveCaps", "\"\"", "EffectiveCaps" },
	{ IMAGE, "/Config", "[]", "Config' is array" },
	{ IMAGE, "/Config/Env", "[1]", "/Config/Env/0" },
	{ IMAGE, "/Digest", "null", "Digest" },
	{ PODMAN_INFO, "/host/security/rootless", "\"true\"", "rootless" },
	{ PODMAN_INFO, "/host/security", "1", "security" },
	{ DOCKER_INFO, "/SecurityOptions", "\"name=rootless\"", "SecurityOptions" },
	{ DOCKER_INFO, "/SecurityOptions", "[1]", "/SecurityOptions/0" },
};

START_TEST(oci_inspect_check__types)
{
	struct aqe_json *object = in_object(in_parse_file(types[_i].file));
	const enum oci_inspect_kind kind = oci_inspect_object(object, NULL);
	int rc;

	ck_assert_ok(oci_inspect_check(kind, object, &err), err);
	rw_edit(object, types[_i].pointer, types[_i].text);
	rc = oci_inspect_check(kind, object, &err);
	if (types[_i].part)
		ck_assert_fault(rc, AQE_E_MALFORMED, err, types[_i].part);
	else
		ck_assert_ok(rc, err);
}
END_TEST

static const struct {
	const char *file, *pointer;
	const char *near; /* NULL: unknown; "": known */
} members[] = {
	{ DOCKER, "/HostConfig/CPUQuota", "CpuQuota" },
	{ PODMAN, "/HostConfig/CPUQuota", "CpuQuota" },
	{ DOCKER, "/HostConfig/FutureOption", NULL },
	{ DOCKER, "/HostConfig/CgroupConf", NULL },     /* podman's */
	{ PODMAN, "/HostConfig/DeviceRequests", NULL }, /* docker's */
	{ PODMAN, "/HostConfig/AutoRemoveImage", "" },  /* 5.5 */
	{ PODMAN, "/lockNumber", "" },                  /* 5.0 */
	{ PODMAN, "/LockNumber", "lockNumber" },
	{ DOCKER, "/ImageManifestDescriptor", "" }, /* 28 */
	{ DOCKER, "/HostConfig/Annotations", "" },  /* 25 */
	{ DOCKER, "/NetworkSettings/Networks/none/GwPriority", "" },
	{ DOCKER, "/NetworkSettings/Networks/none/Extra", NULL },
	{ DOCKER, "/Mounts/0/Extra", NULL },
	{ DOCKER, "/Config/privileged", NULL },
	{ DOCKER, "/State/Anything", "" }, /* not looked at */
	{ IMAGE, "/Config/Extra", NULL },
	{ IMAGE, "/Extra", NULL },
	{ PODMAN_INFO, "/host/Extra", "" }, /* info documents are open */
};

static int note_issue(void *arg, const struct oci_issue *issue)
{
	*(struct oci_issue *)arg = *issue;
	return 1;
}

START_TEST(oci_inspect_issues__members)
{
	struct aqe_json *object = in_object(in_parse_file(members[_i].file));
	const enum oci_inspect_kind kind = oci_inspect_object(object, NULL);
	struct oci_issue issue = { 0 };
	int rc;

	ck_assert_int_eq(oci_inspect_issues(kind, object, note_issue, &issue), 0);
	rw_edit(object, members[_i].pointer, "null");
	rc = oci_inspect_issues(kind, object, note_issue, &issue);
	if (members[_i].near && !members[_i].near[0]) {
		ck_assert_int_eq(rc, 0);
		return;
	}
	ck_assert_int_eq(rc, 1);
	ck_assert_str_eq(issue.at->key, strrchr(members[_i].pointer, '/') + 1);
	ck_assert_pstr_eq(issue.near, members[_i].near);
	ck_assert_int_eq(issue.kind, members[_i].near ? OCI_ISSUE_CASE : OCI_ISSUE_UNKNOWN);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("oci/inspect");
	TCase *t = tcase_create("inspect");

	tcase_add_checked_fixture(t, in_setup, rw_teardown);
	tcase_add_loop_test(t, oci_inspect_kind__by_content, 0, AQE_COUNT(kinds));
	tcase_add_loop_test(t, oci_inspect_shape__one_object_in_an_array, 0, AQE_COUNT(shapes));
	tcase_add_loop_test(t, oci_inspect_check__types, 0, AQE_COUNT(types));
	tcase_add_loop_test(t, oci_inspect_issues__members, 0, AQE_COUNT(members));
	suite_add_tcase(s, t);
	return unit_run(s);
}
