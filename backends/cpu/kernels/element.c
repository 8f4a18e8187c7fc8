// SPDX-License-Identifier: Apache-2.0
// Loops over elements of any type. Compiled once for each ISA level; INF_ELEMENT_TABLE is the name
// of the table that it defines.
#include "backends/cpu/kernels/element.h"

#include <stdbool.h>
#include <string.h>

// --- casts ---

// Converts a float to an integer type, clamped to the type's range. Each bound is a power of two,
// or one less than a power of two; in the second case the compiler rounds the bound up to the power
// when it becomes a float.
#define TRUNCATE(type, least, most, x)                                                             \
    ((x) != (x)                      ? (type)0                                                     \
     : (x) <= (__typeof__(x))(least) ? (type)(least)                                               \
     : (x) >= (__typeof__(x))(most)  ? (type)(most)                                                \
                                     : (type)(x))

// The generated names contain "truth" for the type bool, because `bool` is a macro and would be
// expanded.
#define truth_of_truth(x) ((uint8_t)((x) != 0))
#define truth_of_int(x)   ((uint8_t)((x) != 0))
#define truth_of_float(x) ((uint8_t)((x) != 0))
#define u8_of_truth(x)    ((uint8_t)((x) != 0))
#define u8_of_int(x)      ((uint8_t)(x))
#define u8_of_float(x)    TRUNCATE(uint8_t, 0, UINT8_MAX, x)
#define u16_of_truth(x)   ((uint16_t)((x) != 0))
#define u16_of_int(x)     ((uint16_t)(x))
#define u16_of_float(x)   TRUNCATE(uint16_t, 0, UINT16_MAX, x)
#define u32_of_truth(x)   ((uint32_t)((x) != 0))
#define u32_of_int(x)     ((uint32_t)(x))
#define u32_of_float(x)   TRUNCATE(uint32_t, 0, UINT32_MAX, x)
#define u64_of_truth(x)   ((uint64_t)((x) != 0))
#define u64_of_int(x)     ((uint64_t)(x))
#define u64_of_float(x)   TRUNCATE(uint64_t, 0, UINT64_MAX, x)
#define i8_of_truth(x)    ((int8_t)((x) != 0))
#define i8_of_int(x)      ((int8_t)(x))
#define i8_of_float(x)    TRUNCATE(int8_t, INT8_MIN, INT8_MAX, x)
#define i16_of_truth(x)   ((int16_t)((x) != 0))
#define i16_of_int(x)     ((int16_t)(x))
#define i16_of_float(x)   TRUNCATE(int16_t, INT16_MIN, INT16_MAX, x)
#define i32_of_truth(x)   ((int32_t)((x) != 0))
#define i32_of_int(x)     ((int32_t)(x))
#define i32_of_float(x)   TRUNCATE(int32_t, INT32_MIN, INT32_MAX, x)
#define i64_of_truth(x)   ((int64_t)((x) != 0))
#define i64_of_int(x)     ((int64_t)(x))
#define i64_of_float(x)   TRUNCATE(int64_t, INT64_MIN, INT64_MAX, x)
#define f32_of_truth(x)   ((float)((x) != 0))
// 64-bit integers are converted to double first and then to float. Smaller integers are converted
// directly, because double holds them exactly and the result is the same.
#define f32_of_int(x)   (sizeof(x) < 8 ? (float)(x) : (float)(double)(x))
#define f32_of_float(x) ((float)(x))
#define f64_of_truth(x) ((double)((x) != 0))
#define f64_of_int(x)   ((double)(x))
#define f64_of_float(x) ((double)(x))

#define CAST(from, from_type, class, to, to_type)                                                  \
    static void from##_to_##to(size_t count, const void *operand, void *result)                    \
    {                                                                                              \
        const from_type *x = operand;                                                              \
        to_type *y = result;                                                                       \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = to##_of_##class(x[i]);                                                          \
    }

