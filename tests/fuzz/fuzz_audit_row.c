/* SPDX-License-Identifier: MIT */
/* Rows: what decodes encodes to the same bytes, what reads as JSON is written as the same row. */
#include <stdlib.h>
#include <string.h>

#include "audit/chain.h"
#include "audit/emit.h"
#include "shim/core/cleanup.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void try_encoding(struct aqe_arena *a, const unsigned char *data, size_t size)
{
	uint8_t out[AUDIT_ENCODING_MAX];
	struct audit_row r;

	if (audit_decode(a, data, size, &r, NULL) == 0 &&
	    (audit_encode(&r, out, sizeof(out)) != size || memcmp(out, data, size) != 0))
		abort();
}

static int read_row(struct aqe_arena *a, const void *p, size_t n, struct audit_row *r)
{
	struct aqe_json *v = NULL;
	uint8_t prev[32];
	bool has_prev;

	if (aqe_json_parse(a, p, n, &AQE_JSON_LIMITS_DEFAULT, &v, NULL) != 0)
		return AQE_E_MALFORMED;
	return audit_row_parse(a, v, r, prev, &has_prev, NULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	AQE_AUTO_ARENA struct aqe_arena *a = aqe_arena_new((size_t)64 << 20);
	AQE_AUTO_BUF struct aqe_buf b = AQE_BUF_INIT((size_t)1 << 20);
	struct audit_row r, again;

	try_encoding(a, data, size);
	if (read_row(a, data, size, &r) != 0)
		return 0;
	audit_row_json(&r, &b);
	if (read_row(a, b.p, b.len, &again) != 0 || !audit_row_equal(&r, &again))
		abort();
	return 0;
}
