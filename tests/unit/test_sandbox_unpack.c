/* SPDX-License-Identifier: MIT */
/* Layers: what they may write, and that nothing of theirs gets out of the directory. */
#include <fcntl.h>
#include <sys/stat.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/archive.h"
#include "shim/sandbox/unpack.h"
#include "tests/unit/tar_util.h"

static char place[] = "/tmp/aqe-unpack-XXXXXX";
static int top = -1, root = -1; /* top/root is the image; top/outside is what nobody may touch */
static struct shim_unpack u;

static void put_outside(void)
{
	int fd;

	ck_assert_int_eq(mkdirat(top, "outside", 0755), 0);
	fd = openat(top, "outside/victim", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "safe", 4), 4);
	(void)close(fd);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(place));
	top = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(mkdirat(top, "root", 0755), 0);
	root = openat(top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(root, 0);
	put_outside();
	u = (struct shim_unpack){ .root_fd = root,
				  .id_shift = geteuid() == 0 ? 100000 : geteuid(),
				  .id_size = geteuid() == 0 ? 65536 : 0 };
}
static void teardown(void)
{
	int parent = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)!aqe_fs_remove_tree(parent, strrchr(place, '/') + 1, NULL);
	(void)close(parent);
	(void)close(top);
	(void)close(root);
}

static int layer(const struct tar_entry *entries, size_t n, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = tar_make(entries, n, 0);

	return shim_unpack_layer(&u, fd, e);
}
#define LAYER(e, ...)                                    \
	layer((const struct tar_entry[]){ __VA_ARGS__ }, \
	      sizeof((const struct tar_entry[]){ __VA_ARGS__ }) / sizeof(struct tar_entry), e)

static struct stat look(int dir, const char *path)
{
	struct stat st = { .st_mode = 0 };

	(void)fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}
static bool there(const char *path)
{
	return look(root, path).st_mode != 0;
}
static void assert_content(int dir, const char *path, const char *want)
{
	char got[256] = "";
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "no '%s'", path);
	ck_assert_int_ge(read(fd, got, sizeof(got) - 1), 0);
	(void)close(fd);
	ck_assert_str_eq(got, want);
}
/* Whatever a layer was, the world outside is as it was. */
static void assert_outside(void)
{
	struct stat st = look(top, "outside/victim");

	assert_content(top, "outside/victim", "safe");
	ck_assert_uint_eq(st.st_nlink, 1);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_uint_eq(st.st_uid, geteuid());
	ck_assert_uint_eq(look(top, "outside").st_mode & 07777, 0755);
	ck_assert_uint_eq(look(top, "root").st_mode & 07777, 0755);
	ck_assert(!look(top, "outside/new").st_mode && !look(top, "new").st_mode);
}

START_TEST(layer__brings_what_it_says)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct stat st;

	ck_assert_ok(LAYER(&e, { "./", 'd', NULL, 0700 }, { "bin/", 'd', NULL, 0755 },
			   { "bin/tool", 'f', "hello", 04755, 0, 5 },
			   { "bin/again", 'h', "bin/tool" }, { "bin/sh", 'l', "tool" },
			   { "home", 'd', NULL, 02770, 1000, 1000 },
			   { "/etc/deep/er/file", 'f', "x" }, { "dev/null", 'c', NULL },
			   { "pipe", 'p', NULL }, { "odd", 'f', "y", 0600, 70000, 65535 },
			   { "tmp", 'd', NULL, 01777 }, { "empty", 'f', "" }),
		     e);
	st = look(root, "bin/tool");
	assert_content(root, "bin/tool", "hello");
	ck_assert_uint_eq(st.st_nlink, 2);
	ck_assert_int_eq(st.st_mtim.tv_sec, u.id_size ? 1000000000 : st.st_mtim.tv_sec);
	ck_assert(S_ISLNK(look(root, "bin/sh").st_mode));
	assert_content(root, "etc/deep/er/file", "x");
	ck_assert(!there("dev/null") && !there("pipe"));
	ck_assert_uint_eq(u.n_special, 2);
	assert_outside();
	if (!u.id_size)
		return;
	ck_assert_uint_eq(st.st_mode & 07777, 0755); /* no set-id */
	ck_assert_uint_eq(st.st_uid, 100000);
	ck_assert_uint_eq(st.st_gid, 100005);
	ck_assert_uint_eq(look(root, "home").st_uid, 101000);
	ck_assert_uint_eq(look(root, "home").st_mode & 07777, 0770);
	ck_assert_uint_eq(look(root, "odd").st_uid, 165534);
	ck_assert_uint_eq(look(root, "odd").st_gid, 165535);
	ck_assert_uint_eq(look(root, "etc/deep").st_uid, 100000);
	ck_assert_uint_eq(look(root, "tmp").st_mode & 07777, 01777);
}
END_TEST

