// SPDX-License-Identifier: Apache-2.0
// Adds nodes and constants to the graph for a history, and finds its value for each value of the
// source: a constant, a number that grows with the length of the history, or the result of a node.
// build.c decides which nodes the graph has.
#include "backends/graph/history/emit.h"

enum inf_code inf_history_emit_node(struct inf_history_builder *b, enum inf_op op, const char *name,
                                    const uint32_t *inputs, uint32_t count,
                                    const union inf_attrs *attrs, uint32_t *out_value)
{
    uint32_t node;
    INF_TRY(inf_graph_add_node(b->graph, op, name, "", inputs, count, 1, &node, b->err));
    if (attrs != NULL)
        b->graph->nodes[node].attrs = *attrs;
    *out_value = b->graph->nodes[node].outputs[0];
    return INF_OK;
}

enum inf_code inf_history_emit_binary(struct inf_history_builder *b, enum inf_binary_kind kind,
                                      const char *name, uint32_t x, uint32_t y, uint32_t *out_value)
{
    const uint32_t inputs[] = {x, y};
    union inf_attrs attrs = {0};
    attrs.binary.kind = kind;
    return inf_history_emit_node(b, INF_OP_BINARY, name, inputs, 2, &attrs, out_value);
}

enum inf_code inf_history_emit_constant(struct inf_history_builder *b, enum inf_dtype dtype,
                                        const struct inf_shape *shape, void **out_elements,
                                        uint32_t *out_value)
{
    size_t size_bytes = 0;
    struct inf_blob *blob = NULL;
    if (inf_shape_bytes(shape, dtype, &size_bytes))
        blob = inf_blob_create(size_bytes);
    if (blob == NULL)
        return inf_fail_reason(b->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a constant of %zu bytes", size_bytes);
    *out_elements = blob->data;
    return inf_graph_add_const(b->graph, "history", dtype, shape, blob, out_value, b->err);
}

enum inf_code inf_history_emit_i32(struct inf_history_builder *b, int32_t element,
                                   uint32_t *out_value)
{
    void *elements;
    INF_TRY(
        inf_history_emit_constant(b, INF_DTYPE_I32, &(struct inf_shape){0}, &elements, out_value));
    *(int32_t *)elements = element;
    return INF_OK;
}

enum inf_code inf_history_emit_cast(struct inf_history_builder *b, uint32_t x, enum inf_dtype dtype,
                                    uint32_t *out_value)
{
    union inf_attrs attrs = {0};
    attrs.cast.dtype = dtype;
    return inf_history_emit_node(b, INF_OP_CAST, "history", &x, 1, &attrs, out_value);
}

enum inf_code inf_history_find_constant(struct inf_history_builder *b, uint32_t value,
                                        uint32_t *out_value)
{
    const struct inf_value *sampled = &b->longest->values[value];
    if (sampled->data == NULL)
        return inf_fail(b->err, INF_UNSUPPORTED, "'%s' does not follow from shapes", sampled->name);
    if (b->constants[value] == INF_VALUE_NONE)
        INF_TRY(inf_graph_add_const(b->graph, sampled->name, sampled->dtype, &sampled->shape,
                                    inf_blob_ref(sampled->data), &b->constants[value], b->err));
    *out_value = b->constants[value];
    return INF_OK;
}

static void store_element(enum inf_dtype dtype, void *elements, size_t index, int64_t element)
{
    if (dtype == INF_DTYPE_I64)
        ((int64_t *)elements)[index] = element;
    else
        ((int32_t *)elements)[index] = (int32_t)element;
}

// Adds slope * shift, where the slope is that of the elements of `value`.
static enum inf_code emit_shift(struct inf_history_builder *b, uint32_t value, uint32_t *out_value)
{
    const struct inf_value *mid = &b->second->values[value];
    const struct inf_value *high = &b->longest->values[value];
    uint32_t slope, shift = b->shift;
    void *elements;
    INF_TRY(inf_history_emit_constant(b, mid->dtype, &mid->shape, &elements, &slope));
    for (size_t i = 0; i < inf_shape_elements(&mid->shape); i++)
        store_element(mid->dtype, elements, i,
                      inf_history_element(high, i) - inf_history_element(mid, i));
    if (mid->dtype != INF_DTYPE_I32)
        INF_TRY(inf_history_emit_cast(b, shift, mid->dtype, &shift));
    return inf_history_emit_binary(b, INF_BINARY_MUL, mid->name, slope, shift, out_value);
}

enum inf_code inf_history_find_operand(struct inf_history_builder *b, uint32_t value,
                                       uint32_t *out_value)
{
    uint32_t sampled, shifted;
    *out_value = INF_VALUE_NONE;
    if (value == INF_VALUE_NONE)
        return INF_OK;
    if (b->values[value].kind == INF_HISTORY_CONSTANT)
        return inf_history_find_constant(b, value, out_value);
    if (b->map[value] == INF_VALUE_NONE && b->values[value].kind == INF_HISTORY_LINEAR) {
        INF_TRY(inf_history_find_constant(b, value, &sampled));
        INF_TRY(emit_shift(b, value, &shifted));
        INF_TRY(inf_history_emit_binary(b, INF_BINARY_ADD, b->source->values[value].name, sampled,
                                        shifted, &b->map[value]));
    }
    *out_value = b->map[value];
    return *out_value != INF_VALUE_NONE
               ? INF_OK
               : inf_fail(b->err, INF_UNSUPPORTED, "'%s' is read in another way than by appending",
                          b->source->values[value].name);
}

enum inf_code inf_history_emit_tail_bias(struct inf_history_builder *b, int64_t keys,
                                         uint32_t *out_value)
{
    uint32_t index, used, less, cells[3];
    void *elements;
    for (uint32_t i = 0; i < b->bias_count; i++) {
        *out_value = b->biases[i].value;
        if (b->biases[i].keys == keys)
            return INF_OK;
    }
    INF_TRY(inf_history_emit_constant(b, INF_DTYPE_I32, &INF_SHAPE(keys), &elements, &index));
    for (int64_t i = 0; i < keys; i++)
        ((int32_t *)elements)[i] = (int32_t)i;
    INF_TRY(inf_history_emit_i32(b, (int32_t)keys, &used));
    INF_TRY(inf_history_emit_binary(b, INF_BINARY_ADD, "history", used, b->shift, &used));
    union inf_attrs attrs = {0};
    attrs.compare.kind = INF_COMPARE_LESS;
    const uint32_t compared[] = {index, used};
    INF_TRY(inf_history_emit_node(b, INF_OP_COMPARE, "history", compared, 2, &attrs, &less));
    cells[0] = less;
    for (uint32_t i = 1; i < 3; i++) {
        INF_TRY(inf_history_emit_constant(b, INF_DTYPE_F32, &(struct inf_shape){0}, &elements,
                                          &cells[i]));
        *(float *)elements = i == 1 ? 0 : -__builtin_inff();
    }
    INF_TRY(inf_history_emit_node(b, INF_OP_SELECT, "history", cells, 3, NULL, out_value));
    if (b->bias_count < INF_HISTORY_BIASES_MAX) {
        b->biases[b->bias_count].keys = keys;
        b->biases[b->bias_count++].value = *out_value;
    }
    return INF_OK;
}
