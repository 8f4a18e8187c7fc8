// SPDX-License-Identifier: Apache-2.0
// Operators of the reference device that order, count, pick and place elements, against literals:
// worked out by hand, or the examples in the documentation of TensorFlow and ONNX.
#include "tests/unit/ref/ref_case.h"

#define AXES(...)                                                                                  \
    ((struct inf_ints){.count = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),     \
                       .values = {__VA_ARGS__}})

static void scalar(enum inf_dtype dtype, const void *data)
{
    one_node_const(&one, dtype, SCALAR, data);
}

Test(ref, reverses_axes)
{
    begin(INF_OP_REVERSE);
    one.attrs.reverse.axes = AXES(-1, 0);
    in(INF_DTYPE_I16, SHAPE(2, 1, 3), ((const int16_t[]){1, 2, 3, 4, 5, 6}));
    wants(INF_DTYPE_I16, SHAPE(2, 1, 3), ((const int16_t[]){6, 5, 4, 3, 2, 1}));
    begin(INF_OP_REVERSE); // no axes: as it is
    in(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 0));
    wants(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 0));
    begin(INF_OP_REVERSE);
    one.attrs.reverse.axes = AXES(1);
    in(INF_DTYPE_F32, SHAPE(3, 0), NULL);
    wants(INF_DTYPE_F32, SHAPE(3, 0), NULL);
}

Test(ref, reverses_sequences)
{
    begin(INF_OP_REVERSE_SEQUENCE); // ONNX's example: time first
    in(INF_DTYPE_F32, SHAPE(4, 4), F32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    in(INF_DTYPE_I64, SHAPE(4), I64(4, 3, 2, 1));
    wants(INF_DTYPE_F32, SHAPE(4, 4), F32(3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15));
    begin(INF_OP_REVERSE_SEQUENCE); // lengths below 0 and beyond the axis are cut to it
    one.attrs.reverse_sequence.axis = 1;
    one.attrs.reverse_sequence.batch_axis = 0;
    in(INF_DTYPE_U8, SHAPE(2, 3), U8(1, 2, 3, 4, 5, 6));
    in(INF_DTYPE_I32, SHAPE(2), I32(-7, INT32_MAX));
    wants(INF_DTYPE_U8, SHAPE(2, 3), U8(1, 2, 3, 6, 5, 4));
}

Test(ref, cumulates)
{
    begin(INF_OP_CUMULATE);
    one.attrs.cumulate.axis = -1;
    in(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 2, 3, 4, 5, NAN));
    wants(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 3, 6, 4, 9, NAN));
    one.attrs.cumulate.exclusive = true;
    wants(INF_DTYPE_F32, SHAPE(2, 3), F32(0, 1, 3, 0, 4, 9));
    one.attrs.cumulate.reverse = true;
    wants(INF_DTYPE_F32, SHAPE(2, 3), F32(5, 3, 0, NAN, NAN, 0));
    begin(INF_OP_CUMULATE);
    one.attrs.cumulate.kind = INF_CUMULATE_PROD;
    in(INF_DTYPE_I32, SHAPE(3, 2), I32(2, INT32_MAX, 3, 2, 4, 1)); // int32 wraps around
    wants(INF_DTYPE_I32, SHAPE(3, 2), I32(2, INT32_MAX, 6, -2, 24, -2));
    begin(INF_OP_CUMULATE);
    in(INF_DTYPE_F32, SHAPE(0, 2), NULL);
    wants(INF_DTYPE_F32, SHAPE(0, 2), NULL);
}

static void topk(int32_t k, bool smallest, struct inf_shape shape, const float *x)
{
    begin(INF_OP_TOPK);
    one.output_count = 2;
    one.attrs.topk.smallest = smallest;
    in(INF_DTYPE_F32, shape, x);
    scalar(INF_DTYPE_I32, &k);
}

