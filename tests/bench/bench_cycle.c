/* SPDX-License-Identifier: MIT */
/* A container's life through aqe-shim and through the bare runtimes, interleaved in one run:
 * create, start, state, kill, delete of the same bundle, at once after another container and after
 * a pause. Prints medians, ratios and the budgets of the design. Run by run.sh inside the sandbox:
 * bench_cycle SHIM BUNDLE ROUNDS LOG. BUNDLE is complete (filter, limits, namespaces), so that both
 * sides do the same work below the shim; LOG is the folder of the audit log, on a real disk. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "shim/core/clock.h"
#include "shim/core/text.h"

#define ROUNDS_MAX 1000
#define PAUSE_NS   50000000L
#define POLICY     "/etc/aqe-shim/policy.json"
#define PID_FILE   "/run/aqe-test/bench.pid"
#define ID         "bench"
#define POLICY_TEXT                                                                                \
	"{\"version\":1,\"runtime\":{\"path\":\"%s\"},\"agents\":{\"default\":{\"memory\":\"1g\"," \
	"\"cpus\":2}},\"audit\":{\"path\":\"%s/%d\",\"mode\":\"%s\"},\"waivers\":[{\"property\":"  \
	"\"digest\",\"agentType\":\"default\","                                                    \
	"\"reason\":\"bench\",\"owner\":\"bench\",\"expires\":\"2099-01-01\"}]}\n"

enum { CRUN, SHIM_CRUN, RUNC, SHIM_RUNC, SHIM_OFF, VARIANTS };
enum { CREATE, START, STATE, KILL, DELETE, PHASES, CYCLE = PHASES, RESTED, COLUMNS };

static const char *const variant_names[VARIANTS] = { "crun", "aqe-shim on crun", "runc",
						     "aqe-shim on runc", "crun, no audit" };
static const char *const low_paths[VARIANTS] = { "/usr/bin/crun", "/usr/bin/crun", "/usr/sbin/runc",
						 "/usr/sbin/runc", "/usr/bin/crun" };
static const char *const column_names[COLUMNS] = {
	"create", "start", "state", "kill", "delete", "create+start+delete", "the same, rested"
};

static double ms[VARIANTS][COLUMNS][ROUNDS_MAX];
static char **environment;

static double now_ms(void)
{
	return (double)AQE_CLOCK_SYSTEM.mono_ns(AQE_CLOCK_SYSTEM.self) / 1e6;
}

/* Standard input is a pipe's end: crun would change the owner of /dev/null. */
static int run(const char *path, char **argv, double *ret_ms)
{
	posix_spawn_file_actions_t fa;
	int ends[2], status = -1;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0 || posix_spawn_file_actions_init(&fa) != 0)
		return -1;
	(void)posix_spawn_file_actions_adddup2(&fa, ends[0], 0); /* checked by the spawn */
	(void)posix_spawn_file_actions_addopen(&fa, 1, "/run/aqe-test/bench.out",
					       O_WRONLY | O_CREAT | O_TRUNC, 0600);
	double t0 = now_ms();

	if (posix_spawn(&pid, path, &fa, NULL, argv, environment) == 0)
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	*ret_ms = now_ms() - t0;
	(void)posix_spawn_file_actions_destroy(&fa); /* nothing to do about it */
	(void)close(ends[0]);
	(void)close(ends[1]);
	return status;
}

static pid_t container_pid(void)
{
	char text[32] = "";
	uint64_t pid = 0;
	int fd = open(PID_FILE, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	(void)close(fd);
	text[strcspn(text, "\n")] = '\0';
	return aqe_parse_u64(text, INT32_MAX, &pid) ? (pid_t)pid : 0;
}

/* Each variant has its own log, in which its policy is no news after the first round. */
static bool write_policy(int v, const char *logs)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), POLICY_TEXT, low_paths[v], logs, v,
			 v != SHIM_OFF ? "required" : "off");
	int fd = open(POLICY, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool ok = fd >= 0 && n > 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0)
		(void)close(fd);
	return ok;
}

/* Arguments of posix_spawn are not const; none is written to. */
static char *word(const char *s)
{
	union {
		const char *in;
		char *out;
	} u = { s };

	return u.out;
}

/* The times of one life go to `ret`. */
static bool cycle(int v, const char *path, const char *bundle, double ret[PHASES])
{
	char *words[PHASES][8] = {
		[CREATE] = { word(path), word("create"), word("--bundle"), word(bundle),
			     word("--pid-file"), word(PID_FILE), word(ID), NULL },
		[START] = { word(path), word("start"), word(ID), NULL },
		[STATE] = { word(path), word("state"), word(ID), NULL },
		[KILL] = { word(path), word("kill"), word(ID), word("KILL"), NULL },
		[DELETE] = { word(path), word("delete"), word(ID), NULL },
	};

	for (int p = CREATE; p < PHASES; p++) {
		int status = run(path, words[p], &ret[p]);

		if (status != 0) {
			fprintf(stderr, "bench_cycle: %s %s: status 0x%x\n", variant_names[v],
				column_names[p], (unsigned)status);
			return false;
		}
		/* the container is our grandchild: it must be gone before `delete` */
		if (p == KILL)
			(void)waitpid(container_pid(), NULL, 0);
	}
	return true;
}

