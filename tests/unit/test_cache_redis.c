/* SPDX-License-Identifier: MIT */
/* What is special about the Redis store: servers that die, freeze, restart, want passwords or TLS,
 * and servers that talk nonsense. The rest is in test_cache_contract.c. */
#include "cache/redis.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "tests/fakes/fake_peer.h"
#include "tests/fakes/real_redis.h"
#include "tests/unit/cache_util.h"

static struct aqe_err e;
static struct util_clock clk;
static struct real_redis server;
static struct fake_peer peer;

static struct cache_redis_opts usual(int port)
{
	struct cache_redis_opts o = { .pool_size = 2 };

	o.where.at.host = "127.0.0.1";
	o.where.at.port = (uint16_t)port;
	o.where.connect_timeout_ms = 5000;
	o.where.timeout_ms = 5000;
	return o;
}

static struct cache_store make(const struct cache_redis_opts *o)
{
	struct cache_store s = CACHE_STORE_INIT;

	ck_assert_ok(cache_redis_new(o, &s, &e), e);
	return s;
}

static struct cache_store open_with(const struct cache_redis_opts *o)
{
	struct cache_store s = make(o);

	ck_assert_ok(cache_store_init(&s, &e), e);
	return s;
}

static struct cache_store open_store(void)
{
	const struct cache_redis_opts o = usual(server.port);

	return open_with(&o);
}

static int try_set(struct cache_store *s, unsigned n)
{
	struct cache_item it = util_item(n, UTIL_DIM, clk.now.wall_ms, UTIL_TTL_MS);
	const int rc = cache_store_set(s, &it, 1, &clk.now, &e);

	aqe_buf_done(&it.value);
	return rc;
}

static void set(struct cache_store *s, unsigned n)
{
	ck_assert_ok(try_set(s, n), e);
}

static int try_get(struct cache_store *s, unsigned n, bool *ret_found)
{
	struct cache_item it = CACHE_ITEM_INIT;
	int rc;

	it.key = util_key(n);
	rc = cache_store_get(s, &it, 1, &clk.now, &e);
	ck_assert(!it.found || it.value.len == 0 || util_is(&it, n));
	*ret_found = it.found;
	aqe_buf_done(&it.value);
	return rc;
}

static bool get(struct cache_store *s, unsigned n)
{
	bool found;

	ck_assert_ok(try_get(s, n, &found), e);
	return found;
}

/* Starts the server, or ends the test where there is none. */
#define NEED_SERVER()                                                     \
	do {                                                              \
		if (!real_redis_start(&server)) {                         \
			ck_assert_ptr_null(getenv("AQE_TESTS_MUST_RUN")); \
			return;                                           \
		}                                                         \
	} while (0)

static void setup(void)
{
	util_dir_init();
	util_clock_init(&clk);
}

static void teardown(void)
{
	real_redis_stop(&server);
	fake_peer_stop(&peer);
	util_dir_done();
}

/* ---- servers that come and go ---- */

START_TEST(server__dies_and_comes_back)
{
	struct cache_store s;

	NEED_SERVER();
	s = open_store();
	set(&s, 1);
	real_redis_stop(&server);
	ck_assert_int_eq(try_set(&s, 2), AQE_E_SYS);
	ck_assert_int_eq(cache_store_healthy(&s, &e), AQE_E_SYS);
	ck_assert_ptr_nonnull(strstr(e.text, "redis: "));
	ck_assert(real_redis_start(&server));
	ck_assert_ok(cache_store_healthy(&s, &e), e);
	ck_assert(!get(&s, 1)); /* it came back empty */
	set(&s, 1);
	ck_assert(get(&s, 1));
	cache_store_close(&s);
}
END_TEST

