// SPDX-License-Identifier: Apache-2.0
// A graph of one node, for tests of kernels. The test adds inputs, runs the node on a device, and
// checks the outputs. An error outside of the device fails the test.
#ifndef INF_TESTS_SUPPORT_MODELS_ONE_NODE_H
#define INF_TESTS_SUPPORT_MODELS_ONE_NODE_H

#include "backends/device/device.h"
#include "tests/support/device/fence.h"

#define ONE_NODE_INPUTS  40
#define ONE_NODE_OUTPUTS 8

struct one_tensor {
    enum inf_dtype dtype;
    struct inf_shape shape;
    // aligned to 64, with guard bytes before and after; if the node is fenced, inside `fence`
    void *data;
    // If the node is fenced, memory that holds `data` and ends at an unreadable page.
    struct fence fence;
    size_t size_bytes; // bytes of the elements
    bool constant;     // for inputs: the input is a constant of the graph
    bool absent;       // for inputs: the input is an absent optional one
};

struct one_node {
    enum inf_op op;
    union inf_attrs attrs;
    struct one_tensor inputs[ONE_NODE_INPUTS];
    uint32_t input_count;
    struct one_tensor outputs[ONE_NODE_OUTPUTS]; // outputs of the last successful run
    uint32_t output_count;
    // True: the device has its own memory, in which it stores f32 operands as 16-bit floats.
    bool lowered;
    bool profiled; // set `kernel` on devices with their own memory too
    bool fenced;   // operands end at an unreadable page, so that a read beyond them crashes
    const atomic_bool *cancelled; // passed to the run; NULL: the run cannot be cancelled
    const char *kernel;           // name of the kernel of the last run; static
};

// Makes an empty node of `op` with default attributes and one output.
void one_node_init(struct one_node *one, enum inf_op op);

// Rounds all float operands to numbers that 16 bits can represent.
void one_node_round(struct one_node *one);

// Frees all operands and outputs.
void one_node_fini(struct one_node *one);

// Moves the inputs to memory that ends at an unreadable page. Later outputs are allocated in the
// same way. Only for devices that compute in the host's memory. Constants are not moved, because
// the graph has copies of them.
void one_node_fence(struct one_node *one);

// Adds an input that is passed at run time. `data` is copied.
void one_node_input(struct one_node *one, enum inf_dtype dtype, struct inf_shape shape,
                    const void *data);

// Adds an input that is a constant of the graph. `data` is copied.
void one_node_const(struct one_node *one, enum inf_dtype dtype, struct inf_shape shape,
                    const void *data);

// Adds an absent optional input.
void one_node_absent(struct one_node *one);

// Makes the graph of the node and infers its shapes. The caller destroys *out_graph.
enum inf_code one_node_graph(const struct one_node *one, struct inf_graph **out_graph,
                             struct inf_error *err) INF_NODISCARD;

// Compiles and runs the node on `device`, and keeps the outputs. Returns INF_UNSUPPORTED if the
// device declines the node. Fails the test if a byte outside of the outputs is written, or if an
// input changes.
enum inf_code one_node_run(struct one_node *one, struct inf_device *device,
                           struct inf_error *err) INF_NODISCARD;

// Fails the test unless output `output` of the last run has this type, shape and elements. Floats
// may differ by 1e-6 plus a relative 1e-5; NaN matches only NaN.
void one_node_expect(const struct one_node *one, uint32_t output, enum inf_dtype dtype,
                     struct inf_shape shape, const void *elements);

// Returns true if |got - wanted| <= absolute + relative * |wanted|. NaN matches only NaN, and an
// infinity matches only itself.
bool one_node_near(double got, double wanted, double absolute, double relative);

// Frees the outputs of the last run.
void one_node_drop_outputs(struct one_node *one);

#endif
