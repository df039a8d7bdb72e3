/* SPDX-License-Identifier: MIT */
/* Engines "podman" and "docker" over their REST API. Podman speaks docker's dialect too, but only
 * its own one names a runtime, so that containers are made in that. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/rest.h"

#define LIBPOD    "/libpod"
#define RUNTIME   "aqe-shim"
#define PERIOD_US 100000
#define PID_FILE  "pid"
#define MARGIN_MS 15000 /* beyond the grace of a stop */
#define FRAME     8     /* head of a piece of multiplexed output */
#define NOT_THERE 1     /* the engine answers, and does not know the container */

static bool is_podman(const struct shim_box *b)
{
	return aqe_str_eq(b->plan.engine, "podman");
}

static int open_rest(struct shim_box *b, struct shim_rest *ret, struct aqe_err *e)
{
	return shim_rest_open(b->arena, b->plan.engine, ret, e);
}

static int nomem(struct aqe_err *e)
{
	return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for a request");
}

/* ---- documents ---- */

/* Names of variables that differ in the case of their letters are different names. */
static const struct aqe_json_limits BODY_LIMITS = {
	.bytes = (size_t)1 << 20,
	.depth = 16,
	.values = 10000,
	.entries = 4096,
	.string = (size_t)1 << 20,
	.number = 32,
	.fold_dups_ok = true,
};

/* Text to a tree: bodies are written as JSON text, which is shorter than building them. */
static int to_json(struct aqe_arena *a, const struct aqe_buf *b, struct aqe_json **ret,
		   struct aqe_err *e)
{
	int rc = aqe_buf_ok(b, e);

	return rc < 0 ? rc : aqe_json_parse(a, b->p, b->len, &BODY_LIMITS, ret, e);
}

static void put_str(struct aqe_buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	aqe_buf_addf(b, "\"%s\":", name);
	aqe_json_emit_str(b, value);
	(void)aqe_buf_putc(b, ',');
}

static void put_list(struct aqe_buf *b, const char *name, const struct shim_strs *list)
{
	if (list->n == 0)
		return;
	aqe_buf_addf(b, "\"%s\":[", name);
	for (size_t i = 0; i < list->n; i++) {
		(void)aqe_buf_puts(b, i ? "," : "");
		aqe_json_emit_str(b, list->v[i]);
	}
	(void)aqe_buf_puts(b, "],");
}

/* The original's labels. */
static void put_labels(struct aqe_buf *b, const char *name, const struct shim_plan *p)
{
	aqe_buf_addf(b, "\"%s\":{", name);
	put_str(b, "agentic-qe.agent-id", p->agent_id);
	put_str(b, "agentic-qe.agent-type", p->agent_type);
	put_str(b, "io.aqe.agent-id", p->agent_id);
	put_str(b, "io.aqe.agent-type", p->agent_type);
	aqe_buf_addf(b, "\"agentic-qe.created-at\":\"%lld\",\"agentic-qe.sandbox\":\"true\"},",
		     (long long)p->created_s);
}

/* "NAME=value" as "NAME":"value". */
static void put_env_map(struct aqe_arena *a, struct aqe_buf *b, const struct shim_strs *env)
{
	(void)aqe_buf_puts(b, "\"env\":{");
	for (size_t i = 0; i < env->n; i++) {
		size_t n = strcspn(env->v[i], "=");
		const char *name = aqe_arena_ndup(a, env->v[i], n);

		(void)aqe_buf_puts(b, i ? "," : "");
		aqe_json_emit_str(b, name ? name : ""); /* then the document is no use: a limit */
		(void)aqe_buf_putc(b, ':');
		aqe_json_emit_str(b, env->v[i][n] ? env->v[i] + n + 1 : "");
	}
	(void)aqe_buf_puts(b, "},");
}

/* A rootless engine on cgroup v1 cannot limit anything; the shim then refuses unless the policy
 * waives it. */
