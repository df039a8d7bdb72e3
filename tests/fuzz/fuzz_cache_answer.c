/* SPDX-License-Identifier: MIT */
/* An upstream's answer gives as many embeddings as were asked for, of finite numbers, or an error.
 */
#include <assert.h>
#include <math.h>

#include "cache/proto.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20), words = AQE_BUF_INIT(4096);
	struct cache_model models[8];
	struct cache_vector v[3];
	size_t n = 0;

	if (aqe_buf_add(&b, data, size))
		return 0;
	for (int d = CACHE_OLLAMA_EMBED; d <= CACHE_OPENAI; d++) {
		AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)128 << 20);
		struct cache_answer got = { v, d == CACHE_OLLAMA_LEGACY ? 1 : size % 3 + 1, 0 };

		if (cache_proto_answer(a, (enum cache_dialect)d, &b, &got, NULL))
			continue;
		for (size_t i = 0; i < got.n; i++)
			assert(v[i].dim > 0 && v[i].dim <= CACHE_DIM_MAX &&
			       isfinite(v[i].v[v[i].dim - 1]));
	}
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)128 << 20);
	if (cache_proto_models(a, &b, models, 8, &n, NULL) == 0)
		assert(n <= 8);
	cache_proto_error(&b, &words);
	assert(!words.failed);
	return 0;
}
