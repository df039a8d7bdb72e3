/* SPDX-License-Identifier: MIT */
#include "shim/verify_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hardening/effect.h"
#include "hardening/rules_mounts.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/record.h"
#include "shim/verify_join.h"

#define NAME_LEN_MAX 253
#define RECORDS_MAX  100000

/* ---- what the shim knows ---- */

struct known {
	struct aqe_arena *arena;
	struct shim_state state;
	struct shim_dir dir;
	struct shim_record rec;
	struct aqe_json *spec;
};

/* The record's directory is "<id>@<root>"; the engine's root is not known here. More than one is
 * nothing to decide by. 1 found, 0 none. */
static int find_name(const struct known *k, const char *id, char *ret, size_t size,
		     struct aqe_err *e)
{
	int fd = openat(k->state.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;
	const size_t n = strlen(id);
	int found = 0;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd); /* nothing was read yet */
		return aqe_err_set(e, AQE_E_SYS, errno, "read the state folder");
	}
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	for (int i = 0; i < RECORDS_MAX && (ent = readdir(dir)); i++) {
		if (!aqe_starts(ent->d_name, id) || ent->d_name[n] != '@')
			continue;
		(void)snprintf(ret, size, "%s", ent->d_name);
		found++;
	}
	(void)closedir(dir); /* only read from */
	if (found > 1)
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "container '%.64s' has %d records", id,
				   found);
	return found;
}

static int read_spec(struct known *k, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)2 << 20);
	int rc = aqe_fs_read_beneath(k->dir.fd, SHIM_RECORD_CONFIG, AQE_FS_TRUSTED, &b, e);

	if (rc == 0)
		rc = oci_doc_parse(k->arena, OCI_DOC_CONFIG, aqe_buf_str(&b), b.len, &k->spec, e);
	return rc < 0 ? aqe_err_wrap(e, "recorded config.json") : 0;
}

/* 1 when there is a record of a container that was hardened, 0 when not. */
static int open_record(struct known *k, const char *id, struct aqe_err *e)
{
	char name[NAME_LEN_MAX + 3] = "";
	int rc = shim_state_open(k->arena, environ, false, &k->state, e);

	if (rc == AQE_E_ABSENT || rc == AQE_E_UNKNOWN)
		return 0;
	if (rc == 0)
		rc = find_name(k, id, name, sizeof(name), e);
	if (rc <= 0)
		return rc;
	rc = shim_dir_open(k->arena, &k->state, name, SHIM_DIR_READ, &k->dir, e);
	if (rc == 0)
		rc = shim_record_load(k->arena, &k->dir, &k->rec, e);
	if (rc < 0)
		return rc;
	if (!aqe_str_eq(k->rec.id, id))
		return aqe_err_set(e, AQE_E_UNKNOWN, 0, "the record is another container's");
	if (k->rec.mode == HARD_MODE_OBSERVE)
		return 0; /* passed through as it was */
	rc = read_spec(k, e);
	return rc < 0 ? rc : 1;
}

/* The runtime was given pins of the policy's mounts, in the container's own directory; what they
 * hold was checked when they were made, and by identity below. */
static int unpin(struct known *k, const struct hard_ctx *ctx, struct aqe_err *e)
{
	struct aqe_json *mounts = aqe_json_get(k->spec, "mounts");

	for (struct aqe_json *m = mounts ? mounts->first : NULL; m; m = m->next) {
		const char *source = aqe_json_str(aqe_json_get(m, "source"));
		const char *at = aqe_json_str(aqe_json_get(m, "destination"));
		const struct hard_mount *row = at ? hard_rule_policy_mount(ctx, at) : NULL;

		if (!source || !row || !aqe_path_is_under(source, k->dir.path))
			continue;
		if (aqe_json_set(k->arena, m, "source", aqe_json_new_str(k->arena, row->source)) <
		    0)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the mounts");
	}
	return 0;
}

/* Where the engine keeps this container's files: `create` looked that up and held every mount to
 * it, so the paths of the recorded document tell. */
static int engine_dirs(struct known *k, struct oci_identity *ret, struct aqe_err *e)
{
	const struct aqe_json *mounts = aqe_json_get(k->spec, "mounts");

	for (const struct aqe_json *m = mounts ? mounts->first : NULL; m; m = m->next) {
		const char *source = aqe_json_str(aqe_json_get(m, "source"));
		const char *at = source ? strstr(source, k->rec.id) : NULL;
		size_t n;

		if (!at || at == source || at[-1] != '/' || ret->n_dirs == OCI_ENGINE_DIRS_MAX)
			continue;
		n = (size_t)(at - source) + strlen(k->rec.id);
		if (aqe_starts(source + n, "/userdata/"))
			n += strlen("/userdata");
		ret->dirs[ret->n_dirs] = aqe_arena_ndup(k->arena, source, n);
		if (!ret->dirs[ret->n_dirs])
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the record");
		if (ret->n_dirs == 0 ||
		    !aqe_str_eq(ret->dirs[ret->n_dirs], ret->dirs[ret->n_dirs - 1]))
			ret->n_dirs++;
	}
	return 0;
}

