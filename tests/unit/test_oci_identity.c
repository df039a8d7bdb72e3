/* SPDX-License-Identifier: MIT */
/* Stores captured from real engines (tests/fixtures/stores): each is copied to a temporary
 * directory, and then one thing in it is changed. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oci/identity.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define FILE_MAX  ((size_t)4 << 20)
#define ARENA_MAX ((size_t)4 << 20)

/* podman 4.3.1, overlay: image pulled by a list of manifests, three layers, `run --rm` */
#define OV_ID      "5cd05e671ee7767062a99fe8daaf520cda438cc77f70b8c919b467280a3dff95"
#define OV_IMAGE   "6f765f76257af756ffb689d562835ad9c0e5f85938e75bbc3647957786fd0fd0"
#define OV_RW      "365c07e4ba33dbe82bcaa6898c42b55bbe8c74c4702c498ff19c3e0b4eea55e4"
#define OV_TOP     "084dc7f24054bbbb1d0872b4273c5652c25cf0d627117c5eacf62485f00418ed"
#define OV_MID     "921677a73828c838cbf2f2e83d10cf022416b37efd9e49f9a459bb03d34bc962"
#define OV_LOW     "ad60ac16280ef0b144c3842e7f6214228f05f78e721f2816bc2543a38f808853"
#define OV_LIST    "sha256:ebe6c00212ba22b1fbd665e2f6cddfe9e6ac821c6060ff6576a82120a29753e1"
#define OV_INST    "sha256:aedbd91931b1b6cb6cb500d50770495f5baa13b01d50947b76a49b4fdf31f8e6"
#define OV_MIDDIFF "65daafa5ba3baa6a975f0c2824b6dec3c7dc571e1e9a7a7ac079607741deba18"
#define OV_CONT    "overlay-containers/containers.json"
#define OV_IMGS    "overlay-images/images.json"
#define OV_LAYS    "overlay-layers/layers.json"
#define OV_MANI    "overlay-images/" OV_IMAGE "/manifest"
#define OV_CONF                                                                           \
	"overlay-images/" OV_IMAGE "/=c2hhMjU2OjZmNzY1Zjc2MjU3YWY3NTZmZmI2ODlkNTYyODM1YW" \
	"Q5YzBlNWY4NTkzOGU3NWJiYzM2NDc5NTc3ODZmZDBmZDA="
#define OV_LISTF                                                                          \
	"overlay-images/" OV_IMAGE "/=bWFuaWZlc3Qtc2hhMjU2OmViZTZjMDAyMTJiYTIyYjFmYmQ2Nj" \
	"VlMmY2Y2RkZmU5ZTZhYzgyMWM2MDYwZmY2NTc2YTgyMTIwYTI5NzUzZTE="
#define OV_MERGED "overlay/" OV_RW "/merged"

/* podman 4.3.1, vfs, `run --uidmap`: the container lies on a mapped copy of the top layer */
#define VFS_ID     "646f1ea829e14fb4cb41a0aef59d3857060daaee5bd640e42a436df212ebd445"
#define VFS_IMAGE  "3a456c98b01202dfe925bc2a34069f834cf2f3b1dedd0a8caaff8daea10899b9"
#define VFS_RW     "be2d292af8615f2ab4d57186b2060078a281c47d842d7d0aafb95aac1d685b7c"
#define VFS_MAPPED "f7ab58e6195397c63eb8ee1c5bd8bd3814f128380c5970e46625b4edc58862bf"
#define VFS_DIGEST "sha256:459d3ae6598398db3c8c8ec169ce9bcc596eadaf4cf09585c386175ab511dbd2"
#define VFS_OTHER  "94acbbb4f0353a818b7c5d1fc57325a4124da0f96e21359d28fcb4375b1e1492"

/* docker 20.10.24, overlay2, three layers */
#define DK_ID     "dfdd88b3b00a4b7a09a335d042cd6cffb12019e0d706c01cde1254459e270617"
#define DK_IMAGE  "e1d439092fe60a4f5f996ccca09157d46dfcf2850b3c2edd5f50a92c3c3c3ded"
#define DK_MOUNT  "b5cc91967d23a88754e4c1b0e87b2755547d8b5a535d5f0bc7930a8f22ec862a"
#define DK_TOP    "6c722c89335a3d8407082d2880913f44c0542e0271930e6b112b8adbe17ec38d"
#define DK_MID    "18d047ad3bdaaea49339d3a762d8e642cb41a4f91133267869967cc4ce50dfb0"
#define DK_LOW    "ad60ac16280ef0b144c3842e7f6214228f05f78e721f2816bc2543a38f808853"
#define DK_CACHE  "3f2c16ab86d4e0f162104a9d6e92e0620300640617a5d664ffdf0a894a8e4c0f"
#define DK_DB     "image/overlay2/layerdb/"
#define DK_CONF   "containers/" DK_ID "/config.v2.json"
#define DK_HOST   "containers/" DK_ID "/hostconfig.json"
#define DK_BLOB   "image/overlay2/imagedb/content/sha256/" DK_IMAGE
#define DK_MOUNTS DK_DB "mounts/" DK_ID
#define DK_MERGED "overlay2/" DK_MOUNT "/merged"

