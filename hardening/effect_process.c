/* SPDX-License-Identifier: MIT */
/* Judging the process itself: what it may, who it is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "hardening/effect_int.h"
#include "shim/core/text.h"

#define UMASK_REQUIRED 022U /* nothing the agent makes is writable for others (R13) */

void hard_fx_privileges_judge(const struct hard_fx_status *status, const char *where,
			      struct hard_report *report)
{
	size_t i;

	for (i = 0; i < HARD_FX_CAP_SETS; i++)
		if (status->caps[i])
			hard_report_fail(report, HARD_CAPABILITIES, NULL, where, "no capability",
					 "%s %016" PRIx64, HARD_FX_CAP_LABEL[i], status->caps[i]);
	if (status->no_new_privs != 1)
		hard_report_fail(report, HARD_NO_NEW_PRIVILEGES, NULL, where, "NoNewPrivs 1",
				 "NoNewPrivs %" PRIu64, status->no_new_privs);
	hard_report_pass(report, HARD_CAPABILITIES);
	hard_report_pass(report, HARD_NO_NEW_PRIVILEGES);
}

bool hard_fx_spec_namespace(const struct aqe_json *spec, const char *type)
{
	const struct aqe_json *list = aqe_json_at(spec, "/linux/namespaces"), *v;

	for (v = list ? list->first : NULL; v; v = v->next)
		if (aqe_str_eq(aqe_json_str(aqe_json_get(v, "type")), type))
			return true;
	return false;
}

/* ---- id maps ---- */

/* uids and gids are judged alike. */
struct idset {
	const char *map_name; /* "uid_map" */
	const char *pointer;  /* mappings in the spec */
	struct hard_idmap *map;
	size_t *n;
	const struct hard_idmap *ours;
	size_t n_ours;
};

/* The mappings a spec asks for. */
static int spec_map(const struct aqe_json *spec, const char *pointer, struct hard_idmap *ret,
		    size_t *ret_n, struct aqe_err *e)
{
	const struct aqe_json *list = aqe_json_at(spec, pointer), *v;
	size_t n = 0;

	for (v = list ? list->first : NULL; v; v = v->next) {
		struct hard_idmap *m = &ret[n];

		if (n == HARD_IDMAP_MAX)
			return aqe_err_at(e, AQE_E_LIMIT, v->line, v->col, "'%s': too many",
					  pointer);
		if (!aqe_json_to_u64(aqe_json_get(v, "containerID"), UINT32_MAX, &m->inside) ||
		    !aqe_json_to_u64(aqe_json_get(v, "hostID"), UINT32_MAX, &m->outside) ||
		    !aqe_json_to_u64(aqe_json_get(v, "size"), UINT32_MAX, &m->size))
			return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col, "'%s': no mapping",
					  pointer);
		n++;
	}
	*ret_n = n;
	return 0;
}

/* The process's map must be the spec's, or, when the spec has no user namespace, ours. The kernel
 * shows the outside ids as our user namespace sees them, which is how the spec counts; for a
 * process in our own user namespace it shows them as it shows ours in /proc/self. */
static int judge_map(struct hard_fx_process *p, const struct idset *s, struct hard_idmap *want,
		     struct hard_report *report, struct aqe_err *e)
{
	size_t n_want = 0;
	int r;

	if (hard_fx_spec_namespace(p->fx->spec, "user")) {
		r = spec_map(p->fx->spec, s->pointer, want, &n_want, e);
		if (r < 0)
			return r;
	} else {
		n_want = s->n_ours;
		memcpy(want, s->ours, n_want * sizeof(*want));
	}
	n_want = hard_fx_idmap_normalise(want, n_want);
	*s->n = hard_fx_idmap_normalise(s->map, *s->n);
	if (!hard_fx_idmap_equal(s->map, *s->n, want, n_want))
		hard_report_fail(report, HARD_ROOTLESS, NULL, p->where,
				 "the mappings of the spec, or ours if it has none",
				 "%s differs: %zu ranges, wanted %zu", s->map_name, *s->n, n_want);
	return 0;
}

/* ---- ids ---- */

/* The id as it shows to us, and as the initial user namespace sees it as far as we can tell. */
static bool map_id(const struct hard_fx_process *p, const struct idset *s, uint64_t inside,
		   uint64_t *ret_shown, uint64_t *ret_host)
{
	uint64_t shown = inside, host;

	if (hard_fx_spec_namespace(p->fx->spec, "user") &&
	    !hard_fx_idmap_out(s->map, *s->n, inside, &shown))
		return false;
	host = shown;
	if (p->fx->ctx->host->in_userns && !hard_fx_idmap_out(s->ours, s->n_ours, shown, &host))
		return false;
	*ret_shown = shown;
	*ret_host = host;
	return true;
}

