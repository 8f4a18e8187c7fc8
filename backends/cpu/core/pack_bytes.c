// SPDX-License-Identifier: Apache-2.0
// Packs matrices of 8-bit weights into panels, and restores them. pack_bytes.h describes the
// layout.
#include "backends/cpu/core/pack_bytes.h"

#include <assert.h>
#include <string.h>

#include "proto/core/span.h"

static size_t count_quads(const struct inf_cpu_bytes *matrix)
{
    return (matrix->rows + INF_CPU_QUAD - 1) / INF_CPU_QUAD;
}

size_t inf_cpu_bytes_packed_size(const struct inf_q8_gemms *gemms,
                                 const struct inf_cpu_bytes *matrix)
{
    assert(matrix->group > 0 && matrix->columns % matrix->group == 0);
    size_t vectors = (matrix->group + gemms->width - 1) / gemms->width;
    return matrix->columns / matrix->group * vectors * gemms->width * count_quads(matrix) *
           INF_CPU_QUAD;
}

size_t inf_cpu_bytes_panel_vectors(const struct inf_q8_gemms *gemms, size_t first, size_t group)
{
    assert(first < group);
    size_t vectors = (group - first + gemms->width - 1) / gemms->width;
    return INF_MIN(vectors, (size_t)INF_Q8_VECTORS_MAX);
}

// The columns of a matrix that one panel holds, and the width of the panel.
struct part {
    const struct inf_cpu_bytes *matrix;
    size_t first, columns; // first column in the matrix, and number of columns
    size_t width;          // columns of the panel, with padding
};

// Returns the index, among the bytes that are not packed, of the element of the matrix in row `row`
// and column `column`.
static size_t index_of(const struct inf_cpu_bytes *matrix, size_t row, size_t column)
{
    return matrix->transposed ? column * matrix->rows + row : row * matrix->columns + column;
}

// The bytes of CHUNK columns of a row.
#define CHUNK 16
typedef uint8_t chunk __attribute__((vector_size(CHUNK)));
typedef uint16_t chunk_pairs __attribute__((vector_size(CHUNK)));

// Packs CHUNK columns of a whole quad of rows.
static void pack_chunk(const uint8_t *from, size_t row_step, uint8_t zero, int8_t *to)
{
    chunk_pairs low[2], high[2]; // columns of rows 0 and 1, and of rows 2 and 3, side by side
    for (size_t i = 0; i < 2; i++, from += 2 * row_step) {
        chunk a, b;
        memcpy(&a, from, sizeof a);
        memcpy(&b, from + row_step, sizeof b);
        a -= zero;
        b -= zero;
        low[i] = (chunk_pairs)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5,
                                                      21, 6, 22, 7, 23);
        high[i] = (chunk_pairs)__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                                       13, 29, 14, 30, 15, 31);
    }
    const chunk_pairs quads[] = {
        __builtin_shufflevector(low[0], low[1], 0, 8, 1, 9, 2, 10, 3, 11),
        __builtin_shufflevector(low[0], low[1], 4, 12, 5, 13, 6, 14, 7, 15),
        __builtin_shufflevector(high[0], high[1], 0, 8, 1, 9, 2, 10, 3, 11),
        __builtin_shufflevector(high[0], high[1], 4, 12, 5, 13, 6, 14, 7, 15)};
    memcpy(to, quads, sizeof quads);
}

// Packs a quad of up to four rows, which are `row_step` bytes apart. Missing rows stay as they are.
static void pack_rows(const uint8_t *from, size_t row_step, size_t rows, size_t columns,
                      uint8_t zero, int8_t *to)
{
    size_t c = 0;
    for (; rows == INF_CPU_QUAD && c + CHUNK <= columns; c += CHUNK)
        pack_chunk(from + c, row_step, zero, to + c * INF_CPU_QUAD);
    for (; c < columns; c++)
        for (size_t r = 0; r < rows; r++)
            to[c * INF_CPU_QUAD + r] = (int8_t)(from[r * row_step + c] - zero);
}

// As pack_rows(), but the rows are neighbours in memory, and the columns are `column_step` bytes
// apart.
static void pack_columns(const uint8_t *from, size_t column_step, size_t rows, size_t columns,
                         uint8_t zero, int8_t *to)
{
    for (size_t c = 0; c < columns; c++)
        for (size_t r = 0; r < rows; r++)
            to[c * INF_CPU_QUAD + r] = (int8_t)(from[c * column_step + r] - zero);
}

