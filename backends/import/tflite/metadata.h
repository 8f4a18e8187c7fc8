// SPDX-License-Identifier: Apache-2.0
// Reads what a TFLite file says about itself: the names of its signatures, the flatbuffer
// TFLITE_METADATA, and the labels in the archive behind the model.
#ifndef INF_BACKENDS_IMPORT_TFLITE_METADATA_H
#define INF_BACKENDS_IMPORT_TFLITE_METADATA_H

#include "backends/import/common/contents.h"
#include "backends/import/common/description.h"
#include "backends/import/tflite/model.h"

// Fills the description of a model whose graph is made from subgraph `subgraph`. `bytes` is the
// file from which `model` was read. What cannot be read is left out, and description->problem says
// why: the model computes the same without it.
void inf_tflite_describe(struct inf_model_description *description,
                         const struct inf_tflite_model *model, uint32_t subgraph,
                         struct inf_span bytes);

// Writes what the model contains: the version of the schema, the names of the operators of all
// subgraphs, and how weights and other tensors are quantised.
void inf_tflite_contents_print(struct inf_file_contents *contents,
                               const struct inf_tflite_model *model);

#endif