#define ZERO      "0000000000000000000000000000000000000000000000000000000000000000"

enum kind { OV, VFS, DK, KINDS };

static const struct {
	const char *fixture, *driver, *id, *root;
} kinds[KINDS] = {
	[OV] = { "podman-overlay", "overlay", OV_ID, OV_MERGED },
	[VFS] = { "podman-vfs", "vfs", VFS_ID, "vfs/dir/" VFS_RW },
	[DK] = { "docker", NULL, DK_ID, DK_MERGED },
};

/* What oci_identify() is asked; a test changes some of it. */
static struct aqe_arena *arena;
static char *top;   /* temporary directory */
static char *store; /* graphroot or data root */
static const char *bundle, *pid_file, *id, *root_path;
static struct oci_identity found;
static struct aqe_err err;

static const char *fmt(const char *f, ...) AQE_PRINTF(1, 2);
static const char *fmt(const char *f, ...)
{
	char text[2048];
	va_list ap;
	char *s;

	va_start(ap, f);
	(void)vsnprintf(text, sizeof(text), f, ap);
	va_end(ap);
	s = aqe_arena_dup(arena, text);
	ck_assert_ptr_nonnull(s);
	return s;
}

static void read_file(const char *path, struct aqe_buf *b)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	aqe_buf_clear(b);
	ck_assert_int_eq(aqe_fs_read_fd(fd, b, &err), 0);
}

static void write_file(const char *path, const char *text, size_t len)
{
	AQE_AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(aqe_fs_write_all(fd, text, len, &err), 0);
}

static void make_dirs(const char *path)
{
	char *copy = aqe_arena_dup(arena, path);

	for (char *s = strchr(copy + 1, '/'); s; s = strchr(s + 1, '/')) {
		*s = 0;
		ck_assert(mkdir(copy, 0700) == 0 || errno == EEXIST);
		*s = '/';
	}
	ck_assert(mkdir(copy, 0700) == 0 || errno == EEXIST);
}

static const char *fixture; /* for copy_one() */

static int copy_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	const char *to = fmt("%s%s", store, path + strlen(fixture));

	(void)st;
	(void)ftw;
	if (type == FTW_D) {
		make_dirs(to);
		return 0;
	}
	read_file(path, &b);
	write_file(to, aqe_buf_str(&b), b.len);
	return 0;
}

/* Copies a store and sets up the question about its container. */
static void use_store(enum kind k)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	char *line, *rest;

	fixture = fmt("tests/fixtures/stores/%s", kinds[k].fixture);
	ck_assert_int_eq(nftw(fixture, copy_one, 8, FTW_PHYS), 0);
	read_file(fmt("%s/dirs", fixture), &b);
	rest = b.p;
	while ((line = strsep(&rest, "\n")) && *line)
		make_dirs(fmt("%s/%s", store, line));
	id = kinds[k].id;
	root_path = fmt("%s/%s", store, kinds[k].root);
	if (k == DK) {
		bundle = fmt("/run/docker/io.containerd.runtime.v2.task/moby/%s", id);
		pid_file = fmt("%s/init.pid", bundle);
		return;
	}
	bundle = fmt("%s/%s-containers/%s/userdata", store, kinds[k].driver, id);
	pid_file = fmt("%s/run/%s-containers/%s/userdata", top, kinds[k].driver, id);
	make_dirs(pid_file);
	pid_file = fmt("%s/pidfile", pid_file);
}

static void setup(void)
{
	char name[] = "/tmp/aqe-oci-XXXXXX";

	arena = aqe_arena_new(ARENA_MAX);
	ck_assert_ptr_nonnull(arena);
	ck_assert_ptr_nonnull(mkdtemp(name));
	top = aqe_arena_dup(arena, name);
	store = aqe_arena_fmt(arena, "%s/store", top);
	make_dirs(store);
	(void)umask(022);
}

static void teardown(void)
{
	AQE_AUTO_FD int fd = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_msg(aqe_fs_remove_tree(fd, top + strlen("/tmp/"), &err) == 0, "%s", err.text);
	aqe_arena_free(arena);
}

