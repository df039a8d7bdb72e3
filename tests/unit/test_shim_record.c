/* SPDX-License-Identifier: MIT */
#include "shim/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct hard_bind_id BINDS[] = {
	{ "/workspace", 2049, 18446744073709551615ULL },
	{ "/state", 0, 1 },
};
static const char *const DIGESTS[] = { DIGEST, DIGEST };

static struct shim_record full(const struct hard_waiver *waivers, size_t n)
{
	return (struct shim_record){
		.id = "c1",
		.mode = HARD_MODE_ENFORCE,
		.engine = OCI_ENGINE_DOCKER,
		.bundle = "/b\"und\nle",
		.runtime = "/usr/bin/crun",
		.runtime_digest = DIGEST,
		.xdg_runtime_dir = "",
		.image_id = DIGEST,
		.image_name = "agent:latest",
		.digests = DIGESTS,
		.n_digests = 2,
		.agent = *hard_agent_default(),
		.policy_digest = DIGEST,
		.policy_files = "/etc/aqe-shim/policy.json",
		.uid = 1000,
		.gid = 1001,
		.pid_file = "/run/x/pidfile",
		.cgroups_path = "/libpod_parent/libpod-c1",
		.creator = 4242,
		.creator_start = 987654321,
		.created_s = 1700000000,
		.by_run = true,
		.binds = BINDS,
		.n_binds = 2,
		.waivers = waivers,
		.n_waivers = n,
		.agent_id = "me",
		.audit_mode = HARD_AUDIT_OPTIONAL,
		.audit_dir = "/var/lib/aqe-shim/audit",
		.audit_sign_every = 10,
		.audit_start = "{\"a\":\"\\n\"}",
		.changed = true,
		.waived = { [HARD_DIGEST] = true, [HARD_MISSING_FIELD] = true },
	};
}

static void to_text(struct aqe_arena *a, const struct shim_record *r, struct aqe_buf *b)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *doc = shim_record_emit(a, r);

	ck_assert_ptr_nonnull(doc);
	ck_assert_int_eq(aqe_json_emit(doc, AQE_JSON_PRETTY, b, &e), 0);
}

static void assert_same(const struct shim_record *x, const struct shim_record *y)
{
	ck_assert_pstr_eq(x->id, y->id);
	ck_assert_int_eq(x->mode, y->mode);
	ck_assert_int_eq(x->engine, y->engine);
	ck_assert_pstr_eq(x->bundle, y->bundle);
	ck_assert_pstr_eq(x->runtime, y->runtime);
	ck_assert_pstr_eq(x->runtime_digest, y->runtime_digest);
	ck_assert_pstr_eq(x->xdg_runtime_dir, y->xdg_runtime_dir);
	ck_assert_pstr_eq(x->image_id, y->image_id);
	ck_assert_pstr_eq(x->image_name, y->image_name);
	ck_assert_uint_eq(x->n_digests, y->n_digests);
	ck_assert_pstr_eq(x->agent.type, y->agent.type);
	ck_assert_uint_eq(x->agent.cpus_milli, y->agent.cpus_milli);
	ck_assert_uint_eq(x->agent.memory_bytes, y->agent.memory_bytes);
	ck_assert_uint_eq(x->agent.disk_bytes, y->agent.disk_bytes);
	ck_assert_uint_eq(x->agent.pids, y->agent.pids);
	ck_assert_int_eq(x->agent.tmp_exec, y->agent.tmp_exec);
	ck_assert_pstr_eq(x->policy_digest, y->policy_digest);
	ck_assert_pstr_eq(x->policy_files, y->policy_files);
	ck_assert_uint_eq(x->uid, y->uid);
	ck_assert_uint_eq(x->gid, y->gid);
	ck_assert_pstr_eq(x->pid_file, y->pid_file);
	ck_assert_pstr_eq(x->cgroups_path, y->cgroups_path);
	ck_assert_int_eq(x->creator, y->creator);
	ck_assert_uint_eq(x->creator_start, y->creator_start);
	ck_assert_int_eq(x->created_s, y->created_s);
	ck_assert_int_eq(x->by_run, y->by_run);
	ck_assert_uint_eq(x->n_binds, y->n_binds);
	ck_assert_uint_eq(x->n_waivers, y->n_waivers);
	ck_assert_pstr_eq(x->agent_id, y->agent_id);
	ck_assert_int_eq(x->audit_mode, y->audit_mode);
	ck_assert_pstr_eq(x->audit_dir, y->audit_dir);
	ck_assert_uint_eq(x->audit_sign_every, y->audit_sign_every);
	ck_assert_pstr_eq(x->audit_start, y->audit_start);
	ck_assert_int_eq(x->changed, y->changed);
	ck_assert_mem_eq(x->waived, y->waived, sizeof(x->waived));
}

