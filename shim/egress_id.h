/* SPDX-License-Identifier: MIT */
/* Which user ids a service's worker, dialer and companions become. */
#ifndef AQE_SHIM_EGRESS_ID_H
#define AQE_SHIM_EGRESS_ID_H

#include <sys/types.h>

struct shim_egress_ids {
	uid_t worker, dialer, gateway, cache;
};
/* Ids of systemd's dynamic range (61184 to 65519), by `name`: workers of different containers
 * are different users. 0: stay who we are, because we are not root or the ids are not mapped. */
void shim_egress_ids(const char *name, struct shim_egress_ids *ret);

#endif