static bool can_limit(void)
{
	struct statfs fs;

	return geteuid() == 0 ||
	       (statfs("/sys/fs/cgroup", &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC);
}

static unsigned long long kib(uint64_t bytes)
{
	return (unsigned long long)(bytes / 1024);
}

static void podman_body(struct aqe_arena *a, const struct shim_plan *p, struct aqe_buf *b)
{
	(void)aqe_buf_putc(b, '{');
	put_str(b, "name", p->name);
	put_str(b, "image", p->image);
	put_list(b, "command", &p->args);
	put_env_map(a, b, &p->env);
	put_str(b, "user", p->user);
	put_str(b, "work_dir", p->workdir);
	put_labels(b, "labels", p);
	(void)aqe_buf_puts(b, "\"annotations\":{");
	put_str(b, "io.aqe.agent-id", p->agent_id);
	aqe_buf_addf(b, "\"io.aqe.agent-type\":\"%s\"},", p->agent_type);
	if (geteuid() == 0)
		(void)aqe_buf_puts(
			b,
			"\"userns\":{\"nsmode\":\"auto\"},\"idmappings\":{\"AutoUserNs\":true},");
	if (can_limit())
		aqe_buf_addf(
			b,
			"\"resource_limits\":{\"memory\":{\"limit\":%llu,\"swap\":%llu},\"cpu\":"
			"{\"quota\":%llu,\"period\":%d},\"pids\":{\"limit\":%u}},",
			(unsigned long long)p->memory, (unsigned long long)p->memory,
			(unsigned long long)p->cpus_milli * PERIOD_US / 1000, PERIOD_US, p->pids);
	aqe_buf_addf(
		b,
		"\"mounts\":[{\"destination\":\"/tmp\",\"type\":\"tmpfs\",\"source\":\"tmpfs\","
		"\"options\":[\"nosuid\",\"nodev\",\"noexec\",\"size=%lluk\"]},{\"destination\":"
		"\"/run\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\","
		"\"nodev\",\"noexec\",\"size=%lluk\"]}],",
		kib(p->disk / 8 * 7), kib(p->disk / 8));
	(void)aqe_buf_puts(b, "\"oci_runtime\":\"" RUNTIME "\",\"netns\":{\"nsmode\":\"none\"},"
			      "\"read_only_filesystem\":true,\"cap_drop\":[\"all\"],"
			      "\"no_new_privileges\":true,\"restart_policy\":\"no\","
			      "\"log_configuration\":{\"driver\":\"k8s-file\"}}");
}

static void docker_body(const struct shim_plan *p, const char *runtime, struct aqe_buf *b)
{
	(void)aqe_buf_putc(b, '{');
	put_str(b, "Image", p->image);
	put_list(b, "Cmd", &p->args);
	put_list(b, "Env", &p->env);
	put_str(b, "User", p->user);
	put_str(b, "WorkingDir", p->workdir);
	put_labels(b, "Labels", p);
	(void)aqe_buf_puts(b, "\"HostConfig\":{");
	put_str(b, "Runtime", runtime);
	aqe_buf_addf(b,
		     "\"Memory\":%llu,\"MemorySwap\":%llu,\"CpuPeriod\":%d,\"CpuQuota\":%llu,"
		     "\"PidsLimit\":%u,\"Tmpfs\":{\"/tmp\":\"nosuid,nodev,noexec,size=%lluk\","
		     "\"/run\":\"nosuid,nodev,noexec,size=%lluk\"},",
		     (unsigned long long)p->memory, (unsigned long long)p->memory, PERIOD_US,
		     (unsigned long long)p->cpus_milli * PERIOD_US / 1000, p->pids,
		     kib(p->disk / 8 * 7), kib(p->disk / 8));
	(void)aqe_buf_puts(
		b, "\"NetworkMode\":\"none\",\"ReadonlyRootfs\":true,\"CapDrop\":[\"ALL\"],"
		   "\"SecurityOpt\":[\"no-new-privileges\"],\"RestartPolicy\":{\"Name\":\"no\"},"
		   "\"LogConfig\":{\"Type\":\"json-file\",\"Config\":{\"max-size\":\"10m\","
		   "\"max-file\":\"3\"}}}}");
}

/* ---- preparing ---- */

/* The name under which docker knows the shim: the one whose path ends in "/aqe-shim". */
static int docker_runtime(const struct shim_rest *r, const char **ret, struct aqe_err *e)
{
	struct shim_rest_call c = { .method = "GET", .path = "/info" };
	struct aqe_json *answer = NULL;
	const struct aqe_json *list, *i;
	int status = 0, rc = shim_rest_do(r, &c, &status, &answer, e);

	if (rc < 0 || status != 200)
		return rc < 0 ? rc : shim_rest_fault(r, "ask for runtimes", status, answer, e);
	list = aqe_json_get(answer, "Runtimes");
	for (i = list ? list->first : NULL; i; i = i->next) {
		const char *path = aqe_json_str(aqe_json_get(i, "path"));

		if (path && (aqe_ends(path, "/" RUNTIME) || aqe_str_eq(path, RUNTIME))) {
			*ret = i->key;
			return 0;
		}
	}
	return aqe_err_set(e, AQE_E_ABSENT, 0,
			   "docker has no runtime that is aqe-shim: add it to \"runtimes\" in "
			   "/etc/docker/daemon.json");
}

static int find_image(const struct shim_rest *r, struct shim_plan *p, struct aqe_err *e)
{
	const char *name = shim_rest_quote(r->arena, p->image);
	struct shim_rest_call c = { .method = "GET" };
	struct aqe_json *answer = NULL;
	const char *id;
	int status = 0, rc;

	c.path = name ? aqe_arena_fmt(r->arena, "/images/%s/json", name) : NULL;
	if (!c.path)
		return nomem(e);
	rc = shim_rest_do(r, &c, &status, &answer, e);
	if (rc < 0)
		return rc;
	if (status == 404)
		return aqe_err_set(e, AQE_E_ABSENT, 0,
				   "%s has no image '%.200s': pull or load it "
				   "first",
				   r->engine, p->image);
	id = aqe_json_str(aqe_json_get(answer, "Id"));
	if (status != 200)
		return shim_rest_fault(r, "find the image", status, answer, e);
	if (id && !aqe_starts(id, "sha256:"))
		id = aqe_arena_fmt(r->arena, "sha256:%s", id);
	if (!id || !aqe_is_sha256_digest(id))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "%s: image '%.200s' has no id", r->engine,
				   p->image);
	p->image_id = id;
	return 0;
}

