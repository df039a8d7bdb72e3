/* SPDX-License-Identifier: MIT */
/* Which engine called, and which image the container is made of, from the engine's own store with
 * every hash checked. Nothing the container's creator or the image wrote decides this. */
#ifndef AQE_OCI_IDENTITY_H
#define AQE_OCI_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/json.h"
#include "shim/core/sha256.h"

enum oci_engine {
	OCI_ENGINE_NONE,       /* no engine recognised: a bundle made by hand */
	OCI_ENGINE_PODMAN,     /* podman, CRI-O: containers/storage */
	OCI_ENGINE_DOCKER,     /* dockerd, overlay2 graph driver */
	OCI_ENGINE_CONTAINERD, /* ctr, CRI, docker's containerd store: identity not read yet */
	OCI_ENGINE_BUILDAH,    /* buildah RUN: nothing identifies the image */
	OCI_ENGINE_AQE,        /* aqe's own store of unpacked images */
};
const char *oci_engine_name(enum oci_engine engine);

#define OCI_ENGINE_DIRS_MAX 4

/* aqe's own folder: unpacked images are below "store/" there, each named after the hash of its
 * config. A compiled-in place, so that a tree of the same shape elsewhere proves nothing. */
#define OCI_STORE_DATA "/var/lib/aqe-shim"

/* All strings live in the arena given to oci_identify(). */
struct oci_identity {
	enum oci_engine engine;
	bool known;                     /* image_id is set and verified */
	char image_id[AQE_DIGEST_TEXT]; /* "sha256:<hex>": hash of the image's config document */
	const char *const *digests; /* verified manifest (and list) digests, n_digests of them */
	size_t n_digests;
	const char *name;        /* what the user called it, for messages only; may be NULL */
	const char *why_unknown; /* when !known: one clause, "buildah names no image" */
	/* Directories below which this engine keeps files for exactly this container (hosts,
	 * resolv.conf, hostname, shm, ...), canonical absolute paths. */
	const char *dirs[OCI_ENGINE_DIRS_MAX];
	size_t n_dirs;
	/* From the engine's own record of what was asked for (docker's hostconfig.json); NULL or
	 * false where the engine keeps none. */
	bool asked_privileged;
	const char *asked_network; /* "none", "bridge", "host", "container:ID" */
	/* Container labels io.aqe.agent-type / io.aqe.agent-id where the engine has no annotations
	 * (docker); NULL when absent. User- or image-written: a request, never a proof. */
	const char *label_agent_type, *label_agent_id;
};

struct oci_identity_in {
	const char *bundle;   /* canonical absolute path of the engine's bundle */
	const char *pid_file; /* --pid-file as given, or NULL (podman: its directory is RUNDIR) */
	const char *id;       /* container id from argv */
	const struct aqe_json *config; /* the parsed config.json (root.path, mounts) */
};

/* Finds engine and image (engines.md section 3). "No image can be proved" is not an error: known is
 * false and why_unknown says why; the caller refuses. Errors are memory only. Reads are bounded:
 * 64 MiB a store index, 4 MiB a blob. root.path must be the very layer the store names for this
 * container, else known is false. */
AQE_MUST_CHECK int oci_identify(struct aqe_arena *a, const struct oci_identity_in *in,
				struct oci_identity *ret, struct aqe_err *e);

#endif
