/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/fields.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define FILE_MAX  ((size_t)1 << 20)
#define ARENA_MAX ((size_t)8 << 20)

static const void *member(const struct shim_field *f, const void *record)
{
	return (const char *)record + f->offset;
}

/* ---- writing ---- */

static struct aqe_json *emit_one(struct aqe_arena *a, const struct shim_field *f, const void *p)
{
	const struct shim_strs *list = p;

	switch (f->kind) {
	case SHIM_FIELD_STR:
		return aqe_json_new_str(a, *(const char *const *)p);
	case SHIM_FIELD_BOOL:
		return aqe_json_new_bool(a, *(const bool *)p);
	case SHIM_FIELD_U32:
		return aqe_json_new_u64(a, *(const uint32_t *)p);
	case SHIM_FIELD_U64:
		return aqe_json_new_u64(a, *(const uint64_t *)p);
	case SHIM_FIELD_I64:
		return aqe_json_new_i64(a, *(const int64_t *)p);
	case SHIM_FIELD_STRS:
		return aqe_json_new_strs(a, list->v, list->n);
	}
	return NULL;
}

struct aqe_json *shim_fields_emit(struct aqe_arena *a, const struct shim_field *table,
				  const void *record)
{
	struct aqe_json *obj = aqe_json_new_object(a);

	if (!obj)
		return NULL;
	for (const struct shim_field *f = table; f->name; f++) {
		const void *p = member(f, record);

		if (f->kind == SHIM_FIELD_STR && !*(const char *const *)p)
			continue;
		if (aqe_json_set(a, obj, f->name, emit_one(a, f, p)) < 0)
			return NULL;
	}
	return obj;
}

int shim_fields_save(const struct shim_field *table, int dirfd, const char *name,
		     const void *record, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *doc = a ? shim_fields_emit(a, table, record) : NULL;
	int rc;

	if (!doc)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for '%s'", name);
	rc = aqe_json_emit(doc, AQE_JSON_PRETTY, &b, e);
	if (rc == 0)
		rc = aqe_buf_putc(&b, '\n');
	if (rc == 0)
		rc = aqe_fs_write_file(dirfd, name, 0600, b.p, b.len, e);
	return rc < 0 ? aqe_err_wrap(e, "save") : 0;
}

/* ---- reading ---- */

static int read_strs(struct aqe_arena *a, const struct aqe_json *list, struct shim_strs *ret,
		     struct aqe_err *e)
{
	const char **v = aqe_arena_calloc(a, list->len + 1, sizeof(*v));
	size_t n = 0;

	if (!v)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	for (const struct aqe_json *i = list->first; i; i = i->next) {
		v[n] = aqe_json_str(i);
		if (!v[n++])
			return aqe_err_at(e, AQE_E_MALFORMED, i->line, i->col, "not a text");
	}
	ret->v = v;
	ret->n = n;
	return 1;
}

static int read_one(struct aqe_arena *a, const struct shim_field *f, const struct aqe_json *obj,
		    void *p, struct aqe_err *e)
{
	uint64_t number = 0;
	struct aqe_json *list;
	int rc = 0;

	switch (f->kind) {
	case SHIM_FIELD_STR:
		return aqe_json_get_str(obj, f->name, p, e);
	case SHIM_FIELD_BOOL:
		return aqe_json_get_bool(obj, f->name, p, e);
	case SHIM_FIELD_U32:
		rc = aqe_json_get_u64(obj, f->name, UINT32_MAX, &number, e);
		if (rc == 1)
			*(uint32_t *)p = (uint32_t)number;
		return rc;
	case SHIM_FIELD_U64:
		return aqe_json_get_u64(obj, f->name, UINT64_MAX, p, e);
	case SHIM_FIELD_I64:
		return aqe_json_get_i64(obj, f->name, INT64_MIN, INT64_MAX, p, e);
	case SHIM_FIELD_STRS:
		rc = aqe_json_get_array(obj, f->name, &list, e);
		return rc == 1 ? read_strs(a, list, p, e) : rc;
	}
	return AQE_E_INTERNAL;
}

int shim_fields_read(struct aqe_arena *a, const struct shim_field *table,
		     const struct aqe_json *obj, void *record, struct aqe_err *e)
{
	size_t seen = 0;

	if (obj->type != AQE_JSON_OBJECT)
		return aqe_err_at(e, AQE_E_MALFORMED, obj->line, obj->col, "not an object");
	for (const struct shim_field *f = table; f->name; f++) {
		int rc = read_one(a, f, obj, (char *)record + f->offset, e);

		if (rc < 0)
			return rc;
		seen += (size_t)rc;
	}
	if (seen != obj->len)
		return aqe_err_at(e, AQE_E_MALFORMED, obj->line, obj->col,
				  "a member that does not belong there");
	return 0;
}

int shim_fields_load(struct aqe_arena *a, const struct shim_field *table, int dirfd,
		     const char *name, void *record, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	struct aqe_json *root = NULL;
	int rc = aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, &b, e);

	if (rc < 0)
		return rc;
	rc = aqe_json_parse(a, aqe_buf_str(&b), b.len, &AQE_JSON_LIMITS_DEFAULT, &root, e);
	if (rc == 0)
		rc = shim_fields_read(a, table, root, record, e);
	return rc < 0 ? aqe_err_wrap(e, "'%s'", name) : 0;
}
