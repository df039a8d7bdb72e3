/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/proc.h"
#include "shim/core/text.h"
#include "shim/egress_start.h"
#include "shim/env.h"
#include "shim/exit.h"
#include "shim/runtime.h"
#include "shim/runtime_judge.h"

#define CONFIG_NAME    "config.json"
#define AGENT_ID_MAX   128
#define AGENT_ID_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:@/"

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the decision");
}

/* A path of the command line as an absolute one; the engine's working directory is still ours. */
static int absolute(struct shim_rt *rt, const char *path, const char **ret, struct aqe_err *e)
{
	char cwd[4096];

	if (path[0] == '/') {
		*ret = path;
		return 0;
	}
	if (!getcwd(cwd, sizeof(cwd)) || cwd[0] != '/')
		return aqe_err_set(e, AQE_E_SYS, errno, "find the working directory");
	*ret = strcmp(path, ".") == 0 ? aqe_arena_dup(rt->arena, cwd)
				      : aqe_arena_fmt(rt->arena, "%s/%s", cwd, path);
	return *ret ? 0 : nomem(e);
}

/* Links on the way are the host's (/var/run); what they lead to is opened without any. */
static int open_bundle(struct shim_rt *rt, struct shim_judged *j, int *ret, struct aqe_err *e)
{
	char canonical[PATH_MAX];
	const char *path = shim_argv_option(&rt->av, "bundle");
	int rc = absolute(rt, path && *path ? path : ".", &path, e);

	if (rc < 0)
		return rc;
	if (!realpath(path, canonical))
		return aqe_err_set(e, AQE_E_SYS, errno, "find '%s'", path);
	j->bundle = aqe_arena_dup(rt->arena, canonical);
	if (!j->bundle)
		return nomem(e);
	rc = aqe_fs_open_nolinks(canonical, O_RDONLY | O_DIRECTORY, ret, e);
	return rc < 0 ? rc : aqe_fs_check(*ret, AQE_FS_DIR | AQE_FS_NO_WRITE, 0, path, NULL, e);
}

/* True when container root is `uid` outside, by the document's own mappings. */
static bool is_mapped_root(const struct aqe_json *doc, uid_t uid)
{
	const struct aqe_json *map = aqe_json_at(doc, "/linux/uidMappings");

	for (const struct aqe_json *m = map ? map->first : NULL; m; m = m->next) {
		uint64_t inside = 1, outside = 0;

		if (aqe_json_get_u64(m, "containerID", UINT32_MAX, &inside, NULL) > 0 &&
		    aqe_json_get_u64(m, "hostID", UINT32_MAX, &outside, NULL) > 0 && inside == 0 &&
		    outside == uid)
			return true;
	}
	return false;
}

/* Podman gives the bundle of a container with a user namespace to the container's root. It could
 * remove our document there, but not put one in its place that is ours or root's. */
static int check_owner(int fd, const struct shim_judged *j, struct aqe_err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat '%.200s'", j->bundle);
	if (is_mapped_root(j->in, st.st_uid))
		return 0;
	return aqe_fs_check(fd, AQE_FS_DIR | AQE_FS_OWNER, 0, j->bundle, NULL, e);
}

/* The engine's document, read once (R1). */
static int read_bundle(struct shim_rt *rt, struct shim_judged *j, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(OCI_DOC_LIMITS.bytes);
	AQE_AUTO_FD int fd = -1;
	int rc = open_bundle(rt, j, &fd, e);

	if (rc < 0)
		return aqe_err_wrap(e, "bundle");
	rc = aqe_fs_read_beneath(fd, CONFIG_NAME, AQE_FS_TRUSTED, &text, e);
	if (rc == 0)
		rc = oci_doc_parse(rt->arena, OCI_DOC_CONFIG, aqe_buf_str(&text), text.len, &j->in,
				   e);
	if (rc < 0 && e->line)
		return aqe_err_wrap(e, "%.200s/" CONFIG_NAME ":%u:%u", j->bundle, e->line, e->col);
	if (rc < 0)
		return aqe_err_wrap(e, "%.200s/" CONFIG_NAME, j->bundle);
	rc = check_owner(fd, j, e);
	return rc < 0 ? aqe_err_wrap(e, "bundle") : 0;
}

/* Who is it: image, policy entry, agent type. */
static int identify(struct shim_rt *rt, struct shim_judged *j, struct aqe_err *e)
{
	const struct oci_identity_in in = {
		.bundle = j->bundle,
		.pid_file = shim_argv_option(&rt->av, "pid-file"),
		.id = rt->av.id,
		.config = j->in,
	};
	int rc = oci_identify(rt->arena, &in, &j->image, e);

	if (rc < 0)
		return aqe_err_wrap(e, "image");
	if (j->image.known)
		j->ctx.entry = hard_policy_image(j->policy, j->image.image_id, j->image.digests,
						 j->image.n_digests);
	return 0;
}

