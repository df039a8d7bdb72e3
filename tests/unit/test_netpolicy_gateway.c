/* SPDX-License-Identifier: MIT */
/* What passes a gateway, what it becomes, and what an answer may hold. */
#include "netpolicy/gateway.h"

#include "netpolicy/egress/secrets.h"
#include "shim/aqe/gateway_mask.h"
#include "shim/aqe/gateway_session.h"
#include "shim/core/cleanup.h"
#include "tests/unit/http1_util.h"
#include "tests/unit/netpolicy_util.h"

#include <fcntl.h>
#include <sys/stat.h>

/* ---- targets ---- */

static const struct {
	const char *in, *name, *path, *query; /* name NULL: refused */
} TARGETS[] = {
	{ "/api/v1/x?a=b/../c", "api", "/v1/x", "?a=b/../c" },
	{ "/api", "api", "", "" },
	{ "/api?x", "api", "", "?x" },
	{ "/api/", "api", "/", "" },
	{ "/api/a/", "api", "/a/", "" },
	{ "/api/a%20b%c3%a9", "api", "/a%20b%c3%a9", "" },
	{ "/api/a...b/.c/d.", "api", "/a...b/.c/d.", "" },
	{ "/api/v1/m:predict", "api", "/v1/m:predict", "" },
	{ "", NULL, NULL, NULL },
	{ "/", NULL, NULL, NULL },
	{ "api/x", NULL, NULL, NULL },
	{ "//api/x", NULL, NULL, NULL },
	{ "/api//x", NULL, NULL, NULL },
	{ "/api/x//", NULL, NULL, NULL },
	{ "/api/../x", NULL, NULL, NULL },
	{ "/api/.", NULL, NULL, NULL },
	{ "/api/x/..", NULL, NULL, NULL },
	{ "/api/./x", NULL, NULL, NULL },
	{ "/api/%2e%2e/x", NULL, NULL, NULL },
	{ "/api/.%2e/x", NULL, NULL, NULL },
	{ "/api/%2E/x", NULL, NULL, NULL },
	{ "/api/a%2fb", NULL, NULL, NULL },
	{ "/api/a%2Fb", NULL, NULL, NULL },
	{ "/api/a%5cb", NULL, NULL, NULL },
	{ "/api/a\\b", NULL, NULL, NULL },
	{ "/api/%252e%252e/x", NULL, NULL, NULL },
	{ "/api/a%00b", NULL, NULL, NULL },
	{ "/api/a%0d%0ab", NULL, NULL, NULL },
	{ "/api/a%7f", NULL, NULL, NULL },
	{ "/api/a%", NULL, NULL, NULL },
	{ "/api/a%2", NULL, NULL, NULL },
	{ "/api/a%zz", NULL, NULL, NULL },
	{ "/api/..;/x", NULL, NULL, NULL },
	{ "/api/a#b", NULL, NULL, NULL },
	{ "/api/a?b#c", NULL, NULL, NULL },
	{ "/api/a b", NULL, NULL, NULL },
	{ "/api/\xc3\xa9", NULL, NULL, NULL },
	{ "/%61pi/x", "%61pi", "/x", "" }, /* no gateway has such a name */
};

START_TEST(split__takes_what_means_one_thing)
{
	const char *in = TARGETS[_i].in;
	struct netpol_gateway_target t;

	ck_assert_int_eq(netpol_gateway_split(in, strlen(in), &t), TARGETS[_i].name != NULL);
	if (!TARGETS[_i].name)
		return;
	ck_assert_uint_eq(t.name_n, strlen(TARGETS[_i].name));
	ck_assert_mem_eq(t.name, TARGETS[_i].name, t.name_n);
	ck_assert_uint_eq(t.path_n, strlen(TARGETS[_i].path));
	ck_assert_mem_eq(t.path, TARGETS[_i].path, t.path_n);
	ck_assert_uint_eq(t.query_n, strlen(TARGETS[_i].query));
	ck_assert_mem_eq(t.query, TARGETS[_i].query, t.query_n);
}
END_TEST

/* ---- methods, paths, fields ---- */

#define POLICY                                                                            \
	"{\"gateways\":{\"usual\":{\"upstream\":\"https://api.test/base\","               \
	"\"credentialFile\":\"/k\",\"header\":\"x-secret-key\",\"prefix\":\"K \"},"       \
	"\"open\":{\"upstream\":\"https://api.test:444\"},"                               \
	"\"narrow\":{\"upstream\":\"https://api.test\",\"methods\":[\"POST\",\"PURGE\"]," \
	"\"paths\":[\"/v1/messages\",\"/v1/models/*\"]}}}"

static const struct netpol_gateway *gateway(const char *name)
{
	const struct np_text text = { "/p", POLICY, false };

	ck_assert_ok(np_build(&text, 1), np_err);
	return netpol_policy_gateway(np, "default", name);
}

