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

static void pack_part(const struct part *part, const uint8_t *from, int8_t *to)
{
    const struct inf_cpu_bytes *matrix = part->matrix;
    size_t across = matrix->transposed ? matrix->rows : 1; // bytes between neighbouring columns
    for (size_t row = 0; row < matrix->rows; row++) {
        const uint8_t *at = from + index_of(matrix, row, part->first);
        int8_t *quad = to + row / INF_CPU_QUAD * part->width * INF_CPU_QUAD + row % INF_CPU_QUAD;
        for (size_t c = 0; c < part->columns; c++)
            quad[c * INF_CPU_QUAD] = (int8_t)(at[c * across] - matrix->zero);
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

void inf_cpu_bytes_sum_columns(const int8_t *panel, size_t quads, size_t width, uint32_t *sums)
{
    memset(sums, 0, width * sizeof(*sums));
    for (size_t q = 0; q < quads; q++, panel += width * INF_CPU_QUAD)
        for (size_t c = 0; c < width; c++) {
            const int8_t *quad = panel + c * INF_CPU_QUAD;
            sums[c] += (uint32_t)(quad[0] + quad[1] + quad[2] + quad[3]);
        }
}
