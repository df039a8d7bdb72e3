/* SPDX-License-Identifier: MIT */
/* Internal to audit/: the database's tables. `verify` compares the file's schema with this list, so
 * that no trigger, view or index of somebody else's stands between the rows and a reader. */
#ifndef AQE_AUDIT_SCHEMA_H
#define AQE_AUDIT_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

#define AUDIT_APPLICATION_ID 0x61716561U /* "aqea" */
#define AUDIT_SCHEMA_VERSION 1

extern const char *const AUDIT_MIGRATIONS[AUDIT_SCHEMA_VERSION];

/* A row of sqlite_schema, in order of name. `sql` NULL: an index that SQLite makes itself. */
struct audit_object {
	const char *type, *name, *table, *sql;
};
extern const struct audit_object AUDIT_OBJECTS[];
extern const size_t AUDIT_OBJECTS_COUNT;

/* The columns of table `row` in the order of AUDIT_FIELDS, then hash. */
#define AUDIT_COLUMNS                                                                             \
	"seq,time_ns,boot_ns,kind,action,container,agent_id,agent_type,image,domain,port,method," \
	"path,reason,rule,status,response_ns,duration_ns,bytes_in,bytes_out,policy,waiver,meta,"  \
	"hash"

#endif
