/* SPDX-License-Identifier: MIT */
#include "netpolicy/egress/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Full reads in a row after which a direction counts as bulk. */
#define BULK_AFTER 2

enum step { MOVED, BLOCKED, ENDED, BROKEN };

void netpol_relay_init(struct netpol_relay *r, const int fd[2], char *scratch)
{
	memset(r, 0, sizeof(*r));
	r->scratch = scratch;
	for (int i = 0; i < 2; i++) {
		r->flow[i].from = fd[i];
		r->flow[i].to = fd[1 - i];
		r->flow[i].pipe[0] = r->flow[i].pipe[1] = -1;
	}
}

bool netpol_relay_early(struct netpol_relay *r, int flow, const char *p, size_t n)
{
	struct netpol_flow *f = &r->flow[flow];

	if (n == 0)
		return true;
	f->late = malloc(n);
	if (!f->late)
		return false;
	memcpy(f->late, p, n);
	f->late_at = 0;
	f->late_len = n;
	return true;
}

void netpol_relay_done(struct netpol_relay *r)
{
	if (!r->scratch)
		return;
	for (int i = 0; i < 2; i++) {
		struct netpol_flow *f = &r->flow[i];

		free(f->late);
		if (f->pipe[0] >= 0) {
			(void)close(f->pipe[0]); /* a pipe: nothing can be lost by it */
			(void)close(f->pipe[1]);
		}
	}
	memset(r, 0, sizeof(*r));
}

static enum step of_errno(void)
{
	return errno == EAGAIN || errno == EINTR ? BLOCKED : BROKEN;
}

/* How much of `want` the cap leaves. */
static size_t capped(const struct netpol_flow *f, size_t want)
{
	uint64_t left;

	if (f->cap == 0)
		return want;
	left = f->cap > f->bytes ? f->cap - f->bytes : 0;
	return left < want ? (size_t)left : want;
}

static enum step send_late(struct netpol_flow *f)
{
	ssize_t n = send(f->to, f->late + f->late_at, f->late_len - f->late_at,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0)
		return of_errno();
	f->late_at += (size_t)n;
	f->bytes += (uint64_t)n;
	if (f->late_at == f->late_len) {
		free(f->late);
		f->late = NULL;
	}
	return MOVED;
}

static enum step empty_pipe(struct netpol_flow *f)
{
	ssize_t n = splice(f->pipe[0], NULL, f->to, NULL, f->in_pipe,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0)
		return of_errno();
	if (n == 0)
		return BROKEN;
	f->in_pipe -= (size_t)n;
	f->bytes += (uint64_t)n;
	return MOVED;
}

/* Bytes that were read and could not be sent at once are kept; nothing more is read until then. */
static enum step pass_on(struct netpol_relay *r, struct netpol_flow *f, size_t n)
{
	ssize_t sent = send(f->to, r->scratch, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0 && of_errno() == BROKEN)
		return BROKEN;
	if (sent < 0)
		sent = 0;
	f->bytes += (uint64_t)sent;
	if ((size_t)sent == n)
		return MOVED;
	return netpol_relay_early(r, (int)(f - r->flow), r->scratch + sent, n - (size_t)sent)
		       ? MOVED
		       : BROKEN;
}

static enum step copy(struct netpol_relay *r, struct netpol_flow *f)
{
	ssize_t n = recv(f->from, r->scratch, capped(f, NETPOL_RELAY_SCRATCH), MSG_DONTWAIT);

	if (n < 0)
		return of_errno();
	if (n == 0)
		return ENDED;
	f->full = (size_t)n == NETPOL_RELAY_SCRATCH ? f->full + 1 : 0;
	return pass_on(r, f, (size_t)n);
}

static enum step fill_pipe(struct netpol_flow *f)
{
	ssize_t n = splice(f->from, NULL, f->pipe[1], NULL, capped(f, NETPOL_RELAY_PIPE),
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);

	if (n < 0)
		return of_errno();
	if (n == 0)
		return ENDED;
	f->in_pipe = (size_t)n;
	return MOVED;
}

/* True when the direction has a pipe. Without descriptors it just stays without. */
static bool has_pipe(struct netpol_flow *f)
{
	if (f->pipe[0] >= 0)
		return true;
	if (f->full < BULK_AFTER || pipe2(f->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	(void)fcntl(f->pipe[1], F_SETPIPE_SZ, NETPOL_RELAY_PIPE); /* a smaller one does too */
	return true;
}

static enum step move(struct netpol_relay *r, struct netpol_flow *f)
{
	if (f->late)
		return send_late(f);
	if (f->in_pipe > 0)
		return empty_pipe(f);
	if (f->ended)
		return ENDED;
	return has_pipe(f) ? fill_pipe(f) : copy(r, f);
}

static enum netpol_relay_state run_flow(struct netpol_relay *r, struct netpol_flow *f)
{
	uint64_t start = f->bytes;
	enum step step;

	while (!f->shut) {
		if (f->cap > 0 && f->bytes >= f->cap)
			return NETPOL_RELAY_CAP;
		if (f->bytes - start >= NETPOL_RELAY_TURN)
			return NETPOL_RELAY_AGAIN;
		step = move(r, f);
		if (step == BLOCKED)
			return NETPOL_RELAY_OPEN;
		if (step == BROKEN)
			return NETPOL_RELAY_RESET;
		if (step == ENDED) {
			f->ended = f->shut = true;
			/* The second end is told by closing, which is next. A broken one shows on
			 * the next read. */
			if (!r->flow[f == r->flow].shut)
				(void)shutdown(f->to, SHUT_WR);
		}
	}
	return NETPOL_RELAY_OPEN;
}

static enum netpol_relay_state both(const struct netpol_relay *r, enum netpol_relay_state a,
				    enum netpol_relay_state b)
{
	if (a == NETPOL_RELAY_RESET || b == NETPOL_RELAY_RESET)
		return NETPOL_RELAY_RESET;
	if (a == NETPOL_RELAY_CAP || b == NETPOL_RELAY_CAP)
		return NETPOL_RELAY_CAP;
	if (r->flow[0].shut && r->flow[1].shut)
		return NETPOL_RELAY_ENDED;
	return a == NETPOL_RELAY_AGAIN ? a : b;
}

enum netpol_relay_state netpol_relay_run(struct netpol_relay *r)
{
	enum netpol_relay_state up = run_flow(r, &r->flow[0]);

	return both(r, up, run_flow(r, &r->flow[1]));
}

enum netpol_relay_state netpol_relay_event(struct netpol_relay *r, int side, uint32_t events)
{
	struct netpol_flow *out = &r->flow[side], *in = &r->flow[1 - side];
	enum netpol_relay_state a = NETPOL_RELAY_OPEN, b = NETPOL_RELAY_OPEN;

	if (events & EPOLLERR)
		return NETPOL_RELAY_RESET;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
		a = run_flow(r, out);
	/* Room on this side matters only to what waits for it. */
	if ((events & EPOLLOUT) && (in->late || in->in_pipe > 0))
		b = run_flow(r, in);
	return both(r, a, b);
}
