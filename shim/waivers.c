/* SPDX-License-Identifier: MIT */
#include "shim/waivers.h"

#include <stdlib.h>

#include "shim/core/clock.h"
#include "shim/core/text.h"

#define WORD_MAX 200 /* bytes of one foreign word */
#define DAY_S    86400

enum seen {
	SEEN_APPLIES = 1U << 0, /* a document was of its agent type or image */
	SEEN_USED = 1U << 1,
};

int shim_waivers_init(struct shim_waivers *w, const struct hard_policy *policy, int64_t now_s,
		      struct aqe_err *e)
{
	const size_t n = policy ? policy->n_waivers : 0;
	unsigned char *seen = calloc(n + 1, 1);

	if (!seen)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the waivers");
	*w = (struct shim_waivers){ policy, seen, now_s };
	return 0;
}

void shim_waivers_done(struct shim_waivers *w)
{
	free(w->seen);
	w->seen = NULL;
	w->policy = NULL;
}

void shim_waivers_add(struct shim_waivers *w, const struct hard_report *r)
{
	const size_t n = w->policy && r->waivers_asked ? w->policy->n_waivers : 0;

	for (size_t i = 0; i < n; i++) {
		const struct hard_waiver *row = &w->policy->waivers[i];

		if (hard_waiver_applies(row, r->waivers_type, r->waivers_image))
			w->seen[i] |= SEEN_APPLIES;
		if (r->waiver[row->prop] == row)
			w->seen[i] |= SEEN_USED;
	}
}

enum shim_waiver_state shim_waivers_state(const struct shim_waivers *w, size_t i)
{
	const struct hard_waiver *row = &w->policy->waivers[i];

	if (!(w->seen[i] & SEEN_APPLIES))
		return SHIM_WAIVER_QUIET;
	if (w->now_s >= row->expires)
		return SHIM_WAIVER_EXPIRED;
	if (!hard_policy_clock_ok(w->policy, w->now_s))
		return SHIM_WAIVER_CLOCK;
	if (!(w->seen[i] & SEEN_USED))
		return SHIM_WAIVER_UNUSED;
	return row->expires - w->now_s < (int64_t)HARD_WAIVER_WARN_DAYS * DAY_S ? SHIM_WAIVER_SOON
										: SHIM_WAIVER_QUIET;
}

const char *shim_waiver_name(enum shim_waiver_state state)
{
	static const char *const names[] = {
		[SHIM_WAIVER_QUIET] = "",
		[SHIM_WAIVER_EXPIRED] = "waiver_expired",
		[SHIM_WAIVER_CLOCK] = "waiver_clock",
		[SHIM_WAIVER_SOON] = "waiver_soon",
		[SHIM_WAIVER_UNUSED] = "waiver_unused",
	};

	return names[state];
}

void shim_waiver_text(const struct hard_waiver *w, enum shim_waiver_state state, struct aqe_buf *b)
{
	static const char *const words[] = {
		[SHIM_WAIVER_QUIET] = "is in force until",
		[SHIM_WAIVER_EXPIRED] = "counts as absent: it expired",
		[SHIM_WAIVER_CLOCK] = "counts as absent: the clock is before the policy's last "
				      "change; it expires",
		[SHIM_WAIVER_SOON] = "expires soon:",
		[SHIM_WAIVER_UNUSED] = "is not needed: the property holds without it; it would "
				       "expire",
	};
	char until[AQE_TIME_TEXT];

	aqe_time_format(w->expires, until);
	aqe_buf_quote(b, w->where.file ? w->where.file : "policy", WORD_MAX);
	(void)aqe_buf_addf(b, ":%u: the waiver of '%s' for ", w->where.line,
			   HARDENING_PROFILE[w->prop].id);
	aqe_buf_quote(b, w->agent_type ? w->agent_type : w->image, WORD_MAX);
	(void)aqe_buf_puts(b, " (");
	aqe_buf_quote(b, w->owner, WORD_MAX);
	(void)aqe_buf_addf(b, ") %s %s", words[state], until);
}
