/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/rest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/aqe/http.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"

#define BODY_MAX   ((size_t)16 << 20)
#define TIMEOUT_S  30 /* unless AQE_ENGINE_TIMEOUT says otherwise */
#define CONNECT_MS 5000

/* Docker 19.03 speaks 1.40, Podman's compatible API 1.41, Docker 29 wants 1.44 or later. */
#define API_MAJOR   "1."
#define API_OLDEST  40
#define API_NEWEST  44
#define LIBPOD      "/v4.0.0"

#define MESSAGE_MAX 2000

static const struct aqe_json_limits LIMITS = {
	.bytes = BODY_MAX,
	.depth = 64,
	.values = 500000,
	.entries = 100000,
	.string = BODY_MAX,
	.number = 64,
	.fold_dups_ok = true,
};

/* ---- where ---- */

struct where {
	const char *engine, *variable, *system;
	const char *programs[3]; /* one of them is there when the engine is */
	const char *hint;
};
static const struct where WHERE[] = {
	{ "podman",
	  "CONTAINER_HOST",
	  "/run/podman/podman.sock",
	  { "/usr/bin/podman", "/usr/local/bin/podman", NULL },
	  "start its service: systemctl start podman.socket, or podman system service -t 0" },
	{ "docker",
	  "DOCKER_HOST",
	  "/var/run/docker.sock",
	  { "/usr/bin/dockerd", "/usr/sbin/dockerd", "/usr/local/bin/dockerd" },
	  "start dockerd" },
};

static bool is_socket(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int absent(const struct where *w, const char *socket, struct aqe_err *e)
{
	bool here = false;

	for (size_t i = 0; i < AQE_COUNT(w->programs) && w->programs[i]; i++)
		here = here || access(w->programs[i], X_OK) == 0;
	if (!here)
		return aqe_err_set(
			e, AQE_E_ABSENT, 0,
			"%s is not on this machine (no '%s', no socket '%.100s'); without "
			"an engine use --engine oci",
			w->engine, w->programs[0], socket);
	return aqe_err_set(e, AQE_E_ABSENT, 0, "%s does not answer at '%.100s': %s", w->engine,
			   socket, w->hint);
}

static int from_variable(const struct where *w, const char *value, const char **ret,
			 struct aqe_err *e)
{
	static const char SCHEME[] = "unix://";

	if (!aqe_starts(value, SCHEME))
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "%s names '%.60s': only an engine on this machine can be used "
				   "(unix://)",
				   w->variable, value);
	*ret = value + strlen(SCHEME);
	return is_socket(*ret) ? 0 : absent(w, *ret, e);
}

static int find_socket(struct aqe_arena *a, const char *engine, struct shim_rest *ret,
		       struct aqe_err *e)
{
	const struct where *w = NULL;
	const char *value, *runtime, *own = NULL, *socket = NULL;
	int rc = 0;

	for (size_t i = 0; i < AQE_COUNT(WHERE); i++) {
		if (aqe_str_eq(WHERE[i].engine, engine))
			w = &WHERE[i];
	}
	if (!w)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "no engine '%.20s'", engine);
	value = getenv(w->variable);
	runtime = getenv("XDG_RUNTIME_DIR");
	if (runtime && *runtime == '/' && geteuid() != 0)
		own = aqe_arena_fmt(a, "%s/%s/%s.sock", runtime, engine, engine);
	if (value && *value)
		rc = from_variable(w, value, &socket, e);
	else if (is_socket(own))
		socket = own;
	else if (is_socket(w->system))
		socket = w->system;
	else
		rc = absent(w, own ? own : w->system, e);
	if (rc == 0)
		*ret = (struct shim_rest){ w->engine, socket, "", a };
	return rc;
}

/* ---- requests ---- */

const char *shim_rest_quote(struct aqe_arena *a, const char *name)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(8192);

	for (const char *p = name; *p; p++) {
		if (isalnum((unsigned char)*p) || strchr("-._~/:", *p))
			(void)aqe_buf_putc(&b, *p);
		else
			aqe_buf_addf(&b, "%%%02X", (unsigned char)*p);
	}
	return aqe_buf_ok(&b, NULL) == 0 ? aqe_arena_dup(a, aqe_buf_str(&b)) : NULL;
}

