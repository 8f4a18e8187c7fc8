// SPDX-License-Identifier: Apache-2.0
// Lowering of operators that move elements, compared with TensorFlow's definitions.
#include <criterion/criterion.h>

#include "tests/unit/import/tfjs_ops_kit.h"

TestSuite(tfjs_ops_shape, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

Test(tfjs_ops_shape, shapes_change_as_told)
{
    begin();
    input("x", "DT_FLOAT", DIMS(2, 3, 1, 5));
    scalar_int("last", -1);
    ints("perm", (int32_t[]){3, 0, 2, 1}, 4);
    ints("flat", (int32_t[]){-1, 6}, 2);
    node("e", "ExpandDims", "x,last");
    node("q", "Squeeze", "e");
    inf_tfjs_writer_attr_ints(w, "squeeze_dims", DIMS(-1));
    node("t", "Transpose", "q,perm");
    node("r", "Reshape", "t,flat");
    inf_tfjs_writer_output(w, "e", "e");
    inf_tfjs_writer_output(w, "q", "q");
    inf_tfjs_writer_output(w, "t", "t");
    cr_assert_str_eq(output_of("r"), "FP32 [2,3,1,5,1]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,3,1,5]");
    cr_assert_str_eq(inf_tfjs_case_output(2), "FP32 [5,2,1,3]");
    cr_assert_str_eq(inf_tfjs_case_output(3), "FP32 [5,6]");
    begin();
    input("x", "DT_FLOAT", DIMS(1, 4, 6, 8));
    node("s", "SpaceToDepth", "x");
    inf_tfjs_writer_attr_int(w, "block_size", 2);
    node("d", "DepthToSpace", "s");
    inf_tfjs_writer_attr_int(w, "block_size", 4);
    inf_tfjs_writer_output(w, "s", "s");
    cr_assert_str_eq(output_of("d"), "FP32 [1,2,3,32]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [1,8,12,2]");
    static const int32_t blocks[] = {0, -1, 4097, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(blocks); i++) {
        begin();
        input("x", "DT_FLOAT", DIMS(1, 4, 6, 8));
        node("s", "SpaceToDepth", "x");
        inf_tfjs_writer_attr_int(w, "block_size", blocks[i]);
        refuse("s", INF_INVALID, "wanted an integer from 1 to 4096");
    }
}

Test(tfjs_ops_shape, pack_and_unpack_make_and_drop_an_axis)
{
    begin();
    input("a", "DT_FLOAT", DIMS(2, 3));
    input("b", "DT_FLOAT", DIMS(2, 3));
    node("p", "Pack", "a,b");
    inf_tfjs_writer_attr_int(w, "axis", -1);
    node("u", "Unpack", "p");
    inf_tfjs_writer_attr_int(w, "axis", 1);
    inf_tfjs_writer_attr_int(w, "num", 3);
    inf_tfjs_writer_output(w, "p", "p");
    cr_assert_str_eq(output_of("u:2"), "FP32 [2,3,2]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,2]");
    static const struct {
        int64_t axis, num;
        const char *part;
    } rows[] = {{2, 3, "axis is 2, and its input has 2 dimensions"},
                {-3, 3, "axis is -3"},
                {0, 3, "num is 3, and its input has 2 slices"},
                {0, 5000, "wanted an integer from 0 to 4096"},
                {0, -1, "wanted an integer from 0 to 4096"},
                {8, 2, "wanted an integer from -8 to 7"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("a", "DT_FLOAT", DIMS(2, 3));
        node("u", "Unpack", "a");
        inf_tfjs_writer_attr_int(w, "axis", rows[i].axis);
        inf_tfjs_writer_attr_int(w, "num", rows[i].num);
        refuse("u", INF_INVALID, rows[i].part);
    }
}

Test(tfjs_ops_shape, questions_about_shapes_give_integers)
{
    begin();
    input("x", "DT_FLOAT", DIMS(-1, 3));
    node("s", "Shape", "x");
    node("r", "Rank", "x");
    node("n", "Size", "x");
    node("z", "ZerosLike", "x");
    inf_tfjs_writer_output(w, "s", "s");
    inf_tfjs_writer_output(w, "r", "r");
    inf_tfjs_writer_output(w, "n", "n");
    cr_assert_str_eq(output_of("z"), "INT32 [2]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "INT32 []");
    cr_assert_str_eq(inf_tfjs_case_output(2), "INT32 []");
    cr_assert_eq(inf_tfjs_case.graph->values[inf_tfjs_case.graph->outputs[3].value].dtype,
                 INF_DTYPE_F32);
    begin();
    ints("dims", (int32_t[]){2, 5}, 2);
    scalar("half", 0.5f);
    node("f", "Fill", "dims,half");
    cr_assert_str_eq(output_of("f"), "FP32 [2,5]");
    begin();
    scalar_int("from", 3);
    scalar_int("to", 18);
    scalar_int("by", 5);
    node("f", "Range", "from,to,by");
    cr_assert_str_eq(output_of("f"), "INT32 [3]");
}

Test(tfjs_ops_shape, slices_take_sizes_and_begin_anywhere)
{
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    ints("begin", (int32_t[]){1, 2, 0}, 3);
    ints("size", (int32_t[]){2, -1, 0}, 3);
    node("n", "Slice", "x,begin,size");
    cr_assert_str_eq(output_of("n"), "FP32 [2,4,0]");
    static const struct {
        int32_t begin, size;
        const char *part;
    } rows[] = {{-1, 1, "begin[0] is -1"},
                {0, -2, "size[0] is -2"},
                {INT32_MAX, INT32_MAX, "begin[0] + size[0] is 4294967294"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin();
        input("x", "DT_FLOAT", DIMS(5));
        ints("begin", &rows[i].begin, 1);
        ints("size", &rows[i].size, 1);
        node("n", "Slice", "x,begin,size");
        refuse("n", INF_INVALID, rows[i].part);
    }
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6));
    ints("begin", (int32_t[]){0, 4}, 2);
    ints("end", (int32_t[]){0, 0}, 2);
    ints("step", (int32_t[]){2, -1}, 2);
    node("n", "StridedSlice", "x,begin,end,step");
    inf_tfjs_writer_attr_int(w, "end_mask", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [3,4]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6));
    ints("one", (int32_t[]){1, 1}, 2);
    ints("two", (int32_t[]){2, 2}, 2);
    node("n", "StridedSlice", "x,one,two,one");
    inf_tfjs_writer_attr_int(w, "shrink_axis_mask", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [1]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6));
    ints("axes", (int32_t[]){-1}, 1);
    node("n", "ReverseV2", "x,axes");
    cr_assert_str_eq(output_of("n"), "FP32 [5,6]");
    check_ints(0, 3, (int64_t[]){1, -1}, 2);
}