START_TEST(record__survives_writing_and_reading)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	const struct hard_waiver waiver = { .prop = HARD_ROOTLESS,
					    .agent_type = "default",
					    .reason = "r",
					    .owner = "o",
					    .expires = -5 };
	struct shim_record in = full(&waiver, 1), out;
	struct aqe_err e = AQE_ERR_INIT;

	to_text(a, &in, &b);
	ck_assert_msg(shim_record_parse(a, b.p, b.len, &out, &e) == 0, "%s", e.text);
	assert_same(&in, &out);
	for (size_t i = 0; i < 2; i++) {
		ck_assert_str_eq(out.binds[i].destination, BINDS[i].destination);
		ck_assert_uint_eq(out.binds[i].dev, BINDS[i].dev);
		ck_assert_uint_eq(out.binds[i].ino, BINDS[i].ino);
		ck_assert_str_eq(out.digests[i], DIGEST);
	}
	ck_assert_int_eq(out.waivers[0].prop, HARD_ROOTLESS);
	ck_assert_str_eq(out.waivers[0].reason, "r");
	ck_assert_int_eq(out.waivers[0].expires, -5);
	ck_assert_str_eq(out.waivers[0].agent_type, out.agent.type);
}
END_TEST

START_TEST(record__small_survives_too)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	struct shim_record in = { .id = "x",
				  .mode = HARD_MODE_OBSERVE,
				  .runtime = "/r",
				  .agent = *hard_agent_default() },
			   out;
	struct aqe_err e = AQE_ERR_INIT;

	to_text(a, &in, &b);
	ck_assert_msg(shim_record_parse(a, b.p, b.len, &out, &e) == 0, "%s", e.text);
	assert_same(&in, &out);
}
END_TEST

/* Each member changed: `with` in place of `was`. */
static const struct {
	const char *was, *with;
} DAMAGE[] = {
	{ "\"version\": 1", "\"version\": 2" },
	{ "\"version\": 1", "\"other\": 1" },
	{ "\"id\": \"c1\"", "\"id\": 1" },
	{ "\"id\": \"c1\"", "\"x\": \"c1\"" },
	{ "\"runtime\": \"/usr/bin/crun\"", "\"runtime\": \"crun\"" },
	{ "\"runtime\": \"/usr/bin/crun\"", "\"x\": \"crun\"" },
	{ "\"mode\": \"enforce\"", "\"mode\": \"Enforce\"" },
	{ "\"mode\": \"enforce\"", "\"mode\": null" },
	{ "\"engine\": 2", "\"engine\": 99" },
	{ "\"uid\": 1000", "\"uid\": -1" },
	{ "\"uid\": 1000", "\"uid\": 4294967296" },
	{ "\"creator\": 4242", "\"creator\": \"4242\"" },
	{ "\"dev\": 2049", "\"dev\": 2049.0" },
	{ "\"destination\": \"/state\"", "\"x\": \"/state\"" },
	{ "\"pids\": ", "\"pids\": 1," },
	{ "\"property\": \"rootless\"", "\"property\": \"privileged\"" },
	{ "\"property\": \"rootless\"", "\"property\": \"nothing\"" },
	{ "\"expires\": -5", "\"expires\": \"never\"" },
};