static const struct {
	const char *gateway, *method, *path, *why;
} PASS[] = {
	{ "usual", "GET", "", NULL },
	{ "usual", "DELETE", "/any", NULL },
	{ "usual", "TRACE", "/any", "method_not_allowed" },
	{ "usual", "get", "/any", "method_not_allowed" },
	{ "usual", "PURGE", "/any", "method_not_allowed" },
	{ "narrow", "PURGE", "/v1/messages", NULL },
	{ "narrow", "GET", "/v1/messages", "method_not_allowed" },
	{ "narrow", "POST", "/v1/messages/", "path_not_allowed" },
	{ "narrow", "POST", "/v1/message", "path_not_allowed" },
	{ "narrow", "POST", "/v1/models/a/b", NULL },
	{ "narrow", "POST", "/v1/models/", NULL },
	{ "narrow", "POST", "/v1/models", "path_not_allowed" },
	{ "narrow", "POST", "/V1/messages", "path_not_allowed" },
	{ "narrow", "POST", "/v1/%6dessages", "path_not_allowed" },
	{ "narrow", "POST", "", "path_not_allowed" },
};

START_TEST(refuses__by_method_and_path)
{
	const struct netpol_gateway *g = gateway(PASS[_i].gateway);
	const char *why = netpol_gateway_refuses(g, PASS[_i].method, strlen(PASS[_i].method),
						 PASS[_i].path, strlen(PASS[_i].path));

	ck_assert_pstr_eq(why, PASS[_i].why);
	np_drop();
}
END_TEST

static const struct {
	const char *name;
	bool dropped;
} FIELDS[] = {
	{ "x-secret-key", true },   { "X-Secret-Key", true },    { "x_secret_key", true },
	{ "authorization", true },  { "AUTHORIZATION", true },   { "Cookie", true },
	{ "x-api-key", true },      { "accept-encoding", true }, { "accept", false },
	{ "x-secret-keys", false }, { "content-type", false },
};

START_TEST(drops__every_spelling_of_a_credential)
{
	const char *name = FIELDS[_i].name;

	ck_assert_int_eq(netpol_gateway_drops(gateway("usual"), name, strlen(name)),
			 FIELDS[_i].dropped);
	ck_assert(!netpol_gateway_drops(gateway("open"), name, strlen(name)));
	np_drop();
}
END_TEST

/* ---- the companion's look at a head ---- */

static const struct {
	const char *gateway, *in, *out; /* out NULL: it may not pass */
} HEADS[] = {
	{ "usual", "GET /base/v1?q HTTP/1.1\r\nHost: x\r\nX-A: b\r\n\r\n",
	  "GET /base/v1?q HTTP/1.1\r\nHost: api.test\r\nX-A: b\r\nx-secret-key: K s3cr3t-word\r\n"
	  "\r\n" },
	{ "usual",
	  "POST /base HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\nX-Secret-Key: b\r\n"
	  "Content-Length: 3\r\n\r\n",
	  "POST /base HTTP/1.1\r\nHost: api.test\r\nContent-Length: 3\r\n"
	  "x-secret-key: K s3cr3t-word\r\n\r\n" },
	{ "open", "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: a\r\n\r\n",
	  "GET / HTTP/1.1\r\nHost: api.test:444\r\nAuthorization: a\r\n\r\n" },
	{ "usual", "GET /other HTTP/1.1\r\nHost: x\r\n\r\n", NULL },
	{ "usual", "GET /base/../x HTTP/1.1\r\nHost: x\r\n\r\n", NULL },
	{ "usual", "GET /basement HTTP/1.1\r\nHost: x\r\n\r\n", NULL },
	{ "usual", "TRACE /base/x HTTP/1.1\r\nHost: x\r\n\r\n", NULL },
	{ "usual", "GET http://api.test/base HTTP/1.1\r\nHost: x\r\n\r\n", NULL },
	{ "usual",
	  "GET /base/x HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	  NULL },
	{ "narrow", "POST / HTTP/1.1\r\nHost: x\r\n\r\n", NULL },
	{ "narrow", "POST /v1/messages HTTP/1.1\r\nHost: x\r\n\r\n",
	  "POST /v1/messages HTTP/1.1\r\nHost: api.test\r\n\r\n" },
};

START_TEST(head__is_judged_again_and_gets_the_credential)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT((size_t)2 * NETPOL_H1_HEAD_MAX);
	const char *in = HEADS[_i].in;
	struct shim_route route = { gateway(HEADS[_i].gateway), "", "" };
	struct http1_util u;

	if (route.gateway->credential_file)
		route.credential = "s3cr3t-word";
	ck_assert_int_eq(http1_scan(&u.head, false, in, strlen(in), 0), NETPOL_H1_DONE);
	ck_assert_int_eq(shim_session_head(&route, &u.head, in, &u.req, &out),
			 HEADS[_i].out != NULL);
	if (HEADS[_i].out)
		ck_assert_str_eq(aqe_buf_str(&out), HEADS[_i].out);
	np_drop();
}
END_TEST

