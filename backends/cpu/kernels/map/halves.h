// SPDX-License-Identifier: Apache-2.0
// Converts 16-bit floats. AVX-512 has an instruction for it; elsewhere the compiler makes vector
// instructions of plain C.
#ifndef INF_BACKENDS_CPU_KERNELS_MAP_HALVES_H
#define INF_BACKENDS_CPU_KERNELS_MAP_HALVES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

// Returns the value of the binary16 bits `half`, which must be finite.
static inline float float_of_half(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    const float small = (float)(int32_t)magnitude * 0x1p-24f; // zero and denormals
    uint32_t denormal;
    float value;
    memcpy(&denormal, &small, sizeof denormal);
    const uint32_t bits = sign | (magnitude < 0x400u ? denormal : (magnitude << 13) + 0x38000000u);
    memcpy(&value, &bits, sizeof value);
    return value;
}

// Implements inf_nn_expand.halves().
static inline void expand_halves(size_t count, const uint16_t *restrict from, float *restrict to)
{
    size_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#endif
    for (; i < count; i++)
        to[i] = float_of_half(from[i]);
}

#endif
