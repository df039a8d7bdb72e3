/* SPDX-License-Identifier: MIT */
/* An abstract interpreter for seccomp's classic BPF: which actions can a filter reach for which
 * syscall numbers, when argument bits are not known. Pure; over-approximates, so that a wrong
 * answer can only make a filter look weaker than it is. */
#ifndef AQE_HARDENING_BPF_H
#define AQE_HARDENING_BPF_H

#include <stddef.h>
#include <stdint.h>

#include "shim/core/err.h"

/* One instruction, laid out as struct sock_filter (linux/filter.h). */
struct hard_bpf_insn {
	uint16_t code;
	uint8_t jt, jf;
	uint32_t k;
};
#define HARD_BPF_INSNS_MAX 4096 /* BPF_MAXINSNS */

/* A 32-bit word of which the bits in `unknown` may be anything. */
struct hard_bpf_word {
	uint32_t value, unknown;
};
#define HARD_BPF_ANY          \
	{                     \
		0, UINT32_MAX \
	}

/* What a syscall number can lead to: a set of these. */
enum hard_bpf_action {
	HARD_BPF_KILL = 1U << 0,   /* KILL_PROCESS or KILL_THREAD */
	HARD_BPF_TRAP = 1U << 1,   /* SIGSYS */
	HARD_BPF_ERRNO = 1U << 2,  /* an error number from 1 to 4095 */
	HARD_BPF_ERRNO0 = 1U << 3, /* "error" 0: the call is skipped and seems to succeed */
	HARD_BPF_NOTIFY = 1U << 4, /* another process decides */
	HARD_BPF_TRACE = 1U << 5,  /* a tracer decides */
	HARD_BPF_LOG = 1U << 6,    /* logged and allowed */
	HARD_BPF_ALLOW = 1U << 7,
	/* everything that is not a plain refusal */
	HARD_BPF_OPEN =
		HARD_BPF_ERRNO0 | HARD_BPF_NOTIFY | HARD_BPF_TRACE | HARD_BPF_LOG | HARD_BPF_ALLOW,
};

#define HARD_BPF_NRS_MAX 4096 /* syscall numbers in one query */

/* One question: this architecture, these syscall numbers, these arguments (low and high halves of
 * the six 64-bit arguments: args[2*i] low, args[2*i+1] high). The instruction pointer is unknown.
 */
struct hard_bpf_query {
	uint32_t arch;       /* AUDIT_ARCH_* */
	const uint32_t *nrs; /* strictly ascending */
	size_t n_nrs;
	struct hard_bpf_word args[12];
};

/* Answers: ret[i] is the set of actions that nrs[i] can reach. AQE_E_MALFORMED for a program the
 * kernel would not load (bad jump, bad offset, unknown instruction), AQE_E_LIMIT when it is too
 * long or branches too much to decide (1,000,000 steps, 1,024 open branches): the caller refuses.
 */
AQE_MUST_CHECK int hard_bpf_reach(const struct hard_bpf_insn *prog, size_t n_insns,
				  const struct hard_bpf_query *q, uint16_t *ret, struct aqe_err *e);

/* Callers ask about 0 ... HARD_BPF_NRS_BASE-1 (and the same with the x32 bit) anyway. */
#define HARD_BPF_NRS_BASE 1200
/* Every other constant of the program's tests is worth asking about too, with its neighbours:
 * appends them, unsorted and once each, to `nrs` (capacity HARD_BPF_NRS_MAX, *n in and out);
 * AQE_E_LIMIT when it is full. */
AQE_MUST_CHECK int hard_bpf_constants(const struct hard_bpf_insn *prog, size_t n_insns,
				      uint32_t *nrs, size_t *n, struct aqe_err *e);

#endif
