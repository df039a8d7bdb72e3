/* SPDX-License-Identifier: MIT */
/* The restart policy on top of engines that loop (U47): every restart calls `create` again, so that
 * this is where it is delayed, or refused once it holds. It bounds waste and is no boundary of
 * security: what cannot be read or written here keeps no container from starting. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/early.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"
#include "shim/supervisor/guard.h"

#define ROOTLESS ".restarts"

static int64_t now_ms(void)
{
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_BOOTTIME, &ts); /* cannot fail */
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The folder of `aqe sandbox`'s counts; a rootless user's is in the state folder, because the verbs
 * do not always know a home. */
static int open_counts(const struct shim_rt *rt, bool make, int *ret)
{
	AQE_AUTO_FD int lib = -1;
	AQE_AUTO_FD int data = -1;
	const char *slash = strrchr(OCI_STORE_DATA, '/');
	char parent[64];
	int rc;

	if (rt->state.rootless)
		return make ? aqe_fs_ensure_dir(rt->state.fd, ROOTLESS, 0700, ret, NULL)
			    : aqe_fs_open_beneath(rt->state.fd, ROOTLESS, O_RDONLY | O_DIRECTORY, 0,
						  ret, NULL);
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - OCI_STORE_DATA),
		       OCI_STORE_DATA);
	if (!make) {
		rc = aqe_fs_open_nolinks(OCI_STORE_DATA "/supervisor", O_RDONLY | O_DIRECTORY, ret,
					 NULL);
		return rc;
	}
	rc = aqe_fs_open_dir(parent, &lib, NULL);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(lib, slash + 1, 0711, &data, NULL);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(data, "supervisor", 0700, ret, NULL);
	return rc;
}

/* Engines with a restart policy of their own. */
static bool can_loop(enum oci_engine engine)
{
	return engine == OCI_ENGINE_PODMAN || engine == OCI_ENGINE_DOCKER ||
	       engine == OCI_ENGINE_CONTAINERD;
}

static void wait_ms(uint32_t ms)
{
	struct timespec left = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		continue;
}

int shim_restart_enter(struct shim_rt *rt, enum oci_engine engine, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	uint64_t chance = 0;
	uint32_t delay_ms = 0;
	int rc;

	if (!can_loop(engine) || !shim_store_id_ok(rt->av.id) || open_counts(rt, false, &fd) < 0)
		return 0;
	/* a zero would only mean no delay in a window that is bounded anyway */
	(void)!getrandom(&chance, sizeof(chance), 0);
	rc = shim_guard_enter(fd, rt->av.id, now_ms(), chance, &delay_ms, e);
	if (rc == AQE_E_REFUSED)
		return rc;
	if (rc == 0 && delay_ms > 0)
		wait_ms(delay_ms);
	return 0;
}

void shim_restart_killed(struct shim_rt *rt, const char *signal)
{
	AQE_AUTO_FD int fd = -1;
	char path[512];

	if (rt->state.fd < 0 || !rt->name || !shim_early_is_end(signal))
		return;
	(void)snprintf(path, sizeof(path), "%s/" SHIM_EARLY_KILLED, rt->name);
	/* no record, no mark: then its end counts as any */
	(void)!aqe_fs_open_beneath(rt->state.fd, path, O_WRONLY | O_CREAT, 0600, &fd, NULL);
}

void shim_restart_ended(struct shim_rt *rt, const struct shim_record *rec)
{
	AQE_AUTO_FD int fd = -1;
	long ticks = sysconf(_SC_CLK_TCK);
	int64_t now = now_ms(), life;

	if (!can_loop(rec->engine) || !shim_store_id_ok(rec->id) || ticks <= 0 ||
	    faccessat(rt->dir.fd, SHIM_EARLY_KILLED, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	life = now - (int64_t)(rec->creator_start * 1000 / (uint64_t)ticks);
	if (open_counts(rt, true, &fd) == 0)
		(void)!shim_guard_ended(fd, rec->id, life, now, NULL); /* see above */
}
