// SPDX-License-Identifier: Apache-2.0
// The loop that looks bytes up in a table.
//
// AVX-512 VBMI selects from two registers by the lower seven bits of each byte. The table fills
// four registers; the highest bit chooses between the results of both halves.
#ifndef INF_BACKENDS_CPU_KERNELS_MAP_LOOKUP_LOOP_H
#define INF_BACKENDS_CPU_KERNELS_MAP_LOOKUP_LOOP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __AVX512VBMI__
#include <immintrin.h>
#endif

// Implements inf_q8_lookup.bytes().
static inline void look_up_bytes(const uint8_t *table, size_t count, const uint8_t *x, uint8_t *y)
{
    size_t i = 0;
#ifdef __AVX512VBMI__
    const __m512i a = _mm512_loadu_si512(table);
    const __m512i b = _mm512_loadu_si512(table + 64);
    const __m512i c = _mm512_loadu_si512(table + 128);
    const __m512i d = _mm512_loadu_si512(table + 192);
    for (; i + 64 <= count; i += 64) {
        __m512i at = _mm512_loadu_si512(x + i);
        __m512i lower = _mm512_permutex2var_epi8(a, at, b);
        __m512i upper = _mm512_permutex2var_epi8(c, at, d);
        __mmask64 is_upper = _mm512_movepi8_mask(at);
        _mm512_storeu_si512(y + i, _mm512_mask_mov_epi8(lower, is_upper, upper));
    }
#endif
    for (; i < count; i++)
        y[i] = table[x[i]];
}

#endif
