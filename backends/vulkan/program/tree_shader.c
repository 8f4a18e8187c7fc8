// SPDX-License-Identifier: Apache-2.0
// Writes the GLSL of an element-wise tree: the loads of operands, one line for each node, and the
// store of the result.
#include "backends/vulkan/program/tree_shader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/vulkan/ops/broadcast.h"
#include "backends/vulkan/ops/eltwise.h"

static void write_loads(FILE *text, const struct vk_element_tree *tree)
{
    for (uint32_t i = 0; i < tree->value_count; i++) {
        fprintf(text, "    vec4 v%" PRIu32 " = ", i);
        if (tree->modes[i] == MODE_FLAT)
            fprintf(text, "x%" PRIu32 "_4(i);\n", i);
        else if (tree->modes[i] == MODE_SCALAR)
            fprintf(text, "vec4(x%" PRIu32 "_(0u));\n", i);
        else
            fprintf(text, "x%" PRIu32 "_4(i %% p.rows[%" PRIu32 "]);\n", i, i);
    }
}

// Writes an operand of a node: the result of another node of the tree, or an element of an operand
// from outside the tree.
static void write_operand(FILE *text, const struct vk_element_tree *tree,
                          const struct vk_lowering *member, uint32_t input)
{
    uint32_t value = member->node->inputs[input];
    uint32_t maker = member->graph->values[value].producer, row;
    for (uint32_t i = 0; i < tree->node_count && maker != INF_NODE_NONE; i++) {
        if (tree->nodes[i] != maker)
            continue;
        fprintf(text, "t%" PRIu32, i);
        return;
    }
    for (uint32_t i = 0; i < tree->value_count; i++) {
        if (tree->values[i] != value ||
            tree->modes[i] != vk_operand_broadcast_mode(member, input, &row))
            continue;
        fprintf(text, "v%" PRIu32 "[k]", i);
        return;
    }
}

static void write_node(FILE *text, const struct vk_element_tree *tree,
                       const struct vk_lowering *lowering, uint32_t index)
{
    struct vk_lowering member = *lowering;
    struct vk_element_call call;
    member.node_index = tree->nodes[index];
    member.node = &lowering->graph->nodes[member.node_index];
    (void)!vk_element_call_of(&member, &call);
    fprintf(text, "        float t%" PRIu32 " = ", index);
    if (call.operands == 2) {
        fprintf(text, "activate(%" PRIu32 "u, combine(%" PRIu32 "u, ", call.function, call.kind);
        write_operand(text, tree, &member, 0);
        fprintf(text, ", ");
        write_operand(text, tree, &member, 1);
        fprintf(text, ")");
    } else {
        fprintf(text, "apply(%" PRIu32 "u, ", call.function);
        write_operand(text, tree, &member, 0);
    }
    fprintf(text, ", p.parameters[%" PRIu32 "], p.parameters[%" PRIu32 "]);\n", 2 * index,
            2 * index + 1);
}

static void write_shader(FILE *text, const struct vk_lowering *lowering,
                         const struct vk_element_tree *tree, bool half)
{
    fprintf(text, "#version 450\n%s%s%s", half ? "#define HALF\n" : "",
            lowering->gpu->texels ? "#define TEXELS\n" : "", inf_shaders_prelude);
    for (uint32_t i = 0; i < tree->value_count; i++)
        fprintf(text, "READS(%" PRIu32 ", x%" PRIu32 "_)\n", i, i);
    fprintf(text, "WRITES(%" PRIu32 ", y)\n", tree->value_count);
    fprintf(
        text,
        "layout(push_constant) uniform P { uint vectors; uint rows[%d]; float parameters[%d]; } "
        "p;\n"
        "void main()\n{\n    uint i = invocation();\n    if (i >= p.vectors)\n        return;\n",
        VK_ELEMENT_TREE_OPERANDS, 2 * VK_ELEMENT_TREE_NODES);
    write_loads(text, tree);
    fprintf(text, "    vec4 result;\n    for (uint k = 0; k < 4; k++) {\n");
    for (uint32_t i = 0; i < tree->node_count; i++)
        write_node(text, tree, lowering, i);
    fprintf(text, "        result[k] = t%" PRIu32 ";\n    }\n    put_y4(i, result);\n}\n",
            tree->node_count - 1);
}

enum inf_code vk_tree_shader_write(char **out_source, const struct vk_lowering *lowering,
                                   const struct vk_element_tree *tree, bool half,
                                   struct inf_error *err)
{
    size_t size;
    char *source = NULL;
    FILE *text = open_memstream(&source, &size);
    bool ok = text != NULL;
    if (ok) {
        write_shader(text, lowering, tree, half);
        ok = ferror(text) == 0;
        ok = fclose(text) == 0 && ok;
    }
    if (!ok) {
        free(source);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a shader");
    }
    *out_source = source;
    return INF_OK;
}
