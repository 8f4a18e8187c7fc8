// SPDX-License-Identifier: Apache-2.0
// Expressions: nodes of the graph added one by one, folded where everything is constant.
#include <math.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/graph/shape/infer.h"
#include "backends/import/onnx/lower.h"

// What one fold may make: shapes, axes and small tables, not weights, which the passes fold.
#define FOLD_OUTPUT_BYTES_MAX ((size_t)64 << 10)
#define FOLD_INPUT_BYTES_MAX  ((size_t)1 << 20)
// What all of them may: a loop of small folds cannot make a large graph either.
#define FOLD_TOTAL_BYTES_MAX ((size_t)64 << 20)

// --- folding ---

static bool is_cheap(enum inf_op op)
{
    return op != INF_OP_BRANCH && op != INF_OP_LOOP && op != INF_OP_RNN && op != INF_OP_CONV_ND &&
           op != INF_OP_POOL_ND && op != INF_OP_CONV2D && op != INF_OP_DEPTHWISE_CONV2D &&
           op != INF_OP_CONV2D_TRANSPOSE && op != INF_OP_POOL2D && op != INF_OP_MATMUL &&
           op != INF_OP_RESIZE && op != INF_OP_QCONV2D && op != INF_OP_QMATMUL &&
           op != INF_OP_DEQUANTIZE; // of weights: the passes may want them as they are
}

static bool inputs_fit(const struct inf_graph *graph, const struct inf_node *node)
{
    size_t total = 0;
    if (node->op == INF_OP_SHAPE)
        return inf_shape_known(&graph->values[node->inputs[0]].shape);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == INF_VALUE_NONE)
            continue;
        if (!inf_graph_is_const(graph, node->inputs[i]))
            return false;
        total += graph->values[node->inputs[i]].data->size_bytes;
    }
    return total <= FOLD_INPUT_BYTES_MAX;
}

static bool outputs_fit(const struct inf_graph *graph, const struct inf_node *node, size_t *total)
{
    *total = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        size_t size_bytes;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size_bytes) ||
            size_bytes > FOLD_OUTPUT_BYTES_MAX)
            return false;
        *total += size_bytes;
    }
    return *total <= FOLD_OUTPUT_BYTES_MAX;
}

static bool evaluate(struct inf_onnx_scope *s, uint32_t index, struct inf_blob **blobs)
{
    const struct inf_node *node = &s->graph->nodes[index];
    const struct inf_shape *shape = &s->graph->values[node->inputs[0]].shape;
    const struct inf_evaluator *evaluator = s->import->evaluator;
    struct inf_error ignored;
    if (node->op != INF_OP_SHAPE)
        return evaluator->run(evaluator->context, s->graph, index, blobs, &ignored) == INF_OK;
    for (int32_t i = 0; i < shape->rank; i++)
        ((int32_t *)blobs[0]->data)[i] = (int32_t)shape->dims[i];
    return true;
}

// Makes the last node's outputs constants and takes the node back, where that can be done.
static void fold(struct inf_onnx_scope *s, uint32_t index)
{
    struct inf_node *node = &s->graph->nodes[index];
    struct inf_blob *blobs[INF_LIMIT_RANK] = {0};
    size_t total;
    if (node->output_count > INF_ARRAY_LENGTH(blobs) || !is_cheap(node->op) ||
        (s->import->evaluator == NULL && node->op != INF_OP_SHAPE) || !inputs_fit(s->graph, node) ||
        !outputs_fit(s->graph, node, &total) ||
        s->import->folded_bytes + total > FOLD_TOTAL_BYTES_MAX)
        return;
    bool done = true;
    for (uint32_t i = 0; done && i < node->output_count; i++) {
        const struct inf_value *value = &s->graph->values[node->outputs[i]];
        size_t size_bytes = 0;
        done = inf_shape_bytes(&value->shape, value->dtype, &size_bytes);
        blobs[i] = done ? inf_blob_create(size_bytes) : NULL;
        done = blobs[i] != NULL;
    }
    done = done && evaluate(s, index, blobs);
    for (uint32_t i = 0; i < node->output_count; i++) {
        struct inf_value *value = &s->graph->values[node->outputs[i]];
        if (done) {
            value->data = blobs[i];
            value->producer = INF_NODE_NONE;
        } else {
            inf_blob_unref(&blobs[i]);
        }
    }
    if (!done)
        return;
    s->import->folded_bytes += total;
    s->graph->node_count--;
}

