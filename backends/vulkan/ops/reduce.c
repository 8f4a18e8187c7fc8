// SPDX-License-Identifier: Apache-2.0
// Reductions, indices of the minimum or maximum, softmax, batch normalisation.
#include "backends/vulkan/ops/ops.h"

// A row with fewer terms than this is computed by one invocation and not by a subgroup, because
// sharing was measured to be slower: docs/explanation/vulkan.md.
#define STEPS_MIN 8u

// Replaces the dispatch by one in which a subgroup computes each row (lib/rows.glsl). This is done
// only if the device supports it, if rows are long enough to be shared, and if there are so few
// rows that one invocation for each row would not occupy the device.
static void try_subgroup_rows(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                              uint32_t shader, uint32_t rows, uint32_t length)
{
    const struct vk_gpu *gpu = lowering->gpu;
    if (gpu->subgroup_size == 0 || rows >= 2 * gpu->group_size ||
        length / gpu->subgroup_size < STEPS_MIN)
        return;
    struct vk_dispatch shared = *dispatch;
    uint32_t at_once = INF_MAX(gpu->group_size / gpu->subgroup_size, 1u);
    shared.variant.shader = shader;
    shared.invocations = (rows + at_once - 1) / at_once * gpu->group_size;
    if (vk_can_build(lowering, &shared))
        *dispatch = shared;
}

// Returns how many of the `terms` of a row an invocation computes: all of them, or, if the shader
// of the dispatch is `by_rows`, those that a subgroup leaves to one of its invocations.
static uint64_t count_row_terms(const struct vk_lowering *lowering,
                                const struct vk_dispatch *dispatch, uint32_t by_rows,
                                uint32_t terms)
{
    uint32_t shared_by = dispatch->variant.shader == by_rows ? lowering->gpu->subgroup_size : 1;
    return ((uint64_t)terms + shared_by - 1) / shared_by;
}

// --- operator reduce ---

// The push constants of reduce.comp.
struct reduction {
    uint32_t count, terms;
    uint32_t kept_axes, reduced_axes;
    uint32_t kept_dims[REDUCE_AXES], kept_strides[REDUCE_AXES];
    uint32_t reduced_dims[REDUCE_AXES], reduced_strides[REDUCE_AXES];
    float divisor;
};
_Static_assert(sizeof(struct reduction) == 84, "as reduce.comp");

// Adds an axis outside the axes that were added before. Returns false if there are too many axes.
static bool add_axis(uint32_t *axes, uint32_t *dims, uint32_t *strides, uint32_t dim,
                     uint32_t stride)
{
    if (*axes > 0 && stride == strides[*axes - 1] * dims[*axes - 1]) {
        dims[*axes - 1] *= dim;
        return true;
    }
    if (*axes == REDUCE_AXES)
        return false;
    dims[*axes] = dim;
    strides[(*axes)++] = stride;
    return true;
}

// Divides the axes of x, innermost first, into axes that are kept and axes that are reduced.
// Returns false if there are too many axes.
static bool fill_reduction(struct reduction *reduction, const struct inf_shape *x,
                           const struct inf_ints *axes)
{
    uint32_t gone = axes->count == 0 ? UINT32_MAX : 0, stride = 1;
    for (int32_t i = 0; i < axes->count; i++)
        gone |= 1u << vk_resolve_axis(axes->values[i], x->rank);
    reduction->count = reduction->terms = 1;
    for (int32_t axis = x->rank - 1; axis >= 0; axis--) {
        uint32_t dim = (uint32_t)x->dims[axis];
        bool goes = (gone >> axis & 1) != 0, fits = true;
        *(goes ? &reduction->terms : &reduction->count) *= dim;
        if (dim != 1)
            fits = goes ? add_axis(&reduction->reduced_axes, reduction->reduced_dims,
                                   reduction->reduced_strides, dim, stride)
                        : add_axis(&reduction->kept_axes, reduction->kept_dims,
                                   reduction->kept_strides, dim, stride);
        if (!fits)
            return false;
        stride *= dim;
    }
    return true;
}

// Returns true if the reduction can be computed in vectors, because four neighbours of the result
// are also neighbours in x and all strides are multiples of four. Sizes and strides are then
// converted to numbers of vectors.
static bool vectorise_reduction(struct reduction *reduction)
{
    if (reduction->kept_axes == 0 || reduction->kept_strides[0] != 1 ||
        reduction->kept_dims[0] % 4 != 0)
        return false;
    for (uint32_t i = 1; i < reduction->kept_axes; i++)
        reduction->kept_strides[i] /= 4;
    for (uint32_t i = 0; i < reduction->reduced_axes; i++)
        reduction->reduced_strides[i] /= 4;
    reduction->kept_dims[0] /= 4;
    reduction->count /= 4;
    return true;
}

