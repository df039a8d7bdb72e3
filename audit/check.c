/* SPDX-License-Identifier: MIT */
#include "audit/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/sha256.h"
#include "shim/core/text.h"

static const char *const FAULTS[AUDIT_FAULT_COUNT] = {
	[AUDIT_FAULT_NONE] = "none",         [AUDIT_FAULT_SCHEMA] = "schema",
	[AUDIT_FAULT_TYPE] = "type",         [AUDIT_FAULT_SEQ] = "sequence",
	[AUDIT_FAULT_HASH] = "hash",         [AUDIT_FAULT_START] = "start",
	[AUDIT_FAULT_POINT] = "checkpoint",  [AUDIT_FAULT_SIGNATURE] = "signature",
	[AUDIT_FAULT_UNSIGNED] = "unsigned", [AUDIT_FAULT_ANCHOR] = "anchor",
	[AUDIT_FAULT_CUT] = "cut",           [AUDIT_FAULT_OTHER_LOG] = "other_log",
	[AUDIT_FAULT_EXPORT] = "export",     [AUDIT_FAULT_CORRUPT] = "corrupt",
};

static const struct {
	unsigned bit;
	const char *text;
} OPEN[AUDIT_OPEN_COUNT] = {
	{ AUDIT_OPEN_NO_KEY,
	  "no public key was given: signatures were not judged, the log may have been rewritten" },
	{ AUDIT_OPEN_NO_ANCHOR,
	  "no anchor was given: rows may have been cut off the end, or the log "
	  "put back to an older state" },
	{ AUDIT_OPEN_UNSIGNED_TAIL,
	  "the rows after the last signed checkpoint are chained, but not yet signed" },
	{ AUDIT_OPEN_UNANCHORED_TAIL,
	  "the rows after the last anchor may have been rewritten by who "
	  "holds the signing key" },
	{ AUDIT_OPEN_PRUNED,
	  "older rows are not there (pruned, or not exported): only the hash of the "
	  "last one is known" },
	{ AUDIT_OPEN_NEVER_SIGNED,
	  "the log was never signed: who can write to it could rewrite it whole" },
	{ AUDIT_OPEN_FILTERED,
	  "the export leaves rows out: each row is what it was, but not that none "
	  "is missing" },
	{ AUDIT_OPEN_ANCHOR_PRUNED,
	  "an anchor names a row that prune has removed: it was not compared" },
	{ AUDIT_OPEN_GAPS, "gap records: decisions were refused because they could not be stored" },
	{ AUDIT_OPEN_INDEXES,
	  "the indexes were not compared with the rows: a listing might hide rows" },
};

const char *audit_fault_name(enum audit_fault f)
{
	return (unsigned)f < AUDIT_FAULT_COUNT ? FAULTS[f] : "?";
}

const char *audit_open_text(unsigned bit)
{
	for (unsigned i = 0; i < AUDIT_OPEN_COUNT; i++) {
		if (bit == OPEN[i].bit)
			return OPEN[i].text;
	}
	return NULL;
}

/* ---- making ---- */

