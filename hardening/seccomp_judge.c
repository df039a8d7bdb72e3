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
/* Counts up whenever the prover, the rules of form, their tables or the way of compiling change:
 * older proofs are then forgotten. */
#define PROVER 2

/* ---- what was proved before ---- */

/* One value, without its children: what it is, how long its text or list, its name (only members of
 * an object have one; a NUL ends it) and its text. */
static void put(struct aqe_buf *b, const struct aqe_json *v)
{
	const uint32_t head =
		(uint32_t)v->type << 29 | (uint32_t)v->boolean << 28 | (uint32_t)v->len;

	_Static_assert(AQE_JSON_OBJECT < 8 && KEY_BYTES_MAX < 1U << 28, "parts of the head");
	(void)aqe_buf_add(b, &head, sizeof(head)); /* sticky */
	if (v->key)
		(void)aqe_buf_add(b, v->key, strlen(v->key) + 1);
	if (v->text)
		(void)aqe_buf_add(b, v->text, v->len);
}

/* The value that follows `v` in the document, below `root`. */
static const struct aqe_json *next(const struct aqe_json *v, const struct aqe_json *root)
{
	if (v->first)
		return v->first;
	while (v != root && !v->next)
		v = v->parent;
	return v == root ? NULL : v->next;
}

int hard_seccomp_key(const struct aqe_json *seccomp, char ret[HARD_PROOF_KEY], struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(KEY_BYTES_MAX);
	char digest[AQE_DIGEST_TEXT];
	int rc;

	/* an array or object says how many values follow, so different ones differ */
	for (const struct aqe_json *v = seccomp; v; v = next(v, seccomp))
		put(&b, v);
	rc = aqe_buf_ok(&b, e);
	if (rc < 0)
		return aqe_err_wrap(e, "seccomp filter");
	aqe_sha256_text(b.p, b.len, digest);
	(void)snprintf(ret, HARD_PROOF_KEY, "proof-%d-%s", PROVER, digest + strlen("sha256:"));
	return 0;
}

static bool proved_before(const struct hard_proofs *proofs, const char *key)
{
	return faccessat(proofs->dir_fd, key, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Only a proof is remembered. Without the file the next start proves again: nothing is lost. */
static void remember(const struct hard_proofs *proofs, const char *key)
{
	int fd = proofs && *key ? openat(proofs->dir_fd, key,
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
	/* the key is of every byte that the rules of form look at: proved includes well-formed */
	if (proofs && hard_seccomp_key(seccomp, key, &e) == 0 && proved_before(proofs, key)) {
		hard_report_pass(report, HARD_SECCOMP);
		return;
	}
	hard_seccomp_structure(seccomp, report);
	if (report->result[HARD_SECCOMP] == HARD_PASS)
		prove(seccomp, proofs, key, report);
}