START_TEST(server__freezes)
{
	struct cache_redis_opts o;
	struct cache_store s;
	int64_t began;
	bool found;

	NEED_SERVER();
	o = usual(server.port);
	o.where.timeout_ms = 150;
	o.where.connect_timeout_ms = 150;
	s = open_with(&o);
	set(&s, 1);
	real_redis_freeze(&server);
	began = cache_conn_clock();
	ck_assert_fault(try_get(&s, 1, &found), AQE_E_TIMEOUT, e, "no answer in time");
	/* the kernel still accepts connections for it */
	ck_assert_fault(try_set(&s, 2), AQE_E_TIMEOUT, e, "no answer in time");
	ck_assert_int_lt(cache_conn_clock() - began, 3000);
	real_redis_thaw(&server);
	o.where.timeout_ms = 5000;
	ck_assert(try_get(&s, 1, &found) == 0 || get(&s, 1));
	ck_assert(get(&s, 1)); /* and it is its own answer, not the late one of before */
	cache_store_close(&s);
}
END_TEST

/* Connections that the server closed while they were idle are not used, nobody notices. */
START_TEST(server__closes_idle_connections)
{
	static const char *const KILL[] = { "CLIENT", "KILL", "TYPE", "normal", NULL };
	struct cache_store s;

	NEED_SERVER();
	s = open_store();
	set(&s, 1);
	ck_assert(real_redis_cli(&server, KILL));
	ck_assert(get(&s, 1));
	cache_store_close(&s);
}
END_TEST

struct load {
	struct cache_store *s;
	atomic_bool stop;
	atomic_uint good, bad;
};

static void *load(void *self)
{
	struct load *l = self;
	struct aqe_err mine = AQE_ERR_INIT;
	unsigned n = (unsigned)(uintptr_t)&mine % 50;

	while (!atomic_load(&l->stop)) {
		struct cache_item it = util_item(n++ % 50, UTIL_DIM, UTIL_START, UTIL_TTL_MS);
		const bool ok = cache_store_set(l->s, &it, 1, &clk.now, &mine) == 0 &&
				cache_store_get(l->s, &it, 1, &clk.now, &mine) == 0;

		ck_assert(!it.found || util_is(&it, (n - 1) % 50));
		atomic_fetch_add(ok ? &l->good : &l->bad, 1);
		aqe_buf_done(&it.value);
	}
	return NULL;
}

static void wait_more(const atomic_uint *count)
{
	const unsigned before = atomic_load(count);
	const int64_t until = cache_conn_clock() + 30000;

	while (atomic_load(count) < before + 20 && cache_conn_clock() < until)
		usleep(1000);
	ck_assert_uint_ge(atomic_load(count), before + 20);
}

/* Killed, restarted, frozen and thawed under load: calls fail, and work again; no value is wrong.
 */
START_TEST(server__changes_under_load)
{
	struct load l = { .good = 0 };
	struct cache_redis_opts o;
	struct cache_store s;
	pthread_t t[6];

	NEED_SERVER();
	o = usual(server.port);
	o.where.timeout_ms = o.where.connect_timeout_ms = 100;
	o.pool_size = 4;
	s = open_with(&o);
	l.s = &s;
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, load, &l), 0);
	for (int round = 0; round < 2; round++) {
		wait_more(&l.good);
		real_redis_stop(&server);
		wait_more(&l.bad);
		ck_assert(real_redis_start(&server));
		wait_more(&l.good);
		real_redis_freeze(&server);
		wait_more(&l.bad);
		real_redis_thaw(&server);
		wait_more(&l.good);
	}
	atomic_store(&l.stop, true);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	cache_store_close(&s);
}
END_TEST

/* ---- who we are, and where ---- */

static const char *write_file(const char *name, const char *text, mode_t mode)
{
	const char *path = util_path(name);
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
	chmod(path, mode);
	return path;
}

static const struct {
	const char *user, *password;
	mode_t mode;
	int code;
	const char *text;
} LOGINS[] = {
	{ NULL, "s3cret", 0600, 0, NULL },
	{ NULL, "s3cret\n", 0400, 0, NULL },
	{ "agent", "agents word\r\n", 0640, 0, NULL },
	{ NULL, "wrong", 0600, AQE_E_REFUSED, "WRONGPASS" },
	{ "nobody", "s3cret", 0600, AQE_E_REFUSED, "WRONGPASS" },
	{ NULL, NULL, 0, AQE_E_REFUSED, "NOAUTH" },
	{ NULL, "s3cret", 0644, AQE_E_UNTRUSTED, "others may read" },
	{ NULL, "s3cret", 0622, AQE_E_UNTRUSTED, "may write" },
	{ NULL, "\n", 0600, AQE_E_UNTRUSTED, "empty" },
};

