/* SPDX-License-Identifier: MIT */
/* The machine against its oracle: all sequences to a depth, a million random ones, and all states
 * that can be reached with small numbers. */
#include <stdio.h>

#include "shim/core/text.h"
#include "tests/unit/supervisor_oracle.h"

/* Numbers so small that every count and every interval is run through. */
static const struct shim_sup_config SMALL = {
	.base_ms = 2,
	.cap_ms = 4,
	.attempts = 3,
	.healthy_ms = 5,
	.probe_ms = 2,
	.probe_misses = 2,
	.start_timeout_ms = 2,
	.alive_timeout_ms = 1,
	.stop_timeout_ms = 2,
};

static const struct shim_sup_saved SAVED[] = {
	{ 0, SHIM_SUP_HOLD_NONE, false, 0 },      { 0, SHIM_SUP_HOLD_NONE, true, 0 },
	{ 2, SHIM_SUP_HOLD_NONE, true, 0 },       { 3, SHIM_SUP_HOLD_CRASH_LOOP, false, 0 },
	{ 0, SHIM_SUP_HOLD_CRASH_LOOP, true, 0 }, { 1, SHIM_SUP_HOLD_REFUSED, false, 0 },
};

/* What may happen next. A word is an event and how its token and time are. */
enum token { NONE, CURRENT, STALE, INSTANCE };
enum when { NOW, SOON, DUE, EARLY };
struct word {
	enum shim_sup_event event;
	enum token token;
	enum when when;
};
static const struct word WORDS[] = {
	{ SHIM_SUP_WANT_UP, NONE, NOW },         { SHIM_SUP_WANT_DOWN, NONE, NOW },
	{ SHIM_SUP_RESET, NONE, NOW },           { SHIM_SUP_STARTED, CURRENT, NOW },
	{ SHIM_SUP_START_FAILED, CURRENT, NOW }, { SHIM_SUP_START_REFUSED, CURRENT, SOON },
	{ SHIM_SUP_YES, CURRENT, NOW },          { SHIM_SUP_YES, CURRENT, SOON },
	{ SHIM_SUP_NO, CURRENT, NOW },           { SHIM_SUP_DONE, CURRENT, NOW },
	{ SHIM_SUP_PROBE_FAILED, CURRENT, NOW }, { SHIM_SUP_STOP_OK, CURRENT, NOW },
	{ SHIM_SUP_STOP_FAILED, CURRENT, SOON }, { SHIM_SUP_STARTED, STALE, NOW },
	{ SHIM_SUP_STOP_OK, STALE, NOW },        { SHIM_SUP_EXITED_OK, INSTANCE, NOW },
	{ SHIM_SUP_EXITED_BAD, INSTANCE, NOW },  { SHIM_SUP_EXITED_BAD, STALE, NOW },
	{ SHIM_SUP_TIMER, NONE, DUE },           { SHIM_SUP_TIMER, NONE, EARLY },
};
#define REBIRTH AQE_COUNT(WORDS) /* one word more: the supervisor dies and another one begins */
#define ALL     (AQE_COUNT(WORDS) + 1)

struct world {
	struct shim_sup m;
	struct oracle o;
	int64_t clock_ms;
};

static void world_init(struct world *w, const struct shim_sup_saved *saved)
{
	memset(w, 0, sizeof(*w));
	w->clock_ms = 1000;
	shim_sup_init(&w->m, &SMALL, saved, w->clock_ms);
	oracle_init(&w->o, &SMALL, saved);
}

/* The new supervisor knows the disk only; the old one's answers go nowhere. */
static void rebirth(struct world *w)
{
	struct shim_sup_saved disk = w->o.disk;

	shim_sup_init(&w->m, &SMALL, &disk, w->clock_ms);
	w->o.call = SHIM_SUP_DO_SAVE;
	w->o.token = 0;
	w->o.wanted = w->o.armed = w->o.held = false;
	w->o.exists = disk.running;
	w->o.failures = w->o.starts = disk.failures;
}

static uint64_t token_of(const struct world *w, enum token t)
{
	switch (t) {
	case NONE:
		return 0;
	case CURRENT:
		return w->m.token;
	case STALE:
		return w->m.token - 1;
	case INSTANCE:
		return w->m.instance;
	}
	return 0;
}