/* True when a later entry has the same name: that one counts. */
static bool is_replaced(const char *const *v, size_t n, size_t at)
{
	size_t len = strcspn(v[at], "=") + 1;

	for (size_t i = at + 1; i < n; i++) {
		if (strncmp(v[i], v[at], len) == 0)
			return true;
	}
	return false;
}

/* The image's own variables are the engine's business; these are ours, and come last. */
static int add_agent_env(struct aqe_arena *a, struct shim_plan *p, struct aqe_err *e)
{
	size_t n = p->env.n + 2, kept = 0;
	const char **v = aqe_arena_calloc(a, n + 1, sizeof(*v));

	if (!v)
		return nomem(e);
	for (size_t i = 0; i < p->env.n; i++)
		v[i] = p->env.v[i];
	v[n - 2] = aqe_arena_fmt(a, "AGENT_ID=%s", p->agent_id);
	v[n - 1] = aqe_arena_fmt(a, "AGENT_TYPE=%s", p->agent_type);
	if (!v[n - 2] || !v[n - 1])
		return nomem(e);
	for (size_t i = 0; i < n; i++) {
		if (!is_replaced(v, n, i))
			v[kept++] = v[i];
	}
	p->env = (struct shim_strs){ v, kept };
	return 0;
}

static int prepare(struct aqe_arena *a, const struct shim_place *place, struct shim_plan *p,
		   struct aqe_err *e)
{
	struct shim_rest r;
	const char *runtime = NULL;
	int rc = shim_rest_open(a, p->engine, &r, e);

	(void)place;
	if (rc < 0)
		return rc;
	if (!p->image || p->rootfs)
		return aqe_err_set(e, AQE_E_USAGE, 0, "--engine %s takes an --image of its own",
				   p->engine);
	rc = find_image(&r, p, e);
	if (rc == 0 && aqe_str_eq(p->engine, "docker"))
		rc = docker_runtime(&r, &runtime, e);
	return rc < 0 ? rc : add_agent_env(a, p, e);
}

/* ---- simple requests on the container ---- */

/* `c->path` is what follows the container's name, and is the whole path afterwards. */
static int request(struct shim_box *b, const struct shim_rest *r, struct shim_rest_call *c,
		   int *ret_status, struct aqe_json **ret, struct aqe_err *e)
{
	/* a name needs no quoting */
	c->path = aqe_arena_fmt(b->arena, "/containers/%s%s", b->name, c->path);
	return c->path ? shim_rest_do(r, c, ret_status, ret, e) : nomem(e);
}

/* Podman up to 5.8 ignores the runtime of a request (podman#28429) and takes its service's own: a
 * container that would run without the shim is not kept. */
