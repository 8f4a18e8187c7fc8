// SPDX-License-Identifier: Apache-2.0
// Implements qvec.h for AVX-512 with VNNI, whose dot product multiplies unsigned with signed bytes.
#ifndef INF_BACKENDS_CPU_KERNELS_QVEC_AVX512_H
#define INF_BACKENDS_CPU_KERNELS_QVEC_AVX512_H

#ifdef __AVX512VNNI__

#include <immintrin.h>

#include "backends/cpu/kernels/qvec.h"

#define INF_QVEC_WIDTH 16
#define INF_QVEC_ROWS  12 // pixels whose sums, two vectors each, fit into registers
typedef __m512i inf_qvec;
typedef __m512 inf_qvec_float;
typedef __m512i inf_qvec_x; // the unsigned operand of qvec_dot()
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

// Clamps each element to [low, high], then rounds it to the nearest even integer. NaN becomes
// `low`.
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

// What qvec_finish() needs beside the numbers.
typedef struct {
    inf_qvec_float high;
    __m512i zero; // in 16-bit lanes
    inf_qvec_bytes least, flip;
} inf_qvec_end;

INF_QVEC_INLINE inf_qvec_end qvec_end(float low, float high, int32_t zero, uint8_t flip)
{
    return (inf_qvec_end){qvec_float_all(high), _mm512_set1_epi16((int16_t)zero),
                          qvec_bytes_all((uint8_t)((int32_t)low + zero)), qvec_bytes_all(flip)};
}

// The packs saturate, so that numbers below the range become the least ones. The conversion of what
// is below any integer, or NaN, is the smallest integer; what is too large has to be cut before.
#define INF_QVEC_FINISH
INF_QVEC_INLINE inf_qvec_bytes qvec_finish(const inf_qvec_float *v, const inf_qvec_end *end)
{
    __m512i low = _mm512_packs_epi32(_mm512_cvtps_epi32(_mm512_min_ps(end->high, v[0])),
                                     _mm512_cvtps_epi32(_mm512_min_ps(end->high, v[1])));
    __m512i high = _mm512_packs_epi32(_mm512_cvtps_epi32(_mm512_min_ps(end->high, v[2])),
                                      _mm512_cvtps_epi32(_mm512_min_ps(end->high, v[3])));
    __m512i bytes =
        _mm512_packus_epi16(_mm512_adds_epi16(low, end->zero), _mm512_adds_epi16(high, end->zero));
    return qvec_bytes_flip(_mm512_max_epu8(bytes, end->least), end->flip);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_in_order(inf_qvec_bytes v)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, v);
}

#endif

#endif
