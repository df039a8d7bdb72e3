/* SPDX-License-Identifier: MIT */
/* libcurl, loaded when it is first needed (lazy.h). */
#ifndef AQE_AQE_CURL_H
#define AQE_AQE_CURL_H

#include <curl/curl.h>

#include "shim/core/err.h"

#define SHIM_CURL_FUNCTIONS(X) \
	X(global_init)         \
	X(slist_append)        \
	X(slist_free_all)      \
	X(easy_init)           \
	X(easy_cleanup)        \
	X(easy_reset)          \
	X(easy_setopt)         \
	X(easy_getinfo)        \
	X(easy_perform)        \
	X(easy_pause)          \
	X(easy_send)           \
	X(easy_recv)           \
	X(easy_strerror)       \
	X(multi_init)          \
	X(multi_cleanup)       \
	X(multi_add_handle)    \
	X(multi_remove_handle) \
	X(multi_info_read)     \
	X(multi_perform)       \
	X(multi_poll)          \
	X(multi_wakeup)

/* curl_NAME() is shim_curl.NAME(). All are NULL until shim_curl_load() has succeeded. */
#define SHIM_CURL_MEMBER(name) __typeof__(curl_##name) *(name);
extern struct shim_curl {
	SHIM_CURL_FUNCTIONS(SHIM_CURL_MEMBER)
} shim_curl;
#undef SHIM_CURL_MEMBER

/* Loads and initialises it, once a process; may be called by several threads. AQE_E_ABSENT: it is
 * not installed, or too old. */
AQE_MUST_CHECK int shim_curl_load(struct aqe_err *e);

#endif
