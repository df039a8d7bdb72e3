/* SPDX-License-Identifier: MIT */
/* Layouts and archives into the store, with every way in which they can lie. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/image.h"
#include "shim/sandbox/layout.h"
#include "shim/sandbox/spec.h"
#include "tests/unit/tar_util.h"

static char base[] = "/var/tmp/aqe-image-XXXXXX";
static int top = -1, layout = -1;
static struct aqe_arena *arena;
static struct shim_place place;
static char diff_id[AQE_DIGEST_TEXT], layer_digest[AQE_DIGEST_TEXT], config_digest[AQE_DIGEST_TEXT],
	manifest_digest[AQE_DIGEST_TEXT];

static void setup(void)
{
	struct aqe_err e = AQE_ERR_INIT;
	char data[64];

	ck_assert_ptr_nonnull(mkdtemp(base));
	ck_assert_int_eq(chmod(base, 0755), 0);
	top = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	arena = aqe_arena_new(64 << 20);
	(void)snprintf(data, sizeof(data), "%s/data", base);
	ck_assert_ok(shim_place_open(arena, data, &place, &e), e);
	ck_assert_int_eq(mkdirat(top, "layout", 0755), 0);
	layout = openat(top, "layout", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(mkdirat(layout, "blobs", 0755), 0);
	ck_assert_int_eq(mkdirat(layout, "blobs/sha256", 0755), 0);
}
static void teardown(void)
{
	int parent = open("/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	shim_place_done(&place);
	aqe_arena_free(arena);
	(void)close(layout);
	(void)close(top);
	(void)!aqe_fs_remove_tree(parent, strrchr(base, '/') + 1, NULL);
	(void)close(parent);
}

static void put(int dir, const char *name, const void *p, size_t n)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(aqe_fs_write_all(fd, p, n, NULL), 0);
	(void)close(fd);
}

static void put_blob(const void *p, size_t n, char digest[AQE_DIGEST_TEXT])
{
	char name[96];

	aqe_sha256_text(p, n, digest);
	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", digest + 7);
	put(layout, name, p, n);
}

static size_t slurp(int fd, char *into, size_t max)
{
	ssize_t n;

	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	n = read(fd, into, max);
	ck_assert_int_gt(n, 0);
	return (size_t)n;
}

static const struct tar_entry ROOT[] = {
	{ "bin/", 'd', NULL, 0755 },
	{ "bin/tool", 'f', "content", 0755 },
	{ "etc/passwd", 'f',
	  "root:x:0:0::/:/bin/sh\nnode:x:1001:1002::/app:/bin/sh\nagent:x:7:8::/:\n" },
	{ "etc/group", 'f', "root:x:0:\nnode:x:1002:\nextra:x:55:\n" },
};
#define CONFIG                                                                                  \
	"{\"architecture\":\"" ARCH                                                             \
	"\",\"os\":\"linux\",\"config\":{\"Env\":[\"A=b\"],\"Cmd\":[\"x\"],"                    \
	"\"Entrypoint\":null,\"User\":\"node\",\"WorkingDir\":\"/"                              \
	"app\",\"Healthcheck\":{\"Test\":["                                                     \
	"\"CMD-SHELL\",\"true\"],\"Interval\":2000000000,\"Retries\":7}},\"rootfs\":{\"type\":" \
	"\"layers\",\"diff_ids\":[\"%s\"]}}"
#if defined(__aarch64__)
#define ARCH "arm64"
#else
#define ARCH "amd64"
#endif

/* A layout of one image: one layer, gzip. */
static void make_layout(void)
{
	static char data[1 << 20];
	AQE_AUTO_FD int plain = tar_make(ROOT, AQE_COUNT(ROOT), 0);
	AQE_AUTO_FD int packed = tar_make(ROOT, AQE_COUNT(ROOT), 'g');
	char text[4096];
	size_t n = slurp(plain, data, sizeof(data));

	aqe_sha256_text(data, n, diff_id);
	n = slurp(packed, data, sizeof(data));
	put_blob(data, n, layer_digest);
	(void)snprintf(text, sizeof(text), CONFIG, diff_id);
	put_blob(text, strlen(text), config_digest);
	(void)snprintf(
		text, sizeof(text),
		"{\"schemaVersion\":2,\"config\":{\"digest\":\"%s\"},\"layers\":[{\"mediaType\":"
		"\"application/vnd.oci.image.layer.v1.tar+gzip\",\"digest\":\"%s\"}]}",
		config_digest, layer_digest);
	put_blob(text, strlen(text), manifest_digest);
	put(layout, "oci-layout", "{}", 2);
	(void)snprintf(text, sizeof(text), "{\"manifests\":[{\"digest\":\"%s\"}]}",
		       manifest_digest);
	put(layout, "index.json", text, strlen(text));
}

