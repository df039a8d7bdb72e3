/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/plan.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "shim/core/text.h"
#include "shim/sandbox/size.h"

#define F(member, kind)                                                        \
	{                                                                      \
#member, SHIM_FIELD_##kind, offsetof(struct shim_plan, member) \
	}
const struct shim_field SHIM_PLAN_FIELDS[] = {
	F(name, STR),
	F(agent_id, STR),
	F(agent_type, STR),
	F(engine, STR),
	F(image, STR),
	F(rootfs, STR),
	F(image_id, STR),
	F(cpus_milli, U32),
	F(pids, U32),
	F(memory, U64),
	F(disk, U64),
	F(network, STR),
	F(user, STR),
	F(workdir, STR),
	F(env, STRS),
	F(args, STRS),
	F(restart, STR),
	F(grace_ms, U32),
	F(start_timeout_ms, U32),
	F(health, STR),
	F(health_interval_ms, U32),
	F(health_timeout_ms, U32),
	F(health_retries, U32),
	F(health_start_ms, U32),
	F(oom, STR),
	F(remove, BOOL),
	F(created_s, I64),
	{ NULL, SHIM_FIELD_STR, 0 },
};
#undef F

void shim_plan_defaults(struct shim_plan *p, const struct hard_agent *agent)
{
	*p = (struct shim_plan){
		.engine = "oci",
		.cpus_milli = agent->cpus_milli,
		.pids = agent->pids,
		.memory = agent->memory_bytes,
		.disk = agent->disk_bytes,
		.network = agent->network,
		.restart = "on-failure",
		.grace_ms = 10000,
		.start_timeout_ms = 30000,
		.health_interval_ms = 30000,
		.health_timeout_ms = 10000,
		.health_retries = 3,
		.health_start_ms = 5000,
		.oom = "stop",
	};
}

bool shim_agent_id_ok(const char *id)
{
	size_t n = strlen(id);

	if (n == 0 || n > SHIM_AGENT_ID_MAX || !isalnum((unsigned char)id[0]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)id[i]) && !strchr("_.-", id[i]))
			return false;
	}
	return true;
}

void shim_plan_name(const char *type, const char *id, unsigned n, char ret[SHIM_SANDBOX_NAME])
{
	int len = snprintf(ret, SHIM_SANDBOX_NAME, "agentic-qe-%.64s-%.8s", type, id);

	if (n > 1)
		(void)snprintf(ret + len, SHIM_SANDBOX_NAME - (size_t)len, "-%u", n);
}

/* ---- the check ---- */

struct check {
	const struct shim_plan *p;
	const struct hard_agent *agent;
	struct aqe_buf *b;
	size_t n;
};

static void violation(struct check *c, const char *fmt, ...) AQE_PRINTF(2, 3);
static void violation(struct check *c, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a longer text is cut */
	va_end(ap);
	(void)aqe_buf_puts(c->b, text); /* the caller looks at the buffer */
	(void)aqe_buf_putc(c->b, '\n');
	c->n++;
}

static const char *quoted(const char *s, char ret[80])
{
	struct aqe_buf b = AQE_BUF_INIT(79);

	aqe_buf_quote(&b, s, 60);
	(void)snprintf(ret, 80, "%s", aqe_buf_str(&b));
	aqe_buf_done(&b);
	return ret;
}

static void check_identity(struct check *c)
{
	char q[80];

	if (!c->p->agent_id || !shim_agent_id_ok(c->p->agent_id))
		violation(c, "id: '%s' is not 1 to %d of A-Z a-z 0-9 _ . -",
			  quoted(c->p->agent_id ? c->p->agent_id : "", q), SHIM_AGENT_ID_MAX);
	if (!c->p->agent_type || !shim_agent_id_ok(c->p->agent_type))
		violation(c, "type: '%s' is not 1 to %d of A-Z a-z 0-9 _ . -",
			  quoted(c->p->agent_type ? c->p->agent_type : "", q), SHIM_AGENT_ID_MAX);
}

static void check_cpus(struct check *c)
{
	char asked[SHIM_SIZE_TEXT], most[SHIM_SIZE_TEXT];

	if (c->p->cpus_milli >= 1 && c->p->cpus_milli <= c->agent->cpus_milli)
		return;
	shim_cpus_format(c->p->cpus_milli, asked);
	shim_cpus_format(c->agent->cpus_milli, most);
	violation(c, "cpus: %s exceeds the CPU limit %s of %s", asked, most, c->agent->type);
}

