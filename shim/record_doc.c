/* SPDX-License-Identifier: MIT */
/* record.json: written and read only by us, in a directory only we can write; still read strictly,
 * since verbs decide on it. */
#include <stddef.h>
#include <string.h>

#include "shim/core/text.h"
#include "shim/record.h"

#define RECORD_VERSION 1

static const char *const mode_names[] = {
	[HARD_MODE_OBSERVE] = "observe",
	[HARD_MODE_VERIFY] = "verify",
	[HARD_MODE_ENFORCE] = "enforce",
};

static const char *const audit_names[] = {
	[HARD_AUDIT_OFF] = "off",
	[HARD_AUDIT_OPTIONAL] = "optional",
	[HARD_AUDIT_REQUIRED] = "required",
};

/* The string members, so that writing and reading cannot drift apart. */
static const struct {
	const char *name;
	size_t offset;
	bool required;
} strings[] = {
	{ "id", offsetof(struct shim_record, id), true },
	{ "bundle", offsetof(struct shim_record, bundle), false },
	{ "runtime", offsetof(struct shim_record, runtime), true },
	{ "runtimeDigest", offsetof(struct shim_record, runtime_digest), false },
	{ "xdgRuntimeDir", offsetof(struct shim_record, xdg_runtime_dir), false },
	{ "imageId", offsetof(struct shim_record, image_id), false },
	{ "imageName", offsetof(struct shim_record, image_name), false },
	{ "policyDigest", offsetof(struct shim_record, policy_digest), false },
	{ "policyFiles", offsetof(struct shim_record, policy_files), false },
	{ "pidFile", offsetof(struct shim_record, pid_file), false },
	{ "cgroupsPath", offsetof(struct shim_record, cgroups_path), false },
	{ "agentId", offsetof(struct shim_record, agent_id), false },
	{ "auditDir", offsetof(struct shim_record, audit_dir), false },
	{ "auditStart", offsetof(struct shim_record, audit_start), false },
};

static const char **string_at(void *record, size_t i)
{
	return (const char **)(void *)((char *)record + strings[i].offset);
}

/* ---- writing: one sticky flag instead of a check after every member ---- */

struct out {
	struct aqe_arena *a;
	bool failed;
};

static void put(struct out *o, struct aqe_json *obj, const char *name, struct aqe_json *v)
{
	if (!obj || aqe_json_set(o->a, obj, name, v) < 0)
		o->failed = true;
}

static void put_str(struct out *o, struct aqe_json *obj, const char *name, const char *s)
{
	if (s)
		put(o, obj, name, aqe_json_new_str(o->a, s));
}

static void put_u64(struct out *o, struct aqe_json *obj, const char *name, uint64_t v)
{
	put(o, obj, name, aqe_json_new_u64(o->a, v));
}

static void put_agent(struct out *o, struct aqe_json *doc, const struct hard_agent *agent)
{
	struct aqe_json *obj = aqe_json_new_object(o->a);

	put_str(o, obj, "type", agent->type);
	put_u64(o, obj, "cpusMilli", agent->cpus_milli);
	put_u64(o, obj, "memoryBytes", agent->memory_bytes);
	put_u64(o, obj, "diskBytes", agent->disk_bytes);
	put_u64(o, obj, "pids", agent->pids);
	put(o, obj, "tmpExec", aqe_json_new_bool(o->a, agent->tmp_exec));
	put(o, doc, "agent", obj);
}

static void put_binds(struct out *o, struct aqe_json *doc, const struct shim_record *r)
{
	struct aqe_json *list = aqe_json_new_array(o->a);

	for (size_t i = 0; i < r->n_binds; i++) {
		struct aqe_json *obj = aqe_json_new_object(o->a);

		put_str(o, obj, "destination", r->binds[i].destination);
		put_u64(o, obj, "dev", r->binds[i].dev);
		put_u64(o, obj, "ino", r->binds[i].ino);
		if (!list || aqe_json_append(list, obj) < 0)
			o->failed = true;
	}
	put(o, doc, "binds", list);
}

