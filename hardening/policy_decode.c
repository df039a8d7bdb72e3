/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "hardening/policy_file.h"
#include "shim/core/arena.h"
#include "shim/core/clock.h"
#include "shim/core/text.h"

#define TYPE_LEN_MAX 64   /* bytes of an agent type's name */
#define TEXT_MAX     1024 /* bytes of names, reasons, owners */

#define WANT_DIGEST  "wanted 'sha256:' and 64 lower-case hex digits"

/* One policy on its way from trees to a struct. */
struct build {
	struct hard_policy *p;
	const struct hard_policy_files *fs;
	struct hard_image *images;
	struct hard_mount *mounts;
	struct hard_waiver *waivers;
	struct hard_agent *agents;
};

/* ---- faults ---- */

static int fault_nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the policy");
}

static int fault_dup(const struct hard_policy_file *f, const struct aqe_json *v, const char *what,
		     const struct hard_where *first, struct aqe_err *e)
{
	return hard_policy_fault(f, v, e, "repeats the %s of %s:%u", what, first->file,
				 first->line);
}

static struct hard_where where(const struct hard_policy_file *f, const struct aqe_json *v)
{
	return (struct hard_where){ f->path, v->line };
}

/* ---- values; the types were checked before ---- */

static int read_digest(const struct hard_policy_file *f, const struct aqe_json *obj,
		       const char *name, const char **ret, struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(obj, name);

	if (!v)
		return AQE_OK;
	if (!aqe_is_sha256_digest(v->text))
		return hard_policy_fault_value(f, v, WANT_DIGEST, e);
	*ret = v->text;
	return AQE_OK;
}

/* A text for people; `v` NULL leaves *ret alone. */
static int read_text(const struct hard_policy_file *f, const struct aqe_json *v, const char **ret,
		     struct aqe_err *e)
{
	if (!v)
		return AQE_OK;
	if (!v->text[0] || v->len > TEXT_MAX)
		return hard_policy_fault_value(f, v, "wanted 1 to 1024 bytes", e);
	*ret = v->text;
	return AQE_OK;
}

static int read_type(const struct build *b, const struct hard_policy_file *f,
		     const struct aqe_json *v, const char **ret, struct aqe_err *e)
{
	if (!hard_policy_agent(b->p, v->text))
		return hard_policy_fault_value(
			f, v, "wanted an agent type of the built-in table or of 'agents'", e);
	*ret = v->text;
	return AQE_OK;
}

/* The list of agent types `obj.types`; absent gives none. */
static int read_types(const struct build *b, const struct hard_policy_file *f,
		      const struct aqe_json *obj, const char *const **ret, size_t *ret_n,
		      struct aqe_err *e)
{
	const struct aqe_json *list = aqe_json_get(obj, "types");
	const char **types;
	size_t n = 0;
	int rc = AQE_OK;

	if (!list)
		return AQE_OK;
	if (!list->len)
		return hard_policy_fault(f, list, e, "is empty; leave it out or name agent types");
	types = aqe_arena_calloc(b->p->arena, list->len + 1, sizeof(*types));
	if (!types)
		return fault_nomem(e);
	for (const struct aqe_json *v = list->first; !rc && v; v = v->next) {
		if (aqe_str_in(v->text, types))
			return hard_policy_fault_value(f, v, "which is listed already", e);
		rc = read_type(b, f, v, &types[n++], e);
	}
	*ret = types;
	*ret_n = n;
	return rc;
}

/* ---- agents ---- */

static bool type_name_ok(const char *s)
{
	const size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

	/* "profile" is the name of the ceilings without a type (agents.h). */
	return n >= 1 && n <= TYPE_LEN_MAX && !s[n] && strcmp(s, hard_agent_profile()->type) != 0;
}

static struct hard_agent *own_agent(struct build *b, const char *type)
{
	for (size_t i = 0; i < b->p->n_agents; i++) {
		if (strcmp(b->agents[i].type, type) == 0)
			return &b->agents[i];
	}
	return NULL;
}

/* There is room for one new row per member (make_room()). */
static int read_agents(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		       struct aqe_err *e)
{
	int rc = AQE_OK;

	for (const struct aqe_json *m = v->first; !rc && m; m = m->next) {
		struct hard_agent *row = own_agent(b, m->key);

		if (!type_name_ok(m->key))
			return hard_policy_fault(
				f, m, e,
				"has no good name for an agent type, wanted 1 to 64 "
				"of a-z, 0-9 and '-', and not 'profile'");
		if (!row) {
			row = &b->agents[b->p->n_agents++];
			*row = *hard_agent_default();
			row->type = m->key;
			row->description = "a type of the policy";
		}
		rc = hard_policy_read_limits(f, m, row, e);
	}
	return rc;
}

/* ---- images ---- */

