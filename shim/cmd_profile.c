/* SPDX-License-Identifier: MIT */
#include "shim/cmds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hardening/agents.h"
#include "hardening/knowledge.h"
#include "hardening/props.h"
#include "hardening/rules.h"
#include "hardening/seccomp.h"
#include "hardening/seccomp_proof.h"
#include "oci/inspect_schema.h"
#include "shim/core/cleanup.h"
#include "shim/core/cli.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define COLUMNS     80
#define INDENT      11 /* column of the texts below a property's name */
#define OUT_MAX     ((size_t)256 << 10)
#define JSON_MAX    ((size_t)8 << 20)
#define MILLI       1000
#define MEBI        (1024ULL * 1024)
#define ALWAYS_DENY "the system calls no filter may let through"

enum format { FORMAT_TEXT, FORMAT_JSON };
enum opt { OPT_FORMAT = 1 };

static const struct aqe_cli_opt OPTS[] = {
	{ "format", 0, "FORMAT", "text (default) or json", OPT_FORMAT },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = {
	.name = "profile",
	.synopsis = "[--format text|json]",
	.about = "Prints the frozen profile: each property with what it wants and what a rewrite "
		 "does, "
		 "the ceilings of the agent types, and the system calls that no filter may let "
		 "through. Nothing changes it: no file, flag or variable.",
	.opts = OPTS,
};

/* ---- text ---- */

/* Adds words of `text` in lines of at most COLUMNS; the first begins at column `used`, the others
 * at `indent`. */
static void add_wrapped(struct aqe_buf *b, const char *text, size_t indent, size_t used)
{
	while (*text) {
		const size_t n = strcspn(text, " ");

		if (used > indent && used + 1 + n > COLUMNS) {
			(void)aqe_buf_addf(b, "\n%*s", (int)indent, "");
			used = indent;
		} else if (used > indent) {
			(void)aqe_buf_putc(b, ' ');
			used++;
		}
		(void)aqe_buf_add(b, text, n);
		used += n;
		text += n + (text[n] == ' ');
	}
	(void)aqe_buf_putc(b, '\n');
}

static void add_labelled(struct aqe_buf *b, const char *label, const char *text)
{
	(void)aqe_buf_addf(b, "  %-*s", INDENT - 2, label);
	add_wrapped(b, text, INDENT, INDENT);
}

static void text_properties(struct aqe_buf *b)
{
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++) {
		const struct hard_prop_row *row = &HARDENING_PROFILE[i];

		(void)aqe_buf_addf(b, "%s%s\n", row->id,
				   row->waivable ? "" : " (can never be waived)");
		add_labelled(b, "wanted", row->required);
		add_labelled(b, "why", row->why);
		add_labelled(b, "rewrite", row->rewrite);
		add_labelled(b, "fix", row->fix);
	}
}

static void text_agent(struct aqe_buf *b, const struct hard_agent *a)
{
	(void)aqe_buf_addf(b, "%-26s %2u.%u %6llum %6llum %5u  %-6s  %s\n", a->type,
			   a->cpus_milli / MILLI, a->cpus_milli % MILLI / 100,
			   (unsigned long long)(a->memory_bytes / MEBI),
			   (unsigned long long)(a->disk_bytes / MEBI), a->pids, a->risk,
			   a->network);
}

static void text_agents(struct aqe_buf *b)
{
	(void)aqe_buf_addf(b, "\n%-26s %4s %7s %7s %5s  %-6s  %s\n", "agent type", "cpus", "memory",
			   "disk", "pids", "risk", "network");
	text_agent(b, hard_agent_profile());
	for (size_t i = 0; i < HARD_AGENTS_COUNT; i++)
		text_agent(b, &HARD_AGENTS[i]);
}

static void text_syscalls(struct aqe_buf *b)
{
	size_t used = 0;

	(void)aqe_buf_puts(b, "\n" ALWAYS_DENY ":\n");
	for (size_t i = 0; i < HARD_SECCOMP_FORBIDDEN_COUNT; i++) {
		const char *name = HARD_SECCOMP_FORBIDDEN[i];
		const size_t n = strlen(name);

		if (used + 1 + n > COLUMNS) {
			(void)aqe_buf_putc(b, '\n');
			used = 0;
		}
		used += n + (used ? 1 : 2);
		(void)aqe_buf_addf(b, "%s%s", used == n + 2 ? "  " : " ", name);
	}
	(void)aqe_buf_putc(b, '\n');
}

