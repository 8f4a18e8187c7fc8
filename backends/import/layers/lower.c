// SPDX-License-Identifier: Apache-2.0
#include "backends/import/layers/lower.h"

#include <string.h>

#include "backends/graph/shape/infer.h"

const struct inf_layers_class *inf_layers_class_find(const char *name)
{
    const struct inf_layers_class_table *const tables[] = {
        &inf_layers_classes_core,      &inf_layers_classes_activation, &inf_layers_classes_conv,
        &inf_layers_classes_pool,      &inf_layers_classes_merge,      &inf_layers_classes_norm,
        &inf_layers_classes_image,     &inf_layers_classes_rnn,        &inf_layers_classes_volume,
        &inf_layers_classes_conv_lstm, &inf_layers_classes_attention,  &inf_layers_classes_decoder,
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(tables); i++)
        for (size_t j = 0; j < tables[i]->count; j++)
            if (strcmp(tables[i]->classes[j].name, name) == 0)
                return &tables[i]->classes[j];
    return NULL;
}

enum inf_code inf_layers_error(const struct inf_layers_layer *layer, enum inf_code code,
                               struct inf_error *err)
{
    return inf_error_prefix(err, code, "layer '%.180s' (%.60s)", layer->name, layer->class_name);
}

enum inf_code inf_layers_spend(struct inf_layers_scope *scope, uint64_t count,
                               struct inf_error *err)
{
    if (count > scope->context->steps_left)
        return inf_layers_fail(scope, err, INF_EXHAUSTED,
                               "the model has more than %u layers and time steps, those of models "
                               "within it counted each time they are called",
                               INF_LAYERS_STEPS_MAX);
    scope->context->steps_left -= (uint32_t)count;
    return INF_OK;
}

// --- nodes ---

struct inf_layers_node inf_layers_node(enum inf_op op, uint32_t a, uint32_t b, uint32_t c)
{
    struct inf_layers_node node = {.op = op, .inputs = {a, b, c}};
    while (node.input_count < 3 && node.inputs[node.input_count] != INF_VALUE_NONE)
        node.input_count++;
    inf_attrs_init(&node.attrs, op);
    return node;
}

enum inf_code inf_layers_emit_many(struct inf_layers_scope *scope,
                                   const struct inf_layers_node *node, uint32_t *out_values,
                                   uint32_t count, struct inf_error *err)
{
    struct inf_graph *graph = scope->context->graph;
    uint32_t index = 0;
    INF_TRY(inf_graph_add_node(graph, node->op, scope->layer->name, scope->layer->class_name,
                               node->list != NULL ? node->list : node->inputs, node->input_count,
                               count, &index, err));
    graph->nodes[index].attrs = node->attrs;
    memcpy(out_values, graph->nodes[index].outputs, count * sizeof *out_values);
    return inf_shape_infer_node(graph, index, err);
}

enum inf_code inf_layers_emit(struct inf_layers_scope *scope, const struct inf_layers_node *node,
                              uint32_t *out_value, struct inf_error *err)
{
    return inf_layers_emit_many(scope, node, out_value, 1, err);
}