static void live(struct world *w, const struct word *word, uint64_t random)
{
	struct shim_sup_out out;
	struct shim_sup_in in = { .event = word->event, .random = random };
	int64_t left = w->m.due_ms - w->m.now_ms;

	in.token = token_of(w, word->token);
	w->clock_ms += word->when == SOON ? 1 : word->when == DUE && left > 0 ? left : 0;
	in.now_ms = w->clock_ms;
	shim_sup_step(&w->m, &in, &out);
	oracle_check(&w->o, &w->m, &in, &out);
}

static void say(struct world *w, size_t word, uint64_t random)
{
	if (word == REBIRTH)
		rebirth(w);
	else
		live(w, &WORDS[word], random);
}

/* With nothing out all answers are the same: late. */
static bool is_dull(const struct world *w, size_t word)
{
	return word != REBIRTH && WORDS[word].token == CURRENT && w->o.call == SHIM_SUP_DO_SAVE &&
	       WORDS[word].event != SHIM_SUP_STARTED;
}

/* ---- all sequences ---- */

#define DEPTH 6

static size_t n_sequences;

static void descend(const struct world *w, int depth)
{
	n_sequences++;
	if (depth == 0)
		return;
	for (size_t i = 0; i < ALL; i++) {
		struct world next = *w;

		if (is_dull(w, i))
			continue;
		say(&next, i, depth % 2 ? UINT64_MAX : 0);
		descend(&next, depth - 1);
	}
}

START_TEST(step__holds_to_the_oracle_in_all_sequences)
{
	struct world w;
	const char *more = getenv("AQE_MODEL_DEPTH"); /* one digit */
	int depth = (more ? more[0] - '0' : DEPTH) - 1;

	world_init(&w, &SAVED[_i]);
	/* the first wish is always up: without it nothing happens */
	live(&w, &WORDS[0], 0);
	n_sequences = 0;
	descend(&w, depth);
	printf("# %zu sequences to depth %d from start %d\n", n_sequences, depth + 1, _i);
}
END_TEST

/* ---- random sequences ---- */

#define SEQUENCES 1000000
#define LENGTH    40

static uint64_t next_random(uint64_t *s)
{
	/* xorshift64*: Vigna, An experimental exploration of Marsaglia's xorshift generators */
	*s ^= *s >> 12;
	*s ^= *s << 25;
	*s ^= *s >> 27;
	return *s * 2685821657736338717ULL;
}

START_TEST(step__holds_to_the_oracle_in_a_million_random_sequences)
{
	uint64_t seed = 0x9e3779b97f4a7c15ULL;
	size_t held = 0, steps = 0;

	for (size_t i = 0; i < SEQUENCES; i++) {
		struct world w;

		world_init(&w, &SAVED[i % AQE_COUNT(SAVED)]);
		for (int j = 0; j < LENGTH; j++) {
			uint64_t r = next_random(&seed);

			/* the clock may be set back or jump */
			if (r % 64 == 0)
				w.clock_ms += (int64_t)(r >> 40) - (1 << 23);
			say(&w, (r >> 32) % ALL, next_random(&seed));
			steps++;
		}
		held += w.m.state == SHIM_SUP_HELD;
	}
	ck_assert_uint_gt(held, SEQUENCES / 100); /* the sequences do get somewhere */
	printf("# %d sequences, %zu steps, %zu end held\n", SEQUENCES, steps, held);
}
END_TEST

/* ---- all states ---- */

/* A state without its history: what is the same here behaves the same for ever. */
struct key {
	int8_t state, next, hold, running, unclean, adopting, proven, failures, misses, stop_tries,
		instance, due, since, alive;
	int8_t call, wanted, exists, refused, held, armed, starts, count, disk_failures, disk_hold,
		disk_running;
};

static int8_t small(int64_t v)
{
	if (v < INT8_MIN || v > INT8_MAX)
		ck_abort_msg("a member of the state does not fit: %lld", (long long)v);
	return (int8_t)v;
}

static int64_t at_most(int64_t v, int64_t most)
{
	return v < most ? v : most;
}

static struct key key_of(const struct world *w)
{
	const struct shim_sup *m = &w->m;
	const struct oracle *o = &w->o;
	bool rests = m->state == SHIM_SUP_STOPPED || m->state == SHIM_SUP_HELD;
	struct key k;

