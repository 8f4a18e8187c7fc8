// SPDX-License-Identifier: Apache-2.0
// A vector of 32-bit sums of products of bytes, for the ISA that a file is compiled for. This is
// the only place in the 8-bit kernels with #if for instruction sets.
//
// qvec_dot() multiplies unsigned bytes with signed bytes and adds four products to each 32-bit
// lane:
//
//     lane i:  sum[i] += x[4i] * w[4i] + x[4i+1] * w[4i+1] + x[4i+2] * w[4i+2] + x[4i+3] * w[4i+3]
//
// Sums are exact modulo 2^32 at every level. Instructions that saturate, such as vpmaddubsw, are
// not used. VNNI has this operation. AVX2 code widens bytes to 16 bits first. NEON's dot products
// multiply signed bytes (qvec_neon.h).
#ifndef INF_BACKENDS_CPU_KERNELS_QVEC_H
#define INF_BACKENDS_CPU_KERNELS_QVEC_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INF_QVEC_INLINE static inline __attribute__((always_inline))

// Unrolls a loop of few iterations, so that its variables stay in registers.
#ifdef __clang__
#define INF_QVEC_UNROLL _Pragma("unroll")
#else
#define INF_QVEC_UNROLL _Pragma("GCC unroll 16")
#endif

// If INF_QVEC_HALF is defined, use vectors of half the size, which compute the last channels.
#if defined(__AVX512VNNI__) && !defined(INF_QVEC_HALF)

#include <immintrin.h>

#define INF_QVEC_WIDTH 16
#define INF_QVEC_ROWS  12 // pixels whose sums, two vectors each, fit into registers
typedef __m512i inf_qvec;
typedef __m512 inf_qvec_float;
typedef __m512i inf_qvec_x; // operands of a product
typedef __m512i inf_qvec_w;

INF_QVEC_INLINE inf_qvec qvec_load(const int32_t *from)
{
    return _mm512_loadu_si512(from);
}

INF_QVEC_INLINE void qvec_store(int32_t *to, inf_qvec v, size_t count)
{
    _mm512_mask_storeu_epi32(to, (__mmask16)((1u << count) - 1), v);
}

// Broadcasts four bytes to all lanes.
INF_QVEC_INLINE inf_qvec_x qvec_x_all(const uint8_t *from)
{
    int32_t bytes;
    memcpy(&bytes, from, sizeof(bytes));
    return _mm512_set1_epi32(bytes);
}

INF_QVEC_INLINE inf_qvec_x qvec_x(inf_qvec v)
{
    return v;
}

INF_QVEC_INLINE inf_qvec_w qvec_w(const int8_t *from)
{
    return _mm512_loadu_si512(from);
}

INF_QVEC_INLINE inf_qvec qvec_dot(inf_qvec sum, inf_qvec_x x, inf_qvec_w w)
{
    return _mm512_dpbusd_epi32(sum, x, w);
}

INF_QVEC_INLINE inf_qvec qvec_less(inf_qvec a, inf_qvec b, int32_t times)
{
    return _mm512_sub_epi32(a, _mm512_mullo_epi32(b, _mm512_set1_epi32(times)));
}

INF_QVEC_INLINE inf_qvec_float qvec_float_all(float x)
{
    return _mm512_set1_ps(x);
}

INF_QVEC_INLINE inf_qvec_float qvec_float_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

INF_QVEC_INLINE inf_qvec_float qvec_to_float(inf_qvec v)
{
    return _mm512_cvtepi32_ps(v);
}

// Clamps to [low, high], then rounds to nearest even. NaN becomes `low`.
INF_QVEC_INLINE inf_qvec qvec_round(inf_qvec_float v, inf_qvec_float low, inf_qvec_float high)
{
    return _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(v, low), high));
}

INF_QVEC_INLINE inf_qvec qvec_add(inf_qvec a, inf_qvec b)
{
    return _mm512_add_epi32(a, b);
}

INF_QVEC_INLINE inf_qvec qvec_all(int32_t x)
{
    return _mm512_set1_epi32(x);
}

// Stores the low byte of each of the first `count` lanes, `count` bytes in total.
INF_QVEC_INLINE void qvec_store_bytes(uint8_t *to, inf_qvec v, size_t count)
{
    _mm_mask_storeu_epi8(to, (__mmask16)((1u << count) - 1), _mm512_cvtepi32_epi8(v));
}

// Stores the low bytes of all lanes.
INF_QVEC_INLINE void qvec_store_all_bytes(uint8_t *to, inf_qvec v)
{
    _mm_storeu_si128((__m128i *)to, _mm512_cvtepi32_epi8(v));
}

