/* SPDX-License-Identifier: MIT */
/* Request and response on their way: bodies are re-framed, heads written anew. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "netpolicy/egress/gate.h"
#include "netpolicy/egress/http.h"
#include "netpolicy/http1_emit.h"

static const struct netpol_refusal MALFORMED = { 502, "upstream_malformed", 0 };
static const struct netpol_refusal CLOSED = { 502, "upstream_closed", 0 };
static const struct netpol_refusal BAD_CHUNK = { 400, "chunk", 0 };
static const struct netpol_refusal TOO_LARGE = { 413, "body_too_large", 0 };
/* Heads are counted with the bodies; the largest one is let pass beyond a body's limit. */
#define HEAD_BYTES NETPOL_H1_HEAD_MAX

/* True while `c` is still in this exchange: every step may end it. */
static bool running(const struct netpol_conn *c)
{
	return c->state == NETPOL_CONN_EXCHANGE;
}

/* Not possible to answer any more once the response has begun. */
static void fail(struct netpol_conn *c, const struct netpol_refusal *r)
{
	if (c->http->responded)
		netpol_conn_end(c, r->reason);
	else
		netpol_conn_failed(c, r);
}

/* ---- towards the upstream ---- */

/* A kept connection that ends before it said anything was closed in between: once more on a new
 * one. */
static bool try_again(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;

	if (!h->reused || h->again.len == 0 || h->responded || h->interims > 0 || h->up_in.len > 0)
		return false;
	h->reused = false;
	aqe_buf_clear(&h->up_out.b);
	h->up_out.at = 0;
	(void)aqe_buf_add(&h->up_out.b, h->again.p, h->again.len);
	aqe_buf_done(&h->again);
	netpol_conn_dial(c);
	return true;
}

static void lost_upstream(struct netpol_conn *c)
{
	if (!try_again(c))
		fail(c, &CLOSED);
}

static bool flush_up(struct netpol_conn *c)
{
	int sent = netpol_out_flush(&c->http->up_out, c->upstream.fd);

	/* An upstream that stopped reading may have answered already: its response is read first.
	 */
	if (sent < 0)
		c->http->up_ready = true;
	return sent > 0;
}

/* Bytes of the request's body from the socket; what is behind it waits in c->in. */
static bool take_body(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	ssize_t n = netpol_conn_recv(c, NETPOL_RELAY_SCRATCH);
	size_t used = 0, before = h->up_out.b.len;
	enum netpol_h1_step step;

	if (n < 0)
		return false;
	if (n == 0) {
		if (c->client_ended)
			netpol_conn_end(c, "client_closed");
		return false;
	}
	step = netpol_body_feed(&h->up, c->w->scratch, (size_t)n, &h->up_out.b, &used);
	c->rec.up += h->up_out.b.len - before;
	if (step == NETPOL_H1_BAD) {
		fail(c, &BAD_CHUNK);
		return false;
	}
	if (c->gate && c->gate->max_request && c->rec.up > c->gate->max_request + HEAD_BYTES) {
		fail(c, &TOO_LARGE);
		return false;
	}
	if (used < (size_t)n && aqe_buf_add(&c->in, c->w->scratch + used, (size_t)n - used) < 0) {
		netpol_conn_end(c, "no_memory");
		return false;
	}
	netpol_conn_deadline(c, netpol_conn_silence_ms(c, false));
	return true;
}

static void pump_up(struct netpol_conn *c)
{
	while (running(c) && flush_up(c) && !c->http->up.done) {
		if (!take_body(c))
			return;
	}
}

/* ---- towards the client ---- */

/* The exchange is over: one more close record, and what comes next. */
static void finish(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;

	c->rec.status = (uint16_t)h->resp.status;
	netpol_conn_close_record(c, NETPOL_ALLOWED, "ended");
	aqe_buf_done(&h->again);
	if (h->resp.close || !h->up.done || h->up_ended || h->up_in.len > 0)
		netpol_conn_drop_upstream(c);
	if (h->close || !h->up.done)
		netpol_conn_linger(c);
	else
		netpol_http_next(c);
}

static bool flush_down(struct netpol_conn *c)
{
	int sent = netpol_out_flush(&c->out, c->client.fd);

	if (sent < 0)
		netpol_conn_end(c, "client_reset");
	return sent > 0;
}

