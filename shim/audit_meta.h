/* SPDX-License-Identifier: MIT */
/* The metadata of the runtime's rows: pure. Nothing of an environment and no argument of a command
 * gets into it; of a command only the last component of its name. */
#ifndef AQE_SHIM_AUDIT_META_H
#define AQE_SHIM_AUDIT_META_H

#include <stddef.h>

#include "hardening/policy.h"
#include "hardening/report.h"
#include "shim/core/arena.h"
#include "shim/core/json.h"

#define SHIM_META_STR_MAX     1024 /* bytes kept of a text */
#define SHIM_META_COMMAND_MAX 128  /* and of a command's name */

/* An object under construction; the first failure is sticky. */
struct shim_meta {
	struct aqe_arena *arena;
	struct aqe_json *obj;
	bool failed;
};
void shim_meta_init(struct shim_meta *m, struct aqe_arena *arena);
/* The object's text in the arena, at most AUDIT_META_MAX bytes. NULL when memory is exhausted, or
 * it is longer. */
const char *shim_meta_text(const struct shim_meta *m);

/* Members; a NULL value adds nothing. */
void shim_meta_str(struct shim_meta *m, const char *name, const char *value);
void shim_meta_num(struct shim_meta *m, const char *name, int64_t value);
void shim_meta_json(struct shim_meta *m, const char *name, const struct aqe_json *value);
/* "changes": how many members of the document differ, "changed": the properties they belong to.
 * `place` is where the documents are in a config.json: "" or "/process". Returns the count. */
size_t shim_meta_changes(struct shim_meta *m, const char *place, const struct aqe_json *before,
			 const struct aqe_json *after);
/* "command": the last component of args[0] of a process. */
void shim_meta_command(struct shim_meta *m, const struct aqe_json *process);
/* "findings": property, place, found and wanted of each; those that do not fit are counted as
 * "more". */
void shim_meta_findings(struct shim_meta *m, const struct hard_report *r);

#endif