static void judge_ids(const struct hard_fx_process *p, const struct idset *s, const char *label,
		      const uint64_t have[4], uint64_t inside, struct hard_report *report)
{
	uint64_t shown = 0, host = 0;
	size_t i;

	if (!map_id(p, s, inside, &shown, &host)) {
		hard_report_fail(report, HARD_USER, NULL, p->where, "a mapped id",
				 "%s %" PRIu64 " is not mapped", label, inside);
		return;
	}
	if (inside == 0 || host == 0)
		hard_report_fail(report, HARD_USER, NULL, p->where,
				 "not root, inside or on the host",
				 "%s %" PRIu64 " is %" PRIu64 " on the host", label, inside, host);
	for (i = 0; i < 4; i++) {
		if (have[i] != shown) {
			hard_report_fail(report, HARD_USER, NULL, p->where,
					 "real, effective, saved and file system id as in the spec",
					 "%s: %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
					 ", wanted %" PRIu64,
					 label, have[0], have[1], have[2], have[3], shown);
			return;
		}
	}
}

/* True when the group that shows as `shown` is one the spec names. */
static bool group_asked(const struct hard_fx_process *p, const struct idset *s, uint64_t shown)
{
	const struct aqe_json *user = aqe_json_at(p->fx->spec, "/process/user");
	const struct aqe_json *more = aqe_json_get(user, "additionalGids"), *v;
	uint64_t gid, as, host;

	if (aqe_json_to_u64(aqe_json_get(user, "gid"), UINT32_MAX, &gid) &&
	    map_id(p, s, gid, &as, &host) && as == shown)
		return true;
	for (v = more ? more->first : NULL; v; v = v->next)
		if (aqe_json_to_u64(v, UINT32_MAX, &gid) && map_id(p, s, gid, &as, &host) &&
		    as == shown)
			return true;
	return false;
}

static void judge_groups(const struct hard_fx_process *p, const struct idset *s,
			 struct hard_report *report)
{
	size_t i;

	for (i = 0; i < p->status.n_groups; i++)
		if (!group_asked(p, s, p->status.groups[i]))
			hard_report_fail(report, HARD_USER, NULL, p->where, "the spec's groups",
					 "supplementary group %" PRIu64, p->status.groups[i]);
}

/* Both runtimes set process.user.umask before they wait; without it crun and runc set 0022. */
static void judge_umask(const struct hard_fx_process *p, struct hard_report *report)
{
	if (!p->status.has_umask || (p->status.umask & UMASK_REQUIRED) != UMASK_REQUIRED)
		hard_report_fail(report, HARD_USER, NULL, p->where, "a umask that has 022",
				 "umask %04" PRIo64, p->status.umask);
}

int hard_fx_ids_judge(struct hard_fx_process *p, struct aqe_arena *arena,
		      struct hard_report *report, struct aqe_err *e)
{
	const struct hard_host *host = p->fx->ctx->host;
	const struct aqe_json *user = aqe_json_at(p->fx->spec, "/process/user");
	const struct idset u = { "uid_map", "/linux/uidMappings", p->uid_map,
				 &p->n_uid, host->uid_map,        host->n_uid };
	const struct idset g = { "gid_map", "/linux/gidMappings", p->gid_map,
				 &p->n_gid, host->gid_map,        host->n_gid };
	struct hard_idmap *want = aqe_arena_raw(arena, HARD_IDMAP_MAX * sizeof(*want));
	uint64_t uid, gid;
	int r;

	if (!want)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "id maps");
	if (!aqe_json_to_u64(aqe_json_get(user, "uid"), UINT32_MAX, &uid) ||
	    !aqe_json_to_u64(aqe_json_get(user, "gid"), UINT32_MAX, &gid))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "process.user: no uid or gid");
	r = judge_map(p, &u, want, report, e);
	if (r == 0)
		r = judge_map(p, &g, want, report, e);
	if (r < 0)
		return r;
	if (!host->in_userns && !hard_fx_spec_namespace(p->fx->spec, "user"))
		hard_report_fail(report, HARD_ROOTLESS, NULL, p->where, NULL,
				 "no user namespace: uid %" PRIu64 " is that of the host", uid);
	judge_ids(p, &u, "Uid", p->status.uid, uid, report);
	judge_ids(p, &g, "Gid", p->status.gid, gid, report);
	judge_groups(p, &g, report);
	judge_umask(p, report);
	if (p->status.n_nspid < 2 || p->status.nspid_last != 1)
		hard_report_fail(report, HARD_NAMESPACES, NULL, p->where,
				 "pid 1 of a pid namespace of its own", "pid %" PRIu64,
				 p->status.nspid_last);
	hard_report_pass(report, HARD_ROOTLESS);
	hard_report_pass(report, HARD_USER);
	return 0;
}
