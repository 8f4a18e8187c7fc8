// SPDX-License-Identifier: Apache-2.0
// Recurrent networks. The products of the input with the weights are computed for many steps in one
// pass. Then each step adds the products with the previous state and applies the gates.
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

// A panel: hidden elements of a gate that one kernel call computes.
struct inf_native_rnn_panel {
    inf_gemm_fn *const *gemm; // by number of rows - 1
    size_t first, columns;    // first element of the gate, and number of elements
    // Columns including padding: of this panel, and of all panels before it.
    size_t width, before;
};

struct inf_native_rnn {
    const struct inf_rnn *loops;
    const struct inf_simd *simd;
    const struct inf_attrs_rnn *attrs;
    size_t steps, directions, batch, inputs, hidden, gates;
    size_t rows_max; // most rows in one kernel call
    size_t chunk;    // number of steps whose input is multiplied in one pass
    inf_simd_map_fn *activations[2][3];
    bool hard[2][3]; // true: hard sigmoid is used instead of a function
    struct inf_native_rnn_panel *panels;
    size_t panel_count, width;      // panels of a gate, and their total columns including padding
    const float *w, *r;             // packed weights of input and state, by direction and gate
    const float *bias, *state_bias; // biases of both products: [direction][gate][width]
    const float *peepholes;         // NULL: there are no peepholes
    // Number of parts of a gate; in each step threads share the parts.
    size_t parts;
    size_t workers, step_workers;
    size_t *lengths; // length of each sequence of the batch, in the current run
};

// A run in progress. In all buffers except x and y, direction is the outermost dimension.
struct inf_native_rnn_run {
    const struct inf_native_rnn *rnn;
    const float *x;
    float *y, *cell;       // output buffers; `cell` is used for LSTM only
    float *turned;         // x in reverse order, for directions that read it backwards
    float *sums;           // [chunk][batch][gates][hidden]
    float *before, *after; // [batch][hidden]: the state before and after a step
    float *extra;          // [batch][hidden]: used for a GRU, see step_gru()
    size_t first, count;   // first step of the chunk, and number of steps
    size_t step;           // the current step
    bool from_nothing;     // true: the initial state is zero, so it is not multiplied
};

// Returns true if direction `direction` goes from the end of the sequence to the beginning.
static inline bool inf_native_rnn_is_reversed(const struct inf_native_rnn *rnn, size_t direction)
{
    return rnn->attrs->direction == INF_DIRECTION_REVERSE || direction == 1;
}

// A product for one gate: y = a * W + bias, or y += a * W + bias. `a` has `rows` rows of `depth`
// elements.
struct inf_native_rnn_product {
    const float *weights, *bias; // weights and biases of all directions and gates
    size_t direction, gate;
    const float *a;
    size_t rows, depth;
    size_t used; // rows of the weights that are used: 0 if `a` is zero, otherwise `depth`
    float *y;    // points to the first element of the gate
    size_t y_step;
    bool adds;
};

// Computes panels `first` to `end` (exclusive) of a product.
void inf_native_rnn_multiply(const struct inf_native_rnn *rnn,
                             const struct inf_native_rnn_product *product, size_t first,
                             size_t end);

// Computes a part of step run->step. `run` points to a struct inf_native_rnn_run. A tile is one
// part of the hidden elements of one direction.
void inf_native_rnn_step_tile(const void *run, size_t tile, size_t worker);

// Computes the reset gate of a GRU for a part of the step. Called before inf_native_rnn_step_tile()
// if every element of the candidate needs all reset gates.
void inf_native_rnn_reset_tile(const void *run, size_t tile, size_t worker);

#endif
