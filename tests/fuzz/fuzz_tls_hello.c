/* SPDX-License-Identifier: MIT */
/* Any bytes as the first ones of a TLS connection: no prefix of an accepted hello is judged other
 * than "more", and nothing behind it matters. */
#include <assert.h>
#include <string.h>

#include "netpolicy/tls_hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct netpol_tls_hello hello, other;
	enum netpol_tls_verdict v = netpol_tls_hello_read(data, size, &hello), cut;
	size_t n = size;

	if (v == NETPOL_TLS_MORE)
		assert(size < NETPOL_TLS_BYTES_MAX);
	if (v != NETPOL_TLS_HELLO)
		return 0;
	assert(hello.name_len <= NETPOL_TLS_NAME_MAX && hello.name[hello.name_len] == '\0');
	assert(strlen(hello.alpn) <= NETPOL_TLS_ALPN_MAX);
	do
		cut = netpol_tls_hello_read(data, --n, &other);
	while (n > 0 && cut == NETPOL_TLS_HELLO);
	assert(n < NETPOL_TLS_BYTES_MAX && cut == NETPOL_TLS_MORE);
	assert(netpol_tls_hello_read(data, n + 1, &other) == NETPOL_TLS_HELLO);
	assert(memcmp(&hello, &other, sizeof(hello)) == 0);
	return 0;
}
