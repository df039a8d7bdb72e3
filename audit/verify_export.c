/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "audit/chain.h"
#include "audit/check.h"
#include "audit/emit.h"
#include "audit/export.h"
#include "audit/lines.h"
#include "audit/sign.h"
#include "audit/store.h"
#include "audit/verify.h"
#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"

/* An export under judgement. */
struct in {
	struct audit_check *c;
	struct audit_export_header h;
	bool has_header, has_trailer;
	struct aqe_sha256_ctx sha; /* of the lines before the present one */
	uint64_t rows, points;
};

/* Functions below return AQE_OK or AQE_E_NOMEM; faults are in the verdict. */

static int bad_line(struct in *in, const struct aqe_err *why, uint64_t line)
{
	(void)audit_check_fault(in->c, AUDIT_FAULT_EXPORT, in->c->last + 1, "line %llu: %s",
				(unsigned long long)line, why->text);
	return why->code == AQE_E_NOMEM ? AQE_E_NOMEM : AQE_OK;
}

static int take_header(struct in *in, const struct aqe_json *v, uint64_t line)
{
	struct aqe_err e = AQE_ERR_INIT;
	uint8_t genesis[32];

	if (audit_header_parse(v, &in->h, &e) != 0)
		return bad_line(in, &e, line);
	in->has_header = true;
	in->c->loose = !in->h.complete;
	in->c->pruned = in->h.after_seq > 0;
	if (in->h.after_seq == 0) {
		audit_genesis(&in->h.id, genesis);
		if (memcmp(genesis, in->h.after_hash, 32) != 0) {
			(void)audit_check_fault(
				in->c, AUDIT_FAULT_START, 1,
				"the chain does not begin with this log's identity");
			return AQE_OK;
		}
	}
	(void)audit_check_begin(in->c, &in->h.id, in->h.after_seq, in->h.after_hash);
	return AQE_OK;
}

static int take_point(struct in *in, const struct aqe_json *v, uint64_t line)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct audit_point p;

	if (audit_point_parse_json(v, &p, &e) != 0)
		return bad_line(in, &e, line);
	in->points++;
	(void)audit_check_point(in->c, &p);
	return AQE_OK;
}

static int take_row(struct in *in, struct aqe_arena *a, const struct aqe_json *v, uint64_t line)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct audit_row r;
	uint8_t prev[32];
	uint64_t lost = 0;
	bool has_prev;

	if (audit_row_parse(a, v, &r, prev, &has_prev, &e) != 0)
		return bad_line(in, &e, line);
	in->rows++;
	if (!audit_check_seq(in->c, r.seq, has_prev ? prev : NULL))
		return AQE_OK;
	audit_enc_row(&in->c->enc, &r);
	if (r.kind == AUDIT_SYSTEM && r.reason && strcmp(r.reason, AUDIT_REASON_GAP) == 0) {
		if (audit_gap_lost(r.meta, r.meta ? strlen(r.meta) : 0, &lost, NULL) != 0)
			return AQE_E_NOMEM;
		audit_check_gap(in->c, lost);
	}
	(void)audit_check_row(in->c, r.seq, r.hash);
	return AQE_OK;
}

static bool is_given_key(const struct audit_check *c, const uint8_t key[32])
{
	for (size_t i = 0; i < c->o->n_keys; i++) {
		if (memcmp(c->o->keys[i], key, 32) == 0)
			return true;
	}
	return false;
}

static void judge_signature(struct in *in, const struct audit_export_trailer *t)
{
	struct audit_check *c = in->c;
	uint8_t data[AUDIT_EXPORT_SIGNED];

	if (!t->is_signed)
		return;
	audit_trailer_signed(t, data);
	if (!audit_sign_check(t->key, data, sizeof(data), t->sig))
		(void)audit_check_fault(c, AUDIT_FAULT_SIGNATURE, c->v->signed_to + 1,
					"the signature of the export is wrong");
	else if (c->o->n_keys > 0 && !is_given_key(c, t->key))
		(void)audit_check_fault(c, AUDIT_FAULT_SIGNATURE, c->v->signed_to + 1,
					"the export is signed with a key that is not given");
	else
		c->v->signed_to = c->last;
}

