/* SPDX-License-Identifier: MIT */
/* The parts of hard_verify_inspect(): one function a subject. Only inspect*.c includes this. */
#ifndef AQE_HARDENING_INSPECT_IN_H
#define AQE_HARDENING_INSPECT_IN_H

#include "hardening/inspect.h"
#include "hardening/verify_in.h"

/* One run over one object. */
struct hard_inspector {
	struct hard_verifier v; /* v.spec is the object */
	struct hard_ctx ctx;    /* v.ctx points here */
	enum oci_inspect_kind kind;
	bool podman;
};

void hard_inspect_image_id(struct hard_inspector *i); /* container: digest */
void hard_inspect_process(struct hard_inspector *i);  /* user, capabilities, lsm, rlimits, env */
void hard_inspect_options(struct hard_inspector *i);  /* SecurityOpt: nnp, seccomp, labels */
void hard_inspect_command(struct hard_inspector *i);  /* podman's record of its own options */
void hard_inspect_mounts(struct hard_inspector *i);
void hard_inspect_tmpfs(struct hard_inspector *i);
void hard_inspect_isolation(struct hard_inspector *i); /* namespaces, network, user namespace */
void hard_inspect_limits(struct hard_inspector *i);    /* pids, memory, cpu, devices, sysctl */
void hard_inspect_image(struct hard_inspector *i);     /* an image document */
void hard_inspect_info(struct hard_inspector *i);      /* an info document */

/* Shared. Members by JSON pointer below the object, after reporting what is absent. */
const struct aqe_json *hard_inspect_need(struct hard_inspector *i, enum hard_prop prop,
					 const char *pointer, const char *wanted);
/* The member, or NULL: absent or null. Nothing is reported. */
const struct aqe_json *hard_inspect_get(const struct hard_inspector *i, const char *pointer);
/* Reports the member (when it is there and not null) unless it is empty text, an empty list or
 * object, 0 or false. */
void hard_inspect_empty(struct hard_inspector *i, enum hard_prop prop, const char *pointer,
			const char *wanted);
/* A user as engines write it, UID[:GID]: decimal, no sign, no leading zero, 1 to 2^31-1. `gid`
 * true: both are wanted. */
void hard_inspect_user(struct hard_inspector *i, const struct aqe_json *user, bool gid);
/* The environment, the labels and annotations of a Config. */
void hard_inspect_env(struct hard_inspector *i, const struct aqe_json *env);
void hard_inspect_notes(struct hard_inspector *i, const struct aqe_json *notes);
/* Labels: only names that make some engine or runtime act are wrong. */
void hard_inspect_labels(struct hard_inspector *i, const struct aqe_json *labels);
/* The policy's entry for what the document says of its image, in the terms of hard_policy_image();
 * a manifest digest alone will do. NULL when there is none. */
const struct hard_image *hard_inspect_entry(const struct hard_inspector *i);
/* True when the policy pins this manifest digest, or this image id. */
bool hard_inspect_pinned(const struct hard_inspector *i, const char *digest);
bool hard_inspect_pinned_id(const struct hard_inspector *i, const char *id);
/* `c 1:3 rwm`: a device every container has. */
bool hard_inspect_device_rule(const char *rule);
/* Calls `fn` with every piece of `text` between commas (a copy in the report's arena). */
void hard_inspect_split(struct hard_inspector *i, const char *text,
			void (*fn)(struct hard_inspector *i, const char *word, void *arg),
			void *arg);

#endif
