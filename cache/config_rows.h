/* SPDX-License-Identifier: MIT */
/* The members of the configuration: one table for reading and for showing. */
#ifndef AQE_CACHE_CONFIG_ROWS_H
#define AQE_CACHE_CONFIG_ROWS_H

#include "cache/config.h"
#include "shim/core/json.h"

enum cache_kind {
	CACHE_K_U64,
	CACHE_K_I64,
	CACHE_K_UINT,
	CACHE_K_PORT,
	CACHE_K_BOOL,
	CACHE_K_SCOPE,
	CACHE_K_TEXT, /* min..max bytes */
	CACHE_K_PATH, /* absolute, canonical */
	CACHE_K_URL,  /* http:// or https:// */
	CACHE_K_OTHER /* read elsewhere */
};
/* What a user's policy may do below a system's. */
enum cache_tight {
	CACHE_T_NO,    /* nothing */
	CACHE_T_LOWER, /* make it lower, narrower, or false */
	CACHE_T_FREE,  /* anything: the user's own files */
};
struct cache_row {
	const char *name;
	enum cache_kind kind;
	size_t offset; /* in struct cache_config */
	uint64_t min, max;
	enum cache_tight tight;
};
struct cache_table {
	const char *pointer; /* of the object in the section */
	const struct cache_row *row;
	size_t n;
};
extern const struct cache_table CACHE_CONFIG_TABLES[]; /* the root first */
extern const size_t CACHE_CONFIG_TABLES_COUNT;
/* The members of agents.TYPE. */
extern const struct cache_table CACHE_CONFIG_AGENT;

/* The value of a row that is a number, a scope or true/false. */
uint64_t cache_row_number(const struct cache_config *cfg, const struct cache_row *r);
/* The value of a row that is a text; may be NULL. */
const char *cache_row_text(const struct cache_config *cfg, const struct cache_row *r);
bool cache_row_is_text(const struct cache_row *r);
/* Puts a member's value where its row says. */
AQE_MUST_CHECK int cache_row_read(const struct cache_row *r, const struct aqe_json *v,
				  struct cache_config *cfg, struct aqe_err *e);

#endif
