// SPDX-License-Identifier: Apache-2.0
// Cuts the columns of a matrix into panels of one or two vectors, with little padding.
#include "backends/cpu/core/panel.h"

#include <assert.h>

#include "backends/cpu/kernels/map/transpose.h"
#include "proto/core/span.h"

// Rows of a panel that are written at a time, so that their cache lines and those of the columns
// fit into the first-level cache.
#define TRANSPOSED_ROWS ((size_t)64)

struct inf_cpu_panel inf_cpu_panel_at(const struct inf_nn *nn, size_t first, size_t columns)
{
    assert(first < columns);
    size_t rest = columns - first;
    size_t whole = nn->gemm->width;
    size_t half = nn->gemm_half->width;
    struct inf_cpu_panel panel = {.gemm = nn->gemm, .vectors = 1, .first = first};
    // A panel of two vectors is used only if more than one and a half vectors of columns are left.
    // Fewer columns get a panel of one vector, and the columns after it another panel, because one
    // panel for all of them would be padded by half a vector or more.
    if (rest > whole + (half < whole ? half : 0))
        panel.vectors = 2;
    else if (rest <= half)
        panel.gemm = nn->gemm_half;
    panel.width = panel.vectors * panel.gemm->width;
    panel.columns = INF_MIN(panel.width, rest);
    return panel;
}

size_t inf_cpu_panel_count(const struct inf_nn *nn, size_t columns, size_t *out_width)
{
    size_t count = 0;
    size_t width = 0;
    for (size_t first = 0; first < columns; count++) {
        struct inf_cpu_panel panel = inf_cpu_panel_at(nn, first, columns);
        width += panel.width;
        first += panel.columns;
    }
    if (out_width != NULL)
        *out_width = width;
    return count;
}

void inf_cpu_panel_transpose(size_t depth, size_t columns, const void *x, size_t x_step, void *to,
                             size_t width)
{
    const size_t element = sizeof(float);
    for (size_t k = 0; k < depth; k += TRANSPOSED_ROWS)
        inf_transpose(element, INF_MIN(TRANSPOSED_ROWS, depth - k), columns,
                      (const char *)x + k * element, (ptrdiff_t)(x_step * element),
                      (char *)to + k * width * element, width * element);
}
