/* SPDX-License-Identifier: MIT */
/* Bytes between two sockets, both ways: small amounts through a shared buffer, bulk through a pipe
 * and splice(2). Each direction ends on its own (half-close). Never blocks. */
#ifndef AQE_EGRESS_RELAY_H
#define AQE_EGRESS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETPOL_RELAY_SCRATCH 65536     /* bytes of the shared buffer */
#define NETPOL_RELAY_PIPE    (1 << 18) /* bytes asked for a pipe; the kernel may give fewer */
#define NETPOL_RELAY_TURN    (1 << 20) /* bytes one direction moves before others have a turn */

enum netpol_relay_state {
	NETPOL_RELAY_OPEN,  /* waiting for events */
	NETPOL_RELAY_AGAIN, /* used up its turn: call netpol_relay_run() soon */
	NETPOL_RELAY_ENDED, /* both directions saw their end */
	NETPOL_RELAY_RESET, /* a side broke */
	NETPOL_RELAY_CAP,   /* a byte cap was reached */
};

/* One direction. */
struct netpol_flow {
	int from, to;
	int pipe[2];    /* -1 until there is bulk */
	size_t in_pipe; /* bytes in it */
	char *late;     /* bytes that could not be sent yet, or NULL */
	size_t late_at, late_len;
	bool ended;     /* `from` sent its end */
	bool shut;      /* and `to` was told */
	unsigned full;  /* full reads in a row */
	uint64_t bytes; /* sent to `to` */
	uint64_t cap;   /* most of these; 0: none */
};

struct netpol_relay {
	struct netpol_flow flow[2]; /* 0: client to upstream, 1: upstream to client */
	char *scratch;              /* NETPOL_RELAY_SCRATCH bytes, shared by all relays of a loop */
};

/* `fd` 0 is the client, 1 the upstream; both stay the caller's. Non-blocking sockets. */
void netpol_relay_init(struct netpol_relay *r, const int fd[2], char *scratch);
/* Bytes that came before: they are sent first. False without memory. */
bool netpol_relay_early(struct netpol_relay *r, int flow, const char *p, size_t n);
/* Frees and closes what is the relay's; zeroed or done before is accepted. */
void netpol_relay_done(struct netpol_relay *r);
/* Moves what can be moved in both directions. */
enum netpol_relay_state netpol_relay_run(struct netpol_relay *r);
/* The same after an event (EPOLL* bits) on one of the two sockets. */
enum netpol_relay_state netpol_relay_event(struct netpol_relay *r, int side, uint32_t events);

#endif
