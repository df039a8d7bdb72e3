/* SPDX-License-Identifier: MIT */
/* aqe cache export, import. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cache/export.h"
#include "shim/aqe/cache_cmd.h"
#include "shim/aqe/lines.h"
#include "shim/aqe/progress.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"
#include "shim/exit.h"

#define BATCH     64
#define WRITE_MAX ((size_t)256 << 10) /* bytes held before they are written */

static const struct aqe_cli_opt OPTS[] = {
	{ "progress", 0, NULL, "show progress even where there is no terminal",
	  SHIM_CACHE_PROGRESS },
	SHIM_CACHE_OPTS_STORE,
	SHIM_CACHE_OPTS_END,
};

/* ---- export ---- */

struct out {
	int fd;
	struct aqe_buf held;
	struct shim_progress progress;
	uint64_t done, total;
};

static int write_out(void *self, const void *p, size_t n, struct aqe_err *e)
{
	struct out *o = self;
	int rc;

	aqe_buf_add(&o->held, p, n);
	rc = aqe_buf_ok(&o->held, e);
	if (rc || o->held.len < WRITE_MAX)
		return rc;
	rc = aqe_fs_write_all(o->fd, o->held.p, o->held.len, e);
	aqe_buf_clear(&o->held);
	return rc;
}

static void show(void *self, uint64_t done, uint64_t total)
{
	struct out *o = self;

	o->done = done;
	o->total = total;
	shim_progress_update(&o->progress, done, total);
}

/* Into FILE.part first: a file with its name is a whole one. */
static int export_to(struct shim_cache_cmd *c, struct out *o, uint64_t *ret_n, struct aqe_err *e)
{
	const struct cache_export_opts opts = { write_out, show, o };
	int rc = cache_export(c->cache, &opts, ret_n, e);

	if (!rc)
		rc = aqe_fs_write_all(o->fd, aqe_buf_str(&o->held), o->held.len, e);
	shim_progress_end(&o->progress, o->done, o->total);
	return rc;
}

static int export_file(struct shim_cache_cmd *c, struct out *o, uint64_t *ret_n, struct aqe_err *e)
{
	const char *part = aqe_arena_fmt(c->arena, "%s.part", c->operand);
	int rc;

	if (!part)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (aqe_str_eq(c->operand, "-")) {
		o->fd = STDOUT_FILENO;
		return export_to(c, o, ret_n, e);
	}
	o->fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (o->fd < 0)
		return aqe_err_set(e, AQE_E_SYS, errno, "make '%.200s'", part);
	rc = export_to(c, o, ret_n, e);
	if (!rc && fsync(o->fd) != 0 && errno != EINVAL)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "flush '%.200s'", part);
	(void)close(o->fd); /* flushed */
	if (!rc && rename(part, c->operand) != 0)
		rc = aqe_err_set(e, AQE_E_SYS, errno, "rename to '%.200s'", c->operand);
	if (rc)
		(void)unlink(part); /* what was said is worse */
	return rc;
}

int shim_cache_export(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "export",
		.synopsis = "[--path FILE | --redis-url URL | --config FILE] FILE",
		.about = "Writes all entries as JSON lines with a header and a trailer; '-' is "
			 "standard output. 'import' reads it into any back end.",
		.opts = OPTS,
	};
	struct out o = { .fd = -1, .held = AQE_BUF_INIT(WRITE_MAX + CACHE_EXPORT_LINE_MAX) };
	struct aqe_err e = AQE_ERR_INIT;
	struct shim_cache_cmd c;
	uint64_t n = 0;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, "FILE");

	if (rc < 0) {
		shim_progress_init(&o.progress, "export", c.progress);
		rc = shim_cache_cmd_open(&c, &e);
		if (!rc)
			rc = export_file(&c, &o, &n, &e);
		if (!rc)
			(void)fprintf(stderr, "aqe cache: %llu entries\n", (unsigned long long)n);
		rc = rc ? shim_cache_cmd_fail(&e) : SHIM_EXIT_OK;
	}
	aqe_buf_done(&o.held);
	shim_cache_cmd_done(&c);
	return rc;
}

/* ---- import ---- */

struct in {
	struct cache_import state;
	struct cache_item *items, *probes; /* BATCH each */
	size_t n;
	uint64_t stored, present, old;
};

