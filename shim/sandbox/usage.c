/* SPDX-License-Identifier: MIT */
#include "shim/sandbox/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hardening/effect_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define KERNEL_FILE_MAX ((size_t)1 << 20)
#define ARENA_MAX       ((size_t)4 << 20)

/* ---- finding the cgroup ---- */

static const char *const CONTROLLERS[SHIM_CGS] = {
	[SHIM_CG_CPU] = "cpu",
	[SHIM_CG_CPUACCT] = "cpuacct",
	[SHIM_CG_MEMORY] = "memory",
	[SHIM_CG_PIDS] = "pids",
};

static int read_file(int dirfd, const char *name, struct aqe_buf *b, struct aqe_err *e)
{
	aqe_buf_clear(b);
	return aqe_fs_read_kernel(dirfd, name, b, e);
}

static int open_groups(const struct hard_fx_cgroup *groups, size_t n_groups,
		       const struct hard_fx_mount *mounts, size_t n_mounts, struct shim_cgroup *c)
{
	int found = 0;

	for (int i = 0; i < SHIM_CGS; i++) {
		struct hard_fx_cgdir at;
		char path[8192];

		if (hard_fx_cgroup_locate(groups, n_groups, mounts, n_mounts, CONTROLLERS[i],
					  &at) != 1)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", at.point, at.below);
		c->fd[i] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		c->v2[i] = at.v2;
		found += c->fd[i] >= 0;
	}
	return found;
}

static int open_proc(pid_t pid, int *ret, struct aqe_err *e)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%ld", (long)pid);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret < 0 ? aqe_err_set(e, AQE_E_ABSENT, 0, "no process %ld", (long)pid) : 0;
}

/* Our own mounts: where we can see the hierarchies. /proc/self is a link, so by number. */
static int read_mounts(struct aqe_arena *a, struct aqe_buf *text, struct hard_fx_mount **ret,
		       size_t *ret_n, struct aqe_err *e)
{
	AQE_AUTO_FD int self = -1;
	int rc = open_proc(getpid(), &self, e);

	if (rc == 0)
		rc = read_file(self, "mountinfo", text, e);
	return rc < 0 ? rc : hard_fx_mounts_parse(a, text->p, ret, ret_n, e);
}

int shim_cgroup_open(pid_t pid, struct shim_cgroup *ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	AQE_AUTO_BUF struct aqe_buf groups_text = AQE_BUF_INIT(KERNEL_FILE_MAX);
	AQE_AUTO_BUF struct aqe_buf mounts_text = AQE_BUF_INIT(KERNEL_FILE_MAX);
	struct hard_fx_cgroup groups[HARD_FX_CGROUP_MAX];
	struct hard_fx_mount *mounts = NULL;
	size_t n_groups = 0, n_mounts = 0;
	struct shim_cgroup c = SHIM_CGROUP_INIT;
	int rc = a ? open_proc(pid, &c.proc_fd, e) : aqe_err_set(e, AQE_E_NOMEM, 0, "no memory");

	if (rc == 0)
		rc = read_file(c.proc_fd, "cgroup", &groups_text, e);
	if (rc == 0)
		rc = read_mounts(a, &mounts_text, &mounts, &n_mounts, e);
	if (rc == 0)
		rc = hard_fx_cgroups_parse(groups_text.p, groups, HARD_FX_CGROUP_MAX, &n_groups, e);
	if (rc == 0 && open_groups(groups, n_groups, mounts, n_mounts, &c) == 0)
		rc = aqe_err_set(e, AQE_E_ABSENT, 0, "no cgroup of process %ld can be seen",
				 (long)pid);
	if (rc < 0) {
		shim_cgroup_done(&c);
		return rc;
	}
	*ret = c;
	return 0;
}

void shim_cgroup_done(struct shim_cgroup *c)
{
	for (int i = 0; i < SHIM_CGS; i++)
		aqe_cleanup_fd(&c->fd[i]);
	aqe_cleanup_fd(&c->proc_fd);
	*c = (struct shim_cgroup)SHIM_CGROUP_INIT;
}

/* ---- reading ---- */

bool shim_usage_field(const char *text, const char *key, uint64_t *ret)
{
	size_t n = strlen(key);

	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		char digits[24];
		size_t len;

		if (strncmp(p, key, n) != 0 || p[n] != ' ')
			continue;
		len = strcspn(p + n + 1, " \n");
		if (len >= sizeof(digits))
			return false;
		memcpy(digits, p + n + 1, len);
		digits[len] = '\0';
		return aqe_parse_u64(digits, UINT64_MAX, ret);
	}
	return false;
}

