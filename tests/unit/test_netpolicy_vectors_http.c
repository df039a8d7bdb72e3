/* SPDX-License-Identifier: MIT */
/* Every file of tests/vectors/http, as far as parsers alone can judge it: the wanted status and
 * reason of index.tsv, the bytes behind the head. Policy and connections: egress_vectors.bats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "netpolicy/http1.h"
#include "netpolicy/http1_chunk.h"
#include "netpolicy/socks.h"
#include "netpolicy/tls_hello.h"
#include "shim/core/text.h"
#include "tests/unit/http1_util.h"
#include "tests/unit/unit.h"

#define DIR       "tests/vectors/http/"
#define ROWS_MAX  200
#define BYTES_MAX 65536

static struct row {
	char name[64], status[32], behaviour[256];
	size_t bytes;
} rows[ROWS_MAX];
static int n_rows;

static void load(void)
{
	char line[1024];
	FILE *f = fopen(DIR "index.tsv", "re");

	while (f && fgets(line, sizeof(line), f)) {
		struct row *r = &rows[n_rows];

		if (line[0] == '#' || aqe_starts(line, "file\t"))
			continue;
		if (n_rows < ROWS_MAX && sscanf(line, "%63[^\t]\t%zu\t%31[^\t]\t%255[^\t]", r->name,
						&r->bytes, r->status, r->behaviour) == 4)
			n_rows++;
	}
	if (f)
		(void)fclose(f);
}

static size_t bytes_of(const struct row *r, char *out)
{
	char path[128];
	size_t n;

	(void)snprintf(path, sizeof(path), DIR "%s", r->name);
	n = http1_file(path, out, BYTES_MAX);
	ck_assert_msg(n == r->bytes, "%s: %zu bytes, wanted %zu", r->name, n, r->bytes);
	return n;
}

/* Rows whose answer needs more than the head: the policy, the name's syntax, the clock, the body.
 */
static bool is_later(const struct row *r)
{
	static const char *const body[] = { "c20_chunk_junk.raw", "c21_chunk_lf.raw",
					    "c23_chunk_ext_long.raw", NULL };

	return strncmp(r->status, "200", 3) == 0 || strncmp(r->status, "403", 3) == 0 ||
	       strncmp(r->status, "100", 3) == 0 || strstr(r->behaviour, "host_invalid") ||
	       aqe_str_in(r->name, body);
}

static void check_fault(const struct row *r, enum netpol_h1_fault fault)
{
	unsigned status =
		aqe_starts(r->status, "close") ? 400 : (unsigned)strtoul(r->status, NULL, 10);
	const char *reason = strstr(r->behaviour, "reason ");

	ck_assert_msg(fault != NETPOL_H1_OK && fault != NETPOL_H1_FAULT_COUNT, "%s: accepted",
		      r->name);
	ck_assert_msg(netpol_h1_status(fault) == status, "%s: %u, wanted %u", r->name,
		      netpol_h1_status(fault), status);
	if (!reason)
		return;
	reason += strlen("reason ");
	ck_assert_msg(strncmp(reason, netpol_h1_reason(fault), strcspn(reason, " :(")) == 0,
		      "%s: reason %s, wanted %s", r->name, netpol_h1_reason(fault), reason);
}

START_TEST(request_read__answers_the_vectors)
{
	static char bytes[BYTES_MAX];
	const struct row *r = &rows[_i];
	size_t n = bytes_of(r, bytes);
	struct http1_util u;
	enum netpol_h1_fault fault = http1_request(&u, NETPOL_H1_PROXY, bytes, n);

	if (aqe_str_eq(r->name, "d17_slow_partial.raw"))
		ck_assert_int_eq(fault, NETPOL_H1_FAULT_COUNT); /* no end: the deadline answers */
	else if (is_later(r))
		ck_assert_msg(fault == NETPOL_H1_OK, "%s: %s", r->name, netpol_h1_reason(fault));
	else
		check_fault(r, fault);
}
END_TEST

START_TEST(rows__are_all_there)
{
	ck_assert_int_eq(n_rows, 105);
}
END_TEST

static const struct {
	const char *name;
	enum netpol_h1_step step;
	size_t behind;
} BODIES[] = {
	{ "c02_post_chunked.raw", NETPOL_H1_DONE, 0 },  { "c24_trailer.raw", NETPOL_H1_DONE, 0 },
	{ "c20_chunk_junk.raw", NETPOL_H1_BAD, 0 },     { "c21_chunk_lf.raw", NETPOL_H1_BAD, 0 },
	{ "c23_chunk_ext_long.raw", NETPOL_H1_BAD, 0 },
};

