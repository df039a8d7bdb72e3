/* SPDX-License-Identifier: MIT */
/* What a sandbox is asked to be: an agent's type and identity, an image, and overrides, which may
 * only tighten. Pure. */
#ifndef AQE_SANDBOX_PLAN_H
#define AQE_SANDBOX_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "hardening/agents.h"
#include "shim/sandbox/fields.h"

#define SHIM_PLAN_FILE     "plan.json"
#define SHIM_AGENT_ID_MAX  64  /* characters of an agent's id */
#define SHIM_SANDBOX_NAME  112 /* bytes of a sandbox's name, with the NUL */
#define SHIM_PLAN_ENV_MAX  256
#define SHIM_PLAN_ARGS_MAX 1024

struct shim_plan {
	const char *name;       /* "agentic-qe-TYPE-ID8", made by shim_plan_name() */
	const char *agent_id;   /* [A-Za-z0-9_.-], 1 to SHIM_AGENT_ID_MAX */
	const char *agent_type; /* as asked; an unknown one has the ceilings of "default" */
	const char *engine;     /* "oci", "podman", "docker" */
	const char *image;      /* as given; NULL with `rootfs` */
	const char *rootfs;     /* engine "oci": a directory, or the unpacked image */
	const char *image_id;   /* "sha256:..." of the image's config; NULL with a plain rootfs */
	uint32_t cpus_milli, pids;
	uint64_t memory, disk;
	const char *network; /* "isolated", "whitelisted" */
	const char *user;    /* "UID:GID" or a name of the image; NULL: the image's */
	const char *workdir; /* NULL: the image's, else /app when it is there */
	struct shim_strs env, args;
	const char *restart;       /* "no", "on-failure", "always" */
	uint32_t grace_ms;         /* from SIGTERM to SIGKILL */
	uint32_t start_timeout_ms; /* of one start; a runtime that hangs is ended then */
	const char *health;        /* a shell command, or NULL: running is healthy */
	uint32_t health_interval_ms, health_timeout_ms, health_retries, health_start_ms;
	const char *oom;    /* at 95 % of memory: "off", "reclaim", "stop" */
	bool remove;        /* when it has ended */
	bool writable_root; /* asked for with --read-only=false: always a violation */
	int64_t created_s;
};
extern const struct shim_field SHIM_PLAN_FIELDS[];

/* The type's own ceilings and defaults: network, restart on failure, health check every 30 s within
 * 10 s, 3 retries after 5 s, 10 s of grace. */
void shim_plan_defaults(struct shim_plan *p, const struct hard_agent *agent);

bool shim_agent_id_ok(const char *id);
/* "agentic-qe-TYPE-" and the first 8 characters of the id; n > 1 adds "-n". */
void shim_plan_name(const char *type, const char *id, unsigned n, char ret[SHIM_SANDBOX_NAME]);

/* Judges the plan against the type. Every violation is a line "field: text\n" in `b`, in the order
 * of the struct; returns their number. */
size_t shim_plan_check(const struct shim_plan *p, const struct hard_agent *agent,
		       struct aqe_buf *b);

#endif