static const char *ref(const char *prefix, const char *name)
{
	return aqe_arena_fmt(arena, "%s%s/%s", prefix, base, name);
}

static void assert_image(const struct shim_image *img)
{
	char path[300];
	struct stat st;

	ck_assert_str_eq(img->id, config_digest);
	ck_assert_str_eq(img->user, "node");
	ck_assert_str_eq(img->workdir, "/app");
	ck_assert_uint_eq(img->env.n, 1);
	ck_assert_uint_eq(img->entrypoint.n, 0);
	ck_assert_str_eq(img->cmd.v[0], "x");
	ck_assert_int_eq(img->health_interval_ms, 2000);
	ck_assert_int_eq(img->health_retries, 7);
	(void)snprintf(path, sizeof(path), "%s/bin/tool", img->rootfs);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_uid, SHIM_ID_SHIFT);
	(void)snprintf(path, sizeof(path), "%s/proc", img->rootfs); /* a runtime mounts there */
	ck_assert_int_eq(stat(path, &st), 0);
}

START_TEST(import__takes_a_layout)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_image img, again;
	struct stat before, after;

	make_layout();
	ck_assert_ok(shim_image_import(arena, &place, ref("oci:", "layout"), &img, &e), e);
	assert_image(&img);
	ck_assert_int_eq(stat(img.rootfs, &before), 0);
	/* a second time it is known; also by its id, and without a prefix */
	ck_assert_ok(shim_image_import(arena, &place, ref("", "layout"), &again, &e), e);
	ck_assert_ok(shim_image_import(arena, &place, img.id, &again, &e), e);
	assert_image(&again);
	ck_assert_int_eq(stat(again.rootfs, &after), 0);
	ck_assert_uint_eq(before.st_ino, after.st_ino);
}
END_TEST