static int identify_into(struct aqe_arena *a)
{
	struct aqe_json *config = aqe_json_new_object(arena);
	struct aqe_json *root = aqe_json_new_object(arena);
	struct oci_identity_in in = { bundle, pid_file, id, config };

	if (root_path)
		ck_assert_int_eq(aqe_json_set(arena, root, "path",
					      aqe_json_new_str(arena, root_path)),
				 0);
	ck_assert_int_eq(aqe_json_set(arena, config, "root", root), 0);
	return oci_identify(a, &in, &found, &err);
}

static void identify(void)
{
	ck_assert_msg(identify_into(arena) == 0, "%s", err.text);
	ck_assert(found.known == (found.why_unknown == NULL));
	ck_assert(found.known == (found.image_id[0] != 0));
}

static void assert_known(const char *image)
{
	identify();
	ck_assert_msg(found.known, "%s", found.why_unknown);
	ck_assert_str_eq(found.image_id, fmt("sha256:%s", image));
}

static void assert_unknown(const char *why)
{
	identify();
	ck_assert_msg(!found.known, "accepted; expected: %s", why);
	ck_assert_msg(strstr(found.why_unknown, why) != NULL, "'%s' does not say '%s'",
		      found.why_unknown, why);
}

/* ---- one change to a store ---- */

enum op {
	SUB,     /* text a of the file becomes b */
	DEL,     /* file or directory is gone */
	LINK,    /* symbolic link to the same content */
	HARD,    /* a second name */
	MODE,    /* group may write */
	WRITE,   /* content a */
	ROOT,    /* root.path is a below the store; the directory exists */
	ABSROOT, /* root.path is a */
};

static void substitute(const char *path, const char *from, const char *to)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(FILE_MAX);
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(FILE_MAX);
	const char *at;

	read_file(path, &b);
	at = strstr(aqe_buf_str(&b), from);
	ck_assert_msg(at != NULL, "%s has no %s", path, from);
	(void)aqe_buf_add(&out, b.p, (size_t)(at - b.p));
	(void)aqe_buf_puts(&out, to);
	(void)aqe_buf_puts(&out, at + strlen(from));
	write_file(path, aqe_buf_str(&out), out.len);
}

static void change(enum op op, const char *rel, const char *a, const char *b)
{
	const char *path = fmt("%s/%s", store, rel ? rel : "");
	const char *other = fmt("%s/other", top);

	switch (op) {
	case SUB:
		substitute(path, a, b);
		break;
	case DEL:
		ck_assert(unlink(path) == 0 || rmdir(path) == 0);
		break;
	case LINK:
		ck_assert_int_eq(rename(path, other), 0);
		ck_assert_int_eq(symlink(other, path), 0);
		break;
	case HARD:
		ck_assert_int_eq(link(path, other), 0);
		break;
	case MODE:
		ck_assert_int_eq(chmod(path, 0770), 0);
		break;
	case WRITE:
		write_file(path, a, strlen(a));
		break;
	case ROOT:
		root_path = fmt("%s/%s", store, a);
		make_dirs(root_path);
		break;
	case ABSROOT:
		root_path = a;
		break;
	}
}

