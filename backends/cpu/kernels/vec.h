// SPDX-License-Identifier: Apache-2.0
// A vector of floats for the instruction set that a file is compiled for. This is the only place in
// the float kernels with #if for instruction sets. Each instruction set defines the same functions:
// load, store, arithmetic, and partial loads and stores for the last columns. If INF_VEC_HALF is
// defined, vectors have half the size, to compute the last columns.
#ifndef INF_BACKENDS_CPU_KERNELS_VEC_H
#define INF_BACKENDS_CPU_KERNELS_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INF_VEC_INLINE static inline __attribute__((always_inline))

// Unrolls a loop of few iterations, so that its variables stay in registers.
#ifdef __clang__
#define INF_VEC_UNROLL _Pragma("unroll")
#else
#define INF_VEC_UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__AVX512F__) && !defined(INF_VEC_HALF)

#include <immintrin.h>

#define INF_VEC_WIDTH  16
#define INF_VEC_PIXELS 12 // pixels whose sums, two vectors each, fit into registers
// True if the calls of a panel share the prefetches of the next one (nn.h), where that is faster.
#define INF_VEC_SHARES_PREFETCH false
typedef __m512 inf_vec;

INF_VEC_INLINE inf_vec vec_all(float x)
{
    return _mm512_set1_ps(x);
}

INF_VEC_INLINE inf_vec vec_load(const float *from)
{
    return _mm512_loadu_ps(from);
}

INF_VEC_INLINE void vec_store(float *to, inf_vec v)
{
    _mm512_storeu_ps(to, v);
}

INF_VEC_INLINE __mmask16 vec_mask(size_t count)
{
    return (__mmask16)((1u << count) - 1);
}

// Loads the first `count` elements, 1 to INF_VEC_WIDTH. The others become 0 and are not read.
INF_VEC_INLINE inf_vec vec_load_some(const float *from, size_t count)
{
    return _mm512_maskz_loadu_ps(vec_mask(count), from);
}

// As vec_load_some(), but the elements that are not loaded are those of `other`.
INF_VEC_INLINE inf_vec vec_load_some_or(const float *from, size_t count, inf_vec other)
{
    return _mm512_mask_loadu_ps(other, vec_mask(count), from);
}

INF_VEC_INLINE void vec_store_some(float *to, inf_vec v, size_t count)
{
    _mm512_mask_storeu_ps(to, vec_mask(count), v);
}

// Returns the sum of all lanes.
INF_VEC_INLINE float vec_sum_lanes(inf_vec v)
{
    return _mm512_reduce_add_ps(v);
}

// Returns the largest lane of v. No lane of v is NaN.
INF_VEC_INLINE float vec_max_lane(inf_vec v)
{
    return _mm512_reduce_max_ps(v);
}

typedef __mmask16 inf_vec_flags; // one bit for each lane

// Returns `flags` with one more bit set for each lane of v that is NaN.
INF_VEC_INLINE inf_vec_flags vec_flag_nan(inf_vec_flags flags, inf_vec v)
{
    return (inf_vec_flags)(flags | _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q));
}

// Returns a * b + c, rounded once if the processor has fma.
INF_VEC_INLINE inf_vec vec_fma(inf_vec a, inf_vec b, inf_vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

// The smaller of a and b; NaN if b is NaN.
INF_VEC_INLINE inf_vec vec_min(inf_vec a, inf_vec b)
{
    return _mm512_min_ps(a, b);
}

INF_VEC_INLINE inf_vec vec_max(inf_vec a, inf_vec b)
{
    return _mm512_max_ps(a, b);
}

// v < 0 ? v * slope : v
INF_VEC_INLINE inf_vec vec_slope(inf_vec v, inf_vec slope)
{
    __mmask16 below = _mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ);
    return _mm512_mask_mul_ps(v, below, v, slope);
}

// Defined if the instruction set also has these functions: vec_load_some_or(), vec_sum_lanes(),
// vec_max_lane(), vec_flag_nan(), vec_scale(), vec_round(), vec_below(), vec_near_reciprocal().
#define INF_VEC_SCALE

