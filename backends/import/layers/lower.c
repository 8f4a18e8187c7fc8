// SPDX-License-Identifier: Apache-2.0
// Adds nodes for a layer: calls the graph's builder once, with the layer's name. Code that adds
// several nodes in a row uses the builder directly, see inf_layers_builder().
#include "backends/import/layers/lower.h"

#include <assert.h>

#include "backends/graph/build/operators.h"

struct inf_builder inf_layers_builder(const struct inf_layers_scope *scope, struct inf_error *err)
{
    assert(scope->layer != NULL);
    return (struct inf_builder){.graph = scope->context->graph,
                                .noun = "layer",
                                .name = scope->layer->name,
                                .source = scope->layer->class_name,
                                .cancelled = scope->context->cancelled,
                                .err = err};
}

enum inf_code inf_layers_emit_many(struct inf_layers_scope *scope,
                                   const struct inf_build_node *node, uint32_t *out_values,
                                   uint32_t count, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    struct inf_build_node counted = *node;
    counted.output_count = count;
    inf_build_emit(&b, &counted, out_values);
    return b.code;
}

enum inf_code inf_layers_emit(struct inf_layers_scope *scope, const struct inf_build_node *node,
                              uint32_t *out_value, struct inf_error *err)
{
    return inf_layers_emit_many(scope, node, out_value, 1, err);
}

enum inf_code inf_layers_unary(struct inf_layers_scope *scope, enum inf_unary_kind kind, uint32_t x,
                               uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_unary(&b, kind, x);
    return b.code;
}

enum inf_code inf_layers_binary(struct inf_layers_scope *scope, enum inf_binary_kind kind,
                                uint32_t x, uint32_t y, uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_binary(&b, kind, x, y);
    return b.code;
}

enum inf_code inf_layers_binary_number(struct inf_layers_scope *scope, enum inf_binary_kind kind,
                                       uint32_t x, float number, uint32_t *out_value,
                                       struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_binary(&b, kind, x, inf_build_scalar(&b, INF_DTYPE_F32, (double)number));
    return b.code;
}

enum inf_code inf_layers_cast(struct inf_layers_scope *scope, enum inf_dtype dtype, uint32_t x,
                              uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_cast(&b, x, dtype);
    return b.code;
}

enum inf_code inf_layers_transpose(struct inf_layers_scope *scope, uint32_t x, const int64_t *perm,
                                   uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_transpose(&b, x, perm, inf_build_rank(&b, x));
    return b.code;
}

enum inf_code inf_layers_expand(struct inf_layers_scope *scope, uint32_t x, int64_t axis,
                                uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_expand_dims(&b, x, &axis, 1);
    return b.code;
}

enum inf_code inf_layers_squeeze(struct inf_layers_scope *scope, uint32_t x, int64_t axis,
                                 uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_squeeze(&b, x, &axis, 1);
    return b.code;
}

enum inf_code inf_layers_reduce(struct inf_layers_scope *scope, const struct inf_attrs_reduce *how,
                                uint32_t x, uint32_t *out_value, struct inf_error *err)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_REDUCE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.reduce = *how;
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_add_float(struct inf_layers_scope *scope, float number,
                                   uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_scalar(&b, INF_DTYPE_F32, (double)number);
    return b.code;
}

enum inf_code inf_layers_add_floats(struct inf_layers_scope *scope, const float *numbers,
                                    uint32_t count, uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = inf_build_floats(&b, numbers, count);
    return b.code;
}

// --- transposing between channels first and channels last ---

enum inf_code inf_layers_channels_first(const struct inf_layers_scope *scope, bool *out,
                                        struct inf_error *err)
{
    static const char *const words[] = {"channels_last", "channels_first", NULL};
    int32_t index = 0;
    INF_TRY(inf_layers_choice(&scope->layer->config, "data_format", words, &index, err));
    *out = index == 1;
    return INF_OK;
}

enum inf_code inf_layers_to_last(struct inf_layers_scope *scope, bool first, uint32_t x,
                                 uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = first ? inf_build_channels_last(&b, x) : x;
    return b.code;
}

enum inf_code inf_layers_from_last(struct inf_layers_scope *scope, bool first, uint32_t x,
                                   uint32_t *out_value, struct inf_error *err)
{
    struct inf_builder b = inf_layers_builder(scope, err);
    *out_value = first ? inf_build_channels_first(&b, x) : x;
    return b.code;
}