/* A container whose image nothing pins is no agent of any type: it gets the default ceilings, and
 * `digest` refuses it unless it is waived. */
static int choose_agent(struct shim_judged *j, struct aqe_err *e)
{
	const char *asked = hard_agent_marker(j->in, j->image.label_agent_type);

	if (!j->ctx.entry) {
		j->ctx.agent = hard_policy_agent(j->policy, "default");
		if (!j->ctx.agent)
			j->ctx.agent = hard_agent_default();
		return 0;
	}
	return hard_agent_choose(j->policy, j->ctx.entry, asked, &j->ctx.agent, e);
}

/* A name for records and nothing else, so only what is surely one. */
static const char *agent_id(const struct shim_judged *j)
{
	const char *id =
		aqe_json_str(aqe_json_get(aqe_json_get(j->in, "annotations"), "io.aqe.agent-id"));
	size_t n;

	if (!id || !*id)
		id = j->image.label_agent_id;
	n = id ? strspn(id, AGENT_ID_CHARS) : 0;
	return n > 0 && n <= AGENT_ID_MAX && !id[n] ? id : NULL;
}

static int make_context(struct shim_rt *rt, struct shim_judged *j, struct aqe_err *e)
{
	struct hard_host *host = aqe_arena_alloc(rt->arena, sizeof(*host));
	struct hard_proofs *proofs = aqe_arena_alloc(rt->arena, sizeof(*proofs));
	int rc;

	if (!host || !proofs)
		return nomem(e);
	rc = hard_host_read(host, e);
	if (rc < 0)
		return aqe_err_wrap(e, "host");
	j->ctx.policy = j->policy;
	j->ctx.image = &j->image;
	j->ctx.container_id = rt->av.id;
	j->ctx.bundle = j->bundle;
	j->ctx.host = host;
	proofs->dir_fd = rt->state.fd;
	j->ctx.proofs = proofs;
	j->ctx.now_s = AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self);
	return 0;
}

/* `verify` changes nothing but this: absent leaves the propagation to the runtime, and runc's
 * choice is none that `start` would accept. */
static struct aqe_json *pin_propagation(struct shim_rt *rt, const struct aqe_json *in)
{
	struct aqe_json *doc = aqe_json_copy(rt->arena, in);
	struct aqe_json *lin = aqe_json_get(doc, "linux");

	if (!lin || aqe_json_set(rt->arena, lin, "rootfsPropagation",
				 aqe_json_new_str(rt->arena, "rprivate")) < 0)
		return NULL;
	return doc;
}

/* `enforce` tightens and then judges what came out, never what went in. */
static int decide(struct shim_rt *rt, struct shim_judged *j, struct aqe_err *e)
{
	struct aqe_json *doc = j->in;
	int rc = 0;

	if (j->policy->mode != HARD_MODE_VERIFY) {
		doc = NULL;
		hard_report_init(&j->report, rt->arena);
		rc = hard_rewrite(&j->ctx, rt->arena, j->in, &j->report, &doc, e);
	}
	if (rc < 0 || !doc)
		return rc;
	hard_report_init(&j->report, rt->arena);
	rc = hard_verify(&j->ctx, doc, &j->report, e);
	if (rc == 0 && hard_report_ok(&j->report))
		rc = shim_pin_open(rt, j, doc, e);
	if (rc == 0 && hard_report_ok(&j->report))
		rc = hard_verify_host(&j->ctx, doc, &j->report, e);
	if (rc < 0 || !hard_report_ok(&j->report))
		return rc;
	j->out = j->policy->mode == HARD_MODE_VERIFY ? pin_propagation(rt, doc) : doc;
	return j->out ? 0 : nomem(e);
}

void shim_judge_waived(struct shim_judged *j)
{
	for (int p = 0; p < HARD_PROP_COUNT; p++) {
		if (j->report.result[p] == HARD_WAIVED)
			j->waived[p] = j->report.waiver[p];
	}
}

int shim_judge(struct shim_rt *rt, struct hard_policy *policy, struct shim_judged *ret,
	       struct aqe_err *e)
{
	int rc;

	*ret = (struct shim_judged){ .policy = policy };
	hard_report_init(&ret->report, rt->arena);
	rc = read_bundle(rt, ret, e);
	if (rc == 0)
		rc = identify(rt, ret, e);
	if (rc == 0)
		rc = choose_agent(ret, e);
	if (rc == 0)
		rc = make_context(rt, ret, e);
	if (rc == 0)
		rc = shim_egress_wanted(policy, ret->ctx.agent->type, &ret->ctx.egress, e);
	if (ret->in)
		ret->agent_id = agent_id(ret);
	if (rc == 0)
		rc = decide(rt, ret, e);
	shim_judge_waived(ret);
	return rc;
}