// --- adding nodes ---

struct inf_ox_call inf_ox_call(enum inf_op op, const uint32_t *inputs, uint32_t count)
{
    struct inf_ox_call call = {.op = op, .inputs = inputs, .input_count = count, .output_count = 1};
    inf_attrs_init(&call.attrs, op);
    return call;
}

void inf_ox_emit(struct inf_onnx_scope *s, const struct inf_ox_call *call, uint32_t *out_values)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < call->output_count; i++)
        out_values[i] = INF_VALUE_NONE;
    if (!inf_ox_ok(s))
        return;
    s->code = inf_graph_add_node(s->graph, call->op, s->node->name, s->node->op, call->inputs,
                                 call->input_count, call->output_count, &index, s->err);
    if (!inf_ox_ok(s))
        return;
    struct inf_node *node = &s->graph->nodes[index];
    node->attrs = call->attrs;
    memcpy(out_values, node->outputs, call->output_count * sizeof *out_values);
    s->code = inf_shape_infer_node(s->graph, index, s->err);
    if (inf_ox_ok(s))
        fold(s, index);
}

uint32_t inf_ox_value(struct inf_onnx_scope *s, const struct inf_ox_call *call)
{
    uint32_t value = INF_VALUE_NONE;
    if (inf_ox_ok(s))
        inf_ox_emit(s, call, &value);
    return value;
}

// --- constants ---

uint32_t inf_ox_const(struct inf_onnx_scope *s, enum inf_dtype dtype, const struct inf_shape *shape,
                      void *out_data)
{
    void *data = NULL;
    uint32_t value = INF_VALUE_NONE;
    size_t size_bytes;
    memcpy(out_data, &data, sizeof data);
    if (!inf_ox_ok(s))
        return value;
    if (!inf_shape_bytes(shape, dtype, &size_bytes) || size_bytes > FOLD_TOTAL_BYTES_MAX) {
        inf_ox_fail(s, INF_EXHAUSTED, "it needs a constant that is too large");
        return value;
    }
    struct inf_blob *blob = inf_blob_create(size_bytes);
    data = blob != NULL ? blob->data : NULL;
    s->code = inf_graph_add_const(s->graph, s->node->name, dtype, shape, blob, &value, s->err);
    if (inf_ox_ok(s))
        memcpy(out_data, &data, sizeof data);
    return inf_ox_ok(s) ? value : INF_VALUE_NONE;
}

static void store_number(void *data, enum inf_dtype dtype, size_t index, double number)
{
    switch (dtype) {
    case INF_DTYPE_F32:
        ((float *)data)[index] = (float)number;
        break;
    case INF_DTYPE_F64:
        ((double *)data)[index] = number;
        break;
    case INF_DTYPE_F16:
        ((uint16_t *)data)[index] = inf_half_from_float((float)number);
        break;
    case INF_DTYPE_BF16:
        ((uint16_t *)data)[index] = inf_bf16_from_float((float)number);
        break;
    case INF_DTYPE_BOOL:
        ((uint8_t *)data)[index] = number != 0;
        break;
    default: {
        // Integers: the low bytes of the 64-bit one, this being a little-endian machine.
        int64_t integer = number >= 0x1p63 ? (int64_t)(uint64_t)number : (int64_t)number;
        size_t size = inf_dtype_size(dtype);
        memcpy((char *)data + index * size, &integer, size);
    }
    }
}

uint32_t inf_ox_scalar(struct inf_onnx_scope *s, enum inf_dtype dtype, double number)
{
    void *data;
    uint32_t value = inf_ox_const(s, dtype, &(struct inf_shape){0}, &data);
    if (data != NULL)
        store_number(data, dtype, 0, number);
    return value;
}

uint32_t inf_ox_list(struct inf_onnx_scope *s, const int64_t *values, uint32_t count)
{
    int32_t *data;
    uint32_t value = inf_ox_const(s, INF_DTYPE_I32, &INF_SHAPE(count), &data);
    for (uint32_t i = 0; data != NULL && i < count; i++)
        data[i] = (int32_t)INF_MAX(INF_MIN(values[i], INT32_MAX), INT32_MIN);
    return value;
}

