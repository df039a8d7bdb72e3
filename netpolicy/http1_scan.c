/* SPDX-License-Identifier: MIT */
/* The scanner: one state a syntactic place, one function a state. Each function takes bytes from
 * h->at on and either runs out of them (NETPOL_H1_MORE), names a fault, or moves to another state.
 */
#include <string.h>
#include <strings.h>

#include "netpolicy/http1_int.h"

enum state {
	START,    /* before the first line; one empty line is skipped (RFC 9112 2.2) */
	START_LF, /* after the CR of that empty line */
	LINE,     /* at the first byte of the first line */
	WORD,     /* in word h->count of the first line */
	LINE_LF,  /* after its CR */
	FIELD,    /* at the first byte of a field line */
	NAME,     /* in a field's name */
	BEFORE,   /* white space before a value */
	VALUE,    /* in a field's value */
	VALUE_LF, /* after its CR */
	END_LF,   /* after the CR of the empty line */
	DONE,     /* behind the head */
	STATE_COUNT
};

void netpol_h1_head_init(struct netpol_h1_head *h, bool response)
{
	h->response = response;
	h->state = response ? LINE : START;
	h->fault = NETPOL_H1_OK;
	h->at = h->line_at = h->block_at = h->word_at = 0;
	h->count = 0;
}

static enum netpol_h1_step bad(struct netpol_h1_head *h, enum netpol_h1_fault fault)
{
	h->fault = fault;
	return NETPOL_H1_BAD;
}

static enum netpol_h1_step to(struct netpol_h1_head *h, enum state state, unsigned step)
{
	h->state = (uint8_t)state;
	h->at += step;
	return NETPOL_H1_MORE;
}

static enum netpol_h1_fault line_fault(const struct netpol_h1_head *h)
{
	return h->response ? NETPOL_H1_STATUS_LINE : NETPOL_H1_REQUEST_LINE;
}

static enum netpol_h1_fault field_fault(const struct netpol_h1_head *h)
{
	return h->response ? NETPOL_H1_RESPONSE : NETPOL_H1_FIELD;
}

static struct netpol_h1_span span(uint32_t from, uint32_t end)
{
	struct netpol_h1_span s = { (uint16_t)from, (uint16_t)(end - from) };

	return s;
}

static enum netpol_h1_step at_start(struct netpol_h1_head *h, const char *p, size_t n)
{
	(void)n;
	return p[h->at] == '\r' ? to(h, START_LF, 1) : to(h, LINE, 0);
}

/* Every state that stands between a CR and its LF: a bare CR is refused everywhere. */
static enum netpol_h1_step expect_lf(struct netpol_h1_head *h, const char *p, enum state next,
				     enum netpol_h1_fault fault)
{
	return p[h->at] == '\n' ? to(h, next, 1) : bad(h, fault);
}

static enum netpol_h1_step at_start_lf(struct netpol_h1_head *h, const char *p, size_t n)
{
	(void)n;
	return expect_lf(h, p, LINE, line_fault(h));
}

static enum netpol_h1_step at_line(struct netpol_h1_head *h, const char *p, size_t n)
{
	(void)p;
	(void)n;
	h->line_at = h->word_at = h->at;
	return to(h, WORD, 0);
}

/* What word `i` of the first line may hold. A request's target is judged later, when it is known
 * which part of it is a host; bytes above 0x7f are a bad host there and a bad line elsewhere. */
static bool word_char(const struct netpol_h1_head *h, unsigned i, unsigned char c)
{
	if (h->response)
		return i == 2 ? netpol_h1_is_text(c) : netpol_h1_is_visible(c);
	if (i == 0)
		return netpol_h1_is_token(c);
	return netpol_h1_is_visible(c) || (i == 1 && c >= 0x80);
}

static enum netpol_h1_step word_end(struct netpol_h1_head *h, char c)
{
	bool last = h->count == 2 || (h->response && h->count == 1 && c == '\r');

	h->word[h->count] = span(h->word_at, h->at);
	if (h->word[h->count].n == 0 && !(h->response && h->count == 2))
		return bad(h, line_fault(h));
	if (c == ' ' && h->count < 2) {
		h->count++;
		h->word_at = h->at + 1;
		return to(h, WORD, 1);
	}
	if (c != '\r' || !last)
		return bad(h, line_fault(h));
	if (h->count == 1)
		h->word[2] = span(h->at, h->at);
	h->count = 0;
	return to(h, LINE_LF, 1);
}

static enum netpol_h1_step in_word(struct netpol_h1_head *h, const char *p, size_t n)
{
	uint32_t i = h->at, end = h->line_at + NETPOL_H1_LINE_MAX;
	bool method = !h->response && h->count == 0;

	if (method)
		end = h->word_at + NETPOL_H1_METHOD_MAX;
	while (i < n && i <= end && word_char(h, h->count, (unsigned char)p[i]))
		i++;
	h->at = i;
	if (i > end)
		return bad(h, method || h->response ? line_fault(h) : NETPOL_H1_LINE_TOO_LONG);
	return i == n ? NETPOL_H1_MORE : word_end(h, p[i]);
}

static enum netpol_h1_step at_line_lf(struct netpol_h1_head *h, const char *p, size_t n)
{
	(void)n;
	h->block_at = h->at + 1;
	return expect_lf(h, p, FIELD, line_fault(h));
}

