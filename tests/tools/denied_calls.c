/* SPDX-License-Identifier: MIT */
/* Runs inside a container: every native syscall number that the proof calls denied under the frozen
 * filter is executed with all-ones arguments and must come back with EPERM or ENOSYS (runc answers
 * ENOSYS for numbers newer than its libseccomp). Prints "denied N, mismatches N". */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hardening/bpf.h"
#include "hardening/scmp.h"
#include "hardening/seccomp.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* uretprobe and uprobe: the kernel exempts them from filters and answers with a signal */
static bool exempt(uint32_t nr)
{
	return nr == 335 || nr == 336;
}

static bool denied_in_kernel(uint32_t nr)
{
	errno = 0;
	long rc = syscall((long)nr, -1L, -1L, -1L, -1L, -1L, -1L);

	return rc == -1 && (errno == EPERM || errno == ENOSYS);
}

int main(void)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	const struct hard_arch *arch = hard_arch_native();
	struct aqe_json *frozen = a ? hard_seccomp_frozen(a) : NULL;
	const struct hard_bpf_insn *prog = NULL;
	static uint32_t nrs[HARD_BPF_NRS_BASE];
	static uint16_t sets[HARD_BPF_NRS_BASE];
	struct hard_bpf_query q = { 0, nrs, HARD_BPF_NRS_BASE, { { 0, 0 } } };
	struct aqe_err e = AQE_ERR_INIT;
	unsigned denied = 0, wrong = 0;
	size_t n = 0;

	if (!frozen || !arch || hard_scmp_compile(a, frozen, &prog, &n, &e) < 0)
		return EXIT_FAILURE;
	q.arch = arch->audit;
	for (size_t i = 0; i < AQE_COUNT(q.args); i++)
		q.args[i] = (struct hard_bpf_word){ UINT32_MAX, 0 };
	for (uint32_t i = 0; i < HARD_BPF_NRS_BASE; i++)
		nrs[i] = i;
	if (hard_bpf_reach(prog, n, &q, sets, &e) < 0)
		return EXIT_FAILURE;
	for (uint32_t i = 0; i < HARD_BPF_NRS_BASE; i++) {
		if ((sets[i] & HARD_BPF_OPEN) || exempt(i))
			continue;
		denied++;
		if (!denied_in_kernel(i)) {
			printf("number %u: errno %d\n", i, errno);
			wrong++;
		}
	}
	printf("denied %u, mismatches %u\n", denied, wrong);
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}
