/* SPDX-License-Identifier: MIT */
/* Unpacking is reading hostile bytes with the right to give files away. The child that does it has
 * the destination as its whole file system, no capabilities but those over files, and a limit on
 * what it may write; its word about a failure comes back through a pipe. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/sandbox/archive.h"
#include "shim/sandbox/image.h"
#include "shim/sandbox/layout.h"
#include "shim/sandbox/unpack.h"

#define ARENA_MAX ((size_t)64 << 20)
#define INNER     "archive" /* files of an archive, while they are needed */
#define FILE_MAX  (16ULL << 30)

struct job {
	int source_fd, into_fd;
	const char *tag;
};

/* ---- in the child ---- */

static int give_up_privileges(int into_fd, struct aqe_err *e)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { 0, 0, 0 }, { 0, 0, 0 } };
	const unsigned keep =
		1U << CAP_CHOWN | 1U << CAP_FOWNER | 1U << CAP_DAC_OVERRIDE | 1U << CAP_FSETID;
	struct rlimit file = { FILE_MAX, FILE_MAX }, core = { 0, 0 };

	if (fchdir(into_fd) < 0 || (geteuid() == 0 && chroot(".") < 0))
		return aqe_err_set(e, AQE_E_SYS, errno, "enter the store");
	data[0].effective = data[0].permitted = keep;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || setrlimit(RLIMIT_FSIZE, &file) < 0 ||
	    setrlimit(RLIMIT_CORE, &core) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "give up privileges");
	if (geteuid() == 0 && syscall(SYS_capset, &head, data) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "give up capabilities");
	return 0;
}

/* An archive's files become a layout's folder. */
static int open_layout(const struct job *j, int *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int inner = -1;
	struct shim_unpack u = { .root_fd = -1 };
	struct stat st;
	int rc;

	if (fstat(j->source_fd, &st) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "stat the image");
	if (S_ISDIR(st.st_mode)) {
		*ret = fcntl(j->source_fd, F_DUPFD_CLOEXEC, 0);
		return *ret < 0 ? aqe_err_set(e, AQE_E_SYS, errno, "duplicate") : 0;
	}
	rc = aqe_fs_ensure_dir(j->into_fd, INNER, 0700, &inner, e);
	if (rc < 0)
		return rc;
	u.root_fd = inner;
	rc = shim_unpack_files(&u, j->source_fd, e);
	if (rc == 0)
		*ret = AQE_TAKE_FD(inner);
	return rc;
}

static int check_digest(int fd, const char *want, const char *what, struct aqe_err *e)
{
	char found[AQE_DIGEST_TEXT];
	int rc;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "rewind");
	rc = aqe_sha256_fd(fd, FILE_MAX, found, e);
	if (rc == 0 && !aqe_str_eq(found, want))
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "image: %s has digest %s, wanted %s", what,
				 found, want);
	return rc;
}