START_TEST(parse__refuses_damage)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	AQE_AUTO_BUF struct aqe_buf bad = AQE_BUF_INIT(1 << 20);
	const struct hard_waiver waiver = {
		.prop = HARD_ROOTLESS, .reason = "r", .owner = "o", .expires = -5
	};
	struct shim_record in = full(&waiver, 1), out;
	struct aqe_err e = AQE_ERR_INIT;
	const char *at;

	to_text(a, &in, &b);
	at = strstr(b.p, DAMAGE[_i].was);
	ck_assert_msg(at != NULL, "%s", DAMAGE[_i].was);
	aqe_buf_add(&bad, b.p, (size_t)(at - b.p));
	aqe_buf_puts(&bad, DAMAGE[_i].with);
	aqe_buf_puts(&bad, at + strlen(DAMAGE[_i].was));
	ck_assert_int_eq(shim_record_parse(a, bad.p, bad.len, &out, &e), AQE_E_MALFORMED);
}
END_TEST

START_TEST(parse__refuses_every_cut)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 26);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	struct shim_record in = full(NULL, 0), out;
	struct aqe_err e = AQE_ERR_INIT;

	to_text(a, &in, &b);
	for (size_t n = 0; n < b.len; n += 7)
		ck_assert_int_lt(shim_record_parse(a, b.p, n, &out, &e), 0);
}
END_TEST

static const struct {
	const char *id, *root, *name; /* name NULL: refused */
} NAMES[] = {
	{ "c1", NULL, "c1@cbf29ce484222325" },
	{ "c1", "", "c1@cbf29ce484222325" },
	{ "c1", "/run/x", "c1@276277f9aac404f0" },
	{ "", NULL, NULL },
	{ ".", NULL, NULL },
	{ "..", NULL, NULL },
	{ "a/b", NULL, NULL },
	{ "../x", NULL, NULL },
	{ "a b", NULL, NULL },
	{ NULL, NULL, NULL },
};

START_TEST(name__is_one_component)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	const char *name = shim_record_name(a, NAMES[_i].id, NAMES[_i].root);

	if (!NAMES[_i].name) {
		ck_assert_ptr_null(name);
		return;
	}
	ck_assert_str_eq(name, NAMES[_i].name);
}
END_TEST

START_TEST(name__separates_roots_and_long_ids)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	char id[1025];

	ck_assert_str_ne(shim_record_name(a, "c1", "/a"), shim_record_name(a, "c1", "/b"));
	ck_assert_str_eq(shim_record_name(a, "c1", "/a"), shim_record_name(a, "c1", "/a//"));
	for (size_t n = 198; n < 1025; n += n < 203 ? 1 : 411) {
		const char *name;

		memset(id, 'x', n);
		id[n] = '\0';
		name = shim_record_name(a, id, NULL);
		ck_assert_ptr_nonnull(name);
		ck_assert_uint_lt(strlen(name), 230);
		ck_assert_int_eq(name[0] == '%', n > 200);
	}
}
END_TEST

/* ---- directories ---- */

static char dir[] = "/tmp/aqe-record-XXXXXX";
static struct shim_state state;

static void make_state(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	state.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	state.path = dir;
	ck_assert_int_ge(state.fd, 0);
}

static void drop_state(void)
{
	shim_state_done(&state);
	ck_assert_int_eq(rmdir(dir), 0);
	(void)snprintf(dir, sizeof(dir), "/tmp/aqe-record-XXXXXX");
}

