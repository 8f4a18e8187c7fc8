// SPDX-License-Identifier: Apache-2.0
// Computes a node before the graph is compiled, for passes and for graphs that are being built.
#include "backends/base/permute.h"
#include "backends/graph/pass/pass.h"
#include "proto/core/shape.h"

// Transposes elements of 4 bytes, as importers and passes do with the weights of every network: the
// plain loop of the reference device takes several times as long. Returns false for other sizes.
static bool transpose_constant(const struct inf_graph *graph, const struct inf_node *node,
                               void *output)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    const struct inf_ints *perm = &node->attrs.transpose.perm;
    struct inf_permutation permutation = {.rank = (uint32_t)x->shape.rank};
    int64_t steps[INF_LIMIT_RANK];
    if (x->dtype == INF_DTYPE_BYTES || inf_dtype_size(x->dtype) != 4 || x->data == NULL ||
        x->data->data == NULL)
        return false;
    inf_shape_strides(&x->shape, steps);
    for (int32_t i = 0; i < x->shape.rank; i++) {
        int32_t axis = perm->count == 0 ? x->shape.rank - 1 - i : (int32_t)perm->values[i];
        axis += axis < 0 ? x->shape.rank : 0;
        permutation.counts[i] = (size_t)x->shape.dims[axis];
        permutation.steps[i] = (size_t)steps[axis];
    }
    inf_permute_32(&permutation, output, x->data->data);
    return true;
}

// Allocates a blob for each output. Returns false if there is no memory.
static bool create_outputs(const struct inf_graph *graph, const struct inf_node *node,
                           struct inf_blob **blobs)
{
    bool created = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        size_t size_bytes;
        blobs[i] = NULL;
        // A transpose, by far the largest fold of usual models, writes all its bytes.
        if (inf_shape_bytes(&value->shape, value->dtype, &size_bytes))
            blobs[i] = node->op == INF_OP_TRANSPOSE ? inf_blob_create_unset(size_bytes)
                                                    : inf_blob_create(size_bytes);
        created = created && blobs[i] != NULL;
    }
    return created;
}

static bool fill_outputs(const struct inf_evaluator *evaluator, const struct inf_graph *graph,
                         uint32_t node, struct inf_blob *const *outputs)
{
    struct inf_error ignored = {0};
    if (graph->nodes[node].op == INF_OP_TRANSPOSE &&
        transpose_constant(graph, &graph->nodes[node], outputs[0]->data))
        return true;
    if (graph->nodes[node].op != INF_OP_SHAPE)
        return evaluator->run(evaluator->context, graph, node, outputs, NULL, &ignored) == INF_OK;
    const struct inf_shape *shape = &graph->values[graph->nodes[node].inputs[0]].shape;
    for (int32_t i = 0; i < shape->rank; i++)
        ((int32_t *)outputs[0]->data)[i] = (int32_t)shape->dims[i];
    return true;
}

enum inf_code inf_evaluator_compute(const struct inf_evaluator *evaluator,
                                    const struct inf_graph *graph, uint32_t node,
                                    struct inf_blob **out_blobs)
{
    enum inf_code code = INF_EXHAUSTED;
    if (create_outputs(graph, &graph->nodes[node], out_blobs))
        code = fill_outputs(evaluator, graph, node, out_blobs) ? INF_OK : INF_UNSUPPORTED;
    for (uint32_t i = 0; code != INF_OK && i < graph->nodes[node].output_count; i++)
        inf_blob_unref(&out_blobs[i]);
    return code;
}
