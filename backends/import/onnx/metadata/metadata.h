// SPDX-License-Identifier: Apache-2.0
// Reads what an ONNX file says about itself: doc_string, metadata_props and denotations.
#ifndef INF_BACKENDS_IMPORT_ONNX_METADATA_METADATA_H
#define INF_BACKENDS_IMPORT_ONNX_METADATA_METADATA_H

#include "backends/graph/graph.h"
#include "backends/import/common/description.h"
#include "proto/core/span.h"

// Fills the description of the model from which `graph` was made. `model` is a ModelProto that
// inf_onnx_model_read() has accepted. What cannot be read is left out, and description->problem
// says why: the model computes the same without it. Returns false if the file says nothing.
bool inf_onnx_describe(struct inf_model_description *description, struct inf_span model,
                       const struct inf_graph *graph);

#endif
