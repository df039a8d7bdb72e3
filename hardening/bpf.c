/* SPDX-License-Identifier: MIT */
#include "hardening/bpf.h"

#include <linux/bpf_common.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* struct seccomp_data as words: nr, arch, ip (2), args (12). */
#define WORD_NR   0
#define WORD_ARCH 1
#define WORD_IP   2
#define WORD_ARGS 4
#define WORDS     16
#define X32_BIT   0x40000000U /* __X32_SYSCALL_BIT, asm/unistd.h */

#define STEPS_MAX 1000000
#define OPEN_MAX  1024
#define SET_WORDS (HARD_BPF_NRS_MAX / 64)

/* Where the accumulator came from: `word & mask`, so that a test of it narrows the word. */
#define FROM_NOTHING (-1)

struct value {
	struct hard_bpf_word w;
	int from;      /* index of the word it was loaded from, or FROM_NOTHING */
	uint32_t mask; /* bits of that word it still stands for */
};

struct state {
	size_t pc;
	struct value a, x;
	struct value mem[BPF_MEMWORDS];
	struct hard_bpf_word words[WORDS];
	uint64_t nrs[SET_WORDS]; /* which of the query's numbers can be here */
};

struct machine {
	const struct hard_bpf_insn *prog;
	size_t n_insns;
	const struct hard_bpf_query *q;
	size_t set_words;
	struct state *open; /* branches still to follow */
	size_t n_open;
	uint16_t *ret;
	size_t steps;
};

static const struct hard_bpf_word any = HARD_BPF_ANY;

static struct hard_bpf_word known(uint32_t v)
{
	return (struct hard_bpf_word){ v, 0 };
}

static struct value value_known(uint32_t v)
{
	return (struct value){ known(v), FROM_NOTHING, 0 };
}

/* ---- the set of syscall numbers ---- */

static bool set_empty(const struct machine *m, const struct state *s)
{
	for (size_t i = 0; i < m->set_words; i++) {
		if (s->nrs[i])
			return false;
	}
	return true;
}

/* ---- arithmetic on partly known words ---- */

static bool is_known(struct hard_bpf_word w)
{
	return w.unknown == 0;
}

static struct hard_bpf_word word_and(struct hard_bpf_word a, struct hard_bpf_word b)
{
	uint32_t zero = (~a.value & ~a.unknown) | (~b.value & ~b.unknown);
	uint32_t one = a.value & ~a.unknown & b.value & ~b.unknown;

	return (struct hard_bpf_word){ one, ~(zero | one) };
}

static struct hard_bpf_word word_or(struct hard_bpf_word a, struct hard_bpf_word b)
{
	uint32_t one = (a.value & ~a.unknown) | (b.value & ~b.unknown);
	uint32_t zero = ~a.value & ~a.unknown & ~b.value & ~b.unknown;

	return (struct hard_bpf_word){ one, ~(zero | one) };
}

static struct hard_bpf_word word_xor(struct hard_bpf_word a, struct hard_bpf_word b)
{
	uint32_t unknown = a.unknown | b.unknown;

	return (struct hard_bpf_word){ (a.value ^ b.value) & ~unknown, unknown };
}

/* Operations that need both operands known; anything else gives an unknown word. */
static struct hard_bpf_word word_math(unsigned op, struct hard_bpf_word a, struct hard_bpf_word b)
{
	if (!is_known(a) || !is_known(b))
		return any;
	switch (op) {
	case BPF_ADD:
		return known(a.value + b.value);
	case BPF_SUB:
		return known(a.value - b.value);
	case BPF_MUL:
		return known(a.value * b.value);
	case BPF_DIV: /* the kernel ends the program with 0 (kill) here; unknown covers that too */
		return b.value ? known(a.value / b.value) : any;
	case BPF_LSH:
		return b.value < 32 ? known(a.value << b.value) : any;
	case BPF_RSH:
		return b.value < 32 ? known(a.value >> b.value) : any;
	default:
		return any;
	}
}

