/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/agents.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

#define COLUMNS 12

/* Splits a line of the table; returns the number of fields. */
static size_t split(char *line, char *fields[COLUMNS])
{
	size_t n = 0;
	char *rest = line;

	line[strcspn(line, "\n")] = '\0';
	while (rest && n < COLUMNS)
		fields[n++] = strsep(&rest, "\t");
	return rest ? COLUMNS + 1 : n;
}

static uint64_t number(const char *s)
{
	uint64_t n = 0;

	ck_assert_msg(aqe_parse_u64(s, UINT64_MAX, &n), "%s", s);
	return n;
}

static uint64_t size(const char *s)
{
	uint64_t n = 0;

	ck_assert_msg(aqe_parse_size(s, &n), "%s", s);
	return n;
}

static void compare(const struct hard_agent *a, char *const *f)
{
	ck_assert_str_eq(a->type, f[0]);
	ck_assert_msg(a->cpus_milli == number(f[1]) * 1000, "%s", f[0]);
	ck_assert_msg(a->memory_bytes == size(f[2]), "%s", f[0]);
	ck_assert_msg(a->disk_bytes == size(f[3]), "%s", f[0]);
	ck_assert_str_eq(a->risk, f[4]);
	ck_assert_str_eq(a->network, f[5]);
	ck_assert_str_eq(a->domains, f[6]);
	ck_assert_msg(a->per_minute == number(f[7]), "%s", f[0]);
	ck_assert_msg(a->per_hour == number(f[8]), "%s", f[0]);
	ck_assert_msg(a->burst == number(f[9]), "%s", f[0]);
	ck_assert_msg(a->timeout_ms == number(f[10]), "%s", f[0]);
	ck_assert_str_eq(a->description, f[11]);
	ck_assert_uint_eq(a->pids, HARD_PIDS_MAX);
	ck_assert(!a->tmp_exec);
}

START_TEST(agents__have_the_figures_of_the_table)
{
	AQE_AUTO_FILE FILE *f = fopen("tests/data/agents.tsv", "re");
	char line[1024], *fields[COLUMNS];
	size_t row = 0;

	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#' || aqe_starts(line, "type\t"))
			continue;
		ck_assert_uint_eq(split(line, fields), COLUMNS);
		ck_assert_uint_lt(row, HARD_AGENTS_COUNT);
		compare(&HARD_AGENTS[row++], fields);
	}
	ck_assert_uint_eq(row, HARD_AGENTS_COUNT);
	ck_assert_uint_eq(row, 23);
}
END_TEST

START_TEST(agent_find__knows_each_row_once)
{
	for (size_t i = 0; i < HARD_AGENTS_COUNT; i++)
		ck_assert_ptr_eq(hard_agent_find(HARD_AGENTS[i].type), &HARD_AGENTS[i]);
	ck_assert_ptr_null(hard_agent_find("qe-"));
	ck_assert_ptr_null(hard_agent_find(""));
	ck_assert_ptr_null(hard_agent_find(NULL));
	/* the ceilings without a type cannot be asked for by name */
	ck_assert_ptr_null(hard_agent_find("profile"));
}
END_TEST

START_TEST(agent_default__is_the_last_and_smallest_row)
{
	const struct hard_agent *d = hard_agent_default();

	ck_assert_str_eq(d->type, "default");
	ck_assert_ptr_eq(d, &HARD_AGENTS[HARD_AGENTS_COUNT - 1]);
	for (size_t i = 0; i < HARD_AGENTS_COUNT; i++) {
		ck_assert_uint_le(d->cpus_milli, HARD_AGENTS[i].cpus_milli);
		ck_assert_uint_le(d->memory_bytes, HARD_AGENTS[i].memory_bytes);
		ck_assert_uint_le(d->disk_bytes, HARD_AGENTS[i].disk_bytes);
	}
}
END_TEST

START_TEST(agent_profile__is_the_frozen_profiles)
{
	const struct hard_agent *p = hard_agent_profile();

	ck_assert_uint_eq(p->pids, 512);
	ck_assert_uint_eq(p->memory_bytes, 1073741824);
	ck_assert_uint_eq(p->cpus_milli, 2000);
	ck_assert(!p->tmp_exec);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_agents");
	TCase *t = tcase_create("agents");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_test(t, agents__have_the_figures_of_the_table);
	tcase_add_test(t, agent_find__knows_each_row_once);
	tcase_add_test(t, agent_default__is_the_last_and_smallest_row);
	tcase_add_test(t, agent_profile__is_the_frozen_profiles);
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
