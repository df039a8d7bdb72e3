/* SPDX-License-Identifier: MIT */
/* What a gateway adds that no container may see: read by the keeper, who may read the files, and
 * handed to the companion, who may not. */
#ifndef AQE_EGRESS_SECRETS_H
#define AQE_EGRESS_SECRETS_H

#include <stdint.h>

#include "netpolicy/policy.h"

enum {
	NETPOL_CREDENTIAL_MIN =
		8, /* a shorter one could not be told from other text in an answer */
	NETPOL_CREDENTIAL_MAX = 8192,
	NETPOL_CA_FILE_MAX = 1 << 20,
	NETPOL_SECRETS_MAX = 4 << 20, /* all of them, as handed over */
};

/* True when the type has a gateway. */
bool netpol_secrets_wanted(const struct netpol_policy *p, const char *type);
/* What the credential and authority files of the type's gateways look like now: changes when one of
 * them does. */
uint64_t netpol_secrets_stamp(const struct netpol_policy *p, const char *type);
/* One credential: a regular file of ours or root's, not writable by others and not readable by all,
 * one line of printable ASCII. Appends it without the line's end. */
AQE_MUST_CHECK int netpol_credential_read(const char *path, struct aqe_buf *b, struct aqe_err *e);
/* Reads them all into a sealed memfd of *ret_size bytes, as JSON: {"NAME": {"credential": "...",
 * "ca": "PEM"}, ...}. A child does it: nothing of them stays in the memory of this process, whose
 * other children read hostile bytes. A gateway whose files cannot be used is left out; the first
 * such fault is in `why`, which is AQE_OK otherwise. */
AQE_MUST_CHECK int netpol_secrets_seal(const struct netpol_policy *p, const char *type, int *ret_fd,
				       uint32_t *ret_size, struct aqe_err *why, struct aqe_err *e);
/* The same with another reader: fewer than NETPOL_SECRETS_MAX bytes. */
typedef int netpol_secrets_fn(void *self, struct aqe_buf *b, struct aqe_err *e);
AQE_MUST_CHECK int netpol_secrets_seal_by(netpol_secrets_fn *fn, void *self, int *ret_fd,
					  uint32_t *ret_size, struct aqe_err *why,
					  struct aqe_err *e);
/* Only the judgement: the first fault. */
AQE_MUST_CHECK int netpol_secrets_check(const struct netpol_policy *p, const char *type,
					struct aqe_err *e);

#endif
