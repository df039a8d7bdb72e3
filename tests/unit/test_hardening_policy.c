/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hardening/policy.h"
#include "hardening/policy_file.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define D1 "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "sha256:2222222222222222222222222222222222222222222222222222222222222222"

static char base[64]; /* the test's directory */
static char sys[80];  /* BASE/sys */
static char user[80]; /* BASE/user */
static struct hard_policy *p;
static struct aqe_err e;

static void setup(void)
{
	char template[] = "/tmp/aqe-test-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(template));
	(void)snprintf(base, sizeof(base), "%s", template);
	(void)snprintf(sys, sizeof(sys), "%s/sys", base);
	(void)snprintf(user, sizeof(user), "%s/user", base);
	ck_assert_int_eq(mkdir(sys, 0755), 0);
	ck_assert_int_eq(mkdir(user, 0755), 0);
	p = NULL;
	e = (struct aqe_err)AQE_ERR_INIT;
}

static void teardown(void)
{
	AQE_AUTO_FD int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	hard_policy_free(p);
	ck_assert_int_eq(aqe_fs_remove_tree(fd, base + strlen("/tmp/"), NULL), 0);
}

/* Writes BASE/NAME with mode 0644. */
static void put(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(chmod(path, 0644), 0);
}

static void put_dir(const char *name, mode_t mode)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/%s", base, name);
	ck_assert_int_eq(mkdir(path, mode), 0);
	ck_assert_int_eq(chmod(path, mode), 0);
}

/* Loads both tiers; the policy or the error is left in `p`, `e`. */
static int load(void)
{
	hard_policy_free(p);
	p = NULL;
	e = (struct aqe_err)AQE_ERR_INIT;
	return hard_policy_load(sys, user, &p, &e);
}

static void load_ok(void)
{
	ck_assert_msg(load() == 0, "%s", e.text);
}

/* The load fails with this code, in this file and line, and says this. */
static void load_fails(int code, const char *place, const char *says)
{
	char want[200];

	ck_assert_int_eq(load(), code);
	ck_assert_int_eq(e.code, code);
	ck_assert_ptr_null(p);
	(void)snprintf(want, sizeof(want), "%s/%s: ", base, place);
	ck_assert_msg(aqe_starts(e.text, want), "%s, wanted %s", e.text, want);
	ck_assert_msg(strstr(e.text, says), "%s, wanted %s", e.text, says);
}

/* ---- one file ---- */

#define V(members) "{\"version\":1,\n" members "}"
#define IMAGE      "{\"digest\":\"" D1 "\"}"
#define WAIVER(prop, more)                                                           \
	V("\"waivers\":[{\"property\":\"" prop "\",\"reason\":\"r\",\"owner\":\"o\"" \
	  ",\"expires\":\"2030-01-01\"" more "}]")
#define FOR_DEFAULT      ",\"agentType\":\"default\""
#define AGENT(limits)    V("\"agents\":{\"default\":{" limits "}}")
#define MOUNT(src, dest) V("\"mounts\":[{\"source\":\"" src "\",\"destination\":\"" dest "\"}]")

static const char *const good[] = {
	"{\"version\":1}",
	V("\"$schema\":\"policy.schema.json\""),
	V("\"mode\":\"enforce\""),
	V("\"mode\":\"verify\""),
	V("\"mode\":\"observe\""),
	V("\"runtime\":\"/usr/bin/crun\""),
	V("\"runtime\":{\"path\":\"/usr/bin/crun\"}"),
	V("\"runtime\":{\"path\":\"/usr/bin/crun\",\"digest\":\"" D1 "\"}"),
	V("\"images\":[]"),
	V("\"images\":[" IMAGE ",{\"imageId\":\"" D1 "\",\"name\":\"n\",\"types\":[\"default\"]}]"),
	MOUNT("/srv/ws", "/workspace"),
	MOUNT("/srv/ws", "/run/aqe"),
	V("\"user\":{\"uid\":1,\"gid\":2147483647}"),
	AGENT("\"cpus\":0.01"),
	AGENT("\"cpus\":256"),
	AGENT("\"cpus\":\"1.5\""),
	AGENT("\"cpus\":1.999"),
	AGENT("\"memory\":\"6m\""),
	AGENT("\"memory\":1099511627776"),
	AGENT("\"disk\":\"1024G\""),
	AGENT("\"pids\":32768"),
	AGENT("\"tmpExec\":true"),
	AGENT(""),
	V("\"agents\":{\"my-type-2\":{}},\"images\":[{\"digest\":\"" D1
	  "\",\"types\":[\"my-type-2\"]}]"),
	V("\"unmarked\":\"refuse\""),
	V("\"unmarked\":\"default\""),
	V("\"seccompFile\":\"/etc/aqe/seccomp.json\""),
	WAIVER("rootless", FOR_DEFAULT),
	V("\"images\":[" IMAGE "],\"waivers\":[{\"property\":\"mounts\",\"image\":\"" D1
	  "\",\"agentType\":\"default\",\"reason\":\"r\",\"owner\":\"o\","
	  "\"expires\":\"2030-01-01T12:00:00Z\"}]"),
	V("\"network\":{},\"cache\":{},\"audit\":{}"),
};

START_TEST(load__accepts_what_the_format_has)
{
	put("sys/policy.json", good[_i]);
	load_ok();
}
END_TEST