/* What is there already is left alone: an import that was cut goes on where it ended. */
static int flush_batch(struct shim_cache_cmd *c, struct in *in, struct aqe_err *e)
{
	struct cache_now now;
	size_t keep = 0;
	int rc;

	CACHE_CLOCK_SYSTEM.now(NULL, &now);
	for (size_t i = 0; i < in->n; i++)
		in->probes[i].key = in->items[i].key;
	rc = cache_has(c->cache, in->probes, in->n, e);
	for (size_t i = 0; i < in->n && !rc; i++) {
		const struct cache_item item = in->items[i];
		const bool alive =
			cache_value_alive(item.created_ms, item.ttl_ms, c->cfg.ttl_ms, now.wall_ms);

		in->present += in->probes[i].found;
		in->old += !in->probes[i].found && !alive;
		if (in->probes[i].found || !alive)
			continue;
		in->items[i] = in->items[keep];
		in->items[keep++] = item;
	}
	if (!rc)
		rc = cache_put(c->cache, in->items, keep, e);
	in->stored += rc ? 0 : keep;
	in->n = 0;
	return rc;
}

static int import_lines(struct shim_cache_cmd *c, struct in *in, struct shim_lines *l,
			struct aqe_err *e)
{
	struct shim_progress progress;
	enum cache_import_line kind;
	const char *line;
	size_t n;
	int rc;

	shim_progress_init(&progress, "import", c->progress);
	while ((rc = shim_lines_next(l, &line, &n, e)) == 1) {
		rc = cache_import_line(&in->state, line, n, &in->items[in->n], &kind, e);
		if (rc)
			break;
		in->n += kind == CACHE_IMPORT_ENTRY;
		if (in->n == BATCH)
			rc = flush_batch(c, in, e);
		if (rc)
			break;
		shim_progress_update(&progress, l->at, l->size);
	}
	if (!rc && in->n > 0)
		rc = flush_batch(c, in, e);
	shim_progress_end(&progress, l->at, l->size);
	if (rc && e->line)
		return aqe_err_wrap(e, "%s:%u", c->operand, e->line);
	return rc;
}

static int import_file(struct shim_cache_cmd *c, struct in *in, struct aqe_err *e)
{
	struct shim_lines l;
	int rc = shim_lines_open(&l, c->operand, CACHE_EXPORT_LINE_MAX, e);

	cache_import_init(&in->state);
	in->items = cache_items_new(BATCH);
	in->probes = cache_items_new(BATCH);
	if (!rc && (!in->items || !in->probes))
		rc = aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	if (!rc)
		rc = import_lines(c, in, &l, e);
	if (!rc)
		rc = cache_import_end(&in->state, e);
	cache_items_free(in->items, BATCH);
	cache_items_free(in->probes, BATCH);
	shim_lines_close(&l);
	return rc;
}

static int tell_import(const struct shim_cache_cmd *c, const struct in *in)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(1024);

	aqe_buf_addf(&b,
		     c->json ? "{\"version\":1,\"stored\":%llu,\"present\":%llu,\"expired\":%llu,"
			       "\"damaged\":%llu,\"complete\":%s}\n"
			     : "stored %llu, there already %llu, too old %llu, damaged %llu%.0s\n",
		     (unsigned long long)in->stored, (unsigned long long)in->present,
		     (unsigned long long)in->old, (unsigned long long)in->state.damaged,
		     in->state.trailer ? "true" : "false");
	return shim_cache_cmd_print(&b);
}

int shim_cache_import(int argc, char **argv)
{
	static const struct aqe_cli_cmd CMD = {
		.name = "import",
		.synopsis = "[--path FILE | --redis-url URL | --config FILE] FILE",
		.about = "Reads what 'export' wrote; '-' is standard input. Entries that are there "
			 "already are left alone: run again, a cut import goes on. Exit status 1: "
			 "the "
			 "file is cut, changed or damaged; its good entries were stored.",
		.opts = OPTS,
	};
	struct aqe_err e = AQE_ERR_INIT;
	struct in in = { .n = 0 };
	struct shim_cache_cmd c;
	int rc = shim_cache_cmd_read(&c, &CMD, argc, argv, "FILE");

	if (rc < 0) {
		rc = shim_cache_cmd_open(&c, &e);
		if (!rc) {
			rc = import_file(&c, &in, &e);
			if (!rc && in.state.damaged)
				rc = aqe_err_set(&e, AQE_E_MALFORMED, 0, "%s: %llu damaged entries",
						 c.operand, (unsigned long long)in.state.damaged);
			if (tell_import(&c, &in))
				rc = AQE_E_SYS;
		}
		rc = rc ? shim_cache_cmd_fail(&e) : SHIM_EXIT_OK;
	}
	shim_cache_cmd_done(&c);
	return rc;
}