// Loads one byte for each lane and widens it.
INF_QVEC_INLINE inf_qvec qvec_load_u8(const uint8_t *from)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)from));
}

INF_QVEC_INLINE inf_qvec qvec_load_i8(const int8_t *from)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
}

// Returns a - b * c for each lane.
INF_QVEC_INLINE inf_qvec qvec_less_each(inf_qvec a, inf_qvec b, inf_qvec c)
{
    return _mm512_sub_epi32(a, _mm512_mullo_epi32(b, c));
}

// A vector of bytes; it has four times as many elements as a vector of 32-bit lanes.
typedef __m512i inf_qvec_bytes;

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_all(uint8_t x)
{
    return _mm512_set1_epi8((char)x);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_load(const uint8_t *from)
{
    return _mm512_loadu_si512(from);
}

INF_QVEC_INLINE void qvec_bytes_store(uint8_t *to, inf_qvec_bytes v)
{
    _mm512_storeu_si512(to, v);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_flip(inf_qvec_bytes a, inf_qvec_bytes b)
{
    return _mm512_xor_si512(a, b);
}

// Interleaves four rows of bytes: each 32-bit lane gets one byte of each row. The order of the
// lanes depends on the instruction set; qvec_pack() restores the original order.
INF_QVEC_INLINE void qvec_interleave(const inf_qvec_bytes *rows, inf_qvec *y)
{
    __m512i low = _mm512_unpacklo_epi8(rows[0], rows[1]);
    __m512i high = _mm512_unpackhi_epi8(rows[0], rows[1]);
    __m512i low_2 = _mm512_unpacklo_epi8(rows[2], rows[3]);
    __m512i high_2 = _mm512_unpackhi_epi8(rows[2], rows[3]);
    y[0] = _mm512_unpacklo_epi16(low, low_2);
    y[1] = _mm512_unpackhi_epi16(low, low_2);
    y[2] = _mm512_unpacklo_epi16(high, high_2);
    y[3] = _mm512_unpackhi_epi16(high, high_2);
}

// Packs lanes, whose values are 0 to 255, to bytes. Restores the order that the bytes had before
// qvec_interleave().
INF_QVEC_INLINE inf_qvec_bytes qvec_pack(const inf_qvec *v)
{
    return _mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
}

#elif defined(__AVX2__)

#include <immintrin.h>

#define INF_QVEC_WIDTH 8
#define INF_QVEC_ROWS  4
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

#ifdef __AVX512VNNI__

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
    return _mm256_dpbusd_epi32(sum, x, w);
}

#else

// Even and odd bytes of each lane, widened to 16-bit numbers. They are multiplied with vpmaddwd,
// which does not saturate on 16-bit numbers, because vpmaddubsw saturates on bytes.
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

#elif defined(__aarch64__)

#include "backends/cpu/kernels/qvec_neon.h"

#else // plain C

#define INF_QVEC_WIDTH 4
#define INF_QVEC_ROWS  2
typedef struct {
    int32_t v[INF_QVEC_WIDTH];
} inf_qvec;
typedef struct {
    float v[INF_QVEC_WIDTH];
} inf_qvec_float;
typedef struct {
    uint8_t v[4 * INF_QVEC_WIDTH];
} inf_qvec_x;
typedef struct {
    int8_t v[4 * INF_QVEC_WIDTH];
} inf_qvec_w;

#define QVEC_EACH for (size_t i = 0; i < INF_QVEC_WIDTH; i++)

INF_QVEC_INLINE inf_qvec qvec_load(const int32_t *from)
{
    inf_qvec v;
    memcpy(&v, from, sizeof(v));
    return v;
}

INF_QVEC_INLINE void qvec_store(int32_t *to, inf_qvec v, size_t count)
{
    memcpy(to, &v, count * sizeof(*to));
}

INF_QVEC_INLINE inf_qvec_x qvec_x(inf_qvec v)
{
    inf_qvec_x x;
    memcpy(&x, &v, sizeof(x));
    return x;
}

INF_QVEC_INLINE inf_qvec_x qvec_x_all(const uint8_t *from)
{
    inf_qvec_x x;
    QVEC_EACH memcpy(x.v + 4 * i, from, 4);
    return x;
}

INF_QVEC_INLINE inf_qvec_w qvec_w(const int8_t *from)
{
    inf_qvec_w w;
    memcpy(&w, from, sizeof(w));
    return w;
}

INF_QVEC_INLINE inf_qvec qvec_dot(inf_qvec sum, inf_qvec_x x, inf_qvec_w w)
{
    QVEC_EACH
    {
        int32_t products = 0;
        for (size_t k = 0; k < 4; k++)
            products += x.v[4 * i + k] * w.v[4 * i + k];
        sum.v[i] = (int32_t)((uint32_t)sum.v[i] + (uint32_t)products);
    }
    return sum;
}

INF_QVEC_INLINE inf_qvec qvec_less(inf_qvec a, inf_qvec b, int32_t times)
{
    QVEC_EACH a.v[i] = (int32_t)((uint32_t)a.v[i] - (uint32_t)b.v[i] * (uint32_t)times);
    return a;
}

INF_QVEC_INLINE inf_qvec_float qvec_float_all(float x)
{
    inf_qvec_float v;
    QVEC_EACH v.v[i] = x;
    return v;
}

INF_QVEC_INLINE inf_qvec_float qvec_float_load(const float *from)
{
    inf_qvec_float v;
    memcpy(&v, from, sizeof(v));
    return v;
}

INF_QVEC_INLINE inf_qvec_float qvec_to_float(inf_qvec v)
{
    inf_qvec_float x;
    QVEC_EACH x.v[i] = (float)v.v[i];
    return x;
}

INF_QVEC_INLINE inf_qvec qvec_round(inf_qvec_float v, inf_qvec_float low, inf_qvec_float high)
{
    inf_qvec y;
    QVEC_EACH
    {
        float x = v.v[i] > low.v[i] ? v.v[i] : low.v[i];
        x = x < high.v[i] ? x : high.v[i];
        y.v[i] = (int32_t)nearbyintf(x);
    }
    return y;
}

INF_QVEC_INLINE inf_qvec qvec_add(inf_qvec a, inf_qvec b)
{
    QVEC_EACH a.v[i] = (int32_t)((uint32_t)a.v[i] + (uint32_t)b.v[i]);
    return a;
}

INF_QVEC_INLINE inf_qvec qvec_all(int32_t x)
{
    inf_qvec v;
    QVEC_EACH v.v[i] = x;
    return v;
}

INF_QVEC_INLINE void qvec_store_bytes(uint8_t *to, inf_qvec v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (uint8_t)v.v[i];
}

INF_QVEC_INLINE void qvec_store_all_bytes(uint8_t *to, inf_qvec v)
{
    qvec_store_bytes(to, v, INF_QVEC_WIDTH);
}

INF_QVEC_INLINE inf_qvec qvec_load_u8(const uint8_t *from)
{
    inf_qvec v;
    QVEC_EACH v.v[i] = from[i];
    return v;
}

INF_QVEC_INLINE inf_qvec qvec_load_i8(const int8_t *from)
{
    inf_qvec v;
    QVEC_EACH v.v[i] = from[i];
    return v;
}

INF_QVEC_INLINE inf_qvec qvec_less_each(inf_qvec a, inf_qvec b, inf_qvec c)
{
    QVEC_EACH a.v[i] = (int32_t)((uint32_t)a.v[i] - (uint32_t)b.v[i] * (uint32_t)c.v[i]);
    return a;
}

typedef struct {
    uint8_t v[4 * INF_QVEC_WIDTH];
} inf_qvec_bytes;

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_all(uint8_t x)
{
    inf_qvec_bytes v;
    memset(&v, x, sizeof(v));
    return v;
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_load(const uint8_t *from)
{
    inf_qvec_bytes v;
    memcpy(&v, from, sizeof(v));
    return v;
}

INF_QVEC_INLINE void qvec_bytes_store(uint8_t *to, inf_qvec_bytes v)
{
    memcpy(to, &v, sizeof(v));
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_flip(inf_qvec_bytes a, inf_qvec_bytes b)
{
    for (size_t i = 0; i < sizeof(a); i++)
        a.v[i] ^= b.v[i];
    return a;
}

INF_QVEC_INLINE void qvec_interleave(const inf_qvec_bytes *rows, inf_qvec *y)
{
    uint8_t lanes[4 * INF_QVEC_WIDTH][4];
    for (size_t i = 0; i < sizeof(*rows); i++) {
        for (size_t row = 0; row < 4; row++)
            lanes[i][row] = rows[row].v[i];
    }
    memcpy(y, lanes, sizeof(lanes));
}

INF_QVEC_INLINE inf_qvec_bytes qvec_pack(const inf_qvec *v)
{
    inf_qvec_bytes y;
    for (size_t i = 0; i < sizeof(y); i++)
        y.v[i] = (uint8_t)v[i / INF_QVEC_WIDTH].v[i % INF_QVEC_WIDTH];
    return y;
}

#endif

// Returns a * b. Used to scale the sums.
INF_QVEC_INLINE inf_qvec_float qvec_times(inf_qvec_float a, inf_qvec_float b)
{
#if defined(__AVX2__) || defined(__aarch64__)
    return a * b;
#else
    QVEC_EACH a.v[i] *= b.v[i];
    return a;
#endif
}

#endif
