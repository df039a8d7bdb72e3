/* SPDX-License-Identifier: MIT */
#include "hardening/seccomp.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "hardening/scmp.h"
#include "shim/core/arena.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* The kernel reads int arguments as 32 bits, a filter compares 64: only a masked comparison sees
 * what the kernel will see (hardening.md section 8, socket(0x100000028)). */
#define INT_MASK 0xffffffffULL
#define CLONE_NEW_MASK                                                                            \
	((uint64_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
		    CLONE_NEWPID | CLONE_NEWNET))
#define PERSONALITY_QUERY 0xffffffffULL
#define ERRNO_MAX         4095 /* MAX_ERRNO of the kernel */
#define ARGS_MAX          6

#define ACT_ALLOW         "SCMP_ACT_ALLOW"
#define ACT_ERRNO         "SCMP_ACT_ERRNO"
#define ACT_LOG           "SCMP_ACT_LOG"
#define CMP_MASKED        "SCMP_CMP_MASKED_EQ"
#define CMP_EQ            "SCMP_CMP_EQ"

/* ---- the frozen filter ---- */

/* (argument[index] & mask) == value */
struct masked {
	unsigned index;
	uint64_t mask, value;
};

/* A rule after the long allow-list. Rules of one name are alternatives, the conditions of one rule
 * must all hold. */
struct rule {
	const char *name, *action;
	unsigned errno_ret; /* 0: not written */
	unsigned n_args;
	struct masked args[2];
};

static const struct rule RULES[] = {
	{ "clone", ACT_ALLOW, 0, 1, { { 0, CLONE_NEW_MASK, 0 } } },
	{ "socket", ACT_ALLOW, 0, 1, { { 0, INT_MASK, AF_UNIX } } },
	{ "socket", ACT_ALLOW, 0, 1, { { 0, INT_MASK, AF_INET } } },
	{ "socket", ACT_ALLOW, 0, 1, { { 0, INT_MASK, AF_INET6 } } },
	{ "socket",
	  ACT_ALLOW,
	  0,
	  2,
	  { { 0, INT_MASK, AF_NETLINK }, { 2, INT_MASK, NETLINK_ROUTE } } },
	{ "socketpair", ACT_ALLOW, 0, 1, { { 0, INT_MASK, AF_UNIX } } },
	/* No device nodes: type 0 means a regular file. */
	{ "mknod", ACT_ALLOW, 0, 1, { { 1, S_IFMT, 0 } } },
	{ "mknodat", ACT_ALLOW, 0, 1, { { 2, S_IFMT, 0 } } },
	{ "mknod", ACT_ALLOW, 0, 1, { { 1, S_IFMT, S_IFREG } } },
	{ "mknodat", ACT_ALLOW, 0, 1, { { 2, S_IFMT, S_IFREG } } },
	{ "mknod", ACT_ALLOW, 0, 1, { { 1, S_IFMT, S_IFIFO } } },
	{ "mknodat", ACT_ALLOW, 0, 1, { { 2, S_IFMT, S_IFIFO } } },
	{ "mknod", ACT_ALLOW, 0, 1, { { 1, S_IFMT, S_IFSOCK } } },
	{ "mknodat", ACT_ALLOW, 0, 1, { { 2, S_IFMT, S_IFSOCK } } },
	{ "personality", ACT_ALLOW, 0, 1, { { 0, INT_MASK, 0 } } },
	{ "personality", ACT_ALLOW, 0, 1, { { 0, INT_MASK, PERSONALITY_QUERY } } },
	/* Its flags are behind a pointer; libc falls back to clone only on ENOSYS. */
	{ "clone3", ACT_ERRNO, ENOSYS, 0, { { 0, 0, 0 } } },
};

/* Elsewhere libseccomp also lets socketcall(2) through for a rule on socket, without the rule's
 * conditions, because they are behind a pointer: the families cannot be limited there. */
static const char *const PLAIN_ARCHES[] = {
	"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64", "SCMP_ARCH_RISCV64",
	"SCMP_ARCH_ARM",    "SCMP_ARCH_X32",     NULL,
};

