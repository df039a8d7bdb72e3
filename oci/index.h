/* SPDX-License-Identifier: MIT */
/* A store's index file: a JSON list of objects with an "id". It grows with the store and is read at
 * every start, so it is only split into its objects; those that are asked for are parsed. */
#ifndef AQE_OCI_INDEX_H
#define AQE_OCI_INDEX_H

#include <stddef.h>

#include "shim/core/buf.h"
#include "shim/core/json.h"

#define OCI_INDEX_MAX         ((size_t)64 << 20) /* bytes of the file */
#define OCI_INDEX_ENTRIES_MAX 100000U

struct oci_index {
	struct aqe_buf text; /* the caller fills it, then calls oci_index_split() */
	struct oci_slice {
		size_t at, len;
	} * entries;
	size_t n;
};
#define OCI_INDEX_INIT                               \
	{                                            \
		AQE_BUF_INIT(OCI_INDEX_MAX), NULL, 0 \
	}
void oci_index_done(struct oci_index *x);

/* Finds the objects. `null` is an empty list, as Go writes it. AQE_E_MALFORMED for anything but a
 * list of objects, AQE_E_LIMIT for too many. What is inside the objects is not judged. */
AQE_MUST_CHECK int oci_index_split(struct oci_index *x, struct aqe_err *e);
/* The first object whose "id" is `id`, parsed into `a`; *ret is NULL when there is none. Objects
 * that only mention the id are parsed too. */
AQE_MUST_CHECK int oci_index_find(const struct oci_index *x, struct aqe_arena *a, const char *id,
				  const struct aqe_json_limits *limits, const struct aqe_json **ret,
				  struct aqe_err *e);

#endif