Test(tfjs_ops_shape, joining_splitting_and_padding)
{
    begin();
    input("a", "DT_FLOAT", DIMS(2, 3));
    input("b", "DT_FLOAT", DIMS(2, 4));
    scalar_int("axis", 1);
    node("new", "ConcatV2", "a,b,axis");
    node("old", "Concat", "axis,a,b");
    ints("sizes", (int32_t[]){1, -1, 2}, 3);
    node("v", "SplitV", "new,sizes,axis");
    inf_tfjs_writer_attr_int(w, "num_split", 3);
    inf_tfjs_writer_ints(w, "paddings", (int32_t[]){1, 0, 2, 3}, DIMS(2, 2));
    node("p", "MirrorPad", "b,paddings");
    inf_tfjs_writer_attr_text(w, "mode", "REFLECT");
    inf_tfjs_writer_output(w, "old", "old");
    inf_tfjs_writer_output(w, "v", "v:1");
    inf_tfjs_writer_output(w, "p", "p");
    cr_assert_str_eq(output_of("new"), "FP32 [2,7]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,4]");
    cr_assert_str_eq(inf_tfjs_case_output(2), "FP32 [3,9]");
    cr_assert_str_eq(inf_tfjs_case_output(3), "FP32 [2,7]");
    begin();
    input("a", "DT_FLOAT", DIMS(2));
    inf_tfjs_writer_ints(w, "paddings", (int32_t[]){1, 0}, DIMS(1, 2));
    node("p", "MirrorPad", "a,paddings");
    inf_tfjs_writer_attr_text(w, "mode", "AROUND");
    refuse("p", INF_INVALID, "mode is 'around'");
    begin();
    input("a", "DT_FLOAT", DIMS(4));
    scalar_int("axis", 0);
    node("s", "Split", "axis,a");
    refuse("s", INF_INVALID, "has no attribute num_split");
    begin();
    input("a", "DT_FLOAT", DIMS(4));
    scalar_int("axis", 0);
    node("s", "Split", "axis,a");
    inf_tfjs_writer_attr_int(w, "num_split", 3);
    refuse("s", INF_INVALID, "'s'");
}

