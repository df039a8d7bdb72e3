/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "hardening/policy.h"
#include "shim/aqe/audit_at.h"
#include "shim/aqe/audit_when.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/env.h"
#include "shim/exit.h"
#include "shim/input.h"
#include "shim/record.h"

#define HELP_MAX      ((size_t)64 << 10)
#define WIDTH_DEFAULT 80
#define WIDTH_MIN     20

/* ---- options ---- */

static int bad_value(const char *option, const char *value, const char *wanted, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf shown = AQE_BUF_INIT(256);

	aqe_buf_quote(&shown, value, 80);
	return aqe_err_set(e, AQE_E_USAGE, 0, "--%s: '%s' is not %s", option, aqe_buf_str(&shown),
			   wanted);
}

int shim_audit_take_u64(const char *option, const char *value, uint64_t max, uint64_t *ret,
			struct aqe_err *e)
{
	return aqe_parse_u64(value, max, ret) ? AQE_OK : bad_value(option, value, "a number", e);
}

static int take_time(struct shim_audit_args *args, int id, const char *value, struct aqe_err *e)
{
	const bool since = id == SHIM_OPT_SINCE;
	int64_t *at = since ? &args->filter.since_ns : &args->filter.until_ns;

	if (!shim_when_parse(value, since ? SHIM_WHEN_SINCE : SHIM_WHEN_UNTIL, args->now_ns, at))
		return bad_value(since ? "since" : "until", value,
				 "a time: 1h, 2d, today, 2026-01-31, 2026-01-31T12:30Z", e);
	args->has_since |= since;
	args->has_until |= !since;
	return AQE_OK;
}

static int take_format(struct shim_audit_args *args, const char *value, struct aqe_err *e)
{
	for (size_t i = 0; args->formats && args->formats[i]; i++) {
		if (strcmp(args->formats[i], value) == 0) {
			args->format = i;
			return AQE_OK;
		}
	}
	return bad_value("format", value, "a format of this command", e);
}

/* AQE_OK, an error, or 1 for an option that is not shared. */
static int take_shared(struct shim_audit_args *args, int id, const char *value, struct aqe_err *e)
{
	struct audit_filter *f = &args->filter;

	switch (id) {
	case SHIM_OPT_LOG:
		args->log = value;
		return AQE_OK;
	case SHIM_OPT_KEY_DIR:
		args->key_dir = value;
		return AQE_OK;
	case SHIM_OPT_SINCE:
	case SHIM_OPT_UNTIL:
		return take_time(args, id, value, e);
	case SHIM_OPT_AGENT:
		f->agent_id = value;
		return AQE_OK;
	case SHIM_OPT_TYPE:
		f->agent_type = value;
		return AQE_OK;
	case SHIM_OPT_DOMAIN:
		f->domain = value;
		return AQE_OK;
	case SHIM_OPT_CONTAINER:
		f->container = value;
		return AQE_OK;
	case SHIM_OPT_ACTION:
		return audit_action_parse(value, &f->action)
			       ? AQE_OK
			       : bad_value("action", value, "an action", e);
	case SHIM_OPT_KIND:
		return audit_kind_parse(value, &f->kind) ? AQE_OK
							 : bad_value("kind", value, "a kind", e);
	case SHIM_OPT_LIMIT:
		return shim_audit_take_u64("limit", value, INT64_MAX, &f->limit, e);
	case SHIM_OPT_OFFSET:
		return shim_audit_take_u64("offset", value, INT64_MAX, &f->offset, e);
	case SHIM_OPT_FORMAT:
		return take_format(args, value, e);
	default:
		return 1;
	}
}

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t); /* cannot fail for this clock */
	return t.tv_sec * SHIM_NS_PER_S + t.tv_nsec;
}

static int take_word(struct shim_audit_args *args, int id, struct aqe_cli *c, struct aqe_err *e)
{
	int rc = take_shared(args, id, c->value, e);

	if (rc == 1 && args->own)
		rc = args->own(args->self, id, c, e);
	else if (rc == 1)
		rc = bad_value("", c->value, "an argument of this command", e);
	return rc;
}

static int print_help(const struct aqe_cli_cmd *cmd)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(HELP_MAX);
	struct aqe_err e = AQE_ERR_INIT;

	aqe_cli_help(cmd, &b);
	return shim_audit_write(&b, &e) < 0 ? shim_audit_fail(cmd, &e) : SHIM_EXIT_OK;
}

