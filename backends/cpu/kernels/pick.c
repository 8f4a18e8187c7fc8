// SPDX-License-Identifier: Apache-2.0
// Loops that find the minimum or maximum. Compiled once for each ISA level; INF_PICK_TABLE is the
// name of the table that it defines.
#include "backends/cpu/kernels/pick.h"

#include <stdbool.h>
#include <string.h>

#define LANES 64 // elements of x that one vector comparison covers

// Generates a function that finds the value of the minimum or maximum in a first pass, and its
// position in a second pass. Therefore neither pass needs a branch for each element.
#define LINE(name, type, beyond)                                                                   \
    static size_t name##_line(size_t count, const void *operand)                                   \
    {                                                                                              \
        const type *x = operand;                                                                   \
        type best = x[0];                                                                          \
        type part[LANES];                                                                          \
        size_t whole = count - count % LANES;                                                      \
        if (best != best)                                                                          \
            return 0;                                                                              \
        for (size_t lane = 0; lane < LANES; lane++)                                                \
            part[lane] = best;                                                                     \
        for (size_t i = 0; i < whole; i += LANES)                                                  \
            for (size_t lane = 0; lane < LANES; lane++)                                            \
                part[lane] = x[i + lane] beyond part[lane] ? x[i + lane] : part[lane];             \
        for (size_t lane = 0; lane < LANES; lane++)                                                \
            best = part[lane] beyond best ? part[lane] : best;                                     \
        for (size_t i = whole; i < count; i++)                                                     \
            best = x[i] beyond best ? x[i] : best;                                                 \
        for (size_t i = 0; i < whole; i += LANES) {                                                \
            int found = 0;                                                                         \
            for (size_t lane = 0; lane < LANES; lane++)                                            \
                found |= x[i + lane] == best;                                                      \
            for (size_t lane = 0; found && lane < LANES; lane++)                                   \
                if (x[i + lane] == best)                                                           \
                    return i + lane;                                                               \
        }                                                                                          \
        for (size_t i = whole; i < count; i++)                                                     \
            if (x[i] == best)                                                                      \
                return i;                                                                          \
        return 0; /* another thread changed the line between both passes */                        \
    }

#define ROWS(name, type, beyond)                                                                   \
    static void name##_rows(size_t count, const void *operand, size_t rows, size_t stride,         \
                            int32_t *index)                                                        \
    {                                                                                              \
        const type *x = operand;                                                                   \
        type best[INF_PICK_COLUMNS];                                                               \
        for (size_t i = 0; i < count; i++) {                                                       \
            best[i] = x[i];                                                                        \
            index[i] = 0;                                                                          \
        }                                                                                          \
        for (size_t row = 1; row < rows; row++) {                                                  \
            x += stride;                                                                           \
            for (size_t i = 0; i < count; i++) {                                                   \
                const type here = x[i];                                                            \
                const bool is = here beyond best[i];                                               \
                best[i] = is ? here : best[i];                                                     \
                index[i] = is ? (int32_t)row : index[i];                                           \
            }                                                                                      \
        }                                                                                          \
    }

#define EXTREMES(name, type)                                                                       \
    LINE(max_##name, type, >)                                                                      \
    LINE(min_##name, type, <)                                                                      \
    ROWS(max_##name, type, >)                                                                      \
    ROWS(min_##name, type, <)

EXTREMES(u8, uint8_t)
EXTREMES(u16, uint16_t)
EXTREMES(u32, uint32_t)
EXTREMES(u64, uint64_t)
EXTREMES(i8, int8_t)
EXTREMES(i16, int16_t)
EXTREMES(i32, int32_t)
EXTREMES(i64, int64_t)
EXTREMES(f32, float)
EXTREMES(f64, double)

// Returns an integer key for a float. Keys have the same order as the floats, because the bits of
// negative floats are inverted; -0 gets the same key as 0.
static inline uint32_t key_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    bits = bits == 0x80000000u ? 0 : bits;
    uint32_t key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return key;
}

static void max_f32_keys(size_t count, const void *operand, uint32_t *keys)
{
    const float *x = operand;
    for (size_t i = 0; i < count; i++)
        keys[i] = x[i] != x[i] ? 0 : key_of_float(x[i]);
}

static void min_f32_keys(size_t count, const void *operand, uint32_t *keys)
{
    const float *x = operand;
    for (size_t i = 0; i < count; i++)
        keys[i] = x[i] != x[i] ? 0 : ~key_of_float(x[i]);
}

static void max_i32_keys(size_t count, const void *operand, uint32_t *keys)
{
    const uint32_t *x = operand;
    for (size_t i = 0; i < count; i++)
        keys[i] = x[i] ^ 0x80000000u;
}

static void min_i32_keys(size_t count, const void *operand, uint32_t *keys)
{
    const uint32_t *x = operand;
    for (size_t i = 0; i < count; i++)
        keys[i] = ~(x[i] ^ 0x80000000u);
}

static uint32_t largest_key(size_t count, const uint32_t *keys)
{
    uint32_t largest = keys[0];
    for (size_t i = 1; i < count; i++)
        largest = keys[i] > largest ? keys[i] : largest;
    return largest;
}

#define ROW(extreme, what)                                                                         \
    {                                                                                              \
        [INF_DTYPE_U8] = extreme##_u8_##what, [INF_DTYPE_U16] = extreme##_u16_##what,              \
        [INF_DTYPE_U32] = extreme##_u32_##what, [INF_DTYPE_U64] = extreme##_u64_##what,            \
        [INF_DTYPE_I8] = extreme##_i8_##what, [INF_DTYPE_I16] = extreme##_i16_##what,              \
        [INF_DTYPE_I32] = extreme##_i32_##what, [INF_DTYPE_I64] = extreme##_i64_##what,            \
        [INF_DTYPE_F32] = extreme##_f32_##what, [INF_DTYPE_F64] = extreme##_f64_##what             \
    }

const struct inf_pick INF_PICK_TABLE = {
    .line = {[INF_PICK_MAX] = ROW(max, line), [INF_PICK_MIN] = ROW(min, line)},
    .rows = {[INF_PICK_MAX] = ROW(max, rows), [INF_PICK_MIN] = ROW(min, rows)},
    .keys =
        {
            [INF_PICK_MAX] = {[INF_DTYPE_F32] = max_f32_keys, [INF_DTYPE_I32] = max_i32_keys},
            [INF_PICK_MIN] = {[INF_DTYPE_F32] = min_f32_keys, [INF_DTYPE_I32] = min_i32_keys},
        },
    .largest_key = largest_key,
};
