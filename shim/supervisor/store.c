/* SPDX-License-Identifier: MIT */
#include "shim/supervisor/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"

#define RECORD_MAX   4096
#define ARENA_MAX    ((size_t)64 * 1024)
#define FAILURES_MAX 1000000
#define NAME_BYTES   (SHIM_STORE_ID_MAX + 8)
#define BOOT_TEXT    40
#define LOCK_NAME    ".lock"
#define SUFFIX       ".json"
#define SHORT_MIN    12

static const char *const HOLD_NAMES[] = {
	[SHIM_SUP_HOLD_NONE] = "none",
	[SHIM_SUP_HOLD_CRASH_LOOP] = "crash_loop",
	[SHIM_SUP_HOLD_REFUSED] = "refused",
};

bool shim_store_id_ok(const char *id)
{
	static const char ALLOWED[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_.-";
	size_t n = strlen(id);

	return n > 0 && n <= SHIM_STORE_ID_MAX && id[0] != '.' && strspn(id, ALLOWED) == n;
}

static int name_of(const char *id, char ret[NAME_BYTES], struct aqe_err *e)
{
	if (!shim_store_id_ok(id))
		return aqe_err_set(e, AQE_E_USAGE, 0, "bad id '%.140s'", id);
	(void)snprintf(ret, NAME_BYTES, "%s" SUFFIX, id);
	return AQE_OK;
}

/* Names this boot; "" when the kernel does not say, which then equals nothing. */
static void boot_id(char ret[BOOT_TEXT])
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RECORD_MAX);
	AQE_AUTO_FD int fd = -1;

	ret[0] = '\0';
	if (aqe_fs_open_nolinks("/proc/sys/kernel/random/boot_id", O_RDONLY, &fd, NULL) == 0 &&
	    aqe_fs_read_fd(fd, &b, NULL) == 0)
		(void)snprintf(ret, BOOT_TEXT, "%.*s", (int)strcspn(aqe_buf_str(&b), "\n"),
			       aqe_buf_str(&b));
}

/* ---- reading ---- */

static bool parse_hold(const char *text, enum shim_sup_hold *ret)
{
	for (size_t i = 0; i < AQE_COUNT(HOLD_NAMES); i++) {
		if (aqe_str_eq(text, HOLD_NAMES[i])) {
			*ret = (enum shim_sup_hold)i;
			return true;
		}
	}
	return false;
}

static bool parse(const struct aqe_buf *b, struct shim_sup_saved *ret)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *root = NULL;
	const char *hold = NULL, *boot = NULL;
	char now[BOOT_TEXT];
	uint64_t version = 0, failures = 0;
	bool running = false;
	int64_t ended = 0;

	if (!a ||
	    aqe_json_parse(a, aqe_buf_str(b), b->len, &AQE_JSON_LIMITS_DEFAULT, &root, NULL) < 0)
		return false;
	if (aqe_json_get_u64(root, "version", 1, &version, NULL) != 1 || version != 1 ||
	    aqe_json_get_u64(root, "failures", FAILURES_MAX, &failures, NULL) != 1 ||
	    aqe_json_get_bool(root, "running", &running, NULL) != 1 ||
	    aqe_json_get_str(root, "hold", &hold, NULL) != 1 ||
	    aqe_json_get_i64(root, "ended_ms", 0, INT64_MAX, &ended, NULL) < 0 ||
	    aqe_json_get_str(root, "boot", &boot, NULL) != 1 || !parse_hold(hold, &ret->hold))
		return false;
	boot_id(now);
	ret->failures = (uint32_t)failures;
	ret->running = running && aqe_str_eq(boot, now);
	ret->ended_ms = aqe_str_eq(boot, now) ? ended : 0;
	return true;
}

int shim_store_load(int dirfd, const char *id, struct shim_sup_saved *ret, bool *ret_damaged,
		    struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RECORD_MAX);
	struct shim_sup_saved s = { 0, SHIM_SUP_HOLD_NONE, false, 0 };
	char name[NAME_BYTES];
	bool damaged = false;
	int rc = name_of(id, name, e);

	if (rc < 0)
		return rc;
	rc = aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, &b, NULL);
	if (rc != AQE_E_ABSENT && (rc < 0 || !parse(&b, &s))) {
		damaged = true;
		s = (struct shim_sup_saved){ 0, SHIM_SUP_HOLD_CRASH_LOOP, true, 0 };
	}
	*ret = s;
	if (ret_damaged)
		*ret_damaged = damaged;
	return AQE_OK;
}

/* ---- writing ---- */

/* What is removed first: ids with nothing to remember, then the oldest. */
struct oldest {
	char name[NAME_BYTES];
	struct timespec when;
	bool idle, found;
};

static bool is_idle(int dirfd, const char *name)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(RECORD_MAX);
	struct shim_sup_saved s;

	return aqe_fs_read_beneath(dirfd, name, AQE_FS_TRUSTED, &b, NULL) == 0 && parse(&b, &s) &&
	       s.failures == 0 && !s.hold && !s.running;
}

