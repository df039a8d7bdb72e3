/* SPDX-License-Identifier: MIT */
#include "cache/tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define READ_BYTES 12288

struct cache_tls {
	SSL_CTX *ctx;
	SSL *ssl; /* owns both queues */
	BIO *in, *out;
};

/* What OpenSSL says last; its queue is emptied. */
static int fault(const struct cache_tls *t, enum aqe_code code, const char *what, struct aqe_err *e)
{
	const unsigned long err = ERR_peek_last_error();
	const long verified = t->ssl ? SSL_get_verify_result(t->ssl) : X509_V_OK;
	const char *reason = ERR_reason_error_string(err);

	ERR_clear_error();
	if (verified != X509_V_OK)
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "TLS: the certificate is not trusted: %s",
				   X509_verify_cert_error_string(verified));
	return aqe_err_set(e, code, 0, "TLS: %s%s%s", what, reason ? ": " : "",
			   reason ? reason : "");
}

static bool is_address(const char *s)
{
	struct in6_addr any;

	return inet_pton(AF_INET, s, &any) == 1 || inet_pton(AF_INET6, s, &any) == 1;
}

static int take_files(struct cache_tls *t, const struct cache_tls_opts *o, struct aqe_err *e)
{
	if (o->ca_file ? SSL_CTX_load_verify_file(t->ctx, o->ca_file) != 1
		       : SSL_CTX_set_default_verify_paths(t->ctx) != 1)
		return fault(t, AQE_E_UNTRUSTED, "unusable file of authorities", e);
	if (o->cert_file && SSL_CTX_use_certificate_chain_file(t->ctx, o->cert_file) != 1)
		return fault(t, AQE_E_UNTRUSTED, "unusable certificate of ours", e);
	if (o->key_file &&
	    (SSL_CTX_use_PrivateKey_file(t->ctx, o->key_file, SSL_FILETYPE_PEM) != 1 ||
	     SSL_CTX_check_private_key(t->ctx) != 1))
		return fault(t, AQE_E_UNTRUSTED, "unusable key of ours", e);
	return 0;
}

/* Whose certificate is good: without this any certificate of any authority would be. */
static int take_name(struct cache_tls *t, const char *name, struct aqe_err *e)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);
	bool ok;

	if (!name || !*name)
		return aqe_err_set(e, AQE_E_USAGE, 0,
				   "TLS: no name to check a certificate against");
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (is_address(name))
		ok = X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
	else
		ok = X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 &&
		     SSL_ctrl(t->ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
			      (void *)(uintptr_t)name) == 1;
	return ok ? 0 : fault(t, AQE_E_USAGE, "unusable server name", e);
}

static int start(struct cache_tls *t, const struct cache_tls_opts *o, struct aqe_err *e)
{
	int rc;

	t->ctx = SSL_CTX_new(TLS_client_method());
	if (!t->ctx || SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION) != 1)
		return fault(t, AQE_E_NOMEM, "cannot start", e);
	SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
	rc = take_files(t, o, e);
	if (rc)
		return rc;
	t->ssl = SSL_new(t->ctx);
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	if (!t->ssl || !t->in || !t->out) {
		BIO_free(t->in);
		BIO_free(t->out);
		return fault(t, AQE_E_NOMEM, "cannot start", e);
	}
	SSL_set_bio(t->ssl, t->in, t->out);
	SSL_set_connect_state(t->ssl);
	SSL_set_mode(t->ssl, SSL_MODE_AUTO_RETRY);
	return take_name(t, o->server_name, e);
}

int cache_tls_new(const struct cache_tls_opts *o, struct cache_tls **ret, struct aqe_err *e)
{
	struct cache_tls *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	ERR_clear_error();
	rc = start(t, o, e);
	if (rc) {
		cache_tls_free(t);
		return rc;
	}
	*ret = t;
	return 0;
}

void cache_tls_free(struct cache_tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	SSL_CTX_free(t->ctx);
	free(t);
}

/* 0: it waits for bytes; else the fault. */
static int waits(const struct cache_tls *t, int result, const char *what, struct aqe_err *e)
{
	switch (SSL_get_error(t->ssl, result)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		return aqe_err_set(e, AQE_E_SYS, 0, "TLS: the other side said goodbye");
	default:
		return fault(t, AQE_E_MALFORMED, what, e);
	}
}

int cache_tls_handshake(struct cache_tls *t, struct aqe_err *e)
{
	int rc;

	ERR_clear_error();
	rc = SSL_do_handshake(t->ssl);
	return rc == 1 ? 1 : waits(t, rc, "handshake failed", e);
}

int cache_tls_feed(struct cache_tls *t, const void *p, size_t n, struct aqe_err *e)
{
	if (n > INT_MAX || BIO_write(t->in, p, (int)n) != (int)n)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "TLS: out of memory");
	return 0;
}

int cache_tls_drain(struct cache_tls *t, struct aqe_buf *b, struct aqe_err *e)
{
	char part[READ_BYTES];
	int n;

	while ((n = BIO_read(t->out, part, sizeof(part))) > 0)
		aqe_buf_add(b, part, (size_t)n);
	return aqe_buf_ok(b, e);
}

int cache_tls_write(struct cache_tls *t, const void *p, size_t n, struct aqe_err *e)
{
	size_t done = 0;
	int rc;

	ERR_clear_error();
	if (n == 0)
		return 0;
	rc = SSL_write_ex(t->ssl, p, n, &done);
	if (rc == 1 && done == n)
		return 0;
	/* our queue takes everything at once: a wish to read would be a renegotiation */
	rc = waits(t, rc, "cannot write", e);
	return rc ? rc : aqe_err_set(e, AQE_E_MALFORMED, 0, "TLS: cannot write now");
}

int cache_tls_read(struct cache_tls *t, struct aqe_buf *b, struct aqe_err *e)
{
	char part[READ_BYTES];
	size_t n = 0;
	int rc;

	ERR_clear_error();
	while ((rc = SSL_read_ex(t->ssl, part, sizeof(part), &n)) == 1)
		aqe_buf_add(b, part, n);
	rc = waits(t, rc, "cannot read", e);
	return rc && b->len == 0 ? rc : aqe_buf_ok(b, e);
}
