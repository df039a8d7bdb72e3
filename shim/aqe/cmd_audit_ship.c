/* SPDX-License-Identifier: MIT */
/* aqe audit ship: new rows to a collector over HTTPS, at least once. The log is the spool: what
 * was not taken is read from it again, and writers never wait for the network. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_ship.h"
#include "shim/aqe/audit_watch.h"
#include "shim/aqe/audit_when.h"
#include "shim/aqe/http.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define ARENA_MAX       ((size_t)1 << 20)
#define HEADER_FILE_MAX ((size_t)64 << 10)
#define HEADERS_MAX     64
#define BATCH_DEFAULT   500
#define BATCH_MAX       100000
#define WAIT_FIRST_MS   1000
#define WAIT_MAX_MS     300000
#define ATTEMPTS_ONCE   5
#define TIMEOUT_MS      60000
#define NS_PER_MS       INT64_C(1000000)
#define POSITION_NAME   16 /* characters of the URL's digest in the name of its position */

enum {
	OPT_URL = SHIM_OPT_OWN,
	OPT_CA,
	OPT_CERT,
	OPT_KEY,
	OPT_HEADERS,
	OPT_ONCE,
	OPT_BATCH,
	OPT_POSITION,
	OPT_WAIT,
	OPT_ATTEMPTS,
};
static const struct aqe_cli_opt OPTS[] = {
	{ "url", 0, "URL", "where to POST; https, or http to this machine", OPT_URL },
	{ "ca", 0, "FILE", "PEM of the authorities to trust (default: the system's)", OPT_CA },
	{ "cert", 0, "FILE", "our certificate, PEM", OPT_CERT },
	{ "key", 0, "FILE", "its key, PEM", OPT_KEY },
	{ "header-file", 0, "FILE",
	  "headers to send, one a line, such as a token; a file that only "
	  "its owner can read",
	  OPT_HEADERS },
	{ "once", 0, NULL, "stop when all rows are taken, do not wait for more", OPT_ONCE },
	{ "batch", 0, "N", "at most N rows (500) and 1 MiB a request", OPT_BATCH },
	{ "position", 0, "FILE", "what was taken so far (default: in the log's folder, by URL)",
	  OPT_POSITION },
	{ "retry-wait", 0, "DURATION", "before the second attempt (1s); doubled up to 5m",
	  OPT_WAIT },
	{ "attempts", 0, "N", "give up after N in a row (--once: 5; otherwise never)",
	  OPT_ATTEMPTS },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe audit ship",
	.synopsis = "--url URL [--ca FILE] [--header-file FILE] [--once]",
	.about = "Posts new rows as JSON lines. A row counts as taken when the answer is 2xx, and "
		 "is "
		 "sent again otherwise: at least once, in order, also after a restart. 408, 425, "
		 "429 "
		 "and 5xx are tried again with growing, random waits; other 4xx end it, because "
		 "leaving rows out is no choice.",
	.opts = OPTS,
};

struct ship {
	const char *url, *header_file, *position;
	struct shim_http_opts dial;
	bool once;
	uint64_t batch, attempts;
	int64_t wait_ns;
	/* while running */
	int dirfd; /* of the position */
	const char *name;
	struct shim_http *http;
	char *headers[HEADERS_MAX + 1];
	size_t n_headers;
	struct shim_ship_position at;
	struct shim_ship_batch b;
	uint64_t limit; /* rows a request, lowered by 413 */
	unsigned failures;
	uint64_t taken;
};

/* ---- the command line ---- */

static int take_number(struct ship *s, int id, const char *value, struct aqe_err *e)
{
	uint64_t *to = id == OPT_BATCH ? &s->batch : &s->attempts;

	if (!aqe_parse_u64(value, BATCH_MAX, to) || *to == 0)
		return aqe_err_set(e, AQE_E_USAGE, 0, "'%.64s' is not a number from 1 to %d", value,
				   BATCH_MAX);
	return AQE_OK;
}

