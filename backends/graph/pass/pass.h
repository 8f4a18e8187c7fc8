// SPDX-License-Identifier: Apache-2.0
// Passes: rewrites of a graph that do not change its results. Each pass can be switched off. A test
// runs the reference device `ref` before and after each pass and compares the results.
#ifndef INF_BACKENDS_GRAPH_PASS_PASS_H
#define INF_BACKENDS_GRAPH_PASS_PASS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "backends/graph/graph.h"

// The passes, in the order in which they run. inf_pass_name() uses the same order.
enum inf_pass {
    INF_PASS_INLINE, // branches with a constant condition and short loops become nodes
    // Operators on 16-bit floats compute in FP32; their results are not rounded to 16 bits.
    INF_PASS_WIDEN,
    INF_PASS_DROP_IDENTITIES, // identity nodes, and reshapes and casts that change nothing
    INF_PASS_FOLD_CONSTANTS,  // nodes whose inputs are constants become constants
    // Gelu, silu, RMS and layer normalisation that are written with sums, products and powers
    // become one node.
    INF_PASS_RECOGNIZE,
    // a product with keys or values that are repeated for several heads reads them once
    INF_PASS_SHARE_HEADS,
    INF_PASS_LAYOUT, // transposes move towards the outputs and cancel with their inverses
    // space_to_batch, a convolution and batch_to_space become a dilated convolution
    INF_PASS_FUSE_DILATION,
    // Float operators between dequantize and quantize become operators on bytes. Results of
    // products may differ by 1.
    INF_PASS_QUANTIZE,
    // Folds batch_norm, and mul and add by a constant per channel, into the weights of the
    // convolution or matmul before them.
    INF_PASS_FOLD_BATCH_NORM,
    // folds mul and add by a constant per channel into the weights of the convolution behind them
    INF_PASS_FOLD_OPERAND,
    // the addition of one constant per channel becomes the bias of the node before it
    INF_PASS_FUSE_BIAS,
    // Fuses an activation into the convolution, matmul or add before it, and min(max(x)) into clip.
    INF_PASS_FUSE_ACTIVATION,
    // constant zero padding before a convolution becomes the convolution's padding
    INF_PASS_FUSE_PAD,
    // a matmul reads its second operand transposed: a constant that could not be folded, or any
    // value if few rows are multiplied with it
    INF_PASS_FUSE_TRANSPOSE,
    INF_PASS_DROP_DEAD, // removes nodes and values that are not used
    INF_PASS_COUNT
};

// Computes one node whose inputs are all constants. This callback lets the graph code run kernels
// without depending on a backend. The outputs' shapes are known; outputs[i] is a blob of the right
// size to fill.
struct inf_evaluator {
    // Long work ends with INF_CANCELLED soon after *cancelled is set. NULL: it cannot be cancelled.
    enum inf_code (*run)(void *context, const struct inf_graph *graph, uint32_t node,
                         struct inf_blob *const *outputs, const atomic_bool *cancelled,
                         struct inf_error *err);
    // Computes the output sizes of a node whose operator derives them from the values of its
    // inputs: fills in the dimensions of shapes[i] that inference left unknown. Returns
    // INF_UNSUPPORTED for other operators. The pointer may be NULL.
    enum inf_code (*measure)(void *context, const struct inf_graph *graph, uint32_t node,
                             struct inf_shape *shapes, struct inf_error *err);
    void *context;
};

// Computes a node whose output shapes are known, and sets out_blobs[i] to the elements of output i:
// one reference for the caller. The elements of a shape node follow from the shape of its operand,
// so it needs no evaluator (NULL). After a failure all out_blobs are NULL.
//
// INF_EXHAUSTED    no memory for the outputs.
// INF_UNSUPPORTED  the node cannot be computed.
enum inf_code inf_evaluator_compute(const struct inf_evaluator *evaluator,
                                    const struct inf_graph *graph, uint32_t node,
                                    struct inf_blob **out_blobs) INF_NODISCARD;

struct inf_pass_options {
    // bit set of passes to skip: bit number p stands for the pass p of enum inf_pass
    uint32_t disabled;
    const struct inf_evaluator *evaluator; // NULL disables folding
    FILE *dump; // file that receives the graph after each pass; NULL for none
    // The graph has been through these passes before, and is used as it is.
    bool already_run;
    // Checked before each pass and each node that is folded; NULL: not cancellable.
    const atomic_bool *cancelled;
};

// Runs shape inference, then every enabled pass until nothing changes (at most 8 rounds). Verifies
// the graph after each pass. Only values below 64 MiB, or of at most four times the bytes of the
// constants that they are computed from, are folded, so that a small file cannot make a large
// graph.
//
// INF_CANCELLED  *options->cancelled became true.
//
// After a failure the graph is unusable, and the caller can only destroy it.
enum inf_code inf_passes_run(struct inf_graph *graph, const struct inf_pass_options *options,
                             struct inf_error *err) INF_NODISCARD;

// Returns the name of a pass, such as "fold_constants"; "?" if the number is out of range.
const char *inf_pass_name(enum inf_pass pass);

// Returns the pass with that name; INF_PASS_COUNT if there is none.
enum inf_pass inf_pass_parse(const char *name);

#endif
