/* SPDX-License-Identifier: MIT */
#include "audit/import.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit/emit.h"
#include "audit/export.h"
#include "audit/lines.h"
#include "audit/sign.h"
#include "audit/store.h"
#include "audit/verify.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/json.h"
#include "shim/core/sha256.h"
#include "shim/core/text.h"

#define BATCH       1000 /* rows of one transaction: their texts are held in memory */
#define NS_PER_MS   INT64_C(1000000)
#define ARRAY_ARENA ((size_t)1 << 30)
#define BATCH_ARENA ((size_t)BATCH * 64 * 1024)

/* Rows collected for one transaction. */
struct batch {
	struct audit_log *log;
	struct aqe_arena *a; /* of the texts of rows */
	struct audit_row *rows;
	size_t n;
	uint64_t stored;
	char file[AQE_DIGEST_TEXT]; /* digest of the file, for every row of it */
};

static int store(struct batch *b, struct aqe_err *e)
{
	/* of the next batch: nothing may fail once these rows are stored */
	AQE_AUTO_ARENA struct aqe_arena *next = aqe_arena_new(BATCH_ARENA);
	int rc = next ? audit_append_many(b->log, b->rows, b->n, e)
		      : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	if (rc)
		return rc;
	b->stored += b->n;
	b->n = 0;
	aqe_arena_free(b->a);
	b->a = AQE_TAKE_PTR(next);
	return AQE_OK;
}

/* Takes one row; its texts are copied. */
static int add(struct batch *b, const struct audit_row *r, struct aqe_err *e)
{
	struct audit_row fitted = *r;
	int rc = audit_row_fit(&fitted, b->a, e);

	if (rc == 0)
		rc = audit_row_copy(b->a, &fitted, &b->rows[b->n], e);
	if (rc == 0)
		rc = audit_row_check(&b->rows[b->n], e);
	if (rc)
		return rc;
	b->rows[b->n++].boot_ns = AUDIT_NONE;
	return b->n == BATCH ? store(b, e) : AQE_OK;
}

/* {"imported": `from`, "metadata": `meta`}; the latter is left out when it would be too long. */
static int set_meta(struct aqe_arena *a, struct audit_row *r, struct aqe_json *from,
		    const struct aqe_json *meta, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(AUDIT_META_MAX);
	struct aqe_json *v = aqe_json_new_object(a);
	int rc = v ? aqe_json_set(a, v, "imported", from) : AQE_E_NOMEM;

	if (rc == 0 && meta)
		rc = aqe_json_set(a, v, "metadata", aqe_json_copy(a, meta));
	if (rc == 0)
		rc = aqe_json_emit(v, AQE_JSON_COMPACT, &b, NULL);
	if (rc == AQE_E_LIMIT) {
		aqe_buf_clear(&b);
		rc = aqe_json_set(a, v, "metadata", aqe_json_new_str(a, "left out: too long"));
		if (rc == 0)
			rc = aqe_json_emit(v, AQE_JSON_COMPACT, &b, NULL);
	}
	r->meta = rc ? NULL : aqe_arena_ndup(a, b.p, b.len);
	return r->meta ? AQE_OK : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
}

/* ---- the original's entries ---- */

/* Its names of our fields. */
static const struct {
	const char *theirs;
	size_t offset;
} TEXTS[] = {
	{ "agentId", offsetof(struct audit_row, agent_id) },
	{ "agentType", offsetof(struct audit_row, agent_type) },
	{ "domain", offsetof(struct audit_row, domain) },
	{ "reason", offsetof(struct audit_row, reason) },
	{ "requestMethod", offsetof(struct audit_row, method) },
	{ "requestPath", offsetof(struct audit_row, path) },
};
static const struct {
	const char *theirs;
	size_t offset;
	int64_t factor;
} NUMBERS[] = {
	{ "responseStatus", offsetof(struct audit_row, status), 1 },
	{ "responseTimeMs", offsetof(struct audit_row, response_ns), NS_PER_MS },
	{ "requestSizeBytes", offsetof(struct audit_row, bytes_out), 1 },
	{ "responseSizeBytes", offsetof(struct audit_row, bytes_in), 1 },
};

static const struct audit_field *field_at(size_t offset)
{
	for (size_t i = 0; i < AUDIT_FIELDS_COUNT; i++) {
		if (AUDIT_FIELDS[i].offset == offset)
			return &AUDIT_FIELDS[i];
	}
	return NULL;
}

