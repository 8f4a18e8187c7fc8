// SPDX-License-Identifier: Apache-2.0
// Imports TensorFlow.js graph models: model.json with the graph, and shards of weights.
#ifndef INF_BACKENDS_IMPORT_TFJS_TFJS_H
#define INF_BACKENDS_IMPORT_TFJS_TFJS_H

#include "backends/graph/graph.h"
#include "backends/import/common/import_options.h"
#include "backends/import/common/json.h"
#include "backends/import/common/shards.h"

// Lowers the graph model `document` to a verified graph with inferred shapes. Its shards are at
// `place`; their bytes are added to `tally`. `report` (may be NULL) receives all unsupported
// operators, see inf_import_options. The caller destroys *out_graph. Errors are those of
// inf_model_import().
//
// Blocks (reads the shards).
enum inf_code inf_tfjs_import(struct inf_graph **out_graph, const struct inf_json *document,
                              const struct inf_shard_place *place, struct inf_tally *tally,
                              const struct inf_import_options *options,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