/* Only a good answer goes to the caller's sink; the text of a fault is kept here. */
struct answer {
	const struct shim_rest_call *c;
	struct aqe_buf fault;
	int status;
	char api[16]; /* the header Api-Version */
};

static int take_header(void *self, const char *line, size_t n)
{
	static const char API[] = "Api-Version: ";
	struct answer *got = self;
	uint64_t status = 0;
	char head[32], *blank;

	(void)snprintf(head, sizeof(head), "%.*s", (int)(n < 31 ? n : 31), line);
	/* "HTTP/1.1 200 OK": libcurl has checked the form */
	blank = aqe_starts(head, "HTTP/") ? strchr(head, ' ') : NULL;
	if (blank && strlen(blank) >= 4) {
		blank[4] = '\0';
		if (aqe_parse_u64(blank + 1, 999, &status))
			got->status = (int)status;
	}
	if (strncasecmp(head, API, strlen(API)) == 0)
		(void)snprintf(got->api, sizeof(got->api), "%.15s", head + strlen(API));
	return 0;
}

static int take_body(void *self, const void *p, size_t n)
{
	struct answer *got = self;

	if (got->status >= 200 && got->status < 300 && got->c->sink)
		return got->c->sink(got->c->arg, p, n);
	(void)aqe_buf_add(&got->fault, p, n); /* too long: a fault without its text */
	return 0;
}

/* What is no JSON is no document; what could not be read for lack of memory is not "none": a
 * verdict may hang on it. */
static int parse(const struct shim_rest *r, const struct aqe_buf *b, struct aqe_json **ret,
		 struct aqe_err *e)
{
	struct aqe_json *doc = NULL;
	int rc;

	if (b->failed == AQE_E_NOMEM)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "%s: no memory for its answer", r->engine);
	if (!ret || b->len == 0)
		return 0;
	rc = aqe_json_parse(r->arena, b->p, b->len, &LIMITS, &doc, NULL);
	if (rc == AQE_E_NOMEM)
		return aqe_err_set(e, rc, 0, "%s: no memory for its answer", r->engine);
	if (rc == 0)
		*ret = doc;
	return 0;
}

static unsigned timeout_ms(void)
{
	const char *text = getenv("AQE_ENGINE_TIMEOUT");
	uint64_t s = TIMEOUT_S;

	if (text && (!aqe_parse_u64(text, 3600, &s) || s == 0))
		s = TIMEOUT_S;
	return (unsigned)s * 1000;
}

static int send(const struct shim_rest *r, const struct shim_rest_call *c, struct shim_http *http,
		struct answer *got, struct aqe_err *e)
{
	static const char *const HEADERS[] = { "Content-Type: application/json", NULL };
	AQE_AUTO_BUF struct aqe_buf body = AQE_BUF_INIT(BODY_MAX);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct shim_http_req req = {
		.method = c->method,
		.url = aqe_arena_fmt(r->arena, "http://engine%s%s",
				     aqe_starts(c->path, "/libpod/") ? LIBPOD : r->api, c->path),
		.timeout_ms = c->timeout_ms ? c->timeout_ms : timeout_ms(),
		.max_body = c->sink ? SIZE_MAX : BODY_MAX,
		.on_header = take_header,
		.sink = take_body,
		.self = got
	};
	int rc = 0;

	if (!req.url)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	if (c->body) {
		rc = aqe_json_emit(c->body, AQE_JSON_COMPACT, &body, e);
		req.headers = HEADERS;
		req.body = aqe_buf_str(&body);
		req.body_len = body.len;
	}
	if (rc == 0)
		rc = shim_http_send(http, &req, &resp, e);
	shim_http_resp_done(&resp);
	return rc;
}

/* The caller frees got->fault. */
static int ask(const struct shim_rest *r, const struct shim_rest_call *c, struct answer *got,
	       struct aqe_err *e)
{
	struct shim_http_opts o = { .flags = SHIM_HTTP_PLAIN,
				    .connect_timeout_ms = CONNECT_MS,
				    .unix_socket = r->socket };
	struct shim_http *http = NULL;
	int rc = shim_http_new(&o, &http, e);

