/* SPDX-License-Identifier: MIT */
#include "hardening/inspect_in.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "hardening/seccomp.h"
#include "shim/core/text.h"

/* ---- SecurityOpt ---- */

static const char *const nnp_on[] = { "no-new-privileges", "no-new-privileges:true",
				      "no-new-privileges=true", NULL };

static int count_issue(void *arg, const struct oci_issue *issue)
{
	(void)issue;
	*(bool *)arg = true;
	return 1;
}

/* Docker's client puts the profile itself where the file's name was. */
static void check_inline_filter(struct hard_inspector *i, const struct aqe_json *opt,
				const char *text)
{
	static const char head[] = "{\"linux\":{\"seccomp\":", tail[] = "}}";
	static const char wanted[] = "the frozen filter, or one in the runtime-spec's form that "
				     "is proved";
	const char *wrapped = aqe_arena_fmt(i->v.r->arena, "%s%s%s", head, text, tail);
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_report inner;
	struct aqe_json *doc;
	bool unknown = false;

	if (!wrapped) {
		i->v.r->nomem = true;
		return;
	}
	if (oci_doc_parse(i->v.r->arena, OCI_DOC_CONFIG, wrapped, strlen(wrapped), &doc, &e) < 0) {
		hard_report_fail(i->v.r, HARD_SECCOMP, opt, NULL, wanted,
				 "a profile that cannot be read: %s",
				 hard_verify_quote(&i->v, e.text));
		return;
	}
	if (oci_doc_issues(OCI_DOC_CONFIG, doc, count_issue, &unknown) != 0 || unknown) {
		hard_report_fail(i->v.r, HARD_SECCOMP, opt, NULL, wanted,
				 "a profile in the engine's own form");
		return;
	}
	hard_report_init(&inner, i->v.r->arena);
	hard_seccomp_judge(aqe_json_at(doc, "/linux/seccomp"), NULL, &inner);
	if (inner.result[HARD_SECCOMP] == HARD_PASS)
		return;
	hard_report_fail(i->v.r, HARD_SECCOMP, opt, NULL,
			 inner.first ? inner.first->wanted : wanted, "%s",
			 inner.first ? inner.first->found : "a profile that could not be judged");
}

static void check_seccomp(struct hard_inspector *i, const struct aqe_json *opt, const char *value)
{
	const char *file = i->ctx.policy->seccomp_file;

	if (value[0] == '{') {
		check_inline_filter(i, opt, value);
		return;
	}
	if (file && aqe_str_eq(value, file) && aqe_json_str(opt)[strlen("seccomp")] == '=')
		return;
	hard_report_fail(i->v.r, HARD_SECCOMP, opt, NULL,
			 file ? aqe_arena_fmt(i->v.r->arena, "the engine's default or %s", file)
			      : "the engine's default",
			 "%s", hard_verify_quote(&i->v, aqe_json_str(opt)));
}

static void check_apparmor(struct hard_inspector *i, const struct aqe_json *opt, const char *value)
{
	if (!hard_rule_apparmor(value))
		hard_report_fail(i->v.r, HARD_LSM, opt, NULL, "an engine's default profile", "%s",
				 hard_verify_quote(&i->v, aqe_json_str(opt)));
}

static void check_label(struct hard_inspector *i, const struct aqe_json *opt, const char *value)
{
	(void)value;
	hard_report_fail(i->v.r, HARD_LSM, opt, NULL, "the engine's own label", "%s",
			 hard_verify_quote(&i->v, aqe_json_str(opt)));
}

static void check_paths(struct hard_inspector *i, const struct aqe_json *opt, const char *value)
{
	(void)value;
	hard_report_fail(i->v.r, HARD_MASKED_PATHS, opt, NULL, "the engine's masked paths", "%s",
			 hard_verify_quote(&i->v, aqe_json_str(opt)));
}

/* Hiding more is harmless. */
static void check_mask(struct hard_inspector *i, const struct aqe_json *opt, const char *value)
{
	(void)i;
	(void)opt;
	(void)value;
}

