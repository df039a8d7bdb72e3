/* SPDX-License-Identifier: MIT */
/* Addresses: strict text form, what kind of address it is, and whether it may be dialled. Judge the
 * very address that is given to connect(2). */
#ifndef AQE_NETPOLICY_ADDRESS_H
#define AQE_NETPOLICY_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/err.h"

struct sockaddr;

enum netpol_class {
	NETPOL_CLASS_PUBLIC,
	NETPOL_CLASS_PRIVATE, /* RFC 1918, ULA */
	NETPOL_CLASS_LOOPBACK,
	NETPOL_CLASS_LINKLOCAL,
	NETPOL_CLASS_MULTICAST,
	NETPOL_CLASS_UNSPECIFIED, /* 0/8 and :: */
	NETPOL_CLASS_BROADCAST,
	NETPOL_CLASS_CGNAT,
	NETPOL_CLASS_DOCUMENTATION,
	NETPOL_CLASS_BENCHMARK,
	NETPOL_CLASS_RESERVED,
	NETPOL_CLASS_METADATA,    /* cloud metadata services, wherever they are */
	NETPOL_CLASS_TRANSLATION, /* IPv4 embedded in a way that is not judged: denied */
	NETPOL_CLASS_INVALID,     /* no address at all */
	NETPOL_CLASS_COUNT,
};
/* "public", ...; never NULL. */
const char *netpol_class_name(enum netpol_class c);

struct netpol_addr {
	bool v6;
	uint8_t b[16]; /* network order; IPv4 in b[0..3], the rest 0 */
};
#define NETPOL_ADDR_TEXT 46

/* Dotted quad (four decimals, no leading zero) or IPv6 (RFC 4291, no zone, no brackets), nothing
 * before or after it. */
bool netpol_addr_parse(const char *p, size_t n, struct netpol_addr *ret);
/* False for another family. An IPv4-mapped address stays one. */
bool netpol_addr_from_sockaddr(const struct sockaddr *sa, struct netpol_addr *ret);
/* RFC 5952, without brackets. */
void netpol_addr_format(const struct netpol_addr *a, char ret[NETPOL_ADDR_TEXT]);
bool netpol_addr_eq(const struct netpol_addr *a, const struct netpol_addr *b);
enum netpol_class netpol_addr_class(const struct netpol_addr *a);

struct netpol_cidr {
	struct netpol_addr base;
	uint8_t bits;
};
/* "10.1.0.0/16", "fd00::/8": bits below the prefix must be 0, and every address in it must be of a
 * class that a policy may open (private, cgnat, benchmark), or metadata inside it, which stays
 * denied. AQE_E_MALFORMED says why not. */
AQE_MUST_CHECK int netpol_cidr_parse(const char *text, struct netpol_cidr *ret, struct aqe_err *e);
bool netpol_cidr_has(const struct netpol_cidr *c, const struct netpol_addr *a);

/* What an address is judged by. */
struct netpol_vet {
	const struct netpol_cidr *allow; /* the policy's allowCidr */
	size_t n_allow;
	const struct netpol_addr *own; /* addresses of this host's interfaces: never dialled */
	size_t n_own;
};
/* True when the address may be dialled. Public yes; private, cgnat and benchmark only by an allow
 * prefix; everything else never. *ret_class (may be NULL) is set either way. */
bool netpol_addr_allowed(const struct netpol_vet *v, const struct netpol_addr *a,
			 enum netpol_class *ret_class);

#endif
