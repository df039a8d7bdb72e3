/* SPDX-License-Identifier: MIT */
/* What `verify` says about one file, and how it is written: text for people, JSON for programs
 * (version 1: members are only ever added), SARIF 2.1.0 and JUnit for CI services. */
#ifndef AQE_SHIM_VERDICT_H
#define AQE_SHIM_VERDICT_H

#include <stdbool.h>

#include "hardening/report.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"
#include "shim/exit.h"
#include "shim/waivers.h"

/* In rising order of exit status: of several files the highest counts. */
enum shim_verdict {
	SHIM_VERDICT_CONFORM,
	SHIM_VERDICT_VIOLATE,
	SHIM_VERDICT_MALFORMED, /* error has the place */
	SHIM_VERDICT_UNKNOWN,   /* error, or a property that could not be decided */
};

struct shim_judged {
	const char *file;    /* as the user wrote it; "-" is standard input */
	const char *kind;    /* "spec", "inspect", "image", "info" */
	const char *dialect; /* whose inspect or info, or NULL */
	enum shim_verdict verdict;
	const struct hard_report *report; /* never NULL; all unknown when there is an error */
	struct aqe_err error;             /* code 0: none */
	bool judged;                      /* the report stands although there is an error */
	/* A container that went through the shim: `report` is what it really is, and this what its
	 * engine's inspect says; else NULL. */
	const struct hard_report *inspect;
	const char *kernel; /* with `inspect`: was the kernel read back? */
	int64_t now_s;      /* for waivers that end soon */
};

const char *shim_verdict_name(enum shim_verdict verdict);
enum shim_exit shim_verdict_exit(enum shim_verdict verdict);

enum shim_text_flag {
	SHIM_TEXT_ALL = 1U << 0, /* also properties that hold, and every further finding */
	SHIM_TEXT_COLOUR = 1U << 1,
};
/* One line a failed or waived property, and a summary line. */
void shim_report_text(const struct shim_judged *j, unsigned flags, struct aqe_buf *b);
/* One JSON object on one line: every property in the profile's order. `list` (may be NULL) is what
 * the document made of the policy's waivers. */
void shim_report_json(const struct shim_judged *j, const struct shim_waivers *list,
		      struct aqe_buf *b);
/* The first finding of `prop` at or after `f`, or NULL. */
const struct hard_finding *shim_finding_of(const struct hard_finding *f, enum hard_prop prop);

#endif
