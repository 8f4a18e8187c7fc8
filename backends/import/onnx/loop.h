// SPDX-License-Identifier: Apache-2.0
// ONNX's Loop and Scan as a loop of the graph, whose rounds a run counts.
#ifndef INF_BACKENDS_IMPORT_ONNX_LOOP_H
#define INF_BACKENDS_IMPORT_ONNX_LOOP_H

#include "backends/import/onnx/body.h"

// What a round takes one slice of.
struct inf_onnx_slices {
    uint32_t value;
    int32_t axis;
    bool backwards;
};

struct inf_onnx_loop {
    struct inf_onnx_body *body;
    // The body's first inputs are the round and whether to go on, its first output is whether to go
    // on: Loop. Else its last inputs are slices: Scan.
    bool has_condition;
    uint32_t most; // rounds, a scalar i64; NONE: until the condition fails
    uint32_t keep; // a scalar bool: the condition before the first round
    uint32_t initial[INF_ONNX_CARRIED_MAX];
    uint32_t carried;
    struct inf_onnx_slices slices[INF_ONNX_CARRIED_MAX];
    uint32_t slice_count;
    uint32_t stacked; // outputs behind what is carried: one slice a round, stacked along axis 0
};

// Adds the loop: outputs[0..carried-1] are what is carried in the end, then what was stacked up.
//
// What changes its shape from round to round is of unknown shape then; a body that must know it is
// refused.
void inf_onnx_loop_lower(struct inf_onnx_scope *s, const struct inf_onnx_loop *loop,
                         uint32_t *outputs);

#endif