START_TEST(server__wants_a_password)
{
	static const char *const ACL[] = { "-a", "s3cret",       "ACL", "SETUSER", "agent",
					   "on", ">agents word", "~*",  "+@all",   NULL };
	struct cache_redis_opts o;
	struct cache_store s;
	char path[128];

	server.more = (const char *const[]){ "--requirepass", "s3cret", NULL };
	NEED_SERVER();
	ck_assert(real_redis_cli(&server, ACL));
	o = usual(server.port);
	o.where.username = LOGINS[_i].user;
	if (LOGINS[_i].password) {
		snprintf(path, sizeof(path), "%s",
			 write_file("password", LOGINS[_i].password, LOGINS[_i].mode));
		o.where.password_file = path;
	}
	s = make(&o);
	if (LOGINS[_i].code) {
		ck_assert_fault(cache_store_init(&s, &e), LOGINS[_i].code, e, LOGINS[_i].text);
		ck_assert_ptr_null(strstr(e.text, "s3cret"));
	} else {
		ck_assert_ok(cache_store_init(&s, &e), e);
		set(&s, 1);
		ck_assert(get(&s, 1));
	}
	cache_store_close(&s);
}
END_TEST

START_TEST(server__has_databases_and_prefixes)
{
	struct cache_redis_opts o;
	struct cache_store a, b, c;
	uint64_t n;

	NEED_SERVER();
	o = usual(server.port);
	a = open_with(&o);
	o.where.db = 3;
	b = open_with(&o);
	o.prefix = "em?:";
	c = open_with(&o);
	set(&a, 1);
	set(&b, 1);
	set(&c, 2);
	ck_assert(!get(&a, 2) && !get(&b, 2) && !get(&c, 1));
	ck_assert_ok(cache_store_size(&c, &n, NULL, &e), e);
	ck_assert_uint_eq(n, 1); /* the question mark stands for itself */
	ck_assert_ok(cache_store_clear(&c, &e), e);
	ck_assert(get(&a, 1) && get(&b, 1) && !get(&c, 2));
	cache_store_close(&a);
	cache_store_close(&b);
	cache_store_close(&c);
	o.where.db = 99;
	a = make(&o);
	ck_assert_fault(cache_store_init(&a, &e), AQE_E_REFUSED, e, "DB index is out of range");
	cache_store_close(&a);
}
END_TEST

START_TEST(server__expires_entries_itself)
{
	static const char *const PAGES[] = {
		"--raw", "EVAL",
		"local n = 0 for _, k in ipairs(redis.call('KEYS', 'emb:*')) do "
		"local t = redis.call('PTTL', k) "
		"if t < 1 or t > 60000 then error('ttl') end end",
		"0", NULL
	};
	struct cache_store s;
	struct cache_item it = util_item(1, UTIL_DIM, UTIL_START, 40);

	NEED_SERVER();
	s = open_store();
	set(&s, 2);
	ck_assert(real_redis_cli(&server, PAGES));
	ck_assert_ok(cache_store_set(&s, &it, 1, &clk.now, &e), e);
	for (int i = 0; i < 2000 && get(&s, 1); i++) /* our clock stands still, Redis' does not */
		usleep(1000);
	ck_assert(!get(&s, 1));
	/* one that is too old already is not kept */
	it.ttl_ms = 100;
	it.created_ms = clk.now.wall_ms - 100;
	ck_assert_ok(cache_store_set(&s, &it, 1, &clk.now, &e), e);
	ck_assert(!get(&s, 1));
	aqe_buf_done(&it.value);
	cache_store_close(&s);
}
END_TEST

