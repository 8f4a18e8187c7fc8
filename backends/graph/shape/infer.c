// SPDX-License-Identifier: Apache-2.0
// Infers types and shapes node by node, with the shape function of each operator.
#include "backends/graph/shape/infer.h"

#include <stdlib.h>

#include "backends/graph/shape/rules.h"

static enum inf_code (*const shape_functions[])(struct inf_infer *) = {
#define INF_OP_BEGIN(NAME, name, inputs_min, inputs_max, outputs, dtypes, doc) inf_infer_##name,
#define INF_ATTR_INT(op, field, initial, min, max, doc)
#define INF_ATTR_BOOL(op, field, initial, doc)
#define INF_ATTR_FLOAT(op, field, initial, doc)
#define INF_ATTR_ENUM(op, field, tag, initial, doc)
#define INF_ATTR_INTS(op, field, doc)
#define INF_OP_END(NAME, name)
#include "backends/graph/ops.def"
};

enum inf_code inf_infer_run(struct inf_infer *infer)
{
    const struct inf_node *node = infer->node;
    for (uint32_t i = 0; i < node->output_count; i++)
        infer->shapes[i] = (struct inf_shape){.rank = INF_RANK_UNKNOWN};
    enum inf_code code = inf_infer_types(infer);
    for (uint32_t i = 0; i < node->output_count; i++)
        infer->dtypes[i] = infer->dtype;
    if (code == INF_OK)
        code = shape_functions[node->op](infer);
    if (code != INF_OK)
        return inf_error_prefix(infer->err, code, "node '%s' (%s)", node->name,
                                inf_op_info(node->op)->name);
    return INF_OK;
}

enum inf_code inf_shape_infer_node(struct inf_graph *graph, uint32_t node, struct inf_error *err)
{
    INF_TRY(inf_node_check(graph, &graph->nodes[node], err));
    INF_TRY(inf_infer_subgraphs(graph, node, inf_shape_infer, err));
    uint32_t output_count = graph->nodes[node].output_count;
    struct inf_infer infer = {
        .graph = graph,
        .node = &graph->nodes[node],
        .dtypes = calloc(output_count, sizeof *infer.dtypes),
        .shapes = calloc(output_count, sizeof *infer.shapes),
        .err = err,
    };
    enum inf_code code = INF_OK;
    if (infer.shapes == NULL || infer.dtypes == NULL)
        code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its %u outputs", infer.node->name,
                               output_count);
    else
        code = inf_infer_run(&infer);
    for (uint32_t i = 0; code == INF_OK && i < output_count; i++) {
        struct inf_value *output = &graph->values[infer.node->outputs[i]];
        output->dtype = infer.dtypes[i];
        output->shape = infer.shapes[i];
    }
    free(infer.dtypes);
    free(infer.shapes);
    return code;
}

enum inf_code inf_shape_infer(struct inf_graph *graph, struct inf_error *err)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        INF_TRY(inf_shape_infer_node(graph, i, err));
    return INF_OK;
}

enum inf_code inf_graph_bind_shapes(struct inf_graph *graph, const struct inf_shape *shapes,
                                    struct inf_error *err)
{
    char has[INF_SHAPE_TEXT_SIZE];
    char wanted[INF_SHAPE_TEXT_SIZE];
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        size_t size_bytes;
        if (!inf_shape_matches(&shapes[i], &value->shape))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                                   "input '%s' has shape %s, wanted %s", graph->inputs[i].name,
                                   inf_shape_print(&shapes[i], has),
                                   inf_shape_print(&value->shape, wanted));
        if (!inf_shape_bytes(&shapes[i], value->dtype, &size_bytes))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                                   "input '%s' has shape %s, wanted known sizes of at most %llu "
                                   "bytes together",
                                   graph->inputs[i].name, inf_shape_print(&shapes[i], has),
                                   (unsigned long long)INF_LIMIT_TENSOR_BYTES);
    }
    for (uint32_t i = 0; i < graph->input_count; i++)
        graph->values[graph->inputs[i].value].shape = shapes[i];
    return INF_OK;
}