Test(ref, finds_the_k_largest)
{
    topk(3, false, SHAPE(2, 5), F32(1, 5, 5, -INFINITY, 2, NAN, 3, INFINITY, 3, 0));
    wants(INF_DTYPE_F32, SHAPE(2, 3), F32(5, 5, 2, INFINITY, 3, 3));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 4, 2, 1, 3));
    topk(5, false, SHAPE(5), F32(NAN, 1, NAN, -INFINITY, 1));
    wants(INF_DTYPE_F32, SHAPE(5), F32(1, 1, -INFINITY, NAN, NAN));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(5), I32(1, 4, 3, 0, 2));
    topk(4, true, SHAPE(5), F32(NAN, 1, 0, -INFINITY, 1));
    wants(INF_DTYPE_F32, SHAPE(4), F32(-INFINITY, 0, 1, 1));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(4), I32(3, 2, 1, 4));
    topk(0, false, SHAPE(2), F32(1, 2));
    wants(INF_DTYPE_F32, SHAPE(0), NULL);
    begin(INF_OP_TOPK); // along the first axis; 64-bit integers that a double cannot tell apart
    one.output_count = 2;
    one.attrs.topk.axis = 0;
    in(INF_DTYPE_I64, SHAPE(3, 1), I64(INT64_MAX - 1, INT64_MAX, INT64_MIN));
    list(1, I32(2));
    wants(INF_DTYPE_I64, SHAPE(2, 1), I64(INT64_MAX, INT64_MAX - 1));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 1), I32(1, 0));
}

Test(ref, searches_sorted_lines)
{
    // numpy.searchsorted, each line by itself
    begin(INF_OP_SEARCH_SORTED);
    in(INF_DTYPE_F32, SHAPE(2, 5), F32(0, 3, 9, 9, 10, 1, 2, 3, 4, 5));
    in(INF_DTYPE_F32, SHAPE(2, 3), F32(2, 4, 9, 0, 2, 6));
    wants(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 2, 0, 1, 5));
    one.attrs.search_sorted.right = true;
    wants(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 4, 0, 2, 5));
    begin(INF_OP_SEARCH_SORTED);
    in(INF_DTYPE_I32, SHAPE(0), NULL);
    in(INF_DTYPE_I32, SHAPE(2), I32(-1, 1));
    wants(INF_DTYPE_I32, SHAPE(2), I32(0, 0));
}

Test(ref, counts_numbers)
{
    int32_t size = 4;
    begin(INF_OP_BINCOUNT);
    in(INF_DTYPE_I32, SHAPE(5), I32(1, 3, 1, 9, 0));
    scalar(INF_DTYPE_I32, &size);
    in(INF_DTYPE_F32, SHAPE(0), NULL);
    wants(INF_DTYPE_F32, SHAPE(4), F32(1, 2, 0, 1));
    one.attrs.bincount.binary = true;
    wants(INF_DTYPE_F32, SHAPE(4), F32(1, 1, 0, 1));
    begin(INF_OP_BINCOUNT);
    in(INF_DTYPE_I64, SHAPE(2, 2), I64(1, 1, 3, INT64_MAX));
    scalar(INF_DTYPE_I32, &size);
    in(INF_DTYPE_I32, SHAPE(2, 2), I32(5, 6, 7, 8));
    wants(INF_DTYPE_I32, SHAPE(2, 4), I32(0, 11, 0, 0, 0, 0, 0, 7));
    begin(INF_OP_BINCOUNT);
    in(INF_DTYPE_I32, SHAPE(2), I32(0, -1));
    scalar(INF_DTYPE_I32, &size);
    in(INF_DTYPE_F32, SHAPE(0), NULL);
    fails("node 'node' (bincount): number -1 (element 1) is negative");
}