static void do_alu(struct state *s, const struct hard_bpf_insn *in)
{
	unsigned op = BPF_OP(in->code);
	bool by_k = BPF_SRC(in->code) == BPF_K;
	struct hard_bpf_word b = by_k ? known(in->k) : s->x.w;
	struct value *a = &s->a;

	switch (op) {
	case BPF_AND:
		a->w = word_and(a->w, b);
		if (is_known(b) && a->from != FROM_NOTHING) {
			a->mask &= b.value; /* still "word & mask" */
			return;
		}
		break;
	case BPF_OR:
		a->w = word_or(a->w, b);
		break;
	case BPF_XOR:
		a->w = word_xor(a->w, b);
		break;
	case BPF_NEG:
		a->w = is_known(a->w) ? known(0U - a->w.value) : any;
		break;
	default:
		a->w = word_math(op, a->w, b);
		break;
	}
	/* The syscall number is a set, its word is "unknown": after such an operation nothing is
	 * left that could be split exactly, and the unknown word stays an over-approximation. */
	a->from = FROM_NOTHING;
	a->mask = 0;
}

static struct value load(const struct state *s, uint32_t offset)
{
	unsigned i = offset / 4;

	return (struct value){ s->words[i], (int)i, UINT32_MAX };
}

/* ---- conditions ---- */

enum verdict { NEVER, ALWAYS, MAYBE };

static bool holds(unsigned op, uint32_t v, uint32_t k)
{
	switch (op) {
	case BPF_JEQ:
		return v == k;
	case BPF_JGT:
		return v > k;
	case BPF_JGE:
		return v >= k;
	default: /* BPF_JSET, the only other one let through by the check of the program */
		return (v & k) != 0;
	}
}

static enum verdict judge(unsigned op, struct hard_bpf_word a, uint32_t k)
{
	uint32_t lo = a.value & ~a.unknown, hi = a.value | a.unknown;

	switch (op) {
	case BPF_JEQ:
		if ((a.value ^ k) & ~a.unknown)
			return NEVER;
		return is_known(a) ? ALWAYS : MAYBE;
	case BPF_JGT:
		return lo > k ? ALWAYS : hi > k ? MAYBE : NEVER;
	case BPF_JGE:
		return lo >= k ? ALWAYS : hi >= k ? MAYBE : NEVER;
	default:
		if (lo & k)
			return ALWAYS;
		return hi & k ? MAYBE : NEVER;
	}
}

/* What a branch taught us about the word the accumulator came from: fix those bits. */
static void learn(struct state *s, uint32_t bits, uint32_t value)
{
	struct value *a = &s->a;

	a->w.value = (a->w.value & ~bits) | (value & bits);
	a->w.unknown &= ~bits;
	if (a->from == FROM_NOTHING)
		return;
	struct hard_bpf_word *w = &s->words[a->from];

	bits &= a->mask;
	w->value = (w->value & ~bits) | (value & bits);
	w->unknown &= ~bits;
}

static bool one_bit(uint32_t v)
{
	return v && (v & (v - 1)) == 0;
}

/* All bits that a number of at most `v` can have. */
static uint32_t bits_up_to(uint32_t v)
{
	return v ? UINT32_MAX >> __builtin_clz(v) : 0;
}

static void narrow(struct state *s, unsigned op, uint32_t k, bool taken)
{
	uint32_t unknown = s->a.w.unknown;

	if (op == BPF_JEQ && taken)
		learn(s, UINT32_MAX, k);
	else if (op == BPF_JEQ && one_bit(unknown))
		learn(s, unknown, ~k);
	else if (op == BPF_JSET && !taken)
		learn(s, k, 0);
	else if (op == BPF_JSET && one_bit(unknown & k))
		learn(s, unknown & k, UINT32_MAX);
	else if (op == BPF_JGT && !taken)
		learn(s, ~bits_up_to(k), 0);
	else if (op == BPF_JGE && !taken && k)
		learn(s, ~bits_up_to(k - 1), 0);
	/* what else a range says is not expressible in bits; leaving it unknown over-approximates
	 */
}

