/* SPDX-License-Identifier: MIT */
/* The whole check, on a directory that looks like /proc/PID of a real rootless container, and on
 * real processes of our own. */
#include "tests/unit/effect_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hardening/effect.h"
#include "hardening/effect_parse.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

struct world {
	char dir[64];
	struct aqe_arena *arena;
	struct aqe_buf spec;
	struct hard_host host;
	struct hard_ctx ctx;
	struct hard_effect fx;
	struct hard_report report;
	struct aqe_err e;
};

static void put(const struct world *w, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	f = fopen(path, "w");
	ck_assert_msg(f != NULL, "%s", path);
	ck_assert(fputs(text, f) >= 0);
	ck_assert_int_eq(fclose(f), 0);
}

static void make_dir(const struct world *w, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	ck_assert_int_eq(mkdir(path, 0755), 0);
}

static void copy(const struct world *w, const char *name)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	char from[128];

	(void)snprintf(from, sizeof(from), FIXTURES "crun-rootless/%s", name);
	fixture_read(&b, from);
	put(w, name, b.p);
}

static int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void edit_file(const struct world *w, const char *name, const char *from, const char *to)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", w->dir, name);
	fixture_read(&b, path);
	fixture_edit(&b, from, to);
	put(w, name, b.p);
}

static void make_proc(const struct world *w)
{
	static const char *const files[] = {
		"status",  "mountinfo", "cgroup",    "uid_map",
		"gid_map", "net/dev",   "net/route", "net/ipv6_route"
	};
	static const char *const ns[] = { "pid", "net", "ipc", "uts", "mnt", "cgroup" };
	char name[32], path[256];
	size_t i;

	make_dir(w, "net");
	make_dir(w, "ns");
	make_dir(w, "root");
	make_dir(w, "root/dev");
	for (i = 0; i < AQE_COUNT(files); i++)
		copy(w, files[i]);
	for (i = 0; i < AQE_COUNT(ns); i++) { /* a file of its own: a namespace of its own */
		(void)snprintf(name, sizeof(name), "ns/%s", ns[i]);
		put(w, name, "");
	}
	(void)snprintf(path, sizeof(path), "%s/ns/user",
		       w->dir); /* but the user namespace is ours */
	ck_assert_int_eq(symlink("/proc/self/ns/user", path), 0);
}

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));
	AQE_AUTO_BUF struct aqe_buf map = AQE_BUF_INIT(4096);
	char path[256];

	ck_assert_ptr_nonnull(w);
	(void)snprintf(w->dir, sizeof(w->dir), "/tmp/aqe-effect-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(w->dir));
	w->arena = aqe_arena_new(4 << 20);
	w->spec.max = 1 << 20;
	hard_report_init(&w->report, w->arena);
	make_proc(w);
	fixture_read(&w->spec, "tests/corpus/spec/ok-no-cgroup-ns.json");
	memcpy(strstr(strstr(w->spec.p, "\"namespaces\""), "\"user\""), "\"uxxr\"", 6);
	(void)snprintf(path, sizeof(path), "\"%s/root\"", w->dir);
	fixture_edit(&w->spec,
		     "\"/var/lib/containers/storage/overlay/11ff41388286dc477be11e974f17"
		     "58d6c121dcd8a8de5d8053c4477125ee34e7/merged\"",
		     path);
	fixture_read(&map, FIXTURES "crun-rootless/uid_map");
	w->host.in_userns = true;
	ck_assert_int_eq(hard_fx_idmap_parse(map.p, w->host.uid_map, HARD_IDMAP_MAX, &w->host.n_uid,
					     NULL),
			 0);
	memcpy(w->host.gid_map, w->host.uid_map, sizeof(w->host.gid_map));
	w->host.n_gid = w->host.n_uid;
	w->ctx.host = &w->host;
	w->ctx.agent = hard_agent_profile();
	w->fx.ctx = &w->ctx;
	w->fx.pid = 4711;
	return w;
}

