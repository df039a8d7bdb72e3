/* SPDX-License-Identifier: MIT */
/* Every allocation fails once in what sandboxes and the supervisor read, write and make: a call
 * says so and has done nothing, or hands out what it always does; afterwards it works. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/engine.h"
#include "shim/sandbox/events.h"
#include "shim/sandbox/image_store.h"
#include "shim/sandbox/layout.h"
#include "shim/sandbox/logs.h"
#include "shim/sandbox/runtime_call.h"
#include "shim/sandbox/spec.h"
#include "shim/sandbox/usage.h"
#include "shim/supervisor/driver_command.h"
#include "shim/supervisor/driver_process.h"
#include "shim/supervisor/store.h"
#include "shim/supervisor/supervisor.h"
#include "tests/fakes/fake_alloc.h"
#include "tests/unit/unit.h"

#define MAX 5000 /* far more allocations than any call makes */
#define ID  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char base[] = "/var/tmp/aqe-alloc-XXXXXX";
static int top = -1;
static struct aqe_arena *arena; /* of the fixture */
static struct aqe_arena *a;     /* of one call */
static struct shim_place place = SHIM_PLACE_INIT;
static struct shim_box box = SHIM_BOX_INIT;
static char out[8192]; /* what a call hands out */
static pid_t server;

#define TELL(...) (void)snprintf(out + strlen(out), sizeof(out) - strlen(out), __VA_ARGS__)

/* ---- an engine ---- */

static const struct {
	const char *part, *status, *body;
} ANSWERS[] = {
	{ " /_ping", "200 OK", "OK" },
	{ "/info", "200 OK", "{\"Runtimes\":{\"aqe\":{\"path\":\"/usr/bin/aqe-shim\"}}}" },
	{ "/images/", "200 OK", "{\"Id\":\"sha256:" ID "\"}" },
	{ "/create", "201 Created", "{\"Id\":\"" ID "\"}" },
	{ "/start", "204 No Content", "" },
	{ "/stop", "304 Not Modified", "" },
	{ "DELETE", "409 Conflict", "{\"message\":\"it is busy\"}" },
	{ "/json", "200 OK",
	  "{\"Id\":\"" ID "\",\"State\":{\"Running\":true,\"Pid\":4},\"OCIRuntime\":\"aqe-shim\","
	  "\"LogPath\":\"/var/tmp/x.log\"}" },
};

static void answer(int fd)
{
	static char request[16384];
	size_t n = 0;
	const char *end = NULL, *length;
	ssize_t got;

	while (n + 1 < sizeof(request) &&
	       (got = read(fd, request + n, sizeof(request) - 1 - n)) > 0) {
		n += (size_t)got;
		request[n] = '\0';
		end = strstr(request, "\r\n\r\n");
		length = strstr(request, "Content-Length: ");
		if (end && n >= (size_t)(end + 4 - request) +
					   (length ? strtoul(length + 16, NULL, 10) : 0))
			break;
	}
	for (size_t i = 0; end && i < AQE_COUNT(ANSWERS); i++) {
		if (!strstr(request, ANSWERS[i].part))
			continue;
		(void)dprintf(fd,
			      "HTTP/1.1 %s\r\nApi-Version: 1.41\r\nContent-Length: %zu\r\n"
			      "Connection: close\r\n\r\n%s",
			      ANSWERS[i].status, strlen(ANSWERS[i].body), ANSWERS[i].body);
		break;
	}
}

