/* SPDX-License-Identifier: MIT */
/* Any bytes load or give an error with file and text; what loaded keeps every limit. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hardening/policy.h"
#include "hardening/policy_file.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct hard_policy *p)
{
	assert(p->uid >= 1 && p->uid <= INT32_MAX && p->gid >= 1 && p->gid <= INT32_MAX);
	for (size_t i = 0; i < p->n_agents; i++) {
		const struct hard_agent *a = &p->agents[i];

		assert(a->cpus_milli >= HARD_POLICY_CPUS_MILLI_MIN &&
		       a->cpus_milli <= HARD_POLICY_CPUS_MILLI_MAX);
		assert(a->memory_bytes >= HARD_POLICY_MEMORY_MIN &&
		       a->memory_bytes <= HARD_POLICY_MEMORY_MAX);
		assert(a->disk_bytes >= HARD_POLICY_DISK_MIN &&
		       a->disk_bytes <= HARD_POLICY_DISK_MAX);
		assert(a->pids >= 1 && a->pids <= HARD_POLICY_PIDS_MAX);
	}
	for (size_t i = 0; i < p->n_images; i++)
		assert(p->images[i].digest || p->images[i].image_id);
	for (size_t i = 0; i < p->n_mounts; i++)
		assert(aqe_path_is_canonical(p->mounts[i].source) &&
		       aqe_path_is_canonical(p->mounts[i].destination));
	for (size_t i = 0; i < p->n_waivers; i++)
		assert(HARDENING_PROFILE[p->waivers[i].prop].waivable && p->waivers[i].reason &&
		       p->waivers[i].owner && (p->waivers[i].agent_type || p->waivers[i].image));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AQE_AUTO_FD int fd = memfd_create("policy", MFD_CLOEXEC);
	AQE_AUTO_BUF struct aqe_buf path = AQE_BUF_INIT(64);
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_policy *p = NULL;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	(void)aqe_buf_addf(&path, "/proc/self/fd/%d", fd);
	if (hard_policy_load_file(aqe_buf_str(&path), &p, &e))
		assert(!p && e.code && e.text[0]);
	else
		check(p);
	hard_policy_free(p);
	return 0;
}