static int check_image_dup(const struct build *b, const struct hard_policy_file *f,
			   const struct aqe_json *v, const struct hard_image *img,
			   struct aqe_err *e)
{
	for (size_t i = 0; i < b->p->n_images; i++) {
		const struct hard_image *o = &b->images[i];

		if (img->digest && aqe_str_eq(img->digest, o->digest))
			return fault_dup(f, v, "digest", &o->where, e);
		if (img->image_id && aqe_str_eq(img->image_id, o->image_id))
			return fault_dup(f, v, "imageId", &o->where, e);
	}
	return AQE_OK;
}

static int read_image(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		      struct aqe_err *e)
{
	struct hard_image img = { .where = where(f, v) };
	int rc = read_text(f, aqe_json_get(v, "name"), &img.name, e);

	if (!rc)
		rc = read_digest(f, v, "digest", &img.digest, e);
	if (!rc)
		rc = read_digest(f, v, "imageId", &img.image_id, e);
	if (!rc && !img.digest && !img.image_id)
		rc = hard_policy_fault(f, v, e, "has neither 'digest' nor 'imageId'");
	if (!rc)
		rc = read_types(b, f, v, &img.types, &img.n_types, e);
	if (!rc)
		rc = check_image_dup(b, f, v, &img, e);
	if (!rc)
		b->images[b->p->n_images++] = img;
	return rc;
}

static int read_images(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		       struct aqe_err *e)
{
	int rc = AQE_OK;

	for (const struct aqe_json *m = v->first; !rc && m; m = m->next)
		rc = read_image(b, f, m, e);
	return rc;
}

/* ---- mounts ---- */

/* The kernel's trees, on either side. */
static const char *const KERNEL_TREES[] = { "/proc", "/sys", "/dev" };
/* Mounted by the profile itself. */
static const char *const OWN_MOUNTS[] = { "/tmp", "/run", NULL };

static bool in_kernel_tree(const char *path)
{
	for (size_t i = 0; i < AQE_COUNT(KERNEL_TREES); i++) {
		if (aqe_path_is_under(path, KERNEL_TREES[i]))
			return true;
	}
	return false;
}

static int check_mount_place(const struct build *b, const struct hard_policy_file *f,
			     const struct aqe_json *obj, const struct hard_mount *m,
			     struct aqe_err *e)
{
	const struct aqe_json *dest = aqe_json_get(obj, "destination");

	if (in_kernel_tree(m->source))
		return hard_policy_fault_value(f, aqe_json_get(obj, "source"),
					       "which is below /proc, /sys or /dev", e);
	if (in_kernel_tree(m->destination) || aqe_str_in(m->destination, OWN_MOUNTS))
		return hard_policy_fault_value(f, dest, "which the profile mounts itself", e);
	for (size_t i = 0; i < b->p->n_mounts; i++) {
		const struct hard_mount *o = &b->mounts[i];

		if (strcmp(o->destination, m->destination) == 0)
			return fault_dup(f, dest, "destination", &o->where, e);
		/* One mount inside another is how runtimes were raced (CVE-2021-30465). */
		if (aqe_path_is_under(o->destination, m->destination) ||
		    aqe_path_is_under(m->destination, o->destination))
			return hard_policy_fault(f, dest, e,
						 "and '%s' of %s:%u are inside one another",
						 o->destination, o->where.file, o->where.line);
	}
	return AQE_OK;
}

static int read_mount(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		      struct aqe_err *e)
{
	struct hard_mount m = { .where = where(f, v) };
	const struct aqe_json *ro = aqe_json_get(v, "readonly");
	int rc = hard_policy_read_path(f, aqe_json_get(v, "source"), &m.source, e);

	if (!rc)
		rc = hard_policy_read_path(f, aqe_json_get(v, "destination"), &m.destination, e);
	if (!rc)
		rc = read_types(b, f, v, &m.types, &m.n_types, e);
	if (!rc)
		rc = check_mount_place(b, f, v, &m, e);
	if (rc)
		return rc;
	m.readonly = ro && ro->boolean;
	b->mounts[b->p->n_mounts++] = m;
	return AQE_OK;
}

static int read_mounts(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		       struct aqe_err *e)
{
	int rc = AQE_OK;

	for (const struct aqe_json *m = v->first; !rc && m; m = m->next)
		rc = read_mount(b, f, m, e);
	return rc;
}

/* ---- waivers ---- */

static int read_property(const struct hard_policy_file *f, const struct aqe_json *v,
			 enum hard_prop *ret, struct aqe_err *e)
{
	const enum hard_prop prop = hard_prop_by_id(v->text);

	if (prop == HARD_PROP_COUNT)
		return hard_policy_fault_value(f, v, "which is no property of the profile", e);
	if (!HARDENING_PROFILE[prop].waivable)
		return hard_policy_fault_value(f, v, "which can never be waived", e);
	*ret = prop;
	return AQE_OK;
}

