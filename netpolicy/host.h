/* SPDX-License-Identifier: MIT */
/* The canonical host: what a client named, as one spelling, or nothing. Bytes in, no decoding, no
 * trimming, no Unicode; two readers of an accepted host cannot disagree about it. */
#ifndef AQE_NETPOLICY_HOST_H
#define AQE_NETPOLICY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "netpolicy/address.h"

#define NETPOL_HOST_MAX  253 /* RFC 1035: 255 octets on the wire */
#define NETPOL_LABEL_MAX 63

enum netpol_host_kind {
	NETPOL_HOST_NAME,
	NETPOL_HOST_LITERAL, /* an address: dotted quad, or IPv6 in brackets */
};

struct netpol_host {
	enum netpol_host_kind kind;
	struct netpol_addr addr; /* of a LITERAL */
	size_t len;
	/* lower case, no trailing dot; IPv6 as RFC 5952 writes it, in brackets */
	char text[NETPOL_HOST_MAX + 1];
};

/* Reads exactly `n` bytes as a host (no port). False: *ret_why (may be NULL) says in a few words
 * what is wrong, and *ret is undefined. Answer 400 `host_invalid` then. */
bool netpol_host_parse(const char *p, size_t n, struct netpol_host *ret, const char **ret_why);
/* The host of an address that came as raw octets (SOCKS5 ATYP 1 and 4). */
void netpol_host_from_addr(const struct netpol_addr *a, struct netpol_host *ret);
/* Means "this container": localhost, *.localhost, and loopback addresses in any form. Such a host
 * is never proxied, because here it would be the host's own loopback. */
bool netpol_host_is_local(const struct netpol_host *h);
bool netpol_host_eq(const struct netpol_host *a, const struct netpol_host *b);

/* 1*5DIGIT, 1 to 65535, no sign, no leading zero. */
bool netpol_port_parse(const char *p, size_t n, uint16_t *ret);
/* Splits "host:port" or "host" at the colon that is not inside brackets; *ret_port is NULL without
 * a colon. Nothing is judged: both parts go to the parsers above. */
void netpol_authority_split(const char *p, size_t n, size_t *ret_host_n, const char **ret_port,
			    size_t *ret_port_n);

#endif
