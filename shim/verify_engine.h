/* SPDX-License-Identifier: MIT */
/* Asking an engine about one of its containers, for `verify --container ENGINE:NAME`. */
#ifndef AQE_SHIM_VERIFY_ENGINE_H
#define AQE_SHIM_VERIFY_ENGINE_H

#include "shim/core/buf.h"
#include "shim/core/err.h"

/* AQE_E_USAGE unless the word is "podman:NAME" or "docker:NAME". */
AQE_MUST_CHECK int shim_engine_check(const char *word, struct aqe_err *e);
/* Runs the engine's own inspect and info commands, by absolute path and without a shell. */
AQE_MUST_CHECK int shim_engine_ask(const char *word, struct aqe_buf *inspect, struct aqe_buf *info,
				   struct aqe_err *e);

#endif