static int push(struct machine *m, const struct state *s, size_t pc, struct aqe_err *e)
{
	if (m->n_open == OPEN_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "filter branches more than %d times",
				   OPEN_MAX);
	m->open[m->n_open] = *s;
	m->open[m->n_open].pc = pc;
	m->n_open++;
	return 0;
}

/* The first index whose number is >= k. */
static size_t lower_bound(const struct hard_bpf_query *q, uint32_t k)
{
	size_t lo = 0, hi = q->n_nrs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (q->nrs[mid] < k)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Moves the numbers with index in [lo, hi) from `s` to `yes`. */
static void move_range(struct state *s, struct state *yes, size_t lo, size_t hi)
{
	for (size_t i = lo; i < hi; i++) {
		if (i % 64 == 0 && hi - i >= 64) {
			yes->nrs[i / 64] = s->nrs[i / 64];
			s->nrs[i / 64] = 0;
			i += 63;
			continue;
		}
		uint64_t bit = 1ULL << (i % 64);

		yes->nrs[i / 64] |= s->nrs[i / 64] & bit;
		s->nrs[i / 64] &= ~bit;
	}
}

/* As above for the numbers for which a test of some of their bits holds. */
static void move_matching(const struct machine *m, struct state *s, struct state *yes,
			  const struct hard_bpf_insn *in)
{
	for (size_t i = 0; i < m->q->n_nrs; i++) {
		if (holds(BPF_OP(in->code), m->q->nrs[i] & s->a.mask, in->k))
			move_range(s, yes, i, i + 1);
	}
}

static bool range_empty(const struct state *s, size_t lo, size_t hi)
{
	for (size_t i = lo; i < hi; i++) {
		if (s->nrs[i / 64] & (1ULL << (i % 64)))
			return false;
	}
	return true;
}

/* The numbers for which a comparison holds are one range of the sorted list. */
static void range_of(const struct hard_bpf_query *q, unsigned op, uint32_t k, size_t *lo,
		     size_t *hi)
{
	*hi = q->n_nrs;
	*lo = lower_bound(q, k);
	bool found = *lo < *hi && q->nrs[*lo] == k;

	if (op == BPF_JEQ)
		*hi = *lo + found;
	else if (op == BPF_JGT)
		*lo += found;
}

/* A test of the syscall number splits the set exactly: the numbers for which it holds go to the
 * true branch, the rest goes on in `s` with the false branch. */
static int split_nrs(struct machine *m, struct state *s, const struct hard_bpf_insn *in,
		     struct aqe_err *e)
{
	struct state *yes = &m->open[m->n_open];
	size_t base = s->pc + 1, lo = 0, hi = m->q->n_nrs;
	unsigned op = BPF_OP(in->code);
	bool ranged = s->a.mask == UINT32_MAX && op != BPF_JSET;

	if (ranged)
		range_of(m->q, op, in->k, &lo, &hi);
	if (ranged && hi - lo <= 1 && range_empty(s, lo, hi)) {
		s->pc = base + in->jf; /* the usual case in a long chain of JEQ: nothing to copy */
		return 0;
	}
	if (m->n_open == OPEN_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "filter branches more than %d times",
				   OPEN_MAX);
	*yes = *s;
	memset(yes->nrs, 0, sizeof(yes->nrs));
	if (ranged)
		move_range(s, yes, lo, hi);
	else
		move_matching(m, s, yes, in);
	yes->pc = base + in->jt;
	s->pc = base + in->jf;
	if (!set_empty(m, yes))
		m->n_open++;
	return 0;
}

static int do_jump(struct machine *m, struct state *s, const struct hard_bpf_insn *in,
		   struct aqe_err *e)
{
	unsigned op = BPF_OP(in->code);
	size_t base = s->pc + 1;

	if (op == BPF_JA) {
		s->pc = base + in->k;
		return 0;
	}
	if (BPF_SRC(in->code) == BPF_X && !is_known(s->x.w)) {
		s->pc = base + in->jf;
		return in->jt == in->jf ? 0 : push(m, s, base + in->jt, e);
	}
	struct hard_bpf_insn by_k = *in;

	if (BPF_SRC(in->code) == BPF_X)
		by_k.k = s->x.w.value;
	if (s->a.from == WORD_NR)
		return split_nrs(m, s, &by_k, e);
	switch (judge(op, s->a.w, by_k.k)) {
	case NEVER:
		s->pc = base + in->jf;
		return 0;
	case ALWAYS:
		s->pc = base + in->jt;
		return 0;
	case MAYBE:
		break;
	}
	struct value a = s->a;
	struct hard_bpf_word w = a.from == FROM_NOTHING ? any : s->words[a.from];

	narrow(s, op, by_k.k, true);
	if (push(m, s, base + in->jt, e) < 0)
		return e ? (int)e->code : AQE_E_LIMIT;
	s->a = a;
	if (a.from != FROM_NOTHING)
		s->words[a.from] = w;
	narrow(s, op, by_k.k, false);
	s->pc = base + in->jf;
	return 0;
}

/* ---- ends of paths ---- */

static uint16_t action_class(uint32_t ret)
{
	switch (ret & SECCOMP_RET_ACTION_FULL) {
	case SECCOMP_RET_KILL_PROCESS:
	case SECCOMP_RET_KILL_THREAD:
		return HARD_BPF_KILL;
	case SECCOMP_RET_TRAP:
		return HARD_BPF_TRAP;
	case SECCOMP_RET_ERRNO:
		return (ret & SECCOMP_RET_DATA) ? HARD_BPF_ERRNO : HARD_BPF_ERRNO0;
	case SECCOMP_RET_USER_NOTIF:
		return HARD_BPF_NOTIFY;
	case SECCOMP_RET_TRACE:
		return HARD_BPF_TRACE;
	case SECCOMP_RET_LOG:
		return HARD_BPF_LOG;
	case SECCOMP_RET_ALLOW:
		return HARD_BPF_ALLOW;
	default: /* the kernel treats unknown actions as KILL_PROCESS; newer ones may not be */
		return HARD_BPF_KILL | HARD_BPF_ALLOW;
	}
}

static void finish(struct machine *m, const struct state *s, const struct hard_bpf_insn *in)
{
	uint16_t set;

	if (BPF_RVAL(in->code) == BPF_K)
		set = action_class(in->k);
	else
		set = is_known(s->a.w) ? action_class(s->a.w.value)
				       : (uint16_t)(HARD_BPF_OPEN | HARD_BPF_KILL);
	for (size_t i = 0; i < m->q->n_nrs; i++) {
		if (s->nrs[i / 64] & (1ULL << (i % 64)))
			m->ret[i] |= set;
	}
}

/* One instruction that is neither a jump nor an end. */
static void do_plain(struct state *s, const struct hard_bpf_insn *in)
{
	switch (BPF_CLASS(in->code)) {
	case BPF_LD:
		if (BPF_MODE(in->code) == BPF_ABS)
			s->a = load(s, in->k);
		else if (BPF_MODE(in->code) == BPF_MEM)
			s->a = s->mem[in->k];
		else
			s->a = value_known(BPF_MODE(in->code) == BPF_IMM
						   ? in->k
						   : (uint32_t)sizeof(struct seccomp_data));
		break;
	case BPF_LDX:
		if (BPF_MODE(in->code) == BPF_MEM)
			s->x = s->mem[in->k];
		else
			s->x = value_known(BPF_MODE(in->code) == BPF_IMM
						   ? in->k
						   : (uint32_t)sizeof(struct seccomp_data));
		break;
	case BPF_ST:
		s->mem[in->k] = s->a;
		break;
	case BPF_STX:
		s->mem[in->k] = s->x;
		break;
	case BPF_ALU:
		do_alu(s, in);
		break;
	default: /* BPF_MISC */
		if (BPF_MISCOP(in->code) == BPF_TAX)
			s->x = s->a;
		else
			s->a = s->x;
		break;
	}
	s->pc++;
}

static int follow(struct machine *m, struct state *s, struct aqe_err *e)
{
	for (;;) {
		const struct hard_bpf_insn *in = &m->prog[s->pc];

		if (++m->steps > STEPS_MAX)
			return aqe_err_set(e, AQE_E_LIMIT, 0,
					   "filter needs more than %d steps to decide", STEPS_MAX);
		if (BPF_CLASS(in->code) == BPF_RET) {
			finish(m, s, in);
			return 0;
		}
		if (BPF_CLASS(in->code) != BPF_JMP) {
			do_plain(s, in);
			continue;
		}
		int rc = do_jump(m, s, in, e);

		if (rc < 0)
			return rc;
		if (set_empty(m, s))
			return 0;
	}
}

/* ---- the program must be one the kernel would load (seccomp_check_filter, bpf_check_classic) ----
 */

struct insn_rule {
	uint16_t code;
	enum { ARG_NONE, ARG_DATA, ARG_MEM, ARG_JA, ARG_COND, ARG_DIV, ARG_SHIFT } arg;
};

/* The ones that libseccomp writes most come first: the table is searched for every instruction. */
static const struct insn_rule insn_rules[] = {
	{ BPF_JMP | BPF_JEQ | BPF_K, ARG_COND },
	{ BPF_RET | BPF_K, ARG_NONE },
	{ BPF_LD | BPF_W | BPF_ABS, ARG_DATA },
	{ BPF_ALU | BPF_AND | BPF_K, ARG_NONE },
	{ BPF_JMP | BPF_JGE | BPF_K, ARG_COND },
	{ BPF_JMP | BPF_JGT | BPF_K, ARG_COND },
	{ BPF_JMP | BPF_JA, ARG_JA },
	{ BPF_LD | BPF_W | BPF_LEN, ARG_NONE },
	{ BPF_LDX | BPF_W | BPF_LEN, ARG_NONE },
	{ BPF_LD | BPF_IMM, ARG_NONE },
	{ BPF_LDX | BPF_IMM, ARG_NONE },
	{ BPF_LD | BPF_MEM, ARG_MEM },
	{ BPF_LDX | BPF_MEM, ARG_MEM },
	{ BPF_ST, ARG_MEM },
	{ BPF_STX, ARG_MEM },
	{ BPF_ALU | BPF_ADD | BPF_K, ARG_NONE },
	{ BPF_ALU | BPF_ADD | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_SUB | BPF_K, ARG_NONE },
	{ BPF_ALU | BPF_SUB | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_MUL | BPF_K, ARG_NONE },
	{ BPF_ALU | BPF_MUL | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_DIV | BPF_K, ARG_DIV },
	{ BPF_ALU | BPF_DIV | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_AND | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_OR | BPF_K, ARG_NONE },
	{ BPF_ALU | BPF_OR | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_XOR | BPF_K, ARG_NONE },
	{ BPF_ALU | BPF_XOR | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_LSH | BPF_K, ARG_SHIFT },
	{ BPF_ALU | BPF_LSH | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_RSH | BPF_K, ARG_SHIFT },
	{ BPF_ALU | BPF_RSH | BPF_X, ARG_NONE },
	{ BPF_ALU | BPF_NEG, ARG_NONE },
	{ BPF_MISC | BPF_TAX, ARG_NONE },
	{ BPF_MISC | BPF_TXA, ARG_NONE },
	{ BPF_RET | BPF_A, ARG_NONE },
	{ BPF_JMP | BPF_JEQ | BPF_X, ARG_COND },
	{ BPF_JMP | BPF_JGT | BPF_X, ARG_COND },
	{ BPF_JMP | BPF_JGE | BPF_X, ARG_COND },
	{ BPF_JMP | BPF_JSET | BPF_K, ARG_COND },
	{ BPF_JMP | BPF_JSET | BPF_X, ARG_COND },
};

static bool insn_ok(const struct hard_bpf_insn *in, size_t left)
{
	size_t i = 0;

	while (i < AQE_COUNT(insn_rules) && insn_rules[i].code != in->code)
		i++;
	if (i == AQE_COUNT(insn_rules))
		return false;
	switch (insn_rules[i].arg) {
	case ARG_NONE:
		return true;
	case ARG_DATA:
		return in->k % 4 == 0 && in->k < sizeof(struct seccomp_data);
	case ARG_MEM:
		return in->k < BPF_MEMWORDS;
	case ARG_JA:
		return in->k < left;
	case ARG_COND:
		return in->jt < left && in->jf < left;
	case ARG_DIV:
		return in->k != 0;
	case ARG_SHIFT:
		return in->k < 32;
	}
	return false;
}

static int check_program(const struct hard_bpf_insn *prog, size_t n, struct aqe_err *e)
{
	if (n == 0 || n > HARD_BPF_INSNS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "filter has %zu instructions, limit %d", n,
				   HARD_BPF_INSNS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!insn_ok(&prog[i], n - i - 1))
			return aqe_err_set(e, AQE_E_MALFORMED, 0,
					   "instruction %zu (code 0x%x) is not valid in a filter",
					   i, (unsigned)prog[i].code);
	}
	if (BPF_CLASS(prog[n - 1].code) != BPF_RET)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "filter does not end in a return");
	return 0;
}