static const struct {
	const char *text;
	int line;
	const char *says;
} bad[] = {
	{ "", 1, "premature EOF" },
	{ "{\"version\":1,\n\n}", 3, "" },
	{ "{\"version\":1,\n\"version\":1}", 2, "duplicate key" },
	{ "{\"version\":1,\n\"Version\":1}", 2, "only in letter case" },
	{ "{\"version\":1}\n{}", 2, "" },
	{ "/* c */{\"version\":1}", 1, "" },
	{ "[]", 1, "'the policy' is array, wanted object" },
	{ "null", 1, "'the policy' is null, wanted object" },
	{ "{}", 1, "'the policy' has no 'version'" },
	{ "{\"version\":2}", 1, "'/version' is '2', wanted 1" },
	{ "{\"version\":\"1\"}", 1, "'/version' is string, wanted integer" },
	{ "{\"version\":1.0}", 1, "'/version' is number, wanted integer" },
	/* unknown members, at every level */
	{ V("\"imagse\":[]"), 2, "'/imagse' is not a key of the policy; known here: " },
	{ V("\"runtime.path\":\"/x\""), 2, "'/runtime.path' is not a key" },
	{ V("\"images[]\":{}"), 2, "'/images[]' is not a key" },
	{ V("\"images\":[{\"digest\":\"" D1 "\",\"tag\":\"x\"}]"), 2,
	  "'/images/0/tag' is not a key of the policy; known here: name, digest, imageId, types" },
	{ AGENT("\"cpu\":1"), 2, "'/agents/default/cpu' is not a key" },
	{ AGENT("\"*\":1"), 2, "is not a key" },
	{ V("\"network\":{\"a\":1}"), 2, "'/network/a' is not a key of the policy" },
	{ V("\"network\":{\"agents\":{\"default\":{\"rate\":3}}}"), 2, "is number, wanted object" },
	{ V("\"network\":{\"cluster\":{}}"), 2, "has no 'address'" },
	{ V("\"cache\":{\"a\":1}"), 2, "'/cache/a' is not a key of the policy" },
	{ V("\"cache\":{\"agents\":{\"a\":{\"models\":[1]}}}"), 2, "is number, wanted string" },
	{ V("\"audit\":{\"a\":1}"), 2, "'/audit/a' is not a key of the policy" },
	{ V("\"audit\":{\"mode\":\"maybe\"}"), 2, "wanted required, optional or off" },
	{ V("\"audit\":{\"path\":\"a\"}"), 2, "'/audit/path' is 'a', wanted an absolute path" },
	{ V("\"audit\":{\"signEvery\":0}"), 2, "wanted 1 to 1000000" },
	{ V("\"audit\":{\"path\":\"/srv/w/log\"},\"mounts\":[{\"source\":\"/srv/w\","
	    "\"destination\":\"/w\"}]"),
	  2, "'/audit/path' is inside '/srv/w', which " },
	/* wrong types */
	{ V("\"mode\":null"), 2, "'/mode' is null, wanted string" },
	{ V("\"images\":{}"), 2, "'/images' is object, wanted array" },
	{ V("\"images\":[\"x\"]"), 2, "'/images/0' is string, wanted object" },
	{ V("\"runtime\":1"), 2, "'/runtime' is number, wanted string|object" },
	{ V("\"network\":[]"), 2, "'/network' is array, wanted object" },
	{ V("\"user\":{\"uid\":\"1\",\"gid\":1}"), 2, "'/user/uid' is string, wanted integer" },
	{ AGENT("\"tmpExec\":1"), 2, "wanted boolean" },
	{ AGENT("\"cpus\":true"), 2, "wanted number|string" },
	/* values */
	{ V("\"mode\":\"Enforce\""), 2, "'/mode' is 'Enforce', wanted enforce, verify or observe" },
	{ V("\"unmarked\":\"deny\""), 2, "wanted default or refuse" },
	{ V("\"runtime\":\"crun\""), 2, "'/runtime' is 'crun', wanted an absolute path" },
	{ V("\"runtime\":\"/usr/../crun\""), 2, "wanted an absolute path" },
	{ V("\"runtime\":{\"digest\":\"" D1 "\"}"), 2, "'/runtime' has no 'path'" },
	{ V("\"runtime\":{\"path\":\"/c\",\"digest\":\"x\"}"), 2, "'/runtime/digest' is 'x'" },
	{ V("\"seccompFile\":\"\""), 2, "'/seccompFile' is ''" },
	{ V("\"images\":[{\"name\":\"n\"}]"), 2, "has neither 'digest' nor 'imageId'" },
	{ V("\"images\":[{\"digest\":\"sha256:ABC\"}]"), 2, "wanted 'sha256:' and 64" },
	{ V("\"images\":[{\"digest\":\"" D1 "1\"}]"), 2, "wanted 'sha256:' and 64" },
	{ V("\"images\":[" IMAGE ",\n" IMAGE "]"), 3, "repeats the digest of " },
	{ V("\"images\":[{\"imageId\":\"" D1 "\"},\n{\"imageId\":\"" D1 "\"}]"), 3,
	  "repeats the imageId of " },
	{ V("\"images\":[{\"digest\":\"" D1 "\",\"types\":[]}]"), 2, "is empty" },
	{ V("\"images\":[{\"digest\":\"" D1 "\",\"types\":[\"qe-x\"]}]"), 2,
	  "'/images/0/types/0' is 'qe-x', wanted an agent type" },
	{ V("\"images\":[{\"digest\":\"" D1 "\",\"types\":[\"profile\"]}]"), 2, "an agent type" },
	{ V("\"images\":[{\"digest\":\"" D1 "\",\"types\":[\"default\",\"default\"]}]"), 2,
	  "listed already" },
	{ V("\"images\":[{\"digest\":\"" D1 "\",\"name\":\"\"}]"), 2, "1 to 1024 bytes" },
	{ MOUNT("srv", "/w"), 2, "'/mounts/0/source' is 'srv', wanted an absolute path" },
	{ MOUNT("/srv/", "/w"), 2, "'/mounts/0/source'" },
	{ MOUNT("/", "/w"), 2, "'/mounts/0/source'" },
	{ MOUNT("/srv", "/"), 2, "'/mounts/0/destination'" },
	{ MOUNT("/proc/1/root", "/w"), 2, "below /proc, /sys or /dev" },
	{ MOUNT("/srv", "/proc"), 2, "which the profile mounts itself" },
	{ MOUNT("/srv", "/dev/x"), 2, "which the profile mounts itself" },
	{ MOUNT("/srv", "/tmp"), 2, "which the profile mounts itself" },
	{ MOUNT("/srv", "/run"), 2, "which the profile mounts itself" },
	{ V("\"mounts\":[{\"source\":\"/a\"}]"), 2, "'/mounts/0' has no 'destination'" },
	{ V("\"mounts\":[{\"source\":\"/a\",\"destination\":\"/w\"},\n"
	    "{\"source\":\"/b\",\"destination\":\"/w\"}]"),
	  3, "'/mounts/1/destination' repeats the destination of " },
	{ V("\"mounts\":[{\"source\":\"/a\",\"destination\":\"/w\"},\n"
	    "{\"source\":\"/b\",\"destination\":\"/w/x\"}]"),
	  3, "are inside one another" },
	{ V("\"user\":{\"uid\":0,\"gid\":1}"), 2, "'/user/uid' is '0', wanted 1 to 2147483647" },
	{ V("\"user\":{\"uid\":1,\"gid\":2147483648}"), 2, "'/user/gid' is '2147483648'" },
	{ V("\"user\":{\"uid\":1}"), 2, "'/user' has no 'gid'" },
	{ V("\"user\":{\"uid\":-1,\"gid\":1}"), 2, "wanted 1 to" },
	{ V("\"agents\":{\"Type\":{}}"), 2, "'/agents/Type' has no good name" },
	{ V("\"agents\":{\"\":{}}"), 2, "has no good name" },
	{ V("\"agents\":{\"profile\":{}}"), 2, "and not 'profile'" },
	{ V("\"agents\":{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":{}"
	    "}"),
	  2, "1 to 64" },
	{ AGENT("\"cpus\":0"), 2, "'/agents/default/cpus' is '0', wanted 0.01 to 256" },
	{ AGENT("\"cpus\":0.009"), 2, "wanted 0.01 to 256" },
	{ AGENT("\"cpus\":256.001"), 2, "wanted 0.01 to 256" },
	{ AGENT("\"cpus\":1.0001"), 2, "wanted 0.01 to 256" },
	{ AGENT("\"cpus\":1e1"), 2, "wanted 0.01 to 256" },
	{ AGENT("\"cpus\":-1"), 2, "wanted 0.01 to 256" },
	{ AGENT("\"cpus\":\"1.\""), 2, "wanted 0.01 to 256" },
	{ AGENT("\"cpus\":\"4294967297\""), 2, "wanted 0.01 to 256" },
	{ AGENT("\"memory\":6291455"), 2, "'/agents/default/memory' is '6291455', wanted 6m" },
	{ AGENT("\"memory\":1099511627777"), 2, "wanted 6m" },
	{ AGENT("\"memory\":\"2 g\""), 2, "wanted 6m" },
	{ AGENT("\"memory\":\"-1\""), 2, "wanted 6m" },
	{ AGENT("\"memory\":\"18446744073709551615g\""), 2, "wanted 6m" },
	{ AGENT("\"disk\":0"), 2, "wanted 1m" },
	{ AGENT("\"pids\":0"), 2, "wanted 1 to 32768" },
	{ AGENT("\"pids\":32769"), 2, "wanted 1 to 32768" },
	/* waivers */
	{ WAIVER("capabilities", FOR_DEFAULT), 2,
	  "'/waivers/0/property' is 'capabilities', which can never be waived" },
	{ WAIVER("privileged", FOR_DEFAULT), 2, "which can never be waived" },
	{ WAIVER("engine_socket", FOR_DEFAULT), 2, "which can never be waived" },
	{ WAIVER("no_new_privileges", FOR_DEFAULT), 2, "which can never be waived" },
	{ WAIVER("hooks", FOR_DEFAULT), 2, "which can never be waived" },
	{ WAIVER("unknown_field", FOR_DEFAULT), 2, "which can never be waived" },
	{ WAIVER("rootles", FOR_DEFAULT), 2, "is 'rootles', which is no property" },
	{ WAIVER("rootless", ""), 2, "has neither 'agentType' nor 'image'" },
	{ WAIVER("rootless", ",\"agentType\":\"nope\""), 2, "wanted an agent type" },
	{ WAIVER("rootless", ",\"image\":\"nope\""), 2, "which is no name, digest or imageId" },
	{ V("\"waivers\":[{\"property\":\"rootless\",\"agentType\":\"default\",\"owner\":\"o\","
	    "\"expires\":\"2030-01-01\"}]"),
	  2, "'/waivers/0' has no 'reason'" },
	{ V("\"waivers\":[{\"property\":\"rootless\",\"agentType\":\"default\",\"reason\":\"r\","
	    "\"expires\":\"2030-01-01\"}]"),
	  2, "'/waivers/0' has no 'owner'" },
	{ V("\"waivers\":[{\"property\":\"rootless\",\"agentType\":\"default\",\"reason\":\"r\","
	    "\"owner\":\"o\"}]"),
	  2, "'/waivers/0' has no 'expires'" },
	{ V("\"waivers\":[{\"property\":\"rootless\",\"agentType\":\"default\",\"reason\":\"\","
	    "\"owner\":\"o\",\"expires\":\"2030-01-01\"}]"),
	  2, "'/waivers/0/reason' is ''" },
	{ V("\"waivers\":[{\"property\":\"rootless\",\"agentType\":\"default\",\"reason\":\"r\","
	    "\"owner\":\"o\",\"expires\":\"2030-02-30\"}]"),
	  2, "'/waivers/0/expires' is '2030-02-30', wanted YYYY-MM-DD" },
	{ V("\"waivers\":[{\"property\":\"rootless\",\"agentType\":\"default\",\"reason\":\"r\","
	    "\"owner\":\"o\",\"expires\":\"never\"}]"),
	  2, "wanted YYYY-MM-DD" },
	{ V("\"waivers\":[{\"property\":\"rootless\",\"agentType\":\"default\",\"reason\":\"r\","
	    "\"owner\":\"o\",\"expires\":\"2030-01-01\"},\n"
	    "{\"property\":\"rootless\",\"agentType\":\"default\",\"reason\":\"s\","
	    "\"owner\":\"p\",\"expires\":\"2031-01-01\"}]"),
	  3, "repeats the waiver of " },
};

