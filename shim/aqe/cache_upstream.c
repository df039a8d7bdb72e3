/* SPDX-License-Identifier: MIT */
#include "shim/aqe/cache_upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/aqe/http.h"
#include "shim/core/cleanup.h"
#include "shim/core/fs.h"
#include "shim/core/text.h"

#define CREDENTIAL_MAX 8192
#define IDLE_MAX       64 /* clients kept */
#define ANSWER_MAX     ((size_t)64 << 20)

struct shim_cache_upstream {
	const struct cache_upstream_config *cfg;
	struct shim_cache_way way;
	struct aqe_buf credential; /* the whole header line */
	pthread_mutex_t lock;
	struct shim_http *idle[IDLE_MAX];
	size_t n_idle;
};

static int read_credential(struct shim_cache_upstream *u, struct aqe_err *e)
{
	AQE_AUTO_SECRET struct aqe_buf secret = AQE_BUF_INIT(CREDENTIAL_MAX);
	int rc = aqe_fs_read_secret(u->cfg->credential_file, "credential file", &secret, e);

	if (rc < 0)
		return rc;
	if (secret.len == 0)
		return aqe_err_set(e, AQE_E_UNTRUSTED, 0, "credential file: empty");
	aqe_buf_addf(&u->credential, "%s: %s%s", u->cfg->header, u->cfg->prefix, secret.p);
	return aqe_buf_ok(&u->credential, e);
}

static int take(struct shim_cache_upstream *u, struct shim_http **ret, struct aqe_err *e)
{
	const struct shim_http_opts o = { .flags = aqe_starts(u->cfg->url, "http://")
							   ? SHIM_HTTP_PLAIN
							   : 0,
					  .ca_file = u->cfg->ca_file,
					  .open_proxy = u->way.open_proxy,
					  .self = u->way.self };

	pthread_mutex_lock(&u->lock);
	*ret = u->n_idle > 0 ? u->idle[--u->n_idle] : NULL;
	pthread_mutex_unlock(&u->lock);
	return *ret ? 0 : shim_http_new(&o, ret, e);
}

static void give(struct shim_cache_upstream *u, struct shim_http *h)
{
	pthread_mutex_lock(&u->lock);
	if (u->n_idle < IDLE_MAX) {
		u->idle[u->n_idle++] = h;
		h = NULL;
	}
	pthread_mutex_unlock(&u->lock);
	shim_http_free(h);
}

static int send_to(void *self, struct cache_exchange *x, struct aqe_err *e)
{
	AQE_AUTO_BUF struct aqe_buf url = AQE_BUF_INIT(4096);
	struct shim_http_resp resp = SHIM_HTTP_RESP_INIT;
	struct shim_cache_upstream *u = self;
	const char *const headers[] = { "Content-Type: application/json",
					"Accept: application/json",
					u->credential.len ? u->credential.p : NULL, NULL };
	struct shim_http_req req = { .method = x->method,
				     .headers = headers,
				     .timeout_ms = x->timeout_ms,
				     .max_body = ANSWER_MAX };
	struct shim_http *h = NULL;
	const struct aqe_buf empty = x->answer;
	size_t n = strlen(u->cfg->url);
	int rc = take(u, &h, e);

	if (rc)
		return rc;
	while (n > 0 && u->cfg->url[n - 1] == '/')
		n--;
	aqe_buf_add(&url, u->cfg->url, n);
	aqe_buf_puts(&url, x->path);
	req.url = aqe_buf_str(&url);
	if (x->body) {
		req.body = aqe_buf_str(x->body);
		req.body_len = x->body->len;
	}
	rc = aqe_buf_ok(&url, e);
	if (!rc)
		rc = shim_http_send(h, &req, &resp, e);
	x->status = resp.status;
	x->retry_after_s = resp.retry_after_s;
	x->answer = resp.body; /* swapped, not copied */
	x->answer.max = empty.max;
	resp.body = empty;
	shim_http_resp_done(&resp);
	give(u, h);
	return rc;
}

/* The header's line. */
static int set_credential(struct shim_cache_upstream *u, const char *secret, struct aqe_err *e)
{
	aqe_buf_addf(&u->credential, "%s: %s%s", u->cfg->header, u->cfg->prefix, secret);
	return aqe_buf_ok(&u->credential, e);
}

int shim_cache_upstream_new(const struct cache_upstream_config *cfg,
			    const struct shim_cache_way *way, struct shim_cache_upstream **ret,
			    struct cache_upstream *ret_port, struct aqe_err *e)
{
	static const struct aqe_buf CREDENTIAL = AQE_BUF_INIT((size_t)2 * CREDENTIAL_MAX);
	struct shim_cache_upstream *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return aqe_err_set(e, AQE_E_NOMEM, 0, "out of memory");
	u->cfg = cfg;
	if (way)
		u->way = *way;
	u->credential = CREDENTIAL;
	pthread_mutex_init(&u->lock, NULL);
	rc = cfg->credential        ? set_credential(u, cfg->credential, e)
	     : cfg->credential_file ? read_credential(u, e)
				    : 0;
	if (rc) {
		shim_cache_upstream_free(u);
		return rc;
	}
	*ret = u;
	*ret_port = (struct cache_upstream){ send_to, u };
	return 0;
}

void shim_cache_upstream_free(struct shim_cache_upstream *u)
{
	if (!u)
		return;
	while (u->n_idle > 0)
		shim_http_free(u->idle[--u->n_idle]);
	aqe_buf_wipe(&u->credential);
	pthread_mutex_destroy(&u->lock);
	free(u);
}
