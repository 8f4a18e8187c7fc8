// SPDX-License-Identifier: Apache-2.0
// Private to the passes: a rewrite in progress, and the few steps that all of them are made of.
#ifndef INF_BACKENDS_GRAPH_PASS_PASS_PRIVATE_H
#define INF_BACKENDS_GRAPH_PASS_PASS_PRIVATE_H

#include "backends/graph/graph.h"
#include "backends/graph/pass/pass.h"

// One pass over one graph. Nodes that a pass gets rid of stay in place, marked, until it ends, so
// that node indices hold while it runs.
struct inf_rewrite {
    struct inf_graph *graph;
    const struct inf_evaluator *evaluator; // NULL: nothing is folded
    size_t *fold_budget_bytes;             // what folding may still add to the graph
    uint64_t *fold_budget_work;            // what it may still do: inf_node_work()
    uint32_t *uses;                        // by value: inputs of nodes and outputs of the graph
    uint32_t uses_capacity;
    bool *gone; // by node
    bool changed;
    bool keep_bytes; // dequantize of 8-bit constants is not folded: another pass may want the bytes
    struct inf_error *err;
};

// As its name in pass.h says. Lists the nodes anew: not between inf_rewrite_begin() and _end().
enum inf_code inf_pass_inline(struct inf_rewrite *rewrite) INF_NODISCARD;
// The passes, in the order of enum inf_pass.
enum inf_code inf_pass_drop_identities(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_fold_constants(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_layout(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_quantize(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_fold_batch_norm(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_fuse_bias(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_fuse_activation(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_fuse_pad(struct inf_rewrite *rewrite) INF_NODISCARD;
// As its name in pass.h says.
enum inf_code inf_pass_drop_dead(struct inf_rewrite *rewrite) INF_NODISCARD;

// Starts a rewrite of rewrite->graph (the caller has set graph, evaluator, budget and err).
enum inf_code inf_rewrite_begin(struct inf_rewrite *rewrite) INF_NODISCARD;
// Takes the marked nodes out.
enum inf_code inf_rewrite_end(struct inf_rewrite *rewrite) INF_NODISCARD;
// Frees what begin made; after a failure too.
void inf_rewrite_fini(struct inf_rewrite *rewrite);

// One use of `value` less. A constant that nobody uses any more keeps its place but not its data.
void inf_rewrite_drop_use(struct inf_rewrite *rewrite, uint32_t value);

// Marks a node whose outputs are used no more and drops its uses.
void inf_rewrite_remove(struct inf_rewrite *rewrite, uint32_t node);

// Gives node `keep` the output of node `gone`, which reads the only output of `keep`, and removes
// `gone`: `keep` now does the work of both.
void inf_rewrite_absorb(struct inf_rewrite *rewrite, uint32_t keep, uint32_t gone);

// Makes input `index` of a node `value`, lengthening the list by absent inputs as needed.
enum inf_code inf_rewrite_set_input(struct inf_rewrite *rewrite, uint32_t node, uint32_t index,
                                    uint32_t value) INF_NODISCARD;

// As inf_graph_add_const(), for a constant that the rewrite is about to use.
enum inf_code inf_rewrite_add_const(struct inf_rewrite *rewrite, const char *name,
                                    enum inf_dtype dtype, const struct inf_shape *shape,
                                    struct inf_blob *data, uint32_t *out_value) INF_NODISCARD;

// The node that makes `value` where nothing else uses it, so that the two can become one;
// INF_NODE_NONE otherwise.
uint32_t inf_rewrite_sole_producer(const struct inf_rewrite *rewrite, uint32_t value);

// The fused activation of a node: where its attributes are.
struct inf_activation_slot {
    enum inf_activation *kind;
    float *alpha; // NULL where the operator has none
    float *min, *max;
};

// False where the operator has no fused activation.
bool inf_node_activation(struct inf_node *node, struct inf_activation_slot *slot) INF_NODISCARD;

// A convolution or matrix product, and how its filter and bias hang on output channels.
struct inf_linear {
    uint32_t node;
    uint32_t bias_input; // which input the bias is
    size_t channels;     // of the output; at least 1
    int32_t rank;        // of the output
    size_t inner;        // filter element i is for channel i / inner % channels; 0: not known
    struct inf_activation_slot activation;
};

// Looks at a node as such; false where it is another operator or its shapes are not known enough.
bool inf_linear_view(struct inf_graph *graph, uint32_t node,
                     struct inf_linear *linear) INF_NODISCARD;

// Looks at the node behind `value` as a linear one that something after it can be moved into: used
// nowhere else, FP32, no activation yet, and its bias a constant or absent.
bool inf_linear_open(const struct inf_rewrite *rewrite, uint32_t value,
                     struct inf_linear *linear) INF_NODISCARD;

// The elements of an FP32 constant that adds or multiplies channel by channel: `*stride` 1 for one
// a channel, 0 for one for all. NULL where `value` is none.
const float *inf_linear_per_channel(const struct inf_graph *graph, const struct inf_linear *linear,
                                    uint32_t value, size_t *stride);

// Replaces y by y * scale[c] + offset[c], where y is what the node makes before its activation.
// scale may be NULL (all 1). *done is false, and nothing changed, where a weight would not be finite.
enum inf_code inf_linear_apply(struct inf_rewrite *rewrite, const struct inf_linear *linear,
                               const double *scale, const double *offset, bool *done) INF_NODISCARD;

// Moves the activation of a binary node into `slot`.
void inf_activation_move(struct inf_activation_slot *slot, const struct inf_node *binary);

#endif
