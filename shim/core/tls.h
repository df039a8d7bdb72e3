/* SPDX-License-Identifier: MIT */
/* TLS 1.2 and 1.3 for a client, by OpenSSL (tls.c is its only user): bytes in, bytes out, no
 * descriptor. hiredis 0.14, Debian 12's, has no TLS of its own. */
#ifndef AQE_CORE_TLS_H
#define AQE_CORE_TLS_H

#include <stddef.h>

#include "shim/core/buf.h"
#include "shim/core/err.h"

struct aqe_tls_opts {
	const char *ca_file;              /* PEM; NULL = the system's authorities */
	const char *cert_file, *key_file; /* ours, PEM; NULL = none */
	const char *server_name;          /* what its certificate must be for: a name or address */
};

/* Loads the library, once a process; may be called by several threads. The first connection does it
 * too, but where files cannot be opened any more it must have been done before. AQE_E_ABSENT: it is
 * not installed. */
AQE_MUST_CHECK int aqe_tls_load(struct aqe_err *e);

struct aqe_tls;
/* Begins; the handshake runs in the calls below. AQE_E_UNTRUSTED: a file cannot be used. */
AQE_MUST_CHECK int aqe_tls_new(const struct aqe_tls_opts *o, struct aqe_tls **ret,
			       struct aqe_err *e);
/* One more connection with the files that were read for `first`, which is not used otherwise. */
AQE_MUST_CHECK int aqe_tls_like(const struct aqe_tls *first, const char *server_name,
				struct aqe_tls **ret, struct aqe_err *e);
void aqe_tls_free(struct aqe_tls *t);
/* Goes on with the handshake: 1 when it is complete, 0 when bytes of the other side are needed.
 * AQE_E_UNTRUSTED: the certificate is not good; AQE_E_MALFORMED: not TLS. */
AQE_MUST_CHECK int aqe_tls_handshake(struct aqe_tls *t, struct aqe_err *e);
/* Gives it bytes that came from the network. */
AQE_MUST_CHECK int aqe_tls_feed(struct aqe_tls *t, const void *p, size_t n, struct aqe_err *e);
/* Appends to `b` what has to be sent; nothing when there is nothing. */
AQE_MUST_CHECK int aqe_tls_drain(struct aqe_tls *t, struct aqe_buf *b, struct aqe_err *e);
/* Encrypts; only after the handshake. */
AQE_MUST_CHECK int aqe_tls_write(struct aqe_tls *t, const void *p, size_t n, struct aqe_err *e);
/* Appends what arrived, in clear; nothing when more bytes are needed. AQE_E_SYS after the other
 * side's goodbye. */
AQE_MUST_CHECK int aqe_tls_read(struct aqe_tls *t, struct aqe_buf *b, struct aqe_err *e);

#endif
