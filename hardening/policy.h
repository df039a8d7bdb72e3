/* SPDX-License-Identifier: MIT */
/* The policy file: what an administrator pins and admits. It cannot change the frozen profile. */
#ifndef AQE_HARDENING_POLICY_H
#define AQE_HARDENING_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/agents.h"
#include "hardening/policy_audit.h"
#include "hardening/props.h"
#include "shim/core/err.h"
#include "shim/core/json.h"
#include "shim/core/sha256.h"

#define HARD_POLICY_DIR       "/etc/aqe-shim" /* policy.json and policy.d/ of the system */
#define HARD_POLICY_MAX_BYTES (1U << 20)
#define HARD_WAIVER_WARN_DAYS 14

enum hard_mode {
	HARD_MODE_OBSERVE, /* pass through unchanged, log what would happen */
	HARD_MODE_VERIFY,  /* refuse without rewriting */
	HARD_MODE_ENFORCE, /* rewrite, verify, refuse: the default */
};

/* Where a thing was written, for messages: "file:line". */
struct hard_where {
	const char *file;
	uint32_t line;
};

struct hard_image {
	const char *name;   /* for people; may be NULL */
	const char *digest; /* "sha256:..." manifest digest or NULL */
	const char
		*image_id; /* "sha256:..." config digest or NULL; at least one of the two is set */
	const char *const *types; /* agent types this image may run as */
	size_t n_types;           /* 0: only "default" */
	struct hard_where where;
};

struct hard_mount {
	const char *source, *destination; /* canonical absolute paths */
	bool readonly;
	const char *const *types; /* agent types that get it; n_types 0: all */
	size_t n_types;
	struct hard_where where;
};

struct hard_waiver {
	enum hard_prop prop;    /* waivable ones only: others are refused at load */
	const char *agent_type; /* or NULL */
	const char *image; /* image name, digest or image id as in `images`, or NULL; one of the two
			      is set */
	const char *reason, *owner;
	int64_t expires; /* seconds since the epoch: from this moment on it is absent */
	struct hard_where where;
};

/* A member of one file that another folder reads; its shape was checked, its values were not. */
struct hard_section {
	const char *key;  /* "network", "cache" */
	const char *file; /* for messages */
	const struct aqe_json *root;
	bool user; /* of a user's tier below a system's: may only tighten */
};

struct hard_policy {
	struct aqe_arena *arena; /* owns everything below */
	enum hard_mode mode;
	const char *runtime_path;   /* absolute; NULL: the policy names none (for `verify`) */
	const char *runtime_digest; /* "sha256:..." or NULL */
	struct hard_where runtime_where;
	const struct hard_image *images;
	size_t n_images;
	const struct hard_mount *mounts;
	size_t n_mounts;
	uint32_t uid, gid; /* used when the container's user is 0; default 1000:1000 */
	const struct hard_agent
		*agents; /* the built-in table with the policy's overrides applied */
	size_t n_agents;
	bool unmarked_refuse; /* "unmarked": "refuse"; default false: agent type "default" */
	const char *
		seccomp_file; /* where engines find the frozen filter (inspect documents) or NULL */
	const struct hard_waiver *waivers;
	size_t n_waivers;
	struct hard_audit audit;
	const struct hard_section *sections; /* in the order of the files, the system's first */
	size_t n_sections;
	char digest[AQE_DIGEST_TEXT]; /* over all files read, in order */
	int64_t changed_s;            /* the last change of any of them */
	const char *files;            /* their paths, ", "-separated, for messages */
};

/* Reads one file, for `verify --policy FILE` (regular file; owner and mode are not judged). */
AQE_MUST_CHECK int hard_policy_load_file(const char *path, struct hard_policy **ret,
					 struct aqe_err *e);
/* Reads policy.json and policy.d/ *.json (name order) of `system_dir`, every file and directory
 * trusted (AQE_FS_TRUSTED), then of `user_dir` (may be NULL or absent), which can only tighten
 * what the system's policy says; without a system policy the user's stands alone, and one of the
 * two must exist. Errors name the file and line; AQE_E_ABSENT when there is no policy. */
AQE_MUST_CHECK int hard_policy_load(const char *system_dir, const char *user_dir,
				    struct hard_policy **ret, struct aqe_err *e);
void hard_policy_free(struct hard_policy *p);
/* A policy with nothing in it: no images, no mounts, enforce. */
AQE_MUST_CHECK int hard_policy_empty(struct hard_policy **ret, struct aqe_err *e);

/* The image entry that pins this identity: `image_id` and/or any of `digests`. When both kinds are
 * known they must not point to different entries (then NULL). */
const struct hard_image *hard_policy_image(const struct hard_policy *p, const char *image_id,
					   const char *const *digests, size_t n_digests);
/* Row of the type with overrides applied, or NULL. */
const struct hard_agent *hard_policy_agent(const struct hard_policy *p, const char *type);

/* Which agent type a container runs as. `asked` is the marker's text or NULL. Rules: an unknown
 * name becomes "default"; the image's entry must allow the result; without a marker the one allowed
 * type, else "default" if allowed, else refused; `unmarked: refuse` refuses an unmarked container
 * whose image allows more than one type. AQE_E_REFUSED says what the policy allows, with file:line.
 */
AQE_MUST_CHECK int hard_agent_choose(const struct hard_policy *p, const struct hard_image *image,
				     const char *asked, const struct hard_agent **ret,
				     struct aqe_err *e);
/* The marker in a spec: annotation io.aqe.agent-type, else AQE_AGENT_TYPE, else AGENT_TYPE in
 * process.env, else `label` (may be NULL). NULL when there is none. */
const char *hard_agent_marker(const struct aqe_json *spec, const char *label);

/* True when the waiver is for this agent type and image (may be NULL), expired or not. */
bool hard_waiver_applies(const struct hard_waiver *w, const char *type,
			 const struct hard_image *image);
/* False when the clock is before the policy's last change, but for a day: it was set back, nobody
 * knows how far, and no waiver's expiry can be told. */
bool hard_policy_clock_ok(const struct hard_policy *p, int64_t now_s);
/* The waiver in force for a property at time `now_s`, or NULL. `image` may be NULL. */
const struct hard_waiver *hard_policy_waiver(const struct hard_policy *p, enum hard_prop prop,
					     const char *agent_type, const struct hard_image *image,
					     int64_t now_s);

/* One member of the policy file; the reader, the JSON Schema's test and the README's table walk it.
 */
struct hard_policy_key {
	const char *path; /* "images[].types" */
	const char *type; /* "string", "array", ... */
	bool required;
	const char *about;
};
extern const struct hard_policy_key HARD_POLICY_KEYS[];
extern const size_t HARD_POLICY_KEYS_COUNT;

#endif
