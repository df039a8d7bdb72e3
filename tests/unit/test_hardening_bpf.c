/* SPDX-License-Identifier: MIT */
#include "hardening/bpf.h"

#include <check.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"

#define NR        0
#define ARCH      4
#define ARG_LO(i) (16 + 8 * (i))
#define ARG_HI(i) (20 + 8 * (i))

#define LOAD(off)                                     \
	{                                             \
		BPF_LD | BPF_W | BPF_ABS, 0, 0, (off) \
	}
#define IF_EQ(k, jt, jf)                                   \
	{                                                  \
		BPF_JMP | BPF_JEQ | BPF_K, (jt), (jf), (k) \
	}
#define IF_GT(k, jt, jf)                                   \
	{                                                  \
		BPF_JMP | BPF_JGT | BPF_K, (jt), (jf), (k) \
	}
#define IF_GE(k, jt, jf)                                   \
	{                                                  \
		BPF_JMP | BPF_JGE | BPF_K, (jt), (jf), (k) \
	}
#define IF_SET(k, jt, jf)                                   \
	{                                                   \
		BPF_JMP | BPF_JSET | BPF_K, (jt), (jf), (k) \
	}
#define AND(k)                                       \
	{                                            \
		BPF_ALU | BPF_AND | BPF_K, 0, 0, (k) \
	}
#define RET(v)                             \
	{                                  \
		BPF_RET | BPF_K, 0, 0, (v) \
	}
#define ALLOW RET(SECCOMP_RET_ALLOW)
#define DENY  RET(SECCOMP_RET_ERRNO | 1)

static struct hard_bpf_query query(const uint32_t *nrs, size_t n)
{
	struct hard_bpf_query q = { AUDIT_ARCH_X86_64, nrs, n, { { 0, 0 } } };

	for (size_t i = 0; i < AQE_COUNT(q.args); i++)
		q.args[i] = (struct hard_bpf_word)HARD_BPF_ANY;
	return q;
}

/* ---- the set of numbers is split exactly ---- */

START_TEST(reach__splits_numbers_exactly)
{
	const struct hard_bpf_insn prog[] = { LOAD(NR),
					      IF_GE(100, 3, 0),
					      IF_EQ(7, 0, 1),
					      RET(SECCOMP_RET_LOG),
					      ALLOW,
					      IF_GT(200, 1, 0),
					      DENY,
					      IF_SET(1, 0, 1),
					      RET(SECCOMP_RET_TRAP),
					      RET(SECCOMP_RET_KILL_PROCESS) };
	const uint32_t nrs[] = { 0, 6, 7, 8, 99, 100, 200, 201, 202 };
	const uint16_t want[] = { HARD_BPF_ALLOW, HARD_BPF_ALLOW, HARD_BPF_LOG,
				  HARD_BPF_ALLOW, HARD_BPF_ALLOW, HARD_BPF_ERRNO,
				  HARD_BPF_ERRNO, HARD_BPF_TRAP,  HARD_BPF_KILL };
	struct hard_bpf_query q = query(nrs, AQE_COUNT(nrs));
	struct aqe_err e = AQE_ERR_INIT;
	uint16_t got[AQE_COUNT(nrs)];

	ck_assert_int_eq(hard_bpf_reach(prog, AQE_COUNT(prog), &q, got, &e), 0);
	for (size_t i = 0; i < AQE_COUNT(nrs); i++)
		ck_assert_msg(got[i] == want[i], "number %u: got 0x%x, want 0x%x", nrs[i], got[i],
			      want[i]);
}
END_TEST

START_TEST(reach__splits_more_than_64_numbers)
{
	const struct hard_bpf_insn prog[] = { LOAD(NR), IF_GT(70, 2, 0), IF_GE(3, 0, 1), DENY,
					      ALLOW };
	uint32_t nrs[200];
	uint16_t got[200];
	struct aqe_err e = AQE_ERR_INIT;

	for (uint32_t i = 0; i < AQE_COUNT(nrs); i++)
		nrs[i] = i;
	struct hard_bpf_query q = query(nrs, AQE_COUNT(nrs));

	ck_assert_int_eq(hard_bpf_reach(prog, AQE_COUNT(prog), &q, got, &e), 0);
	for (uint32_t i = 0; i < AQE_COUNT(nrs); i++)
		ck_assert_uint_eq(got[i], i >= 3 && i <= 70 ? HARD_BPF_ERRNO : HARD_BPF_ALLOW);
}
END_TEST