/* The machine's own architecture, NULL when the filter cannot be made tight there. */
static const struct hard_arch *native_arch(void)
{
	const struct hard_arch *arch = hard_arch_native();

	return arch && aqe_str_in(arch->name, PLAIN_ARCHES) ? arch : NULL;
}

static int put_rule_head(struct aqe_arena *a, struct aqe_json *rule, const char *const *names,
			 size_t n_names, const char *action)
{
	int rc = aqe_json_set(a, rule, "names", aqe_json_new_strs(a, names, n_names));

	return rc ? rc : aqe_json_set(a, rule, "action", aqe_json_new_str(a, action));
}

static int put_arg(struct aqe_arena *a, struct aqe_json *args, const struct masked *m)
{
	struct aqe_json *arg = aqe_json_new_object(a);
	int rc = aqe_json_append(args, arg);

	if (!rc)
		rc = aqe_json_set(a, arg, "index", aqe_json_new_u64(a, m->index));
	if (!rc)
		rc = aqe_json_set(a, arg, "value", aqe_json_new_u64(a, m->mask));
	if (!rc)
		rc = aqe_json_set(a, arg, "valueTwo", aqe_json_new_u64(a, m->value));
	if (!rc)
		rc = aqe_json_set(a, arg, "op", aqe_json_new_str(a, CMP_MASKED));
	return rc;
}

static int put_rule(struct aqe_arena *a, struct aqe_json *list, const struct rule *r)
{
	struct aqe_json *rule = aqe_json_new_object(a);
	struct aqe_json *args;
	int rc = aqe_json_append(list, rule);

	if (!rc)
		rc = put_rule_head(a, rule, &r->name, 1, r->action);
	if (!rc && r->errno_ret)
		rc = aqe_json_set(a, rule, "errnoRet", aqe_json_new_u64(a, r->errno_ret));
	if (rc || !r->n_args)
		return rc;
	args = aqe_json_new_array(a);
	rc = aqe_json_set(a, rule, "args", args);
	for (unsigned i = 0; !rc && i < r->n_args; i++)
		rc = put_arg(a, args, &r->args[i]);
	return rc;
}

static int put_rules(struct aqe_arena *a, struct aqe_json *root)
{
	struct aqe_json *list = aqe_json_new_array(a);
	struct aqe_json *rule = aqe_json_new_object(a);
	int rc = aqe_json_set(a, root, "syscalls", list);

	if (!rc)
		rc = aqe_json_append(list, rule);
	if (!rc)
		rc = put_rule_head(a, rule, HARD_SECCOMP_ALLOW, HARD_SECCOMP_ALLOW_COUNT,
				   ACT_ALLOW);
	for (size_t i = 0; !rc && i < AQE_COUNT(RULES); i++)
		rc = put_rule(a, list, &RULES[i]);
	return rc;
}

struct aqe_json *hard_seccomp_frozen(struct aqe_arena *a)
{
	const struct hard_arch *arch = native_arch();
	struct aqe_json *root = arch ? aqe_json_new_object(a) : NULL;
	int rc;

	if (!root)
		return NULL;
	rc = aqe_json_set(a, root, "defaultAction", aqe_json_new_str(a, ACT_ERRNO));
	if (!rc)
		rc = aqe_json_set(a, root, "defaultErrnoRet", aqe_json_new_u64(a, EPERM));
	if (!rc)
		rc = aqe_json_set(a, root, "architectures", aqe_json_new_strs(a, &arch->name, 1));
	if (!rc)
		rc = put_rules(a, root);
	return rc ? NULL : root;
}

/* ---- is it the frozen filter? ----
 * Compared with the tables, without building a tree: it is asked at every start. Names are unique
 * in an object, so a member for each wanted one and no more is equality. */

static bool is_str(const struct aqe_json *v, const char *s)
{
	const char *text = aqe_json_str(v);

	return text && strcmp(text, s) == 0;
}

static bool is_u64(const struct aqe_json *v, uint64_t want)
{
	uint64_t n = 0;

	return aqe_json_to_u64(v, UINT64_MAX, &n) && n == want;
}