/* ---- servers that do not want, keys that are something else ---- */

START_TEST(server__may_refuse)
{
	static const char *const FULL[] = { "CONFIG", "SET", "maxmemory", "1", NULL };
	static const char *const REPLICA[] = { "REPLICAOF", "127.0.0.1", "1", NULL };
	struct cache_store_stats st;
	struct cache_store s;
	bool found;

	NEED_SERVER();
	s = open_store();
	set(&s, 1);
	ck_assert(real_redis_cli(&server, _i == 0 ? FULL : REPLICA));
	ck_assert_fault(try_set(&s, 2), AQE_E_REFUSED, e, _i == 0 ? "OOM" : "READONLY");
	ck_assert_fault(cache_store_healthy(&s, &e), AQE_E_REFUSED, e, NULL);
	(void)try_get(&s, 1, &found);
	cache_store_stats(&s, &st);
	ck_assert_uint_ge(st.refused, 1);
	cache_store_close(&s);
}
END_TEST

START_TEST(key__may_be_something_else)
{
	char name[4 + CACHE_KEY_TEXT] = "emb:";
	const char *const list[] = { "LPUSH", name, "x", NULL };
	const char *const text[] = { "SET", name, "some text", NULL };
	const struct cache_key k = util_key(1);
	struct cache_item it = CACHE_ITEM_INIT;
	struct cache_store s;

	NEED_SERVER();
	s = open_store();
	cache_key_format(&k, name + 4);
	ck_assert(real_redis_cli(&server, _i == 0 ? list : text));
	it.key = k;
	ck_assert_ok(cache_store_has(&s, &it, 1, &clk.now, &e), e);
	ck_assert(!it.found);
	ck_assert_ok(cache_store_get(&s, &it, 1, &clk.now, &e), e);
	ck_assert(it.found && it.value.len == 0); /* damage: the cache will delete it */
	ck_assert_ok(cache_store_del(&s, &it, 1, &e), e);
	ck_assert(it.found);
	ck_assert(!get(&s, 1));
	set(&s, 1);
	ck_assert(get(&s, 1));
	cache_store_close(&s);
}
END_TEST

/* ---- TLS ---- */

static void shell(const char *command)
{
	char line[1200];

	snprintf(line, sizeof(line), "cd %s && { %s; } >log 2>&1", util_dir, command);
	ck_assert_msg(system(line) == 0, "%s", command);
}

/* Two authorities; certificates for 127.0.0.1 and for another host; one for a client. */
static void make_certificates(void)
{
	shell("for ca in ca other; do openssl req -x509 -newkey ec -pkeyopt "
	      "ec_paramgen_curve:P-256 -nodes "
	      "-keyout $ca.key -out $ca.pem -subj /CN=$ca -days 2; done; "
	      "cert() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "
	      "$1.key "
	      "-out $1.csr -subj /CN=$1 && echo subjectAltName=$2 >ext && openssl x509 -req -in "
	      "$1.csr "
	      "-CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out $1.pem; }; "
	      "cert server IP:127.0.0.1,DNS:cache.test && cert elsewhere DNS:elsewhere.test && "
	      "cert client DNS:client");
}

static const struct {
	const char *server, *ca, *name, *client;
	bool plain;
	int code;
	const char *text;
} TLS[] = {
	{ "server", "ca", NULL, "client", false, 0, NULL },
	{ "server", "ca", "cache.test", "client", false, 0, NULL },
	{ "server", "other", NULL, "client", false, AQE_E_UNTRUSTED, "not trusted" },
	{ "server", NULL, NULL, "client", false, AQE_E_UNTRUSTED, "not trusted" },
	{ "server", "ca", "cache.example", "client", false, AQE_E_UNTRUSTED, "mismatch" },
	{ "elsewhere", "ca", NULL, "client", false, AQE_E_UNTRUSTED, "mismatch" },
	{ "server", "ca", NULL, NULL, false, AQE_E_MALFORMED, "certificate required" },
	{ "server", "ca", NULL, "client", true, AQE_E_SYS, NULL }, /* in clear to a TLS port */
	{ NULL, "ca", NULL, NULL, false, 0, NULL },                /* TLS to a clear port */
};

