/* SPDX-License-Identifier: MIT */
#include "shim/aqe/audit_at.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/aqe/audit_journal.h"
#include "shim/env.h"
#include "shim/record.h"

#define SPARE_SYSTEM "/run/aqe-shim"
#define SPARE_USER   "aqe-shim"
#define STATE_MODE   0700 /* of ~/.local/state, as the XDG base directories say */

static int no_memory(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the place of the audit log");
}

/* Makes every folder of `path` that is not there; one that cannot be made shows when the log is
 * opened. */
static void make_folders(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		(void)mkdir(path, STATE_MODE);
		*p = '/';
	}
	(void)mkdir(path, STATE_MODE);
}

static int at_user(struct aqe_arena *a, char *const *envp, enum audit_mode mode,
		   struct audit_opts *ret, struct aqe_err *e)
{
	const char *state = shim_env_get(envp, "XDG_STATE_HOME");
	const char *home = shim_env_get(envp, "HOME");
	const char *runtime = shim_env_get(envp, "XDG_RUNTIME_DIR");
	char *above = NULL;

	if (state && state[0] == '/')
		above = aqe_arena_dup(a, state);
	else if (home && home[0] == '/')
		above = aqe_arena_fmt(a, "%s/.local/state", home);
	else
		return aqe_err_set(e, AQE_E_ABSENT, 0,
				   "no place for the audit log: neither XDG_STATE_HOME nor HOME is "
				   "an absolute path");
	if (!above)
		return no_memory(e);
	if (mode == AUDIT_WRITE)
		make_folders(above);
	ret->dir = aqe_arena_fmt(a, "%s/%s", above, AUDIT_DIR_USER);
	if (!ret->dir)
		return no_memory(e);
	if (runtime && runtime[0] == '/') {
		ret->spare_dir = aqe_arena_fmt(a, "%s/%s", runtime, SPARE_USER);
		if (!ret->spare_dir)
			return no_memory(e);
	}
	return AQE_OK;
}

int shim_audit_at(struct aqe_arena *a, char *const *envp, enum audit_mode mode,
		  struct audit_opts *ret, struct aqe_err *e)
{
	struct audit_opts o = { .mode = mode, .added = shim_journal_row };
	int rc = AQE_OK;

	if (geteuid() == 0 && !shim_state_in_userns()) {
		o.dir = AUDIT_DIR_SYSTEM;
		o.spare_dir = SPARE_SYSTEM;
	} else {
		rc = at_user(a, envp, mode, &o, e);
	}
	if (rc == AQE_OK)
		*ret = o;
	return rc;
}

int shim_audit_at_path(struct aqe_arena *a, const char *path, enum audit_mode mode,
		       struct audit_opts *ret, struct aqe_err *e)
{
	struct audit_opts o = { .mode = mode, .added = shim_journal_row };
	char cwd[PATH_MAX];
	struct stat st;
	char *full = NULL, *slash;
	size_t n;

	if (path[0] == '/')
		full = aqe_arena_dup(a, path);
	else if (!getcwd(cwd, sizeof(cwd)))
		return aqe_err_set(e, AQE_E_SYS, errno, "working directory");
	else
		full = aqe_arena_fmt(a, "%s/%s", cwd, path);
	if (!full)
		return no_memory(e);
	for (n = strlen(full); n > 1 && full[n - 1] == '/'; n--)
		full[n - 1] = '\0';
	o.dir = full;
	slash = strrchr(full, '/');
	if (mode == AUDIT_READ && stat(full, &st) == 0 && S_ISREG(st.st_mode)) {
		*slash = '\0';
		o.file = slash + 1;
		if (slash == full)
			o.dir = "/";
	}
	*ret = o;
	return AQE_OK;
}
