/* SPDX-License-Identifier: MIT */
/* The reader: a scan of the bytes (json_scan.c), then yajl for the grammar, whose callbacks build
 * the tree and enforce the limits. Nothing recurses over the input. */
#include "shim/core/json.h"

#include <assert.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "shim/core/cleanup.h"
#include "shim/core/json_scan.h"
#include "shim/core/text.h"

const struct aqe_json_limits AQE_JSON_LIMITS_DEFAULT = {
	.bytes = (size_t)1 << 20,
	.depth = 32,
	.values = 200000,
	.entries = 4096,
	.string = (size_t)32 * 1024,
	.number = 20,
	.fold_dups_ok = false,
};

/* A value that we read; the reader needs more of it than its users. */
struct node {
	struct aqe_json v; /* must be first */
	uint32_t fold;     /* hash of the folded key */
	uint32_t key_off;  /* where the key begins in the text */
};

/* Memory for yajl, which does not look at what malloc(3) returns: one block, made large enough for
 * all it can want before it starts. */
struct pool {
	char *p;
	size_t used, size;
};

struct reader {
	struct aqe_arena *arena;
	const struct aqe_json_limits *limits;
	const char *text;
	size_t len; /* bytes of text that yajl gets */
	yajl_handle yajl;
	bool finishing; /* yajl has all text; offsets are no longer its own */

	size_t off, line_start; /* behind the last token; start of the line it is on */
	uint32_t line;

	struct aqe_json *root, *open; /* the value; the innermost open array or object */
	struct node key;              /* the last key, waiting for its value */
	size_t depth, values;

	int rc;
	struct aqe_err *e;
};

/* ---- memory for yajl ---- */

#define POOL_ALIGN alignof(max_align_t)
/* yajl's own objects (below 1 KiB), its stack (128 bytes up to depth 127) and one error text, then
 * two buffers that start at 2 KiB and double, each leaving its former blocks behind. */
#define POOL_FIXED  ((size_t)4096)
#define POOL_BUFFER ((size_t)2048)
#define DEPTH_MAX   ((size_t)120)