/* NAME=VALUE or, in the old spelling, NAME:VALUE. */
static const struct {
	const char *name;
	void (*check)(struct hard_inspector *i, const struct aqe_json *opt, const char *value);
} option_names[] = {
	{ "seccomp", check_seccomp }, { "apparmor", check_apparmor },
	{ "label", check_label },     { "systempaths", check_paths },
	{ "unmask", check_paths },    { "proc-opts", check_paths },
	{ "mask", check_mask },
};

static bool is_nnp(const char *s)
{
	static const char name[] = "no-new-privileges";
	const size_t n = sizeof(name) - 1;

	return aqe_starts(s, name) && (s[n] == '\0' || s[n] == '=' || s[n] == ':');
}

static void check_option(struct hard_inspector *i, const struct aqe_json *opt)
{
	const char *text = aqe_json_str(opt);

	for (size_t k = 0; k < AQE_COUNT(option_names); k++) {
		const size_t n = strlen(option_names[k].name);

		if (aqe_starts(text, option_names[k].name) && (text[n] == '=' || text[n] == ':')) {
			option_names[k].check(i, opt, text + n + 1);
			return;
		}
	}
	hard_report_fail(i->v.r, HARD_UNKNOWN_FIELD, opt, NULL, "security options that are known",
			 "%s", hard_verify_quote(&i->v, text));
}

/* Docker keeps "no-new-privileges:false" word for word (measured). */
static void check_nnp(struct hard_inspector *i, const struct aqe_json *list)
{
	bool on = false;

	for (const struct aqe_json *o = list->first; o; o = o->next) {
		if (aqe_str_in(aqe_json_str(o), nnp_on))
			on = true;
		else if (is_nnp(aqe_json_str(o)))
			hard_report_fail(i->v.r, HARD_NO_NEW_PRIVILEGES, o, NULL,
					 "no-new-privileges", "%s",
					 hard_verify_quote(&i->v, aqe_json_str(o)));
	}
	if (!on)
		hard_report_fail(i->v.r, HARD_NO_NEW_PRIVILEGES, list, NULL, "no-new-privileges",
				 "absent");
}

static void check_docker_paths(struct hard_inspector *i)
{
	/* podman masks these as well; docker never did */
	static const char *const podman_only[] = { "/sys/fs/selinux", "/sys/dev/block", NULL };
	static const struct {
		const char *pointer;
		const char *const *wanted;
	} rows[] = {
		{ "/HostConfig/MaskedPaths", HARD_MASKED_LIST },
		{ "/HostConfig/ReadonlyPaths", HARD_READONLY_LIST },
	};

	for (size_t k = 0; k < AQE_COUNT(rows); k++) {
		const struct aqe_json *list =
			hard_inspect_need(i, HARD_MASKED_PATHS, rows[k].pointer,
					  "the engine's own list");

		for (const char *const *path = rows[k].wanted; list && *path; path++)
			if (!aqe_str_in(*path, podman_only) && !aqe_json_has_str(list, *path))
				hard_report_fail(i->v.r, HARD_MASKED_PATHS, list, NULL, *path,
						 "absent");
	}
}

void hard_inspect_options(struct hard_inspector *i)
{
	const struct aqe_json *list =
		hard_inspect_need(i, HARD_NO_NEW_PRIVILEGES, "/HostConfig/SecurityOpt",
				  "no-new-privileges");

	if (list)
		check_nnp(i, list);
	for (const struct aqe_json *o = list ? list->first : NULL; o; o = o->next)
		if (!is_nnp(aqe_json_str(o)))
			check_option(i, o);
	if (!i->podman)
		check_docker_paths(i);
	if (i->ctx.info_no_filter)
		hard_report_fail(i->v.r, HARD_SECCOMP, NULL, "", "an engine with a filter",
				 "an engine whose info document says it has none");
}

/* ---- podman's record of its own command line ---- */

