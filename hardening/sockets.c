/* SPDX-License-Identifier: MIT */
#include "hardening/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* ---- what is bound, from the kernel ---- */

#define ALIGN4(n)   (((size_t)(n) + 3U) & ~(size_t)3U) /* NLMSG_ALIGN and NLA_ALIGN, unsigned */

#define REPLY_BYTES 32768 /* sock_diag fills at most this much at a time */

static int open_diag(int *ret_fd, struct aqe_err *e)
{
	const struct {
		struct nlmsghdr head;
		struct unix_diag_req req;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.req = { .sdiag_family = AF_UNIX,
			 .udiag_states = UINT32_MAX,
			 .udiag_show = UDIAG_SHOW_VFS },
	};
	const struct timeval second = { .tv_sec = 1 };
	AQE_AUTO_FD int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open a sock_diag socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "set a time limit on sock_diag");
	if (send(fd, &ask, sizeof(ask), 0) != (ssize_t)sizeof(ask))
		return aqe_err_set(e, AQE_E_SYS, errno, "ask sock_diag for sockets");
	*ret_fd = AQE_TAKE_FD(fd);
	return 0;
}

static int append(struct hard_sockets *s, size_t *cap, uint64_t dev, uint64_t ino,
		  struct aqe_err *e)
{
	if (s->n == HARD_SOCKETS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %d bound sockets",
				   HARD_SOCKETS_MAX);
	if (s->n == *cap) {
		const size_t grown = *cap ? 2 * *cap : 64;
		struct hard_socket_id *list = realloc(s->list, grown * sizeof(*list));

		if (!list)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the list of sockets");
		s->list = list;
		*cap = grown;
	}
	s->list[s->n].dev = dev;
	s->list[s->n++].ino = ino;
	return 0;
}

/* One socket of a reply: its inode, when it is bound to a path. */
static int take_message(struct hard_sockets *s, size_t *cap, const struct nlmsghdr *head,
			struct aqe_err *e)
{
	const size_t skip = NLMSG_LENGTH(sizeof(struct unix_diag_msg));
	const char *p = (const char *)head + ALIGN4(skip);
	const char *const end = (const char *)head + head->nlmsg_len;

	while ((size_t)(end - p) >= sizeof(struct nlattr)) {
		struct nlattr attr;
		struct unix_diag_vfs vfs;

		memcpy(&attr, p, sizeof(attr));
		if (attr.nla_len < sizeof(attr) || attr.nla_len > (size_t)(end - p))
			break;
		if (attr.nla_type == UNIX_DIAG_VFS &&
		    attr.nla_len >= ALIGN4(sizeof(struct nlattr)) + sizeof(vfs)) {
			memcpy(&vfs, p + ALIGN4(sizeof(struct nlattr)), sizeof(vfs));
			/* the kernel's own dev_t: 12 bits major, 20 bits minor */
			return append(s, cap,
				      makedev(vfs.udiag_vfs_dev >> 20, vfs.udiag_vfs_dev & 0xfffff),
				      vfs.udiag_vfs_ino, e);
		}
		if (ALIGN4(attr.nla_len) >= (size_t)(end - p))
			break;
		p += ALIGN4(attr.nla_len);
	}
	return 0;
}

/* One datagram of the reply; 1 when it was the last. */
static int take_reply(struct hard_sockets *s, size_t *cap, const char *buf, size_t len,
		      struct aqe_err *e)
{
	while (len >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *head = (const struct nlmsghdr *)(const void *)buf;
		int rc = 0;

		if (head->nlmsg_len < sizeof(*head) || head->nlmsg_len > len)
			break;
		if (head->nlmsg_type == NLMSG_DONE)
			return 1;
		if (head->nlmsg_type == NLMSG_ERROR)
			return aqe_err_set(e, AQE_E_SYS, 0, "sock_diag answers with an error");
		if (head->nlmsg_len >= NLMSG_LENGTH(sizeof(struct unix_diag_msg)))
			rc = take_message(s, cap, head, e);
		if (rc < 0)
			return rc;
		if (ALIGN4(head->nlmsg_len) >= len)
			return 0;
		len -= ALIGN4(head->nlmsg_len);
		buf += ALIGN4(head->nlmsg_len);
	}
	return 0;
}

int hard_sockets_read(struct hard_sockets *ret, struct aqe_err *e)
{
	struct hard_sockets s = { NULL, 0 };
	AQE_AUTO_FREE char *buf = malloc(REPLY_BYTES);
	AQE_AUTO_FD int fd = -1;
	size_t cap = 0;
	int rc;

	if (!buf)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");
	rc = open_diag(&fd, e);
	while (rc == 0) {
		const ssize_t n = recv(fd, buf, REPLY_BYTES, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			rc = aqe_err_set(e, AQE_E_SYS, n < 0 ? errno : 0, "read from sock_diag");
		else
			rc = take_reply(&s, &cap, buf, (size_t)n, e);
	}
	if (rc < 0) {
		hard_sockets_done(&s);
		return rc;
	}
	*ret = s;
	return 0;
}

void hard_sockets_done(struct hard_sockets *s)
{
	free(s->list);
	s->list = NULL;
	s->n = 0;
}

bool hard_sockets_has(const struct hard_sockets *s, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->list[i].dev == dev && s->list[i].ino == (ino & UINT32_MAX))
			return true;
	return false;
}

