/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "hardening/policy.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

/* Digests of the sort that nobody parses here: short names do. */
static const char *const two_types[] = { "qe-code-reviewer", "qe-test-writer" };
static const char *const with_default[] = { "qe-code-reviewer", "default" };
static const char *const one_type[] = { "qe-code-reviewer" };
static const struct hard_image images[] = {
	{ "both", "D0", "I0", NULL, 0, { "p.json", 10 } },
	{ "by-digest", "D1", NULL, one_type, 1, { "p.json", 11 } },
	{ NULL, NULL, "I2", two_types, 2, { "p.json", 12 } },
	{ "more", "D3", NULL, with_default, 2, { "q.json", 13 } },
};
static const struct hard_waiver waivers[] = {
	{ .prop = HARD_ROOTLESS, .agent_type = "default", .expires = 1000 },
	{ .prop = HARD_MOUNTS, .image = "both", .expires = 1000 },
	{ .prop = HARD_LSM, .image = "D1", .agent_type = "default", .expires = 1000 },
	{ .prop = HARD_SYSCTL, .image = "I2", .expires = 1000 },
};
static struct hard_policy p;

static void setup(void)
{
	p = (struct hard_policy){ .images = images,
				  .n_images = AQE_COUNT(images),
				  .agents = HARD_AGENTS,
				  .n_agents = HARD_AGENTS_COUNT,
				  .waivers = waivers,
				  .n_waivers = AQE_COUNT(waivers) };
}

/* ---- images ---- */

static const struct {
	const char *image_id, *digests[3];
	int entry; /* index, or -1 */
	const char *why;
} lookups[] = {
	{ "I0", { NULL }, 0, "docker knows only the id" },
	{ NULL, { "D0" }, 0, "only the digest is known" },
	{ "I0", { "D0" }, 0, "both agree" },
	{ "I0", { "x", "D0" }, 0, "one of several digests" },
	{ "I0", { "x" }, -1, "what is known of the digest contradicts" },
	{ "x", { "D0" }, -1, "what is known of the id contradicts" },
	{ "x", { "D1" }, 1, "the entry says nothing about the id" },
	{ "I2", { "x" }, 2, "the entry says nothing about digests" },
	{ "I2", { "D1" }, -1, "two entries" },
	{ NULL, { "D1", "D3" }, -1, "two entries" },
	{ "x", { "y" }, -1, "unknown" },
	{ NULL, { NULL }, -1, "nothing is known" },
	{ "i0", { NULL }, -1, "letter case counts" },
	{ "D0", { NULL }, -1, "a digest is no id" },
};

START_TEST(image__is_found_when_everything_known_agrees)
{
	const struct hard_image *want = lookups[_i].entry < 0 ? NULL : &images[lookups[_i].entry];
	size_t n = 0;

	while (n < 3 && lookups[_i].digests[n])
		n++;
	ck_assert_msg(hard_policy_image(&p, lookups[_i].image_id, lookups[_i].digests, n) == want,
		      "%s", lookups[_i].why);
}
END_TEST

/* ---- agent types ---- */

static const struct {
	int image; /* index, or -1 */
	const char *asked;
	bool unmarked_refuse;
	const char *type; /* NULL: refused */
	const char *says;
} choices[] = {
	{ 0, NULL, false, "default", NULL },
	{ 0, NULL, true, "default", NULL }, /* allows only one */
	{ 0, "default", false, "default", NULL },
	{ 0, "no-such-type", false, "default", NULL },
	{ 0, "qe-code-reviewer", false, NULL,
	  "agent type 'qe-code-reviewer' is not allowed: p.json:10 allows default for image "
	  "'both'" },
	{ 1, NULL, false, "qe-code-reviewer", NULL },
	{ 1, NULL, true, "qe-code-reviewer", NULL },
	{ 1, "qe-code-reviewer", false, "qe-code-reviewer", NULL },
	{ 1, "default", false, NULL, "p.json:11 allows qe-code-reviewer for image 'by-digest'" },
	{ 1, "no-such-type", false, NULL,
	  "agent type 'default' (what was asked for is unknown) is not allowed: p.json:11" },
	{ 2, NULL, false, NULL,
	  "no agent type is named (annotation io.aqe.agent-type or AQE_AGENT_TYPE): p.json:12 "
	  "allows qe-code-reviewer, qe-test-writer" },
	{ 2, "qe-test-writer", true, "qe-test-writer", NULL },
	{ 3, NULL, false, "default", NULL },
	{ 3, NULL, true, NULL, "no agent type is named" },
	{ 3, "default", true, "default", NULL },
	{ 3, "profile", false, "default", NULL },
	{ -1, NULL, false, "default", NULL },
	{ -1, "qe-test-writer", false, NULL, "the policy pins no such image" },
};