static bool is_object(const struct aqe_json *v, size_t members)
{
	return v && v->type == AQE_JSON_OBJECT && v->len == members;
}

static bool is_strs(const struct aqe_json *v, const char *const *list, size_t n)
{
	const struct aqe_json *item;

	if (!v || v->type != AQE_JSON_ARRAY || v->len != n)
		return false;
	item = v->first;
	for (size_t i = 0; i < n; i++, item = item->next) {
		if (!is_str(item, list[i]))
			return false;
	}
	return true;
}

static bool is_args(const struct aqe_json *v, const struct rule *r)
{
	const struct aqe_json *arg;

	if (!v || v->type != AQE_JSON_ARRAY || v->len != r->n_args)
		return false;
	arg = v->first;
	for (unsigned i = 0; i < r->n_args; i++, arg = arg->next) {
		if (!is_object(arg, 4) || !is_u64(aqe_json_get(arg, "index"), r->args[i].index) ||
		    !is_u64(aqe_json_get(arg, "value"), r->args[i].mask) ||
		    !is_u64(aqe_json_get(arg, "valueTwo"), r->args[i].value) ||
		    !is_str(aqe_json_get(arg, "op"), CMP_MASKED))
			return false;
	}
	return true;
}

static bool is_rule(const struct aqe_json *v, const struct rule *r)
{
	const size_t members = 2U + (r->errno_ret ? 1U : 0U) + (r->n_args ? 1U : 0U);

	return is_object(v, members) && is_strs(aqe_json_get(v, "names"), &r->name, 1) &&
	       is_str(aqe_json_get(v, "action"), r->action) &&
	       (!r->errno_ret || is_u64(aqe_json_get(v, "errnoRet"), r->errno_ret)) &&
	       (!r->n_args || is_args(aqe_json_get(v, "args"), r));
}

static bool is_rules(const struct aqe_json *v)
{
	const struct aqe_json *rule;

	if (!v || v->type != AQE_JSON_ARRAY || v->len != AQE_COUNT(RULES) + 1)
		return false;
	rule = v->first;
	if (!is_object(rule, 2) || !is_str(aqe_json_get(rule, "action"), ACT_ALLOW) ||
	    !is_strs(aqe_json_get(rule, "names"), HARD_SECCOMP_ALLOW, HARD_SECCOMP_ALLOW_COUNT))
		return false;
	for (size_t i = 0; i < AQE_COUNT(RULES); i++) {
		rule = rule->next;
		if (!is_rule(rule, &RULES[i]))
			return false;
	}
	return true;
}

bool hard_seccomp_is_frozen(const struct aqe_json *seccomp)
{
	const struct hard_arch *arch = native_arch();

	return arch && is_object(seccomp, 4) &&
	       is_str(aqe_json_get(seccomp, "defaultAction"), ACT_ERRNO) &&
	       is_u64(aqe_json_get(seccomp, "defaultErrnoRet"), EPERM) &&
	       is_strs(aqe_json_get(seccomp, "architectures"), &arch->name, 1) &&
	       is_rules(aqe_json_get(seccomp, "syscalls"));
}

static bool sorted_has(const char *const *list, size_t n, const char *name)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const int c = strcmp(name, list[mid]);

		if (c == 0)
			return true;
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

bool hard_seccomp_known(const char *name)
{
	const struct hard_arch *native = hard_arch_native();
	bool known;

	if (!name)
		return false;
	/* The usual names are ours: libseccomp's look-up costs more. */
	known = sorted_has(HARD_SECCOMP_ALLOW, HARD_SECCOMP_ALLOW_COUNT, name) ||
		(native && hard_scmp_number(native, name) >= 0);
	for (size_t i = 0; !known && i < HARD_ARCHS_COUNT; i++)
		known = hard_scmp_number(&HARD_ARCHS[i], name) >= 0;
	return known;
}

/* ---- R31: the form of any other filter; what it does is for the proof ---- */

#define WANT_DEFAULT "SCMP_ACT_ERRNO with an errno, or SCMP_ACT_KILL*"

