/* SPDX-License-Identifier: MIT */
#include "tests/unit/effect_fixture.h"

#include "hardening/effect_int.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

struct world {
	struct aqe_arena *arena;
	struct aqe_buf spec;
	struct hard_host host;
	struct hard_ctx ctx;
	struct hard_effect fx;
	struct hard_fx_process p;
	struct hard_report report;
	struct aqe_err e;
};

static void set_map(struct hard_idmap *map, size_t *n, const char *text)
{
	ck_assert_int_eq(hard_fx_idmap_parse(text, map, HARD_IDMAP_MAX, n, NULL), 0);
}

/* Everything right: the corpus' spec, a user namespace with 0 100000 65536, uid and gid 1000. */
static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);

	ck_assert_ptr_nonnull(w);
	w->arena = aqe_arena_new(4 << 20);
	w->spec.max = 1 << 20;
	fixture_read(&w->spec, "tests/corpus/spec/ok-base.json");
	hard_report_init(&w->report, w->arena);
	set_map(w->host.uid_map, &w->host.n_uid, "0 0 4294967295\n");
	set_map(w->host.gid_map, &w->host.n_gid, "0 0 4294967295\n");
	set_map(w->p.uid_map, &w->p.n_uid, "0 100000 65536\n");
	set_map(w->p.gid_map, &w->p.n_gid, "0 100000 65536\n");
	fixture_read(&b, FIXTURES "crun-userns/status");
	ck_assert_int_eq(hard_fx_status_parse(b.p, &w->p.status, NULL), 0);
	w->ctx.host = &w->host;
	w->fx.ctx = &w->ctx;
	w->p.fx = &w->fx;
	w->p.where = "/proc/7/status";
	return w;
}

static int judge(struct world *w)
{
	w->fx.spec = fixture_json(w->arena, &w->spec);
	return hard_fx_ids_judge(&w->p, w->arena, &w->report, &w->e);
}

static void world_free(struct world *w)
{
	aqe_buf_done(&w->spec);
	aqe_arena_free(w->arena);
	free(w);
}

static void expect(const struct world *w, enum hard_prop prop, const char *found)
{
	ck_assert_msg(w->report.result[prop] == HARD_FAIL, "%s: %s", HARDENING_PROFILE[prop].id,
		      fixture_findings(&w->report));
	ck_assert_msg(fixture_finding(&w->report, prop, found) != NULL, "%s",
		      fixture_findings(&w->report));
}

START_TEST(ids_judge__passes_user_namespace)
{
	struct world *w = world_new();

	ck_assert_int_eq(judge(w), 0);
	ck_assert_msg(w->report.n_findings == 0, "%s", fixture_findings(&w->report));
	ck_assert_int_eq(w->report.result[HARD_USER], HARD_PASS);
	ck_assert_int_eq(w->report.result[HARD_ROOTLESS], HARD_PASS);
	world_free(w);
}
END_TEST

/* The kernel sorts maps of more than five ranges, and a spec may split what is one mapping. */
START_TEST(ids_judge__maps_are_compared_as_mappings)
{
	struct world *w = world_new();

	set_map(w->p.uid_map, &w->p.n_uid, "30000 130000 35536\n0 100000 30000\n");
	ck_assert_int_eq(judge(w), 0);
	ck_assert_msg(w->report.n_findings == 0, "%s", fixture_findings(&w->report));
	world_free(w);
}
END_TEST

/* Takes the user namespace out of the spec, whatever its white space. */
static void drop_userns(struct world *w)
{
	char *at = strstr(w->spec.p, "\"user\"\n");

	if (!at)
		at = strstr(strstr(w->spec.p, "\"namespaces\""), "\"user\"");
	ck_assert_ptr_nonnull(at);
	memcpy(at, "\"uxxr\"", 6);
}

START_TEST(ids_judge__rootless_engine_without_user_namespace_in_spec)
{
	struct world *w = world_new();
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);

	drop_userns(w);
	w->host.in_userns = true;
	set_map(w->host.uid_map, &w->host.n_uid, "0 1001 1\n1 100000 65536\n");
	set_map(w->host.gid_map, &w->host.n_gid, "0 1001 1\n1 100000 65536\n");
	fixture_read(&b, FIXTURES "crun-rootless/uid_map");
	set_map(w->p.uid_map, &w->p.n_uid, b.p);
	set_map(w->p.gid_map, &w->p.n_gid, b.p);
	fixture_read(&b, FIXTURES "crun-rootless/status");
	ck_assert_int_eq(hard_fx_status_parse(b.p, &w->p.status, NULL), 0);
	ck_assert_int_eq(judge(w), 0);
	ck_assert_msg(w->report.n_findings == 0, "%s", fixture_findings(&w->report));
	world_free(w);
}
END_TEST

START_TEST(ids_judge__rootful_without_user_namespace)
{
	struct world *w = world_new();
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(65536);

	drop_userns(w);
	set_map(w->p.uid_map, &w->p.n_uid, "0 0 4294967295\n");
	set_map(w->p.gid_map, &w->p.n_gid, "0 0 4294967295\n");
	fixture_read(&b, FIXTURES "crun-nouserns/status");
	ck_assert_int_eq(hard_fx_status_parse(b.p, &w->p.status, NULL), 0);
	ck_assert_int_eq(judge(w), 0);
	expect(w, HARD_ROOTLESS, "no user namespace: uid 1000");
	ck_assert_int_eq(w->report.result[HARD_USER], HARD_PASS);
	ck_assert_uint_eq(w->report.n_findings, 1);
	world_free(w);
}
END_TEST