START_TEST(server__speaks_tls)
{
	char ca[128], cert[128], key[128], server_cert[128], server_key[128], client_ca[128];
	struct aqe_tls_opts tls = { .server_name = TLS[_i].name };
	struct cache_redis_opts o;
	struct cache_store s;

	make_certificates();
	snprintf(ca, sizeof(ca), "%s/%s.pem", util_dir, TLS[_i].ca);
	snprintf(cert, sizeof(cert), "%s/%s.pem", util_dir, TLS[_i].client);
	snprintf(key, sizeof(key), "%s/%s.key", util_dir, TLS[_i].client);
	snprintf(server_cert, sizeof(cert), "%s/%s.pem", util_dir, TLS[_i].server);
	snprintf(server_key, sizeof(key), "%s/%s.key", util_dir, TLS[_i].server);
	snprintf(client_ca, sizeof(client_ca), "%s/ca.pem", util_dir);
	server.tls = TLS[_i].server != NULL;
	const char *const more[] = {
		"--tls-cert-file", server_cert, "--tls-key-file", server_key, "--tls-ca-cert-file",
		client_ca,         NULL
	};
	server.more = server.tls ? more : NULL;
	NEED_SERVER();
	o = usual(server.port);
	tls.ca_file = TLS[_i].ca ? ca : NULL;
	tls.cert_file = TLS[_i].client ? cert : NULL;
	tls.key_file = TLS[_i].client ? key : NULL;
	o.where.at.tls = TLS[_i].plain ? NULL : &tls;
	if (!server.tls) /* it waits for more of a question that is none */
		o.where.connect_timeout_ms = 300;
	s = make(&o);
	if (TLS[_i].code)
		ck_assert_fault(cache_store_init(&s, &e), TLS[_i].code, e, TLS[_i].text);
	else if (!server.tls)
		ck_assert_int_ne(cache_store_init(&s, &e), 0);
	else {
		ck_assert_ok(cache_store_init(&s, &e), e);
		for (unsigned i = 0; i < 50; i++)
			set(&s, i);
		for (unsigned i = 0; i < 50; i++)
			ck_assert(get(&s, i));
	}
	cache_store_close(&s);
}
END_TEST

/* The largest values over TLS, in batches. */
START_TEST(server__speaks_tls_in_batches)
{
	char cert[128], key[128], ca[128];
	struct cache_item *it = cache_items_new(40);
	struct aqe_tls_opts tls = { .ca_file = ca };
	struct cache_redis_opts o;
	struct cache_store s;

	make_certificates();
	snprintf(ca, sizeof(ca), "%s/ca.pem", util_dir);
	snprintf(cert, sizeof(cert), "%s/server.pem", util_dir);
	snprintf(key, sizeof(key), "%s/server.key", util_dir);
	server.tls = true;
	server.more = (const char *const[]){ "--tls-cert-file",
					     cert,
					     "--tls-key-file",
					     key,
					     "--tls-auth-clients",
					     "no",
					     "--tls-ca-cert-file",
					     ca,
					     NULL };
	NEED_SERVER();
	o = usual(server.port);
	o.where.timeout_ms = 20000;
	o.where.at.tls = &tls;
	s = open_with(&o);
	for (unsigned i = 0; i < 40; i++)
		it[i] = util_item(i, i % 8 == 0 ? CACHE_DIM_MAX : 1536, UTIL_START, UTIL_TTL_MS);
	ck_assert_ok(cache_store_set(&s, it, 40, &clk.now, &e), e);
	ck_assert_ok(cache_store_get(&s, it, 40, &clk.now, &e), e);
	for (unsigned i = 0; i < 40; i++)
		ck_assert(it[i].found && util_is(&it[i], i));
	cache_items_free(it, 40);
	cache_store_close(&s);
}
END_TEST

/* ---- servers that talk nonsense ---- */