static const char *const DEFAULT_ACTIONS[] = { ACT_ERRNO, "SCMP_ACT_KILL", "SCMP_ACT_KILL_PROCESS",
					       "SCMP_ACT_KILL_THREAD", NULL };
/* In a rule; TRACE and NOTIFY leave the decision to another process. */
static const char *const RULE_ACTIONS[] = {
	ACT_ALLOW,
	ACT_LOG,
	ACT_ERRNO,
	"SCMP_ACT_TRAP",
	"SCMP_ACT_KILL",
	"SCMP_ACT_KILL_PROCESS",
	"SCMP_ACT_KILL_THREAD",
	NULL,
};
static const char *const OPS[] = { "SCMP_CMP_NE", "SCMP_CMP_LT", "SCMP_CMP_LE", CMP_EQ,
				   "SCMP_CMP_GE", "SCMP_CMP_GT", CMP_MASKED,    NULL };
static const char *const FLAGS[] = { "SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_TSYNC", NULL };

static const char *const KEYS_TOP[] = { "defaultAction", "defaultErrnoRet", "architectures",
					"flags",         "syscalls",        NULL };
static const char *const KEYS_RULE[] = { "names", "action", "errnoRet", "args", NULL };
static const char *const KEYS_ARG[] = { "index", "value", "valueTwo", "op", NULL };

static void bad(struct hard_report *r, const struct aqe_json *at, const char *pointer,
		const char *wanted, const char *found)
{
	hard_report_fail(r, HARD_SECCOMP, at, pointer, wanted, "%s", found);
}

/* As bad(), with a foreign word quoted. */
static void bad_word(struct hard_report *r, const struct aqe_json *at, const char *wanted)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(512);
	const char *s = aqe_json_str(at);

	if (s) {
		(void)aqe_buf_putc(&b, '\'');
		aqe_buf_quote(&b, s, 64);
		(void)aqe_buf_putc(&b, '\'');
	} else {
		(void)aqe_buf_puts(&b, at->text ? at->text : aqe_json_type_name(at->type));
	}
	bad(r, at, NULL, wanted, aqe_buf_str(&b));
}

static void check_keys(struct hard_report *r, const struct aqe_json *obj, const char *const *known)
{
	for (const struct aqe_json *m = obj->first; m; m = m->next) {
		if (!aqe_str_in(m->key, known))
			bad(r, m, NULL, "no other members than a plain filter has", "the member");
	}
}

static void check_names(struct hard_report *r, const struct aqe_json *rule)
{
	const struct aqe_json *names = aqe_json_get(rule, "names");

	if (!names || names->type != AQE_JSON_ARRAY || !names->first) {
		bad(r, names ? names : rule, names ? NULL : "/names", "at least one system call",
		    names ? "no names" : "absent");
		return;
	}
	for (const struct aqe_json *n = names->first; n; n = n->next) {
		if (!hard_seccomp_known(aqe_json_str(n)))
			bad_word(r, n, "the name of a system call that libseccomp knows");
	}
}

static void check_arg(struct hard_report *r, const struct aqe_json *arg, unsigned *seen)
{
	const struct aqe_json *two = aqe_json_get(arg, "valueTwo");
	const struct aqe_json *op = aqe_json_get(arg, "op");
	uint64_t index = 0, value = 0;

	if (arg->type != AQE_JSON_OBJECT) {
		bad_word(r, arg, "an object");
		return;
	}
	check_keys(r, arg, KEYS_ARG);
	if (!aqe_json_to_u64(aqe_json_get(arg, "index"), ARGS_MAX - 1, &index)) {
		bad(r, arg, "/index", "0 to 5", "another index");
		return;
	}
	/* Both runtimes turn two conditions on one argument into alternatives. */
	if (*seen & (1U << index))
		bad(r, arg, "/index", "one condition for each argument", "a second condition");
	*seen |= 1U << index;
	if (!aqe_json_to_u64(aqe_json_get(arg, "value"), UINT64_MAX, &value) ||
	    (two && !aqe_json_to_u64(two, UINT64_MAX, &value)))
		bad(r, arg, "/value", "an unsigned 64-bit number", "another value");
	if (!op)
		bad(r, arg, "/op", "an operator", "absent");
	else if (!aqe_str_in(aqe_json_str(op) ? op->text : "", OPS))
		bad_word(r, op, "the exact name of an operator");
}