/* Decompressed once into an unnamed file: its hash is what the image's id vouches for. */
static int unpack_layer(const struct job *j, int layout_fd, const struct shim_layer *layer,
			struct shim_unpack *u, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	AQE_AUTO_FD int plain = -1;
	int rc = shim_layout_open(layout_fd, layer->path, &fd, e);

	if (rc == 0 && layer->digest)
		rc = check_digest(fd, layer->digest, "a layer", e);
	if (rc < 0)
		return rc;
	plain = openat(j->into_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (plain < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make a temporary file");
	rc = shim_archive_inflate(fd, FILE_MAX, plain, e);
	if (rc == 0)
		rc = check_digest(plain, layer->diff_id, "the content of a layer", e);
	return rc < 0 ? rc : shim_unpack_layer(u, plain, e);
}

/* Where a runtime mounts: made here, so that it never has to write to a shared root. */
static int make_mount_points(int root, struct aqe_err *e)
{
	static const char *const NAMES[] = { "dev", "proc", "run", "sys", "tmp" };

	for (size_t i = 0; i < AQE_COUNT(NAMES); i++) {
		if (mkdirat(root, NAMES[i], 0755) < 0 && errno == EEXIST)
			continue; /* the image's own */
		if (fchownat(root, NAMES[i], SHIM_ID_SHIFT, SHIM_ID_SHIFT, 0) < 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "make '/%s'", NAMES[i]);
	}
	return 0;
}

static int unpack_all(const struct job *j, struct aqe_arena *a, struct aqe_err *e)
{
	AQE_AUTO_FD int layout_fd = -1;
	AQE_AUTO_FD int root = -1;
	struct shim_unpack u = { .id_shift = SHIM_ID_SHIFT, .id_size = SHIM_ID_SIZE };
	struct shim_layout l;
	int rc = open_layout(j, &layout_fd, e);

	if (rc == 0)
		rc = shim_layout_read(a, layout_fd, j->tag, &l, e);
	if (rc == 0)
		rc = aqe_fs_ensure_dir(j->into_fd, "rootfs", 0755, &root, e);
	if (rc < 0)
		return rc;
	u.root_fd = root;
	if (fchown(root, SHIM_ID_SHIFT, SHIM_ID_SHIFT) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "give the root away");
	for (size_t i = 0; rc == 0 && i < l.n_layers; i++)
		rc = unpack_layer(j, layout_fd, &l.layers[i], &u, e);
	if (rc == 0)
		rc = make_mount_points(root, e);
	if (rc == 0 && l.manifest)
		rc = aqe_fs_write_file(j->into_fd, "manifest.json", 0600, l.manifest,
				       l.manifest_len, e);
	if (rc == 0)
		rc = aqe_fs_remove_tree(j->into_fd, INNER, e);
	/* last: what has a config is whole */
	if (rc == 0)
		rc = aqe_fs_write_file(j->into_fd, "config.json", 0600, l.config, l.config_len, e);
	return rc;
}

static _Noreturn void child(const struct job *j, int report_fd)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	int rc = a ? give_up_privileges(j->into_fd, &e)
		   : aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory");

	if (rc == 0)
		rc = unpack_all(j, a, &e);
	aqe_arena_free(a);
	e.code = (enum aqe_code)rc;
	(void)!aqe_fs_write_all(report_fd, &e, sizeof(e), NULL); /* a short report is a failure */
	_exit(rc < 0 ? 1 : 0);
}

/* ---- in the parent ---- */

/* What the child says is data: the code must be one of ours, the text ends. */
static int read_report(int fd, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(sizeof(struct aqe_err));
	struct aqe_err got;

	if (aqe_fs_read_fd(fd, &b, NULL) < 0 || b.len != sizeof(got))
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "unpacking the image ended early");
	memcpy(&got, b.p, sizeof(got));
	got.text[AQE_ERR_TEXT_MAX - 1] = '\0';
	if (got.code == AQE_OK)
		return 0;
	if (got.code > AQE_OK || got.code < AQE_E_INTERNAL)
		got.code = AQE_E_INTERNAL;
	return aqe_err_set(e, got.code, 0, "%s", got.text);
}

int shim_image_unpack(int source_fd, const char *tag, int into_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int in = -1;
	AQE_AUTO_FD int out = -1;
	struct job j = { source_fd, into_fd, tag };
	int fd[2], status = 0, rc;
	pid_t pid;

	rc = shim_archive_ready(e); /* the child sees nothing but what the image brought */
	if (rc < 0)
		return rc;
	if (pipe2(fd, O_CLOEXEC) < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "pipe");
	in = fd[0];
	out = fd[1];
	pid = fork();
	if (pid < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "fork");
	if (pid == 0)
		child(&j, out);
	aqe_cleanup_fd(&out);
	out = -1;
	rc = read_report(in, e);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (rc == 0 && status != 0)
		rc = aqe_err_set(e, AQE_E_INTERNAL, 0, "unpacking the image ended with %d", status);
	return rc;
}