static void flood(int fd, char *buf, size_t size)
{
	memset(buf, 'x', size);
	fake_peer_puts(fd, "$167770000\r\n");
	for (int i = 0; i < 400; i++)
		fake_peer_write(fd, buf, size);
}

/* Answers the PING and SET of the start well, everything later with `arg`. */
static void nonsense(int fd, void *arg)
{
	const char *answer = arg;
	static _Thread_local char buf[65536];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf) - 1, 0)) > 0) {
		buf[n] = '\0';
		if (strstr(buf, "PING"))
			fake_peer_puts(fd, "+PONG\r\n");
		else if (strstr(buf, "probe"))
			fake_peer_puts(fd, "+OK\r\n");
		else if (strcmp(answer, "close") == 0)
			return;
		else if (strcmp(answer, "flood") == 0)
			flood(fd, buf, sizeof(buf));
		else
			fake_peer_puts(fd, answer);
	}
}

static const struct {
	const char *answer;
	int code;
	const char *text;
} NONSENSE[] = {
	{ "+OK\r\n", AQE_E_MALFORMED, "unexpected reply" },
	{ ":1\r\n", AQE_E_MALFORMED, "unexpected reply" },
	{ "$-1\r\n", AQE_E_MALFORMED, "unexpected reply" },
	{ "*0\r\n", AQE_E_MALFORMED, "unexpected reply" },
	{ "*1\r\n$1\r\nx\r\n", AQE_E_MALFORMED, "unexpected reply" },
	{ "*2147483647\r\n", AQE_E_MALFORMED, "protocol" },
	{ "*100001\r\n", AQE_E_MALFORMED, "protocol" },
	{ "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
	  AQE_E_MALFORMED, "protocol" },
	{ "HTTP/1.1 400 Bad Request\r\n\r\n", AQE_E_MALFORMED, "protocol" },
	{ "\r\n", AQE_E_MALFORMED, "protocol" },
	{ "$-5\r\n", AQE_E_MALFORMED, NULL },
	{ "-LOADING Redis is loading the dataset in memory\r\n", AQE_E_REFUSED, "LOADING" },
	{ "-MOVED 3999 127.0.0.1:6381\r\n", AQE_E_REFUSED, "MOVED" },
	{ "-\r\n", AQE_E_REFUSED, "says ''" },
	{ "-ERR \x1b[31mred\x07\r\n", AQE_E_REFUSED, "\\x1b" },
	{ "$100\r\nhalf a reply", AQE_E_TIMEOUT, "no answer in time" },
	{ "$", AQE_E_TIMEOUT, "no answer in time" },
	{ "", AQE_E_TIMEOUT, "no answer in time" },
	{ "close", AQE_E_SYS, "closed" },
	{ "flood", AQE_E_MALFORMED, "more than" },
};

START_TEST(server__talks_nonsense)
{
	struct cache_redis_opts o;
	struct cache_store_stats st;
	struct cache_store s;
	bool found = true;

	fake_peer_start(&peer, nonsense, (void *)(uintptr_t)NONSENSE[_i].answer);
	o = usual(peer.port);
	if (NONSENSE[_i].code == AQE_E_TIMEOUT)
		o.where.timeout_ms = 100;
	s = open_with(&o);
	for (int i = 0; i < 3; i++) { /* more often than there are connections */
		ck_assert_fault(try_get(&s, 1, &found), NONSENSE[_i].code, e, NONSENSE[_i].text);
		ck_assert(!found);
	}
	ck_assert_int_ne(cache_store_clear(&s, &e), 0);
	cache_store_stats(&s, &st);
	ck_assert_uint_ge(st.errors, 4);
	cache_store_close(&s);
}
END_TEST