static int check_runtime(struct shim_box *b, const struct shim_rest *r, struct aqe_err *e)
{
	struct shim_rest_call c = { .method = "GET" };
	struct aqe_json *answer = NULL;
	const char *found;
	int status = 0, rc;

	c.path = aqe_arena_fmt(b->arena, LIBPOD "/containers/%s/json", b->name);
	if (!c.path)
		return nomem(e);
	rc = shim_rest_do(r, &c, &status, &answer, e);
	if (rc < 0)
		return rc;
	found = aqe_json_str(aqe_json_get(answer, "OCIRuntime"));
	if (status == 200 && found && (aqe_ends(found, "/" RUNTIME) || aqe_str_eq(found, RUNTIME)))
		return 0;
	return aqe_err_set(
		e, AQE_E_REFUSED, 0,
		"podman would run it with '%.60s', not with aqe-shim: start its service as "
		"podman --runtime " RUNTIME " system service, or make it the default in "
		"containers.conf",
		found ? found : "?");
}

static int create(struct shim_box *b, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT((size_t)1 << 20);
	struct shim_rest_call c = { .method = "POST", .path = LIBPOD "/containers/create" };
	struct aqe_json *body = NULL, *answer = NULL;
	const char *runtime = NULL;
	struct shim_rest r;
	int status = 0, rc = open_rest(b, &r, e);

	if (rc == 0 && !is_podman(b)) {
		rc = docker_runtime(&r, &runtime, e);
		c.path = aqe_arena_fmt(b->arena, "/containers/create?name=%s", b->name);
	}
	if (rc < 0 || !c.path)
		return rc < 0 ? rc : nomem(e);
	if (is_podman(b))
		podman_body(b->arena, &b->plan, &text);
	else
		docker_body(&b->plan, runtime, &text);
	rc = to_json(b->arena, &text, &body, e);
	c.body = body;
	if (rc == 0)
		rc = shim_rest_do(&r, &c, &status, &answer, e);
	if (rc == 0 && status != 201)
		rc = shim_rest_fault(&r, "create", status, answer, e);
	return rc == 0 && is_podman(b) ? check_runtime(b, &r, e) : rc;
}

static int inspect(struct shim_box *b, const struct shim_rest *r, struct aqe_json **ret,
		   struct aqe_err *e)
{
	struct shim_rest_call c = { .method = "GET", .path = "/json" };
	int status = 0, rc = request(b, r, &c, &status, ret, e);

	if (rc < 0)
		return rc;
	if (status == 404)
		return NOT_THERE;
	return status == 200 && *ret ? 0 : shim_rest_fault(r, "inspect", status, *ret, e);
}

static int state(struct shim_box *b, struct shim_engine_state *ret, struct aqe_err *e)
{
	struct aqe_json *doc = NULL;
	const struct aqe_json *s;
	struct shim_rest r;
	uint64_t pid = 0;
	int rc = open_rest(b, &r, e);

	*ret = (struct shim_engine_state){ .exit_code = -1 };
	if (rc == 0)
		rc = inspect(b, &r, &doc, e);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	s = aqe_json_get(doc, "State");
	ret->exists = true;
	(void)!aqe_json_get_bool(s, "Running", &ret->running, NULL); /* absent: false */
	(void)!aqe_json_get_bool(s, "OOMKilled", &ret->oom_killed, NULL);
	(void)!aqe_json_get_u64(s, "Pid", INT32_MAX, &pid, NULL);
	ret->pid = (pid_t)pid;
	if (!ret->running)
		(void)!aqe_json_get_i64(s, "ExitCode", 0, 255, &ret->exit_code, NULL);
	ret->container = aqe_json_str(aqe_json_get(doc, "Id"));
	if (!ret->container || !aqe_is_hex(ret->container, 64))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "%s: '%s' has no id", r.engine, b->name);
	return 0;
}

/* The monitor watches the process itself; its network is known by the container's id. */
static int note_container(struct shim_box *b, struct aqe_err *e)
{
	struct shim_engine_state st;
	char text[16];
	int n, rc = state(b, &st, e);

	if (rc < 0 || !st.exists)
		return rc;
	rc = aqe_fs_write_file(b->fd, SHIM_CONTAINER_FILE, 0600, st.container, strlen(st.container),
			       e);
	n = snprintf(text, sizeof(text), "%ld\n", (long)st.pid);
	if (rc == 0 && st.pid > 0)
		rc = aqe_fs_write_file(b->fd, PID_FILE, 0600, text, (size_t)n, e);
	return rc;
}

