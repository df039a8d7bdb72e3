/* SPDX-License-Identifier: MIT */
/* The frozen seccomp profile and the structural rules for other filters (R31). */
#ifndef AQE_HARDENING_SECCOMP_H
#define AQE_HARDENING_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>

#include "hardening/report.h"
#include "shim/core/json.h"

/* Names allowed without conditions, sorted: libseccomp's table less the forbidden set of
 * hardening.md section 8. */
extern const char *const HARD_SECCOMP_ALLOW[];
extern const size_t HARD_SECCOMP_ALLOW_COUNT;
/* The forbidden set, sorted: no filter may let these through. */
extern const char *const HARD_SECCOMP_FORBIDDEN[];
extern const size_t HARD_SECCOMP_FORBIDDEN_COUNT;

/* The frozen filter as a linux.seccomp object for this machine's architecture, in `a`; NULL when
 * memory is exhausted or the architecture is not supported (its socketcall(2) hides arguments). */
struct aqe_json *hard_seccomp_frozen(struct aqe_arena *a);
/* Deep equality with the frozen filter. */
bool hard_seccomp_is_frozen(const struct aqe_json *seccomp);
/* R31's rules of form for linux.seccomp, reported under HARD_SECCOMP: default action ERRNO (1-4095)
 * or KILL*, exact enum names, known syscalls and architectures with the machine's own among them,
 * at most 6 conditions, one per index, no listener, no NOTIFY/TRACE, no SPEC_ALLOW. Says nothing
 * about what the filter lets through. Marks the property passed when nothing was found. */
void hard_seccomp_structure(const struct aqe_json *seccomp, struct hard_report *report);
/* The verdict on any filter: the frozen one passes; another passes when its form is right and the
 * proof (seccomp_proof.h) finds every forbidden call denied on every path. The holes are the
 * findings. A filter that cannot be decided is UNKNOWN. `proofs` may be NULL. */
struct hard_proofs;
void hard_seccomp_judge(const struct aqe_json *seccomp, const struct hard_proofs *proofs,
			struct hard_report *report);

/* A folder that remembers filters that were proved: an empty file a filter, named by the SHA-256 of
 * all that the document says. Only the shim can write there. */
struct hard_proofs {
	int dir_fd;
};
/* The key: "proof-<n>-<64 hex>", n the number of the prover. */
#define HARD_PROOF_KEY 80
AQE_MUST_CHECK int hard_seccomp_key(const struct aqe_json *seccomp, char ret[HARD_PROOF_KEY],
				    struct aqe_err *e);

/* True when libseccomp knows the syscall on some architecture. */
bool hard_seccomp_known(const char *name);

#endif
