/* SPDX-License-Identifier: MIT */
/* Where the rules come from: published holes behind each property, and the source and date of every
 * table that has to be looked at again when engines, runtimes or the kernel move on. Printed by
 * `profile --format json` and `verify --explain`. */
#ifndef AQE_HARDENING_KNOWLEDGE_H
#define AQE_HARDENING_KNOWLEDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardening/props.h"

#define HARD_CVE_IDS 8

/* One kind of hole, with the numbers it was published under. */
struct hard_cve {
	const char *ids[HARD_CVE_IDS + 1]; /* "CVE-2019-5736", NULL-terminated */
	const char *where;                 /* the program that was wrong */
	const char *condition;             /* what it needs */
	const char *defence;               /* what the profile does about it */
	uint32_t props;                    /* bits 1 << enum hard_prop */
	const char *source, *date;         /* year and month of the look at the source */
};
extern const struct hard_cve HARD_CVES[];
extern const size_t HARD_CVES_COUNT;

/* True when the row stands behind the property. */
bool hard_cve_is_for(const struct hard_cve *c, enum hard_prop prop);

/* Numbers of the rules of a property in the project's rule set, "R13 R15". */
extern const char *const HARD_RULE_IDS[HARD_PROP_COUNT];

/* A table of this program that states what is known about others. */
struct hard_source {
	const char *table; /* member of the document that `profile --format json` prints */
	const char *about;
	const char *source, *date;
};
extern const struct hard_source HARD_SOURCES[];
extern const size_t HARD_SOURCES_COUNT;

#endif