/* ---- unknown argument bits ---- */

static uint16_t reach_arg(const struct hard_bpf_insn *prog, size_t n, struct hard_bpf_word lo,
			  struct hard_bpf_word hi)
{
	const uint32_t nr = 41;
	struct hard_bpf_query q = query(&nr, 1);
	struct aqe_err e = AQE_ERR_INIT;
	uint16_t got = 0;

	q.args[0] = lo;
	q.args[1] = hi;
	ck_assert_int_eq(hard_bpf_reach(prog, n, &q, &got, &e), 0);
	return got;
}

START_TEST(reach__64_bit_compare_is_passed_through_the_high_half)
{
	/* arg0 != 40, as libseccomp compares: high half first */
	const struct hard_bpf_insn prog[] = { LOAD(ARG_HI(0)), IF_EQ(0, 0, 3), LOAD(ARG_LO(0)),
					      IF_EQ(40, 0, 1), DENY,           ALLOW };
	const struct hard_bpf_word vsock = { 40, 0 }, any = HARD_BPF_ANY, zero = { 0, 0 };

	ck_assert_uint_eq(reach_arg(prog, AQE_COUNT(prog), vsock, zero), HARD_BPF_ERRNO);
	ck_assert_uint_eq(reach_arg(prog, AQE_COUNT(prog), vsock, any),
			  HARD_BPF_ERRNO | HARD_BPF_ALLOW);
}
END_TEST

START_TEST(reach__masked_compare_of_the_low_half_is_decided)
{
	const struct hard_bpf_insn prog[] = { LOAD(ARG_LO(0)), AND(0xffffffffU), IF_EQ(1, 0, 1),
					      ALLOW, DENY };
	const struct hard_bpf_word vsock = { 40, 0 }, unix_family = { 1, 0 }, any = HARD_BPF_ANY;

	ck_assert_uint_eq(reach_arg(prog, AQE_COUNT(prog), vsock, any), HARD_BPF_ERRNO);
	ck_assert_uint_eq(reach_arg(prog, AQE_COUNT(prog), unix_family, any), HARD_BPF_ALLOW);
}
END_TEST

START_TEST(reach__flag_test_is_decided_with_the_other_bits_unknown)
{
	const uint32_t newuser = 0x10000000U, mask = 0x7e020000U;
	const struct hard_bpf_insn prog[] = { LOAD(ARG_LO(0)), AND(mask), IF_EQ(0, 0, 1), ALLOW,
					      DENY };
	const struct hard_bpf_insn hole[] = { LOAD(ARG_LO(0)), AND(mask & ~newuser), IF_EQ(0, 0, 1),
					      ALLOW, DENY };
	const struct hard_bpf_word flag = { newuser, ~newuser }, any = HARD_BPF_ANY;

	ck_assert_uint_eq(reach_arg(prog, AQE_COUNT(prog), flag, any), HARD_BPF_ERRNO);
	ck_assert_uint_eq(reach_arg(hole, AQE_COUNT(hole), flag, any),
			  HARD_BPF_ERRNO | HARD_BPF_ALLOW);
}
END_TEST

START_TEST(reach__a_branch_narrows_later_loads)
{
	/* arg0 == 5, and then (a second look) arg0 != 5: that path does not exist */
	const struct hard_bpf_insn prog[] = { LOAD(ARG_LO(0)), IF_EQ(5, 0, 3), LOAD(ARG_LO(0)),
					      IF_EQ(5, 1, 0),  ALLOW,          DENY };
	const struct hard_bpf_word any = HARD_BPF_ANY;

	ck_assert_uint_eq(reach_arg(prog, AQE_COUNT(prog), any, any), HARD_BPF_ERRNO);
}
END_TEST

/* ---- every kind of end has its own class ---- */

