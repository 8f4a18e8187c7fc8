// SPDX-License-Identifier: Apache-2.0
// Loops of recurrent networks. Compiled once for each ISA level; INF_RNN_TABLE is the name of the
// table that it defines.
#include "backends/cpu/kernels/rnn.h"

static void clip_all(size_t count, float *x, float bound)
{
    for (size_t i = 0; i < count; i++) {
        float above = x[i] > -bound ? x[i] : -bound;
        x[i] = above < bound ? above : bound;
    }
}

static void hard_sigmoid(size_t count, float *x, float alpha, float beta)
{
    for (size_t i = 0; i < count; i++) {
        float y = alpha * x[i] + beta;
        y = y < 0.0f ? 0.0f : y;
        x[i] = y > 1.0f ? 1.0f : y;
    }
}

static void complement_all(size_t count, const float *x, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = 1.0f - x[i];
}

static void multiply_all(size_t count, const float *a, const float *b, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] * b[i];
}

static void add_product(size_t count, const float *a, const float *b, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] += a[i] * b[i];
}

static void update_cell(size_t count, const float *forget, const float *in, const float *made,
                        float *cell)
{
    for (size_t i = 0; i < count; i++)
        cell[i] = forget[i] * cell[i] + in[i] * made[i];
}

static void blend_states(size_t count, const float *update, const float *made, const float *before,
                         float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = (1.0f - update[i]) * made[i] + update[i] * before[i];
}

const struct inf_rnn INF_RNN_TABLE = {
    .cut = clip_all,
    .hard_sigmoid = hard_sigmoid,
    .complement = complement_all,
    .multiply = multiply_all,
    .add_product = add_product,
    .keep = update_cell,
    .blend = blend_states,
};
