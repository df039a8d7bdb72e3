/* SPDX-License-Identifier: MIT */
/* One row of the audit log: one decision. Names, limits and checks; pure. */
#ifndef AQE_AUDIT_ROW_H
#define AQE_AUDIT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/core/arena.h"
#include "shim/core/err.h"

/* What was decided about. The numbers are stored: never renumber, only add at the end. */
enum audit_kind {
	AUDIT_KIND_ANY = 0, /* in filters only */
	AUDIT_START = 1,    /* a container's start was admitted */
	AUDIT_EXEC = 2,
	AUDIT_UPDATE = 3,
	AUDIT_RESTORE = 4,
	AUDIT_STOP = 5,
	AUDIT_REFUSAL = 6, /* of a start, exec, update, restore */
	AUDIT_REQUEST = 7, /* of an agent to the network */
	AUDIT_POLICY = 8,  /* a policy was loaded, changed or rejected */
	AUDIT_WAIVER = 9,  /* a waiver was used */
	AUDIT_SYSTEM = 10, /* of the log and the services themselves, gaps among them */
	AUDIT_KIND_COUNT
};
/* The decision. Requests have the first three, all other kinds `allowed` and the last two. */
enum audit_action {
	AUDIT_ACTION_ANY = 0, /* in filters only */
	AUDIT_ALLOWED = 1,
	AUDIT_BLOCKED = 2,
	AUDIT_RATE_LIMITED = 3,
	AUDIT_REFUSED = 4,
	AUDIT_CHANGED = 5,
	AUDIT_ACTION_COUNT
};
/* "start", "rate_limited", ...; "?" when out of range. The parsers return false for other text. */
const char *audit_kind_name(enum audit_kind k);
const char *audit_action_name(enum audit_action a);
bool audit_kind_parse(const char *text, enum audit_kind *ret);
bool audit_action_parse(const char *text, enum audit_action *ret);

/* A number that is not there (stored as NULL). Numbers are 0 or more. */
#define AUDIT_NONE INT64_C(-1)

/* Reason of a request over its limit, and of a row that stands for rows that could not be stored.
 */
#define AUDIT_REASON_RATE "Rate limit exceeded"
#define AUDIT_REASON_GAP  "gap"
/* Of a row that stands for one that a crash cut off before it was acknowledged, or that somebody
 * changed, on its way into the log. */
#define AUDIT_REASON_SPOOL "incomplete row in the spool"
/* Of a row (system, changed) that says which rows a prune removes; audit/prune.h. */
#define AUDIT_REASON_PRUNE "prune"

/* Most bytes of a text, without the NUL. */
#define AUDIT_ID_MAX     256  /* container, agent_id, image, policy, waiver, rule, domain */
#define AUDIT_WORD_MAX   64   /* agent_type, method */
#define AUDIT_PATH_MAX   2048 /* path */
#define AUDIT_REASON_MAX 2048 /* reason */
#define AUDIT_META_MAX   8192 /* meta */

/* Texts are UTF-8 without NUL; NULL = not there, which is not the same as "". Borrowed by the
 * functions that take a row; rows handed out are valid as their function says. */
