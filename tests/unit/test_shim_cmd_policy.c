/* SPDX-License-Identifier: MIT */
/* aqe policy: output and exit statuses of its commands, each in a child with its own stdout. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "shim/aqe/cmds.h"
#include "shim/aqe/unix_socket.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "tests/unit/cmd_policy_util.h"

/* ---- usage ---- */

static const struct {
	const char *words[5];
	int status;
	const char *says;
} usages[] = {
	{ { NULL }, SHIM_EXIT_USAGE, "missing command" },
	{ { "drop" }, SHIM_EXIT_USAGE, "no such command 'drop'" },
	{ { "show", "--effective" }, SHIM_EXIT_USAGE, "a value is missing after '--effective'" },
	{ { "show", "x" }, SHIM_EXIT_USAGE, "surplus argument 'x'" },
	{ { "show", "--format", "xml" }, SHIM_EXIT_USAGE, "wanted text or json" },
	{ { "check", "default" }, SHIM_EXIT_USAGE, "missing argument" },
	{ { "check", "default", "a.b:99999" }, SHIM_EXIT_USAGE, "port is not" },
	{ { "check", "--proto", "ftp" }, SHIM_EXIT_USAGE, "--proto: wanted" },
	{ { "match", "a.b" }, SHIM_EXIT_USAGE, "--allow is missing" },
	{ { "match", "--batch", "a.b" }, SHIM_EXIT_USAGE, "surplus argument" },
	{ { "address" }, SHIM_EXIT_USAGE, "missing argument" },
	{ { "address", "--allow-cidr", "0.0.0.0/0", "1.2.3.4" }, SHIM_EXIT_USAGE, "not inside" },
	{ { "simulate" }, SHIM_EXIT_USAGE, "missing argument" },
	{ { "simulate", "/nonexistent.tsv" }, SHIM_EXIT_UNDECIDED, "open '/nonexistent.tsv'" },
	{ { "serve" }, SHIM_EXIT_USAGE, "missing argument" },
	{ { "reload", "--policy" }, SHIM_EXIT_USAGE, "policy" },
};

START_TEST(usage__is_one_line_and_its_status)
{
	ck_assert_int_eq(finish(start(usages[_i].words, "")), usages[_i].status);
	ck_has(&err, usages[_i].says);
	/* the command is named once */
	ck_assert_ptr_null(strstr(aqe_buf_str(&err), ": aqe policy"));
	ck_assert_uint_eq(out.len, 0);
	ck_assert_ptr_eq(strchr(aqe_buf_str(&err), '\n'), err.p + err.len - 1);
}
END_TEST

START_TEST(help__is_there_for_each)
{
	static const char *const names[] = { "show",     "check",  "match", "address",
					     "simulate", "reload", "serve" };

	ck_assert_int_eq(RUN("--help"), SHIM_EXIT_OK);
	for (size_t i = 0; i < AQE_COUNT(names); i++) {
		ck_has(&out, "usage: aqe policy");
		ck_assert_int_eq(RUN(names[i], "--help"), SHIM_EXIT_OK);
		ck_has(&out, names[i]);
		ck_has(&out, "Exit status");
	}
}
END_TEST

/* ---- show ---- */

START_TEST(show__effective_names_file_and_line)
{
	ck_assert_int_eq(RUN("show", "--effective", "qe-test-writer", POLICY), SHIM_EXIT_OK);
	ck_has(&out, "policy.json:3\n");
	ck_has(&out, "policy.json:4\n");
	ck_has(&out, "7/min, 100/h, burst 3");
	ck_has(&out, "built-in");
	ck_has(&out, "warning: shared");
	ck_assert_int_eq(RUN("show", "--effective", "nobody", POLICY), SHIM_EXIT_OK);
	ck_has(&out, "policy of     default (the type is not known)");
	ck_assert_int_eq(RUN("show", POLICY), SHIM_EXIT_OK);
	ck_has(&out, "qe-security-scanner");
	ck_has(&out, "tight");
}
END_TEST