struct sampler {
	const struct shim_cgroup *c;
	struct aqe_buf b;
	bool any; /* something could be read */
};

/* A file of one number, or "max". 0 and `otherwise` when it is not there. */
static uint64_t number(struct sampler *s, enum shim_cg which, const char *name, uint64_t otherwise)
{
	char text[32];
	uint64_t v = 0;

	if (s->c->fd[which] < 0 || read_file(s->c->fd[which], name, &s->b, NULL) < 0)
		return otherwise;
	s->any = true;
	(void)snprintf(text, sizeof(text), "%.*s", (int)strcspn(aqe_buf_str(&s->b), "\n"),
		       aqe_buf_str(&s->b));
	return aqe_parse_u64(text, UINT64_MAX, &v) ? v : otherwise;
}

/* A member of a file of "key number" lines. */
static uint64_t keyed(struct sampler *s, enum shim_cg which, const char *name, const char *key)
{
	uint64_t v = 0;

	if (s->c->fd[which] < 0 || read_file(s->c->fd[which], name, &s->b, NULL) < 0)
		return 0;
	s->any = true;
	return shim_usage_field(aqe_buf_str(&s->b), key, &v) ? v : 0;
}

static void read_cpu_limit(struct sampler *s, struct shim_usage *u)
{
	uint64_t quota = HARD_FX_UNLIMITED, period = 100000;
	int64_t quota_v1 = -1;

	if (s->c->fd[SHIM_CG_CPU] < 0)
		return;
	if (s->c->v2[SHIM_CG_CPU]) {
		if (read_file(s->c->fd[SHIM_CG_CPU], "cpu.max", &s->b, NULL) < 0 ||
		    hard_fx_cpumax_parse(aqe_buf_str(&s->b), &quota, &period, NULL) < 0)
			return;
	} else if (read_file(s->c->fd[SHIM_CG_CPU], "cpu.cfs_quota_us", &s->b, NULL) == 0) {
		s->b.p[strcspn(s->b.p, "\n")] = '\0';
		if (aqe_parse_i64(s->b.p, -1, INT64_MAX, &quota_v1) && quota_v1 > 0)
			quota = (uint64_t)quota_v1;
		period = number(s, SHIM_CG_CPU, "cpu.cfs_period_us", 100000);
	}
	if (quota != HARD_FX_UNLIMITED && period > 0 && quota <= UINT64_MAX / 1000)
		u->cpu_limit_milli = quota * 1000 / period;
}

static void read_cpu(struct sampler *s, struct shim_usage *u)
{
	if (s->c->v2[SHIM_CG_CPUACCT])
		u->cpu_ns = keyed(s, SHIM_CG_CPUACCT, "cpu.stat", "usage_usec") * 1000;
	else
		u->cpu_ns = number(s, SHIM_CG_CPUACCT, "cpuacct.usage", 0);
	u->throttled = keyed(s, SHIM_CG_CPU, "cpu.stat", "nr_throttled");
	read_cpu_limit(s, u);
}

/* v1 writes "no limit" as the largest number of whole pages. */
static uint64_t limit_of(uint64_t v)
{
	return v >= (uint64_t)INT64_MAX / 4096 * 4096 ? SHIM_UNLIMITED : v;
}

static void read_memory(struct sampler *s, struct shim_usage *u)
{
	bool v2 = s->c->v2[SHIM_CG_MEMORY];
	uint64_t cache, both;

	u->memory_raw =
		number(s, SHIM_CG_MEMORY, v2 ? "memory.current" : "memory.usage_in_bytes", 0);
	u->memory_limit =
		limit_of(number(s, SHIM_CG_MEMORY, v2 ? "memory.max" : "memory.limit_in_bytes",
				SHIM_UNLIMITED));
	cache = keyed(s, SHIM_CG_MEMORY, "memory.stat",
		      v2 ? "inactive_file" : "total_inactive_file");
	u->memory = u->memory_raw > cache ? u->memory_raw - cache : 0;
	if (v2) {
		u->swap = number(s, SHIM_CG_MEMORY, "memory.swap.current", 0);
		return;
	}
	both = number(s, SHIM_CG_MEMORY, "memory.memsw.usage_in_bytes", 0);
	u->swap = both > u->memory_raw ? both - u->memory_raw : 0;
}

static uint64_t oom_kills(struct sampler *s)
{
	return s->c->v2[SHIM_CG_MEMORY]
		       ? keyed(s, SHIM_CG_MEMORY, "memory.events", "oom_kill")
		       : keyed(s, SHIM_CG_MEMORY, "memory.oom_control", "oom_kill");
}

