/* SPDX-License-Identifier: MIT */
#include "audit/checkpoint.h"

#include "shim/core/text.h"
#include "tests/unit/audit_fixture.h"

static void path_in_log(const char *name, char ret[256])
{
	(void)snprintf(ret, 256, "%s/%s", log_dir, name);
}

/* ---- the key ---- */

START_TEST(key_make__files)
{
	char path[256], text[AUDIT_PUBLIC_TEXT];
	uint8_t key[32], again[32];
	struct stat st;

	ck_assert_fault(audit_key_public(&opts, key, &err), AQE_E_ABSENT, err, "key.pub");
	make_key();
	path_in_log("key", path);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	path_in_log("key.pub", path);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0644);
	ck_assert_ok(audit_key_public(&opts, key, &err), err);
	audit_public_format(key, text);
	ck_assert(audit_public_parse(text, strlen(text), again));
	ck_assert(audit_public_parse(text, strlen(text) - 1, again));
	ck_assert_mem_eq(key, again, 32);
	ck_assert(!audit_public_parse(text, strlen(text) - 2, again));
	ck_assert(!audit_public_parse(text + 1, strlen(text) - 1, again));
	ck_assert_fault(audit_key_make(&opts, &err), AQE_E_REFUSED, err, "already");
}
END_TEST

START_TEST(key_make__in_a_folder_of_its_own)
{
	char dir[200], path[256];
	struct audit_verdict v;

	full("keys", dir);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	add_rows(3);
	opts.key_dir = dir;
	open_again(AUDIT_WRITE);
	make_key();
	path_in_log("key", path);
	ck_assert_int_ne(access(path, F_OK), 0);
	add_rows(3);
	v = judge();
	ck_assert_good(v);
	ck_assert_int_eq(v.signed_to, 3);
}
END_TEST

/* A key that others can read, or that is not there any more, signs nothing. */
static const struct {
	const char *what;
	mode_t mode;
	int code;
	const char *part;
} KEYS[] = {
	{ "mode", 0640, AQE_E_UNTRUSTED, "0600" }, { "mode", 0602, AQE_E_UNTRUSTED, "write" },
	{ "none", 0, AQE_E_ABSENT, "key" },        { "junk", 0600, AQE_E_MALFORMED, "no key" },
	{ "link", 0, AQE_E_UNTRUSTED, "key" },
};

START_TEST(checkpoint__with_a_bad_key)
{
	char path[256], other[256];
	struct audit_row r = full_row(1);

	opts.sign_every = 3;
	open_again(AUDIT_WRITE);
	make_key();
	add_rows(2);
	path_in_log("key", path);
	path_in_log("key2", other);
	if (strcmp(KEYS[_i].what, "mode") == 0) {
		ck_assert_int_eq(chmod(path, KEYS[_i].mode), 0);
	} else {
		ck_assert_int_eq(rename(path, other), 0);
		if (strcmp(KEYS[_i].what, "link") == 0)
			ck_assert_int_eq(symlink("key2", path), 0);
		else if (KEYS[_i].mode)
			put("audit/key", "junk\n", KEYS[_i].mode);
	}
	ck_assert_fault(audit_checkpoint(lg, NULL, &err), KEYS[_i].code, err, KEYS[_i].part);
	/* a signed log stays signed: the row that is due for a checkpoint is refused */
	ck_assert_fault(audit_append(lg, &r, &err), KEYS[_i].code, err, KEYS[_i].part);
	ck_assert_uint_eq(count_all(), 2);
}
END_TEST

START_TEST(checkpoint__without_a_key)
{
	add_rows(1);
	ck_assert_fault(audit_checkpoint(lg, NULL, &err), AQE_E_ABSENT, err, "key");
}
END_TEST

START_TEST(checkpoint__of_the_empty_log)
{
	struct audit_point p;

	make_key();
	ck_assert_ok(audit_checkpoint(lg, &p, &err), err);
	ck_assert_int_eq(p.seq, 0);
	ck_assert(audit_point_verify(&p));
	ck_assert_good(judge());
}
END_TEST

