/* SPDX-License-Identifier: MIT */
/* What decodes has the length it claims, finite numbers, a time to live, and encodes to the same.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "cache/value.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT(CACHE_VALUE_MAX),
				    in = AQE_BUF_INIT(CACHE_VALUE_MAX);
	const struct cache_key k = { { 7 } };
	static float v[CACHE_DIM_MAX];
	struct cache_value got;
	uint32_t sum;

	if (aqe_buf_add(&in, data, size) || size < CACHE_VALUE_HEAD)
		return 0;
	sum = cache_crc32c(cache_crc32c(0, k.b, sizeof(k.b)), in.p, 12);
	sum = cache_crc32c(sum, in.p + 16, in.len - 16);
	memcpy(in.p + 12, &sum, sizeof(sum)); /* past the checksum */
	if (cache_value_decode(&k, in.p, in.len, &got, NULL))
		return 0;
	assert(in.len == CACHE_VALUE_HEAD + (size_t)got.dim * 4 && got.ttl_ms > 0);
	cache_value_floats(&got, v);
	for (uint32_t i = 0; i < got.dim; i++)
		assert(isfinite(v[i]));
	assert(cache_value_encode(&k, &got, v, &b, NULL) == 0);
	assert(b.len == in.len && memcmp(b.p, in.p, b.len) == 0);
	return 0;
}