static void begin(struct state *s, const struct hard_bpf_query *q)
{
	memset(s, 0, sizeof(*s));
	s->a = s->x = value_known(0);
	for (size_t i = 0; i < BPF_MEMWORDS; i++)
		s->mem[i] = value_known(0);
	s->words[WORD_NR] = any;
	s->words[WORD_ARCH] = known(q->arch);
	s->words[WORD_IP] = s->words[WORD_IP + 1] = any;
	memcpy(&s->words[WORD_ARGS], q->args, sizeof(q->args));
	for (size_t i = 0; i < q->n_nrs; i++)
		s->nrs[i / 64] |= 1ULL << (i % 64);
}

int hard_bpf_reach(const struct hard_bpf_insn *prog, size_t n_insns, const struct hard_bpf_query *q,
		   uint16_t *ret, struct aqe_err *e)
{
	struct machine m = { prog, n_insns, q, (q->n_nrs + 63) / 64, NULL, 0, ret, 0 };
	AQE_AUTO_FREE void *stack = NULL;
	int rc = check_program(prog, n_insns, e);

	if (rc < 0)
		return rc;
	if (q->n_nrs == 0 || q->n_nrs > HARD_BPF_NRS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "%zu syscall numbers asked for, limit %d",
				   q->n_nrs, HARD_BPF_NRS_MAX);
	/* not zeroed: a branch is written whole before it is read, and few are ever used */
	stack = malloc(OPEN_MAX * sizeof(struct state));
	if (!stack)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "no memory for the filter's branches");
	m.open = stack;
	memset(ret, 0, q->n_nrs * sizeof(*ret));

	struct state s;

	begin(&s, q);
	for (;;) {
		rc = follow(&m, &s, e);
		if (rc < 0 || m.n_open == 0)
			return rc;
		s = m.open[--m.n_open];
	}
}

