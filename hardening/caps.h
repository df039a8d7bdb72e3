/* SPDX-License-Identifier: MIT */
/* Capability names (libcap). */
#ifndef AQE_HARDENING_CAPS_H
#define AQE_HARDENING_CAPS_H

#include <stdbool.h>

/* True for a name libcap knows, written exactly as the runtime-spec wants it ("CAP_CHOWN"). */
bool hard_cap_known(const char *name);
/* True for the capabilities that Docker, Podman or containerd grant by default (their union): their
 * presence is an engine's default, not somebody's request. */
bool hard_cap_is_default(const char *name);
/* Number of capabilities the running kernel knows. */
int hard_cap_count(void);

#endif
