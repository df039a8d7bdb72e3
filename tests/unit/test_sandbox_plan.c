/* SPDX-License-Identifier: MIT */
/* Plans against agent types; the original's sandbox assertions by their numbers. */
#include <stdio.h>

#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "shim/sandbox/plan.h"
#include "shim/sandbox/spec.h"
#include "tests/unit/unit.h"

#define M(n) ((uint64_t)(n) << 20)
#define G(n) ((uint64_t)(n) << 30)

static struct shim_plan plan(const char *type)
{
	const struct hard_agent *agent = hard_agent_find(type);
	struct shim_plan p;

	shim_plan_defaults(&p, agent ? agent : hard_agent_default());
	p.agent_id = "agent-1";
	p.agent_type = type;
	p.image = "x";
	return p;
}

static size_t check(const struct shim_plan *p, const char *type, char *text, size_t size)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);
	const struct hard_agent *agent = hard_agent_find(type);
	size_t n = shim_plan_check(p, agent ? agent : hard_agent_default(), &b);

	(void)snprintf(text, size, "%s", aqe_buf_str(&b));
	return n;
}

/* SB-15, SB-16, SB-17, SB-23 (risk high), SB-34 and the rest of the table */
static const struct {
	const char *type;
	uint32_t cpus_milli;
	uint64_t memory, disk;
	const char *network, *risk;
} TYPES[] = {
	{ "qe-test-generator", 2000, G(2), M(512), "whitelisted", "medium" },
	{ "qe-security-scanner", 2000, G(4), G(1), "whitelisted", "high" },
	{ "qe-performance-tester", 4000, G(4), G(1), "whitelisted", "medium" },
	{ "qe-visual-tester", 2000, G(4), G(2), "whitelisted", "medium" },
	{ "qe-flaky-test-hunter", 2000, G(2), M(512), "whitelisted", "low" },
	{ "qe-code-intelligence", 2000, G(2), G(1), "whitelisted", "low" },
	{ "qe-chaos-engineer", 2000, G(2), M(512), "whitelisted", "high" },
	{ "n8n-security-auditor", 2000, G(2), M(512), "whitelisted", "high" },
	{ "n8n-chaos-tester", 2000, G(2), M(512), "whitelisted", "high" },
	{ "qe-production-intelligence", 2000, G(2), M(512), "whitelisted", "medium" },
	{ "qe-integration-tester", 2000, G(2), M(512), "whitelisted", "medium" },
	{ "n8n-workflow-executor", 2000, G(2), M(512), "whitelisted", "medium" },
	{ "qe-coverage-analyzer", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-api-contract-validator", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-quality-analyzer", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-a11y-ally", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-deployment-readiness", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qx-partner", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-test-writer", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-test-implementer", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-test-refactorer", 1000, G(1), M(256), "whitelisted", "low" },
	{ "qe-code-reviewer", 1000, G(1), M(256), "whitelisted", "low" },
	{ "default", 1000, M(512), M(128), "isolated", "low" },
};

START_TEST(defaults__are_the_types_own)
{
	const struct hard_agent *agent = hard_agent_find(TYPES[_i].type);
	struct shim_plan p = plan(TYPES[_i].type);
	char text[1024];

	ck_assert_ptr_nonnull(agent);
	ck_assert_uint_eq(p.cpus_milli, TYPES[_i].cpus_milli);
	ck_assert_uint_eq(p.memory, TYPES[_i].memory);
	ck_assert_uint_eq(p.disk, TYPES[_i].disk);
	ck_assert_str_eq(p.network, TYPES[_i].network);
	ck_assert_str_eq(agent->risk, TYPES[_i].risk);
	ck_assert(!p.writable_root); /* SB-22, SB-33 */
	ck_assert_msg(check(&p, TYPES[_i].type, text, sizeof(text)) == 0, "%s", text);
}
END_TEST

START_TEST(types__twenty_two_and_default)
{
	ck_assert_uint_eq(AQE_COUNT(TYPES), HARD_AGENTS_COUNT); /* SB-18 */
	ck_assert_str_eq(HARD_AGENTS[HARD_AGENTS_COUNT - 1].type, "default");
	ck_assert_ptr_null(hard_agent_find("no-such-type")); /* SB-16: then it is "default" */
	/* SB-17 */
	ck_assert_ptr_nonnull(
		strstr(hard_agent_find("qe-security-scanner")->domains, "nvd.nist.gov"));
}
END_TEST

