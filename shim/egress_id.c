/* SPDX-License-Identifier: MIT */
#include "shim/egress_id.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"

#define FIRST_ID 61184
#define EACH     1084 /* a quarter of the range */
#define KINDS    4

/* True when `file` (uid_map or gid_map) has all ids from FIRST_ID on. */
static bool is_mapped(const char *file)
{
	AQE_AUTO_FILE FILE *f = fopen(file, "re");
	uint32_t inside, outside, n;

	while (f && fscanf(f, "%" SCNu32 " %" SCNu32 " %" SCNu32, &inside, &outside, &n) == 3) {
		if (inside <= FIRST_ID && n > KINDS * EACH && FIRST_ID - inside <= n - KINDS * EACH)
			return true;
	}
	return false;
}

void shim_egress_ids(const char *name, struct shim_egress_ids *ret)
{
	uint8_t hash[32];
	uint32_t n;

	*ret = (struct shim_egress_ids){ 0, 0, 0, 0 };
	if (geteuid() != 0 || !is_mapped("/proc/self/uid_map") || !is_mapped("/proc/self/gid_map"))
		return;
	aqe_sha256(name, strlen(name), hash);
	n = ((uint32_t)hash[0] << 16 | (uint32_t)hash[1] << 8 | hash[2]) % EACH;
	ret->worker = FIRST_ID + n;
	ret->dialer = FIRST_ID + EACH + n;
	ret->gateway = FIRST_ID + 2 * EACH + n;
	ret->cache = FIRST_ID + 3 * EACH + n;
}
