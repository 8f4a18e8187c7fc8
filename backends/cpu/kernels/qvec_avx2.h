// SPDX-License-Identifier: Apache-2.0
// Implements qvec.h for vectors of 256 bits: with the dot product of VNNI if the ISA level has it,
// otherwise with AVX2, which has no exact product of bytes, so that bytes are widened to 16 bits.
#ifndef INF_BACKENDS_CPU_KERNELS_QVEC_AVX2_H
#define INF_BACKENDS_CPU_KERNELS_QVEC_AVX2_H

#ifdef __AVX2__

#include <immintrin.h>

#include "backends/cpu/kernels/qvec.h"

#define INF_QVEC_WIDTH 8
#define INF_QVEC_ROWS  6 // pixels whose sums, two vectors each, fit into registers
typedef __m256i inf_qvec;
typedef __m256 inf_qvec_float;

INF_QVEC_INLINE __m256i qvec_mask(size_t count)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int32_t)count), lanes);
}

INF_QVEC_INLINE inf_qvec qvec_load(const int32_t *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

INF_QVEC_INLINE void qvec_store(int32_t *to, inf_qvec v, size_t count)
{
    _mm256_maskstore_epi32(to, qvec_mask(count), v);
}

// The dot product of VNNI has one encoding in AVX-512 and another one in AVX-VNNI.
#ifdef __AVX512VNNI__
#define INF_QVEC_DOT _mm256_dpbusd_epi32
#elif defined(__AVXVNNI__)
#define INF_QVEC_DOT _mm256_dpbusd_avx_epi32
#endif

#ifdef INF_QVEC_DOT

typedef __m256i inf_qvec_x;
typedef __m256i inf_qvec_w;

INF_QVEC_INLINE inf_qvec_x qvec_x(inf_qvec v)
{
    return v;
}

INF_QVEC_INLINE inf_qvec_w qvec_w(const int8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

INF_QVEC_INLINE inf_qvec qvec_dot(inf_qvec sum, inf_qvec_x x, inf_qvec_w w)
{
    return INF_QVEC_DOT(sum, x, w);
}

#else

// The even and the odd bytes of each lane, widened to 16-bit numbers for vpmaddwd. The instruction
// vpmaddubsw, which multiplies bytes directly, is not used, because it saturates.
typedef struct {
    __m256i even, odd;
} inf_qvec_x;
typedef inf_qvec_x inf_qvec_w;

INF_QVEC_INLINE inf_qvec_x qvec_x(inf_qvec v)
{
    return (inf_qvec_x){_mm256_and_si256(v, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(v, 8)};
}

INF_QVEC_INLINE inf_qvec_w qvec_w(const int8_t *from)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)from);
    return (inf_qvec_w){_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8),
                        _mm256_srai_epi16(bytes, 8)};
}

INF_QVEC_INLINE inf_qvec qvec_dot(inf_qvec sum, inf_qvec_x x, inf_qvec_w w)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x.even, w.even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x.odd, w.odd));
}

// A segment is multiplied in two parts: part 0 has the even bytes of each group of four, part 1 the
// odd bytes. Both are widened to 16 bits. qvec_widen() writes the even bytes of all groups of x
// first, and then their odd bytes; weights are widened in registers.
#define INF_QVEC_PARTS 2
#define INF_QVEC_WIDEN qvec_widen
typedef __m256i inf_qvec_part_x;
typedef __m256i inf_qvec_part_w;

INF_QVEC_INLINE inf_qvec_part_w qvec_part_w(const int8_t *from, const size_t part)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)from);
    return _mm256_srai_epi16(part == 0 ? _mm256_slli_epi16(bytes, 8) : bytes, 8);
}

INF_QVEC_INLINE inf_qvec_part_x qvec_part_x(const uint8_t *from)
{
    int32_t pair;
    memcpy(&pair, from, sizeof(pair));
    return _mm256_set1_epi32(pair);
}

INF_QVEC_INLINE inf_qvec qvec_part_dot(inf_qvec sum, inf_qvec_part_x x, inf_qvec_part_w w)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
}

// Implements inf_q8_widen_fn (q8.h).
static inline void qvec_widen(uint8_t *to, const uint8_t *from, size_t quads, uint8_t flip)
{
    const __m128i flips = _mm_set1_epi8((char)flip);
    size_t i = 0;
    for (; i + 4 <= quads; i += 4) {
        __m128i bytes = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(from + 4 * i)), flips);
        __m128i even = _mm_and_si128(bytes, _mm_set1_epi16(0xff));
        __m128i odd = _mm_srli_epi16(bytes, 8);
        _mm_storeu_si128((__m128i *)(to + 4 * i), even);
        _mm_storeu_si128((__m128i *)(to + 4 * quads + 4 * i), odd);
    }
    for (; i < quads; i++) {
        const uint8_t *quad = from + 4 * i;
        const uint16_t even[2] = {quad[0] ^ flip, quad[2] ^ flip};
        const uint16_t odd[2] = {quad[1] ^ flip, quad[3] ^ flip};
        memcpy(to + 4 * i, even, sizeof(even));
        memcpy(to + 4 * quads + 4 * i, odd, sizeof(odd));
    }
}

#endif

