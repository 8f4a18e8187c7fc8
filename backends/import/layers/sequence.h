// SPDX-License-Identifier: Apache-2.0
// A recurrent layer of one cell as one node of the operator `rnn`.
#ifndef INF_BACKENDS_IMPORT_LAYERS_SEQUENCE_H
#define INF_BACKENDS_IMPORT_LAYERS_SEQUENCE_H

#include "backends/import/layers/cell.h"

// Whether the operator has what the cell does: its activations are functions that it knows, and no
// two have parameters that differ.
bool inf_layers_sequence_has(const struct inf_layers_cell *cell, struct inf_layers_scope *scope);

// Adds all steps of x [batch,time,features], from the last one back where `backwards` is set, and
// changes cell->states. *out_value is [batch,time,units], in the order of the steps.
//
// INF_UNSUPPORTED  inf_layers_sequence_has() says no.
enum inf_code inf_layers_sequence_run(struct inf_layers_cell *cell, struct inf_layers_scope *scope,
                                      uint32_t x, bool backwards, uint32_t *out_value,
                                      struct inf_error *err) INF_NODISCARD;

#endif
