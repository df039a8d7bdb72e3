/* SPDX-License-Identifier: MIT */
/* The formats that users see against tests/golden: one row of each kind, with what each format
 * finds hard. After a wanted change: `make golden`, and read the difference. */
#include "audit/emit.h"
#include "tests/unit/audit_util.h"

#define CONTAINER "3f2a9c1b7d0e4c5a8b9d0e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d"
#define IMAGE     "sha256:00000000000000000000000000000000000000000000000000000000000000aa"
#define POLICY    "sha256:00000000000000000000000000000000000000000000000000000000000000bb"

static struct audit_row row(int64_t i, enum audit_kind k, enum audit_action a)
{
	struct audit_row r = AUDIT_ROW_INIT(k, a);

	r.time_ns = START + i * 60 * S + i;
	r.boot_ns = 1000 + i;
	return r;
}

static struct audit_row in_container(int64_t i, enum audit_kind k, enum audit_action a)
{
	struct audit_row r = row(i, k, a);

	r.container = CONTAINER;
	r.agent_id = "agent-1";
	r.agent_type = "coder";
	r.image = IMAGE;
	r.policy = POLICY;
	return r;
}

static struct audit_row to_network(int64_t i, enum audit_action a, const char *domain)
{
	struct audit_row r = in_container(i, AUDIT_REQUEST, a);

	r.domain = domain;
	r.port = 443;
	r.method = "CONNECT";
	return r;
}

static void fill(void)
{
	struct audit_row rows[] = {
		row(0, AUDIT_POLICY, AUDIT_ALLOWED),
		in_container(1, AUDIT_START, AUDIT_CHANGED),
		in_container(2, AUDIT_EXEC, AUDIT_ALLOWED),
		in_container(3, AUDIT_UPDATE, AUDIT_REFUSED),
		in_container(4, AUDIT_RESTORE, AUDIT_ALLOWED),
		in_container(5, AUDIT_STOP, AUDIT_ALLOWED),
		in_container(6, AUDIT_REFUSAL, AUDIT_REFUSED),
		to_network(7, AUDIT_ALLOWED, "api.example.com"),
		to_network(8, AUDIT_BLOCKED, "169.254.169.254"),
		to_network(9, AUDIT_RATE_LIMITED, "api.example.com"),
		in_container(10, AUDIT_WAIVER, AUDIT_ALLOWED),
		row(11, AUDIT_SYSTEM, AUDIT_REFUSED),
		to_network(12, AUDIT_BLOCKED, "=cmd|' /C calc'!A0"),
		to_network(13, AUDIT_ALLOWED, "2001:db8::1"),
	};

	rows[0].policy = POLICY;
	rows[0].reason = "loaded";
	rows[0].meta = "{\"files\":[\"/etc/aqe-shim/policy.json\"],\"n\":1}";
	rows[1].duration_ns = 41 * S / 1000;
	rows[3].reason = "memory limit over the ceiling";
	rows[5].status = 137;
	rows[6].rule = "engine_socket";
	rows[6].reason = "/run/docker.sock is mounted";
	rows[7].method = "GET";
	rows[7].path = "/v1/messages";
	rows[7].rule = "*.example.com";
	rows[7].status = 200;
	rows[7].response_ns = 123456789;
	rows[7].duration_ns = 200000001;
	rows[7].bytes_in = 4096;
	rows[7].bytes_out = 512;
	rows[8].reason = "address_not_public";
	rows[9].reason = AUDIT_REASON_RATE;
	rows[10].waiver = "docs-team";
	rows[10].rule = "readonly_rootfs";
	rows[11].reason = AUDIT_REASON_GAP;
	rows[11].meta = "{\"lost\":3,\"why\":\"disk full\"}";
	rows[12].agent_id = "+1,\"quoted\"\nnext <b>&\x1b[31m\xe2\x80\xaered";
	rows[12].reason = "@SUM(1+1)";
	rows[13].method = "SOCKS5";
	log_add(rows, AQE_COUNT(rows));
}

