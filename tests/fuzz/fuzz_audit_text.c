/* SPDX-License-Identifier: MIT */
/* Foreign text on a terminal and in the report steers and marks up nothing; times, durations and
 * positions are read as they are written, or refused. */
#include <assert.h>
#include <string.h>

#include "shim/aqe/audit_html.h"
#include "shim/aqe/audit_ship.h"
#include "shim/aqe/audit_table.h"
#include "shim/aqe/audit_when.h"
#include "shim/core/cleanup.h"
#include "shim/core/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AQE_AUTO_BUF struct aqe_buf in = AQE_BUF_INIT(4096), text = AQE_BUF_INIT(1 << 16),
				    html = AQE_BUF_INIT(1 << 18);
	struct shim_ship_position p;
	char line[SHIM_SHIP_LINE];
	int64_t ns = 0;

	if (aqe_buf_add(&in, data, size))
		return 0;
	shim_text_escape(&text, aqe_buf_str(&in));
	assert(aqe_utf8_ok(aqe_buf_str(&text), text.len, NULL));
	assert(shim_text_width(aqe_buf_str(&text)) <= 2 * text.len);
	for (size_t i = 0; i < text.len; i++)
		assert((unsigned char)text.p[i] >= ' ' && text.p[i] != 0x7f);
	shim_html_text(&html, aqe_buf_str(&in));
	assert(!strpbrk(aqe_buf_str(&html), "<>\"'"));
	if (shim_when_parse(aqe_buf_str(&in), SHIM_WHEN_UNTIL, INT64_C(1) << 60, &ns) ||
	    shim_duration_parse(aqe_buf_str(&in), &ns))
		assert(ns >= 0);
	if (shim_ship_parse(aqe_buf_str(&in), in.len, &p)) {
		shim_ship_format(&p, line);
		assert(strlen(line) == in.len && memcmp(line, in.p, in.len) == 0);
	}
	return 0;
}
