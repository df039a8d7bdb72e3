/* SPDX-License-Identifier: MIT */
/* Internal to the JSON reader: the look at the raw bytes before yajl sees them. yajl accepts
 * overlong UTF-8, raw and lone surrogates, \u0000, \v and \f; all of that is found here. */
#ifndef AQE_CORE_JSON_SCAN_H
#define AQE_CORE_JSON_SCAN_H

#include <stddef.h>

struct aqe_json_limits;

struct aqe_json_scan {
	int code;        /* 0, AQE_E_MALFORMED or AQE_E_LIMIT */
	const char *why; /* fault in words when code is not 0 */
	size_t bad;      /* offset of the fault */
	size_t clean;    /* the bytes before this offset are free of faults and hold only whole
			  * strings; the length of the text when code is 0 */
	size_t longest;  /* decoded length of the longest string or number, for yajl's buffers */
};

/* Looks at `len` bytes at `text`, up to the first fault. Checks strings, numbers' lengths and
 * control characters, not the grammar. */
void aqe_json_scan(const char *text, size_t len, const struct aqe_json_limits *limits,
		   struct aqe_json_scan *ret);

/* How many bytes from the start of `text` stand for themselves in a JSON string: ASCII without
 * control characters, quote and backslash. */
size_t aqe_json_plain_run(const char *text, size_t len);

#endif
