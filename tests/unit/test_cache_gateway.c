/* SPDX-License-Identifier: MIT */
/* The gateway over real sockets, with an upstream in this process. */
#include "cache/gateway.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "cache/memory.h"
#include "shim/aqe/cache_upstream.h"
#include "shim/aqe/http.h"
#include "shim/core/base64.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "tests/fakes/fake_peer.h"
#include "tests/fakes/fake_upstream.h"
#include "tests/unit/cache_util.h"

#define DIM 4U

static struct aqe_err e;
static struct fake_upstream up;
static struct fake_peer peer;
static struct shim_cache_upstream *real;
static struct cache_config cfg;
static struct cache *cache;
static struct cache_embedder *em;
static struct cache_gateway *gw;
static pthread_t thread;
static int port;
static char url_text[128];

static int listener(int *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 64), 0);
	getsockname(fd, (struct sockaddr *)&a, &n);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void *run(void *self)
{
	(void)self;
	ck_assert_ok(cache_gateway_run(gw, &e), e);
	return NULL;
}

static void start_with(const char *kind, struct cache_upstream upstream,
		       const struct cache_gateway_opts *more)
{
	struct cache_gateway_opts o = *more;

	cfg.own_ticks = true;
	cfg.upstream.kind = kind;
	if (!cfg.upstream.url)
		cfg.upstream.url = "http://up";
	cfg.upstream.batch = 4;
	cfg.upstream.backoff_ms = 1;
	ck_assert_ok(cache_open(&cfg, NULL, &cache, &e), e);
	ck_assert_ok(cache_embedder_new(&(struct cache_embed_opts){ cache, &cfg.upstream, NULL,
								    upstream, up.gate },
					&em, &e),
		     e);
	o.embedder = em;
	o.cache = cache;
	o.listen_fd = listener(&port);
	ck_assert_ok(cache_gateway_new(&o, &gw, &e), e);
	ck_assert_int_eq(pthread_create(&thread, NULL, run, NULL), 0);
}

static void start(const char *kind)
{
	const struct cache_gateway_opts none = { .threads = 4 };

	fake_upstream_init(&up, DIM);
	cache_config_init(&cfg);
	start_with(kind, up.port, &none);
}

static void stop(void)
{
	if (!gw)
		return;
	cache_gateway_stop(gw);
	pthread_join(thread, NULL);
	cache_gateway_free(gw);
	cache_embedder_free(em);
	cache_close(cache);
	shim_cache_upstream_free(real);
	real = NULL;
	gw = NULL;
}

static void setup(void)
{
	util_dir_init();
	start("ollama");
}

static void teardown(void)
{
	stop();
	fake_peer_stop(&peer);
	util_dir_done();
}

/* ---- a client ---- */

struct got {
	int status;
	char head[2048];
	struct aqe_buf body;
	struct aqe_arena *arena;
	struct aqe_json *json;
};

static int on_header(void *self, const char *line, size_t n)
{
	struct got *g = self;
	const size_t len = strlen(g->head);

	snprintf(g->head + len, sizeof(g->head) - len, "%.*s\n", (int)n, line);
	return 0;
}

static struct got ask(const char *method, const char *path, const char *body)
{
	const struct shim_http_opts o = { .flags = SHIM_HTTP_PLAIN };
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct got g = { .head = "" };
	struct shim_http_req req = { .method = method,
				     .body = body,
				     .body_len = body ? strlen(body) : 0,
				     .timeout_ms = 20000,
				     .on_header = on_header,
				     .self = &g };
	struct shim_http *h = NULL;
	struct aqe_err mine = AQE_ERR_INIT;
	char url[128];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s", port, path);
	req.url = url;
	ck_assert_ok(shim_http_new(&o, &h, &mine), mine);
	ck_assert_ok(shim_http_send(h, &req, &resp, &mine), mine);
	g.status = resp.status;
	g.body = resp.body;
	shim_http_free(h);
	g.arena = aqe_arena_new(1 << 24);
	if (g.body.len)
		ck_assert_ok(aqe_json_parse(g.arena, g.body.p, g.body.len, &AQE_JSON_LIMITS_DEFAULT,
					    &g.json, &mine),
			     mine);
	return g;
}