/* `c 1:3 rwm` */
bool hard_inspect_device_rule(const char *rule)
{
	const struct hard_device *d;
	unsigned major, minor;
	char type, access[4];
	int end = 0;

	if (sscanf(rule, "%c %u:%u %3[rwm]%n", &type, &major, &minor, access, &end) != 4 ||
	    rule[end] != '\0' || major > INT_MAX || minor > INT_MAX)
		return false;
	d = hard_rule_device(type, major, minor);
	return d && d->allowed;
}

static void judge_sysctl(struct hard_inspector *i, const struct aqe_json *at, const char *value)
{
	const size_t n = strcspn(value, "=");
	const char *name = aqe_arena_ndup(i->v.r->arena, value, n);

	if (name && value[n] && hard_rule_sysctl(name, value + n + 1, NULL) == HARD_SYSCTL_ALLOWED)
		return;
	hard_report_fail(i->v.r, HARD_SYSCTL, at, NULL, "no sysctl but the harmless pairs", "%s",
			 hard_verify_quote(&i->v, value));
}

static void judge_device_rule(struct hard_inspector *i, const struct aqe_json *at,
			      const char *value)
{
	if (!hard_inspect_device_rule(value))
		hard_report_fail(i->v.r, HARD_DEVICES, at, NULL, "no rule for other devices", "%s",
				 hard_verify_quote(&i->v, value));
}

/* A rootless podman binds the node and lists no device (measured). */
static void judge_device(struct hard_inspector *i, const struct aqe_json *at, const char *value)
{
	hard_report_fail(i->v.r, HARD_DEVICES, at, NULL, "no device", "%s",
			 hard_verify_quote(&i->v, value));
}

static void judge_security(struct hard_inspector *i, const struct aqe_json *at, const char *value)
{
	if (aqe_starts(value, "unmask") || aqe_starts(value, "systempaths") ||
	    aqe_starts(value, "proc-opts"))
		hard_report_fail(i->v.r, HARD_MASKED_PATHS, at, NULL, "the engine's masked paths",
				 "%s", hard_verify_quote(&i->v, value));
}

/* Options that leave no other trace in podman's document (measured; hardening.md section 9). */
static const struct {
	const char *name;
	void (*judge)(struct hard_inspector *i, const struct aqe_json *at, const char *value);
} traceless[] = {
	{ "--sysctl", judge_sysctl },
	{ "--device", judge_device },
	{ "--device-cgroup-rule", judge_device_rule },
	{ "--security-opt", judge_security },
};

/* How many words at the end are the container's own command. */
static size_t own_words(const struct aqe_json *command, const struct aqe_json *cmd)
{
	if (!cmd || cmd->len > command->len)
		return 0;
	for (size_t k = 0; k < cmd->len; k++)
		if (!aqe_str_eq(aqe_json_str(aqe_json_item(command, command->len - cmd->len + k)),
				aqe_json_str(aqe_json_item(cmd, k))))
			return 0;
	return cmd->len;
}

static void judge_word(struct hard_inspector *i, const struct aqe_json *at,
		       const struct aqe_json *next)
{
	const char *word = aqe_json_str(at);

	for (size_t k = 0; k < AQE_COUNT(traceless); k++) {
		const size_t n = strlen(traceless[k].name);

		if (!aqe_starts(word, traceless[k].name))
			continue;
		if (word[n] == '=')
			traceless[k].judge(i, at, word + n + 1);
		else if (word[n] == '\0' && next)
			traceless[k].judge(i, next, aqe_json_str(next));
	}
}

void hard_inspect_command(struct hard_inspector *i)
{
	const struct aqe_json *command = hard_inspect_get(i, "/Config/CreateCommand");
	size_t left;

	if (!command)
		return;
	left = command->len - own_words(command, hard_inspect_get(i, "/Config/Cmd"));
	for (const struct aqe_json *w = command->first; w && left; w = w->next, left--)
		judge_word(i, w, left > 1 ? w->next : NULL);
}
