/* SPDX-License-Identifier: MIT */
/* The policy's section `audit`. */
#ifndef AQE_HARDENING_POLICY_AUDIT_H
#define AQE_HARDENING_POLICY_AUDIT_H

#include <stdint.h>

enum hard_audit_mode {
	HARD_AUDIT_OFF,      /* nothing is recorded */
	HARD_AUDIT_OPTIONAL, /* what cannot be recorded is counted as lost, and goes on */
	HARD_AUDIT_REQUIRED, /* what cannot be recorded is refused: the default */
};
#define HARD_AUDIT_SIGN_EVERY 1000

/* How the runtime's decisions are recorded. */
struct hard_audit {
	enum hard_audit_mode mode;
	/* Folder of the log, NULL: the usual one. A rootless runtime's log is its user's own, so
	 * only the user's policy can move it. */
	const char *path, *user_path;
	uint32_t sign_every; /* rows from one signed checkpoint to the next */
};

#endif