START_TEST(show__has_the_cache)
{
	const struct aqe_json *root;

	put("c.json", "{\"version\":1,\n\"cache\":{\"backend\":\"memory\",\n\"agents\":"
		      "{\"qe-test-writer\":{\"gateway\":false}}}}");
	ck_assert_int_eq(RUN("show", "-e", "qe-test-writer", "--policy", path("c.json")),
			 SHIM_EXIT_OK);
	ck_has(&out, "cache         backend: memory");
	ck_has(&out, "c.json:2\n");
	ck_has(&out, "gateway: no");
	ck_has(&out, "c.json:3\n");
	ck_assert_int_eq(RUN("show", "-e", "default", "--format", "json", "--policy",
			     path("c.json")),
			 SHIM_EXIT_OK);
	root = json();
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/cache/gateway/value")), "yes");
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/cache/ttlMs/where/file")), "built-in");
	put("c.json", "{\"version\":1,\n\"cache\":{\"backend\":\"sqlite\"}}");
	ck_assert_int_eq(RUN("show", "--policy", path("c.json")), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "c.json:2: the back end 'sqlite' without its section");
	put("c.json", "{\"version\":1,\"cache\":{\"backend\":\"memory\",\n\"agents\":"
		      "{\"qe-test-righter\":{}}}}");
	ck_assert_int_eq(RUN("show", "--policy", path("c.json")), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "c.json:2: '/cache/agents/qe-test-righter' is no agent type");
}
END_TEST

START_TEST(show__as_json)
{
	const struct aqe_json *root;

	ck_assert_int_eq(RUN("show", "-e", "qe-test-writer", "--format", "json", POLICY),
			 SHIM_EXIT_OK);
	root = json();
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/policy")), "qe-test-writer");
	ck_assert_str_eq(aqe_json_at(root, "/allow/1/where/line")->text, "4");
	ck_assert_str_eq(aqe_json_at(root, "/settings/rate/where/line")->text, "5");
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/network/agents/qe-test-writer/mode")),
			 "report");
	ck_assert_int_eq(RUN("show", "--format", "json", POLICY), SHIM_EXIT_OK);
	root = json();
	ck_assert_ptr_nonnull(aqe_json_at(root, "/network/agents/tight"));
}
END_TEST

START_TEST(show__of_a_bad_policy_says_where)
{
	ck_assert_int_eq(RUN("show", "--policy", path("bad.json")), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "bad.json:2: '/network/agents/default/domains/0' entry '*.com'");
	ck_assert_int_eq(RUN("show", "--policy", path("unknown.json")), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "unknown.json:2: '/network/agents/default/domain' is not a key");
	ck_assert_int_eq(RUN("check", "default", "a.b", "--policy", path("none.json")),
			 SHIM_EXIT_UNDECIDED);
}
END_TEST

/* ---- check ---- */

static const struct {
	const char *type, *host;
	int status;
	const char *says;
} checks[] = {
	{ "tight", "A.example.", 0, "allow\n" },
	{ "tight", "a.example:80", 0, "host      a.example port 80" },
	{ "tight", "a.example:22", 1, "deny port_not_allowed" },
	{ "tight", "b.example", 1, "deny domain_not_allowed" },
	{ "tight", "a..b", 1, "invalid host_invalid: empty label" },
	{ "tight", "10.1.2.3", 1, "deny address_denied" },
	{ "tight", "8.8.8.8:443", 1, "deny ip_literal" },
	{ "tight", "::1", 1, "deny loopback_not_proxied" },
	{ "tight", "[::1]:443", 1, "deny loopback_not_proxied" },
	{ "qe-test-writer", "evil.test", 0, "allow domain_not_allowed (report mode" },
	{ "qe-test-writer", "x.example.com", 0, "rule      *.example.com  /" },
	{ "nobody", "api.anthropic.com", 0, "policy    default" },
};

START_TEST(check__answers_as_the_service)
{
	ck_assert_int_eq(RUN("check", checks[_i].type, checks[_i].host, POLICY), checks[_i].status);
	ck_has(&out, checks[_i].says);
	ck_assert_uint_eq(err.len, 0);
}
END_TEST

