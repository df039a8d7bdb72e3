/* SPDX-License-Identifier: MIT */
/* One arena per parsed document: everything that belongs to it lives here and is freed whole. */
#ifndef AQE_CORE_ARENA_H
#define AQE_CORE_ARENA_H

#include <stddef.h>

#include "shim/core/err.h"

struct aqe_arena;

/* A new arena that hands out at most `max` bytes in all; NULL when there is no memory. */
struct aqe_arena *aqe_arena_new(size_t max);
/* Frees the arena and all it handed out. NULL is accepted. */
void aqe_arena_free(struct aqe_arena *a);

/* Zeroed memory aligned for any type; NULL when memory or the maximum is exhausted. */
void *aqe_arena_alloc(struct aqe_arena *a, size_t n);
/* The same without zeros: for large objects that are filled in part, because every page that is
 * touched costs some 10 us at a start. */
void *aqe_arena_raw(struct aqe_arena *a, size_t n);
/* Zeroed memory for `count` objects of `size`; overflow gives NULL. */
void *aqe_arena_calloc(struct aqe_arena *a, size_t count, size_t size);
/* NUL-terminated copies; NULL on failure. */
char *aqe_arena_dup(struct aqe_arena *a, const char *s);
char *aqe_arena_ndup(struct aqe_arena *a, const char *s, size_t n);
char *aqe_arena_fmt(struct aqe_arena *a, const char *fmt, ...) AQE_PRINTF(2, 3);

#endif
