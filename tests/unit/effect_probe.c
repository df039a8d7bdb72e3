/* SPDX-License-Identifier: MIT */
/* The effect check as a program, for real containers in the integration tests:
 *
 *     effect_probe created|started PID CONFIG [-n ROUNDS] [-a AGENT] [DESTINATION=PATH...]
 *
 * Prints "PROPERTY RESULT" for every property that was judged and one indented line a finding. Each
 * DESTINATION=PATH is a bind whose source was PATH at create. With -n it repeats the check and
 * prints the cost of one. Exit status: 0 nothing failed, 1 something failed, 4 could not decide. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hardening/effect.h"
#include "hardening/effect_parse.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define BINDS_MAX 16

struct probe {
	struct hard_effect fx;
	struct hard_ctx ctx;
	struct hard_host host;
	struct hard_bind_id binds[BINDS_MAX];
	bool started;
	uint64_t rounds;
};

static int read_map(int dir, const char *name, struct hard_idmap *ret, size_t *ret_n,
		    struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	int r = aqe_fs_read_kernel(dir, name, &b, e);

	return r < 0 ? r : hard_fx_idmap_parse(aqe_buf_str(&b), ret, HARD_IDMAP_MAX, ret_n, e);
}

/* As much of hard_host_read() as the check needs. */
static int read_host(struct hard_host *h, struct aqe_err *e)
{
	AQE_AUTO_FD int self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = read_map(self, "uid_map", h->uid_map, &h->n_uid, e);

	if (r == 0)
		r = read_map(self, "gid_map", h->gid_map, &h->n_gid, e);
	if (r < 0)
		return r;
	h->in_userns =
		h->n_uid != 1 || h->uid_map[0].outside != 0 || h->uid_map[0].size != UINT32_MAX;
	h->cgroup_v2 = access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0;
	h->cgroup_limits = !h->in_userns || h->cgroup_v2;
	return 0;
}

static int load_spec(struct aqe_arena *a, const char *path, struct aqe_json **ret,
		     struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = aqe_fs_read_fd(fd, &b, e);

	return r < 0 ? r
		     : aqe_json_parse(a, aqe_buf_str(&b), b.len, &AQE_JSON_LIMITS_DEFAULT, ret, e);
}

static void add_bind(struct probe *p, char *arg)
{
	char *eq = strchr(arg, '=');
	struct stat st;

	if (!eq || p->fx.n_binds == BINDS_MAX || stat(eq + 1, &st) < 0)
		return;
	*eq = '\0';
	p->binds[p->fx.n_binds++] = (struct hard_bind_id){ arg, st.st_dev, st.st_ino };
}

static int check(struct probe *p, struct hard_report *report, struct aqe_err *e)
{
	return p->started ? hard_effect_started(&p->fx, report, e)
			  : hard_effect_created(&p->fx, report, e);
}

static int show(const struct hard_report *report)
{
	const struct hard_finding *f;
	int bad = 0;
	int i;

	for (i = 0; i < HARD_PROP_COUNT; i++) {
		bool found = false;

		for (f = report->first; f; f = f->next)
			found |= f->prop == (enum hard_prop)i;
		if (report->result[i] != HARD_UNKNOWN || found)
			printf("%s %s\n", HARDENING_PROFILE[i].id,
			       hard_result_name(report->result[i]));
		bad |= found;
		for (f = report->first; f; f = f->next)
			if (f->prop == (enum hard_prop)i)
				printf("    %s: %s; wanted: %s\n", f->pointer, f->found, f->wanted);
	}
	return bad;
}

static double now_us(clockid_t id)
{
	struct timespec t;

	(void)clock_gettime(id, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int measure(struct probe *p, struct aqe_err *e)
{
	double wall = now_us(CLOCK_MONOTONIC), cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t i;

	for (i = 0; i < p->rounds; i++) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
		struct hard_report report;
		int r;

		hard_report_init(&report, a);
		r = check(p, &report, e);
		if (r < 0)
			return r;
	}
	wall = now_us(CLOCK_MONOTONIC) - wall;
	cpu = now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%.1f us, %.1f us of CPU\n", wall / (double)p->rounds, cpu / (double)p->rounds);
	return 0;
}

static int run(struct probe *p, struct aqe_arena *a, struct aqe_err *e)
{
	struct hard_report report;
	int r;

	hard_report_init(&report, a);
	if (p->rounds)
		return measure(p, e);
	r = check(p, &report, e);
	return r < 0 ? r : show(&report);
}

static int parse(struct probe *p, struct aqe_arena *a, int argc, char **argv, struct aqe_err *e)
{
	struct aqe_json *spec = NULL;
	uint64_t pid = 0;
	int i, r;

	if (argc < 4 || !aqe_parse_u64(argv[2], INT32_MAX, &pid))
		return aqe_err_set(e, AQE_E_USAGE, 0, "created|started PID CONFIG");
	p->started = aqe_str_eq(argv[1], "started");
	p->fx.pid = (pid_t)pid;
	r = load_spec(a, argv[3], &spec, e);
	for (i = 4; i < argc && r == 0; i++) {
		if (aqe_str_eq(argv[i], "-n") && i + 1 < argc)
			(void)aqe_parse_u64(argv[++i], 1000000, &p->rounds);
		else if (aqe_str_eq(argv[i], "-a") && i + 1 < argc)
			p->ctx.agent = hard_agent_find(argv[++i]);
		else
			add_bind(p, argv[i]);
	}
	p->fx.spec = spec;
	return r;
}

int main(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(16 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	static struct probe p;
	char dir[32];
	int r;

	p.ctx.host = &p.host;
	p.ctx.agent = hard_agent_profile();
	p.fx.ctx = &p.ctx;
	p.fx.binds = p.binds;
	r = parse(&p, a, argc, argv, &e);
	if (r == 0)
		r = read_host(&p.host, &e);
	if (r == 0) {
		(void)snprintf(dir, sizeof(dir), "/proc/%d", (int)p.fx.pid);
		p.fx.proc_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		r = run(&p, a, &e);
	}
	if (r < 0)
		printf("error %s: %s\n", aqe_code_name(e.code), e.text);
	return r < 0 ? 4 : r;
}