START_TEST(check__as_json_and_resolved)
{
	const struct aqe_json *root;

	put("local.json", "{\"version\":1,\"network\":{\"agents\":{\"default\":{\"domains\":"
			  "[\"ip6-localhost\",\"nowhere.invalid\"]}}}}");
	ck_assert_int_eq(RUN("check", "tight", "a.example", "--format", "json", POLICY), 0);
	root = json();
	ck_assert_str_eq(aqe_json_str(aqe_json_get(root, "verdict")), "allow");
	ck_assert_str_eq(aqe_json_str(aqe_json_at(root, "/rule/entry")), "a.example");
	ck_assert_ptr_null(aqe_json_get(root, "addresses"));
	/* a name that does not resolve is still an allowed name */
	ck_assert_int_eq(RUN("check", "default", "nowhere.invalid", "--resolve", "--policy",
			     path("local.json")),
			 0);
	ck_has(&out, "address   none: ");
}
END_TEST

/* ---- match, address: single and batch ---- */

START_TEST(match__single)
{
	ck_assert_int_eq(RUN("match", "--allow", "*.example.com", "example.com"), 0);
	ck_assert_str_eq(aqe_buf_str(&out), "allow\t*.example.com\tallowed\n");
	ck_assert_int_eq(RUN("match", "--allow", "*.example.com", "--no-wildcard-apex",
			     "example.com"),
			 1);
	ck_assert_str_eq(aqe_buf_str(&out), "deny\t-\tdomain_not_allowed\n");
	ck_assert_int_eq(RUN("match", "--allow", "", "example.com"), 1);
	ck_assert_int_eq(RUN("match", "--allow", "a.b", "a b"), 1);
	ck_assert_str_eq(aqe_buf_str(&out),
			 "invalid\t-\thost_invalid: byte that no host name has\n");
	ck_assert_int_eq(RUN("match", "--allow", "*.com", "a.com", "--format", "json"), 1);
	ck_assert_str_eq(aqe_json_str(aqe_json_get(json(), "verdict")), "invalid");
	ck_has(&err, "public suffix");
	ck_assert_int_eq(RUN("match", "--allow", "a.b", "a.b", "--format", "json"), 0);
	ck_assert_str_eq(aqe_json_str(aqe_json_at(json(), "/rule/entry")), "a.b");
}
END_TEST

START_TEST(match__batch_is_a_line_a_row)
{
	ck_assert_int_eq(RUN_IN("# comment\nallowlist\thost\texpected\twhy\n"
				"*.example.com\tA.example.com\tdeny\tignored\tand more\n"
				"a.b\ta\\x00.b\n"
				"a.b\t\\x61.b\n"
				"a.b\ta.b\\\\\n"
				"a.b\ta\\q\n"
				"*.com\ta.com\n"
				"a.b\n"
				"\ta.b\n"
				"a.b\tb.a",
				"match", "--batch"),
			 0);
	ck_assert_str_eq(aqe_buf_str(&out),
			 "allow\t*.example.com\ninvalid\t-\nallow\ta.b\ninvalid\t-\ninvalid\t-\n"
			 "invalid\t-\ninvalid\t-\ndeny\t-\ndeny\t-\n");
	ck_assert_int_eq(RUN_IN("*.a.b\ta.b\n", "match", "--batch", "--no-wildcard-apex"), 0);
	ck_assert_str_eq(aqe_buf_str(&out), "deny\t-\n");
}
END_TEST

START_TEST(address__single_and_batch)
{
	ck_assert_int_eq(RUN("address", "8.8.8.8"), 0);
	ck_assert_str_eq(aqe_buf_str(&out), "allow\tpublic\n");
	ck_assert_int_eq(RUN("address", "10.1.2.3"), 1);
	ck_assert_int_eq(RUN("address", "--allow-cidr", "10.1.0.0/16", "10.1.2.3"), 0);
	ck_assert_int_eq(RUN("address", "1.2.3", "--format", "json"), 1);
	ck_assert_str_eq(aqe_json_str(aqe_json_get(json(), "class")), "invalid");
	ck_assert_int_eq(RUN_IN("address\tclass\tdecision\n::1\n8.8.8.8\tx\ty\n\n1.2.3.4\\x20\n",
				"address", "--batch"),
			 0);
	ck_assert_str_eq(aqe_buf_str(&out),
			 "deny\tloopback\nallow\tpublic\ndeny\tinvalid\ndeny\tinvalid\n");
}
END_TEST

