/* SPDX-License-Identifier: MIT */
/* TLS without a network: what a client says first, and files that are none. A server is in
 * test_cache_redis.c. */
#include "shim/core/tls.h"

#include <check.h>
#include <string.h>

#include "shim/core/cleanup.h"
#include "tests/unit/unit.h"

static struct aqe_err e;

/* The first thing the client says. */
static void hello(struct aqe_tls *t, struct aqe_buf *b)
{
	ck_assert_int_eq(aqe_tls_handshake(t, &e), 0);
	ck_assert_ok(aqe_tls_drain(t, b, &e), e);
	ck_assert_uint_gt(b->len, 100);
}

START_TEST(like__asks_for_its_own_name)
{
	const struct aqe_tls_opts o = { .server_name = "first.test" };
	AQE_AUTO_BUF struct aqe_buf a = AQE_BUF_INIT(1 << 16), b = AQE_BUF_INIT(1 << 16);
	struct aqe_tls *first = NULL, *second = NULL;

	ck_assert_ok(aqe_tls_new(&o, &first, &e), e);
	ck_assert_ok(aqe_tls_like(first, "second.test", &second, &e), e);
	hello(first, &a);
	aqe_tls_free(first);
	/* the other one has what it needs */
	hello(second, &b);
	ck_assert_ptr_nonnull(memmem(a.p, a.len, "first.test", 10));
	ck_assert_ptr_nonnull(memmem(b.p, b.len, "second.test", 11));
	ck_assert_ptr_null(memmem(b.p, b.len, "first.test", 10));
	aqe_tls_free(second);
}
END_TEST

START_TEST(like__without_a_name_checks_nothing_and_is_refused)
{
	const struct aqe_tls_opts o = { .server_name = "first.test" };
	struct aqe_tls *first = NULL, *second = NULL;

	ck_assert_ok(aqe_tls_new(&o, &first, &e), e);
	ck_assert_fault(aqe_tls_like(first, "", &second, &e), AQE_E_USAGE, e, "no name to check");
	ck_assert_ptr_null(second);
	aqe_tls_free(first);
}
END_TEST

START_TEST(new__a_file_of_authorities_that_is_none)
{
	const struct aqe_tls_opts o = { .ca_file = "/dev/null", .server_name = "first.test" };
	struct aqe_tls *t = NULL;

	ck_assert_fault(aqe_tls_new(&o, &t, &e), AQE_E_UNTRUSTED, e,
			"unusable file of authorities");
	ck_assert_ptr_null(t);
}
END_TEST

START_TEST(handshake__what_is_not_tls)
{
	const struct aqe_tls_opts o = { .server_name = "first.test" };
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);
	struct aqe_tls *t = NULL;

	ck_assert_ok(aqe_tls_new(&o, &t, &e), e);
	hello(t, &b);
	ck_assert_ok(aqe_tls_feed(t, "-ERR unknown command\r\n", 22, &e), e);
	ck_assert_fault(aqe_tls_handshake(t, &e), AQE_E_MALFORMED, e, "handshake failed");
	aqe_tls_free(t);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("core_tls");
	TCase *t = tcase_create("tls");

	tcase_add_test(t, like__asks_for_its_own_name);
	tcase_add_test(t, like__without_a_name_checks_nothing_and_is_refused);
	tcase_add_test(t, new__a_file_of_authorities_that_is_none);
	tcase_add_test(t, handshake__what_is_not_tls);
	suite_add_tcase(s, t);
	return unit_run(s);
}
