/* SPDX-License-Identifier: MIT */
/* The cache as a file: JSON lines, a header, one entry a line, a trailer with their number and a
 * digest over everything before it. Any back end can read what any other wrote. */
#ifndef AQE_CACHE_EXPORT_H
#define AQE_CACHE_EXPORT_H

#include "cache/cache.h"
#include "shim/core/sha256.h"

#define CACHE_EXPORT_LINE_MAX ((size_t)512 << 10)

/* Takes the file's bytes; non-zero ends the export with that code. */
typedef int cache_export_fn(void *self, const void *p, size_t n, struct aqe_err *e);
/* Called now and then with what was done and (about) how much there is. */
typedef void cache_progress_fn(void *self, uint64_t done, uint64_t total);

struct cache_export_opts {
	cache_export_fn *write;
	cache_progress_fn *progress; /* may be NULL */
	void *self;                  /* for both */
};
/* Writes every entry that can be read and is no damage; *ret_n: how many. */
AQE_MUST_CHECK int cache_export(struct cache *c, const struct cache_export_opts *o, uint64_t *ret_n,
				struct aqe_err *e);

/* ---- reading, line by line ---- */
enum cache_import_line {
	CACHE_IMPORT_HEADER,
	CACHE_IMPORT_ENTRY,   /* *item has it */
	CACHE_IMPORT_DAMAGED, /* an entry whose bytes are not what they were */
	CACHE_IMPORT_TRAILER, /* the file is whole */
};
struct cache_import {
	uint64_t line; /* of the last line read, from 1 */
	uint64_t entries, damaged;
	bool header, trailer;
	struct aqe_sha256_ctx hash;
};
void cache_import_init(struct cache_import *im);
/* Reads the next line, without its line break, into *ret and, for an entry, `item` (whose buffer is
 * filled anew). AQE_E_MALFORMED or AQE_E_LIMIT with the line: the file is no export, or has been
 * changed. */
AQE_MUST_CHECK int cache_import_line(struct cache_import *im, const char *p, size_t n,
				     struct cache_item *item, enum cache_import_line *ret,
				     struct aqe_err *e);
/* After the last line: AQE_E_MALFORMED when the trailer is missing. */
AQE_MUST_CHECK int cache_import_end(const struct cache_import *im, struct aqe_err *e);

#endif