START_TEST(head__unsigned_for_a_reader)
{
	struct audit_point p;

	make_key();
	add_rows(4);
	ck_assert_ok(audit_head(lg, &p, &err), err);
	ck_assert(p.is_signed && audit_point_verify(&p));
	ck_assert_int_eq(p.seq, 4);
	open_again(AUDIT_READ);
	ck_assert_ok(audit_head(lg, &p, &err), err);
	ck_assert(!p.is_signed && !audit_point_verify(&p));
	given.anchors = &p;
	given.n_anchors = 1;
	ck_assert_good(judge());
}
END_TEST

/* ---- signatures and texts ---- */

START_TEST(point_verify__every_member)
{
	struct audit_point p, bad;

	make_key();
	add_rows(2);
	ck_assert_ok(audit_checkpoint(lg, &p, &err), err);
	ck_assert(audit_point_verify(&p));
#define WITH(change)                                                     \
	do {                                                             \
		bad = p;                                                 \
		change;                                                  \
		ck_assert_msg(!audit_point_verify(&bad), "%s", #change); \
	} while (0)
	WITH(bad.chain[0] ^= 1);
	WITH(bad.kind = AUDIT_POINT_PRUNE);
	WITH(bad.seq++);
	WITH(bad.hash[31] ^= 128);
	WITH(bad.time_ns--);
	WITH(bad.every++);
	WITH(bad.is_signed = false);
	WITH(bad.key[3] ^= 4);
	WITH(bad.sig[63] ^= 1);
	WITH(memset(bad.sig, 0, 64));
	WITH(memset(bad.key, 0, 32));
#undef WITH
}
END_TEST

START_TEST(point_text__both_ways)
{
	char text[AUDIT_POINT_TEXT];
	struct audit_point p, got;
	size_t n;

	make_key();
	add_rows(2);
	ck_assert_ok(audit_head(lg, &p, &err), err);
	if (_i) {
		p.is_signed = false;
		memset(p.key, 0, 32);
		memset(p.sig, 0, 64);
	}
	audit_point_format(&p, text);
	n = strlen(text) - 1;
	ck_assert_ok(audit_point_parse(text, n, &got, &err), err);
	ck_assert_int_eq(got.seq, p.seq);
	ck_assert_int_eq(got.time_ns, p.time_ns);
	ck_assert_int_eq(got.every, p.every);
	ck_assert_mem_eq(got.chain, p.chain, 32);
	ck_assert_mem_eq(got.hash, p.hash, 32);
	ck_assert_mem_eq(got.sig, p.sig, 64);
	ck_assert_int_eq(audit_point_verify(&got), !_i);
	/* one spelling: no line that differs in a byte reads, or reads as the same statement */
	for (size_t i = 0; i < n; i++) {
		char old = text[i];

		text[i] = (char)(old ^ 1);
		if (audit_point_parse(text, n, &got, &err) == 0)
			ck_assert(!audit_point_verify(&got));
		text[i] = old;
		if (i > 0)
			ck_assert_fault(audit_point_parse(text, i, &got, &err), AQE_E_MALFORMED,
					err, "anchor");
	}
}
END_TEST

static void setup_judge(void)
{
	setup_log();
	memset(&given, 0, sizeof(given));
	given.keys = (const uint8_t(*)[32])given_keys;
}

int main(void)
{
	Suite *s = suite_create("audit_checkpoint");
	TCase *t = tcase_create("checkpoint");

	tcase_add_checked_fixture(t, setup_judge, teardown_log);
	tcase_add_test(t, key_make__files);
	tcase_add_test(t, key_make__in_a_folder_of_its_own);
	tcase_add_loop_test(t, checkpoint__with_a_bad_key, 0, AQE_COUNT(KEYS));
	tcase_add_test(t, checkpoint__without_a_key);
	tcase_add_test(t, checkpoint__of_the_empty_log);
	tcase_add_test(t, head__unsigned_for_a_reader);
	tcase_add_test(t, point_verify__every_member);
	tcase_add_loop_test(t, point_text__both_ways, 0, 2);
	suite_add_tcase(s, t);
	return unit_run_with_openat2(s);
}