START_TEST(layer__replaces_what_was_below)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(LAYER(&e, { "a", 'f', "old" }, { "b", 'd', NULL }, { "b/x", 'f', "x" },
			   { "c", 'd', NULL }, { "c/y", 'f', "y" }, { "d", 'l', "b" }),
		     e);
	ck_assert_ok(LAYER(&e, { "a", 'd', NULL }, { "a/n", 'f', "n" }, { "b", 'f', "new" },
			   { "c", 'd', NULL, 0700 }, { "d", 'f', "plain" }, { "d", 'f', "last" }),
		     e);
	assert_content(root, "a/n", "n");
	assert_content(root, "b", "new");
	assert_content(root, "c/y", "y"); /* a directory over a directory keeps what is in it */
	assert_content(root, "d", "last");
}
END_TEST

START_TEST(layer__whiteouts_hide_lower_layers_only)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(LAYER(&e, { "a", 'f', "a" }, { "dir/x", 'f', "x" }, { "dir/sub/y", 'f', "y" },
			   { "gone/z", 'f', "z" }, { "l", 'l', "../outside" }),
		     e);
	ck_assert_ok(LAYER(&e, { ".wh.a", 'f', "" }, { "dir", 'd', NULL, 0750 },
			   { "dir/new", 'f', "new" }, { "dir/.wh..wh..opq", 'f', "" },
			   { ".wh.gone", 'f', "" }, { "gone", 'f', "now a file" },
			   { "no/such/.wh.thing", 'f', "" }, { ".wh.l", 'f', "" },
			   { ".wh..wh.plnk", 'f', "" }, { ".wh.never", 'f', "" }),
		     e);
	ck_assert(!there("a") && !there("dir/x") && !there("dir/sub") && !there("l"));
	assert_content(root, "dir/new", "new");
	assert_content(root, "gone", "now a file");
	ck_assert(!there(".wh.a") && !there("dir/.wh..wh..opq") && !there("no"));
	assert_outside();
}
END_TEST

/* A lower layer's link may stand for the directory: what is hidden is what is in that, and neither
 * the link nor the directory's owner changes. */
START_TEST(layer__opaque_through_a_link)
{
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(LAYER(&e, { "d", 'd', NULL, 0750, 7, 8 }, { "d/x", 'f', "x" },
			   { "d/sub/y", 'f', "y" }, { "l", 'l', "d" }, { "up", 'l', "/.." }),
		     e);
	ck_assert_ok(LAYER(&e, { "l/.wh..wh..opq", 'f', "" }, { "l/new", 'f', "new" }), e);
	ck_assert(S_ISLNK(look(root, "l").st_mode));
	ck_assert(!there("d/x") && !there("d/sub"));
	assert_content(root, "d/new", "new");
	ck_assert_uint_eq(look(root, "d").st_uid, u.id_size ? 100007 : geteuid());
	ck_assert_uint_eq(look(root, "d").st_mode & 07777, u.id_size ? 0750 : 0700);
	ck_assert_fault(LAYER(&e, { "up/.wh..wh..opq", 'f', "" }), AQE_E_MALFORMED, e,
			"whole image");
	assert_outside();
}
END_TEST