/* ---- simulate ---- */

#define ROW(t, op) "s\t60\t1000\t1\t" t "\ta\t" op

START_TEST(simulate__batch_and_file)
{
	ck_assert_int_eq(
		RUN_IN(ROW("0", "consume") "\n" ROW("700", "peek") "\tallow\n" ROW(
			       "700",
			       "reconf:60,1000,2") "\n" ROW("700",
							    "reset") "\n"
								     "s\t60\t1000\t1\t700\tb\tconsu"
								     "me\n"
								     "s\t60\t1000\t1\t700\tb\tconsu"
								     "me\n"
								     "zero\t0\t1\t1\t0\ta\tconsume"
								     "\n" ROW("x", "consume") "\n",
		       "simulate", "--batch"),
		0);
	ck_assert_str_eq(aqe_buf_str(&out), "allow\t\nlimit\t300\n-\t\n-\t\nallow\t\nallow\t\n"
					    "invalid\t\ninvalid\t\n");
	put("t.tsv", ROW("0", "consume") "\tallow\t\n" ROW("700", "consume") "\tlimit\t300\n");
	ck_assert_int_eq(RUN("simulate", path("t.tsv")), 0);
	ck_has(&out, "2 rows, 0 differ");
	put("t.tsv", ROW("0", "consume") "\tlimit\t5\n");
	ck_assert_int_eq(RUN("simulate", path("t.tsv")), 1);
	ck_has(&out, "<-- differs");
	ck_assert_int_eq(RUN("simulate", path("t.tsv"), "--format", "json"), 1);
	ck_assert_int_eq(json()->type, AQE_JSON_OBJECT);
	put("t.tsv", ROW("0", "eat") "\n");
	ck_assert_int_eq(RUN("simulate", path("t.tsv")), SHIM_EXIT_MALFORMED);
	ck_has(&err, "line 1: op is not");
}
END_TEST

/* ---- serve, reload ---- */

static void nap(void)
{
	const struct timespec ts = { 0, 5000000 };

	(void)nanosleep(&ts, NULL);
}

/* A server that answers. */
static pid_t serve(const char *policy)
{
	const char *const words[] = { "serve",    "--no-audit", "--state",      path("state"),
				      "--policy", path(policy), path("socket"), NULL };
	const pid_t pid = start(words, "");
	struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	unsigned tries = 0;

	while (shim_unix_ask(path("socket"), "{\"op\":\"policy\",\"type\":\"x\"}\n", 2000, &b,
			     &e)) {
		ck_assert_msg(tries++ < 1000, "%s", e.text);
		nap();
	}
	aqe_buf_done(&b);
	return pid;
}

static const struct aqe_json *say(const char *line)
{
	struct aqe_err e = AQE_ERR_INIT;

	aqe_buf_clear(&out);
	ck_assert_ok(shim_unix_ask(path("socket"), line, 5000, &out, &e), e);
	return json();
}

static const char *verdict(const struct aqe_json *o)
{
	const char *s = aqe_json_str(aqe_json_get(o, "verdict"));

	return s ? s : "none";
}

static int connect_to(const char *socket_path)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sa.sun_path, socket_path, strlen(socket_path) + 1);
	if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

#define RECORD "{\"op\":\"record\",\"type\":\"tight\",\"agent\":\"a\",\"host\":\"a.example\"}\n"

