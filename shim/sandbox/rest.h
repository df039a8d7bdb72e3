/* SPDX-License-Identifier: MIT */
/* Requests to an engine's REST API over its unix socket. */
#ifndef AQE_SANDBOX_REST_H
#define AQE_SANDBOX_REST_H

#include <stdint.h>

#include "shim/core/json.h"

struct shim_rest {
	const char *engine; /* "podman", "docker": for messages */
	const char *socket; /* absolute path */
	const char *api;    /* "/v1.40": the version both sides speak */
	struct aqe_arena *arena;
};

/* The engine's socket: CONTAINER_HOST or DOCKER_HOST when they name a unix socket, else the usual
 * places. AQE_E_ABSENT: none is there or it does not answer, and the text says how to get one; a
 * host reached by tcp or ssh, or an engine with none of our API's versions, is AQE_E_REFUSED. */
AQE_MUST_CHECK int shim_rest_open(struct aqe_arena *a, const char *engine, struct shim_rest *ret,
				  struct aqe_err *e);

struct shim_rest_call {
	const char *method;
	const char *path; /* with query, below the API's version; "/libpod/": Podman's own */
	const struct aqe_json *body; /* NULL: none */
	unsigned timeout_ms;         /* 0: AQE_ENGINE_TIMEOUT seconds, or 30 */
	/* Takes the answer's body when the status is 2xx instead of *ret; may be NULL. */
	int (*sink)(void *arg, const void *p, size_t n);
	void *arg;
};
/* 0: an answer came. *ret_status is its HTTP status; *ret (may be NULL) its JSON, NULL when it has
 * none. AQE_E_ABSENT: the engine does not answer at its socket. */
AQE_MUST_CHECK int shim_rest_do(const struct shim_rest *r, const struct shim_rest_call *c,
				int *ret_status, struct aqe_json **ret, struct aqe_err *e);
/* An error of the answer: the engine's own "message" or "cause". A refusal of the shim's is
 * AQE_E_REFUSED. */
int shim_rest_fault(const struct shim_rest *r, const char *doing, int status,
		    const struct aqe_json *answer, struct aqe_err *e);
/* A name as a part of a path: what is not unreserved becomes %XX; "/" and ":" are kept. */
const char *shim_rest_quote(struct aqe_arena *a, const char *name);

#endif
