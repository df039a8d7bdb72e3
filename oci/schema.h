/* SPDX-License-Identifier: MIT */
/* The runtime-spec as data: which members exist, of which type. Internal to oci/. */
#ifndef AQE_OCI_SCHEMA_H
#define AQE_OCI_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#include "oci/doc.h"

/* Longest string and member name; environment variables and arguments may have
 * OCI_ARG_MAX bytes: MAX_ARG_STRLEN (32 pages) less the NUL, execve(2). */
#define OCI_STRING_MAX 32768U
#define OCI_ARG_MAX    131071U
/* Nested arrays and objects below and with the root (R6). */
#define OCI_DEPTH_MAX 32U

enum oci_kind {
	OCI_KIND_OBJECT,  /* closed: `rows` says which members exist */
	OCI_KIND_MAP,     /* object with free names, values of type `elem` */
	OCI_KIND_ARRAY,   /* of `elem` */
	OCI_KIND_FOREIGN, /* object of another platform: only known to be an object */
	OCI_KIND_STRING,  /* of at most `max` bytes */
	OCI_KIND_BOOL,
	OCI_KIND_INT,  /* signed, `min` to `max` */
	OCI_KIND_UINT, /* 0 to `max` */
};

struct oci_row;

struct oci_type {
	enum oci_kind kind;
	const char *what; /* for messages: "an array" */
	int64_t min;
	uint64_t max;
	const struct oci_type *elem;
	const struct oci_row *rows; /* in the order in which they are written */
	size_t n_rows;
};

enum oci_row_flag {
	OCI_ROW_UNUSED = 1U << 0, /* exists, but is no part of a hardened container */
};

/* One member of an object. */
struct oci_row {
	const char *name;
	size_t len; /* of name */
	const struct oci_type *type;
	unsigned flags; /* enum oci_row_flag */
};

/* Elements of process.env, whose limit has its own message. */
extern const struct oci_type OCI_TYPE_ENV;

/* The type of a whole document. */
const struct oci_type *oci_schema_root(enum oci_doc kind);
/* The row of an object's member, or NULL. `len` is the length of `name`. */
const struct oci_row *oci_schema_row(const struct oci_type *object, const char *name, size_t len);
/* The row whose name `name` spells in other letter case, or NULL. */
const struct oci_row *oci_schema_row_fold(const struct oci_type *object, const char *name);
/* Equality under Unicode case folding as far as it reaches ASCII: A-Z, U+017F (s), U+212A (k). */
bool oci_fold_eq(const char *a, const char *b);

#endif