static const struct {
	enum kind kind;
	enum op op;
	const char *file, *a, *b;
	const char *why; /* NULL: still known */
} changes[] = {
	/* podman, the container */
	{ OV, DEL, OV_CONT, 0, 0, OV_CONT "' has no container " OV_ID },
	{ OV, SUB, OV_CONT, OV_ID, ZERO, OV_CONT "' has no container " OV_ID },
	{ OV, SUB, OV_CONT, "\"image\":\"" OV_IMAGE, "\"image\":\"",
	  "without an image (--rootfs)" },
	{ OV, SUB, OV_CONT, "\"image\":", "\"imago\":", "without an image (--rootfs)" },
	{ OV, SUB, OV_CONT, "\"image\":\"", "\"image\":\"../", "no valid image and layer" },
	{ OV, SUB, OV_CONT, "\"layer\":\"3", "\"layer\":\"X", "no valid image and layer" },
	{ OV, SUB, OV_CONT, "\"image\":\"" OV_IMAGE, "\"image\":\"" VFS_IMAGE,
	  OV_IMGS "' has no image " VFS_IMAGE },
	{ OV, SUB, OV_CONT, "\"layer\":\"" OV_RW, "\"layer\":\"" OV_TOP, "root.path is '" },
	{ OV, SUB, OV_CONT, "[{", "[{{", OV_CONT "': is no list of objects (at byte" },
	{ OV, SUB, OV_CONT, "\"names\":[\"", "\"names\":[x\"", OV_CONT "', line 1 column" },
	{ OV, LINK, OV_CONT, 0, 0, OV_CONT "': " },
	{ OV, HARD, OV_CONT, 0, 0, "it has not exactly one name" },
	{ OV, MODE, OV_CONT, 0, 0, "its group or others may write to it" },
	{ OV, SUB, OV_CONT, "\"metadata\":\"{", "\"metadata\":\"", NULL },
	/* podman, root.path */
	{ OV, MODE, NULL, 0, 0, "its group or others may write to it" },
	{ OV, DEL, OV_MERGED, 0, 0, OV_MERGED "' does not exist" },
	{ OV, LINK, OV_MERGED, 0, 0, OV_MERGED "': " },
	{ OV, ROOT, NULL, "overlay/" OV_TOP "/merged", 0, "root.path is '" },
	{ OV, ROOT, NULL, "overlay/" OV_RW "/diff", 0, "root.path is '" },
	{ OV, ROOT, NULL, "other/" OV_MERGED, 0, "/other/" OV_MERGED "', the store says '" },
	{ OV, ABSROOT, NULL, "rootfs", 0, "root.path is 'rootfs', the store says '" },
	{ OV, ABSROOT, NULL, "/", 0, "root.path is '/', the store says '" },
	{ OV, ABSROOT, NULL, "/" OV_MERGED, 0, "root.path is '/overlay/" },
	{ OV, ABSROOT, NULL, "/proc/self/root/" OV_MERGED, 0, "'/proc/self/root'" },
	{ OV, ABSROOT, NULL, NULL, 0, "root.path is '', the store says '" },
	/* podman, the image */
	{ OV, DEL, OV_IMGS, 0, 0, OV_IMGS "' does not exist" },
	{ OV, SUB, OV_IMGS, "{\"id\":\"6", "{\"id\":\"7", OV_IMGS "' has no image " OV_IMAGE },
	{ OV, LINK, OV_IMGS, 0, 0, OV_IMGS "': " },
	{ OV, SUB, OV_IMGS, "\"big-data-names\":", "\"x\":", "lists no files of image " OV_IMAGE },
	{ OV, SUB, OV_IMGS, "\"layer\":\"" OV_TOP, "\"layer\":\"" OV_MID,
	  "container layer " OV_RW " lies on layer '" OV_TOP "', not on image " OV_IMAGE },
	{ OV, SUB, OV_IMGS, "\"manifest\":\"" OV_INST, "\"manifest\":\"" OV_LIST,
	  OV_MANI "' hashes to " OV_INST ", not to " OV_LIST },
	{ OV, DEL, OV_CONF, 0, 0, OV_CONF "' does not exist" },
	{ OV, SUB, OV_CONF, "linux", "linuy", ", not to sha256:" OV_IMAGE },
	{ OV, LINK, OV_CONF, 0, 0, OV_CONF "': " },
	{ OV, DEL, OV_MANI, 0, 0, OV_MANI "' does not exist" },
	{ OV, SUB, OV_MANI, "\"schemaVersion\":2", "\"schemaVersion\":3",
	  OV_MANI "' hashes to sha256:" },
	{ OV, SUB, OV_LISTF, "amd64", "arm64", OV_LISTF "' hashes to sha256:" },
	{ OV, DEL, OV_LISTF, 0, 0, OV_LISTF "' does not exist" },
	/* podman, the layers */
	{ OV, DEL, OV_LAYS, 0, 0, OV_LAYS "' does not exist" },
	{ OV, LINK, OV_LAYS, 0, 0, OV_LAYS "': " },
	{ OV, SUB, OV_LAYS, "{\"id\":\"" OV_RW, "{\"id\":\"" ZERO, "has no layer " OV_RW },
	{ OV, SUB, OV_LAYS, "{\"id\":\"" OV_MID, "{\"id\":\"" ZERO, "has no layer " OV_MID },
	{ OV, SUB, OV_LAYS, "\"parent\":\"" OV_TOP, "\"parent\":\"" OV_MID,
	  "container layer " OV_RW " lies on layer '" OV_MID },
	{ OV, SUB, OV_LAYS, "\"parent\":\"" OV_TOP "\",", "",
	  "container layer " OV_RW " lies on layer ''" },
	{ OV, SUB, OV_LAYS, "\"diff-digest\":\"sha256:" OV_MIDDIFF,
	  "\"diff-digest\":\"sha256:" ZERO,
	  "layer " OV_MID " has content sha256:" ZERO ", image " OV_IMAGE
	  " wants sha256:" OV_MIDDIFF },
	{ OV, SUB, OV_LAYS, "\"diff-digest\":\"sha256:" OV_MIDDIFF "\",", "",
	  "layer " OV_MID " has content of unknown digest" },
	{ OV, SUB, OV_LAYS, "\"parent\":\"" OV_LOW "\",", "",
	  "image " OV_IMAGE " has 3 layers, the store has fewer" },
	{ OV, SUB, OV_LAYS, "{\"id\":\"" OV_LOW "\",",
	  "{\"id\":\"" OV_LOW "\",\"parent\":\"" OV_TOP "\",",
	  "image " OV_IMAGE " has 3 layers, the store has more" },
	/* podman, vfs and mapped layers */
	{ VFS, SUB, "vfs-images/images.json", "\"mapped-layers\":[\"" VFS_MAPPED,
	  "\"mapped-layers\":[\"" ZERO, "container layer " VFS_RW " lies on layer '" VFS_MAPPED },
	{ VFS, SUB, "vfs-containers/containers.json", "\"image\":\"" VFS_IMAGE,
	  "\"image\":\"" VFS_OTHER, "' does not exist" },
	{ VFS, ROOT, NULL, "overlay/" VFS_RW "/merged", 0, "root.path is '" },
	{ VFS, ROOT, NULL, "vfs/dir/" VFS_MAPPED, 0, "root.path is '" },
	/* docker, root.path */
	{ DK, ABSROOT, NULL, "rootfs", 0, "root.path 'rootfs' is not <data-root>/overlay2/" },
	{ DK, ABSROOT, NULL, "/" DK_MERGED, 0, "is not <data-root>/overlay2/<id>/merged" },
	{ DK, ROOT, NULL, "overlay2/" DK_MOUNT "/diff", 0, "is not <data-root>/overlay2/" },
	{ DK, ROOT, NULL, "overlay2/x/merged", 0, "is not <data-root>/overlay2/<id>/merged" },
	{ DK, ROOT, NULL, "vfs/dir/" DK_MOUNT, 0, "is not <data-root>/overlay2/<id>/merged" },
	{ DK, ROOT, NULL, "rootfs/overlayfs/" DK_ID, 0, "is not <data-root>/overlay2/" },
	{ DK, ROOT, NULL, "overlay2/" DK_CACHE "/merged", 0,
	  DK_MOUNTS "/mount-id' says '" DK_MOUNT "', expected '" DK_CACHE "'" },
	{ DK, ROOT, NULL, "other/" DK_MERGED, 0, DK_HOST "' does not exist" },
	{ DK, DEL, DK_MERGED, 0, 0, DK_MERGED "' does not exist" },
	{ DK, LINK, DK_MERGED, 0, 0, DK_MERGED "': " },
	{ DK, MODE, NULL, 0, 0, "its group or others may write to it" },
	/* docker, the container */
	{ DK, DEL, DK_HOST, 0, 0, DK_HOST "' does not exist" },
	{ DK, SUB, DK_HOST, "\"Privileged\":false", "\"Privileged\":0", DK_HOST "', line 1" },
	{ DK, SUB, DK_HOST, "\"NetworkMode\":\"none\"", "\"NetworkMode\":null",
	  DK_HOST "', line 1" },
	{ DK, LINK, DK_HOST, 0, 0, DK_HOST "': " },
	{ DK, DEL, DK_CONF, 0, 0, DK_CONF "' does not exist" },
	{ DK, LINK, DK_CONF, 0, 0, DK_CONF "': " },
	{ DK, MODE, DK_CONF, 0, 0, "its group or others may write to it" },
	{ DK, SUB, DK_CONF, "\"ID\":\"" DK_ID, "\"ID\":\"" ZERO,
	  DK_CONF "' is of container '" ZERO "'" },
	{ DK, SUB, DK_CONF, "\"Driver\":\"overlay2\"", "\"Driver\":\"vfs\"",
	  DK_CONF "' names graph driver 'vfs', not overlay2" },
	{ DK, SUB, DK_CONF, "\"Image\":\"sha256:" DK_IMAGE, "\"Image\":\"sha256:" ZERO,
	  "imagedb/content/sha256/" ZERO "' does not exist" },
	{ DK, SUB, DK_CONF, "\"Image\":\"sha256:", "\"Image\":\"sha256:../", "names no image id" },
	{ DK, SUB, DK_CONF, "\"Labels\":{", "\"Labels\":null,\"x\":{", NULL },
	/* docker, the image */
	{ DK, DEL, DK_BLOB, 0, 0, DK_BLOB "' does not exist" },
	{ DK, LINK, DK_BLOB, 0, 0, DK_BLOB "': " },
	{ DK, SUB, DK_BLOB, "linux", "linuy", DK_BLOB "' hashes to sha256:" },
	/* docker, the layers */
	{ DK, SUB, DK_MOUNTS "/mount-id", DK_MOUNT, ZERO,
	  DK_MOUNTS "/mount-id' says '" ZERO "', expected '" DK_MOUNT "'" },
	{ DK, WRITE, DK_MOUNTS "/mount-id", DK_MOUNT "\n", 0,
	  DK_MOUNTS "/mount-id' says '" DK_MOUNT "?', expected" },
	{ DK, DEL, DK_MOUNTS "/mount-id", 0, 0, DK_MOUNTS "/mount-id' does not exist" },
	{ DK, SUB, DK_MOUNTS "/parent", DK_TOP, DK_MID,
	  DK_MOUNTS "/parent' says 'sha256:" DK_MID "', expected 'sha256:" DK_TOP "'" },
	{ DK, DEL, DK_MOUNTS "/parent", 0, 0, DK_MOUNTS "/parent' does not exist" },
	{ DK, LINK, DK_MOUNTS "/parent", 0, 0, DK_MOUNTS "/parent': " },
	{ DK, WRITE, DK_DB "sha256/" DK_MID "/diff", "sha256:" ZERO, 0,
	  DK_DB "sha256/" DK_MID "/diff' says 'sha256:" ZERO "'" },
	{ DK, DEL, DK_DB "sha256/" DK_MID "/diff", 0, 0,
	  DK_DB "sha256/" DK_MID "/diff' does not exist" },
	{ DK, WRITE, DK_DB "sha256/" DK_TOP "/parent", "sha256:" DK_LOW, 0,
	  DK_DB "sha256/" DK_TOP "/parent' says 'sha256:" DK_LOW "'" },
	{ DK, WRITE, DK_DB "sha256/" DK_LOW "/parent", "sha256:" DK_TOP, 0,
	  DK_DB "sha256/" DK_LOW "/parent' says 'sha256:" DK_TOP "', expected 'no such file'" },
	{ DK, WRITE, DK_DB "sha256/" DK_TOP "/cache-id", "../x", 0, "names no layer directory" },
	{ DK, WRITE, DK_DB "sha256/" DK_TOP "/cache-id", ZERO, 0,
	  "overlay2/" ZERO "' does not exist" },
	{ DK, WRITE, DK_DB "sha256/" DK_TOP "/cache-id", ZERO ZERO ZERO, 0,
	  "is larger than 128 bytes" },
	{ DK, LINK, "overlay2/" DK_CACHE, 0, 0, "overlay2/" DK_CACHE "': " },
};

