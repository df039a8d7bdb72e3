/* SPDX-License-Identifier: MIT */
#include "cache/request.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "shim/core/text.h"

#define HEADERS_MAX  64
#define CHUNKS_MAX   65536
#define LINE_MAX_LEN 64 /* of a chunk's length with its extensions */

void cache_request_done(struct cache_request *r)
{
	if (r)
		aqe_buf_done(&r->body);
}

void cache_request_clear(struct cache_request *r)
{
	aqe_buf_clear(&r->body);
	r->expects = false;
	r->head = r->at = r->length = 0;
	r->chunks = 0;
	r->chunked = false;
}

/* What the head says about the rest. */
struct framing {
	bool has_length, chunked, host, keep, old, expects;
	uint64_t length;
};

static bool is_token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* The line at `p` without its CR LF: its length, or -1 when no CR LF comes within `n` bytes, or -2
 * for a bare CR or LF or another control character. */
static ptrdiff_t line_at(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\r' && i + 1 < n)
			return p[i + 1] == '\n' ? (ptrdiff_t)i : -2;
		if (p[i] == '\r')
			return -1;
		if (((unsigned char)p[i] < ' ' && p[i] != '\t') || p[i] == 0x7f)
			return -2;
	}
	return -1;
}

/* ---- the head ---- */

static int read_request_line(const char *p, size_t n, struct cache_request *r, struct framing *f)
{
	const char *end = p + n, *path, *version, *query;
	size_t len;

	path = memchr(p, ' ', n);
	len = path ? (size_t)(path - p) : 0;
	for (size_t i = 0; i < len; i++)
		if (!is_token_char(p[i]))
			return 400;
	if (len == 0)
		return 400;
	if (len >= sizeof(r->method))
		return 501;
	memcpy(r->method, p, len);
	r->method[len] = '\0';
	path++;
	version = memchr(path, ' ', (size_t)(end - path));
	if (!version || *path != '/')
		return 400;
	if (end - version != 9 || memcmp(version, " HTTP/", 6) != 0 || version[7] != '.')
		return 400;
	if (version[6] != '1' || (version[8] != '0' && version[8] != '1'))
		return 505;
	f->old = version[8] == '0';
	f->keep = !f->old;
	query = memchr(path, '?', (size_t)(version - path));
	len = (size_t)((query ? query : version) - path);
	if (len >= sizeof(r->path))
		return 414;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)path[i] <= ' ' || (unsigned char)path[i] >= 0x7f)
			return 400;
	memcpy(r->path, path, len);
	r->path[len] = '\0';
	return 0;
}

struct span {
	const char *p;
	size_t n;
};

