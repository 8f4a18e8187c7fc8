// SPDX-License-Identifier: Apache-2.0
// One cell of a recurrent layer: its weights, its states, and one time step.
#ifndef INF_BACKENDS_IMPORT_LAYERS_CELL_H
#define INF_BACKENDS_IMPORT_LAYERS_CELL_H

#include "backends/import/layers/lower.h"

// The kinds of cells. 0 means no cell.
enum inf_layers_cell_kind {
    INF_LAYERS_CELL_LSTM = 1,
    INF_LAYERS_CELL_GRU,
    INF_LAYERS_CELL_SIMPLE,
};

struct inf_layers_cell {
    enum inf_layers_cell_kind kind;
    int32_t units;
    bool use_bias, reset_after;
    const struct inf_layers_activation *activation, *recurrent_activation;
    uint32_t state_count;
    // Values [batch,1,units]; INF_VALUE_NONE for the initial zeros. The first state is the cell's
    // output.
    uint32_t states[2];
    uint32_t kernel, bias; // weights of the input; the bias may be INF_VALUE_NONE
    // Weights of the state for all gates; a GRU without reset_after has the last gate separately.
    uint32_t recurrent;
    uint32_t recurrent_last; // GRU without reset_after: weights of the state for the last gate
    // The bias of the state, [3*units], for a GRU with reset_after; otherwise INF_VALUE_NONE.
    uint32_t recurrent_bias;
};

// Returns the number of gates of a cell.
uint32_t inf_layers_cell_gates(const struct inf_layers_cell *cell);

// Reads the cell of the scope's layer: its configuration and weights.
enum inf_code inf_layers_cell_read(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                   struct inf_error *err) INF_NODISCARD;

// Adds nodes to the graph that multiply the input [batch,time,features] by the input weights of all
// gates. The product has the shape [batch,time,gates*units].
enum inf_code inf_layers_cell_project(const struct inf_layers_cell *cell,
                                      struct inf_layers_scope *scope, uint32_t input,
                                      uint32_t *out_value, struct inf_error *err) INF_NODISCARD;

// Adds one time step for an input [batch,1,gates*units], and updates cell->states to the states
// after this step.
enum inf_code inf_layers_cell_step(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                   uint32_t input, struct inf_error *err) INF_NODISCARD;

#endif
