// SPDX-License-Identifier: Apache-2.0
// Recurrent networks. What the input gives to the gates of many steps is one product; then step after step
// adds what the state before gives, and the gates make the next one.
#ifndef INF_BACKENDS_CPU_NATIVE_RNN_H
#define INF_BACKENDS_CPU_NATIVE_RNN_H

#include "backends/cpu/core/kernel.h"

// The operands of the node.
enum inf_native_rnn_input {
    INF_NATIVE_RNN_X,
    INF_NATIVE_RNN_W,
    INF_NATIVE_RNN_R,
    INF_NATIVE_RNN_BIAS,
    INF_NATIVE_RNN_LENGTHS,
    INF_NATIVE_RNN_HIDDEN,
    INF_NATIVE_RNN_CELL,
    INF_NATIVE_RNN_PEEPHOLES,
};

// Hidden elements of a gate that one product computes.
struct inf_native_rnn_panel {
    inf_gemm_fn *const *gemm; // by rows - 1
    size_t first, columns;    // of the gate
    size_t width, before;     // with what fills it up; of the panels before it
};

struct inf_native_rnn {
    const struct inf_rnn *loops;
    const struct inf_simd *simd;
    const struct inf_attrs_rnn *attrs;
    size_t steps, directions, batch, inputs, hidden, gates;
    size_t rows_max; // of a product
    size_t chunk;    // steps whose input is multiplied in one go
    inf_simd_map_fn *activations[2][3];
    bool hard[2][3]; // instead of a function
    struct inf_native_rnn_panel *panels;
    size_t panel_count, width;      // of a gate
    const float *w, *r;             // panels by direction and gate
    const float *bias, *state_bias; // of both products, [direction][gate][width]
    const float *peepholes;         // NULL: none
    size_t parts;                   // of a gate, in which a step is cut for threads
    size_t workers, step_workers;
    size_t *lengths; // steps that count, by sequence of the batch: of the run that is under way
};

// A run that is under way. All memory but x and y is by direction first.
struct inf_native_rnn_run {
    const struct inf_native_rnn *rnn;
    const float *x;
    float *y, *cell;       // outputs; `cell` of an lstm only
    float *turned;         // x in the order of steps, for the directions backwards
    float *sums;           // [chunk][batch][gates][hidden]
    float *before, *after; // [batch][hidden]: the state around a step
    float *extra;          // [batch][hidden]: of a gru, see there
    size_t first, count;   // steps of the chunk
    size_t step;           // that is under way
    bool from_nothing;     // there is no state before: it is not multiplied with
};

// Whether direction `direction` goes from the end to the beginning.
static inline bool inf_native_rnn_is_reversed(const struct inf_native_rnn *rnn, size_t direction)
{
    return rnn->attrs->direction == INF_DIRECTION_REVERSE || direction == 1;
}

// y = a * the gate's panel + its bias, or that added to y, for `rows` rows of a that lie `depth` apart.
struct inf_native_rnn_product {
    const float *weights, *bias; // of all directions and gates
    size_t direction, gate;
    const float *a;
    size_t rows, depth;
    size_t used; // of depth: 0, or all
    float *y;    // of the gate's first element
    size_t y_step;
    bool adds;
};

// Computes panels `first` to `end` (exclusive) of a product.
void inf_native_rnn_multiply(const struct inf_native_rnn *rnn,
                             const struct inf_native_rnn_product *product, size_t first,
                             size_t end);

// Does step run->step: `run` is a struct inf_native_rnn_run, a tile a direction and a part of its elements.
void inf_native_rnn_step_tile(const void *run, size_t tile, size_t worker);

// As inf_native_rnn_step_tile(), before it, where every element of a gru's candidate needs all reset gates.
void inf_native_rnn_reset_tile(const void *run, size_t tile, size_t worker);

#endif