static void done(struct got *g)
{
	aqe_arena_free(g->arena);
	aqe_buf_done(&g->body);
}

/* Status and X-Aqe-Cache of one request. */
static void check(const char *path, const char *body, int status, const char *verdict)
{
	struct got g = ask("POST", path, body);
	char line[64];

	snprintf(line, sizeof(line), "X-Aqe-Cache: %s\n", verdict);
	ck_assert_msg(g.status == status, "%d %s", g.status, aqe_buf_str(&g.body));
	ck_assert_msg(!verdict || strstr(g.head, line), "%s", g.head);
	done(&g);
}

static void is_embedding(const struct aqe_json *v, const char *text)
{
	size_t i = 0;

	ck_assert(v && v->type == AQE_JSON_ARRAY && v->len == DIM);
	for (const struct aqe_json *n = v->first; n; n = n->next, i++)
		ck_assert(fabsf(strtof(n->text, NULL) - fake_upstream_number(text, i)) < 1e-9f);
}

/* ---- the languages ---- */

START_TEST(gateway__speaks_ollama)
{
	struct got g = ask("POST", "/api/embed", "{\"model\":\"m\",\"input\":[\"a\",\"b\"]}");

	ck_assert_int_eq(g.status, 200);
	ck_assert_ptr_nonnull(strstr(g.head, "X-Aqe-Cache: miss\nX-Aqe-Cache-Hits: 0\n"
					     "X-Aqe-Cache-Misses: 2\n"));
	ck_assert_ptr_nonnull(strstr(g.head, "Content-Type: application/json\n"));
	is_embedding(aqe_json_at(g.json, "/embeddings/0"), "a");
	is_embedding(aqe_json_at(g.json, "/embeddings/1"), "b");
	ck_assert_str_eq(aqe_json_str(aqe_json_get(g.json, "model")), "m");
	done(&g);
	check("/api/embed", "{\"model\":\"m\",\"input\":\"b\"}", 200, "hit");
	check("/api/embed", "{\"model\":\"m:latest\",\"input\":\"b\"}", 200, "hit");
	check("/api/embed", "{\"model\":\"m\",\"input\":[\"b\",\"c\"]}", 200, "partial");
	g = ask("POST", "/api/embeddings", "{\"model\":\"m\",\"prompt\":\"a\"}");
	ck_assert_int_eq(g.status, 200);
	is_embedding(aqe_json_get(g.json, "embedding"), "a");
	done(&g);
	g = ask("POST", "/api/embed", "{\"model\":\"m\",\"input\":[]}");
	ck_assert(g.status == 200 && aqe_json_get(g.json, "embeddings")->len == 0);
	done(&g);
	g = ask("GET", "/api/tags", NULL);
	ck_assert_str_eq(aqe_json_str(aqe_json_at(g.json, "/models/1/name")), "m:latest");
	done(&g);
}
END_TEST

