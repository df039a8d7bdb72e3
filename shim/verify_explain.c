/* SPDX-License-Identifier: MIT */
#include "shim/verify_explain.h"

#include <string.h>

#include "hardening/bpf.h"
#include "hardening/knowledge.h"
#include "hardening/report.h"
#include "hardening/seccomp.h"
#include "oci/doc.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define FILE_SHOWN 400

static const char PROOF_ABOUT[] =
	"The filter is compiled as crun 1.8.1 and runc 1.1.5 do it, and the BPF program is "
	"followed for every architecture and system call number with unknown argument bits, also "
	"the upper halves of 64-bit arguments. A filter passes when every forbidden call ends in "
	"an error or a kill on every path.";

/* ---- the proof ---- */

static int prove(struct aqe_arena *a, const char *text, size_t len, struct shim_explained *x,
		 struct aqe_err *e)
{
	const struct aqe_json *filter;
	const struct hard_finding *f;
	struct hard_report form;
	struct aqe_json *root = NULL;
	int rc = oci_doc_parse(a, OCI_DOC_CONFIG, text, len, &root, e);

	if (rc < 0)
		return rc;
	if (!oci_doc_is_config(root))
		return aqe_err_set(e, AQE_E_MALFORMED, 0, "not a runtime-spec document");
	filter = aqe_json_at(root, "/linux/seccomp");
	if (!filter)
		return aqe_err_set(e, AQE_E_REFUSED, 0, "no filter at all: every call is open");
	x->frozen = hard_seccomp_is_frozen(filter);
	hard_report_init(&form, a);
	hard_seccomp_structure(filter, &form);
	f = hard_report_worst(&form);
	while (f && f->prop != HARD_SECCOMP)
		f = f->next;
	if (form.result[HARD_SECCOMP] != HARD_PASS && !x->frozen)
		return aqe_err_at(e, AQE_E_REFUSED, f ? f->line : 0, f ? f->col : 0,
				  "the filter's form is refused: at %s: found %s, wanted %s",
				  f ? f->pointer : "/linux/seccomp",
				  f ? f->found : "something else",
				  f ? f->wanted : "the rules of form");
	return hard_proof_spec(a, filter, &x->proof, e);
}

void shim_explain_filter(struct aqe_arena *a, const char *text, size_t len,
			 struct shim_explained *ret)
{
	if (prove(a, text, len, ret, &ret->error) == 0)
		ret->error = (struct aqe_err)AQE_ERR_INIT;
}

static const char *action_words(uint16_t set)
{
	if (set & HARD_BPF_ALLOW)
		return "allowed";
	if (set & HARD_BPF_LOG)
		return "logged and allowed";
	if (set & HARD_BPF_ERRNO0)
		return "seems to succeed";
	return "decided by another process";
}

/* ---- text ---- */

static void text_references(enum hard_prop prop, struct aqe_buf *b)
{
	for (size_t i = 0; i < HARD_CVES_COUNT; i++) {
		const struct hard_cve *c = &HARD_CVES[i];

		if (!hard_cve_is_for(c, prop))
			continue;
		(void)aqe_buf_puts(b, "  ");
		for (size_t k = 0; c->ids[k]; k++)
			(void)aqe_buf_addf(b, "%s%s", k ? ", " : "", c->ids[k]);
		(void)aqe_buf_addf(b, " (%s)\n    needs    %s\n    defence  %s\n", c->where,
				   c->condition, c->defence);
	}
}

static void text_filter(const struct shim_explained *x, struct aqe_buf *b)
{
	const struct hard_proof *p = &x->proof;

	(void)aqe_buf_putc(b, '\n');
	aqe_buf_quote(b, x->file, FILE_SHOWN);
	if (x->error.code != AQE_OK) {
		if (x->error.line)
			(void)aqe_buf_addf(b, ":%u:%u", x->error.line, x->error.col);
		(void)aqe_buf_addf(b, ": %s\n", x->error.text);
		return;
	}
	(void)aqe_buf_addf(b,
			   ": %s%zu instructions, %zu system calls of this machine can be allowed, "
			   "%zu forbidden calls reachable\n",
			   x->frozen ? "the frozen filter, " : "", p->n_insns, p->n_allowed,
			   p->n_all);
	for (size_t i = 0; i < p->n_holes; i++)
		(void)aqe_buf_addf(b, "  %s on %s: %s\n", p->holes[i].call, p->holes[i].arch,
				   action_words(p->holes[i].actions));
	if (p->n_all > p->n_holes)
		(void)aqe_buf_addf(b, "  and %zu more\n", p->n_all - p->n_holes);
}

