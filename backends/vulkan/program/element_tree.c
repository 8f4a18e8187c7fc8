// SPDX-License-Identifier: Apache-2.0
// Finds element-wise trees (element_tree.h) and compiles their shaders. The search starts at the
// last node of a tree and adds the nodes that compute its operands, until bindings or push
// constants are used up.
#include "backends/vulkan/program/element_tree.h"

#include <stdlib.h>
#include <string.h>

#include "backends/jit/glsl.h"
#include "backends/vulkan/ops/broadcast.h"
#include "backends/vulkan/ops/eltwise.h"
#include "backends/vulkan/program/lower_node.h"
#include "backends/vulkan/program/residual.h"
#include "backends/vulkan/program/segment.h"
#include "backends/vulkan/program/tree_shader.h"

// --- finding the element-wise tree of a node ---

static struct vk_lowering lowering_without_program(struct vk_gpu *gpu,
                                                   const struct inf_graph *graph, uint32_t node)
{
    return (struct vk_lowering){
        .gpu = gpu, .graph = graph, .node = &graph->nodes[node], .node_index = node};
}

// Returns true if a generated shader can compute the node, and the node is not part of a residual
// convolution.
static bool is_elementwise(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node)
{
    struct vk_lowering lowering = lowering_without_program(gpu, segment->graph, node);
    struct vk_element_call call;
    struct vk_residual residual;
    if (!vk_element_call_of(&lowering, &call) || vk_lower_node(&lowering, NULL) != INF_OK ||
        vk_input_dtype(&lowering, 0) != INF_DTYPE_F32 ||
        vk_output_dtype(&lowering, 0) != INF_DTYPE_F32 ||
        vk_residual_find(&residual, gpu, segment, node))
        return false;
    for (uint32_t i = 0; i < call.operands; i++) {
        uint32_t row;
        if (vk_operand_broadcast_mode(&lowering, i, &row) > MODE_ROW)
            return false;
    }
    return true;
}

// Returns the only reader of the result of `node` if both nodes may be in one tree; otherwise
// INF_NODE_NONE. Does not check whether the tree has room for both.
static uint32_t find_next(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node)
{
    const struct inf_graph *graph = segment->graph;
    if (!is_elementwise(gpu, segment, node))
        return INF_NODE_NONE;
    uint32_t reader = vk_segment_sole_reader(segment, node);
    if (reader == INF_NODE_NONE || !is_elementwise(gpu, segment, reader))
        return INF_NODE_NONE;
    const struct inf_shape *mine = &graph->values[graph->nodes[node].outputs[0]].shape;
    const struct inf_shape *its = &graph->values[graph->nodes[reader].outputs[0]].shape;
    return inf_shape_equal(mine, its) ? reader : INF_NODE_NONE;
}

static bool has_member(const struct vk_element_tree *tree, uint32_t node)
{
    for (uint32_t i = 0; i < tree->node_count; i++)
        if (tree->nodes[i] == node)
            return true;
    return false;
}

// Tree nodes and operands for which room must be kept, because the search is about to add them.
struct reserve {
    uint32_t nodes, values;
};

// Adds an operand from outside the tree, unless the tree already has it.
static void add_value(struct vk_element_tree *tree, const struct vk_lowering *lowering,
                      uint32_t input)
{
    uint32_t value = lowering->node->inputs[input], row = 0;
    uint32_t mode = vk_operand_broadcast_mode(lowering, input, &row);
    for (uint32_t i = 0; i < tree->value_count; i++)
        if (tree->values[i] == value && tree->modes[i] == mode)
            return;
    tree->values[tree->value_count] = value;
    tree->modes[tree->value_count] = mode;
    tree->rows[tree->value_count++] = row;
}

// Adds `node` and, if possible, the nodes that compute its operands. Returns false if the tree has
// no room for `node`.
static bool grow_tree(struct vk_element_tree *tree, struct vk_gpu *gpu,
                      const struct inf_segment *segment, uint32_t node, struct reserve reserve)
{
    struct vk_lowering lowering = lowering_without_program(gpu, segment->graph, node);
    struct vk_element_call call;
    if (!vk_element_call_of(&lowering, &call) ||
        tree->value_count + call.operands + reserve.values > VK_ELEMENT_TREE_OPERANDS ||
        tree->node_count + 1 + reserve.nodes > VK_ELEMENT_TREE_NODES)
        return false;
    reserve.nodes++;
    for (uint32_t i = 0; i < call.operands; i++) {
        uint32_t maker = segment->graph->values[lowering.node->inputs[i]].producer;
        struct reserve rest = {reserve.nodes, reserve.values + call.operands - 1 - i};
        if (maker != INF_NODE_NONE && has_member(tree, maker))
            // The tree already has this node, because another node of the tree reads its result
            // too.
            continue;
        if (maker != INF_NODE_NONE && vk_segment_has_node(segment, maker) &&
            find_next(gpu, segment, maker) == node && grow_tree(tree, gpu, segment, maker, rest))
            continue;
        add_value(tree, &lowering, i);
    }
    tree->nodes[tree->node_count++] = node;
    return true;
}

// Finds the tree that contains `node` and returns its last node, or `node` itself if it has its own
// step. Trees grow from their last nodes, so a node that does not fit into one tree becomes the
// last node of the next tree.
static uint32_t find_step(struct vk_element_tree *tree, struct vk_gpu *gpu,
                          const struct inf_segment *segment, uint32_t node)
{
    uint32_t next = find_next(gpu, segment, node);
    uint32_t step = next == INF_NODE_NONE ? node : find_step(tree, gpu, segment, next);
    if (next != INF_NODE_NONE && has_member(tree, node))
        return step;
    *tree = (struct vk_element_tree){0};
    if (is_elementwise(gpu, segment, node))
        (void)!grow_tree(tree, gpu, segment, node, (struct reserve){0, 0});
    return node;
}

