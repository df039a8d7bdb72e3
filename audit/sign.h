/* SPDX-License-Identifier: MIT */
/* Internal to audit/: Ed25519 (RFC 8032) by libsodium, and the key's files. */
#ifndef AQE_AUDIT_SIGN_H
#define AQE_AUDIT_SIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "shim/core/err.h"

/* The secret key; wipe it when done. */
struct audit_key {
	uint8_t secret[64];
	uint8_t public_key[32];
};

/* True when the folder of `o` has a file for the secret key, readable or not. */
bool audit_sign_has_key(const struct audit_opts *o);
/* Reads the secret key. Its file must be ours, 0600, of one name, no link. AQE_E_ABSENT,
 * AQE_E_UNTRUSTED, AQE_E_MALFORMED. */
AQE_MUST_CHECK int audit_sign_load(const struct audit_opts *o, struct audit_key *ret,
				   struct aqe_err *e);
void audit_sign_wipe(struct audit_key *k);
/* Makes a key and its files. AQE_E_REFUSED when there is one. */
AQE_MUST_CHECK int audit_sign_make(const struct audit_opts *o, struct aqe_err *e);

AQE_MUST_CHECK int audit_sign(const struct audit_key *k, const void *p, size_t n, uint8_t sig[64],
			      struct aqe_err *e);
bool audit_sign_check(const uint8_t public_key[32], const void *p, size_t n, const uint8_t sig[64]);

/* Lower-case hex: 2 * n characters and a NUL; and back from exactly 2 * n characters. */
void audit_hex(const uint8_t *p, size_t n, char *ret);
bool audit_unhex(const char *text, size_t n, uint8_t *ret);

#endif