Test(tfjs_ops_shape, gathers_pick_slices_and_points)
{
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    input("i", "DT_INT64", DIMS(2, -1));
    scalar_int("axis", -2);
    node("n", "GatherV2", "x,i,axis");
    cr_assert_str_eq(output_of("n"), "FP32 [5,2,?,7]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    input("i", "DT_INT32", DIMS(4, 2));
    node("n", "GatherNd", "x,i");
    cr_assert_str_eq(output_of("n"), "FP32 [4,7]");
    inf_tfjs_case_node(0, INF_OP_GATHER_ND);
    begin();
    input("x", "DT_FLOAT", DIMS(-1, 6, 7));
    input("i", "DT_INT32", DIMS(4, 3));
    node("n", "GatherNd", "x,i");
    cr_assert_str_eq(output_of("n"), "FP32 [4]");
    begin();
    input("x", "DT_FLOAT", DIMS(5, 6, 7));
    input("i", "DT_INT32", DIMS(4, 4));
    node("n", "GatherNd", "x,i");
    refuse("n", INF_INVALID, "node 'n' (gather_nd)");
}

Test(tfjs_ops_shape, select_chooses_rows_by_a_vector)
{
    begin();
    input("c", "DT_BOOL", DIMS(5));
    input("a", "DT_FLOAT", DIMS(5, 3, 2));
    node("n", "Select", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3,2]");
    uint32_t value = inf_tfjs_case_node(0, INF_OP_EXPAND_DIMS)->outputs[0];
    cr_assert(inf_shape_equal(&inf_tfjs_case.graph->values[value].shape, &INF_SHAPE(5, 1, 1)));
    begin();
    input("c", "DT_BOOL", NULL, 0);
    input("a", "DT_FLOAT", DIMS(5, 3));
    node("n", "Select", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3]");
    begin();
    input("c", "DT_BOOL", DIMS(3));
    input("a", "DT_FLOAT", DIMS(5, 3));
    node("n", "SelectV2", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
}

Test(tfjs_ops_shape, casts_between_types_that_are_one_here_vanish)
{
    begin();
    input("x", "DT_UINT8", DIMS(2));
    node("a", "Cast", "x");
    inf_tfjs_writer_attr_type(w, "DstT", "DT_INT64");
    node("b", "Cast", "a");
    inf_tfjs_writer_attr_type(w, "DstT", "DT_HALF");
    node("c", "StopGradient", "b");
    node("d", "FakeQuantWithMinMaxVars", "c,c,c");
    cr_assert_str_eq(output_of("d"), "FP32 [2]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
    cr_assert_eq(attrs_of(0, INF_OP_CAST)->cast.dtype, INF_DTYPE_F32);
    begin();
    input("x", "DT_UINT8", DIMS(2));
    node("a", "Cast", "x");
    refuse("a", INF_INVALID, "node 'a' (Cast): has no attribute DstT");
}

Test(tfjs_ops_shape, sums_of_many_resizes_and_defaults)
{
    begin();
    input("a", "DT_FLOAT", DIMS(2));
    node("n", "AddN", "a,a,a");
    output_of("n");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 2u);
    begin();
    input("x", "DT_FLOAT", DIMS(1, 4, 4, 3));
    ints("size", (int32_t[]){7, 9}, 2);
    node("n", "ResizeBilinear", "x,size");
    inf_tfjs_writer_attr_bool(w, "half_pixel_centers", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [1,7,9,3]");
    cr_assert(attrs_of(0, INF_OP_RESIZE)->resize.half_pixel_centers);
    cr_assert_not(attrs_of(0, INF_OP_RESIZE)->resize.align_corners);
    begin();
    scalar("half", 0.5f);
    node("p", "PlaceholderWithDefault", "half");
    node("n", "Neg", "p");
    cr_assert_str_eq(output_of("n"), "FP32 []");
    cr_assert_eq(inf_tfjs_case.graph->input_count, 0u);
}
