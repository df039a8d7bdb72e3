/* SPDX-License-Identifier: MIT */
/* What reading, verifying, rewriting and proving cost in process: no fork, no disk, warm caches.
 * Prints the median and the 95th percentile of ROUNDS runs beside the budget, and fails when a
 * budget is missed. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hardening/seccomp.h"
#include "hardening/seccomp_proof.h"
#include "hardening/verify.h"
#include "oci/doc.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define ROUNDS    400
#define ARENA_MAX (64U << 20)
#define NOW       1790000000                  /* any date */
#define STATE_DIR "/dev/shm/aqe-bench-XXXXXX" /* tmpfs, as the state folder */

struct input {
	struct aqe_buf spec;   /* conforming document, 11 KB */
	struct aqe_buf engine; /* what podman writes, to be rewritten */
	struct hard_policy *policy;
	struct aqe_json *filter;   /* not the frozen one, but as strict and as long */
	struct hard_proofs proofs; /* as the state folder: on the same kind of file system */
	struct aqe_arena *arena;   /* of `filter` and of the reports about it */
};

typedef bool step_fn(const struct input *in);

static struct hard_ctx context(const struct input *in)
{
	struct hard_ctx ctx;

	memset(&ctx, 0, sizeof(ctx));
	ctx.policy = in->policy;
	ctx.agent = hard_agent_profile();
	ctx.now_s = NOW;
	return ctx;
}

static struct aqe_json *read_doc(struct aqe_arena *a, const struct aqe_buf *text)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *doc = NULL;

	if (!a || oci_doc_parse(a, OCI_DOC_CONFIG, text->p, text->len, &doc, &e) < 0)
		return NULL;
	return doc;
}

static bool step_read(const struct input *in)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);

	return read_doc(a, &in->spec) != NULL;
}

static bool step_verify(const struct input *in)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *doc = read_doc(a, &in->spec);
	struct hard_ctx ctx = context(in);
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_report r;

	hard_report_init(&r, a);
	return doc && hard_verify(&ctx, doc, &r, &e) == 0 && hard_report_ok(&r);
}

static bool step_rewrite(const struct input *in)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *doc = read_doc(a, &in->engine), *out = NULL;
	struct hard_ctx ctx = context(in);
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_report r;

	hard_report_init(&r, a);
	/* refused or not: the work is the same, and the gate knows no image here */
	return doc && hard_rewrite(&ctx, a, doc, &r, &out, &e) == 0;
}

static bool step_proof(const struct input *in)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *frozen = a ? hard_seccomp_frozen(a) : NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_proof p;

	(void)in; /* the frozen filter is compiled in */
	return frozen && hard_proof_spec(a, frozen, &p, &e) == 0 && p.n_all == 0;
}

/* What a start does with a filter that was proved before. */
static bool step_cached(const struct input *in)
{
	struct hard_report r;

	hard_report_init(&r, in->arena);
	hard_seccomp_judge(in->filter, &in->proofs, &r);
	return r.result[HARD_SECCOMP] == HARD_PASS;
}

static const struct {
	const char *what;
	step_fn *fn;
	double budget_us; /* 0: none */
} steps[] = {
	{ "read an 11 KB spec", step_read, 0 },
	{ "read and verify it", step_verify, 150 },
	{ "read and rewrite an engine's spec", step_rewrite, 0 },
	{ "prove the frozen seccomp filter", step_proof, 5000 },
	{ "find a filter proved before", step_cached, 20 },
};

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool run_step(size_t i, const struct input *in)
{
	static double us[ROUNDS];

	for (size_t r = 0; r < ROUNDS; r++) {
		int64_t t0 = AQE_CLOCK_SYSTEM.mono_ns(AQE_CLOCK_SYSTEM.self);

		if (!steps[i].fn(in)) {
			printf("%-36s did not work\n", steps[i].what);
			return false;
		}
		us[r] = (double)(AQE_CLOCK_SYSTEM.mono_ns(AQE_CLOCK_SYSTEM.self) - t0) / 1000;
	}
	qsort(us, ROUNDS, sizeof(us[0]), cmp_double);
	double median = us[ROUNDS / 2], p95 = us[ROUNDS * 95 / 100];
	bool met = steps[i].budget_us <= 0 || median <= steps[i].budget_us;

	printf("%-36s median %8.1f us  p95 %8.1f us", steps[i].what, median, p95);
	if (steps[i].budget_us > 0)
		printf("  budget %6.0f us  %s", steps[i].budget_us, met ? "met" : "MISSED");
	putchar('\n');
	return met;
}

static bool load(const char *path, struct aqe_buf *b)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct aqe_err e = AQE_ERR_INIT;

	if (fd >= 0 && aqe_fs_read_fd(fd, b, &e) == 0)
		return true;
	fprintf(stderr, "bench_verify: cannot read '%s'\n", path);
	return false;
}

/* The frozen filter without its last rule: the comparison with the frozen one goes the whole way,
 * and what is left is proved. */
static bool prove_once(struct input *in, char *dir)
{
	struct aqe_json *rules;

	in->arena = aqe_arena_new(ARENA_MAX);
	in->filter = in->arena ? hard_seccomp_frozen(in->arena) : NULL;
	rules = aqe_json_get(in->filter, "syscalls");
	if (!rules)
		return false;
	aqe_json_detach(rules->last);
	if (!mkdtemp(dir))
		return false;
	in->proofs.dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return in->proofs.dir_fd >= 0 && step_cached(in);
}
static void forget(const struct input *in, const char *dir)
{
	char key[HARD_PROOF_KEY];
	struct aqe_err e = AQE_ERR_INIT;

	if (in->proofs.dir_fd < 0)
		return;
	if (hard_seccomp_key(in->filter, key, &e) == 0)
		(void)unlinkat(in->proofs.dir_fd, key, 0); /* rmdir says what is left */
	(void)close(in->proofs.dir_fd);                    /* only read from */
	if (rmdir(dir) < 0)
		perror(dir);
}

int main(void)
{
	struct input in = { .spec = AQE_BUF_INIT(1U << 20),
			    .engine = AQE_BUF_INIT(1U << 20),
			    .proofs = { -1 } };
	struct aqe_err e = AQE_ERR_INIT;
	char dir[] = STATE_DIR;
	bool met = true;
	bool ok = load("tests/corpus/spec/ok-base.json", &in.spec) &&
		  load("tests/samples/podman-default.json", &in.engine);

	if (ok && hard_policy_load_file("tests/corpus/policy.json", &in.policy, &e) < 0) {
		fprintf(stderr, "bench_verify: %s\n", e.text);
		ok = false;
	}
	ok = ok && prove_once(&in, dir);
	for (size_t i = 0; ok && i < AQE_COUNT(steps); i++)
		met = run_step(i, &in) && met;
	forget(&in, dir);
	hard_policy_free(in.policy);
	aqe_arena_free(in.arena);
	aqe_buf_done(&in.spec);
	aqe_buf_done(&in.engine);
	return ok && met ? EXIT_SUCCESS : EXIT_FAILURE;
}