START_TEST(gateway__speaks_openai)
{
	struct got g =
		ask("POST", "/v1/embeddings",
		    "{\"model\":\"m\",\"input\":[\"a\",\"b\"],\"encoding_format\":\"float\"}");
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1000);
	const char *text;
	float x[DIM];

	ck_assert_int_eq(g.status, 200);
	is_embedding(aqe_json_at(g.json, "/data/1/embedding"), "b");
	ck_assert_str_eq(aqe_json_str(aqe_json_get(g.json, "object")), "list");
	ck_assert_str_eq(aqe_json_at(g.json, "/data/1/index")->text, "1");
	ck_assert_str_eq(aqe_json_at(g.json, "/usage/total_tokens")->text, "20");
	done(&g);
	g = ask("POST", "/v1/embeddings",
		"{\"model\":\"m\",\"input\":\"a\",\"encoding_format\":\"base64\"}");
	ck_assert_ptr_nonnull(strstr(g.head, "X-Aqe-Cache: hit\n"));
	text = aqe_json_str(aqe_json_at(g.json, "/data/0/embedding"));
	ck_assert(text && aqe_base64_decode(&b, text, strlen(text)) && b.len == sizeof(x));
	memcpy(x, b.p, sizeof(x));
	for (size_t i = 0; i < DIM; i++)
		ck_assert(fabsf(x[i] - fake_upstream_number("a", i)) < 1e-9f);
	ck_assert_str_eq(aqe_json_at(g.json, "/usage/total_tokens")->text,
			 "0"); /* nothing was paid */
	done(&g);
	g = ask("GET", "/v1/models", NULL);
	ck_assert_str_eq(aqe_json_str(aqe_json_at(g.json, "/data/1/id")), "m:latest");
	done(&g);
}
END_TEST

START_TEST(gateway__tells_statistics)
{
	struct got g;

	check("/api/embed", "{\"model\":\"m\",\"input\":[\"a\",\"b\"]}", 200, "miss");
	check("/api/embed", "{\"model\":\"m\",\"input\":[\"a\",\"b\"]}", 200, "hit");
	g = ask("GET", "/aqe/cache/stats", NULL);
	ck_assert_str_eq(aqe_json_get(g.json, "hits")->text, "2");
	ck_assert_str_eq(aqe_json_get(g.json, "misses")->text, "2");
	ck_assert_str_eq(aqe_json_get(g.json, "hitRate")->text, "0.5000");
	ck_assert_str_eq(aqe_json_str(aqe_json_get(g.json, "backend")), "memory");
	ck_assert_ptr_nonnull(aqe_json_at(g.json, "/lookupUs/p99"));
	done(&g);
}
END_TEST

static const struct {
	const char *method, *path, *body;
	int status;
	const char *error;
} FAULTS[] = {
	{ "POST", "/api/embed", "{", 400, "/error" },
	{ "POST", "/api/embed", "{\"model\":\"m\"}", 400, "/error" },
	{ "POST", "/v1/embeddings", "{\"model\":\"m\",\"input\":[]}", 400, "/error/message" },
	{ "POST", "/v1/embeddings", "{\"model\":\"m\",\"input\":[1]}", 400, "/error/message" },
	{ "POST", "/api/embed", "{\"model\":\"nope\",\"input\":\"a\"}", 404, "/error" },
	{ "GET", "/api/embed", NULL, 405, "/error" },
	{ "POST", "/api/tags", "", 405, "/error" },
	{ "POST", "/api/generate", "{}", 404, "/error" },
	{ "GET", "/v1/nothing", NULL, 404, "/error/message" },
	{ "DELETE", "/", NULL, 405, "/error" },
};

START_TEST(gateway__says_what_is_wrong)
{
	struct got g = ask(FAULTS[_i].method, FAULTS[_i].path, FAULTS[_i].body);

	ck_assert_int_eq(g.status, FAULTS[_i].status);
	ck_assert_ptr_nonnull(aqe_json_str(aqe_json_at(g.json, FAULTS[_i].error)));
	ck_assert_ptr_null(strstr(g.head, "X-Aqe-Cache"));
	done(&g);
}
END_TEST