/* Response body bytes at `p`. False: the exchange goes no further for now. */
static bool pass_body(struct netpol_conn *c, const char *p, size_t n, size_t *ret_used)
{
	struct netpol_http *h = c->http;
	size_t before = c->out.b.len;
	enum netpol_h1_step step = netpol_body_feed(&h->down, p, n, &c->out.b, ret_used);

	c->rec.down += c->out.b.len - before;
	if (step != NETPOL_H1_BAD && c->gate && c->gate->max_response &&
	    c->rec.down > c->gate->max_response + HEAD_BYTES) {
		netpol_conn_end(c, "response_too_large");
		return false;
	}
	if (step != NETPOL_H1_BAD)
		return true;
	netpol_conn_end(c, "upstream_malformed");
	return false;
}

/* Bytes from the upstream into the scratch buffer: 1, 0 for none now (or the end), -1 gone. */
static int recv_up(struct netpol_conn *c, size_t *ret_n)
{
	struct netpol_http *h = c->http;
	ssize_t n;

	if (!h->up_ready || h->up_ended)
		return 0;
	do
		n = recv(c->upstream.fd, c->w->scratch, NETPOL_RELAY_SCRATCH, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		h->up_ready = (size_t)n == NETPOL_RELAY_SCRATCH || h->up_ending;
		*ret_n = (size_t)n;
		return 1;
	}
	h->up_ready = false;
	if (n < 0 && errno == EAGAIN)
		return 0;
	h->up_ended = true;
	if (n == 0)
		return 0;
	lost_upstream(c); /* a reset is never a complete body */
	return -1;
}

static bool is_unwanted(const struct netpol_conn *c)
{
	const struct netpol_http *h = c->http;

	if (h->resp.status == 101)
		return !(h->req.websocket && h->resp.websocket && h->up.done);
	/* The client would send proxy credentials to whoever asks. */
	return h->resp.status == 407 ||
	       (h->resp.status / 100 == 1 && ++c->http->interims > NETPOL_HTTP_INTERIM_MAX);
}

static enum netpol_h1_framing framing_of(struct netpol_http *h)
{
	bool to_close = h->resp.body == NETPOL_H1_TO_CLOSE ||
			(h->resp.body == NETPOL_H1_CHUNKED && h->req.http10);

	h->close = h->close || h->req.close || to_close;
	return to_close ? NETPOL_H1_SEND_CLOSE : NETPOL_H1_SEND_SAME;
}

static void switch_protocols(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;

	c->rec.status = 101;
	c->rec.flags |= NETPOL_FLAG_WEBSOCKET;
	if (aqe_buf_add(&c->out.b, aqe_buf_str(&h->up_in), h->up_in.len) < 0) {
		netpol_conn_end(c, "no_memory");
		return;
	}
	h->up_in.len = 0;
	netpol_conn_relay_start(c);
}

/* A whole response head is in h->up_in. */
static void got_response(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	size_t before = c->out.b.len, used = 0;
	bool interim;

	if (netpol_h1_response_read(&h->head, h->up_in.p, h->req.head, &h->resp) != NETPOL_H1_OK ||
	    is_unwanted(c)) {
		fail(c, &MALFORMED);
		return;
	}
	interim = h->resp.status / 100 == 1 && h->resp.status != 101;
	if (!interim)
		h->responded = true;
	if (!interim || !h->req.http10) {
		enum netpol_h1_framing f = interim ? NETPOL_H1_SEND_SAME : framing_of(h);

		if (netpol_h1_emit_response(&c->out.b, &h->head, h->up_in.p, &h->resp, f,
					    h->close || !h->up.done) < 0) {
			netpol_conn_end(c, "no_memory");
			return;
		}
	}
	c->rec.down += c->out.b.len - before;
	used = h->head.at;
	h->up_in.len -= used;
	memmove(h->up_in.p, h->up_in.p + used, h->up_in.len);
	netpol_h1_head_init(&h->head, true);
	if (interim)
		return;
	if (h->resp.status == 101) {
		switch_protocols(c);
		return;
	}
	netpol_body_init(&h->down, h->resp.body, h->resp.length,
			 h->resp.body == NETPOL_H1_CHUNKED && h->req.http10);
	if (!pass_body(c, aqe_buf_str(&h->up_in), h->up_in.len, &used))
		return;
	h->up_in.len -=
		used; /* more than the body: the connection is not kept, nothing is read of it */
	netpol_conn_deadline(c, netpol_conn_silence_ms(c, true));
}

