/* SPDX-License-Identifier: MIT */
/* aqe doctor egress: the clients judged under policies, root folders, a host with faults. */
#include "shim/aqe/doctor.h"

#include <sys/stat.h>
#include <unistd.h>

#include "hardening/rules.h"
#include "shim/aqe/cmds.h"
#include "shim/net_policy.h"
#include "tests/fakes/real_redis.h"
#include "tests/unit/cmd_util.h"

#define NET(members) "{\"version\":1,\"network\":{" members "}}"
#define OPEN         NET("\"agents\":{\"t\":{\"access\":\"whitelisted\",\"domains\":[\"a.example\"]}}")
#define NO_FRONTS                                                                       \
	NET("\"agents\":{\"t\":{\"access\":\"whitelisted\",\"domains\":[\"a.example\"," \
	    "\"db.example:5432\"],\"transparent\":false,\"socks\":false}}")
#define SHUT NET("\"agents\":{\"t\":{\"access\":\"isolated\",\"domains\":[\"a.example\"]}}")
#define PORT NET("\"agents\":{\"t\":{\"access\":\"whitelisted\",\"domains\":[\"a.example:8443\"]}}")

static int run(const char *doc, const char *const *more)
{
	const char *words[16] = { "egress", "--type", "t", "--policy",
				  cmd_file("policy.json", doc, strlen(doc)) };

	for (size_t n = 5; *more; more++)
		words[n++] = *more;
	return cmd_run(shim_cmd_doctor, "doctor", words);
}
#define RUN(policy, ...) run(policy, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define ck_said(part)    ck_assert_msg(cmd_said(part), "not said: '%s'", part)

static const struct {
	const char *policy, *says;
} clients[] = {
	{ OPEN, "  ok   curl: by proxy variables;" },
	{ OPEN, "  ok   java: by JAVA_TOOL_OPTIONS;" },
	{ OPEN, "  ok   python aiohttp: by DNS stub, listeners on 80 and 443;" },
	{ OPEN, "  ok   node fetch: by DNS stub, listeners on 80 and 443;" },
	{ OPEN, "  ok   clients of SOCKS5: by SOCKS5 on 127.0.0.1:1080;" },
	{ OPEN, "  fail ssh, git over ssh: no proxy variable leads ssh; fix: use https://" },
	{ OPEN, "  fail psql: another port, and no proxy variable;" },
	{ OPEN, "  fail QUIC, HTTP/3, other UDP: no listener takes UDP but the DNS stub;" },
	{ OPEN, "  fail an address in place of a name: no entry is an address;" },
	{ NO_FRONTS, "  ok   curl: by proxy variables;" },
	{ NO_FRONTS, "  fail python aiohttp: heeds no proxy variable, and the type's "
		     "'transparent' is off; fix: 'transparent'" },
	{ NO_FRONTS, "  warn node fetch: by NODE_USE_ENV_PROXY; versions before 22.21, and 23," },
	{ NO_FRONTS, "  fail clients of SOCKS5: the type's 'socks' is off;" },
	{ NO_FRONTS, "  warn psql: the policy has an entry for its port, but" },
	{ NET("\"agents\":{\"t\":{\"access\":\"whitelisted\",\"domains\":[\"9.9.9.9\"]}}"),
	  "  ok   an address in place of a name: by proxy variables;" },
	{ SHUT, "  fail curl: the type is isolated: only lo;" },
	{ SHUT, "  fail ssh, git over ssh: the type is isolated: only lo;" },
	{ PORT, "  fail curl: no entry of the policy admits port 80 or 443;" },
	{ "{\"version\":1}", "  fail curl: the policy has no section network: only lo;" },
	{ "{\"version\":1}", "  warn policy: no section network: every container has only lo;" },
	{ OPEN, "[guess 2026-12-01: " },
};

START_TEST(clients__are_judged_by_the_policy_of_the_type)
{
	ck_assert_int_ne(RUN(clients[_i].policy), SHIM_EXIT_USAGE);
	ck_said(clients[_i].says);
}
END_TEST