/* The line of policy that would admit an image nothing pins. */
static void admit_hint(const struct shim_judged *j, struct aqe_buf *b)
{
	if (j->report.result[HARD_DIGEST] != HARD_FAIL || !j->image.known || j->ctx.entry)
		return;
	aqe_buf_addf(b, "\nto admit this image, add to \"images\" in %s/policy.json: {",
		     HARD_POLICY_DIR);
	if (j->image.name) {
		aqe_buf_puts(b, "\"name\": ");
		aqe_json_emit_str(b, j->image.name);
		aqe_buf_puts(b, ", ");
	}
	aqe_buf_addf(b, "\"imageId\": \"%s\"}", j->image.image_id);
}

int shim_judge_refuse(struct shim_rt *rt, const struct shim_judged *j)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(8192);
	AQE_AUTO_BUF struct aqe_buf hint = AQE_BUF_INIT(4096);

	admit_hint(j, &hint);
	hard_report_refusal(&j->report, &b);
	/* a long list of findings must not push the hint out */
	if (hint.len && b.len + hint.len > SHIM_REFUSE_MAX && hint.len < SHIM_REFUSE_MAX / 2) {
		b.len = SHIM_REFUSE_MAX - hint.len;
		b.p[b.len] = '\0';
	}
	aqe_buf_puts(&b, aqe_buf_str(&hint));
	if (!b.len)
		aqe_buf_puts(&b, "refused: the document could not be judged");
	shim_audit_refused(rt, &j->report, &b);
	shim_refuse(&rt->log, aqe_buf_str(&b));
	return SHIM_EXIT_FAILED;
}

/* ---- the record of a decision ---- */

/* What the policy waives for this container, so that `start` and `exec` need no policy. */
static int waivers(struct shim_rt *rt, const struct shim_judged *j, struct shim_record *ret,
		   struct aqe_err *e)
{
	struct hard_waiver *list = aqe_arena_calloc(rt->arena, HARD_PROP_COUNT, sizeof(*list));
	size_t n = 0;

	if (!list)
		return nomem(e);
	for (int p = 0; p < HARD_PROP_COUNT; p++) {
		const struct hard_waiver *w =
			hard_policy_waiver(j->policy, (enum hard_prop)p, j->ctx.agent->type,
					   j->ctx.entry, j->ctx.now_s);

		if (w)
			list[n++] = *w;
	}
	ret->waivers = list;
	ret->n_waivers = n;
	return 0;
}

/* Without the engine's pid file, one of ours: `start` must find the process cheaply. */
static int pid_file(struct shim_rt *rt, struct shim_record *ret, struct aqe_err *e)
{
	const char *given = shim_argv_option(&rt->av, "pid-file");

	if (given)
		return absolute(rt, given, &ret->pid_file, e);
	ret->pid_file = aqe_arena_fmt(rt->arena, "%s/" SHIM_RECORD_PID, rt->dir.path);
	return ret->pid_file ? 0 : nomem(e);
}

int shim_judge_record(struct shim_rt *rt, const struct shim_judged *j, struct shim_record *ret,
		      struct aqe_err *e)
{
	int rc;

	*ret = (struct shim_record){
		.id = rt->av.id,
		.mode = j->policy->mode,
		.engine = j->image.engine,
		.bundle = j->bundle,
		.runtime = j->policy->runtime_path,
		.runtime_digest = j->policy->runtime_digest,
		.xdg_runtime_dir = shim_env_get(rt->envp, "XDG_RUNTIME_DIR"),
		.image_id = j->image.known ? j->image.image_id : NULL,
		.image_name = j->image.name,
		.digests = j->image.digests,
		.n_digests = j->image.n_digests,
		.agent = *(j->ctx.agent ? j->ctx.agent : hard_agent_default()),
		.policy_digest = j->policy->digest,
		.policy_files = j->policy->files,
		.uid = j->policy->uid,
		.gid = j->policy->gid,
		.cgroups_path =
			aqe_json_str(aqe_json_at(j->out ? j->out : j->in, "/linux/cgroupsPath")),
		.creator = getpid(),
		.egress = j->ctx.egress,
		.by_run = rt->av.verb == SHIM_VERB_RUN,
		.binds = j->ctx.binds,
		.n_binds = j->ctx.n_binds,
		.created_s = AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self),
		.agent_id = j->agent_id,
		.audit_mode = rt->audit.mode,
		.audit_dir = rt->audit.dir,
		.audit_sign_every = rt->audit.sign_every,
		.audit_start = rt->audit.start,
		.changed = rt->audit.changed,
	};
	for (int p = 0; p < HARD_PROP_COUNT; p++)
		ret->waived[p] = j->waived[p] != NULL;
	rc = aqe_proc_start_time(ret->creator, &ret->creator_start, e);
	if (rc == 0)
		rc = pid_file(rt, ret, e);
	if (rc == 0 && j->ctx.agent)
		rc = waivers(rt, j, ret, e);
	return rc;
}