static void check_bytes(struct check *c, const char *field, uint64_t value, uint64_t limit,
			uint64_t least)
{
	char asked[SHIM_SIZE_TEXT], most[SHIM_SIZE_TEXT];

	shim_size_format(value, asked);
	shim_size_format(value > limit ? limit : least, most);
	if (value > limit)
		violation(c, "%s: %s exceeds the %s limit %s of %s", field, asked, field, most,
			  c->agent->type);
	else if (value < least)
		violation(c, "%s: %s is less than %s, with which nothing starts", field, asked,
			  most);
}

static void check_limits(struct check *c)
{
	check_cpus(c);
	check_bytes(c, "memory", c->p->memory, c->agent->memory_bytes, 4U << 20);
	check_bytes(c, "disk", c->p->disk, c->agent->disk_bytes, 1U << 20);
	if (c->p->pids < 1 || c->p->pids > c->agent->pids)
		violation(c, "pids: %u is not within 1 to the limit %u of %s", c->p->pids,
			  c->agent->pids, c->agent->type);
}

static void check_isolation(struct check *c)
{
	const char *net = c->p->network ? c->p->network : "";
	char q[80];

	if (aqe_str_eq(net, "host"))
		violation(c, "network: the host network is never allowed");
	else if (!aqe_str_eq(net, "isolated") && !aqe_str_eq(net, "whitelisted"))
		violation(c, "network: '%s' is neither isolated nor whitelisted", quoted(net, q));
	else if (aqe_str_eq(net, "whitelisted") && !aqe_str_eq(c->agent->network, net))
		violation(c, "network: %s is isolated, it has no egress", c->agent->type);
	if (c->p->writable_root)
		violation(c, "read-only: a writable root is never allowed");
	if (c->p->user && (aqe_str_eq(c->p->user, "root") || aqe_str_eq(c->p->user, "0") ||
			   aqe_starts(c->p->user, "0:") || aqe_starts(c->p->user, "root:")))
		violation(c, "user: root is never allowed");
	if (c->p->workdir && !aqe_path_is_canonical(c->p->workdir))
		violation(c, "workdir: '%s' is not an absolute path", quoted(c->p->workdir, q));
}

/* "NAME=value", and not one of the two that say who the agent is. */
static void check_env(struct check *c)
{
	static const char *const OURS[] = { "AGENT_ID", "AGENT_TYPE", "AQE_AGENT_ID",
					    "AQE_AGENT_TYPE", NULL };
	char q[80], name[32];

	if (c->p->env.n > SHIM_PLAN_ENV_MAX)
		violation(c, "env: more than %d variables", SHIM_PLAN_ENV_MAX);
	for (size_t i = 0; i < c->p->env.n; i++) {
		const char *v = c->p->env.v[i], *eq = strchr(v, '=');

		if (!eq || eq == v) {
			violation(c, "env: '%s' is not NAME=value", quoted(v, q));
			continue;
		}
		(void)snprintf(name, sizeof(name), "%.*s", (int)(eq - v), v);
		if (aqe_str_in(name, OURS))
			violation(c, "env: %s is set by the manager", name);
	}
	if (c->p->args.n > SHIM_PLAN_ARGS_MAX)
		violation(c, "command: more than %d words", SHIM_PLAN_ARGS_MAX);
}

static void check_word(struct check *c, const char *field, const char *value,
		       const char *const *allowed)
{
	char q[80];

	if (!value || !aqe_str_in(value, allowed))
		violation(c, "%s: '%s' is not known", field, quoted(value ? value : "", q));
}

size_t shim_plan_check(const struct shim_plan *p, const struct hard_agent *agent, struct aqe_buf *b)
{
	static const char *const ENGINES[] = { "oci", "podman", "docker", NULL };
	static const char *const RESTARTS[] = { "no", "on-failure", "always", NULL };
	static const char *const OOMS[] = { "off", "reclaim", "stop", NULL };
	struct check c = { p, agent, b, 0 };

	check_identity(&c);
	check_word(&c, "engine", p->engine, ENGINES);
	check_limits(&c);
	check_isolation(&c);
	check_env(&c);
	check_word(&c, "restart", p->restart, RESTARTS);
	check_word(&c, "oom-prevention", p->oom, OOMS);
	return c.n;
}
