/* SPDX-License-Identifier: MIT */
#include "shim/verify_out.h"

#include <stdio.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/input.h"

#define ONE_MAX  ((size_t)4 << 20)   /* report of one document */
#define ALL_MAX  ((size_t)256 << 20) /* of all of a call */
#define WARN_MAX 4096

enum shim_format shim_format_by_name(const char *name)
{
	static const char *const names[SHIM_FORMAT_COUNT] = {
		[SHIM_FORMAT_TEXT] = "text",
		[SHIM_FORMAT_JSON] = "json",
		[SHIM_FORMAT_SARIF] = "sarif",
		[SHIM_FORMAT_JUNIT] = "junit",
	};

	for (unsigned i = 0; i < SHIM_FORMAT_COUNT; i++) {
		if (aqe_str_eq(name, names[i]))
			return (enum shim_format)i;
	}
	return SHIM_FORMAT_COUNT;
}

void shim_out_init(struct shim_out *o, enum shim_format format, unsigned text_flags)
{
	*o = (struct shim_out){ .format = format,
				.text_flags = text_flags,
				.body = AQE_BUF_INIT(ALL_MAX),
				.notes = AQE_BUF_INIT(ALL_MAX),
				.waivers = SHIM_WAIVERS_INIT };
}

void shim_out_done(struct shim_out *o)
{
	aqe_buf_done(&o->body);
	aqe_buf_done(&o->notes);
	shim_waivers_done(&o->waivers);
}

int shim_out_policy(struct shim_out *o, const struct hard_policy *policy, int64_t now_s,
		    struct aqe_err *e)
{
	return shim_waivers_init(&o->waivers, policy, now_s, e);
}

/* A program reads one document at a time: each carries its own warnings. */
static int print_json(struct shim_out *o, const struct shim_judged *j, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(ONE_MAX);
	struct shim_waivers mine = SHIM_WAIVERS_INIT;
	int rc = shim_waivers_init(&mine, o->waivers.policy, o->waivers.now_s, e);

	if (rc < 0)
		return rc;
	shim_waivers_add(&mine, j->report);
	shim_report_json(j, &mine, &b);
	shim_waivers_done(&mine);
	return shim_output(&b, e);
}

static int print_text(struct shim_out *o, const struct shim_judged *j, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(ONE_MAX);

	shim_report_text(j, o->text_flags, &b);
	return shim_output(&b, e);
}

int shim_out_add(struct shim_out *o, const struct shim_judged *j, struct aqe_err *e)
{
	struct shim_judged lost = *j;
	int rc;

	if (j->report->nomem && j->error.code == AQE_OK) {
		/* some findings are not there: without a word the rest could look like all */
		(void)aqe_err_set(&lost.error, AQE_E_NOMEM, 0, "no memory for all findings");
		lost.judged = true;
		j = &lost;
	}
	shim_waivers_add(&o->waivers, j->report);
	switch (o->format) {
	case SHIM_FORMAT_TEXT:
		return print_text(o, j, e);
	case SHIM_FORMAT_JSON:
		return print_json(o, j, e);
	case SHIM_FORMAT_SARIF:
		shim_sarif_add(j, o->text_flags & SHIM_TEXT_ALL, &o->body, &o->notes);
		rc = aqe_buf_ok(&o->body, e);
		return rc < 0 ? rc : aqe_buf_ok(&o->notes, e);
	case SHIM_FORMAT_JUNIT:
		shim_junit_add(j, &o->body, &o->sums);
		return aqe_buf_ok(&o->body, e);
	case SHIM_FORMAT_COUNT:
		break;
	}
	return aqe_err_set(e, AQE_E_INTERNAL, 0, "no such format");
}

static void warn(const struct shim_waivers *w)
{
	const size_t n = w->policy ? w->policy->n_waivers : 0;

	for (size_t i = 0; i < n; i++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(WARN_MAX);
		const enum shim_waiver_state state = shim_waivers_state(w, i);

		if (state == SHIM_WAIVER_QUIET)
			continue;
		shim_waiver_text(&w->policy->waivers[i], state, &b);
		(void)fprintf(stderr, "aqe-shim: warning: %s\n", aqe_buf_str(&b));
	}
}

int shim_out_end(struct shim_out *o, enum shim_exit status, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(ALL_MAX + ONE_MAX);

	if (o->format == SHIM_FORMAT_TEXT || o->format == SHIM_FORMAT_JUNIT)
		warn(&o->waivers);
	if (o->format == SHIM_FORMAT_SARIF)
		shim_sarif_end(o, status, &b);
	else if (o->format == SHIM_FORMAT_JUNIT)
		shim_junit_end(o, &b);
	return shim_output(&b, e);
}
