// SPDX-License-Identifier: Apache-2.0
// Operators of the reference device that order, count, gather and scatter elements. The expected
// literals are worked out by hand, or are the examples in the documentation of TensorFlow and ONNX.
#include "tests/unit/ref/ref_case.h"

static void add_scalar(enum inf_dtype dtype, const void *data)
{
    one_node_const(&one, dtype, SCALAR, data);
}

Test(ref, reverses_axes)
{
    begin_case(INF_OP_REVERSE);
    one.attrs.reverse.axes = AXES(-1, 0);
    add_input(INF_DTYPE_I16, SHAPE(2, 1, 3), ((const int16_t[]){1, 2, 3, 4, 5, 6}));
    expect_output(INF_DTYPE_I16, SHAPE(2, 1, 3), ((const int16_t[]){6, 5, 4, 3, 2, 1}));
    begin_case(INF_OP_REVERSE); // without axes, the result equals x
    add_input(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 0));
    expect_output(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 0));
    begin_case(INF_OP_REVERSE);
    one.attrs.reverse.axes = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(3, 0), NULL);
    expect_output(INF_DTYPE_F32, SHAPE(3, 0), NULL);
}

Test(ref, reverses_sequences)
{
    begin_case(INF_OP_REVERSE_SEQUENCE); // ONNX's example with the time axis first
    add_input(INF_DTYPE_F32, SHAPE(4, 4),
              F32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    add_input(INF_DTYPE_I64, SHAPE(4), I64(4, 3, 2, 1));
    expect_output(INF_DTYPE_F32, SHAPE(4, 4),
                  F32(3, 6, 9, 12, 2, 5, 8, 13, 1, 4, 10, 14, 0, 7, 11, 15));
    begin_case(INF_OP_REVERSE_SEQUENCE); // lengths outside the axis are clamped to it
    one.attrs.reverse_sequence.axis = 1;
    one.attrs.reverse_sequence.batch_axis = 0;
    add_input(INF_DTYPE_U8, SHAPE(2, 3), U8(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_I32, SHAPE(2), I32(-7, INT32_MAX));
    expect_output(INF_DTYPE_U8, SHAPE(2, 3), U8(1, 2, 3, 6, 5, 4));
}

Test(ref, cumulates)
{
    begin_case(INF_OP_CUMULATE);
    one.attrs.cumulate.axis = -1;
    add_input(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 2, 3, 4, 5, NAN));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 3, 6, 4, 9, NAN));
    one.attrs.cumulate.exclusive = true;
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(0, 1, 3, 0, 4, 9));
    one.attrs.cumulate.reverse = true;
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(5, 3, 0, NAN, NAN, 0));
    begin_case(INF_OP_CUMULATE);
    one.attrs.cumulate.kind = INF_CUMULATE_PROD;
    // the product in the second column exceeds the range of int32 and wraps around
    add_input(INF_DTYPE_I32, SHAPE(3, 2), I32(2, INT32_MAX, 3, 2, 4, 1));
    expect_output(INF_DTYPE_I32, SHAPE(3, 2), I32(2, INT32_MAX, 6, -2, 24, -2));
    begin_case(INF_OP_CUMULATE);
    add_input(INF_DTYPE_F32, SHAPE(0, 2), NULL);
    expect_output(INF_DTYPE_F32, SHAPE(0, 2), NULL);
}

static void begin_topk(int32_t k, bool smallest, struct inf_shape shape, const float *x)
{
    begin_case(INF_OP_TOPK);
    one.output_count = 2;
    one.attrs.topk.smallest = smallest;
    add_input(INF_DTYPE_F32, shape, x);
    add_scalar(INF_DTYPE_I32, &k);
}