static const struct {
	const char *golden;
	const char *words[8];
} FORMATS[] = {
	{ "audit-list.txt", { "list" } },
	{ "audit-list.json", { "list", "--format", "json" } },
	{ "audit-list.jsonl", { "list", "--format", "jsonl" } },
	{ "audit-stats.txt", { "stats", "--since", "2026-02-01", "--until", "2026-02-01" } },
	{ "audit-stats.json",
	  { "stats", "--since", "2026-02-01", "--until", "2026-02-01", "--format", "json" } },
	{ "audit-export.jsonl", { "export" } },
	{ "audit-export.json", { "export", "--format", "json" } },
	{ "audit-export.csv", { "export", "--format", "csv" } },
	{ "audit-export.ocsf.jsonl", { "export", "--format", "ocsf" } },
	{ "audit-verify.txt", { "verify" } },
	{ "audit-verify.json", { "verify", "--format", "json" } },
};

START_TEST(audit__formats_are_golden)
{
	fill();
	ck_assert_int_eq(audit_run(FORMATS[_i].words), SHIM_EXIT_OK);
	check_golden(FORMATS[_i].golden);
}
END_TEST

/* No cell of the CSV begins as a formula would, and quoting hides commas, quotes and newlines. */
START_TEST(export__csv_is_no_formula)
{
	fill();
	ck_assert_int_eq(AUDIT("export", "--format", "csv"), SHIM_EXIT_OK);
	ck_assert_ptr_nonnull(strstr(out.p, ",\"'=cmd|' /C calc'!A0\","));
	ck_assert_ptr_nonnull(strstr(out.p, ",\"'@SUM(1+1)\","));
	ck_assert_ptr_nonnull(strstr(out.p, ",\"'+1,\"\"quoted\"\"\nnext <b>&"));
	for (const char *p = out.p; (p = strpbrk(p, ",\n")) && *++p;)
		ck_assert_msg(!strchr("=+-@\t\r", p[*p == '"']), "%.40s", p);
}
END_TEST

/* Foreign text cannot steer the terminal or break out of its line. */
START_TEST(list__escapes)
{
	fill();
	ck_assert_int_eq(AUDIT("list"), SHIM_EXIT_OK);
	for (const char *p = out.p; *p; p++)
		ck_assert(*p == '\n' || (unsigned char)*p >= ' ');
	ck_assert_ptr_null(strstr(out.p, "\xe2\x80\xae"));
	ck_assert_ptr_nonnull(strstr(out.p, "\\x0anext <b>&\\x1b[31m\\u{202e}red"));
}
END_TEST

/* ---- OCSF 1.8.0 ---- */

static struct aqe_json *event(size_t i)
{
	struct aqe_json *v = NULL;
	const char *p = out.p;

	for (; i; i--)
		p = strchr(p, '\n') + 1;
	ck_assert_ok(aqe_json_parse(arena, p, strcspn(p, "\n"), &AQE_JSON_LIMITS_DEFAULT, &v, &err),
		     err);
	return v;
}