static bool span_is(struct span s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

static int read_length(struct span v, struct framing *f)
{
	uint64_t n = 0;

	if (v.n == 0 || v.n > 19)
		return 400;
	for (size_t i = 0; i < v.n; i++) {
		if (v.p[i] < '0' || v.p[i] > '9')
			return 400;
		n = n * 10 + (uint64_t)(v.p[i] - '0');
	}
	if (f->has_length && f->length != n)
		return 400;
	f->has_length = true;
	f->length = n;
	return n > CACHE_REQUEST_BODY_MAX ? 413 : 0;
}

static struct span trim(struct span v)
{
	while (v.n > 0 && (*v.p == ' ' || *v.p == '\t')) {
		v.p++;
		v.n--;
	}
	while (v.n > 0 && (v.p[v.n - 1] == ' ' || v.p[v.n - 1] == '\t'))
		v.n--;
	return v;
}

/* Whether a comma-separated list has the word. */
static bool list_has(struct span v, const char *word)
{
	while (v.n > 0) {
		const char *comma = memchr(v.p, ',', v.n);
		const struct span item = { v.p, comma ? (size_t)(comma - v.p) : v.n };
		const size_t skip = comma ? item.n + 1 : item.n;

		v.p += skip;
		v.n -= skip;
		if (span_is(trim(item), word))
			return true;
	}
	return false;
}

/* ---- the headers we know ---- */

static int on_transfer_encoding(struct span v, struct framing *f)
{
	if (f->chunked || !span_is(v, "chunked"))
		return 501;
	f->chunked = true;
	return 0;
}

static int on_host(struct span v, struct framing *f)
{
	(void)v; /* we are reached by address */
	if (f->host)
		return 400;
	f->host = true;
	return 0;
}

static int on_connection(struct span v, struct framing *f)
{
	if (list_has(v, "close"))
		f->keep = false;
	else if (list_has(v, "keep-alive"))
		f->keep = true;
	return 0;
}

static int on_expect(struct span v, struct framing *f)
{
	f->expects = span_is(v, "100-continue");
	return 0;
}

static int on_content_encoding(struct span v, struct framing *f)
{
	(void)f;
	return span_is(v, "identity") ? 0 : 501;
}

static const struct {
	const char *name;
	int (*fn)(struct span v, struct framing *f);
} HEADERS[] = {
	{ "content-length", read_length },
	{ "transfer-encoding", on_transfer_encoding },
	{ "host", on_host },
	{ "connection", on_connection },
	{ "expect", on_expect },
	{ "content-encoding", on_content_encoding },
};

static int read_header(const char *p, size_t n, struct framing *f)
{
	struct span name = { p, 0 }, v;

	while (name.n < n && is_token_char(p[name.n]))
		name.n++;
	if (name.n == 0 || name.n == n || p[name.n] != ':')
		return 400;
	v.p = p + name.n + 1;
	v.n = n - name.n - 1;
	v = trim(v);
	for (size_t i = 0; i < AQE_COUNT(HEADERS); i++)
		if (span_is(name, HEADERS[i].name))
			return HEADERS[i].fn(v, f);
	return 0;
}

static int check_framing(const struct framing *f)
{
	if (f->chunked && (f->has_length || f->old))
		return 400; /* two ways to find the end */
	return f->host || f->old ? 0 : 400;
}

/* *ret_used: bytes of the head with its empty line, 0: incomplete. */
static int read_head(const char *p, size_t n, struct cache_request *r, struct framing *f,
		     size_t *ret_used)
{
	const size_t max = n < CACHE_REQUEST_HEAD_MAX ? n : CACHE_REQUEST_HEAD_MAX;
	size_t at = 0, lines = 0;
	int status = 0;

	while (!status) {
		const ptrdiff_t len = line_at(p + at, max - at);

		if (len == -2)
			return 400;
		if (len < 0)
			return n >= CACHE_REQUEST_HEAD_MAX ? 431 : 0;
		if (lines > HEADERS_MAX)
			return 431;
		if (len == 0 && lines > 0) {
			*ret_used = at + 2;
			return check_framing(f);
		}
		status = lines == 0 ? read_request_line(p + at, (size_t)len, r, f)
				    : read_header(p + at, (size_t)len, f);
		lines++;
		at += (size_t)len + 2;
	}
	return status;
}

/* ---- the body ---- */

/* The length in a chunk's first line; extensions are skipped. */
static int read_chunk_size(const char *p, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i = 0;

	for (; i < n && i < 8; i++) {
		const char c = p[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v << 4 | (uint64_t)((c | 32) - 'a' + 10);
		else
			break;
	}
	if (i == 0 || (i < n && p[i] != ';'))
		return 400;
	*ret = v;
	return v > CACHE_REQUEST_BODY_MAX ? 413 : 0;
}

/* The lines after the last chunk, which nobody reads: bytes used, 0 incomplete, -1 bad. */
static ptrdiff_t skip_trailer(const char *p, size_t n)
{
	size_t at = 0;

	for (int lines = 0; lines <= HEADERS_MAX; lines++) {
		const ptrdiff_t len = line_at(p + at, n - at);

		if (len == -2 || at > CACHE_REQUEST_HEAD_MAX)
			return -1;
		if (len < 0)
			return 0;
		at += (size_t)len + 2;
		if (len == 0)
			return (ptrdiff_t)at;
	}
	return -1;
}

/* One chunk at `p`: *ret_used 0: incomplete; *ret_size its length, 0 for the last. */
static int read_chunk(const char *p, size_t n, struct cache_request *r, size_t *ret_used,
		      uint64_t *ret_size)
{
	const ptrdiff_t len = line_at(p, n < LINE_MAX_LEN ? n : LINE_MAX_LEN);
	size_t head;
	int status;

	*ret_used = 0;
	if (len == -2 || (len < 0 && n >= LINE_MAX_LEN))
		return 400;
	if (len < 0)
		return 0;
	status = read_chunk_size(p, (size_t)len, ret_size);
	if (status)
		return status;
	head = (size_t)len + 2;
	if (*ret_size == 0) {
		*ret_used = head;
		return 0;
	}
	if (n - head < *ret_size + 2)
		return 0;
	if (p[head + *ret_size] != '\r' || p[head + *ret_size + 1] != '\n')
		return 400;
	aqe_buf_add(&r->body, p + head, *ret_size);
	*ret_used = head + *ret_size + 2;
	return r->body.failed ? 413 : 0;
}

static int read_chunks(struct cache_request *r, const char *p, size_t n, size_t *ret_used)
{
	uint64_t size = 1;
	size_t used;
	ptrdiff_t rest;

	/* the last chunk is read again each time, until what follows it is complete */
	while (size > 0) {
		const int status = read_chunk(p + r->at, n - r->at, r, &used, &size);

		if (status || used == 0)
			return status;
		if (++r->chunks > CHUNKS_MAX)
			return 413;
		if (size > 0)
			r->at += used;
	}
	rest = skip_trailer(p + r->at + used, n - r->at - used);
	if (rest < 0)
		return 400;
	if (rest > 0)
		*ret_used = r->at + used + (size_t)rest;
	return 0;
}

static int begin(struct cache_request *r, const char *p, size_t n)
{
	struct framing f = { .has_length = false };
	size_t head = 0;
	int status = read_head(p, n, r, &f, &head);

	if (status || head == 0)
		return status;
	if (!f.has_length && !f.chunked && strcmp(r->method, "POST") == 0)
		return 411;
	r->keep = f.keep;
	r->expects = f.expects;
	r->chunked = f.chunked;
	r->length = (size_t)f.length;
	r->head = r->at = head;
	return 0;
}

int cache_request_parse(struct cache_request *r, const char *p, size_t n, size_t *ret_used)
{
	int status = 0;

	*ret_used = 0;
	if (r->head == 0)
		status = begin(r, p, n);
	if (status || r->head == 0)
		return status;
	if (r->chunked)
		return read_chunks(r, p, n, ret_used);
	if (n - r->head < r->length)
		return 0;
	aqe_buf_add(&r->body, p + r->head, r->length);
	*ret_used = r->head + r->length;
	return r->body.failed ? 413 : 0;
}
