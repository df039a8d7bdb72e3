/* SPDX-License-Identifier: MIT */
/* In place of libdl in aqe-shim (the Makefile's --defsym): SQLite can load extensions, and nothing
 * is ever to be loaded into the runtime. Without these the static link would carry the loader. */
#ifndef AQE_SHIM_NO_DL_H
#define AQE_SHIM_NO_DL_H

void *shim_no_dlopen(const char *file, int mode);
void *shim_no_dlsym(void *handle, const char *name);
int shim_no_dlclose(void *handle);
char *shim_no_dlerror(void);

#endif