/* The files of the layout, as an archive; or a docker archive of the same image. */
static void make_archive(bool docker)
{
	static char layer[1 << 20];
	char manifest[512], config[2048];
	AQE_AUTO_FD int plain = tar_make(ROOT, AQE_COUNT(ROOT), 0);
	struct tar_entry in[4] = { { "abc/layer.tar", 'f', layer },
				   { "config.json", 'f', config },
				   { "manifest.json", 'f', manifest },
				   { "b/layer.tar", 'l', "../abc/layer.tar" } };
	size_t n = slurp(plain, layer, sizeof(layer));
	struct archive *a = archive_write_new();
	AQE_AUTO_FD int fd = openat(top, "archive", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	struct archive_entry *entry = archive_entry_new();

	ck_assert(docker);
	(void)snprintf(config, sizeof(config), CONFIG, diff_id);
	(void)snprintf(manifest, sizeof(manifest),
		       "[{\"Config\":\"config.json\",\"RepoTags\":[\"a:1\"],\"Layers\":[\"b/"
		       "layer.tar\"]}]");
	ck_assert_int_eq(archive_write_set_format_pax_restricted(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_open_fd(a, fd), ARCHIVE_OK);
	archive_entry_set_pathname(entry, in[0].path);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_entry_set_perm(entry, 0644);
	archive_entry_set_size(entry, (la_int64_t)n);
	ck_assert_int_eq(archive_write_header(a, entry), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_data(a, layer, n), (la_ssize_t)n);
	archive_entry_free(entry);
	for (int i = 1; i < 4; i++)
		tar_add(a, &in[i]);
	ck_assert_int_eq(archive_write_close(a), ARCHIVE_OK);
	ck_assert_int_eq(archive_write_free(a), ARCHIVE_OK);
}

START_TEST(import__takes_a_docker_archive)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_image img;

	make_layout();
	make_archive(true);
	ck_assert_ok(shim_image_import(arena, &place, ref("docker-archive:", "archive"), &img, &e),
		     e);
	assert_image(&img);
	ck_assert_fault(shim_image_import(arena, &place,
					  aqe_arena_fmt(arena, "docker-archive:%s/archive:b:2",
							base),
					  &img, &e),
			AQE_E_ABSENT, e, "none is named 'b:2'");
}
END_TEST

/* ---- lies ---- */

static void lie_layer(void)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", layer_digest + 7);
	put(layout, name, "other", 5);
}
static void lie_config(void)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", config_digest + 7);
	put(layout, name, "{}", 2);
}
static void lie_manifest(void)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", manifest_digest + 7);
	put(layout, name, "{}", 2);
}
static void lie_no_blob(void)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", layer_digest + 7);
	ck_assert_int_eq(unlinkat(layout, name, 0), 0);
}
/* A manifest whose layer is intact, but is not the one the config vouches for. */
static void lie_diff_id(void)
{
	char text[2048], digest[AQE_DIGEST_TEXT], index[256];

	(void)snprintf(text, sizeof(text), CONFIG,
		       "sha256:0000000000000000000000000000000000000000000000000000000000000000");
	put_blob(text, strlen(text), digest);
	(void)snprintf(
		text, sizeof(text),
		"{\"config\":{\"digest\":\"%s\"},\"layers\":[{\"mediaType\":\"tar\",\"digest\":"
		"\"%s\"}]}",
		digest, layer_digest);
	put_blob(text, strlen(text), digest);
	(void)snprintf(index, sizeof(index), "{\"manifests\":[{\"digest\":\"%s\"}]}", digest);
	put(layout, "index.json", index, strlen(index));
}
static void lie_count(void)
{
	char text[2048], digest[AQE_DIGEST_TEXT], index[256];

	(void)snprintf(text, sizeof(text), "{\"config\":{\"digest\":\"%s\"},\"layers\":[]}",
		       config_digest);
	put_blob(text, strlen(text), digest);
	(void)snprintf(index, sizeof(index), "{\"manifests\":[{\"digest\":\"%s\"}]}", digest);
	put(layout, "index.json", index, strlen(index));
}
static void lie_link(void)
{
	char name[96];

	(void)snprintf(name, sizeof(name), "blobs/sha256/%s", layer_digest + 7);
	ck_assert_int_eq(unlinkat(layout, name, 0), 0);
	ck_assert_int_eq(symlinkat("/etc/passwd", layout, name), 0);
}
static void lie_index(const char *text)
{
	put(layout, "index.json", text, strlen(text));
}
static void lie_path(void)
{
	lie_index("{\"manifests\":[{\"digest\":\"sha256:../../../etc/passwd\"}]}");
}
static void lie_sha512(void)
{
	lie_index("{\"manifests\":[{\"digest\":\"sha512:00\"}]}");
}
static void lie_platform(void)
{
	char text[256];

	(void)snprintf(text, sizeof(text),
		       "{\"manifests\":[{\"digest\":\"%s\",\"platform\":{\"os\":\"linux\","
		       "\"architecture\":\"s390x\"}}]}",
		       manifest_digest);
	lie_index(text);
}
static void lie_two(void)
{
	char text[512];

	(void)snprintf(text, sizeof(text),
		       "{\"manifests\":[{\"digest\":\"%s\"},{\"digest\":\"%s\"}]}", manifest_digest,
		       manifest_digest);
	lie_index(text);
}
static void lie_loop(void)
{
	char text[512], digest[AQE_DIGEST_TEXT] = "", index[256];

	/* an index cannot hold its own digest, but a chain of them is as bad */
	(void)snprintf(text, sizeof(text), "{\"manifests\":[{\"digest\":\"%s\"}]}",
		       manifest_digest);
	for (int i = 0; i < 4; i++) {
		put_blob(text, strlen(text), digest);
		(void)snprintf(text, sizeof(text), "{\"manifests\":[{\"digest\":\"%s\"}]}", digest);
	}
	(void)snprintf(index, sizeof(index), "{\"manifests\":[{\"digest\":\"%s\"}]}", digest);
	lie_index(index);
}
static void lie_none(void)
{
	ck_assert_int_eq(unlinkat(layout, "oci-layout", 0), 0);
}
static void lie_json(void)
{
	lie_index("{\"manifests\":[],\"manifests\":[]}");
}

static const struct {
	void (*lie)(void);
	enum aqe_code code;
	const char *text;
} LIES[] = {
	{ lie_layer, AQE_E_MALFORMED, "a layer has digest" },
	{ lie_config, AQE_E_MALFORMED, "not what its digest says" },
	{ lie_manifest, AQE_E_MALFORMED, "not what its digest says" },
	{ lie_no_blob, AQE_E_ABSENT, "image: no 'blobs/sha256/" },
	{ lie_diff_id, AQE_E_MALFORMED, "the content of a layer has digest" },
	{ lie_count, AQE_E_MALFORMED, "as many layers" },
	{ lie_link, AQE_E_SYS, "open 'blobs/sha256" },
	{ lie_path, AQE_E_MALFORMED, "not sha256" },
	{ lie_sha512, AQE_E_MALFORMED, "not sha256" },
	{ lie_platform, AQE_E_ABSENT, "for linux/" },
	{ lie_two, AQE_E_MALFORMED, "more than one fits" },
	{ lie_loop, AQE_E_MALFORMED, "an index in an index" },
	{ lie_none, AQE_E_MALFORMED, "neither an OCI layout" },
	{ lie_json, AQE_E_MALFORMED, "duplicate key" },
};