/* What the table takes for granted; curl and wget need the lower case. */
START_TEST(roads__are_variables_that_the_shim_sets)
{
	static const char *const wanted[] = {
		"http_proxy=http://127.0.0.1:3128",
		"https_proxy=http://127.0.0.1:3128",
		"HTTP_PROXY=http://127.0.0.1:3128",
		"HTTPS_PROXY=http://127.0.0.1:3128",
		"grpc_proxy=http://127.0.0.1:3128",
		"ALL_PROXY=http://127.0.0.1:3128",
		"NODE_USE_ENV_PROXY=1",
	};
	bool java = false;

	for (size_t i = 0; i < AQE_COUNT(wanted); i++)
		ck_assert_msg(aqe_str_in(wanted[i], HARD_EGRESS_ENV), "%s", wanted[i]);
	for (size_t i = 0; HARD_EGRESS_ENV[i]; i++)
		java |= strncmp(HARD_EGRESS_ENV[i], "JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=127.0.0.1 ",
				45) == 0;
	ck_assert(java);
}
END_TEST

/* ---- a root folder ---- */

static void make(const char *path)
{
	const char *whole = cmd_path(path);
	char dir[256];

	for (const char *at = whole + strlen(cmd_dir) + 1; (at = strchr(at, '/')); at++) {
		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(at - whole), whole);
		(void)mkdir(dir, 0755);
	}
	(void)cmd_file(path, "x", 1);
}

static void node_of(const char *text)
{
	make("root/usr/local/bin/node");
	make("root/usr/local/include/node/node_version.h");
	(void)cmd_file("root/usr/local/include/node/node_version.h", text, strlen(text));
}

START_TEST(root__marks_what_is_there_and_follows_no_link)
{
	make("root/usr/bin/curl");
	make("root/usr/local/lib/python3.12/site-packages/requests/__init__.py");
	make("outside/wget");
	ck_assert_int_eq(symlink("/etc/alternatives/java", cmd_path("root/usr/bin/java")), 0);
	ck_assert_int_eq(symlink(cmd_path("outside"), cmd_path("root/usr/local/bin")), 0);
	(void)RUN(OPEN, "--rootfs", cmd_path("root"));
	ck_said("which is set; present [");
	ck_said("JAVA_TOOL_OPTIONS; reads JAVA_TOOL_OPTIONS; prints a line about it on stderr; "
		"present [");
	ck_said("python requests: by proxy variables; present [");
	ck_said("which are set; not in this root [");
	ck_said("go net/http: by proxy variables; cannot be told from a root [");
	ck_assert_int_eq(RUN(OPEN, "--rootfs", cmd_path("none")), SHIM_EXIT_USAGE);
}
END_TEST

static const struct {
	const char *text, *says;
} nodes[] = {
	{ "#define NODE_MAJOR_VERSION 20\n#define NODE_MINOR_VERSION 20\n",
	  "fail node fetch: this version ignores every proxy variable, and 'transparent' is off; "
	  "fix: Node 22.21, 24 or later, or 'transparent' in the policy; present (version 20.20)" },
	{ "#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 20\n", "fail node fetch: " },
	{ "#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 21\n",
	  "ok   node fetch: by NODE_USE_ENV_PROXY; present (version 22.21)" },
	{ "#define NODE_MAJOR_VERSION 23\n#define NODE_MINOR_VERSION 99\n", "fail node fetch: " },
	{ "#define NODE_MAJOR_VERSION 24\n#define NODE_MINOR_VERSION 0\n", "ok   node fetch: " },
	{ "#define NODE_MAJOR_VERSION 99999999999\n", "warn node fetch: " },
	{ "nothing", "warn node fetch: by NODE_USE_ENV_PROXY; " },
};

START_TEST(root__tells_the_version_of_node)
{
	node_of(nodes[_i].text);
	(void)RUN(NO_FRONTS, "--rootfs", cmd_path("root"));
	ck_said(nodes[_i].says);
}
END_TEST