static const struct {
	uint32_t ret;
	uint16_t want;
} ends[] = {
	{ SECCOMP_RET_ALLOW, HARD_BPF_ALLOW },
	{ SECCOMP_RET_LOG, HARD_BPF_LOG },
	{ SECCOMP_RET_TRACE | 3, HARD_BPF_TRACE },
	{ SECCOMP_RET_USER_NOTIF, HARD_BPF_NOTIFY },
	{ SECCOMP_RET_ERRNO | 38, HARD_BPF_ERRNO },
	{ SECCOMP_RET_ERRNO, HARD_BPF_ERRNO0 },
	{ SECCOMP_RET_TRAP, HARD_BPF_TRAP },
	{ SECCOMP_RET_KILL_THREAD, HARD_BPF_KILL },
	{ SECCOMP_RET_KILL_PROCESS, HARD_BPF_KILL },
	{ 0x12340000U, HARD_BPF_KILL | HARD_BPF_ALLOW },
};

START_TEST(reach__classes_of_actions)
{
	const struct hard_bpf_insn prog[] = { RET(ends[_i].ret) };
	const struct hard_bpf_word any = HARD_BPF_ANY;

	ck_assert_uint_eq(reach_arg(prog, 1, any, any), ends[_i].want);
}
END_TEST

START_TEST(reach__returned_accumulator_may_be_anything)
{
	const struct hard_bpf_insn prog[] = { LOAD(ARG_LO(0)), { BPF_RET | BPF_A, 0, 0, 0 } };
	const struct hard_bpf_word any = HARD_BPF_ANY;

	ck_assert_uint_eq(reach_arg(prog, 2, any, any), HARD_BPF_OPEN | HARD_BPF_KILL);
}
END_TEST

/* ---- programs the kernel would not load ---- */

static const struct {
	const char *what;
	struct hard_bpf_insn prog[3];
	size_t n;
	int code;
} bad[] = {
	{ "empty", { ALLOW }, 0, AQE_E_LIMIT },
	{ "no return at the end", { LOAD(NR) }, 1, AQE_E_MALFORMED },
	{ "jump past the end", { IF_EQ(1, 1, 0), ALLOW }, 2, AQE_E_MALFORMED },
	{ "jump far past the end",
	  { { BPF_JMP | BPF_JA, 0, 0, 0xffffffffU }, ALLOW },
	  2,
	  AQE_E_MALFORMED },
	{ "unaligned load", { LOAD(2), ALLOW }, 2, AQE_E_MALFORMED },
	{ "load past the data", { LOAD(64), ALLOW }, 2, AQE_E_MALFORMED },
	{ "scratch slot 16", { { BPF_ST, 0, 0, 16 }, ALLOW }, 2, AQE_E_MALFORMED },
	{ "byte load", { { BPF_LD | BPF_B | BPF_ABS, 0, 0, 0 }, ALLOW }, 2, AQE_E_MALFORMED },
	{ "division by zero",
	  { { BPF_ALU | BPF_DIV | BPF_K, 0, 0, 0 }, ALLOW },
	  2,
	  AQE_E_MALFORMED },
	{ "unknown code", { { 0xffff, 0, 0, 0 }, ALLOW }, 2, AQE_E_MALFORMED },
};

START_TEST(reach__refuses_programs_the_kernel_would_not_load)
{
	const uint32_t nr = 0;
	struct hard_bpf_query q = query(&nr, 1);
	struct aqe_err e = AQE_ERR_INIT;
	uint16_t got;

	ck_assert_msg(hard_bpf_reach(bad[_i].prog, bad[_i].n, &q, &got, &e) == bad[_i].code,
		      "%s: %s", bad[_i].what, e.text);
}
END_TEST

START_TEST(reach__refuses_too_many_branches)
{
	/* each pair doubles the paths: 2^40 of them */
	struct hard_bpf_insn prog[82];
	const uint32_t nr = 0;
	struct hard_bpf_query q = query(&nr, 1);
	struct aqe_err e = AQE_ERR_INIT;
	uint16_t got;

	for (size_t i = 0; i < 80; i += 2) {
		prog[i] = (struct hard_bpf_insn)LOAD(8); /* instruction pointer: never known */
		prog[i + 1] = (struct hard_bpf_insn)IF_GT(0xf0000000U + (uint32_t)i, 0, 0);
	}
	for (size_t i = 0; i + 3 < 80; i += 2)
		prog[i + 1].jt = 1; /* skip the next load */
	prog[80] = prog[81] = (struct hard_bpf_insn)ALLOW;
	ck_assert_int_eq(hard_bpf_reach(prog, AQE_COUNT(prog), &q, &got, &e), AQE_E_LIMIT);
}
END_TEST