START_TEST(load__refuses_with_file_line_and_key)
{
	char place[64];

	put("sys/policy.json", bad[_i].text);
	(void)snprintf(place, sizeof(place), "sys/policy.json:%d", bad[_i].line);
	load_fails(AQE_E_MALFORMED, place, bad[_i].says);
	ck_assert_uint_eq(e.line, (unsigned)bad[_i].line);
}
END_TEST

START_TEST(load__refuses_deep_and_huge_files)
{
	AQE_AUTO_FREE char *big = malloc((2U << 20) + 1);

	put("sys/policy.json", V("\"images\":[[[[[[[[]]]]]]]]"));
	load_fails(AQE_E_LIMIT, "sys/policy.json:2", "");
	ck_assert_ptr_nonnull(big);
	memset(big, ' ', 2U << 20);
	big[2U << 20] = '\0';
	put("sys/policy.json", big);
	load_fails(AQE_E_LIMIT, "sys/policy.json", "");
}
END_TEST

START_TEST(load__fills_every_field)
{
	int64_t expires = 0;

	put("sys/policy.json",
	    V("\"mode\":\"verify\",\"unmarked\":\"refuse\",\"seccompFile\":\"/s.json\",\n"
	      "\"runtime\":{\"path\":\"/usr/bin/crun\",\"digest\":\"" D2 "\"},\n"
	      "\"user\":{\"uid\":7,\"gid\":8},\n"
	      "\"agents\":{\"mine\":{\"cpus\":1.5,\"memory\":\"3g\",\"pids\":4096,"
	      "\"disk\":2097152,\"tmpExec\":true},\"default\":{\"pids\":9}},\n"
	      "\"images\":[{\"name\":\"n\",\"digest\":\"" D1 "\",\"imageId\":\"" D2
	      "\",\"types\":[\"mine\",\"default\"]}],\n"
	      "\"mounts\":[{\"source\":\"/a\",\"destination\":\"/b\",\"readonly\":true,"
	      "\"types\":[\"mine\"]}],\n"
	      "\"waivers\":[{\"property\":\"rootless\",\"image\":\"n\",\"reason\":\"why\","
	      "\"owner\":\"who\",\"expires\":\"2031-05-06\"}]"));
	load_ok();
	ck_assert(aqe_time_parse("2031-05-06", &expires));
	ck_assert_int_eq(p->mode, HARD_MODE_VERIFY);
	ck_assert(p->unmarked_refuse);
	ck_assert_str_eq(p->seccomp_file, "/s.json");
	ck_assert_str_eq(p->runtime_path, "/usr/bin/crun");
	ck_assert_str_eq(p->runtime_digest, D2);
	ck_assert_uint_eq(p->runtime_where.line, 3);
	ck_assert_uint_eq(p->uid, 7);
	ck_assert_uint_eq(p->gid, 8);
	ck_assert_uint_eq(p->n_agents, HARD_AGENTS_COUNT + 1);
	ck_assert_uint_eq(hard_policy_agent(p, "mine")->cpus_milli, 1500);
	ck_assert_uint_eq(hard_policy_agent(p, "mine")->memory_bytes, 3221225472);
	ck_assert_uint_eq(hard_policy_agent(p, "mine")->disk_bytes, 2097152);
	ck_assert_uint_eq(hard_policy_agent(p, "mine")->pids, 4096);
	ck_assert(hard_policy_agent(p, "mine")->tmp_exec);
	ck_assert_str_eq(hard_policy_agent(p, "mine")->network, "isolated"); /* default's */
	ck_assert_uint_eq(hard_policy_agent(p, "default")->pids, 9);
	ck_assert_uint_eq(hard_policy_agent(p, "default")->cpus_milli, 1000);
	ck_assert_uint_eq(hard_agent_default()->pids, 512); /* the table itself is untouched */
	ck_assert_uint_eq(p->n_images, 1);
	ck_assert_str_eq(p->images[0].name, "n");
	ck_assert_str_eq(p->images[0].image_id, D2);
	ck_assert_str_eq(p->images[0].types[1], "default");
	ck_assert_uint_eq(p->images[0].where.line, 6);
	ck_assert_uint_eq(p->n_mounts, 1);
	ck_assert(p->mounts[0].readonly);
	ck_assert_uint_eq(p->mounts[0].n_types, 1);
	ck_assert_uint_eq(p->n_waivers, 1);
	ck_assert_int_eq(p->waivers[0].prop, HARD_ROOTLESS);
	ck_assert_int_eq(p->waivers[0].expires, expires);
	ck_assert_str_eq(p->waivers[0].owner, "who");
	ck_assert_ptr_null(p->waivers[0].agent_type);
}
END_TEST

