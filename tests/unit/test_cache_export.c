/* SPDX-License-Identifier: MIT */
#include "cache/export.h"

#include "shim/core/base64.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"
#include "tests/unit/cache_util.h"

static struct util_clock clk;
static struct cache_config cfg;
static struct cache *cache;
static struct aqe_err e;
static unsigned progressed;

static void setup(void)
{
	util_clock_init(&clk);
	cache_config_init(&cfg);
	cfg.own_ticks = true;
	ck_assert_ok(cache_open(&cfg, &clk.port, &cache, &e), e);
}

static void teardown(void)
{
	cache_close(cache);
}

static int to_buf(void *self, const void *p, size_t n, struct aqe_err *err)
{
	aqe_buf_add(self, p, n);
	return aqe_buf_ok(self, err);
}

static int to_full_disk(void *self, const void *p, size_t n, struct aqe_err *err)
{
	(void)p;
	(void)n;
	return ++*(unsigned *)self > 2 ? aqe_err_set(err, AQE_E_SYS, ENOSPC, "write") : 0;
}

static void on_progress(void *self, uint64_t done, uint64_t total)
{
	(void)self;
	ck_assert_uint_le(done, total);
	progressed++;
}

static void fill(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct cache_item it = util_item(i, UTIL_DIM, UTIL_START, UTIL_TTL_MS);

		ck_assert_ok(cache_put(cache, &it, 1, &e), e);
		aqe_buf_done(&it.value);
	}
}

static void export_to(struct aqe_buf *b, uint64_t want)
{
	const struct cache_export_opts o = { to_buf, on_progress, b };
	uint64_t n = 0;

	ck_assert_ok(cache_export(cache, &o, &n, &e), e);
	ck_assert_uint_eq(n, want);
}

struct result {
	uint64_t entries, damaged, line;
	int rc;
	struct aqe_err e;
};

/* Reads bytes as an export; what is no damage must be right. */
static struct result import(const char *p, size_t len)
{
	struct cache_item item = CACHE_ITEM_INIT;
	struct result r = { .e = AQE_ERR_INIT };
	enum cache_import_line what;
	struct cache_import im;
	const char *end;

	cache_import_init(&im);
	for (const char *at = p; !r.rc && at < p + len; at = end + 1) {
		end = memchr(at, '\n', (size_t)(p + len - at));
		if (!end)
			end = p + len;
		r.rc = cache_import_line(&im, at, (size_t)(end - at), &item, &what, &r.e);
		if (!r.rc && what == CACHE_IMPORT_ENTRY) {
			unsigned i = 0;
			struct cache_key k = util_key(0);

			while (i < 1000 && !cache_key_equal(&k, &item.key))
				k = util_key(++i);
			ck_assert(util_is(&item, i));
		}
	}
	if (!r.rc)
		r.rc = cache_import_end(&im, &r.e);
	aqe_buf_done(&item.value);
	r.entries = im.entries;
	r.damaged = im.damaged;
	r.line = im.line;
	return r;
}

START_TEST(export__comes_back)
{
	static const unsigned COUNTS[] = { 0, 1, 255, 256, 257, 600 }; /* pages of 256 */
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 22);
	struct result r;

	fill(COUNTS[_i]);
	export_to(&b, COUNTS[_i]);
	r = import(b.p, b.len);
	ck_assert_ok(r.rc, r.e);
	ck_assert(r.entries == COUNTS[_i] && r.damaged == 0 && r.line == COUNTS[_i] + 2);
	ck_assert(COUNTS[_i] == 0 || progressed > 0);
	ck_assert(aqe_starts(b.p, "{\"aqeCacheExport\":1,\"created\":\""));
}
END_TEST

START_TEST(export__leaves_out_what_is_too_old)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);

	fill(3);
	util_clock_add(&clk, UTIL_TTL_MS + 1);
	export_to(&b, 0);
	ck_assert_ok(import(b.p, b.len).rc, e);
}
END_TEST

START_TEST(export__ends_with_its_file)
{
	unsigned lines = 0;
	const struct cache_export_opts o = { to_full_disk, NULL, &lines };
	uint64_t n = 0;

	fill(10);
	ck_assert_fault(cache_export(cache, &o, &n, &e), AQE_E_SYS, e, "write");
}
END_TEST

