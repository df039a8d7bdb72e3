/* SPDX-License-Identifier: MIT */
/* What the commands below `aqe cache` are made of: URLs, lines, progress; and what is given to the
 * companion in a container. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "shim/aqe/cache_url.h"
#include "shim/aqe/lines.h"
#include "shim/aqe/progress.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/egress_cache.h"
#include "tests/unit/cache_util.h"

/* ---- --redis-url ---- */

static const struct {
	const char *url, *host, *user, *socket;
	uint16_t port;
	unsigned db;
	bool tls;
} URLS[] = {
	{ "redis://h", "h", NULL, NULL, 6379, 0, false },
	{ "redis://h/", "h", NULL, NULL, 6379, 0, false },
	{ "redis://h:1/15", "h", NULL, NULL, 1, 15, false },
	{ "rediss://u@h:65535", "h", "u", NULL, 65535, 0, true },
	{ "redis://@h", "h", NULL, NULL, 6379, 0, false },
	{ "redis://[::1]", "::1", NULL, NULL, 6379, 0, false },
	{ "redis://[::1]:7/2", "::1", NULL, NULL, 7, 2, false },
	{ "unix:///run/r.sock", "127.0.0.1", NULL, "/run/r.sock", 6379, 0, false },
};

START_TEST(url__is_read)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 16);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;
	const struct cache_conn_opts *at = &c.redis.where.at;

	cache_config_init(&c);
	ck_assert_ok(shim_cache_url(a, URLS[_i].url, &c, &e), e);
	ck_assert_str_eq(at->host, URLS[_i].host);
	ck_assert_pstr_eq(c.redis.where.username, URLS[_i].user);
	ck_assert_pstr_eq(at->socket, URLS[_i].socket);
	ck_assert(at->port == URLS[_i].port && c.redis.where.db == URLS[_i].db);
	ck_assert_ptr_eq(at->tls, URLS[_i].tls ? &c.redis_tls : NULL);
}
END_TEST

static const struct {
	const char *url, *why;
} BAD_URLS[] = {
	{ "http://h", "no such kind" },
	{ "", "no such kind" },
	{ "redis://", "no host" },
	{ "redis://:1", "no host" },
	{ "redis://h:0", "no port" },
	{ "redis://h:65536", "no port" },
	{ "redis://h:x", "no port" },
	{ "redis://h/x", "no number of a database" },
	{ "redis://h/65536", "no number" },
	{ "redis://::1", "needs brackets" },
	{ "redis://[::1", "brackets" },
	{ "redis://[::1]x", "brackets" },
	{ "unix://run", "absolute path" },
	{ "unix:///a/../b", "absolute path" },
	{ "redis://u:secret@h", "a password in it is seen by everybody" },
};

START_TEST(url__is_refused)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 16);
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_config c;

	cache_config_init(&c);
	ck_assert_fault(shim_cache_url(a, BAD_URLS[_i].url, &c, &e), AQE_E_USAGE, e,
			BAD_URLS[_i].why);
	ck_assert_ptr_null(strstr(e.text, "secret"));
}
END_TEST

/* ---- lines ---- */

static void put(const char *name, const char *text, size_t n, mode_t mode)
{
	AQE_AUTO_FD int fd = open(util_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(aqe_fs_write_all(fd, text, n, &e), e);
	ck_assert_int_eq(fchmod(fd, mode), 0);
}

static const struct {
	const char *text, *want[5];
} LINES[] = {
	{ "", { NULL } },
	{ "\n", { "", NULL } },
	{ "a", { "a", NULL } },
	{ "a\n", { "a", NULL } },
	{ "a\r\nb\n\nc", { "a", "b", "", "c", NULL } },
	{ "a\rb\n", { "a\rb", NULL } },
	{ "12345678\n", { "12345678", NULL } }, /* as long as allowed */
};

START_TEST(lines__come_one_by_one)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_lines l;
	const char *line;
	size_t n, i = 0;
	int rc;

	put("lines", LINES[_i].text, strlen(LINES[_i].text), 0600);
	ck_assert_ok(shim_lines_open(&l, util_path("lines"), 8, &e), e);
	while ((rc = shim_lines_next(&l, &line, &n, &e)) == 1) {
		ck_assert_ptr_nonnull(LINES[_i].want[i]);
		ck_assert(n == strlen(LINES[_i].want[i]) &&
			  memcmp(line, LINES[_i].want[i], n) == 0);
		ck_assert_uint_eq(l.number, ++i);
	}
	ck_assert_ok(rc, e);
	ck_assert_ptr_null(LINES[_i].want[i]);
	ck_assert(l.at == l.size && l.size == strlen(LINES[_i].text));
	shim_lines_close(&l);
}
END_TEST