Test(ref, finds_the_k_largest)
{
    begin_topk(3, false, SHAPE(2, 5), F32(1, 5, 5, -INFINITY, 2, NAN, 3, INFINITY, 3, 0));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(5, 5, 2, INFINITY, 3, 3));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 4, 2, 1, 3));
    begin_topk(5, false, SHAPE(5), F32(NAN, 1, NAN, -INFINITY, 1));
    expect_output(INF_DTYPE_F32, SHAPE(5), F32(1, 1, -INFINITY, NAN, NAN));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(5), I32(1, 4, 3, 0, 2));
    begin_topk(4, true, SHAPE(5), F32(NAN, 1, 0, -INFINITY, 1));
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(-INFINITY, 0, 1, 1));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(4), I32(3, 2, 1, 4));
    begin_topk(0, false, SHAPE(2), F32(1, 2));
    expect_output(INF_DTYPE_F32, SHAPE(0), NULL);
    // Take the two largest elements along the first axis, of 64-bit integers that are equal after
    // conversion to double.
    begin_case(INF_OP_TOPK);
    one.output_count = 2;
    one.attrs.topk.axis = 0;
    add_input(INF_DTYPE_I64, SHAPE(3, 1), I64(INT64_MAX - 1, INT64_MAX, INT64_MIN));
    add_list(1, I32(2));
    expect_output(INF_DTYPE_I64, SHAPE(2, 1), I64(INT64_MAX, INT64_MAX - 1));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 1), I32(1, 0));
}

Test(ref, searches_sorted_lines)
{
    // Expected results are from numpy.searchsorted, called for each row.
    begin_case(INF_OP_SEARCH_SORTED);
    add_input(INF_DTYPE_F32, SHAPE(2, 5), F32(0, 3, 9, 9, 10, 1, 2, 3, 4, 5));
    add_input(INF_DTYPE_F32, SHAPE(2, 3), F32(2, 4, 9, 0, 2, 6));
    expect_output(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 2, 0, 1, 5));
    one.attrs.search_sorted.right = true;
    expect_output(INF_DTYPE_I32, SHAPE(2, 3), I32(1, 2, 4, 0, 2, 5));
    begin_case(INF_OP_SEARCH_SORTED);
    add_input(INF_DTYPE_I32, SHAPE(0), NULL);
    add_input(INF_DTYPE_I32, SHAPE(2), I32(-1, 1));
    expect_output(INF_DTYPE_I32, SHAPE(2), I32(0, 0));
}

Test(ref, couples_the_probabilities_of_pairs)
{
    // Of two classes, the probability of the pair is the answer, unless both are nearly equal.
    begin_case(INF_OP_PAIR_COUPLING);
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2), F32(0, 0.75f, 0.25f, 0, 0, 0.5f, 0.5f, 0));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(0.75f, 0.25f, 0.5f, 0.5f));
    // Pairs that agree with each other: x[i,j] = p[i] / (p[i] + p[j]) for p = 1/7, 2/7, 4/7. The
    // result is that of LIBSVM's multiclass_probability(), which ends at its tolerance.
    begin_case(INF_OP_PAIR_COUPLING);
    add_input(INF_DTYPE_F64, SHAPE(3, 3),
              F64(0, 1.0 / 3, 0.2, 2.0 / 3, 0, 1.0 / 3, 0.8, 2.0 / 3, 0));
    expect_output(INF_DTYPE_F64, SHAPE(3),
                  F64(0.14349381985014367, 0.28518021945996763, 0.5713259606898886));
    begin_case(INF_OP_PAIR_COUPLING);
    add_input(INF_DTYPE_F32, SHAPE(2, 3), F32(0, 0, 0, 0, 0, 0));
    expect_failure(
        "node 'node' (pair_coupling): the shape is [2,3], wanted matrices [k,k], k at most 1024");
}

Test(ref, counts_numbers)
{
    int32_t size = 4;
    begin_case(INF_OP_BINCOUNT);
    add_input(INF_DTYPE_I32, SHAPE(5), I32(1, 3, 1, 9, 0));
    add_scalar(INF_DTYPE_I32, &size);
    add_input(INF_DTYPE_F32, SHAPE(0), NULL);
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(1, 2, 0, 1));
    one.attrs.bincount.binary = true;
    expect_output(INF_DTYPE_F32, SHAPE(4), F32(1, 1, 0, 1));
    begin_case(INF_OP_BINCOUNT);
    add_input(INF_DTYPE_I64, SHAPE(2, 2), I64(1, 1, 3, INT64_MAX));
    add_scalar(INF_DTYPE_I32, &size);
    add_input(INF_DTYPE_I32, SHAPE(2, 2), I32(5, 6, 7, 8));
    expect_output(INF_DTYPE_I32, SHAPE(2, 4), I32(0, 11, 0, 0, 0, 0, 0, 7));
    begin_case(INF_OP_BINCOUNT);
    add_input(INF_DTYPE_I32, SHAPE(2), I32(0, -1));
    add_scalar(INF_DTYPE_I32, &size);
    add_input(INF_DTYPE_F32, SHAPE(0), NULL);
    expect_failure("node 'node' (bincount): number -1 (element 1) is negative");
}

