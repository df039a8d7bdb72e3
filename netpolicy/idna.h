/* SPDX-License-Identifier: MIT */
/* Labels of policy entries that hold letters beyond ASCII, and A-labels ("xn--..."). Used when a
 * policy is loaded, never on what a client sends. */
#ifndef AQE_NETPOLICY_IDNA_H
#define AQE_NETPOLICY_IDNA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETPOL_IDNA_MAX 63 /* bytes of a label; of a U-label as well, it is never shorter */

/* Punycode (RFC 3492) without the "xn--". Decoding fails on an overflow, over NETPOL_IDNA_MAX code
 * points, surrogates and beyond U+10FFFF; encoding when the result is over `max` bytes. */
bool netpol_puny_decode(const char *p, size_t n, uint32_t ret[NETPOL_IDNA_MAX], size_t *ret_n);
bool netpol_puny_encode(const uint32_t *cp, size_t n, char *ret, size_t max, size_t *ret_n);

/* The A-label of a UTF-8 label of 1 or more bytes (lower case, RFC 5891 without mapping of anything
 * but case); plain ASCII labels come back in lower case, unchecked. An A-label must be the encoding
 * of what it decodes to. False: *ret_why says what is wrong. */
bool netpol_idna_label(const char *p, size_t n, char ret[NETPOL_IDNA_MAX + 1],
		       const char **ret_why);

#endif