static const struct row *row_of(const char *name)
{
	for (int i = 0; i < n_rows; i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	ck_abort_msg("no row %s", name);
	return NULL;
}

START_TEST(chunks_next__answers_the_vectors)
{
	static char bytes[BYTES_MAX];
	size_t n = bytes_of(row_of(BODIES[_i].name), bytes), used = 0, data = 0, at, got = 0;
	enum netpol_h1_step step = NETPOL_H1_MORE;
	struct netpol_h1_chunks c;
	struct http1_util u;

	ck_assert_int_eq(http1_request(&u, NETPOL_H1_PROXY, bytes, n), NETPOL_H1_OK);
	ck_assert_int_eq(u.req.body, NETPOL_H1_CHUNKED);
	netpol_h1_chunks_init(&c);
	for (at = u.head.at; at < n && step == NETPOL_H1_MORE; at += used) {
		step = netpol_h1_chunks_next(&c, bytes + at, n - at, &used, &data);
		got += data;
	}
	ck_assert_int_eq(step, BODIES[_i].step);
	if (step == NETPOL_H1_DONE) {
		ck_assert_uint_eq(got, 5);
		ck_assert_uint_eq(n - at, BODIES[_i].behind);
	}
}
END_TEST

static const struct {
	const char *name;
	enum netpol_tls_verdict verdict;
	const char *sni, *alpn;
} HELLOS[] = {
	{ "f01_sni_match.raw", NETPOL_TLS_HELLO, "allowed.test", "" },
	{ "f03_sni_other_allowed.raw", NETPOL_TLS_HELLO, "x.wild.test", "" },
	{ "f07_sni_late.raw", NETPOL_TLS_HELLO, "allowed.test", "" },
	{ "f09_sni_upper.raw", NETPOL_TLS_HELLO, "ALLOWED.test", "" },
	{ "f11_not_tls_http.raw", NETPOL_TLS_NOT_TLS, NULL, NULL },
	{ "f13_alpn_h2.raw", NETPOL_TLS_HELLO, "allowed.test", "h2,http/1.1" },
	{ "f14_hello_too_big.raw", NETPOL_TLS_MALFORMED, NULL, NULL },
	{ "a52_connect_early_data.raw", NETPOL_TLS_MALFORMED, NULL, NULL },
};

START_TEST(tls_hello_read__answers_the_vectors)
{
	static char bytes[BYTES_MAX];
	size_t n = bytes_of(row_of(HELLOS[_i].name), bytes), at;
	struct netpol_tls_hello hello;
	enum netpol_tls_verdict v;
	struct http1_util u;

	ck_assert_int_eq(http1_request(&u, NETPOL_H1_PROXY, bytes, n), NETPOL_H1_OK);
	at = u.head.at;
	v = netpol_tls_hello_read((const uint8_t *)bytes + at, n - at, &hello);
	ck_assert_int_eq(v, HELLOS[_i].verdict);
	if (v != NETPOL_TLS_HELLO)
		return;
	ck_assert_str_eq(hello.name, HELLOS[_i].sni);
	ck_assert_str_eq(hello.alpn, HELLOS[_i].alpn);
	ck_assert(!hello.ech);
	for (size_t cut = 0; cut < n - at; cut++)
		ck_assert_int_eq(netpol_tls_hello_read((const uint8_t *)bytes + at, cut, &hello),
				 NETPOL_TLS_MORE);
}
END_TEST

/* The e-rows again, on a SOCKS listener: greeting and request in one file. */
static const struct {
	const char *name;
	enum netpol_socks_verdict verdict;
	enum netpol_socks_reply reply;
} SOCKS[] = {
	{ "e03_socks5_v4_loop.raw", NETPOL_SOCKS_OK, NETPOL_SOCKS_SUCCEEDED },
	{ "e04_socks5_bind.raw", NETPOL_SOCKS_REFUSED, NETPOL_SOCKS_COMMAND },
	{ "e05_socks5_udp.raw", NETPOL_SOCKS_REFUSED, NETPOL_SOCKS_COMMAND },
	{ "e07_tls_on_http.raw", NETPOL_SOCKS_BAD, 0 },
	{ "e08_ssh.raw", NETPOL_SOCKS_BAD, 0 },
	{ "b01_abs_ok.raw", NETPOL_SOCKS_BAD, 0 },
};

START_TEST(socks__answers_the_vectors)
{
	static char bytes[BYTES_MAX];
	size_t n = bytes_of(row_of(SOCKS[_i].name), bytes), used = 0, more = 0;
	const uint8_t *p = (const uint8_t *)bytes;
	struct netpol_socks_request rq;
	enum netpol_socks_reply reply = NETPOL_SOCKS_FAILURE;
	uint8_t answer[2];
	/* e03 offers no method at all ("05 01 00" is version, one method, none): a greeting */
	enum netpol_socks_verdict v = netpol_socks_greeting(p, n, answer, &used);

	if (SOCKS[_i].verdict == NETPOL_SOCKS_BAD) {
		ck_assert_int_eq(v, NETPOL_SOCKS_BAD);
		return;
	}
	ck_assert_int_eq(v, NETPOL_SOCKS_OK);
	ck_assert_int_eq(netpol_socks_request(p + used, n - used, &rq, &reply, &more),
			 SOCKS[_i].verdict);
	ck_assert_int_eq(reply, SOCKS[_i].reply);
	ck_assert_uint_eq(used + more, n);
	ck_assert_uint_eq(rq.port, 443);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("netpolicy/vectors_http");
	TCase *t = tcase_create("vectors_http");

	load();
	tcase_add_test(t, rows__are_all_there);
	tcase_add_loop_test(t, request_read__answers_the_vectors, 0, n_rows);
	tcase_add_loop_test(t, chunks_next__answers_the_vectors, 0, (int)AQE_COUNT(BODIES));
	tcase_add_loop_test(t, tls_hello_read__answers_the_vectors, 0, (int)AQE_COUNT(HELLOS));
	tcase_add_loop_test(t, socks__answers_the_vectors, 0, (int)AQE_COUNT(SOCKS));
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run(suite());
}
