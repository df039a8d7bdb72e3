/* SPDX-License-Identifier: MIT */
#include "shim/no_dl.h"

#include <stddef.h>

void *shim_no_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

void *shim_no_dlsym(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

int shim_no_dlclose(void *handle)
{
	(void)handle;
	return -1;
}

char *shim_no_dlerror(void)
{
	return NULL;
}