START_TEST(lines__have_a_limit)
{
	static char long_line[200000];
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_lines l;
	const char *line;
	size_t n;

	memset(long_line, 'x', sizeof(long_line));
	put("long", long_line, sizeof(long_line), 0600);
	ck_assert_ok(shim_lines_open(&l, util_path("long"), 1000, &e), e);
	ck_assert_fault(shim_lines_next(&l, &line, &n, &e), AQE_E_LIMIT, e, "line 1 is longer");
	shim_lines_close(&l);
	ck_assert_fault(shim_lines_open(&l, util_path("absent"), 8, &e), AQE_E_SYS, e, "absent");
	shim_lines_close(&l);
}
END_TEST

/* ---- progress ---- */

/* What is drawn on standard error. */
static void draw(bool force, uint64_t done, uint64_t total, char ret[512])
{
	struct shim_progress p;
	const int before = fcntl(2, F_DUPFD_CLOEXEC, 16);
	int pair[2];
	ssize_t n;

	ck_assert_int_eq(pipe(pair), 0);
	ck_assert_int_ge(dup2(pair[1], 2), 0);
	shim_progress_init(&p, "warm", force);
	shim_progress_update(&p, done / 2, total);
	shim_progress_update(&p, done / 2, total); /* too soon */
	shim_progress_end(&p, done, total);
	shim_progress_end(&p, done, total);
	close(pair[1]);
	ck_assert_int_ge(dup2(before, 2), 0);
	close(before);
	n = read(pair[0], ret, 511);
	ret[n > 0 ? n : 0] = '\0';
	close(pair[0]);
}

START_TEST(progress__is_drawn)
{
	char text[512];

	draw(true, 10, 20, text);
	ck_assert_msg(aqe_starts(text, "\rwarm [#######.......................]  25 % 5/20 "), "%s",
		      text);
	ck_assert_ptr_nonnull(strstr(text, "\rwarm [###############...............]  50 % 10/20 "));
	ck_assert(aqe_ends(text, "s \n"));
	ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1); /* one end */
}
END_TEST

START_TEST(progress__may_not_know_the_end)
{
	char text[512];

	draw(true, 8, 0, text);
	ck_assert(aqe_starts(text, "\rwarm 4 ") && strstr(text, "\rwarm 8 "));
	ck_assert_ptr_null(strchr(text, '%'));
}
END_TEST

START_TEST(progress__is_for_terminals)
{
	char text[512];

	draw(false, 10, 20, text);
	ck_assert_str_eq(text, "");
}
END_TEST

/* ---- what a container's companion is given ---- */

#define POLICY(more)                                                                            \
	"{\"version\":1,\n\"cache\":{\"backend\":\"memory\",\"upstream\":{\"kind\":\"openai\"," \
	"\"url\":\"http://u\"%s}" more "}}"

static struct hard_policy *policy(const char *format, const char *credential)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_policy *p = NULL;
	const char *at = strstr(format, "%s"); /* where the credential goes */
	char text[1024], more[512] = "";

	if (credential)
		snprintf(more, sizeof(more), ",\"credentialFile\":\"%s\"", util_path(credential));
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - format), format, more, at + 2);
	put("policy.json", text, strlen(text), 0600);
	ck_assert_ok(hard_policy_load_file(util_path("policy.json"), &p, &e), e);
	return p;
}

static const struct {
	const char *format, *agent, *space;
} SPACES[] = {
	{ POLICY(""), "id-1", "type:default" },
	{ POLICY(",\"scope\":\"all\""), "id-1", NULL },
	{ POLICY(",\"scope\":\"agent\""), "id-1", "agent:id-1" },
	{ POLICY(",\"scope\":\"agent\""), NULL, "container:c1" },
	{ POLICY(",\"agents\":{\"default\":{\"scope\":\"agent\"}}"), "id-2", "agent:id-2" },
};

START_TEST(give__is_taken)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 22);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_EGRESS_CACHE_MAX);
	const struct shim_egress_cache_for who = { "default", SPACES[_i].agent, "c1" };
	struct shim_egress_cache_given g;
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_policy *p;

	put("key", "long-enough\n", 12, 0600);
	p = policy(SPACES[_i].format, "key");
	ck_assert_ok(shim_egress_cache_give(p, &who, &b, &e), e);
	hard_policy_free(p);
	ck_assert_ok(shim_egress_cache_take(a, &b, &g, &e), e);
	ck_assert_str_eq(g.type, "default");
	ck_assert_pstr_eq(g.cfg.space, SPACES[_i].space);
	ck_assert_str_eq(g.cfg.upstream.url, "http://u");
	ck_assert_str_eq(g.cfg.upstream.credential, "long-enough");
	ck_assert_ptr_null(g.cfg.upstream.credential_file);
}
END_TEST

