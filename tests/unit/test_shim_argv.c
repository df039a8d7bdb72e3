/* SPDX-License-Identifier: MIT */
#include "shim/argv.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/unit.h"

#define WORDS_MAX 24
#define LINE_MAX  512

/* Words of a test, separated by one blank; "''" is an empty word, "_" inside a word is a blank. */
struct split {
	char text[LINE_MAX];
	char *argv[WORDS_MAX];
	int argc;
};

static void split(struct split *s, const char *line)
{
	(void)snprintf(s->text, sizeof(s->text), "%s", line);
	s->argc = 0;
	for (char *p = s->text; p && s->argc < WORDS_MAX - 1;) {
		char *blank = strchr(p, ' ');

		if (blank)
			*blank = '\0';
		if (strcmp(p, "''") == 0)
			*p = '\0';
		for (char *q = p; *q; q++)
			*q = *q == '_' ? ' ' : *q;
		s->argv[s->argc++] = p;
		p = blank ? blank + 1 : NULL;
	}
	s->argv[s->argc] = NULL;
}

static void join(char *const *argv, struct aqe_buf *b)
{
	for (; argv && *argv; argv++) {
		if (b->len)
			aqe_buf_putc(b, ' ');
		aqe_buf_puts(b, **argv ? *argv : "''");
	}
}

/* What engines really call (engines.md section 1), and people's spellings of the same. `words` is
 * what the low-level runtime gets with one extra word, "--bundle=P" for create. */
static const struct {
	const char *line;
	enum shim_verb verb;
	const char *id, *option, *value, *words;
} ACCEPTED[] = {
	/* podman */
	{ "s --log-format=json --log /r/oci-log create --bundle /b --pid-file /r/pidfile ID",
	  SHIM_VERB_CREATE, "ID", "bundle", "/b",
	  "P --log-format=json --log=/r/oci-log create --pid-file=/r/pidfile EXTRA ID" },
	{ "s --systemd-cgroup --debug create --bundle=/b --pid-file=/p --preserve-fds 0 ID",
	  SHIM_VERB_CREATE, "ID", "pid-file", "/p",
	  "P --systemd-cgroup --debug create --pid-file=/p EXTRA ID" },
	{ "s --log-level=info --cgroup-manager disabled create -b /b --console-socket /s ID",
	  SHIM_VERB_CREATE, "ID", "console-socket", "/s",
	  "P --log-level=info --cgroup-manager=disabled create --console-socket=/s EXTRA ID" },
	{ "s exec --pid-file /p --process /e --detach --tty ID", SHIM_VERB_EXEC, "ID", "process",
	  "/e", "P exec --pid-file=/p --detach EXTRA ID" },
	{ "s update --resources=/var/tmp/podman1 ID", SHIM_VERB_UPDATE, "ID", "resources",
	  "/var/tmp/podman1", "P update EXTRA ID" },
	{ "s start ID", SHIM_VERB_START, "ID", NULL, NULL, "P start EXTRA ID" },
	/* docker, containerd */
	{ "s --root /r --log /l --log-format json create --bundle /b --pid-file /p ID",
	  SHIM_VERB_CREATE, "ID", "bundle", "/b",
	  "P --root=/r --log=/l --log-format=json create --pid-file=/p EXTRA ID" },
	{ "s --log /first --root /r --log /second --log-format json create --bundle /b ID",
	  SHIM_VERB_CREATE, "ID", "bundle", "/b",
	  "P --root=/r --log=/second --log-format=json create EXTRA ID" },
	{ "s --root /r exec --process /tmp/p --detach --pid-file /p ID", SHIM_VERB_EXEC, "ID",
	  "process", "/tmp/p", "P --root=/r exec --detach --pid-file=/p EXTRA ID" },
	{ "s --root /r update --resources - ID", SHIM_VERB_UPDATE, "ID", "resources", "-",
	  "P --root=/r update EXTRA ID" },
	/* CRI-O */
	{ "s --systemd-cgroup --root=/r create --bundle /b --pid-file /p ID", SHIM_VERB_CREATE,
	  "ID", "bundle", "/b", "P --systemd-cgroup --root=/r create --pid-file=/p EXTRA ID" },
	/* people */
	{ "s run -d ID", SHIM_VERB_RUN, "ID", "detach", "", "P run EXTRA ID" },
	{ "s run --bundle /a --bundle /b ID", SHIM_VERB_RUN, "ID", "bundle", "/b",
	  "P run EXTRA ID" },
	{ "s exec -td -u 5:6 -e A=b -e C=d ID sh -c -t", SHIM_VERB_EXEC, "ID", "env", "C=d",
	  "P exec --detach EXTRA ID" },
	{ "s exec -- ID -x", SHIM_VERB_EXEC, "ID", NULL, NULL, "P exec EXTRA ID" },
	{ "s update --memory 1g --pids-limit 5 ID", SHIM_VERB_UPDATE, "ID", "memory", "1g",
	  "P update EXTRA ID" },
};

