/* SPDX-License-Identifier: MIT */
/* Amounts as people write them on a command line, and as reports show them. */
#ifndef AQE_SANDBOX_SIZE_H
#define AQE_SANDBOX_SIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "1024", "512m", "2 GB", "1.5g": decimal digits with an optional fraction, an optional unit
 * b k m g t (powers of 1024, any case, "b" may follow), blanks around them. False for anything else
 * and for more than 2^63 - 1 bytes. */
bool shim_size_parse(const char *text, uint64_t *ret_bytes);
/* "500.0 B", "1.0 KB", "512.0 MB", "2.0 GB", "1.0 TB". */
#define SHIM_SIZE_TEXT 32
void shim_size_format(uint64_t bytes, char ret[SHIM_SIZE_TEXT]);
/* CPUs in thousandths: "2", "0.5", "1.25"; 1 to 1,000,000. */
bool shim_cpus_parse(const char *text, uint32_t *ret_milli);
/* "2", "0.5". */
void shim_cpus_format(uint32_t milli, char ret[SHIM_SIZE_TEXT]);

#endif
