/* SPDX-License-Identifier: MIT */
/* --redis-url. A password in it would be seen by everybody who lists processes: refused. */
#ifndef AQE_AQE_CACHE_URL_H
#define AQE_AQE_CACHE_URL_H

#include "cache/config.h"

/* "redis://[USER@]HOST[:PORT][/DB]", "rediss://..." for TLS, "unix:///PATH". IPv6 addresses in
 * brackets. AQE_E_USAGE. */
AQE_MUST_CHECK int shim_cache_url(struct aqe_arena *a, const char *url, struct cache_config *cfg,
				  struct aqe_err *e);

#endif
