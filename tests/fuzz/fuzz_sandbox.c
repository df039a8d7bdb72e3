/* SPDX-License-Identifier: MIT */
/* What sandboxes read back from files and from engines: events, plans and states, log lines, the
 * state of a runtime, numbers of cgroup files. The first byte picks the reader. */
#include <stdlib.h>
#include <string.h>

#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/events.h"
#include "shim/sandbox/logs.h"
#include "shim/sandbox/usage.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void read_fields(struct aqe_arena *a, const char *text, size_t n)
{
	struct shim_plan plan = { 0 }, again = { 0 };
	struct aqe_json *root = NULL, *out;

	if (aqe_json_parse(a, text, n, &AQE_JSON_LIMITS_DEFAULT, &root, NULL) < 0 ||
	    shim_fields_read(a, SHIM_PLAN_FIELDS, root, &plan, NULL) < 0)
		return;
	out = shim_fields_emit(a, SHIM_PLAN_FIELDS, &plan);
	must(out && shim_fields_read(a, SHIM_PLAN_FIELDS, out, &again, NULL) == 0);
	must(again.memory == plan.memory && again.env.n == plan.env.n);
}

static void read_event(const char *text, size_t n)
{
	struct shim_box b = SHIM_BOX_INIT;
	struct shim_event_history h = { 0, false };

	b.name = "agentic-qe-default-a";
	must(shim_event_history_line(&b, text, n, &h, NULL) == 0);
}

static void read_log(const char *text, size_t n)
{
	AQE_AUTO_FREE char *scratch = malloc(n + 1);
	struct shim_log_record r;

	if (scratch && shim_log_parse(text, n, scratch, &r))
		must(r.len <= n);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)16 << 20);
	AQE_AUTO_FREE char *text = size ? strndup((const char *)data + 1, size - 1) : NULL;
	struct oci_state st;
	uint64_t v;

	if (!a || !text)
		return 0;
	size = strlen(text);
	switch (data[0] % 5) {
	case 0:
		read_event(text, size);
		break;
	case 1:
		read_fields(a, text, size);
		break;
	case 2:
		read_log(text, size);
		break;
	case 3:
		(void)!oci_state_parse(text, size, &st, NULL); /* accepted or not */
		break;
	default:
		(void)shim_usage_field(text, "oom_kill", &v);
		(void)shim_engine_is_verdict(text);
		break;
	}
	return 0;
}
