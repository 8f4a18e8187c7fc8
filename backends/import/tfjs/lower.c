// SPDX-License-Identifier: Apache-2.0
#include "backends/import/tfjs/lower.h"

#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/import/tfjs/layout.h"
#include "backends/import/tfjs/region.h"

struct inf_tfjs_call inf_tfjs_call(enum inf_op op, uint32_t a, uint32_t b, uint32_t c)
{
    struct inf_tfjs_call call = {.op = op, .inputs = {a, b, c}, .output_count = 1};
    while (call.input_count < 3 && call.inputs[call.input_count] != INF_VALUE_NONE)
        call.input_count++;
    inf_attrs_init(&call.attrs, op);
    return call;
}

struct inf_tfjs_call inf_tfjs_call_list(enum inf_op op, const uint32_t *inputs, uint32_t count)
{
    struct inf_tfjs_call call = {.op = op, .list = inputs, .input_count = count, .output_count = 1};
    inf_attrs_init(&call.attrs, op);
    return call;
}

enum inf_code inf_tfjs_emit(struct inf_tfjs_scope *scope, const struct inf_tfjs_call *call,
                            uint32_t *out_values, struct inf_error *err)
{
    uint32_t index = 0;
    INF_TRY(inf_tfjs_library_count(scope->library, 1, err));
    INF_TRY(inf_graph_add_node(scope->graph, call->op, scope->node->name, scope->node->op,
                               call->list != NULL ? call->list : call->inputs, call->input_count,
                               call->output_count, &index, err));
    struct inf_node *node = &scope->graph->nodes[index];
    node->attrs = call->attrs;
    memcpy(out_values, node->outputs, call->output_count * sizeof *out_values);
    return inf_shape_infer_node(scope->graph, index, err);
}

enum inf_code inf_tfjs_outputs(struct inf_tfjs_scope *scope, uint32_t count, uint32_t **out_values,
                               struct inf_error *err)
{
    struct inf_tfjs_node *node = scope->node;
    INF_TRY(inf_tfjs_region_take(scope->region, node, err));
    node->values = inf_arena_alloc(&scope->source->arena, count * sizeof *node->values);
    if (node->values == NULL)
        return inf_tfjs_fail(scope, err, INF_EXHAUSTED, "no memory for %u outputs", count);
    for (uint32_t i = 0; i < count; i++)
        node->values[i] = INF_VALUE_NONE;
    node->value_count = count;
    *out_values = node->values;
    return INF_OK;
}

enum inf_code inf_tfjs_result(struct inf_tfjs_scope *scope, uint32_t value, struct inf_error *err)
{
    uint32_t *values = NULL;
    if (scope->channels_first != 0)
        INF_TRY(inf_tfjs_channels_first(scope, &value, err));
    INF_TRY(inf_tfjs_outputs(scope, 1, &values, err));
    values[0] = value;
    return INF_OK;
}

enum inf_code inf_tfjs_finish(struct inf_tfjs_scope *scope, const struct inf_tfjs_call *call,
                              struct inf_error *err)
{
    uint32_t value = INF_VALUE_NONE;
    INF_TRY(inf_tfjs_emit(scope, call, &value, err));
    return inf_tfjs_result(scope, value, err);
}

const struct inf_value *inf_tfjs_input(const struct inf_tfjs_scope *scope, uint32_t input)
{
    return &scope->graph->values[scope->inputs[input]];
}

enum inf_code inf_tfjs_const_ints(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_tfjs_ints *out, struct inf_error *err)
{
    uint32_t value = scope->inputs[input];
    if (!inf_graph_is_const(scope->graph, value))
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                             "%s is computed by other nodes, wanted a constant", what);
    if (!inf_graph_const_ints(scope->graph, value, out->values, INF_ARRAY_LENGTH(out->values),
                              &out->count)) {
        char text[INF_SHAPE_TEXT_SIZE];
        const struct inf_value *constant = inf_tfjs_input(scope, input);
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s is %s %s, wanted at most %zu integers",
                             what, inf_dtype_name(constant->dtype),
                             inf_shape_print(&constant->shape, text),
                             INF_ARRAY_LENGTH(out->values));
    }
    return INF_OK;
}