/* ---- the mask ---- */

static const struct {
	const char *secret, *in, *out;
} MASKS[] = {
	{ "secret", "a secret, the secret.", "a ******, the ******." },
	{ "secret", "secretsecret", "************" },
	{ "secret", "secsecret", "sec******" },
	{ "secret", "secre", "secre" },
	{ "secret", "sesesecrete", "sese******e" },
	{ "aab", "aaab", "a***" },
	{ "", "secret", "secret" },
};

/* In pieces of every size. */
START_TEST(mask__finds_the_secret_however_it_is_cut)
{
	const char *in = MASKS[_i].in;
	const size_t len = strlen(in);

	for (size_t size = 1; size <= len; size++) {
		AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(256);
		struct shim_mask m;

		shim_mask_init(&m, 64);
		shim_mask_set(&m, MASKS[_i].secret);
		for (size_t at = 0; at < len; at += size) {
			size_t n = len - at < size ? len - at : size;

			ck_assert_int_eq(shim_mask_feed(&m, in + at, n, &out), 0);
		}
		ck_assert_int_eq(shim_mask_end(&m, &out), 0);
		shim_mask_done(&m);
		ck_assert_str_eq(aqe_buf_str(&out), MASKS[_i].out);
	}
}
END_TEST

/* What cannot begin the secret is not held back: events pass as they come. */
START_TEST(mask__holds_back_no_more_than_it_must)
{
	AQE_AUTO_BUF struct aqe_buf out = AQE_BUF_INIT(256);
	struct shim_mask m;

	shim_mask_init(&m, 64);
	shim_mask_set(&m, "sk-word");
	ck_assert_int_eq(shim_mask_feed(&m, "data: x\n\n", 9, &out), 0);
	ck_assert_uint_eq(out.len, 9);
	ck_assert_int_eq(shim_mask_feed(&m, "data: sk", 8, &out), 0);
	ck_assert_uint_eq(out.len, 9 + 6);
	shim_mask_done(&m);
}
END_TEST

/* ---- credentials ---- */

static const struct {
	const char *text;
	mode_t mode;
	const char *want, *fault;
} FILES[] = {
	{ "12345678", 0600, "12345678", NULL },
	{ "a b c d e f\r\n\n", 0640, "a b c d e f", NULL },
	{ "1234567\n", 0600, NULL, "shorter than 8" },
	{ "", 0600, NULL, "shorter than 8" },
	{ "12345678\n12345678\n", 0600, NULL, "not one line" },
	{ "1234567\t8", 0600, NULL, "not one line" },
	{ "1234567\xc3\xa9", 0600, NULL, "not one line" },
	{ "12345678", 0604, NULL, "others may read it" },
	{ "12345678", 0620, NULL, NULL },
};

START_TEST(credential__is_one_safe_line)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(NETPOL_CREDENTIAL_MAX);
	char path[] = "/tmp/aqe-credential-XXXXXX";
	struct aqe_err e = AQE_ERR_INIT;
	int fd = mkstemp(path), rc;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, FILES[_i].text, strlen(FILES[_i].text)),
			 (ssize_t)strlen(FILES[_i].text));
	ck_assert_int_eq(fchmod(fd, FILES[_i].mode), 0);
	(void)close(fd);
	rc = netpol_credential_read(path, &b, &e);
	(void)unlink(path);
	if (FILES[_i].want) {
		ck_assert_ok(rc, e);
		ck_assert_str_eq(aqe_buf_str(&b), FILES[_i].want);
		return;
	}
	ck_assert_fault(rc, FILES[_i].mode == 0600 ? AQE_E_MALFORMED : AQE_E_UNTRUSTED, e,
			FILES[_i].fault);
	ck_assert_uint_eq(b.len, 0);
	/* and the text does not say what is in it */
	ck_assert_ptr_null(strstr(e.text, "12345678"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("netpolicy/gateway");
	TCase *t = tcase_create("gateway");

	tcase_add_loop_test(t, split__takes_what_means_one_thing, 0, (int)AQE_COUNT(TARGETS));
	tcase_add_loop_test(t, refuses__by_method_and_path, 0, (int)AQE_COUNT(PASS));
	tcase_add_loop_test(t, drops__every_spelling_of_a_credential, 0, (int)AQE_COUNT(FIELDS));
	tcase_add_loop_test(t, head__is_judged_again_and_gets_the_credential, 0,
			    (int)AQE_COUNT(HEADS));
	tcase_add_loop_test(t, mask__finds_the_secret_however_it_is_cut, 0, (int)AQE_COUNT(MASKS));
	tcase_add_test(t, mask__holds_back_no_more_than_it_must);
	tcase_add_loop_test(t, credential__is_one_safe_line, 0, (int)AQE_COUNT(FILES));
	suite_add_tcase(s, t);
	return unit_run(s);
}
