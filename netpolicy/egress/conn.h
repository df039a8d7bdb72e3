/* SPDX-License-Identifier: MIT */
/* One client connection of the worker, whatever is spoken on it. The front end reads and answers;
 * what they share is here: decide, record, dial, tunnel, refuse, end. */
#ifndef AQE_EGRESS_CONN_H
#define AQE_EGRESS_CONN_H

#include <sys/types.h>

#include "netpolicy/egress/front.h"
#include "netpolicy/egress/worker.h"

enum netpol_conn_state {
	NETPOL_CONN_READING,  /* the front end reads a request */
	NETPOL_CONN_SHARED,   /* waits for the shared limiter */
	NETPOL_CONN_RECORD,   /* decided; waits until the record is stored */
	NETPOL_CONN_DIALING,  /* waits for the dialer */
	NETPOL_CONN_EXCHANGE, /* HTTP: request and response pass */
	NETPOL_CONN_HELLO,    /* tunnel: waits for the ClientHello */
	NETPOL_CONN_TUNNEL,
	NETPOL_CONN_REFUSING, /* waits until the refusal's record is stored */
	NETPOL_CONN_LINGER,   /* answered; sends the rest, then waits for the client's end */
	NETPOL_CONN_GONE,
};

enum {
	NETPOL_CONN_LINGER_MS = 2000,
	NETPOL_CONN_LINGER_BYTES = 1 << 20, /* read and dropped meanwhile */
	NETPOL_CONN_KEEP_ALIVE_MS = 60000,  /* between two requests */
	NETPOL_CONN_RECORD_MS = 10000,      /* for the record to be stored */
	NETPOL_CONN_DIAL_SLACK_MS = 2000,   /* beyond the dialer's own deadline */
};

/* Bytes to be sent. */
struct netpol_out {
	struct aqe_buf b;
	size_t at;
};

struct netpol_http; /* http.h */

struct netpol_conn {
	struct netpol_worker *w;
	struct netpol_conn *prev, *next;
	const struct netpol_front_ops *ops;
	enum netpol_conn_state state;
	struct netpol_watch client, upstream;
	struct netpol_timer deadline, lifetime;
	struct netpol_task more;
	struct netpol_wait wait;
	struct netpol_asking asking;
	struct netpol_spending spend;
	struct netpol_grave grave;
	struct aqe_buf in;     /* client bytes that are not used yet */
	struct netpol_out out; /* for the client */
	bool client_ended;     /* the client sent its FIN */
	bool readable;         /* its socket may have bytes */
	bool ending;           /* and its end */
	bool socks_greeted;
	bool open;               /* an allowed decision waits for its close record */
	bool is_tunnel;          /* counts as one */
	size_t drained;          /* bytes dropped while lingering */
	int64_t begun_us;        /* of the present request */
	struct netpol_host host; /* canonical, of the present decision */
	uint16_t port;
	struct netpol_refusal refusal;
	struct netpol_record rec; /* of the present decision */
	struct netpol_relay relay;
	struct netpol_http *http;          /* front ends that speak HTTP */
	const struct netpol_gateway *gate; /* of the present request, or NULL */
	char gate_name[NETPOL_GATEWAY_NAME_MAX + 1];
};

/* A new connection from listening socket `l`; owns `fd`. */
void netpol_conn_accept(struct netpol_listening *l, int fd);
/* Ends it now. `cause` goes into the close record. Safe from anywhere in the loop. */
void netpol_conn_end(struct netpol_conn *c, const char *cause);
/* Reads what the client sent into c->in, up to `max` bytes there. 1: something came; 0: nothing
 * now, or no room; -1: the connection broke and is gone. */
int netpol_conn_read(struct netpol_conn *c, size_t max);
/* The same into the worker's scratch buffer: bytes, 0 or -1. */
ssize_t netpol_conn_recv(struct netpol_conn *c, size_t max);
/* Drops the first `n` bytes of c->in. */
void netpol_conn_used(struct netpol_conn *c, size_t n);
void netpol_conn_deadline(struct netpol_conn *c, int64_t ms);

/* What is asked for, for the record. */
struct netpol_asked {
	const char *method;
	const char *path; /* with a query, which is left out; NULL: there is none to see */
	size_t path_len;
};
/* Decides about `host`:`port`, records it, and dials; then ops->opened or ops->refused. */
void netpol_conn_request(struct netpol_conn *c, const char *host, size_t host_len, uint16_t port,
			 const struct netpol_asked *asked);
/* Refuses: records it (kind and count permitting), answers, ends. The request's place is taken from
 * c->rec. */
void netpol_conn_refuse(struct netpol_conn *c, const struct netpol_refusal *r);
/* Refuses a request that could not even be read. */
void netpol_conn_fault(struct netpol_conn *c, unsigned status, const char *reason);
/* The allowed request failed: answers without a new decision. */
void netpol_conn_failed(struct netpol_conn *c, const struct netpol_refusal *r);
/* Answered, nothing more is served: sends the rest and lingers. */
void netpol_conn_linger(struct netpol_conn *c);
/* Writes the close record of the present decision, once. */
void netpol_conn_close_record(struct netpol_conn *c, enum netpol_action action, const char *cause);
/* A request begins: c->rec is new. */
void netpol_conn_begin(struct netpol_conn *c, const struct netpol_asked *asked, uint16_t port);
/* It is allowed: records that, then goes on. */
void netpol_conn_admit(struct netpol_conn *c);
/* The connection to serve it with. Owned from here on. */
void netpol_conn_take_upstream(struct netpol_conn *c, int fd);
/* Drops the upstream connection. */
void netpol_conn_drop_upstream(struct netpol_conn *c);

/* Dials c->host for the present decision. */
void netpol_conn_dial(struct netpol_conn *c);
/* The tunnel stands: waits for the ClientHello where the policy wants one, then relays. What is in
 * c->in is the client's first bytes. */
void netpol_conn_tunnel(struct netpol_conn *c);
/* In NETPOL_CONN_HELLO, after client bytes. */
void netpol_conn_hello(struct netpol_conn *c);
void netpol_conn_relay(struct netpol_conn *c, enum netpol_relay_state state);
/* Starts relaying. */
void netpol_conn_relay_start(struct netpol_conn *c);
/* The policy changed: ends it when the new one would not have allowed it. */
void netpol_conn_recheck(struct netpol_conn *c);

/* c->out: sends what it can. 1: empty now; 0: not yet; -1: broke. */
int netpol_out_flush(struct netpol_out *o, int fd);
static inline bool netpol_out_empty(const struct netpol_out *o)
{
	return o->at == o->b.len;
}

#endif
