/* SPDX-License-Identifier: MIT */
/* Takes a secret out of a stream: each place where it stands is overwritten with '*', so that
 * lengths stay. Pure. */
#ifndef AQE_AQE_GATEWAY_MASK_H
#define AQE_AQE_GATEWAY_MASK_H

#include "shim/core/buf.h"

struct shim_mask {
	const char *secret; /* borrowed; "" or NULL: nothing is masked */
	size_t n;
	struct aqe_buf held; /* the end of what came, while it could begin the secret */
};
/* `max` bytes are fed at once at most. */
void shim_mask_init(struct shim_mask *m, size_t max);
/* Wipes what is held. */
void shim_mask_done(struct shim_mask *m);
/* Another secret; what is held is judged by it from now on. */
void shim_mask_set(struct shim_mask *m, const char *secret);
/* Appends to `out` what is certain, without the secret. */
AQE_MUST_CHECK int shim_mask_feed(struct shim_mask *m, const char *p, size_t n,
				  struct aqe_buf *out);
/* The stream's end: the rest. */
AQE_MUST_CHECK int shim_mask_end(struct shim_mask *m, struct aqe_buf *out);

#endif
