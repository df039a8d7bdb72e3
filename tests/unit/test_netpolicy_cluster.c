/* SPDX-License-Identifier: MIT */
/* The shared limiter's script in a real Redis server: the same answers as limiter.c, and what
 * clocks, restarts and foreign answers do to it. */
#include "netpolicy/cluster.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/fakes/real_redis.h"
#include "tests/unit/unit.h"

#define TRACES 10000
#define STEPS  24
#define BEGIN  INT64_C(1700000000000000)
#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

static struct aqe_err err = AQE_ERR_INIT;
static struct real_redis server;
static int fd = -1;
static struct netpol_cluster *cluster;
static struct aqe_buf out = AQE_BUF_INIT(1 << 20);
static uint64_t seed = 7;

static uint32_t dice(uint32_t sides)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(seed >> 33) % sides;
}

/* ---- a blocking connection ---- */

static void flush(void)
{
	size_t at = 0;

	while (at < out.len) {
		ssize_t n = send(fd, out.p + at, out.len - at, MSG_NOSIGNAL);

		ck_assert_int_gt(n, 0);
		at += (size_t)n;
	}
	aqe_buf_clear(&out);
}

static void hear(enum netpol_cluster_said want, struct netpol_cluster_answer *ret)
{
	enum netpol_cluster_said said;
	char part[8192];

	for (;;) {
		ck_assert_ok(netpol_cluster_next(cluster, &out, &said, ret, &err), err);
		if (said == NETPOL_CLUSTER_RESEND) {
			flush();
			continue;
		}
		if (said != NETPOL_CLUSTER_MORE)
			break;
		ssize_t n = recv(fd, part, sizeof(part), 0);

		ck_assert_int_gt(n, 0);
		ck_assert_ok(netpol_cluster_feed(cluster, part, (size_t)n, &err), err);
	}
	ck_assert_int_eq(said, want);
}

static void dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)server.port) };
	const int on = 1;

	if (fd >= 0)
		(void)close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static void greet(const struct netpol_cluster_opts *o)
{
	struct netpol_cluster_answer a;

	netpol_cluster_free(cluster);
	cluster = NULL;
	ck_assert_ok(netpol_cluster_new(o, &cluster, &err), err);
	ck_assert_ok(netpol_cluster_hello(cluster, &out, &err), err);
	flush();
	hear(NETPOL_CLUSTER_READY, &a);
}

static struct netpol_cluster_answer ask(int64_t latest, int64_t now)
{
	struct netpol_cluster_answer a = { false, 0, 0 };

	ck_assert_ok(netpol_cluster_ask(cluster, latest, now, &out, &err), err);
	flush();
	hear(NETPOL_CLUSTER_ANSWER, &a);
	return a;
}

static void setup(void)
{
	ck_assert_msg(real_redis_start(&server), "no redis-server");
	dial();
}

static void teardown(void)
{
	netpol_cluster_free(cluster);
	cluster = NULL;
	aqe_buf_done(&out);
	(void)close(fd);
	fd = -1;
	real_redis_stop(&server);
	server.more = NULL;
}

static bool cli(const char *const *words)
{
	return real_redis_cli(&server, words);
}

/* ---- the same as limiter.c ---- */

static struct netpol_rate random_rate(void)
{
	return (struct netpol_rate){ 1 + dice(20), 1 + dice(40), 1 + dice(12) };
}

