/* SPDX-License-Identifier: MIT */
/* Which user ids a service's worker and dialer become. */
#ifndef AQE_SHIM_EGRESS_ID_H
#define AQE_SHIM_EGRESS_ID_H

#include <sys/types.h>

/* Two ids of systemd's dynamic range (61184 to 65519), by `name`: workers of different containers
 * are different users. 0: stay who we are, because we are not root or the ids are not mapped. */
void shim_egress_ids(const char *name, uid_t *ret_worker, uid_t *ret_dialer);

#endif
