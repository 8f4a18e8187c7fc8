// SPDX-License-Identifier: Apache-2.0
// Recurrent networks. The products of the input with the weights are computed for many time steps
// in one pass. Then each time step adds the products with the previous state and applies the gates.
#ifndef INF_BACKENDS_CPU_NATIVE_RNN_H
#define INF_BACKENDS_CPU_NATIVE_RNN_H

#include "backends/cpu/core/kernel.h"

// Indices of the operands of an rnn node.
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

// A panel: the hidden elements of a gate that one kernel call computes.
struct inf_native_rnn_panel {
    inf_gemm_fn *const *gemm; // kernels for this panel; gemm[r - 1] computes r rows
    size_t first, columns;    // first element of the gate, and number of elements
    // Number of columns including padding: `width` of this panel, `before` of all earlier panels of
    // the gate together.
    size_t width, before;
};

struct inf_native_rnn {
    const struct inf_rnn *loops;
    const struct inf_simd *simd;
    const struct inf_attrs_rnn *attrs;
    size_t steps, directions, batch, inputs, hidden, gates;
    size_t rows_max; // most rows in one kernel call
    size_t chunk;    // number of time steps whose input is multiplied in one pass
    inf_simd_map_fn *activations[2][3];
    // Indexed by direction and activation: true if the activation is the hard sigmoid. Its entry in
    // `activations` is then NULL.
    bool hard[2][3];
    struct inf_native_rnn_panel *panels;
    size_t panel_count, width; // panels of a gate, and their total columns including padding
    // Packed weights for the input and for the state, of all directions and gates.
    const float *w, *r;
    const float *bias, *state_bias; // biases of both products: [direction][gate][width]
    const float *peepholes;         // NULL: there are no peepholes
    // Each gate is cut into this many parts. In each time step the threads share the parts.
    size_t parts;
    size_t workers, step_workers;
    size_t *lengths; // length of each sequence of the batch, in the current run
};

// A run in progress. In all buffers except x and y, direction is the outermost dimension.
struct inf_native_rnn_run {
    const struct inf_native_rnn *rnn;
    const float *x;
    float *y, *cell; // output buffers; `cell` is used for LSTM only
    float *turned;   // copy of x in reverse order, for directions that read it backwards
    // Products of the weights and the input, for the time steps of a chunk.
    float *sums;           // [chunk][batch][gates][hidden]
    float *before, *after; // [batch][hidden]: the state before and after a time step
    float *extra;          // [batch][hidden]: operand of a GRU's candidate gate, see step_gru()
    size_t first, count;   // first time step of the chunk, and number of time steps
    size_t step;           // the current time step
    bool from_nothing;     // true: the initial state is zero, so it is not multiplied
};

// Returns true if direction `direction` reads the sequence from its end to its beginning.
static inline bool inf_native_rnn_is_reversed(const struct inf_native_rnn *rnn, size_t direction)
{
    return rnn->attrs->direction == INF_DIRECTION_REVERSE || direction == 1;
}

// A product for one gate: y = a * W + bias, or y += a * W + bias. `a` is a matrix of `rows` rows
// with `depth` elements each.
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

// Computes one part of time step run->step: `tile` selects a direction and a part of its hidden
// elements. `run` points to a struct inf_native_rnn_run.
void inf_native_rnn_step_tile(const void *run, size_t tile, size_t worker);

// Computes the reset gate of a GRU for one part of the time step. Runs before
// inf_native_rnn_step_tile() if the candidate gate needs the reset gates of all parts.
void inf_native_rnn_reset_tile(const void *run, size_t tile, size_t worker);

#endif