START_TEST(parse__accepts_engines_words)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv v;
	struct split s;

	split(&s, ACCEPTED[_i].line);
	ck_assert_msg(shim_argv_parse(a, s.argc, s.argv, &v, &e) == 0, "%s", e.text);
	ck_assert_int_eq(v.verb, ACCEPTED[_i].verb);
	ck_assert_str_eq(v.id, ACCEPTED[_i].id);
	if (ACCEPTED[_i].option)
		ck_assert_pstr_eq(shim_argv_option(&v, ACCEPTED[_i].option), ACCEPTED[_i].value);
	join(shim_argv_canonical(a, &v, "P", (const char *const[]){ "EXTRA", NULL }), &b);
	ck_assert_str_eq(aqe_buf_str(&b), ACCEPTED[_i].words);
}
END_TEST

/* Passed on word by word, whatever the options. */
static const struct {
	const char *line;
	enum shim_verb verb;
	const char *id;
} PASSED[] = {
	{ "s kill ID 15", SHIM_VERB_KILL, "ID" },
	{ "s kill --all ID 9", SHIM_VERB_KILL, "ID" },
	{ "s kill -a ID KILL", SHIM_VERB_KILL, "ID" },
	{ "s --root /r --log /l --log-format json delete --force ID", SHIM_VERB_DELETE, "ID" },
	{ "s delete ID", SHIM_VERB_DELETE, "ID" },
	{ "s delete --some-new-option ID", SHIM_VERB_DELETE, NULL },
	{ "s delete", SHIM_VERB_DELETE, NULL },
	{ "s state ID", SHIM_VERB_STATE, "ID" },
	{ "s ps --format json ID", SHIM_VERB_PS, "ID" },
	{ "s ps -f json ID -ef", SHIM_VERB_PS, "ID" },
	{ "s pause ID", SHIM_VERB_PAUSE, "ID" },
	{ "s resume ID", SHIM_VERB_RESUME, "ID" },
	{ "s events --stats ID", SHIM_VERB_EVENTS, "ID" },
	{ "s list -q", SHIM_VERB_LIST, NULL },
	{ "s spec --rootless", SHIM_VERB_SPEC, NULL },
	{ "s --rootless=true kill ID 9", SHIM_VERB_KILL, "ID" },
	{ "s features", SHIM_VERB_FEATURES, NULL },
};

START_TEST(parse__passes_on_harmless_verbs)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	AQE_AUTO_BUF struct aqe_buf want = AQE_BUF_INIT(4096);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv v;
	struct split s;

	split(&s, PASSED[_i].line);
	ck_assert_msg(shim_argv_parse(a, s.argc, s.argv, &v, &e) == 0, "%s", e.text);
	ck_assert_int_eq(e.code, AQE_OK);
	ck_assert_int_eq(v.verb, PASSED[_i].verb);
	ck_assert_pstr_eq(v.id, PASSED[_i].id);
	join(shim_argv_original(a, &v, "s"), &b);
	join(s.argv, &want);
	ck_assert_str_eq(aqe_buf_str(&b), aqe_buf_str(&want));
}
END_TEST

