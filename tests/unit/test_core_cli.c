/* SPDX-License-Identifier: MIT */
#include "shim/core/cli.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

enum { FORMAT = 1, VERBOSE, OUTPUT, QUIET };

static const struct aqe_cli_opt OPTS[] = {
	{ "format", 0, "FMT", "text or json", FORMAT },
	{ "verbose", 'v', NULL, "say more", VERBOSE },
	{ "output", 'o', "FILE", "write there", OUTPUT },
	{ "quiet", 'q', NULL, "say less", QUIET },
	{ NULL, 0, NULL, NULL, 0 },
};
static const struct aqe_cli_cmd CMD = { "tool verify", "[OPTION...] FILE...", "Verifies.", OPTS };

/* Words to parse, separated by blanks ('_' is an empty word), and what comes out: a letter an
 * answer (f v o q option, . operand, h help, ! usage), values in parentheses. */
static const struct {
	const char *words;
	const char *answers;
	const char *fault; /* text of the usage error */
} CASES[] = {
	{ "", "", NULL },
	{ "a b", ".(a).(b)", NULL },
	{ "--format=json", "f(json)", NULL },
	{ "--format json", "f(json)", NULL },
	{ "--format= x", "f().(x)", NULL },
	{ "--format=a=b", "f(a=b)", NULL },
	{ "--format --verbose", "f(--verbose)", NULL },
	{ "--format --", "f(--)", NULL },
	{ "--verbose a --quiet", "v.(a)q", NULL },
	{ "-v -q", "vq", NULL },
	{ "-vq a", "vq.(a)", NULL },
	{ "-o x", "o(x)", NULL },
	{ "-ox", "o(x)", NULL },
	{ "-o=x", "o(=x)", NULL },
	{ "-vox -q", "vo(x)q", NULL },
	{ "-vo x", "vo(x)", NULL },
	{ "-", ".(-)", NULL },
	{ "-- -v --format --", ".(-v).(--format).(--)", NULL },
	{ "a -- b", ".(a).(b)", NULL },
	{ "--", "", NULL },
	{ "-v --", "v", NULL },
	{ "_ a", ".().(a)", NULL },
	{ "--help", "h", NULL },
	{ "-h", "h", NULL },
	{ "-vh", "vh", NULL },
	{ "--formats=x", "!", "unknown option '--formats=x'" },
	{ "--form=x", "!", "unknown option '--form=x'" }, /* no abbreviations */
	{ "--verb", "!", "unknown option '--verb'" },
	{ "--help=x", "!", "unknown option '--help=x'" },
	{ "--verbose=1", "!", "takes no value: '--verbose=1'" },
	{ "--verbose=", "!", "takes no value: '--verbose='" },
	{ "--format", "!", "value is missing after '--format'" },
	{ "-vo", "v!", "value is missing after '-vo'" },
	{ "-x", "!", "unknown option '-x'" },
	{ "-vx", "v!", "unknown option '-x'" },
	{ "-v=1", "v!", "unknown option '-='" },
	{ "---", "!", "unknown option '---'" },
	{ "--=x", "!", "unknown option '--=x'" },
	{ "a -Z\x1b", ".(a)!", "unknown option '-Z'" }, /* one letter at a time */
	{ "-v\x1b", "v!", "unknown option '-\\x1b'" },
	{ "--\x1b[31m'", "!", "unknown option '--\\x1b[31m\\''" },
};

