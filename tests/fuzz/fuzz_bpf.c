/* SPDX-License-Identifier: MIT */
/* Any bytes as a filter: decided or refused, within the limits; what is reachable with known
 * arguments is reachable with unknown ones. */
#include <linux/audit.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/bpf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t nrs[] = { 0, 41, 56, 435, 0x40000029U, UINT32_MAX };
	const size_t n = size / sizeof(struct hard_bpf_insn);
	struct hard_bpf_insn *prog = calloc(n + 1, sizeof(*prog));
	struct hard_bpf_query any = { AUDIT_ARCH_X86_64, nrs, 6, { { 0, 0 } } }, known = any;
	uint16_t wide[6], narrow[6];

	if (!prog)
		return 0;
	memcpy(prog, data, n * sizeof(*prog));
	for (size_t i = 0; i < 12; i++)
		any.args[i] = (struct hard_bpf_word)HARD_BPF_ANY;
	if (hard_bpf_reach(prog, n, &any, wide, NULL) == 0 &&
	    hard_bpf_reach(prog, n, &known, narrow, NULL) == 0) {
		for (size_t i = 0; i < 6; i++)
			if (!wide[i] || (narrow[i] & (unsigned)~wide[i]))
				abort();
	}
	free(prog);
	return 0;
}