static void put_waivers(struct out *o, struct aqe_json *doc, const struct shim_record *r)
{
	struct aqe_json *list = aqe_json_new_array(o->a);

	for (size_t i = 0; i < r->n_waivers; i++) {
		struct aqe_json *obj = aqe_json_new_object(o->a);

		put_str(o, obj, "property", HARDENING_PROFILE[r->waivers[i].prop].id);
		put_str(o, obj, "reason", r->waivers[i].reason);
		put_str(o, obj, "owner", r->waivers[i].owner);
		put(o, obj, "expires", aqe_json_new_i64(o->a, r->waivers[i].expires));
		if (!list || aqe_json_append(list, obj) < 0)
			o->failed = true;
	}
	put(o, doc, "waivers", list);
}

static void put_audit(struct out *o, struct aqe_json *doc, const struct shim_record *r)
{
	struct aqe_json *list = aqe_json_new_array(o->a);

	put_str(o, doc, "audit", audit_names[r->audit_mode]);
	put_u64(o, doc, "auditSignEvery", r->audit_sign_every);
	put(o, doc, "changed", aqe_json_new_bool(o->a, r->changed));
	for (int p = 0; p < HARD_PROP_COUNT; p++) {
		if (r->waived[p] &&
		    (!list ||
		     aqe_json_append(list, aqe_json_new_str(o->a, HARDENING_PROFILE[p].id)) < 0))
			o->failed = true;
	}
	put(o, doc, "waived", list);
}

struct aqe_json *shim_record_emit(struct aqe_arena *a, const struct shim_record *r)
{
	struct out o = { .a = a };
	struct aqe_json *doc = aqe_json_new_object(a);
	struct shim_record copy = *r;

	put_u64(&o, doc, "version", RECORD_VERSION);
	for (size_t i = 0; i < AQE_COUNT(strings); i++)
		put_str(&o, doc, strings[i].name, *string_at(&copy, i));
	put_str(&o, doc, "mode", mode_names[r->mode]);
	put_u64(&o, doc, "engine", r->engine);
	put(&o, doc, "digests", aqe_json_new_strs(a, r->digests, r->n_digests));
	put_agent(&o, doc, &r->agent);
	put_u64(&o, doc, "uid", r->uid);
	put_u64(&o, doc, "gid", r->gid);
	put_u64(&o, doc, "creator", (uint64_t)r->creator);
	put_u64(&o, doc, "creatorStart", r->creator_start);
	put(&o, doc, "created", aqe_json_new_i64(a, r->created_s));
	put(&o, doc, "byRun", aqe_json_new_bool(a, r->by_run));
	put(&o, doc, "egress", aqe_json_new_bool(a, r->egress));
	put_binds(&o, doc, r);
	put_waivers(&o, doc, r);
	put_audit(&o, doc, r);
	return o.failed ? NULL : doc;
}

/* ---- reading ---- */

static int missing(const char *name, struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s' is missing or wrong", name);
}

/* A required string. */
static int need_str(const struct aqe_json *obj, const char *name, const char **ret,
		    struct aqe_err *e)
{
	int rc = aqe_json_get_str(obj, name, ret, e);

	return rc == 0 ? missing(name, e) : rc;
}

static int need_u64(const struct aqe_json *obj, const char *name, uint64_t max, uint64_t *ret,
		    struct aqe_err *e)
{
	int rc = aqe_json_get_u64(obj, name, max, ret, e);

	return rc == 0 ? missing(name, e) : rc;
}

static int get_strings(const struct aqe_json *doc, struct shim_record *r, struct aqe_err *e)
{
	for (size_t i = 0; i < AQE_COUNT(strings); i++) {
		int rc = aqe_json_get_str(doc, strings[i].name, string_at(r, i), e);

		if (rc == 0 && strings[i].required)
			return missing(strings[i].name, e);
		if (rc < 0)
			return rc;
	}
	if (r->runtime[0] != '/')
		return missing("runtime", e);
	return 0;
}

static int get_mode(const struct aqe_json *doc, struct shim_record *r, struct aqe_err *e)
{
	const char *name = NULL;
	uint64_t engine = 0;
	int rc = need_str(doc, "mode", &name, e);

	if (rc > 0)
		rc = need_u64(doc, "engine", OCI_ENGINE_AQE, &engine, e);
	if (rc < 0)
		return rc;
	r->engine = (enum oci_engine)engine;
	for (size_t i = 0; i < AQE_COUNT(mode_names); i++) {
		if (aqe_str_eq(name, mode_names[i])) {
			r->mode = (enum hard_mode)i;
			return 0;
		}
	}
	return missing("mode", e);
}