static enum netpol_h1_step at_field(struct netpol_h1_head *h, const char *p, size_t n)
{
	(void)n;
	if (p[h->at] == '\r')
		return to(h, END_LF, 1);
	if (h->count == NETPOL_H1_FIELDS_MAX)
		return bad(h, h->response ? NETPOL_H1_RESPONSE : NETPOL_H1_FIELDS_TOO_LARGE);
	h->word_at = h->at;
	return to(h, NAME, 0);
}

static uint8_t field_id(const char *name, size_t n)
{
	static const char *const names[NETPOL_H1_F_COUNT] = {
		[NETPOL_H1_F_CONNECTION] = "connection",
		[NETPOL_H1_F_CONTENT_LENGTH] = "content-length",
		[NETPOL_H1_F_EXPECT] = "expect",
		[NETPOL_H1_F_HOST] = "host",
		[NETPOL_H1_F_HTTP2_SETTINGS] = "http2-settings",
		[NETPOL_H1_F_KEEP_ALIVE] = "keep-alive",
		[NETPOL_H1_F_MAX_FORWARDS] = "max-forwards",
		[NETPOL_H1_F_TE] = "te",
		[NETPOL_H1_F_TRAILER] = "trailer",
		[NETPOL_H1_F_TRANSFER_ENCODING] = "transfer-encoding",
		[NETPOL_H1_F_UPGRADE] = "upgrade",
	};

	if (n > 6 && strncasecmp(name, "proxy-", 6) == 0)
		return NETPOL_H1_F_PROXY;
	for (uint8_t i = 1; i < NETPOL_H1_F_COUNT; i++) {
		if (names[i] && strncasecmp(name, names[i], n) == 0 && names[i][n] == '\0')
			return i;
	}
	return NETPOL_H1_F_OTHER;
}

/* A space, a tab or nothing at all where a name must be is a folded line, white space before the
 * colon, or an empty name: all refused. */
static enum netpol_h1_step in_name(struct netpol_h1_head *h, const char *p, size_t n)
{
	struct netpol_h1_field *f = &h->fields[h->count];
	uint32_t i = h->at;

	while (i < n && netpol_h1_is_token((unsigned char)p[i]) &&
	       i - h->word_at <= NETPOL_H1_NAME_MAX)
		i++;
	h->at = i;
	if (i - h->word_at > NETPOL_H1_NAME_MAX)
		return bad(h, h->response ? NETPOL_H1_RESPONSE : NETPOL_H1_FIELDS_TOO_LARGE);
	if (i == n)
		return NETPOL_H1_MORE;
	if (p[i] != ':' || i == h->word_at)
		return bad(h, field_fault(h));
	f->name = span(h->word_at, i);
	f->id = field_id(p + h->word_at, f->name.n);
	f->hop = false;
	return to(h, BEFORE, 1);
}

static enum netpol_h1_step before_value(struct netpol_h1_head *h, const char *p, size_t n)
{
	while (h->at < n && (p[h->at] == ' ' || p[h->at] == '\t'))
		h->at++;
	h->word_at = h->at;
	return h->at == n ? NETPOL_H1_MORE : to(h, VALUE, 0);
}

static enum netpol_h1_step in_value(struct netpol_h1_head *h, const char *p, size_t n)
{
	uint32_t i = h->at, end;

	while (i < n && netpol_h1_is_text((unsigned char)p[i]))
		i++;
	h->at = i;
	if (i == n)
		return NETPOL_H1_MORE;
	if (p[i] != '\r')
		return bad(h, field_fault(h));
	for (end = i; end > h->word_at && (p[end - 1] == ' ' || p[end - 1] == '\t');)
		end--;
	h->fields[h->count++].value = span(h->word_at, end);
	return to(h, VALUE_LF, 1);
}

static enum netpol_h1_step at_value_lf(struct netpol_h1_head *h, const char *p, size_t n)
{
	(void)n;
	return expect_lf(h, p, FIELD, field_fault(h));
}

static enum netpol_h1_step at_end_lf(struct netpol_h1_head *h, const char *p, size_t n)
{
	(void)n;
	return expect_lf(h, p, DONE, field_fault(h));
}

typedef enum netpol_h1_step state_fn(struct netpol_h1_head *h, const char *p, size_t n);
static state_fn *const STATES[STATE_COUNT] = {
	[START] = at_start,       [START_LF] = at_start_lf, [LINE] = at_line,
	[WORD] = in_word,         [LINE_LF] = at_line_lf,   [FIELD] = at_field,
	[NAME] = in_name,         [BEFORE] = before_value,  [VALUE] = in_value,
	[VALUE_LF] = at_value_lf, [END_LF] = at_end_lf,     [DONE] = NULL,
};

/* No state looks further than the field block may reach. */
static size_t readable(const struct netpol_h1_head *h, size_t n)
{
	size_t end =
		h->block_at > 0 ? (size_t)h->block_at + NETPOL_H1_BLOCK_MAX : NETPOL_H1_HEAD_MAX;

	return n < end ? n : end;
}

enum netpol_h1_step netpol_h1_head_scan(struct netpol_h1_head *h, const char *p, size_t n)
{
	enum netpol_h1_step step = NETPOL_H1_MORE;

	while (step == NETPOL_H1_MORE && h->state != DONE && h->at < readable(h, n))
		step = STATES[h->state](h, p, readable(h, n));
	if (step != NETPOL_H1_MORE)
		return step;
	if (h->state == DONE)
		return NETPOL_H1_DONE;
	if (h->block_at > 0 && h->at >= h->block_at + NETPOL_H1_BLOCK_MAX)
		return bad(h, h->response ? NETPOL_H1_RESPONSE : NETPOL_H1_FIELDS_TOO_LARGE);
	return NETPOL_H1_MORE;
}