uint32_t vk_element_tree_step(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node)
{
    struct vk_element_tree tree = {0};
    if (atomic_load_explicit(&gpu->fused_shaders.trees_off, memory_order_relaxed) ||
        find_next(gpu, segment, node) == INF_NODE_NONE)
        return INF_NODE_NONE;
    uint32_t step = find_step(&tree, gpu, segment, node);
    return step == node ? INF_NODE_NONE : step;
}

bool vk_element_tree_find(struct vk_element_tree *tree, struct vk_gpu *gpu,
                          const struct inf_segment *segment, uint32_t node)
{
    *tree = (struct vk_element_tree){0};
    return !atomic_load_explicit(&gpu->fused_shaders.trees_off, memory_order_relaxed) &&
           is_elementwise(gpu, segment, node) && find_step(tree, gpu, segment, node) == node &&
           tree->node_count > 1;
}

// --- compiling the shaders of trees, and emitting their dispatches ---

// Compiles the GLSL source, unless this process has already compiled it. Sets *out_hash to the hash
// of the source, which identifies the shader.
static enum inf_code make_shader(struct vk_gpu *gpu, const char *source, uint64_t *out_hash,
                                 struct inf_error *err) INF_MAY_BLOCK
{
    struct vk_fused_shaders *fusion = &gpu->fused_shaders;
    *out_hash = inf_glsl_hash(source);
    if (vk_fused_shaders_find(fusion, *out_hash) != NULL)
        return INF_OK;
    struct vk_fused_shader *fused = calloc(1, sizeof(*fused));
    struct inf_spirv spirv = {0};
    bool compiled;
    enum inf_code code =
        fused == NULL
            ? inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a shader")
            : inf_glsl_fetch(&spirv, source, gpu->cache_directory, &compiled, err);
    if (code != INF_OK) {
        free(fused);
        return code;
    }
    inf_device_add_count(&gpu->base, INF_COUNT_SHADERS_COMPILED, compiled);
    fused->hash = *out_hash;
    fused->shader =
        (struct inf_shader){.name = "fused", .words = spirv.words, .size_bytes = spirv.size_bytes};
    vk_fused_shaders_add(fusion, fused);
    return INF_OK;
}

// The push constants of a tree.
struct tree_push {
    uint32_t vectors;
    uint32_t rows[VK_ELEMENT_TREE_OPERANDS];
    float parameters[VK_ELEMENT_TREE_NODES][2];
};
_Static_assert(sizeof(struct tree_push) <= VK_PUSH_BYTES_MAX, "as tree_shader.c");

static enum inf_code fill_dispatch(struct vk_lowering *lowering, const struct vk_element_tree *tree,
                                   struct vk_dispatch *dispatch, struct inf_error *err)
{
    struct tree_push push = {
        .vectors = (uint32_t)((inf_shape_elements(vk_output_shape(lowering, 0)) + 3) / 4)};
    memcpy(push.rows, tree->rows, sizeof(push.rows));
    for (uint32_t i = 0; i < tree->node_count; i++) {
        struct vk_lowering member =
            lowering_without_program(lowering->gpu, lowering->graph, tree->nodes[i]);
        struct vk_element_call call;
        (void)!vk_element_call_of(&member, &call);
        push.parameters[i][0] = call.low;
        push.parameters[i][1] = call.high;
    }
    dispatch->invocations = push.vectors;
    vk_set_push_constants(dispatch, &push, sizeof(push));
    for (uint32_t i = 0; i < tree->value_count; i++) {
        INF_TRY(vk_bind_value(lowering, dispatch, tree->values[i], err));
        vk_read_through_view(lowering, dispatch, i, tree->modes[i] != MODE_SCALAR);
    }
    return vk_bind_value(lowering, dispatch, lowering->node->outputs[0], err);
}

static enum inf_code lower_tree(struct vk_lowering *lowering, const struct vk_element_tree *tree,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct vk_dispatch dispatch = {.variant = {.shader = VK_SHADER_FUSED}};
    INF_TRY(fill_dispatch(lowering, tree, &dispatch, err));
    bool half = false;
    for (uint32_t i = 0; i < dispatch.operand_count; i++)
        half |= dispatch.operands[i].half;
    char *source = NULL;
    uint64_t hash = 0;
    INF_TRY(vk_tree_shader_write(&source, lowering, tree, half, err));
    enum inf_code code = make_shader(lowering->gpu, source, &hash, err);
    free(source);
    INF_TRY(code);
    dispatch.variant.constants[0] = (uint32_t)hash;
    dispatch.variant.constants[1] = (uint32_t)(hash >> 32);
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

enum inf_code vk_lower_element_tree(struct vk_lowering *lowering,
                                    const struct vk_element_tree *tree, struct inf_error *err)
{
    enum inf_code code = lower_tree(lowering, tree, err);
    // If pipelines are only created ahead of time, ignore the error, because compiling the program
    // finds and reports it again.
    if ((code != INF_INTERNAL && code != INF_UNSUPPORTED) || lowering->ahead != NULL)
        return code;
    atomic_store_explicit(&lowering->gpu->fused_shaders.trees_off, true, memory_order_relaxed);
    inf_log(lowering->gpu->log, INF_LOG_WARNING, "nothing is fused from now on device=%s",
            lowering->gpu->base.info.name);
    if (err != NULL)
        err->code = INF_UNSUPPORTED;
    return INF_UNSUPPORTED;
}