static int start(struct shim_box *b, struct aqe_err *e)
{
	/* a start may take as long as its own limit says: then the caller gives up, not we */
	struct shim_rest_call c = { .method = "POST",
				    .path = "/start",
				    .timeout_ms = b->plan.start_timeout_ms };
	struct aqe_json *answer = NULL;
	struct shim_rest r;
	int status = 0, rc = open_rest(b, &r, e);

	(void)unlinkat(b->fd, PID_FILE, 0); /* of an earlier one */
	if (rc == 0)
		rc = request(b, &r, &c, &status, &answer, e);
	if (rc == 0 && status != 204 && status != 304)
		rc = shim_rest_fault(&r, "start", status, answer, e);
	return rc < 0 ? rc : note_container(b, e);
}

static int stop(struct shim_box *b, uint32_t grace_ms, struct aqe_err *e)
{
	char what[32];
	struct shim_rest_call c = { .method = "POST",
				    .path = what,
				    .timeout_ms = grace_ms + MARGIN_MS };
	struct aqe_json *answer = NULL;
	struct shim_rest r;
	int status = 0, rc = open_rest(b, &r, e);

	(void)snprintf(what, sizeof(what), "/stop?t=%u", (grace_ms + 999) / 1000);
	if (rc == 0)
		rc = request(b, &r, &c, &status, &answer, e);
	/* 304: it does not run; 404: it is gone */
	if (rc == 0 && status != 204 && status != 304 && status != 404)
		rc = shim_rest_fault(&r, "stop", status, answer, e);
	return rc;
}

static int destroy(struct shim_box *b, struct aqe_err *e)
{
	struct shim_rest_call c = { .method = "DELETE", .path = "?force=true&v=true" };
	struct aqe_json *answer = NULL;
	struct shim_rest r;
	int status = 0, rc = open_rest(b, &r, e);

	if (rc == 0)
		rc = request(b, &r, &c, &status, &answer, e);
	if (rc == 0 && status != 204 && status != 200 && status != 404)
		rc = shim_rest_fault(&r, "remove", status, answer, e);
	return rc;
}

/* ---- exec ---- */

/* Pieces of {stream, 0, 0, 0, length (big-endian)} and that many bytes. */
struct demux {
	unsigned char head[FRAME];
	size_t head_len;
	uint32_t left; /* of the present piece */
};

/* One byte of a piece's head. */
static void take_head(struct demux *d, unsigned char byte)
{
	const unsigned char *h = d->head;

	d->head[d->head_len++] = byte;
	if (d->head_len < FRAME)
		return;
	d->left = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 | (uint32_t)h[6] << 8 | h[7];
	d->head_len = 0;
}

static int take_output(void *arg, const void *data, size_t n)
{
	struct demux *d = arg;
	const unsigned char *p = data;

	while (n > 0) {
		size_t take = d->left < n ? d->left : n;

		if (take == 0) {
			take_head(d, *p++);
			n--;
			continue;
		}
		/* nobody listens any more: the command goes on, as with a closed pipe */
		(void)!aqe_fs_write_all(d->head[0] == 2 ? STDERR_FILENO : STDOUT_FILENO, p, take,
					NULL);
		p += take;
		n -= take;
		d->left -= (uint32_t)take;
	}
	return 0;
}

static int exec_make(struct shim_box *b, const struct shim_rest *r, const struct shim_exec_opts *o,
		     const char **ret_id, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT((size_t)1 << 20);
	struct shim_rest_call c = { .method = "POST", .path = "/exec" };
	struct aqe_json *body = NULL, *answer = NULL;
	struct shim_strs words = { (const char *const *)o->argv, 0 };
	int status = 0, rc;

	while (o->argv[words.n])
		words.n++;
	(void)aqe_buf_putc(&text, '{');
	put_list(&text, "Cmd", &words);
	put_str(&text, "User", o->user);
	put_str(&text, "WorkingDir", o->workdir);
	(void)aqe_buf_puts(&text, "\"AttachStdout\":true,\"AttachStderr\":true}");
	rc = to_json(b->arena, &text, &body, e);
	c.body = body;
	if (rc == 0)
		rc = request(b, r, &c, &status, &answer, e);
	if (rc == 0 && status != 201)
		rc = shim_rest_fault(r, "exec", status, answer, e);
	if (rc < 0)
		return rc;
	*ret_id = aqe_json_str(aqe_json_get(answer, "Id"));
	return *ret_id && aqe_is_hex(*ret_id, 64)
		       ? 0
		       : aqe_err_set(e, AQE_E_MALFORMED, 0, "%s: exec has no id", r->engine);
}