/* ---- against a concrete machine ---- */

struct concrete {
	uint32_t words[16], a, x, mem[BPF_MEMWORDS];
};

static uint32_t alu(unsigned op, uint32_t a, uint32_t b)
{
	switch (op) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_RSH:
		return a >> b;
	default:
		return a << b;
	}
}

static bool test(unsigned op, uint32_t a, uint32_t k)
{
	return op == BPF_JEQ   ? a == k
	       : op == BPF_JGT ? a > k
	       : op == BPF_JGE ? a >= k
			       : (a & k) != 0;
}

static uint32_t run(const struct hard_bpf_insn *prog, struct concrete *c)
{
	for (size_t pc = 0;;) {
		const struct hard_bpf_insn *in = &prog[pc++];

		switch (BPF_CLASS(in->code)) {
		case BPF_LD:
			c->a = BPF_MODE(in->code) == BPF_ABS ? c->words[in->k / 4] : c->mem[in->k];
			break;
		case BPF_ST:
			c->mem[in->k] = c->a;
			break;
		case BPF_ALU:
			c->a = alu(BPF_OP(in->code), c->a,
				   BPF_SRC(in->code) == BPF_K ? in->k : c->x);
			break;
		case BPF_MISC:
			c->x = c->a;
			break;
		case BPF_JMP:
			pc += test(BPF_OP(in->code), c->a, in->k) ? in->jt : in->jf;
			break;
		default:
			return in->k;
		}
	}
}

static uint32_t random_word(unsigned *seed)
{
	static const uint32_t usual[] = { 0, 1, 2, 40, 41, 0xffffffffU, 0x10000000U, 0xff };
	int r = rand_r(seed);

	return r % 3 ? usual[(unsigned)r / 3 % AQE_COUNT(usual)]
		     : (uint32_t)rand_r(seed) * 2654435761U;
}

static struct hard_bpf_insn random_insn(unsigned *seed, size_t left)
{
	static const uint16_t alu_ops[] = { BPF_ADD, BPF_SUB, BPF_AND, BPF_AND,
					    BPF_OR,  BPF_XOR, BPF_RSH, BPF_LSH };
	static const uint16_t jumps[] = { BPF_JEQ, BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET };
	unsigned r = (unsigned)rand_r(seed);

	switch (r % 8) {
	case 0:
	case 1:
	case 2:
		return (struct hard_bpf_insn)LOAD(r / 8 % 16 * 4);
	case 3: {
		uint16_t op = alu_ops[r / 8 % AQE_COUNT(alu_ops)];
		bool shift = op == BPF_RSH || op == BPF_LSH;

		return (struct hard_bpf_insn){ (uint16_t)(BPF_ALU | op | BPF_K), 0, 0,
					       shift ? r / 64 % 32 : random_word(seed) };
	}
	case 4:
		return (struct hard_bpf_insn){ r / 8 % 2 ? BPF_ST : (BPF_LD | BPF_MEM), 0, 0,
					       r / 16 % 2 };
	default:
		return (struct hard_bpf_insn){
			(uint16_t)(BPF_JMP | jumps[r / 8 % AQE_COUNT(jumps)] | BPF_K),
			(uint8_t)(r / 64 % (left < 6 ? left : 6)),
			(uint8_t)(r / 512 % (left < 6 ? left : 6)), random_word(seed)
		};
	}
}

static uint16_t class_of(uint32_t ret)
{
	return ret == SECCOMP_RET_ALLOW ? HARD_BPF_ALLOW
	       : ret == SECCOMP_RET_LOG ? HARD_BPF_LOG
	       : ret & 0xffff           ? HARD_BPF_ERRNO
					: HARD_BPF_ERRNO0;
}

