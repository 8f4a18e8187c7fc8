// SPDX-License-Identifier: Apache-2.0
// TensorFlow.js layers models: model.json with Keras layers, Sequential or functional, and a
// manifest of weight shards beside it.
#ifndef INF_BACKENDS_IMPORT_LAYERS_LAYERS_H
#define INF_BACKENDS_IMPORT_LAYERS_LAYERS_H

#include <stdio.h>

#include "backends/graph/graph.h"
#include "backends/import/common/json.h"
#include "backends/import/common/shards.h"

// Lowers the layers model `document`, whose shards lie at `place` and are added to `tally`. Inputs
// are named as its input layers, outputs as its output layers. What it lacks goes to `report` (NULL
// allowed), as inf_import_options has it. *out_graph is the caller's to destroy; shapes are
// inferred and it is verified. Errors are those of inf_model_import().
//
// Blocks (reads the shards).
enum inf_code inf_layers_import(struct inf_graph **out_graph, const struct inf_json *document,
                                const struct inf_shard_place *place, struct inf_tally *tally,
                                FILE *report, struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
