/* SPDX-License-Identifier: MIT */
#include "cache/export.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "shim/core/base64.h"
#include "shim/core/cleanup.h"
#include "shim/core/clock.h"
#include "shim/core/json.h"
#include "shim/core/text.h"

#define FORMAT    1
#define PAGE      256 /* keys at once */
#define ARENA_MAX ((size_t)4 << 20)

static const struct aqe_json_limits LINE_LIMITS = {
	.bytes = CACHE_EXPORT_LINE_MAX,
	.depth = 2,
	.values = 16,
	.entries = 16,
	.string = CACHE_EXPORT_LINE_MAX,
	.number = 20,
};

/* ---- writing ---- */

struct writer {
	struct cache *c;
	const struct cache_export_opts *o;
	struct aqe_sha256_ctx hash;
	struct aqe_buf line;
	uint64_t done, total;
};

static int put_line(struct writer *w, struct aqe_err *e)
{
	int rc;

	aqe_buf_putc(&w->line, '\n');
	rc = aqe_buf_ok(&w->line, e);
	if (rc)
		return rc;
	aqe_sha256_add(&w->hash, w->line.p, w->line.len);
	rc = w->o->write(w->o->self, w->line.p, w->line.len, e);
	aqe_buf_clear(&w->line);
	return rc;
}

static int put_page(struct writer *w, struct cache_item *items, size_t n, struct aqe_err *e)
{
	char key[CACHE_KEY_TEXT];
	int rc = cache_peek(w->c, items, n, NULL, e);

	for (size_t i = 0; i < n && !rc; i++) {
		if (!items[i].found) /* gone meanwhile, or too old */
			continue;
		cache_key_format(&items[i].key, key);
		aqe_buf_addf(&w->line, "{\"key\":\"%s\",\"value\":\"", key);
		aqe_base64_encode(&w->line, items[i].value.p, items[i].value.len);
		aqe_buf_puts(&w->line, "\"}");
		rc = put_line(w, e);
		w->done++;
	}
	if (w->o->progress)
		w->o->progress(w->o->self, w->done, w->total > w->done ? w->total : w->done);
	return rc;
}

static int put_entries(struct writer *w, struct aqe_err *e)
{
	struct cache_iter it = CACHE_ITER_INIT;
	struct cache_item *items = cache_items_new(PAGE);
	struct cache_key keys[PAGE];
	int rc = items ? 0 : aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	size_t n;

	while (items && !rc && !it.done) {
		rc = cache_keys(w->c, &it, keys, PAGE, &n, e);
		for (size_t i = 0; i < n && !rc; i++)
			items[i].key = keys[i];
		if (!rc)
			rc = put_page(w, items, n, e);
	}
	cache_iter_done(&it);
	cache_items_free(items, PAGE);
	return rc;
}

static void hex_of(struct aqe_sha256_ctx hash, char ret[CACHE_KEY_TEXT])
{
	struct cache_key digest; /* as long, and written alike */

	aqe_sha256_end(&hash, digest.b);
	cache_key_format(&digest, ret);
}

int cache_export(struct cache *c, const struct cache_export_opts *o, uint64_t *ret_n,
		 struct aqe_err *e)
{
	struct writer w = { .c = c, .o = o, .line = AQE_BUF_INIT(CACHE_EXPORT_LINE_MAX) };
	char created[AQE_TIME_TEXT], digest[CACHE_KEY_TEXT];
	int rc = cache_size(c, &w.total, NULL, e);

	if (rc)
		return rc;
	aqe_sha256_init(&w.hash);
	aqe_time_format(AQE_CLOCK_SYSTEM.now_s(AQE_CLOCK_SYSTEM.self), created);
	aqe_buf_addf(&w.line, "{\"aqeCacheExport\":%d,\"created\":\"%s\"}", FORMAT, created);
	rc = put_line(&w, e);
	if (!rc)
		rc = put_entries(&w, e);
	hex_of(w.hash, digest);
	aqe_buf_clear(&w.line);
	aqe_buf_addf(&w.line, "{\"entries\":%llu,\"sha256\":\"%s\"}", (unsigned long long)w.done,
		     digest);
	if (!rc)
		rc = put_line(&w, e);
	aqe_buf_done(&w.line);
	*ret_n = w.done;
	return rc;
}

