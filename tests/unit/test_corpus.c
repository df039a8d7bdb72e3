/* SPDX-License-Identifier: MIT */
/* Every row of the corpus through the library. tests/run_corpus.sh does the same with the binary.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "hardening/verify.h"
#include "tests/unit/rewrite_util.h"

#define LINE_MAX_BYTES 1024

/* One line of index.tsv, cut at its tabs. */
struct row {
	char line[LINE_MAX_BYTES];
	const char *file, *verdict, *props, *why;
};

static bool next_row(FILE *f, struct row *r)
{
	char *at = r->line;
	const char **const fields[] = { &r->file, &r->verdict, &r->props, &r->why };

	if (!fgets(r->line, sizeof(r->line), f))
		return false;
	r->line[strcspn(r->line, "\n")] = '\0';
	for (size_t i = 0; i < AQE_COUNT(fields); i++) {
		*fields[i] = at;
		at += strcspn(at, "\t");
		if (*at)
			*at++ = '\0';
	}
	return true;
}

/* The verdict's name; `why` gets the failed properties or the reader's error. */
static const char *judge(const char *path, struct aqe_buf *why)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	struct aqe_json *doc = NULL;
	int rc;

	aqe_buf_clear(why);
	rw_read_file(path, &b);
	rc = oci_doc_parse(arena, OCI_DOC_CONFIG, aqe_buf_str(&b), b.len, &doc, &err);
	if (rc < 0 || !oci_doc_is_config(doc)) {
		aqe_buf_puts(why, rc < 0 ? err.text : "no config");
		return rc == 0 || rc == AQE_E_MALFORMED || rc == AQE_E_LIMIT ? "malformed"
									     : "error";
	}
	hard_report_init(&report, arena);
	ck_assert_ok(hard_verify(&ctx, doc, &report, &err), err);
	aqe_buf_puts(why, rw_failed(&report));
	return hard_report_ok(&report) ? "conform" : "violate";
}

static bool names_one_of(const char *failed, const char *props)
{
	while (*props) {
		const size_t n = strcspn(props, ",");

		for (const char *at = failed; *at; at += strcspn(at, " "), at += *at == ' ')
			if (strncmp(at, props, n) == 0 && (at[n] == ' ' || at[n] == '\0'))
				return true;
		props += n + (props[n] == ',');
	}
	return false;
}

static void run_index(const char *dir)
{
	AQE_AUTO_BUF struct aqe_buf bad = AQE_BUF_INIT((size_t)1 << 16);
	AQE_AUTO_BUF struct aqe_buf why = AQE_BUF_INIT(4096);
	char path[256];
	struct row r;
	size_t n = 0;

	ck_assert_int_lt(snprintf(path, sizeof(path), "tests/corpus/%s/index.tsv", dir), 256);
	AQE_AUTO_FILE FILE *f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	for (; next_row(f, &r); n++) {
		const char *verdict;

		ck_assert_int_lt(snprintf(path, sizeof(path), "tests/corpus/%s/%s", dir, r.file),
				 256);
		verdict = judge(path, &why);
		if (!aqe_str_eq(verdict, r.verdict) ||
		    (aqe_str_eq(verdict, "violate") && !names_one_of(aqe_buf_str(&why), r.props)))
			aqe_buf_addf(&bad, "\n%s: %s (%s), wanted %s %s: %s", r.file, verdict,
				     aqe_buf_str(&why), r.verdict, r.props, r.why);
	}
	ck_assert_uint_gt(n, 100);
	ck_assert_msg(bad.len == 0, "%s", aqe_buf_str(&bad));
}

START_TEST(corpus__spec)
{
	ctx.image_digest = NULL; /* the documents' own annotation decides */
	run_index("spec");
}
END_TEST

START_TEST(corpus__malformed)
{
	ctx.image_digest = NULL;
	run_index("malformed");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("corpus");
	TCase *c = tcase_create("index");

	tcase_add_checked_fixture(c, rw_setup, rw_teardown);
	tcase_set_timeout(c, 120);
	tcase_add_test(c, corpus__spec);
	tcase_add_test(c, corpus__malformed);
	suite_add_tcase(s, c);
	return unit_run(s);
}
