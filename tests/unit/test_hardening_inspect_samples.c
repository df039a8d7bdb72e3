/* SPDX-License-Identifier: MIT */
/* Documents that podman 4.3.1 and docker 20.10 wrote, and the properties each of them fails,
 * against tests/golden/inspect.tsv: reviewed by hand. After a wanted change: AQE_GOLDEN_UPDATE=1.
 */
#include <check.h>
#include <glob.h>
#include <stdio.h>

#include "tests/unit/inspect_util.h"

#define GOLDEN "tests/golden/inspect.tsv"

static void add_line(struct aqe_buf *b, const char *path)
{
	struct aqe_json *root = in_parse_file(path);
	const struct aqe_json *object = in_object(root);
	const char *name = strrchr(path, '/') + 1;

	ctx.info_rootless = strstr(name, "rootless") != NULL;
	aqe_buf_addf(b, "%s\t%s\t", name, oci_inspect_name(oci_inspect_object(object, NULL)));
	aqe_buf_addf(b, "%s\n", in_judge(root));
}

START_TEST(samples__failed_properties)
{
	AQE_AUTO_BUF struct aqe_buf got = AQE_BUF_INIT((size_t)1 << 20);
	AQE_AUTO_BUF struct aqe_buf want = AQE_BUF_INIT((size_t)1 << 20);
	glob_t g;

	ck_assert_int_eq(glob("tests/samples-inspect/inspect-*.json", 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++)
		add_line(&got, g.gl_pathv[i]);
	globfree(&g);
	if (getenv("AQE_GOLDEN_UPDATE")) {
		AQE_AUTO_FILE FILE *f = fopen(GOLDEN, "we");

		ck_assert_ptr_nonnull(f);
		ck_assert_int_gt(fputs(aqe_buf_str(&got), f), 0);
		return;
	}
	rw_read_file(GOLDEN, &want);
	ck_assert_str_eq(aqe_buf_str(&got), aqe_buf_str(&want));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/inspect samples");
	TCase *t = tcase_create("samples");

	tcase_add_checked_fixture(t, in_setup, rw_teardown);
	tcase_add_test(t, samples__failed_properties);
	suite_add_tcase(s, t);
	return unit_run(s);
}