START_TEST(load_file__reads_the_corpus_policy)
{
	char digest[AQE_DIGEST_TEXT];
	AQE_AUTO_FD int fd = open("tests/corpus/policy.json", O_RDONLY | O_CLOEXEC);

	ck_assert_msg(!hard_policy_load_file("tests/corpus/policy.json", &p, &e), "%s", e.text);
	ck_assert_uint_eq(p->n_images, 2);
	ck_assert_uint_eq(p->n_mounts, 2);
	ck_assert_int_eq(p->mode, HARD_MODE_ENFORCE);
	ck_assert_str_eq(p->seccomp_file, "/etc/aqe/seccomp.json");
	ck_assert_uint_eq(p->uid, 1000);
	ck_assert_str_eq(p->files, "tests/corpus/policy.json");
	ck_assert_int_eq(aqe_sha256_fd(fd, HARD_POLICY_MAX_BYTES, digest, &e), 0);
	ck_assert_str_eq(p->digest, digest);
}
END_TEST

START_TEST(load_file__names_what_cannot_be_read)
{
	char fifo[100];

	ck_assert_int_eq(hard_policy_load_file("/nonexistent/p.json", &p, &e), AQE_E_ABSENT);
	ck_assert_ptr_nonnull(strstr(e.text, "'/nonexistent/p.json'"));
	ck_assert_int_eq(hard_policy_load_file(base, &p, &e), AQE_E_UNTRUSTED);
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", base);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	ck_assert_int_eq(hard_policy_load_file(fifo, &p, &e), AQE_E_UNTRUSTED); /* no hang */
	ck_assert_ptr_null(p);
}
END_TEST

