/* SPDX-License-Identifier: MIT */
/* audit_crash FOLDER [ROUNDS]: writers of an audit log are killed at random points, round after
 * round. After each round every row that a writer was told is stored must be there, with its hash,
 * and the chain must verify. Prints one TAP line. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "audit/checkpoint.h"
#include "audit/log.h"
#include "audit/query.h"
#include "audit/verify.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define WRITERS     16
#define ACKS_MAX    4096 /* of a writer in one round */
#define MANY        5    /* rows of one transaction of those that write more at once */
#define SIGN_EVERY  64
#define WAIT_MAX_US 60000

struct ack {
	int64_t seq; /* 0: went to the spool, and is known by its number alone */
	uint8_t hash[32];
	int64_t number;
};
/* Shared with the writers; a row counts as acknowledged when `n` covers it. */
struct acks {
	unsigned n;
	struct ack v[ACKS_MAX];
};

static void told(struct acks *a, const struct audit_row *r)
{
	if (a->n == ACKS_MAX)
		return;
	a->v[a->n].seq = r->seq;
	a->v[a->n].number = r->bytes_out;
	memcpy(a->v[a->n].hash, r->hash, 32);
	__atomic_store_n(&a->n, a->n + 1, __ATOMIC_RELEASE);
}

static void fill(struct audit_row *r, const char *who, unsigned n)
{
	*r = (struct audit_row)AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_ALLOWED);
	r->agent_id = who;
	r->agent_type = "qe-chaos-engineer";
	r->domain = "api.example.com";
	r->bytes_out = n;
}

static void name_of(char who[48], unsigned id, unsigned round)
{
	(void)snprintf(who, 48, "writer-%u-%u", id, round);
}

/* A third of them open for every row, and half of these use the spool as the runtime does; a third
 * keep the log open, a third write many at once. */
static void write_on(const struct audit_opts *with, unsigned id, unsigned round, struct acks *acks)
{
	struct audit_opts spool = *with, *o = &spool;
	struct audit_log *log = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	char who[48];

	spool.flags |= id % 6 == 0 ? AUDIT_SPOOL : 0;
	name_of(who, id, round);
	for (unsigned n = 0;; n++) {
		struct audit_row rows[MANY];
		size_t many = id % 3 == 2 ? MANY : 1;
		int rc = 0;

		for (size_t i = 0; i < many; i++)
			fill(&rows[i], who, n);
		if (id % 3 != 0 && !log)
			rc = audit_open(o, &log, &e);
		if (rc == 0)
			rc = id % 3 == 0 ? audit_record(o, rows, many, &e)
					 : audit_append_many(log, rows, many, &e);
		for (size_t i = 0; rc == 0 && i < many; i++)
			told(acks, &rows[i]);
		/* who waited too long was refused, and goes on */
		if (rc != 0 && rc != AQE_E_TIMEOUT) {
			(void)fprintf(stderr, "writer %u: %s\n", id, e.text);
			_exit(1);
		}
	}
}

/* ---- after the round ---- */

struct seek {
	const struct ack *want;
	bool found;
};

static int compare(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct seek *s = arg;

	(void)e;
	s->found = r->seq == s->want->seq && memcmp(r->hash, s->want->hash, 32) == 0;
	return 0;
}

static bool is_there(struct audit_log *log, const struct ack *a)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct seek s = { a, false };
	struct aqe_err e = AQE_ERR_INIT;

	f.after_seq = a->seq - 1;
	f.until_seq = a->seq;
	f.order = AUDIT_BY_SEQ;
	if (audit_query(log, &f, compare, &s, &e) != 0)
		(void)fprintf(stderr, "%s\n", e.text);
	return s.found;
}

struct numbers {
	const struct acks *acks;
	unsigned next; /* the first acknowledged row that was not found so far */
};

static int follow(void *arg, const struct audit_row *r, struct aqe_err *e)
{
	struct numbers *s = arg;

	(void)e;
	if (s->next < s->acks->n && r->bytes_out == s->acks->v[s->next].number)
		s->next++;
	return 0;
}

/* Rows of a writer that used the spool: all of them, once, in its order. */
static bool spooled_are_there(struct audit_log *log, const struct acks *a, unsigned id,
			      unsigned round)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	struct numbers s = { a, 0 };
	struct aqe_err e = AQE_ERR_INIT;
	char who[48];

	name_of(who, id, round);
	f.agent_id = who;
	f.order = AUDIT_BY_SEQ;
	if (audit_query(log, &f, follow, &s, &e) != 0)
		(void)fprintf(stderr, "%s\n", e.text);
	return s.next == a->n;
}