static bool reduce_kind(enum inf_reduce_kind kind, uint32_t *shader_kind)
{
    switch (kind) {
    case INF_REDUCE_SUM:
    case INF_REDUCE_MEAN:
        *shader_kind = REDUCE_SUM;
        return true;
    case INF_REDUCE_MAX:
        *shader_kind = REDUCE_MAX;
        return true;
    case INF_REDUCE_MIN:
        *shader_kind = REDUCE_MIN;
        return true;
    case INF_REDUCE_PROD:
        *shader_kind = REDUCE_PROD;
        return true;
    default:
        return false;
    }
}

enum inf_code vk_lower_reduce(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_reduce *attrs = &lowering->node->attrs.reduce;
    INF_TRY(vk_need_f32(lowering, 0, err));
    uint32_t kind;
    if (!reduce_kind(attrs->kind, &kind))
        return vk_decline(lowering, err, "this kind is not built");
    struct reduction reduction = {.divisor = 1};
    if (!fill_reduction(&reduction, vk_input_shape(lowering, 0), &attrs->axes))
        return vk_decline(lowering, err, "more than %d groups of axes are not built", REDUCE_AXES);
    if (attrs->kind == INF_REDUCE_MEAN)
        reduction.divisor = (float)reduction.terms;
    bool vector = vectorise_reduction(&reduction);
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_REDUCE, {kind, vector}},
                                   .invocations = reduction.count};
    vk_set_push_constants(&dispatch, &reduction, sizeof(reduction));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, &dispatch, 0, vector);
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    try_subgroup_rows(lowering, &dispatch, INF_SHADER_REDUCE_ROWS, reduction.count,
                      reduction.terms);
    // Each term has a loop over its axes but the last one.
    struct vk_loops axes = vk_loop(INF_MAX(reduction.reduced_axes, 1u) - 1, VK_NO_LOOPS);
    uint64_t terms = count_row_terms(lowering, &dispatch, INF_SHADER_REDUCE_ROWS, reduction.terms);
    return vk_emit_dispatch(lowering, &dispatch, vk_loop(terms, axes).run, err);
}

// --- operators arg and softmax, which work along one axis ---

// The push constants of arg.comp and softmax.comp: x is [outer, n, inner].
struct axis_push {
    uint32_t count, n, inner;
};

static struct axis_push axis_push(const struct inf_shape *x, int64_t attribute)
{
    int32_t axis = vk_resolve_axis(attribute, x->rank);
    uint32_t inner = vk_dims_product(x, axis + 1, x->rank);
    return (struct axis_push){
        .count = vk_dims_product(x, 0, axis) * inner, .n = (uint32_t)x->dims[axis], .inner = inner};
}

static enum inf_code bind_axis(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                               const struct axis_push *push, struct inf_error *err)
{
    vk_set_push_constants(dispatch, push, sizeof(*push));
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, dispatch, 0, false);
    return vk_bind_value(lowering, dispatch, lowering->node->outputs[0], err);
}

enum inf_code vk_lower_arg(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_arg *attrs = &lowering->node->attrs.arg;
    INF_TRY(vk_need_f32(lowering, 0, err));
    if (attrs->kind != INF_ARG_MAX && attrs->kind != INF_ARG_MIN)
        return vk_decline(lowering, err, "this kind is not built");
    struct axis_push push = axis_push(vk_input_shape(lowering, 0), attrs->axis);
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_ARG,
                    {attrs->kind == INF_ARG_MAX, vk_output_dtype(lowering, 0) == INF_DTYPE_I64}},
        .invocations = push.count};
    INF_TRY(bind_axis(lowering, &dispatch, &push, err));
    return vk_emit_dispatch(lowering, &dispatch, vk_loop(push.n, VK_NO_LOOPS).run, err);
}

enum inf_code vk_lower_softmax(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_softmax *attrs = &lowering->node->attrs.softmax;
    INF_TRY(vk_need_f32(lowering, 0, err));
    struct axis_push push = axis_push(vk_input_shape(lowering, 0), attrs->axis);
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_SOFTMAX, {attrs->log}},
                                   .invocations = push.count};
    INF_TRY(bind_axis(lowering, &dispatch, &push, err));
    if (push.inner == 1)
        try_subgroup_rows(lowering, &dispatch, INF_SHADER_SOFTMAX_ROWS, push.count, push.n);
    // There are three loops: for the maximum, for the sum, and for the results.
    uint64_t terms = count_row_terms(lowering, &dispatch, INF_SHADER_SOFTMAX_ROWS, push.n);
    return vk_emit_dispatch(lowering, &dispatch, 3 * vk_loop(terms, VK_NO_LOOPS).run, err);
}

// --- operator batch normalisation ---

enum inf_code vk_lower_batch_norm(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    INF_TRY(vk_need_f32(lowering, 0, err));
    struct {
        uint32_t count, channels;
        float epsilon;
    } push = {(uint32_t)inf_shape_elements(x), (uint32_t)x->dims[x->rank - 1],
              lowering->node->attrs.batch_norm.epsilon};
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_NORM, {0}}, .invocations = push.count};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    for (uint32_t i = 0; i < 5; i++) {
        INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[i], err));
        vk_read_through_view(lowering, &dispatch, i, false);
    }
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}