static int split(char *words, char **argv)
{
	char *rest, *word;
	int n = 0;

	argv[n++] = words + strlen(words);
	for (word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[n++] = strcmp(word, "_") == 0 ? word + 1 : word;
	argv[n] = NULL;
	return n;
}

static char letter_of(int rc)
{
	switch (rc) {
	case FORMAT:
		return 'f';
	case VERBOSE:
		return 'v';
	case OUTPUT:
		return 'o';
	case QUIET:
		return 'q';
	case AQE_CLI_OPERAND:
		return '.';
	case AQE_CLI_HELP:
		return 'h';
	case AQE_E_USAGE:
		return '!';
	default:
		return '?';
	}
}

START_TEST(cli_next__reads)
{
	AQE_AUTO_BUF struct aqe_buf got = AQE_BUF_INIT(1000);
	struct aqe_err e = AQE_ERR_INIT;
	char words[100], *argv[20];
	struct aqe_cli c;
	int rc;

	(void)snprintf(words, sizeof(words), "%s", CASES[_i].words);
	aqe_cli_init(&c, &CMD, split(words, argv), argv);
	while ((rc = aqe_cli_next(&c, &e)) != AQE_CLI_END) {
		(void)aqe_buf_putc(&got, letter_of(rc));
		if (rc == AQE_E_USAGE || rc == AQE_CLI_HELP)
			break;
		if (c.value)
			(void)aqe_buf_addf(&got, "(%s)", c.value);
	}
	ck_assert_str_eq(aqe_buf_str(&got), CASES[_i].answers);
	if (!CASES[_i].fault)
		return;
	ck_assert_fault(rc, AQE_E_USAGE, e, CASES[_i].fault);
	ck_assert_int_eq(strncmp(e.text, "tool verify: ", 13), 0);
	ck_assert_str_eq(aqe_cli_fault(&CMD, &e), e.text + 13);
	(void)aqe_err_set(&e, AQE_E_USAGE, 0, "tool verifying");
	ck_assert_str_eq(aqe_cli_fault(&CMD, &e), "tool verifying");
}
END_TEST

START_TEST(cli_next__stays_at_the_end)
{
	char *argv[] = { (char[]){ "verify" }, NULL };
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_cli c;

	aqe_cli_init(&c, &CMD, 1, argv);
	ck_assert_int_eq(aqe_cli_next(&c, &e), AQE_CLI_END);
	ck_assert_int_eq(aqe_cli_next(&c, &e), AQE_CLI_END);
	aqe_cli_init(&c, &CMD, 0, argv);
	ck_assert_int_eq(aqe_cli_next(&c, &e), AQE_CLI_END);
}
END_TEST

START_TEST(cli_next__lets_a_command_have_its_own_h)
{
	static const struct aqe_cli_opt OWN[] = { { "host", 'h', "NAME", "x", 7 },
						  { "help", 0, NULL, "x", 8 },
						  { NULL, 0, NULL, NULL, 0 } };
	static const struct aqe_cli_cmd OTHER = { "x", "", "", OWN };
	char *argv[] = { (char[]){ "x" }, (char[]){ "-hn" }, (char[]){ "--help" }, NULL };
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_cli c;

	aqe_cli_init(&c, &OTHER, 3, argv);
	ck_assert_int_eq(aqe_cli_next(&c, &e), 7);
	ck_assert_str_eq(c.value, "n");
	ck_assert_int_eq(aqe_cli_next(&c, &e), 8);
}
END_TEST

START_TEST(cli_help__is_laid_out)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(10000);

	aqe_cli_help(&CMD, &b);
	ck_assert_str_eq(b.p, "usage: tool verify [OPTION...] FILE...\n"
			      "\n"
			      "Verifies.\n"
			      "\n"
			      "options:\n"
			      "      --format FMT        text or json\n"
			      "  -v, --verbose           say more\n"
			      "  -o, --output FILE       write there\n"
			      "  -q, --quiet             say less\n"
			      "  -h, --help              show this text\n");
}
END_TEST

START_TEST(cli_help__keeps_to_80_columns)
{
	static const struct aqe_cli_opt LONG[] = {
		{ "a-very-long-option-name", 'x', "ITS-ARGUMENT",
		  "an explanation that is so long that it has to be broken into several lines, "
		  "because no terminal is as wide as that; it ends with a short word: so",
		  1 },
		{ NULL, 0, NULL, NULL, 0 },
	};
	static const struct aqe_cli_cmd WORDY = {
		"x", "",
		"The first paragraph of the description, which is also longer than a line of a "
		"terminal can be.\nA second line.\n\nA second paragraph.",
		LONG
	};
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(10000);
	char *line, *rest;

	aqe_cli_help(&WORDY, &b);
	ck_assert_ptr_nonnull(strstr(b.p, "can be.\nA second line.\n\nA second paragraph.\n"));
	ck_assert_ptr_nonnull(strstr(b.p, "  -x, --a-very-long-option-name ITS-ARGUMENT\n"
					  "                          an explanation that"));
	ck_assert_ptr_nonnull(strstr(b.p, "short word: so\n"));
	ck_assert_ptr_null(strstr(b.p, " \n"));
	for (line = strtok_r(b.p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		ck_assert_msg(strlen(line) <= 80, "%s", line);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("core/cli");
	TCase *t = tcase_create("cli");

	tcase_add_loop_test(t, cli_next__reads, 0, (int)AQE_COUNT(CASES));
	tcase_add_test(t, cli_next__stays_at_the_end);
	tcase_add_test(t, cli_next__lets_a_command_have_its_own_h);
	tcase_add_test(t, cli_help__is_laid_out);
	tcase_add_test(t, cli_help__keeps_to_80_columns);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