static int exec(struct shim_box *b, const struct shim_exec_opts *o, int *ret_status,
		struct aqe_err *e)
{
	struct demux d = { { 0 }, 0, 0 };
	struct shim_rest_call c = {
		.method = "POST", .timeout_ms = UINT32_MAX / 2, .sink = take_output, .arg = &d
	};
	struct aqe_json *answer = NULL, *body = NULL;
	const char *id = NULL;
	struct shim_rest r;
	int64_t code = -1;
	int status = 0, rc = open_rest(b, &r, e);

	if (rc == 0 && o->tty)
		rc = aqe_err_set(e, AQE_E_USAGE, 0,
				 "a terminal goes through the engine's own command: %s exec -it %s",
				 b->plan.engine, b->name);
	if (rc == 0)
		rc = exec_make(b, &r, o, &id, e);
	if (rc == 0)
		rc = aqe_json_parse(b->arena, "{\"Detach\":false,\"Tty\":false}", 28,
				    &AQE_JSON_LIMITS_DEFAULT, &body, e);
	c.body = body;
	if (rc == 0 && !(c.path = aqe_arena_fmt(b->arena, "/exec/%s/start", id)))
		rc = nomem(e);
	if (rc == 0)
		rc = shim_rest_do(&r, &c, &status, &answer, e);
	if (rc == 0 && status != 200)
		rc = shim_rest_fault(&r, "exec", status, answer, e);
	c = (struct shim_rest_call){ .method = "GET" };
	if (rc == 0 && !(c.path = aqe_arena_fmt(b->arena, "/exec/%s/json", id)))
		rc = nomem(e);
	if (rc == 0)
		rc = shim_rest_do(&r, &c, &status, &answer, e);
	if (rc == 0 && aqe_json_get_i64(answer, "ExitCode", 0, 255, &code, e) != 1)
		rc = aqe_err_set(e, AQE_E_UNKNOWN, 0, "%s does not say how it ended", r.engine);
	if (rc == 0)
		*ret_status = (int)code;
	return rc;
}

/* ---- logs ---- */

/* docker: LogPath, rotated to .1 and .2; podman: one file. */
static int logs(struct shim_box *b, int *ret_dirfd, const char *const **ret_names, size_t *ret_n,
		struct aqe_err *e)
{
	const char **names = aqe_arena_calloc(b->arena, 4, sizeof(*names));
	struct aqe_json *doc = NULL;
	const char *path, *slash, *dir;
	struct shim_rest r;
	int rc = open_rest(b, &r, e);

	if (rc == 0)
		rc = inspect(b, &r, &doc, e);
	if (rc == NOT_THERE)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "%s does not know '%s'", r.engine, b->name);
	if (rc < 0 || !names)
		return rc < 0 ? rc : nomem(e);
	path = aqe_json_str(aqe_json_get(doc, "LogPath"));
	if (!path || *path == '\0')
		path = aqe_json_str(aqe_json_at(doc, "/HostConfig/LogConfig/Path"));
	if (!path || path[0] != '/')
		return aqe_err_set(e, AQE_E_ABSENT, 0, "%s keeps no log file of it: use %s logs %s",
				   r.engine, r.engine, b->name);
	slash = strrchr(path, '/');
	dir = aqe_arena_ndup(b->arena, path, (size_t)(slash - path));
	names[0] = aqe_arena_fmt(b->arena, "%s.2", slash + 1);
	names[1] = aqe_arena_fmt(b->arena, "%s.1", slash + 1);
	names[2] = slash + 1;
	if (!dir || !names[0] || !names[1])
		return nomem(e);
	*ret_dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_dirfd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "log folder of %s", r.engine);
	*ret_names = names;
	*ret_n = 3;
	return 0;
}

const struct shim_engine_ops SHIM_ENGINE_PODMAN = {
	.name = "podman",
	.prepare = prepare,
	.create = create,
	.start = start,
	.state = state,
	.stop = stop,
	.destroy = destroy,
	.exec = exec,
	.logs = logs,
};
const struct shim_engine_ops SHIM_ENGINE_DOCKER = {
	.name = "docker",
	.prepare = prepare,
	.create = create,
	.start = start,
	.state = state,
	.stop = stop,
	.destroy = destroy,
	.exec = exec,
	.logs = logs,
};