START_TEST(choose__follows_marker_image_and_policy)
{
	const struct hard_image *img = choices[_i].image < 0 ? NULL : &images[choices[_i].image];
	const struct hard_agent *got = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	int rc;

	p.unmarked_refuse = choices[_i].unmarked_refuse;
	rc = hard_agent_choose(&p, img, choices[_i].asked, &got, &e);
	if (choices[_i].type) {
		ck_assert_msg(rc == 0, "%s", e.text);
		ck_assert_str_eq(got->type, choices[_i].type);
		return;
	}
	ck_assert_int_eq(rc, AQE_E_REFUSED);
	ck_assert_ptr_null(got);
	ck_assert_msg(strstr(e.text, choices[_i].says), "%s", e.text);
}
END_TEST

START_TEST(policy_agent__finds_overrides)
{
	struct hard_agent own[2] = { HARD_AGENTS[0], { .type = "mine", .pids = 7 } };

	p.agents = own;
	p.n_agents = 2;
	ck_assert_uint_eq(hard_policy_agent(&p, "mine")->pids, 7);
	ck_assert_ptr_null(hard_policy_agent(&p, "default"));
	ck_assert_ptr_null(hard_policy_agent(&p, NULL));
}
END_TEST

#define ANN(v) "\"annotations\":{\"io.aqe.agent-type\":" v "}"
#define ENV(v) "\"process\":{\"env\":[" v "]}"

static const struct {
	const char *spec, *label, *marker;
} markers[] = {
	{ "{}", NULL, NULL },
	{ "{}", "l", "l" },
	{ "{}", "", NULL },
	{ "{" ANN("\"a\"") "}", "l", "a" },
	{ "{" ANN("\"\"") "}", "l", "l" },
	{ "{" ANN("5") "}", NULL, NULL },
	{ "{" ANN("\"a\"") "," ENV("\"AQE_AGENT_TYPE=b\"") "}", "l", "a" },
	{ "{" ENV("\"AGENT_TYPE=c\",\"AQE_AGENT_TYPE=b\"") "}", "l", "b" },
	{ "{" ENV("\"AGENT_TYPE=c\"") "}", "l", "c" },
	{ "{" ENV("\"AGENT_TYPE=\",\"AGENT_TYPE\",7") "}", "l", "l" },
	{ "{" ENV("\"XAGENT_TYPE=c\",\"AGENT_TYPES=d\"") "}", NULL, NULL },
	{ "{\"process\":{\"env\":null}}", NULL, NULL },
	{ "{\"process\":[]}", NULL, NULL },
};

START_TEST(marker__is_annotation_then_environment_then_label)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *spec = NULL;
	const char *got;

	ck_assert_int_eq(aqe_json_parse(a, markers[_i].spec, strlen(markers[_i].spec),
					&AQE_JSON_LIMITS_DEFAULT, &spec, &e),
			 0);
	got = hard_agent_marker(spec, markers[_i].label);
	ck_assert_msg(aqe_str_eq(got, markers[_i].marker), "%s: %s", markers[_i].spec,
		      got ? got : "none");
}
END_TEST

/* ---- waivers ---- */

static const struct {
	enum hard_prop prop;
	const char *type;
	int image; /* index, or -1 */
	int64_t now;
	bool found;
} waivings[] = {
	{ HARD_ROOTLESS, "default", -1, 999, true },
	{ HARD_ROOTLESS, "default", 1, 0, true },
	{ HARD_ROOTLESS, "default", -1, 1000, false }, /* from this moment on */
	{ HARD_ROOTLESS, "default", -1, 1001, false },
	{ HARD_ROOTLESS, "other", -1, 0, false },
	{ HARD_ROOTLESS, NULL, -1, 0, false },
	{ HARD_NETWORK, "default", -1, 0, false },
	{ HARD_MOUNTS, NULL, 0, 0, true },
	{ HARD_MOUNTS, NULL, 1, 0, false },
	{ HARD_MOUNTS, NULL, -1, 0, false },
	{ HARD_LSM, "default", 1, 0, true },
	{ HARD_LSM, "default", 0, 0, false }, /* both must fit */
	{ HARD_LSM, "other", 1, 0, false },
	{ HARD_SYSCTL, NULL, 2, 0, true },
};

START_TEST(waiver__fits_property_type_image_and_time)
{
	const struct hard_image *img = waivings[_i].image < 0 ? NULL : &images[waivings[_i].image];
	const struct hard_waiver *w =
		hard_policy_waiver(&p, waivings[_i].prop, waivings[_i].type, img, waivings[_i].now);

	ck_assert_int_eq(w != NULL, waivings[_i].found);
	if (w)
		ck_assert_int_eq(w->prop, waivings[_i].prop);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening_policy_query");
	TCase *t = tcase_create("query");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_checked_fixture(t, setup, NULL);
	tcase_add_loop_test(t, image__is_found_when_everything_known_agrees, 0,
			    (int)AQE_COUNT(lookups));
	tcase_add_loop_test(t, choose__follows_marker_image_and_policy, 0, (int)AQE_COUNT(choices));
	tcase_add_test(t, policy_agent__finds_overrides);
	tcase_add_loop_test(t, marker__is_annotation_then_environment_then_label, 0,
			    (int)AQE_COUNT(markers));
	tcase_add_loop_test(t, waiver__fits_property_type_image_and_time, 0,
			    (int)AQE_COUNT(waivings));
	suite_add_tcase(s, t);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
