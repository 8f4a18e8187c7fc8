// SPDX-License-Identifier: Apache-2.0
// A vector of 32-bit sums of products of bytes, for the ISA that a file is compiled for. This
// header and the qvec_ headers that it includes are the only places in the 8-bit kernels with #if
// for instruction sets.
//
// qvec_dot() multiplies unsigned bytes with signed bytes and adds four products to each 32-bit
// lane:
//
//     lane i:  sum[i] += x[4i] * w[4i] + x[4i+1] * w[4i+1] + x[4i+2] * w[4i+2] + x[4i+3] * w[4i+3]
//
// Sums are exact modulo 2^32 at every level. Instructions that saturate, such as vpmaddubsw, are
// not used. VNNI has this operation. AVX2 code widens bytes to 16 bits first (INF_QVEC_PARTS).
// NEON's dot products multiply signed bytes (qvec_neon.h).
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

#include "backends/cpu/kernels/qvec_avx512.h"

#elif defined(__AVX2__)

#include "backends/cpu/kernels/qvec_avx2.h"

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

#ifndef INF_QVEC_PARTS

// At this ISA level a segment has one part: qvec_dot() multiplies all four bytes of a lane, and the
// bytes of x are not widened in memory.
#define INF_QVEC_PARTS 1
#define INF_QVEC_WIDEN NULL
typedef inf_qvec_x inf_qvec_part_x;
typedef inf_qvec_w inf_qvec_part_w;

INF_QVEC_INLINE inf_qvec_part_w qvec_part_w(const int8_t *from, const size_t part)
{
    (void)part;
    return qvec_w(from);
}

INF_QVEC_INLINE inf_qvec_part_x qvec_part_x(const uint8_t *from)
{
    return qvec_x_all(from);
}

INF_QVEC_INLINE inf_qvec qvec_part_dot(inf_qvec sum, inf_qvec_part_x x, inf_qvec_part_w w)
{
    return qvec_dot(sum, x, w);
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

#ifndef INF_QVEC_FINISH

typedef struct {
    inf_qvec_float low, high;
    inf_qvec zero;
    inf_qvec_bytes flip;
} inf_qvec_end;

// Prepares qvec_finish() for bounds and a zero point. `low` and `high` plus `zero` are 0 to 255.
INF_QVEC_INLINE inf_qvec_end qvec_end(float low, float high, int32_t zero, uint8_t flip)
{
    return (inf_qvec_end){qvec_float_all(low), qvec_float_all(high), qvec_all(zero),
                          qvec_bytes_all(flip)};
}

// Clamps the numbers of four vectors to [low, high], rounds them to the nearest even integer, adds
// `zero`, and packs them to bytes, which are XORed with `flip`. NaN becomes `low`. The order of the
// bytes is that of qvec_pack().
INF_QVEC_INLINE inf_qvec_bytes qvec_finish(const inf_qvec_float *v, const inf_qvec_end *end)
{
    inf_qvec y[4];
    for (size_t i = 0; i < 4; i++)
        y[i] = qvec_add(qvec_round(v[i], end->low, end->high), end->zero);
    return qvec_bytes_flip(qvec_pack(y), end->flip);
}

// Brings bytes from the order of qvec_pack() to that of the lanes of its four vectors.
INF_QVEC_INLINE inf_qvec_bytes qvec_in_order(inf_qvec_bytes v)
{
    return v;
}

#endif

#endif