START_TEST(load_file__does_not_judge_the_owner)
{
	char path[100];

	put("loose.json", V("\"mode\":\"verify\""));
	(void)snprintf(path, sizeof(path), "%s/loose.json", base);
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_msg(!hard_policy_load_file(path, &p, &e), "%s", e.text);
	ck_assert_int_eq(p->mode, HARD_MODE_VERIFY);
}
END_TEST

START_TEST(empty__admits_nothing)
{
	ck_assert_int_eq(hard_policy_empty(&p, &e), 0);
	ck_assert_int_eq(p->mode, HARD_MODE_ENFORCE);
	ck_assert_uint_eq(p->n_images + p->n_mounts + p->n_waivers, 0);
	ck_assert_uint_eq(p->n_agents, HARD_AGENTS_COUNT);
	ck_assert_ptr_null(p->runtime_path);
	hard_policy_free(NULL);
}
END_TEST

/* Memory that ends at any point is an error of memory, never half a policy. */
START_TEST(load__fails_cleanly_when_memory_ends)
{
	bool loaded = false;

	for (size_t max = 64; !loaded; max += 64 + max / 16) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(max);
		struct hard_policy own = { .arena = a,
					   .agents = HARD_AGENTS,
					   .n_agents = HARD_AGENTS_COUNT };
		struct hard_policy_files files = { .arena = a };
		int rc;

		ck_assert_uint_lt(max, 4U << 20);
		ck_assert_ptr_nonnull(a);
		rc = hard_policy_files_one(&files, "tests/fuzz/corpus/policy/full.json", &e);
		if (!rc)
			rc = hard_policy_decode(&own, &files, &e);
		ck_assert_msg(rc == 0 || rc == AQE_E_NOMEM || rc == AQE_E_LIMIT, "%d %s", rc,
			      e.text);
		loaded = rc == 0;
	}
}
END_TEST

/* ---- drop-ins ---- */

START_TEST(dropins__are_put_together_in_name_order)
{
	put_dir("sys/policy.d", 0755);
	put("sys/policy.json", V("\"images\":[" IMAGE "]"));
	put("sys/policy.d/20-b.json", V("\"mounts\":[{\"source\":\"/a\",\"destination\":\"/b\"}],"
					"\"mode\":\"verify\""));
	put("sys/policy.d/10-a.json", V("\"images\":[{\"digest\":\"" D2 "\"}],"
					"\"agents\":{\"new\":{}}"));
	put("sys/policy.d/30-c.json", V("\"agents\":{\"default\":{\"pids\":5}}"));
	put("sys/policy.d/README", "not json");
	put("sys/policy.d/.hidden.json", "not json");
	put("sys/policy.d/x.json.bak", "not json");
	load_ok();
	ck_assert_uint_eq(p->n_images, 2);
	ck_assert_str_eq(p->images[0].digest, D1);
	ck_assert_str_eq(p->images[1].digest, D2);
	ck_assert(aqe_ends(p->images[1].where.file, "/sys/policy.d/10-a.json"));
	ck_assert_uint_eq(p->n_mounts, 1);
	ck_assert_int_eq(p->mode, HARD_MODE_VERIFY);
	ck_assert_ptr_nonnull(hard_policy_agent(p, "new"));
	ck_assert_uint_eq(hard_policy_agent(p, "default")->pids, 5);
	ck_assert_ptr_nonnull(strstr(p->files, "policy.json, "));
	ck_assert(strstr(p->files, "10-a.json") < strstr(p->files, "20-b.json"));
}
END_TEST

