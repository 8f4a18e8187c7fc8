// SPDX-License-Identifier: Apache-2.0
// Builds ONNX's Loop and Scan as a loop node whose iterations are counted at run time, and
// operators that go through a sequence of unknown length.
#ifndef INF_BACKENDS_IMPORT_ONNX_LOOP_H
#define INF_BACKENDS_IMPORT_ONNX_LOOP_H

#include "backends/import/onnx/body.h"

// A scan input of Scan: iteration i takes slice i of the value along an axis.
struct inf_onnx_slices {
    uint32_t value;
    int32_t axis;
    bool backwards;
};

struct inf_onnx_loop {
    struct inf_onnx_body *body; // NULL: `iterate` adds the nodes of the body
    // Adds the nodes of one iteration to the graph of `s`. `inputs` are the carried values and then
    // the slices; `outputs` gets the carried values and then what is stacked. Called several times.
    void (*iterate)(struct inf_onnx_scope *s, const void *context, const uint32_t *inputs,
                    uint32_t *outputs);
    const void *context; // passed to `iterate`
    // True for Loop: the body's first inputs are the number of the iteration and the condition, and
    // its first output is the condition for the next iteration. False for Scan: the body's last
    // inputs are slices.
    bool has_condition;
    uint32_t most; // largest number of iterations, a scalar i64; INF_VALUE_NONE: no limit
    uint32_t keep; // condition before the first iteration, a scalar bool
    uint32_t initial[INF_ONNX_CARRIED_MAX];
    uint32_t carried;
    struct inf_onnx_slices slices[INF_ONNX_CARRIED_MAX];
    uint32_t slice_count;
    // Number of body outputs after the carried values. The results of all iterations are stacked
    // along axis 0, one slice for each iteration.
    uint32_t stacked;
};

// Adds the loop. outputs[0..carried-1] get the carried values after the last iteration; the stacked
// outputs follow.
//
// A carried value whose shape changes between iterations has unknown dimensions. A body that needs
// to know them is refused.
void inf_onnx_loop_lower(struct inf_onnx_scope *s, const struct inf_onnx_loop *loop,
                         uint32_t *outputs);

#endif