enum inf_code inf_tfjs_const_axis(struct inf_tfjs_scope *scope, uint32_t input, int32_t *out_axis,
                                  struct inf_error *err)
{
    struct inf_tfjs_ints ints = {.count = 0};
    INF_TRY(inf_tfjs_const_ints(scope, input, "the axis", &ints, err));
    if (ints.count != 1)
        return inf_tfjs_fail(scope, err, INF_INVALID, "the axis has %u elements, wanted 1",
                             ints.count);
    if (ints.values[0] < -INF_LIMIT_RANK || ints.values[0] >= INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_INVALID, "the axis is %lld, wanted %d to %d",
                             (long long)ints.values[0], -INF_LIMIT_RANK, INF_LIMIT_RANK - 1);
    *out_axis = (int32_t)ints.values[0];
    return INF_OK;
}

enum inf_code inf_tfjs_const_axes(struct inf_tfjs_scope *scope, uint32_t input, const char *what,
                                  struct inf_ints *out, struct inf_error *err)
{
    struct inf_tfjs_ints ints = {.count = 0};
    INF_TRY(inf_tfjs_const_ints(scope, input, what, &ints, err));
    if (ints.count > INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_INVALID, "%s has %u elements, wanted at most %d", what,
                             ints.count, INF_LIMIT_RANK);
    out->count = (int32_t)ints.count;
    memcpy(out->values, ints.values, ints.count * sizeof *out->values);
    return INF_OK;
}

bool inf_tfjs_const_float(const struct inf_graph *graph, uint32_t value, float *out)
{
    const struct inf_value *constant = &graph->values[value];
    size_t count;
    if (!inf_graph_is_const(graph, value) || constant->dtype != INF_DTYPE_F32 ||
        !inf_shape_count(&constant->shape, &count) || count != 1)
        return false;
    memcpy(out, constant->data->data, sizeof *out);
    return true;
}

enum inf_code inf_tfjs_add_ints(struct inf_tfjs_scope *scope, const int64_t *values, uint32_t count,
                                uint32_t *out_value, struct inf_error *err)
{
    int32_t elements[2 * INF_LIMIT_RANK];
    for (uint32_t i = 0; i < count; i++)
        elements[i] = (int32_t)values[i];
    return inf_graph_add_const_i32(scope->graph, scope->node->name, elements, count, out_value,
                                   err);
}

enum inf_code inf_tfjs_add_scalar(struct inf_tfjs_scope *scope, enum inf_dtype dtype, double number,
                                  uint32_t *out_value, struct inf_error *err)
{
    struct inf_blob *data = inf_blob_create(inf_dtype_size(dtype));
    if (data == NULL)
        return inf_tfjs_fail(scope, err, INF_EXHAUSTED, "no memory for a constant");
    switch (dtype) {
    case INF_DTYPE_F32:
        *(float *)data->data = (float)number;
        break;
    case INF_DTYPE_I32:
        *(int32_t *)data->data = (int32_t)number;
        break;
    case INF_DTYPE_BOOL:
        *(uint8_t *)data->data = number != 0;
        break;
    default:
        inf_blob_unref(&data);
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "element type %s", inf_dtype_name(dtype));
    }
    return inf_graph_add_const(scope->graph, scope->node->name, dtype, &(struct inf_shape){0}, data,
                               out_value, err);
}

const struct inf_tfjs_op *inf_tfjs_op_find(const char *name)
{
    const struct inf_tfjs_op_table *const tables[] = {
        &inf_tfjs_ops_math,   &inf_tfjs_ops_conv,    &inf_tfjs_ops_shape,    &inf_tfjs_ops_array,
        &inf_tfjs_ops_source, &inf_tfjs_ops_control, &inf_tfjs_ops_list,     &inf_tfjs_ops_pick,
        &inf_tfjs_ops_more,   &inf_tfjs_ops_table,   &inf_tfjs_ops_spectral, &inf_tfjs_ops_random,
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(tables); i++)
        for (size_t j = 0; j < tables[i]->count; j++)
            if (strcmp(tables[i]->ops[j].name, name) == 0)
                return &tables[i]->ops[j];
    return NULL;
}
