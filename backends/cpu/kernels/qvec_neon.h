// SPDX-License-Identifier: Apache-2.0
// Implements qvec.h for NEON, with dot product instructions if the ISA level has them. These
// instructions multiply signed bytes, so 128 is subtracted from the unsigned operand x. Each sum is
// then too small by 128 times the sum of the weights, which is added back after the product.
#ifndef INF_BACKENDS_CPU_KERNELS_QVEC_NEON_H
#define INF_BACKENDS_CPU_KERNELS_QVEC_NEON_H

#ifdef __aarch64__

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels/qvec.h"

#define INF_QVEC_WIDTH 4
#define INF_QVEC_ROWS  8 // pixels whose sums, two vectors each, fit into registers
typedef int32x4_t inf_qvec;
typedef float32x4_t inf_qvec_float;
// Operand bytes minus 128, because the instructions multiply signed bytes.
typedef int8x16_t inf_qvec_x;
typedef struct {
    int8x16_t bytes;
    int32x4_t lost; // 128 times the sum of the four bytes of each lane; added back after a product
} inf_qvec_w;

INF_QVEC_INLINE inf_qvec qvec_load(const int32_t *from)
{
    return vld1q_s32(from);
}

INF_QVEC_INLINE void qvec_store(int32_t *to, inf_qvec v, size_t count)
{
    int32_t lanes[INF_QVEC_WIDTH];
    vst1q_s32(lanes, v);
    memcpy(to, lanes, count * sizeof(*to));
}

// Returns, for each 32-bit lane, the sum of the four products of its bytes.
INF_QVEC_INLINE int32x4_t qvec_fours(int8x16_t a, int8x16_t b)
{
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(vdupq_n_s32(0), a, b);
#else
    int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
    return vpaddq_s32(low, vpaddlq_s16(vmull_high_s8(a, b)));
#endif
}

INF_QVEC_INLINE inf_qvec_x qvec_x(inf_qvec v)
{
    return vreinterpretq_s8_u8(veorq_u8(vreinterpretq_u8_s32(v), vdupq_n_u8(0x80)));
}

INF_QVEC_INLINE inf_qvec_x qvec_x_all(const uint8_t *from)
{
    uint32_t bytes;
    memcpy(&bytes, from, sizeof(bytes));
    return vreinterpretq_s8_u32(vdupq_n_u32(bytes ^ 0x80808080u));
}

INF_QVEC_INLINE inf_qvec_w qvec_w(const int8_t *from)
{
    inf_qvec_w w = {.bytes = vld1q_s8(from)};
    w.lost = vshlq_n_s32(qvec_fours(w.bytes, vdupq_n_s8(1)), 7);
    return w;
}

INF_QVEC_INLINE inf_qvec qvec_dot(inf_qvec sum, inf_qvec_x x, inf_qvec_w w)
{
    sum = vaddq_s32(sum, w.lost);
#ifdef __ARM_FEATURE_DOTPROD
    return vdotq_s32(sum, x, w.bytes);
#else
    return vaddq_s32(sum, qvec_fours(x, w.bytes));
#endif
}

INF_QVEC_INLINE inf_qvec qvec_less(inf_qvec a, inf_qvec b, int32_t times)
{
    return vmlsq_s32(a, b, vdupq_n_s32(times));
}

INF_QVEC_INLINE inf_qvec_float qvec_float_all(float x)
{
    return vdupq_n_f32(x);
}

INF_QVEC_INLINE inf_qvec_float qvec_float_load(const float *from)
{
    return vld1q_f32(from);
}

INF_QVEC_INLINE inf_qvec_float qvec_to_float(inf_qvec v)
{
    return vcvtq_f32_s32(v);
}

// Clamps to [low, high], then rounds to nearest even. NaN becomes `low`.
INF_QVEC_INLINE inf_qvec qvec_round(inf_qvec_float v, inf_qvec_float low, inf_qvec_float high)
{
    return vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(v, low), high));
}

INF_QVEC_INLINE inf_qvec qvec_add(inf_qvec a, inf_qvec b)
{
    return vaddq_s32(a, b);
}

INF_QVEC_INLINE inf_qvec qvec_all(int32_t x)
{
    return vdupq_n_s32(x);
}

// Stores the low byte of each of the first `count` lanes.
INF_QVEC_INLINE void qvec_store_bytes(uint8_t *to, inf_qvec v, size_t count)
{
    uint16x4_t halves = vreinterpret_u16_s16(vmovn_s32(v));
    uint8x8_t bytes = vmovn_u16(vcombine_u16(halves, halves));
    uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    memcpy(to, &four, count);
}

// Stores the low bytes of all lanes.
INF_QVEC_INLINE void qvec_store_all_bytes(uint8_t *to, inf_qvec v)
{
    qvec_store_bytes(to, v, INF_QVEC_WIDTH);
}

INF_QVEC_INLINE inf_qvec qvec_load_u8(const uint8_t *from)
{
    uint32_t four;
    memcpy(&four, from, sizeof(four));
    uint16x8_t halves = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
    return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(halves)));
}

INF_QVEC_INLINE inf_qvec qvec_load_i8(const int8_t *from)
{
    uint32_t four;
    memcpy(&four, from, sizeof(four));
    int16x8_t halves = vmovl_s8(vreinterpret_s8_u32(vdup_n_u32(four)));
    return vmovl_s16(vget_low_s16(halves));
}

INF_QVEC_INLINE inf_qvec qvec_less_each(inf_qvec a, inf_qvec b, inf_qvec c)
{
    return vmlsq_s32(a, b, c);
}

typedef uint8x16_t inf_qvec_bytes;

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_all(uint8_t x)
{
    return vdupq_n_u8(x);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_load(const uint8_t *from)
{
    return vld1q_u8(from);
}

INF_QVEC_INLINE void qvec_bytes_store(uint8_t *to, inf_qvec_bytes v)
{
    vst1q_u8(to, v);
}

INF_QVEC_INLINE inf_qvec_bytes qvec_bytes_flip(inf_qvec_bytes a, inf_qvec_bytes b)
{
    return veorq_u8(a, b);
}

INF_QVEC_INLINE void qvec_interleave(const inf_qvec_bytes *rows, inf_qvec *y)
{
    uint16x8_t low = vreinterpretq_u16_u8(vzip1q_u8(rows[0], rows[1]));
    uint16x8_t high = vreinterpretq_u16_u8(vzip2q_u8(rows[0], rows[1]));
    uint16x8_t low_2 = vreinterpretq_u16_u8(vzip1q_u8(rows[2], rows[3]));
    uint16x8_t high_2 = vreinterpretq_u16_u8(vzip2q_u8(rows[2], rows[3]));
    y[0] = vreinterpretq_s32_u16(vzip1q_u16(low, low_2));
    y[1] = vreinterpretq_s32_u16(vzip2q_u16(low, low_2));
    y[2] = vreinterpretq_s32_u16(vzip1q_u16(high, high_2));
    y[3] = vreinterpretq_s32_u16(vzip2q_u16(high, high_2));
}

INF_QVEC_INLINE inf_qvec_bytes qvec_pack(const inf_qvec *v)
{
    int16x8_t low = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]));
    int16x8_t high = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

#endif

#endif