/* ---- json ---- */

static int put_str(struct aqe_arena *a, struct aqe_json *o, const char *key, const char *s)
{
	return aqe_json_set(a, o, key, aqe_json_new_str(a, s));
}

static int put_u64(struct aqe_arena *a, struct aqe_json *o, const char *key, uint64_t n)
{
	return aqe_json_set(a, o, key, aqe_json_new_u64(a, n));
}

static struct aqe_json *json_property(struct aqe_arena *a, const struct hard_prop_row *row)
{
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || put_str(a, o, "id", row->id) || put_str(a, o, "required", row->required) ||
	    put_str(a, o, "why", row->why) || put_str(a, o, "rewrite", row->rewrite) ||
	    put_str(a, o, "fix", row->fix) ||
	    aqe_json_set(a, o, "waivable", aqe_json_new_bool(a, row->waivable)))
		return NULL;
	return o;
}

static struct aqe_json *json_agent(struct aqe_arena *a, const struct hard_agent *row)
{
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || put_str(a, o, "type", row->type) || put_u64(a, o, "cpusMilli", row->cpus_milli) ||
	    put_u64(a, o, "memoryBytes", row->memory_bytes) ||
	    put_u64(a, o, "diskBytes", row->disk_bytes) || put_u64(a, o, "pids", row->pids) ||
	    put_str(a, o, "risk", row->risk) || put_str(a, o, "network", row->network) ||
	    put_str(a, o, "description", row->description))
		return NULL;
	return o;
}

static struct aqe_json *json_properties(struct aqe_arena *a)
{
	struct aqe_json *list = aqe_json_new_array(a);

	for (unsigned i = 0; list && i < HARD_PROP_COUNT; i++) {
		if (aqe_json_append(list, json_property(a, &HARDENING_PROFILE[i])))
			return NULL;
	}
	return list;
}

static struct aqe_json *json_agents(struct aqe_arena *a)
{
	struct aqe_json *list = aqe_json_new_array(a);

	for (size_t i = 0; list && i < HARD_AGENTS_COUNT; i++) {
		if (aqe_json_append(list, json_agent(a, &HARD_AGENTS[i])))
			return NULL;
	}
	return list;
}

/* ---- json: what is known about others, with source and date ---- */

/* One object a row of a table; NULL when memory is exhausted. */
typedef struct aqe_json *row_fn(struct aqe_arena *a, size_t i);

static struct aqe_json *json_rows(struct aqe_arena *a, row_fn *fn, size_t n)
{
	struct aqe_json *list = aqe_json_new_array(a);

	for (size_t i = 0; list && i < n; i++) {
		if (aqe_json_append(list, fn(a, i)))
			return NULL;
	}
	return list;
}

static struct aqe_json *row_source(struct aqe_arena *a, size_t i)
{
	const struct hard_source *row = &HARD_SOURCES[i];
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || put_str(a, o, "table", row->table) || put_str(a, o, "about", row->about) ||
	    put_str(a, o, "source", row->source) || put_str(a, o, "date", row->date))
		return NULL;
	return o;
}

static struct aqe_json *row_cve(struct aqe_arena *a, size_t i)
{
	const struct hard_cve *row = &HARD_CVES[i];
	struct aqe_json *o = aqe_json_new_object(a), *props = aqe_json_new_array(a);
	size_t n = 0;

	while (row->ids[n])
		n++;
	for (unsigned p = 0; props && p < HARD_PROP_COUNT; p++) {
		if (hard_cve_is_for(row, (enum hard_prop)p) &&
		    aqe_json_append(props, aqe_json_new_str(a, HARDENING_PROFILE[p].id)))
			return NULL;
	}
	if (!o || aqe_json_set(a, o, "ids", aqe_json_new_strs(a, row->ids, n)) ||
	    put_str(a, o, "where", row->where) || put_str(a, o, "condition", row->condition) ||
	    put_str(a, o, "defence", row->defence) || aqe_json_set(a, o, "properties", props) ||
	    put_str(a, o, "source", row->source) || put_str(a, o, "date", row->date))
		return NULL;
	return o;
}