START_TEST(dropins__count_without_policy_json)
{
	put_dir("sys/policy.d", 0755);
	put("sys/policy.d/a.json", V("\"mode\":\"observe\""));
	put("user/policy.json", V("\"mode\":\"enforce\""));
	load_ok();
	ck_assert_int_eq(p->mode, HARD_MODE_ENFORCE);
	put("user/policy.json", V("\"images\":[]")); /* not the only policy */
	load_fails(AQE_E_MALFORMED, "user/policy.json:2", "is set by the system's policy");
}
END_TEST

#define NET_AGENT(text) V("\"network\":{\"agents\":{\"default\":{" text "}}}")

START_TEST(sections__keep_file_tier_and_place)
{
	put_dir("sys/policy.d", 0755);
	put("sys/policy.json", NET_AGENT("\"socks\":true"));
	put("sys/policy.d/10.json", V("\"network\":{\"mode\":\"report\"}"));
	put("user/policy.json", NET_AGENT("\"socks\":false"));
	load_ok();
	ck_assert_uint_eq(p->n_sections, 3);
	for (size_t i = 0; i < p->n_sections; i++) {
		static const char *const ends[] = { "sys/policy.json", "10.json",
						    "user/policy.json" };
		const struct hard_section *s = &p->sections[i];

		ck_assert_str_eq(s->key, "network");
		ck_assert_msg(aqe_ends(s->file, ends[i]), "%s", s->file);
		ck_assert_uint_eq(s->root->line, 2);
		ck_assert_int_eq(s->user, i == 2);
	}
}
END_TEST

START_TEST(audit__defaults_and_tiers)
{
	put("user/policy.json", V("\"audit\":{\"path\":\"/home/u/log\"}"));
	load_ok(); /* alone, it is still the user's */
	ck_assert_int_eq(p->audit.mode, HARD_AUDIT_REQUIRED);
	ck_assert_ptr_null(p->audit.path);
	ck_assert_str_eq(p->audit.user_path, "/home/u/log");
	ck_assert_uint_eq(p->audit.sign_every, HARD_AUDIT_SIGN_EVERY);
	put("sys/policy.json", V("\"audit\":{\"mode\":\"off\",\"path\":\"/srv/log\"}"));
	load_ok();
	ck_assert_int_eq(p->audit.mode, HARD_AUDIT_OFF);
	ck_assert_str_eq(p->audit.path, "/srv/log");
	ck_assert_str_eq(p->audit.user_path, "/home/u/log");
	put("user/policy.json", V("\"audit\":{\"mode\":\"optional\",\"signEvery\":10}"));
	load_ok();
	ck_assert_int_eq(p->audit.mode, HARD_AUDIT_OPTIONAL);
	ck_assert_str_eq(p->audit.path, "/srv/log");
	ck_assert_ptr_null(p->audit.user_path);
	ck_assert_uint_eq(p->audit.sign_every, 10);
}
END_TEST

static const struct {
	const char *first, *second, *says;
} clashes[] = {
	{ V("\"mode\":\"verify\""), V("\"mode\":\"verify\""), "'/mode' is set already by " },
	{ V("\"runtime\":\"/a\""), V("\"runtime\":\"/a\""), "'/runtime' is set already by " },
	{ V("\"user\":{\"uid\":1,\"gid\":1}"), V("\"user\":{\"uid\":1,\"gid\":1}"),
	  "'/user' is set already by " },
	{ V("\"unmarked\":\"refuse\""), V("\"unmarked\":\"default\""),
	  "'/unmarked' is set already by " },
	{ V("\"seccompFile\":\"/a\""), V("\"seccompFile\":\"/b\""),
	  "'/seccompFile' is set already by " },
	{ V("\"audit\":{\"mode\":\"off\"}"), V("\"audit\":{\"mode\":\"off\"}"),
	  "'/audit/mode' is set already by " },
	{ V("\"network\":{\"sni\":\"off\"}"), V("\"network\":{\"sni\":\"off\"}"),
	  "'/network/sni' is set already by " },
	{ NET_AGENT("\"socks\":true"), NET_AGENT("\"mode\":\"report\""),
	  "'/network/agents/default' is set already by " },
	{ V("\"agents\":{\"x\":{\"pids\":1}}"), V("\"agents\":{\"x\":{\"cpus\":1}}"),
	  "'/agents/x' is set already by " },
	{ V("\"images\":[" IMAGE "]"), V("\"images\":[" IMAGE "]"), "repeats the digest of " },
	{ MOUNT("/a", "/w"), MOUNT("/b", "/w"), "repeats the destination of " },
	{ WAIVER("rootless", FOR_DEFAULT), WAIVER("rootless", FOR_DEFAULT),
	  "repeats the waiver of " },
};