START_TEST(dir__is_made_locked_and_removed)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct shim_dir d = SHIM_DIR_INIT, other = SHIM_DIR_INIT;
	struct shim_record in = full(NULL, 0), out;
	struct aqe_err e = AQE_ERR_INIT;
	struct stat st;

	ck_assert_int_eq(shim_dir_open(a, &state, "c1@x", SHIM_DIR_READ, &d, &e), AQE_E_ABSENT);
	ck_assert_int_eq(shim_dir_open(a, &state, "c1@x", SHIM_DIR_MAKE, &d, &e), 0);
	ck_assert_int_eq(fstat(d.fd, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0700);
	/* busy for a second creator, readable for others */
	ck_assert_int_eq(shim_dir_open(a, &state, "c1@x", SHIM_DIR_MAKE, &other, &e),
			 AQE_E_REFUSED);
	ck_assert_int_eq(shim_dir_open(a, &state, "c1@x", SHIM_DIR_READ, &other, &e), 0);
	shim_dir_done(&other);
	ck_assert_int_lt(shim_record_load(a, &d, &out, &e), 0);
	ck_assert_msg(shim_record_save(a, &d, &in, &e) == 0, "%s", e.text);
	ck_assert_msg(shim_record_save(a, &d, &in, &e) == 0, "%s", e.text);
	ck_assert_msg(shim_record_load(a, &d, &out, &e) == 0, "%s", e.text);
	assert_same(&in, &out);
	ck_assert_str_eq(shim_record_runtime(a, &state, "c1@x"), "/usr/bin/crun");
	ck_assert_ptr_null(shim_record_runtime(a, &state, "c2@x"));
	shim_dir_done(&d);
	ck_assert_int_eq(shim_dir_remove(&state, "c1@x", &e), 0);
	ck_assert_int_eq(shim_dir_remove(&state, "c1@x", &e), 0);
}
END_TEST

START_TEST(dir__refuses_links_and_open_modes)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct shim_dir d = SHIM_DIR_INIT;
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_int_eq(symlinkat("/", state.fd, "link@x"), 0);
	ck_assert_int_lt(shim_dir_open(a, &state, "link@x", SHIM_DIR_READ, &d, &e), 0);
	ck_assert_int_eq(mkdirat(state.fd, "open@x", 0700), 0);
	ck_assert_int_eq(fchmodat(state.fd, "open@x", 0777, 0), 0);
	ck_assert_int_eq(shim_dir_open(a, &state, "open@x", SHIM_DIR_READ, &d, &e),
			 AQE_E_UNTRUSTED);
	ck_assert_int_eq(unlinkat(state.fd, "link@x", 0), 0);
	ck_assert_int_eq(unlinkat(state.fd, "open@x", AT_REMOVEDIR), 0);
}
END_TEST

static void touch(int fd, const char *name)
{
	int f = openat(fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(f, 0);
	(void)close(f);
}

START_TEST(sweep__removes_only_the_dead)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct shim_dir d = SHIM_DIR_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	char live[32], dead[32];
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	(void)snprintf(live, sizeof(live), "exec-%d.json", (int)getpid());
	(void)snprintf(dead, sizeof(dead), "exec-%d.json", (int)pid);
	ck_assert_int_eq(shim_dir_open(a, &state, "c1@x", SHIM_DIR_MAKE, &d, &e), 0);
	touch(d.fd, live);
	touch(d.fd, dead);
	touch(d.fd, "exec-.json");
	touch(d.fd, "exec-abc.json");
	touch(d.fd, "config.json");
	shim_dir_sweep(&d, "exec-");
	ck_assert_int_eq(faccessat(d.fd, live, F_OK, 0), 0);
	ck_assert_int_eq(faccessat(d.fd, dead, F_OK, 0), -1);
	ck_assert_int_eq(faccessat(d.fd, "exec-.json", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(d.fd, "exec-abc.json", F_OK, 0), 0);
	ck_assert_int_eq(faccessat(d.fd, "config.json", F_OK, 0), 0);
	shim_dir_done(&d);
	ck_assert_int_eq(shim_dir_remove(&state, "c1@x", &e), 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/record");
	TCase *t = tcase_create("document");
	TCase *f = tcase_create("directories");

	tcase_add_test(t, record__survives_writing_and_reading);
	tcase_add_test(t, record__small_survives_too);
	tcase_add_loop_test(t, parse__refuses_damage, 0, (int)AQE_COUNT(DAMAGE));
	tcase_add_test(t, parse__refuses_every_cut);
	tcase_add_loop_test(t, name__is_one_component, 0, (int)AQE_COUNT(NAMES));
	tcase_add_test(t, name__separates_roots_and_long_ids);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(f, make_state, drop_state);
	tcase_add_test(f, dir__is_made_locked_and_removed);
	tcase_add_test(f, dir__refuses_links_and_open_modes);
	tcase_add_test(f, sweep__removes_only_the_dead);
	suite_add_tcase(s, f);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
