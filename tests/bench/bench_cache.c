/* SPDX-License-Identifier: MIT */
/* The embedding cache: look-ups and stores of 768 floats in each back end beside the bare thing,
 * the memory it takes, and a replayed trace of an agent. bench_cache [SQLITE-FOLDER] */
#include <hiredis/hiredis.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/embed.h"
#include "cache/memory.h"
#include "cache/sqlite.h"
#include "tests/fakes/fake_upstream.h"
#include "tests/fakes/real_redis.h"

#define DIM    768U
#define ROUNDS 20000
#define KEYS   2000U

static int bad;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_size(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *t, int n)
{
	qsort(t, (size_t)n, sizeof(*t), by_size);
	return t[n / 2];
}

static void row(const char *what, double got, const char *unit, double budget, bool at_least)
{
	const bool ok = budget <= 0 || (at_least ? got >= budget : got <= budget);

	printf("%-58s %10.2f %s", what, got, unit);
	if (budget > 0)
		printf("   budget %s %.2f%s", at_least ? ">=" : "<=", budget, ok ? "" : "  MISSED");
	printf("\n");
	bad += !ok;
}

static struct cache_key key_of(unsigned n)
{
	struct cache_key k;

	cache_key_make(&(struct cache_key_parts){ .model = "m", .content = &n, .len = sizeof(n) },
		       &k);
	return k;
}

static void must(int rc, const struct aqe_err *e)
{
	if (!rc)
		return;
	fprintf(stderr, "bench_cache: %s\n", e->text);
	exit(1);
}

static void fill(float *v, uint32_t dim, unsigned n)
{
	for (uint32_t i = 0; i < dim; i++)
		v[i] = (float)n / 1000.0f + (float)i / 4096.0f;
}

/* Medians of get and put through the whole cache: verification, statistics, clock. */
static void time_cache(const struct cache_config *cfg, double *ret_get, double *ret_put)
{
	static double t[ROUNDS];
	struct cache_item it = CACHE_ITEM_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	struct cache *c = NULL;
	float v[DIM];

	must(cache_open(cfg, NULL, &c, &e), &e);
	for (int i = 0; i < ROUNDS / 4; i++) {
		const struct cache_key k = key_of((unsigned)i % KEYS);
		const double began = now_us();

		fill(v, DIM, (unsigned)i);
		must(cache_item_encode(c, &k, &(struct cache_numbers){ v, NULL, DIM }, &it, NULL,
				       &e),
		     &e);
		must(cache_put(c, &it, 1, &e), &e);
		t[i] = now_us() - began;
	}
	*ret_put = median(t, ROUNDS / 4);
	for (int i = 0; i < ROUNDS; i++) {
		double began;

		it.key = key_of((unsigned)(i * 7) % KEYS);
		began = now_us();
		must(cache_get(c, &it, 1, NULL, &e), &e);
		t[i] = now_us() - began;
		if (!it.found)
			must(aqe_err_set(&e, AQE_E_INTERNAL, 0, "a miss"), &e);
	}
	*ret_get = median(t, ROUNDS);
	aqe_buf_done(&it.value);
	cache_close(c);
}

/* ---- bare ---- */