START_TEST(dropins__refuse_a_key_set_twice_naming_both)
{
	char first[128];

	put_dir("sys/policy.d", 0755);
	put("sys/policy.json", clashes[_i].first);
	put("sys/policy.d/50-x.json", clashes[_i].second);
	load_fails(AQE_E_MALFORMED, "sys/policy.d/50-x.json:2", clashes[_i].says);
	(void)snprintf(first, sizeof(first), "%s/policy.json:2", sys);
	ck_assert_msg(strstr(e.text, first), "%s", e.text);
}
END_TEST

START_TEST(dropins__that_are_broken_name_themselves)
{
	put_dir("sys/policy.d", 0755);
	put("sys/policy.json", V("\"mode\":\"verify\""));
	put("sys/policy.d/10-good.json", V("\"images\":[]"));
	put("sys/policy.d/50-broken.json", "{\"version\":1,\n\"images\":\n");
	load_fails(AQE_E_MALFORMED, "sys/policy.d/50-broken.json:3", "premature EOF");
	put("sys/policy.d/50-broken.json", "{\n\"images\":[]}");
	load_fails(AQE_E_MALFORMED, "sys/policy.d/50-broken.json:1", "has no 'version'");
}
END_TEST

START_TEST(dropins__have_a_limit)
{
	char name[64];

	put_dir("sys/policy.d", 0755);
	for (int i = 0; i < HARD_POLICY_DROPINS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "sys/policy.d/%03d.json", i);
		put(name, "{\"version\":1}");
	}
	load_ok();
	put("sys/policy.json", "{\"version\":1}");
	load_ok();
	put("sys/policy.d/more.json", "{\"version\":1}");
	ck_assert_int_eq(load(), AQE_E_LIMIT);
	ck_assert_msg(strstr(e.text, "more than 256 drop-ins"), "%s", e.text);
}
END_TEST

/* ---- trust ---- */

START_TEST(trust__refuses_what_others_can_write)
{
	char path[160];

	put("sys/policy.json", V("\"mode\":\"verify\""));
	(void)snprintf(path, sizeof(path), "%s/policy.json", sys);
	ck_assert_int_eq(chmod(path, 0664), 0);
	load_fails(AQE_E_UNTRUSTED, "sys/policy.json", "may write to it");
	ck_assert_int_eq(chmod(path, 0600), 0);
	load_ok();
	ck_assert_int_eq(chmod(sys, 0777), 0);
	load_fails(AQE_E_UNTRUSTED, "sys", "may write to it");
	ck_assert_int_eq(chmod(sys, 0755), 0);
	put_dir("sys/policy.d", 0775);
	load_fails(AQE_E_UNTRUSTED, "sys/policy.d", "may write to it");
}
END_TEST

START_TEST(trust__refuses_foreign_owners)
{
	char path[160];

	if (geteuid() != 0)
		return;
	put("sys/policy.json", V("\"mode\":\"verify\""));
	(void)snprintf(path, sizeof(path), "%s/policy.json", sys);
	ck_assert_int_eq(chown(path, 12345, 12345), 0);
	load_fails(AQE_E_UNTRUSTED, "sys/policy.json", "");
}
END_TEST

START_TEST(trust__refuses_links_and_other_kinds)
{
	char path[160], other[160];

	put("elsewhere.json", V("\"mode\":\"observe\""));
	(void)snprintf(other, sizeof(other), "%s/elsewhere.json", base);
	(void)snprintf(path, sizeof(path), "%s/policy.json", sys);
	ck_assert_int_eq(symlink(other, path), 0);
	load_fails(AQE_E_UNTRUSTED, "sys/policy.json", "");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(link(other, path), 0);
	load_fails(AQE_E_UNTRUSTED, "sys/policy.json", "");
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	load_fails(AQE_E_UNTRUSTED, "sys/policy.json", "regular file");
	ck_assert_int_eq(unlink(path), 0);
	put("sys/policy.json", "{\"version\":1}");
	put_dir("sys/policy.d", 0755);
	put_dir("sys/policy.d/a.json", 0755);
	load_fails(AQE_E_UNTRUSTED, "sys/policy.d/a.json", "regular file");
}
END_TEST

/* ---- tiers ---- */

START_TEST(load__without_any_policy_is_absent)
{
	ck_assert_int_eq(load(), AQE_E_ABSENT);
	ck_assert(aqe_starts(e.text, "no policy: there is no '"));
	ck_assert_ptr_nonnull(strstr(e.text, sys));
	ck_assert_ptr_nonnull(strstr(e.text, user));
	ck_assert_int_eq(hard_policy_load("/nonexistent/a", NULL, &p, &e), AQE_E_ABSENT);
	ck_assert_str_eq(e.text, "no policy: there is no '/nonexistent/a/policy.json'");
	ck_assert_int_eq(hard_policy_load("/nonexistent/a", "/nonexistent/b", &p, &e),
			 AQE_E_ABSENT);
}
END_TEST

START_TEST(user__stands_alone_without_a_system_policy)
{
	put("user/policy.json", V("\"mode\":\"observe\",\"images\":[" IMAGE "]"));
	load_ok();
	ck_assert_int_eq(p->mode, HARD_MODE_OBSERVE);
	ck_assert_uint_eq(p->n_images, 1);
}
END_TEST

START_TEST(user__is_not_a_way_around_a_broken_system_policy)
{
	put("user/policy.json", V("\"mode\":\"observe\""));
	put("sys/policy.json", "{");
	load_fails(AQE_E_MALFORMED, "sys/policy.json:1", "premature EOF");
}
END_TEST

