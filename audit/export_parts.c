/* SPDX-License-Identifier: MIT */
#include "audit/export.h"

#include <string.h>

#include "audit/sign.h"
#include "shim/core/text.h"

void audit_trailer_signed(const struct audit_export_trailer *t, uint8_t ret[AUDIT_EXPORT_SIGNED])
{
	const size_t mark = sizeof(AUDIT_EXPORT_MARK) - 1;

	memcpy(ret, AUDIT_EXPORT_MARK, mark);
	memcpy(ret + mark, t->sha256, 32);
	memcpy(ret + mark + 32, t->key, 32);
}

/* ---- writing ---- */

void audit_header_emit(const struct audit_export_header *h, struct aqe_buf *b)
{
	char chain[65], after[65], head[65], created[AUDIT_TIME_TEXT], made[AUDIT_TIME_TEXT];

	audit_hex(h->id.chain, 32, chain);
	audit_hex(h->after_hash, 32, after);
	audit_hex(h->head_hash, 32, head);
	audit_time_format(h->id.created_ns, created);
	audit_time_format(h->made_ns, made);
	aqe_buf_addf(b,
		     "{\"aqe_audit_export\":%d,\"chain\":\"%s\",\"created\":\"%s\",\"made\":\"%s\","
		     "\"complete\":%s,\"rows\":%llu,",
		     AUDIT_EXPORT_VERSION, chain, created, made, h->complete ? "true" : "false",
		     (unsigned long long)h->rows);
	aqe_buf_addf(b,
		     "\"after_seq\":%lld,\"after_hash\":\"%s\",\"head_seq\":%lld,"
		     "\"head_hash\":\"%s\"}",
		     (long long)h->after_seq, after, (long long)h->head_seq, head);
}

void audit_trailer_emit(const struct audit_export_trailer *t, struct aqe_buf *b)
{
	char hash[65], key[65], sig[129];

	audit_hex(t->sha256, 32, hash);
	aqe_buf_addf(b, "{\"aqe_audit_trailer\":%d,\"rows\":%llu,\"points\":%llu,\"sha256\":\"%s\"",
		     AUDIT_EXPORT_VERSION, (unsigned long long)t->rows,
		     (unsigned long long)t->points, hash);
	if (t->is_signed) {
		audit_hex(t->key, 32, key);
		audit_hex(t->sig, 64, sig);
		aqe_buf_addf(b, ",\"key\":\"%s\",\"sig\":\"%s\"", key, sig);
	}
	aqe_buf_putc(b, '}');
}

/* ---- reading: by table, so that nothing is skipped and nothing is missing ---- */

enum part_type { PART_VERSION, PART_HEX, PART_TIME, PART_COUNT, PART_SIGNED, PART_BOOL, PART_KIND };
struct part {
	const char *name;
	enum part_type type;
	bool optional;
	void *to;
	size_t bytes; /* of PART_HEX */
};

static bool read_kind(const char *text, enum audit_point_kind *ret)
{
	if (aqe_str_eq(text, "head"))
		*ret = AUDIT_POINT_HEAD;
	else if (aqe_str_eq(text, "prune"))
		*ret = AUDIT_POINT_PRUNE;
	else
		return false;
	return true;
}

static bool read_part(const struct part *p, const struct aqe_json *v)
{
	const char *text = aqe_json_str(v);
	int64_t version;

	switch (p->type) {
	case PART_VERSION:
		return aqe_json_to_i64(v, AUDIT_EXPORT_VERSION, AUDIT_EXPORT_VERSION, &version);
	case PART_HEX:
		return text && strlen(text) == 2 * p->bytes && audit_unhex(text, p->bytes, p->to);
	case PART_TIME:
		return audit_time_parse(text, p->to);
	case PART_COUNT:
		return aqe_json_to_u64(v, INT64_MAX, p->to);
	case PART_SIGNED:
		return aqe_json_to_i64(v, 0, INT64_MAX, p->to);
	case PART_BOOL:
		*(bool *)p->to = v->boolean;
		return v->type == AQE_JSON_BOOL;
	case PART_KIND:
		return read_kind(text, p->to);
	}
	return false;
}

