/* SPDX-License-Identifier: MIT */
/* Chunks of doubling size. Objects are taken from the low end of a chunk, text from its high end,
 * so that text needs no alignment. */
#include "shim/core/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/core/text.h"

#define CHUNK_FIRST ((size_t)8 * 1024)
/* Below glibc's threshold for mmap(2), which would cost a system call for each chunk. */
#define CHUNK_MAX ((size_t)64 * 1024)

#define ALIGN     alignof(max_align_t)

struct chunk {
	struct chunk *older;
	size_t low, high; /* free space of data[] */
	alignas(max_align_t) char data[];
};

struct aqe_arena {
	struct chunk *newest;
	size_t left;       /* bytes it may still hand out */
	size_t chunk_size; /* of the next chunk */
};

struct aqe_arena *aqe_arena_new(size_t max)
{
	struct aqe_arena *a = malloc(sizeof(*a));

	if (!a)
		return NULL;
	a->newest = NULL;
	a->left = max;
	a->chunk_size = CHUNK_FIRST;
	return a;
}

void aqe_arena_free(struct aqe_arena *a)
{
	struct chunk *c, *older;

	if (!a)
		return;
	for (c = a->newest; c; c = older) {
		older = c->older;
		free(c);
	}
	free(a);
}

/* A chunk with `n` free bytes. A block too large for ordinary chunks gets its own, behind the
 * newest, so that the space left there is not lost. */
static struct chunk *add_chunk(struct aqe_arena *a, size_t n)
{
	bool own = n > a->chunk_size / 2;
	size_t size = own ? n : a->chunk_size;
	struct chunk *c;
	size_t total;

	if (!aqe_size_add(sizeof(*c), size, &total))
		return NULL;
	c = malloc(total);
	if (!c)
		return NULL;
	c->low = 0;
	c->high = size;
	if (own && a->newest) {
		c->older = a->newest->older;
		a->newest->older = c;
		return c;
	}
	c->older = a->newest;
	a->newest = c;
	if (a->chunk_size < CHUNK_MAX)
		a->chunk_size *= 2;
	return c;
}

void *aqe_arena_raw(struct aqe_arena *a, size_t n)
{
	struct chunk *c = a->newest;
	size_t size;
	void *p;

	if (n > a->left || n > SIZE_MAX - ALIGN)
		return NULL;
	size = (n / ALIGN + (n % ALIGN != 0)) * ALIGN;
	if (size > a->left)
		return NULL;
	if (!c || c->high - c->low < size)
		c = add_chunk(a, size);
	if (!c)
		return NULL;
	p = c->data + c->low; /* always aligned: only this function moves it */
	c->low += size;
	a->left -= size;
	return p;
}

void *aqe_arena_alloc(struct aqe_arena *a, size_t n)
{
	void *p = aqe_arena_raw(a, n);

	return p ? memset(p, 0, n) : NULL;
}

void *aqe_arena_calloc(struct aqe_arena *a, size_t count, size_t size)
{
	size_t n;

	if (!aqe_size_mul(count, size, &n))
		return NULL;
	return aqe_arena_alloc(a, n);
}

/* `n` bytes for text, not zeroed. */
static char *alloc_text(struct aqe_arena *a, size_t n)
{
	struct chunk *c = a->newest;

	if (n > a->left)
		return NULL;
	if (!c || c->high - c->low < n)
		c = add_chunk(a, n);
	if (!c)
		return NULL;
	c->high -= n;
	a->left -= n;
	return c->data + c->high;
}

char *aqe_arena_ndup(struct aqe_arena *a, const char *s, size_t n)
{
	size_t size;
	char *p;

	if (!aqe_size_add(n, 1, &size))
		return NULL;
	p = alloc_text(a, size);
	if (!p)
		return NULL;
	if (n > 0)
		memcpy(p, s, n);
	p[n] = '\0';
	return p;
}

char *aqe_arena_dup(struct aqe_arena *a, const char *s)
{
	return aqe_arena_ndup(a, s, strlen(s));
}

char *aqe_arena_fmt(struct aqe_arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	p = alloc_text(a, (size_t)n + 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)n + 1, fmt, ap); /* measured above */
	va_end(ap);
	return p;
}
