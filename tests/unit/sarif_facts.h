/* SPDX-License-Identifier: MIT */
/* The facts of OASIS' schema of SARIF 2.1.0 (errata 01, 2023-08-28) about the parts that we write:
 * types, required members, enumerations, least numbers. All its objects but property bags are
 * closed; a member that is missing here is one that we do not write. Where the schema wants one of
 * several members, ours is required. */
#ifndef AQE_UNIT_SARIF_FACTS_H
#define AQE_UNIT_SARIF_FACTS_H

#include <stdint.h>

#include "shim/core/json.h"
#include "shim/core/text.h"

#define SARIF_WORDS(...)          \
	(const char *const[])     \
	{                         \
		__VA_ARGS__, NULL \
	}
#define SARIF_LEVELS SARIF_WORDS("none", "note", "warning", "error")

struct sarif_fact {
	const char *shape, *member;
	enum aqe_json_type type;
	bool required;
	const char *of;            /* shape of the object, or of an array's items; NULL: text */
	const char *const *values; /* NULL: any */
	int64_t least;             /* NUMBER */
};

static const struct sarif_fact SARIF_FACTS[] = {
	{ "log", "$schema", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "log", "version", AQE_JSON_STRING, true, NULL, SARIF_WORDS("2.1.0"), 0 },
	{ "log", "runs", AQE_JSON_ARRAY, true, "run", NULL, 0 },
	{ "run", "tool", AQE_JSON_OBJECT, true, "tool", NULL, 0 },
	/* absent would mean that nothing was looked for: a run of ours always has them */
	{ "run", "results", AQE_JSON_ARRAY, true, "result", NULL, 0 },
	{ "run", "invocations", AQE_JSON_ARRAY, false, "invocation", NULL, 0 },
	{ "tool", "driver", AQE_JSON_OBJECT, true, "component", NULL, 0 },
	{ "component", "name", AQE_JSON_STRING, true, NULL, NULL, 0 },
	{ "component", "version", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "component", "semanticVersion", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "component", "rules", AQE_JSON_ARRAY, false, "descriptor", NULL, 0 },
	{ "component", "notifications", AQE_JSON_ARRAY, false, "descriptor", NULL, 0 },
	{ "descriptor", "id", AQE_JSON_STRING, true, NULL, NULL, 0 },
	{ "descriptor", "shortDescription", AQE_JSON_OBJECT, false, "multiformat", NULL, 0 },
	{ "descriptor", "fullDescription", AQE_JSON_OBJECT, false, "multiformat", NULL, 0 },
	{ "descriptor", "help", AQE_JSON_OBJECT, false, "multiformat", NULL, 0 },
	{ "descriptor", "defaultConfiguration", AQE_JSON_OBJECT, false, "configuration", NULL, 0 },
	{ "descriptor", "properties", AQE_JSON_OBJECT, false, "bag", NULL, 0 },
	{ "multiformat", "text", AQE_JSON_STRING, true, NULL, NULL, 0 },
	{ "multiformat", "markdown", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "configuration", "level", AQE_JSON_STRING, false, NULL, SARIF_LEVELS, 0 },
	{ "result", "ruleId", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "result", "ruleIndex", AQE_JSON_NUMBER, false, NULL, NULL, -1 },
	{ "result", "kind", AQE_JSON_STRING, false, NULL,
	  SARIF_WORDS("notApplicable", "pass", "fail", "review", "open", "informational"), 0 },
	{ "result", "level", AQE_JSON_STRING, false, NULL, SARIF_LEVELS, 0 },
	{ "result", "message", AQE_JSON_OBJECT, true, "message", NULL, 0 },
	{ "result", "locations", AQE_JSON_ARRAY, false, "location", NULL, 0 },
	{ "result", "suppressions", AQE_JSON_ARRAY, false, "suppression", NULL, 0 },
	{ "result", "properties", AQE_JSON_OBJECT, false, "bag", NULL, 0 },
	{ "message", "text", AQE_JSON_STRING, true, NULL, NULL, 0 },
	{ "location", "physicalLocation", AQE_JSON_OBJECT, false, "physical", NULL, 0 },
	{ "location", "logicalLocations", AQE_JSON_ARRAY, false, "logical", NULL, 0 },
	{ "physical", "artifactLocation", AQE_JSON_OBJECT, true, "artifact", NULL, 0 },
	{ "physical", "region", AQE_JSON_OBJECT, false, "region", NULL, 0 },
	{ "artifact", "uri", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "region", "startLine", AQE_JSON_NUMBER, true, NULL, NULL, 1 },
	{ "region", "startColumn", AQE_JSON_NUMBER, false, NULL, NULL, 1 },
	{ "logical", "fullyQualifiedName", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "suppression", "kind", AQE_JSON_STRING, true, NULL, SARIF_WORDS("inSource", "external"),
	  0 },
	{ "suppression", "status", AQE_JSON_STRING, false, NULL,
	  SARIF_WORDS("accepted", "underReview", "rejected"), 0 },
	{ "suppression", "justification", AQE_JSON_STRING, false, NULL, NULL, 0 },
	{ "suppression", "location", AQE_JSON_OBJECT, false, "location", NULL, 0 },
	{ "invocation", "executionSuccessful", AQE_JSON_BOOL, true, NULL, NULL, 0 },
	{ "invocation", "exitCode", AQE_JSON_NUMBER, false, NULL, NULL, INT32_MIN },
	{ "invocation", "toolExecutionNotifications", AQE_JSON_ARRAY, false, "notification", NULL,
	  0 },
	{ "invocation", "toolConfigurationNotifications", AQE_JSON_ARRAY, false, "notification",
	  NULL, 0 },
	{ "notification", "level", AQE_JSON_STRING, false, NULL, SARIF_LEVELS, 0 },
	{ "notification", "descriptor", AQE_JSON_OBJECT, false, "reference", NULL, 0 },
	{ "notification", "message", AQE_JSON_OBJECT, true, "message", NULL, 0 },
	{ "notification", "locations", AQE_JSON_ARRAY, false, "location", NULL, 0 },
	{ "notification", "associatedRule", AQE_JSON_OBJECT, false, "reference", NULL, 0 },
	{ "reference", "id", AQE_JSON_STRING, true, NULL, NULL, 0 },
	{ "reference", "index", AQE_JSON_NUMBER, false, NULL, NULL, -1 },
};

static inline const struct sarif_fact *sarif_fact(const char *shape, const char *member)
{
	for (size_t i = 0; i < AQE_COUNT(SARIF_FACTS); i++)
		if (aqe_str_eq(SARIF_FACTS[i].shape, shape) &&
		    aqe_str_eq(SARIF_FACTS[i].member, member))
			return &SARIF_FACTS[i];
	return NULL;
}

static inline bool sarif_value_ok(const struct sarif_fact *f, const struct aqe_json *v)
{
	int64_t n;

	if (v->type != f->type || (f->values && !aqe_str_in(v->text, f->values)))
		return false;
	return v->type != AQE_JSON_NUMBER || aqe_json_to_i64(v, f->least, INT32_MAX, &n);
}

#endif
