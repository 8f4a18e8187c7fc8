// SPDX-License-Identifier: Apache-2.0
// Imports TFLite models.
#ifndef INF_BACKENDS_IMPORT_TFLITE_TFLITE_H
#define INF_BACKENDS_IMPORT_TFLITE_TFLITE_H

#include "backends/graph/graph.h"
#include "backends/import/common/import_options.h"
#include "backends/import/tflite/external.h"
#include "proto/core/span.h"

// Lowers the TFLite file `bytes` to a verified graph with inferred shapes. The inputs and outputs
// of the graph are those of the first subgraph, or of that of options->signature, with the names of
// its tensors; a tensor without a name is called after its position, and of equal names all but the
// first get a number. Constants are copied. The caller destroys *out_graph. `producer` gets the
// description of the model.
//
// INF_INVALID      malformed; the text names table and field, or operator and operand.
// INF_UNSUPPORTED  (OPERATOR) unsupported operators or types, all of them with the number of uses.
// INF_EXHAUSTED    a limit of limits.h, or memory.
enum inf_code inf_tflite_import(struct inf_graph **out_graph, char producer[64],
                                struct inf_span bytes, const struct inf_tflite_files *files,
                                const struct inf_import_options *options,
                                struct inf_error *err) INF_NODISCARD;

#endif