INF_QVEC_INLINE inf_qvec_x qvec_x_all(const uint8_t *from)
{
    int32_t bytes;
    memcpy(&bytes, from, sizeof(bytes));
    return qvec_x(_mm256_set1_epi32(bytes));
}

INF_QVEC_INLINE inf_qvec qvec_less(inf_qvec a, inf_qvec b, int32_t times)
{
    return _mm256_sub_epi32(a, _mm256_mullo_epi32(b, _mm256_set1_epi32(times)));
}

INF_QVEC_INLINE inf_qvec_float qvec_float_all(float x)
{
    return _mm256_set1_ps(x);
}

INF_QVEC_INLINE inf_qvec_float qvec_float_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

INF_QVEC_INLINE inf_qvec_float qvec_to_float(inf_qvec v)
{
    return _mm256_cvtepi32_ps(v);
}

INF_QVEC_INLINE inf_qvec qvec_round(inf_qvec_float v, inf_qvec_float low, inf_qvec_float high)
{
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, low), high));
}

INF_QVEC_INLINE inf_qvec qvec_add(inf_qvec a, inf_qvec b)
{
    return _mm256_add_epi32(a, b);
}

INF_QVEC_INLINE inf_qvec qvec_all(int32_t x)
{
    return _mm256_set1_epi32(x);
}

INF_QVEC_INLINE uint64_t qvec_low_bytes(inf_qvec v)
{
    const __m256i low =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    v = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, low),
                                    _mm256_setr_epi32(0, 4, 1, 1, 1, 1, 1, 1));
    return (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(v));
}

INF_QVEC_INLINE void qvec_store_bytes(uint8_t *to, inf_qvec v, size_t count)
{
    uint64_t bytes = qvec_low_bytes(v);
    for (size_t i = 0; i < count; i++)
        to[i] = (uint8_t)(bytes >> 8 * i);
}

INF_QVEC_INLINE void qvec_store_all_bytes(uint8_t *to, inf_qvec v)
{
    uint64_t bytes = qvec_low_bytes(v);
    memcpy(to, &bytes, sizeof(bytes));
}

INF_QVEC_INLINE inf_qvec qvec_load_u8(const uint8_t *from)
{
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));
}

INF_QVEC_INLINE inf_qvec qvec_load_i8(const int8_t *from)
{
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
}

INF_QVEC_INLINE inf_qvec qvec_less_each(inf_qvec a, inf_qvec b, inf_qvec c)
{
    return _mm256_sub_epi32(a, _mm256_mullo_epi32(b, c));
}

typedef __m256i inf_qvec_bytes;

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_all(uint8_t x)
{
    return _mm256_set1_epi8((char)x);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_load(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

INF_QVEC_INLINE void qvec_bytes_store(uint8_t *to, inf_qvec_bytes v)
{
    _mm256_storeu_si256((__m256i *)to, v);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_flip(inf_qvec_bytes a, inf_qvec_bytes b)
{
    return _mm256_xor_si256(a, b);
}

INF_QVEC_INLINE void qvec_interleave(const inf_qvec_bytes *rows, inf_qvec *y)
{
    __m256i low = _mm256_unpacklo_epi8(rows[0], rows[1]);
    __m256i high = _mm256_unpackhi_epi8(rows[0], rows[1]);
    __m256i low_2 = _mm256_unpacklo_epi8(rows[2], rows[3]);
    __m256i high_2 = _mm256_unpackhi_epi8(rows[2], rows[3]);
    y[0] = _mm256_unpacklo_epi16(low, low_2);
    y[1] = _mm256_unpackhi_epi16(low, low_2);
    y[2] = _mm256_unpacklo_epi16(high, high_2);
    y[3] = _mm256_unpackhi_epi16(high, high_2);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_pack(const inf_qvec *v)
{
    return _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
}

// What qvec_finish() needs beside the numbers.
typedef struct {
    inf_qvec_float high;
    __m256i zero; // in 16-bit lanes
    inf_qvec_bytes least, flip;
} inf_qvec_end;

INF_QVEC_INLINE inf_qvec_end qvec_end(float low, float high, int32_t zero, uint8_t flip)
{
    return (inf_qvec_end){qvec_float_all(high), _mm256_set1_epi16((int16_t)zero),
                          qvec_bytes_all((uint8_t)((int32_t)low + zero)), qvec_bytes_all(flip)};
}

// As for AVX-512 (qvec_avx512.h).
#define INF_QVEC_FINISH
INF_QVEC_INLINE inf_qvec_bytes qvec_finish(const inf_qvec_float *v, const inf_qvec_end *end)
{
    __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(_mm256_min_ps(end->high, v[0])),
                                     _mm256_cvtps_epi32(_mm256_min_ps(end->high, v[1])));
    __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(_mm256_min_ps(end->high, v[2])),
                                      _mm256_cvtps_epi32(_mm256_min_ps(end->high, v[3])));
    __m256i bytes =
        _mm256_packus_epi16(_mm256_adds_epi16(low, end->zero), _mm256_adds_epi16(high, end->zero));
    return qvec_bytes_flip(_mm256_max_epu8(bytes, end->least), end->flip);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_in_order(inf_qvec_bytes v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

#endif

#endif