/* What a hostile layer tries: refused, or done inside, but never outside. */
static const struct {
	const char *what;
	struct tar_entry e[4];
	size_t n;
	const char *refused; /* part of the text; NULL: it is taken, inside */
} HOSTILE[] = {
	{ "parent", { { "../new", 'f', "x" } }, 1, "leads out" },
	{ "parent in the middle", { { "a/../../new", 'f', "x" } }, 1, "leads out" },
	{ "parent at the end", { { "a/..", 'd', NULL } }, 1, "leads out" },
	{ "absolute", { { "/new", 'f', "x" } }, 1, NULL },
	{ "relative link, then through it",
	  { { "l", 'l', "../outside" }, { "l/new", 'f', "x" } },
	  2,
	  NULL },
	{ "absolute link, then through it",
	  { { "l", 'l', "/tmp" }, { "l/new", 'f', "x" } },
	  2,
	  NULL },
	{ "link to itself", { { "l", 'l', "l" }, { "l/new", 'f', "x" } }, 2, "no directory" },
	{ "file over a link", { { "l", 'l', "../outside/victim" }, { "l", 'f', "x" } }, 2, NULL },
	{ "directory over a link",
	  { { "l", 'l', "../outside" }, { "l", 'd', NULL, 0777 } },
	  2,
	  NULL },
	{ "hard link out", { { "h", 'h', "../outside/victim" } }, 1, "leads out" },
	{ "hard link out, absolute", { { "h", 'h', "/tmp/no-such-file-here" } }, 1, "not there" },
	{ "hard link through a link",
	  { { "l", 'l', "../outside" }, { "h", 'h', "l/victim" } },
	  2,
	  "not there" },
	{ "hard link to a link, then written",
	  { { "l", 'l', "../outside/victim" }, { "h", 'h', "l" }, { "h", 'f', "x" } },
	  3,
	  NULL },
	{ "hard link to a directory", { { "d", 'd', NULL }, { "h", 'h', "d" } }, 2, "no file" },
	{ "hard link to nothing", { { "h", 'h', "nothing" } }, 1, "no file" },
	{ "hard link to the root", { { "h", 'h', "/" } }, 1, "is linked to" },
	{ "whiteout out", { { "../.wh.outside", 'f', "" } }, 1, "leads out" },
	{ "whiteout of the parent", { { "d/.wh...", 'f', "" } }, 1, NULL },
	{ "whiteout of nothing", { { ".wh.", 'f', "" } }, 1, "hides no name" },
	{ "opaque root", { { ".wh..wh..opq", 'f', "" } }, 1, "whole image" },
	{ "opaque root through a link",
	  { { "l", 'l', ".." }, { "l/.wh..wh..opq", 'f', "" } },
	  2,
	  NULL }, /* the link comes after the whiteouts */
	{ "below a file", { { "f", 'f', "x" }, { "f/g", 'f', "y" } }, 2, "no directory" },
	{ "device", { { "null", 'c', NULL } }, 1, NULL },
	{ "magic link", { { "l", 'l', "/proc/self/root/tmp" }, { "l/new", 'f', "x" } }, 2, NULL },
};

START_TEST(layer__hostile_ones_stay_inside)
{
	struct aqe_err e = AQE_ERR_INIT;
	int rc = layer(HOSTILE[_i].e, HOSTILE[_i].n, &e);

	if (HOSTILE[_i].refused)
		ck_assert_fault(rc, AQE_E_MALFORMED, e, HOSTILE[_i].refused);
	else
		ck_assert_msg(rc == 0 || rc == AQE_E_MALFORMED, "%s: %s", HOSTILE[_i].what, e.text);
	assert_outside();
}
END_TEST

/* The same over two layers: the link is in the lower one. */
START_TEST(layer__hostile_over_two_layers)
{
	static const struct tar_entry upper[] = { { "l/new", 'f', "x" },
						  { "l/victim", 'f', "x" },
						  { "l/.wh.victim", 'f', "" },
						  { "l/.wh..wh..opq", 'f', "" },
						  { "l/sub/", 'd', NULL, 0777 } };
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(LAYER(&e, { "l", 'l', "../outside" }, { "outside", 'd', NULL },
			   { "outside/victim", 'f', "mine" }),
		     e);
	(void)!layer(&upper[_i], 1, &e);
	assert_outside();
}
END_TEST

