/* SPDX-License-Identifier: MIT */
/* A log in a temporary folder. */
#ifndef AQE_UNIT_AUDIT_FIXTURE_H
#define AQE_UNIT_AUDIT_FIXTURE_H

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/checkpoint.h"
#include "audit/log.h"
#include "audit/query.h"
#include "audit/verify.h"
#include "shim/core/cleanup.h"
#include "tests/unit/fs_fixture.h"

#define POLICY_DIGEST "sha256:00b0f7c89f80f2e7d0fbc23349de2e3644427554abc758ac6d2958e7d3e256fe"

static char log_dir[200];
static struct audit_opts opts;
static struct audit_log *lg;
static struct aqe_err err;

static inline void open_again(enum audit_mode mode)
{
	audit_close(lg);
	lg = NULL;
	opts.mode = mode;
	ck_assert_ok(audit_open(&opts, &lg, &err), err);
}

static inline void setup_log(void)
{
	static const struct aqe_err no_error = AQE_ERR_INIT;

	setup();
	full("audit", log_dir);
	memset(&opts, 0, sizeof(opts));
	opts.dir = log_dir;
	err = no_error;
	open_again(AUDIT_WRITE);
}

static inline void teardown_log(void)
{
	audit_close(lg);
	lg = NULL;
	teardown();
}

static inline struct audit_row add_row(struct audit_row r)
{
	ck_assert_ok(audit_append(lg, &r, &err), err);
	return r;
}

/* A row with every field, different for every `i`. Its texts stay until the next call. */
static inline struct audit_row full_row(unsigned i)
{
	static char text[8][96];
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_ALLOWED);

	(void)snprintf(text[0], sizeof(text[0]), "%016x%048x", i * 7919U, i);
	(void)snprintf(text[1], sizeof(text[1]), "agent-%u", i % 5);
	(void)snprintf(text[2], sizeof(text[2]), "api%u.example.com", i % 7);
	(void)snprintf(text[3], sizeof(text[3]), "/v1/items/%u", i);
	(void)snprintf(text[4], sizeof(text[4]), "{\"n\":%u,\"note\":\"r\\u0007%u\"}", i, i);
	r.container = text[0];
	r.agent_id = text[1];
	r.agent_type = i % 3 ? "qe-test-generator" : "qe-security-scanner";
	r.image = POLICY_DIGEST;
	r.domain = text[2];
	r.port = 443;
	r.method = "GET";
	r.path = text[3];
	r.reason = "ok";
	r.rule = "*.example.com";
	r.status = 200 + i % 5;
	r.response_ns = 1000000 + i;
	r.duration_ns = 2000000 + i;
	r.bytes_in = 4096 + i;
	r.bytes_out = i;
	r.policy = POLICY_DIGEST;
	r.waiver = i % 4 ? NULL : "pids_limit";
	r.meta = text[4];
	return r;
}

static inline void add_rows(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		(void)add_row(full_row(i));
}

static inline uint64_t count_all(void)
{
	struct audit_filter f = AUDIT_FILTER_INIT;
	uint64_t n = 0;

	ck_assert_ok(audit_count(lg, &f, &n, &err), err);
	return n;
}

/* ---- judging ---- */

static uint8_t given_keys[2][32];
static struct audit_verify_opts given = { .keys = (const uint8_t (*)[32])given_keys };

static inline struct audit_verdict judge(void)
{
	struct audit_opts at = opts;
	struct audit_verdict v;

	ck_assert_ok(audit_verify_at(&at, &given, &v, &err), err);
	return v;
}

/* Makes a key and gives it to judge(). */
static inline void make_key(void)
{
	ck_assert_ok(audit_key_make(&opts, &err), err);
	ck_assert_ok(audit_key_public(&opts, given_keys[0], &err), err);
	given.n_keys = 1;
}

#define ck_assert_fault_of(v, want, bad)                                                   \
	ck_assert_msg((v).fault == (want) && (v).first_bad == (bad),                       \
		      "got %s at %lld (%s), want %s at %lld", audit_fault_name((v).fault), \
		      (long long)(v).first_bad, (v).text, audit_fault_name(want),          \
		      (long long)(bad))
#define ck_assert_good(v) ck_assert_fault_of(v, AUDIT_FAULT_NONE, 0)

#endif
