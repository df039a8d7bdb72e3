/* SPDX-License-Identifier: MIT */
/* Strict JSON: one reader (on yajl's callbacks, the only user of yajl), a tree in an arena, typed
 * getters, editing, and the one writer. Rules R2-R8 of the verifier: the reader refuses what two
 * parsers could read differently. */
#ifndef AQE_CORE_JSON_H
#define AQE_CORE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/arena.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

enum aqe_json_type {
	AQE_JSON_NULL,
	AQE_JSON_BOOL,
	AQE_JSON_NUMBER, /* kept as its text */
	AQE_JSON_STRING,
	AQE_JSON_ARRAY,
	AQE_JSON_OBJECT,
};

/* A value. Read the members; change only through the functions below. */
struct aqe_json {
	enum aqe_json_type type;
	bool boolean;
	bool fold_dup; /* OBJECT: two names differ only in letter case (only with fold_dups_ok) */
	/* where it began in its document: 1-based, columns in bytes; 0 when made by us */
	uint32_t line, col;
	const char *key;                /* its name when it is an object's member, else NULL */
	struct aqe_json *parent, *next; /* next sibling, in document order */
	const char *text;               /* STRING and NUMBER: NUL-terminated, no NUL inside */
	size_t len;                     /* length of text, or number of children */
	struct aqe_json *first, *last;  /* ARRAY, OBJECT */
};

struct aqe_json_limits {
	size_t bytes;   /* document */
	size_t depth;   /* nested arrays and objects: one more is refused; at most 120 */
	size_t values;  /* values in the document */
	size_t entries; /* children of one array or object */
	size_t string;  /* bytes of a decoded string or key */
	size_t number;  /* characters of a number */
	/* Two keys of one object that differ only in letter case: false = refused as duplicates;
	 * true = object marked with fold_dup, for documents whose schema then reports it.
	 * Byte-equal keys (after unescaping) are always refused. */
	bool fold_dups_ok;
};

/* Rule R6: depth 32, string 32 KiB, 4,096 entries, number 20 characters; 1 MiB (R1) and 200,000
 * values. */
extern const struct aqe_json_limits AQE_JSON_LIMITS_DEFAULT;

/* Reads exactly one value from `text` (`len` bytes, need not be NUL-terminated) into `a`. Refuses:
 * over a limit (AQE_E_LIMIT); anything not strict JSON, byte-order mark, bad UTF-8, U+0000, lone
 * surrogate, control character in a string, comment, data after the value, duplicate key
 * (AQE_E_MALFORMED). Every error has line and column. The tree lives as long as `a`. */
AQE_MUST_CHECK int aqe_json_parse(struct aqe_arena *a, const char *text, size_t len,
				  const struct aqe_json_limits *limits, struct aqe_json **ret,
				  struct aqe_err *e);

/* ---- looking ---- */
const char *aqe_json_type_name(enum aqe_json_type type); /* "object", "string", ... */
/* The member, or NULL: absent, or `obj` is NULL or no object. */
struct aqe_json *aqe_json_get(const struct aqe_json *obj, const char *name);
/* The value at an RFC 6901 pointer ("" is the root itself), or NULL. */
struct aqe_json *aqe_json_at(const struct aqe_json *root, const char *pointer);
/* The idx-th child, or NULL. */
struct aqe_json *aqe_json_item(const struct aqe_json *array, size_t idx);
/* RFC 6901 pointer of a value from its root, appended to `b`. */
void aqe_json_pointer(const struct aqe_json *v, struct aqe_buf *b);
/* Deep equality; members of objects in any order; numbers by text. */
bool aqe_json_equal(const struct aqe_json *a, const struct aqe_json *b);

/* ---- typed getters: absent and wrong type are different ----
 * Return 1 (present, *ret set), 0 (absent, *ret untouched) or AQE_E_MALFORMED with the place. null
 * is a wrong type. */
AQE_MUST_CHECK int aqe_json_get_str(const struct aqe_json *obj, const char *name, const char **ret,
				    struct aqe_err *e);
AQE_MUST_CHECK int aqe_json_get_bool(const struct aqe_json *obj, const char *name, bool *ret,
				     struct aqe_err *e);
