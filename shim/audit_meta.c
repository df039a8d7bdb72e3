/* SPDX-License-Identifier: MIT */
#include "shim/audit_meta.h"

#include <stdio.h>
#include <string.h>

#include "audit/row.h"
#include "hardening/rewrite_diff.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define PLACE_MAX    512
#define FINDINGS_MAX (AUDIT_META_MAX - 2048) /* bytes of all findings: the rest is for others */

void shim_meta_init(struct shim_meta *m, struct aqe_arena *arena)
{
	*m = (struct shim_meta){ arena, aqe_json_new_object(arena), false };
	m->failed = !m->obj;
}

const char *shim_meta_text(const struct shim_meta *m)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(AUDIT_META_MAX);

	if (m->failed || aqe_json_emit(m->obj, AQE_JSON_COMPACT, &b, NULL) < 0)
		return NULL;
	return aqe_arena_dup(m->arena, aqe_buf_str(&b));
}

static void set(struct shim_meta *m, struct aqe_json *obj, const char *name, struct aqe_json *v)
{
	if (!obj || aqe_json_set(m->arena, obj, name, v) < 0)
		m->failed = true;
}

/* At most `max` bytes of a text, not cut inside a character, nor after one that is none. */
static char *cut(struct shim_meta *m, const char *value, size_t max)
{
	size_t n = strnlen(value, max), bad = 0;

	return aqe_arena_ndup(m->arena, value, aqe_utf8_ok(value, n, &bad) ? n : bad);
}

static void set_str(struct shim_meta *m, struct aqe_json *obj, const char *name, const char *value)
{
	char *shown = value ? cut(m, value, SHIM_META_STR_MAX) : NULL;

	if (value)
		set(m, obj, name, shown ? aqe_json_new_str(m->arena, shown) : NULL);
}

void shim_meta_str(struct shim_meta *m, const char *name, const char *value)
{
	set_str(m, m->obj, name, value);
}

void shim_meta_num(struct shim_meta *m, const char *name, int64_t value)
{
	set(m, m->obj, name, aqe_json_new_i64(m->arena, value));
}

void shim_meta_json(struct shim_meta *m, const char *name, const struct aqe_json *value)
{
	if (value)
		set(m, m->obj, name, aqe_json_copy(m->arena, value));
}

/* ---- what a rewrite changed ---- */

/* Where each property lives. Keys below these places are foreign words and are never shown. */
static const struct {
	const char *place;
	enum hard_prop prop;
} places[] = {
	{ "/annotations", HARD_ANNOTATIONS },
	{ "/hooks", HARD_HOOKS },
	{ "/linux/devices", HARD_DEVICES },
	{ "/linux/gidMappings", HARD_ROOTLESS },
	{ "/linux/maskedPaths", HARD_MASKED_PATHS },
	{ "/linux/mountLabel", HARD_LSM },
	{ "/linux/namespaces", HARD_NAMESPACES },
	{ "/linux/readonlyPaths", HARD_MASKED_PATHS },
	{ "/linux/resources/cpu", HARD_CPU_LIMIT },
	{ "/linux/resources/devices", HARD_DEVICES },
	{ "/linux/resources/memory", HARD_MEMORY_LIMIT },
	{ "/linux/resources/pids", HARD_PIDS_LIMIT },
	{ "/linux/rootfsPropagation", HARD_PROPAGATION },
	{ "/linux/seccomp", HARD_SECCOMP },
	{ "/linux/sysctl", HARD_SYSCTL },
	{ "/linux/uidMappings", HARD_ROOTLESS },
	{ "/mounts", HARD_MOUNTS },
	{ "/process/apparmorProfile", HARD_LSM },
	{ "/process/capabilities", HARD_CAPABILITIES },
	{ "/process/noNewPrivileges", HARD_NO_NEW_PRIVILEGES },
	{ "/process/rlimits", HARD_RLIMITS },
	{ "/process/selinuxLabel", HARD_LSM },
	{ "/process/user", HARD_USER },
	{ "/root/readonly", HARD_READONLY_ROOTFS },
};

struct changes {
	struct shim_meta *m;
	const char *place;
	struct aqe_json *list;
	size_t n;
};

