/* SPDX-License-Identifier: MIT */
/* What `verify` does with one document, or with the documents that an engine writes about running
 * containers: read, recognise, judge, hand to the report. */
#ifndef AQE_SHIM_VERIFY_JUDGE_H
#define AQE_SHIM_VERIFY_JUDGE_H

#include <stddef.h>

#include "hardening/verify.h"
#include "oci/inspect.h"
#include "shim/engine_info.h"
#include "shim/verify_out.h"

#define SHIM_DOC_MAX       ((size_t)1 << 20)  /* bytes of one document */
#define SHIM_DOC_ARENA_MAX ((size_t)64 << 20) /* its tree, and what is found in it */

struct shim_gate {
	struct hard_ctx ctx;          /* policy, digest, clock */
	const struct shim_info *info; /* what the engine says of itself, or NULL */
	struct shim_out *out;
};

/* A spec, or an inspect or info document with one object or, wrongly, several. */
struct shim_doc {
	struct aqe_arena *arena;
	enum oci_inspect_kind kind; /* NONE: a spec */
	struct aqe_json *root;
	struct aqe_err shape; /* what is wrong with the document as a whole */
};
#define SHIM_DOC_INIT(a)                             \
	{                                            \
		.arena = (a), .shape = AQE_ERR_INIT, \
	}

AQE_MUST_CHECK int shim_doc_parse(struct shim_doc *d, const struct aqe_buf *text,
				  struct aqe_err *e);
/* Judges one object of the document, or with NULL the spec that it is; fills j->kind, j->dialect
 * and, with an error, j->error. */
AQE_MUST_CHECK int shim_doc_judge(const struct shim_gate *g, const struct shim_doc *d,
				  const struct aqe_json *object, struct shim_judged *j,
				  struct hard_report *report);
/* The engine that told us about itself must be the one that told us about the container. */
void shim_gate_info(struct hard_ctx *ctx, const struct shim_info *info, bool podman);

enum shim_verdict shim_gate_verdict(const struct hard_report *r);
enum shim_verdict shim_gate_verdict_of_error(int code);

/* One file ("-": standard input), and a report for each object in it. */
enum shim_exit shim_gate_file(const struct shim_gate *g, const char *file);
/* Words "podman:NAME" or "docker:NAME". All engines are asked first: judging may lead into the
 * namespaces of a rootless one. So nothing else can be judged afterwards. */
enum shim_exit shim_gate_containers(const struct shim_gate *g, const char *const *words, size_t n);

#endif