static void pack_part(const struct part *part, const uint8_t *from, int8_t *to)
{
    const struct inf_cpu_bytes *matrix = part->matrix;
    for (size_t row = 0; row < matrix->rows;
         row += INF_CPU_QUAD, to += part->width * INF_CPU_QUAD) {
        const uint8_t *at = from + index_of(matrix, row, part->first);
        size_t rows = INF_MIN(matrix->rows - row, (size_t)INF_CPU_QUAD);
        if (matrix->transposed)
            pack_columns(at, matrix->rows, rows, part->columns, matrix->zero, to);
        else
            pack_rows(at, matrix->columns, rows, part->columns, matrix->zero, to);
    }
}

static void restore_part(const struct part *part, const int8_t *from, uint8_t *to)
{
    const struct inf_cpu_bytes *matrix = part->matrix;
    size_t across = matrix->transposed ? matrix->rows : 1;
    for (size_t row = 0; row < matrix->rows; row++) {
        uint8_t *at = to + index_of(matrix, row, part->first);
        const int8_t *quad =
            from + row / INF_CPU_QUAD * part->width * INF_CPU_QUAD + row % INF_CPU_QUAD;
        for (size_t c = 0; c < part->columns; c++)
            at[c * across] = (uint8_t)(quad[c * INF_CPU_QUAD] + matrix->zero);
    }
}

// Sets the members `width` and `columns` of the panel that begins with column part->first. Returns
// the size of the panel in bytes.
static size_t cut_part(const struct inf_q8_gemms *gemms, struct part *part)
{
    size_t group = part->matrix->group;
    size_t vectors = inf_cpu_bytes_panel_vectors(gemms, part->first % group, group);
    part->width = vectors * gemms->width;
    part->columns = INF_MIN(part->width, group - part->first % group);
    return part->width * count_quads(part->matrix) * INF_CPU_QUAD;
}

void inf_cpu_bytes_pack(const struct inf_q8_gemms *gemms, const struct inf_cpu_bytes *matrix,
                        const uint8_t *from, int8_t *to)
{
    memset(to, 0, inf_cpu_bytes_packed_size(gemms, matrix));
    for (struct part part = {.matrix = matrix}; part.first < matrix->columns;
         part.first += part.columns) {
        size_t size = cut_part(gemms, &part);
        pack_part(&part, from, to);
        to += size;
    }
}

void inf_cpu_bytes_restore(const struct inf_q8_gemms *gemms, const struct inf_cpu_bytes *matrix,
                           const int8_t *from, uint8_t *to)
{
    for (struct part part = {.matrix = matrix}; part.first < matrix->columns;
         part.first += part.columns) {
        size_t size = cut_part(gemms, &part);
        restore_part(&part, from, to);
        from += size;
    }
}

// Panels are a whole number of vectors of four columns wide. Each 16-bit number of a vector is the
// sum of two bytes of every quad, so it does not overflow in SUM_QUADS quads.
#define SUM_COLUMNS 4
#define SUM_QUADS   64
typedef int16_t byte_pairs __attribute__((vector_size(SUM_COLUMNS * INF_CPU_QUAD)));

// Adds the bytes of at most SUM_QUADS quads of SUM_COLUMNS columns to the sums of the columns.
// Quads are `step` bytes apart.
static void sum_quads(const int8_t *quad, size_t quads, size_t step, uint32_t *sums)
{
    byte_pairs total = {0};
    int16_t pairs[2 * SUM_COLUMNS];
    for (size_t q = 0; q < quads; q++, quad += step) {
        byte_pairs bytes;
        memcpy(&bytes, quad, sizeof bytes);
        total += (bytes << 8 >> 8) + (bytes >> 8);
    }
    memcpy(pairs, &total, sizeof pairs);
    for (size_t c = 0; c < SUM_COLUMNS; c++)
        sums[c] += (uint32_t)(pairs[2 * c] + pairs[2 * c + 1]);
}

void inf_cpu_bytes_sum_columns(const int8_t *panel, size_t quads, size_t width, uint32_t *sums)
{
    size_t step = width * INF_CPU_QUAD;
    assert(width % SUM_COLUMNS == 0);
    memset(sums, 0, width * sizeof(*sums));
    for (size_t q = 0; q < quads; q += SUM_QUADS)
        for (size_t c = 0; c < width; c += SUM_COLUMNS)
            sum_quads(panel + q * step + c * INF_CPU_QUAD, INF_MIN(quads - q, (size_t)SUM_QUADS),
                      step, sums + c);
}