static int take_trailer(struct in *in, const struct aqe_json *v, uint64_t line)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct audit_export_trailer t;
	struct aqe_sha256_ctx sha = in->sha;
	uint8_t own[32];

	if (audit_trailer_parse(v, &t, &e) != 0)
		return bad_line(in, &e, line);
	in->has_trailer = true;
	aqe_sha256_end(&sha, own);
	if (t.rows != in->rows || t.points != in->points || in->h.rows != in->rows)
		(void)audit_check_fault(
			in->c, AUDIT_FAULT_EXPORT, in->c->last + 1,
			"the trailer counts %llu rows and %llu checkpoints, there are "
			"%llu and %llu",
			(unsigned long long)t.rows, (unsigned long long)t.points,
			(unsigned long long)in->rows, (unsigned long long)in->points);
	else if (memcmp(own, t.sha256, 32) != 0)
		(void)audit_check_fault(in->c, AUDIT_FAULT_EXPORT, 0,
					"the trailer's digest is not that of the lines before it");
	else if (in->h.head_seq == in->c->last && memcmp(in->h.head_hash, in->c->prev, 32) != 0)
		(void)audit_check_fault(in->c, AUDIT_FAULT_EXPORT, in->c->last,
					"the header's head is not the last row");
	else
		judge_signature(in, &t);
	return AQE_OK;
}

static int take_line(struct in *in, const struct audit_line *l, struct aqe_arena *a)
{
	struct aqe_err e = AQE_ERR_INIT;
	struct aqe_json *v = NULL;

	if (in->has_trailer) {
		(void)audit_check_fault(in->c, AUDIT_FAULT_EXPORT, 0,
					"line %llu: after the trailer",
					(unsigned long long)l->number);
		return AQE_OK;
	}
	if (aqe_json_parse(a, l->p, l->n, &AQE_JSON_LIMITS_DEFAULT, &v, &e) != 0)
		return bad_line(in, &e, l->number);
	if (!in->has_header)
		return take_header(in, v, l->number);
	if (aqe_json_get(v, "aqe_audit_trailer"))
		return take_trailer(in, v, l->number);
	if (v->type == AQE_JSON_OBJECT && v->len == 1 && aqe_json_get(v, "point"))
		return take_point(in, aqe_json_get(v, "point"), l->number);
	return take_row(in, a, v, l->number);
}

static int take_lines(struct in *in, struct audit_lines *lines, struct aqe_err *e)
{
	struct audit_line l;
	int rc;

	while ((rc = audit_lines_next(lines, &l, e)) == 1 && !in->c->v->fault) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(AUDIT_LINE_ARENA);

		rc = a ? take_line(in, &l, a) : AQE_E_NOMEM;
		if (rc)
			return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
		aqe_sha256_add(&in->sha, l.p, l.n);
		aqe_sha256_add(&in->sha, "\n", 1);
	}
	if (rc == AQE_E_MALFORMED || rc == AQE_E_LIMIT) {
		(void)audit_check_fault(in->c, AUDIT_FAULT_EXPORT, in->c->last + 1, "line %llu: %s",
					(unsigned long long)lines->number, e->text);
		return AQE_OK;
	}
	return rc < 0 ? rc : AQE_OK;
}

int audit_verify_export(int fd, const struct audit_verify_opts *o, struct audit_verdict *ret,
			struct aqe_err *e)
{
	struct audit_lines lines = AUDIT_LINES_INIT(fd);
	struct aqe_err own = AQE_ERR_INIT;
	struct in in = { 0 };
	int rc = audit_check_new(o, ret, &in.c, &own);

	if (rc == 0) {
		aqe_sha256_init(&in.sha);
		rc = take_lines(&in, &lines, &own);
	}
	if (rc == 0 && !in.has_trailer)
		(void)audit_check_fault(in.c, AUDIT_FAULT_EXPORT, in.c->last + 1,
					in.has_header ? "there is no trailer: the export was cut"
						      : "not an export of an audit log");
	if (rc == 0)
		(void)audit_check_end(in.c);
	audit_check_free(in.c);
	audit_lines_done(&lines);
	if (rc && e)
		*e = own;
	return rc;
}
