// SPDX-License-Identifier: Apache-2.0
// Inner loops of recurrent networks that are neither products nor functions of simd.h: they apply
// gates to states. rnn.c is compiled once for each ISA level; each compilation defines one table.
// Operands have `count` floats and are either the same array or do not overlap.
#ifndef INF_BACKENDS_CPU_KERNELS_RNN_H
#define INF_BACKENDS_CPU_KERNELS_RNN_H

#include <stddef.h>

struct inf_rnn {
    // Clips values to [-bound, bound]: x[i] = min(max(x[i], -bound), bound). NaN becomes -bound.
    void (*cut)(size_t count, float *x, float bound);
    // Applies the hard sigmoid: x[i] = min(max(alpha * x[i] + beta, 0), 1); NaN stays NaN.
    void (*hard_sigmoid)(size_t count, float *x, float alpha, float beta);
    // y[i] = 1 - x[i]
    void (*complement)(size_t count, const float *x, float *y);
    // y[i] = a[i] * b[i]
    void (*multiply)(size_t count, const float *a, const float *b, float *y);
    // y[i] += a[i] * b[i]
    void (*add_product)(size_t count, const float *a, const float *b, float *y);
    // Computes the new state of an LSTM cell from the candidate values `made`:
    //   cell[i] = forget[i] * cell[i] + in[i] * made[i].
    void (*keep)(size_t count, const float *forget, const float *in, const float *made,
                 float *cell);
    // Computes the new state of a GRU from the candidate values `made`:
    //   y[i] = (1 - update[i]) * made[i] + update[i] * before[i].
    void (*blend)(size_t count, const float *update, const float *made, const float *before,
                  float *y);
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_rnn inf_rnn_baseline, inf_rnn_avx2, inf_rnn_avx512, inf_rnn_neon;

#endif
