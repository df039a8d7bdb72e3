/* SPDX-License-Identifier: MIT */
#include "shim/heap.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE     ((size_t)2 << 20)
#define HEAP_MAX  (16 << 20) /* below this nothing is mapped alone or given back */
#define OF_MALLOC 16         /* what malloc() keeps before a block */

/* Up to the boundary, never touched. volatile: the compiler would leave the call out. */
static void *volatile skipped;

void shim_heap_large(void)
{
	size_t left; /* to the boundary */
	char *p;

	/* all of it only saves time: nothing depends on any of these calls */
	(void)mallopt(M_MMAP_THRESHOLD, HEAP_MAX);
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_MAX);
	p = malloc(2 * LARGE); /* at the end of the heap, which becomes longer once */
	left = -(uintptr_t)p & (LARGE - 1);
	if (left <= OF_MALLOC || !p || madvise(p + left, LARGE, MADV_HUGEPAGE) != 0)
		left = OF_MALLOC;
	free(p);
	skipped = malloc(left - OF_MALLOC);
}