int shim_audit_parse(struct shim_audit_args *args, const struct aqe_cli_cmd *cmd, int argc,
		     char **argv)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_cli c;
	int id;

	args->cmd = cmd;
	args->now_ns = now_ns();
	if (!args->arena) {
		(void)aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");
		return shim_audit_fail(cmd, &e);
	}
	aqe_cli_init(&c, cmd, argc, argv);
	while ((id = aqe_cli_next(&c, &e)) != AQE_CLI_END) {
		if (id == AQE_CLI_HELP)
			return print_help(cmd);
		if (id == AQE_CLI_OPERAND && !args->own)
			id = aqe_err_set(&e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c.value);
		else if (id > 0 || id == AQE_CLI_OPERAND)
			id = take_word(args, id, &c, &e);
		if (id < 0)
			return shim_audit_fail(cmd, &e);
	}
	return SHIM_AUDIT_RUN;
}

/* ---- the log ---- */

/* The folder that the policy names for this user, or NULL, and how often it wants signatures. A
 * policy that cannot be read says so in the error: the log would be looked for in the wrong place.
 */
static int policy_place(const struct shim_audit_args *args, const char **ret, uint32_t *ret_every,
			struct aqe_err *e)
{
	const bool rootless = geteuid() != 0 || shim_state_in_userns();
	struct hard_policy *p = NULL;
	const char *path;
	int rc = hard_policy_load(HARD_POLICY_DIR,
				  rootless ? shim_env_policy_dir(args->arena, environ) : NULL, &p,
				  e);

	*ret = NULL;
	if (rc == AQE_E_ABSENT)
		return AQE_OK;
	if (rc < 0)
		return aqe_err_wrap(e, "policy (--log names a log without it)");
	*ret_every = p->audit.sign_every;
	path = rootless ? p->audit.user_path : p->audit.path;
	if (path) {
		*ret = aqe_arena_dup(args->arena, path);
		if (!*ret)
			rc = aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	}
	hard_policy_free(p);
	return rc;
}

int shim_audit_place(const struct shim_audit_args *args, enum audit_mode mode,
		     struct audit_opts *ret, struct aqe_err *e)
{
	const char *path = args->log;
	struct audit_opts keys;
	uint32_t every = 0; /* the default */
	int rc = AQE_OK;

	if (!path)
		rc = policy_place(args, &path, &every, e);
	if (rc == AQE_OK && path)
		rc = shim_audit_at_path(args->arena, path, mode, ret, e);
	else if (rc == AQE_OK)
		rc = shim_audit_at(args->arena, environ, mode, ret, e);
	if (rc == AQE_OK)
		ret->sign_every = every;
	if (rc == AQE_OK && args->key_dir) {
		rc = shim_audit_at_path(args->arena, args->key_dir, AUDIT_WRITE, &keys, e);
		if (rc == AQE_OK)
			ret->key_dir = keys.dir;
	}
	return rc;
}

int shim_audit_open(const struct shim_audit_args *args, enum audit_mode mode,
		    struct audit_log **ret, struct aqe_err *e)
{
	struct audit_opts o = { .mode = mode };
	int rc = shim_audit_place(args, mode, &o, e);

	if (rc < 0)
		return rc;
	rc = audit_open(&o, ret, e);
	return rc == AQE_E_ABSENT && o.dir
		       ? aqe_err_set(e, AQE_E_ABSENT, 0, "there is no audit log in '%.300s'", o.dir)
		       : rc;
}

/* ---- output ---- */

int shim_audit_fail(const struct aqe_cli_cmd *cmd, const struct aqe_err *e)
{
	const size_t n = strlen(cmd->name);
	const bool named = strncmp(e->text, cmd->name, n) == 0 && e->text[n] == ':';

	if (named)
		(void)fprintf(stderr, "%s\n", e->text);
	else
		(void)fprintf(stderr, "%s: %s\n", cmd->name, e->text);
	if (e->code == AQE_E_USAGE)
		return SHIM_EXIT_USAGE;
	return e->code == AQE_E_NOMEM || e->code == AQE_E_INTERNAL ? SHIM_EXIT_UNDECIDED
								   : SHIM_EXIT_FAILED;
}

int shim_audit_write(struct aqe_buf *b, struct aqe_err *e)
{
	int rc = aqe_buf_ok(b, e);

	if (rc < 0)
		return rc;
	if (b->len && (fwrite(b->p, 1, b->len, stdout) != b->len || fflush(stdout) == EOF)) {
		(void)aqe_err_set(e, AQE_E_SYS, errno, "write to standard output");
		shim_output_told();
		return AQE_E_SYS;
	}
	aqe_buf_clear(b);
	return AQE_OK;
}

size_t shim_audit_width(void)
{
	struct winsize w;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col < WIDTH_MIN)
		return WIDTH_DEFAULT;
	return w.ws_col;
}

bool shim_audit_colour(void)
{
	const char *off = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(off && *off) && term && strcmp(term, "dumb") != 0;
}
