/* SPDX-License-Identifier: MIT */
/* Records of the egress service as rows of the audit log. */
#include "shim/egress_audit.h"

#include <string.h>

#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "tests/unit/unit.h"

static struct aqe_arena *arena;
static struct aqe_err err;
static struct audit_row row;
static struct netpol_record rec;
static const struct shim_egress_audit FROM = {
	.container = "c1", .agent_id = "a-7", .agent_type = "qe-lab", .image = "sha256:0"
};

static void setup(void)
{
	static const struct audit_row none = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_BLOCKED);

	arena = aqe_arena_new((size_t)1 << 20);
	row = none;
	netpol_record_init(&rec);
	rec.id = 9;
	rec.port = 80;
	strcpy(rec.listener, "http");
	strcpy(rec.method, "POST");
	strcpy(rec.host, "allowed.test");
	strcpy(rec.path, "/v1/things");
	strcpy(rec.reason, "allowed");
	strcpy(rec.rule, "*.test");
}

static void teardown(void)
{
	aqe_arena_free(arena);
}

static void make(void)
{
	ck_assert_ok(shim_egress_row(&FROM, &rec, arena, &row, &err), err);
}

START_TEST(egress_row__of_a_decision)
{
	rec.action = NETPOL_ALLOWED;
	make();
	ck_assert_int_eq(row.kind, AUDIT_REQUEST);
	ck_assert_int_eq(row.action, AUDIT_ALLOWED);
	ck_assert_str_eq(row.method, "POST");
	ck_assert_str_eq(row.path, "/v1/things");
	ck_assert_str_eq(row.domain, "allowed.test");
	ck_assert_str_eq(row.rule, "*.test");
	ck_assert_str_eq(row.container, "c1");
	ck_assert_str_eq(row.agent_id, "a-7");
	ck_assert_str_eq(row.agent_type, "qe-lab");
	ck_assert_int_eq(row.port, 80);
	ck_assert_int_eq(row.status, AUDIT_NONE);
	ck_assert_int_eq(row.bytes_in, AUDIT_NONE);
	ck_assert_str_eq(row.meta, "{\"phase\":\"decision\",\"id\":9,\"listener\":\"http\"}");
}
END_TEST

START_TEST(egress_row__of_a_close)
{
	rec.phase = NETPOL_PHASE_CLOSE;
	rec.action = NETPOL_ALLOWED;
	rec.status = 204;
	rec.up = 10;
	rec.down = 20;
	rec.duration_us = 3;
	rec.connect_us = 2;
	make();
	ck_assert_str_eq(row.method, "POST");
	ck_assert_str_eq(row.path, "/v1/things");
	ck_assert_int_eq(row.status, 204);
	ck_assert_int_eq(row.bytes_out, 10);
	ck_assert_int_eq(row.bytes_in, 20);
	ck_assert_int_eq(row.duration_ns, 3000);
	ck_assert_int_eq(row.response_ns, 2000);
}
END_TEST

START_TEST(egress_row__of_what_was_refused)
{
	rec.action = NETPOL_RATE_LIMITED;
	rec.status = 429;
	rec.host[0] = rec.rule[0] = '\0';
	strcpy(rec.raw_host, "Odd Host");
	make();
	ck_assert_int_eq(row.action, AUDIT_RATE_LIMITED);
	ck_assert_str_eq(row.reason, AUDIT_REASON_RATE);
	ck_assert_str_eq(row.domain, "Odd Host");
	ck_assert_ptr_null(row.rule);
	ck_assert_int_eq(row.status, 429);
}
END_TEST

/* Nothing of a tunnel's inside is known: no path, which is not the same as an empty one. */
START_TEST(egress_row__of_a_tunnel_has_no_path)
{
	strcpy(rec.method, "CONNECT");
	rec.path[0] = '\0';
	rec.action = NETPOL_ALLOWED;
	make();
	ck_assert_str_eq(row.method, "CONNECT");
	ck_assert_ptr_null(row.path);
}
END_TEST

/* The log takes the metadata as they are: they must be what it would make of them. */
START_TEST(egress_row__has_its_metadata_in_the_log_s_own_form)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(AUDIT_META_MAX);
	struct aqe_json *v = NULL;

	rec.action = NETPOL_ALLOWED;
	rec.dns_us = 7;
	rec.flags = NETPOL_FLAG_ECH | NETPOL_FLAG_WOULD_DENY;
	strcpy(rec.raw_host, "a\"b\\\\x/<>&'~\x7f");
	strcpy(rec.address, "2001:db8::1");
	strcpy(rec.dropped, "127.0.0.1 loopback, ::1 loopback");
	make();
	ck_assert(row.meta_compact);
	ck_assert_ok(aqe_json_parse(arena, row.meta, strlen(row.meta), &AQE_JSON_LIMITS_DEFAULT, &v,
				    &err),
		     err);
	ck_assert_int_eq(v->type, AQE_JSON_OBJECT);
	ck_assert_ok(aqe_json_emit(v, AQE_JSON_COMPACT, &b, &err), err);
	ck_assert_str_eq(row.meta, aqe_buf_str(&b));
}
END_TEST

static const struct {
	const char *reason;
	bool good;
	enum audit_kind kind;
	enum audit_action action;
} EVENTS[] = {
	{ "started", true, AUDIT_SYSTEM, AUDIT_CHANGED },
	{ "worker_hung", false, AUDIT_SYSTEM, AUDIT_REFUSED },
	{ "policy_changed", true, AUDIT_POLICY, AUDIT_CHANGED },
	{ "policy_rejected", false, AUDIT_POLICY, AUDIT_REFUSED },
};

START_TEST(egress_row__of_an_event)
{
	rec.phase = NETPOL_PHASE_EVENT;
	rec.action = EVENTS[_i].good ? NETPOL_ALLOWED : NETPOL_BLOCKED;
	strcpy(rec.reason, EVENTS[_i].reason);
	make();
	ck_assert_int_eq(row.kind, EVENTS[_i].kind);
	ck_assert_int_eq(row.action, EVENTS[_i].action);
	ck_assert_str_eq(row.reason, EVENTS[_i].reason);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("egress_audit");
	TCase *t = tcase_create("row");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, egress_row__of_a_decision);
	tcase_add_test(t, egress_row__of_a_close);
	tcase_add_test(t, egress_row__of_what_was_refused);
	tcase_add_test(t, egress_row__of_a_tunnel_has_no_path);
	tcase_add_test(t, egress_row__has_its_metadata_in_the_log_s_own_form);
	tcase_add_loop_test(t, egress_row__of_an_event, 0, 4);
	suite_add_tcase(s, t);
	return unit_run(s);
}