/* "2026-01-31T23:59:59.123Z" as JavaScript writes it, our own forms, or milliseconds. */
static bool read_time(const struct aqe_json *v, int64_t *ret)
{
	const char *text = aqe_json_str(v);
	char ours[AUDIT_TIME_TEXT];
	int64_t ms;

	if (v && v->type == AQE_JSON_NUMBER && aqe_json_to_i64(v, 1, INT64_MAX / NS_PER_MS, &ms)) {
		*ret = ms * NS_PER_MS;
		return true;
	}
	if (text && strlen(text) == 24) {
		(void)snprintf(ours, sizeof(ours), "%.23s000000Z", text);
		return text[23] == 'Z' && audit_time_parse(ours, ret) && *ret > 0;
	}
	return audit_time_parse(text, ret) && *ret > 0;
}

static int bad_entry(const struct aqe_json *v, const char *name, struct aqe_err *e)
{
	return aqe_err_at(e, AQE_E_MALFORMED, v->line, v->col,
			  "entry of an old export: '%s' is missing or wrong", name);
}

/* Whole numbers and, of times, decimals (JavaScript's numbers are all alike). */
static bool read_number(const struct aqe_json *v, int64_t factor, int64_t *ret)
{
	int64_t n;

	if (aqe_json_to_i64(v, 0, INT64_MAX / factor, &n)) {
		*ret = n * factor;
		return true;
	}
	if (factor == 1 || v->type != AQE_JSON_NUMBER || v->text[strcspn(v->text, "-eE")])
		return false;
	*ret = (int64_t)(strtod(v->text, NULL) * (double)factor);
	return *ret >= 0;
}

static int read_entry(const struct aqe_json *v, struct audit_row *r, struct aqe_err *e)
{
	if (v->type != AQE_JSON_OBJECT)
		return bad_entry(v, "", e);
	if (!read_time(aqe_json_get(v, "timestamp"), &r->time_ns))
		return bad_entry(v, "timestamp", e);
	if (!audit_action_parse(aqe_json_str(aqe_json_get(v, "action")), &r->action))
		return bad_entry(v, "action", e);
	for (size_t i = 0; i < AQE_COUNT(TEXTS); i++) {
		const struct aqe_json *m = aqe_json_get(v, TEXTS[i].theirs);

		if (m && m->type != AQE_JSON_NULL && !aqe_json_str(m))
			return bad_entry(v, TEXTS[i].theirs, e);
		audit_field_set_text(r, field_at(TEXTS[i].offset), aqe_json_str(m));
	}
	for (size_t i = 0; i < AQE_COUNT(NUMBERS); i++) {
		const struct aqe_json *m = aqe_json_get(v, NUMBERS[i].theirs);
		int64_t n;

		if (!m || m->type == AQE_JSON_NULL)
			continue;
		if (!read_number(m, NUMBERS[i].factor, &n))
			return bad_entry(v, NUMBERS[i].theirs, e);
		audit_field_set_int(r, field_at(NUMBERS[i].offset), n);
	}
	return AQE_OK;
}

/* Its url is not taken: it may carry a query, and domain and path say the rest. */
static int add_entry(struct batch *b, const struct aqe_json *v, struct aqe_err *e)
{
	struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_ALLOWED);
	struct aqe_json *from = aqe_json_new_object(b->a);
	const char *id = aqe_json_str(aqe_json_get(v, "id"));
	const struct aqe_json *meta = aqe_json_get(v, "metadata");
	int rc = read_entry(v, &r, e);

	if (rc)
		return rc;
	if (!from || aqe_json_set(b->a, from, "file", aqe_json_new_str(b->a, b->file)) != 0 ||
	    (id && aqe_json_set(b->a, from, "id", aqe_json_new_str(b->a, id)) != 0))
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = set_meta(b->a, &r, from, meta && meta->type == AQE_JSON_OBJECT ? meta : NULL, e);
	return rc ? rc : add(b, &r, e);
}

static int read_array(const char *text, size_t n, struct aqe_arena *a, struct aqe_json **ret,
		      struct aqe_err *e)
{
	struct aqe_json_limits limits = AQE_JSON_LIMITS_DEFAULT;
	int rc;

	limits.bytes = AUDIT_IMPORT_ARRAY_MAX;
	limits.values = AUDIT_IMPORT_ARRAY_MAX;
	limits.entries = AUDIT_IMPORT_ARRAY_MAX;
	rc = aqe_json_parse(a, text, n, &limits, ret, e);
	if (rc == 0 && (*ret)->type != AQE_JSON_ARRAY)
		rc = aqe_err_set(e, AQE_E_MALFORMED, 0, "neither an export nor an array");
	return rc;
}