START_TEST(json__has_each_client_and_counts_those_that_are_there)
{
	const struct aqe_json *root, *list;
	size_t n = 0;

	make("root/usr/bin/ssh");
	ck_assert_int_eq(RUN(OPEN, "--rootfs", cmd_path("root"), "--format", "json"),
			 SHIM_EXIT_FAILED);
	root = rw_value(aqe_buf_str(&out));
	ck_assert_str_eq(aqe_json_str(aqe_json_get(root, "type")), "t");
	list = aqe_json_get(root, "clients");
	for (const struct aqe_json *v = list->first; v; v = v->next, n++) {
		ck_assert_str_eq(aqe_json_str(aqe_json_get(v, "client")),
				 SHIM_DOCTOR_CLIENTS[n].name);
		ck_assert_ptr_nonnull(aqe_json_str(aqe_json_get(v, "source")));
		ck_assert_ptr_nonnull(aqe_json_str(aqe_json_get(v, "date")));
	}
	ck_assert_uint_eq(n, SHIM_DOCTOR_CLIENTS_COUNT);
	ck_assert_ptr_nonnull(aqe_json_at(root, "/host/0/found"));
}
END_TEST

/* ---- the host ---- */

static struct shim_doctor_rows rows;

static const struct shim_doctor_row *row(const char *what)
{
	for (size_t i = 0; i < rows.n; i++) {
		if (strcmp(rows.row[i].what, what) == 0)
			return &rows.row[i];
	}
	ck_abort_msg("no row '%s'", what);
	return NULL;
}

static void look(const char *egress, const char *proc, const char *doc)
{
	struct hard_policy *p = NULL;
	struct netpol_policy *net = NULL;

	ck_assert_ok(hard_policy_load_file(cmd_file("p.json", doc, strlen(doc)), &p, &err), err);
	ck_assert_ok(shim_net_policy_build(p, &net, &err), err);
	rows = (struct shim_doctor_rows){ .a = arena };
	shim_doctor_host(&(struct shim_doctor_host){ egress, proc, net, "t" }, &rows);
	netpol_policy_unref(net);
	hard_policy_free(p);
}

#define ck_row(name, wanted, part)                                                     \
	do {                                                                           \
		ck_assert_int_eq(row(name)->state, wanted);                            \
		ck_assert_msg(strstr(row(name)->found, part), "%s", row(name)->found); \
		ck_assert_int_eq(row(name)->fix != NULL, (wanted) != SHIM_DOCTOR_OK);  \
	} while (0)

START_TEST(host__with_faults_says_which)
{
	make("proc/self/ns/net");
	make("proc/self/ns/user");
	make("proc/sys/user/max_net_namespaces");
	make("proc/sys/kernel/seccomp/actions_avail");
	(void)cmd_file("proc/sys/user/max_net_namespaces", "0\n", 2);
	look(cmd_path("none"), cmd_path("proc"), OPEN);
	ck_row("aqe-egress", SHIM_DOCTOR_FAIL, "No such file");
	ck_row("net namespaces", SHIM_DOCTOR_FAIL, "max_net_namespaces is 0");
	ck_row("seccomp", SHIM_DOCTOR_FAIL, "not available");
	ck_row("pidfd_open", SHIM_DOCTOR_OK, "works");
	make("plain");
	ck_assert_int_eq(chmod(cmd_path("plain"), 0644), 0);
	look(cmd_path("plain"), cmd_path("nowhere"), OPEN);
	ck_row("aqe-egress", SHIM_DOCTOR_FAIL, "cannot be executed");
	ck_row("proc", SHIM_DOCTOR_FAIL, "nowhere");
}
END_TEST

