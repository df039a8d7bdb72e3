/* SPDX-License-Identifier: MIT */
#include "shim/env.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

static const struct {
	const char *entry;
	bool kept;
} ENTRIES[] = {
	{ "PATH=/usr/bin", true },
	{ "HOME=/root", true },
	{ "XDG_RUNTIME_DIR=", true },
	{ "XDG_RUNTIME_DIR=/run/user/1", true },
	{ "TMPDIR=/var/tmp", true },
	{ "LC_ALL=C.UTF-8", true },
	{ "LC_TIME=x=y", true },
	{ "LANG=C", true },
	{ "DBUS_SESSION_BUS_ADDRESS=unix:path=/x", true },
	{ "_OCI_SYNCPIPE=3", true },
	{ "_OCI_STARTPIPE=4", true },
	{ "_CONTAINERS_USERNS_CONFIGURED=done", true },
	{ "_CONTAINERS_ROOTLESS_UID=1001", true },
	{ "LD_PRELOAD=/x.so", false },
	{ "LD_LIBRARY_PATH=/opt/containerd/lib:", false },
	{ "LD_AUDIT=x", false },
	{ "_LIBCONTAINER_INITPIPE=3", false },
	{ "_LIBCONTAINER_CLONED_BINARY=1", false },
	{ "NOTIFY_SOCKET=/run/n", false },
	{ "LISTEN_FDS=1", false },
	{ "LISTEN_PID=1", false },
	{ "LISTEN_FDNAMES=a", false },
	{ "RUN_OCI_SECCOMP_RECEIVER=/x", false },
	{ "RUN_OCI_SECCOMP_PLUGINS=/x", false },
	{ "GCONV_PATH=/x", false },
	{ "GLIBC_TUNABLES=x", false },
	{ "GODEBUG=x", false },
	{ "TTRPC_ADDRESS=/x", false },
	{ "AWS_SECRET_ACCESS_KEY=x", false },
	{ "PATHX=/x", false },
	{ "PAT=/x", false },
	{ "path=/x", false },
	{ "LC=/x", false },
	{ "PATH", false },
	{ "=x", false },
	{ "", false },
};

START_TEST(filter__keeps_the_allowed)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	char copy[64];
	char *envp[2] = { copy, NULL };
	char **out;

	(void)snprintf(copy, sizeof(copy), "%s", ENTRIES[_i].entry);
	out = shim_env_filter(a, envp);
	ck_assert_ptr_nonnull(out);
	ck_assert_pstr_eq(out[0], ENTRIES[_i].kept ? ENTRIES[_i].entry : NULL);
}
END_TEST

START_TEST(filter__keeps_the_first_of_two)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	char one[] = "PATH=/a", two[] = "LD_X=1", three[] = "PATH=/b", four[] = "HOME=/h";
	char *envp[] = { one, two, three, four, NULL };
	char **out = shim_env_filter(a, envp);

	ck_assert_str_eq(out[0], "PATH=/a");
	ck_assert_str_eq(out[1], "HOME=/h");
	ck_assert_ptr_null(out[2]);
	ck_assert_ptr_null(shim_env_filter(a, (char *[]){ NULL })[0]);
	ck_assert_ptr_null(shim_env_filter(a, NULL)[0]);
}
END_TEST

START_TEST(get__tells_empty_from_absent)
{
	char one[] = "XDG_RUNTIME_DIR=", two[] = "HOME=/h", three[] = "HOMER=1";
	char *envp[] = { three, one, two, NULL };

	ck_assert_str_eq(shim_env_get(envp, "XDG_RUNTIME_DIR"), "");
	ck_assert_str_eq(shim_env_get(envp, "HOME"), "/h");
	ck_assert_ptr_null(shim_env_get(envp, "HOM"));
	ck_assert_ptr_null(shim_env_get(NULL, "HOME"));
}
END_TEST

START_TEST(policy_dir__wants_absolute_paths)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	char home[] = "HOME=/h", xdg[] = "XDG_CONFIG_HOME=/c", rel[] = "XDG_CONFIG_HOME=c",
	     empty[] = "HOME=";

	ck_assert_str_eq(shim_env_policy_dir(a, (char *[]){ home, NULL }), "/h/.config/aqe-shim");
	ck_assert_str_eq(shim_env_policy_dir(a, (char *[]){ home, xdg, NULL }), "/c/aqe-shim");
	ck_assert_str_eq(shim_env_policy_dir(a, (char *[]){ rel, home, NULL }),
			 "/h/.config/aqe-shim");
	ck_assert_ptr_null(shim_env_policy_dir(a, (char *[]){ empty, NULL }));
	ck_assert_ptr_null(shim_env_policy_dir(a, (char *[]){ NULL }));
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/env");
	TCase *t = tcase_create("env");

	tcase_add_loop_test(t, filter__keeps_the_allowed, 0, (int)AQE_COUNT(ENTRIES));
	tcase_add_test(t, filter__keeps_the_first_of_two);
	tcase_add_test(t, get__tells_empty_from_absent);
	tcase_add_test(t, policy_dir__wants_absolute_paths);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
