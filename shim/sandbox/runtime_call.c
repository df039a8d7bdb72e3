/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/runtime_call.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"

int shim_runtime_explain(struct aqe_arena *a, int dirfd, const char *log, const char *verb,
			 struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(65536);
	struct aqe_json *root = NULL;
	const char *line, *next, *msg = NULL;
	int rc = aqe_fs_read_beneath(dirfd, log, AQE_FS_REGULAR, &text, NULL);

	if (rc < 0 && rc != AQE_E_NOMEM)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "%s failed and did not say why", verb);
	for (line = aqe_buf_str(&text); rc != AQE_E_NOMEM && line && *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line[len] ? line + len + 1 : NULL;
		rc = aqe_json_parse(a, line, len, &AQE_JSON_LIMITS_DEFAULT, &root, NULL);
		if (rc == 0)
			msg = aqe_json_str(aqe_json_get(root, "msg"));
	}
	if (rc == AQE_E_NOMEM) /* its words may be a verdict */
		return aqe_err_set(e, rc, 0, "%s failed, and there is no memory for why", verb);
	if (!msg)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "%s failed and did not say why", verb);
	return aqe_err_set(e, shim_engine_is_verdict(msg) ? AQE_E_REFUSED : AQE_E_UNKNOWN, 0,
			   "%.480s", msg);
}

pid_t shim_runtime_pid(int dirfd, const char *file)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(32);
	char digits[16];
	uint64_t pid = 0;

	if (dirfd < 0 || aqe_fs_read_beneath(dirfd, file, AQE_FS_REGULAR, &text, NULL) < 0)
		return 0;
	(void)snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(aqe_buf_str(&text), "\n"),
		       aqe_buf_str(&text));
	return aqe_parse_u64(digits, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

bool shim_runtime_ends_within(int pidfd, uint32_t ms)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int n;

	do {
		n = poll(&p, 1, (int)ms);
	} while (n < 0 && errno == EINTR);
	return n > 0;
}