#define PROG     24
#define RUNS     40
#define PROGRAMS 400

static void check_random_program(unsigned seed)
{
	static const uint32_t rets[] = { SECCOMP_RET_ALLOW, SECCOMP_RET_LOG, SECCOMP_RET_ERRNO | 1,
					 SECCOMP_RET_ERRNO };
	const unsigned program = seed;
	struct hard_bpf_insn prog[PROG];
	uint32_t nrs[5] = { 0, 1, 41, 0x40000029U, 0xffffffffU };
	struct hard_bpf_query q = query(nrs, AQE_COUNT(nrs));
	struct aqe_err e = AQE_ERR_INIT;
	uint16_t sets[5];

	for (size_t i = 0; i < PROG - 4; i++)
		prog[i] = random_insn(&seed, PROG - i - 1);
	for (size_t i = 0; i < 4; i++)
		prog[PROG - 4 + i] = (struct hard_bpf_insn)RET(rets[i]);
	for (size_t i = 0; i < AQE_COUNT(q.args); i++) {
		q.args[i].unknown = random_word(&seed);
		q.args[i].value = random_word(&seed) & ~q.args[i].unknown;
	}
	ck_assert_int_eq(hard_bpf_reach(prog, PROG, &q, sets, &e), 0);
	for (unsigned r = 0; r < RUNS; r++) {
		unsigned n = (unsigned)rand_r(&seed) % AQE_COUNT(nrs);
		struct concrete c = {
			{ nrs[n], q.arch, random_word(&seed), random_word(&seed) }, 0, 0, { 0 }
		};

		for (size_t i = 0; i < AQE_COUNT(q.args); i++)
			c.words[4 + i] = q.args[i].value | (random_word(&seed) & q.args[i].unknown);
		uint16_t got = class_of(run(prog, &c));

		ck_assert_msg(sets[n] & got, "program %u, number 0x%x: run gives 0x%x, set 0x%x",
			      program, nrs[n], got, sets[n]);
	}
}

START_TEST(reach__contains_every_concrete_run)
{
	for (unsigned i = 0; i < PROGRAMS; i++)
		check_random_program((unsigned)_i * PROGRAMS + i + 1);
}
END_TEST

START_TEST(constants__are_taken_with_their_neighbours)
{
	const struct hard_bpf_insn prog[] = { LOAD(NR), IF_EQ(5000, 1, 0), IF_EQ(7, 0, 0), DENY,
					      ALLOW };
	static uint32_t nrs[HARD_BPF_NRS_MAX];
	struct aqe_err e = AQE_ERR_INIT;
	size_t n = 0;

	ck_assert_int_eq(hard_bpf_constants(prog, AQE_COUNT(prog), nrs, &n, &e), 0);
	ck_assert_uint_eq(n, 3); /* 7 is below HARD_BPF_NRS_BASE */
	ck_assert_uint_eq(nrs[0], 4999);
	ck_assert_uint_eq(nrs[2], 5001);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/bpf");
	TCase *t = tcase_create("reach");
	SRunner *r;
	int failed;

	tcase_add_test(t, reach__splits_numbers_exactly);
	tcase_add_test(t, reach__splits_more_than_64_numbers);
	tcase_add_test(t, reach__64_bit_compare_is_passed_through_the_high_half);
	tcase_add_test(t, reach__masked_compare_of_the_low_half_is_decided);
	tcase_add_test(t, reach__flag_test_is_decided_with_the_other_bits_unknown);
	tcase_add_test(t, reach__a_branch_narrows_later_loads);
	tcase_add_loop_test(t, reach__classes_of_actions, 0, (int)AQE_COUNT(ends));
	tcase_add_test(t, reach__returned_accumulator_may_be_anything);
	tcase_add_loop_test(t, reach__refuses_programs_the_kernel_would_not_load, 0,
			    (int)AQE_COUNT(bad));
	tcase_add_test(t, reach__refuses_too_many_branches);
	tcase_add_test(t, constants__are_taken_with_their_neighbours);
	suite_add_tcase(s, t);
	t = tcase_create("concrete");
	tcase_add_loop_test(t, reach__contains_every_concrete_run, 0, 8);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
