/* SPDX-License-Identifier: MIT */
#include "oci/inspect.h"

#include <string.h>

#include "oci/inspect_schema.h"
#include "oci/schema.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define DEPTH_MAX 16U /* of the tables; documents may be deeper below what they look at */

const struct aqe_json_limits OCI_INSPECT_LIMITS = {
	.bytes = 1U << 20,
	.depth = OCI_DEPTH_MAX,
	.values = 200000,
	.entries = 4096,
	.string = OCI_ARG_MAX,
	.number = 32,
	.fold_dups_ok = true,
};

/* ---- kinds ---- */

bool oci_inspect_is_podman(enum oci_inspect_kind kind)
{
	return kind == OCI_INSPECT_PODMAN_CONTAINER || kind == OCI_INSPECT_PODMAN_IMAGE ||
	       kind == OCI_INSPECT_PODMAN_INFO;
}

const char *oci_inspect_name(enum oci_inspect_kind kind)
{
	static const char *const names[] = {
		[OCI_INSPECT_NONE] = "no inspect document",
		[OCI_INSPECT_PODMAN_CONTAINER] = "podman container inspect",
		[OCI_INSPECT_DOCKER_CONTAINER] = "docker container inspect",
		[OCI_INSPECT_PODMAN_IMAGE] = "podman image inspect",
		[OCI_INSPECT_DOCKER_IMAGE] = "docker image inspect",
		[OCI_INSPECT_PODMAN_INFO] = "podman info",
		[OCI_INSPECT_DOCKER_INFO] = "docker info",
		[OCI_INSPECT_FOREIGN] = "another tool's document",
	};

	return names[kind];
}

static bool is_info(enum oci_inspect_kind kind)
{
	return kind == OCI_INSPECT_PODMAN_INFO || kind == OCI_INSPECT_DOCKER_INFO;
}

/* True when the object has one of the NULL-terminated names. */
static bool has_any(const struct aqe_json *object, const char *const *names)
{
	for (; *names; names++)
		if (aqe_json_get(object, *names))
			return true;
	return false;
}

static bool has_all(const struct aqe_json *object, const char *const *names)
{
	for (; *names; names++)
		if (!aqe_json_get(object, *names))
			return false;
	return true;
}

/* Positive: more members that only podman writes; negative: more that only docker writes. */
static int podman_or_docker(const struct aqe_json *object, const struct oci_inspect_type *type)
{
	const char *image = aqe_json_str(aqe_json_get(object, "Image"));
	int score = 0;

	for (size_t i = 0; i < type->n_rows; i++) {
		if (type->rows[i].by == (OCI_BY_PODMAN | OCI_BY_DOCKER) ||
		    !aqe_json_get(object, type->rows[i].name))
			continue;
		score += type->rows[i].by == OCI_BY_PODMAN ? 1 : -1;
	}
	if (score == 0 && !image)
		image = aqe_json_str(aqe_json_get(object, "Id"));
	if (score == 0 && image) /* docker writes ids with their algorithm */
		score = aqe_starts(image, "sha256:") ? -1 : 1;
	return score;
}

/* Documents of other tools, by members that only they have together. */
static const struct {
	const char *tool;
	const char *all[4];
} foreign[] = {
	{ "crictl", { "info", "status", NULL } },
	{ "crictl", { "status", "config", NULL } },
	{ "nerdctl (native mode) or ctr", { "Spec", "Snapshotter", NULL } },
	{ "nerdctl (native mode) or ctr", { "Spec", "SnapshotKey", NULL } },
	{ "buildah", { "FromImage", "Docker", NULL } },
	{ "kubectl", { "apiVersion", "kind", NULL } },
	{ "skopeo", { "Name", "Digest", "LayersData", NULL } },
};

