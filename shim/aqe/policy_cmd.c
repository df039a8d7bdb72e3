/* SPDX-License-Identifier: MIT */
#include "shim/aqe/policy_cmd.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/exit.h"
#include "shim/input.h"
#include "shim/net_policy.h"

#define PATHS_MAX ((size_t)64 << 10)

/* ---- words ---- */

static int read_format(const char *s, struct shim_policy_args *ret, struct aqe_err *e)
{
	if (strcmp(s, "text") != 0 && strcmp(s, "json") != 0)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--format: wanted text or json");
	ret->json = s[0] == 'j';
	return AQE_OK;
}

static int read_proto(const char *s, struct shim_policy_args *ret, struct aqe_err *e)
{
	for (unsigned i = 0; i < NETPOL_PROTO_COUNT; i++) {
		if (strcmp(s, netpol_proto_name((enum netpol_proto)i)) == 0) {
			ret->proto = (enum netpol_proto)i;
			return AQE_OK;
		}
	}
	return aqe_err_set(e, AQE_E_USAGE, 0,
			   "--proto: wanted any, http, connect, tls, socks or dns");
}

static int add_word(const char **list, size_t *n, const char *s, struct aqe_err *e)
{
	if (*n == SHIM_POLICY_OPERANDS)
		return aqe_err_set(e, AQE_E_USAGE, 0, "more than %d words", SHIM_POLICY_OPERANDS);
	list[(*n)++] = s;
	return AQE_OK;
}

static int read_word(int id, const char *value, struct shim_policy_args *ret, struct aqe_err *e)
{
	if (id == AQE_CLI_OPERAND)
		return add_word(ret->operand, &ret->n, value, e);
	switch ((enum shim_policy_opt)id) {
	case SHIM_POLICY_FORMAT:
		return read_format(value, ret, e);
	case SHIM_POLICY_PROTO:
		return read_proto(value, ret, e);
	case SHIM_POLICY_CIDR:
		return add_word(ret->cidr, &ret->n_cidr, value, e);
	case SHIM_POLICY_FILE:
		ret->file = value;
		break;
	case SHIM_POLICY_ALLOW:
		ret->allow = value;
		break;
	case SHIM_POLICY_EFFECTIVE:
		ret->effective = value;
		break;
	case SHIM_POLICY_STATE:
		ret->state = value;
		break;
	case SHIM_POLICY_TYPE:
		ret->type = value;
		break;
	case SHIM_POLICY_ROOTFS:
		ret->rootfs = value;
		break;
	case SHIM_POLICY_BATCH:
		ret->batch = true;
		break;
	case SHIM_POLICY_STRICT:
		ret->strict = true;
		break;
	case SHIM_POLICY_RESOLVE:
		ret->resolve = true;
		break;
	case SHIM_POLICY_NO_AUDIT:
		ret->no_audit = true;
		break;
	}
	return AQE_OK;
}

static int usage(const struct aqe_cli_cmd *cmd, struct aqe_err *e)
{
	return shim_policy_fail(cmd, SHIM_EXIT_USAGE, e);
}

int shim_policy_args(const struct aqe_cli_cmd *cmd, int argc, char **argv, size_t min, size_t max,
		     struct shim_policy_args *ret)
{
	AQE_AUTO_BUF struct aqe_buf help = AQE_BUF_INIT(SHIM_POLICY_OUT);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_cli c;
	int id;

	memset(ret, 0, sizeof(*ret));
	aqe_cli_init(&c, cmd, argc, argv);
	while ((id = aqe_cli_next(&c, &e)) != AQE_CLI_END) {
		if (id == AQE_CLI_HELP) {
			aqe_cli_help(cmd, &help);
			return shim_policy_print(&help, SHIM_EXIT_OK);
		}
		if (id == AQE_E_USAGE || read_word(id, c.value, ret, &e))
			return usage(cmd, &e);
	}
	if (ret->batch)
		min = max = 0;
	if (ret->n < min)
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "missing argument; see --help");
	if (ret->n > max)
		(void)aqe_err_set(&e, AQE_E_USAGE, 0, "surplus argument '%.64s'",
				  ret->operand[max]);
	return e.code ? usage(cmd, &e) : -1;
}

/* ---- the policy ---- */

