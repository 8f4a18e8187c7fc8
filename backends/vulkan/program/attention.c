// SPDX-License-Identifier: Apache-2.0
// Lowers an attention to one dispatch. backends/device/attention_nodes.h finds its nodes.
#include "backends/vulkan/program/attention.h"

#include "backends/vulkan/device/gpu.h"

// The fewest rows and keys. With fewer, most invocations of a work group would be idle.
#define LEAST 8u
// The most columns of the result that one invocation computes.
#define COLUMNS_MAX 16u

// The push constants of attention.comp.
struct attention_push {
    uint32_t groups;
    uint32_t rows, count, depth, width;
    uint32_t row_groups;
    float scale;
    uint32_t mask_column, mask_axes;
    uint32_t mask_dims[ATTENTION_AXES], mask_strides[ATTENTION_AXES];
};
_Static_assert(sizeof(struct attention_push) == 76, "as attention.comp");

static struct vk_variant variant_of(const struct inf_attention *attention)
{
    return (struct vk_variant){
        .shader = INF_SHADER_ATTENTION,
        .constants = {attention->keys_by_row, attention->mask != INF_VALUE_NONE,
                      (uint32_t)(attention->width + ATTENTION_SIDE - 1) / ATTENTION_SIDE},
        .group_size = ATTENTION_ROWS * ATTENTION_SIDE};
}

// Finds how the mask is broadcast to the scores. Returns false if they have too many axes.
static bool find_mask(struct attention_push *push, const struct inf_attention *attention,
                      const struct inf_graph *graph)
{
    if (attention->mask == INF_VALUE_NONE)
        return true;
    const struct inf_shape *scores = &attention->scores;
    const struct inf_shape *mask = &graph->values[attention->mask].shape;
    uint32_t step = 1;
    if (scores->rank - 1 > ATTENTION_AXES || mask->rank > scores->rank)
        return false;
    for (int32_t axis = scores->rank - 1; axis >= 0; axis--) {
        int32_t own = axis - (scores->rank - mask->rank);
        uint32_t dim = own < 0 ? 1 : (uint32_t)mask->dims[own];
        uint32_t stride = dim == 1 ? 0 : step;
        step *= dim;
        if (axis == scores->rank - 1) {
            push->mask_column = stride;
            continue;
        }
        push->mask_dims[push->mask_axes] = (uint32_t)scores->dims[axis];
        push->mask_strides[push->mask_axes++] = stride;
    }
    return true;
}

static bool is_off(struct vk_gpu *gpu)
{
    return atomic_load_explicit(&gpu->attention_off, memory_order_relaxed);
}

// Returns true if the shader can compute this attention.
static bool can_fuse(const struct inf_attention *attention, const struct inf_graph *graph)
{
    struct attention_push push = {0};
    return attention->depth <= ATTENTION_DEPTH &&
           attention->width <= (size_t)COLUMNS_MAX * ATTENTION_SIDE &&
           find_mask(&push, attention, graph);
}

bool vk_attention_find(struct inf_attention *attention, struct vk_gpu *gpu,
                       const struct inf_segment *segment, uint32_t node)
{
    return !is_off(gpu) && inf_attention_find(attention, segment->graph, node, segment, LEAST) &&
           can_fuse(attention, segment->graph);
}

uint32_t vk_attention_end(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node)
{
    struct inf_attention attention;
    if (is_off(gpu))
        return INF_NODE_NONE;
    uint32_t end = inf_attention_end(segment->graph, node, segment, LEAST);
    return end != INF_NODE_NONE && vk_attention_find(&attention, gpu, segment, end) ? end
                                                                                    : INF_NODE_NONE;
}

enum inf_code vk_lower_attention(struct vk_lowering *lowering,
                                 const struct inf_attention *attention, struct inf_error *err)
{
    struct attention_push push = {.rows = (uint32_t)attention->rows,
                                  .count = (uint32_t)attention->key_count,
                                  .depth = (uint32_t)attention->depth,
                                  .width = (uint32_t)attention->width,
                                  .scale = attention->scale};
    push.row_groups = (push.rows + ATTENTION_ROWS - 1) / ATTENTION_ROWS;
    push.groups = (uint32_t)attention->products * push.row_groups;
    if (!find_mask(&push, attention, lowering->graph))
        return vk_decline(lowering, err, "its mask has more than %d axes", ATTENTION_AXES + 1);
    struct vk_dispatch dispatch = {.variant = variant_of(attention)};
    dispatch.invocations = push.groups * dispatch.variant.group_size;
    dispatch.cost = (uint64_t)attention->products * attention->rows * attention->key_count *
                    (attention->depth + attention->width);
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    // If there is no mask, bind the queries again, because the binding must not be empty. The
    // shader does not read it.
    uint32_t mask = attention->mask != INF_VALUE_NONE ? attention->mask : attention->q;
    const uint32_t operands[] = {attention->q, attention->keys, attention->values, mask};
    for (uint32_t i = 0; i < INF_ARRAY_LENGTH(operands); i++) {
        INF_TRY(vk_bind_value(lowering, &dispatch, operands[i], err));
        vk_read_through_view(lowering, &dispatch, i, false);
    }
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    enum inf_code code = vk_emit_dispatch(lowering, &dispatch, err);
    if (code != INF_UNSUPPORTED || lowering->ahead != NULL)
        return code;
    atomic_store_explicit(&lowering->gpu->attention_off, true, memory_order_relaxed);
    inf_log(lowering->gpu->log, INF_LOG_WARNING,
            "attention is computed node by node from now on device=%s",
            lowering->gpu->base.info.name);
    return code;
}