void shim_explain_text(enum hard_prop prop, const struct shim_explained *x, struct aqe_buf *b)
{
	const struct hard_prop_row *row = &HARDENING_PROFILE[prop];

	(void)aqe_buf_addf(b,
			   "%s\n  wanted   %s\n  why      %s\n  fix      %s\n  rewrite  %s\n"
			   "  waiver   %s\n  rules    %s\n",
			   row->id, row->required, row->why, row->fix, row->rewrite,
			   row->waivable ? "possible, in the policy" : "never",
			   HARD_RULE_IDS[prop]);
	if (prop == HARD_SECCOMP)
		(void)aqe_buf_addf(b, "  proof    %s\n", PROOF_ABOUT);
	text_references(prop, b);
	if (x)
		text_filter(x, b);
}

/* ---- json ---- */

static void member(struct aqe_buf *b, const char *key, const char *value)
{
	if (b->len && b->p[b->len - 1] != '{')
		(void)aqe_buf_putc(b, ',');
	aqe_json_emit_str(b, key);
	(void)aqe_buf_putc(b, ':');
	aqe_json_emit_str(b, value);
}

static void json_reference(const struct hard_cve *c, struct aqe_buf *b)
{
	(void)aqe_buf_puts(b, b->p[b->len - 1] == '[' ? "{\"ids\":[" : ",{\"ids\":[");
	for (size_t k = 0; c->ids[k]; k++)
		(void)aqe_buf_addf(b, "%s\"%s\"", k ? "," : "", c->ids[k]);
	(void)aqe_buf_putc(b, ']');
	member(b, "where", c->where);
	member(b, "condition", c->condition);
	member(b, "defence", c->defence);
	member(b, "source", c->source);
	member(b, "date", c->date);
	(void)aqe_buf_putc(b, '}');
}

static void json_filter(const struct shim_explained *x, struct aqe_buf *b)
{
	const struct hard_proof *p = &x->proof;

	(void)aqe_buf_puts(b, ",\"filter\":{");
	member(b, "file", x->file);
	if (x->error.code != AQE_OK) {
		member(b, "error", x->error.text);
		(void)aqe_buf_putc(b, '}');
		return;
	}
	(void)aqe_buf_addf(b,
			   ",\"frozen\":%s,\"instructions\":%zu,\"allowed\":%zu,\"reachable\":%zu,"
			   "\"forbidden\":[",
			   x->frozen ? "true" : "false", p->n_insns, p->n_allowed, p->n_all);
	for (size_t i = 0; i < p->n_holes; i++) {
		(void)aqe_buf_puts(b, i ? ",{" : "{");
		member(b, "call", p->holes[i].call);
		member(b, "architecture", p->holes[i].arch);
		member(b, "outcome", action_words(p->holes[i].actions));
		(void)aqe_buf_putc(b, '}');
	}
	(void)aqe_buf_puts(b, "]}");
}

void shim_explain_json(enum hard_prop prop, const struct shim_explained *x, struct aqe_buf *b)
{
	const struct hard_prop_row *row = &HARDENING_PROFILE[prop];

	(void)aqe_buf_puts(b, "{\"version\":1");
	member(b, "id", row->id);
	member(b, "required", row->required);
	member(b, "why", row->why);
	member(b, "fix", row->fix);
	member(b, "rewrite", row->rewrite);
	(void)aqe_buf_addf(b, ",\"waivable\":%s", row->waivable ? "true" : "false");
	member(b, "rules", HARD_RULE_IDS[prop]);
	if (prop == HARD_SECCOMP)
		member(b, "proof", PROOF_ABOUT);
	(void)aqe_buf_puts(b, ",\"references\":[");
	for (size_t i = 0; b->p && i < HARD_CVES_COUNT; i++) {
		if (hard_cve_is_for(&HARD_CVES[i], prop))
			json_reference(&HARD_CVES[i], b);
	}
	(void)aqe_buf_putc(b, ']');
	if (x)
		json_filter(x, b);
	(void)aqe_buf_puts(b, "}\n");
}
