// SPDX-License-Identifier: Apache-2.0
// Folds multiplications and additions by one constant per channel into the weights of the node
// before them.
#include <math.h>
#include <stdlib.h>

#include "backends/graph/pass/linear.h"
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

// The operation that a node applies to each channel: y = x * scale[c] + offset[c].
struct affine {
    double *scale, *offset;
    size_t channels;
    bool finite;
};

// Converts the four parameters of a batch_norm, one element per channel each, to scale and offset.
static bool read_batch_norm(const struct inf_graph *graph, const struct inf_node *node,
                            const struct inf_linear *linear, struct affine *affine)
{
    const float *parameters[4]; // scale, offset, mean, variance
    for (uint32_t i = 0; i < 4; i++) {
        size_t stride;
        parameters[i] = inf_linear_per_channel(graph, linear, node->inputs[1 + i], &stride);
        if (parameters[i] == NULL)
            return false;
    }
    for (size_t i = 0; i < affine->channels; i++) {
        double deviation = sqrt((double)parameters[3][i] + node->attrs.batch_norm.epsilon);
        double scale = deviation > 0 ? parameters[0][i] / deviation : NAN;
        affine->scale[i] = scale;
        affine->offset[i] = parameters[1][i] - parameters[2][i] * scale;
        affine->finite &= isfinite(scale) && isfinite(affine->offset[i]);
    }
    return true;
}

// Reads the constant that a node multiplies by, as one number per channel.
static bool read_factor(const struct inf_graph *graph, uint32_t value,
                        const struct inf_linear *linear, struct affine *affine)
{
    size_t stride;
    const float *factors = inf_linear_per_channel(graph, linear, value, &stride);
    for (size_t i = 0; factors != NULL && i < affine->channels; i++) {
        affine->scale[i] = factors[i * stride];
        affine->offset[i] = 0;
        affine->finite &= isfinite(affine->scale[i]) != 0;
    }
    return factors != NULL;
}

// Returns whether the filter of a convolution or matrix product can be scaled per channel: the
// filter is a constant, and the output channel of each of its elements is known.
static bool has_const_filter(const struct inf_graph *graph, const struct inf_linear *linear)
{
    uint32_t filter = graph->nodes[linear->node].inputs[1];
    return inf_graph_is_const(graph, filter) && linear->inner > 0;
}

// Folds node `index`, which scales and offsets each channel, into the convolution or matrix product
// that computes its input `from`, if that is possible.
static enum inf_code fold_scale(struct inf_rewrite *rewrite, uint32_t index, uint32_t from)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[index];
    struct inf_linear linear;
    if (!inf_linear_open(rewrite, node->inputs[from], &linear) || !has_const_filter(graph, &linear))
        return INF_OK;
    double *numbers = calloc(linear.channels, 2 * sizeof *numbers);
    if (numbers == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the %zu channels of node '%s'", linear.channels,
                               node->name);
    struct affine affine = {numbers, numbers + linear.channels, linear.channels, true};
    bool done = node->op == INF_OP_BATCH_NORM
                    ? read_batch_norm(graph, node, &linear, &affine)
                    : read_factor(graph, node->inputs[1 - from], &linear, &affine);
    enum inf_code code = INF_OK;
    if (done && affine.finite)
        code = inf_linear_apply(rewrite, &linear, affine.scale, affine.offset, &done);
    if (code == INF_OK && done && affine.finite) {
        if (node->op == INF_OP_BINARY)
            inf_activation_move(&linear.activation, node);
        inf_rewrite_absorb(rewrite, linear.node, index);
    }
    free(numbers);
    return code;
}

enum inf_code inf_pass_fold_batch_norm(struct inf_rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->graph->node_count; i++) {
        const struct inf_node *node = &rewrite->graph->nodes[i];
        if (node->op == INF_OP_BATCH_NORM) {
            INF_TRY(fold_scale(rewrite, i, 0));
        } else if (node->op == INF_OP_BINARY && node->attrs.binary.kind == INF_BINARY_MUL) {
            INF_TRY(fold_scale(rewrite, i, 0));
            if (!rewrite->removed[i])
                INF_TRY(fold_scale(rewrite, i, 1));
        }
    }
    return INF_OK;
}
