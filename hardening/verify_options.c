/* SPDX-License-Identifier: MIT */
#include "hardening/verify_in.h"

#include <string.h>

#include "shim/core/text.h"

/* True when `option` is one of `words`; a word that ends in '=' stands for NAME=value. */
static bool is_listed(const char *option, const char *const *words)
{
	for (; *words; words++) {
		if (aqe_str_eq(option, *words))
			return true;
		if (aqe_ends(*words, "=") && aqe_starts(option, *words))
			return true;
	}
	return false;
}

void hard_verify_option(struct hard_verifier *v, const struct aqe_json *at, const char *option,
			const struct hard_opt_rule *rule, enum hard_prop prop, unsigned *seen)
{
	const enum hard_opt_group group = hard_rule_option(option);

	if (hard_rule_is_shared_word(option))
		hard_report_fail(v->r, HARD_PROPAGATION, at, NULL, "private or rprivate", "%s",
				 option);
	if (group != HARD_OPT_NONE && (*seen & (1U << group)))
		hard_report_fail(v->r, prop, at, NULL, "each kind of option once",
				 "%s, which repeats or contradicts an earlier one",
				 hard_verify_quote(v, option));
	*seen |= 1U << group;
	if (group == HARD_OPT_NONE ||
	    (!is_listed(option, rule->required) && !is_listed(option, rule->allowed)))
		hard_report_fail(v->r, prop, at, NULL, "only options that this mount may have",
				 "%s", hard_verify_quote(v, option));
}

/* What each group looks like in a message about its absence. */
static const char *const group_words[HARD_OPT_GROUPS] = {
	[HARD_OPT_RW] = "rw or ro",
	[HARD_OPT_BIND] = "bind or rbind",
	[HARD_OPT_PROP] = "private or rprivate",
	[HARD_OPT_SIZE] = "size=N",
	[HARD_OPT_MODE] = "mode=N",
};

void hard_verify_options(struct hard_verifier *v, const struct aqe_json *mount,
			 const struct hard_opt_rule *rule, enum hard_prop prop)
{
	const struct aqe_json *options =
		hard_verify_member(v, prop, mount, "options", "a list of options");
	unsigned seen = 0;

	for (const struct aqe_json *o = options ? options->first : NULL; o; o = o->next)
		hard_verify_option(v, o, aqe_json_str(o), rule, prop, &seen);
	for (const char *const *word = rule->required; *word; word++)
		if (!aqe_json_has_str(options, *word))
			hard_report_fail(v->r, prop, mount, "/options", *word, "absent");
	for (unsigned g = 0; g < HARD_OPT_GROUPS; g++) {
		if (!(rule->groups & (1U << g)) || (seen & (1U << g)))
			continue;
		hard_report_fail(v->r, prop, mount, "/options",
				 group_words[g] ? group_words[g] : "one more option", "absent");
		if (g == HARD_OPT_PROP)
			hard_report_fail(v->r, HARD_PROPAGATION, mount, "/options", group_words[g],
					 "absent");
	}
}
