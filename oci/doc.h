/* SPDX-License-Identifier: MIT */
/* Documents of the OCI runtime-spec (1.0 to 1.3) as closed schemas: const tables of members say
 * what exists and of which type. Reading checks types, writing emits only what the tables name. */
#ifndef AQE_OCI_DOC_H
#define AQE_OCI_DOC_H

#include <stddef.h>

#include "shim/core/json.h"

enum oci_doc {
	OCI_DOC_CONFIG,    /* config.json */
	OCI_DOC_PROCESS,   /* the process document of `exec --process` */
	OCI_DOC_RESOURCES, /* linux.resources, as `update --resources` takes it */
};

/* Limits for these documents: 1 MiB, depth 32, 4,096 entries, number 20 characters (R1, R6).
 * Strings are read up to 1 MiB and then limited by the schema: 32 KiB, but environment variables
 * and arguments up to 131,071 bytes, the kernel's MAX_ARG_STRLEN less the NUL (execve(2)). */
extern const struct aqe_json_limits OCI_DOC_LIMITS;

/* Reads a document: strict JSON, the right type for every known member at every level
 * (AQE_E_MALFORMED, with JSON pointer and place), lengths (AQE_E_LIMIT; for an environment
 * variable the text is "env 'NAME' is N bytes, limit 131071"). Unknown members are kept and
 * reported by oci_doc_issues(). Known members of other platforms are type-checked at their top. */
AQE_MUST_CHECK int oci_doc_parse(struct aqe_arena *a, enum oci_doc kind, const char *text,
				 size_t len, struct aqe_json **ret, struct aqe_err *e);
/* The type check of oci_doc_parse() for a tree made elsewhere. */
AQE_MUST_CHECK int oci_doc_check(enum oci_doc kind, const struct aqe_json *root, struct aqe_err *e);

enum oci_issue_kind {
	OCI_ISSUE_UNKNOWN, /* no version of the runtime-spec up to 1.3 has this member here */
	OCI_ISSUE_CASE,    /* unknown, and differs from a known member only in letter case (Unicode
			    * case folding, so U+017F and U+212A count) */
	OCI_ISSUE_FOLD,    /* a map (annotations, sysctl) has two names that differ only in case */
	OCI_ISSUE_UNUSED,  /* in the runtime-spec, but no part of a hardened container: other
			    * platforms  (windows, solaris, zos, freebsd, vm), intelRdt, rdma,
			    * blockIO, hugepageLimits,  unified, memoryPolicy, personality,
			    * timeOffsets, netDevices, scheduler, ioPriority,  execCPUAffinity,
			    * domainname, ... */
};
struct oci_issue {
	enum oci_issue_kind kind;
	const struct aqe_json *at; /* the member */
	const char *near;          /* the known name it resembles (CASE), else NULL */
};
/* Calls `fn` for every issue in document order; a non-zero return stops and is returned. */
typedef int oci_issue_fn(void *arg, const struct oci_issue *issue);
AQE_MUST_CHECK int oci_doc_issues(enum oci_doc kind, const struct aqe_json *root, oci_issue_fn *fn,
				  void *arg);

/* Appends our serialisation: members in the tables' order, compact, nothing the tables do not name.
 * A member that is unknown or unused is AQE_E_INTERNAL (the rewrite must have removed it). */
AQE_MUST_CHECK int oci_doc_emit(enum oci_doc kind, const struct aqe_json *root, struct aqe_buf *b,
				struct aqe_err *e);

/* True when a parsed value looks like a config.json: an object that has at least one of the
 * runtime-spec's top-level members, or is empty. */
bool oci_doc_is_config(const struct aqe_json *root);

/* The versions of R12 that the reader knows: 1.0.0-1.0.2, 1.1.0, 1.2.0, 1.2.1, 1.3.0, each with or
 * without "-dev". */
bool oci_version_known(const char *v);
/* Written into every document of ours: crun 1.8.1 refuses 1.3.0, runc 1.1.5 ignores the field. */
#define OCI_VERSION_OUT "1.0.2-dev"

/* What a runtime's `state` prints, as far as we use it. */
enum oci_status {
	OCI_STATUS_CREATING,
	OCI_STATUS_CREATED,
	OCI_STATUS_RUNNING,
	OCI_STATUS_PAUSED,
	OCI_STATUS_STOPPED,
};
struct oci_state {
	enum oci_status status;
	int pid; /* 0 when there is no process */
};
/* Reads a state document; unknown members are ignored (runtimes add their own). */
AQE_MUST_CHECK int oci_state_parse(const char *text, size_t len, struct oci_state *ret,
				   struct aqe_err *e);

/* Container ids as crun and runc accept them: 1-1024 of [A-Za-z0-9_+.-], not "." or "..". */
bool oci_id_ok(const char *id);

#endif
