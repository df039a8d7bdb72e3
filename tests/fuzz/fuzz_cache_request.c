/* SPDX-License-Identifier: MIT */
/* The same result whether the bytes come at once or in two parts; a body that parses as a question
 * makes keys and a question to the upstream. */
#include <assert.h>
#include <string.h>

#include "cache/proto.h"
#include "cache/request.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_body(const struct aqe_buf *body, enum cache_dialect d)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)64 << 20);
	const size_t first = 0;
	struct cache_ask ask;
	struct cache_key k;

	if (cache_ask_read(a, d, aqe_buf_str(body), body->len, &ask, NULL) || ask.n == 0)
		return;
	assert(ask.n <= CACHE_ASK_TEXTS_MAX && strlen(ask.extra) <= CACHE_ASK_EXTRA_MAX);
	cache_ask_key(&ask, ask.n - 1, &(struct cache_source){ "t", "p", "r", true }, &k);
	assert(cache_proto_question(&ask, cache_proto_dialect(&ask, true), &first, 1, &b, NULL) ==
	       0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cache_request one = CACHE_REQUEST_INIT, two = CACHE_REQUEST_INIT;
	const char *text = (const char *)data;
	size_t used = 0, used2 = 0;
	int status = cache_request_parse(&one, text, size, &used), part;

	part = cache_request_parse(&two, text, size / 2, &used2);
	if (!part && used2 == 0)
		part = cache_request_parse(&two, text, size, &used2);
	assert(used <= size && (status == 0 || used == 0));
	assert(part == status && (status || used2 == used));
	if (used > 0)
		assert(one.body.len == two.body.len && strcmp(one.path, two.path) == 0);
	for (int d = CACHE_OLLAMA_EMBED; d <= CACHE_OPENAI && used > 0; d++)
		check_body(&one.body, (enum cache_dialect)d);
	cache_request_done(&one);
	cache_request_done(&two);
	return 0;
}