static int get_numbers(const struct aqe_json *doc, struct shim_record *r, struct aqe_err *e)
{
	uint64_t uid = 0, gid = 0, creator = 0;

	if (need_u64(doc, "uid", UINT32_MAX, &uid, e) < 0 ||
	    need_u64(doc, "gid", UINT32_MAX, &gid, e) < 0 ||
	    need_u64(doc, "creator", INT32_MAX, &creator, e) < 0 ||
	    need_u64(doc, "creatorStart", UINT64_MAX, &r->creator_start, e) < 0 ||
	    aqe_json_get_i64(doc, "created", 0, INT64_MAX, &r->created_s, e) < 0 ||
	    aqe_json_get_bool(doc, "byRun", &r->by_run, e) < 0 ||
	    aqe_json_get_bool(doc, "egress", &r->egress, e) < 0)
		return AQE_E_MALFORMED;
	r->uid = (uint32_t)uid;
	r->gid = (uint32_t)gid;
	r->creator = (pid_t)creator;
	return 0;
}

static int get_agent(const struct aqe_json *doc, struct shim_record *r, struct aqe_err *e)
{
	struct aqe_json *obj = NULL;
	const struct hard_agent *known;
	const char *type = NULL;
	uint64_t cpus = 0, pids = 0;

	if (aqe_json_get_object(doc, "agent", &obj, e) <= 0 || need_str(obj, "type", &type, e) < 0)
		return missing("agent", e);
	known = hard_agent_find(type);
	r->agent = known ? *known : *hard_agent_default();
	r->agent.type = type;
	if (need_u64(obj, "cpusMilli", UINT32_MAX, &cpus, e) < 0 ||
	    need_u64(obj, "memoryBytes", INT64_MAX, &r->agent.memory_bytes, e) < 0 ||
	    need_u64(obj, "diskBytes", INT64_MAX, &r->agent.disk_bytes, e) < 0 ||
	    need_u64(obj, "pids", UINT32_MAX, &pids, e) < 0 ||
	    aqe_json_get_bool(obj, "tmpExec", &r->agent.tmp_exec, e) < 0)
		return AQE_E_MALFORMED;
	r->agent.cpus_milli = (uint32_t)cpus;
	r->agent.pids = (uint32_t)pids;
	return 0;
}

static int get_digests(struct aqe_arena *a, const struct aqe_json *doc, struct shim_record *r,
		       struct aqe_err *e)
{
	struct aqe_json *list = NULL;
	const char **out;
	size_t n = 0;

	if (aqe_json_get_array(doc, "digests", &list, e) <= 0)
		return missing("digests", e);
	out = aqe_arena_calloc(a, list->len + 1, sizeof(*out));
	if (!out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the record");
	for (const struct aqe_json *v = list->first; v; v = v->next) {
		out[n] = aqe_json_str(v);
		if (!out[n++])
			return missing("digests", e);
	}
	r->digests = out;
	r->n_digests = n;
	return 0;
}

static int get_binds(struct aqe_arena *a, const struct aqe_json *doc, struct shim_record *r,
		     struct aqe_err *e)
{
	struct aqe_json *list = NULL;
	struct hard_bind_id *out;
	size_t n = 0;

