// SPDX-License-Identifier: Apache-2.0
// Writes packed weights of 8 or 16 bits as floats. Compiled once for each ISA level; INF_NN_EXPAND
// is the name of the table that it defines. The loops are simple, so that the compiler makes vector
// instructions of them; only AVX-512 has an instruction for 16-bit floats here.
#include "backends/cpu/kernels/expand.h"

#include <string.h>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

// Panels of the ISA levels are 4 to 32 columns wide. A width that the compiler knows lets it keep
// all units in registers.
static inline __attribute__((always_inline)) void
expand_columns(size_t rows, const int8_t *restrict from, const float *restrict units,
               float *restrict to, const size_t width)
{
    for (size_t row = 0; row < rows; row++, from += width, to += width)
        for (size_t c = 0; c < width; c++)
            to[c] = (float)from[c] * units[c];
}

static void expand_bytes(size_t rows, size_t width, const int8_t *from, const float *units,
                         float *to)
{
    if (width == 32)
        expand_columns(rows, from, units, to, 32);
    else if (width == 16)
        expand_columns(rows, from, units, to, 16);
    else if (width == 8)
        expand_columns(rows, from, units, to, 8);
    else
        expand_columns(rows, from, units, to, width);
}

static float float_of_half(uint16_t half)
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

static void expand_halves(size_t count, const uint16_t *restrict from, float *restrict to)
{
    size_t i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(to + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(from + i))));
#endif
    for (; i < count; i++)
        to[i] = float_of_half(from[i]);
}

const struct inf_nn_expand INF_NN_EXPAND = {expand_bytes, expand_halves};
