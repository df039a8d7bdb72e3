/* SPDX-License-Identifier: MIT */
/* Small structs as JSON documents, by a table of their members: one table reads and writes. */
#ifndef AQE_SANDBOX_FIELDS_H
#define AQE_SANDBOX_FIELDS_H

#include <stddef.h>

#include "shim/core/json.h"

enum shim_field_kind {
	SHIM_FIELD_STR,  /* const char *; NULL is left out */
	SHIM_FIELD_BOOL, /* bool */
	SHIM_FIELD_U32,  /* uint32_t */
	SHIM_FIELD_U64,  /* uint64_t */
	SHIM_FIELD_I64,  /* int64_t */
	SHIM_FIELD_STRS, /* struct shim_strs */
};
struct shim_strs {
	const char *const *v;
	size_t n;
};
struct shim_field {
	const char *name; /* NULL ends the table */
	enum shim_field_kind kind;
	size_t offset;
};

/* An object of the members, in the table's order; NULL when memory is exhausted. */
struct aqe_json *shim_fields_emit(struct aqe_arena *a, const struct shim_field *table,
				  const void *record);
/* Fills the members that are there; the others keep their value. Unknown members are refused
 * (AQE_E_MALFORMED), as are wrong types. Strings live as long as `obj`. */
AQE_MUST_CHECK int shim_fields_read(struct aqe_arena *a, const struct shim_field *table,
				    const struct aqe_json *obj, void *record, struct aqe_err *e);

/* The same from and to a file of a folder that is ours: trusted, at most 1 MiB, atomic. */
AQE_MUST_CHECK int shim_fields_load(struct aqe_arena *a, const struct shim_field *table, int dirfd,
				    const char *name, void *record, struct aqe_err *e);
AQE_MUST_CHECK int shim_fields_save(const struct shim_field *table, int dirfd, const char *name,
				    const void *record, struct aqe_err *e);

#endif
