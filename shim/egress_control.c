/* SPDX-License-Identifier: MIT */
#include "shim/egress_control.h"

#include "shim/aqe/unix_socket.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define ARENA_MAX ((size_t)64 << 10)

static enum netpol_control read_line(const char *line, size_t n)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *root = NULL;

	if (!a || aqe_json_parse(a, line, n, &AQE_JSON_LIMITS_DEFAULT, &root, NULL) < 0)
		return NETPOL_CONTROL_NONE;
	return aqe_str_eq(aqe_json_str(aqe_json_get(root, "op")), "reload") ? NETPOL_CONTROL_RELOAD
									    : NETPOL_CONTROL_NONE;
}

static void answer(struct aqe_buf *b, const char *digest, bool changed, const struct aqe_err *e)
{
	if (!e) {
		(void)aqe_buf_addf(b,
				   "{\"version\":1,\"ok\":true,\"changed\":%s,\"digest\":\"%s\"}\n",
				   changed ? "true" : "false", digest);
		return;
	}
	(void)aqe_buf_addf(b, "{\"version\":1,\"ok\":false,\"code\":\"%s\",\"error\":",
			   aqe_code_name(e->code));
	aqe_json_emit_str(b, e->text);
	(void)aqe_buf_puts(b, "}\n");
}

const struct netpol_control_ops SHIM_EGRESS_CONTROL = { shim_unix_peer_ok, read_line, answer };
