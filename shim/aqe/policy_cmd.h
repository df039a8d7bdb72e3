/* SPDX-License-Identifier: MIT */
/* What the commands below `aqe policy` have in common. */
#ifndef AQE_AQE_POLICY_CMD_H
#define AQE_AQE_POLICY_CMD_H

#include <stdbool.h>
#include <stddef.h>

#include "hardening/policy.h"
#include "netpolicy/decide.h"
#include "netpolicy/policy.h"
#include "shim/core/buf.h"
#include "shim/core/cli.h"
#include "shim/core/err.h"
#include "shim/core/json.h"

#define SHIM_POLICY_OPERANDS 64
#define SHIM_POLICY_OUT      ((size_t)16 << 20)

/* Ids of options; each command's table has those it takes. */
enum shim_policy_opt {
	SHIM_POLICY_FORMAT = 1,
	SHIM_POLICY_FILE,
	SHIM_POLICY_BATCH,
	SHIM_POLICY_ALLOW,
	SHIM_POLICY_STRICT,
	SHIM_POLICY_EFFECTIVE,
	SHIM_POLICY_PROTO,
	SHIM_POLICY_RESOLVE,
	SHIM_POLICY_CIDR,
	SHIM_POLICY_STATE,
	SHIM_POLICY_NO_AUDIT,
	SHIM_POLICY_TYPE,
	SHIM_POLICY_ROOTFS,
};
#define SHIM_POLICY_OPT_FORMAT                                                      \
	{                                                                           \
		"format", 0, "FORMAT", "text (default) or json", SHIM_POLICY_FORMAT \
	}
#define SHIM_POLICY_OPT_FILE                                                            \
	{                                                                               \
		"policy", 0, "FILE",                                                    \
			"read this policy file instead of the system's and the user's", \
			SHIM_POLICY_FILE                                                \
	}

struct shim_policy_args {
	bool json, batch, strict, resolve, no_audit;
	const char *file, *allow, *effective, *state, *type, *rootfs;
	enum netpol_proto proto;
	const char *cidr[SHIM_POLICY_OPERANDS];
	size_t n_cidr;
	const char *operand[SHIM_POLICY_OPERANDS];
	size_t n;
};
/* Reads the words. -1: go on; else the exit status of a command that is done (help, bad usage).
 * Without --batch the number of operands must be in [min, max]; with it there are none. */
int shim_policy_args(const struct aqe_cli_cmd *cmd, int argc, char **argv, size_t min, size_t max,
		     struct shim_policy_args *ret);

/* The policy's files, or an empty policy with a note on stderr when there is none. */
AQE_MUST_CHECK int shim_policy_read(const struct shim_policy_args *args, struct hard_policy **ret,
				    struct aqe_err *e);
/* The network policy in force, or the built-in table with that note. */
AQE_MUST_CHECK int shim_policy_load(const struct shim_policy_args *args, struct netpol_policy **ret,
				    struct aqe_err *e);
/* "aqe policy NAME: TEXT" on stderr; returns `status`. */
int shim_policy_fail(const struct aqe_cli_cmd *cmd, int status, const struct aqe_err *e);
/* Writes the buffer to stdout; returns `status`, or SHIM_EXIT_UNDECIDED when that fails. */
int shim_policy_print(const struct aqe_buf *b, int status);

/* "built-in", or "FILE:LINE". */
void shim_policy_where(struct aqe_buf *b, const struct netpol_where *w);
/* Members of JSON documents: {"file":...,"line":...}, and a rule; NULL without memory. */
struct aqe_json *shim_policy_where_json(struct aqe_arena *a, const struct netpol_where *w);
struct aqe_json *shim_policy_rule_json(struct aqe_arena *a, const struct netpol_rule *r);
/* An answer's members put into `o`; false without memory. */
bool shim_policy_answer_json(struct aqe_arena *a, struct aqe_json *o,
			     const struct netpol_answer *n);
/* What is in force of the cache for a type: lines, and an object (NULL without memory). */
AQE_MUST_CHECK int shim_policy_cache_text(struct aqe_buf *b, const struct hard_policy *p,
					  const char *type, struct aqe_err *e);
struct aqe_json *shim_policy_cache_json(struct aqe_arena *a, const struct hard_policy *p,
					const char *type);
/* "allow", "deny", "limit", "invalid". */
const char *shim_policy_verdict(enum netpol_verdict v);

/* The commands; argv[0] is their own name. */
int shim_policy_show(int argc, char **argv);
int shim_policy_check(int argc, char **argv);
int shim_policy_match(int argc, char **argv);
int shim_policy_address(int argc, char **argv);
int shim_policy_simulate(int argc, char **argv);
int shim_policy_reload(int argc, char **argv);
int shim_policy_serve(int argc, char **argv);

#endif