START_TEST(gateway__passes_errors_on)
{
	struct got g;

	up.plan[0] = 401;
	(void)ask; /* the list of models is asked for first */
	up.plan[0] = 0;
	check("/api/embed", "{\"model\":\"m\",\"input\":\"first\"}", 200, "miss");
	up.plan[0] = 429;
	up.retry_after_s = 33;
	g = ask("POST", "/api/embed", "{\"model\":\"m\",\"input\":\"a\"}");
	ck_assert_int_eq(g.status, 429);
	ck_assert_ptr_nonnull(strstr(g.head, "Retry-After: 33\n"));
	ck_assert_ptr_nonnull(strstr(aqe_json_str(aqe_json_get(g.json, "error")), "as told"));
	done(&g);
	up.refuse_status = 403;
	g = ask("POST", "/api/embed", "{\"model\":\"m\",\"input\":\"a\"}");
	ck_assert_int_eq(g.status, 403);
	ck_assert_str_eq(aqe_json_str(aqe_json_get(g.json, "error")), "the policy says no");
	done(&g);
}
END_TEST

static const struct {
	int status; /* the policy's; 0: the upstream's own 403 */
	const char *words, *want;
} DENIALS[] = {
	{ 403, "the network policy refuses: domain_not_allowed", "domain_not_allowed" },
	{ 403, "the network policy refuses: address_denied", "address_denied" },
	{ 429, "the network policy refuses: rate_limit_exceeded", "rate_limit_exceeded" },
	/* without a word, or with one that is no word, the status says it */
	{ 403, NULL, "policy_denied" },
	{ 429, "no: ", "rate_limit_exceeded" },
	{ 403, "no: X-Other\r\n", "policy_denied" },
	{ 403, "no: a\r\nb", "policy_denied" },
	{ 0, NULL, NULL },
};

/* Whichever way it is asked, the head says that and why the network policy refused; and only then.
 */
START_TEST(refusal__of_the_policy_is_in_the_head)
{
	static const char *const asks[][3] = {
		{ "POST", "/api/embed", "{\"model\":\"m\",\"input\":\"a\"}" },
		{ "POST", "/v1/embeddings", "{\"model\":\"m\",\"input\":\"a\"}" },
		{ "GET", "/v1/models", "" },
	};
	const char *want = DENIALS[_i].want;
	char line[2][128];
	struct got g;

	up.refuse_status = DENIALS[_i].status;
	up.refuse_words = DENIALS[_i].words;
	for (int i = 0; !want && i < 3; i++)
		up.plan[i] = 403;
	(void)snprintf(line[0], sizeof(line[0]), "X-Aqe-Reason: %s\n", want ? want : "");
	(void)snprintf(line[1], sizeof(line[1]), "X-Aqe-Deny: %s\n", want ? want : "");
	for (size_t i = 0; i < AQE_COUNT(asks); i++) {
		g = ask(asks[i][0], asks[i][1], asks[i][2]);
		ck_assert_int_eq(g.status, want ? DENIALS[_i].status : 403);
		if (want)
			ck_assert(strstr(g.head, line[0]) && strstr(g.head, line[1]));
		else
			ck_assert_ptr_null(strstr(g.head, "X-Aqe-"));
		done(&g);
	}
}
END_TEST

/* ---- bytes ---- */

