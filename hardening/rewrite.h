/* SPDX-License-Identifier: MIT */
/* Inside of the rewrite: the state that its steps share. A step tightens what an engine does by
 * default and refuses what somebody asked for; a waiver in force switches the step of its property
 * off, so that the document says what was asked. Only hardening/rewrite*.c, exec.c and update.c
 * include this. */
#ifndef AQE_HARDENING_REWRITE_H
#define AQE_HARDENING_REWRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/verify.h"
#include "oci/doc.h"

struct hard_rw {
	const struct hard_ctx *ctx;
	struct aqe_arena *arena;
	struct hard_report *report;
	struct aqe_json *doc;     /* the copy that is edited */
	struct aqe_json *process; /* its process (for exec: the document itself) */
	struct aqe_json *linux;   /* its linux section; NULL for exec and update */
	const struct aqe_json *container; /* exec: the container's own config.json */
	uint32_t uid, gid; /* the agent's, once the user step ran */
	bool nomem;        /* an edit failed: sticky, the result is dropped */
};

/* ---- rewrite_edit.c: shared helpers ---- */
/* aqe_json_set(), aqe_json_append() with a sticky failure. */
void hard_rw_set(struct hard_rw *rw, struct aqe_json *obj, const char *key, struct aqe_json *v);
void hard_rw_append(struct hard_rw *rw, struct aqe_json *array, struct aqe_json *v);
void hard_rw_set_str(struct hard_rw *rw, struct aqe_json *obj, const char *key, const char *v);
void hard_rw_set_u64(struct hard_rw *rw, struct aqe_json *obj, const char *key, uint64_t v);
void hard_rw_set_bool(struct hard_rw *rw, struct aqe_json *obj, const char *key, bool v);
/* Text in the arena; "" and the sticky failure when memory is exhausted. */
const char *hard_rw_fmt(struct hard_rw *rw, const char *fmt, ...) AQE_PRINTF(2, 3);
/* The property has a waiver in force for this container. */
bool hard_rw_waived(const struct hard_rw *rw, enum hard_prop prop);
/* True when nothing in `v` says anything: 0, false, "", null, empty or made of such only. */
bool hard_rw_inert(const struct aqe_json *v);
/* Drops inert members that no hardened container has, refuses others and unknown ones. */
void hard_rw_schema(struct hard_rw *rw, enum oci_doc kind);
/* Marks every property passed that did not fail, applies waivers. True when nothing is refused. */
bool hard_rw_settle(struct hard_rw *rw);

/* ---- rewrite_process.c ---- */
void hard_rw_process(struct hard_rw *rw);
/* Steps that an exec's process shares. */
void hard_rw_capabilities(struct hard_rw *rw);
void hard_rw_user(struct hard_rw *rw, uint32_t uid, uint32_t gid);
void hard_rw_command(struct hard_rw *rw);
void hard_rw_rlimits(struct hard_rw *rw);

/* ---- rewrite_linux.c ---- */
void hard_rw_namespaces(struct hard_rw *rw);
void hard_rw_linux(struct hard_rw *rw);
/* ---- rewrite_limits.c ---- */
void hard_rw_resources(struct hard_rw *rw);
/* ---- rewrite_mounts.c ---- */
void hard_rw_root(struct hard_rw *rw);
void hard_rw_mounts(struct hard_rw *rw);
/* ---- rewrite_meta.c ---- */
void hard_rw_meta(struct hard_rw *rw);
/* ---- rewrite_host.c ---- */
/* True when the namespace file at `path` is the engine's or the host's own. */
bool hard_rw_host_namespace(const struct hard_rw *rw, const char *type, const char *path);

#endif