Test(ref, makes_one_hot)
{
    int32_t depth = 3;
    begin_case(INF_OP_ONE_HOT);
    add_input(INF_DTYPE_I64, SHAPE(4), I64(1, -1, 3, 2));
    add_scalar(INF_DTYPE_I32, &depth);
    add_scalar(INF_DTYPE_F32, F32(5));
    add_scalar(INF_DTYPE_F32, F32(-2));
    expect_output(INF_DTYPE_F32, SHAPE(4, 3), F32(-2, 5, -2, -2, -2, -2, -2, -2, -2, -2, -2, 5));
    one.attrs.one_hot.from_end = true;
    one.attrs.one_hot.axis = 0;
    expect_output(INF_DTYPE_F32, SHAPE(3, 4), F32(-2, -2, -2, -2, 5, -2, -2, -2, -2, 5, -2, 5));
    begin_case(INF_OP_ONE_HOT);
    add_input(INF_DTYPE_I32, SCALAR, I32(0));
    add_scalar(INF_DTYPE_I32, &depth);
    add_scalar(INF_DTYPE_BOOL, U8(1));
    add_scalar(INF_DTYPE_BOOL, U8(0));
    expect_output(INF_DTYPE_BOOL, SHAPE(3), U8(1, 0, 0));
}

Test(ref, keeps_bands)
{
    begin_case(INF_OP_BAND); // keeps the upper triangle
    one.attrs.band.low = 0;
    add_input(INF_DTYPE_I32, SHAPE(2, 2, 3), I32(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3));
    expect_output(INF_DTYPE_I32, SHAPE(2, 2, 3), I32(1, 2, 3, 0, 5, 6, 7, 8, 9, 0, 2, 3));
    one.attrs.band = (struct inf_attrs_band){.low = -9, .high = -1};
    expect_output(INF_DTYPE_I32, SHAPE(2, 2, 3), I32(0, 0, 0, 4, 0, 0, 0, 0, 0, 1, 0, 0));
}

Test(ref, gathers_by_coordinates)
{
    begin_case(INF_OP_GATHER_ND);
    add_input(INF_DTYPE_I32, SHAPE(2, 2, 2), I32(0, 1, 2, 3, 4, 5, 6, 7));
    add_input(INF_DTYPE_I64, SHAPE(2, 2), I64(0, 1, 1, 0));
    // expected result of example 3 in ONNX's documentation of GatherND
    expect_output(INF_DTYPE_I32, SHAPE(2, 2), I32(2, 3, 4, 5));
    begin_case(INF_OP_GATHER_ND);
    one.attrs.gather_nd.batch_dims = 1;
    add_input(INF_DTYPE_I32, SHAPE(2, 2, 2), I32(0, 1, 2, 3, 4, 5, 6, 7));
    add_input(INF_DTYPE_I32, SHAPE(2, 1), I32(1, 0));
    // expected result of example 5 in ONNX's documentation of GatherND
    expect_output(INF_DTYPE_I32, SHAPE(2, 2), I32(2, 3, 4, 5));
    begin_case(INF_OP_GATHER_ND); // with empty coordinates, each result is all of x
    add_input(INF_DTYPE_U8, SHAPE(2), U8(7, 8));
    add_input(INF_DTYPE_I32, SHAPE(2, 0), NULL);
    expect_output(INF_DTYPE_U8, SHAPE(2, 2), U8(7, 8, 7, 8));
    begin_case(INF_OP_GATHER_ND);
    add_input(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_I32, SHAPE(1, 2), I32(1, -1));
    expect_failure(
        "node 'node' (gather_nd): index -1 (element 1 of the indices) is outside [0, 3)");
    one.attrs.gather_nd.from_end = true;
    expect_output(INF_DTYPE_F32, SHAPE(1), F32(6));
}

