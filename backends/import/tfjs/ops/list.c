// SPDX-License-Identifier: Apache-2.0
// Lists of tensors: TensorList* and TensorArray*. A list is represented by one tensor, in which the
// items are stacked along the first axis. If the shape of items is unknown, the empty list is [n,0]
// until the first item is set. The handle of a TensorArray is a number that says whether the array
// may grow; its flow value is the list.
#include <string.h>

#include "backends/import/tfjs/lower.h"
#include "backends/import/tfjs/op_table.h"

static enum inf_code emit_node(struct inf_tfjs_scope *scope, enum inf_op op, uint32_t a, uint32_t b,
                               uint32_t *out, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe(op, a, b, INF_VALUE_NONE);
    return inf_tfjs_emit(scope, &call, out, err);
}

// Sets *out to the scalar `value` as a list of one element.
static enum inf_code emit_vector(struct inf_tfjs_scope *scope, uint32_t value, uint32_t *out,
                                 struct inf_error *err)
{
    int64_t minus_one = -1;
    uint32_t shape;
    INF_TRY(inf_tfjs_add_ints(scope, &minus_one, 1, &shape, err));
    return emit_node(scope, INF_OP_RESHAPE, value, shape, out, err);
}

// Sets *out to x and y joined along their first axis.
static enum inf_code emit_concat(struct inf_tfjs_scope *scope, uint32_t a, uint32_t b,
                                 uint32_t *out, struct inf_error *err)
{
    return emit_node(scope, INF_OP_CONCAT, a, b, out, err);
}

// A range of the items of a list. A list is a tensor whose first axis counts the items.
struct part {
    uint32_t x;
    int64_t begin, end;
    uint32_t end_value; // a list of one element, used instead of `end`
    bool to_end;        // true: the part ends at the end of the tensor
    bool shrink;        // true: only the element at `begin`, without the axis
};

static enum inf_code emit_part(struct inf_tfjs_scope *scope, const struct part *part, uint32_t *out,
                               struct inf_error *err)
{
    int64_t one = 1;
    struct inf_build_node call =
        inf_build_describe(INF_OP_SLICE, part->x, INF_VALUE_NONE, INF_VALUE_NONE);
    call.input_count = 4;
    call.inputs[2] = part->end_value;
    INF_TRY(inf_tfjs_add_ints(scope, &part->begin, 1, &call.inputs[1], err));
    if (part->end_value == INF_VALUE_NONE)
        INF_TRY(inf_tfjs_add_ints(scope, &part->end, 1, &call.inputs[2], err));
    INF_TRY(inf_tfjs_add_ints(scope, &one, 1, &call.inputs[3], err));
    call.attrs.slice.end_mask = part->to_end;
    call.attrs.slice.shrink_axis_mask = part->shrink;
    return inf_tfjs_emit(scope, &call, out, err);
}

// Sets *out to the number of items in a list, a scalar.
static enum inf_code emit_length(struct inf_tfjs_scope *scope, uint32_t list, uint32_t *out,
                                 struct inf_error *err)
{
    struct part first = {.end = 1, .end_value = INF_VALUE_NONE, .shrink = true};
    INF_TRY(emit_node(scope, INF_OP_SHAPE, list, INF_VALUE_NONE, &first.x, err));
    return emit_part(scope, &first, out, err);
}

// Sets *out to the dimensions of a list, starting at `first`.
static enum inf_code emit_dims(struct inf_tfjs_scope *scope, uint32_t list, int64_t first,
                               uint32_t *out, struct inf_error *err)
{
    struct part rest = {.begin = first, .end_value = INF_VALUE_NONE, .to_end = true};
    INF_TRY(emit_node(scope, INF_OP_SHAPE, list, INF_VALUE_NONE, &rest.x, err));
    return emit_part(scope, &rest, out, err);
}