static const struct {
	const char *line;
	enum aqe_code code;
	const char *text;
} REFUSED[] = {
	{ "s", AQE_E_USAGE, "missing command" },
	{ "s frob ID", AQE_E_USAGE, "unknown command 'frob'" },
	{ "s version", AQE_E_USAGE, "unknown command 'version'" },
	{ "s Create ID", AQE_E_USAGE, "unknown command 'Create'" },
	{ "s --frob create ID", AQE_E_USAGE, "unknown option '--frob'" },
	/* docker's runtimeArgs as one string (U04) */
	{ "s --log_/tmp/x --root /r create ID", AQE_E_USAGE, "unknown option '--log /tmp/x'" },
	{ "s --roo /r create ID", AQE_E_USAGE, "unknown option '--roo'" },
	{ "s --root", AQE_E_USAGE, "missing value for '--root'" },
	{ "s --root= create ID", AQE_E_USAGE, "empty path for option 'root'" },
	{ "s --root '' create ID", AQE_E_USAGE, "empty path for option 'root'" },
	{ "s --systemd-cgroup=true create ID", AQE_E_USAGE, "surplus value in" },
	{ "s -x create ID", AQE_E_USAGE, "unknown option '-x'" },
	{ "s create", AQE_E_USAGE, "missing container id" },
	{ "s create --bundle /b", AQE_E_USAGE, "missing container id" },
	{ "s create ID --bundle /b", AQE_E_USAGE, "surplus word '--bundle'" },
	{ "s create ID ID2", AQE_E_USAGE, "surplus word 'ID2'" },
	{ "s create -- --no-pivot", AQE_E_USAGE, "bad container id '--no-pivot'" },
	{ "s delete --force ..", AQE_E_USAGE, "bad container id '..'" },
	{ "s delete . --force", AQE_E_USAGE, "bad container id '.'" },
	{ "s delete -f ''", AQE_E_USAGE, "bad container id ''" },
	{ "s delete --forc -- ../x", AQE_E_USAGE, "bad container id '../x'" },
	{ "s kill a/b 9", AQE_E_USAGE, "bad container id 'a/b'" },
	{ "s state ..", AQE_E_USAGE, "bad container id '..'" },
	{ "s create --bund /b ID", AQE_E_USAGE, "unknown option '--bund'" },
	{ "s create --bundle", AQE_E_USAGE, "missing value for '--bundle'" },
	{ "s create -bundle /b ID", AQE_E_USAGE, "value must be a word of its own after" },
	{ "s create -b=/b ID", AQE_E_USAGE, "value must be a word of its own after" },
	{ "s create -b/b ID", AQE_E_USAGE, "value must be a word of its own after" },
	{ "s create -b", AQE_E_USAGE, "missing value for '-b'" },
	{ "s create --pid-file= ID", AQE_E_USAGE, "empty path for option 'pid-file'" },
	{ "s --rootless=true create ID", AQE_E_USAGE, "'--rootless' is not taken by 'create'" },
	{ "s --rootless /x run ID", AQE_E_USAGE, "'--rootless' is not taken by 'run'" },
	{ "s create --no-pivot ID", AQE_E_REFUSED, "option '--no-pivot'" },
	{ "s create --no-new-keyring ID", AQE_E_REFUSED, "option '--no-new-keyring'" },
	{ "s create --preserve-fds 1 ID", AQE_E_REFUSED, "option '--preserve-fds'" },
	{ "s create --preserve-fds=2 ID", AQE_E_REFUSED, "option '--preserve-fds'" },
	{ "s create --preserve-fds 00 ID", AQE_E_REFUSED, "option '--preserve-fds'" },
	{ "s create --preserve-fds 1 --preserve-fds 0 ID", AQE_E_REFUSED,
	  "option '--preserve-fds'" },
	{ "s create -f /other.json ID", AQE_E_REFUSED, "option '--config'" },
	{ "s create --config=0 ID", AQE_E_REFUSED, "option '--config'" },
	{ "s run --config /other.json ID", AQE_E_REFUSED, "option '--config'" },
	{ "s run --no-pivot ID", AQE_E_REFUSED, "option '--no-pivot'" },
	{ "s start", AQE_E_USAGE, "missing container id for 'start'" },
	{ "s start --force ID", AQE_E_USAGE, "unknown option '--force'" },
	{ "s exec --cgroup /x ID sh", AQE_E_REFUSED, "option '--cgroup'" },
	{ "s exec --preserve-fds 3 ID sh", AQE_E_REFUSED, "option '--preserve-fds'" },
	{ "s exec --privileged ID sh", AQE_E_USAGE, "unknown option '--privileged'" },
	{ "s exec -tx ID sh", AQE_E_USAGE, "unknown option '-tx'" },
	{ "s exec -tu 5 ID sh", AQE_E_USAGE, "value must be a word of its own after" },
	{ "s update --l3-cache-schema x ID", AQE_E_REFUSED, "option '--l3-cache-schema'" },
	{ "s update --mem 5 ID", AQE_E_USAGE, "unknown option '--mem'" },
};

