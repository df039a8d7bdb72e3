/* SPDX-License-Identifier: MIT */
#include "shim/core/lazy.h"

#include <dlfcn.h>
#include <string.h>

/* dlerror() names the file by itself. */
static int absent(const char *file, struct aqe_err *e)
{
	const char *why = dlerror();

	return aqe_err_set(e, AQE_E_ABSENT, 0, "cannot load %s: %.160s", file, why ? why : "?");
}

int aqe_lazy_load(const char *file, const struct aqe_lazy_symbol *symbols, size_t n, void *api,
		  struct aqe_err *e)
{
	void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!lib)
		return absent(file, e);
	for (size_t i = 0; i < n; i++) {
		if (!dlsym(lib, symbols[i].name))
			return absent(file, e);
	}
	/* C has no conversion between pointers to data and to functions, POSIX has this one */
	for (size_t i = 0; i < n; i++) {
		void *address = dlsym(lib, symbols[i].name);

		memcpy((char *)api + symbols[i].offset, &address, sizeof(address));
	}
	return 0;
}
