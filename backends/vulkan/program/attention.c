// SPDX-License-Identifier: Apache-2.0
// Chooses between one dispatch for an attention and its nodes one by one, and lowers an attention
// to one dispatch. backends/device/attention_nodes.h finds its nodes.
#include "backends/vulkan/program/attention.h"

#include <math.h>

#include "backends/vulkan/device/gpu.h"
#include "backends/vulkan/ops/sample.h"

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

// Returns the iterations of loops of attention.comp: for each tile of keys, the scores, their
// maximum and the sums.
static uint64_t count_iterations(const struct inf_attention *attention)
{
    struct vk_loops scores =
        vk_loop(ATTENTION_TILE / ATTENTION_SIDE, vk_loop(attention->depth, VK_NO_LOOPS));
    struct vk_loops keys = vk_loop(ATTENTION_TILE, VK_NO_LOOPS);
    uint64_t tiles = ((uint64_t)attention->key_count + ATTENTION_TILE - 1) / ATTENTION_TILE;
    return vk_loop(tiles, vk_join_loops(scores, vk_join_loops(keys, keys))).run +
           vk_loop((uint64_t)ATTENTION_DEPTH / ATTENTION_SIDE, VK_NO_LOOPS).run;
}

// Returns true if the shader can compute this attention on the GPU.
static bool can_fuse(const struct inf_attention *attention, const struct vk_gpu *gpu,
                     const struct inf_graph *graph)
{
    struct attention_push push = {0};
    return count_iterations(attention) <= gpu->loops_max && attention->depth <= ATTENTION_DEPTH &&
           attention->width <= (size_t)COLUMNS_MAX * ATTENTION_SIDE &&
           find_mask(&push, attention, graph);
}

// Finds the attention whose last node is `node`, if the shader can compute it.
static bool find_candidate(struct inf_attention *attention, struct vk_gpu *gpu,
                           const struct inf_segment *segment, uint32_t node)
{
    return !is_off(gpu) && inf_attention_find(attention, segment->graph, node, segment, LEAST) &&
           can_fuse(attention, gpu, segment->graph);
}

// Chooses between one dispatch, which is the rule, and the nodes one by one.
static struct vk_shader_choice choose_method(const struct vk_lowering *lowering,
                                             const struct inf_attention *attention)
{
    static const struct vk_shader_choice list[] = {{VK_BY_ATTENTION, 0, 0}, {VK_BY_NODES, 0, 0}};
    struct attention_push push = {0};
    (void)find_mask(&push, attention, lowering->graph);
    const uint32_t parts[] = {(uint32_t)attention->products,
                              (uint32_t)attention->rows,
                              (uint32_t)attention->key_count,
                              (uint32_t)attention->depth,
                              (uint32_t)attention->width,
                              attention->keys_by_row,
                              attention->scale != 1,
                              attention->mask != INF_VALUE_NONE,
                              push.mask_column,
                              lowering->half_weights};
    uint64_t key = vk_shader_key(lowering, parts, sizeof parts);
    if (lowering->candidates != NULL && key != 0) {
        lowering->candidates->subject = VK_RACE_ATTENTION;
        lowering->candidates->attention = *attention;
    }
    return vk_shader_choose(lowering, key, list[0], list, INF_ARRAY_LENGTH(list));
}

bool vk_attention_is_choice(const struct vk_shader_choice *choice)
{
    return choice != NULL && (choice->method == VK_BY_ATTENTION || choice->method == VK_BY_NODES);
}

void vk_attention_list(const struct vk_lowering *lowering, const struct inf_segment *segment)
{
    struct inf_attention attention;
    if (find_candidate(&attention, lowering->gpu, segment, lowering->node_index))
        (void)choose_method(lowering, &attention);
}

bool vk_attention_find(struct inf_attention *attention, struct vk_gpu *gpu,
                       const struct inf_segment *segment, uint32_t node,
                       const struct vk_shader_choice *forced)
{
    if (!find_candidate(attention, gpu, segment, node))
        return false;
    struct vk_lowering lowering = vk_lowering_of(gpu, segment, node);
    lowering.forced = vk_attention_is_choice(forced) ? forced : NULL;
    return choose_method(&lowering, attention).method == VK_BY_ATTENTION;
}

