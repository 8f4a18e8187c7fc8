// SPDX-License-Identifier: Apache-2.0
// Products of recurrent networks: rows of operands times the packed panels of one gate.
#include "backends/cpu/native/rnn.h"

#include <math.h>

#include "proto/core/span.h"

void inf_native_rnn_multiply(const struct inf_native_rnn *rnn,
                             const struct inf_native_rnn_product *product, size_t first, size_t end)
{
    size_t gate = product->direction * rnn->gates + product->gate;
    for (size_t p = first; p < end; p++) {
        const struct inf_native_rnn_panel *at = &rnn->panels[p];
        struct inf_gemm_panel panel = {
            .segments = 1,
            .depth = product->used,
            .w = product->weights + (gate * rnn->width + at->before) * product->depth,
            .bias = product->bias + gate * rnn->width + at->before,
            .residual_step = product->y_step,
            .residual_columns = at->columns,
            .min = -INFINITY,
            .max = INFINITY,
            .y_step = product->y_step,
            .columns = at->columns,
        };
        for (size_t row = 0; row < product->rows; row += rnn->rows_max) {
            size_t some = INF_MIN(product->rows - row, rnn->rows_max);
            const float *segment[1] = {product->a + row * product->depth};
            float *y = product->y + row * product->y_step + at->first;
            struct inf_gemm gemm = {.a = segment,
                                    .a_step = product->depth,
                                    .prefetch = panel.w,
                                    .residual = product->adds ? y : NULL,
                                    .y = y};
            at->gemm[some - 1](&panel, &gemm);
        }
    }
}
