// SPDX-License-Identifier: Apache-2.0
// Parts of tensors: slices, padding, gathering and scattering.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/tensor.h"

// Adds the end of a slice: begin + size, or the end of the axis where the size is -1.
static uint32_t add_slice_end(struct inf_tflite_scope *s, uint32_t x, uint32_t begin, uint32_t size)
{
    struct inf_builder *b = &s->b;
    uint32_t rest =
        inf_build_compare(b, INF_COMPARE_LESS, size, inf_build_scalar(b, INF_DTYPE_I32, 0));
    return inf_build_select(b, rest, inf_build_shape(b, x), inf_build_add(b, begin, size));
}

static void lower_slice(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0), begin = inf_tflite_list(s, 1);
    uint32_t size = inf_tflite_list(s, 2);
    int64_t ones[INF_LIMIT_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t rank = (uint32_t)inf_build_rank(&s->b, x);
    const uint32_t inputs[] = {x, begin, add_slice_end(s, x, begin, size),
                               inf_build_list(&s->b, ones, rank)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SLICE, inputs, 4);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_strided_slice(struct inf_tflite_scope *s)
{
    uint32_t begin = inf_tflite_list(s, 1), end = inf_tflite_list(s, 2);
    // With `offset`, the ends are counted from the begins.
    if (inf_tflite_option_bool(s, 5, "offset"))
        end = inf_build_add(&s->b, begin, end);
    const uint32_t inputs[] = {inf_tflite_data(s, 0), begin, end, inf_tflite_list(s, 3)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SLICE, inputs, 4);
    node.attrs.slice.begin_mask = inf_tflite_option_int(s, 0, "begin_mask");
    node.attrs.slice.end_mask = inf_tflite_option_int(s, 1, "end_mask");
    node.attrs.slice.ellipsis_mask = inf_tflite_option_int(s, 2, "ellipsis_mask");
    node.attrs.slice.new_axis_mask = inf_tflite_option_int(s, 3, "new_axis_mask");
    node.attrs.slice.shrink_axis_mask = inf_tflite_option_int(s, 4, "shrink_axis_mask");
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// --- padding ---

// Adds a padding node. `value` is what is padded with, or INF_VALUE_NONE for 0.
static void emit_pad(struct inf_tflite_scope *s, enum inf_pad_mode mode, uint32_t value)
{
    s->outputs[0] =
        inf_build_pad_by(&s->b, inf_tflite_data(s, 0), inf_tflite_list(s, 1), mode, value);
}

static void lower_pad(struct inf_tflite_scope *s)
{
    const struct inf_tflite_tensor *x = inf_tflite_input_tensor(s, 0);
    uint32_t value = INF_VALUE_NONE;
    if (inf_tflite_has_input(s, 2))
        value = inf_build_reshape(&s->b, inf_tflite_data(s, 2), NULL, 0);
    else if (s->as_stored && inf_tflite_tensor_is_quantized(x) && x->quantization.count > 0)
        value = inf_build_scalar(&s->b, inf_tflite_type_info(x->type).dtype,
                                 (double)x->quantization.zeros[0]);
    emit_pad(s, INF_PAD_CONSTANT, value);
}

static void lower_mirror_pad(struct inf_tflite_scope *s)
{
    int64_t mode = inf_tflite_option(s, INF_FB_I8, 0, "mode", 0);
    emit_pad(s, mode == 0 ? INF_PAD_REFLECT : INF_PAD_SYMMETRIC, INF_VALUE_NONE);
}

// --- selecting and placing ---

static void lower_gather(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0), indices = inf_tflite_stored(s, 1);
    struct inf_build_node node = inf_build_describe(INF_OP_GATHER, x, indices, INF_VALUE_NONE);
    int64_t batch_dims = inf_tflite_option_int(s, 1, "batch_dims");
    int32_t axis =
        inf_build_axis(&s->b, inf_tflite_option_int(s, 0, "axis"), inf_build_rank(&s->b, x));
    if (batch_dims < 0)
        batch_dims += inf_build_rank(&s->b, indices);
    node.attrs.gather.axis = axis;
    node.attrs.gather.batch_dims = (int32_t)batch_dims;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_gather_nd(struct inf_tflite_scope *s)
{
    struct inf_build_node node = inf_build_describe(INF_OP_GATHER_ND, inf_tflite_data(s, 0),
                                                    inf_tflite_stored(s, 1), INF_VALUE_NONE);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// EMBEDDING_LOOKUP: the rows of a table.
static void lower_embedding_lookup(struct inf_tflite_scope *s)
{
    s->outputs[0] = inf_build_gather(&s->b, inf_tflite_data(s, 1), inf_tflite_stored(s, 0), 0);
}

// Updates are added up in a tensor of zeros.
static void lower_scatter_nd(struct inf_tflite_scope *s)
{
    uint32_t updates = inf_tflite_stored(s, 1);
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, updates), 0);
    struct inf_build_node node =
        inf_build_describe(INF_OP_SCATTER_ND, inf_build_fill(&s->b, inf_tflite_list(s, 2), zero),
                           inf_tflite_stored(s, 0), updates);
    node.attrs.scatter_nd.kind = INF_SCATTER_ADD;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_reverse(struct inf_tflite_scope *s)
{
    struct inf_build_node node =
        inf_build_describe(INF_OP_REVERSE, inf_tflite_data(s, 0), INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_build_ints axes = inf_build_const_ints(&s->b, inf_tflite_list(s, 1), "the axes");
    if (axes.count > INF_LIMIT_RANK)
        inf_build_fail(&s->b, INF_INVALID, "reverses %u axes", axes.count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < axes.count; i++)
        node.attrs.reverse.axes.values[i] = (int32_t)axes.values[i];
    node.attrs.reverse.axes.count = (int32_t)axes.count;
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_reverse_sequence(struct inf_tflite_scope *s)
{
    struct inf_build_node node = inf_build_describe(INF_OP_REVERSE_SEQUENCE, inf_tflite_data(s, 0),
                                                    inf_tflite_stored(s, 1), INF_VALUE_NONE);
    node.attrs.reverse_sequence.axis = inf_tflite_option_int(s, 0, "seq_dim");
    node.attrs.reverse_sequence.batch_axis = inf_tflite_option_int(s, 1, "batch_dim");
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static void lower_topk(struct inf_tflite_scope *s)
{
    uint32_t k = inf_build_reshape(&s->b, inf_tflite_list(s, 1), NULL, 0);
    struct inf_build_node node =
        inf_build_describe(INF_OP_TOPK, inf_tflite_data(s, 0), k, INF_VALUE_NONE);
    uint32_t results[2];
    node.output_count = 2;
    inf_build_emit(&s->b, &node, results);
    s->outputs[0] = results[0];
    s->outputs[1] = results[1];
}

static void lower_one_hot(struct inf_tflite_scope *s)
{
    const uint32_t inputs[] = {inf_tflite_stored(s, 0),
                               inf_build_reshape(&s->b, inf_tflite_list(s, 1), NULL, 0),
                               inf_build_reshape(&s->b, inf_tflite_stored(s, 2), NULL, 0),
                               inf_build_reshape(&s->b, inf_tflite_stored(s, 3), NULL, 0)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_ONE_HOT, inputs, 4);
    node.attrs.one_hot.axis = inf_tflite_option_int(s, 0, "axis");
    s->outputs[0] = inf_build_value(&s->b, &node);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_SLICE, NULL, lower_slice, 3, 3, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_STRIDED_SLICE, NULL, lower_strided_slice, 4, 4, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_STRIDED_SLICE, 0},
    {INF_TFLITE_PAD, NULL, lower_pad, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_PADV2, NULL, lower_pad, 3, 3, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_MIRROR_PAD, NULL, lower_mirror_pad, 2, 2, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_MIRROR_PAD, 0},
    {INF_TFLITE_GATHER, NULL, lower_gather, 2, 2, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_GATHER, 0},
    {INF_TFLITE_GATHER_ND, NULL, lower_gather_nd, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_EMBEDDING_LOOKUP, NULL, lower_embedding_lookup, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0,
     0},
    {INF_TFLITE_SCATTER_ND, NULL, lower_scatter_nd, 3, 3, 1, INF_TFLITE_MODE_STORED, 0, 0},
    {INF_TFLITE_REVERSE_V2, NULL, lower_reverse, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_REVERSE_SEQUENCE, NULL, lower_reverse_sequence, 2, 2, 1, INF_TFLITE_MODE_MOVE,
     INF_TFLITE_OPTIONS_REVERSE_SEQUENCE, 0},
    {INF_TFLITE_TOPK_V2, NULL, lower_topk, 2, 2, 2, INF_TFLITE_MODE_MOVE, 0, 0},
    {INF_TFLITE_ONE_HOT, NULL, lower_one_hot, 4, 4, 1, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_ONE_HOT, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_slice = {ops, INF_ARRAY_LENGTH(ops)};