/* ---- reading ---- */

void cache_import_init(struct cache_import *im)
{
	memset(im, 0, sizeof(*im));
	aqe_sha256_init(&im->hash);
}

static int bad(const struct cache_import *im, const char *what, struct aqe_err *e)
{
	return aqe_err_at(e, AQE_E_MALFORMED, (uint32_t)im->line, 1, "%s", what);
}

static int read_header(struct cache_import *im, const struct aqe_json *root, struct aqe_err *e)
{
	const struct aqe_json *v = aqe_json_get(root, "aqeCacheExport");
	uint64_t version = 0;

	if (!v || !aqe_json_to_u64(v, UINT32_MAX, &version))
		return bad(im, "not an export of the cache", e);
	if (version != FORMAT)
		return bad(im, "an export of another version", e);
	im->header = true;
	return 0;
}

static int read_trailer(struct cache_import *im, const struct aqe_json *root, struct aqe_err *e)
{
	const char *digest = NULL;
	char want[CACHE_KEY_TEXT];
	uint64_t entries = 0;
	int rc = aqe_json_get_u64(root, "entries", UINT64_MAX, &entries, e);

	if (rc >= 0)
		rc = aqe_json_get_str(root, "sha256", &digest, e);
	if (rc < 0)
		return bad(im, "a wrong trailer", e);
	if (entries != im->entries + im->damaged)
		return bad(im, "entries are missing, or too many", e);
	hex_of(im->hash, want);
	if (!aqe_str_eq(digest, want))
		return bad(im, "the file was changed: wrong digest", e);
	im->trailer = true;
	return 0;
}

/* 1: an entry; 0: its bytes are damaged; or an error. */
static int read_entry(const struct cache_import *im, const struct aqe_json *root,
		      struct cache_item *item, struct aqe_err *e)
{
	const struct aqe_json *value = aqe_json_get(root, "value");
	struct cache_value v;

	if (!cache_key_parse(aqe_json_str(aqe_json_get(root, "key")), &item->key) || !value ||
	    !aqe_json_str(value))
		return bad(im, "not an entry", e);
	aqe_buf_clear(&item->value);
	if (!aqe_base64_decode(&item->value, value->text, value->len) ||
	    cache_value_decode(&item->key, item->value.p, item->value.len, &v, NULL))
		return 0;
	item->created_ms = v.created_ms;
	item->ttl_ms = v.ttl_ms;
	item->found = true;
	return 1;
}

static int read_line(struct cache_import *im, const struct aqe_json *root, struct cache_item *item,
		     enum cache_import_line *ret, struct aqe_err *e)
{
	int rc;

	if (!im->header) {
		*ret = CACHE_IMPORT_HEADER;
		return read_header(im, root, e);
	}
	if (aqe_json_get(root, "sha256")) {
		*ret = CACHE_IMPORT_TRAILER;
		return read_trailer(im, root, e);
	}
	rc = read_entry(im, root, item, e);
	if (rc < 0)
		return rc;
	*ret = rc ? CACHE_IMPORT_ENTRY : CACHE_IMPORT_DAMAGED;
	im->entries += rc > 0;
	im->damaged += rc == 0;
	return 0;
}

int cache_import_line(struct cache_import *im, const char *p, size_t n, struct cache_item *item,
		      enum cache_import_line *ret, struct aqe_err *e)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new(ARENA_MAX);
	struct aqe_json *root = NULL;
	int rc;

	im->line++;
	if (im->trailer)
		return bad(im, "something after the trailer", e);
	if (!a)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	rc = aqe_json_parse(a, p, n, &LINE_LIMITS, &root, e);
	if (rc) {
		if (e)
			e->line = (uint32_t)im->line;
		return rc;
	}
	rc = read_line(im, root, item, ret, e);
	aqe_sha256_add(&im->hash, p, n);
	aqe_sha256_add(&im->hash, "\n", 1);
	return rc;
}

int cache_import_end(const struct cache_import *im, struct aqe_err *e)
{
	if (im->trailer)
		return 0;
	return aqe_err_at(e, AQE_E_MALFORMED, (uint32_t)im->line + 1, 1,
			  "the file is cut: %llu entries, no trailer",
			  (unsigned long long)im->entries);
}