Test(ref, appends_rows)
{
    begin_case(INF_OP_APPEND);
    one.attrs.append.axis = 1;
    add_input(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(1));
    add_input(INF_DTYPE_I32, SHAPE(2, 2, 1), I32(7, 8, 9, 10));
    expect_output(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(1, 7, 8, 4, 9, 10));
    // As in ONNX's TensorScatter, each item of the batch has a position of its own.
    begin_case(INF_OP_APPEND);
    one.attrs.append.axis = -2;
    add_input(INF_DTYPE_F32, SHAPE(2, 4, 2),
              F32(1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80));
    add_input(INF_DTYPE_I64, SHAPE(2), I64(1, 3));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 2), F32(-1, -2, -3, -4));
    expect_output(INF_DTYPE_F32, SHAPE(2, 4, 2),
                  F32(1, 2, -1, -2, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, -3, -4));
    begin_case(INF_OP_APPEND);
    add_input(INF_DTYPE_F32, SHAPE(3), F32(1, 2, 3));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(2));
    add_input(INF_DTYPE_F32, SHAPE(2), F32(7, 8));
    expect_failure("node 'node' (append): 2 rows at 2 do not fit the 3 of x");
    begin_case(INF_OP_APPEND);
    add_input(INF_DTYPE_F32, SHAPE(3), F32(1, 2, 3));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(-1));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(7));
    expect_failure("node 'node' (append): 1 rows at -1 do not fit the 3 of x");
}

Test(ref, appends_rows_to_a_ring)
{
    // 5000000003 and -2 are 2 and 1 modulo 3.
    begin_case(INF_OP_APPEND);
    one.attrs.append.axis = 1;
    one.attrs.append.ring = true;
    add_input(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(1, 2, 3, 4, 5, 6));
    add_input(INF_DTYPE_I64, SHAPE(2), I64(5000000003, -2));
    add_input(INF_DTYPE_I32, SHAPE(2, 2, 1), I32(7, 8, 9, 10));
    expect_output(INF_DTYPE_I32, SHAPE(2, 3, 1), I32(8, 2, 7, 4, 9, 10));
    // All rows of the ring, and a ring without rows.
    begin_case(INF_OP_APPEND);
    one.attrs.append.ring = true;
    add_input(INF_DTYPE_F32, SHAPE(3), F32(1, 2, 3));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(4));
    add_input(INF_DTYPE_F32, SHAPE(3), F32(7, 8, 9));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(9, 7, 8));
    begin_case(INF_OP_APPEND);
    one.attrs.append.ring = true;
    add_input(INF_DTYPE_F32, SHAPE(0), F32(0));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(4));
    add_input(INF_DTYPE_F32, SHAPE(0), F32(0));
    expect_output(INF_DTYPE_F32, SHAPE(0), F32(0));
}

static void scatter_nd(enum inf_scatter_kind kind, const int32_t *indices)
{
    begin_case(INF_OP_SCATTER_ND);
    one.attrs.scatter_nd.kind = kind;
    add_input(INF_DTYPE_F32, SHAPE(3), F32(1, 2, 3));
    add_input(INF_DTYPE_I32, SHAPE(3, 1), indices);
    add_input(INF_DTYPE_F32, SHAPE(3), F32(10, 20, -30));
}

