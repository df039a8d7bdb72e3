/* SPDX-License-Identifier: MIT */
#include "oci/doc.h"

#include <limits.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

static const char *const STATUS_NAMES[] = {
	[OCI_STATUS_CREATING] = "creating", [OCI_STATUS_CREATED] = "created",
	[OCI_STATUS_RUNNING] = "running",   [OCI_STATUS_PAUSED] = "paused",
	[OCI_STATUS_STOPPED] = "stopped",
};

/* A state document repeats the annotations, so it can be as large as a config.json. */
#define STATE_ARENA_MAX (32U << 20)

static int status_of(const struct aqe_json *root, enum oci_status *ret, struct aqe_err *e)
{
	const char *s = NULL;
	int r = aqe_json_get_str(root, "status", &s, e);

	if (r < 0)
		return r;
	if (r == 0)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "a state document has no 'status'");
	for (size_t i = 0; i < AQE_COUNT(STATUS_NAMES); i++) {
		if (aqe_str_eq(s, STATUS_NAMES[i])) {
			*ret = (enum oci_status)i;
			return 0;
		}
	}
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "status '%.32s' in a state document is not known",
			   s);
}

int oci_state_parse(const char *text, size_t len, struct oci_state *ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(STATE_ARENA_MAX);
	struct oci_state state = { OCI_STATUS_STOPPED, 0 };
	struct aqe_json *root;
	int64_t pid = 0;
	int r;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a state document");
	r = aqe_json_parse(a, text, len, &OCI_DOC_LIMITS, &root, e);
	if (r < 0)
		return aqe_err_wrap(e, "reading a state document");
	if (root->type != AQE_JSON_OBJECT)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "a state document is an object, not %s",
				   aqe_json_type_name(root->type));
	r = status_of(root, &state.status, e);
	if (r < 0)
		return r;
	r = aqe_json_get_i64(root, "pid", 0, INT_MAX, &pid, e);
	if (r < 0)
		return aqe_err_wrap(e, "reading a state document");
	state.pid = (int)pid;
	*ret = state;
	return 0;
}

bool oci_id_ok(const char *id)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_+.-";
	size_t n = id ? strlen(id) : 0;

	if (n < 1 || n > 1024 || aqe_str_eq(id, ".") || aqe_str_eq(id, ".."))
		return false;
	return strspn(id, letters) == n;
}