static double bare_sqlite(const char *path)
{
	static double t[ROUNDS];
	static char blob[DIM * 4], out[DIM * 4];
	sqlite3_stmt *put, *get;
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, "PRAGMA journal_mode=WAL; CREATE TABLE t(k BLOB PRIMARY KEY, v BLOB)",
			 NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO t VALUES(?,?)", -1, &put, NULL) !=
		    SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT v FROM t WHERE k=?", -1, &get, NULL) != SQLITE_OK)
		exit(1);
	for (unsigned i = 0; i < KEYS; i++) {
		const struct cache_key k = key_of(i);

		sqlite3_bind_blob(put, 1, k.b, 32, SQLITE_STATIC);
		sqlite3_bind_blob(put, 2, blob, sizeof(blob), SQLITE_STATIC);
		sqlite3_step(put);
		sqlite3_reset(put);
	}
	for (int i = 0; i < ROUNDS; i++) {
		const struct cache_key k = key_of((unsigned)(i * 7) % KEYS);
		const double began = now_us();

		sqlite3_bind_blob(get, 1, k.b, 32, SQLITE_STATIC);
		if (sqlite3_step(get) == SQLITE_ROW)
			memcpy(out, sqlite3_column_blob(get, 0), sizeof(out));
		sqlite3_reset(get);
		t[i] = now_us() - began;
	}
	sqlite3_finalize(put);
	sqlite3_finalize(get);
	sqlite3_close(db);
	return median(t, ROUNDS);
}

static double bare_redis(int port)
{
	static double t[ROUNDS];
	static char blob[DIM * 4];
	redisContext *c = redisConnect("127.0.0.1", port);

	if (!c || c->err)
		exit(1);
	freeReplyObject(redisCommand(c, "SET bare %b", blob, sizeof(blob)));
	for (int i = 0; i < ROUNDS; i++) {
		const double began = now_us();
		redisReply *r = redisCommand(c, "GET bare");

		if (!r || r->len != sizeof(blob))
			exit(1);
		freeReplyObject(r);
		t[i] = now_us() - began;
	}
	redisFree(c);
	return median(t, ROUNDS);
}

/* ---- memory ---- */

static double resident_mb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		exit(1);
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576.0;
}

static void time_memory(uint32_t dim)
{
	const double before = resident_mb(), payload = 10000.0 * dim * 4 / 1048576.0;
	const struct cache_memory_opts o = { 10000, (uint64_t)1 << 30, 0 };
	struct cache_now now = { 1750000000000, 1 };
	struct cache_store s = CACHE_STORE_INIT;
	struct cache_item it = CACHE_ITEM_INIT;
	struct aqe_err e = AQE_ERR_INIT;
	float v[1536];
	char what[96];
	double mb;

	must(cache_memory_new(&o, &s, &e), &e);
	must(cache_store_init(&s, &e), &e);
	for (unsigned i = 0; i < 10000; i++) {
		const struct cache_value head = { .dim = dim,
						  .created_ms = now.wall_ms,
						  .ttl_ms = 1000 };

		it.key = key_of(i);
		it.created_ms = now.wall_ms;
		it.ttl_ms = 1000;
		aqe_buf_clear(&it.value);
		fill(v, dim, i);
		must(cache_value_encode(&it.key, &head, v, &it.value, &e), &e);
		must(cache_store_set(&s, &it, 1, &now, &e), &e);
	}
	mb = resident_mb() - before;
	snprintf(what, sizeof(what), "memory store, 10,000 x %u: resident", dim);
	row(what, mb, "MB", dim == 1536 ? 100 : 50, false);
	snprintf(what, sizeof(what), "memory store, 10,000 x %u: resident / payload", dim);
	row(what, mb / payload, "x", 1.1, false);
	aqe_buf_done(&it.value);
	cache_store_close(&s);
}

/* ---- a trace: an agent reads chunks of a code base, popular ones often, and edits some ---- */

#define CHUNKS  3000
#define LOOKUPS 20000
#define SLOW_MS 500