Test(ref, scatters_by_coordinates)
{
    scatter_nd(INF_SCATTER_NONE, I32(2, 0, 2));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(20, 2, -30));
    scatter_nd(INF_SCATTER_ADD, I32(2, 0, 2));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(21, 2, -17));
    scatter_nd(INF_SCATTER_MUL, I32(2, 0, 2));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(20, 2, -900));
    scatter_nd(INF_SCATTER_MIN, I32(2, 0, 2));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(1, 2, -30));
    scatter_nd(INF_SCATTER_MAX, I32(2, 0, 2));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(20, 2, 10));
    scatter_nd(INF_SCATTER_NONE, I32(1, 3, 0));
    expect_failure(
        "node 'node' (scatter_nd): index 3 (element 1 of the indices) is outside [0, 3)");
    one.attrs.scatter_nd.drop = true;
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(-30, 10, 3));
    begin_case(INF_OP_SCATTER_ND); // scatters whole rows; the int32 sums wrap around
    one.attrs.scatter_nd.kind = INF_SCATTER_ADD;
    add_input(INF_DTYPE_I32, SHAPE(2, 2), I32(INT32_MAX, 0, 1, 1));
    add_input(INF_DTYPE_I64, SHAPE(1, 1), I64(0));
    add_input(INF_DTYPE_I32, SHAPE(1, 2), I32(1, 5));
    expect_output(INF_DTYPE_I32, SHAPE(2, 2), I32(INT32_MIN, 5, 1, 1));
}

Test(ref, gathers_and_scatters_elements)
{
    begin_case(INF_OP_GATHER_ELEMENTS); // example 1 of ONNX's GatherElements
    one.attrs.gather_elements.axis = 1;
    add_input(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_I64, SHAPE(2, 2), I64(0, 0, 1, 0));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2), F32(1, 1, 4, 3));
    begin_case(INF_OP_GATHER_ELEMENTS); // ONNX's example with negative indices
    one.attrs.gather_elements.from_end = true;
    add_input(INF_DTYPE_F32, SHAPE(3, 3), F32(1, 2, 3, 4, 5, 6, 7, 8, 9));
    add_input(INF_DTYPE_I32, SHAPE(2, 3), I32(-1, -2, 0, -2, 0, 0));
    expect_output(INF_DTYPE_F32, SHAPE(2, 3), F32(7, 5, 3, 4, 2, 3));
    begin_case(INF_OP_SCATTER_ELEMENTS); // ONNX's example without an axis
    add_input(INF_DTYPE_F32, SHAPE(3, 3), F32(0, 0, 0, 0, 0, 0, 0, 0, 0));
    add_input(INF_DTYPE_I64, SHAPE(2, 3), I64(1, 0, 2, 0, 2, 1));
    add_input(INF_DTYPE_F32, SHAPE(2, 3), F32(1, 1.1f, 1.2f, 2, 2.1f, 2.2f));
    expect_output(INF_DTYPE_F32, SHAPE(3, 3), F32(2, 1.1f, 0, 1, 0, 2.2f, 0, 2.1f, 1.2f));
    one.attrs.scatter_elements.axis = 1;
    one.attrs.scatter_elements.kind = INF_SCATTER_ADD;
    expect_output(INF_DTYPE_F32, SHAPE(3, 3), F32(1.1f, 1, 1.2f, 2, 2.2f, 2.1f, 0, 0, 0));
}

Test(ref, moves_blocks_between_space_and_batch)
{
    const float picture[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    begin_case(INF_OP_SPACE_TO_BATCH); // example 3 of TensorFlow's SpaceToBatchND
    add_input(INF_DTYPE_F32, SHAPE(1, 4, 4, 1), picture);
    add_list(2, I32(2, 2));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(0, 0, 0, 0));
    expect_output(INF_DTYPE_F32, SHAPE(4, 2, 2, 1),
                  F32(1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16));
    begin_case(INF_OP_BATCH_TO_SPACE); // the inverse, with the first column cropped
    add_input(INF_DTYPE_F32, SHAPE(4, 2, 2, 1),
              F32(1, 3, 9, 11, 2, 4, 10, 12, 5, 7, 13, 15, 6, 8, 14, 16));
    add_list(2, I32(2, 2));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(2, 2), I32(0, 0, 1, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 4, 3, 1), F32(2, 3, 4, 6, 7, 8, 10, 11, 12, 14, 15, 16));
    begin_case(INF_OP_SPACE_TO_BATCH); // one axis with padding before it
    add_input(INF_DTYPE_I32, SHAPE(1, 3), I32(1, 2, 3));
    add_list(1, I32(2));
    one_node_const(&one, INF_DTYPE_I32, SHAPE(1, 2), I32(1, 0));
    expect_output(INF_DTYPE_I32, SHAPE(2, 2), I32(0, 2, 1, 3));
}
