/* SPDX-License-Identifier: MIT */
/* Libraries that are loaded when they are first needed. libcurl and libarchive bring about forty
 * others along; with them in the program's own list every command would pay for loading them. */
#ifndef AQE_CORE_LAZY_H
#define AQE_CORE_LAZY_H

#include <stddef.h>

#include "shim/core/err.h"

/* Where the address of a function goes: a member of the caller's struct of function pointers. */
struct aqe_lazy_symbol {
	const char *name;
	size_t offset;
};

/* Loads `file` (the name under which the linker would have listed it) by the dynamic linker's
 * usual search, for the life of the process, and fills `api`. AQE_E_ABSENT: the library is not
 * there, or lacks one of the functions; `api` is untouched. Not for two threads at once. */
AQE_MUST_CHECK int aqe_lazy_load(const char *file, const struct aqe_lazy_symbol *symbols, size_t n,
				 void *api, struct aqe_err *e);

#endif