static struct aqe_json *row_argument(struct aqe_arena *a, size_t i)
{
	const struct hard_arg_rule *row = &HARD_ARG_RULES[i];
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || put_str(a, o, "call", row->call) || put_str(a, o, "argument", row->label) ||
	    put_u64(a, o, "value", row->value) || put_u64(a, o, "mask", row->mask))
		return NULL;
	return o;
}

static struct aqe_json *row_annotation(struct aqe_arena *a, size_t i)
{
	const struct hard_active *row = &HARD_ACTIVE[i];
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || put_str(a, o, "name", row->name) ||
	    aqe_json_set(a, o, "prefix", aqe_json_new_bool(a, row->prefix)) ||
	    aqe_json_set(a, o, "engineDefault", aqe_json_new_bool(a, row->engine_default)) ||
	    put_str(a, o, "property", HARDENING_PROFILE[row->also].id) ||
	    put_str(a, o, "why", row->why))
		return NULL;
	return o;
}

static struct aqe_json *row_variable(struct aqe_arena *a, size_t i)
{
	const struct hard_env *row = &HARD_ENV_DENIED[i];
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || put_str(a, o, "name", row->name) ||
	    aqe_json_set(a, o, "prefix", aqe_json_new_bool(a, row->prefix)) ||
	    put_str(a, o, "why", row->why))
		return NULL;
	return o;
}

/* The members at the top of a document, and below its HostConfig and Config: [{"name","engines"}]
 */
static int add_keys(struct aqe_arena *a, struct aqe_json *list, const char *above,
		    const struct oci_inspect_type *type)
{
	for (size_t i = 0; type && i < type->n_rows; i++) {
		const struct oci_inspect_row *row = &type->rows[i];
		struct aqe_json *o = aqe_json_new_object(a), *by = aqe_json_new_array(a);

		if (!o || !by ||
		    put_str(a, o, "name", aqe_arena_fmt(a, "%s%s", above, row->name)) ||
		    ((row->by & OCI_BY_PODMAN) &&
		     aqe_json_append(by, aqe_json_new_str(a, "podman"))) ||
		    ((row->by & OCI_BY_DOCKER) &&
		     aqe_json_append(by, aqe_json_new_str(a, "docker"))) ||
		    aqe_json_set(a, o, "engines", by) || aqe_json_append(list, o))
			return AQE_E_NOMEM;
	}
	return AQE_OK;
}

static struct aqe_json *json_keys(struct aqe_arena *a, enum oci_inspect_kind kind)
{
	static const char *const below[] = { "HostConfig", "Config" };
	const struct oci_inspect_type *type = oci_inspect_type(kind);
	struct aqe_json *list = aqe_json_new_array(a);

	if (!list || add_keys(a, list, "", type))
		return NULL;
	for (size_t i = 0; type && i < type->n_rows; i++) {
		for (size_t k = 0; k < AQE_COUNT(below); k++) {
			if (aqe_str_eq(type->rows[i].name, below[k]) &&
			    add_keys(a, list, aqe_arena_fmt(a, "%s.", below[k]),
				     type->rows[i].type))
				return NULL;
		}
	}
	return list;
}

static struct aqe_json *json_engine_keys(struct aqe_arena *a)
{
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || aqe_json_set(a, o, "container", json_keys(a, OCI_INSPECT_PODMAN_CONTAINER)) ||
	    aqe_json_set(a, o, "image", json_keys(a, OCI_INSPECT_PODMAN_IMAGE)))
		return NULL;
	return o;
}

