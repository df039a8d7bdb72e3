/* SPDX-License-Identifier: MIT */
#include "audit/schema.h"

/* Hashes chain the rows of `row`; nothing else is evidence. Points carry their own signatures; the
 * id of the chain is part of the first hash. */
#define T_ROW                                                                                    \
	"CREATE TABLE row (seq INTEGER PRIMARY KEY, time_ns INTEGER NOT NULL, boot_ns INTEGER, " \
	"kind INTEGER NOT NULL, action INTEGER NOT NULL, container TEXT, agent_id TEXT, "        \
	"agent_type TEXT, image TEXT, domain TEXT, port INTEGER, method TEXT, path TEXT, "       \
	"reason TEXT, rule TEXT, status INTEGER, response_ns INTEGER, duration_ns INTEGER, "     \
	"bytes_in INTEGER, bytes_out INTEGER, policy TEXT, waiver TEXT, meta TEXT, "             \
	"hash BLOB NOT NULL) STRICT"
#define T_POINT                                                                                    \
	"CREATE TABLE point (seq INTEGER NOT NULL, kind INTEGER NOT NULL, hash BLOB NOT NULL, "    \
	"time_ns INTEGER NOT NULL, every INTEGER NOT NULL, key BLOB NOT NULL, sig BLOB NOT NULL, " \
	"PRIMARY KEY (seq, kind)) STRICT, WITHOUT ROWID"
#define T_CHAIN                                                                           \
	"CREATE TABLE chain (one INTEGER PRIMARY KEY CHECK (one = 1), id BLOB NOT NULL, " \
	"created_ns INTEGER NOT NULL) STRICT"

/* One for every filter, each in order of time within a value: a filter with a span of time and a
 * limit walks exactly the rows it shows. */
#define I_ACTION   "CREATE INDEX row_action ON row (action, time_ns)"
#define I_AGENT_ID "CREATE INDEX row_agent_id ON row (agent_id, time_ns) WHERE agent_id IS NOT NULL"
#define I_AGENT_TYPE \
	"CREATE INDEX row_agent_type ON row (agent_type, time_ns) WHERE agent_type IS NOT NULL"
#define I_CONTAINER \
	"CREATE INDEX row_container ON row (container, time_ns) WHERE container IS NOT NULL"
#define I_DOMAIN "CREATE INDEX row_domain ON row (domain, time_ns) WHERE domain IS NOT NULL"
#define I_KIND   "CREATE INDEX row_kind ON row (kind, time_ns)"
#define I_TIME   "CREATE INDEX row_time ON row (time_ns)"

const struct audit_object AUDIT_OBJECTS[] = {
	{ "table", "chain", "chain", T_CHAIN },
	{ "table", "point", "point", T_POINT },
	{ "table", "row", "row", T_ROW },
	{ "index", "row_action", "row", I_ACTION },
	{ "index", "row_agent_id", "row", I_AGENT_ID },
	{ "index", "row_agent_type", "row", I_AGENT_TYPE },
	{ "index", "row_container", "row", I_CONTAINER },
	{ "index", "row_domain", "row", I_DOMAIN },
	{ "index", "row_kind", "row", I_KIND },
	{ "index", "row_time", "row", I_TIME },
};
const size_t AUDIT_OBJECTS_COUNT = sizeof(AUDIT_OBJECTS) / sizeof(AUDIT_OBJECTS[0]);

/* Never change one that was released: add the next. */
const char *const AUDIT_MIGRATIONS[AUDIT_SCHEMA_VERSION] = {
	T_ROW ";" T_POINT ";" T_CHAIN ";" I_ACTION ";" I_AGENT_ID ";" I_AGENT_TYPE ";" I_CONTAINER
	      ";" I_DOMAIN ";" I_KIND ";" I_TIME ";"
	      "INSERT INTO chain VALUES (1, randomblob(32), "
	      "CAST(strftime('%s', 'now') AS INTEGER) * 1000000000)",
};