// Sets *out to a list of `length` (a scalar) zero items of the given shape; an empty list if the
// shape is unknown.
static enum inf_code emit_list(struct inf_tfjs_scope *scope, uint32_t length,
                               const struct inf_shape *item, enum inf_dtype dtype, uint32_t *out,
                               struct inf_error *err)
{
    int64_t nothing = 0;
    uint32_t dims, shape, zero;
    if (inf_shape_known(item))
        INF_TRY(inf_tfjs_add_ints(scope, item->dims, (uint32_t)item->rank, &dims, err));
    else
        INF_TRY(inf_tfjs_add_ints(scope, &nothing, 1, &dims, err));
    INF_TRY(emit_vector(scope, length, &length, err));
    INF_TRY(emit_concat(scope, length, dims, &shape, err));
    INF_TRY(inf_tfjs_add_scalar(scope, dtype, 0, &zero, err));
    return emit_node(scope, INF_OP_FILL, shape, zero, out, err);
}

// Returns the shape of items in input `input`, as far as it is known.
static struct inf_shape read_item(const struct inf_tfjs_scope *scope, uint32_t input)
{
    struct inf_shape item = {.rank = INF_RANK_UNKNOWN};
    int64_t dims[INF_LIMIT_RANK];
    uint32_t count;
    if (inf_tfjs_input(scope, input)->shape.rank != 1 ||
        !inf_graph_const_ints(scope->graph, scope->inputs[input], dims, INF_LIMIT_RANK - 1, &count))
        return item;
    item.rank = (int32_t)count;
    for (uint32_t i = 0; i < count; i++)
        item.dims[i] = dims[i] < 0 || dims[i] >= INF_LIMIT_DIM ? INF_DIM_UNKNOWN : dims[i];
    return item;
}

static enum inf_code emit_set(struct inf_tfjs_scope *scope, uint32_t list, uint32_t index,
                              uint32_t items, bool grow, uint32_t *out, struct inf_error *err)
{
    struct inf_build_node call = inf_build_describe(INF_OP_LIST_SET, list, index, items);
    call.attrs.list_set.grow = grow;
    return inf_tfjs_emit(scope, &call, out, err);
}

// Sets *out to the joined items of a list: [n,a,b] becomes [n*a,b].
static enum inf_code emit_joined(struct inf_tfjs_scope *scope, uint32_t list, uint32_t *out,
                                 struct inf_error *err)
{
    int64_t minus_one = -1;
    uint32_t rest, first, shape;
    INF_TRY(emit_dims(scope, list, 2, &rest, err));
    INF_TRY(inf_tfjs_add_ints(scope, &minus_one, 1, &first, err));
    INF_TRY(emit_concat(scope, first, rest, &shape, err));
    return emit_node(scope, INF_OP_RESHAPE, list, shape, out, err);
}

// Sets *out to the length of each item of a list, as a list.
static enum inf_code emit_lengths(struct inf_tfjs_scope *scope, uint32_t list, uint32_t *out,
                                  struct inf_error *err)
{
    struct part second = {.begin = 1, .end = 2, .end_value = INF_VALUE_NONE, .shrink = true};
    uint32_t length, count;
    INF_TRY(emit_node(scope, INF_OP_SHAPE, list, INF_VALUE_NONE, &second.x, err));
    INF_TRY(emit_part(scope, &second, &length, err));
    INF_TRY(emit_length(scope, list, &count, err));
    INF_TRY(emit_vector(scope, count, &count, err));
    return emit_node(scope, INF_OP_FILL, count, length, out, err);
}

// --- operators on a TensorList ---

