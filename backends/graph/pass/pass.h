// SPDX-License-Identifier: Apache-2.0
// Passes: rewrites of a graph that change no answer. Each can be switched off, and a test runs ref
// before and after each.
#ifndef INF_BACKENDS_GRAPH_PASS_PASS_H
#define INF_BACKENDS_GRAPH_PASS_PASS_H

#include <stdint.h>
#include <stdio.h>

#include "backends/graph/graph.h"

// In the order they run. The list of names is inf_pass_name().
enum inf_pass {
    INF_PASS_INLINE,          // branches with a constant condition and short loops become nodes
    INF_PASS_DROP_IDENTITIES, // identity nodes, and reshapes and casts that change nothing
    INF_PASS_FOLD_CONSTANTS,  // nodes whose inputs are constants become constants
    INF_PASS_LAYOUT,          // transposes move towards the outputs, meet their inverses and go
    // Floats between dequantize and quantize become operators on bytes; products may differ by 1.
    INF_PASS_QUANTIZE,
    // Folds batch_norm, and mul and add by a constant per channel, into the weights of the
    // convolution or matmul before them.
    INF_PASS_FOLD_BATCH_NORM,
    INF_PASS_FUSE_BIAS, // add of a constant per channel becomes the bias of the node before it
    // Fuses an activation into the convolution, matmul or add before it, and min(max(x)) into clip.
    INF_PASS_FUSE_ACTIVATION,
    INF_PASS_FUSE_PAD,  // constant zero pad before a convolution, into its padding
    INF_PASS_DROP_DEAD, // nodes and values that are not used
    INF_PASS_COUNT
};

// Computes one node whose inputs are all constants: the way to run kernels from down here. The
// outputs' shapes are known; outputs[i] is a blob of the right size to fill.
struct inf_evaluator {
    enum inf_code (*run)(void *context, const struct inf_graph *graph, uint32_t node,
                         struct inf_blob *const *outputs, struct inf_error *err);
    // Asks how large the outputs of a node are whose operator leaves that to the values of its
    // inputs: fills in the dimensions of shapes[i] that inference left unknown. INF_UNSUPPORTED
    // where the operator is none such. May be NULL.
    enum inf_code (*measure)(void *context, const struct inf_graph *graph, uint32_t node,
                             struct inf_shape *shapes, struct inf_error *err);
    void *context;
};

struct inf_pass_options {
    uint32_t disabled;                     // bit per enum inf_pass
    const struct inf_evaluator *evaluator; // NULL: nothing is folded
    FILE *dump;                            // NULL, or where the graph is printed after each pass
};

// Runs shape inference, then every enabled pass until nothing changes (at most 8 rounds), verifying
// after each. Values that fold must be below 64 MiB, so that a small file cannot make a large
// graph.
//
// On failure the graph is unusable and only to be destroyed.
enum inf_code inf_passes_run(struct inf_graph *graph, const struct inf_pass_options *options,
                             struct inf_error *err) INF_NODISCARD;

// "fold_constants" and so on; "?" for numbers out of range.
const char *inf_pass_name(enum inf_pass pass);

// The pass of that name; INF_PASS_COUNT where there is none.
enum inf_pass inf_pass_parse(const char *name);

#endif