/* 0 would make a denied call succeed; absent means EPERM in both runtimes. */
static void check_errno(struct hard_report *r, const struct aqe_json *v)
{
	uint64_t n = 0;

	if (v && (!aqe_json_to_u64(v, ERRNO_MAX, &n) || n == 0))
		bad_word(r, v, "an errno from 1 to 4095");
}

static void check_rule(struct hard_report *r, const struct aqe_json *rule)
{
	const struct aqe_json *action = aqe_json_get(rule, "action");
	const struct aqe_json *args = aqe_json_get(rule, "args");
	const char *act = aqe_json_str(action);
	unsigned seen = 0;

	if (rule->type != AQE_JSON_OBJECT) {
		bad_word(r, rule, "an object");
		return;
	}
	check_keys(r, rule, KEYS_RULE);
	if (!action)
		bad(r, rule, "/action", "an action", "absent");
	else if (!aqe_str_in(act ? act : "", RULE_ACTIONS))
		bad_word(r, action, "the exact name of an action, and not TRACE or NOTIFY");
	check_errno(r, aqe_json_get(rule, "errnoRet"));
	check_names(r, rule);
	if (args && args->type == AQE_JSON_ARRAY && args->len > ARGS_MAX)
		bad(r, args, NULL, "at most 6 conditions", "more");
	for (const struct aqe_json *arg = args ? args->first : NULL; arg; arg = arg->next)
		check_arg(r, arg, &seen);
}

static void check_arches(struct hard_report *r, const struct aqe_json *seccomp)
{
	const struct aqe_json *list = aqe_json_get(seccomp, "architectures");
	const struct hard_arch *native = native_arch();
	bool has_native = false;

	for (const struct aqe_json *v = list ? list->first : NULL; v; v = v->next) {
		const struct hard_arch *arch = hard_arch_by_name(aqe_json_str(v));

		if (!arch)
			bad_word(r, v, "the exact name of an architecture");
		has_native = has_native || (arch && arch == native);
	}
	if (!has_native)
		bad(r, list ? list : seccomp, list ? NULL : "/architectures",
		    native ? native->name : "a supported machine",
		    "a list without this machine's architecture");
}

static void check_top(struct hard_report *r, const struct aqe_json *seccomp)
{
	const struct aqe_json *action = aqe_json_get(seccomp, "defaultAction");
	const struct aqe_json *flags = aqe_json_get(seccomp, "flags");

	check_keys(r, seccomp, KEYS_TOP); /* listenerPath and listenerMetadata are not among them */
	if (!action)
		bad(r, seccomp, "/defaultAction", WANT_DEFAULT, "absent");
	else if (!aqe_str_in(aqe_json_str(action) ? action->text : "", DEFAULT_ACTIONS))
		bad_word(r, action, WANT_DEFAULT);
	check_errno(r, aqe_json_get(seccomp, "defaultErrnoRet"));
	for (const struct aqe_json *f = flags ? flags->first : NULL; f; f = f->next) {
		if (!aqe_str_in(aqe_json_str(f) ? f->text : "", FLAGS))
			bad_word(r, f, "no flag but LOG and TSYNC");
	}
}

void hard_seccomp_structure(const struct aqe_json *seccomp, struct hard_report *report)
{
	const struct aqe_json *rules = aqe_json_get(seccomp, "syscalls");

	if (!seccomp || seccomp->type != AQE_JSON_OBJECT) {
		bad(report, seccomp, "/linux/seccomp", NULL, "no filter");
		return;
	}
	check_top(report, seccomp);
	check_arches(report, seccomp);
	for (const struct aqe_json *rule = rules ? rules->first : NULL; rule; rule = rule->next)
		check_rule(report, rule);
	hard_report_pass(report, HARD_SECCOMP);
}
