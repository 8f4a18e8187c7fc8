// SPDX-License-Identifier: Apache-2.0
// Transposes a matrix tile by tile. A tile is a square whose side is the number of elements in 16
// bytes, which every x86-64 and every aarch64 processor has as a vector.
//
// The idea: zip(a, b) = a0 b0 a1 b1 ... If a tile of n lines is replaced by the lines zip(line 0,
// line n/2), zip(line 1, line n/2 + 1), ..., each pair giving two new lines, then the bits of the
// index of an element, line and column together, are rotated by one. After log2(n) such steps line
// and column have changed places.
//
// Three columns that are contiguous in y, the pixels of a picture, are narrower than a tile and
// have a loop of their own.
#include "backends/cpu/kernels/map/transpose.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define VECTOR_BYTES 16

typedef uint8_t vec8 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint16_t vec16 __attribute__((vector_size(VECTOR_BYTES)));
typedef uint32_t vec32 __attribute__((vector_size(VECTOR_BYTES)));

// The first and the second half of zip(a, b).
#define LOW_8(a, b)                                                                                \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_8(a, b)                                                                               \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define LOW_16(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH_16(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define LOW_32(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH_32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)

// Defines transpose_tile_BITS(), which writes one tile of SIDE rows and columns.
#define DEFINE_TILE(BITS, SIDE)                                                                    \
    static inline void transpose_tile_##BITS(const char *x, ptrdiff_t x_step, char *y,             \
                                             size_t y_step)                                        \
    {                                                                                              \
        vec##BITS lines[SIDE], zipped[SIDE];                                                       \
        _Pragma("GCC unroll 16") for (int i = 0; i < SIDE; i++)                                    \
            memcpy(&lines[i], x + i * x_step, VECTOR_BYTES);                                       \
        _Pragma("GCC unroll 4") for (int step = 1; step < SIDE; step *= 2)                         \
        {                                                                                          \
            _Pragma("GCC unroll 8") for (int i = 0; i < SIDE / 2; i++)                             \
            {                                                                                      \
                zipped[2 * i] = LOW_##BITS(lines[i], lines[i + SIDE / 2]);                         \
                zipped[2 * i + 1] = HIGH_##BITS(lines[i], lines[i + SIDE / 2]);                    \
            }                                                                                      \
            memcpy(lines, zipped, sizeof lines);                                                   \
        }                                                                                          \
        _Pragma("GCC unroll 16") for (int i = 0; i < SIDE; i++)                                    \
            memcpy(y + (size_t)i * y_step, &lines[i], VECTOR_BYTES);                               \
    }

DEFINE_TILE(8, 16)
DEFINE_TILE(16, 8)
DEFINE_TILE(32, 4)

static inline void copy_elements(size_t element, size_t count, const char *x, char *y,
                                 size_t y_step)
{
    for (size_t i = 0; i < count; i++)
        memcpy(y + i * y_step, x + i * element, element);
}

// Writes a matrix element by element. The switch passes constant element sizes, so that the
// compiler emits plain loads and stores.
static void transpose_elements(size_t element, size_t rows, size_t columns, const char *x,
                               ptrdiff_t x_step, char *y, size_t y_step)
{
    for (size_t c = 0; c < columns; c++) {
        const char *from = x + (ptrdiff_t)c * x_step;
        char *to = y + c * element;
        switch (element) {
        case 1:
            copy_elements(1, rows, from, to, y_step);
            break;
        case 2:
            copy_elements(2, rows, from, to, y_step);
            break;
        case 4:
            copy_elements(4, rows, from, to, y_step);
            break;
        default:
            copy_elements(8, rows, from, to, y_step);
            break;
        }
    }
}

// Writes whole tiles of four rows and three columns of 4-byte elements, whose rows are contiguous.
// Returns the number of rows that were written.
static size_t transpose_pixels(size_t rows, const char *x, ptrdiff_t x_step, char *y)
{
    size_t whole = rows - rows % 4;
    for (size_t r = 0; r < whole; r += 4, x += VECTOR_BYTES, y += 3 * VECTOR_BYTES) {
        vec32 a, b, c;
        memcpy(&a, x, VECTOR_BYTES);
        memcpy(&b, x + x_step, VECTOR_BYTES);
        memcpy(&c, x + 2 * x_step, VECTOR_BYTES);
        vec32 ab = LOW_32(a, b), ba = HIGH_32(a, b);           // a0 b0 a1 b1, a2 b2 a3 b3
        vec32 ca = __builtin_shufflevector(c, a, 0, 5, 1, 6);  // c0 a1 c1 a2
        vec32 bc = __builtin_shufflevector(b, c, 1, 5, 2, 6);  // b1 c1 b2 c2
        vec32 cb = __builtin_shufflevector(c, ba, 2, 6, 7, 3); // c2 a3 b3 c3
        vec32 first = __builtin_shufflevector(ab, ca, 0, 1, 4, 5);
        vec32 second = __builtin_shufflevector(bc, ba, 0, 1, 4, 5);
        memcpy(y, &first, VECTOR_BYTES);
        memcpy(y + VECTOR_BYTES, &second, VECTOR_BYTES);
        memcpy(y + 2 * VECTOR_BYTES, &cb, VECTOR_BYTES);
    }
    return whole;
}

static void transpose_tile(size_t element, const char *x, ptrdiff_t x_step, char *y, size_t y_step)
{
    if (element == 1)
        transpose_tile_8(x, x_step, y, y_step);
    else if (element == 2)
        transpose_tile_16(x, x_step, y, y_step);
    else
        transpose_tile_32(x, x_step, y, y_step);
}

void inf_transpose(size_t element, size_t rows, size_t columns, const char *x, ptrdiff_t x_step,
                   char *y, size_t y_step)
{
    if (element == 4 && columns == 3 && y_step == 3 * element) {
        size_t done = transpose_pixels(rows, x, x_step, y);
        transpose_elements(element, rows - done, columns, x + done * element, x_step,
                           y + done * y_step, y_step);
        return;
    }
    size_t side = element < 8 ? VECTOR_BYTES / element : SIZE_MAX;
    size_t tiled_rows = rows - rows % side, tiled_columns = columns - columns % side;
    if (tiled_rows == 0 || tiled_columns == 0)
        tiled_rows = tiled_columns = 0;
    for (size_t r = 0; r < tiled_rows; r += side)
        for (size_t c = 0; c < tiled_columns; c += side)
            transpose_tile(element, x + (ptrdiff_t)c * x_step + r * element, x_step,
                           y + r * y_step + c * element, y_step);
    // the columns beside the tiles, then the rows below them
    transpose_elements(element, tiled_rows, columns - tiled_columns,
                       x + (ptrdiff_t)tiled_columns * x_step, x_step, y + tiled_columns * element,
                       y_step);
    transpose_elements(element, rows - tiled_rows, columns, x + tiled_rows * element, x_step,
                       y + tiled_rows * y_step, y_step);
}
