// SPDX-License-Identifier: Apache-2.0
// Options of an import, for all formats.
#ifndef INF_BACKENDS_IMPORT_COMMON_IMPORT_OPTIONS_H
#define INF_BACKENDS_IMPORT_COMMON_IMPORT_OPTIONS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/graph/graph.h"
#include "backends/graph/pass/pass.h"

struct inf_file_contents;
struct inf_model_description;
struct inf_open_sink;

// A model input that the caller sets to a constant. The graph has no such input.
struct inf_bound_input {
    const char *name;
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_blob *data; // borrowed
};

// The number of tensors of an input that is a sequence.
struct inf_sequence_length {
    const char *name;
    uint32_t count;
};

// Options of an import. A zeroed struct has good defaults.
struct inf_import_options {
    // Computes constants while the file is read: axes, shapes and conditions that are results of
    // other nodes. If NULL, models that need this are refused.
    const struct inf_evaluator *evaluator;
    const struct inf_bound_input *bound; // inputs to replace by constants; ONNX only
    uint32_t bound_count;
    // Lengths of inputs that are sequences, because the file does not have them; ONNX only. Such an
    // input becomes the inputs NAME.0, NAME.1 and so on. An optional input of length 0 is empty; an
    // optional input that is not listed has an element.
    const struct inf_sequence_length *lengths;
    uint32_t length_count;
    // If a model is refused for unsupported operators, receives all of them, one per line, at most
    // INF_LIMIT_REPORTED_OPERATORS. The error text may be too short for all. NULL: no report.
    FILE *report;
    // The key of the signature (entry point) whose subgraph becomes the graph. NULL or "": the
    // first subgraph. TFLite only.
    const char *signature;
    // Receives one reference to what the file says about itself, if the model was imported. Not
    // written for formats without a description. NULL: not wanted.
    struct inf_model_description **description;
    // Receives the paths of the files that the model file names, such as those with its weights,
    // before they are read (backends/import/common/shards.h). NULL: not wanted.
    const struct inf_open_sink *opened;
    // Receives what the file contains (backends/import/common/contents.h), also if the model is
    // refused for its operators. NULL: not wanted.
    struct inf_file_contents *contents;
    const atomic_bool *cancelled; // checked between nodes; NULL: the import cannot be cancelled
};

#endif