Test(ref, makes_one_hot)
{
    int32_t depth = 3;
    begin(INF_OP_ONE_HOT);
    in(INF_DTYPE_I64, SHAPE(4), I64(1, -1, 3, 2));
    scalar(INF_DTYPE_I32, &depth);
    scalar(INF_DTYPE_F32, F32(5));
    scalar(INF_DTYPE_F32, F32(-2));
    wants(INF_DTYPE_F32, SHAPE(4, 3), F32(-2, 5, -2, -2, -2, -2, -2, -2, -2, -2, -2, 5));
    one.attrs.one_hot.from_end = true;
    one.attrs.one_hot.axis = 0;
    wants(INF_DTYPE_F32, SHAPE(3, 4), F32(-2, -2, -2, -2, 5, -2, -2, -2, -2, 5, -2, 5));
    begin(INF_OP_ONE_HOT);
    in(INF_DTYPE_I32, SCALAR, I32(0));
    scalar(INF_DTYPE_I32, &depth);
    scalar(INF_DTYPE_BOOL, U8(1));
    scalar(INF_DTYPE_BOOL, U8(0));
    wants(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 0));
}

Test(ref, keeps_bands)
{
    begin(INF_OP_BAND); // the upper triangle
    one.attrs.band.low = 0;
    in(INF_DTYPE_I32, SHAPE(2, 2, 3), I32(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3));
    wants(INF_DTYPE_I32, SHAPE(2, 2, 3), I32(1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 2, 3));
    one.attrs.band = (struct inf_attrs_band){.low = -9, .high = -1};
    wants(INF_DTYPE_I32, SHAPE(2, 2, 3), I32(0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0));
}

Test(ref, gathers_by_coordinates)
{
    begin(INF_OP_GATHER_ND);
    in(INF_DTYPE_I32, SHAPE(2, 2, 2), I32(0, 1, 2, 3, 4, 5, 6, 7));
    in(INF_DTYPE_I64, SHAPE(2, 2), I64(0, 1, 1, 0));
    wants(INF_DTYPE_I32, SHAPE(2, 2), I32(2, 3, 4, 5)); // ONNX's example 3
    begin(INF_OP_GATHER_ND);
    one.attrs.gather_nd.batch_dims = 1;
    in(INF_DTYPE_I32, SHAPE(2, 2, 2), I32(0, 1, 2, 3, 4, 5, 6, 7));
    in(INF_DTYPE_I32, SHAPE(2, 1), I32(1, 0));
    wants(INF_DTYPE_I32, SHAPE(2, 2), I32(2, 3, 4, 5)); // ONNX's example 5
    begin(INF_OP_GATHER_ND);                            // no index at all: all of x, each time
    in(INF_DTYPE_U8, SHAPE(2), U8(7, 8));
    in(INF_DTYPE_I32, SHAPE(2, 0), NULL);
    wants(INF_DTYPE_U8, SHAPE(2, 2), U8(7, 8, 7, 8));
    begin(INF_OP_GATHER_ND);
    in(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 2, 3, 4, 5, 6));
    in(INF_DTYPE_I32, SHAPE(1, 2), I32(1, -1));
    fails("node 'node' (gather_nd): index -1 (element 1 of the indices) is outside [0, 3)");
    one.attrs.gather_nd.from_end = true;
    wants(INF_DTYPE_F32, SHAPE(1), F32(6));
}

static void scatter_nd(enum inf_scatter_kind kind, const int32_t *indices)
{
    begin(INF_OP_SCATTER_ND);
    one.attrs.scatter_nd.kind = kind;
    in(INF_DTYPE_F32, SHAPE(3), F32(1, 2, 3));
    in(INF_DTYPE_I32, SHAPE(3, 1), indices);
    in(INF_DTYPE_F32, SHAPE(3), F32(10, 20, -30));
}

