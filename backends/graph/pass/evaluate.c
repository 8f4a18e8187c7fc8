// SPDX-License-Identifier: Apache-2.0
// Computes a node before the graph is compiled, for passes and for graphs that are being built.
#include "backends/graph/pass/pass.h"

bool inf_evaluator_compute(const struct inf_evaluator *evaluator, const struct inf_graph *graph,
                           uint32_t node, struct inf_blob *const *outputs)
{
    struct inf_error ignored = {0};
    if (graph->nodes[node].op != INF_OP_SHAPE)
        return evaluator->run(evaluator->context, graph, node, outputs, NULL, &ignored) == INF_OK;
    const struct inf_shape *shape = &graph->values[graph->nodes[node].inputs[0]].shape;
    for (int32_t i = 0; i < shape->rank; i++)
        ((int32_t *)outputs[0]->data)[i] = (int32_t)shape->dims[i];
    return true;
}