static int created(struct world *w)
{
	int r;

	w->fx.spec = fixture_json(w->arena, &w->spec);
	w->fx.proc_fd = open(w->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = hard_effect_created(&w->fx, &w->report, &w->e);
	(void)close(w->fx.proc_fd);
	return r;
}

static void world_free(struct world *w)
{
	(void)nftw(w->dir, unlink_one, 8, FTW_DEPTH | FTW_PHYS);
	aqe_buf_done(&w->spec);
	aqe_arena_free(w->arena);
	free(w);
}

static void expect(const struct world *w, enum hard_prop prop, const char *found)
{
	ck_assert_msg(w->report.result[prop] == HARD_FAIL, "%s: %s", HARDENING_PROFILE[prop].id,
		      fixture_findings(&w->report));
	ck_assert_msg(fixture_finding(&w->report, prop, found) != NULL, "%s",
		      fixture_findings(&w->report));
}

START_TEST(created__passes_all_but_limits_rootless_on_v1)
{
	static const enum hard_prop pass[] = {
		HARD_CAPABILITIES, HARD_NO_NEW_PRIVILEGES, HARD_USER,
		HARD_ROOTLESS,     HARD_NAMESPACES,        HARD_MOUNTS,
		HARD_TMPFS,        HARD_PROPAGATION,       HARD_DEVICES,
		HARD_MASKED_PATHS, HARD_NETWORK,           HARD_READONLY_ROOTFS,
	};
	struct world *w = world_new();
	size_t i;

	ck_assert_msg(created(w) == 0, "%s", w->e.text);
	for (i = 0; i < AQE_COUNT(pass); i++)
		ck_assert_msg(w->report.result[pass[i]] == HARD_PASS, "%s: %s",
			      HARDENING_PROFILE[pass[i]].id, fixture_findings(&w->report));
	ck_assert_uint_eq(w->report.n_findings, 3);
	expect(w, HARD_PIDS_LIMIT, "rootless engine on cgroup v1 applies no limits");
	ck_assert_int_eq(w->report.result[HARD_SECCOMP], HARD_UNKNOWN);
	world_free(w);
}
END_TEST

static const struct {
	const char *file, *from, *to;
	enum hard_prop prop;
	const char *found;
} changes[] = {
	{ "status", "CapBnd:\t0000000000000000", "CapBnd:\t0000000000000400", HARD_CAPABILITIES,
	  "CapBnd 0000000000000400" },
	{ "status", "NoNewPrivs:\t1", "NoNewPrivs:\t0", HARD_NO_NEW_PRIVILEGES, "NoNewPrivs 0" },
	{ "uid_map", "100000", "200000", HARD_ROOTLESS, "uid_map differs" },
	{ "mountinfo", " / ro,", " / rw,", HARD_READONLY_ROOTFS, "writable" },
	{ "net/dev", NULL, "  eth0: 0 0\n", HARD_NETWORK, "interface 'eth0'" },
	{ "net/dev", NULL, "  tap0: 0 0\n", HARD_NETWORK, "interface 'tap0'" },
	{ "net/dev", NULL, "  sit1: 0 0\n", HARD_NETWORK, "interface 'sit1'" },
};

START_TEST(created__one_change)
{
	struct world *w = world_new();

	edit_file(w, changes[_i].file, changes[_i].from, changes[_i].to);
	ck_assert_msg(created(w) == 0, "%s", w->e.text);
	expect(w, changes[_i].prop, changes[_i].found);
	ck_assert_uint_eq(w->report.n_findings, 4);
	world_free(w);
}
END_TEST

/* Tunnel modules put their devices into every network namespace; they matter once routed. */
START_TEST(created__fallback_tunnels)
{
	static const struct {
		const char *file, *line;
	} routes[] = {
		{ NULL, NULL },
		{ "net/route", "tunl0\t00000000\t0102A8C0\t0003\n" },
		{ "net/ipv6_route",
		  "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
		  "00000000000000000000000000000000 00000400 00000001 00000000 00000001     "
		  "sit0\n" },
	};
	struct world *w = world_new();

	edit_file(w, "net/dev", NULL, " tunl0: 0 0\n  sit0: 0 0\n");
	if (routes[_i].file)
		edit_file(w, routes[_i].file, NULL, routes[_i].line);
	ck_assert_msg(created(w) == 0, "%s", w->e.text);
	if (routes[_i].file)
		expect(w, HARD_NETWORK, "a route through");
	else
		ck_assert_int_eq(w->report.result[HARD_NETWORK], HARD_PASS);
	world_free(w);
}
END_TEST

START_TEST(created__no_ipv6)
{
	struct world *w = world_new();
	char path[256];

	edit_file(w, "net/dev", NULL, " tunl0: 0 0\n");
	(void)snprintf(path, sizeof(path), "%s/net/ipv6_route", w->dir);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_msg(created(w) == 0, "%s", w->e.text);
	ck_assert_int_eq(w->report.result[HARD_NETWORK], HARD_PASS);
	world_free(w);
}
END_TEST

static const char *const shared[] = { "pid", "net", "ipc", "uts", "mnt" };

START_TEST(created__namespace_is_ours)
{
	struct world *w = world_new();
	char path[256], target[64];

	(void)snprintf(path, sizeof(path), "%s/ns/%s", w->dir, shared[_i]);
	(void)snprintf(target, sizeof(target), "/proc/self/ns/%s", shared[_i]);
	ck_assert_int_eq(unlink(path), 0);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_msg(created(w) == 0, "%s", w->e.text);
	expect(w, HARD_NAMESPACES, "namespace of the runtime");
	world_free(w);
}
END_TEST

START_TEST(created__another_user_namespace_than_asked)
{
	struct world *w = world_new();
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/ns/user", w->dir);
	ck_assert_int_eq(unlink(path), 0);
	put(w, "ns/user", "");
	ck_assert_msg(created(w) == 0, "%s", w->e.text);
	expect(w, HARD_NAMESPACES, "another user namespace");
	world_free(w);
}
END_TEST

START_TEST(created__root_is_another_directory)
{
	struct world *w = world_new();
	char from[256], to[256];

	make_dir(w, "other");
	(void)snprintf(from, sizeof(from), "%s/root", w->dir);
	(void)snprintf(to, sizeof(to), "%s/other", w->dir);
	fixture_edit(&w->spec, from, to);
	ck_assert_msg(created(w) == 0, "%s", w->e.text);
	expect(w, HARD_MOUNTS, "another directory");
	world_free(w);
}
END_TEST

/* A file that every live process has is gone, or not what a kernel writes. */
static const struct {
	const char *file;
	const char *text; /* NULL: removed */
	int code;
} broken[] = {
	{ "status", NULL, AQE_E_ABSENT },        { "mountinfo", NULL, AQE_E_ABSENT },
	{ "uid_map", NULL, AQE_E_ABSENT },       { "cgroup", NULL, AQE_E_ABSENT },
	{ "net/dev", NULL, AQE_E_ABSENT },       { "ns/mnt", NULL, AQE_E_ABSENT },
	{ "status", "", AQE_E_MALFORMED },       { "mountinfo", "", AQE_E_MALFORMED },
	{ "mountinfo", "x\n", AQE_E_MALFORMED }, { "gid_map", "x\n", AQE_E_MALFORMED },
	{ "net/dev", "", AQE_E_MALFORMED },      { "cgroup", "x\n", AQE_E_MALFORMED },
};

START_TEST(created__cannot_be_read)
{
	struct world *w = world_new();
	char path[256];

	if (broken[_i].text) {
		put(w, broken[_i].file, broken[_i].text);
	} else {
		(void)snprintf(path, sizeof(path), "%s/%s", w->dir, broken[_i].file);
		ck_assert_int_eq(unlink(path), 0);
	}
	ck_assert_int_eq(created(w), broken[_i].code);
	ck_assert_msg(aqe_starts(w->e.text, "effect check: "), "%s", w->e.text);
	world_free(w);
}
END_TEST

START_TEST(created__zombie_is_gone)
{
	struct world *w = world_new();

	edit_file(w, "status", "S (sleeping)", "Z (zombie)");
	ck_assert_int_eq(created(w), AQE_E_ABSENT);
	ck_assert_msg(strstr(w->e.text, "process 4711 has ended") != NULL, "%s", w->e.text);
	world_free(w);
}
END_TEST

/* ---- started ---- */

static const struct {
	const char *from, *to;
	enum hard_prop prop;
	const char *found; /* NULL: passes */
} started[] = {
	{ "Seccomp:\t0\nSeccomp_filters:\t0", "Seccomp:\t2\nSeccomp_filters:\t1", HARD_SECCOMP,
	  NULL },
	{ "Seccomp:\t0\nSeccomp_filters:\t0", "Seccomp:\t2\nSeccomp_filters:\t0", HARD_SECCOMP,
	  "Seccomp 2, 0 filters" },
	{ "Seccomp:\t0\nSeccomp_filters:\t0", "Seccomp:\t2", HARD_SECCOMP, NULL },
	{ "NoNewPrivs:\t1\nSeccomp:\t0", "NoNewPrivs:\t0\nSeccomp:\t2", HARD_NO_NEW_PRIVILEGES,
	  "NoNewPrivs 0" },
	/* waits, in vain */
	{ "Seccomp:\t0", "Seccomp:\t1", HARD_SECCOMP, "Seccomp 1" },
	{ "S (sleeping)", "Z (zombie)", HARD_SECCOMP, NULL },
	{ "S (sleeping)", "X (dead)", HARD_SECCOMP, NULL },
};

START_TEST(started__judges_seccomp)
{
	struct world *w = world_new();

	edit_file(w, "status", started[_i].from, started[_i].to);
	w->fx.proc_fd = open(w->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(hard_effect_started(&w->fx, &w->report, &w->e), 0);
	if (started[_i].found) {
		expect(w, started[_i].prop, started[_i].found);
	} else {
		ck_assert_int_eq(w->report.result[HARD_SECCOMP], HARD_PASS);
		ck_assert_int_eq(w->report.result[HARD_CAPABILITIES], HARD_PASS);
		ck_assert_int_eq(w->report.result[HARD_NO_NEW_PRIVILEGES], HARD_PASS);
	}
	(void)close(w->fx.proc_fd);
	world_free(w);
}
END_TEST

/* Real processes: one that ended before anybody waited for it, and one that is gone altogether; the
 * descriptor of /proc/PID was opened while it lived. */
START_TEST(started__process_has_ended)
{
	struct world *w = world_new();
	char path[32];
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	w->fx.pid = pid;
	w->fx.proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | (_i ? 0 : WNOWAIT)), 0);
	ck_assert_int_eq(hard_effect_started(&w->fx, &w->report, &w->e), 0);
	ck_assert_int_eq(w->report.result[HARD_SECCOMP], HARD_PASS);
	w->fx.spec = fixture_json(w->arena, &w->spec);
	ck_assert_int_eq(hard_effect_created(&w->fx, &w->report, &w->e), AQE_E_ABSENT);
	(void)close(w->fx.proc_fd);
	if (!_i)
		(void)waitid(P_PID, (id_t)pid, &info, WEXITED);
	world_free(w);
}
END_TEST

