/* SPDX-License-Identifier: MIT */
/* The semantic check of a seccomp filter (hardening.md section 8): every forbidden call is denied
 * on every path, whatever the unknown argument bits are. */
#ifndef AQE_HARDENING_SECCOMP_PROOF_H
#define AQE_HARDENING_SECCOMP_PROOF_H

#include <stddef.h>
#include <stdint.h>

#include "hardening/bpf.h"
#include "shim/core/arena.h"
#include "shim/core/json.h"

/* A forbidden call that a filter lets through. */
struct hard_hole {
	const char *call; /* "unshare", "socket(AF_VSOCK)", "clone(CLONE_NEWUSER)", "number 999" */
	const char *arch; /* "x86_64" */
	uint16_t actions; /* enum hard_bpf_action: what it reaches */
};
#define HARD_HOLES_MAX 512 /* more are counted, not stored */

struct hard_proof {
	const struct hard_hole *holes; /* in the arena */
	size_t n_holes;                /* stored */
	size_t n_all;                  /* found */
	size_t n_insns;
	size_t n_allowed; /* native numbers that reach ALLOW for some argument */
};

/* Checks a compiled filter over every architecture token x syscall number. */
AQE_MUST_CHECK int hard_proof_bpf(struct aqe_arena *a, const struct hard_bpf_insn *prog,
				  size_t n_insns, struct hard_proof *ret, struct aqe_err *e);
/* Compiles linux.seccomp as the runtimes do and checks the result. */
AQE_MUST_CHECK int hard_proof_spec(struct aqe_arena *a, const struct aqe_json *seccomp,
				   struct hard_proof *ret, struct aqe_err *e);

/* A call that is forbidden only with some arguments. The rows are printed by `profile`. */
struct hard_arg_rule {
	const char *call;     /* syscall */
	const char *label;    /* "AF_VSOCK" */
	uint8_t arg;          /* which argument; clone: replaced by the architecture's */
	uint32_t value, mask; /* low word: these bits have this value, the others are unknown */
	int8_t arg2;          /* a second argument, or -1 */
	uint32_t value2, mask2;
};
extern const struct hard_arg_rule HARD_ARG_RULES[];
extern const size_t HARD_ARG_RULES_COUNT;

#endif