uint32_t inf_ox_iota(struct inf_onnx_scope *s, enum inf_dtype dtype, int64_t count)
{
    void *data;
    uint32_t value = inf_ox_const(s, dtype, &INF_SHAPE(count), &data);
    for (int64_t i = 0; data != NULL && i < count; i++)
        store_number(data, dtype, (size_t)i, (double)i);
    return value;
}

// --- element by element ---

uint32_t inf_ox_unary(struct inf_onnx_scope *s, enum inf_unary_kind kind, uint32_t x)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_UNARY, &x, 1);
    call.attrs.unary.kind = kind;
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_binary(struct inf_onnx_scope *s, enum inf_binary_kind kind, uint32_t a, uint32_t b)
{
    const uint32_t inputs[] = {a, b};
    struct inf_ox_call call = inf_ox_call(INF_OP_BINARY, inputs, 2);
    call.attrs.binary.kind = kind;
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_binary_number(struct inf_onnx_scope *s, enum inf_binary_kind kind, uint32_t a,
                              double number)
{
    return inf_ox_binary(s, kind, a, inf_ox_scalar(s, inf_ox_dtype(s, a), number));
}

uint32_t inf_ox_compare(struct inf_onnx_scope *s, enum inf_compare_kind kind, uint32_t a,
                        uint32_t b)
{
    const uint32_t inputs[] = {a, b};
    struct inf_ox_call call = inf_ox_call(INF_OP_COMPARE, inputs, 2);
    call.attrs.compare.kind = kind;
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_select(struct inf_onnx_scope *s, uint32_t condition, uint32_t a, uint32_t b)
{
    const uint32_t inputs[] = {condition, a, b};
    struct inf_ox_call call = inf_ox_call(INF_OP_SELECT, inputs, 3);
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_cast(struct inf_onnx_scope *s, uint32_t x, enum inf_dtype dtype)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_CAST, &x, 1);
    call.attrs.cast.dtype = dtype;
    return inf_ox_dtype(s, x) == dtype ? x : inf_ox_value(s, &call);
}

uint32_t inf_ox_clip(struct inf_onnx_scope *s, uint32_t x, double min, double max)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_CLIP, &x, 1);
    call.attrs.clip.min = (float)min;
    call.attrs.clip.max = (float)max;
    return inf_ox_value(s, &call);
}

// --- reductions and products ---

uint32_t inf_ox_reduce(struct inf_onnx_scope *s, enum inf_reduce_kind kind, uint32_t x,
                       const struct inf_ints *axes, bool keep_dims)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_REDUCE, &x, 1);
    call.attrs.reduce.kind = kind;
    call.attrs.reduce.axes = *axes;
    call.attrs.reduce.keep_dims = keep_dims;
    return axes->count == 0 ? x : inf_ox_value(s, &call);
}

uint32_t inf_ox_softmax(struct inf_onnx_scope *s, uint32_t x, int32_t axis, bool log)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_SOFTMAX, &x, 1);
    call.attrs.softmax.axis = axis;
    call.attrs.softmax.log = log;
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_matmul(struct inf_onnx_scope *s, uint32_t a, uint32_t b)
{
    int32_t rank_a = inf_ox_rank(s, a), rank_b = inf_ox_rank(s, b);
    if (rank_a == 0 || rank_b == 0)
        inf_ox_fail(s, INF_INVALID, "an operand is a scalar, wanted at least a vector");
    if (rank_a == 1)
        a = inf_ox_expand_dims(s, a, (int64_t[]){0}, 1);
    if (rank_b == 1)
        b = inf_ox_expand_dims(s, b, (int64_t[]){1}, 1);
    const uint32_t inputs[] = {a, b};
    struct inf_ox_call call = inf_ox_call(INF_OP_MATMUL, inputs, 2);
    uint32_t y = inf_ox_value(s, &call);
    if (rank_a == 1 && rank_b == 1)
        return inf_ox_squeeze(s, y, (int64_t[]){-2, -1}, 2);
    if (rank_a == 1 || rank_b == 1)
        return inf_ox_squeeze(s, y, (int64_t[]){rank_a == 1 ? -2 : -1}, 1);
    return y;
}
