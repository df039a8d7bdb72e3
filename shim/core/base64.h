/* SPDX-License-Identifier: MIT */
/* Base64 of RFC 4648, section 4: the usual alphabet, padded, nothing else. */
#ifndef AQE_CORE_BASE64_H
#define AQE_CORE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/core/buf.h"

/* Appends the encoding; failures stick to `b`. */
void aqe_base64_encode(struct aqe_buf *b, const void *data, size_t n);
/* Appends what `text` stands for; false for any character, length or padding that encode() would
 * not have written (then `b` is as before), or when `b` has no room. */
bool aqe_base64_decode(struct aqe_buf *b, const char *text, size_t n);

#endif