static int by_seq(const void *a, const void *b)
{
	const struct audit_point *x = a, *y = b;

	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

int audit_check_new(const struct audit_verify_opts *o, struct audit_verdict *v,
		    struct audit_check **ret, struct aqe_err *e)
{
	static const struct audit_verify_opts NOTHING = { 0 };
	struct audit_check *c = calloc(1, sizeof(*c));

	memset(v, 0, sizeof(*v));
	if (!c)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	c->o = o ? o : &NOTHING;
	c->v = v;
	c->point_seq = -1;
	c->n_anchors = c->o->n_anchors;
	c->anchors = calloc(c->n_anchors ? c->n_anchors : 1, sizeof(c->anchors[0]));
	if (!c->anchors) {
		audit_check_free(c);
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	}
	if (c->n_anchors > 0) {
		memcpy(c->anchors, c->o->anchors, c->n_anchors * sizeof(c->anchors[0]));
		qsort(c->anchors, c->n_anchors, sizeof(c->anchors[0]), by_seq);
	}
	*ret = c;
	return AQE_OK;
}

void audit_check_free(struct audit_check *c)
{
	if (!c)
		return;
	free(c->anchors);
	free(c);
}

bool audit_check_fault(struct audit_check *c, enum audit_fault f, int64_t first_bad,
		       const char *fmt, ...)
{
	va_list ap;

	if (c->v->fault != AUDIT_FAULT_NONE)
		return false;
	c->v->fault = f;
	c->v->first_bad = first_bad;
	va_start(ap, fmt);
	(void)vsnprintf(c->v->text, sizeof(c->v->text), fmt, ap);
	va_end(ap);
	return false;
}

/* ---- keys ---- */

static bool is_trusted(const struct audit_check *c, const uint8_t key[32])
{
	for (size_t i = 0; i < c->o->n_keys; i++) {
		if (memcmp(c->o->keys[i], key, 32) == 0)
			return true;
	}
	return false;
}

/* A signature that does not hold is a fault even if nobody told which key to trust. */
static bool check_signature(struct audit_check *c, const struct audit_point *p, const char *what)
{
	if (!audit_point_verify(p))
		return audit_check_fault(c, AUDIT_FAULT_SIGNATURE, c->v->signed_to + 1,
					 "the signature of the %s of row %lld is wrong", what,
					 (long long)p->seq);
	if (c->o->n_keys > 0 && !is_trusted(c, p->key))
		return audit_check_fault(
			c, AUDIT_FAULT_SIGNATURE, c->v->signed_to + 1,
			"the %s of row %lld is signed with a key that is not given", what,
			(long long)p->seq);
	return true;
}

/* ---- anchors ---- */

/* Judges all anchors up to the row we are at. */
static bool pass_anchors(struct audit_check *c, bool at_start)
{
	while (c->next_anchor < c->n_anchors && c->anchors[c->next_anchor].seq <= c->last) {
		const struct audit_point *p = &c->anchors[c->next_anchor++];

		c->v->anchors++;
		if (p->seq < c->last) {
			/* before the start, or between the rows of a filtered export */
			c->v->open |= at_start ? AUDIT_OPEN_ANCHOR_PRUNED : AUDIT_OPEN_FILTERED;
			continue;
		}
		if (memcmp(p->hash, c->prev, 32) != 0)
			return audit_check_fault(
				c, AUDIT_FAULT_ANCHOR, c->v->anchored_to + 1,
				"the anchor of row %lld has another hash: it or a row "
				"before it, after row %lld, was rewritten",
				(long long)p->seq, (long long)c->v->anchored_to);
		c->v->anchored_to = p->seq;
	}
	return true;
}

static bool check_anchor_texts(struct audit_check *c, const struct audit_id *id)
{
	for (size_t i = 0; i < c->n_anchors; i++) {
		const struct audit_point *p = &c->anchors[i];

		if (memcmp(p->chain, id->chain, 32) != 0)
			return audit_check_fault(
				c, AUDIT_FAULT_OTHER_LOG, 0,
				"the anchor of row %lld is of another log, or this "
				"log was replaced by a new one",
				(long long)p->seq);
		if (p->is_signed && !check_signature(c, p, "anchor"))
			return false;
	}
	return true;
}

/* ---- rows ---- */

bool audit_check_begin(struct audit_check *c, const struct audit_id *id, int64_t seq,
		       const uint8_t hash[32])
{
	c->v->id = *id;
	c->last = seq;
	memcpy(c->prev, hash, 32);
	return check_anchor_texts(c, id) && pass_anchors(c, true);
}

bool audit_check_seq(struct audit_check *c, int64_t seq, const uint8_t *prev)
{
	if (c->v->fault)
		return false;
	if (prev && c->loose && seq > c->last + 1) {
		c->v->open |= AUDIT_OPEN_FILTERED;
		memcpy(c->prev, prev, 32);
	} else if (seq > c->last + 1) {
		return audit_check_fault(c,
					 c->v->rows || c->pruned ? AUDIT_FAULT_SEQ
								 : AUDIT_FAULT_START,
					 c->last + 1, "row %lld is missing: the next is row %lld",
					 (long long)c->last + 1, (long long)seq);
	} else if (seq != c->last + 1 || prev) {
		return audit_check_fault(c, AUDIT_FAULT_SEQ, c->last + 1,
					 "row %lld stands where row %lld should be", (long long)seq,
					 (long long)c->last + 1);
	}
	audit_enc_begin(&c->enc, c->prev);
	return true;
}

bool audit_check_row(struct audit_check *c, int64_t seq, const uint8_t hash[32])
{
	uint8_t own[32];

	if (c->v->fault)
		return false;
	if (c->enc.full)
		return audit_check_fault(c, AUDIT_FAULT_TYPE, seq,
					 "row %lld has a value longer than we ever write",
					 (long long)seq);
	aqe_sha256(c->enc.buf, c->enc.n, own);
	if (memcmp(own, hash, 32) != 0)
		return audit_check_fault(
			c, AUDIT_FAULT_HASH, seq,
			"the hash of row %lld does not fit: it or its hash, or the "
			"hash of the row before it, was changed",
			(long long)seq);
	if (c->v->rows++ == 0)
		c->v->first_seq = seq;
	c->v->last_seq = seq;
	c->last = seq;
	memcpy(c->prev, hash, 32);
	return pass_anchors(c, false);
}

void audit_check_gap(struct audit_check *c, uint64_t lost)
{
	c->v->lost += lost;
	c->v->open |= AUDIT_OPEN_GAPS;
}

/* ---- points ---- */

/* The promise of the last point: the next comes at most so many rows later. */
static bool keeps_promise(struct audit_check *c, int64_t seq)
{
	if (c->loose || c->point_seq < 0 || seq - c->point_seq <= c->point_every)
		return true;
	return audit_check_fault(c, AUDIT_FAULT_UNSIGNED, c->point_seq + 1,
				 "no signed checkpoint after row %lld, though one is made at least "
				 "every %lld rows: later rows may have been rewritten",
				 (long long)c->point_seq, (long long)c->point_every);
}

bool audit_check_point(struct audit_check *c, const struct audit_point *p)
{
	if (c->v->fault)
		return false;
	c->v->points++;
	if (memcmp(p->chain, c->v->id.chain, 32) != 0)
		return audit_check_fault(c, AUDIT_FAULT_OTHER_LOG, 0,
					 "the checkpoint of row %lld is of another log",
					 (long long)p->seq);
	if (p->seq > c->last && !c->loose)
		return audit_check_fault(
			c, AUDIT_FAULT_CUT, c->last + 1,
			"the log ends at row %lld, but there is a checkpoint of row "
			"%lld",
			(long long)c->last, (long long)p->seq);
	if (!check_signature(c, p, "checkpoint"))
		return false;
	if (p->seq == c->last) {
		if (memcmp(p->hash, c->prev, 32) != 0)
			return audit_check_fault(
				c, AUDIT_FAULT_POINT, c->v->signed_to + 1,
				"the checkpoint of row %lld has another hash: rows "
				"after row %lld were rewritten",
				(long long)p->seq, (long long)c->v->signed_to);
		c->v->signed_to = p->seq;
	}
	/* what lies before a pruned beginning promises nothing any more */
	if (p->seq < c->last && !c->v->rows)
		return true;
	if (!keeps_promise(c, p->seq))
		return false;
	c->point_seq = p->seq;
	c->point_every = p->every;
	return true;
}

/* ---- the end ---- */

static bool anchors_reached(struct audit_check *c)
{
	const struct audit_point *p = &c->anchors[c->next_anchor];

	if (c->next_anchor == c->n_anchors)
		return true;
	if (c->loose) {
		c->v->open |= AUDIT_OPEN_FILTERED;
		return true;
	}
	c->v->anchors++;
	return audit_check_fault(
		c, AUDIT_FAULT_CUT, c->last + 1,
		"the log ends at row %lld, but an anchor names row %lld: it was cut, "
		"or is an older copy",
		(long long)c->last, (long long)p->seq);
}

static void say_open(struct audit_check *c)
{
	struct audit_verdict *v = c->v;

	if (c->o->n_keys == 0)
		v->open |= AUDIT_OPEN_NO_KEY;
	if (c->o->n_anchors == 0)
		v->open |= AUDIT_OPEN_NO_ANCHOR;
	else if (v->anchored_to < c->last)
		v->open |= AUDIT_OPEN_UNANCHORED_TAIL;
	if (v->points == 0)
		v->open |= AUDIT_OPEN_NEVER_SIGNED;
	else if (v->signed_to < c->last)
		v->open |= AUDIT_OPEN_UNSIGNED_TAIL;
	if (c->pruned)
		v->open |= AUDIT_OPEN_PRUNED;
}

bool audit_check_end(struct audit_check *c)
{
	memcpy(c->v->head, c->prev, 32);
	if (c->v->fault || !anchors_reached(c))
		return false;
	/* the row that the promise names would have brought its point */
	if (!keeps_promise(c, c->last + 1))
		return false;
	if (c->o->n_keys > 0 && c->v->points == 0 && c->last > 0 && !c->loose)
		return audit_check_fault(
			c, AUDIT_FAULT_UNSIGNED, 1,
			"there is no signed checkpoint at all, though a key is given");
	say_open(c);
	return true;
}
