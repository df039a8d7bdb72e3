/* SPDX-License-Identifier: MIT */
/* SHA-256's compression function by the processor's own instructions (x86-64's SHA extensions),
 * some six times as fast as in C. Of use to sha256.c only. */
#ifndef AQE_CORE_SHA256_NI_H
#define AQE_CORE_SHA256_NI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when this processor has the instructions; then aqe_sha256_ni() may be called. */
bool aqe_sha256_ni_usable(void);
/* Takes `n` blocks of 64 bytes into `state`. */
void aqe_sha256_ni(uint32_t state[8], const uint8_t *p, size_t n);

#endif