/* A scan that never ends, and pages with names of others. */
START_TEST(scan__takes_only_names_of_ours)
{
	static const char PAGE[] = "*2\r\n$1\r\n0\r\n*4\r\n$4\r\nemb:\r\n:7\r\n"
				   "$68\r\nemb:0123456789abcdef0123456789abcdef"
				   "0123456789abcdef0123456789ABCDEF\r\n"
				   "$68\r\nemb:0123456789abcdef0123456789abcdef"
				   "0123456789abcdef0123456789abcdef\r\n";
	struct cache_iter it = CACHE_ITER_INIT;
	struct cache_key keys[10];
	struct cache_redis_opts o;
	struct cache_store s;
	size_t n;

	fake_peer_start(&peer, nonsense, (void *)(uintptr_t)PAGE);
	o = usual(peer.port);
	s = open_with(&o);
	ck_assert_ok(cache_store_keys(&s, &it, keys, 10, &n, &e), e);
	ck_assert(n == 1 && keys[0].b[0] == 1 && it.done);
	cache_iter_done(&it);
	cache_store_close(&s);
}
END_TEST

/* More callers than connections: they wait their turn, and not for ever. */
START_TEST(pool__is_limited)
{
	struct cache_redis_opts o;
	struct cache_store s;
	struct load l = { .good = 0 };
	pthread_t t[6];

	fake_peer_start(&peer, nonsense, (void *)(uintptr_t) "");
	o = usual(peer.port);
	o.where.timeout_ms = 200;
	o.pool_size = 1;
	s = open_with(&o);
	l.s = &s;
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, load, &l), 0);
	wait_more(&l.bad);
	atomic_store(&l.stop, true);
	for (int i = 0; i < 6; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(l.good, 0);
	cache_store_close(&s);
}
END_TEST

START_TEST(new__checks_its_options)
{
	char longer[CACHE_REDIS_PREFIX_MAX + 2];
	struct cache_redis_opts o = usual(1);
	struct cache_store s = CACHE_STORE_INIT;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	o.prefix = longer;
	ck_assert_fault(cache_redis_new(&o, &s, &e), AQE_E_LIMIT, e, "prefix");
	o = usual(1);
	o.pool_size = CACHE_REDIS_POOL_MAX + 1;
	ck_assert_fault(cache_redis_new(&o, &s, &e), AQE_E_LIMIT, e, "connections");
	o = usual(1);
	o.where.at.host = NULL;
	ck_assert_fault(cache_redis_new(&o, &s, &e), AQE_E_USAGE, e, "neither");
	o.where.at.socket = "/nowhere/redis.sock";
	s = make(&o);
	ck_assert_fault(cache_store_init(&s, &e), AQE_E_SYS, e, "'/nowhere/redis.sock': connect");
	cache_store_close(&s);
	o = usual(1); /* nobody listens there */
	s = make(&o);
	ck_assert_fault(cache_store_init(&s, &e), AQE_E_SYS, e, "127.0.0.1:1: connect");
	ck_assert_ptr_nonnull(strstr(e.text, "refused"));
	cache_store_close(&s);
}
END_TEST

#define COUNT(list) ((int)(sizeof(list) / sizeof((list)[0])))

int main(void)
{
	Suite *s = suite_create("redis");
	TCase *t = tcase_create("redis");

	tcase_set_timeout(t, 120);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, server__dies_and_comes_back);
	tcase_add_test(t, server__freezes);
	tcase_add_test(t, server__closes_idle_connections);
	tcase_add_test(t, server__changes_under_load);
	tcase_add_loop_test(t, server__wants_a_password, 0, COUNT(LOGINS));
	tcase_add_test(t, server__has_databases_and_prefixes);
	tcase_add_test(t, server__expires_entries_itself);
	tcase_add_loop_test(t, server__may_refuse, 0, 2);
	tcase_add_loop_test(t, key__may_be_something_else, 0, 2);
	tcase_add_loop_test(t, server__speaks_tls, 0, COUNT(TLS));
	tcase_add_test(t, server__speaks_tls_in_batches);
	tcase_add_loop_test(t, server__talks_nonsense, 0, COUNT(NONSENSE));
	tcase_add_test(t, scan__takes_only_names_of_ours);
	tcase_add_test(t, pool__is_limited);
	tcase_add_test(t, new__checks_its_options);
	suite_add_tcase(s, t);
	return unit_run(s);
}