/* A live process of this host is everything a container must not be. */
START_TEST(created__ourselves)
{
	struct world *w = world_new();

	w->fx.spec = fixture_json(w->arena, &w->spec);
	w->fx.pid = getpid();
	w->fx.proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_msg(hard_effect_created(&w->fx, &w->report, &w->e) == 0, "%s", w->e.text);
	expect(w, HARD_NAMESPACES, "the mount namespace of the runtime");
	expect(w, HARD_NAMESPACES, "pid");
	expect(w, HARD_ROOTLESS, "uid_map differs");
	(void)close(w->fx.proc_fd);
	world_free(w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/effect");
	TCase *t = tcase_create("effect");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_set_timeout(t, 60); /* one of them waits as long as a start may take */
	tcase_add_test(t, created__passes_all_but_limits_rootless_on_v1);
	tcase_add_loop_test(t, created__one_change, 0, (int)AQE_COUNT(changes));
	tcase_add_loop_test(t, created__fallback_tunnels, 0, 3);
	tcase_add_test(t, created__no_ipv6);
	tcase_add_loop_test(t, created__namespace_is_ours, 0, (int)AQE_COUNT(shared));
	tcase_add_test(t, created__another_user_namespace_than_asked);
	tcase_add_test(t, created__root_is_another_directory);
	tcase_add_loop_test(t, created__cannot_be_read, 0, (int)AQE_COUNT(broken));
	tcase_add_test(t, created__zombie_is_gone);
	tcase_add_loop_test(t, started__judges_seccomp, 0, (int)AQE_COUNT(started));
	tcase_add_loop_test(t, started__process_has_ended, 0, 2);
	tcase_add_test(t, created__ourselves);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
