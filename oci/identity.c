/* SPDX-License-Identifier: MIT */
#include "oci/identity.h"

#include <string.h>

#include "oci/store.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* Parsed indexes: a tree is several times as large as its text. */
#define TMP_ARENA_MAX    (384U << 20)

#define CONTAINERD_TASKS "/io.containerd.runtime.v2.task/"
#define BUILDAH_BUNDLE   "/var/tmp/buildah"

static const char *const ENGINE_NAMES[] = {
	[OCI_ENGINE_NONE] = "none",       [OCI_ENGINE_PODMAN] = "podman",
	[OCI_ENGINE_DOCKER] = "docker",   [OCI_ENGINE_CONTAINERD] = "containerd",
	[OCI_ENGINE_BUILDAH] = "buildah", [OCI_ENGINE_AQE] = "aqe",
};

const char *oci_engine_name(enum oci_engine engine)
{
	return ENGINE_NAMES[engine];
}

/* ---- the forms of the engines' bundle paths (engines.md section 1) ---- */

static bool is_buildah(struct oci_probe *p)
{
	/* never a proof of anything: such a container's image is unknown */
	return aqe_starts(p->in->id, "buildah-buildah") ||
	       aqe_starts(p->in->bundle, BUILDAH_BUNDLE);
}

static bool is_podman(struct oci_probe *p)
{
	const char *root, *driver;

	return oci_split_userdata(p->tmp, p->in->bundle, p->in->id, &root, &driver);
}

/* "<state>/io.containerd.runtime.v2.task/<namespace>/<id>"; `ns` NULL means any. */
static bool is_task(struct oci_probe *p, const char *ns)
{
	const char *s = strstr(p->in->bundle, CONTAINERD_TASKS);
	const char *slash;

	if (!s)
		return false;
	s += strlen(CONTAINERD_TASKS);
	slash = strchr(s, '/');
	if (!slash || !aqe_str_eq(slash + 1, p->in->id))
		return false;
	return !ns || (strlen(ns) == (size_t)(slash - s) && memcmp(s, ns, strlen(ns)) == 0);
}

static bool is_docker(struct oci_probe *p)
{
	return is_task(p, "moby");
}

static bool is_containerd(struct oci_probe *p)
{
	return is_task(p, NULL);
}

static bool is_any(struct oci_probe *p)
{
	(void)p;
	return true;
}

static int identify_buildah(struct oci_probe *p)
{
	return oci_unknown(p, "buildah names no image for a RUN step");
}

static int identify_containerd(struct oci_probe *p)
{
	return oci_unknown(p, "containerd's image store is not read by this version");
}

static int identify_none(struct oci_probe *p)
{
	return oci_unknown(p, "no engine made the bundle '%s', so nothing says which image it is",
			   p->in->bundle);
}

static const struct row {
	enum oci_engine engine;
	bool (*is)(struct oci_probe *p);
	int (*identify)(struct oci_probe *p);
} ENGINES[] = {
	/* the first match counts */
	{ OCI_ENGINE_BUILDAH, is_buildah, identify_buildah },
	{ OCI_ENGINE_PODMAN, is_podman, oci_identify_podman },
	{ OCI_ENGINE_DOCKER, is_docker, oci_identify_docker },
	{ OCI_ENGINE_CONTAINERD, is_containerd, identify_containerd },
	{ OCI_ENGINE_AQE, oci_is_aqe, oci_identify_aqe },
	{ OCI_ENGINE_NONE, is_any, identify_none },
};

int oci_identify(struct aqe_arena *a, const struct oci_identity_in *in, struct oci_identity *ret,
		 struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *tmp = aqe_arena_new(TMP_ARENA_MAX);
	struct oci_identity id = { .engine = OCI_ENGINE_NONE };
	struct oci_probe p = { in, &id, a, tmp, "", e };
	const char *root_path = aqe_json_str(aqe_json_at(in->config, "/root/path"));
	size_t i = 0;
	int r;

	if (!tmp)
		return oci_nomem(&p);
	if (root_path)
		p.root_path = root_path;
	while (!ENGINES[i].is(&p))
		i++;
	id.engine = ENGINES[i].engine;
	r = ENGINES[i].identify(&p);
	if (r < 0)
		return r;
	id.known = r == 0;
	*ret = id;
	return 0;
}
