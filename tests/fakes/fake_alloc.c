/* SPDX-License-Identifier: MIT */
#include "tests/fakes/fake_alloc.h"

#include <errno.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);

static unsigned left; /* allocations until one fails; 0 = none will */
static bool failed;

void fake_alloc_arm(unsigned nth)
{
	failed = false;
	left = nth;
}

bool fake_alloc_disarm(void)
{
	left = 0;
	return failed;
}

bool fake_alloc_fails(void)
{
	if (left == 0 || --left > 0)
		return false;
	failed = true;
	errno = ENOMEM;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return fake_alloc_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t count, size_t n)
{
	return fake_alloc_fails() ? NULL : __real_calloc(count, n);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fake_alloc_fails() ? NULL : __real_realloc(p, n);
}