struct audit_row {
	/* set by the log on append, together with hash */
	int64_t seq;     /* 1, 2, 3, ... without a hole */
	int64_t time_ns; /* UTC, ns since 1970; 0 on append = now (imports bring their own) */
	int64_t boot_ns; /* CLOCK_BOOTTIME, ns since boot; AUDIT_NONE for an imported row */
	/* the decision */
	enum audit_kind kind;
	enum audit_action action;
	const char *container;  /* id */
	const char *agent_id;   /* the agent's own name */
	const char *agent_type; /* one of the policy's types */
	const char *image;      /* digest, "sha256:..." */
	const char *domain;     /* host name or address asked for, canonical */
	int64_t port;           /* 0-65535 */
	const char *method;     /* CONNECT, GET, SOCKS5, ... */
	const char *path;       /* without query and fragment */
	const char *reason;     /* in words or a code: domain_not_allowed */
	const char *rule;       /* property or rule that decided: engine_socket, *.example.com */
	int64_t status;         /* HTTP status, or exit status for stop */
	int64_t response_ns;    /* time to the first byte of the answer */
	int64_t duration_ns;    /* of the whole */
	int64_t bytes_in;       /* from the other side to the agent */
	int64_t bytes_out;
	const char *policy; /* digest of the policy that decided */
	const char *waiver; /* waived property or waiver's name */
	const char *meta;  /* a JSON object in the compact form of our writer; audit_append() brings
			    * it into that form, unless it comes from aqe_json_emit() as it is: */
	bool meta_compact; /* then true; not stored */
	uint8_t hash[32];  /* of the row before and every field above */
};
/* A row to fill: nothing there. */
#define AUDIT_ROW_INIT(k, a)                                                                \
	{                                                                                   \
		.boot_ns = AUDIT_NONE, .kind = (k), .action = (a), .port = AUDIT_NONE,      \
		.status = AUDIT_NONE, .response_ns = AUDIT_NONE, .duration_ns = AUDIT_NONE, \
		.bytes_in = AUDIT_NONE, .bytes_out = AUDIT_NONE                             \
	}

/* The stored fields in the order of the canonical encoding, which is that of the columns too. */
enum audit_field_type {
	AUDIT_FIELD_TIME,   /* int64_t ns since 1970 */
	AUDIT_FIELD_NUMBER, /* int64_t, NULL for AUDIT_NONE */
	AUDIT_FIELD_KIND,
	AUDIT_FIELD_ACTION,
	AUDIT_FIELD_TEXT, /* const char * */
	AUDIT_FIELD_JSON, /* const char *, an object */
};
struct audit_field {
	const char *name; /* column, JSON member and CSV heading */
	enum audit_field_type type;
	size_t offset; /* in struct audit_row */
	int64_t max;   /* of a number, or bytes of a text */
};
#define AUDIT_FIELDS_COUNT 23
extern const struct audit_field AUDIT_FIELDS[AUDIT_FIELDS_COUNT];
/* Access by table. audit_field_text() is for TEXT and JSON, audit_field_int() for all others. */
const char *audit_field_text(const struct audit_row *r, const struct audit_field *f);
int64_t audit_field_int(const struct audit_row *r, const struct audit_field *f);
void audit_field_set_text(struct audit_row *r, const struct audit_field *f, const char *v);
void audit_field_set_int(struct audit_row *r, const struct audit_field *f, int64_t v);

/* Everything append would refuse, without meta's grammar: kind, action for that kind, lengths,
 * UTF-8, a path with '?' or '#', numbers out of range. AQE_E_LIMIT or AQE_E_MALFORMED, naming the
 * field. */
AQE_MUST_CHECK int audit_row_check(const struct audit_row *r, struct aqe_err *e);
/* Makes foreign texts storable: those too long are cut (at a character, ending in "..."), bytes
 * that are no UTF-8 become U+FFFD, path ends before '?' or '#'. Changed texts are copies in `a`.
 * meta is left alone. AQE_E_NOMEM. */
AQE_MUST_CHECK int audit_row_fit(struct audit_row *r, struct aqe_arena *a, struct aqe_err *e);
/* Deep copy into `a`; AQE_E_NOMEM. */
AQE_MUST_CHECK int audit_row_copy(struct aqe_arena *a, const struct audit_row *r,
				  struct audit_row *ret, struct aqe_err *e);
/* Equality of every field and the hash. */
bool audit_row_equal(const struct audit_row *a, const struct audit_row *b);

/* "2026-01-31T23:59:59.123456789Z" + NUL, and back (nine digits or none after the second). */
#define AUDIT_TIME_TEXT 31
void audit_time_format(int64_t ns, char ret[AUDIT_TIME_TEXT]);
bool audit_time_parse(const char *text, int64_t *ret_ns);

#endif