uint32_t vk_attention_end(struct vk_gpu *gpu, const struct inf_segment *segment, uint32_t node,
                          const struct vk_shader_choice *forced)
{
    struct inf_attention attention;
    if (is_off(gpu))
        return INF_NODE_NONE;
    uint32_t end = inf_attention_end(segment->graph, node, segment, LEAST);
    return end != INF_NODE_NONE && vk_attention_find(&attention, gpu, segment, end, forced)
               ? end
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
    enum inf_code code = vk_emit_dispatch(lowering, &dispatch, count_iterations(attention), err);
    if (code != INF_UNSUPPORTED || lowering->ahead != NULL)
        return code;
    atomic_store_explicit(&lowering->gpu->attention_off, true, memory_order_relaxed);
    inf_log(lowering->gpu->log, INF_LOG_WARNING,
            "attention is computed node by node from now on device=%s",
            lowering->gpu->base.info.name);
    return code;
}

// --- checking samples of results ---

// The number of results that are checked. They are fewer than those of a convolution, because each
// result depends on all keys.
#define SAMPLES 31u

// An attention, and how its mask is broadcast.
struct masked {
    const struct inf_attention *attention;
    struct attention_push push;
};

// Returns the index in the mask of the number for the first key and row `rest` of the scores, as
// attention.comp does.
static size_t find_mask_row(const struct attention_push *push, size_t rest)
{
    size_t at = 0;
    for (uint32_t i = 0; i < push->mask_axes; i++) {
        at += rest % push->mask_dims[i] * push->mask_strides[i];
        rest /= push->mask_dims[i];
    }
    return at;
}

// Computes one result. Rows are counted through all products. Weights are divided by their sum at
// the end; `largest` is the largest score so far.
static struct vk_sample compute_result(const struct vk_sampled *sampled, size_t at)
{
    const struct masked *masked = sampled->node;
    const struct inf_attention *attention = masked->attention;
    size_t row = at / attention->width, column = at % attention->width;
    size_t product = row / attention->rows, count = attention->key_count, depth = attention->depth;
    const float *q = sampled->inputs[0] + row * depth;
    const float *keys = sampled->inputs[1] + product * count * depth;
    const float *values = sampled->inputs[2] + product * count * attention->width + column;
    const float *mask = sampled->inputs[3];
    double largest = -(double)INFINITY, total = 0;
    struct vk_sample sample = {0, 0};
    for (size_t key = 0; key < count; key++) {
        double score = 0;
        for (size_t d = 0; d < depth; d++)
            score += (double)q[d] *
                     (double)keys[attention->keys_by_row ? key * depth + d : d * count + key];
        score *= (double)attention->scale;
        if (mask != NULL)
            score +=
                (double)mask[find_mask_row(&masked->push, row) + key * masked->push.mask_column];
        double value = (double)values[key * attention->width];
        double factor = score > largest ? exp(largest - score) : 1;
        largest = fmax(largest, score);
        double weight = exp(score - largest);
        total = total * factor + weight;
        sample.sum = sample.sum * factor + weight * value;
        sample.size = sample.size * factor + weight * fabs(value);
    }
    return (struct vk_sample){sample.sum / total, sample.size / total};
}

double vk_attention_sample_error(const struct inf_attention *attention,
                                 const struct inf_graph *graph, const float *const operands[4],
                                 const float *y, double most)
{
    struct masked masked = {.attention = attention};
    (void)find_mask(&masked.push, attention, graph);
    const struct vk_sampled sampled = {
        .node = &masked,
        .inputs = {operands[0], operands[1], operands[2], operands[3]},
        .count = attention->products * attention->rows * attention->width,
        .channels = attention->width,
        .samples = SAMPLES,
        .activation = {.function = FN_NONE},
        .compute = compute_result};
    return vk_sample_error(&sampled, y, most);
}