START_TEST(give__refuses_unsafe_files)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(SHIM_EGRESS_CACHE_MAX);
	const struct shim_egress_cache_for who = { "default", NULL, NULL };
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_policy *p;

	put("key", "long-enough\n", 12, 0644);
	p = policy(POLICY(""), "key");
	ck_assert_fault(shim_egress_cache_give(p, &who, &b, &e), AQE_E_UNTRUSTED, e,
			"others may read it");
	put("key", "short\n", 6, 0600);
	ck_assert_fault(shim_egress_cache_give(p, &who, &b, &e), AQE_E_MALFORMED, e, "shorter");
	ck_assert_ptr_null(strstr(aqe_buf_str(&b), "long-enough"));
	hard_policy_free(p);
}
END_TEST

static const struct {
	const char *format;
	bool wanted;
} WANTED[] = {
	{ POLICY(""), true },
	{ POLICY(",\"gateway\":false"), false },
	{ POLICY(",\"agents\":{\"default\":{\"gateway\":false}}"), false },
	{ POLICY(",\"gateway\":false,\"agents\":{\"default\":{\"gateway\":true}}"), true },
	{ "{\"version\":1,\"cache\":{\"backend\":\"memory\"}}%s", false },
	{ "{\"version\":1,\"cache\":{}}%s", false },
	{ "{\"version\":1}%s", false },
};

START_TEST(listener__is_wanted)
{
	struct hard_policy *p = policy(WANTED[_i].format, NULL);
	struct aqe_err e = AQE_ERR_INIT;
	bool wanted = !WANTED[_i].wanted;

	ck_assert_ok(shim_egress_cache_wanted(p, "default", &wanted, &e), e);
	ck_assert(wanted == WANTED[_i].wanted);
	hard_policy_free(p);
}
END_TEST

static const char *const GARBAGE[] = {
	"",
	"[]",
	"{}",
	"{\"type\":\"t\"}",
	"{\"type\":\"t\",\"space\":\"\",\"parts\":[]}",
	"{\"type\":\"t\",\"space\":\"\",\"parts\":[{\"root\":{}}]}"
};

START_TEST(take__refuses_garbage)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 22);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	struct shim_egress_cache_given g;
	struct aqe_err e = AQE_ERR_INIT;

	aqe_buf_puts(&b, GARBAGE[_i]);
	ck_assert_int_lt(shim_egress_cache_take(a, &b, &g, &e), 0);
}
END_TEST

/* The folder of a shared file: made and given away, or somebody's, but not root's. */
START_TEST(folder__is_not_roots)
{
	char text[1024];
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_policy *p = NULL;
	struct stat st;
	uid_t id = 0;

	snprintf(text, sizeof(text),
		 "{\"version\":1,\"cache\":{\"backend\":\"sqlite\",\"sqlite\":{\"path\":\"%s\"}}}",
		 util_path("new/c.db"));
	put("policy.json", text, strlen(text), 0600);
	ck_assert_ok(hard_policy_load_file(util_path("policy.json"), &p, &e), e);
	ck_assert_ok(shim_egress_cache_id(p, "default", 0, &id, &e), e); /* not root: as we are */
	ck_assert(id == 0 && stat(util_path("new"), &st) < 0);
	if (geteuid() == 0) {
		ck_assert_ok(shim_egress_cache_id(p, "default", 61999, &id, &e), e);
		ck_assert_int_eq(stat(util_path("new"), &st), 0);
		ck_assert(st.st_uid == id && id != 0 && (st.st_mode & 07777) == 0700);
		ck_assert_int_eq(chown(util_path("new"), 0, 0), 0);
		ck_assert_fault(shim_egress_cache_id(p, "default", 61999, &id, &e), AQE_E_UNTRUSTED,
				e, "belongs to root");
		ck_assert_int_eq(chown(util_path("new"), 4242, 4242), 0);
		ck_assert_ok(shim_egress_cache_id(p, "default", 61999, &id, &e), e);
		ck_assert_uint_eq(id, 4242);
	}
	hard_policy_free(p);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("shim_cache_cmd");
	TCase *t = tcase_create("parts");

	tcase_add_checked_fixture(t, util_dir_init, util_dir_done);
	tcase_add_loop_test(t, url__is_read, 0, AQE_COUNT(URLS));
	tcase_add_loop_test(t, url__is_refused, 0, AQE_COUNT(BAD_URLS));
	tcase_add_loop_test(t, lines__come_one_by_one, 0, AQE_COUNT(LINES));
	tcase_add_test(t, lines__have_a_limit);
	tcase_add_test(t, progress__is_drawn);
	tcase_add_test(t, progress__may_not_know_the_end);
	tcase_add_test(t, progress__is_for_terminals);
	tcase_add_loop_test(t, give__is_taken, 0, AQE_COUNT(SPACES));
	tcase_add_test(t, give__refuses_unsafe_files);
	tcase_add_loop_test(t, listener__is_wanted, 0, AQE_COUNT(WANTED));
	tcase_add_loop_test(t, take__refuses_garbage, 0, AQE_COUNT(GARBAGE));
	tcase_add_test(t, folder__is_not_roots);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
