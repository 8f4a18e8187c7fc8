// SPDX-License-Identifier: Apache-2.0
// Imports ONNX models.
#ifndef INF_BACKENDS_IMPORT_ONNX_ONNX_H
#define INF_BACKENDS_IMPORT_ONNX_ONNX_H

#include "backends/import/common/import_options.h"
#include "backends/import/onnx/tensor.h"

// Lowers the ModelProto in `bytes`. Pages of `bytes` may be returned to the system after they are
// copied; they read as zeros afterwards. The caller destroys *out_graph. `producer` gets the name
// of the program that wrote the model.
//
// Errors are those of inf_model_import().
//
// Blocks (reads external data).
enum inf_code inf_onnx_import(struct inf_graph **out_graph, char producer[64],
                              struct inf_span bytes, const struct inf_onnx_files *files,
                              const struct inf_import_options *options,
                              struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