/* The image as the record knows it: proved when the container was created. */
static int recorded_image(struct known *k, struct oci_identity *ret, struct aqe_err *e)
{
	*ret = (struct oci_identity){ .engine = k->rec.engine,
				      .known = k->rec.image_id != NULL,
				      .digests = k->rec.digests,
				      .n_digests = k->rec.n_digests,
				      .name = k->rec.image_name,
				      .why_unknown = "the record names none" };
	(void)snprintf(ret->image_id, sizeof(ret->image_id), "%s",
		       k->rec.image_id ? k->rec.image_id : "");
	return engine_dirs(k, ret, e);
}

/* ---- the kernel ---- */

/* The process that the engine names, if it is no older than the call that made the container. */
static int open_process(const struct known *k, pid_t pid, int *ret, struct aqe_err *e)
{
	char path[32];
	uint64_t start = 0;
	int rc;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*ret < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%s'", path);
	rc = aqe_proc_start_time(pid, &start, e);
	if (rc == 0 && start < k->rec.creator_start)
		rc = aqe_err_set(e, AQE_E_UNKNOWN, 0, "process %d is older than the container",
				 (int)pid);
	return rc;
}

static int read_kernel(const struct known *k, const struct hard_ctx *ctx, pid_t pid,
		       struct hard_report *report, struct aqe_err *e)
{
	struct hard_host *host = aqe_arena_raw(k->arena, sizeof(*host));
	struct hard_ctx with = *ctx;
	AQE_AUTO_FD int fd = -1;
	int rc = host ? hard_host_read(host, e) : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");

	with.host = host;
	if (rc == 0)
		rc = open_process(k, pid, &fd, e);
	const struct hard_effect fx = { .pid = pid,
					.proc_fd = fd,
					.spec = k->spec,
					.ctx = &with,
					.binds = k->rec.binds,
					.n_binds = k->rec.n_binds };

	if (rc == 0)
		rc = hard_effect_created(&fx, report, e);
	if (rc == 0)
		rc = hard_effect_started(&fx, report, e);
	return rc;
}

/* ---- both ---- */

static int judge(struct known *k, const struct hard_ctx *gate, pid_t pid,
		 struct hard_report *report, struct shim_effective *ret, struct aqe_err *e)
{
	struct hard_ctx ctx = *gate;
	struct hard_host *host = aqe_arena_raw(k->arena, sizeof(*host));
	struct oci_identity image;
	int rc = recorded_image(k, &image, e);

	if (rc == 0 && !host)
		rc = aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the host's facts");
	if (rc == 0)
		rc = hard_host_read(host, e);
	if (rc < 0)
		return rc;
	/* the rest of `host` is ours, not that of a rootless engine's namespace */
	ctx.no_cgroup = k->state.rootless && !host->cgroup_v2;
	ctx.image = &image;
	if (image.known)
		ctx.entry = hard_policy_image(ctx.policy, image.image_id, image.digests,
					      image.n_digests);
	ctx.agent = &k->rec.agent;
	ctx.container_id = k->rec.id;
	ctx.bundle = k->rec.bundle;
	rc = unpin(k, &ctx, e);
	if (rc == 0)
		rc = hard_verify(&ctx, k->spec, report, e);
	if (rc < 0 || pid <= 0) {
		ret->kernel = "not read: the container does not run";
		return rc;
	}
	ret->kernel = "read back";
	/* a rootless engine's numbers are those of its own user namespace */
	rc = k->state.rootless ? shim_join_engine(pid, e) : 0;
	if (rc == 0)
		rc = read_kernel(k, &ctx, pid, report, e);
	if (rc < 0)
		return aqe_err_wrap(e, "what the kernel shows");
	hard_report_waive(report, ctx.policy, ctx.agent->type, ctx.entry, ctx.now_s);
	return rc;
}

int shim_effective_judge(struct aqe_arena *a, const struct hard_ctx *ctx, const char *id, pid_t pid,
			 struct hard_report *report, struct shim_effective *ret, struct aqe_err *e)
{
	struct known k = { .arena = a, .state = SHIM_STATE_INIT, .dir = SHIM_DIR_INIT };
	struct shim_effective eff = { false, NULL };
	int rc = id && oci_id_ok(id) ? open_record(&k, id, e) : 0;

	eff.found = rc != 0; /* a record that cannot be read is no reason to believe the engine */
	if (rc > 0)
		rc = judge(&k, ctx, pid, report, &eff, e);
	shim_dir_done(&k.dir);
	shim_state_done(&k.state);
	*ret = eff;
	return rc;
}