/* One thing wrong. */
enum what {
	UID_REAL,
	UID_SAVED,
	GID_FS,
	GROUP,
	UMASK,
	NO_UMASK,
	UID_MAP,
	GID_MAP,
	GID_MAP_SIZE,
	NSPID,
	NSPID_DEPTH,
	WHAT_COUNT,
};

static const struct {
	enum hard_prop prop;
	const char *found;
} wrong[WHAT_COUNT] = {
	[UID_REAL] = { HARD_USER, "Uid: 0 101000 101000 101000, wanted 101000" },
	[UID_SAVED] = { HARD_USER, "Uid: 101000 101000 100000 101000" },
	[GID_FS] = { HARD_USER, "Gid: 101000 101000 101000 0" },
	[GROUP] = { HARD_USER, "supplementary group 100000" },
	[UMASK] = { HARD_USER, "umask 0002" },
	[NO_UMASK] = { HARD_USER, "umask" },
	[UID_MAP] = { HARD_ROOTLESS, "uid_map differs" },
	[GID_MAP] = { HARD_ROOTLESS, "gid_map differs" },
	[GID_MAP_SIZE] = { HARD_ROOTLESS, "gid_map differs" },
	[NSPID] = { HARD_NAMESPACES, "pid 2" },
	[NSPID_DEPTH] = { HARD_NAMESPACES, "pid 1" },
};

static void spoil(struct hard_fx_process *p, enum what what)
{
	switch (what) {
	case UID_REAL:
		p->status.uid[0] = 0;
		break;
	case UID_SAVED:
		p->status.uid[2] = 100000;
		break;
	case GID_FS:
		p->status.gid[3] = 0;
		break;
	case GROUP:
		p->status.groups[p->status.n_groups++] = 100000;
		break;
	case UMASK:
		p->status.umask = 002;
		break;
	case NO_UMASK:
		p->status.has_umask = false;
		break;
	case UID_MAP:
		set_map(p->uid_map, &p->n_uid, "0 0 4294967295\n");
		break;
	case GID_MAP:
		set_map(p->gid_map, &p->n_gid, "0 100001 65536\n");
		break;
	case GID_MAP_SIZE:
		set_map(p->gid_map, &p->n_gid, "0 100000 65537\n");
		break;
	case NSPID:
		p->status.nspid_last = 2;
		break;
	case NSPID_DEPTH:
		p->status.n_nspid = 1;
		break;
	case WHAT_COUNT:
		break;
	}
}

START_TEST(ids_judge__one_wrong)
{
	struct world *w = world_new();

	spoil(&w->p, (enum what)_i);
	ck_assert_int_eq(judge(w), 0);
	expect(w, wrong[_i].prop, wrong[_i].found);
	world_free(w);
}
END_TEST

/* Rootless: the id is not 0 anywhere we can see, but the last mapping leads to the host's root. */
START_TEST(ids_judge__root_of_the_host)
{
	struct world *w = world_new();

	w->host.in_userns = true;
	set_map(w->host.uid_map, &w->host.n_uid, "0 200000 65536\n101000 0 1\n");
	set_map(w->host.gid_map, &w->host.n_gid, "0 200000 65536\n101000 5 1\n");
	ck_assert_int_eq(judge(w), 0);
	expect(w, HARD_USER, "Uid 1000 is 0 on the host");
	ck_assert_uint_eq(w->report.n_findings, 1);
	world_free(w);
}
END_TEST

START_TEST(ids_judge__unmapped)
{
	struct world *w = world_new();

	set_map(w->p.uid_map, &w->p.n_uid, "0 100000 1000\n");
	ck_assert_int_eq(judge(w), 0);
	expect(w, HARD_USER, "Uid 1000 is not mapped");
	world_free(w);
}
END_TEST

START_TEST(privileges_judge__each_set)
{
	struct world *w = world_new();

	w->p.status.caps[_i] = 1ULL << 21;
	hard_fx_privileges_judge(&w->p.status, "/proc/7/status", &w->report);
	expect(w, HARD_CAPABILITIES, HARD_FX_CAP_LABEL[_i]);
	expect(w, HARD_CAPABILITIES, "0000000000200000");
	ck_assert_int_eq(w->report.result[HARD_NO_NEW_PRIVILEGES], HARD_PASS);
	world_free(w);
}
END_TEST

START_TEST(privileges_judge__no_new_privs)
{
	struct world *w = world_new();

	w->p.status.no_new_privs = 0;
	hard_fx_privileges_judge(&w->p.status, "/proc/7/status", &w->report);
	expect(w, HARD_NO_NEW_PRIVILEGES, "NoNewPrivs 0");
	ck_assert_int_eq(w->report.result[HARD_CAPABILITIES], HARD_PASS);
	world_free(w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hardening/effect_process");
	TCase *t = tcase_create("process");
	SRunner *sr = srunner_create(s);
	int failed;

	tcase_add_test(t, ids_judge__passes_user_namespace);
	tcase_add_test(t, ids_judge__maps_are_compared_as_mappings);
	tcase_add_test(t, ids_judge__rootless_engine_without_user_namespace_in_spec);
	tcase_add_test(t, ids_judge__rootful_without_user_namespace);
	tcase_add_loop_test(t, ids_judge__one_wrong, 0, WHAT_COUNT);
	tcase_add_test(t, ids_judge__root_of_the_host);
	tcase_add_test(t, ids_judge__unmapped);
	tcase_add_loop_test(t, privileges_judge__each_set, 0, HARD_FX_CAP_SETS);
	tcase_add_test(t, privileges_judge__no_new_privs);
	suite_add_tcase(s, t);
	srunner_run_all(sr, CK_NORMAL);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
