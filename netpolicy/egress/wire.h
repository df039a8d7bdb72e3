/* SPDX-License-Identifier: MIT */
/* The messages between keeper, worker, dialer and companion: structs of a fixed size (records: as
 * used) over SOCK_SEQPACKET pairs, a descriptor may ride along. The keeper trusts none of the
 * others, the dialer not the worker, the companion not the worker: each reader checks what it gets.
 */
#ifndef AQE_EGRESS_WIRE_H
#define AQE_EGRESS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/address.h"
#include "netpolicy/egress/record.h"
#include "netpolicy/egress/wire_companion.h"
#include "netpolicy/host.h"

enum netpol_msg_type {
	NETPOL_MSG_READY = 1, /* worker: it listens */
	NETPOL_MSG_RECORDS,   /* worker: store these */
	NETPOL_MSG_STORED,    /* keeper: all records up to `id` are stored, or not */
	NETPOL_MSG_POLICY,    /* keeper: a new policy, in the descriptor (a sealed memfd) */
	NETPOL_MSG_STOP,      /* keeper: end cleanly */
	NETPOL_MSG_DIAL,      /* worker to dialer */
	NETPOL_MSG_CANCEL,
	NETPOL_MSG_DIALED,  /* dialer to worker, with the socket when it worked */
	NETPOL_MSG_PING,    /* keeper to both: are you there */
	NETPOL_MSG_PONG,    /* the same number back */
	NETPOL_MSG_LINK,    /* keeper to worker and companion: the channel between them */
	NETPOL_MSG_SECRETS, /* keeper to companion: what it adds, in a sealed memfd */
	NETPOL_MSG_WRAP,    /* worker to companion: speak TLS over this connection */
	NETPOL_MSG_WRAPPED, /* companion to worker, with the socket in clear when it worked */
	NETPOL_MSG_CLIENT,  /* companion to worker: an HTTP proxy client's connection */
	NETPOL_MSG_STORE,   /* keeper to worker: the channel to the shared limiter */
	NETPOL_MSG_SPEND,   /* worker to store: may one more pass? */
	NETPOL_MSG_SPENT,   /* store to worker */
	NETPOL_MSG_TYPES
};

struct netpol_msg_head {
	uint32_t type;
};
/* The records of a round of the worker's loop; as long a message as what is used of it. */
#define NETPOL_RECORDS_BYTES 8192
struct netpol_msg_records {
	uint32_t type;
	uint16_t n, len; /* records, their bytes */
	uint64_t serial; /* of the last one: 1, 2, 3, ... on this channel */
	char packed[NETPOL_RECORDS_BYTES];
};
struct netpol_msg_stored {
	uint32_t type;
	bool ok;
	uint64_t serial; /* every record up to this one */
};
struct netpol_msg_policy {
	uint32_t type;
	uint32_t size; /* bytes of the memfd */
	char digest[AQE_DIGEST_TEXT];
};
struct netpol_msg_ping {
	uint32_t type;
	uint64_t serial;
};

enum netpol_spent {
	NETPOL_SPENT_OK,
	NETPOL_SPENT_LIMITED, /* see retry_ms */
	NETPOL_SPENT_AWAY,    /* nobody could be asked */
	NETPOL_SPENT_COUNT
};
struct netpol_msg_spend {
	uint32_t type;
	uint64_t id; /* not 0; one at a time */
};
struct netpol_msg_spent {
	uint32_t type;
	uint8_t result; /* enum netpol_spent */
	uint64_t id;
	uint64_t retry_ms;
};

enum netpol_dial_result {
	NETPOL_DIAL_OK,
	NETPOL_DIAL_DENIED,      /* the policy says no: the worker should not have asked */
	NETPOL_DIAL_ADDRESS,     /* every address is denied */
	NETPOL_DIAL_DNS,         /* the name has no address, or no answer came */
	NETPOL_DIAL_REFUSED,     /* connection refused */
	NETPOL_DIAL_UNREACHABLE, /* and other errors of connect(2) */
	NETPOL_DIAL_TIMEOUT,
	NETPOL_DIAL_BUSY,  /* too many at once */
	NETPOL_DIAL_PROXY, /* the upstream proxy failed */
	NETPOL_DIAL_RESULT_COUNT
};
struct netpol_msg_dial {
	uint32_t type;
	uint64_t id;
	uint32_t timeout_ms;
	uint16_t port;
	uint8_t proto;    /* enum netpol_proto */
	uint8_t host_len; /* canonical */
	char host[NETPOL_HOST_MAX + 1];
	char gateway[NETPOL_GATEWAY_NAME_MAX + 1]; /* its upstream, not a listed host; or "" */
};
struct netpol_msg_cancel {
	uint32_t type;
	uint64_t id;
};
struct netpol_msg_dialed {
	uint32_t type;
	uint8_t result; /* enum netpol_dial_result */
	uint64_t id;
	int64_t dns_us, connect_us; /* -1: not there */
	char address[NETPOL_RECORD_WORD + 1];
	char dropped[NETPOL_RECORD_TEXT + 1];
};

/* Any message. */
union netpol_msg {
	struct netpol_msg_head head;
	struct netpol_msg_records records;
	struct netpol_msg_stored stored;
	struct netpol_msg_policy policy;
	struct netpol_msg_dial dial;
	struct netpol_msg_cancel cancel;
	struct netpol_msg_dialed dialed;
	struct netpol_msg_ping ping;
	struct netpol_msg_link link;
	struct netpol_msg_secrets secrets;
	struct netpol_msg_wrap wrap;
	struct netpol_msg_wrapped wrapped;
	struct netpol_msg_spend spend;
	struct netpol_msg_spent spent;
};

/* A pair of connected, non-blocking channel ends. */
AQE_MUST_CHECK int netpol_wire_pair(int ret[2], struct aqe_err *e);
enum netpol_wire_sent { NETPOL_WIRE_SENT, NETPOL_WIRE_FULL, NETPOL_WIRE_GONE };
/* Sends one message of `n` bytes, with `fd` when it is not -1 (it stays ours). */
enum netpol_wire_sent netpol_wire_send(int chan, const void *msg, size_t n, int fd);
/* Answers a ping. A channel that is full or gone is the keeper's to notice. */
void netpol_wire_pong(int chan, const struct netpol_msg_ping *ping);
size_t netpol_wire_records_size(const struct netpol_msg_records *m); /* as it is sent */
/* Receives one: 1 and *ret; 0 when there is none now; -1 at the end or for anything that is no
 * message of exactly its size. *ret_fd: what came along (close-on-exec), or -1. */
int netpol_wire_recv(int chan, union netpol_msg *ret, int *ret_fd);
/* The same where no message brings a descriptor: one that does is closed with it, and -1. */
int netpol_wire_recv_bare(int chan, union netpol_msg *ret);

#endif