	if (aqe_json_get_array(doc, "binds", &list, e) <= 0)
		return missing("binds", e);
	out = aqe_arena_calloc(a, list->len + 1, sizeof(*out));
	if (!out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the record");
	for (const struct aqe_json *v = list->first; v; v = v->next, n++) {
		if (need_str(v, "destination", &out[n].destination, e) < 0 ||
		    need_u64(v, "dev", UINT64_MAX, &out[n].dev, e) < 0 ||
		    need_u64(v, "ino", UINT64_MAX, &out[n].ino, e) < 0)
			return AQE_E_MALFORMED;
	}
	r->binds = out;
	r->n_binds = n;
	return 0;
}

static int get_waiver(const struct aqe_json *v, struct hard_waiver *ret, struct aqe_err *e)
{
	const char *prop = NULL;

	if (need_str(v, "property", &prop, e) < 0 || need_str(v, "reason", &ret->reason, e) < 0 ||
	    need_str(v, "owner", &ret->owner, e) < 0 ||
	    aqe_json_get_i64(v, "expires", INT64_MIN, INT64_MAX, &ret->expires, e) <= 0)
		return missing("waivers", e);
	ret->prop = hard_prop_by_id(prop);
	if (ret->prop == HARD_PROP_COUNT || !HARDENING_PROFILE[ret->prop].waivable)
		return missing("property", e);
	return 0;
}

static int get_waivers(struct aqe_arena *a, const struct aqe_json *doc, struct shim_record *r,
		       struct aqe_err *e)
{
	struct aqe_json *list = NULL;
	struct hard_waiver *out;
	size_t n = 0;

	if (aqe_json_get_array(doc, "waivers", &list, e) <= 0)
		return missing("waivers", e);
	out = aqe_arena_calloc(a, list->len + 1, sizeof(*out));
	if (!out)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the record");
	for (const struct aqe_json *v = list->first; v; v = v->next, n++) {
		if (get_waiver(v, &out[n], e) < 0)
			return AQE_E_MALFORMED;
		out[n].agent_type = r->agent.type;
		out[n].where.file = SHIM_RECORD_FILE;
	}
	r->waivers = out;
	r->n_waivers = n;
	return 0;
}

/* The record of a version before the log has none of these: then the strictest. */
static int get_audit(const struct aqe_json *doc, struct shim_record *r, struct aqe_err *e)
{
	struct aqe_json *list = NULL;
	const char *mode = audit_names[HARD_AUDIT_REQUIRED];
	uint64_t every = 0;
	size_t i = 0;

	if (aqe_json_get_str(doc, "audit", &mode, e) < 0 ||
	    aqe_json_get_u64(doc, "auditSignEvery", UINT32_MAX, &every, e) < 0 ||
	    aqe_json_get_bool(doc, "changed", &r->changed, e) < 0 ||
	    aqe_json_get_array(doc, "waived", &list, e) < 0)
		return AQE_E_MALFORMED;
	while (i < AQE_COUNT(audit_names) && strcmp(mode, audit_names[i]) != 0)
		i++;
	if (i == AQE_COUNT(audit_names))
		return missing("audit", e);
	r->audit_mode = (enum hard_audit_mode)i;
	r->audit_sign_every = (uint32_t)every;
	for (const struct aqe_json *v = list ? list->first : NULL; v; v = v->next) {
		enum hard_prop prop = hard_prop_by_id(aqe_json_str(v) ? v->text : "");

		if (prop == HARD_PROP_COUNT)
			return missing("waived", e);
		r->waived[prop] = true;
	}
	return 0;
}

int shim_record_parse(struct aqe_arena *a, const char *text, size_t len, struct shim_record *ret,
		      struct aqe_err *e)
{
	struct shim_record r = { 0 };
	struct aqe_json *doc = NULL;
	uint64_t version = 0;
	int rc = aqe_json_parse(a, text, len, &AQE_JSON_LIMITS_DEFAULT, &doc, e);

	if (rc == 0)
		rc = need_u64(doc, "version", UINT32_MAX, &version, e);
	if (rc >= 0 && version != RECORD_VERSION)
		rc = missing("version", e);
	if (rc >= 0)
		rc = get_strings(doc, &r, e);
	if (rc >= 0)
		rc = get_mode(doc, &r, e);
	if (rc >= 0)
		rc = get_numbers(doc, &r, e);
	if (rc >= 0)
		rc = get_agent(doc, &r, e);
	if (rc >= 0)
		rc = get_digests(a, doc, &r, e);
	if (rc >= 0)
		rc = get_binds(a, doc, &r, e);
	if (rc >= 0)
		rc = get_waivers(a, doc, &r, e);
	if (rc >= 0)
		rc = get_audit(doc, &r, e);
	if (rc < 0)
		return rc;
	*ret = r;
	return 0;
}