/* Three lives. The first start under a policy records it, and here every variant changes the
 * policy, so the second counts. It follows at once, when the kernel may still spare it the grace
 * period before a change of cgroup: that favours the faster side. The third begins after a pause,
 * as where an engine is not asked for one container after the other. */
static bool lives(int v, const char *path, const char *bundle, int round)
{
	const struct timespec pause = { 0, PAUSE_NS };
	double t[PHASES];

	if (!cycle(v, path, bundle, t) || !cycle(v, path, bundle, t))
		return false;
	for (int p = 0; p < PHASES; p++)
		ms[v][p][round] = t[p];
	ms[v][CYCLE][round] = t[CREATE] + t[START] + t[DELETE];
	(void)nanosleep(&pause, NULL); /* no signal is expected */
	if (!cycle(v, path, bundle, t))
		return false;
	ms[v][RESTED][round] = t[CREATE] + t[START] + t[DELETE];
	return true;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_medians(int rounds)
{
	printf("%-18s", "median, ms");
	for (int c = 0; c < COLUMNS; c++)
		printf(" %*s", c >= CYCLE ? 20 : 8, column_names[c]);
	putchar('\n');
	for (int v = 0; v < VARIANTS; v++) {
		printf("%-18s", variant_names[v]);
		for (int c = 0; c < COLUMNS; c++) {
			qsort(ms[v][c], (size_t)rounds, sizeof(double), cmp_double);
			printf(" %*.2f", c >= CYCLE ? 20 : 8, ms[v][c][rounds / 2]);
		}
		putchar('\n');
	}
}

static const struct {
	int ours, theirs, column;
	double budget; /* 0: none */
} ratios[] = {
	{ SHIM_CRUN, CRUN, CYCLE, 1.25 },   { SHIM_CRUN, RUNC, CYCLE, 0.8 },
	{ SHIM_CRUN, CRUN, RESTED, 1.25 },  { SHIM_CRUN, RUNC, RESTED, 0.8 },
	{ SHIM_OFF, CRUN, CYCLE, 0 },       { SHIM_CRUN, SHIM_OFF, CYCLE, 0 },
	{ SHIM_CRUN, SHIM_OFF, CREATE, 0 }, { SHIM_CRUN, SHIM_OFF, START, 0 },
	{ SHIM_CRUN, SHIM_OFF, DELETE, 0 }, { SHIM_CRUN, CRUN, STATE, 1.1 },
	{ SHIM_CRUN, CRUN, KILL, 1.1 },     { SHIM_CRUN, CRUN, DELETE, 1.1 },
	{ SHIM_RUNC, RUNC, CYCLE, 0 },      { SHIM_RUNC, RUNC, RESTED, 0 },
	{ SHIM_RUNC, RUNC, STATE, 1.1 },    { SHIM_RUNC, RUNC, KILL, 1.1 },
	{ SHIM_RUNC, RUNC, DELETE, 1.1 },
};

static bool print_ratios(int rounds)
{
	bool all = true;

	for (size_t i = 0; i < AQE_COUNT(ratios); i++) {
		double r = ms[ratios[i].ours][ratios[i].column][rounds / 2] /
			   ms[ratios[i].theirs][ratios[i].column][rounds / 2];
		bool met = ratios[i].budget <= 0 || r <= ratios[i].budget;

		printf("%-20s %-17s / %-14s %5.2f", column_names[ratios[i].column],
		       variant_names[ratios[i].ours], variant_names[ratios[i].theirs], r);
		if (ratios[i].budget > 0)
			printf("  budget %.2f  %s", ratios[i].budget, met ? "met" : "MISSED");
		putchar('\n');
		all = all && met;
	}
	return all;
}

int main(int argc, char **argv, char **envp)
{
	uint64_t rounds = 0;

	if (argc != 5 || !aqe_parse_u64(argv[3], ROUNDS_MAX, &rounds) || rounds < 3) {
		fputs("usage: bench_cycle SHIM BUNDLE ROUNDS LOG\n", stderr);
		return EXIT_FAILURE;
	}
	environment = envp;
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return EXIT_FAILURE;
	for (int r = 0; r < (int)rounds; r++) {
		for (int v = 0; v < VARIANTS; v++) {
			bool shim = v != CRUN && v != RUNC;

			if (shim && !write_policy(v, argv[4]))
				return EXIT_FAILURE;
			if (!lives(v, shim ? argv[1] : low_paths[v], argv[2], r))
				return EXIT_FAILURE;
		}
	}
	print_medians((int)rounds);
	return print_ratios((int)rounds) ? EXIT_SUCCESS : EXIT_FAILURE;
}
