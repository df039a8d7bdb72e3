/* SPDX-License-Identifier: MIT */
/* `update`: new limits for a running container, never above the agent's ceilings (finding 2). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"
#include "shim/runtime.h"

#define UPDATE_PREFIX "update-"

enum value { INTEGER, SIZE, TEXT };

/* The options, as members of a resources document. */
static const struct {
	const char *option, *object, *member;
	enum value value;
} flags[] = {
	{ "blkio-weight", "blockIO", "weight", INTEGER },
	{ "cpu-period", "cpu", "period", INTEGER },
	{ "cpu-quota", "cpu", "quota", INTEGER },
	{ "cpu-burst", "cpu", "burst", INTEGER },
	{ "cpu-share", "cpu", "shares", INTEGER },
	{ "cpu-rt-period", "cpu", "realtimePeriod", INTEGER },
	{ "cpu-rt-runtime", "cpu", "realtimeRuntime", INTEGER },
	{ "cpu-idle", "cpu", "idle", INTEGER },
	{ "cpuset-cpus", "cpu", "cpus", TEXT },
	{ "cpuset-mems", "cpu", "mems", TEXT },
	{ "kernel-memory", "memory", "kernel", SIZE },
	{ "kernel-memory-tcp", "memory", "kernelTCP", SIZE },
	{ "memory", "memory", "limit", SIZE },
	{ "memory-reservation", "memory", "reservation", SIZE },
	{ "memory-swap", "memory", "swap", SIZE },
	{ "pids-limit", "pids", "limit", INTEGER },
};

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the resources document");
}

/* runc takes sizes with a suffix, crun plain bytes; -1 means unlimited to both. */
static struct aqe_json *value_of(struct aqe_arena *a, enum value kind, const char *text)
{
	int64_t number = 0;
	uint64_t size = 0;

	if (kind == TEXT)
		return aqe_json_new_str(a, text);
	if (aqe_parse_i64(text, INT64_MIN, INT64_MAX, &number))
		return aqe_json_new_i64(a, number);
	if (kind == SIZE && aqe_parse_size(text, &size))
		return aqe_json_new_u64(a, size);
	return NULL;
}

static int build(struct shim_rt *rt, struct aqe_json **ret, struct aqe_err *e)
{
	struct aqe_json *doc = aqe_json_new_object(rt->arena);

	for (size_t i = 0; doc && i < AQE_COUNT(flags); i++) {
		const char *text = shim_argv_option(&rt->av, flags[i].option);
		struct aqe_json *object, *v;

		if (!text)
			continue;
		v = value_of(rt->arena, flags[i].value, text);
		if (!v)
			return aqe_err_set(e, AQE_E_USAGE, 0, "bad value '%.40s' of '--%s'", text,
					   flags[i].option);
		object = aqe_json_ensure_object(rt->arena, doc, flags[i].object);
		if (!object || aqe_json_set(rt->arena, object, flags[i].member, v) < 0)
			return nomem(e);
	}
	if (!doc)
		return nomem(e);
	*ret = doc;
	return oci_doc_check(OCI_DOC_RESOURCES, doc, e);
}

static int read_resources(struct shim_rt *rt, const char *path, struct aqe_json **ret,
			  struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OCI_DOC_LIMITS.bytes);
	int rc;

	/* runc ignores the other options then, crun applies both */
	for (size_t i = 0; i < AQE_COUNT(flags); i++) {
		if (shim_argv_option(&rt->av, flags[i].option))
			return aqe_err_set(e, AQE_E_USAGE, 0,
					   "option '--%s' cannot be used with '--resources'",
					   flags[i].option);
	}
	rc = shim_rt_read_foreign(path, &b, e);
	if (rc == 0)
		rc = oci_doc_parse(rt->arena, OCI_DOC_RESOURCES, aqe_buf_str(&b), b.len, ret, e);
	return rc < 0 ? aqe_err_wrap(e, "resources document") : 0;
}

/* A resources document on its way. */
struct update {
	const struct shim_record *rec;
	struct aqe_json *in, *out; /* as asked for; what will change */
	struct hard_report report;
};

static int update_low(struct shim_rt *rt, const struct update *u, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	const char *extra[2] = { NULL, NULL };
	char name[32];
	char **argv;
	int rc = oci_doc_emit(OCI_DOC_RESOURCES, u->out, &b, e);

	(void)snprintf(name, sizeof(name), UPDATE_PREFIX "%d.json", (int)getpid());
	if (rc == 0)
		rc = aqe_fs_write_file(rt->dir.fd, name, 0600, b.p, b.len, e);
	if (rc == 0)
		rc = shim_low_open(u->rec->runtime, u->rec->runtime_digest, &rt->low, e);
	if (rc < 0)
		return rc;
	extra[0] = aqe_arena_fmt(rt->arena, "--resources=%s/%s", rt->dir.path, name);
	argv = extra[0] ? shim_argv_canonical(rt->arena, &rt->av, rt->low.path, extra) : NULL;
	rc = argv ? shim_audit_update(rt, u->in, u->out, &u->report, e) : nomem(e);
	if (rc == 0)
		rc = shim_low_exec(&rt->low, argv, rt->clean, e);
	(void)unlinkat(rt->dir.fd, name, 0); /* nobody will read it */
	return rc;
}

static int checked_update(struct shim_rt *rt, const struct shim_record *rec,
			  struct hard_policy **policy)
{
	const char *path = shim_argv_option(&rt->av, "resources");
	struct update u = { .rec = rec };
	struct hard_ctx ctx;
	struct aqe_err e = AQE_ERR_INIT;
	int rc = path ? read_resources(rt, path, &u.in, &e) : build(rt, &u.in, &e);

	hard_report_init(&u.report, rt->arena);
	if (rc == 0)
		rc = shim_rt_context(rt, rec, &ctx, policy, &e);
	if (rc == 0)
		rc = hard_update_rewrite(&ctx, rt->arena, u.in, &u.report, &u.out, &e);
	if (rc == 0 && !u.out)
		return shim_rt_refuse_report(rt, &u.report);
	/* docker sends zeros for "unchanged", also for `update --restart`: nothing to record */
	if (rc == 0 && !u.out->first)
		return SHIM_EXIT_OK;
	shim_dir_sweep(&rt->dir, UPDATE_PREFIX);
	if (rc == 0)
		rc = update_low(rt, &u, &e);
	(void)rc; /* update_low() returns only on failure */
	return shim_rt_refuse(rt, &e);
}

int shim_verb_update(struct shim_rt *rt)
{
	struct shim_record rec = { 0 };
	struct hard_policy *policy = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int rc = shim_rt_record(rt, &rec, &e);

	if (rc < 0)
		return shim_rt_without_record(rt, &e);
	if (rec.mode == HARD_MODE_OBSERVE) {
		shim_audit_observed(rt, NULL, NULL);
		return shim_observe_pass(rt);
	}
	rc = checked_update(rt, &rec, &policy);
	hard_policy_free(policy);
	return rc;
}