static void trace(void)
{
	static double t[LOOKUPS], sums[CHUNKS];
	static unsigned version[CHUNKS];
	struct fake_upstream up;
	struct cache_config cfg;
	struct cache_embedder *em = NULL;
	struct cache *c = NULL;
	struct aqe_err e = AQE_ERR_INIT;
	struct cache_stats st;
	unsigned seed = 1;
	double sum = 0;

	fake_upstream_init(&up, DIM);
	cache_config_init(&cfg);
	cfg.own_ticks = true;
	cfg.upstream.kind = "openai";
	cfg.upstream.url = "http://up";
	must(cache_open(&cfg, NULL, &c, &e), &e);
	must(cache_embedder_new(&(struct cache_embed_opts){ c, &cfg.upstream, NULL, up.port,
							    up.gate },
				&em, &e),
	     &e);
	for (int i = 0; i < CHUNKS; i++)
		sums[i] = sum += 1.0 / pow(i + 1, 1.1);
	for (int i = 0; i < LOOKUPS; i++) {
		const double at = (double)rand_r(&seed) / RAND_MAX * sum;
		struct cache_embedded got = CACHE_EMBEDDED_INIT;
		char text[64];
		struct cache_text one = { text, 0 };
		const struct cache_ask ask = {
			.dialect = CACHE_OPENAI, .model = "m", .extra = "", .texts = &one, .n = 1
		};
		unsigned chunk = 0;
		double began;

		while (chunk + 1 < CHUNKS && sums[chunk] < at)
			chunk++;
		if (rand_r(&seed) % 100 < 2) /* an edit */
			version[chunk]++;
		one.n = (size_t)snprintf(text, sizeof(text), "chunk %u, edit %u", chunk,
					 version[chunk]);
		began = now_us();
		must(cache_embed(em, &ask, &got, &e), &e);
		t[i] = now_us() - began +
		       (double)got.fetched * SLOW_MS * 1000; /* not slept, counted */
		cache_embedded_done(&got);
	}
	cache_stats(c, &st);
	row("trace, 20,000 look-ups: hit rate", cache_stats_rate(&st) * 100, "%", 80, true);
	qsort(t, LOOKUPS, sizeof(t[0]), by_size);
	row("trace, upstream of 500 ms: median look-up", t[LOOKUPS / 2] / 1000, "ms", 0, false);
	row("trace: how much faster than without the cache", SLOW_MS * 1000 / t[LOOKUPS / 2], "x",
	    10, true);
	row("trace: p99 look-up", t[LOOKUPS / 100 * 99] / 1000, "ms", 0, false);
	cache_embedder_free(em);
	cache_close(c);
}

static void paired(const char *folder)
{
	struct real_redis server = { .port = 0 };
	char path[256], bare_path[256];
	struct cache_config cfg;
	double get, put, bare;

	snprintf(path, sizeof(path), "%s/ours.db", folder);
	snprintf(bare_path, sizeof(bare_path), "%s/bare.db", folder);
	cache_config_init(&cfg);
	cfg.own_ticks = true;
	time_cache(&cfg, &get, &put);
	row("memory: get of 768 floats, verified", get, "us", 2, false);
	row("memory: put", put, "us", 0, false);
	cfg.backend = CACHE_SQLITE;
	cfg.sqlite_path = path;
	time_cache(&cfg, &get, &put);
	bare = bare_sqlite(bare_path);
	row("sqlite: get", get, "us", 25, false);
	row("sqlite: put", put, "us", 0, false);
	row("bare SQLite: SELECT of the same bytes", bare, "us", 0, false);
	row("sqlite get / bare SQLite", get / bare, "x", 0, false);
	unlink(path);
	unlink(bare_path);
	if (!real_redis_start(&server)) {
		printf("redis: redis-server is not installed\n");
		return;
	}
	cfg.backend = CACHE_REDIS;
	cfg.fallback = false;
	cfg.redis.where.at.port = (uint16_t)server.port;
	bare = bare_redis(server.port);
	time_cache(&cfg, &get, &put);
	row("redis: get", get, "us", 0, false);
	row("redis: put", put, "us", 0, false);
	row("bare hiredis: GET of the same bytes", bare, "us", 0, false);
	row("redis get / bare GET", get / bare, "x", 1.3, false);
	real_redis_stop(&server);
}

int main(int argc, char **argv)
{
	time_memory(1536);
	time_memory(768);
	paired(argc > 1 ? argv[1] : "/tmp");
	trace();
	return bad ? 1 : 0;
}
