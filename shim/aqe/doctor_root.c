/* SPDX-License-Identifier: MIT */
/* Clients in a root folder that others made: fixed paths, no link is followed, nothing is run. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/aqe/doctor.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define HEADER_MAX   ((size_t)64 << 10)
#define PATH_TEXT    256
#define PYTHON_FIRST 7
#define PYTHON_LAST  16
#define ANY_PYTHON   "python3.N"
#define MAJOR        "#define NODE_MAJOR_VERSION "
#define MINOR        "#define NODE_MINOR_VERSION "
#define VERSION_MAX  1000

/* A file, or a link in its place: where that leads is not asked. */
static bool is_there(int root_fd, const char *path)
{
	AQE_AUTO_FD int fd = -1;
	struct aqe_err e = AQE_ERR_INIT;
	struct stat st;

	return aqe_fs_open_beneath(root_fd, path, O_PATH | O_NOFOLLOW, 0, &fd, &e) == 0 &&
	       fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
}

static bool is_there_any(int root_fd, const char *path)
{
	const char *at = strstr(path, ANY_PYTHON);
	char text[PATH_TEXT];

	if (!at)
		return is_there(root_fd, path);
	for (int i = PYTHON_FIRST; i <= PYTHON_LAST; i++) {
		int n = snprintf(text, sizeof(text), "%.*spython3.%d%s", (int)(at - path), path, i,
				 at + strlen(ANY_PYTHON));

		if (n > 0 && (size_t)n < sizeof(text) && is_there(root_fd, text))
			return true;
	}
	return false;
}

static unsigned number_after(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	char digits[8];
	uint64_t v = 0;
	size_t n;

	if (!at)
		return 0;
	at += strlen(word);
	n = strspn(at, "0123456789");
	if (n >= sizeof(digits))
		return 0;
	memcpy(digits, at, n);
	digits[n] = '\0';
	return aqe_parse_u64(digits, VERSION_MAX, &v) ? (unsigned)v : 0;
}

/* The version of Node that its own header tells; the image may lie. */
static void node_version(int root_fd, struct shim_doctor_seen *ret)
{
	static const char *const paths[] = { "usr/local/include/node/node_version.h",
					     "usr/include/node/node_version.h" };

	for (size_t i = 0; i < AQE_COUNT(paths); i++) {
		AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(HEADER_MAX);
		struct aqe_err e = AQE_ERR_INIT;

		if (aqe_fs_read_beneath(root_fd, paths[i], AQE_FS_REGULAR, &b, &e) < 0)
			continue;
		ret->major = number_after(aqe_buf_str(&b), MAJOR);
		ret->minor = number_after(aqe_buf_str(&b), MINOR);
		return;
	}
}

void shim_doctor_look(int root_fd, const struct shim_doctor_client *c, struct shim_doctor_seen *ret)
{
	*ret = (struct shim_doctor_seen){ SHIM_DOCTOR_UNKNOWN, 0, 0 };
	if (!c->paths[0])
		return;
	ret->presence = SHIM_DOCTOR_ABSENT;
	for (size_t i = 0; i < SHIM_DOCTOR_PATHS && c->paths[i]; i++) {
		if (is_there_any(root_fd, c->paths[i]))
			ret->presence = SHIM_DOCTOR_PRESENT;
	}
	if (ret->presence == SHIM_DOCTOR_PRESENT && (c->roads & SHIM_DOCTOR_BY_NODE))
		node_version(root_fd, ret);
}
