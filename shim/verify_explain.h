/* SPDX-License-Identifier: MIT */
/* `verify --explain PROPERTY [FILE]`: the rule, its reason and references; for seccomp also what
 * the proof says about the filter of a config.json. */
#ifndef AQE_SHIM_VERIFY_EXPLAIN_H
#define AQE_SHIM_VERIFY_EXPLAIN_H

#include <stdbool.h>

#include "hardening/props.h"
#include "hardening/seccomp_proof.h"
#include "shim/core/buf.h"

/* A filter that was looked at. */
struct shim_explained {
	const char *file;
	bool frozen;             /* it is the frozen filter itself */
	struct aqe_err error;    /* why there is no proof; code 0: there is one */
	struct hard_proof proof; /* its lists live in the caller's arena */
};

/* Proves the filter of the document in `text`; the result is never missing: `error` says why there
 * is no proof. */
void shim_explain_filter(struct aqe_arena *a, const char *text, size_t len,
			 struct shim_explained *ret);
/* `x` may be NULL: the property alone. */
void shim_explain_text(enum hard_prop prop, const struct shim_explained *x, struct aqe_buf *b);
void shim_explain_json(enum hard_prop prop, const struct shim_explained *x, struct aqe_buf *b);

#endif