	if (rc < 0)
		return rc;
	rc = send(r, c, http, got, e);
	shim_http_free(http);
	if (rc == AQE_E_SYS || rc == AQE_E_TIMEOUT)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "%s does not answer at '%.100s'%s",
				   r->engine, r->socket, rc == AQE_E_SYS ? "" : " in time");
	return rc < 0 ? aqe_err_wrap(e, "%s", r->engine) : 0;
}

int shim_rest_do(const struct shim_rest *r, const struct shim_rest_call *c, int *ret_status,
		 struct aqe_json **ret, struct aqe_err *e)
{
	struct answer got = { c, AQE_BUF_INIT(BODY_MAX), 0, "" };
	int rc = ask(r, c, &got, e);

	if (ret)
		*ret = NULL;
	if (rc == 0)
		rc = parse(r, &got.fault, ret, e);
	*ret_status = got.status;
	aqe_buf_done(&got.fault);
	return rc;
}

/* A container may have a say in what a message holds: nothing of it may steer a terminal. */
static void printable(struct aqe_buf *b, const char *text)
{
	for (size_t i = 0; i < MESSAGE_MAX && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];
		/* U+0080 to U+009F are control characters too */
		bool c1 = c >= 0x80 && c < 0xa0 && i > 0 && (unsigned char)text[i - 1] == 0xc2;

		(void)aqe_buf_putc(b, c < ' ' || c == 0x7f || c1 ? ' ' : text[i]);
	}
}

int shim_rest_fault(const struct shim_rest *r, const char *doing, int status,
		    const struct aqe_json *answer, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf safe = AQE_BUF_INIT(4096);
	const char *text = aqe_json_str(aqe_json_get(answer, "message"));
	const char *shim;

	if (!text)
		text = aqe_json_str(aqe_json_get(answer, "cause"));
	if (!text)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "%s: %s: HTTP status %d", r->engine, doing,
				   status);
	printable(&safe, text);
	if (aqe_buf_ok(&safe, e) < 0)
		return safe.failed;
	text = aqe_buf_str(&safe);
	/* the engine's frame around the shim's words says nothing more */
	shim = strstr(text, "refused: ");
	if (shim && shim_engine_is_verdict(shim))
		return aqe_err_set(e, AQE_E_REFUSED, 0, "aqe-shim: %.480s", shim);
	return aqe_err_set(e, status == 404 ? AQE_E_ABSENT : AQE_E_UNKNOWN, 0, "%s: %s: %.400s",
			   r->engine, doing, text);
}

/* ---- versions ---- */

/* A ping costs the engine nothing; for GET /version Podman asks dpkg about its programs. */
static int choose_api(struct shim_rest *r, struct aqe_err *e)
{
	const struct shim_rest_call c = { .method = "GET", .path = "/_ping" };
	struct answer got = { &c, AQE_BUF_INIT(MESSAGE_MAX), 0, "" };
	uint64_t minor = 0;
	int rc = ask(r, &c, &got, e);

	aqe_buf_done(&got.fault);
	if (rc < 0)
		return rc;
	if (got.status != 200 || !aqe_starts(got.api, API_MAJOR) ||
	    !aqe_parse_u64(got.api + strlen(API_MAJOR), 9999, &minor) || minor < API_OLDEST)
		return aqe_err_set(e, AQE_E_REFUSED, 0,
				   "%s at '%.100s' does not speak version " API_MAJOR
				   "%d of the API, or a later one",
				   r->engine, r->socket, API_OLDEST);
	r->api = aqe_arena_fmt(r->arena, "/v" API_MAJOR "%llu",
			       (unsigned long long)(minor < API_NEWEST ? minor : API_NEWEST));
	return r->api ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
}

int shim_rest_open(struct aqe_arena *a, const char *engine, struct shim_rest *ret,
		   struct aqe_err *e)
{
	struct shim_rest r = { engine, NULL, "", a };
	int rc = find_socket(a, engine, &r, e);

	if (rc == 0)
		rc = choose_api(&r, e);
	if (rc == 0)
		*ret = r;
	return rc;
}