AQE_MUST_CHECK int aqe_json_get_u64(const struct aqe_json *obj, const char *name, uint64_t max,
				    uint64_t *ret, struct aqe_err *e);
AQE_MUST_CHECK int aqe_json_get_i64(const struct aqe_json *obj, const char *name, int64_t min,
				    int64_t max, int64_t *ret, struct aqe_err *e);
AQE_MUST_CHECK int aqe_json_get_object(const struct aqe_json *obj, const char *name,
				       struct aqe_json **ret, struct aqe_err *e);
AQE_MUST_CHECK int aqe_json_get_array(const struct aqe_json *obj, const char *name,
				      struct aqe_json **ret, struct aqe_err *e);
/* On a value itself: true and *ret set when it is a NUMBER in strict integer form and in range. */
bool aqe_json_to_i64(const struct aqe_json *v, int64_t min, int64_t max, int64_t *ret);
bool aqe_json_to_u64(const struct aqe_json *v, uint64_t max, uint64_t *ret);
/* The text of a STRING, or NULL. */
const char *aqe_json_str(const struct aqe_json *v);
/* True when `v` is an ARRAY that contains the STRING `s`. */
bool aqe_json_has_str(const struct aqe_json *v, const char *s);

/* ---- making and editing; all memory from `a`; NULL (or AQE_E_NOMEM) when it is exhausted ---- */
struct aqe_json *aqe_json_new_null(struct aqe_arena *a);
struct aqe_json *aqe_json_new_bool(struct aqe_arena *a, bool v);
struct aqe_json *aqe_json_new_i64(struct aqe_arena *a, int64_t v);
struct aqe_json *aqe_json_new_u64(struct aqe_arena *a, uint64_t v);
struct aqe_json *aqe_json_new_str(struct aqe_arena *a, const char *s);
struct aqe_json *aqe_json_new_array(struct aqe_arena *a);
struct aqe_json *aqe_json_new_object(struct aqe_arena *a);
/* Array of the `n` strings of `list`. */
struct aqe_json *aqe_json_new_strs(struct aqe_arena *a, const char *const *list, size_t n);
/* Deep copy, detached. */
struct aqe_json *aqe_json_copy(struct aqe_arena *a, const struct aqe_json *v);
/* Puts detached `v` under `key`, in place of an earlier member of that name (same position). The
 * key is copied. `v` NULL is AQE_E_NOMEM, so that a failed constructor can be passed straight on.
 */
AQE_MUST_CHECK int aqe_json_set(struct aqe_arena *a, struct aqe_json *obj, const char *key,
				struct aqe_json *v);
/* Appends / inserts before child `idx` (idx >= len appends) of an array; NULL `v` as above. */
AQE_MUST_CHECK int aqe_json_append(struct aqe_json *array, struct aqe_json *v);
AQE_MUST_CHECK int aqe_json_insert(struct aqe_json *array, size_t idx, struct aqe_json *v);
/* Takes a value out of its parent (it stays valid); NULL is accepted. */
void aqe_json_detach(struct aqe_json *v);
/* Removes the member if it is there. */
void aqe_json_remove(struct aqe_json *obj, const char *name);
/* The object member `name` of `obj`, made and added when absent; NULL when memory is exhausted or
 * the member is no object. */
struct aqe_json *aqe_json_ensure_object(struct aqe_arena *a, struct aqe_json *obj,
					const char *name);

/* ---- writing ---- */
enum aqe_json_emit {
	AQE_JSON_COMPACT = 0,
	AQE_JSON_PRETTY = 1U << 0, /* two blanks an indent, one member a line */
	AQE_JSON_SORTED = 1U << 1, /* members in byte order of their names */
};
/* Appends `v` as strict JSON, ASCII control characters escaped, UTF-8 kept. */
AQE_MUST_CHECK int aqe_json_emit(const struct aqe_json *v, unsigned flags, struct aqe_buf *b,
				 struct aqe_err *e);
/* Appends one quoted JSON string. Bytes that are not UTF-8 become U+FFFD. */
void aqe_json_emit_str(struct aqe_buf *b, const char *s);

#endif