// v * 2^n for whole n of any size, rounded once, also if the result is subnormal.
INF_VEC_INLINE inf_vec vec_scale(inf_vec v, inf_vec n)
{
    return _mm512_scalef_ps(v, n);
}

// v rounded to the nearest integer.
INF_VEC_INLINE inf_vec vec_round(inf_vec v)
{
    return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// v < bound ? yes : no
INF_VEC_INLINE inf_vec vec_below(inf_vec v, float bound, inf_vec yes, inf_vec no)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(v, vec_all(bound), _CMP_LT_OQ), no, yes);
}

// 1 / v within one unit in the last place, for v between 2^-100 and 2^100. A division takes as long
// as all of the exponential function before it.
INF_VEC_INLINE inf_vec vec_near_reciprocal(inf_vec v)
{
    inf_vec near = _mm512_rcp14_ps(v);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(v, near, vec_all(1)), near, near);
}

// Reads lanes as 32-bit words. Returns the bits `mask` of each word, and the bits of `base`.
INF_VEC_INLINE inf_vec vec_field(inf_vec words, uint32_t mask, float base)
{
    __m512i bits = _mm512_and_si512(_mm512_castps_si512(words), _mm512_set1_epi32((int)mask));
    return _mm512_castsi512_ps(_mm512_or_si512(bits, _mm512_castps_si512(_mm512_set1_ps(base))));
}

// Reads lanes as 32-bit words. Returns the upper 16 bits of each word.
INF_VEC_INLINE inf_vec vec_upper_half(inf_vec words)
{
    return _mm512_castsi512_ps(_mm512_srli_epi32(_mm512_castps_si512(words), 16));
}

// Returns the first bf16 of each 32-bit lane, widened to fp32; vec_bf16_second() returns the
// second.
INF_VEC_INLINE inf_vec vec_bf16_first(inf_vec pairs)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(pairs), 16));
}

INF_VEC_INLINE inf_vec vec_bf16_second(inf_vec pairs)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(pairs), upper));
}

#ifdef __AVX512BF16__
// Broadcasts the two bf16 at `from` to each 32-bit lane of a vector.
INF_VEC_INLINE inf_vec vec_pair_all(const char *from)
{
    int32_t pair;
    memcpy(&pair, from, sizeof(pair));
    return _mm512_castsi512_ps(_mm512_set1_epi32(pair));
}

// Returns c + a.first * b.first + a.second * b.second, in fp32.
INF_VEC_INLINE inf_vec vec_dot_pairs(inf_vec a, inf_vec b, inf_vec c)
{
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}

// Rounds the elements of v to the nearest bf16 and stores them.
INF_VEC_INLINE void vec_store_rounded(uint16_t *to, inf_vec v)
{
    _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(v));
}
#endif

#elif defined(__AVX__)

#include <immintrin.h>

#define INF_VEC_WIDTH 8
typedef __m256 inf_vec;

INF_VEC_INLINE inf_vec vec_all(float x)
{
    return _mm256_set1_ps(x);
}

INF_VEC_INLINE inf_vec vec_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

INF_VEC_INLINE void vec_store(float *to, inf_vec v)
{
    _mm256_storeu_ps(to, v);
}

#ifdef __AVX512VL__
#define INF_VEC_PIXELS          12
#define INF_VEC_SHARES_PREFETCH false

INF_VEC_INLINE inf_vec vec_load_some(const float *from, size_t count)
{
    return _mm256_maskz_loadu_ps((__mmask8)((1u << count) - 1), from);
}

INF_VEC_INLINE inf_vec vec_bf16_first(inf_vec pairs)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(pairs), 16));
}

INF_VEC_INLINE inf_vec vec_bf16_second(inf_vec pairs)
{
    const __m256i upper = _mm256_set1_epi32((int)0xffff0000);
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(pairs), upper));
}

INF_VEC_INLINE void vec_store_some(float *to, inf_vec v, size_t count)
{
    _mm256_mask_storeu_ps(to, (__mmask8)((1u << count) - 1), v);
}

