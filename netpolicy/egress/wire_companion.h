/* SPDX-License-Identifier: MIT */
/* Messages to and from companions; part of wire.h. */
#ifndef AQE_EGRESS_WIRE_COMPANION_H
#define AQE_EGRESS_WIRE_COMPANION_H

#include <stdint.h>

#include "netpolicy/policy_gateway.h"

/* Which companion. */
enum netpol_companion_role {
	NETPOL_COMPANION_GATEWAY,
	NETPOL_COMPANION_CACHE,
	NETPOL_COMPANION_COUNT
};
struct netpol_msg_link {
	uint32_t type;
	uint32_t role; /* enum netpol_companion_role */
};
struct netpol_msg_secrets {
	uint32_t type;
	uint32_t size; /* bytes of the memfd */
};
struct netpol_msg_wrap {
	uint32_t type;
	uint64_t id;
	char gateway[NETPOL_GATEWAY_NAME_MAX + 1];
};
enum netpol_wrap_result {
	NETPOL_WRAP_OK,
	NETPOL_WRAP_UNKNOWN,    /* no such gateway */
	NETPOL_WRAP_CREDENTIAL, /* it has none now */
	NETPOL_WRAP_TLS,        /* no handshake, or a certificate that is not trusted */
	NETPOL_WRAP_BUSY,       /* too many at once, no memory */
	NETPOL_WRAP_RESULT_COUNT
};
struct netpol_msg_wrapped {
	uint32_t type;
	uint8_t result; /* enum netpol_wrap_result */
	uint64_t id;
};

#endif
