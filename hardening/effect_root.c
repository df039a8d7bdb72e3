/* SPDX-License-Identifier: MIT */
/* Looking below the root of another process. /proc/PID/root is a magic link that leads into its
 * mount namespace; from there openat2(2) keeps every lookup inside, also through links of the
 * image, and follows no magic link. Nothing is opened but as O_PATH, so no device or fifo wakes up.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hardening/effect_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define AGAIN_MAX 16 /* openat2 says EAGAIN when a rename elsewhere disturbed it */

static int open_in_root(int root, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	long fd = -1;
	int i;

	for (i = 0; i < AGAIN_MAX; i++) {
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return (int)fd;
}

static bool absent(int err)
{
	return err == ENOENT || err == ENOTDIR;
}

static int root_look(void *self, const char *path, struct hard_fx_node *ret, struct aqe_err *e)
{
	const struct hard_fx_rootdir *dir = self;
	AQE_AUTO_FD int fd = open_in_root(dir->fd, path, O_PATH | O_NOFOLLOW);
	struct statx st;

	if (fd < 0 && absent(errno))
		return 0;
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%s' in the container", path);
	if (statx(fd, "", AT_EMPTY_PATH | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_MNT_ID, &st) <
	    0)
		return aqe_err_set(e, AQE_E_SYS, errno, "statx '%s' in the container", path);
	*ret = (struct hard_fx_node){
		.mode = st.stx_mode,
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.rdev_major = st.stx_rdev_major,
		.rdev_minor = st.stx_rdev_minor,
		.mount_id = st.stx_mnt_id,
		.mount_root = (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0,
	};
	return 1;
}

/* As getdents64(2) fills it. */
struct entry {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/* Shows one buffer of entries; false when there were too many by now. */
static bool show_entries(const char *buf, long n, size_t *shown, hard_fx_entry_fn *fn, void *arg)
{
	const char *p = buf;

	while (p < buf + n) {
		const struct entry *ent = (const void *)p;

		if (++*shown > HARD_FX_ENTRIES_MAX)
			return false;
		if (!aqe_str_eq(ent->name, ".") && !aqe_str_eq(ent->name, ".."))
			fn(arg, ent->name, ent->type);
		p += ent->len;
	}
	return true;
}

/* getdents64(2) itself: fdopendir(3) would allocate 32 KiB and ask three more questions. */
static int root_list(void *self, const char *path, hard_fx_entry_fn *fn, void *arg,
		     struct aqe_err *e)
{
	const struct hard_fx_rootdir *dir = self;
	AQE_AUTO_FD int fd = open_in_root(dir->fd, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	_Alignas(struct entry) char buf[4096];
	size_t shown = 0;
	long n;

	if (fd < 0 && absent(errno))
		return 0;
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%s' in the container", path);
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0)
		if (!show_entries(buf, n, &shown, fn, arg))
			return aqe_err_set(e, AQE_E_LIMIT, 0, "'%s' has more than %d entries", path,
					   HARD_FX_ENTRIES_MAX);
	if (n < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "list '%s' in the container", path);
	return 1;
}

int hard_fx_root_open(int proc_fd, struct hard_fx_rootdir *self, struct hard_fx_root *ret,
		      struct aqe_err *e)
{
	/* plain openat: openat2's RESOLVE_NO_MAGICLINKS would refuse just this link */
	self->fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (self->fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open the root of the process");
	*ret = (struct hard_fx_root){ root_look, root_list, self };
	return 0;
}

void hard_fx_root_close(struct hard_fx_rootdir *self)
{
	if (self->fd >= 0)
		(void)close(self->fd); /* O_PATH: nothing to lose */
	self->fd = -1;
}
