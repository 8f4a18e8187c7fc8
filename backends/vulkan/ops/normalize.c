// SPDX-License-Identifier: Apache-2.0
// Layer, instance and group normalisation.
#include "backends/vulkan/ops/ops.h"

// The push constants of normalize.comp: x is [outer, n, inner].
struct normalization {
    uint32_t count, n, inner;
    struct spread {
        uint32_t under, count;
    } spreads[2];
    float epsilon;
};
_Static_assert(sizeof(struct normalization) == 32, "as normalize.comp");

// Finds the sizes [outer, n, inner] of x. Returns false if the normalised axes are not neighbours.
static bool find_extents(struct normalization *push, const struct inf_shape *x,
                         const struct inf_ints *axes)
{
    uint32_t mask = axes->count == 0 ? (1u << x->rank) - 1 : 0;
    int32_t first = 0;
    for (int32_t i = 0; i < axes->count; i++)
        mask |= 1u << vk_resolve_axis(axes->values[i], x->rank);
    while (first < x->rank && (mask >> first & 1) == 0)
        first++;
    int32_t end = first;
    while (end < x->rank && (mask >> end & 1) != 0)
        end++;
    push->n = vk_dims_product(x, first, end);
    push->inner = vk_dims_product(x, end, x->rank);
    push->count = vk_dims_product(x, 0, first) * push->inner;
    return mask >> end == 0;
}

static int64_t aligned_dim(const struct inf_shape *shape, const struct inf_shape *x, int32_t axis)
{
    int32_t own = axis - (x->rank - shape->rank);
    return own < 0 ? 1 : shape->dims[own];
}

// Finds how a parameter is broadcast to x. Returns false if a broadcast axis lies between axes that
// the parameter has.
static bool find_spread(struct spread *spread, const struct inf_shape *shape,
                        const struct inf_shape *x)
{
    int32_t last = x->rank;
    while (last > 0 && aligned_dim(shape, x, last - 1) == 1)
        last--;
    int32_t first = last;
    while (first > 0 && aligned_dim(shape, x, first - 1) == x->dims[first - 1])
        first--;
    *spread = (struct spread){vk_dims_product(x, last, x->rank), vk_dims_product(x, first, last)};
    for (int32_t axis = 0; axis < first; axis++)
        if (aligned_dim(shape, x, axis) != 1)
            return false;
    return true;
}

enum inf_code vk_lower_normalize(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_normalize *attrs = &lowering->node->attrs.normalize;
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    struct normalization push = {.spreads = {{1, 1}, {1, 1}}, .epsilon = attrs->epsilon};
    bool given[2];
    INF_TRY(vk_need_f32(lowering, 0, err));
    if (!find_extents(&push, x, &attrs->axes))
        return vk_decline(lowering, err, "axes apart are not built");
    for (uint32_t i = 0; i < 2; i++) {
        given[i] = vk_has_input(lowering, 1 + i);
        if (given[i] && !find_spread(&push.spreads[i], vk_input_shape(lowering, 1 + i), x))
            return vk_decline(lowering, err, "input %u stretches in a way that is not built",
                              1 + i);
    }
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_NORMALIZE, {attrs->kind == INF_NORMALIZE_RMS, given[0], given[1]}},
        .invocations = push.count};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    // If a parameter is absent, bind x in its place, because the binding must not be empty. The
    // shader does not read it.
    for (uint32_t i = 0; i < 3; i++) {
        bool own = i > 0 && given[i - 1];
        INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[own ? i : 0], err));
        vk_read_through_view(lowering, &dispatch, i, false);
    }
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    // There are three loops: for the mean, for the squares, and for the results.
    return vk_emit_dispatch(lowering, &dispatch, 3 * vk_loop(push.n, VK_NO_LOOPS).run, err);
}