	memset(&k, 0, sizeof(k));
	k.state = (int8_t)m->state;
	k.next = m->state == SHIM_SUP_STOPPING ? (int8_t)m->next : 0;
	k.hold = (int8_t)m->hold;
	k.running = m->running;
	k.unclean = m->unclean;
	k.adopting = m->adopting;
	k.proven = m->proven;
	k.failures = small(m->failures);
	k.misses = small(m->misses);
	k.stop_tries = small(m->stop_tries);
	k.instance = m->instance != 0;
	k.due = rests ? 0 : small(m->due_ms > m->now_ms ? m->due_ms - m->now_ms : 0);
	k.since = m->alive_at_ms < 0 ? -1 : small(at_most(m->now_ms - m->alive_at_ms, 4));
	k.alive = small(at_most(m->alive_ms, m->cfg.healthy_ms));
	k.call = (int8_t)o->call;
	k.wanted = o->wanted;
	k.exists = o->exists;
	k.refused = o->refused;
	k.held = o->held;
	k.armed = o->armed;
	k.starts = small(o->starts);
	k.count = small(o->failures);
	k.disk_failures = small(o->disk.failures);
	k.disk_hold = (int8_t)o->disk.hold;
	k.disk_running = o->disk.running;
	return k;
}

#define TABLE_BITS 20
#define TABLE_SIZE ((size_t)1 << TABLE_BITS)

static struct key *table;
static struct world *reached;
static uint32_t *bucket; /* index in both + 1 */
static size_t n_reached;

static void reach(const struct world *w)
{
	struct key k = key_of(w);
	uint64_t h = 1469598103934665603ULL; /* FNV-1a */
	const unsigned char *p = (const unsigned char *)&k;

	for (size_t i = 0; i < sizeof(k); i++)
		h = (h ^ p[i]) * 1099511628211ULL;
	for (h >>= 64 - TABLE_BITS; bucket[h]; h = (h + 1) % TABLE_SIZE) {
		if (memcmp(&table[bucket[h] - 1], &k, sizeof(k)) == 0)
			return;
	}
	if (n_reached >= TABLE_SIZE / 2)
		ck_abort_msg("too many states");
	table[n_reached] = k;
	reached[n_reached] = *w;
	n_reached++;
	bucket[h] = (uint32_t)n_reached;
}

/* A driver that never answers again: it must come to rest by itself. */
static int silence(struct world w)
{
	static const struct word due = { SHIM_SUP_TIMER, NONE, DUE };
	int n = 0;

	while (w.m.state != SHIM_SUP_STOPPED && w.m.state != SHIM_SUP_HELD) {
		live(&w, &due, UINT64_MAX);
		if (++n >= 100)
			ck_abort_msg("it does not come to rest");
	}
	return n;
}

START_TEST(step__holds_to_the_oracle_in_every_reachable_state)
{
	size_t edges = 0;
	int longest = 0;

	table = calloc(TABLE_SIZE / 2, sizeof(*table));
	reached = calloc(TABLE_SIZE / 2, sizeof(*reached));
	bucket = calloc(TABLE_SIZE, sizeof(*bucket));
	ck_assert(table && reached && bucket);
	for (size_t i = 0; i < AQE_COUNT(SAVED); i++) {
		struct world w;

		world_init(&w, &SAVED[i]);
		reach(&w);
	}
	for (size_t at = 0; at < n_reached; at++) {
		int n = silence(reached[at]);

		longest = n > longest ? n : longest;
		for (size_t i = 0; i < 2 * ALL; i++) {
			struct world next = reached[at];

			say(&next, i / 2, i % 2 ? UINT64_MAX : 0);
			reach(&next);
			edges++;
		}
	}
	printf("# %zu states, %zu transitions, at most %d timers to rest\n", n_reached, edges,
	       longest);
	free(table);
	free(reached);
	free(bucket);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("supervisor_model");
	TCase *t = tcase_create("model");

	tcase_set_timeout(t, 300);
	tcase_add_loop_test(t, step__holds_to_the_oracle_in_all_sequences, 0, AQE_COUNT(SAVED));
	tcase_add_test(t, step__holds_to_the_oracle_in_a_million_random_sequences);
	tcase_add_test(t, step__holds_to_the_oracle_in_every_reachable_state);
	suite_add_tcase(s, t);
	return unit_run(s);
}
