/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "oci/doc.h"
#include "shim/core/text.h"

static const struct {
	const char *text;
	int code;
	enum oci_status status;
	int pid;
	const char *why;
} states[] = {
	{ "{\"ociVersion\":\"1.0.0\",\"id\":\"c\",\"pid\":4711,\"status\":\"running\","
	  "\"bundle\":\"/b\",\"systemd-scope\":null,\"owner\":\"\",\"annotations\":{\"a\":\"b\"}}",
	  0, OCI_STATUS_RUNNING, 4711, NULL },
	{ "{\"status\":\"created\",\"pid\":1}\n", 0, OCI_STATUS_CREATED, 1, NULL },
	{ "{\"status\":\"creating\"}", 0, OCI_STATUS_CREATING, 0, NULL },
	{ "{\"status\":\"paused\",\"pid\":2147483647}", 0, OCI_STATUS_PAUSED, 2147483647, NULL },
	{ "{\"status\":\"stopped\",\"pid\":0}", 0, OCI_STATUS_STOPPED, 0, NULL },
	{ "{\"status\":\"dead\"}", AQE_E_MALFORMED, 0, 0,
	  "status 'dead' in a state document is not known" },
	{ "{\"pid\":5}", AQE_E_MALFORMED, 0, 0, "a state document has no 'status'" },
	{ "{\"status\":\"running\",\"pid\":-1}", AQE_E_MALFORMED, 0, 0, NULL },
	{ "{\"status\":\"running\",\"pid\":2147483648}", AQE_E_MALFORMED, 0, 0, NULL },
	{ "{\"status\":null}", AQE_E_MALFORMED, 0, 0, NULL },
	{ "[]", AQE_E_MALFORMED, 0, 0, "a state document is an object, not array" },
	{ "", AQE_E_MALFORMED, 0, 0, NULL },
	{ "{\"status\":\"running\"}{}", AQE_E_MALFORMED, 0, 0, NULL },
};

START_TEST(state_parse__reads_status_and_pid)
{
	struct oci_state st = { OCI_STATUS_STOPPED, 99 };
	struct aqe_err e = AQE_ERR_INIT;
	int r = oci_state_parse(states[_i].text, strlen(states[_i].text), &st, &e);

	ck_assert_msg(r == states[_i].code, "%d %s", r, e.text);
	if (r < 0) {
		ck_assert_int_eq(st.pid, 99); /* untouched */
		if (states[_i].why)
			ck_assert_str_eq(e.text, states[_i].why);
		return;
	}
	ck_assert_int_eq(st.status, states[_i].status);
	ck_assert_int_eq(st.pid, states[_i].pid);
}
END_TEST

START_TEST(id_ok__has_the_runtimes_alphabet)
{
	static const char *const good[] = { "a", "c1", "A_b+c.d-e", "...", "-x", ".a" };
	static const char *const bad[] = { "", ".", "..", "a/b", "a b", "a\n", "\xc3\xa9", "a:b" };
	char longest[1026];

	for (size_t i = 0; i < AQE_COUNT(good); i++)
		ck_assert_msg(oci_id_ok(good[i]), "%s", good[i]);
	for (size_t i = 0; i < AQE_COUNT(bad); i++)
		ck_assert_msg(!oci_id_ok(bad[i]), "%s", bad[i]);
	ck_assert(!oci_id_ok(NULL));
	memset(longest, 'x', sizeof(longest));
	longest[1024] = 0;
	ck_assert(oci_id_ok(longest));
	longest[1024] = 'x';
	longest[1025] = 0;
	ck_assert(!oci_id_ok(longest));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("oci_state");
	TCase *tc = tcase_create("state");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_loop_test(tc, state_parse__reads_status_and_pid, 0, (int)AQE_COUNT(states));
	tcase_add_test(tc, id_ok__has_the_runtimes_alphabet);
	suite_add_tcase(s, tc);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