static enum inf_code lower_reserve(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    enum inf_dtype dtype = INF_DTYPE_F32;
    struct inf_shape item = read_item(scope, 0);
    uint32_t value;
    INF_TRY(inf_tfjs_attr_dtype(scope->node, "element_dtype", &dtype, err));
    INF_TRY(emit_list(scope, scope->inputs[1], &item, dtype, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_empty(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    enum inf_dtype dtype = INF_DTYPE_F32;
    struct inf_shape item = read_item(scope, 0);
    uint32_t zero, value;
    INF_TRY(inf_tfjs_attr_dtype(scope->node, "element_dtype", &dtype, err));
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, 0, &zero, err));
    INF_TRY(emit_list(scope, zero, &item, dtype, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_same(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    return inf_tfjs_result(scope, scope->inputs[0], err);
}

static enum inf_code lower_length(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    INF_TRY(emit_length(scope, scope->inputs[scope->input_count - 1], &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Lowers TensorList operators that read the items at one index or several. The inputs are list,
// indices.
static enum inf_code lower_get(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_GATHER, scope->inputs[0], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

static enum inf_code lower_set(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    INF_TRY(
        emit_set(scope, scope->inputs[0], scope->inputs[1], scope->inputs[2], false, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_push(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t length, value;
    INF_TRY(emit_length(scope, scope->inputs[0], &length, err));
    INF_TRY(emit_set(scope, scope->inputs[0], length, scope->inputs[1], true, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_pop(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct part front = {.x = scope->inputs[0], .end = -1, .end_value = INF_VALUE_NONE};
    struct part last = {.x = scope->inputs[0],
                        .begin = -1,
                        .end_value = INF_VALUE_NONE,
                        .to_end = true,
                        .shrink = true};
    uint32_t *values;
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    INF_TRY(emit_part(scope, &front, &values[0], err));
    return emit_part(scope, &last, &values[1], err);
}

// Lowers TensorListResize: truncates the list, or appends items that are filled with zeros.
static enum inf_code lower_resize(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t length, kept, missing, dims, shape, zero, zeros, value;
    struct part front = {.x = scope->inputs[0]};
    INF_TRY(emit_length(scope, scope->inputs[0], &length, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MIN, length, scope->inputs[1], &kept, err));
    INF_TRY(inf_tfjs_binary(scope, INF_BINARY_SUB, scope->inputs[1], kept, &missing, err));
    INF_TRY(emit_vector(scope, kept, &front.end_value, err));
    INF_TRY(emit_part(scope, &front, &value, err));
    INF_TRY(emit_dims(scope, scope->inputs[0], 1, &dims, err));
    INF_TRY(emit_vector(scope, missing, &missing, err));
    INF_TRY(emit_concat(scope, missing, dims, &shape, err));
    INF_TRY(inf_tfjs_add_scalar(scope, inf_tfjs_input(scope, 0)->dtype, 0, &zero, err));
    INF_TRY(emit_node(scope, INF_OP_FILL, shape, zero, &zeros, err));
    INF_TRY(emit_concat(scope, value, zeros, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_list_concat(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values, list = scope->inputs[scope->op->kind];
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    INF_TRY(emit_joined(scope, list, &values[0], err));
    return emit_lengths(scope, list, &values[1], err);
}

// Lowers a scatter to a list. The inputs are tensor, indices, shape of items and, optionally, the
// number of items.
static enum inf_code lower_list_scatter(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_shape item = {.rank = INF_RANK_UNKNOWN};
    uint32_t length, value;
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, 0, &length, err));
    if (scope->input_count > 3) {
        // Replace a negative number of items by 0: -1 means as many items as needed.
        INF_TRY(inf_tfjs_binary(scope, INF_BINARY_MAX, length, scope->inputs[3], &length, err));
    }
    INF_TRY(emit_list(scope, length, &item, inf_tfjs_input(scope, 0)->dtype, &value, err));
    INF_TRY(emit_set(scope, value, scope->inputs[1], scope->inputs[0], true, &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Splits a tensor into items of equal length: [n*a,b] becomes [n,a,b].
static enum inf_code emit_split(struct inf_tfjs_scope *scope, uint32_t tensor,
                                uint32_t lengths_input, uint32_t *out, struct inf_error *err)
{
    struct inf_tfjs_ints lengths;
    uint32_t rest, first, shape;
    INF_TRY(inf_tfjs_const_ints(scope, lengths_input, "lengths", &lengths, err));
    for (uint32_t i = 1; i < lengths.count; i++)
        if (lengths.values[i] != lengths.values[0])
            return inf_tfjs_fail(scope, err, INF_UNSUPPORTED,
                                 "items of lengths %lld and %lld in one list",
                                 (long long)lengths.values[0], (long long)lengths.values[i]);
    int64_t dims[2] = {lengths.count, lengths.count > 0 ? lengths.values[0] : 0};
    if (dims[1] < 0 || dims[1] >= INF_LIMIT_DIM)
        return inf_tfjs_fail(scope, err, INF_INVALID, "an item of length %lld", (long long)dims[1]);
    INF_TRY(inf_tfjs_add_ints(scope, dims, 2, &first, err));
    INF_TRY(emit_dims(scope, tensor, 1, &rest, err));
    INF_TRY(emit_concat(scope, first, rest, &shape, err));
    return emit_node(scope, INF_OP_RESHAPE, tensor, shape, out, err);
}

static enum inf_code lower_list_split(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    INF_TRY(emit_split(scope, scope->inputs[0], 2, &value, err));
    return inf_tfjs_result(scope, value, err);
}

// --- operators on a TensorArray: the first input is the handle, the last one the flow value ---

static enum inf_code lower_array(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    enum inf_dtype dtype = INF_DTYPE_F32;
    struct inf_shape item;
    bool grows = false;
    uint32_t *values;
    INF_TRY(inf_tfjs_attr_dtype(scope->node, "dtype", &dtype, err));
    INF_TRY(inf_tfjs_attr_shape(scope->node, "element_shape", &item, err));
    INF_TRY(inf_tfjs_attr_bool(scope->node, "dynamic_size", &grows, err));
    if (item.rank == INF_LIMIT_RANK)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "items of %d dimensions", item.rank);
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    INF_TRY(inf_tfjs_add_scalar(scope, INF_DTYPE_I32, grows, &values[0], err));
    return emit_list(scope, scope->inputs[0], &item, dtype, &values[1], err);
}

// Lowers TensorArray operators that write items. The inputs are handle, index or indices, items,
// flow.
static enum inf_code lower_array_write(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    int64_t grows;
    uint32_t count, value;
    if (!inf_graph_const_ints(scope->graph, scope->inputs[0], &grows, 1, &count) || count != 1)
        return inf_tfjs_fail(scope, err, INF_INVALID, "its handle is no TensorArray's");
    INF_TRY(emit_set(scope, scope->inputs[3], scope->inputs[1], scope->inputs[2], grows != 0,
                     &value, err));
    return inf_tfjs_result(scope, value, err);
}

// Lowers TensorArray operators that read items. The inputs are handle, index or indices, flow.
static enum inf_code lower_array_read(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_build_node call =
        inf_build_describe(INF_OP_GATHER, scope->inputs[2], scope->inputs[1], INF_VALUE_NONE);
    return inf_tfjs_finish(scope, &call, err);
}

// Lowers TensorArraySplit. The inputs are handle, tensor, lengths, flow.
static enum inf_code lower_array_split(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value;
    INF_TRY(emit_split(scope, scope->inputs[1], 2, &value, err));
    return inf_tfjs_result(scope, value, err);
}

static enum inf_code lower_close(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t *values;
    return inf_tfjs_outputs(scope, 0, &values, err);
}

static const struct inf_tfjs_op ops[] = {
    {"EmptyTensorList", lower_empty, 2, 2, 0},
    {"TensorListReserve", lower_reserve, 2, 2, 0},
    {"TensorListFromTensor", lower_same, 1, 2, 0},
    {"TensorListStack", lower_same, 1, 2, 0},
    {"TensorListLength", lower_length, 1, 1, 0},
    {"TensorListGetItem", lower_get, 2, 3, 0},
    {"TensorListGather", lower_get, 2, 3, 0},
    {"TensorListSetItem", lower_set, 3, 3, 0},
    {"TensorListPushBack", lower_push, 2, 2, 0},
    {"TensorListPopBack", lower_pop, 1, 2, 0},
    {"TensorListResize", lower_resize, 2, 2, 0},
    {"TensorListConcat", lower_list_concat, 1, 1, 0},
    {"TensorListConcatV2", lower_list_concat, 1, 3, 0},
    {"TensorListScatter", lower_list_scatter, 3, 3, 0},
    {"TensorListScatterV2", lower_list_scatter, 4, 4, 0},
    {"TensorListSplit", lower_list_split, 3, 3, 0},
    {"TensorArrayV3", lower_array, 1, 1, 0},
    {"TensorArrayWriteV3", lower_array_write, 4, 4, 0},
    {"TensorArrayScatterV3", lower_array_write, 4, 4, 0},
    {"TensorArrayReadV3", lower_array_read, 3, 3, 0},
    {"TensorArrayGatherV3", lower_array_read, 3, 3, 0},
    {"TensorArrayConcatV3", lower_list_concat, 2, 2, 1},
    {"TensorArraySplitV3", lower_array_split, 4, 4, 0},
    {"TensorArraySizeV3", lower_length, 2, 2, 0},
    {"TensorArrayCloseV3", lower_close, 1, 1, 0},
};

const struct inf_tfjs_op_table inf_tfjs_ops_list = {ops, INF_ARRAY_LENGTH(ops)};