static int dial(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	const struct timeval patience = { 20, 0 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

/* Reads until the end of the connection or until `count` answers came. */
static const char *read_answers(int fd, int count)
{
	static char buf[65536];
	size_t len = 0;

	for (;;) {
		const ssize_t n = recv(fd, buf + len, sizeof(buf) - 1 - len, 0);
		int seen = 0;

		if (n <= 0)
			break;
		len += (size_t)n;
		buf[len] = '\0';
		for (const char *p = buf; (p = strstr(p, "HTTP/1.1 ")); p++)
			seen += strncmp(p, "HTTP/1.1 100", 12) != 0;
		if (count > 0 && seen >= count && buf[len - 1] == '}')
			break;
	}
	buf[len] = '\0';
	return buf;
}

#define HEAD "POST /api/embed HTTP/1.1\r\nHost: x\r\n"
#define BODY "{\"model\":\"m\",\"input\":\"a\"}"

static const struct {
	const char *text;
	const char *want;
	int answers; /* 0: the connection is closed */
} BYTES[] = {
	{ HEAD "Content-Length: 25\r\n\r\n" BODY, "HTTP/1.1 200 OK\r\n", 1 },
	{ HEAD
	  "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"mod\r\n14\r\nel\":\"m\",\"input\":\"a\"}\r\n"
	  "0\r\n\r\n",
	  "HTTP/1.1 200 OK\r\n", 1 },
	{ HEAD "Content-Length: 25\r\n\r\n" BODY HEAD "Content-Length: 25\r\n\r\n" BODY,
	  "X-Aqe-Cache: hit", 2 },
	{ HEAD "Connection: close\r\nContent-Length: 25\r\n\r\n" BODY, "Connection: close\r\n", 0 },
	{ "POST /api/embed HTTP/1.0\r\nContent-Length: 25\r\n\r\n" BODY, "Connection: close\r\n",
	  0 },
	{ "nonsense\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n", 0 },
	{ HEAD "\r\n", "HTTP/1.1 411 Length Required\r\n", 0 },
	{ HEAD "Content-Length: 99999999\r\n\r\n", "HTTP/1.1 413 Content Too Large\r\n", 0 },
	{ "HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "Content-Length: 33\r\n", 0 },
};

START_TEST(gateway__reads_bytes)
{
	const char *got;
	int fd = dial();

	fake_peer_puts(fd, BYTES[_i].text);
	got = read_answers(fd, BYTES[_i].answers);
	ck_assert_msg(strstr(got, BYTES[_i].want) != NULL, "%s", got);
	close(fd);
	if (strncmp(BYTES[_i].text, "HEAD", 4) == 0)
		ck_assert_ptr_null(strstr(got, "service"));
	fd = dial(); /* the same, byte by byte */
	for (const char *p = BYTES[_i].text; *p; p++)
		fake_peer_write(fd, p, 1);
	got = read_answers(fd, BYTES[_i].answers);
	ck_assert_msg(strstr(got, BYTES[_i].want) != NULL, "%s", got);
	close(fd);
}
END_TEST

START_TEST(gateway__continues)
{
	char buf[100] = "";
	int fd = dial();

	fake_peer_puts(fd, HEAD "Expect: 100-continue\r\nContent-Length: 25\r\n\r\n");
	ck_assert_int_gt(recv(fd, buf, sizeof(buf) - 1, 0), 0);
	ck_assert_str_eq(buf, "HTTP/1.1 100 Continue\r\n\r\n");
	fake_peer_puts(fd, BODY);
	ck_assert_ptr_nonnull(strstr(read_answers(fd, 1), "200 OK"));
	close(fd);
}
END_TEST

/* Connections that say nothing, half of something, or go away; and more than are held. */
START_TEST(gateway__lets_nobody_hang_on)
{
	const struct cache_gateway_opts o = {
		.threads = 2, .connections = 4, .idle_ms = 200, .request_ms = 200
	};
	int fd[6];
	char c;

	stop();
	fake_upstream_init(&up, DIM);
	start_with("ollama", up.port, &o);
	for (int i = 0; i < 6; i++)
		fd[i] = dial();
	fake_peer_puts(fd[0], "POST /api/embed HTTP/1.1\r\n");
	close(fd[1]);
	for (int i = 0; i < 6; i++) {
		if (i != 1) {
			ck_assert_int_le(recv(fd[i], &c, 1, 0), 0); /* closed, in time */
			close(fd[i]);
		}
	}
	check("/api/embed", BODY, 200, "miss");
}
END_TEST

struct asking {
	pthread_t thread;
	int status;
};

static void *ask_thread(void *self)
{
	struct asking *a = self;
	struct got g = ask("POST", "/api/embed", "{\"model\":\"m\",\"input\":[\"x\",\"y\"]}");

	a->status = g.status;
	done(&g);
	return NULL;
}

START_TEST(gateway__shares_equal_misses)
{
	struct asking a[12];

	up.delay_ms = 100;
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(pthread_create(&a[i].thread, NULL, ask_thread, &a[i]), 0);
	for (int i = 0; i < 12; i++) {
		pthread_join(a[i].thread, NULL);
		ck_assert_int_eq(a[i].status, 200);
	}
	ck_assert_uint_eq(up.texts, 2);
}
END_TEST

/* ---- with libcurl to a server ---- */

static void upstream_server(int fd, void *arg)
{
	static _Thread_local char buf[65536];
	char *log = arg, answer[512];

	while (fake_peer_request(fd, buf, sizeof(buf)) > 0) {
		static const char BODY_TEXT[] = "{\"data\":[{\"embedding\":[1,2,3,4]}]}";

		snprintf(log, 4096, "%.4000s", buf);
		snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
			 strlen(BODY_TEXT), BODY_TEXT);
		fake_peer_puts(fd, answer);
	}
}

START_TEST(gateway__adds_the_credential_outside)
{
	const struct cache_gateway_opts o = { .threads = 2 };
	char *log = fake_peer_shared(4096);
	struct cache_upstream way;
	FILE *f;

	stop();
	fake_peer_start(&peer, upstream_server, log);
	f = fopen(util_path("key"), "w");
	fputs("sk-secret\n", f);
	fclose(f);
	chmod(util_path("key"), 0600);
	fake_upstream_init(&up, DIM);
	cache_config_init(&cfg);
	snprintf(url_text, sizeof(url_text), "http://127.0.0.1:%d/base/", peer.port);
	cfg.upstream.url = url_text;
	cfg.upstream.credential_file = util_path("key");
	ck_assert_ok(shim_cache_upstream_new(&cfg.upstream, NULL, &real, &way, &e), e);
	start_with("openai", way, &o);
	check("/v1/embeddings", "{\"model\":\"m\",\"input\":\"a\"}", 200, "miss");
	ck_assert_ptr_eq(strstr(log, "POST /base/v1/embeddings HTTP/1.1\r\n"), log);
	ck_assert_ptr_nonnull(strstr(log, "\r\nauthorization: Bearer sk-secret\r\n"));
	ck_assert_ptr_nonnull(strstr(log, "\r\nContent-Type: application/json\r\n"));
	ck_assert_ptr_nonnull(strstr(log, "{\"model\":\"m\",\"input\":[\"a\"],"));
	fake_peer_stop(&peer);
	check("/v1/embeddings", "{\"model\":\"m\",\"input\":\"b\"}", 502, NULL);
	check("/v1/embeddings", "{\"model\":\"m\",\"input\":\"a\"}", 200, "hit"); /* all the same */
	chmod(util_path("key"), 0644);
	ck_assert_fault(shim_cache_upstream_new(&cfg.upstream, NULL, &real, &way, &e),
			AQE_E_UNTRUSTED, e, "others may read");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("gateway");
	TCase *t = tcase_create("gateway");

	tcase_set_timeout(t, 60);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, gateway__speaks_ollama);
	tcase_add_test(t, gateway__speaks_openai);
	tcase_add_test(t, gateway__tells_statistics);
	tcase_add_loop_test(t, gateway__says_what_is_wrong, 0, AQE_COUNT(FAULTS));
	tcase_add_test(t, gateway__passes_errors_on);
	tcase_add_loop_test(t, refusal__of_the_policy_is_in_the_head, 0, AQE_COUNT(DENIALS));
	tcase_add_loop_test(t, gateway__reads_bytes, 0, AQE_COUNT(BYTES));
	tcase_add_test(t, gateway__continues);
	tcase_add_test(t, gateway__lets_nobody_hang_on);
	tcase_add_test(t, gateway__shares_equal_misses);
	tcase_add_test(t, gateway__adds_the_credential_outside);
	suite_add_tcase(s, t);
	return unit_run(s);
}
