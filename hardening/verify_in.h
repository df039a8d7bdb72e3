/* SPDX-License-Identifier: MIT */
/* The parts of hard_verify(): one function a subject. Only verify*.c and inspect*.c include
 * this. */
#ifndef AQE_HARDENING_VERIFY_IN_H
#define AQE_HARDENING_VERIFY_IN_H

#include "hardening/rules.h"
#include "hardening/verify.h"

/* One run over one document. */
struct hard_verifier {
	const struct hard_ctx *ctx;
	const struct aqe_json *spec;
	struct hard_report *r;
	const char *id; /* the container's, from the caller or cgroupsPath, or NULL */
	char id_buf[HARD_ID_HEX + 1];
	const struct hard_image *entry; /* the policy's entry that pins the image, or NULL */
	/* A rootless engine on cgroup v1: no cgroup can be made, so limits, device rules and
	 * cgroupsPath cannot be asked for. */
	bool no_cgroup;
};

/* The value at `pointer`, or NULL after reporting that it is absent, under `prop` and
 * HARD_MISSING_FIELD. */
const struct aqe_json *hard_verify_need(struct hard_verifier *v, enum hard_prop prop,
					const char *pointer, const char *wanted);
/* As above for member `name` of the object `at`. */
const struct aqe_json *hard_verify_member(struct hard_verifier *v, enum hard_prop prop,
					  const struct aqe_json *at, const char *name,
					  const char *wanted);
/* Foreign text for a message: quoted, escaped, cut; lives as long as the report. */
const char *hard_verify_quote(struct hard_verifier *v, const char *s);

void hard_verify_document(struct hard_verifier *v); /* unknown fields, version, hooks, privileged */
void hard_verify_image(struct hard_verifier *v);    /* digest, annotations */
void hard_verify_process(struct hard_verifier *v);  /* user's shape, capabilities, env, ... */
void hard_verify_ids(struct hard_verifier *v);      /* rootless, where the agent's ids land */
void hard_verify_mounts(struct hard_verifier *v);   /* mounts, tmpfs, sockets, root */
void hard_verify_linux(struct hard_verifier *v);    /* namespaces, paths, sysctl, seccomp */
void hard_verify_resources(struct hard_verifier *v); /* limits, device rules, cgroup */

/* Options of one mount against a rule. What is wrong goes to `prop`; a lack of privacy also to
 * HARD_PROPAGATION. `what` names the mount in messages. */
void hard_verify_options(struct hard_verifier *v, const struct aqe_json *mount,
			 const struct hard_opt_rule *rule, enum hard_prop prop);

/* One option of a mount (`at` only says where it stands): known, admitted by the rule, of a group
 * not seen before. *seen has bits 1 << enum hard_opt_group. */
void hard_verify_option(struct hard_verifier *v, const struct aqe_json *at, const char *option,
			const struct hard_opt_rule *rule, enum hard_prop prop, unsigned *seen);

#endif
