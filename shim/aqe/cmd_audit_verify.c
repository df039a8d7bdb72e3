/* SPDX-License-Identifier: MIT */
/* aqe audit verify: is the log what it was? */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "audit/checkpoint.h"
#include "audit/verify.h"
#include "shim/aqe/audit_args.h"
#include "shim/aqe/audit_keys.h"
#include "shim/aqe/audit_table.h"
#include "shim/core/cleanup.h"
#include "shim/core/json.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define ARENA_MAX ((size_t)16 << 20)
#define OUT_MAX   ((size_t)64 << 10)

enum { OPT_ANCHOR = SHIM_OPT_OWN, OPT_EXPORT, OPT_KEY, OPT_QUICK };
enum format { AS_TEXT, AS_JSON };
static const char *const FORMATS[] = { "text", "json", NULL };
static const struct aqe_cli_opt OPTS[] = {
	{ "anchor", 0, "FILE", "heads kept elsewhere, one a line; may be given again", OPT_ANCHOR },
	{ "public-key", 0, "FILE",
	  "a trusted public key, kept elsewhere; may be given again (default: the one beside the "
	  "log, which who can write the log can replace)",
	  OPT_KEY },
	{ "export", 0, "FILE", "verify this export (jsonl) instead of the log; - is standard input",
	  OPT_EXPORT },
	{ "quick", 0, NULL, "do not compare indexes with rows (the slower half)", OPT_QUICK },
	{ "format", 0, "FORMAT", "text (default) or json", SHIM_OPT_FORMAT },
	SHIM_AUDIT_OPT_LOG,
	SHIM_AUDIT_OPT_KEY_DIR,
	SHIM_AUDIT_OPT_END,
};
static const struct aqe_cli_cmd CMD = {
	.name = "aqe audit verify",
	.synopsis = "[--anchor FILE]... [--public-key FILE]...\n       "
		    "[--export FILE] [--quick] [--format text|json]",
	.about =
		"Recomputes the chain of every row and judges checkpoints and anchors; writers are "
		"not disturbed. Exit status: 0 intact, 1 tampered with (the first bad row is "
		"named), 2 usage, 4 could not decide. What a good result does not prove is said.",
	.opts = OPTS,
};

struct request {
	struct aqe_arena *arena;
	struct shim_audit_trust trust;
	const char *export;
	unsigned flags;
};

static int take(void *self, int id, struct aqe_cli *c, struct aqe_err *e)
{
	struct request *r = self;

	switch (id) {
	case OPT_ANCHOR:
		return shim_audit_trust_anchors(&r->trust, r->arena, c->value, e);
	case OPT_KEY:
		return shim_audit_trust_key(&r->trust, c->value, e);
	case OPT_EXPORT:
		r->export = c->value;
		return AQE_OK;
	case OPT_QUICK:
		r->flags |= AUDIT_VERIFY_NO_INDEXES;
		return AQE_OK;
	default:
		return aqe_err_set(e, AQE_E_USAGE, 0, "surplus argument '%.64s'", c->value);
	}
}

/* ---- output ---- */

static void put_hex(struct aqe_buf *b, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)aqe_buf_addf(b, "%02x", p[i]);
}

static void as_text(const struct audit_verdict *v, bool own_key, struct aqe_buf *b)
{
	const bool good = v->fault == AUDIT_FAULT_NONE;

	(void)aqe_buf_puts(b, good ? "intact: nothing wrong was found\n" : "TAMPERED: ");
	if (!good) {
		shim_text_escape(b, v->text[0] ? v->text : audit_fault_name(v->fault));
		(void)aqe_buf_putc(b, '\n');
		if (v->first_bad)
			(void)aqe_buf_addf(b, "first bad row %" PRId64 "\n", v->first_bad);
	}
	(void)aqe_buf_addf(b, "rows          %" PRIu64, v->rows);
	if (v->rows)
		(void)aqe_buf_addf(b, " (%" PRId64 " to %" PRId64 ")", v->first_seq, v->last_seq);
	(void)aqe_buf_puts(b, "\nchain         ");
	put_hex(b, v->id.chain, sizeof(v->id.chain));
	(void)aqe_buf_puts(b, "\nhead          ");
	put_hex(b, v->head, sizeof(v->head));
	(void)aqe_buf_addf(b, "\ncheckpoints   %" PRIu64, v->points);
	if (v->signed_to)
		(void)aqe_buf_addf(b, ", signed to row %" PRId64 "%s", v->signed_to,
				   own_key ? " (by the key beside the log)" : "");
	(void)aqe_buf_addf(b, "\nanchors       %" PRIu64, v->anchors);
	if (v->anchored_to)
		(void)aqe_buf_addf(b, ", anchored to row %" PRId64, v->anchored_to);
	(void)aqe_buf_putc(b, '\n');
	if (v->lost)
		(void)aqe_buf_addf(b, "not recorded  %" PRIu64 " decisions, all refused\n",
				   v->lost);
	if (v->open || own_key)
		(void)aqe_buf_puts(b, "not proven:\n");
	for (unsigned i = 0; i < AUDIT_OPEN_COUNT; i++) {
		if (v->open & 1U << i)
			(void)aqe_buf_addf(b, "  - %s\n", audit_open_text(1U << i));
	}
	if (own_key)
		(void)aqe_buf_puts(b, "  - " SHIM_AUDIT_OWN_KEY "\n");
}