START_TEST(identify__refuses_a_changed_store)
{
	use_store(changes[_i].kind);
	change(changes[_i].op, changes[_i].file, changes[_i].a, changes[_i].b);
	if (!changes[_i].why) {
		identify();
		ck_assert_msg(found.known, "%s", found.why_unknown);
		return;
	}
	assert_unknown(changes[_i].why);
	ck_assert_int_eq(found.engine,
			 changes[_i].kind == DK ? OCI_ENGINE_DOCKER : OCI_ENGINE_PODMAN);
}
END_TEST

/* ---- stores as the engines leave them ---- */

START_TEST(identify__podman_overlay)
{
	use_store(OV);
	assert_known(OV_IMAGE);
	ck_assert_int_eq(found.engine, OCI_ENGINE_PODMAN);
	ck_assert_str_eq(found.name, "localhost/agent:latest");
	ck_assert_uint_eq(found.n_digests, 2); /* the list's and the instance's, each once */
	ck_assert_str_eq(found.digests[0], OV_LIST);
	ck_assert_str_eq(found.digests[1], OV_INST);
	ck_assert_uint_eq(found.n_dirs, 2);
	ck_assert_str_eq(found.dirs[0], bundle);
	ck_assert_str_eq(found.dirs[1], fmt("%s/run/overlay-containers/%s/userdata", top, OV_ID));
	ck_assert(!found.asked_privileged && !found.asked_network && !found.label_agent_type);
}
END_TEST

