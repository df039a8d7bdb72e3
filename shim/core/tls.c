/* SPDX-License-Identifier: MIT */
#include "shim/core/tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/core/lazy.h"
#include "shim/core/text.h"

#define READ_BYTES 12288

/* ---- the library: loaded when the first connection is made, with what it brings along ---- */

#define FUNCTIONS(X)                          \
	X(BIO_free)                           \
	X(BIO_new)                            \
	X(BIO_read)                           \
	X(BIO_s_mem)                          \
	X(BIO_write)                          \
	X(ERR_clear_error)                    \
	X(ERR_peek_last_error)                \
	X(ERR_reason_error_string)            \
	X(SSL_CTX_check_private_key)          \
	X(SSL_CTX_ctrl)                       \
	X(SSL_CTX_free)                       \
	X(SSL_CTX_load_verify_file)           \
	X(SSL_CTX_new)                        \
	X(SSL_CTX_set_default_verify_paths)   \
	X(SSL_CTX_set_verify)                 \
	X(SSL_CTX_up_ref)                     \
	X(SSL_CTX_use_PrivateKey_file)        \
	X(SSL_CTX_use_certificate_chain_file) \
	X(SSL_ctrl)                           \
	X(SSL_do_handshake)                   \
	X(SSL_free)                           \
	X(SSL_get0_param)                     \
	X(SSL_get_error)                      \
	X(SSL_get_verify_result)              \
	X(SSL_new)                            \
	X(SSL_read_ex)                        \
	X(SSL_set_bio)                        \
	X(SSL_set_connect_state)              \
	X(SSL_write_ex)                       \
	X(TLS_client_method)                  \
	X(X509_VERIFY_PARAM_set1_host)        \
	X(X509_VERIFY_PARAM_set1_ip_asc)      \
	X(X509_VERIFY_PARAM_set_hostflags)    \
	X(X509_verify_cert_error_string)

#define MEMBER(name) __typeof__(name) *(name);
struct api {
	FUNCTIONS(MEMBER)
};
static struct api lib;
#define SYMBOL(name) { #name, offsetof(struct api, name) },
static struct aqe_err not_ready = AQE_ERR_INIT;

static void load(void)
{
	static const struct aqe_lazy_symbol symbols[] = { FUNCTIONS(SYMBOL) };

	/* 0 as well: the error says how it went */
	(void)!aqe_lazy_load("libssl.so.3", symbols, AQE_COUNT(symbols), &lib, &not_ready);
}

int aqe_tls_load(struct aqe_err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (pthread_once(&once, load) != 0)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libssl does not start");
	return not_ready.code == AQE_OK
		       ? 0
		       : aqe_err_set(e, not_ready.code, not_ready.sys, "%s", not_ready.text);
}

/* ---- a connection ---- */

struct aqe_tls {
	SSL_CTX *ctx;
	SSL *ssl; /* owns both queues */
	BIO *in, *out;
};

/* What OpenSSL says last; its queue is emptied. */
static int fault(const struct aqe_tls *t, enum aqe_code code, const char *what, struct aqe_err *e)
{
	const unsigned long err = lib.ERR_peek_last_error();
	const long verified = t->ssl ? lib.SSL_get_verify_result(t->ssl) : X509_V_OK;
	const char *reason = lib.ERR_reason_error_string(err);

	lib.ERR_clear_error();
	if (verified != X509_V_OK)
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "TLS: the certificate is not trusted: %s",
				   lib.X509_verify_cert_error_string(verified));
	return aqe_err_set(e, code, 0, "TLS: %s%s%s", what, reason ? ": " : "",
			   reason ? reason : "");
}

static bool is_address(const char *s)
{
	struct in6_addr any;

	return inet_pton(AF_INET, s, &any) == 1 || inet_pton(AF_INET6, s, &any) == 1;
}

static int take_files(struct aqe_tls *t, const struct aqe_tls_opts *o, struct aqe_err *e)
{
	if (o->ca_file ? lib.SSL_CTX_load_verify_file(t->ctx, o->ca_file) != 1
		       : lib.SSL_CTX_set_default_verify_paths(t->ctx) != 1)
		return fault(t, AQE_E_UNTRUSTED, "unusable file of authorities", e);
	if (o->cert_file && lib.SSL_CTX_use_certificate_chain_file(t->ctx, o->cert_file) != 1)
		return fault(t, AQE_E_UNTRUSTED, "unusable certificate of ours", e);
	if (o->key_file &&
	    (lib.SSL_CTX_use_PrivateKey_file(t->ctx, o->key_file, SSL_FILETYPE_PEM) != 1 ||
	     lib.SSL_CTX_check_private_key(t->ctx) != 1))
		return fault(t, AQE_E_UNTRUSTED, "unusable key of ours", e);
	return 0;
}

