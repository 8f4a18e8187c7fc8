// SPDX-License-Identifier: Apache-2.0
// Layers that combine several tensors into one.
#include "backends/import/layers/class_table.h"
#include "backends/import/layers/lower.h"

// Returns the mask of the merged tensor: no mask if no input has one, or the common mask if all
// masks are the same.
static uint32_t merge_masks(const struct inf_layers_scope *scope)
{
    uint32_t mask = scope->inputs[0].mask;
    for (uint32_t i = 1; i < scope->input_count; i++)
        if (scope->inputs[i].mask != mask)
            return INF_LAYERS_MASK_MIXED;
    return mask;
}

// Adds input `index` with the rank of the input that has the most axes. New axes follow the batch
// axis.
static enum inf_code add_aligned_input(struct inf_layers_scope *scope, uint32_t index,
                                       uint32_t *out_value, struct inf_error *err)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < scope->input_count; i++)
        most = INF_MAX(most, inf_layers_shape_of(scope, scope->inputs[i].value)->rank);
    *out_value = scope->inputs[index].value;
    while (inf_layers_shape_of(scope, *out_value)->rank < most)
        INF_TRY(inf_layers_expand(scope, *out_value, 1, out_value, err));
    return INF_OK;
}

static enum inf_code lower_merge(struct inf_layers_scope *scope, struct inf_error *err)
{
    uint32_t value, next;
    INF_TRY(add_aligned_input(scope, 0, &value, err));
    for (uint32_t i = 1; i < scope->input_count; i++) {
        INF_TRY(add_aligned_input(scope, i, &next, err));
        INF_TRY(inf_layers_binary(scope, (enum inf_binary_kind)scope->layer->class->kind, value,
                                  next, &value, err));
    }
    return inf_layers_finish_masked(scope, value, merge_masks(scope), err);
}

static enum inf_code lower_average(struct inf_layers_scope *scope, struct inf_error *err)
{
    INF_TRY(lower_merge(scope, err));
    uint32_t value = scope->result.items[0].value;
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MUL, value, 1.0f / (float)scope->input_count,
                                     &value, err));
    return inf_layers_finish_masked(scope, value, merge_masks(scope), err);
}

static enum inf_code lower_concatenate(struct inf_layers_scope *scope, struct inf_error *err)
{
    int32_t axis = -1;
    uint32_t value;
    INF_TRY(inf_layers_int(&scope->layer->config, "axis", -INF_LIMIT_RANK, INF_LIMIT_RANK - 1,
                           &axis, err));
    INF_TRY(inf_layers_axis(scope, axis, &axis, err));
    uint32_t *values = inf_arena_alloc(scope->context->arena, scope->input_count * sizeof *values);
    if (values == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for %u inputs",
                               scope->input_count);
    for (uint32_t i = 0; i < scope->input_count; i++)
        values[i] = scope->inputs[i].value;
    struct inf_build_node node = {
        .op = INF_OP_CONCAT, .list = values, .input_count = scope->input_count};
    inf_attrs_init(&node.attrs, node.op);
    node.attrs.concat.axis = axis;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    return inf_layers_finish_masked(scope, value, merge_masks(scope), err);
}

// Adds x / sqrt(max(sum of x^2 along axis, 1e-7)), which is x scaled to length 1.
static enum inf_code normalize_operand(struct inf_layers_scope *scope, int32_t axis,
                                       uint32_t *value, struct inf_error *err)
{
    struct inf_attrs_reduce how = {
        .kind = INF_REDUCE_SUM, .axes = {.count = 1, .values = {axis}}, .keep_dims = true};
    uint32_t norm;
    INF_TRY(inf_layers_unary(scope, INF_UNARY_SQUARE, *value, &norm, err));
    INF_TRY(inf_layers_reduce(scope, &how, norm, &norm, err));
    INF_TRY(inf_layers_binary_number(scope, INF_BINARY_MAX, norm, 1e-7f, &norm, err));
    INF_TRY(inf_layers_unary(scope, INF_UNARY_SQRT, norm, &norm, err));
    return inf_layers_binary(scope, INF_BINARY_DIV, *value, norm, value, err);
}

