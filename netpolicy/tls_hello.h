/* SPDX-License-Identifier: MIT */
/* The first message of a TLS client, without any cryptography: is it a ClientHello, and which
 * server does it name. Stateless: the caller keeps the bytes and asks again when it has more. */
#ifndef AQE_NETPOLICY_TLS_HELLO_H
#define AQE_NETPOLICY_TLS_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	NETPOL_TLS_RECORD_MAX = 16384, /* payload of one record (RFC 8446 5.1) */
	NETPOL_TLS_HELLO_MAX = 16384,  /* the message, with its 4 bytes of header; post-quantum
					* key shares take about 2,000 */
	NETPOL_TLS_RECORDS_MAX = 64,   /* records one message may be cut into */
	NETPOL_TLS_EXTENSIONS_MAX = 128,
	NETPOL_TLS_NAME_MAX = 255,
	NETPOL_TLS_ALPN_MAX = 64, /* bytes of ALPN kept for the audit row */
	/* bytes that are worth keeping: more than this and it is no hello we accept */
	NETPOL_TLS_BYTES_MAX = NETPOL_TLS_HELLO_MAX + NETPOL_TLS_RECORDS_MAX * 5,
};

enum netpol_tls_verdict {
	NETPOL_TLS_MORE,      /* everything so far could begin a ClientHello */
	NETPOL_TLS_HELLO,     /* whole and well-formed */
	NETPOL_TLS_NOT_TLS,   /* not a TLS handshake record */
	NETPOL_TLS_MALFORMED, /* TLS, but not a well-formed ClientHello, or over a limit */
};

struct netpol_tls_hello {
	size_t name_len;                    /* 0: no server name */
	char name[NETPOL_TLS_NAME_MAX + 1]; /* bytes as sent, not canonical; may hold NUL */
	bool ech;                           /* encrypted_client_hello (also when it is GREASE) */
	char alpn[NETPOL_TLS_ALPN_MAX + 1]; /* protocols joined by commas, odd bytes as '?' */
};

/* Looks at the first `n` bytes of the connection. *ret is filled for NETPOL_TLS_HELLO only. Of two
 * server names, two such extensions, or bytes behind the message in its last record, none is right:
 * malformed. */
enum netpol_tls_verdict netpol_tls_hello_read(const uint8_t *p, size_t n,
					      struct netpol_tls_hello *ret);

#endif
