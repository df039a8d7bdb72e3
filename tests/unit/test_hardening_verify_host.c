/* SPDX-License-Identifier: MIT */
/* What only the host can tell about mount sources, on a real directory tree. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "hardening/sockets.h"
#include "shim/core/fs.h"
#include "tests/unit/rewrite_util.h"

static char top[] = "/tmp/aqe-host-XXXXXX";
static struct aqe_json *doc;
static struct hard_policy with_mount;
static struct hard_mount work;

static const char *path(const char *name)
{
	const char *p = aqe_arena_fmt(arena, "%s/%s", top, name);

	ck_assert_ptr_nonnull(p);
	return p;
}

static void make_dir(const char *name)
{
	ck_assert_int_eq(mkdir(path(name), 0755), 0);
}

/* A bound, listening socket. */
static int listen_at(const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *p = path(name);

	ck_assert_int_ge(fd, 0);
	ck_assert_uint_lt(strlen(p), sizeof(a.sun_path));
	memcpy(a.sun_path, p, strlen(p) + 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

static void set_source(const char *source, const char *kind)
{
	work = (struct hard_mount){ .source = source, .destination = "/workspace" };
	with_mount = *policy;
	with_mount.mounts = &work;
	with_mount.n_mounts = 1;
	ctx.policy = &with_mount;
	doc = rw_value(aqe_arena_fmt(
		arena,
		"{\"root\":{\"path\":\"%s/rootfs\"},\"process\":{\"user\":{\"uid\":1000}},"
		"\"mounts\":[{\"destination\":\"/workspace\",\"type\":\"bind\",\"source\":\"%s\","
		"\"options\":[\"rw\",\"nosuid\",\"nodev\",\"private\",\"%s\"]}]}",
		top, source, kind));
}

static void setup(void)
{
	rw_setup();
	ck_assert_ptr_nonnull(mkdtemp(top));
	make_dir("rootfs");
	make_dir("work");
	make_dir("work/a");
	make_dir("work/a/b");
	set_source(path("work"), "bind");
}

static void teardown(void)
{
	AQE_AUTO_FD int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_eq(aqe_fs_remove_tree(fd, top + strlen("/tmp/"), NULL), 0);
	rw_teardown();
}

/* Judges, everything else taken as passed: the failed properties, and the first one's text. */
static void expect(const char *failed, const char *part)
{
	hard_report_init(&report, arena);
	for (unsigned i = 0; i < HARD_PROP_COUNT; i++)
		hard_report_pass(&report, (enum hard_prop)i);
	ck_assert_ok(hard_verify_host(&ctx, doc, &report, &err), err);
	ck_assert_msg(aqe_str_eq(rw_failed(&report), failed), "'%s' (%s), wanted '%s'",
		      rw_failed(&report), report.first ? report.first->found : "", failed);
	if (part)
		ck_assert_msg(strstr(report.first->found, part) != NULL, "%s", report.first->found);
}

START_TEST(source__plain_directory)
{
	expect("", NULL);
}
END_TEST

START_TEST(source__socket_below)
{
	AQE_AUTO_FD int fd = listen_at("work/a/b/innocent.txt");

	expect("engine_socket", "a/b/innocent.txt");
	ck_assert_ptr_nonnull(strstr(report.first->found, "listens"));
}
END_TEST

START_TEST(source__hard_link_of_a_socket)
{
	AQE_AUTO_FD int fd = listen_at("outside.sock");

	ck_assert_int_eq(link(path("outside.sock"), path("work/a/notes")), 0);
	expect("engine_socket", "a/notes");
	ck_assert_ptr_nonnull(strstr(report.first->found, "listens"));
}
END_TEST

START_TEST(source__dead_socket)
{
	ck_assert_int_eq(close(listen_at("work/dead")), 0);
	expect("engine_socket", "dead");
	ck_assert_ptr_null(strstr(report.first->found, "listens"));
}
END_TEST

START_TEST(source__is_a_socket)
{
	AQE_AUTO_FD int fd = listen_at("s");

	set_source(path("s"), "bind");
	expect("mounts engine_socket", "which is one");
}
END_TEST

START_TEST(source__absent)
{
	set_source(path("none"), "bind");
	expect("mounts", "which does not");
}
END_TEST

START_TEST(source__link_at_the_end_and_on_the_way)
{
	ck_assert_int_eq(symlink("work", path("link")), 0);
	set_source(path("link"), "bind");
	expect("mounts", "link");
	set_source(path("link/a"), "bind");
	expect("mounts", "link");
}
END_TEST

START_TEST(source__no_directory)
{
	AQE_AUTO_FD int fd = open(path("file"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	set_source(path("file"), "bind");
	expect("mounts", "something else");
	ck_assert_int_eq(mkfifo(path("fifo"), 0600), 0);
	set_source(path("fifo"), "bind");
	expect("mounts", "something else");
}
END_TEST

START_TEST(source__everybody_may_write)
{
	ck_assert_int_eq(chmod(path("work"), 0777), 0);
	expect("mounts", "0777");
	ck_assert_int_eq(chmod(path("work"), 01777), 0);
	expect("mounts", "1777");
	ck_assert_int_eq(chmod(path("work"), 0775), 0);
	expect("", NULL);
}
END_TEST

START_TEST(source__owner)
{
	if (geteuid() != 0)
		return;
	ck_assert_int_eq(chown(path("work"), 1000, 1000), 0); /* the agent's own */
	expect("", NULL);
	ck_assert_int_eq(chown(path("work"), 1001, 1001), 0);
	expect("mounts", "uid 1001");
	ck_assert_int_eq(chown(path("work"), 165535, 165535), 0);
	expect("mounts", "uid 165535");
	ck_assert_int_eq(aqe_json_set(arena, aqe_json_ensure_object(arena, doc, "linux"),
				      "uidMappings",
				      rw_value("[{\"containerID\":0,\"hostID\":100000,"
					       "\"size\":65536}]")),
			 0);
	expect("", NULL);
}
END_TEST

START_TEST(source__kernel_file_system)
{
	set_source("/proc", "bind");
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify_host(&ctx, doc, &report, &err), err);
	ck_assert_int_eq(report.result[HARD_MOUNTS], HARD_FAIL);
	ck_assert_ptr_nonnull(strstr(report.first->found, "file system of the kernel"));
}
END_TEST

START_TEST(source__mount_below_rbind)
{
	if (geteuid() != 0 || mount("none", path("work/a"), "tmpfs", 0, "size=4k") != 0)
		return;
	expect("", NULL); /* a plain bind does not carry it */
	set_source(path("work"), "rbind");
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify_host(&ctx, doc, &report, &err), err);
	ck_assert_int_eq(umount(path("work/a")), 0);
	ck_assert_int_eq(report.result[HARD_MOUNTS], HARD_FAIL);
	ck_assert_ptr_nonnull(strstr(report.first->found, "work/a"));
	expect("", NULL);
}
END_TEST

START_TEST(root__real_directory)
{
	ck_assert_int_eq(rmdir(path("rootfs")), 0);
	expect("readonly_rootfs", "which does not");
	ck_assert_int_eq(symlink("/", path("rootfs")), 0);
	expect("readonly_rootfs", "link");
	rw_edit(doc, "/root/path", "\"/\"");
	expect("readonly_rootfs", "the host");
	rw_edit(doc, "/root/path", "\"/proc\"");
	expect("readonly_rootfs", "a file system of the kernel");
}
END_TEST

/* ---- the walk's limits ---- */

static int scan(size_t entries, size_t depth)
{
	AQE_AUTO_BUF struct aqe_buf found = AQE_BUF_INIT(4096);
	AQE_AUTO_FD int fd = open(path("work"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct hard_scan s = { entries, depth, &found, 0, 0 };

	err = (struct aqe_err)AQE_ERR_INIT;
	return hard_sockets_scan(fd, &s, &err);
}

START_TEST(hard_sockets_scan__limits)
{
	make_dir("work/c"); /* a, a/b, c: three entries, three levels with the top */
	ck_assert_int_eq(scan(3, 3), 0);
	ck_assert_int_eq(scan(4, 4), 0);
	ck_assert_int_eq(scan(2, 3), AQE_E_LIMIT);
	ck_assert_int_eq(scan(3, 2), AQE_E_LIMIT);
}
END_TEST

START_TEST(hard_sockets_scan__deep_tree_is_refused)
{
	AQE_AUTO_BUF struct aqe_buf name = AQE_BUF_INIT(4096);

	aqe_buf_puts(&name, "work");
	for (int i = 0; i < HARD_SCAN_DEPTH_MAX; i++) {
		aqe_buf_puts(&name, "/d");
		make_dir(aqe_buf_str(&name));
	}
	/* the clean-up of the test stops at 32 levels: take the lower ones away first */
	expect("engine_socket", "levels");
	ck_assert_int_eq(report.result[HARD_ENGINE_SOCKET], HARD_UNKNOWN);
	while (name.len > strlen("work")) {
		ck_assert_int_eq(rmdir(path(aqe_buf_str(&name))), 0);
		name.len -= 2;
		name.p[name.len] = '\0';
	}
}
END_TEST

START_TEST(hard_sockets_read__knows_a_listener)
{
	AQE_AUTO_FD int fd = listen_at("here");
	struct hard_sockets s = { NULL, 0 };
	struct stat st;

	ck_assert_ok(hard_sockets_read(&s, &err), err);
	ck_assert_int_eq(stat(path("here"), &st), 0);
	ck_assert(hard_sockets_has(&s, st.st_dev, st.st_ino));
	ck_assert(!hard_sockets_has(&s, st.st_dev, st.st_ino + 1));
	ck_assert(!hard_sockets_has(&s, st.st_dev + 1, st.st_ino));
	hard_sockets_done(&s);
}
END_TEST

START_TEST(hard_host_read__this_machine)
{
	static struct hard_host h;

	ck_assert_ok(hard_host_read(&h, &err), err);
	ck_assert_uint_ge(h.n_uid, 1);
	ck_assert_uint_ge(h.n_gid, 1);
	ck_assert_uint_ne(h.ns_net_ino, 0);
	ck_assert_uint_ne(h.rlim_nofile_max, 0);
	if (!h.in_userns)
		ck_assert(h.cgroup_limits);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/verify_host");
	TCase *c = tcase_create("host");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, source__plain_directory);
	tcase_add_test(c, source__socket_below);
	tcase_add_test(c, source__hard_link_of_a_socket);
	tcase_add_test(c, source__dead_socket);
	tcase_add_test(c, source__is_a_socket);
	tcase_add_test(c, source__absent);
	tcase_add_test(c, source__link_at_the_end_and_on_the_way);
	tcase_add_test(c, source__no_directory);
	tcase_add_test(c, source__everybody_may_write);
	tcase_add_test(c, source__owner);
	tcase_add_test(c, source__kernel_file_system);
	tcase_add_test(c, source__mount_below_rbind);
	tcase_add_test(c, root__real_directory);
	tcase_add_test(c, hard_sockets_scan__limits);
	tcase_add_test(c, hard_sockets_scan__deep_tree_is_refused);
	tcase_add_test(c, hard_sockets_read__knows_a_listener);
	tcase_add_test(c, hard_host_read__this_machine);
	suite_add_tcase(s, c);
	return unit_run(s);
}
