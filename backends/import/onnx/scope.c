// SPDX-License-Identifier: Apache-2.0
// The scope of a node: a builder named after the node, and the node's inputs and outputs.
#include "backends/import/onnx/scope.h"

#include <assert.h>

struct inf_onnx_scope inf_onnx_scope_make(struct inf_onnx_import *import, struct inf_graph *graph,
                                          const struct inf_onnx_frame *frame,
                                          struct inf_onnx_node *node, struct inf_error *err)
{
    assert(import != NULL && frame != NULL && node != NULL);
    return (struct inf_onnx_scope){.b = {.graph = graph,
                                         .noun = "node",
                                         .name = node->name,
                                         .source = node->op,
                                         .fold = &import->fold,
                                         .cancelled = import->cancelled,
                                         .err = err},
                                   .import = import,
                                   .frame = frame,
                                   .node = node,
                                   .input_count = node->input_count,
                                   .output_count = node->output_count};
}

uint32_t inf_onnx_input(const struct inf_onnx_scope *s, uint32_t index)
{
    return index < s->input_count ? s->inputs[index] : INF_VALUE_NONE;
}

bool inf_onnx_wants_output(const struct inf_onnx_scope *s, uint32_t index)
{
    return index < s->node->output_count && *s->node->outputs[index] != '\0';
}

const char *const *inf_onnx_port_names(struct inf_onnx_scope *s, const struct inf_onnx_port *ports,
                                       uint32_t count)
{
    const char **names = inf_arena_alloc(s->import->arena, ((size_t)count + 1) * sizeof *names);
    if (names == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
    for (uint32_t i = 0; names != NULL && i < count; i++)
        names[i] = ports[i].name;
    return names;
}
