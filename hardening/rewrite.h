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

#include "hardening/rules.h"
#include "hardening/verify.h"
#include "oci/doc.h"

struct hard_rw {
	const struct hard_ctx *ctx;
	struct aqe_arena *arena;
	struct hard_report *report;
	struct aqe_json *doc;     /* that is edited */
	struct aqe_json *process; /* its process (for exec: the document itself) */
	struct aqe_json *lin;     /* its linux section ("linux" is a macro); NULL for exec */
	const struct aqe_json *container; /* exec: the container's own config.json */
	uint32_t uid, gid;                /* the agent's, once the user step ran */
	const char *id; /* the container's, or NULL when nothing tells it (gate) */
	char id_buf[HARD_ID_HEX + 1];
	const struct hard_image *entry; /* the policy's entry that pins the image, or NULL */
	bool no_cgroup;                 /* rootless engine on cgroup v1: no limit can be set */
	bool nomem;                     /* an edit failed: sticky, the result is dropped */
};

/* ---- rewrite.c ---- */
/* Starts on `doc` itself; NULL (a copy that failed) is AQE_E_NOMEM. */
AQE_MUST_CHECK int hard_rw_init(struct hard_rw *rw, const struct hard_ctx *ctx,
				struct aqe_arena *arena, struct aqe_json *doc,
				struct hard_report *report, struct aqe_err *e);
/* AQE_E_NOMEM when any edit or finding was lost. */
AQE_MUST_CHECK int hard_rw_done(const struct hard_rw *rw, struct aqe_err *e);

/* Takes a finding of verify over, as being about `pointer` in our document. */
void hard_rw_adopt(struct hard_rw *rw, const struct hard_finding *f, const char *pointer);

/* ---- rewrite_edit.c: shared helpers ---- */
/* aqe_json_set(), aqe_json_append() with a sticky failure. */
void hard_rw_set(struct hard_rw *rw, struct aqe_json *obj, const char *key, struct aqe_json *v);
void hard_rw_append(struct hard_rw *rw, struct aqe_json *array, struct aqe_json *v);
void hard_rw_set_str(struct hard_rw *rw, struct aqe_json *obj, const char *key, const char *v);
void hard_rw_set_u64(struct hard_rw *rw, struct aqe_json *obj, const char *key, uint64_t v);
void hard_rw_set_bool(struct hard_rw *rw, struct aqe_json *obj, const char *key, bool v);
/* The object member, made when absent; NULL with the sticky failure. */
struct aqe_json *hard_rw_object(struct hard_rw *rw, struct aqe_json *obj, const char *key);
/* Text in the arena, for messages and short values: cut after 1,023 bytes. "" and the sticky
 * failure when memory is exhausted. */
const char *hard_rw_fmt(struct hard_rw *rw, const char *fmt, ...) AQE_PRINTF(2, 3);
/* The property has a waiver in force for this container. */
bool hard_rw_waived(const struct hard_rw *rw, enum hard_prop prop);
/* hard_report_fail(), unless the property is waived: then what was asked stays in the document. */
void hard_rw_refuse(struct hard_rw *rw, enum hard_prop prop, const struct aqe_json *at,
		    const char *wanted, const char *found_fmt, ...) AQE_PRINTF(5, 6);
/* The same with an own text for the fix. */
void hard_rw_refuse_fix(struct hard_rw *rw, enum hard_prop prop, const struct aqe_json *at,
			const char *fix, const char *found_fmt, ...) AQE_PRINTF(5, 6);
/* Text of a foreign string for a message: quoted, cut. */
const char *hard_rw_quote(struct hard_rw *rw, const char *s);
/* True when nothing in `v` says anything: 0, false, "", null, empty or made of such only. */
bool hard_rw_inert(const struct aqe_json *v);
/* Drops inert members that no hardened container has, refuses others and unknown ones. */
void hard_rw_schema(struct hard_rw *rw, enum oci_doc kind);
/* Marks every property passed that did not fail, applies waivers. True when nothing is refused. */
bool hard_rw_settle(struct hard_rw *rw);

/* ---- rewrite_process.c ---- */
void hard_rw_process(struct hard_rw *rw);
/* rewrite_env.c: the proxy variables, where the container has an egress service. */
void hard_rw_egress_env(struct hard_rw *rw);
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
/* The agent's CPU ceiling as a quota for HARD_CPU_PERIOD. */
uint64_t hard_rw_quota_max(const struct hard_ctx *ctx);
/* Scales a quota to HARD_CPU_PERIOD; false when it is no limit. */
bool hard_rw_quota(int64_t quota, uint64_t period, uint64_t *ret);
/* ---- rewrite_mounts.c ---- */
void hard_rw_root(struct hard_rw *rw);
void hard_rw_mounts(struct hard_rw *rw);
/* ---- rewrite_meta.c ---- */
void hard_rw_meta(struct hard_rw *rw);
/* ---- rewrite_host.c ---- */
/* True when the namespace file at `path` is the engine's or the host's own. */
bool hard_rw_host_namespace(const struct hard_rw *rw, const char *type, const char *path);

#endif
