// SPDX-License-Identifier: Apache-2.0
// Rows of packed convolutions: cuts them into runs of contiguous pixels. conv_packed.c multiplies
// each run. conv_window.c handles windows larger than a pixel.
#include "backends/cpu/native/conv_rows.h"

#include "backends/cpu/native/conv_window.h"

// Returns the number of floats of scratch memory, rounded up to whole cache lines, for the copied
// operands of `rows` rows.
static size_t operand_count(const struct inf_conv_packed *conv, size_t rows)
{
    size_t count = 0;
    if (conv->has_depthwise)
        count = rows * conv->row_pixels * conv->inputs;
    else if (conv->gathers)
        count = rows * conv->row_pixels * conv->depth;
    else if (!conv->pointwise)
        count = inf_conv_window_scratch(conv);
    return (count + 15) / 16 * 16;
}

size_t inf_conv_rows_scratch(const struct inf_conv_packed *conv, size_t rows)
{
    size_t run = conv->pointwise ? rows * conv->row_pixels : conv->row_pixels;
    return operand_count(conv, rows) + inf_conv_packed_scratch(conv, run);
}

// Returns how many of the `count` rows from `row` on are contiguous in a ring buffer that holds
// `rows` rows.
static size_t contiguous_rows(size_t row, size_t count, size_t rows)
{
    return INF_MIN(count, rows - row % rows);
}

void inf_conv_rows_compute(const struct inf_conv_packed *conv, const struct inf_conv_packed_io *io,
                           size_t first, size_t end, float *scratch)
{
    bool copies = conv->has_depthwise || conv->gathers; // the operands are in `scratch`
    size_t row_size = conv->row_pixels * conv->depth;
    if (!conv->pointwise) {
        inf_conv_window_rows(
            conv, io, first, end, scratch,
            inf_conv_packed_scratch_at(conv, scratch, operand_count(conv, end - first)));
        return;
    }
    if (conv->has_depthwise)
        inf_native_depthwise_rows(&conv->depthwise, io->x, io->x_rows, first, end, scratch);
    if (conv->gathers)
        inf_conv_window_gather(conv, io, first, end, scratch);
    for (size_t row = first; row < end;) {
        struct inf_conv_packed_run run = {
            .scratch = inf_conv_packed_scratch_at(conv, scratch, operand_count(conv, end - first))};
        size_t rows = contiguous_rows(row, end - row, io->y_rows);
        if (conv->residual_channels > 0)
            rows = contiguous_rows(row, rows, io->residual_rows);
        if (!copies)
            rows = contiguous_rows(row, rows, io->x_rows);
        run.a[0] =
            copies ? scratch + (row - first) * row_size : io->x + row % io->x_rows * row_size;
        run.count = rows * conv->row_pixels;
        inf_conv_packed_set_target(conv, io, row, &run);
        inf_conv_packed_compute(conv, &run, 0, conv->panel_count);
        row += rows;
    }
}