START_TEST(check__lower_limits_are_valid)
{
	struct shim_plan p = plan("qe-test-generator"); /* SB-19 */
	char text[1024];

	p.cpus_milli = 1000;
	p.memory = G(1);
	ck_assert_uint_eq(check(&p, "qe-test-generator", text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

static void set_cpus(struct shim_plan *p)
{
	p->cpus_milli = 4000;
}
static void set_host(struct shim_plan *p)
{
	p->network = "host";
}
static void set_bridge(struct shim_plan *p)
{
	p->network = "bridge";
}
static void set_memory(struct shim_plan *p)
{
	p->memory = G(1) + 1;
}
static void set_no_memory(struct shim_plan *p)
{
	p->memory = 1024;
}
static void set_disk(struct shim_plan *p)
{
	p->disk = G(1);
}
static void set_pids(struct shim_plan *p)
{
	p->pids = 513;
}
static void set_no_pids(struct shim_plan *p)
{
	p->pids = 0;
}
static void set_writable(struct shim_plan *p)
{
	p->writable_root = true;
}
static void set_root(struct shim_plan *p)
{
	p->user = "0:0";
}
static void set_root_name(struct shim_plan *p)
{
	p->user = "root";
}
static void set_id(struct shim_plan *p)
{
	p->agent_id = "a/b\x1b";
}
static void set_type(struct shim_plan *p)
{
	p->agent_type = "";
}
static void set_engine(struct shim_plan *p)
{
	p->engine = "lxc";
}
static void set_restart(struct shim_plan *p)
{
	p->restart = "sometimes";
}
static void set_oom(struct shim_plan *p)
{
	p->oom = "pray";
}
static void set_workdir(struct shim_plan *p)
{
	p->workdir = "app";
}
static const char *const NO_VALUE[] = { "NAME" };
static const char *const OURS[] = { "AGENT_TYPE=qe-security-scanner" };
static void set_env(struct shim_plan *p)
{
	p->env = (struct shim_strs){ NO_VALUE, 1 };
}
static void set_agent_env(struct shim_plan *p)
{
	p->env = (struct shim_strs){ OURS, 1 };
}

static const struct {
	void (*set)(struct shim_plan *p);
	const char *want;
} BAD[] = {
	/* SB-20 */
	{ set_cpus, "cpus: 4 exceeds the CPU limit 1 of qe-coverage-analyzer\n" },
	/* SB-21 */
	{ set_host, "network: the host network is never allowed\n" },
	{ set_bridge, "network: 'bridge' is neither isolated nor whitelisted\n" },
	{ set_memory, "memory: 1.0 GB exceeds the memory limit 1.0 GB of qe-coverage-analyzer\n" },
	{ set_no_memory, "memory: 1.0 KB is less than 4.0 MB, with which nothing starts\n" },
	{ set_disk, "disk: 1.0 GB exceeds the disk limit 256.0 MB of qe-coverage-analyzer\n" },
	{ set_pids, "pids: 513 is not within 1 to the limit 512 of qe-coverage-analyzer\n" },
	{ set_no_pids, "pids: 0 is not within 1 to the limit 512 of qe-coverage-analyzer\n" },
	{ set_writable, "read-only: a writable root is never allowed\n" },
	{ set_root, "user: root is never allowed\n" },
	{ set_root_name, "user: root is never allowed\n" },
	{ set_id, "id: 'a/b\\x1b' is not 1 to 64 of A-Z a-z 0-9 _ . -\n" },
	{ set_type, "type: '' is not 1 to 64 of A-Z a-z 0-9 _ . -\n" },
	{ set_engine, "engine: 'lxc' is not known\n" },
	{ set_restart, "restart: 'sometimes' is not known\n" },
	{ set_oom, "oom-prevention: 'pray' is not known\n" },
	{ set_workdir, "workdir: 'app' is not an absolute path\n" },
	{ set_env, "env: 'NAME' is not NAME=value\n" },
	{ set_agent_env, "env: AGENT_TYPE is set by the manager\n" },
};

START_TEST(check__names_the_violation)
{
	struct shim_plan p = plan("qe-coverage-analyzer");
	char text[1024];

	BAD[_i].set(&p);
	ck_assert_uint_eq(check(&p, "qe-coverage-analyzer", text, sizeof(text)), 1);
	ck_assert_str_eq(text, BAD[_i].want);
}
END_TEST

START_TEST(check__lists_every_violation)
{
	struct shim_plan p = plan("qe-coverage-analyzer");
	char text[8192];
	size_t lines = 0, n;

	set_cpus(&p);
	set_host(&p);
	set_memory(&p);
	set_writable(&p);
	set_root(&p);
	set_agent_env(&p);
	n = check(&p, "qe-coverage-analyzer", text, sizeof(text));
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	ck_assert_uint_eq(n, 6);
	ck_assert_uint_eq(lines, 6);
}
END_TEST

START_TEST(check__an_isolated_type_stays_isolated)
{
	struct shim_plan p = plan("default");
	char text[1024];

	p.network = "whitelisted";
	ck_assert_uint_eq(check(&p, "default", text, sizeof(text)), 1);
	ck_assert_str_eq(text, "network: default is isolated, it has no egress\n");
	p = plan("qe-test-writer");
	p.network = "isolated";
	ck_assert_uint_eq(check(&p, "qe-test-writer", text, sizeof(text)), 0);
}
END_TEST

START_TEST(name__is_the_originals)
{
	char name[SHIM_SANDBOX_NAME];

	shim_plan_name("qe-test-writer", "0123456789abcdef", 1, name);
	ck_assert_str_eq(name, "agentic-qe-qe-test-writer-01234567");
	shim_plan_name("qe-test-writer", "0123456789abcdef", 12, name);
	ck_assert_str_eq(name, "agentic-qe-qe-test-writer-01234567-12");
	shim_plan_name("default", "a", 1, name);
	ck_assert_str_eq(name, "agentic-qe-default-a");
}
END_TEST

START_TEST(plan__survives_its_document)
{
	static const char *const words[] = { "sh", "-c", "echo \"\\\xc3\xa4\n\"" };
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct shim_plan p = plan("qe-test-writer"), q = { .name = NULL };
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *doc;

	p.args = (struct shim_strs){ words, 3 };
	p.created_s = 1796000000;
	p.remove = true;
	doc = shim_fields_emit(a, SHIM_PLAN_FIELDS, &p);
	ck_assert_ptr_nonnull(doc);
	ck_assert_ok(shim_fields_read(a, SHIM_PLAN_FIELDS, doc, &q, &e), e);
	ck_assert_str_eq(q.agent_type, p.agent_type);
	ck_assert_uint_eq(q.args.n, 3);
	ck_assert_str_eq(q.args.v[2], words[2]);
	ck_assert_uint_eq(q.memory, p.memory);
	ck_assert_int_eq(q.created_s, p.created_s);
	ck_assert(q.remove && q.health == NULL);
	ck_assert_int_eq(aqe_json_set(a, doc, "surplus", aqe_json_new_null(a)), 0);
	ck_assert_fault(shim_fields_read(a, SHIM_PLAN_FIELDS, doc, &q, &e), AQE_E_MALFORMED, e,
			"does not belong");
}
END_TEST

/* ---- the document without an engine ---- */

static const char *const IMG_ENV[] = { "PATH=/bin", "FOO=image", "odd" };
static const char *const IMG_CMD[] = { "serve" };
static const char *const IMG_ENTRY[] = { "/entry", "-x" };
static const char *const OWN_ENV[] = { "FOO=mine", "BAR=1" };
static const char *const OWN_ARGS[] = { "run", "it" };

START_TEST(spec__words_and_environment)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	struct shim_image img = { .env = { IMG_ENV, 3 },
				  .cmd = { IMG_CMD, 1 },
				  .entrypoint = { IMG_ENTRY, 2 } };
	struct shim_plan p = plan("qe-test-writer");
	struct shim_strs got = { NULL, 0 };
	struct aqe_err e = AQE_ERR_INIT;

	ck_assert_ok(shim_spec_args(a, &p, &img, &got, &e), e);
	ck_assert_uint_eq(got.n, 3);
	ck_assert_str_eq(got.v[2], "serve");
	p.args = (struct shim_strs){ OWN_ARGS, 2 };
	ck_assert_ok(shim_spec_args(a, &p, &img, &got, &e), e);
	ck_assert_uint_eq(got.n, 4);
	ck_assert_str_eq(got.v[3], "it");
	p.env = (struct shim_strs){ OWN_ENV, 2 };
	ck_assert_ok(shim_spec_env(a, &p, &img, &got, &e), e);
	ck_assert_uint_eq(got.n, 5);
	ck_assert_str_eq(got.v[0], "PATH=/bin");
	ck_assert_str_eq(got.v[1], "FOO=mine");
	ck_assert_str_eq(got.v[3], "AGENT_ID=agent-1");
	ck_assert_str_eq(got.v[4], "AGENT_TYPE=qe-test-writer");
	memset(&img, 0, sizeof(img));
	p.args.n = 0;
	ck_assert_fault(shim_spec_args(a, &p, &img, &got, &e), AQE_E_USAGE, e, "no command");
}
END_TEST

START_TEST(spec__is_what_the_original_asked_for)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(1 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	struct shim_plan p = plan("default");
	struct shim_strs args = { OWN_ARGS, 2 }, env = { OWN_ENV, 2 };
	struct shim_spec_user user = { 1001, 1002 };
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *doc = NULL;
	uint64_t v = 0;

	p.name = "agentic-qe-default-agent-1";
	p.rootfs = "/srv/root";
	p.cpus_milli = 500;
	ck_assert_ok(shim_spec_make(&p, &args, &env, &user, &b, &e), e);
	ck_assert_ok(aqe_json_parse(a, b.p, b.len, &AQE_JSON_LIMITS_DEFAULT, &doc, &e), e);
	ck_assert(aqe_json_at(doc, "/root/readonly")->boolean);
	ck_assert(aqe_json_at(doc, "/process/noNewPrivileges")->boolean);
	ck_assert(aqe_json_to_u64(aqe_json_at(doc, "/process/user/uid"), UINT64_MAX, &v) &&
		  v == 1001);
	ck_assert(
		aqe_json_to_u64(aqe_json_at(doc, "/linux/resources/memory/limit"), UINT64_MAX, &v));
	ck_assert_uint_eq(v, M(512));
	ck_assert(
		aqe_json_to_u64(aqe_json_at(doc, "/linux/resources/memory/swap"), UINT64_MAX, &v));
	ck_assert_uint_eq(v, M(512)); /* no swap */
	ck_assert(aqe_json_to_u64(aqe_json_at(doc, "/linux/resources/cpu/quota"), UINT64_MAX, &v));
	ck_assert_uint_eq(v, 50000);
	ck_assert_uint_eq(aqe_json_at(doc, "/process/capabilities/bounding")->len, 0);
	ck_assert_str_eq(aqe_json_str(aqe_json_at(doc, "/annotations/io.aqe.agent-type")),
			 "default");
	ck_assert_str_eq(aqe_json_str(aqe_json_at(doc, "/linux/cgroupsPath")),
			 "/aqe-sandbox/agentic-qe-default-agent-1");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox_plan");
	TCase *t = tcase_create("plan");

	tcase_add_loop_test(t, defaults__are_the_types_own, 0, AQE_COUNT(TYPES));
	tcase_add_test(t, types__twenty_two_and_default);
	tcase_add_test(t, check__lower_limits_are_valid);
	tcase_add_loop_test(t, check__names_the_violation, 0, AQE_COUNT(BAD));
	tcase_add_test(t, check__lists_every_violation);
	tcase_add_test(t, check__an_isolated_type_stays_isolated);
	tcase_add_test(t, name__is_the_originals);
	tcase_add_test(t, plan__survives_its_document);
	tcase_add_test(t, spec__words_and_environment);
	tcase_add_test(t, spec__is_what_the_original_asked_for);
	suite_add_tcase(s, t);
	return unit_run(s);
}
