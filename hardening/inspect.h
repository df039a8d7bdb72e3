/* SPDX-License-Identifier: MIT */
/* Judging what an engine reports about a container, an image or itself. The rules and the
 * properties are those of hard_verify(); what such a document cannot show passes as declared by the
 * engine, and the report says so. */
#ifndef AQE_HARDENING_INSPECT_H
#define AQE_HARDENING_INSPECT_H

#include "hardening/verify.h"
#include "oci/inspect.h"

/* One object of a document that passed oci_inspect_check(). From `ctx` count policy, image_digest,
 * info_rootless and now_s; the agent type is chosen here, from the document's marker. A result for
 * every property; waivers applied. An error (no memory) leaves no usable report. */
AQE_MUST_CHECK int hard_verify_inspect(const struct hard_ctx *ctx, enum oci_inspect_kind kind,
				       const struct aqe_json *object, struct hard_report *report,
				       struct aqe_err *e);

#endif