static int take(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	struct ship *s = self;

	switch (id) {
	case OPT_URL:
		s->url = c->value;
		return AQE_OK;
	case OPT_CA:
		s->dial.ca_file = c->value;
		return AQE_OK;
	case OPT_CERT:
		s->dial.cert_file = c->value;
		return AQE_OK;
	case OPT_KEY:
		s->dial.key_file = c->value;
		return AQE_OK;
	case OPT_HEADERS:
		s->header_file = c->value;
		return AQE_OK;
	case OPT_ONCE:
		s->once = true;
		return AQE_OK;
	case OPT_POSITION:
		s->position = c->value;
		return AQE_OK;
	case OPT_BATCH:
	case OPT_ATTEMPTS:
		return take_number(s, id, c->value, e);
	case OPT_WAIT:
		if (shim_duration_parse(c->value, &s->wait_ns) && s->wait_ns >= NS_PER_MS)
			return AQE_OK;
		return aqe_err_set(e, AQE_E_USAGE, 0, "--retry-wait: '%.64s' is not a duration: 1s",
				   c->value);
	default:
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	}
}

/* ---- setting up ---- */

/* Plain http is for this machine alone, whatever "localhost" resolves to. */
static bool may_dial_plain(void *self, const struct sockaddr *to, size_t len)
{
	struct sockaddr_in a;
	struct sockaddr_in6 a6;

	(void)self;
	if (to->sa_family == AF_INET && len >= sizeof(a)) {
		memcpy(&a, to, sizeof(a));
		return ntohl(a.sin_addr.s_addr) >> 24 == 127;
	}
	if (to->sa_family == AF_INET6 && len >= sizeof(a6)) {
		memcpy(&a6, to, sizeof(a6));
		return IN6_IS_ADDR_LOOPBACK(&a6.sin6_addr);
	}
	return false;
}

static int add_header(struct ship *s, struct aqe_arena *a, const char *line, size_t n,
		      struct aqe_err *e)
{
	char *copy = aqe_arena_ndup(a, line, n);

	if (!copy)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for headers");
	if (s->n_headers == HEADERS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d headers", HEADERS_MAX);
	if (!memchr(line, ':', n) || strlen(copy) != n)
		return aqe_err_set(e, AQE_E_MALFORMED, 0,
				   "line %zu of the header file is not "
				   "'Name: value'",
				   s->n_headers + 1);
	s->headers[s->n_headers++] = copy;
	return AQE_OK;
}

/* Tokens are secrets: the file must be its owner's alone. */
static int read_headers(struct ship *s, struct aqe_arena *a, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(HEADER_FILE_MAX);
	AQE_AUTO_FD int fd = open(s->header_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int rc;

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%.300s'", s->header_file);
	rc = aqe_fs_check(fd, AQE_FS_REGULAR | AQE_FS_OWNER | AQE_FS_NO_WRITE, HEADER_FILE_MAX,
			  s->header_file, &st, e);
	if (rc == AQE_OK && (st.st_mode & (S_IRGRP | S_IROTH)))
		rc = aqe_err_set(e, AQE_E_UNTRUSTED, 0,
				 "'%.300s' can be read by others: chmod 600 it", s->header_file);
	if (rc == AQE_OK)
		rc = aqe_fs_read_fd(fd, &b, e);
	for (const char *p = aqe_buf_str(&b); rc == AQE_OK && *p;) {
		const size_t n = strcspn(p, "\n");
		const size_t text = n && p[n - 1] == '\r' ? n - 1 : n;

		if (text)
			rc = add_header(s, a, p, text, e);
		p += n + (p[n] == '\n');
	}
	return rc;
}

/* The folder and name of the position file. */
static int find_position(struct ship *s, struct aqe_arena *a, const struct audit_opts *at,
			 struct aqe_err *e)
{
	char digest[AQE_DIGEST_TEXT];
	const char *slash = s->position ? strrchr(s->position, '/') : NULL;
	const char *dir = at->dir;

	aqe_sha256_text(s->url, strlen(s->url), digest);
	if (!s->position) {
		s->name = aqe_arena_fmt(a, "ship-%.*s", POSITION_NAME, digest + strlen("sha256:"));
	} else {
		s->name = slash ? slash + 1 : s->position;
		dir = slash == s->position ? "/"
		      : slash ? aqe_arena_ndup(a, s->position, (size_t)(slash - s->position))
			      : ".";
	}
	if (!s->name || !dir)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	s->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->dirfd < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "open '%.300s'", dir) : AQE_OK;
}

/* One at a time: two would send everything twice. The lock ends with the process. */
static int lock_position(const struct ship *s, struct aqe_arena *a, int *ret_fd, struct aqe_err *e)
{
	const char *name = aqe_arena_fmt(a, "%s.lock", s->name);
	int rc;

	if (!name)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	rc = aqe_fs_open_beneath(s->dirfd, name, O_RDWR | O_CREAT, 0600, ret_fd, e);
	if (rc == AQE_OK && flock(*ret_fd, LOCK_EX | LOCK_NB) < 0)
		rc = aqe_err_set(e, AQE_E_REFUSED, 0, "another ship to this URL is running");
	return rc;
}

static int begin(struct ship *s, struct shim_watch *w, struct aqe_err *e)
{
	bool other, there;
	uint64_t pruned = 0;
	int rc = shim_ship_load(s->dirfd, s->name, &s->at, &there, e);

	if (rc == AQE_OK)
		rc = shim_ship_check(w->log, &s->at, &other, &pruned, e);
	if (rc == AQE_OK && other && there)
		(void)fprintf(stderr, "%s: this is another log than before: from its first row\n",
			      CMD.name);
	if (rc == AQE_OK && pruned)
		(void)fprintf(stderr, "%s: %" PRIu64 " rows were pruned before they were shipped\n",
			      CMD.name, pruned);
	return rc;
}

/* ---- running ---- */

static int drop(void *self, const void *p, size_t n)
{
	(void)self;
	(void)p;
	(void)n;
	return 0;
}

/* One request. The verdict, with a text for people in `e` unless it was taken. */
static enum shim_ship_verdict post(struct ship *s, int64_t *ret_after_s, struct aqe_err *e)
{
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	char chain[80] = "X-Aqe-Chain: ", rows[96], key[96];
	const char *all[HEADERS_MAX + 5] = { "Content-Type: application/x-ndjson", chain, rows,
					     key };
	const struct shim_http_req req = { .method = "POST",
					   .url = s->url,
					   .headers = all,
					   .body = s->b.body.p,
					   .body_len = s->b.body.len,
					   .timeout_ms = TIMEOUT_MS,
					   .sink = drop };
	enum shim_ship_verdict v;
	const size_t start = strlen(chain);
	int rc;

