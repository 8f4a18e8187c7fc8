// SPDX-License-Identifier: Apache-2.0
// ONNX models: a ModelProto lowered to a graph.
#ifndef INF_BACKENDS_IMPORT_ONNX_ONNX_H
#define INF_BACKENDS_IMPORT_ONNX_ONNX_H

#include "backends/import/common/import_options.h"
#include "backends/import/onnx/tensor.h"

// Lowers the ModelProto in `bytes`, whose pages may be given back (and read as zeros afterwards).
// *out_graph is the caller's to destroy. `producer` gets who wrote the model.
//
// Fails as inf_model_import() does.
//
// Blocks (reads external data).
enum inf_code inf_onnx_import(struct inf_graph **out_graph, char producer[64],
                              struct inf_span bytes, const struct inf_onnx_files *files,
                              const struct inf_import_options *options,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