int shim_policy_read(const struct shim_policy_args *args, struct hard_policy **ret,
		     struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(PATHS_MAX);
	const char *user;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	/* root's own directory is no tier, as at a start */
	user = geteuid() == 0 ? NULL : shim_env_policy_dir(a, environ);
	rc = args->file ? hard_policy_load_file(args->file, ret, e)
			: hard_policy_load(HARD_POLICY_DIR, user, ret, e);
	if (rc != AQE_E_ABSENT || args->file)
		return rc;
	(void)fprintf(stderr, "aqe policy: %s; the built-in table is shown\n", e->text);
	*e = (struct aqe_err)AQE_ERR_INIT;
	return hard_policy_empty(ret, e);
}

int shim_policy_load(const struct shim_policy_args *args, struct netpol_policy **ret,
		     struct aqe_err *e)
{
	struct hard_policy *p = NULL;
	int rc = shim_policy_read(args, &p, e);

	if (!rc)
		rc = shim_net_policy_build(p, ret, e);
	hard_policy_free(p);
	return rc;
}

/* ---- output ---- */

int shim_policy_fail(const struct aqe_cli_cmd *cmd, int status, const struct aqe_err *e)
{
	(void)fprintf(stderr, "%s: %s\n", cmd->name, aqe_cli_fault(cmd, e));
	return status;
}

int shim_policy_print(const struct aqe_buf *b, int status)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (aqe_buf_ok(b, &e)) {
		(void)fprintf(stderr, "aqe: %s\n", e.text);
		return SHIM_EXIT_UNDECIDED;
	}
	if ((b->len && fwrite(b->p, 1, b->len, stdout) != b->len) || fflush(stdout) != 0) {
		shim_output_lost("aqe");
		return SHIM_EXIT_UNDECIDED;
	}
	return status;
}

void shim_policy_where(struct aqe_buf *b, const struct netpol_where *w)
{
	(void)aqe_buf_puts(b, w->file);
	if (w->line)
		(void)aqe_buf_addf(b, ":%u", w->line);
}

struct aqe_json *shim_policy_where_json(struct aqe_arena *a, const struct netpol_where *w)
{
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || aqe_json_set(a, o, "file", aqe_json_new_str(a, w->file)) ||
	    (w->line && aqe_json_set(a, o, "line", aqe_json_new_u64(a, w->line))))
		return NULL;
	return o;
}

struct aqe_json *shim_policy_rule_json(struct aqe_arena *a, const struct netpol_rule *r)
{
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || aqe_json_set(a, o, "entry", aqe_json_new_str(a, r->text)) ||
	    aqe_json_set(a, o, "where", shim_policy_where_json(a, &r->where)) ||
	    (r->warning && aqe_json_set(a, o, "warning", aqe_json_new_str(a, r->warning))))
		return NULL;
	return o;
}

const char *shim_policy_verdict(enum netpol_verdict v)
{
	static const char *const names[] = { [NETPOL_DENY] = "deny",
					     [NETPOL_LIMITED] = "limit",
					     [NETPOL_INVALID] = "invalid",
					     [NETPOL_ALLOW] = "allow" };

	return names[v];
}

bool shim_policy_answer_json(struct aqe_arena *a, struct aqe_json *o, const struct netpol_answer *n)
{
	const char *reason = netpol_reason_name(n->reason);

	if (aqe_json_set(a, o, "verdict", aqe_json_new_str(a, shim_policy_verdict(n->verdict))) ||
	    aqe_json_set(a, o, "reason", aqe_json_new_str(a, reason)) ||
	    aqe_json_set(a, o, "wouldDeny", aqe_json_new_bool(a, n->would_deny)))
		return false;
	if (n->reason != NETPOL_REASON_HOST_INVALID && n->reason != NETPOL_REASON_NO_POLICY &&
	    aqe_json_set(a, o, "host", aqe_json_new_str(a, n->host.text)))
		return false;
	if (n->why && aqe_json_set(a, o, "why", aqe_json_new_str(a, n->why)))
		return false;
	if (n->retry_ms && aqe_json_set(a, o, "retryAfterMs", aqe_json_new_u64(a, n->retry_ms)))
		return false;
	return !n->rule || !aqe_json_set(a, o, "rule", shim_policy_rule_json(a, n->rule));
}
