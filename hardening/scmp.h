/* SPDX-License-Identifier: MIT */
/* libseccomp, behind four functions. */
#ifndef AQE_HARDENING_SCMP_H
#define AQE_HARDENING_SCMP_H

#include <stddef.h>
#include <stdint.h>

#include "hardening/bpf.h"
#include "shim/core/arena.h"
#include "shim/core/json.h"

/* An architecture as the kernel names it to a filter. */
struct hard_arch {
	const char *name;        /* "SCMP_ARCH_X86_64", as the runtime-spec writes it */
	const char *label;       /* "x86_64", for people */
	uint32_t token;          /* libseccomp's token */
	uint32_t audit;          /* AUDIT_ARCH_*: what seccomp_data.arch holds */
	uint32_t nr_bit;         /* set in every syscall number: x32's bit */
	uint8_t clone_flags_arg; /* s390 swaps the first two arguments of clone(2) */
};
extern const struct hard_arch HARD_ARCHS[];
extern const size_t HARD_ARCHS_COUNT;
/* The row with this runtime-spec name, or NULL. */
const struct hard_arch *hard_arch_by_name(const char *name);
/* The machine's own. Never NULL on a supported machine, NULL otherwise. */
const struct hard_arch *hard_arch_native(void);

/* The number of a syscall on an architecture as the kernel sees it (x32: with its bit), or -1 when
 * it has none there or libseccomp does not know the name. */
int64_t hard_scmp_number(const struct hard_arch *arch, const char *name);
/* The name of a number, or NULL; in `a`. */
const char *hard_scmp_name(struct aqe_arena *a, const struct hard_arch *arch, uint32_t nr);

/* Compiles a linux.seccomp object as crun 1.8.1 and runc 1.1.5 do: default action, architectures in
 * order, rules in order without those that equal the default, names unknown to libseccomp skipped,
 * two conditions on one argument as alternatives. The object must have passed
 * hard_seccomp_structure(). *ret is in `a`. */
AQE_MUST_CHECK int hard_scmp_compile(struct aqe_arena *a, const struct aqe_json *seccomp,
				     const struct hard_bpf_insn **ret, size_t *ret_n,
				     struct aqe_err *e);

#endif