START_TEST(identify__podman_vfs_with_mapped_layers)
{
	use_store(VFS);
	assert_known(VFS_IMAGE);
	ck_assert_str_eq(found.name, "localhost/multi:1");
	ck_assert_uint_eq(found.n_digests, 1);
	ck_assert_str_eq(found.digests[0], VFS_DIGEST);
}
END_TEST

START_TEST(identify__docker)
{
	use_store(DK);
	assert_known(DK_IMAGE);
	ck_assert_int_eq(found.engine, OCI_ENGINE_DOCKER);
	ck_assert_str_eq(found.name, "multi:1");
	ck_assert_uint_eq(found.n_digests, 0);
	ck_assert_uint_eq(found.n_dirs, 1);
	ck_assert_str_eq(found.dirs[0], fmt("%s/containers/%s", store, DK_ID));
	ck_assert(!found.asked_privileged);
	ck_assert_str_eq(found.asked_network, "none");
	ck_assert_str_eq(found.label_agent_type, "tester");
	ck_assert_str_eq(found.label_agent_id, "a-1");
}
END_TEST

START_TEST(identify__docker_says_what_was_asked_for)
{
	use_store(DK);
	change(SUB, DK_HOST, "\"Privileged\":false", "\"Privileged\":true");
	change(SUB, DK_HOST, "\"NetworkMode\":\"none\"", "\"NetworkMode\":\"container:x\"");
	change(DEL, DK_BLOB, NULL, NULL);
	assert_unknown("does not exist"); /* and yet: */
	ck_assert(found.asked_privileged);
	ck_assert_str_eq(found.asked_network, "container:x");
	ck_assert_uint_eq(found.n_dirs, 1);
}
END_TEST