static const char *foreign_tool(const struct aqe_json *object)
{
	const struct aqe_json *labels = aqe_json_at(object, "/Config/Labels");

	for (size_t i = 0; i < AQE_COUNT(foreign); i++)
		if (has_all(object, foreign[i].all))
			return foreign[i].tool;
	/* nerdctl's docker mode tells itself by the labels it keeps its own state in */
	for (const struct aqe_json *l = labels ? labels->first : NULL; l; l = l->next)
		if (l->key && aqe_starts(l->key, "nerdctl/"))
			return "nerdctl";
	return NULL;
}

enum oci_inspect_kind oci_inspect_object(const struct aqe_json *object, const char **ret_tool)
{
	static const char *const spec[] = { "ociVersion", NULL };
	static const char *const of_container[] = { "HostConfig", "NetworkSettings",
						    "Mounts",     "ProcessLabel",
						    "MountLabel", "ExecIDs",
						    NULL };
	static const char *const of_image[] = { "RepoTags", "RepoDigests", "RootFS", NULL };
	static const char *const of_docker[] = { "SecurityOptions", "ServerVersion",
						 "DockerRootDir", NULL };
	const char *tool;
	int score;

	if (!object || object->type != AQE_JSON_OBJECT || has_any(object, spec))
		return OCI_INSPECT_NONE;
	tool = foreign_tool(object);
	if (tool) {
		if (ret_tool)
			*ret_tool = tool;
		return OCI_INSPECT_FOREIGN;
	}
	if (has_any(object, of_container)) {
		score = podman_or_docker(object, oci_inspect_type(OCI_INSPECT_PODMAN_CONTAINER));
		return score > 0 ? OCI_INSPECT_PODMAN_CONTAINER : OCI_INSPECT_DOCKER_CONTAINER;
	}
	if (has_any(object, of_image)) {
		score = podman_or_docker(object, oci_inspect_type(OCI_INSPECT_PODMAN_IMAGE));
		return score > 0 ? OCI_INSPECT_PODMAN_IMAGE : OCI_INSPECT_DOCKER_IMAGE;
	}
	if (has_any(object, of_docker))
		return OCI_INSPECT_DOCKER_INFO;
	if (aqe_json_get(object, "host"))
		return OCI_INSPECT_PODMAN_INFO;
	return OCI_INSPECT_NONE;
}

enum oci_inspect_kind oci_inspect_kind(const struct aqe_json *root, const char **ret_tool)
{
	enum oci_inspect_kind kind = OCI_INSPECT_NONE;

	if (root->type != AQE_JSON_ARRAY)
		return oci_inspect_object(root, ret_tool);
	for (const struct aqe_json *o = root->first; o && kind == OCI_INSPECT_NONE; o = o->next)
		kind = oci_inspect_object(o, ret_tool);
	return kind;
}

int oci_inspect_shape(const struct aqe_json *root, enum oci_inspect_kind kind, struct aqe_err *e)
{
	const bool array = root->type == AQE_JSON_ARRAY;

	if (is_info(kind) && !array)
		return 0;
	if (is_info(kind) || !array)
		return aqe_err_at(e, AQE_E_MALFORMED, root->line, root->col,
				  "%s is %s, not %s: is the document whole?",
				  oci_inspect_name(kind), array ? "an array" : "an object",
				  array ? "an object" : "an array");
	if (root->len != 1)
		return aqe_err_at(e, AQE_E_MALFORMED, root->line, root->col,
				  "%zu objects, where %s of one thing has one", root->len,
				  oci_inspect_name(kind));
	return 0;
}

/* ---- types and members ---- */

struct walk {
	enum oci_inspect_who who;
	oci_issue_fn *fn; /* NULL: check types */
	void *arg;
	struct aqe_err *e;
	struct {
		const struct oci_inspect_type *type;
		const struct aqe_json *next; /* child to look at */
	} stack[DEPTH_MAX];
	size_t n;
};

static bool is_integer(const struct aqe_json *v)
{
	int64_t i;
	uint64_t u;

	return aqe_json_to_i64(v, INT64_MIN, INT64_MAX, &i) || aqe_json_to_u64(v, UINT64_MAX, &u);
}