Test(ref, scatters_by_coordinates)
{
    scatter_nd(INF_SCATTER_NONE, I32(2, 0, 2));
    wants(INF_DTYPE_F32, SHAPE(3), F32(20, 2, -30));
    scatter_nd(INF_SCATTER_ADD, I32(2, 0, 2));
    wants(INF_DTYPE_F32, SHAPE(3), F32(21, 2, -17));
    scatter_nd(INF_SCATTER_MUL, I32(2, 0, 2));
    wants(INF_DTYPE_F32, SHAPE(3), F32(20, 2, -900));
    scatter_nd(INF_SCATTER_MIN, I32(2, 0, 2));
    wants(INF_DTYPE_F32, SHAPE(3), F32(1, 2, -30));
    scatter_nd(INF_SCATTER_MAX, I32(2, 0, 2));
    wants(INF_DTYPE_F32, SHAPE(3), F32(20, 2, 10));
    scatter_nd(INF_SCATTER_NONE, I32(1, 3, 0));
    fails("node 'node' (scatter_nd): index 3 (element 1 of the indices) is outside [0, 3)");
    one.attrs.scatter_nd.drop = true;
    wants(INF_DTYPE_F32, SHAPE(3), F32(-30, 10, 3));
    begin(INF_OP_SCATTER_ND); // whole rows; int32 wraps around
    one.attrs.scatter_nd.kind = INF_SCATTER_ADD;
    in(INF_DTYPE_I32, SHAPE(2, 2), I32(INT32_MAX, 0, 1, 1));
    in(INF_DTYPE_I64, SHAPE(1, 1), I64(0));
    in(INF_DTYPE_I32, SHAPE(1, 2), I32(1, 5));
    wants(INF_DTYPE_I32, SHAPE(2, 2), I32(INT32_MIN, 5, 1, 1));
}

Test(ref, gathers_and_scatters_elements)
{
    begin(INF_OP_GATHER_ELEMENTS); // ONNX's example 1
    one.attrs.gather_elements.axis = 1;
    in(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 2, 3, 4));
    in(INF_DTYPE_I64, SHAPE(2, 2), I64(0, 0, 1, 0));
    wants(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 1, 4, 3));
    begin(INF_OP_GATHER_ELEMENTS); // ONNX's example with negative indices
    one.attrs.gather_elements.from_end = true;
    in(INF_DTYPE_F32, SHAPE(3, 3), F32(1, 2, 3, 4, 5, 6, 7, 8, 9));
    in(INF_DTYPE_I32, SHAPE(2, 3), I32(-1, -2, 0, -2, 0, 0));
    wants(INF_DTYPE_F32, SHAPE(2, 3), F32(7, 5, 3, 4, 2, 3));
    begin(INF_OP_SCATTER_ELEMENTS); // ONNX's example without axis
    in(INF_DTYPE_F32, SHAPE(3, 3), F32(0, 0, 0, 0, 0, 0, 0, 0, 0));
    in(INF_DTYPE_I64, SHAPE(2, 3), I64(1, 0, 2, 0, 2, 1));
    in(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 1.1f, 1.2f, 2, 2.1f, 2.2f));
    wants(INF_DTYPE_F32, SHAPE(3, 3), F32(2, 1.1f, 0, 1, 0, 2.2f, 0, 2.1f, 1.2f));
    one.attrs.scatter_elements.axis = 1;
    one.attrs.scatter_elements.kind = INF_SCATTER_ADD;
    wants(INF_DTYPE_F32, SHAPE(3, 3), F32(1.1f, 1, 1.2f, 2, 2.2f, 2.1f, 0, 0, 0));
}

Test(ref, moves_blocks_between_space_and_batch)
{
    const float picture[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    begin(INF_OP_SPACE_TO_BATCH); // TensorFlow's example 3
    in(INF_DTYPE_F32, SHAPE(1, 4, 4, 1), picture);
    list(2, I32(2, 2));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(0, 0, 0, 0));
    wants(INF_DTYPE_F32, SHAPE(4, 2, 2, 1),
          F32(1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16));
    begin(INF_OP_BATCH_TO_SPACE); // and back, with the first column cropped
    in(INF_DTYPE_F32, SHAPE(4, 2, 2, 1),
       F32(1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16));
    list(2, I32(2, 2));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(0, 0, 1, 0));
    wants(INF_DTYPE_F32, SHAPE(1, 4, 3, 1), F32(2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16));
    begin(INF_OP_SPACE_TO_BATCH); // one axis, padded in front
    in(INF_DTYPE_I32, SHAPE(1, 3), I32(1, 2, 3));
    list(1, I32(2));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(1, 2), I32(1, 0));
    wants(INF_DTYPE_I32, SHAPE(2, 2), I32(0, 2, 1, 3));
}
