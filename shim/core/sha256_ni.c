/* SPDX-License-Identifier: MIT */
#include "shim/core/sha256_ni.h"

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__)
#include <immintrin.h>
#include <sys/platform/x86.h>

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes. */
static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

/* Asked of libc, which knows: the CPUID instruction itself leaves a virtual machine, 6 us a time.
 */
bool aqe_sha256_ni_usable(void)
{
	return CPU_FEATURE_ACTIVE(SHA) && CPU_FEATURE_ACTIVE(SSE4_1) && CPU_FEATURE_ACTIVE(SSSE3);
}

__attribute__((target("sha,sse4.1"))) static __m128i load(const void *p)
{
	return _mm_loadu_si128(p);
}

/* The instructions keep the state as the halves ABEF and CDGH and do two rounds each; a step of the
 * loop is four rounds, with four words of the message schedule in one register. */
__attribute__((target("sha,sse4.1"))) static void block(__m128i half[2], const uint8_t *p)
{
	const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i abef = half[0], cdgh = half[1], w[4];

#pragma GCC unroll 16
	for (int i = 0; i < 16; i++) {
		__m128i k, *now = &w[i & 3], *last = &w[(i + 3) & 3];

		if (i < 4) {
			*now = _mm_shuffle_epi8(load(p + (size_t)i * 16), big_endian);
		} else {
			k = _mm_sha256msg1_epu32(*now, w[(i + 1) & 3]);
			k = _mm_add_epi32(k, _mm_alignr_epi8(*last, w[(i + 2) & 3], 4));
			*now = _mm_sha256msg2_epu32(k, *last);
		}
		k = _mm_add_epi32(*now, load(K + (size_t)i * 4));
		cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
		abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
	}
	half[0] = _mm_add_epi32(half[0], abef);
	half[1] = _mm_add_epi32(half[1], cdgh);
}

__attribute__((target("sha,sse4.1"))) void aqe_sha256_ni(uint32_t state[8], const uint8_t *p,
							 size_t n)
{
	/* lanes from the lowest: A B C D and E F G H become F E B A and H G D C */
	__m128i badc = _mm_shuffle_epi32(load(state), 0xb1);
	__m128i hgfe = _mm_shuffle_epi32(load(state + 4), 0x1b);
	__m128i half[2] = { _mm_alignr_epi8(badc, hgfe, 8), _mm_blend_epi16(hgfe, badc, 0xf0) };

	for (; n > 0; n--, p += 64)
		block(half, p);
	badc = _mm_shuffle_epi32(half[0], 0x1b);
	hgfe = _mm_shuffle_epi32(half[1], 0xb1);
	_mm_storeu_si128((void *)state, _mm_blend_epi16(badc, hgfe, 0xf0));
	_mm_storeu_si128((void *)(state + 4), _mm_alignr_epi8(hgfe, badc, 8));
}

#else

bool aqe_sha256_ni_usable(void)
{
	return false;
}

void aqe_sha256_ni(uint32_t state[8], const uint8_t *p, size_t n)
{
	(void)state, (void)p, (void)n; /* never called */
}

#endif