static bool is_below(const char *pointer, const char *place)
{
	size_t n = strlen(place);

	return strncmp(pointer, place, n) == 0 && (!pointer[n] || pointer[n] == '/');
}

static void name_change(struct changes *c, const char *name)
{
	if (aqe_json_has_str(c->list, name))
		return;
	if (!c->list || aqe_json_append(c->list, aqe_json_new_str(c->m->arena, name)) < 0)
		c->m->failed = true;
}

/* A member that no property owns is named by its place: a name of the specification, since the
 * schema is closed. */
static void name_place(struct changes *c, const char *pointer)
{
	for (size_t i = 0; i < AQE_COUNT(places); i++) {
		if (is_below(pointer, places[i].place)) {
			name_change(c, HARDENING_PROFILE[places[i].prop].id);
			return;
		}
	}
	name_change(c, pointer);
}

/* True when properties own parts of what is at `pointer`. */
static bool has_parts(const char *pointer)
{
	for (size_t i = 0; i < AQE_COUNT(places); i++) {
		if (is_below(places[i].place, pointer) && strcmp(places[i].place, pointer) != 0)
			return true;
	}
	return false;
}

static int one_change(void *arg, const struct hard_diff *d, struct aqe_err *e)
{
	struct changes *c = arg;
	const struct aqe_json *v = d->after ? d->after : d->before;
	char pointer[PLACE_MAX];

	(void)e;
	c->n++;
	(void)snprintf(pointer, sizeof(pointer), "%s%s", c->place, d->pointer);
	if (v->type != AQE_JSON_OBJECT || !has_parts(pointer)) {
		name_place(c, pointer);
		return 0;
	}
	for (const struct aqe_json *p = v->first; p; p = p->next) {
		char part[2 * PLACE_MAX];

		(void)snprintf(part, sizeof(part), "%s/%s", pointer, p->key);
		name_place(c, part);
	}
	return 0;
}

size_t shim_meta_changes(struct shim_meta *m, const char *place, const struct aqe_json *before,
			 const struct aqe_json *after)
{
	struct changes c = { m, place, aqe_json_new_array(m->arena), 0 };
	struct aqe_err ignored = AQE_ERR_INIT;

	if (!c.list || hard_diff_walk(before, after, one_change, &c, &ignored) < 0)
		m->failed = true;
	shim_meta_num(m, "changes", (int64_t)c.n);
	set(m, m->obj, "changed", c.list);
	return c.n;
}

/* ---- processes and findings ---- */

void shim_meta_command(struct shim_meta *m, const struct aqe_json *process)
{
	const char *name = aqe_json_str(aqe_json_item(aqe_json_get(process, "args"), 0));
	const char *slash = name ? strrchr(name, '/') : NULL;
	char *shown;

	if (!name)
		return;
	shown = cut(m, slash ? slash + 1 : name, SHIM_META_COMMAND_MAX);
	m->failed = m->failed || !shown;
	shim_meta_str(m, "command", shown);
}

static struct aqe_json *finding(struct shim_meta *m, const struct hard_finding *f)
{
	struct aqe_json *obj = aqe_json_new_object(m->arena);

	set_str(m, obj, "property", HARDENING_PROFILE[f->prop].id);
	set_str(m, obj, "at", f->pointer);
	set_str(m, obj, f->unknown ? "undecided" : "found", f->found);
	set_str(m, obj, "wanted", f->wanted);
	return obj;
}

void shim_meta_findings(struct shim_meta *m, const struct hard_report *r)
{
	AQE_AUTO_BUF struct aqe_buf seen = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_json *list = aqe_json_new_array(m->arena);
	int64_t more = 0;

	for (const struct hard_finding *f = r->first; f; f = f->next) {
		struct aqe_json *obj;

		/* a waived finding refuses nothing: it has a row of its own */
		if (r->result[f->prop] == HARD_WAIVED)
			continue;
		obj = finding(m, f);
		if (!obj || !list || aqe_json_emit(obj, AQE_JSON_COMPACT, &seen, NULL) < 0)
			m->failed = true;
		else if (seen.len > FINDINGS_MAX)
			more++;
		else if (aqe_json_append(list, obj) < 0)
			m->failed = true;
	}
	if (list && list->len)
		set(m, m->obj, "findings", list);
	if (more)
		shim_meta_num(m, "more", more);
}