/* Numbers below HARD_BPF_NRS_BASE, natively and as x32, are in every query anyway. */
static bool is_base(uint32_t v)
{
	return (v & ~X32_BIT) < HARD_BPF_NRS_BASE;
}

static int add_number(uint32_t v, uint32_t *nrs, size_t *n, struct aqe_err *e)
{
	if (is_base(v))
		return 0;
	for (size_t i = 0; i < *n; i++) {
		if (nrs[i] == v)
			return 0;
	}
	if (*n == HARD_BPF_NRS_MAX)
		return aqe_err_set(e, AQE_E_LIMIT, 0, "filter has more than %d distinct numbers",
				   HARD_BPF_NRS_MAX);
	nrs[(*n)++] = v;
	return 0;
}

int hard_bpf_constants(const struct hard_bpf_insn *prog, size_t n_insns, uint32_t *nrs, size_t *n,
		       struct aqe_err *e)
{
	for (size_t i = 0; i < n_insns; i++) {
		const struct hard_bpf_insn *in = &prog[i];

		if (BPF_CLASS(in->code) != BPF_JMP || BPF_OP(in->code) == BPF_JA)
			continue;
		for (uint32_t d = 0; d < 3; d++) {
			int rc = add_number(in->k - 1 + d, nrs, n, e);

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}
