/* SPDX-License-Identifier: MIT */
/* Failure counts on disk, a file an id, in a folder that only we can write. */
#ifndef AQE_SUPERVISOR_STORE_H
#define AQE_SUPERVISOR_STORE_H

#include <stdbool.h>

#include "shim/core/err.h"
#include "shim/supervisor/machine.h"

#define SHIM_STORE_ID_MAX  128  /* characters of an id */
#define SHIM_STORE_IDS_MAX 4096 /* ids in one folder; beyond it the one idle for longest goes */

/* 1 to SHIM_STORE_ID_MAX of [A-Za-z0-9_.-], not beginning with a dot. */
bool shim_store_id_ok(const char *id);

/* No record: all zero. A record that cannot be read is a hold, which only a reset lifts: a count
 * that was lost must not be a new chance (`ret_damaged`, may be NULL, is set). An instance that was
 * running before the machine was booted is gone. Fails only for a bad id. */
AQE_MUST_CHECK int shim_store_load(int dirfd, const char *id, struct shim_sup_saved *ret,
				   bool *ret_damaged, struct aqe_err *e);
/* Atomic and durable: the old record or the new one, whatever happens. */
AQE_MUST_CHECK int shim_store_save(int dirfd, const char *id, const struct shim_sup_saved *s,
				   struct aqe_err *e);
/* The id that is `text`, or the only one that begins with it (12 characters or more, as engines
 * show ids). AQE_E_ABSENT when there is none, AQE_E_USAGE when there are several. */
AQE_MUST_CHECK int shim_store_find(int dirfd, const char *text, char ret[SHIM_STORE_ID_MAX + 1],
				   struct aqe_err *e);
/* Absent is success. */
AQE_MUST_CHECK int shim_store_remove(int dirfd, const char *id, struct aqe_err *e);
/* One supervisor an id: AQE_E_REFUSED when another process holds it. Closing the descriptor lets
 * go. */
AQE_MUST_CHECK int shim_store_lock(int dirfd, const char *id, int *ret_fd, struct aqe_err *e);

#endif
