/* SPDX-License-Identifier: MIT */
/* What `aqe doctor` looks at: this host, a root folder, and a table of clients that is judged
 * against an agent type's policy. Nothing found is ever executed. */
#ifndef AQE_AQE_DOCTOR_H
#define AQE_AQE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "hardening/policy.h"
#include "netpolicy/policy.h"
#include "shim/core/arena.h"

enum shim_doctor_state { SHIM_DOCTOR_OK, SHIM_DOCTOR_WARN, SHIM_DOCTOR_FAIL };
/* "ok", "warn", "fail". */
const char *shim_doctor_state_name(enum shim_doctor_state s);

/* ---- this host ---- */

#define SHIM_DOCTOR_ROWS 48

struct shim_doctor_row {
	enum shim_doctor_state state;
	const char *what, *found, *fix; /* `fix` NULL: nothing to do */
};
/* Rows with their texts in `a`; what does not fit any more is one failing row. */
struct shim_doctor_rows {
	struct aqe_arena *a;
	struct shim_doctor_row row[SHIM_DOCTOR_ROWS];
	size_t n;
};
void shim_doctor_add(struct shim_doctor_rows *r, enum shim_doctor_state state, const char *what,
		     const char *fix, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

struct shim_doctor_host {
	const char *egress; /* path of the service's program */
	const char *proc;   /* "/proc" */
	const struct netpol_policy *net;
	const char *type;
};
/* The program, the kernel, the libraries, and what the policy names outside containers. */
void shim_doctor_host(const struct shim_doctor_host *h, struct shim_doctor_rows *r);

/* ---- clients ---- */

/* How a client finds its way, with the variables that the shim sets. */
enum shim_doctor_road {
	SHIM_DOCTOR_BY_PROXY = 1U << 0,   /* http_proxy, HTTPS_PROXY, ... */
	SHIM_DOCTOR_BY_NODE = 1U << 1,    /* NODE_USE_ENV_PROXY, in versions that know it */
	SHIM_DOCTOR_BY_JAVA = 1U << 2,    /* JAVA_TOOL_OPTIONS */
	SHIM_DOCTOR_BY_NAME = 1U << 3,    /* looks names up and connects to port 80 or 443 */
	SHIM_DOCTOR_BY_SOCKS = 1U << 4,   /* can be told to use SOCKS5 */
	SHIM_DOCTOR_TO_ADDRESS = 1U << 5, /* not a road: asks for an address, not a name */
};
enum shim_doctor_basis { SHIM_DOCTOR_MEASURED, SHIM_DOCTOR_DOCUMENTED, SHIM_DOCTOR_GUESS };
/* "measured", "documented", "guess". */
const char *shim_doctor_basis_name(enum shim_doctor_basis b);

#define SHIM_DOCTOR_PATHS 4

struct shim_doctor_client {
	const char *name;
	unsigned roads;  /* enum shim_doctor_road; 0: none, whatever the policy */
	unsigned port;   /* the one it needs when not 80 and 443; 0: those */
	const char *why; /* when there is no road by nature, or what else to know; may be NULL */
	const char *fix; /* for a client that fails; may be NULL */
	enum shim_doctor_basis basis;
	const char *source, *date;
	const char
		*paths[SHIM_DOCTOR_PATHS]; /* below a root; 3.N is any Python; none: not a file */
};
extern const struct shim_doctor_client SHIM_DOCTOR_CLIENTS[];
extern const size_t SHIM_DOCTOR_CLIENTS_COUNT;

enum shim_doctor_presence { SHIM_DOCTOR_UNKNOWN, SHIM_DOCTOR_ABSENT, SHIM_DOCTOR_PRESENT };
struct shim_doctor_seen {
	enum shim_doctor_presence presence;
	unsigned major, minor; /* of Node; 0: not known */
};
/* Looks for a client below a root folder, through no link. */
void shim_doctor_look(int root_fd, const struct shim_doctor_client *c,
		      struct shim_doctor_seen *ret);

struct shim_doctor_verdict {
	enum shim_doctor_state state;
	const char *road; /* by which it gets out, or NULL */
	const char *why, *fix;
};
/* Whether it gets out of a container of this type. `section`: the policy has a section network. */
void shim_doctor_judge(const struct netpol_type *t, bool section,
		       const struct shim_doctor_client *c, const struct shim_doctor_seen *seen,
		       struct shim_doctor_verdict *ret);

#endif
