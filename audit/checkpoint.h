/* SPDX-License-Identifier: MIT */
/* Signed statements about a log: "the row with this number has this hash". Ed25519.
 *
 * What a signature proves: whoever held the key said so. The key lies on the same machine: who can
 * read it can sign another history. Anchors kept elsewhere close that hole. */
#ifndef AQE_AUDIT_CHECKPOINT_H
#define AQE_AUDIT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/log.h"
#include "shim/core/buf.h"
#include "shim/core/err.h"

#define AUDIT_KEY_FILE    "key"     /* 0600: the secret */
#define AUDIT_PUBLIC_FILE "key.pub" /* 0644 in the same folder, one line */

enum audit_point_kind {
	AUDIT_POINT_HEAD = 1,  /* every AUDIT_CHECKPOINT_ROWS rows and on demand */
	AUDIT_POINT_PRUNE = 2, /* rows up to and with seq were removed by `prune` */
};
/* One statement. Signed are "aqe-point1", chain, kind, seq, hash, time_ns, every and the key. */
struct audit_point {
	uint8_t chain[32];
	enum audit_point_kind kind;
	int64_t seq; /* 0 = the empty log, hash is then the genesis */
	uint8_t hash[32];
	int64_t time_ns;
	int64_t every; /* while signed, the next is at most so many rows later */
	bool is_signed;
	uint8_t key[32]; /* public key; zeros when not signed */
	uint8_t sig[64];
};

/* ---- the key ---- */
/* Makes a new key in `o`'s key folder (made 0700 when absent). If the log exists already its head
 * is signed at once, so that everything before is covered. AQE_E_REFUSED when there is a key. */
AQE_MUST_CHECK int audit_key_make(const struct audit_opts *o, struct aqe_err *e);
/* The public key of that folder, from AUDIT_PUBLIC_FILE. AQE_E_ABSENT when there is none. */
AQE_MUST_CHECK int audit_key_public(const struct audit_opts *o, uint8_t ret[32], struct aqe_err *e);
/* "aqe-audit-key 1 <64 hex>": one line, with its newline; and back (with or without newline). */
#define AUDIT_PUBLIC_TEXT 96
void audit_public_format(const uint8_t key[32], char ret[AUDIT_PUBLIC_TEXT]);
bool audit_public_parse(const char *text, size_t n, uint8_t ret[32]);

/* ---- points ---- */
/* Signs the head now and stores the point. AQE_E_ABSENT without a key. `ret` may be NULL. */
AQE_MUST_CHECK int audit_checkpoint(struct audit_log *log, struct audit_point *ret,
				    struct aqe_err *e);
/* The head as it is, for an anchor: signed when the log may be written and there is a key (nothing
 * is stored), else unsigned. */
AQE_MUST_CHECK int audit_head(struct audit_log *log, struct audit_point *ret, struct aqe_err *e);
/* Calls `fn` for every stored point, by seq. Returns as audit_query(). */
typedef int audit_point_fn(void *arg, const struct audit_point *p, struct aqe_err *e);
AQE_MUST_CHECK int audit_points(struct audit_log *log, audit_point_fn *fn, void *arg,
				struct aqe_err *e);
/* True when the signature is that of p->key. Whether that key is trusted is the caller's question.
 */
bool audit_point_verify(const struct audit_point *p);

/* One line of text, the form of an anchor:
 * "aqe-audit-anchor 1 chain=<64 hex> kind=head seq=<n> hash=<64 hex> time=<RFC 3339> every=<n>
 * key=<64 hex or -> sig=<128 hex or ->" + newline. */
#define AUDIT_POINT_TEXT 640
void audit_point_format(const struct audit_point *p, char ret[AUDIT_POINT_TEXT]);
/* Reads one line (without its newline). AQE_E_MALFORMED. */
AQE_MUST_CHECK int audit_point_parse(const char *line, size_t n, struct audit_point *ret,
				     struct aqe_err *e);
/* The same as a member of a JSON export: an object with these names. */
void audit_point_emit(const struct audit_point *p, struct aqe_buf *b);

#endif
