// SPDX-License-Identifier: Apache-2.0
// A graph of one node, for tests of kernels: operands in, a device, outputs back. Whatever goes
// wrong outside the device fails the test at once.
#ifndef INF_TESTS_SUPPORT_MODELS_ONE_NODE_H
#define INF_TESTS_SUPPORT_MODELS_ONE_NODE_H

#include "backends/device/device.h"
#include "tests/support/device/fence.h"

#define ONE_NODE_INPUTS  40
#define ONE_NODE_OUTPUTS 8

struct one_tensor {
    enum inf_dtype dtype;
    struct inf_shape shape;
    void *data;         // aligned to 64, the bytes around it guarded; or at a fence
    struct fence fence; // that holds `data`, where the node is fenced
    size_t size_bytes;  // of the elements
    bool constant;      // inputs: part of the graph
    bool absent;        // inputs: an optional one that is left out
};

struct one_node {
    enum inf_op op;
    union inf_attrs attrs;
    struct one_tensor inputs[ONE_NODE_INPUTS];
    uint32_t input_count;
    struct one_tensor outputs[ONE_NODE_OUTPUTS]; // of the last run that went well
    uint32_t output_count;
    // Devices with memory of their own find f32 operands in 16 bits (struct inf_segment).
    bool lowered;
    bool fenced;        // operands end where memory does, so that a read behind them dies
    const char *kernel; // what computed the last run, as the device calls it; static
};

// Makes an empty node of `op` with default attributes and one output.
void one_node_init(struct one_node *one, enum inf_op op);

// Rounds all floats to what 16 bits hold.
void one_node_round(struct one_node *one);

// Frees operands and outputs.
void one_node_fini(struct one_node *one);

// Moves the inputs to fences, and makes outputs at fences from now on. For devices that compute in
// the host's memory. Constants are no device's to read behind, but the graph has copies of them.
void one_node_fence(struct one_node *one);

// Adds an input that is given at run time; `data` is copied.
void one_node_input(struct one_node *one, enum inf_dtype dtype, struct inf_shape shape,
                    const void *data);

// Adds an input that is a constant of the graph; `data` is copied.
void one_node_const(struct one_node *one, enum inf_dtype dtype, struct inf_shape shape,
                    const void *data);

// Leaves an optional input out.
void one_node_absent(struct one_node *one);

// Makes the graph and infers its shapes. *out_graph is the caller's to destroy.
enum inf_code one_node_graph(const struct one_node *one, struct inf_graph **out_graph,
                             struct inf_error *err) INF_NODISCARD;

// Compiles and runs the node on `device` and keeps its outputs. INF_UNSUPPORTED where the device
// declines. Fails the test where a byte outside the outputs is written, or an input changes.
enum inf_code one_node_run(struct one_node *one, struct inf_device *device,
                           struct inf_error *err) INF_NODISCARD;

// Fails the test unless output `output` of the last run has this type, this shape and these
// elements. Floats may be off by 1e-6 and a 1e-5th part; a NaN wants a NaN.
void one_node_expect(const struct one_node *one, uint32_t output, enum inf_dtype dtype,
                     struct inf_shape shape, const void *elements);

// Whether `got` is within `absolute` plus `relative` times |wanted| of `wanted`. NaN is near NaN
// only, an infinity near itself only.
bool one_node_near(double got, double wanted, double absolute, double relative);

// Frees the outputs.
void one_node_drop_outputs(struct one_node *one);

#endif