START_TEST(identify__store_by_another_name)
{
	const char *name = fmt("%s/name", top);

	ck_assert_int_eq(symlink(store, name), 0);
	use_store(OV);
	root_path = fmt("%s/" OV_MERGED, name);
	assert_known(OV_IMAGE);
	use_store(DK);
	root_path = fmt("%s/" DK_MERGED, name);
	assert_known(DK_IMAGE);
	ck_assert_str_eq(found.dirs[0], fmt("%s/containers/%s", store, DK_ID));
}
END_TEST

static void move(const char *from, const char *to)
{
	ck_assert_msg(rename(from, to) == 0, "%s: %s", to, strerror(errno));
}

/* containers/storage >= 1.45 keeps containers made with --rm apart. */
START_TEST(identify__podman_volatile_store)
{
	use_store(OV);
	move(fmt("%s/" OV_CONT, store),
	     fmt("%s/overlay-containers/volatile-containers.json", store));
	move(fmt("%s/" OV_LAYS, store), fmt("%s/overlay-layers/volatile-layers.json", store));
	change(WRITE, OV_CONT, "null", NULL);
	change(WRITE, OV_LAYS, "[]", NULL);
	assert_known(OV_IMAGE);
}
END_TEST

START_TEST(identify__podman_transient_store)
{
	use_store(OV);
	make_dirs(fmt("%s/run/overlay-layers", top));
	move(fmt("%s/" OV_CONT, store),
	     fmt("%s/run/overlay-containers/volatile-containers.json", top));
	move(fmt("%s/" OV_LAYS, store), fmt("%s/run/overlay-layers/volatile-layers.json", top));
	change(WRITE, OV_LAYS, "[]", NULL);
	assert_known(OV_IMAGE);
	pid_file = NULL; /* nothing names the runroot */
	assert_unknown("has no container " OV_ID);
	ck_assert_uint_eq(found.n_dirs, 1);
}
END_TEST

/* CRI-O's bundles lie in the runroot. */
START_TEST(identify__bundle_in_the_runroot)
{
	use_store(OV);
	bundle = fmt("%s/run/overlay-containers/%s/userdata", top, OV_ID);
	assert_known(OV_IMAGE);
	ck_assert_uint_eq(found.n_dirs, 1);
	ck_assert_str_eq(found.dirs[0], bundle);
}
END_TEST

START_TEST(identify__pid_file_elsewhere)
{
	static const char *const files[] = { "pidfile", "/pidfile", "/tmp/pidfile",
					     "/nowhere/overlay-containers/" OV_ID
					     "/userdata/pidfile" };

	use_store(OV);
	for (size_t i = 0; i < AQE_COUNT(files); i++) {
		pid_file = files[i];
		assert_known(OV_IMAGE);
		ck_assert_uint_eq(found.n_dirs, 1);
	}
}
END_TEST

/* ---- manifests ---- */

/* Replaces the manifest, with its right digest. */
static void put_manifest(const char *text)
{
	char digest[AQE_DIGEST_TEXT];

	aqe_sha256_text(text, strlen(text), digest);
	change(WRITE, OV_MANI, text, NULL);
	change(SUB, OV_IMGS, "\"manifest\":\"" OV_INST, fmt("\"manifest\":\"%s", digest));
}

START_TEST(identify__manifest_of_another_image)
{
	use_store(OV);
	put_manifest("{\"config\":{\"digest\":\"sha256:" VFS_IMAGE "\"}}");
	assert_unknown(OV_MANI "' is the manifest of another image, sha256:" VFS_IMAGE);
}
END_TEST

START_TEST(identify__manifest_with_two_meanings)
{
	use_store(OV);
	put_manifest("{\"config\":{\"digest\":\"sha256:" OV_IMAGE "\"},\"manifests\":[]}");
	assert_unknown("is a manifest and a list at once");
}
END_TEST

START_TEST(identify__list_without_the_image_is_no_digest_of_it)
{
	use_store(OV);
	put_manifest("{\"manifests\":[{\"digest\":\"sha256:" ZERO "\"},7,{}]}");
	assert_known(OV_IMAGE);
	ck_assert_uint_eq(found.n_digests, 2);
}
END_TEST

