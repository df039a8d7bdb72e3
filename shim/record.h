/* SPDX-License-Identifier: MIT */
/* The record of a container: what was decided at `create`, for the verbs that come later with less
 * environment. One directory a container below the state folder: config.json (the private bundle),
 * record.json, and the link `runtime` to the low-level runtime. */
#ifndef AQE_SHIM_RECORD_H
#define AQE_SHIM_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hardening/effect.h"
#include "hardening/policy.h"
#include "oci/identity.h"
#include "shim/core/arena.h"
#include "shim/core/json.h"

#define SHIM_RECORD_FILE   "record.json"
#define SHIM_RECORD_CONFIG "config.json"
#define SHIM_RECORD_PID    "pid" /* our own pid file, when the engine gave none */

/* The state folder: /run/aqe-shim for root of the host, else $XDG_RUNTIME_DIR/aqe-shim. */
struct shim_state {
	int fd;           /* -1 when not open */
	bool rootless;    /* our uid map is not the identity, or we are not root */
	const char *path; /* canonical absolute path */
};
#define SHIM_STATE_INIT         \
	{                       \
		-1, false, NULL \
	}

/* One container's directory. */
struct shim_dir {
	int fd;           /* -1 when not open */
	const char *name; /* below the state folder */
	const char *path; /* absolute */
};
#define SHIM_DIR_INIT          \
	{                      \
		-1, NULL, NULL \
	}

/* Everything a later verb needs. Strings live in the arena of shim_record_load(), or are the
 * caller's for shim_record_save(). NULL strings are left out. */
struct shim_record {
	const char *id;
	enum hard_mode mode;
	enum oci_engine engine;
	const char *bundle;                   /* the engine's, canonical */
	const char *runtime, *runtime_digest; /* absolute path; "sha256:..." when pinned */
	const char *xdg_runtime_dir; /* of `create`: where the runtime keeps the container */
	const char *image_id, *image_name;
	const char *const *digests;
	size_t n_digests;
	struct hard_agent agent; /* type and ceilings */
	const char *policy_digest, *policy_files;
	uint32_t uid, gid;        /* the policy's, for a process that asks for user 0 */
	const char *pid_file;     /* absolute: the engine's or ours */
	const char *cgroups_path; /* linux.cgroupsPath */
	pid_t creator;            /* the process that became the low-level `create` */
	uint64_t creator_start;   /* aqe_proc_start_time() of it */
	int64_t created_s;
	bool egress; /* `start` starts an egress service */
	bool by_run; /* `run`: when its process is gone nobody will start the container */
	const struct hard_bind_id *binds;
	size_t n_binds;
	const struct hard_waiver *waivers; /* those in force for this container, with expiry */
	size_t n_waivers;
	const char *agent_id; /* the agent's own name for itself */
	/* Where decisions about the container are recorded; audit_dir NULL: the usual place. */
	enum hard_audit_mode audit_mode;
	const char *audit_dir;
	uint32_t audit_sign_every;
	const char *audit_start;      /* metadata of the start's row */
	bool changed;                 /* the document was changed */
	bool waived[HARD_PROP_COUNT]; /* waivers that `create` used */
};

/* Opens the state folder; makes it when `make`. AQE_E_ABSENT: not there (only without `make`);
 * AQE_E_UNKNOWN: rootless without XDG_RUNTIME_DIR. */
AQE_MUST_CHECK int shim_state_open(struct aqe_arena *a, char *const *envp, bool make,
				   struct shim_state *ret, struct aqe_err *e);
void shim_state_done(struct shim_state *s);
/* True when we run in a user namespace (or cannot tell). */
bool shim_state_in_userns(void);

/* The directory's name: "<id>@<hash of root>", `root` being the --root option or NULL. Ids too long
 * for a file name are hashed. NULL when `id` is no container id or memory is exhausted. */
char *shim_record_name(struct aqe_arena *a, const char *id, const char *root);

/* Opens the container's directory. With `lock`, waits for nothing: AQE_E_REFUSED when another
 * process holds the lock. AQE_E_ABSENT when there is none. */
enum shim_dir_how { SHIM_DIR_READ, SHIM_DIR_LOCK, SHIM_DIR_MAKE };
AQE_MUST_CHECK int shim_dir_open(struct aqe_arena *a, const struct shim_state *s, const char *name,
				 enum shim_dir_how how, struct shim_dir *ret, struct aqe_err *e);
void shim_dir_done(struct shim_dir *d);
/* Removes the directory and all in it. */
AQE_MUST_CHECK int shim_dir_remove(const struct shim_state *s, const char *name, struct aqe_err *e);
/* Removes files "PREFIXpid.json" whose process is gone. */
void shim_dir_sweep(const struct shim_dir *d, const char *prefix);

/* The low-level runtime of a container, by the link alone; NULL when unknown. */
const char *shim_record_runtime(struct aqe_arena *a, const struct shim_state *s, const char *name);

/* Writes record.json and the link. */
AQE_MUST_CHECK int shim_record_save(struct aqe_arena *a, const struct shim_dir *d,
				    const struct shim_record *r, struct aqe_err *e);
AQE_MUST_CHECK int shim_record_load(struct aqe_arena *a, const struct shim_dir *d,
				    struct shim_record *ret, struct aqe_err *e);
/* The document itself, for tests and for the two above. */
struct aqe_json *shim_record_emit(struct aqe_arena *a, const struct shim_record *r);
AQE_MUST_CHECK int shim_record_parse(struct aqe_arena *a, const char *text, size_t len,
				     struct shim_record *ret, struct aqe_err *e);

#endif
