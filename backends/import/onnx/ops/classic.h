// SPDX-License-Identifier: Apache-2.0
// What the linear models and the tree ensembles of ai.onnx.ml share.
#ifndef INF_BACKENDS_IMPORT_ONNX_OPS_CLASSIC_H
#define INF_BACKENDS_IMPORT_ONNX_OPS_CLASSIC_H

#include "backends/import/onnx/scope.h"

// Adds nodes that apply the function which the attribute post_transform names to the scores x
// [rows, scores]: SOFTMAX or LOGISTIC. Returns x if the attribute is NONE or absent. Latches a
// failure for other names, such as PROBIT and SOFTMAX_ZERO.
uint32_t inf_onnx_post_transform(struct inf_onnx_scope *s, uint32_t x);

#endif
