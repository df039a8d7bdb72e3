/* SPDX-License-Identifier: MIT */
/* Lines of an export: what is taken for an entry decodes; a trailer counts what came before it. */
#include <assert.h>
#include <string.h>

#include "cache/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *last = p + size;
	struct cache_item item = CACHE_ITEM_INIT;
	enum cache_import_line kind;
	struct cache_import im;
	struct cache_value v;
	int rc = 0;

	cache_import_init(&im);
	while (p < last && !rc) {
		const char *end = memchr(p, '\n', (size_t)(last - p));
		const size_t n = end ? (size_t)(end - p) : (size_t)(last - p);

		rc = cache_import_line(&im, p, n, &item, &kind, NULL);
		if (!rc && kind == CACHE_IMPORT_ENTRY)
			assert(!cache_value_decode(&item.key, item.value.p, item.value.len, &v,
						   NULL));
		p += n + 1;
	}
	assert(cache_import_end(&im, NULL) == 0 || !im.trailer);
	aqe_buf_done(&item.value);
	return 0;
}