#ifdef __AVX512BF16__
INF_VEC_INLINE inf_vec vec_pair_all(const char *from)
{
    int32_t pair;
    memcpy(&pair, from, sizeof(pair));
    return _mm256_castsi256_ps(_mm256_set1_epi32(pair));
}

INF_VEC_INLINE inf_vec vec_dot_pairs(inf_vec a, inf_vec b, inf_vec c)
{
    return _mm256_dpbf16_ps(c, (__m256bh)a, (__m256bh)b);
}

INF_VEC_INLINE void vec_store_rounded(uint16_t *to, inf_vec v)
{
    _mm_storeu_si128((__m128i *)to, (__m128i)_mm256_cvtneps_pbh(v));
}
#endif
#else
#define INF_VEC_PIXELS          6
#define INF_VEC_SHARES_PREFETCH true

INF_VEC_INLINE inf_vec vec_load_some(const float *from, size_t count)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(from, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), index));
}

// Stores the elements without a mask, because masked stores of AVX2 are slow on some processors.
INF_VEC_INLINE void vec_store_some(float *to, inf_vec v, size_t count)
{
    float all[INF_VEC_WIDTH];
    _mm256_storeu_ps(all, v);
    memcpy(to, all, count * sizeof(float));
}
#endif

INF_VEC_INLINE inf_vec vec_field(inf_vec words, uint32_t mask, float base)
{
    __m256 bits = _mm256_and_ps(words, _mm256_castsi256_ps(_mm256_set1_epi32((int)mask)));
    return _mm256_or_ps(bits, _mm256_set1_ps(base));
}

INF_VEC_INLINE inf_vec vec_upper_half(inf_vec words)
{
    return _mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(words), 16));
}