static bool judge(const struct audit_opts *o, const struct acks *acks, const uint8_t (*key)[32],
		  unsigned round)
{
	struct audit_verify_opts how = { .keys = key, .n_keys = 1 };
	AUDIT_AUTO_LOG struct audit_log *log = NULL;
	struct audit_opts read = *o;
	struct aqe_err e = AQE_ERR_INIT;
	struct audit_verdict v;

	read.mode = AUDIT_READ;
	how.flags = round % 20 ? AUDIT_VERIFY_NO_INDEXES : 0;
	if (audit_open(&read, &log, &e) != 0 || audit_verify(log, &how, &v, &e) != 0) {
		(void)fprintf(stderr, "round %u: %s\n", round, e.text);
		return false;
	}
	if (v.fault) {
		(void)fprintf(stderr, "round %u: %s\n", round, v.text);
		return false;
	}
	for (unsigned w = 0; w < WRITERS; w++) {
		if (w % 6 == 0 && !spooled_are_there(log, &acks[w], w, round)) {
			(void)fprintf(stderr, "round %u: a spooled row of writer %u is lost\n",
				      round, w);
			return false;
		}
		for (unsigned i = 0; i < acks[w].n; i++) {
			if (acks[w].v[i].seq == 0 || is_there(log, &acks[w].v[i]))
				continue;
			(void)fprintf(stderr, "round %u: row %lld of writer %u is lost\n", round,
				      (long long)acks[w].v[i].seq, w);
			return false;
		}
	}
	return true;
}

static void pause_us(unsigned us)
{
	struct timespec ts = { 0, (long)us * 1000 };

	(void)nanosleep(&ts, NULL);
}

/* All writers start, and end one by one at random; false when one ended by itself. */
static bool play(const struct audit_opts *o, unsigned round, struct acks *acks)
{
	pid_t pid[WRITERS];
	bool good = true;

	for (unsigned w = 0; w < WRITERS; w++) {
		acks[w].n = 0;
		pid[w] = fork();
		if (pid[w] == 0)
			write_on(o, w, round, &acks[w]);
		good = good && pid[w] > 0;
	}
	pause_us((unsigned)random() % WAIT_MAX_US);
	for (unsigned w = 0; w < WRITERS; w++) {
		int status = 0;

		if (pid[w] <= 0)
			continue;
		pause_us((unsigned)random() % 4000);
		(void)kill(pid[w], SIGKILL);
		if (waitpid(pid[w], &status, 0) != pid[w] || !WIFSIGNALED(status))
			good = false;
	}
	return good;
}

int main(int argc, char **argv)
{
	struct audit_opts o = { .dir = argc > 1 ? argv[1] : "",
				.mode = AUDIT_WRITE,
				.sign_every = SIGN_EVERY };
	struct acks *acks = mmap(NULL, WRITERS * sizeof(*acks), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct aqe_err e = AQE_ERR_INIT;
	uint64_t rounds = 200, told_rows = 0, spooled = 0;
	uint8_t key[1][32];
	unsigned round;
	bool good;

	if (acks == MAP_FAILED || (argc > 2 && !aqe_parse_u64(argv[2], 100000, &rounds)) ||
	    audit_key_make(&o, &e) != 0 || audit_key_public(&o, key[0], &e) != 0) {
		(void)printf("not ok audit crash: %s\n", e.text);
		return 1;
	}
	srandom((unsigned)time(NULL));
	good = true;
	for (round = 0; good && round < rounds; round++) {
		good = play(&o, round, acks) && judge(&o, acks, (const uint8_t(*)[32])key, round);
		for (unsigned w = 0; w < WRITERS; w++) {
			told_rows += acks[w].n;
			for (unsigned i = 0; i < acks[w].n; i++)
				spooled += acks[w].v[i].seq == 0;
		}
	}
	good = good && (spooled > 0 || rounds < 50); /* else nothing was shown of the spool */
	(void)printf("%s audit crash: %u rounds of %d writers killed, %llu rows acknowledged, "
		     "%llu of them in the spool\n",
		     good ? "ok" : "not ok", round, WRITERS, (unsigned long long)told_rows,
		     (unsigned long long)spooled);
	return good ? 0 : 1;
}