START_TEST(parse__refuses_with_the_word)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv v;
	struct split s;

	split(&s, REFUSED[_i].line);
	ck_assert_int_eq(shim_argv_parse(a, s.argc, s.argv, &v, &e), REFUSED[_i].code);
	ck_assert_msg(strstr(e.text, REFUSED[_i].text) != NULL, "'%s' not in '%s'",
		      REFUSED[_i].text, e.text);
}
END_TEST

static const struct {
	const char *line;
	enum shim_verb verb;
	bool help;
} HELP[] = {
	{ "s --version", SHIM_VERB_VERSION, false },
	{ "s -v", SHIM_VERB_VERSION, false },
	{ "s -V", SHIM_VERB_VERSION, false },
	{ "s --root /r --version", SHIM_VERB_VERSION, false },
	{ "s --help", SHIM_VERB_HELP, false },
	{ "s -h", SHIM_VERB_HELP, false },
	{ "s checkpoint --help", SHIM_VERB_CHECKPOINT, true },
	{ "s create --help", SHIM_VERB_CREATE, true },
	{ "s create -h --frob", SHIM_VERB_CREATE, true },
	{ "s state -h", SHIM_VERB_STATE, true },
};

START_TEST(parse__finds_help_and_version)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv v;
	struct split s;

	split(&s, HELP[_i].line);
	ck_assert_msg(shim_argv_parse(a, s.argc, s.argv, &v, &e) == 0, "%s", e.text);
	ck_assert_int_eq(v.verb, HELP[_i].verb);
	ck_assert_int_eq(v.help, HELP[_i].help);
}
END_TEST

static const struct {
	const char *line, *path, *format;
} LOGS[] = {
	{ "s --log /l --frob create ID", "/l", NULL },
	{ "s --frob --log=/l --log-format=json create ID", "/l", "json" },
	{ "s --log /a --log /b --log-format text create ID", "/b", "text" },
	{ "s create --log /l ID", NULL, NULL },
	{ "s --log", NULL, NULL },
	{ "s --log_/tmp/x create ID", NULL, NULL },
	{ "s --logx /l --log /m create", "/m", NULL },
};

START_TEST(find_log__works_on_refused_words)
{
	const char *path = "", *format = "";
	struct split s;

	split(&s, LOGS[_i].line);
	shim_argv_find_log(s.argc, s.argv, &path, &format);
	ck_assert_pstr_eq(path, LOGS[_i].path);
	ck_assert_pstr_eq(format, LOGS[_i].format);
}
END_TEST

START_TEST(inner__keeps_only_where_the_container_is)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(4096);
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv v;
	struct split s;

	split(&s, "s --root /r --log /l --debug --systemd-cgroup --log-format json start ID");
	ck_assert_int_eq(shim_argv_parse(a, s.argc, s.argv, &v, &e), 0);
	join(shim_argv_inner(a, &v, "P", "kill", (const char *const[]){ "ID", "KILL", NULL }), &b);
	ck_assert_str_eq(aqe_buf_str(&b), "P --root=/r --systemd-cgroup kill ID KILL");
}
END_TEST

START_TEST(words__report_lack_of_memory)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_argv v;
	struct split s;

	split(&s, "s --root /r create --bundle /b --pid-file /p ID");
	for (size_t max = 0; max < 4096; max += 16) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(max);
		int rc = shim_argv_parse(a, s.argc, s.argv, &v, &e);

		ck_assert(rc == 0 || rc == AQE_E_NOMEM);
		if (rc == 0)
			(void)shim_argv_canonical(a, &v, "P", NULL); /* NULL or words: no crash */
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/argv");
	TCase *t = tcase_create("argv");

	tcase_add_loop_test(t, parse__accepts_engines_words, 0, (int)AQE_COUNT(ACCEPTED));
	tcase_add_loop_test(t, parse__passes_on_harmless_verbs, 0, (int)AQE_COUNT(PASSED));
	tcase_add_loop_test(t, parse__refuses_with_the_word, 0, (int)AQE_COUNT(REFUSED));
	tcase_add_loop_test(t, parse__finds_help_and_version, 0, (int)AQE_COUNT(HELP));
	tcase_add_loop_test(t, find_log__works_on_refused_words, 0, (int)AQE_COUNT(LOGS));
	tcase_add_test(t, inner__keeps_only_where_the_container_is);
	tcase_add_test(t, words__report_lack_of_memory);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