INF_VEC_INLINE inf_vec vec_fma(inf_vec a, inf_vec b, inf_vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

INF_VEC_INLINE inf_vec vec_min(inf_vec a, inf_vec b)
{
    return _mm256_min_ps(a, b);
}

INF_VEC_INLINE inf_vec vec_max(inf_vec a, inf_vec b)
{
    return _mm256_max_ps(a, b);
}

INF_VEC_INLINE inf_vec vec_slope(inf_vec v, inf_vec slope)
{
    __m256 below = _mm256_cmp_ps(v, _mm256_setzero_ps(), _CMP_LT_OQ);
    return _mm256_blendv_ps(v, _mm256_mul_ps(v, slope), below);
}

#elif defined(__aarch64__)

#include <arm_neon.h>

#define INF_VEC_WIDTH           4
#define INF_VEC_PIXELS          8
#define INF_VEC_SHARES_PREFETCH false
typedef float32x4_t inf_vec;

INF_VEC_INLINE inf_vec vec_all(float x)
{
    return vdupq_n_f32(x);
}

INF_VEC_INLINE inf_vec vec_load(const float *from)
{
    return vld1q_f32(from);
}

INF_VEC_INLINE void vec_store(float *to, inf_vec v)
{
    vst1q_f32(to, v);
}

INF_VEC_INLINE inf_vec vec_load_some(const float *from, size_t count)
{
    if (count >= INF_VEC_WIDTH)
        return vld1q_f32(from);
    float32x2_t low = vdup_n_f32(0);
    float32x2_t high = low;
    if (count >= 2) {
        low = vld1_f32(from);
        if (count == 3)
            high = vld1_lane_f32(from + 2, high, 0);
    } else {
        low = vld1_lane_f32(from, low, 0);
    }
    return vcombine_f32(low, high);
}

INF_VEC_INLINE void vec_store_some(float *to, inf_vec v, size_t count)
{
    if (count >= INF_VEC_WIDTH) {
        vst1q_f32(to, v);
    } else if (count >= 2) {
        vst1_f32(to, vget_low_f32(v));
        if (count == 3)
            vst1q_lane_f32(to + 2, v, 2);
    } else {
        vst1q_lane_f32(to, v, 0);
    }
}

INF_VEC_INLINE inf_vec vec_field(inf_vec words, uint32_t mask, float base)
{
    uint32x4_t bits = vandq_u32(vreinterpretq_u32_f32(words), vdupq_n_u32(mask));
    return vreinterpretq_f32_u32(vorrq_u32(bits, vreinterpretq_u32_f32(vdupq_n_f32(base))));
}

INF_VEC_INLINE inf_vec vec_upper_half(inf_vec words)
{
    return vreinterpretq_f32_u32(vshrq_n_u32(vreinterpretq_u32_f32(words), 16));
}

INF_VEC_INLINE inf_vec vec_fma(inf_vec a, inf_vec b, inf_vec c)
{
    return vfmaq_f32(c, a, b);
}

INF_VEC_INLINE inf_vec vec_min(inf_vec a, inf_vec b)
{
    return vminq_f32(a, b);
}

INF_VEC_INLINE inf_vec vec_max(inf_vec a, inf_vec b)
{
    return vmaxq_f32(a, b);
}

INF_VEC_INLINE inf_vec vec_slope(inf_vec v, inf_vec slope)
{
    return vbslq_f32(vcltzq_f32(v), vmulq_f32(v, slope), v);
}

#else

#define INF_VEC_WIDTH           4
#define INF_VEC_PIXELS          6
#define INF_VEC_SHARES_PREFETCH false
typedef float inf_vec __attribute__((vector_size(16)));
typedef int32_t inf_vec_bits __attribute__((vector_size(16)));
typedef uint32_t inf_vec_words __attribute__((vector_size(16)));

INF_VEC_INLINE inf_vec vec_all(float x)
{
    return (inf_vec){x, x, x, x};
}

INF_VEC_INLINE inf_vec vec_load(const float *from)
{
    inf_vec v;
    memcpy(&v, from, sizeof(v));
    return v;
}

INF_VEC_INLINE void vec_store(float *to, inf_vec v)
{
    memcpy(to, &v, sizeof(v));
}

INF_VEC_INLINE inf_vec vec_load_some(const float *from, size_t count)
{
    inf_vec v = {0};
    memcpy(&v, from, count * sizeof(float));
    return v;
}

INF_VEC_INLINE void vec_store_some(float *to, inf_vec v, size_t count)
{
    memcpy(to, &v, count * sizeof(float));
}

INF_VEC_INLINE inf_vec vec_field(inf_vec words, uint32_t mask, float base)
{
    return (inf_vec)(((inf_vec_words)words & mask) | (inf_vec_words)vec_all(base));
}

INF_VEC_INLINE inf_vec vec_upper_half(inf_vec words)
{
    return (inf_vec)((inf_vec_words)words >> 16);
}

INF_VEC_INLINE inf_vec vec_fma(inf_vec a, inf_vec b, inf_vec c)
{
    return a * b + c;
}

// For each element, selects a if its bits in `bits` are set, otherwise b.
INF_VEC_INLINE inf_vec vec_choose(inf_vec_bits bits, inf_vec a, inf_vec b)
{
    return (inf_vec)((bits & (inf_vec_bits)a) | (~bits & (inf_vec_bits)b));
}

INF_VEC_INLINE inf_vec vec_min(inf_vec a, inf_vec b)
{
    return vec_choose(a < b, a, b);
}

INF_VEC_INLINE inf_vec vec_max(inf_vec a, inf_vec b)
{
    return vec_choose(a > b, a, b);
}

INF_VEC_INLINE inf_vec vec_slope(inf_vec v, inf_vec slope)
{
    return vec_choose(v < vec_all(0), v * slope, v);
}

#endif

// --- arrays of bf16 ---

#ifdef __AVX512BF16__

// Rounds x[i] to the nearest bf16 for i below `count`.
INF_VEC_INLINE void vec_round_all(size_t count, const float *x, uint16_t *y)
{
    size_t i = 0;
    for (; i + INF_VEC_WIDTH <= count; i += INF_VEC_WIDTH)
        vec_store_rounded(y + i, vec_load(x + i));
    if (i == count)
        return;
    uint16_t rest[INF_VEC_WIDTH];
    vec_store_rounded(rest, vec_load_some(x + i, count - i));
    memcpy(y + i, rest, (count - i) * sizeof(*y));
}

#endif

#endif
