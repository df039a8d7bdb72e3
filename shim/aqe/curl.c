/* SPDX-License-Identifier: MIT */
#include "shim/aqe/curl.h"

#include <pthread.h>
#include <stddef.h>

#include "shim/core/lazy.h"
#include "shim/core/text.h"

#define SYMBOL(name) { "curl_" #name, offsetof(struct shim_curl, name) },
static const struct aqe_lazy_symbol SYMBOLS[] = { SHIM_CURL_FUNCTIONS(SYMBOL) };

struct shim_curl shim_curl;
static struct aqe_err not_ready = AQE_ERR_INIT;

static void load(void)
{
	if (aqe_lazy_load("libcurl.so.4", SYMBOLS, AQE_COUNT(SYMBOLS), &shim_curl, &not_ready) ==
		    0 &&
	    shim_curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		(void)aqe_err_set(&not_ready, AQE_E_NOMEM, 0, "libcurl does not start");
}

int shim_curl_load(struct aqe_err *e)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (pthread_once(&once, load) != 0)
		return aqe_err_set(e, AQE_E_INTERNAL, 0, "libcurl does not start");
	return not_ready.code == AQE_OK
		       ? 0
		       : aqe_err_set(e, not_ready.code, not_ready.sys, "%s", not_ready.text);
}