/* ---- what only the process shows ---- */

static void add_tmpfs(int root, const char *path, struct shim_usage *u)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	AQE_AUTO_FD int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return;
	u->disk += (uint64_t)(fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize;
	u->disk_limit += (uint64_t)fs.f_blocks * (uint64_t)fs.f_bsize;
}

static void read_disk(const struct shim_cgroup *c, struct shim_usage *u)
{
	AQE_AUTO_FD int root = openat(c->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return;
	add_tmpfs(root, "tmp", u);
	add_tmpfs(root, "run", u);
}

/* "  name: rx_bytes 7 more tx_bytes ..." below two lines of heading. */
static void read_network(struct sampler *s, struct shim_usage *u)
{
	const char *p;

	if (read_file(s->c->proc_fd, "net/dev", &s->b, NULL) < 0)
		return;
	p = aqe_buf_str(&s->b);
	for (int line = 0; *p; line++, p += strcspn(p, "\n"), p += *p == '\n') {
		unsigned long long in = 0, out = 0;
		const char *colon = memchr(p, ':', strcspn(p, "\n"));

		if (line < 2 || !colon)
			continue;
		/* our own kernel's text, eight numbers before the one we want */
		if (sscanf(colon + 1, "%llu %*u %*u %*u %*u %*u %*u %*u %llu", &in, &out) == 2) {
			u->net_in += in;
			u->net_out += out;
		}
	}
}

int shim_usage_read(const struct shim_cgroup *c, struct shim_usage *ret, struct aqe_err *e)
{
	struct sampler s = { c, AQE_BUF_INIT(KERNEL_FILE_MAX), false };
	struct shim_usage u = { .cpu_limit_milli = SHIM_UNLIMITED };
	struct timespec ts = { 0, 0 };

	(void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
	u.at_ns = (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	read_cpu(&s, &u);
	read_memory(&s, &u);
	u.pids = number(&s, SHIM_CG_PIDS, "pids.current", 0);
	u.pids_limit = number(&s, SHIM_CG_PIDS, "pids.max", SHIM_UNLIMITED);
	u.oom_kills = oom_kills(&s);
	read_disk(c, &u);
	read_network(&s, &u);
	aqe_buf_done(&s.b);
	if (!s.any)
		return aqe_err_set(e, AQE_E_ABSENT, 0, "the container's cgroups are gone");
	*ret = u;
	return 0;
}

uint64_t shim_usage_oom_kills(const struct shim_cgroup *c)
{
	struct sampler s = { c, AQE_BUF_INIT(KERNEL_FILE_MAX), false };
	uint64_t n = oom_kills(&s);

	aqe_buf_done(&s.b);
	return n;
}

/* ---- acting ---- */

int shim_usage_reclaim(const struct shim_cgroup *c, uint64_t bytes, struct aqe_err *e)
{
	bool v2 = c->v2[SHIM_CG_MEMORY];
	const char *name = v2 ? "memory.reclaim" : "memory.force_empty";
	AQE_AUTO_FD int fd = -1;
	char text[24];
	int rc, n;

	rc = c->fd[SHIM_CG_MEMORY] < 0
		     ? aqe_err_set(e, AQE_E_ABSENT, 0, "no memory cgroup")
		     : aqe_fs_open_beneath(c->fd[SHIM_CG_MEMORY], name, O_WRONLY, 0, &fd, e);
	if (rc < 0)
		return rc;
	n = snprintf(text, sizeof(text), "%llu", v2 ? (unsigned long long)bytes : 0ULL);
	/* EAGAIN: less could be given back; EBUSY: v1, with members, does what it can */
	if (write(fd, text, (size_t)n) < 0 && errno != EAGAIN && errno != EBUSY)
		return aqe_err_set(e, AQE_E_SYS, errno, "write '%s'", name);
	return 0;
}

/* ---- pure ---- */

double shim_usage_cpu_percent(const struct shim_usage *before, const struct shim_usage *now)
{
	int64_t ns = now->at_ns - before->at_ns;

	if (ns <= 0 || now->cpu_ns < before->cpu_ns)
		return 0;
	return (double)(now->cpu_ns - before->cpu_ns) * 100.0 / (double)ns;
}

double shim_usage_percent(uint64_t used, uint64_t limit)
{
	return limit == 0 || limit == SHIM_UNLIMITED ? 0 : (double)used * 100.0 / (double)limit;
}
