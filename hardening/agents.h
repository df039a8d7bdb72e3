/* SPDX-License-Identifier: MIT */
/* Agent types and their ceilings. */
#ifndef AQE_HARDENING_AGENTS_H
#define AQE_HARDENING_AGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The frozen profile's own ceilings, for a document whose agent type is not known
 * (hardening.md R17). */
#define HARD_PIDS_MAX       512
#define HARD_MEMORY_MAX     (1024ULL * 1024 * 1024)
#define HARD_CPUS_MILLI_MAX 2000
#define HARD_CPU_PERIOD     100000 /* us; the period the rewrite always writes */

struct hard_agent {
	const char *type;
	uint32_t cpus_milli;   /* 1000 = one CPU */
	uint64_t memory_bytes; /* memory = memory + swap */
	uint64_t disk_bytes;   /* sum of the writable tmpfs at /tmp and /run */
	uint32_t pids;
	bool tmp_exec;       /* policy only: /tmp without noexec */
	const char *risk;    /* "low", "medium", "high" */
	const char *network; /* "isolated", "whitelisted" */
	const char *domains; /* comma-separated */
	uint32_t per_minute, per_hour, burst;
	uint32_t timeout_ms;
	const char *description;
};

/* The built-in table, sorted as in the source of the figures; the last row is "default". */
extern const struct hard_agent HARD_AGENTS[];
extern const size_t HARD_AGENTS_COUNT;
/* The row of a type, or NULL. */
const struct hard_agent *hard_agent_find(const char *type);
/* "default". Never NULL. */
const struct hard_agent *hard_agent_default(void);
/* "profile": the ceilings of the frozen profile itself (defines above). Never NULL. */
const struct hard_agent *hard_agent_profile(void);

#endif