static void as_json(const struct audit_verdict *v, bool own_key, struct aqe_buf *b)
{
	const char *sep = "";

	(void)aqe_buf_addf(b, "{\n  \"version\":1,\n  \"verdict\":\"%s\",\n  \"fault\":\"%s\"",
			   v->fault == AUDIT_FAULT_NONE ? "intact" : "tampered",
			   audit_fault_name(v->fault));
	(void)aqe_buf_puts(b, ",\n  \"text\":");
	aqe_json_emit_str(b, v->text);
	if (v->first_bad)
		(void)aqe_buf_addf(b, ",\n  \"first_bad\":%" PRId64, v->first_bad);
	else
		(void)aqe_buf_puts(b, ",\n  \"first_bad\":null");
	(void)aqe_buf_addf(b,
			   ",\n  \"rows\":%" PRIu64 ",\n  \"first_seq\":%" PRId64
			   ",\n  \"last_seq\":%" PRId64 ",\n  \"chain\":\"",
			   v->rows, v->first_seq, v->last_seq);
	put_hex(b, v->id.chain, sizeof(v->id.chain));
	(void)aqe_buf_puts(b, "\",\n  \"head\":\"");
	put_hex(b, v->head, sizeof(v->head));
	(void)aqe_buf_addf(b,
			   "\",\n  \"checkpoints\":%" PRIu64 ",\n  \"signed_to\":%" PRId64
			   ",\n  \"anchors\":%" PRIu64 ",\n  \"anchored_to\":%" PRId64
			   ",\n  \"not_recorded\":%" PRIu64 ",\n  \"own_key\":%s"
			   ",\n  \"not_proven\":[",
			   v->points, v->signed_to, v->anchors, v->anchored_to, v->lost,
			   own_key ? "true" : "false");
	for (unsigned i = 0; i < AUDIT_OPEN_COUNT; i++) {
		if (!(v->open & 1U << i))
			continue;
		(void)aqe_buf_addf(b, "%s\n    ", sep);
		aqe_json_emit_str(b, audit_open_text(1U << i));
		sep = ",";
	}
	if (own_key)
		(void)aqe_buf_addf(b, "%s\n    \"" SHIM_AUDIT_OWN_KEY "\"", sep);
	(void)aqe_buf_puts(b, v->open || own_key ? "\n  ]\n}\n" : "]\n}\n");
}

/* ---- the command ---- */

static int judge_export(const struct request *r, const struct audit_verify_opts *o,
			struct audit_verdict *v, struct aqe_err *e)
{
	AQE_AUTO_FD int opened = -1;

	if (strcmp(r->export, "-") == 0)
		return audit_verify_export(0, o, v, e);
	opened = open(r->export, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (opened < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "open '%.300s'", r->export);
	return audit_verify_export(opened, o, v, e);
}

static int judge(const struct shim_audit_args *args, struct request *r, struct audit_verdict *v,
		 bool *ret_own_key, struct aqe_err *e)
{
	struct audit_verify_opts o;
	struct audit_opts at;
	int rc = AQE_OK;

	*ret_own_key = false;
	if (!r->export)
		rc = shim_audit_place(args, AUDIT_READ, &at, e);
	if (rc == AQE_OK && !r->export && r->trust.n_keys == 0)
		rc = shim_audit_trust_own(&r->trust, &at, ret_own_key, e);
	if (rc < 0)
		return rc;
	o = (struct audit_verify_opts){ .keys = (const uint8_t(*)[32])r->trust.keys,
					.n_keys = r->trust.n_keys,
					.anchors = r->trust.anchors,
					.n_anchors = r->trust.n_anchors,
					.flags = r->flags };
	return r->export ? judge_export(r, &o, v, e) : audit_verify_at(&at, &o, v, e);
}

int shim_audit_verify(int argc, char **argv)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(OUT_MAX);
	struct request r = { .arena = a };
	struct shim_audit_args args = { .arena = a, .formats = FORMATS, .own = take, .self = &r };
	struct audit_verdict v = { .fault = AUDIT_FAULT_CORRUPT };
	struct aqe_err e = AQE_ERR_INIT;
	bool own_key;
	int status = shim_audit_parse(&args, &CMD, argc, argv);

	if (status != SHIM_AUDIT_RUN) /* an anchor or key that cannot be read decides nothing */
		return status == SHIM_EXIT_FAILED ? SHIM_EXIT_UNDECIDED : status;
	if (judge(&args, &r, &v, &own_key, &e) < 0) {
		(void)shim_audit_fail(&CMD, &e);
		return SHIM_EXIT_UNDECIDED;
	}
	own_key = own_key && v.fault == AUDIT_FAULT_NONE; /* a limit of good results alone */
	if (args.format == AS_JSON)
		as_json(&v, own_key, &b);
	else
		as_text(&v, own_key, &b);
	if (shim_audit_write(&b, &e) < 0) {
		(void)shim_audit_fail(&CMD, &e);
		return SHIM_EXIT_UNDECIDED;
	}
	return v.fault == AUDIT_FAULT_NONE ? SHIM_EXIT_OK : SHIM_EXIT_FAILED;
}