static bool is_older(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

static void consider(int dirfd, const char *name, struct oldest *o)
{
	struct stat st;
	bool idle;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	idle = is_idle(dirfd, name);
	if (o->found && (o->idle > idle || (o->idle == idle && !is_older(&st.st_mtim, &o->when))))
		return;
	memcpy(o->name, name, strlen(name) + 1); /* is_record() */
	o->when = st.st_mtim;
	o->idle = idle;
	o->found = true;
}

static bool is_record(const char *name)
{
	return name[0] != '.' && aqe_ends(name, SUFFIX) && strlen(name) < NAME_BYTES;
}

/* Counts the records; with `o`, also looks for the one to remove. */
static size_t scan(int dirfd, struct oldest *o)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;
	size_t n = 0;

	if (!dir) {
		aqe_cleanup_fd(&fd);
		return 0;
	}
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	while (n < (size_t)2 * SHIM_STORE_IDS_MAX && (ent = readdir(dir)) != NULL) {
		if (!is_record(ent->d_name))
			continue;
		n++;
		if (o)
			consider(dirfd, ent->d_name, o);
	}
	(void)closedir(dir); /* only read from */
	return n;
}

/* A new id must find room. */
static void make_room(int dirfd, const char *name)
{
	struct oldest o = { .found = false };

	if (faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    scan(dirfd, NULL) < SHIM_STORE_IDS_MAX)
		return;
	(void)scan(dirfd, &o); /* the number is known */
	if (o.found)
		(void)unlinkat(dirfd, o.name, 0); /* one too many does no harm */
}

int shim_store_save(int dirfd, const char *id, const struct shim_sup_saved *s, struct aqe_err *e)
{
	char name[NAME_BYTES], text[RECORD_MAX], boot[BOOT_TEXT];
	int rc = name_of(id, name, e), n;

	if (rc < 0)
		return rc;
	boot_id(boot);
	n = snprintf(text, sizeof(text),
		     "{\"version\":1,\"failures\":%u,\"hold\":\"%s\",\"running\":%s,"
		     "\"ended_ms\":%lld,\"boot\":\"%s\"}\n",
		     s->failures, HOLD_NAMES[s->hold], s->running ? "true" : "false",
		     (long long)s->ended_ms, boot);
	make_room(dirfd, name);
	rc = aqe_fs_write_file(dirfd, name, 0600, text, (size_t)n, e);
	if (rc == 0 && fsync(dirfd) < 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "fsync");
	return rc < 0 ? aqe_err_wrap(e, "failure count of '%s'", id) : AQE_OK;
}

int shim_store_find(int dirfd, const char *text, char ret[SHIM_STORE_ID_MAX + 1], struct aqe_err *e)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *ent;
	size_t found = 0, len = strlen(text);

	if (!dir) {
		aqe_cleanup_fd(&fd);
		return aqe_err_set(e, AQE_E_ABSENT, 0, "no failures of '%.100s' are counted", text);
	}
	/* cppcheck-suppress readdirCalled; one thread, one stream */
	while (found < 2 && (ent = readdir(dir)) != NULL) {
		size_t n = strlen(ent->d_name) - strlen(SUFFIX);

		if (!is_record(ent->d_name) || !aqe_starts(ent->d_name, text) ||
		    (n != len && len < SHORT_MIN))
			continue;
		memcpy(ret, ent->d_name, n); /* is_record(): it fits */
		ret[n] = '\0';
		found = n == len ? 1 : found + 1;
		if (n == len)
			break;
	}
	(void)closedir(dir); /* only read from */
	if (found == 0)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "no failures of '%.100s' are counted", text);
	return found == 1 ? 0 : aqe_err_set(e, AQE_E_USAGE, 0, "'%.100s' names several ids", text);
}

int shim_store_remove(int dirfd, const char *id, struct aqe_err *e)
{
	char name[NAME_BYTES];
	int rc = name_of(id, name, e);

	if (rc < 0)
		return rc;
	if (unlinkat(dirfd, name, 0) < 0 && errno != ENOENT)
		return aqe_err_set(e, AQE_E_SYS, errno, "remove the failure count of '%s'", id);
	return AQE_OK;
}

/* One file for all ids, a byte of it an id: no lock files are left behind. Two ids share a byte
 * with a chance of 2^-62. */
int shim_store_lock(int dirfd, const char *id, int *ret_fd, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	uint8_t hash[32];
	uint64_t at;
	int rc;

	if (!shim_store_id_ok(id))
		return aqe_err_set(e, AQE_E_USAGE, 0, "bad id '%.140s'", id);
	aqe_sha256(id, strlen(id), hash);
	memcpy(&at, hash, sizeof(at));
	lock.l_start = (off_t)(at >> 2);
	rc = aqe_fs_open_beneath(dirfd, LOCK_NAME, O_RDWR | O_CREAT, 0600, &fd, e);
	if (rc < 0)
		return rc;
	if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		int sys = errno;

		if (sys == EAGAIN || sys == EACCES)
			return aqe_err_set(e, AQE_E_REFUSED, 0, "'%s' is supervised already", id);
		return aqe_err_set(e, AQE_E_SYS, sys, "lock '%s'", id);
	}
	*ret_fd = AQE_TAKE_FD(fd);
	return AQE_OK;
}
