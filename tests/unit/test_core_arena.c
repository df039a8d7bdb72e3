/* SPDX-License-Identifier: MIT */
#include "shim/core/arena.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "tests/unit/unit.h"

START_TEST(arena_alloc__is_zeroed_aligned_and_apart)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	unsigned char *p[600];
	char *text[600];

	for (size_t i = 0; i < 600; i++) {
		p[i] = aqe_arena_alloc(a, i);
		ck_assert_ptr_nonnull(p[i]);
		ck_assert_uint_eq((uintptr_t)p[i] % alignof(max_align_t), 0);
		for (size_t k = 0; k < i; k++)
			ck_assert(p[i][k] == 0);
		memset(p[i], (int)(i & 0xff), i);
		text[i] = aqe_arena_fmt(a, "text %zu", i);
	}
	for (size_t i = 0; i < 600; i++) {
		char want[20];

		for (size_t k = 0; k < i; k++)
			ck_assert(p[i][k] == (i & 0xff));
		(void)snprintf(want, sizeof(want), "text %zu", i);
		ck_assert_str_eq(text[i], want);
	}
}
END_TEST

START_TEST(arena_alloc__serves_large_blocks)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	char *small = aqe_arena_dup(a, "small"), *big, *text;

	for (size_t n = 1000; n < 2000000; n = n * 2 - 1) {
		big = aqe_arena_alloc(a, n);
		ck_assert_ptr_nonnull(big);
		memset(big, 'x', n);
		text = aqe_arena_ndup(a, big, n);
		ck_assert_ptr_nonnull(text);
		ck_assert_int_eq(text[n], '\0');
		ck_assert_int_eq(memcmp(text, big, n), 0);
	}
	ck_assert_str_eq(small, "small");
}
END_TEST

START_TEST(arena__holds_its_maximum)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(64);

	ck_assert_ptr_null(aqe_arena_alloc(a, 65));
	ck_assert_ptr_nonnull(aqe_arena_alloc(a, 16));
	ck_assert_ptr_null(aqe_arena_alloc(a, 49));
	ck_assert_ptr_nonnull(aqe_arena_alloc(a, 33)); /* rounded up to 48 */
	ck_assert_ptr_null(aqe_arena_alloc(a, 1));
	ck_assert_ptr_null(aqe_arena_dup(a, ""));
	ck_assert_ptr_null(aqe_arena_fmt(a, "%d", 1));
}
END_TEST

START_TEST(arena__counts_text_by_the_byte)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(10);

	ck_assert_str_eq(aqe_arena_dup(a, "abc"), "abc");
	ck_assert_ptr_null(aqe_arena_dup(a, "abcdef"));
	ck_assert_str_eq(aqe_arena_ndup(a, "abcdef", 3), "abc");
	ck_assert_str_eq(aqe_arena_fmt(a, "%c", 'x'), "x");
	ck_assert_ptr_null(aqe_arena_dup(a, ""));
}
END_TEST

START_TEST(arena__refuses_impossible_sizes)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(SIZE_MAX);

	ck_assert_ptr_null(aqe_arena_calloc(a, SIZE_MAX / 2, 3));
	ck_assert_ptr_null(aqe_arena_calloc(a, SIZE_MAX, SIZE_MAX));
	ck_assert_ptr_null(aqe_arena_alloc(a, SIZE_MAX));
	ck_assert_ptr_null(aqe_arena_alloc(a, SIZE_MAX - 20));
	ck_assert_ptr_null(aqe_arena_ndup(a, "", SIZE_MAX));
	ck_assert_ptr_nonnull(aqe_arena_calloc(a, 10, 10));
	ck_assert_ptr_nonnull(aqe_arena_calloc(a, 0, 10));
}
END_TEST

START_TEST(arena_free__accepts_null)
{
	aqe_arena_free(NULL);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/arena");
	TCase *t = tcase_create("arena");

	tcase_add_test(t, arena_alloc__is_zeroed_aligned_and_apart);
	tcase_add_test(t, arena_alloc__serves_large_blocks);
	tcase_add_test(t, arena__holds_its_maximum);
	tcase_add_test(t, arena__counts_text_by_the_byte);
	tcase_add_test(t, arena__refuses_impossible_sizes);
	tcase_add_test(t, arena_free__accepts_null);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
