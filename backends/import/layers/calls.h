// SPDX-License-Identifier: Apache-2.0
// The calls of a model's layers, read from inbound_nodes and sorted.
#ifndef INF_BACKENDS_IMPORT_LAYERS_CALLS_H
#define INF_BACKENDS_IMPORT_LAYERS_CALLS_H

#include "backends/import/layers/model.h"

// Reads the calls, inputs and outputs of a functional model whose layers have been read.
enum inf_code inf_layers_calls_read(struct inf_layers_document *document,
                                    struct inf_layers_model *model,
                                    struct inf_error *err) INF_NODISCARD;

// Creates the calls of a Sequential model, in which each layer takes the output of the previous
// one.
enum inf_code inf_layers_calls_chain(struct inf_layers_document *document,
                                     struct inf_layers_model *model,
                                     struct inf_error *err) INF_NODISCARD;

// Sorts the calls on which the model's outputs depend.
//
// INF_INVALID  the calls form a cycle; the text names a layer of the cycle.
enum inf_code inf_layers_calls_order(struct inf_layers_document *document,
                                     struct inf_layers_model *model,
                                     struct inf_error *err) INF_NODISCARD;

#endif