/* Any line that is gone, doubled, moved or changed is found, at the latest by the trailer. */
START_TEST(import__shows_changes)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 20);
	AQE_AUTO_BUF struct aqe_buf c = AQE_BUF_INIT(1 << 20);
	const char *line[8], *end;

	fill(3);
	export_to(&b, 3);
	end = b.p;
	for (size_t i = 0; i < 5; i++) {
		line[i] = end;
		end = strchr(end, '\n') + 1;
	}
	line[5] = end;
	for (size_t cut = 0; cut < 5; cut++) { /* one line less */
		aqe_buf_clear(&c);
		aqe_buf_add(&c, b.p, (size_t)(line[cut] - b.p));
		aqe_buf_add(&c, line[cut + 1], (size_t)(line[5] - line[cut + 1]));
		ck_assert_int_eq(import(c.p, c.len).rc, AQE_E_MALFORMED);
	}
	aqe_buf_clear(&c); /* two lines changed places */
	aqe_buf_add(&c, b.p, (size_t)(line[1] - b.p));
	aqe_buf_add(&c, line[2], (size_t)(line[3] - line[2]));
	aqe_buf_add(&c, line[1], (size_t)(line[2] - line[1]));
	aqe_buf_add(&c, line[3], (size_t)(line[5] - line[3]));
	ck_assert_int_eq(import(c.p, c.len).rc, AQE_E_MALFORMED);
	aqe_buf_clear(&c); /* a line after the end */
	aqe_buf_add(&c, b.p, b.len);
	aqe_buf_add(&c, line[1], (size_t)(line[2] - line[1]));
	ck_assert_int_eq(import(c.p, c.len).rc, AQE_E_MALFORMED);
	for (size_t at = 0; at < b.len; at += 7) { /* a bit of any byte */
		struct result r;

		b.p[at] = (char)(b.p[at] ^ 1);
		r = import(b.p, b.len);
		ck_assert_msg(r.rc == AQE_E_MALFORMED || r.rc == AQE_E_LIMIT, "byte %zu", at);
		b.p[at] = (char)(b.p[at] ^ 1);
	}
}
END_TEST

static const struct {
	const char *text, *why;
	uint32_t line;
} HOSTILE[] = {
	{ "", "no trailer", 1 },
	{ "{}\n", "not an export", 1 },
	{ "{\"aqeCacheExport\":2}\n", "another version", 1 },
	{ "{\"aqeCacheExport\":\"1\"}\n", "not an export", 1 },
	{ "[[[[[[[[\n", NULL, 1 },
	{ "{\"aqeCacheExport\":1}\n{\"key\":\"zz\",\"value\":\"\"}\n", "not an entry", 2 },
	{ "{\"aqeCacheExport\":1}\n{\"value\":\"AAAA\"}\n", "not an entry", 2 },
	{ "{\"aqeCacheExport\":1}\n{\"aqeCacheExport\":1}\n", "not an entry", 2 },
	{ "{\"aqeCacheExport\":1}\n{\"entries\":0,\"sha256\":\"x\"}\n", "wrong digest", 2 },
	{ "{\"aqeCacheExport\":1}\n{\"entries\":9,\"sha256\":\"x\"}\n", "entries are missing", 2 },
	{ "{\"aqeCacheExport\":1}\n{\"entries\":-1,\"sha256\":\"x\"}\n", "wrong trailer", 2 },
	{ "{\"aqeCacheExport\":1}\n{\"key\":\"a\",\"key\":\"a\"}\n", "duplicate", 2 },
	{ "{\"aqeCacheExport\":1}\n\n", NULL, 2 },
};

START_TEST(import__refuses_hostile_files)
{
	struct result r = import(HOSTILE[_i].text, strlen(HOSTILE[_i].text));

	ck_assert(r.rc < 0);
	ck_assert_msg(!HOSTILE[_i].why || strstr(r.e.text, HOSTILE[_i].why), "%s", r.e.text);
	ck_assert_uint_eq(r.e.line, HOSTILE[_i].line);
}
END_TEST

/* Bytes that are an entry of another key, or end early, are damage and not taken. */
START_TEST(import__counts_damage)
{
	struct cache_item it = util_item(1, UTIL_DIM, UTIL_START, UTIL_TTL_MS);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1 << 16);
	struct cache_key other = util_key(2);
	struct result r;
	char key[CACHE_KEY_TEXT];

	cache_key_format(&other, key);
	aqe_buf_addf(&b, "{\"aqeCacheExport\":1}\n{\"key\":\"%s\",\"value\":\"", key);
	aqe_base64_encode(&b, it.value.p, it.value.len);
	aqe_buf_addf(&b, "\"}\n{\"key\":\"%s\",\"value\":\"!!!\"}\n", key);
	r = import(b.p, b.len);
	ck_assert(r.rc == AQE_E_MALFORMED && r.damaged == 2 && r.entries == 0);
	aqe_buf_done(&it.value);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("export");
	TCase *t = tcase_create("export");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, export__comes_back, 0, 6);
	tcase_add_test(t, export__leaves_out_what_is_too_old);
	tcase_add_test(t, export__ends_with_its_file);
	tcase_add_test(t, import__shows_changes);
	tcase_add_loop_test(t, import__refuses_hostile_files, 0, AQE_COUNT(HOSTILE));
	tcase_add_test(t, import__counts_damage);
	suite_add_tcase(s, t);
	return unit_run(s);
}