START_TEST(layer__limits)
{
	struct aqe_err e = AQE_ERR_INIT;
	char name[5000];

	memset(name, 'a', sizeof(name));
	name[256] = '\0';
	ck_assert_fault(LAYER(&e, { name, 'f', "x" }), AQE_E_MALFORMED, e, "too long");
	name[255] = '\0';
	ck_assert_ok(LAYER(&e, { name, 'f', "x" }), e);
	for (size_t i = 0; i < 257; i++)
		name[i] = i % 2 ? '/' : 'd';
	name[257] = '\0'; /* 129 components */
	ck_assert_fault(LAYER(&e, { name, 'd', NULL }), AQE_E_MALFORMED, e, "too long");
	name[255] = '\0'; /* 128 */
	ck_assert_ok(LAYER(&e, { name, 'd', NULL }), e);
	u.bytes_max = 9;
	ck_assert_ok(LAYER(&e, { "f", 'f', "12345" }, { "g", 'f', "1234" }), e);
	ck_assert_fault(LAYER(&e, { "f", 'f', "12345" }, { "g", 'f', "12345" }), AQE_E_LIMIT, e,
			"more than 9 bytes");
}
END_TEST

static const char FILTERS[] = { 0, 'g', 'z', 'x', 'b' };

START_TEST(layer__takes_the_usual_compressions)
{
	static const struct tar_entry one = { "f", 'f', "content" };
	AQE_AUTO_FD int fd = tar_make(&one, 1, FILTERS[_i]);
	AQE_AUTO_FD int plain = memfd_create("plain", MFD_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_unpack_layer(&u, fd, &e), e);
	assert_content(root, "f", "content");
	ck_assert_ok(shim_archive_inflate(fd, 1 << 20, plain, &e), e);
	ck_assert_ok(shim_unpack_layer(&u, plain, &e), e);
	ck_assert_int_eq(ftruncate(plain, 0), 0);
	ck_assert_fault(shim_archive_inflate(fd, 1000, plain, &e), AQE_E_LIMIT, e, "more than");
}
END_TEST

START_TEST(layer__damage_is_an_error)
{
	static const struct tar_entry one = { "f", 'f', "content" };
	AQE_AUTO_FD int fd = tar_make(&one, 1, _i ? 'g' : 0);
	AQE_AUTO_FD int junk = memfd_create("junk", MFD_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_int_eq(ftruncate(fd, _i ? 20 : 515), 0);
	ck_assert_int_eq(shim_unpack_layer(&u, fd, &e), AQE_E_MALFORMED);
	for (int i = 0; i < 600; i++)
		ck_assert_int_eq(write(junk, "no tar", 6), 6);
	ck_assert_int_eq(shim_unpack_layer(&u, junk, &e), AQE_E_MALFORMED);
}
END_TEST

START_TEST(files__keep_neither_owner_nor_mode)
{
	static const struct tar_entry in[] = { { "manifest.json", 'f', "[]", 0777, 5, 5 },
					       { "a/layer.tar", 'f', "tar" },
					       { "b/layer.tar", 'l', "../a/layer.tar" },
					       { ".wh.x", 'f', "kept" },
					       { "../new", 'f', "x" } };
	struct aqe_err e = AQE_ERR_INIT;
	AQE_AUTO_FD int fd = tar_make(in, 4, 0);
	AQE_AUTO_FD int bad = tar_make(in, 5, 0);

	ck_assert_ok(shim_unpack_files(&u, fd, &e), e);
	ck_assert_uint_eq(look(root, "manifest.json").st_mode & 07777, 0600);
	ck_assert_uint_eq(look(root, "manifest.json").st_uid, geteuid());
	assert_content(root, "b/layer.tar", "tar");
	assert_content(root, ".wh.x", "kept");
	ck_assert_fault(shim_unpack_files(&u, bad, &e), AQE_E_MALFORMED, e, "leads out");
	assert_outside();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_unpack");
	TCase *t = tcase_create("unpack");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, layer__brings_what_it_says);
	tcase_add_test(t, layer__replaces_what_was_below);
	tcase_add_test(t, layer__whiteouts_hide_lower_layers_only);
	tcase_add_test(t, layer__opaque_through_a_link);
	tcase_add_loop_test(t, layer__hostile_ones_stay_inside, 0, AQE_COUNT(HOSTILE));
	tcase_add_loop_test(t, layer__hostile_over_two_layers, 0, 5);
	tcase_add_test(t, layer__limits);
	tcase_add_loop_test(t, layer__takes_the_usual_compressions, 0, AQE_COUNT(FILTERS));
	tcase_add_loop_test(t, layer__damage_is_an_error, 0, 2);
	tcase_add_test(t, files__keep_neither_owner_nor_mode);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