/* True when something was done. */
static bool read_response(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	size_t n = 0;
	int got;

	switch (netpol_h1_head_scan(&h->head, aqe_buf_str(&h->up_in), h->up_in.len)) {
	case NETPOL_H1_DONE:
		got_response(c);
		return true;
	case NETPOL_H1_BAD:
		fail(c, &MALFORMED);
		return false;
	case NETPOL_H1_MORE:
		break;
	}
	got = recv_up(c, &n);
	if (got > 0 && aqe_buf_add(&h->up_in, c->w->scratch, n) == 0)
		return true;
	if (got > 0)
		fail(c, &MALFORMED);
	else if (got == 0 && h->up_ended)
		lost_upstream(c);
	return false;
}

static bool read_body(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	size_t n = 0, used = 0;
	int got = recv_up(c, &n);

	if (got < 0)
		return false;
	if (got == 0) {
		if (h->up_ended && h->down.kind == NETPOL_H1_TO_CLOSE)
			h->down.done = true;
		else if (h->up_ended)
			netpol_conn_end(c, "upstream_closed");
		return h->down.done;
	}
	netpol_conn_deadline(c, netpol_conn_silence_ms(c, true));
	if (!pass_body(c, c->w->scratch, n, &used))
		return false;
	if (used < n)
		h->resp.close = true; /* it said more than it should: not kept */
	return true;
}

static void pump_down(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;
	size_t moved = 0;

	while (running(c) && flush_down(c)) {
		if (h->responded && h->down.done) {
			finish(c);
			return;
		}
		if (moved++ == NETPOL_RELAY_TURN / NETPOL_RELAY_SCRATCH) {
			netpol_loop_defer(c->w->loop, &c->more);
			return;
		}
		if (!(h->responded ? read_body(c) : read_response(c)))
			return;
	}
}

void netpol_http_exchange(struct netpol_conn *c, uint32_t client, uint32_t upstream)
{
	struct netpol_http *h = c->http;

	if (upstream & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		h->up_ready = true;
	if (upstream & (EPOLLRDHUP | EPOLLHUP))
		h->up_ending = true;
	/* The client went away altogether: nobody waits for the response. */
	if ((client & EPOLLHUP) && netpol_out_empty(&c->out)) {
		netpol_conn_end(c, "client_closed");
		return;
	}
	if (!h->up.done || !netpol_out_empty(&h->up_out))
		pump_up(c);
	if (running(c))
		pump_down(c);
}

void netpol_http_begin(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;

	c->state = NETPOL_CONN_EXCHANGE;
	netpol_h1_head_init(&h->head, true);
	h->up_ready = h->up_ending = h->up_ended = h->responded = false;
	h->interims = 0;
	h->close = false;
	netpol_conn_deadline(c, netpol_conn_silence_ms(c, false));
	netpol_http_exchange(c, 0, 0);
}

void netpol_http_next(struct netpol_conn *c)
{
	struct netpol_http *h = c->http;

	h->served = true;
	h->known = h->timing = false;
	aqe_buf_done(&h->up_in);
	aqe_buf_done(&h->up_out.b);
	aqe_buf_done(&c->out.b);
	netpol_h1_head_init(&h->head, false);
	c->state = NETPOL_CONN_READING;
	netpol_conn_deadline(c, NETPOL_CONN_KEEP_ALIVE_MS);
	if (c->in.len > 0 || c->readable || c->client_ended)
		netpol_loop_defer(c->w->loop, &c->more); /* its turn comes after the others' */
}

void netpol_http_late(struct netpol_conn *c)
{
	static const struct netpol_refusal body = { 408, "body_timeout", 0 };
	static const struct netpol_refusal upstream = { 504, "upstream_timeout", 0 };

	if (c->http->responded)
		netpol_conn_end(c, "idle_timeout");
	else
		netpol_conn_failed(c, c->http->up.done ? &upstream : &body);
}