static int check_type(struct walk *w, const struct aqe_json *v, const struct oci_inspect_type *t,
		      bool null_ok)
{
	AQE_AUTO_BUF struct aqe_buf at = AQE_BUF_INIT(1U << 20);

	if (t->is == 0 || (null_ok && v->type == AQE_JSON_NULL))
		return 0;
	if ((t->is & (1U << v->type)) && (v->type != AQE_JSON_NUMBER || is_integer(v)))
		return 0;
	aqe_json_pointer(v, &at);
	return aqe_err_at(w->e, AQE_E_MALFORMED, v->line, v->col, "'%.200s' is %s, not %s",
			  aqe_buf_str(&at),
			  v->type == AQE_JSON_NUMBER ? "no whole number"
						     : aqe_json_type_name(v->type),
			  t->what);
}

static const struct oci_inspect_row *find_row(const struct walk *w,
					      const struct oci_inspect_type *t, const char *name,
					      bool fold)
{
	for (size_t i = 0; i < t->n_rows; i++)
		if ((t->rows[i].by & w->who) &&
		    (fold ? oci_fold_eq(name, t->rows[i].name) : aqe_str_eq(name, t->rows[i].name)))
			return &t->rows[i];
	return NULL;
}

static int report_unknown(struct walk *w, const struct aqe_json *member,
			  const struct oci_inspect_type *t)
{
	const struct oci_inspect_row *near = find_row(w, t, member->key, true);
	const struct oci_issue issue = { near ? OCI_ISSUE_CASE : OCI_ISSUE_UNKNOWN, member,
					 near ? near->name : NULL };

	if (!w->fn || t->loose)
		return 0;
	return w->fn(w->arg, &issue);
}

static void push(struct walk *w, const struct aqe_json *v, const struct oci_inspect_type *t)
{
	if (!v->first || !(t->is & (1U << v->type)) || w->n >= DEPTH_MAX ||
	    (!t->elem && t->n_rows == 0))
		return;
	w->stack[w->n].type = t;
	w->stack[w->n++].next = v->first;
}

/* One child: 0, or what stops the walk. */
static int visit(struct walk *w, const struct aqe_json *v, const struct oci_inspect_type *parent)
{
	const struct oci_inspect_type *t = parent->elem;
	bool null_ok = false;
	int rc = 0;

	if (parent->n_rows) {
		const struct oci_inspect_row *row = find_row(w, parent, v->key, false);

		if (!row)
			return report_unknown(w, v, parent);
		t = row->type;
		null_ok = row->null & w->who;
	}
	if (!w->fn)
		rc = check_type(w, v, t, null_ok);
	if (rc == 0)
		push(w, v, t);
	return rc;
}

static int run(struct walk *w, const struct aqe_json *object, enum oci_inspect_kind kind)
{
	const struct oci_inspect_type *t = oci_inspect_type(kind);
	int rc;

	if (!t)
		return 0;
	w->who = oci_inspect_is_podman(kind) ? OCI_BY_PODMAN : OCI_BY_DOCKER;
	rc = w->fn ? 0 : check_type(w, object, t, false);
	if (rc == 0)
		push(w, object, t);
	while (rc == 0 && w->n) {
		const size_t top = w->n - 1;
		const struct aqe_json *v = w->stack[top].next;

		if (!v) {
			w->n--;
			continue;
		}
		w->stack[top].next = v->next;
		rc = visit(w, v, w->stack[top].type);
	}
	return rc;
}

int oci_inspect_check(enum oci_inspect_kind kind, const struct aqe_json *object, struct aqe_err *e)
{
	struct walk w = { .e = e };

	return run(&w, object, kind);
}

int oci_inspect_issues(enum oci_inspect_kind kind, const struct aqe_json *object, oci_issue_fn *fn,
		       void *arg)
{
	struct walk w = { .fn = fn, .arg = arg };

	return run(&w, object, kind);
}