	for (size_t i = 0; i < sizeof(s->at.chain); i++)
		(void)snprintf(chain + start + 2 * i, 3, "%02x", s->at.chain[i]);
	(void)snprintf(rows, sizeof(rows), "X-Aqe-Rows: %" PRId64 "-%" PRId64, s->b.first,
		       s->b.after.seq);
	(void)snprintf(key, sizeof(key), "Idempotency-Key: %.16s-%" PRId64 "-%" PRId64,
		       chain + start, s->b.first, s->b.after.seq);
	for (size_t i = 0; i < s->n_headers; i++)
		all[4 + i] = s->headers[i];
	rc = shim_http_send(s->http, &req, &resp, e);
	v = shim_ship_judge(rc, resp.status);
	if (rc == AQE_OK && v != SHIM_SHIP_TAKEN)
		(void)aqe_err_set(e, v == SHIM_SHIP_REFUSED ? AQE_E_REFUSED : AQE_E_UNKNOWN, 0,
				  "the server answered %d", resp.status);
	*ret_after_s = resp.retry_after_s;
	shim_http_resp_done(&resp);
	return v;
}

static int taken(struct ship *s)
{
	struct aqe_err e = AQE_ERR_INIT;

	s->failures = 0;
	s->taken += s->b.rows;
	s->at = s->b.after;
	if (shim_ship_store(s->dirfd, s->name, &s->at, &e) < 0)
		/* goes on: after a restart these rows are sent twice, none is left out */
		(void)fprintf(stderr, "%s: position: %s\n", CMD.name, e.text);
	return AQE_OK;
}

static int wait_again(struct ship *s, int64_t after_s, struct aqe_err *e)
{
	uint32_t random = 0;
	uint64_t ms;
	char span[SHIM_WHEN_TEXT];

	s->failures++;
	if (s->attempts && s->failures >= s->attempts)
		return aqe_err_wrap(e, "gave up after %u attempts", s->failures);
	if (getrandom(&random, sizeof(random), 0) < 0)
		random = 0; /* then without jitter */
	ms = shim_ship_wait_ms(s->failures, (uint64_t)(s->wait_ns / NS_PER_MS), WAIT_MAX_MS,
			       after_s, random);
	shim_duration_format((int64_t)ms * NS_PER_MS, span);
	(void)fprintf(stderr, "%s: %s; again in %s\n", CMD.name, e->text, span);
	(void)poll(NULL, 0, (int)ms);
	e->code = AQE_OK;
	return AQE_OK;
}

/* Sends one batch; the caller comes back for what was not taken. */
static int step(struct ship *s, struct aqe_err *e)
{
	int64_t after_s = -1;

	switch (post(s, &after_s, e)) {
	case SHIM_SHIP_TAKEN:
		return taken(s);
	case SHIM_SHIP_AGAIN:
		return wait_again(s, after_s, e);
	case SHIM_SHIP_SMALLER:
		if (s->b.rows == 1)
			return aqe_err_wrap(e, "row %" PRId64 " alone is too large", s->b.first);
		s->limit = s->b.rows / 2;
		return AQE_OK;
	case SHIM_SHIP_REFUSED:
		break;
	}
	return aqe_err_wrap(e, "rows %" PRId64 " to %" PRId64 " are not taken", s->b.first,
			    s->b.after.seq);
}

static int run(struct ship *s, struct shim_watch *w, struct aqe_err *e)
{
	int rc = begin(s, w, e);

	s->limit = s->batch;
	while (rc == AQE_OK) {
		rc = shim_ship_fill(w->log, &s->at, s->limit, &s->b, e);
		if (rc == AQE_OK && s->b.rows) {
			rc = step(s, e);
			continue;
		}
		s->limit = s->batch; /* all is taken */
		if (rc == AQE_OK && s->once)
			break;
		if (rc == AQE_OK || rc == AQE_E_TIMEOUT)
			rc = shim_watch_wait(w, -1, e);
		if (rc == AQE_OK && w->replaced) {
			w->replaced = false;
			rc = begin(s, w, e);
		}
	}
	return rc;
}

static int prepare(struct ship *s, const struct shim_audit_args *args, struct shim_watch *w,
		   int *ret_lock, struct aqe_err *e)
{
	struct audit_opts at;
	bool plain = false;
	int rc;

	if (!s->url)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--url URL is missing");
	rc = shim_ship_url(s->url, &plain, e);
	if (plain) {
		s->dial.flags = SHIM_HTTP_PLAIN;
		s->dial.may_dial = may_dial_plain;
	}
	if (rc == AQE_OK && s->header_file)
		rc = read_headers(s, args->arena, e);
	if (rc == AQE_OK)
		rc = shim_audit_place(args, AUDIT_READ, &at, e);
	if (rc == AQE_OK)
		rc = shim_watch_init(w, &at, e);
	if (rc == AQE_OK)
		rc = find_position(s, args->arena, &at, e);
	if (rc == AQE_OK)
		rc = lock_position(s, args->arena, ret_lock, e);
	return rc < 0 ? rc : shim_http_new(&s->dial, &s->http, e);
}

int shim_audit_ship(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	AQE_AUTO_FD int lock = -1;
	struct ship s = { .batch = BATCH_DEFAULT,
			  .wait_ns = WAIT_FIRST_MS * NS_PER_MS,
			  .dirfd = -1,
			  .b = { .body = AQE_BUF_INIT(2 * SHIM_SHIP_BYTES) } };
	struct shim_audit_args args = { .arena = a, .own = take, .self = &s };
	struct shim_watch w = { .notify = -1 };
	struct aqe_err e = AQE_ERR_INIT;
	int rc, status = shim_audit_parse(&args, &CMD, argc, argv);

	if (status != SHIM_AUDIT_RUN)
		return status;
	if (s.once && !s.attempts)
		s.attempts = ATTEMPTS_ONCE;
	rc = prepare(&s, &args, &w, &lock, &e);
	if (rc == AQE_OK)
		rc = run(&s, &w, &e);
	if (s.once && (rc == AQE_OK || s.taken))
		(void)fprintf(stderr, "%s: %" PRIu64 " rows taken\n", CMD.name, s.taken);
	if (s.dirfd >= 0)
		(void)close(s.dirfd);
	aqe_buf_done(&s.b.body);
	shim_http_free(s.http);
	shim_watch_done(&w);
	return rc < 0 ? shim_audit_fail(&CMD, &e) : SHIM_EXIT_OK;
}