static int64_t random_step(void)
{
	switch (dice(8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return (int64_t)dice(60000) * 1000 + dice(1000);
	case 3:
		return (int64_t)dice(600) * SECOND;
	case 4:
		return HOUR - dice(3);
	case 5:
		return MINUTE - dice(3);
	default:
		return (int64_t)dice(5000) * 1000;
	}
}

/* All questions of a trace go out at once; the answers are compared afterwards. */
static void one_trace(int number)
{
	struct netpol_limit want[STEPS];
	struct netpol_rate rate = random_rate();
	struct netpol_limiter *l = NULL;
	int64_t now = BEGIN + dice(1000000);
	char key[32];
	struct netpol_cluster_opts o = { .prefix = "aqe:", .key = key, .rate = rate };

	(void)snprintf(key, sizeof(key), "trace%d", number);
	greet(&o);
	ck_assert_ok(netpol_limiter_new(&rate, &l, &err), err);
	for (int i = 0; i < STEPS; i++) {
		now += random_step();
		if (i > 0 && dice(12) == 0) {
			rate = random_rate();
			netpol_cluster_rate(cluster, &rate);
			ck_assert_ok(netpol_limiter_reconf(l, now * 1000, &rate, &err), err);
		}
		netpol_limiter_consume(l, now * 1000, &want[i]);
		ck_assert_ok(netpol_cluster_ask(cluster, 0, now, &out, &err), err);
	}
	flush();
	for (int i = 0; i < STEPS; i++) {
		struct netpol_cluster_answer a = { false, 0, 0 };

		hear(NETPOL_CLUSTER_ANSWER, &a);
		ck_assert_msg(a.allowed == want[i].allowed &&
				      (a.wait_us + 999) / 1000 == want[i].retry_ms,
			      "trace %d step %d: %d after %llu us, not %d after %llu ms", number, i,
			      a.allowed, (unsigned long long)a.wait_us, want[i].allowed,
			      (unsigned long long)want[i].retry_ms);
	}
	netpol_limiter_free(l);
}

START_TEST(script__answers_as_the_limiter)
{
	/* under valgrind, which run_unit.sh runs without forks, a part of them */
	const bool slow = aqe_str_eq(getenv("CK_FORK"), "no");

	for (int i = 0; i < (slow ? TRACES / 50 : TRACES); i++)
		one_trace(i);
}
END_TEST

/* Large limits, where integers get long and the list does too. */
START_TEST(script__large_limits)
{
	const struct netpol_rate rate = { 3000, 5000, 2000 };
	struct netpol_cluster_opts o = { .prefix = "p:", .key = "large", .rate = rate };
	struct netpol_limiter *l = NULL;
	int64_t now = BEGIN;
	unsigned admitted = 0;

	greet(&o);
	ck_assert_ok(netpol_limiter_new(&rate, &l, &err), err);
	for (int i = 0; i < 12000; i++) {
		struct netpol_cluster_answer a;
		struct netpol_limit want;

		now += i % 4 == 0 ? 40000 : 1;
		netpol_limiter_consume(l, now * 1000, &want);
		a = ask(0, now);
		ck_assert_int_eq(a.allowed, want.allowed);
		ck_assert_uint_eq((a.wait_us + 999) / 1000, want.retry_ms);
		admitted += a.allowed;
	}
	ck_assert_uint_gt(admitted, 3000);
	netpol_limiter_free(l);
}
END_TEST

/* ---- clocks ---- */

static const struct netpol_rate SMALL = { 6, 100, 2 };
static const struct netpol_cluster_opts SMALL_OPTS = {
	.prefix = "aqe:", .key = "small", .rate = { 6, 100, 2 }
};

static void spend_all(int64_t now)
{
	greet(&SMALL_OPTS);
	ck_assert(ask(0, now).allowed);
	ck_assert(ask(0, now).allowed);
	ck_assert(!ask(0, now).allowed);
}

START_TEST(clock__set_back_stands_still_once)
{
	spend_all(BEGIN);
	ck_assert_uint_eq(ask(0, BEGIN - 5 * HOUR).wait_us, 10 * SECOND);
	ck_assert(ask(0, BEGIN - 5 * HOUR + 10 * SECOND).allowed);
}
END_TEST

/* A service that saw a second pass does not let the server's clock jump further than that. */
START_TEST(clock__set_forward_is_held_by_the_service)
{
	spend_all(BEGIN);
	ck_assert(!ask(BEGIN + SECOND, BEGIN + HOUR).allowed);
	ck_assert_uint_eq(ask(BEGIN + 2 * SECOND, BEGIN + HOUR + SECOND).wait_us, 8 * SECOND);
	ck_assert(ask(BEGIN + 20 * SECOND, BEGIN + HOUR + 9 * SECOND).allowed);
}
END_TEST

START_TEST(clock__the_servers_own)
{
	int64_t before;
	struct netpol_cluster_answer a;

	greet(&SMALL_OPTS);
	a = ask(0, 0);
	ck_assert(a.allowed);
	before = a.now_us;
	ck_assert_int_gt(before, BEGIN);
	a = ask(before + MINUTE, 0);
	ck_assert(a.allowed);
	ck_assert_int_ge(a.now_us, before);
	a = ask(0, 0);
	ck_assert(!a.allowed);
	ck_assert_uint_le(a.wait_us, 10 * SECOND);
}
END_TEST

/* ---- the server's life ---- */

START_TEST(server__forgot_the_script)
{
	greet(&SMALL_OPTS);
	ck_assert(ask(0, BEGIN).allowed);
	ck_assert(cli((const char *const[]){ "script", "flush", NULL }));
	ck_assert(ask(0, BEGIN).allowed);
	ck_assert(!ask(0, BEGIN).allowed);
}
END_TEST

START_TEST(server__keys_have_one_tag_and_an_end)
{
	spend_all(BEGIN);
	ck_assert(cli((const char *const[]){ "eval",
					     "assert(redis.call('pttl','aqe:{small}:s')>3600000) "
					     "assert(redis.call('pttl','aqe:{small}:a')>3600000) "
					     "assert(redis.call('dbsize')==2) return 1",
					     "0", NULL }));
}
END_TEST

/* Started a moment ago: nobody knows what was admitted before. */
START_TEST(server__restarted_is_drained_when_strict)
{
	struct netpol_cluster_opts o = SMALL_OPTS;
	struct netpol_cluster_answer a;

	o.strict = true;
	greet(&o);
	a = ask(0, 0);
	ck_assert(!a.allowed);
	ck_assert_uint_gt(a.wait_us, 20 * SECOND);
	ck_assert_uint_le(a.wait_us, MINUTE);
	o.strict = false;
	o.key = "other";
	greet(&o);
	ck_assert(ask(0, 0).allowed);
}
END_TEST

START_TEST(server__password_and_database)
{
	static const char *const more[] = { "--requirepass", "secret word", NULL };
	struct netpol_cluster_opts o = SMALL_OPTS;
	enum netpol_cluster_said said;
	struct netpol_cluster_answer a;
	char part[256];

	real_redis_stop(&server);
	server.more = more;
	ck_assert(real_redis_start(&server));
	dial();
	o.password = "secret word";
	o.db = 3;
	greet(&o);
	ck_assert(ask(0, BEGIN).allowed);
	ck_assert(cli((const char *const[]){ "-a", "secret word", "-n", "3", "eval",
					     "assert(redis.call('dbsize')==2) return 1", "0",
					     NULL }));
	dial();
	o.password = "wrong";
	netpol_cluster_free(cluster);
	cluster = NULL;
	ck_assert_ok(netpol_cluster_new(&o, &cluster, &err), err);
	ck_assert_ok(netpol_cluster_hello(cluster, &out, &err), err);
	flush();
	ssize_t n = recv(fd, part, sizeof(part), 0);

	ck_assert_int_gt(n, 0);
	ck_assert_ok(netpol_cluster_feed(cluster, part, (size_t)n, &err), err);
	ck_assert_int_eq(netpol_cluster_next(cluster, &out, &said, &a, &err), AQE_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(err.text, "WRONGPASS"));
	ck_assert_ptr_null(strstr(err.text, "wrong "));
}
END_TEST

/* ---- what a server may say ---- */

#define SHA "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n"

static const struct {
	const char *hello, *answer;
	int rc;
} SAID[] = {
	{ SHA, "*3\r\n:1\r\n:0\r\n:5\r\n", AQE_OK },
	{ SHA, "*3\r\n:0\r\n:7\r\n:5\r\n", AQE_OK },
	{ SHA, "*3\r\n:1\r\n:7\r\n:5\r\n", AQE_E_MALFORMED },
	{ SHA, "*3\r\n:0\r\n:0\r\n:5\r\n", AQE_E_MALFORMED },
	{ SHA, "*3\r\n:2\r\n:0\r\n:5\r\n", AQE_E_MALFORMED },
	{ SHA, "*3\r\n:0\r\n:-1\r\n:5\r\n", AQE_E_MALFORMED },
	{ SHA, "*2\r\n:1\r\n:0\r\n", AQE_E_MALFORMED },
	{ SHA, "*3\r\n:1\r\n:0\r\n$1\r\n5\r\n", AQE_E_MALFORMED },
	{ SHA, "*-1\r\n", AQE_E_MALFORMED },
	{ SHA, "*2000000000\r\n", AQE_E_MALFORMED },
	{ SHA, "+OK\r\n", AQE_E_MALFORMED },
	{ SHA, "$-1\r\n", AQE_E_MALFORMED },
	{ SHA, "HTTP/1.1 400 Bad\r\n\r\n", AQE_E_MALFORMED },
	{ SHA, "-ERR no\r\n", AQE_E_REFUSED },
	{ SHA, "-LOADING wait\r\n", AQE_E_REFUSED },
	{ "-NOSCRIPT x\r\n", NULL, AQE_E_REFUSED },
	{ "+OK\r\n", NULL, AQE_E_MALFORMED },
	{ "$40\r\n0123456789ABCDEF0123456789abcdef01234567\r\n", NULL, AQE_E_MALFORMED },
	{ "$3\r\nabc\r\n", NULL, AQE_E_MALFORMED },
	{ "$999999999\r\n", NULL, AQE_OK }, /* waits, but see the next test */
};

START_TEST(said__is_checked)
{
	struct netpol_cluster *c = NULL;
	enum netpol_cluster_said said = NETPOL_CLUSTER_MORE;
	struct netpol_cluster_answer a;
	int rc;

	ck_assert_ok(netpol_cluster_new(&SMALL_OPTS, &c, &err), err);
	ck_assert_ok(netpol_cluster_hello(c, &out, &err), err);
	ck_assert_ok(netpol_cluster_feed(c, SAID[_i].hello, strlen(SAID[_i].hello), &err), err);
	rc = netpol_cluster_next(c, &out, &said, &a, &err);
	if (SAID[_i].answer) {
		ck_assert_int_eq(rc, 0);
		ck_assert_int_eq(said, NETPOL_CLUSTER_READY);
		ck_assert_ok(netpol_cluster_ask(c, 0, 0, &out, &err), err);
		ck_assert_ok(netpol_cluster_feed(c, SAID[_i].answer, strlen(SAID[_i].answer), &err),
			     err);
		rc = netpol_cluster_next(c, &out, &said, &a, &err);
	}
	ck_assert_int_eq(rc, SAID[_i].rc);
	netpol_cluster_free(c);
	aqe_buf_done(&out);
}
END_TEST

START_TEST(said__is_bounded)
{
	struct netpol_cluster *c = NULL;
	enum netpol_cluster_said said;
	struct netpol_cluster_answer a;
	char part[4096];
	size_t fed = 0;

	memset(part, 'x', sizeof(part));
	ck_assert_ok(netpol_cluster_new(&SMALL_OPTS, &c, &err), err);
	ck_assert_int_eq(netpol_cluster_ask(c, 0, 0, &out, &err), AQE_E_INTERNAL);
	ck_assert_int_eq(netpol_cluster_feed(c, "x", 1, &err), AQE_E_INTERNAL);
	ck_assert_ok(netpol_cluster_hello(c, &out, &err), err);
	ck_assert_ok(netpol_cluster_feed(c, "$999999999\r\n", 12, &err), err);
	while (netpol_cluster_feed(c, part, sizeof(part), &err) == 0) {
		fed += sizeof(part);
		ck_assert_uint_le(fed, NETPOL_CLUSTER_REPLY_MAX);
		ck_assert_ok(netpol_cluster_next(c, &out, &said, &a, &err), err);
		ck_assert_int_eq(said, NETPOL_CLUSTER_MORE);
	}
	ck_assert_int_eq(err.code, AQE_E_MALFORMED);
	netpol_cluster_free(c);
	aqe_buf_done(&out);
}
END_TEST

START_TEST(key__too_long_is_refused)
{
	char key[NETPOL_CLUSTER_KEY_MAX];
	struct netpol_cluster_opts o = { .prefix = "", .key = key, .rate = SMALL };
	struct netpol_cluster *c = NULL;

	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 4] = '\0'; /* {, }, :, s and the end: one too many */
	ck_assert_int_eq(netpol_cluster_new(&o, &c, &err), AQE_E_LIMIT);
	key[sizeof(key) - 5] = '\0';
	ck_assert_ok(netpol_cluster_new(&o, &c, &err), err);
	netpol_cluster_free(c);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cluster");
	TCase *t = tcase_create("server"), *w = tcase_create("words");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 600);
	tcase_add_test(t, script__answers_as_the_limiter);
	tcase_add_test(t, script__large_limits);
	tcase_add_test(t, clock__set_back_stands_still_once);
	tcase_add_test(t, clock__set_forward_is_held_by_the_service);
	tcase_add_test(t, clock__the_servers_own);
	tcase_add_test(t, server__forgot_the_script);
	tcase_add_test(t, server__keys_have_one_tag_and_an_end);
	tcase_add_test(t, server__restarted_is_drained_when_strict);
	tcase_add_test(t, server__password_and_database);
	tcase_add_loop_test(w, said__is_checked, 0, (int)AQE_COUNT(SAID));
	tcase_add_test(w, said__is_bounded);
	tcase_add_test(w, key__too_long_is_refused);
	suite_add_tcase(s, t);
	suite_add_tcase(s, w);
	return unit_run(s);
}