static const struct {
	size_t row;
	const char *pointer, *want; /* want NULL: absent */
} OCSF[] = {
	{ 0, "/class_uid", "6002" },
	{ 0, "/type_uid", "600208" },
	{ 0, "/metadata/version", "1.8.0" },
	{ 0, "/app/name", "aqe-shim" },
	{ 1, "/type_uid", "600203" },
	{ 1, "/action_id", "4" },
	{ 1, "/duration", "41" },
	{ 1, "/app/uid", CONTAINER },
	{ 2, "/type_uid", "600299" },
	{ 3, "/status_id", "2" },
	{ 4, "/type_uid", "600205" },
	{ 5, "/type_uid", "600204" },
	{ 5, "/status_code", "137" },
	{ 6, "/class_uid", "2003" },
	{ 6, "/type_uid", "200301" },
	{ 6, "/compliance/control", "engine_socket" },
	{ 6, "/compliance/status_id", "3" },
	{ 6, "/finding_info/uid", "aqe-audit-7" },
	{ 6, "/finding_info/title", "engine_socket" },
	{ 6, "/resources/0/uid", CONTAINER },
	{ 6, "/action_id", "2" },
	{ 6, "/disposition_id", "2" },
	{ 7, "/class_uid", "4002" },
	{ 7, "/type_uid", "400203" },
	{ 7, "/time", "1769904420000" },
	{ 7, "/dst_endpoint/hostname", "api.example.com" },
	{ 7, "/dst_endpoint/port", "443" },
	{ 7, "/src_endpoint/container/image/uid", IMAGE },
	{ 7, "/http_request/http_method", "GET" },
	{ 7, "/http_request/url/path", "/v1/messages" },
	{ 7, "/http_response/code", "200" },
	{ 7, "/http_response/latency", "123" },
	{ 7, "/traffic/bytes_in", "4096" },
	{ 7, "/traffic/bytes_out", "512" },
	{ 7, "/firewall_rule/name", "*.example.com" },
	{ 7, "/severity_id", "1" },
	{ 7, "/action_id", "1" },
	{ 7, "/unmapped/agent_type", "coder" },
	{ 8, "/type_uid", "400201" },
	{ 8, "/dst_endpoint/ip", "169.254.169.254" },
	{ 8, "/dst_endpoint/hostname", NULL },
	{ 8, "/status_detail", "address_not_public" },
	{ 8, "/severity_id", "3" },
	{ 9, "/disposition_id", "25" },
	{ 9, "/severity_id", "2" },
	{ 10, "/unmapped/waiver", "docs-team" },
	{ 11, "/severity_id", "4" },
	{ 11, "/unmapped/meta/lost", "3" },
	{ 13, "/class_uid", "4001" },
	{ 13, "/type_uid", "400101" },
	{ 13, "/dst_endpoint/ip", "2001:db8::1" },
	{ 13, "/unmapped/method", "SOCKS5" },
};

START_TEST(ocsf__maps)
{
	struct aqe_json *v;

	fill();
	ck_assert_int_eq(AUDIT("export", "--format", "ocsf"), SHIM_EXIT_OK);
	v = aqe_json_at(event(OCSF[_i].row), OCSF[_i].pointer);
	if (!OCSF[_i].want) {
		ck_assert_ptr_null(v);
		return;
	}
	ck_assert_msg(v != NULL, "%s is absent", OCSF[_i].pointer);
	ck_assert_str_eq(v->text, OCSF[_i].want);
}
END_TEST

/* What the schema requires of every event and of each class. */
START_TEST(ocsf__has_what_is_required)
{
	static const char *const base[] = {
		"/activity_id", "/category_uid", "/class_uid",        "/type_uid",
		"/time",        "/severity_id",  "/metadata/version", "/metadata/product/name"
	};
	static const struct {
		const char *class, *pointer;
	} own[] = {
		{ "2003", "/finding_info/uid" }, { "2003", "/compliance" },
		{ "4001", "/dst_endpoint" },     { "4002", "/http_request" },
		{ "6002", "/app/name" },
	};

	fill();
	ck_assert_int_eq(AUDIT("export", "--format", "ocsf"), SHIM_EXIT_OK);
	for (size_t i = 0; i < 14; i++) {
		const struct aqe_json *v = event(i);

		for (size_t k = 0; k < AQE_COUNT(base); k++)
			ck_assert_msg(aqe_json_at(v, base[k]), "%zu %s", i, base[k]);
		for (size_t k = 0; k < AQE_COUNT(own); k++) {
			if (aqe_str_eq(aqe_json_get(v, "class_uid")->text, own[k].class))
				ck_assert_msg(aqe_json_at(v, own[k].pointer), "%zu %s", i,
					      own[k].pointer);
		}
	}
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("shim/audit_formats");
	TCase *t = tcase_create("formats");

	tcase_add_checked_fixture(t, cmd_setup, cmd_teardown);
	tcase_add_loop_test(t, audit__formats_are_golden, 0, (int)AQE_COUNT(FORMATS));
	tcase_add_test(t, export__csv_is_no_formula);
	tcase_add_test(t, list__escapes);
	tcase_add_loop_test(t, ocsf__maps, 0, (int)AQE_COUNT(OCSF));
	tcase_add_test(t, ocsf__has_what_is_required);
	suite_add_tcase(s, t);
	return s;
}

int main(void)
{
	return unit_run_with_openat2(suite());
}