START_TEST(import__refuses_lies_and_leaves_nothing)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_image img;
	int rc;

	make_layout();
	LIES[_i].lie();
	rc = shim_image_import(arena, &place, ref("oci:", "layout"), &img, &e);
	ck_assert_fault(rc, (int)LIES[_i].code, e, LIES[_i].text);
	ck_assert_int_eq(unlinkat(place.fd, "store", AT_REMOVEDIR), 0); /* it is empty */
}
END_TEST

START_TEST(import__says_what_is_missing)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_image img;

	ck_assert_fault(shim_image_import(arena, &place, "registry.example/agent:1", &img, &e),
			AQE_E_ABSENT, e,
			"without an engine an image is an OCI layout or an archive");
	ck_assert_fault(shim_image_import(arena, &place, "oci:/no/such", &img, &e), AQE_E_ABSENT, e,
			"/no/such");
	ck_assert_fault(shim_image_import(arena, &place, "oci:", &img, &e), AQE_E_USAGE, e,
			"names no image");
	ck_assert_fault(
		shim_image_import(arena, &place,
				  "sha256:000000000000000000000000000000000000000000000000000000"
				  "0000000000",
				  &img, &e),
		AQE_E_ABSENT, e, "is not in the store");
}
END_TEST

/* ---- the image's users ---- */

static const struct {
	const char *user;
	uint32_t uid, gid;
	const char *fault;
} USERS[] = {
	{ NULL, 1001, 1002, NULL },         { "", 1001, 1002, NULL },
	{ "node", 1001, 1002, NULL },       { "1001", 1001, 1002, NULL },
	{ "4711", 4711, 4711, NULL },       { "agent", 7, 8, NULL },
	{ "agent:extra", 7, 55, NULL },     { "agent:9", 7, 9, NULL },
	{ "12:34", 12, 34, NULL },          { "root", 0, 0, NULL },
	{ "nobody-here", 0, 0, "no user" }, { "node:none", 0, 0, "no group" },
	{ "4294967296", 0, 0, "no user" },  { "-1", 0, 0, "no user" },
};

START_TEST(user__by_the_images_own_files)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_spec_user got = { 77, 77 };
	struct shim_image img;
	int fd, rc;

	make_layout();
	ck_assert_ok(shim_image_import(arena, &place, ref("oci:", "layout"), &img, &e), e);
	fd = open(img.rootfs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = shim_spec_user(fd, USERS[_i].user, &got, &e);
	(void)close(fd);
	if (USERS[_i].fault) {
		ck_assert_fault(rc, AQE_E_ABSENT, e, USERS[_i].fault);
		return;
	}
	ck_assert_ok(rc, e);
	ck_assert_uint_eq(got.uid, USERS[_i].uid);
	ck_assert_uint_eq(got.gid, USERS[_i].gid);
}
END_TEST

/* passwd may be a link, but it leads nowhere but into the image. */
START_TEST(user__links_stay_inside)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_spec_user got = { 0, 0 };
	int fd;

	ck_assert_int_eq(mkdirat(top, "root", 0755), 0);
	fd = openat(top, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(mkdirat(fd, "etc", 0755), 0);
	ck_assert_int_eq(symlinkat("../../../../../../etc/passwd", fd, "etc/passwd"), 0);
	ck_assert_fault(shim_spec_user(fd, "daemon", &got, &e), AQE_E_SYS, e, "/etc/passwd");
	(void)close(fd);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_image");
	TCase *t = tcase_create("image");

	if (geteuid() != 0)
		return EXIT_SUCCESS; /* the store gives files away: root only */
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, import__takes_a_layout);
	tcase_add_test(t, import__takes_a_docker_archive);
	tcase_add_loop_test(t, import__refuses_lies_and_leaves_nothing, 0, AQE_COUNT(LIES));
	tcase_add_test(t, import__says_what_is_missing);
	tcase_add_loop_test(t, user__by_the_images_own_files, 0, AQE_COUNT(USERS));
	tcase_add_test(t, user__links_stay_inside);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
