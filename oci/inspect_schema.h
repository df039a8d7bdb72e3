/* SPDX-License-Identifier: MIT */
/* The inspect and info documents as data. Internal to oci/. */
#ifndef AQE_OCI_INSPECT_SCHEMA_H
#define AQE_OCI_INSPECT_SCHEMA_H

#include <stddef.h>

#include "oci/inspect.h"

/* What a value may be; several at once where versions differ. */
enum oci_inspect_is {
	OCI_IS_NULL = 1U << AQE_JSON_NULL,
	OCI_IS_BOOL = 1U << AQE_JSON_BOOL,
	OCI_IS_INT = 1U << AQE_JSON_NUMBER, /* whole numbers only */
	OCI_IS_STR = 1U << AQE_JSON_STRING,
	OCI_IS_LIST = 1U << AQE_JSON_ARRAY,
	OCI_IS_OBJ = 1U << AQE_JSON_OBJECT,
};

struct oci_inspect_row;
struct oci_inspect_type {
	unsigned is;                         /* enum oci_inspect_is; 0: anything */
	const char *what;                    /* for messages: "a list of strings" */
	const struct oci_inspect_type *elem; /* of a list or of an object with free names; NULL:
						not looked at */
	const struct oci_inspect_row *rows;  /* closed object */
	size_t n_rows;
	bool loose; /* members without a row are passed over (info documents) */
};

enum oci_inspect_who { OCI_BY_PODMAN = 1U << 0, OCI_BY_DOCKER = 1U << 1 };
struct oci_inspect_row {
	const char *name;
	const struct oci_inspect_type *type;
	unsigned by;   /* which engines write it */
	unsigned null; /* which of them write null there */
};

/* The type of an object of this kind, or NULL. */
const struct oci_inspect_type *oci_inspect_type(enum oci_inspect_kind kind);

#endif