#define CASTS_FROM(from, type, class)                                                              \
    CAST(from, type, class, truth, uint8_t)                                                        \
    CAST(from, type, class, u8, uint8_t)                                                           \
    CAST(from, type, class, u16, uint16_t)                                                         \
    CAST(from, type, class, u32, uint32_t)                                                         \
    CAST(from, type, class, u64, uint64_t)                                                         \
    CAST(from, type, class, i8, int8_t)                                                            \
    CAST(from, type, class, i16, int16_t)                                                          \
    CAST(from, type, class, i32, int32_t)                                                          \
    CAST(from, type, class, i64, int64_t)                                                          \
    CAST(from, type, class, f32, float)                                                            \
    CAST(from, type, class, f64, double)

CASTS_FROM(truth, uint8_t, truth)
CASTS_FROM(u8, uint8_t, int)
CASTS_FROM(u16, uint16_t, int)
CASTS_FROM(u32, uint32_t, int)
CASTS_FROM(u64, uint64_t, int)
CASTS_FROM(i8, int8_t, int)
CASTS_FROM(i16, int16_t, int)
CASTS_FROM(i32, int32_t, int)
CASTS_FROM(i64, int64_t, int)
CASTS_FROM(f32, float, float)
CASTS_FROM(f64, double, float)

// Casts between 16-bit floats and floats. They give the bits of backends/base/half.c, but each
// number is computed in all its forms and one of them is selected, so that the compiler can use
// vector instructions.

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void f16_to_f32(size_t count, const void *operand, void *result)
{
    const uint16_t *x = operand;
    float *y = result;
    for (size_t i = 0; i < count; i++) {
        const uint32_t sign = (uint32_t)(x[i] & 0x8000u) << 16;
        const uint32_t magnitude = x[i] & 0x7fffu;
        const uint32_t normal = (magnitude << 13) + 0x38000000u;
        const uint32_t infinite = (magnitude << 13) | 0x7f800000u;
        const uint32_t denormal = bits_of((float)(int32_t)magnitude * 0x1p-24f);
        uint32_t bits = magnitude < 0x400u ? denormal : normal;
        bits = magnitude >= 0x7c00u ? infinite : bits;
        y[i] = float_of(sign | bits);
    }
}

static void f32_to_f16(size_t count, const void *operand, void *result)
{
    const float *x = operand;
    uint16_t *y = result;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = bits_of(x[i]);
        const uint32_t sign = bits >> 16 & 0x8000u;
        const uint32_t magnitude = bits & 0x7fffffffu;
        const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
        // Adding 0.5 rounds at the last bit of a denormal result, ties to even.
        const uint32_t denormal = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);
        uint32_t half = magnitude < 0x38800000u ? denormal : normal;
        half = magnitude >= 0x477ff000u ? 0x7c00u : half;
        half = magnitude > 0x7f800000u ? 0x7e00u : half;
        y[i] = (uint16_t)(sign | half);
    }
}

static void bf16_to_f32(size_t count, const void *operand, void *result)
{
    const uint16_t *x = operand;
    float *y = result;
    for (size_t i = 0; i < count; i++)
        y[i] = float_of((uint32_t)x[i] << 16);
}

static void f32_to_bf16(size_t count, const void *operand, void *result)
{
    const float *x = operand;
    uint16_t *y = result;
    for (size_t i = 0; i < count; i++) {
        const uint32_t bits = bits_of(x[i]);
        const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
        y[i] = (uint16_t)(is_nan ? bits >> 16 | 0x40u : rounded);
    }
}

#define CAST_ENTRIES(from)                                                                         \
    [INF_DTYPE_BOOL] = from##_to_truth, [INF_DTYPE_U8] = from##_to_u8,                             \
    [INF_DTYPE_U16] = from##_to_u16, [INF_DTYPE_U32] = from##_to_u32,                              \
    [INF_DTYPE_U64] = from##_to_u64, [INF_DTYPE_I8] = from##_to_i8,                                \
    [INF_DTYPE_I16] = from##_to_i16, [INF_DTYPE_I32] = from##_to_i32,                              \
    [INF_DTYPE_I64] = from##_to_i64, [INF_DTYPE_F32] = from##_to_f32,                              \
    [INF_DTYPE_F64] = from##_to_f64
#define CAST_ROW(from)                                                                             \
    {                                                                                              \
        CAST_ENTRIES(from)                                                                         \
    }

// --- functions of two operands ---