static void *pool_malloc(void *ctx, size_t n)
{
	struct pool *pool = ctx;
	size_t size = (n + 2 * POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
	char *p = pool->p + pool->used;

	/* The size was computed for the worst case; a yajl that needs more must not go on. */
	assert(size > n && size <= pool->size - pool->used);
	pool->used += size;
	memcpy(p, &n, sizeof(n)); /* for realloc */
	return p + POOL_ALIGN;
}

static void pool_free(void *ctx, void *p)
{
	(void)ctx; /* all at once, with the pool */
	(void)p;
}

static void *pool_realloc(void *ctx, void *old, size_t n)
{
	void *p = pool_malloc(ctx, n);
	size_t had;

	if (!old)
		return p;
	memcpy(&had, (char *)old - POOL_ALIGN, sizeof(had));
	memcpy(p, old, had < n ? had : n);
	return p;
}

/* ---- places ---- */

static uint32_t column(const struct reader *r)
{
	return (uint32_t)(r->off - r->line_start) + 1;
}

/* Moves over white space. Line feeds occur nowhere else: the scan saw to that. */
static void skip_blank(struct reader *r)
{
	for (; r->off < r->len; r->off++) {
		if (r->text[r->off] == '\n') {
			r->line++;
			r->line_start = r->off + 1;
		} else if (r->text[r->off] != ' ' && r->text[r->off] != '\t' &&
			   r->text[r->off] != '\r') {
			return;
		}
	}
}

/* Moves to the start of the token that yajl has just accepted. */
static void seek_token(struct reader *r)
{
	skip_blank(r);
	while (r->off < r->len && (r->text[r->off] == ',' || r->text[r->off] == ':')) {
		r->off++;
		skip_blank(r);
	}
}

static void pass_token(struct reader *r)
{
	r->off = r->finishing ? r->len : yajl_get_bytes_consumed(r->yajl);
}

/* Moves to where yajl found a fault. */
static void seek_fault(struct reader *r)
{
	/* Before the end of the text, the last byte that yajl took is the fault or part of it. */
	size_t more = r->finishing ? 0 : 1;
	size_t end = r->finishing ? r->len : yajl_get_bytes_consumed(r->yajl);

	skip_blank(r);
	while (r->off + more < end && (r->text[r->off] == ',' || r->text[r->off] == ':')) {
		r->off++;
		skip_blank(r);
	}
}

static void seek_offset(struct reader *r, size_t off)
{
	r->line = 1;
	r->line_start = 0;
	for (r->off = 0; r->off < off; r->off++) {
		if (r->text[r->off] == '\n') {
			r->line++;
			r->line_start = r->off + 1;
		}
	}
}

/* ---- failing ---- */

static int fail(struct reader *r, enum aqe_code code, const char *why)
{
	r->rc = aqe_err_at(r->e, code, r->line, column(r), "%s", why);
	return 0; /* tells yajl to stop */
}

static int fail_nomem(struct reader *r)
{
	return fail(r, AQE_E_NOMEM, "out of memory");
}

/* ---- names ---- */

#define NAME_TEXT_MAX 80 /* bytes of a key shown in a message */
#define PAIRWISE_MAX  16 /* members up to which comparing each with each is cheaper than sorting */

/* The next character of a key, lower case. runc compares names as Go does: without letter case, and
 * with U+017F (long s) and U+212A (Kelvin sign) equal to 's' and 'k'. */
static unsigned fold_next(const unsigned char **key)
{
	const unsigned char *p = *key;

	if (p[0] == 0xc5 && p[1] == 0xbf) {
		*key = p + 2;
		return 's';
	}
	if (p[0] == 0xe2 && p[1] == 0x84 && p[2] == 0xaa) {
		*key = p + 3;
		return 'k';
	}
	*key = p + 1;
	return p[0] >= 'A' && p[0] <= 'Z' ? p[0] | 0x20U : p[0];
}

/* FNV-1a. Collisions cost comparisons in small objects only; large ones are sorted. */
static uint32_t fold_hash(const char *key)
{
	const unsigned char *p = (const unsigned char *)key;
	uint32_t h = 2166136261U;

	while (*p)
		h = (h ^ fold_next(&p)) * 16777619U;
	return h;
}

static int fold_cmp(const char *a, const char *b)
{
	const unsigned char *p = (const unsigned char *)a, *q = (const unsigned char *)b;
	unsigned c, d;

	while (*p && *q) {
		c = fold_next(&p);
		d = fold_next(&q);
		if (c != d)
			return c < d ? -1 : 1;
	}
	return (*p != 0) - (*q != 0);
}

static int node_cmp(const void *pa, const void *pb)
{
	const struct node *a = *(struct node *const *)pa, *b = *(struct node *const *)pb;
	int n;

	if (a->fold != b->fold)
		return a->fold < b->fold ? -1 : 1;
	n = fold_cmp(a->v.key, b->v.key);
	if (n == 0)
		n = strcmp(a->v.key, b->v.key);
	if (n == 0)
		n = a->key_off < b->key_off ? -1 : 1;
	return n;
}

/* Two names of one object that are equal but for case. True when that is a fault. */
static bool is_fault(const struct reader *r, struct aqe_json *obj, const struct node *a,
		     const struct node *b)
{
	if (a->fold != b->fold || fold_cmp(a->v.key, b->v.key) != 0)
		return false;
	if (strcmp(a->v.key, b->v.key) == 0 || !r->limits->fold_dups_ok)
		return true;
	obj->fold_dup = true;
	return false;
}

static int fail_names(struct reader *r, const struct node *a, const struct node *b)
{
	AQE_AUTO_BUF struct aqe_buf one = AQE_BUF_INIT((size_t)4 * NAME_TEXT_MAX);
	AQE_AUTO_BUF struct aqe_buf two = AQE_BUF_INIT((size_t)4 * NAME_TEXT_MAX);
	const struct node *late = a->key_off < b->key_off ? b : a;

	aqe_buf_quote(&one, late->v.key, NAME_TEXT_MAX);
	aqe_buf_quote(&two, late == b ? a->v.key : b->v.key, NAME_TEXT_MAX);
	seek_offset(r, late->key_off);
	if (strcmp(a->v.key, b->v.key) == 0)
		r->rc = aqe_err_at(r->e, AQE_E_MALFORMED, r->line, column(r), "duplicate key '%s'",
				   aqe_buf_str(&one));
	else
		r->rc = aqe_err_at(r->e, AQE_E_MALFORMED, r->line, column(r),
				   "key '%s' differs from '%s' only in letter case",
				   aqe_buf_str(&one), aqe_buf_str(&two));
	return 0;
}

static const struct node *as_node(const struct aqe_json *v)
{
	return (const struct node *)(const void *)v;
}

static int check_pairwise(struct reader *r, struct aqe_json *obj)
{
	const struct aqe_json *a, *b;

	for (b = obj->first; b; b = b->next)
		for (a = obj->first; a != b; a = a->next)
			if (is_fault(r, obj, as_node(a), as_node(b)))
				return fail_names(r, as_node(a), as_node(b));
	return 1;
}

static int check_sorted(struct reader *r, struct aqe_json *obj)
{
	AQE_AUTO_FREE const struct node **list = calloc(obj->len, sizeof(struct node *));
	size_t n = 0;

	if (!list)
		return fail_nomem(r);
	for (const struct aqe_json *v = obj->first; v; v = v->next)
		list[n++] = as_node(v);
	qsort(list, n, sizeof(struct node *), node_cmp);
	for (size_t i = 1; i < n; i++)
		if (is_fault(r, obj, list[i - 1], list[i]))
			return fail_names(r, list[i - 1], list[i]);
	return 1;
}

/* ---- building ---- */

static struct node *new_node(struct reader *r, enum aqe_json_type type)
{
	struct node *n = aqe_arena_alloc(r->arena, sizeof(*n));

	if (!n)
		return NULL;
	*n = r->key; /* name, its place and hash; empty outside objects */
	n->v.type = type;
	n->v.line = r->line;
	n->v.col = column(r);
	n->v.parent = r->open;
	return n;
}

/* Adds a value whose token yajl has just read. NULL after a failure. */
static struct aqe_json *add_value(struct reader *r, enum aqe_json_type type)
{
	struct aqe_json *open = r->open;
	struct node *n;

	seek_token(r);
	if (++r->values > r->limits->values) {
		(void)fail(r, AQE_E_LIMIT, "too many values");
		return NULL;
	}
	if (open && open->len >= r->limits->entries) {
		(void)fail(r, AQE_E_LIMIT,
			   open->type == AQE_JSON_ARRAY ? "array has too many entries"
							: "object has too many members");
		return NULL;
	}
	n = new_node(r, type);
	if (!n) {
		(void)fail_nomem(r);
		return NULL;
	}
	if (!open)
		r->root = &n->v;
	else if (open->last)
		open->last->next = &n->v;
	else
		open->first = &n->v;
	if (open) {
		open->last = &n->v;
		open->len++;
	}
	pass_token(r);
	return &n->v;
}

static int add_text(struct reader *r, enum aqe_json_type type, const char *p, size_t n)
{
	struct aqe_json *v = add_value(r, type);

	if (!v)
		return 0;
	v->text = aqe_arena_ndup(r->arena, p, n);
	v->len = n;
	return v->text ? 1 : fail_nomem(r);
}

static int open_container(struct reader *r, enum aqe_json_type type)
{
	struct aqe_json *v;

	if (r->depth >= r->limits->depth || r->depth >= DEPTH_MAX) {
		seek_token(r);
		return fail(r, AQE_E_LIMIT, "nested too deeply");
	}
	v = add_value(r, type);
	if (!v)
		return 0;
	r->depth++;
	r->open = v;
	r->key = (struct node){ 0 };
	return 1;
}

static int close_container(struct reader *r)
{
	seek_token(r);
	pass_token(r);
	r->depth--;
	r->open = r->open->parent;
	r->key = (struct node){ 0 };
	return 1;
}

static int on_null(void *ctx)
{
	return add_value(ctx, AQE_JSON_NULL) != NULL;
}

static int on_boolean(void *ctx, int value)
{
	struct aqe_json *v = add_value(ctx, AQE_JSON_BOOL);

	if (!v)
		return 0;
	v->boolean = value != 0;
	return 1;
}

static int on_number(void *ctx, const char *p, size_t n)
{
	return add_text(ctx, AQE_JSON_NUMBER, p, n);
}

static int on_string(void *ctx, const unsigned char *p, size_t n)
{
	return add_text(ctx, AQE_JSON_STRING, (const char *)p, n);
}

static int on_key(void *ctx, const unsigned char *p, size_t n)
{
	struct reader *r = ctx;

	seek_token(r);
	r->key.key_off = (uint32_t)r->off; /* the reader takes no text that needs more */
	r->key.v.key = aqe_arena_ndup(r->arena, (const char *)p, n);
	if (!r->key.v.key)
		return fail_nomem(r);
	r->key.fold = fold_hash(r->key.v.key);
	pass_token(r);
	return 1;
}

static int on_start_map(void *ctx)
{
	return open_container(ctx, AQE_JSON_OBJECT);
}

static int on_end_map(void *ctx)
{
	struct reader *r = ctx;
	int ok = r->open->len <= PAIRWISE_MAX ? check_pairwise(r, r->open)
					      : check_sorted(r, r->open);

	return ok ? close_container(r) : 0;
}

static int on_start_array(void *ctx)
{
	return open_container(ctx, AQE_JSON_ARRAY);
}

static int on_end_array(void *ctx)
{
	return close_container(ctx);
}

static const yajl_callbacks CALLBACKS = {
	.yajl_null = on_null,
	.yajl_boolean = on_boolean,
	.yajl_number = on_number, /* with it, yajl converts no number itself */
	.yajl_string = on_string,
	.yajl_start_map = on_start_map,
	.yajl_map_key = on_key,
	.yajl_end_map = on_end_map,
	.yajl_start_array = on_start_array,
	.yajl_end_array = on_end_array,
};

/* ---- running ---- */

/* yajl's own words, without its "parse error: " and line end. */
static int fail_grammar(struct reader *r)
{
	unsigned char *said = yajl_get_error(r->yajl, 0, (const unsigned char *)r->text, r->len);
	const char *why = said ? strstr((const char *)said, ": ") : NULL;
	size_t n;

	seek_fault(r);
	why = why ? why + 2 : "not JSON";
	n = strcspn(why, "\n");
	if (n > 0 && why[n - 1] == '.')
		n--;
	r->rc = aqe_err_at(r->e, AQE_E_MALFORMED, r->line, column(r), "%.*s", (int)n, why);
	if (said)
		yajl_free_error(r->yajl, said);
	return r->rc;
}

/* Runs yajl over the clean part of the text. */
static int run(struct reader *r, struct pool *pool, bool whole)
{
	yajl_alloc_funcs funcs = { pool_malloc, pool_realloc, pool_free, pool };
	yajl_status status;

	r->yajl = yajl_alloc(&CALLBACKS, &funcs, r);
	if (!r->yajl)
		return aqe_err_set(r->e, AQE_E_INTERNAL, 0, "yajl does not start");
	/* The scan has checked the bytes, more strictly. Comments stay off, which is the default.
	 */
	(void)yajl_config(r->yajl, yajl_dont_validate_strings, 1);
	status = yajl_parse(r->yajl, (const unsigned char *)r->text, r->len);
	if (status == yajl_status_ok && whole) {
		r->finishing = true;
		status = yajl_complete_parse(r->yajl);
	}
	if (status == yajl_status_error)
		(void)fail_grammar(r);
	else if (status == yajl_status_client_canceled)
		assert(r->rc != 0);
	yajl_free(r->yajl);
	return r->rc;
}

int aqe_json_parse(struct aqe_arena *a, const char *text, size_t len,
		   const struct aqe_json_limits *limits, struct aqe_json **ret, struct aqe_err *e)
{
	struct reader r = { .arena = a, .limits = limits, .text = text, .line = 1, .e = e };
	AQE_AUTO_FREE char *memory = NULL;
	struct aqe_json_scan scan = { 0 };
	struct pool pool;
	int rc;

	if (len > limits->bytes || len >= UINT32_MAX) {
		seek_offset(&r, limits->bytes < len ? limits->bytes : 0);
		(void)fail(&r, AQE_E_LIMIT, "document is too large");
		return r.rc;
	}
	aqe_json_scan(text, len, limits, &scan);
	r.len = scan.clean;
	pool = (struct pool){ NULL, 0, POOL_FIXED + 8 * (POOL_BUFFER + scan.longest) };
	pool.p = memory = malloc(pool.size);
	if (!memory)
		return aqe_err_at(e, AQE_E_NOMEM, 1, 1, "out of memory");
	/* A fault of the grammar before a fault of the bytes is what a reader wants to see. */
	rc = run(&r, &pool, scan.code == 0);
	if (rc == 0 && scan.code != 0) {
		seek_offset(&r, scan.bad);
		rc = aqe_err_at(e, (enum aqe_code)scan.code, r.line, column(&r), "%s", scan.why);
	}
	if (rc)
		return rc;
	assert(r.root && !r.open);
	*ret = r.root;
	return AQE_OK;
}
