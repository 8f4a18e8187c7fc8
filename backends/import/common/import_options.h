// SPDX-License-Identifier: Apache-2.0
// Options of an import, for all formats.
#ifndef INF_BACKENDS_IMPORT_COMMON_IMPORT_OPTIONS_H
#define INF_BACKENDS_IMPORT_COMMON_IMPORT_OPTIONS_H

#include <stdint.h>
#include <stdio.h>

#include "backends/graph/graph.h"
#include "backends/graph/pass/pass.h"

// An input that is a constant from the beginning: the graph does not ask for it.
struct inf_bound_input {
    const char *name;
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_blob *data; // the caller's reference
};

// How to import. All zero is a good default.
struct inf_import_options {
    // NULL, or what computes constants while the file is read: axes and shapes that other nodes
    // make, and conditions of branches. Models that need none of it do without.
    const struct inf_evaluator *evaluator;
    const struct inf_bound_input *bound; // ONNX only
    uint32_t bound_count;
    // NULL, or where the operators that a refused model lacks are written, a line each, all of them
    // up to INF_LIMIT_REPORTED_OPERATORS: an error's text may have no room for all.
    FILE *report;
};

#endif