// One operand of a batched matrix product.
struct operand {
    uint32_t value;
    int32_t rank; // 2 or 3
    int32_t axis; // axis that is summed over
};

static enum inf_code read_operand(struct inf_layers_scope *scope, uint32_t index, int32_t axis,
                                  struct operand *operand, struct inf_error *err)
{
    operand->value = scope->inputs[index].value;
    operand->rank = inf_layers_shape_of(scope, operand->value)->rank;
    operand->axis = axis < 0 ? axis + operand->rank : axis;
    if (operand->rank != 2 && operand->rank != 3)
        return inf_layers_fail(scope, err, INF_UNSUPPORTED, "input %u has rank %d, wanted 2 or 3",
                               index, operand->rank);
    if (operand->axis < 1 || operand->axis >= operand->rank)
        return inf_layers_fail(scope, err, INF_INVALID, "has axis %d for an input of rank %d", axis,
                               operand->rank);
    return INF_OK;
}

static enum inf_code lower_dot(struct inf_layers_scope *scope, struct inf_error *err)
{
    static const struct inf_layers_range range = {-INF_LIMIT_RANK, INF_LIMIT_RANK - 1};
    const struct inf_json *config = &scope->layer->config;
    struct operand a, b;
    bool normalized = false;
    int32_t axes[2] = {0, 0};
    uint32_t value;
    INF_TRY(inf_layers_ints(config, "axes", range, axes, 2, err));
    INF_TRY(inf_layers_bool(config, "normalize", &normalized, err));
    INF_TRY(read_operand(scope, 0, axes[0], &a, err));
    INF_TRY(read_operand(scope, 1, axes[1], &b, err));
    if (normalized) {
        INF_TRY(normalize_operand(scope, a.axis, &a.value, err));
        INF_TRY(normalize_operand(scope, b.axis, &b.value, err));
    }
    // A vector becomes a row if it is the left operand, and a column if it is the right one.
    if (a.rank == 2)
        INF_TRY(inf_layers_expand(scope, a.value, 1, &a.value, err));
    if (b.rank == 2)
        INF_TRY(inf_layers_expand(scope, b.value, 2, &b.value, err));
    struct inf_build_node node =
        inf_build_describe(INF_OP_MATMUL, a.value, b.value, INF_VALUE_NONE);
    node.attrs.matmul.transpose_a = a.rank == 3 && a.axis == 1;
    node.attrs.matmul.transpose_b = b.rank == 3 && b.axis == 2;
    INF_TRY(inf_layers_emit(scope, &node, &value, err));
    if (b.rank == 2)
        INF_TRY(inf_layers_squeeze(scope, value, 2, &value, err));
    if (a.rank == 2 && b.rank == 3)
        INF_TRY(inf_layers_squeeze(scope, value, 1, &value, err));
    return inf_layers_finish_masked(scope, value, INF_VALUE_NONE, err);
}

static const struct inf_layers_class classes[] = {
    {"Add", lower_merge, 2, INF_LIMIT_NODE_INPUTS, INF_BINARY_ADD, true},
    {"Multiply", lower_merge, 2, INF_LIMIT_NODE_INPUTS, INF_BINARY_MUL, true},
    {"Maximum", lower_merge, 2, INF_LIMIT_NODE_INPUTS, INF_BINARY_MAX, true},
    {"Minimum", lower_merge, 2, INF_LIMIT_NODE_INPUTS, INF_BINARY_MIN, true},
    {"Subtract", lower_merge, 2, 2, INF_BINARY_SUB, true},
    {"Average", lower_average, 2, INF_LIMIT_NODE_INPUTS, INF_BINARY_ADD, true},
    {"Concatenate", lower_concatenate, 1, INF_LIMIT_NODE_INPUTS, 0, true},
    {"Dot", lower_dot, 2, 2, 0, false},
};

const struct inf_layers_class_table inf_layers_classes_merge = {classes, INF_ARRAY_LENGTH(classes)};
