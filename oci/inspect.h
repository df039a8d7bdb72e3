/* SPDX-License-Identifier: MIT */
/* What engines report, as closed schemas: `inspect` of containers and images of podman (4, 5) and
 * docker (20 to 29), and their `info`. The kind is told from the document, never from a file name.
 */
#ifndef AQE_OCI_INSPECT_H
#define AQE_OCI_INSPECT_H

#include <stdbool.h>
#include <stddef.h>

#include "oci/doc.h"
#include "shim/core/json.h"

enum oci_inspect_kind {
	OCI_INSPECT_NONE, /* nothing an engine's inspect or info writes */
	OCI_INSPECT_PODMAN_CONTAINER,
	OCI_INSPECT_DOCKER_CONTAINER,
	OCI_INSPECT_PODMAN_IMAGE,
	OCI_INSPECT_DOCKER_IMAGE,
	OCI_INSPECT_PODMAN_INFO,
	OCI_INSPECT_DOCKER_INFO,
	OCI_INSPECT_FOREIGN, /* another tool's document: recognised, and not judged */
};

/* Limits: as for a config.json, but a number has up to 32 characters (podman writes ratios with all
 * their digits) and names may differ in case only (the closed tables report what is not theirs). */
extern const struct aqe_json_limits OCI_INSPECT_LIMITS;

/* The kind of one object, as an element of an inspect array or alone. *ret_tool (may be NULL) gets
 * the tool's name for FOREIGN. NULL is accepted. */
enum oci_inspect_kind oci_inspect_object(const struct aqe_json *object, const char **ret_tool);
/* The kind of a document: of its first object that has one. */
enum oci_inspect_kind oci_inspect_kind(const struct aqe_json *root, const char **ret_tool);
bool oci_inspect_is_podman(enum oci_inspect_kind kind);
/* "podman container inspect", ... */
const char *oci_inspect_name(enum oci_inspect_kind kind);

/* `inspect NAME` prints an array of one object, `info` one object. Anything else (no, several,
 * nested objects, an object without its array) is AQE_E_MALFORMED: it is not one thing. */
AQE_MUST_CHECK int oci_inspect_shape(const struct aqe_json *root, enum oci_inspect_kind kind,
				     struct aqe_err *e);
/* Types of every known member (AQE_E_MALFORMED with pointer and place). null counts as wrong where
 * the engine never writes it. Info documents: only what is judged. */
AQE_MUST_CHECK int oci_inspect_check(enum oci_inspect_kind kind, const struct aqe_json *object,
				     struct aqe_err *e);
/* Calls `fn` for every member that no version of the engine writes (UNKNOWN, CASE), in document
 * order; a non-zero return stops and is returned. Nothing for info documents. */
AQE_MUST_CHECK int oci_inspect_issues(enum oci_inspect_kind kind, const struct aqe_json *object,
				      oci_issue_fn *fn, void *arg);

#endif
