// SPDX-License-Identifier: Apache-2.0
// Fuses the addition of one constant per channel into a convolution or matrix product, as its bias.
#include <stdlib.h>

#include "backends/graph/pass/linear.h"
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

// Handles a node that adds a constant with one element per channel to a value, or subtracts it:
// node `index` reads value `from`, which a convolution or a matrix product computes. The constant
// becomes the bias of that node, and node `index` is removed.
static enum inf_code fuse_constant(struct inf_rewrite *rewrite, uint32_t index, uint32_t from)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[index];
    struct inf_linear linear;
    size_t stride;
    if (!inf_linear_open(rewrite, node->inputs[from], &linear))
        return INF_OK;
    const float *terms = inf_linear_per_channel(graph, &linear, node->inputs[1 - from], &stride);
    if (terms == NULL)
        return INF_OK;
    double *offset = calloc(linear.channels, sizeof *offset);
    if (offset == NULL)
        return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the %zu channels of node '%s'", linear.channels,
                               node->name);
    double sign = node->attrs.binary.kind == INF_BINARY_SUB ? -1 : 1;
    for (size_t i = 0; i < linear.channels; i++)
        offset[i] = sign * terms[i * stride];
    bool done;
    enum inf_code code = inf_linear_apply(rewrite, &linear, NULL, offset, &done);
    if (code == INF_OK && done) {
        inf_activation_move(&linear.activation, node);
        inf_rewrite_absorb(rewrite, linear.node, index);
    }
    free(offset);
    return code;
}

enum inf_code inf_pass_fuse_bias(struct inf_rewrite *rewrite)
{
    for (uint32_t i = 0; i < rewrite->graph->node_count; i++) {
        const struct inf_node *node = &rewrite->graph->nodes[i];
        if (node->op != INF_OP_BINARY || (node->attrs.binary.kind != INF_BINARY_ADD &&
                                          node->attrs.binary.kind != INF_BINARY_SUB))
            continue;
        bool commutes = node->attrs.binary.kind == INF_BINARY_ADD;
        INF_TRY(fuse_constant(rewrite, i, 0));
        if (!rewrite->removed[i] && commutes)
            INF_TRY(fuse_constant(rewrite, i, 1));
    }
    return INF_OK;
}