static int put_knowledge(struct aqe_arena *a, struct aqe_json *o)
{
	if (aqe_json_set(a, o, "allowedSyscalls",
			 aqe_json_new_strs(a, HARD_SECCOMP_ALLOW, HARD_SECCOMP_ALLOW_COUNT)) ||
	    aqe_json_set(a, o, "forbiddenArguments",
			 json_rows(a, row_argument, HARD_ARG_RULES_COUNT)) ||
	    aqe_json_set(a, o, "activeAnnotations",
			 json_rows(a, row_annotation, HARD_ACTIVE_COUNT)) ||
	    aqe_json_set(a, o, "deniedVariables",
			 json_rows(a, row_variable, HARD_ENV_DENIED_COUNT)) ||
	    aqe_json_set(a, o, "engineKeys", json_engine_keys(a)) ||
	    aqe_json_set(a, o, "references", json_rows(a, row_cve, HARD_CVES_COUNT)) ||
	    aqe_json_set(a, o, "sources", json_rows(a, row_source, HARD_SOURCES_COUNT)))
		return AQE_E_NOMEM;
	return AQE_OK;
}

static struct aqe_json *json_profile(struct aqe_arena *a)
{
	struct aqe_json *o = aqe_json_new_object(a);

	if (!o || put_u64(a, o, "version", 1) ||
	    aqe_json_set(a, o, "properties", json_properties(a)) ||
	    aqe_json_set(a, o, "ceilings", json_agent(a, hard_agent_profile())) ||
	    aqe_json_set(a, o, "agentTypes", json_agents(a)) ||
	    aqe_json_set(a, o, "forbiddenSyscalls",
			 aqe_json_new_strs(a, HARD_SECCOMP_FORBIDDEN,
					   HARD_SECCOMP_FORBIDDEN_COUNT)) ||
	    put_knowledge(a, o))
		return NULL;
	return o;
}

static int add_json(struct aqe_buf *b, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(JSON_MAX);
	const struct aqe_json *o = a ? json_profile(a) : NULL;

	if (!o)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	if (aqe_json_emit(o, AQE_JSON_PRETTY, b, e))
		return e->code;
	return aqe_buf_putc(b, '\n');
}

/* ---- the command ---- */

static int fail(int status, const struct aqe_err *e)
{
	(void)fprintf(stderr, "aqe-shim: %s\n", e->text);
	return status;
}

static int print(const struct aqe_buf *b)
{
	struct aqe_err e = AQE_ERR_INIT;

	if (aqe_buf_ok(b, &e))
		return fail(SHIM_EXIT_UNDECIDED, &e);
	if (fputs(aqe_buf_str(b), stdout) == EOF || fflush(stdout) == EOF) {
		(void)aqe_err_set(&e, AQE_E_SYS, errno, "write to standard output");
		return fail(SHIM_EXIT_FAILED, &e);
	}
	return SHIM_EXIT_OK;
}

static int parse_format(const char *s, enum format *ret, struct aqe_err *e)
{
	if (strcmp(s, "text") == 0)
		*ret = FORMAT_TEXT;
	else if (strcmp(s, "json") == 0)
		*ret = FORMAT_JSON;
	else
		return aqe_err_set(e, AQE_E_USAGE, 0, "profile: no such format '%.64s'", s);
	return AQE_OK;
}

int shim_cmd_profile(int argc, char **argv)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	enum format format = FORMAT_TEXT;
	struct aqe_cli c;
	int id;

	aqe_cli_init(&c, &CMD, argc, argv);
	while ((id = aqe_cli_next(&c, &e)) != AQE_CLI_END) {
		if (id == AQE_CLI_HELP) {
			aqe_cli_help(&CMD, &b);
			return print(&b);
		}
		if (id == AQE_CLI_OPERAND)
			id = aqe_err_set(&e, AQE_E_USAGE, 0, "profile: surplus argument '%.64s'",
					 c.value);
		if (id < 0 || parse_format(c.value, &format, &e))
			return fail(SHIM_EXIT_USAGE, &e);
	}
	if (format == FORMAT_JSON) {
		if (add_json(&b, &e))
			return fail(SHIM_EXIT_UNDECIDED, &e);
	} else {
		text_properties(&b);
		text_agents(&b);
		text_syscalls(&b);
	}
	return print(&b);
}