static bool image_named(const struct hard_image *img, const char *name)
{
	return aqe_str_eq(img->name, name) || aqe_str_eq(img->digest, name) ||
	       aqe_str_eq(img->image_id, name);
}

/* Who a waiver is for. Images were read before. */
static int read_subject(const struct build *b, const struct hard_policy_file *f,
			const struct aqe_json *obj, struct hard_waiver *w, struct aqe_err *e)
{
	const struct aqe_json *type = aqe_json_get(obj, "agentType");
	const struct aqe_json *image = aqe_json_get(obj, "image");
	bool found = false;

	if (!type && !image)
		return hard_policy_fault(f, obj, e, "has neither 'agentType' nor 'image'");
	if (type && read_type(b, f, type, &w->agent_type, e))
		return AQE_E_MALFORMED;
	if (!image)
		return AQE_OK;
	for (size_t i = 0; !found && i < b->p->n_images; i++)
		found = image_named(&b->images[i], image->text);
	if (!found)
		return hard_policy_fault_value(f, image,
					       "which is no name, digest or imageId of 'images'",
					       e);
	w->image = image->text;
	return AQE_OK;
}

static int check_waiver_dup(const struct build *b, const struct hard_policy_file *f,
			    const struct aqe_json *v, const struct hard_waiver *w,
			    struct aqe_err *e)
{
	for (size_t i = 0; i < b->p->n_waivers; i++) {
		const struct hard_waiver *o = &b->waivers[i];

		if (o->prop == w->prop && aqe_str_eq(o->agent_type, w->agent_type) &&
		    aqe_str_eq(o->image, w->image))
			return fault_dup(f, v, "waiver", &o->where, e);
	}
	return AQE_OK;
}

static int read_waiver(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		       struct aqe_err *e)
{
	const struct aqe_json *expires = aqe_json_get(v, "expires");
	struct hard_waiver w = { .where = where(f, v) };
	int rc = read_property(f, aqe_json_get(v, "property"), &w.prop, e);

	if (!rc)
		rc = read_text(f, aqe_json_get(v, "reason"), &w.reason, e);
	if (!rc)
		rc = read_text(f, aqe_json_get(v, "owner"), &w.owner, e);
	if (!rc && !aqe_time_parse(expires->text, &w.expires))
		rc = hard_policy_fault_value(f, expires,
					     "wanted YYYY-MM-DD or YYYY-MM-DDTHH:MM:SSZ", e);
	if (!rc)
		rc = read_subject(b, f, v, &w, e);
	if (!rc)
		rc = check_waiver_dup(b, f, v, &w, e);
	if (!rc)
		b->waivers[b->p->n_waivers++] = w;
	return rc;
}

static int read_waivers(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
			struct aqe_err *e)
{
	int rc = AQE_OK;

	for (const struct aqe_json *m = v->first; !rc && m; m = m->next)
		rc = read_waiver(b, f, m, e);
	return rc;
}

/* ---- single members ---- */

static int read_version(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
			struct aqe_err *e)
{
	(void)b;
	return hard_policy_read_version(f, v, e);
}

static int read_mode(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		     struct aqe_err *e)
{
	return hard_policy_read_mode(f, v, &b->p->mode, e);
}

static int read_unmarked(struct build *b, const struct hard_policy_file *f,
			 const struct aqe_json *v, struct aqe_err *e)
{
	return hard_policy_read_unmarked(f, v, &b->p->unmarked_refuse, e);
}

static int read_runtime(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
			struct aqe_err *e)
{
	const struct aqe_json *path = v->type == AQE_JSON_OBJECT ? aqe_json_get(v, "path") : v;
	int rc = hard_policy_read_path(f, path, &b->p->runtime_path, e);

	if (!rc && v->type == AQE_JSON_OBJECT)
		rc = read_digest(f, v, "digest", &b->p->runtime_digest, e);
	b->p->runtime_where = where(f, v);
	return rc;
}

static int read_id(const struct hard_policy_file *f, const struct aqe_json *v, uint32_t *ret,
		   struct aqe_err *e)
{
	uint64_t n = 0;

	if (!aqe_json_to_u64(v, INT32_MAX, &n) || n == 0)
		return hard_policy_fault_value(f, v, "wanted 1 to 2147483647", e);
	*ret = (uint32_t)n;
	return AQE_OK;
}

static int read_user(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		     struct aqe_err *e)
{
	int rc = read_id(f, aqe_json_get(v, "uid"), &b->p->uid, e);

	return rc ? rc : read_id(f, aqe_json_get(v, "gid"), &b->p->gid, e);
}