/* ---- engines ---- */

static const struct {
	const char *bundle, *id;
	enum oci_engine engine;
	const char *name, *why;
} engines[] = {
	{ "/var/tmp/buildah123", "buildah-buildah123", OCI_ENGINE_BUILDAH, "buildah",
	  "buildah names no image" },
	{ "/elsewhere", "buildah-buildah123", OCI_ENGINE_BUILDAH, "buildah",
	  "buildah names no image" },
	{ "/var/tmp/buildah123", "x", OCI_ENGINE_BUILDAH, "buildah", "buildah names no image" },
	{ "/run/containerd/io.containerd.runtime.v2.task/k8s.io/abc", "abc", OCI_ENGINE_CONTAINERD,
	  "containerd", "containerd's image store is not read" },
	{ "/run/containerd/io.containerd.runtime.v2.task/mobyx/abc", "abc", OCI_ENGINE_CONTAINERD,
	  "containerd", "containerd's image store is not read" },
	{ "/run/containerd/io.containerd.runtime.v2.task/moby/abc", "abc", OCI_ENGINE_DOCKER,
	  "docker", "container id 'abc' is not one of docker's" },
	{ "/run/containerd/io.containerd.runtime.v2.task/moby/abc", "abd", OCI_ENGINE_NONE, "none",
	  "no engine made the bundle" },
	{ "/run/containerd/io.containerd.runtime.v2.task/moby/x/abc", "abc", OCI_ENGINE_NONE,
	  "none", "no engine made the bundle" },
	{ "/srv/bundle", "c1", OCI_ENGINE_NONE, "none", "no engine made the bundle '/srv/bundle'" },
	{ "/", "c1", OCI_ENGINE_NONE, "none", "no engine made the bundle" },
	{ "/nowhere/overlay-containers/c1/userdata", "c2", OCI_ENGINE_NONE, "none",
	  "no engine made the bundle" },
	{ "/overlay-containers/c1/userdata", "c1", OCI_ENGINE_NONE, "none",
	  "no engine made the bundle" },
	{ "/nowhere/-containers/c1/userdata", "c1", OCI_ENGINE_NONE, "none",
	  "no engine made the bundle" },
	{ "/nowhere/zfs-containers/c1/userdata", "c1", OCI_ENGINE_PODMAN, "podman",
	  "storage driver 'zfs' is not supported" },
	{ "/nowhere/vfs-containers/c1/userdata", "c1", OCI_ENGINE_PODMAN, "podman",
	  "directory '/nowhere' cannot be opened (ENOENT)" },
};

START_TEST(identify__knows_engines_by_their_bundles)
{
	bundle = engines[_i].bundle;
	id = engines[_i].id;
	assert_unknown(engines[_i].why);
	ck_assert_int_eq(found.engine, engines[_i].engine);
	ck_assert_str_eq(oci_engine_name(found.engine), engines[_i].name);
}
END_TEST

/* Too little room for the answer is an error, never a wrong answer. */
START_TEST(identify__reports_want_of_memory)
{
	size_t failed = 0;

	use_store((enum kind)_i);
	for (size_t max = 0;; max += 16) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(max);
		int r;

		memset(&found, 0, sizeof(found));
		r = identify_into(a);
		if (r == 0)
			break;
		ck_assert_int_eq(r, AQE_E_NOMEM);
		ck_assert_int_eq(err.code, AQE_E_NOMEM);
		ck_assert(!found.known);
		failed++;
	}
	ck_assert(found.known);
	ck_assert_uint_gt(failed, 5);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("oci_identity");
	TCase *tc = tcase_create("identify");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, identify__podman_overlay);
	tcase_add_test(tc, identify__podman_vfs_with_mapped_layers);
	tcase_add_test(tc, identify__docker);
	tcase_add_test(tc, identify__docker_says_what_was_asked_for);
	tcase_add_test(tc, identify__store_by_another_name);
	tcase_add_test(tc, identify__podman_volatile_store);
	tcase_add_test(tc, identify__podman_transient_store);
	tcase_add_test(tc, identify__bundle_in_the_runroot);
	tcase_add_test(tc, identify__pid_file_elsewhere);
	tcase_add_test(tc, identify__manifest_of_another_image);
	tcase_add_test(tc, identify__manifest_with_two_meanings);
	tcase_add_test(tc, identify__list_without_the_image_is_no_digest_of_it);
	tcase_add_loop_test(tc, identify__refuses_a_changed_store, 0, (int)AQE_COUNT(changes));
	tcase_add_loop_test(tc, identify__knows_engines_by_their_bundles, 0,
			    (int)AQE_COUNT(engines));
	tcase_add_loop_test(tc, identify__reports_want_of_memory, 0, KINDS);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
