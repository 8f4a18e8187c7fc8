// SPDX-License-Identifier: Apache-2.0
// Converts a recurrent layer with one cell to one node of the operator RNN.
#ifndef INF_BACKENDS_IMPORT_LAYERS_SEQUENCE_H
#define INF_BACKENDS_IMPORT_LAYERS_SEQUENCE_H

#include "backends/import/layers/cell.h"

// Returns true if one RNN node can compute the cell: the node supports the cell's activations, and
// no two activations have different parameters.
bool inf_layers_sequence_has(const struct inf_layers_cell *cell, struct inf_layers_scope *scope);

// Adds an RNN node that computes all time steps of x [batch,time,features], in reverse order if
// `backwards` is set. Updates cell->states. *out_value is [batch,time,units], in the order of
// computation.
//
// INF_UNSUPPORTED  inf_layers_sequence_has() returns false.
enum inf_code inf_layers_sequence_run(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                      uint32_t x, bool backwards, uint32_t *out_value,
                                      struct inf_error *err) INF_NODISCARD;

#endif
