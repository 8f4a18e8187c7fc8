// SPDX-License-Identifier: Apache-2.0
// What q8_gemm.c needs of qvec.h, for NEON with dot products. They are of signed bytes: x is moved down by
// 128, and what that takes from a sum, 128 times the weights, is added when the weights are multiplied.
#ifndef INF_BACKENDS_CPU_KERNELS_QVEC_NEON_H
#define INF_BACKENDS_CPU_KERNELS_QVEC_NEON_H

#ifdef __ARM_FEATURE_DOTPROD

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels/qvec.h"

#define INF_QVEC_WIDTH 4
#define INF_QVEC_ROWS  8 // sums of so many pixels and two vectors live in registers
typedef int32x4_t inf_qvec;
typedef float32x4_t inf_qvec_float;
typedef int8x16_t inf_qvec_x; // less 128
typedef struct {
    int8x16_t bytes;
    int32x4_t lost; // 128 times the four bytes of each lane
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

INF_QVEC_INLINE inf_qvec_x qvec_x_all(const uint8_t *from)
{
    uint32_t bytes;
    memcpy(&bytes, from, sizeof(bytes));
    return vreinterpretq_s8_u32(vdupq_n_u32(bytes ^ 0x80808080u));
}

INF_QVEC_INLINE inf_qvec_w qvec_w(const int8_t *from)
{
    inf_qvec_w w = {.bytes = vld1q_s8(from)};
    w.lost = vshlq_n_s32(vdotq_s32(vdupq_n_s32(0), w.bytes, vdupq_n_s8(1)), 7);
    return w;
}

INF_QVEC_INLINE inf_qvec qvec_dot(inf_qvec sum, inf_qvec_x x, inf_qvec_w w)
{
    return vdotq_s32(vaddq_s32(sum, w.lost), x, w.bytes);
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

// Within [low, high], then rounded, ties to even; no number is `low`.
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

// The low bytes of the first `count` lanes.
INF_QVEC_INLINE void qvec_store_bytes(uint8_t *to, inf_qvec v, size_t count)
{
    uint16x4_t halves = vreinterpret_u16_s16(vmovn_s32(v));
    uint8x8_t bytes = vmovn_u16(vcombine_u16(halves, halves));
    uint32_t four = vget_lane_u32(vreinterpret_u32_u8(bytes), 0);
    memcpy(to, &four, count);
}

// The same of all lanes.
INF_QVEC_INLINE void qvec_store_all_bytes(uint8_t *to, inf_qvec v)
{
    qvec_store_bytes(to, v, INF_QVEC_WIDTH);
}

#endif

#endif
