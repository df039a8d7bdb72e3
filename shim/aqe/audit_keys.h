/* SPDX-License-Identifier: MIT */
/* What a verification trusts: public keys and anchors from files. */
#ifndef AQE_AQE_AUDIT_KEYS_H
#define AQE_AQE_AUDIT_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/checkpoint.h"
#include "audit/log.h"
#include "shim/core/arena.h"
#include "shim/core/err.h"

#define SHIM_AUDIT_KEYS_MAX    64
#define SHIM_AUDIT_ANCHORS_MAX 10000
/* What is not proven when no key from elsewhere was given. */
#define SHIM_AUDIT_OWN_KEY                                                                   \
	"the public key was read beside the log: who can write the log could have replaced " \
	"both; give --public-key FILE from elsewhere"

struct shim_audit_trust {
	uint8_t keys[SHIM_AUDIT_KEYS_MAX][32];
	size_t n_keys;
	struct audit_point *anchors;
	size_t n_anchors;
};
/* Adds the key in `path` (one line, audit_public_parse()). */
AQE_MUST_CHECK int shim_audit_trust_key(struct shim_audit_trust *t, const char *path,
					struct aqe_err *e);
/* Adds the anchors in `path`, one a line; empty lines and those that begin with # are skipped. A
 * file without any anchor is an error. */
AQE_MUST_CHECK int shim_audit_trust_anchors(struct shim_audit_trust *t, struct aqe_arena *a,
					    const char *path, struct aqe_err *e);
/* Adds the key that lies beside the log, if there is one (*ret). */
AQE_MUST_CHECK int shim_audit_trust_own(struct shim_audit_trust *t, const struct audit_opts *at,
					bool *ret, struct aqe_err *e);

#endif