START_TEST(serve__answers_reloads_and_keeps_its_state)
{
	pid_t pid = serve("policy.json");
	struct stat st;

	ck_assert_int_eq(lstat(path("socket"), &st), 0);
	ck_assert(S_ISSOCK(st.st_mode));
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	for (int i = 0; i < 3; i++)
		ck_assert_str_eq(verdict(say(RECORD)), "allow");
	ck_assert_str_eq(verdict(say(RECORD)), "limit");
	/* a second server cannot take the socket */
	ck_assert_int_eq(RUN("serve", "--no-audit", path("socket"), POLICY), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "is in use");
	/* a bad policy changes nothing */
	put("policy.json", "{\"version\":2}");
	ck_assert_int_eq(kill(pid, SIGHUP), 0);
	ck_assert_str_eq(verdict(say(RECORD)), "limit");
	ck_assert(aqe_json_get(say("{\"op\":\"reload\"}\n"), "ok")->boolean == false);
	put("policy.json", "{\"version\":1}");
	ck_assert(aqe_json_get(say("{\"op\":\"reload\"}\n"), "ok")->boolean);
	/* unknown now: the default's list */
	ck_assert_str_eq(verdict(say(RECORD)), "deny");
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(finish(pid), SHIM_EXIT_OK);
	ck_has(&err, "not reloaded: ");
	ck_assert_int_ne(lstat(path("socket"), &st), 0);
	ck_assert_int_eq(lstat(path("state"), &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);

	put("policy.json", "{\"version\":1,\"network\":{\"agents\":{\"tight\":{\"domains\":"
			   "[\"a.example\"]}}}}");
	pid = serve("policy.json");
	ck_assert_str_eq(verdict(say(RECORD)), "limit"); /* not a fresh bucket */
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(finish(pid), SHIM_EXIT_OK);
}
END_TEST

/* Many lines at once, in pieces, with wrong ones between; the answers come in order. */
START_TEST(serve__pipelines)
{
	const pid_t pid = serve("policy.json");
	AQE_AUTO_BUF struct aqe_buf lines = AQE_BUF_INIT(OUT_MAX);
	AQE_AUTO_BUF struct aqe_buf got = AQE_BUF_INIT(OUT_MAX);
	AQE_AUTO_FD int fd = connect_to(path("socket"));
	struct aqe_err e = AQE_ERR_INIT;
	char *at;

	for (unsigned i = 0; i < 500; i++)
		(void)aqe_buf_addf(
			&lines,
			i % 7 ? "{\"op\":\"peek\",\"type\":\"t\",\"agent\":\"a\",\"id\":%u}\n"
			      : "nonsense %u\n",
			i);
	for (size_t n = 0; n < lines.len; n += 997)
		ck_assert_ok(aqe_fs_write_all(fd, lines.p + n,
					      lines.len - n < 997 ? lines.len - n : 997, &e),
			     e);
	ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
	ck_assert_ok(aqe_fs_read_fd(fd, &got, &e), e);
	at = got.p;
	for (unsigned i = 0; i < 500; i++) {
		char *end = strchr(at, '\n');
		char id[24];

		ck_assert_ptr_nonnull(end);
		*end = '\0';
		(void)snprintf(id, sizeof(id), "\"id\":%u", i);
		ck_assert_msg(!strstr(at, id) == !(i % 7), "%s", at);
		at = end + 1;
	}
	ck_assert_str_eq(at, "");
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(finish(pid), SHIM_EXIT_OK);
}
END_TEST

START_TEST(serve__ends_a_line_without_end_and_bounds_clients)
{
	static char junk[70000];
	const pid_t pid = serve("policy.json");
	AQE_AUTO_BUF struct aqe_buf got = AQE_BUF_INIT(OUT_MAX);
	AQE_AUTO_FD int fd = connect_to(path("socket"));
	struct aqe_err e = AQE_ERR_INIT;
	int held[300];
	unsigned full = 0;

	memset(junk, 'x', sizeof(junk));
	(void)send(fd, junk, sizeof(junk), MSG_NOSIGNAL);
	if (aqe_fs_read_fd(fd, &got, &e)) /* a reset: bytes were left unread */
		ck_assert_int_eq(e.sys, ECONNRESET);
	ck_has(&got, "line over 65536 bytes");
	for (size_t i = 0; i < AQE_COUNT(held); i++)
		held[i] = connect_to(path("socket"));
	for (size_t i = 0; i < AQE_COUNT(held); i++) {
		char c;

		/* those over the limit are told so and closed; the others wait for a line */
		if (i >= 256 && recv(held[i], &c, 1, 0) == 1)
			full += c == '{';
	}
	ck_assert_uint_ge(full, 40);
	for (size_t i = 0; i < AQE_COUNT(held); i++)
		(void)close(held[i]);
	while (shim_unix_ask(path("socket"), RECORD, 2000, &got, &e))
		nap();
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(finish(pid), SHIM_EXIT_OK);
}
END_TEST

/* The mode keeps others out; if somebody loosens it, the peer's uid does. */
START_TEST(serve__refuses_other_users)
{
	const pid_t pid = serve("policy.json");
	pid_t other;
	int status = 0;

	if (geteuid() == 0) {
		ck_assert_int_eq(chmod(dir, 0755), 0);
		ck_assert_int_eq(chmod(path("socket"), 0666), 0);
		other = fork();
		if (other == 0) {
			AQE_AUTO_BUF struct aqe_buf got = AQE_BUF_INIT(4096);
			int fd;

			if (setgid(65534) || setuid(65534))
				_exit(2);
			fd = connect_to(path("socket"));
			_exit(fd < 0 || aqe_fs_read_fd(fd, &got, NULL) ||
			      !strstr(aqe_buf_str(&got), "not this user"));
		}
		ck_assert_int_eq(waitpid(other, &status, 0), other);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(finish(pid), SHIM_EXIT_OK);
}
END_TEST

START_TEST(serve__does_not_start_with_a_bad_policy_or_place)
{
	ck_assert_int_eq(RUN("serve", "--no-audit", "--policy", path("bad.json"), path("s")),
			 SHIM_EXIT_UNDECIDED);
	ck_has(&err, "bad.json:2: ");
	ck_assert_int_eq(RUN("serve", "--no-audit", POLICY, path("in")), SHIM_EXIT_UNDECIDED);
	ck_has(&err, "is there and is no socket of ours");
	ck_assert_int_eq(RUN("serve", "--no-audit", POLICY, path("no/dir")), SHIM_EXIT_UNDECIDED);
}
END_TEST

START_TEST(reload__names_a_socket_once_before_the_fault)
{
	char line[600];

	(void)snprintf(line, sizeof(line), "%s: connect '%s': No such file or directory\n",
		       path("nobody"), path("nobody"));
	ck_assert_int_eq(RUN("reload", path("nobody")), SHIM_EXIT_FAILED);
	ck_has(&out, line);
}
END_TEST

START_TEST(reload__tells_the_given_sockets)
{
	const pid_t pid = serve("policy.json");

	ck_assert_int_eq(RUN("reload", path("socket")), SHIM_EXIT_OK);
	ck_has(&out, "1 services, 0 keep the old policy");
	put("policy.json", "{");
	ck_assert_int_eq(RUN("reload", path("socket"), path("nobody")), SHIM_EXIT_FAILED);
	ck_has(&out, "policy.json:1: ");
	ck_has(&out, "2 services, 2 keep the old policy");
	ck_assert_int_eq(RUN("reload", path("socket"), "--format", "json"), SHIM_EXIT_FAILED);
	ck_assert_str_eq(aqe_json_str(aqe_json_at(json(), "/services/0/service")), path("socket"));
	ck_assert_int_eq(kill(pid, SIGTERM), 0);
	ck_assert_int_eq(finish(pid), SHIM_EXIT_OK);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_cmd_policy");
	TCase *t = tcase_create("policy");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, usage__is_one_line_and_its_status, 0, (int)AQE_COUNT(usages));
	tcase_add_test(t, help__is_there_for_each);
	tcase_add_test(t, show__effective_names_file_and_line);
	tcase_add_test(t, show__has_the_cache);
	tcase_add_test(t, show__as_json);
	tcase_add_test(t, show__of_a_bad_policy_says_where);
	tcase_add_loop_test(t, check__answers_as_the_service, 0, (int)AQE_COUNT(checks));
	tcase_add_test(t, check__as_json_and_resolved);
	tcase_add_test(t, match__single);
	tcase_add_test(t, match__batch_is_a_line_a_row);
	tcase_add_test(t, address__single_and_batch);
	tcase_add_test(t, simulate__batch_and_file);
	tcase_add_test(t, serve__answers_reloads_and_keeps_its_state);
	tcase_add_test(t, serve__pipelines);
	tcase_add_test(t, serve__ends_a_line_without_end_and_bounds_clients);
	tcase_add_test(t, serve__refuses_other_users);
	tcase_add_test(t, serve__does_not_start_with_a_bad_policy_or_place);
	tcase_add_test(t, reload__names_a_socket_once_before_the_fault);
	tcase_add_test(t, reload__tells_the_given_sockets);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
