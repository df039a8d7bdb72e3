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
/* Applies R31's structural rules to linux.seccomp and reports under HARD_SECCOMP: default action
 * ERRNO (1-4095) or KILL*, allow-list only, exact enum names, known syscalls and architectures, at
 * most 6 conditions, one per index, no listener, no NOTIFY/TRACE, no SPEC_ALLOW. On top of them,
 * and without compiling: no rule lets a forbidden name through, clone only with the namespace bits
 * masked, socket and socketpair only with a family that is compared under the 32-bit mask. A filter
 * that passes has no forbidden call in reach; the proof says so of more filters. Marks the property
 * passed when nothing was found. */
void hard_seccomp_structure(const struct aqe_json *seccomp, struct hard_report *report);
/* True when libseccomp knows the syscall on some architecture. */
bool hard_seccomp_known(const char *name);

#endif
