// SPDX-License-Identifier: Apache-2.0
// The calls of a model's layers, read from inbound_nodes and put in an order.
#ifndef INF_BACKENDS_IMPORT_LAYERS_CALLS_H
#define INF_BACKENDS_IMPORT_LAYERS_CALLS_H

#include "backends/import/layers/model.h"

// Reads the calls, inputs and outputs of a functional model whose layers have been read.
enum inf_code inf_layers_calls_read(struct inf_layers_document *document,
                                    struct inf_layers_model *model,
                                    struct inf_error *err) INF_NODISCARD;

// Makes the calls of a Sequential model: each layer takes the output of the one before.
enum inf_code inf_layers_calls_chain(struct inf_layers_document *document,
                                     struct inf_layers_model *model,
                                     struct inf_error *err) INF_NODISCARD;

// Orders the calls that the model's outputs depend on.
//
// INF_INVALID  they form a cycle; the text names a layer of it.
enum inf_code inf_layers_calls_order(struct inf_layers_document *document,
                                     struct inf_layers_model *model,
                                     struct inf_error *err) INF_NODISCARD;

#endif