/* The first round only looks: nothing is stored of a file that is wrong further down. */
static int import_array(struct batch *b, int fd, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf text = AQE_BUF_INIT(AUDIT_IMPORT_ARRAY_MAX);
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARRAY_ARENA);
	struct aqe_json *array = NULL;
	int rc = a ? aqe_fs_read_fd(fd, &text, e) : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");

	if (rc == 0)
		rc = read_array(aqe_buf_str(&text), text.len, a, &array, e);
	if (rc)
		return rc;
	for (const struct aqe_json *v = array->first; rc == 0 && v; v = v->next) {
		struct audit_row r = AUDIT_ROW_INIT(AUDIT_REQUEST, AUDIT_ALLOWED);

		rc = read_entry(v, &r, e);
	}
	for (const struct aqe_json *v = array->first; rc == 0 && v; v = v->next)
		rc = add_entry(b, v, e);
	return rc;
}

/* ---- our own export ---- */

static int add_ours(struct batch *b, const struct audit_line *l, const char *chain,
		    struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(AUDIT_LINE_ARENA);
	struct aqe_json *v = NULL, *from;
	struct audit_row r;
	uint8_t prev[32];
	char hash[65];
	bool has_prev;
	int rc;

	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = aqe_json_parse(a, l->p, l->n, &AQE_JSON_LIMITS_DEFAULT, &v, e);
	if (rc || aqe_json_get(v, "point") || aqe_json_get(v, "aqe_audit_trailer"))
		return rc;
	rc = audit_row_parse(a, v, &r, prev, &has_prev, e);
	if (rc)
		return rc;
	from = aqe_json_new_object(a);
	audit_hex(r.hash, 32, hash);
	if (!from || aqe_json_set(a, from, "file", aqe_json_new_str(a, b->file)) != 0 ||
	    aqe_json_set(a, from, "chain", aqe_json_new_str(a, chain)) != 0 ||
	    aqe_json_set(a, from, "seq", aqe_json_new_i64(a, r.seq)) != 0 ||
	    aqe_json_set(a, from, "hash", aqe_json_new_str(a, hash)) != 0)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = set_meta(a, &r, from, aqe_json_get(v, "meta"), e);
	return rc ? rc : add(b, &r, e);
}

static int import_lines(struct batch *b, int fd, struct aqe_err *e)
{
	struct audit_lines lines = AUDIT_LINES_INIT(fd);
	struct audit_verdict verdict;
	struct audit_line l;
	char chain[65];
	int rc = audit_verify_export(fd, NULL, &verdict, e);

	if (rc == 0 && verdict.fault)
		rc = aqe_err_set(e, AQE_E_REFUSED, 0, "the export does not verify: %s",
				 verdict.text);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "seek");
	if (rc)
		return rc;
	audit_hex(verdict.id.chain, 32, chain);
	while ((rc = audit_lines_next(&lines, &l, e)) == 1) {
		rc = l.number > 1 ? add_ours(b, &l, chain, e) : AQE_OK; /* after the header */
		if (rc)
			break;
	}
	audit_lines_done(&lines);
	return rc;
}

/* ---- both ---- */

/* 0, or the first byte that is no blank. */
static int first_byte(int fd, char *ret, struct aqe_err *e)
{
	char data[64];
	ssize_t n = pread(fd, data, sizeof(data), 0);

	if (n < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "read");
	*ret = '\0';
	for (ssize_t i = 0; i < n && *ret == '\0'; i++) {
		if (!strchr(" \t\r\n", data[i]))
			*ret = data[i];
	}
	return AQE_OK;
}

static int import_fd(struct batch *b, int fd, struct aqe_err *e)
{
	char first = '\0';
	int rc = aqe_fs_check(fd, AQE_FS_REGULAR, AUDIT_IMPORT_BYTES_MAX, "import", NULL, e);

	if (rc == 0)
		rc = first_byte(fd, &first, e);
	if (rc == 0)
		rc = aqe_sha256_fd(fd, AUDIT_IMPORT_BYTES_MAX, b->file, e);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "seek");
	if (rc)
		return rc;
	rc = first == '[' ? import_array(b, fd, e) : import_lines(b, fd, e);
	return rc ? rc : store(b, e);
}

int audit_import(struct audit_log *log, const char *path, uint64_t *ret, struct aqe_err *e)
{
	AQE_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct batch b = { .log = log };
	int rc;

	if (fd < 0 && errno == ENOENT) {
		*ret = 0;
		return AQE_OK;
	}
	if (fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "audit log: import: open '%s'", path);
	b.a = aqe_arena_new(BATCH_ARENA);
	b.rows = calloc(BATCH, sizeof(b.rows[0]));
	rc = b.a && b.rows ? import_fd(&b, fd, e) : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	aqe_arena_free(b.a);
	free(b.rows);
	if (rc)
		return aqe_err_wrap(e, "audit log: import of '%s'", path);
	*ret = b.stored;
	return AQE_OK;
}