/* A log in a directory that containers can write to would be theirs. Mounts were read before. */
static int read_audit(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		      struct aqe_err *e)
{
	int rc = hard_policy_read_audit(f, v, &b->p->audit, e);

	for (size_t i = 0; !rc && b->p->audit.path && i < b->p->n_mounts; i++) {
		const struct hard_mount *m = &b->mounts[i];

		if (aqe_path_is_under(b->p->audit.path, m->source))
			rc = hard_policy_fault(f, aqe_json_get(v, "path"), e,
					       "is inside '%s', which %s:%u mounts into containers",
					       m->source, m->where.file, m->where.line);
	}
	return rc;
}

static int read_seccomp_file(struct build *b, const struct hard_policy_file *f,
			     const struct aqe_json *v, struct aqe_err *e)
{
	return hard_policy_read_path(f, v, &b->p->seccomp_file, e);
}

/* In the order of work: types before what names them, images before waivers. */
static const struct {
	const char *key;
	int (*read)(struct build *b, const struct hard_policy_file *f, const struct aqe_json *v,
		    struct aqe_err *e);
} READERS[] = {
	{ "version", read_version },   { "mode", read_mode },
	{ "unmarked", read_unmarked }, { "runtime", read_runtime },
	{ "user", read_user },         { "seccompFile", read_seccomp_file },
	{ "agents", read_agents },     { "images", read_images },
	{ "mounts", read_mounts },     { "waivers", read_waivers },
	{ "audit", read_audit },
};

static size_t count_all(const struct hard_policy_files *fs, const char *key)
{
	size_t n = 0;

	for (size_t i = 0; i < fs->n; i++) {
		const struct aqe_json *v = aqe_json_get(fs->file[i].root, key);

		n += v ? v->len : 0;
	}
	return n;
}

static int check_counts(const struct build *b, struct aqe_err *e)
{
	static const char *const lists[] = { "agents", "images", "mounts", "waivers" };

	for (size_t i = 0; i < AQE_COUNT(lists); i++) {
		if (count_all(b->fs, lists[i]) > HARD_POLICY_LIST_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "policy has more than %d '%s'",
					   HARD_POLICY_LIST_MAX, lists[i]);
	}
	return AQE_OK;
}

/* Room for everything the files list. */
static int make_room(struct build *b, struct aqe_err *e)
{
	struct aqe_arena *a = b->p->arena;
	const size_t n_agents = b->p->n_agents + count_all(b->fs, "agents");

	/* + 1: an allocation of nothing is not told from a failure */
	b->agents = aqe_arena_calloc(a, n_agents, sizeof(*b->agents));
	b->images = aqe_arena_calloc(a, count_all(b->fs, "images") + 1, sizeof(*b->images));
	b->mounts = aqe_arena_calloc(a, count_all(b->fs, "mounts") + 1, sizeof(*b->mounts));
	b->waivers = aqe_arena_calloc(a, count_all(b->fs, "waivers") + 1, sizeof(*b->waivers));
	if (!b->agents || !b->images || !b->mounts || !b->waivers)
		return fault_nomem(e);
	memcpy(b->agents, b->p->agents, b->p->n_agents * sizeof(*b->agents));
	b->p->agents = b->agents;
	b->p->images = b->images;
	b->p->mounts = b->mounts;
	b->p->waivers = b->waivers;
	return AQE_OK;
}

int hard_policy_keep_sections(struct hard_policy *p, const struct hard_policy_files *fs, bool user,
			      struct aqe_err *e)
{
	static const char *const keys[] = { "network", "cache" };
	const size_t max = p->n_sections + AQE_COUNT(keys) * fs->n;
	struct hard_section *list = aqe_arena_calloc(p->arena, max + 1, sizeof(*list));
	size_t n = p->n_sections;

	if (!list)
		return fault_nomem(e);
	if (n)
		memcpy(list, p->sections, n * sizeof(*list));
	for (size_t i = 0; i < fs->n; i++) {
		for (size_t k = 0; k < AQE_COUNT(keys); k++) {
			const struct aqe_json *v = aqe_json_get(fs->file[i].root, keys[k]);

			if (v)
				list[n++] =
					(struct hard_section){ keys[k], fs->file[i].path, v, user };
		}
	}
	p->sections = list;
	p->n_sections = n;
	return AQE_OK;
}

int hard_policy_decode(struct hard_policy *p, const struct hard_policy_files *fs, struct aqe_err *e)
{
	struct build b = { .p = p, .fs = fs };
	int rc = check_counts(&b, e);

	if (!rc)
		rc = make_room(&b, e);
	for (size_t r = 0; r < AQE_COUNT(READERS); r++) {
		for (size_t i = 0; !rc && i < fs->n; i++) {
			const struct aqe_json *v = aqe_json_get(fs->file[i].root, READERS[r].key);

			if (v)
				rc = READERS[r].read(&b, &fs->file[i], v, e);
		}
	}
	return rc ? rc : hard_policy_keep_sections(p, fs, false, e);
}