START_TEST(user__tightens)
{
	put("sys/policy.json", V("\"mode\":\"verify\",\"agents\":{\"mine\":{\"memory\":\"8g\","
				 "\"tmpExec\":true}},\"images\":[" IMAGE "]"));
	put("user/policy.json",
	    V("\"mode\":\"enforce\",\"unmarked\":\"refuse\",\"agents\":{\"mine\":{\"memory\":"
	      "\"4g\",\"tmpExec\":false},\"default\":{\"cpus\":0.5,\"pids\":512}}"));
	load_ok();
	ck_assert_int_eq(p->mode, HARD_MODE_ENFORCE);
	ck_assert(p->unmarked_refuse);
	ck_assert_uint_eq(hard_policy_agent(p, "mine")->memory_bytes, 4294967296);
	ck_assert(!hard_policy_agent(p, "mine")->tmp_exec);
	ck_assert_uint_eq(hard_policy_agent(p, "default")->cpus_milli, 500);
	ck_assert_uint_eq(p->n_images, 1);
	ck_assert(strstr(p->files, sys) < strstr(p->files, user));
}
END_TEST

static const struct {
	const char *text, *says;
} loosenings[] = {
	{ V("\"mode\":\"observe\""), "'/mode' is 'observe', looser than the system's policy" },
	{ V("\"unmarked\":\"default\""), "it can only be refuse" },
	{ V("\"images\":[]"), "'/images' is set by the system's policy" },
	{ V("\"mounts\":[]"), "'/mounts' is set by the system's policy" },
	{ V("\"waivers\":[]"), "'/waivers' is set by the system's policy" },
	{ V("\"runtime\":\"/tmp/evil\""), "'/runtime' is set by the system's policy" },
	{ V("\"user\":{\"uid\":5,\"gid\":5}"), "'/user' is set by the system's policy" },
	{ V("\"seccompFile\":\"/x\""), "'/seccompFile' is set by the system's policy" },
	{ V("\"audit\":{\"mode\":\"optional\"}"),
	  "'/audit/mode' is 'optional', looser than the system's policy" },
	{ V("\"audit\":{\"signEvery\":1001}"), "more than the system's policy allows" },
	{ V("\"agents\":{\"new\":{}}"), "'/agents/new' is no agent type of the system's policy" },
	{ AGENT("\"cpus\":1.001"), "'/agents/default/cpus' is above what the system's" },
	{ AGENT("\"memory\":\"513m\""), "'/agents/default/memory' is above" },
	{ AGENT("\"disk\":\"129m\""), "'/agents/default/disk' is above" },
	{ AGENT("\"pids\":513"), "'/agents/default/pids' is above" },
	{ AGENT("\"tmpExec\":true"), "'/agents/default/tmpExec' is above" },
	{ V("\"mode\":\"verify\""), "'/mode' is 'verify', looser than the system's policy" },
};

START_TEST(user__cannot_loosen)
{
	put("sys/policy.json", "{\"version\":1}");
	put("user/policy.json", loosenings[_i].text);
	load_fails(AQE_E_MALFORMED, "user/policy.json:2", loosenings[_i].says);
}
END_TEST

START_TEST(digest__changes_with_any_file)
{
	char first[AQE_DIGEST_TEXT];

	put("sys/policy.json", "{\"version\":1}");
	load_ok();
	memcpy(first, p->digest, sizeof(first));
	put("user/policy.json", "{\"version\":1}");
	load_ok();
	ck_assert_str_ne(p->digest, first);
	memcpy(first, p->digest, sizeof(first));
	put("user/policy.json", "{\"version\":1} ");
	load_ok();
	ck_assert_str_ne(p->digest, first);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_policy");
	TCase *t = tcase_create("policy");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, load__accepts_what_the_format_has, 0, (int)AQE_COUNT(good));
	tcase_add_loop_test(t, load__refuses_with_file_line_and_key, 0, (int)AQE_COUNT(bad));
	tcase_add_test(t, load__refuses_deep_and_huge_files);
	tcase_add_test(t, load__fills_every_field);
	tcase_add_test(t, load_file__reads_the_corpus_policy);
	tcase_add_test(t, load_file__names_what_cannot_be_read);
	tcase_add_test(t, load_file__does_not_judge_the_owner);
	tcase_add_test(t, empty__admits_nothing);
	tcase_add_test(t, load__fails_cleanly_when_memory_ends);
	tcase_add_test(t, dropins__are_put_together_in_name_order);
	tcase_add_test(t, dropins__count_without_policy_json);
	tcase_add_test(t, sections__keep_file_tier_and_place);
	tcase_add_test(t, audit__defaults_and_tiers);
	tcase_add_loop_test(t, dropins__refuse_a_key_set_twice_naming_both, 0,
			    (int)AQE_COUNT(clashes));
	tcase_add_test(t, dropins__that_are_broken_name_themselves);
	tcase_add_test(t, dropins__have_a_limit);
	tcase_add_test(t, trust__refuses_what_others_can_write);
	tcase_add_test(t, trust__refuses_foreign_owners);
	tcase_add_test(t, trust__refuses_links_and_other_kinds);
	tcase_add_test(t, load__without_any_policy_is_absent);
	tcase_add_test(t, user__stands_alone_without_a_system_policy);
	tcase_add_test(t, user__is_not_a_way_around_a_broken_system_policy);
	tcase_add_test(t, user__tightens);
	tcase_add_loop_test(t, user__cannot_loosen, 0, (int)AQE_COUNT(loosenings));
	tcase_add_test(t, digest__changes_with_any_file);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