enum inf_code inf_layers_unary(struct inf_layers_scope *scope, enum inf_unary_kind kind, uint32_t x,
                               uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_node node = inf_layers_node(INF_OP_UNARY, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.unary.kind = kind;
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_binary(struct inf_layers_scope *scope, enum inf_binary_kind kind,
                                uint32_t a, uint32_t b, uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_node node = inf_layers_node(INF_OP_BINARY, a, b, INF_VALUE_NONE);
    node.attrs.binary.kind = kind;
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_with_number(struct inf_layers_scope *scope, enum inf_binary_kind kind,
                                     uint32_t x, float number, uint32_t *out_value,
                                     struct inf_error *err)
{
    uint32_t constant;
    INF_TRY(inf_layers_floats_const(scope, &number, 0, &constant, err));
    return inf_layers_binary(scope, kind, x, constant, out_value, err);
}

enum inf_code inf_layers_cast(struct inf_layers_scope *scope, enum inf_dtype dtype, uint32_t x,
                              uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_node node = inf_layers_node(INF_OP_CAST, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.cast.dtype = dtype;
    *out_value = x;
    if (scope->context->graph->values[x].dtype == dtype)
        return INF_OK;
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_transpose(struct inf_layers_scope *scope, uint32_t x, const int64_t *perm,
                                   uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_node node =
        inf_layers_node(INF_OP_TRANSPOSE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    int32_t rank = inf_layers_shape_of(scope, x)->rank;
    node.attrs.transpose.perm.count = rank;
    for (int32_t i = 0; i < rank; i++)
        node.attrs.transpose.perm.values[i] = perm[i];
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_expand(struct inf_layers_scope *scope, uint32_t x, int64_t axis,
                                uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_node node =
        inf_layers_node(INF_OP_EXPAND_DIMS, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {axis}};
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_squeeze(struct inf_layers_scope *scope, uint32_t x, int64_t axis,
                                 uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_node node =
        inf_layers_node(INF_OP_SQUEEZE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.squeeze.axes = (struct inf_ints){.count = 1, .values = {axis}};
    return inf_layers_emit(scope, &node, out_value, err);
}

enum inf_code inf_layers_reduce(struct inf_layers_scope *scope, const struct inf_attrs_reduce *how,
                                uint32_t x, uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_node node = inf_layers_node(INF_OP_REDUCE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.reduce = *how;
    return inf_layers_emit(scope, &node, out_value, err);
}

// --- constants and sizes ---

enum inf_code inf_layers_floats_const(struct inf_layers_scope *scope, const float *numbers,
                                      uint32_t count, uint32_t *out_value, struct inf_error *err)
{
    struct inf_shape shape = {0};
    if (count > 0)
        shape = INF_SHAPE(count);
    size_t size = (count > 0 ? count : 1) * sizeof *numbers;
    struct inf_blob *data = inf_blob_create(size);
    if (data == NULL)
        return inf_layers_fail(scope, err, INF_EXHAUSTED, "no memory for a constant");
    memcpy(data->data, numbers, size);
    return inf_graph_add_const(scope->context->graph, scope->layer->name, INF_DTYPE_F32, &shape,
                               data, out_value, err);
}

struct inf_layers_dim inf_layers_dim_fixed(int64_t number)
{
    return (struct inf_layers_dim){.value = INF_VALUE_NONE, .offset = number};
}

struct inf_layers_dim inf_layers_dim_of(uint32_t value, int32_t axis)
{
    return (struct inf_layers_dim){.value = value, .axis = axis, .scale = 1};
}

// Makes sizes that are known numbers.
static enum inf_code settle_dim(struct inf_layers_scope *scope, struct inf_layers_dim *dim,
                                struct inf_error *err)
{
    if (dim->value != INF_VALUE_NONE) {
        int64_t size = inf_layers_shape_of(scope, dim->value)->dims[dim->axis];
        if (size == INF_DIM_UNKNOWN)
            return INF_OK;
        // Sizes are below 2^31, scales and offsets below 2^17.
        *dim = inf_layers_dim_fixed(size * dim->scale + dim->offset);
    }
    if (dim->offset < -1 || dim->offset >= INF_LIMIT_DIM)
        return inf_layers_fail(scope, err, INF_INVALID, "has a size of %lld, wanted 0 to 2^31 - 1",
                               (long long)dim->offset);
    return INF_OK;
}

static enum inf_code add_int(struct inf_layers_scope *scope, int64_t number, uint32_t *out_value,
                             struct inf_error *err)
{
    int32_t element = (int32_t)number;
    return inf_graph_add_const_i32(scope->context->graph, scope->layer->name, &element, 1,
                                   out_value, err);
}

// Adds one size, as a list of one.
static enum inf_code emit_dim(struct inf_layers_scope *scope, const struct inf_layers_dim *dim,
                              uint32_t *out_value, struct inf_error *err)
{
    if (dim->value == INF_VALUE_NONE)
        return add_int(scope, dim->offset, out_value, err);
    struct inf_layers_node shape =
        inf_layers_node(INF_OP_SHAPE, dim->value, INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_layers_node slice =
        inf_layers_node(INF_OP_SLICE, INF_VALUE_NONE, INF_VALUE_NONE, INF_VALUE_NONE);
    uint32_t number;
    slice.input_count = 4;
    INF_TRY(inf_layers_emit(scope, &shape, &slice.inputs[0], err));
    INF_TRY(add_int(scope, dim->axis, &slice.inputs[1], err));
    INF_TRY(add_int(scope, dim->axis + 1, &slice.inputs[2], err));
    INF_TRY(add_int(scope, 1, &slice.inputs[3], err));
    INF_TRY(inf_layers_emit(scope, &slice, out_value, err));
    if (dim->scale != 1) {
        INF_TRY(add_int(scope, dim->scale, &number, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_MUL, *out_value, number, out_value, err));
    }
    if (dim->offset != 0) {
        INF_TRY(add_int(scope, dim->offset, &number, err));
        INF_TRY(inf_layers_binary(scope, INF_BINARY_ADD, *out_value, number, out_value, err));
    }
    return INF_OK;
}

enum inf_code inf_layers_dims(struct inf_layers_scope *scope, const struct inf_layers_dim *dims,
                              uint32_t count, uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_dim settled[INF_LIMIT_RANK + 1];
    uint32_t parts[INF_LIMIT_RANK + 1];
    int32_t numbers[INF_LIMIT_RANK + 1];
    uint32_t unknown = 0;
    if (count > INF_LIMIT_RANK)
        return inf_layers_fail(scope, err, INF_INVALID, "has %u dimensions, wanted at most %d",
                               count, INF_LIMIT_RANK);
    for (uint32_t i = 0; i < count; i++) {
        settled[i] = dims[i];
        INF_TRY(settle_dim(scope, &settled[i], err));
        unknown += settled[i].value != INF_VALUE_NONE;
        numbers[i] = (int32_t)settled[i].offset;
    }
    if (unknown == 0)
        return inf_graph_add_const_i32(scope->context->graph, scope->layer->name, numbers, count,
                                       out_value, err);
    for (uint32_t i = 0; i < count; i++)
        INF_TRY(emit_dim(scope, &settled[i], &parts[i], err));
    struct inf_layers_node join = {.op = INF_OP_CONCAT, .list = parts, .input_count = count};
    inf_attrs_init(&join.attrs, INF_OP_CONCAT);
    return inf_layers_emit(scope, &join, out_value, err);
}

enum inf_code inf_layers_reshape(struct inf_layers_scope *scope, uint32_t x,
                                 const struct inf_layers_dim *dims, uint32_t count,
                                 uint32_t *out_value, struct inf_error *err)
{
    struct inf_layers_dim settled[INF_LIMIT_RANK];
    uint32_t unknown = 0, last = 0;
    bool has_hole = false, has_zero = false;
    for (uint32_t i = 0; i < count && i < INF_LIMIT_RANK; i++) {
        settled[i] = dims[i];
        INF_TRY(settle_dim(scope, &settled[i], err));
        if (settled[i].value != INF_VALUE_NONE) {
            unknown++;
            last = i;
        } else {
            has_hole |= settled[i].offset == -1;
            has_zero |= settled[i].offset == 0;
        }
    }
    // One size that is not known can be left to the reshape, and all others stay known.
    if (unknown == 1 && !has_hole && !has_zero && count <= INF_LIMIT_RANK)
        settled[last] = inf_layers_dim_fixed(-1);
    struct inf_layers_node node =
        inf_layers_node(INF_OP_RESHAPE, x, INF_VALUE_NONE, INF_VALUE_NONE);
    node.input_count = 2;
    INF_TRY(inf_layers_dims(scope, count <= INF_LIMIT_RANK ? settled : dims, count, &node.inputs[1],
                            err));
    return inf_layers_emit(scope, &node, out_value, err);
}