static void serve(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	char url[sizeof(sa.sun_path) + 8];
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;

	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/s", base);
	(void)snprintf(url, sizeof(url), "unix://%s", sa.sun_path);
	ck_assert_int_eq(bind(s, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(s, 16), 0);
	ck_assert_int_eq(setenv("DOCKER_HOST", url, 1), 0);
	ck_assert_int_eq(setenv("CONTAINER_HOST", url, 1), 0);
	server = fork();
	ck_assert_int_ge(server, 0);
	if (server == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		while ((fd = accept4(s, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
			answer(fd);
			(void)close(fd);
		}
		_exit(1);
	}
	(void)close(s);
}

/* ---- what is there ---- */

static void put(int dir, const char *name, const char *text)
{
	AQE_AUTO_FD int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static struct shim_plan plan_of(const char *id, const char *engine)
{
	static const char *const ENV[] = { "A=b", "PATH=/x" };
	static const char *const ARGS[] = { "sleep", "1" };
	struct shim_plan p;

	memset(&p, 0, sizeof(p));
	shim_plan_defaults(&p, hard_agent_default());
	p.agent_id = id;
	p.agent_type = "default";
	p.engine = engine;
	p.image = "localhost/x:1";
	p.image_id = "sha256:" ID;
	p.workdir = "/";
	p.env = (struct shim_strs){ ENV, 2 };
	p.args = (struct shim_strs){ ARGS, 2 };
	p.rootfs = "/nowhere";
	return p;
}

#define CONFIG                                                                               \
	"{\"config\":{\"Env\":[\"A=b\"],\"Cmd\":[\"x\"],\"User\":\"node\",\"Healthcheck\":{" \
	"\"Test\":[\"CMD\",\"true\"],\"Retries\":7}},\"rootfs\":{\"diff_ids\":[\"sha256:" ID \
	"\"]}}"
static char image_id[AQE_DIGEST_TEXT];

static void put_blob(int dir, const char *text, char digest[AQE_DIGEST_TEXT])
{
	char name[128];

	aqe_sha256_text(text, strlen(text), digest);
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest + 7);
	put(dir, name, text);
}

static void make_images(void)
{
	char text[1024], manifest[AQE_DIGEST_TEXT];
	AQE_AUTO_FD int dir = -1;

	ck_assert_int_eq(mkdirat(top, "layout", 0700), 0);
	dir = openat(top, "layout", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(mkdirat(dir, "blobs", 0700), 0);
	ck_assert_int_eq(mkdirat(dir, "blobs/sha256", 0700), 0);
	put_blob(dir, CONFIG, image_id);
	(void)snprintf(text, sizeof(text),
		       "{\"config\":{\"digest\":\"%s\"},\"layers\":[{\"mediaType\":\"tar\","
		       "\"digest\":\"sha256:" ID "\"}]}",
		       image_id);
	put_blob(dir, text, manifest);
	(void)snprintf(text, sizeof(text), "{\"manifests\":[{\"digest\":\"%s\"}]}", manifest);
	put(dir, "index.json", text);
	put(dir, "oci-layout", "{}");
	ck_assert_int_eq(mkdirat(place.store_fd, image_id + 7, 0700), 0);
	(void)snprintf(text, sizeof(text), "%s/config.json", image_id + 7);
	put(place.store_fd, text, CONFIG);
}

static void setup(void)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_plan p;
	char data[64];

	ck_assert_ptr_nonnull(mkdtemp(base));
	top = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	arena = aqe_arena_new((size_t)16 << 20);
	(void)snprintf(data, sizeof(data), "%s/data", base);
	ck_assert_ok(shim_place_open(arena, data, &place, &e), e);
	p = plan_of("agent-1", "docker");
	ck_assert_ok(shim_box_make(arena, &place, &p, &box, &e), e);
	make_images();
	put(top, "passwd", "root:x:0:0::/:/bin/sh\nnode:x:1001:1002::/app:/bin/sh\n");
	put(top, "runtime.log",
	    "{\"msg\":\"one\"}\nnonsense\n"
	    "{\"msg\":\"refused: mounts at /mounts/3: found a, wanted b; fix: c\"}\n");
	put(place.fd, SHIM_EVENTS_FILE,
	    "{\"event\":\"created\",\"sandbox\":\"agentic-qe-default-agent-1\"}\n"
	    "{\"event\":\"started\",\"sandbox\":\"agentic-qe-default-agent-1\",\"start\":3}\n"
	    "{\"event\":\"stopped\",\"sandbox\":\"agentic-qe-default-agent-1\"}\n");
	put(box.fd, SHIM_LOG_FILE, "2026-01-31T23:59:59.123456789Z stdout F hi\n");
	ck_assert_int_eq(setenv("AQE_ENGINE_TIMEOUT", "60", 1), 0);
	serve();
}

static void teardown(void)
{
	int parent = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)kill(server, SIGKILL);
	(void)waitpid(server, NULL, 0);
	shim_box_done(&box);
	shim_place_done(&place);
	aqe_arena_free(arena);
	(void)close(top);
	(void)!aqe_fs_remove_tree(parent, strrchr(base, '/') + 1, NULL);
	(void)close(parent);
}

/* ---- the calls ---- */

static int do_place(struct aqe_err *e)
{
	SHIM_AUTO_PLACE struct shim_place p = SHIM_PLACE_INIT;
	char data[64];
	int rc;

	(void)snprintf(data, sizeof(data), "%s/data", base);
	rc = shim_place_open(a, data, &p, e);
	if (rc == 0)
		TELL("%s", p.path);
	return rc;
}

static size_t boxes(void)
{
	AQE_AUTO_ARENA struct aqe_arena *own = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	const char **names = NULL;
	size_t n = 0;

	ck_assert_ok(shim_place_list(own, &place, &names, &n, &e), e);
	return n;
}

static int do_make(struct aqe_err *e)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	struct shim_plan p = plan_of("made", "docker");
	int rc = shim_box_make(a, &place, &p, &b, e);

	(void)fake_alloc_disarm();
	ck_assert_uint_eq(boxes(), rc == 0 ? 2 : 1);
	if (rc == 0)
		ck_assert_ok(shim_box_remove(&b, e), *e);
	return rc;
}

/* The one that is meant, or none: never another whose name begins so. */
static int do_find(struct aqe_err *e)
{
	SHIM_AUTO_BOX struct shim_box b = SHIM_BOX_INIT;
	int rc = shim_box_find(a, &place, "agent-1", &b, e);

	if (rc == 0)
		TELL("%s %s", b.name, b.plan.args.v[1]);
	return rc;
}

static int do_documents(struct aqe_err *e)
{
	struct shim_want w = { true, false, false, 3 };
	struct shim_seen s = SHIM_SEEN_INIT;
	int rc = shim_box_set_want(&box, &w, e);

	box.arena = a;
	s.error = "none";
	if (rc == 0)
		rc = shim_box_want(&box, &w, e);
	if (rc == 0)
		rc = shim_box_set_seen(&box, &s, e);
	if (rc == 0)
		rc = shim_box_seen(&box, &s, e);
	if (rc == 0)
		TELL("%d %d %s %s", w.up, (int)w.resets, s.status, s.error);
	return rc;
}

static int do_history(struct aqe_err *e)
{
	struct shim_event_history h;
	int rc = shim_event_history(&box, &h, e);

	if (rc == 0)
		TELL("%u %d", h.starts, h.ended);
	return rc;
}

static int do_layout(struct aqe_err *e)
{
	AQE_AUTO_FD int dir = openat(top, "layout", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct shim_layout l;
	int rc = shim_layout_read(a, dir, NULL, &l, e);

	if (rc == 0)
		TELL("%s %s %zu", l.id, l.layers[0].path, l.config_len);
	return rc;
}

static int do_image(struct aqe_err *e)
{
	struct shim_image img;
	int rc = shim_image_open(a, &place, image_id, &img, e);

	if (rc == 0)
		TELL("%s %s %s %s %d", img.id, img.user, img.env.v[0], img.health.v[1],
		     (int)img.health_retries);
	return rc;
}

static int do_images(struct aqe_err *e)
{
	struct shim_stored *list = NULL;
	size_t n = 0;
	int rc = shim_images_list(a, &place, false, &list, &n, e);

	if (rc == 0)
		TELL("%zu %s", n, list[0].id);
	return rc;
}

static int do_spec(struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf doc = AQE_BUF_INIT(1 << 20);
	struct shim_plan p = plan_of("agent-1", "oci");
	struct shim_spec_user user = { 0, 0 };
	struct shim_strs args, env;
	struct shim_image img;
	int rc;

	memset(&img, 0, sizeof(img));
	p.name = "n";
	rc = shim_spec_user(top, "7:8", &user, e);
	if (rc == 0)
		rc = shim_spec_args(a, &p, &img, &args, e);
	if (rc == 0)
		rc = shim_spec_env(a, &p, &img, &env, e);
	if (rc == 0)
		rc = shim_spec_make(&p, &args, &env, &user, &doc, e);
	if (rc == 0)
		TELL("%s", aqe_buf_str(&doc));
	return rc;
}

static int do_store(struct aqe_err *e)
{
	struct shim_sup_saved s = { 2, SHIM_SUP_HOLD_NONE, false, 0 };
	AQE_AUTO_FD int lock = -1;
	char id[SHIM_STORE_ID_MAX + 1] = "";
	bool damaged = false;
	int rc = shim_store_lock(place.supervisor_fd, "stored", &lock, e);

	if (rc == 0)
		rc = shim_store_save(place.supervisor_fd, "stored", &s, e);
	if (rc == 0)
		rc = shim_store_load(place.supervisor_fd, "stored", &s, &damaged, e);
	/* a count that cannot be read is a hold: never a new chance */
	if (rc == 0 && damaged && s.hold == SHIM_SUP_HOLD_CRASH_LOOP)
		rc = aqe_err_set(e, AQE_E_NOMEM, 0, "held");
	if (rc == 0)
		rc = shim_store_find(place.supervisor_fd, "stored", id, e);
	if (rc == 0)
		TELL("%u %d %s", s.failures, (int)s.hold, id);
	return rc;
}

static int take_record(void *arg, const struct shim_log_record *r)
{
	(void)arg;
	TELL("%.*s", (int)r->len, r->text);
	return 0;
}

static int do_logs(struct aqe_err *e)
{
	const struct shim_log_query q = { 0, -1 };

	return shim_log_read(box.fd, SHIM_LOG_NAMES, SHIM_LOG_FILES, &q, take_record, NULL, NULL,
			     e);
}

static int do_usage(struct aqe_err *e)
{
	SHIM_AUTO_CGROUP struct shim_cgroup c = SHIM_CGROUP_INIT;
	struct shim_usage u;
	int rc = shim_cgroup_open(getpid(), &c, e);

	if (rc == 0)
		rc = shim_usage_read(&c, &u, e);
	return rc;
}

static const struct shim_engine_ops *docker(struct shim_box *b, const char *engine)
{
	*b = box;
	b->arena = a;
	b->plan.engine = engine;
	return shim_engine_find(engine);
}

static int do_prepare(struct aqe_err *e)
{
	struct shim_plan p = plan_of("agent-1", "docker");
	int rc;

	p.rootfs = p.image_id = NULL;
	rc = shim_engine_find("docker")->prepare(a, &place, &p, e);
	if (rc == 0)
		TELL("%s %s %zu", p.image_id, p.env.v[2], p.env.n);
	return rc;
}

static int do_create(struct aqe_err *e)
{
	struct shim_box b;

	return docker(&b, "docker")->create(&b, e);
}

static int do_create_podman(struct aqe_err *e)
{
	struct shim_box b;

	return docker(&b, "podman")->create(&b, e);
}

static int do_start(struct aqe_err *e)
{
	struct shim_box b;
	int rc = docker(&b, "docker")->start(&b, e);

	if (rc == 0)
		TELL("%d", faccessat(box.fd, SHIM_CONTAINER_FILE, F_OK, 0));
	return rc;
}

static int do_state(struct aqe_err *e)
{
	struct shim_engine_state st;
	struct shim_box b;
	int rc = docker(&b, "docker")->state(&b, &st, e);

	if (rc == 0)
		TELL("%d %d %s", st.running, (int)st.pid, st.container);
	return rc;
}

static int do_engine_logs(struct aqe_err *e)
{
	const char *const *names = NULL;
	AQE_AUTO_FD int dir = -1;
	struct shim_box b;
	size_t n = 0;
	int rc = docker(&b, "docker")->logs(&b, &dir, &names, &n, e);

	if (rc == 0)
		TELL("%s %s", names[0], names[2]);
	return rc;
}

/* The engine says no: that is the answer, unless there is no memory for it. */
static int do_destroy(struct aqe_err *e)
{
	struct shim_box b;
	int rc = docker(&b, "docker")->destroy(&b, e);

	if (rc != AQE_E_UNKNOWN)
		return rc;
	TELL("%s", e->text);
	return 0;
}

/* The runtime's words are a verdict: so is what is made of them. */
static int do_explain(struct aqe_err *e)
{
	int rc = shim_runtime_explain(a, top, "runtime.log", "create", e);

	if (rc != AQE_E_REFUSED)
		return rc;
	TELL("%s", e->text);
	return 0;
}

static int do_state_text(struct aqe_err *e)
{
	static const char TEXT[] = "{\"ociVersion\":\"1.0\",\"status\":\"running\",\"pid\":7}";
	struct oci_state st;
	int rc = oci_state_parse(TEXT, strlen(TEXT), &st, e);

	if (rc == 0)
		TELL("%d %d", (int)st.status, (int)st.pid);
	return rc;
}

static int no_call(void *arg, enum shim_command_verb verb)
{
	(void)arg;
	return (int)verb;
}

static int no_spawn(void *arg, pid_t *ret, struct aqe_err *e)
{
	(void)arg;
	(void)ret;
	return aqe_err_set(e, AQE_E_INTERNAL, 0, "not called");
}

static int supervise(bool process, struct aqe_err *e)
{
	struct shim_supervisor_opts o = SHIM_SUPERVISOR_OPTS_INIT;
	struct shim_loop *loop = NULL;
	struct shim_supervisor *s = NULL;
	struct shim_sup_driver d;
	int rc = shim_loop_new(&loop, e);
	const struct shim_command_opts c = { .loop = loop, .call = no_call };
	const struct shim_process_opts p = { .loop = loop, .spawn = no_spawn };

	o.loop = loop;
	o.store_fd = place.supervisor_fd;
	o.id = "supervised";
	if (rc == 0)
		rc = process ? shim_process_driver(&p, &d, e) : shim_command_driver(&c, &d, e);
	if (rc == 0)
		rc = shim_supervisor_new(&o, d, &s, e); /* takes the driver in any case */
	if (rc == 0)
		TELL("%d", (int)shim_supervisor_machine(s)->failures);
	shim_supervisor_free(s);
	shim_loop_free(loop);
	return rc;
}

static int do_supervise(struct aqe_err *e)
{
	return supervise(false, e);
}

static int do_supervise_process(struct aqe_err *e)
{
	return supervise(true, e);
}

static const struct {
	const char *name;
	int (*call)(struct aqe_err *e);
} CALLS[] = {
	{ "place_open", do_place },
	{ "box_make", do_make },
	{ "box_find", do_find },
	{ "want and seen", do_documents },
	{ "event_history", do_history },
	{ "layout_read", do_layout },
	{ "image_open", do_image },
	{ "images_list", do_images },
	{ "spec", do_spec },
	{ "supervisor's store", do_store },
	{ "log_read", do_logs },
	{ "usage", do_usage },
	{ "engine: prepare", do_prepare },
	{ "engine: create", do_create },
	{ "engine: create, podman", do_create_podman },
	{ "engine: start", do_start },
	{ "engine: state", do_state },
	{ "engine: logs", do_engine_logs },
	{ "engine: destroy", do_destroy },
	{ "runtime_explain", do_explain },
	{ "state_parse", do_state_text },
	{ "supervisor", do_supervise },
	{ "supervisor: process", do_supervise_process },
};

/* ---- the loop ---- */

static bool once(size_t i, unsigned n, const char *want)
{
	struct aqe_err e = AQE_ERR_INIT;
	bool failed;
	int rc;

	a = aqe_arena_new((size_t)64 << 20);
	ck_assert_ptr_nonnull(a);
	out[0] = '\0';
	fake_alloc_arm(n);
	rc = CALLS[i].call(&e);
	failed = fake_alloc_disarm();
	box.arena = arena;
	if (rc)
		ck_assert_msg(failed && rc == AQE_E_NOMEM && e.code == AQE_E_NOMEM && e.text[0],
			      "%s, allocation %u: %s '%s'", CALLS[i].name, n,
			      aqe_code_name((enum aqe_code)rc), e.text);
	else if (want)
		ck_assert_msg(aqe_str_eq(out, want), "%s, allocation %u: '%.200s', not '%.200s'",
			      CALLS[i].name, n, out, want);
	aqe_arena_free(a);
	return failed;
}

START_TEST(call__is_whole_or_says_so)
{
	AQE_AUTO_FREE char *want = NULL;
	SHIM_AUTO_BOX struct shim_box other = SHIM_BOX_INIT;
	struct shim_plan p = plan_of("agent-1x", "docker"); /* found when the other is not */
	struct aqe_err e = AQE_ERR_INIT;
	unsigned n;

	if (CALLS[_i].call == do_find)
		ck_assert_ok(shim_box_make(arena, &place, &p, &other, &e), e);
	(void)once((size_t)_i, 0, NULL);
	want = strdup(out);
	for (n = 1; n < MAX && once((size_t)_i, n, want); n++)
		;
	ck_assert_uint_gt(n, 1);
	ck_assert_uint_lt(n, MAX);
	(void)once((size_t)_i, 0, want);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_alloc");
	TCase *t = tcase_create("alloc");

	tcase_set_timeout(t, 300);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, call__is_whole_or_says_so, 0, (int)AQE_COUNT(CALLS));
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