START_TEST(host__reads_credentials_and_asks_the_store)
{
	const char *key = cmd_file("key", "0123456789\n", 11);
	const char *doc = aqe_arena_fmt(
		arena,
		NET("\"cluster\":{\"address\":\"%s\"},\"gateways\":{\"g\":{\"upstream\":"
		    "\"https://a.example\",\"credentialFile\":\"%s\"}},\"agents\":{\"t\":{"
		    "\"access\":\"whitelisted\",\"domains\":[\"a.example\"]}}"),
		cmd_path("no.sock"), key);

	ck_assert_int_eq(chmod(key, 0600), 0);
	look("/bin/sh", "/proc", doc);
	ck_row("gateway g", SHIM_DOCTOR_OK, "credential in ");
	ck_row("cluster", SHIM_DOCTOR_FAIL, "no.sock: ");
	for (size_t i = 0; i < rows.n; i++)
		ck_assert_ptr_null(strstr(rows.row[i].found, "0123456789"));
	ck_assert_int_eq(chmod(key, 0644), 0);
	look("/bin/sh", "/proc", doc);
	ck_row("gateway g", SHIM_DOCTOR_FAIL, "read");
	ck_assert_int_eq(unlink(key), 0);
	look("/bin/sh", "/proc", doc);
	ck_row("gateway g", SHIM_DOCTOR_FAIL, "No such file");
}
END_TEST

START_TEST(host__asks_a_store_over_tcp)
{
	struct real_redis server = { .port = 0 };
	const char *doc;

	if (!real_redis_start(&server)) {
		ck_assert_ptr_null(getenv("AQE_TESTS_MUST_RUN"));
		return;
	}
	doc = aqe_arena_fmt(arena, NET("\"cluster\":{\"address\":\"127.0.0.1:%d\"}"), server.port);
	look("/bin/sh", "/proc", doc);
	ck_row("cluster", SHIM_DOCTOR_OK, " answers");
	real_redis_stop(&server);
	look("/bin/sh", "/proc", doc);
	ck_row("cluster", SHIM_DOCTOR_FAIL, "each container has its own limit alone");
}
END_TEST

START_TEST(policy__that_does_not_load_is_a_failing_line)
{
	ck_assert_int_eq(RUN(NET("\"agents\":{\"t\":{\"domains\":[\"*.com\"]}}")),
			 SHIM_EXIT_FAILED);
	ck_said("  fail policy: ");
	ck_said("'*.com'");
	ck_assert(!cmd_said("clients of type"));
}
END_TEST

START_TEST(words__that_are_none_are_usage)
{
	ck_assert_int_eq(RUN(OPEN, "surplus"), SHIM_EXIT_USAGE);
	ck_assert_int_eq(cmd_run(shim_cmd_doctor, "doctor", (const char *const[]){ NULL }),
			 SHIM_EXIT_USAGE);
	ck_assert_int_eq(cmd_run(shim_cmd_doctor, "doctor", (const char *const[]){ "x", NULL }),
			 SHIM_EXIT_USAGE);
	ck_assert_int_eq(cmd_run(shim_cmd_doctor, "doctor",
				 (const char *const[]){ "--help", NULL }),
			 SHIM_EXIT_OK);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim_cmd_doctor");
	TCase *t = tcase_create("doctor");

	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_loop_test(t, clients__are_judged_by_the_policy_of_the_type, 0,
			    (int)AQE_COUNT(clients));
	tcase_add_test(t, roads__are_variables_that_the_shim_sets);
	tcase_add_test(t, root__marks_what_is_there_and_follows_no_link);
	tcase_add_loop_test(t, root__tells_the_version_of_node, 0, (int)AQE_COUNT(nodes));
	tcase_add_test(t, json__has_each_client_and_counts_those_that_are_there);
	tcase_add_test(t, host__with_faults_says_which);
	tcase_add_test(t, host__reads_credentials_and_asks_the_store);
	tcase_add_test(t, host__asks_a_store_over_tcp);
	tcase_add_test(t, policy__that_does_not_load_is_a_failing_line);
	tcase_add_test(t, words__that_are_none_are_usage);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