#define PAIR(name, type, to_type, expression)                                                      \
    static void name(size_t count, const void *first, const void *second, void *result)            \
    {                                                                                              \
        const type *from_a = first;                                                                \
        const type *from_b = second;                                                               \
        to_type *y = result;                                                                       \
        for (size_t i = 0; i < count; i++) {                                                       \
            const type a = from_a[i];                                                              \
            const type b = from_b[i];                                                              \
            y[i] = (to_type)(expression);                                                          \
        }                                                                                          \
    }

#define COMPARES(name, type)                                                                       \
    PAIR(equal_##name, type, uint8_t, a == b)                                                      \
    PAIR(not_equal_##name, type, uint8_t, a != b)                                                  \
    PAIR(less_##name, type, uint8_t, a < b)                                                        \
    PAIR(less_equal_##name, type, uint8_t, a <= b)

PAIR(equal_bool, uint8_t, uint8_t, (a != 0) == (b != 0))
PAIR(not_equal_bool, uint8_t, uint8_t, (a != 0) != (b != 0))
PAIR(less_bool, uint8_t, uint8_t, (a != 0) < (b != 0))
PAIR(less_equal_bool, uint8_t, uint8_t, (a != 0) <= (b != 0))
COMPARES(u8, uint8_t)
COMPARES(u16, uint16_t)
COMPARES(u32, uint32_t)
COMPARES(u64, uint64_t)
COMPARES(i8, int8_t)
COMPARES(i16, int16_t)
COMPARES(i32, int32_t)
COMPARES(i64, int64_t)
COMPARES(f32, float)
COMPARES(f64, double)

// Defines arithmetic that wraps around on overflow, which gives the same bits for signed and
// unsigned types. The result is computed in the type `wide`.
#define WRAPS(bits, type, wide)                                                                    \
    PAIR(add_##bits, type, type, (wide)a + (wide)b)                                                \
    PAIR(sub_##bits, type, type, (wide)a - (wide)b)                                                \
    PAIR(mul_##bits, type, type, (wide)a *(wide)b)                                                 \
    PAIR(and_##bits, type, type, a &b)                                                             \
    PAIR(or_##bits, type, type, a | b)                                                             \
    PAIR(xor_##bits, type, type, a ^ b)

WRAPS(8, uint8_t, uint32_t)
WRAPS(16, uint16_t, uint32_t)
WRAPS(32, uint32_t, uint32_t)
WRAPS(64, uint64_t, uint64_t)

#define EXTREMES(name, type)                                                                       \
    PAIR(min_##name, type, type, b < a ? b : a)                                                    \
    PAIR(max_##name, type, type, b > a ? b : a)

EXTREMES(u8, uint8_t)
EXTREMES(u16, uint16_t)
EXTREMES(u32, uint32_t)
EXTREMES(u64, uint64_t)
EXTREMES(i8, int8_t)
EXTREMES(i16, int16_t)
EXTREMES(i32, int32_t)
EXTREMES(i64, int64_t)

PAIR(and_bool, uint8_t, uint8_t, (a != 0) & (b != 0))
PAIR(or_bool, uint8_t, uint8_t, (a != 0) | (b != 0))
PAIR(xor_bool, uint8_t, uint8_t, (a != 0) ^ (b != 0))

#define COMPARE_ROW(kind)                                                                          \
    {                                                                                              \
        [INF_DTYPE_BOOL] = kind##_bool, [INF_DTYPE_U8] = kind##_u8, [INF_DTYPE_U16] = kind##_u16,  \
        [INF_DTYPE_U32] = kind##_u32, [INF_DTYPE_U64] = kind##_u64, [INF_DTYPE_I8] = kind##_i8,    \
        [INF_DTYPE_I16] = kind##_i16, [INF_DTYPE_I32] = kind##_i32, [INF_DTYPE_I64] = kind##_i64,  \
        [INF_DTYPE_F32] = kind##_f32, [INF_DTYPE_F64] = kind##_f64                                 \
    }

#define WRAP_ENTRIES(kind)                                                                         \
    [INF_DTYPE_U8] = kind##_8, [INF_DTYPE_U16] = kind##_16, [INF_DTYPE_U32] = kind##_32,           \
    [INF_DTYPE_U64] = kind##_64, [INF_DTYPE_I8] = kind##_8, [INF_DTYPE_I16] = kind##_16,           \
    [INF_DTYPE_I32] = kind##_32, [INF_DTYPE_I64] = kind##_64

#define EXTREME_ROW(kind)                                                                          \
    {                                                                                              \
        [INF_DTYPE_U8] = kind##_u8, [INF_DTYPE_U16] = kind##_u16, [INF_DTYPE_U32] = kind##_u32,    \
        [INF_DTYPE_U64] = kind##_u64, [INF_DTYPE_I8] = kind##_i8, [INF_DTYPE_I16] = kind##_i16,    \
        [INF_DTYPE_I32] = kind##_i32, [INF_DTYPE_I64] = kind##_i64                                 \
    }

// --- loops selected by element size ---

#define BY_SIZE(bits, type)                                                                        \
    static void select_##bits(size_t count, const void *condition, const void *a, const void *b,   \
                              void *result)                                                        \
    {                                                                                              \
        const uint8_t *is = condition;                                                             \
        const type *from_a = a;                                                                    \
        const type *from_b = b;                                                                    \
        type *y = result;                                                                          \
        for (size_t i = 0; i < count; i++) {                                                       \
            const type if_true = from_a[i];                                                        \
            const type if_false = from_b[i];                                                       \
            y[i] = is[i] != 0 ? if_true : if_false;                                                \
        }                                                                                          \
    }                                                                                              \
    static void fill_##bits(size_t count, const void *x, void *result)                             \
    {                                                                                              \
        const type value = *(const type *)x;                                                       \
        type *y = result;                                                                          \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = value;                                                                          \
    }

BY_SIZE(8, uint8_t)
BY_SIZE(16, uint16_t)
BY_SIZE(32, uint32_t)
BY_SIZE(64, uint64_t)

const struct inf_element INF_ELEMENT_TABLE = {
    .cast =
        {
            [INF_DTYPE_BOOL] = CAST_ROW(truth),
            [INF_DTYPE_U8] = CAST_ROW(u8),
            [INF_DTYPE_U16] = CAST_ROW(u16),
            [INF_DTYPE_U32] = CAST_ROW(u32),
            [INF_DTYPE_U64] = CAST_ROW(u64),
            [INF_DTYPE_I8] = CAST_ROW(i8),
            [INF_DTYPE_I16] = CAST_ROW(i16),
            [INF_DTYPE_I32] = CAST_ROW(i32),
            [INF_DTYPE_I64] = CAST_ROW(i64),
            [INF_DTYPE_F32] =
                {CAST_ENTRIES(f32), [INF_DTYPE_F16] = f32_to_f16, [INF_DTYPE_BF16] = f32_to_bf16},
            [INF_DTYPE_F16] = {[INF_DTYPE_F32] = f16_to_f32},
            [INF_DTYPE_BF16] = {[INF_DTYPE_F32] = bf16_to_f32},
            [INF_DTYPE_F64] = CAST_ROW(f64),
        },
    .compare =
        {
            [INF_ELEMENT_EQUAL] = COMPARE_ROW(equal),
            [INF_ELEMENT_NOT_EQUAL] = COMPARE_ROW(not_equal),
            [INF_ELEMENT_LESS] = COMPARE_ROW(less),
            [INF_ELEMENT_LESS_EQUAL] = COMPARE_ROW(less_equal),
        },
    .binary =
        {
            [INF_ELEMENT_ADD] = {WRAP_ENTRIES(add)},
            [INF_ELEMENT_SUB] = {WRAP_ENTRIES(sub)},
            [INF_ELEMENT_MUL] = {WRAP_ENTRIES(mul)},
            [INF_ELEMENT_MIN] = EXTREME_ROW(min),
            [INF_ELEMENT_MAX] = EXTREME_ROW(max),
            [INF_ELEMENT_AND] = {[INF_DTYPE_BOOL] = and_bool, WRAP_ENTRIES(and)},
            [INF_ELEMENT_OR] = {[INF_DTYPE_BOOL] = or_bool, WRAP_ENTRIES(or)},
            [INF_ELEMENT_XOR] = {[INF_DTYPE_BOOL] = xor_bool, WRAP_ENTRIES(xor)},
        },
    .select = {select_8, select_16, select_32, select_64},
    .fill = {fill_8, fill_16, fill_32, fill_64},
};
