/* SPDX-License-Identifier: MIT */
/* One verdict on a filter: frozen, or of the right form and proved. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hardening/seccomp.h"
#include "hardening/seccomp_proof.h"
#include "shim/core/cleanup.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"

#define WANTED_PROVED   "the frozen filter, or one that denies every forbidden call on every path"
#define HOLES_SHOWN     12          /* findings a filter; the rest is counted in the last one */
#define PROOF_ARENA_MAX (64U << 20) /* a filter of the largest size, compiled, and its holes */
#define KEY_BYTES_MAX   (1U << 20)
/* Counts up whenever the prover, its tables or the way of compiling change: older proofs are then
 * forgotten. */
#define PROVER 1

/* ---- what was proved before ---- */

/* Every piece with its length before it: no two filters have the same bytes. Member names are left
 * out, the order of the pieces stands for them. */
static void put(struct aqe_buf *b, const struct aqe_json *v)
{
	const char *text = v && v->text ? v->text : "";

	(void)aqe_buf_addf(b, "%zu:", v ? v->len : 0); /* sticky */
	(void)aqe_buf_add(b, text, v && v->text ? v->len : 0);
}

static void put_list(struct aqe_buf *b, const struct aqe_json *list)
{
	(void)aqe_buf_addf(b, "[%zu", list ? list->len : 0);
	for (const struct aqe_json *v = list ? list->first : NULL; v; v = v->next)
		put(b, v);
}

static void put_rule(struct aqe_buf *b, const struct aqe_json *rule)
{
	const struct aqe_json *args = aqe_json_get(rule, "args");

	put(b, aqe_json_get(rule, "action"));
	put(b, aqe_json_get(rule, "errnoRet"));
	put_list(b, aqe_json_get(rule, "names"));
	(void)aqe_buf_addf(b, "(%zu", args ? args->len : 0);
	for (const struct aqe_json *a = args ? args->first : NULL; a; a = a->next) {
		put(b, aqe_json_get(a, "index"));
		put(b, aqe_json_get(a, "value"));
		put(b, aqe_json_get(a, "valueTwo"));
		put(b, aqe_json_get(a, "op"));
	}
}

int hard_seccomp_key(const struct aqe_json *seccomp, char ret[HARD_PROOF_KEY], struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(KEY_BYTES_MAX);
	const struct aqe_json *rules = aqe_json_get(seccomp, "syscalls");
	char digest[AQE_DIGEST_TEXT];
	int rc;

	put(&b, aqe_json_get(seccomp, "defaultAction"));
	put(&b, aqe_json_get(seccomp, "defaultErrnoRet"));
	put_list(&b, aqe_json_get(seccomp, "architectures"));
	for (const struct aqe_json *r = rules ? rules->first : NULL; r; r = r->next)
		put_rule(&b, r);
	rc = aqe_buf_ok(&b, e);
	if (rc < 0)
		return aqe_err_wrap(e, "seccomp filter");
	aqe_sha256_text(b.p, b.len, digest);
	(void)snprintf(ret, HARD_PROOF_KEY, "proof-%d-%s", PROVER, digest + strlen("sha256:"));
	return 0;
}

static bool proved_before(const struct hard_proofs *proofs, const char *key)
{
	return proofs && faccessat(proofs->dir_fd, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Only a proof is remembered. Without the file the next start proves again: nothing is lost. */
static void remember(const struct hard_proofs *proofs, const char *key)
{
	int fd = proofs ? openat(proofs->dir_fd, key,
				 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600)
			: -1;

	if (fd >= 0)
		(void)close(fd); /* empty: nothing to lose */
}

/* ---- the verdict ---- */

static const char *action_words(uint16_t set)
{
	if (set & (HARD_BPF_ALLOW | HARD_BPF_LOG))
		return "is let through";
	if (set & HARD_BPF_ERRNO0)
		return "seems to succeed";
	return "is decided by another process";
}

static void report_holes(const struct aqe_json *seccomp, const struct hard_proof *p,
			 struct hard_report *r)
{
	for (size_t i = 0; i < p->n_holes && i < HOLES_SHOWN; i++) {
		const struct hard_hole *h = &p->holes[i];

		if (i + 1 == HOLES_SHOWN && p->n_all > HOLES_SHOWN)
			hard_report_fail(r, HARD_SECCOMP, seccomp, NULL, WANTED_PROVED,
					 "%s %s on %s, and %zu more", h->call,
					 action_words(h->actions), h->arch, p->n_all - HOLES_SHOWN);
		else
			hard_report_fail(r, HARD_SECCOMP, seccomp, NULL, WANTED_PROVED,
					 "%s %s on %s", h->call, action_words(h->actions), h->arch);
	}
}

static void prove(const struct aqe_json *seccomp, const struct hard_proofs *proofs, const char *key,
		  struct hard_report *r)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(PROOF_ARENA_MAX);
	struct aqe_err e = AQE_ERR_INIT;
	struct hard_proof p;
	int rc = a ? hard_proof_spec(a, seccomp, &p, &e)
		   : aqe_err_set(&e, AQE_E_NOMEM, 0, "no memory for the seccomp proof");

	if (rc < 0) {
		hard_report_unknown(r, HARD_SECCOMP, "/linux/seccomp", WANTED_PROVED,
				    "a filter that cannot be decided: %s", e.text);
		return;
	}
	if (p.n_all) {
		report_holes(seccomp, &p, r);
		return;
	}
	remember(proofs, key);
	hard_report_pass(r, HARD_SECCOMP);
}

void hard_seccomp_judge(const struct aqe_json *seccomp, const struct hard_proofs *proofs,
			struct hard_report *report)
{
	char key[HARD_PROOF_KEY] = "";
	struct aqe_err e = AQE_ERR_INIT;

	if (hard_seccomp_is_frozen(seccomp)) {
		hard_report_pass(report, HARD_SECCOMP);
		return;
	}
	hard_seccomp_structure(seccomp, report);
	if (report->result[HARD_SECCOMP] != HARD_PASS)
		return;
	if (hard_seccomp_key(seccomp, key, &e) < 0)
		hard_report_unknown(report, HARD_SECCOMP, "/linux/seccomp", WANTED_PROVED, "%s",
				    e.text);
	else if (proved_before(proofs, key))
		hard_report_pass(report, HARD_SECCOMP);
	else
		prove(seccomp, proofs, key, report);
}