static int read_parts(const struct aqe_json *obj, const struct part *parts, size_t n,
		      struct aqe_err *e)
{
	size_t seen = 0;

	if (!obj || obj->type != AQE_JSON_OBJECT)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not an object");
	for (size_t i = 0; i < n; i++) {
		const struct aqe_json *v = aqe_json_get(obj, parts[i].name);

		if (!v && parts[i].optional)
			continue;
		if (!v || !read_part(&parts[i], v))
			return aqe_err_set(e, AQE_E_MALFORMED, 0, "'%s' is missing or wrong",
					   parts[i].name);
		seen++;
	}
	if (seen != obj->len)
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "a member that does not belong there");
	return AQE_OK;
}

int audit_header_parse(const struct aqe_json *obj, struct audit_export_header *ret,
		       struct aqe_err *e)
{
	struct audit_export_header h = { 0 };
	const struct part parts[] = {
		{ "aqe_audit_export", PART_VERSION, false, NULL, 0 },
		{ "chain", PART_HEX, false, h.id.chain, 32 },
		{ "created", PART_TIME, false, &h.id.created_ns, 0 },
		{ "made", PART_TIME, false, &h.made_ns, 0 },
		{ "complete", PART_BOOL, false, &h.complete, 0 },
		{ "rows", PART_COUNT, false, &h.rows, 0 },
		{ "after_seq", PART_SIGNED, false, &h.after_seq, 0 },
		{ "after_hash", PART_HEX, false, h.after_hash, 32 },
		{ "head_seq", PART_SIGNED, false, &h.head_seq, 0 },
		{ "head_hash", PART_HEX, false, h.head_hash, 32 },
	};
	int rc = read_parts(obj, parts, AQE_COUNT(parts), e);

	if (rc == 0)
		*ret = h;
	return rc ? aqe_err_wrap(e, "header") : AQE_OK;
}

int audit_trailer_parse(const struct aqe_json *obj, struct audit_export_trailer *ret,
			struct aqe_err *e)
{
	struct audit_export_trailer t = { 0 };
	const struct part parts[] = {
		{ "aqe_audit_trailer", PART_VERSION, false, NULL, 0 },
		{ "rows", PART_COUNT, false, &t.rows, 0 },
		{ "points", PART_COUNT, false, &t.points, 0 },
		{ "sha256", PART_HEX, false, t.sha256, 32 },
		{ "key", PART_HEX, true, t.key, 32 },
		{ "sig", PART_HEX, true, t.sig, 64 },
	};
	bool key = aqe_json_get(obj, "key"), sig = aqe_json_get(obj, "sig");
	int rc = read_parts(obj, parts, AQE_COUNT(parts), e);

	if (rc == 0 && key != sig)
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "'key' and 'sig' belong together");
	if (rc)
		return aqe_err_wrap(e, "trailer");
	t.is_signed = key;
	*ret = t;
	return AQE_OK;
}

int audit_point_parse_json(const struct aqe_json *obj, struct audit_point *ret, struct aqe_err *e)
{
	struct audit_point p = { .is_signed = true };
	const struct part parts[] = {
		{ "chain", PART_HEX, false, p.chain, 32 },
		{ "kind", PART_KIND, false, &p.kind, 0 },
		{ "seq", PART_SIGNED, false, &p.seq, 0 },
		{ "hash", PART_HEX, false, p.hash, 32 },
		{ "time", PART_TIME, false, &p.time_ns, 0 },
		{ "every", PART_SIGNED, false, &p.every, 0 },
		{ "key", PART_HEX, false, p.key, 32 },
		{ "sig", PART_HEX, false, p.sig, 64 },
	};
	int rc = read_parts(obj, parts, AQE_COUNT(parts), e);

	if (rc == 0)
		*ret = p;
	return rc ? aqe_err_wrap(e, "checkpoint") : AQE_OK;
}
