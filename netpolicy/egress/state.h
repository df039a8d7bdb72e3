/* SPDX-License-Identifier: MIT */
/* The limiters' states (service.h, struct netpol_shared) in memory and in a file: the keeper's
 * side.
 */
#ifndef AQE_EGRESS_STATE_H
#define AQE_EGRESS_STATE_H

#include "netpolicy/egress/service.h"

/* Maps it for keeper and worker, with what file `name` below `dir` holds (-1: nothing). It stays
 * mapped for the life of the process. */
AQE_MUST_CHECK int netpol_state_map(int dir, const char *name, struct netpol_shared **ret,
				    struct aqe_err *e);
/* Writes it when it is not what *io_saved says the file holds already. */
AQE_MUST_CHECK int netpol_state_save(int dir, const char *name, const struct netpol_shared *s,
				     const struct netpol_shared_place **io_saved,
				     struct aqe_err *e);

#endif