/* Whose certificate is good: without this any certificate of any authority would be. */
static int take_name(struct aqe_tls *t, const char *name, struct aqe_err *e)
{
	X509_VERIFY_PARAM *param = lib.SSL_get0_param(t->ssl);
	bool ok;

	if (!name || !*name)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "TLS: no name to check a certificate against");
	lib.X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (is_address(name))
		ok = lib.X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
	else
		ok = lib.X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
		     lib.SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
				  (void *)(uintptr_t)name) == 1;
	return ok ? 0 : fault(t, AQE_E_USAGE, "unusable server name", e);
}

static int start_context(struct aqe_tls *t, const struct aqe_tls_opts *o, struct aqe_err *e)
{
	t->ctx = lib.SSL_CTX_new(lib.TLS_client_method());
	if (!t->ctx ||
	    lib.SSL_CTX_ctrl(t->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) != 1)
		return fault(t, AQE_E_NOMEM, "cannot start", e);
	lib.SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
	return take_files(t, o, e);
}

static int start(struct aqe_tls *t, const char *server_name, struct aqe_err *e)
{
	t->ssl = lib.SSL_new(t->ctx);
	t->in = lib.BIO_new(lib.BIO_s_mem());
	t->out = lib.BIO_new(lib.BIO_s_mem());
	if (!t->ssl || !t->in || !t->out) {
		lib.BIO_free(t->in);
		lib.BIO_free(t->out);
		return fault(t, AQE_E_NOMEM, "cannot start", e);
	}
	lib.SSL_set_bio(t->ssl, t->in, t->out);
	lib.SSL_set_connect_state(t->ssl);
	(void)lib.SSL_ctrl(t->ssl, SSL_CTRL_MODE, SSL_MODE_AUTO_RETRY, NULL);
	return take_name(t, server_name, e);
}

int aqe_tls_new(const struct aqe_tls_opts *o, struct aqe_tls **ret, struct aqe_err *e)
{
	struct aqe_tls *t;
	int rc = aqe_tls_load(e);

	if (rc)
		return rc;
	t = calloc(1, sizeof(*t));
	if (!t)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	lib.ERR_clear_error();
	rc = start_context(t, o, e);
	if (!rc)
		rc = start(t, o->server_name, e);
	if (rc) {
		aqe_tls_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

int aqe_tls_like(const struct aqe_tls *first, const char *server_name, struct aqe_tls **ret,
		 struct aqe_err *e)
{
	struct aqe_tls *t = calloc(1, sizeof(*t));
	int rc;

	if (!t || lib.SSL_CTX_up_ref(first->ctx) != 1) {
		free(t);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	t->ctx = first->ctx;
	lib.ERR_clear_error();
	rc = start(t, server_name, e);
	if (rc) {
		aqe_tls_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void aqe_tls_free(struct aqe_tls *t)
{
	if (!t)
		return;
	lib.SSL_free(t->ssl);
	lib.SSL_CTX_free(t->ctx);
	free(t);
}

/* 0: it waits for bytes; else the fault. */
static int waits(const struct aqe_tls *t, int result, const char *what, struct aqe_err *e)
{
	switch (lib.SSL_get_error(t->ssl, result)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return aqe_err_set(e, AQE_E_SYS, 0, "TLS: the other side said goodbye");
	default:
		return fault(t, AQE_E_MALFORMED, what, e);
	}
}

int aqe_tls_handshake(struct aqe_tls *t, struct aqe_err *e)
{
	int rc;

	lib.ERR_clear_error();
	rc = lib.SSL_do_handshake(t->ssl);
	return rc == 1 ? 1 : waits(t, rc, "handshake failed", e);
}

int aqe_tls_feed(struct aqe_tls *t, const void *p, size_t n, struct aqe_err *e)
{
	if (n > INT_MAX || lib.BIO_write(t->in, p, (int)n) != (int)n)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "TLS: out of memory");
	return 0;
}

int aqe_tls_drain(struct aqe_tls *t, struct aqe_buf *b, struct aqe_err *e)
{
	char part[READ_BYTES];
	int n;

	while ((n = lib.BIO_read(t->out, part, sizeof(part))) > 0)
		aqe_buf_add(b, part, (size_t)n);
	return aqe_buf_ok(b, e);
}

int aqe_tls_write(struct aqe_tls *t, const void *p, size_t n, struct aqe_err *e)
{
	size_t done = 0;
	int rc;

	lib.ERR_clear_error();
	if (n == 0)
		return 0;
	rc = lib.SSL_write_ex(t->ssl, p, n, &done);
	if (rc == 1 && done == n)
		return 0;
	/* our queue takes everything at once: a wish to read would be a renegotiation */
	rc = waits(t, rc, "cannot write", e);
	return rc ? rc : aqe_err_set(e, AQE_E_MALFORMED, 0, "TLS: cannot write now");
}

int aqe_tls_read(struct aqe_tls *t, struct aqe_buf *b, struct aqe_err *e)
{
	char part[READ_BYTES];
	size_t n = 0;
	int rc;

	lib.ERR_clear_error();
	while ((rc = lib.SSL_read_ex(t->ssl, part, sizeof(part), &n)) == 1)
		aqe_buf_add(b, part, n);
	rc = waits(t, rc, "cannot read", e);
	return rc && b->len == 0 ? rc : aqe_buf_ok(b, e);
}