/* ---- what a tree holds ---- */

struct walk {
	struct hard_scan *scan;
	DIR *dirs[HARD_SCAN_DEPTH_MAX];
	size_t len[HARD_SCAN_DEPTH_MAX]; /* of scan->path before the directory's name */
	size_t depth;                    /* open directories */
	size_t entries;
	dev_t dev;
};

/* Shortens the path to its first `len` bytes. */
static void cut(struct aqe_buf *path, size_t len)
{
	path->len = len;
	if (path->p)
		path->p[len] = '\0';
}

/* Opens `name` below `dirfd` and puts it on the stack. A directory of another file system is left
 * out: a plain bind does not show it, and for rbind the mount itself is a finding elsewhere. */
static int push(struct walk *w, int dirfd, const char *name, size_t path_len, struct aqe_err *e)
{
	struct stat st;
	AQE_AUTO_FD int fd =
		openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0; /* gone, or something else by now: not a directory to look into */
	if (fd < 0 || fstat(fd, &st) != 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "look into '%s'",
				   aqe_buf_str(w->scan->path));
	if (w->depth == 0)
		w->dev = st.st_dev;
	if (st.st_dev != w->dev)
		return 0;
	if (w->depth == w->scan->depth_max || w->depth == HARD_SCAN_DEPTH_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu levels of directories",
				   w->scan->depth_max);
	dir = fdopendir(fd);
	if (!dir)
		return aqe_err_set(e, AQE_E_SYS, errno, "look into '%s'",
				   aqe_buf_str(w->scan->path));
	(void)AQE_TAKE_FD(fd); /* the stream owns it now */
	w->len[w->depth] = path_len;
	w->dirs[w->depth++] = dir;
	return 0;
}

static void pop(struct walk *w)
{
	(void)closedir(w->dirs[--w->depth]); /* opened for reading: nothing can be lost */
	if (w->depth > 0)
		cut(w->scan->path, w->len[w->depth]);
}

/* DT_SOCK, DT_DIR, or another type; file systems that do not tell are asked. */
static unsigned char type_of(int dirfd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_REG; /* gone */
	return S_ISSOCK(st.st_mode) ? DT_SOCK : S_ISDIR(st.st_mode) ? DT_DIR : DT_REG;
}

/* One entry: 1 when it is a socket. */
static int visit(struct walk *w, const struct dirent *entry, struct aqe_err *e)
{
	DIR *const dir = w->dirs[w->depth - 1];
	struct aqe_buf *const path = w->scan->path;
	const size_t len = path->len;
	const unsigned char type = type_of(dirfd(dir), entry);
	const size_t depth = w->depth;
	struct stat st;
	int rc;

	if (type != DT_SOCK && type != DT_DIR)
		return 0;
	aqe_buf_addf(path, "%s%s", len ? "/" : "", entry->d_name);
	rc = aqe_buf_ok(path, e);
	if (rc < 0)
		return rc;
	if (type == DT_SOCK) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
			w->scan->dev = st.st_dev;
			w->scan->ino = st.st_ino;
		}
		return 1;
	}
	rc = push(w, dirfd(dir), entry->d_name, len, e);
	if (rc == 0 && w->depth == depth)
		cut(path, len); /* left out */
	return rc;
}

static int walk(struct walk *w, struct aqe_err *e)
{
	while (w->depth > 0) {
		const struct dirent *entry;
		int rc;

		errno = 0;
		/* cppcheck-suppress readdirCalled ; readdir_r(3) is deprecated, no thread shares it
		 */
		entry = readdir(w->dirs[w->depth - 1]);
		if (!entry && errno != 0)
			return aqe_err_set(e, AQE_E_SYS, errno, "look into '%s'",
					   aqe_buf_str(w->scan->path));
		if (!entry) {
			pop(w);
			continue;
		}
		if (aqe_str_eq(entry->d_name, ".") || aqe_str_eq(entry->d_name, ".."))
			continue;
		if (++w->entries > w->scan->entries_max)
			return aqe_err_set(e, AQE_E_LIMIT, 0, "more than %zu files",
					   w->scan->entries_max);
		rc = visit(w, entry, e);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int hard_sockets_scan(int dirfd, struct hard_scan *scan, struct aqe_err *e)
{
	struct walk w = { .scan = scan };
	int rc;

	aqe_buf_clear(scan->path);
	rc = push(&w, dirfd, ".", 0, e);
	if (rc == 0)
		rc = walk(&w, e);
	while (w.depth > 0)
		(void)closedir(w.dirs[--w.depth]);
	return rc;
}
