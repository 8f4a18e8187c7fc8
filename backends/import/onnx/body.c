// SPDX-License-Identifier: Apache-2.0
// Bodies of If, Loop and Scan, and stacks of the values that loop iterations produce.
#include "backends/import/onnx/body.h"

#include <stdio.h>

#include "backends/graph/build/operators.h"
#include "backends/graph/shape/infer.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/lower.h"
#include "backends/import/onnx/narrow.h"

bool inf_onnx_body_read(struct inf_onnx_scope *s, struct inf_onnx_body *body, const char *name)
{
    struct inf_span bytes = {0};
    *body = (struct inf_onnx_body){0};
    if (!inf_onnx_attr_graph(s, name, &bytes)) {
        inf_build_fail(&s->b, INF_INVALID, "lacks attribute '%s'", name);
        return false;
    }
    s->b.code = inf_onnx_graph_read(&body->graph, s->import->arena, bytes, s->b.err);
    if (inf_build_ok(&s->b))
        body->outputs = inf_onnx_port_names(s, body->graph.outputs, body->graph.output_count);
    return inf_build_ok(&s->b);
}

void inf_onnx_body_lower(struct inf_onnx_scope *s, const struct inf_onnx_body *body,
                         const uint32_t *inputs, uint32_t *outputs)
{
    struct inf_onnx_frame frame = {.outer = s->frame,
                                   .opsets = s->frame->opsets,
                                   .capture = body->capture,
                                   .outputs = body->outputs,
                                   .output_count = body->graph.output_count,
                                   .depth = s->frame->depth + 1};
    inf_onnx_lower_initializers(s, &frame, &body->graph);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < body->graph.input_count; i++) {
        bool known;
        if (!inf_onnx_names_add(&frame.names, body->graph.inputs[i].name, inputs[i], &known))
            inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for names");
    }
    inf_onnx_lower_nodes(s, &frame, body->graph.nodes, body->graph.node_count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < body->graph.output_count; i++)
        outputs[i] = inf_onnx_lookup(s, &frame, body->outputs[i]);
    inf_onnx_names_fini(&frame.names);
}

void inf_onnx_body_add_outputs(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count)
{
    char name[16];
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < count; i++) {
        uint32_t node, value = values[i];
        if (inf_onnx_is_sequence(value) || inf_onnx_is_narrow(value)) {
            inf_build_fail(&s->b, INF_UNSUPPORTED, "its body makes %s that only a run can tell",
                           inf_onnx_is_narrow(value) ? "a narrow tensor" : "a sequence");
            return;
        }
        snprintf(name, sizeof name, "%u", s->b.graph->output_count);
        s->b.code = inf_graph_add_node(s->b.graph, INF_OP_IDENTITY, s->node->name, "", &value, 1, 1,
                                       &node, s->b.err);
        if (!inf_build_ok(&s->b))
            return;
        s->b.code = inf_shape_infer_node(s->b.graph, node, s->b.err);
        if (inf_build_ok(&s->b))
            s->b.code = inf_graph_add_output(s->b.graph, name, s->b.graph->nodes[node].outputs[0],
                                             s->b.err);
    }
}

void inf_onnx_stack_push(struct inf_onnx_scope *s, struct inf_onnx_stack *stack, uint32_t value,
                         int32_t axis)
{
    int64_t at = axis;
    if (inf_onnx_is_sequence(value) || inf_onnx_is_narrow(value))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "stacks up sequences or narrow tensors");
    if (inf_build_ok(&s->b) && stack->count < INF_ONNX_ROUNDS_MAX)
        stack->values[stack->count++] = inf_build_expand_dims(&s->b, value, &at, 1);
}

uint32_t inf_onnx_stack_join(struct inf_onnx_scope *s, const struct inf_onnx_stack *stack,
                             int32_t axis)
{
    if (stack->count > 0)
        return inf_build_concat(&s->b, stack->values, stack->count, axis);
    inf_build_fail(&s->b, INF_UNSUPPORTED,
                   "has no rounds, so that the shape of what it scans is not known");
    return INF_VALUE_NONE;
}
