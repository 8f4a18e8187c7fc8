// SPDX-License-Identifier: Apache-2.0
// The lowering of operators that move elements, compared with TensorFlow's definitions.
#include <criterion/criterion.h>

#include "tests/unit/import/tfjs_ops_kit.h"

TestSuite(tfjs_ops_shape, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

Test(tfjs_ops_shape, shapes_change_as_told)
{
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(2, 3, 1, 5));
    add_scalar_int("last", -1);
    add_ints("perm", (int32_t[]){3, 0, 2, 1}, 4);
    add_ints("flat", (int32_t[]){-1, 6}, 2);
    add_node("e", "ExpandDims", "x,last");
    add_node("q", "Squeeze", "e");
    inf_tfjs_writer_attr_ints(w, "squeeze_dims", DIMS(-1));
    add_node("t", "Transpose", "q,perm");
    add_node("r", "Reshape", "t,flat");
    inf_tfjs_writer_output(w, "e", "e");
    inf_tfjs_writer_output(w, "q", "q");
    inf_tfjs_writer_output(w, "t", "t");
    cr_assert_str_eq(output_of("r"), "FP32 [2,3,1,5,1]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,3,1,5]");
    cr_assert_str_eq(inf_tfjs_case_output(2), "FP32 [5,2,1,3]");
    cr_assert_str_eq(inf_tfjs_case_output(3), "FP32 [5,6]");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(1, 4, 6, 8));
    add_node("s", "SpaceToDepth", "x");
    inf_tfjs_writer_attr_int(w, "block_size", 2);
    add_node("d", "DepthToSpace", "s");
    inf_tfjs_writer_attr_int(w, "block_size", 4);
    inf_tfjs_writer_output(w, "s", "s");
    cr_assert_str_eq(output_of("d"), "FP32 [1,2,3,32]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [1,8,12,2]");
    static const int32_t blocks[] = {0, -1, 4097, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(blocks); i++) {
        begin_model();
        add_input("x", "DT_FLOAT", DIMS(1, 4, 6, 8));
        add_node("s", "SpaceToDepth", "x");
        inf_tfjs_writer_attr_int(w, "block_size", blocks[i]);
        refuse_model("s", INF_INVALID, "wanted an integer from 1 to 4096");
    }
}

Test(tfjs_ops_shape, pack_and_unpack_make_and_drop_an_axis)
{
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(2, 3));
    add_input("b", "DT_FLOAT", DIMS(2, 3));
    add_node("p", "Pack", "a,b");
    inf_tfjs_writer_attr_int(w, "axis", -1);
    add_node("u", "Unpack", "p");
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
        begin_model();
        add_input("a", "DT_FLOAT", DIMS(2, 3));
        add_node("u", "Unpack", "a");
        inf_tfjs_writer_attr_int(w, "axis", rows[i].axis);
        inf_tfjs_writer_attr_int(w, "num", rows[i].num);
        refuse_model("u", INF_INVALID, rows[i].part);
    }
}

Test(tfjs_ops_shape, questions_about_shapes_give_integers)
{
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(-1, 3));
    add_node("s", "Shape", "x");
    add_node("r", "Rank", "x");
    add_node("n", "Size", "x");
    add_node("z", "ZerosLike", "x");
    inf_tfjs_writer_output(w, "s", "s");
    inf_tfjs_writer_output(w, "r", "r");
    inf_tfjs_writer_output(w, "n", "n");
    cr_assert_str_eq(output_of("z"), "INT32 [2]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "INT32 []");
    cr_assert_str_eq(inf_tfjs_case_output(2), "INT32 []");
    cr_assert_eq(inf_tfjs_case.graph->values[inf_tfjs_case.graph->outputs[3].value].dtype,
                 INF_DTYPE_F32);
    begin_model();
    add_ints("dims", (int32_t[]){2, 5}, 2);
    add_scalar("half", 0.5f);
    add_node("f", "Fill", "dims,half");
    cr_assert_str_eq(output_of("f"), "FP32 [2,5]");
    begin_model();
    add_scalar_int("from", 3);
    add_scalar_int("to", 18);
    add_scalar_int("by", 5);
    add_node("f", "Range", "from,to,by");
    cr_assert_str_eq(output_of("f"), "INT32 [3]");
}

Test(tfjs_ops_shape, slices_take_sizes_and_begin_anywhere)
{
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6, 7));
    add_ints("begin", (int32_t[]){1, 2, 0}, 3);
    add_ints("size", (int32_t[]){2, -1, 0}, 3);
    add_node("n", "Slice", "x,begin,size");
    cr_assert_str_eq(output_of("n"), "FP32 [2,4,0]");
    static const struct {
        int32_t begin, size;
        const char *part;
    } rows[] = {{-1, 1, "begin[0] is -1"},
                {0, -2, "size[0] is -2"},
                {INT32_MAX, INT32_MAX, "begin[0] + size[0] is 4294967294"}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        begin_model();
        add_input("x", "DT_FLOAT", DIMS(5));
        add_ints("begin", &rows[i].begin, 1);
        add_ints("size", &rows[i].size, 1);
        add_node("n", "Slice", "x,begin,size");
        refuse_model("n", INF_INVALID, rows[i].part);
    }
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6));
    add_ints("begin", (int32_t[]){0, 4}, 2);
    add_ints("end", (int32_t[]){0, 0}, 2);
    add_ints("step", (int32_t[]){2, -1}, 2);
    add_node("n", "StridedSlice", "x,begin,end,step");
    inf_tfjs_writer_attr_int(w, "end_mask", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [3,4]");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6));
    add_ints("one", (int32_t[]){1, 1}, 2);
    add_ints("two", (int32_t[]){2, 2}, 2);
    add_node("n", "StridedSlice", "x,one,two,one");
    inf_tfjs_writer_attr_int(w, "shrink_axis_mask", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [1]");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6));
    add_ints("axes", (int32_t[]){-1}, 1);
    add_node("n", "ReverseV2", "x,axes");
    cr_assert_str_eq(output_of("n"), "FP32 [5,6]");
    check_ints(0, 3, (int64_t[]){1, -1}, 2);
}

Test(tfjs_ops_shape, joining_splitting_and_padding)
{
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(2, 3));
    add_input("b", "DT_FLOAT", DIMS(2, 4));
    add_scalar_int("axis", 1);
    add_node("new", "ConcatV2", "a,b,axis");
    add_node("old", "Concat", "axis,a,b");
    add_ints("sizes", (int32_t[]){1, -1, 2}, 3);
    add_node("v", "SplitV", "new,sizes,axis");
    inf_tfjs_writer_attr_int(w, "num_split", 3);
    inf_tfjs_writer_ints(w, "paddings", (int32_t[]){1, 0, 2, 3}, DIMS(2, 2));
    add_node("p", "MirrorPad", "b,paddings");
    inf_tfjs_writer_attr_text(w, "mode", "REFLECT");
    inf_tfjs_writer_output(w, "old", "old");
    inf_tfjs_writer_output(w, "v", "v:1");
    inf_tfjs_writer_output(w, "p", "p");
    cr_assert_str_eq(output_of("new"), "FP32 [2,7]");
    cr_assert_str_eq(inf_tfjs_case_output(1), "FP32 [2,4]");
    cr_assert_str_eq(inf_tfjs_case_output(2), "FP32 [3,9]");
    cr_assert_str_eq(inf_tfjs_case_output(3), "FP32 [2,7]");
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(2));
    inf_tfjs_writer_ints(w, "paddings", (int32_t[]){1, 0}, DIMS(1, 2));
    add_node("p", "MirrorPad", "a,paddings");
    inf_tfjs_writer_attr_text(w, "mode", "AROUND");
    refuse_model("p", INF_INVALID, "mode is 'around'");
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(4));
    add_scalar_int("axis", 0);
    add_node("s", "Split", "axis,a");
    refuse_model("s", INF_INVALID, "has no attribute num_split");
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(4));
    add_scalar_int("axis", 0);
    add_node("s", "Split", "axis,a");
    inf_tfjs_writer_attr_int(w, "num_split", 3);
    refuse_model("s", INF_INVALID, "'s'");
}

Test(tfjs_ops_shape, gathers_pick_slices_and_points)
{
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6, 7));
    add_input("i", "DT_INT64", DIMS(2, -1));
    add_scalar_int("axis", -2);
    add_node("n", "GatherV2", "x,i,axis");
    cr_assert_str_eq(output_of("n"), "FP32 [5,2,?,7]");
    // A negative number of batch dimensions counts from the end of the indices' shape.
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6, 7));
    add_input("i", "DT_INT32", DIMS(5, 3));
    add_scalar_int("axis", 1);
    add_node("n", "GatherV2", "x,i,axis");
    inf_tfjs_writer_attr_int(w, "batch_dims", -1);
    cr_assert_str_eq(output_of("n"), "FP32 [5,3,7]");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6, 7));
    add_input("i", "DT_INT32", DIMS(5, 3));
    add_scalar_int("axis", 1);
    add_node("n", "GatherV2", "x,i,axis");
    inf_tfjs_writer_attr_int(w, "batch_dims", -3);
    refuse_model("n", INF_INVALID, "-3");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6, 7));
    add_input("i", "DT_INT32", DIMS(4, 2));
    add_node("n", "GatherNd", "x,i");
    cr_assert_str_eq(output_of("n"), "FP32 [4,7]");
    inf_tfjs_case_node(0, INF_OP_GATHER_ND);
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(-1, 6, 7));
    add_input("i", "DT_INT32", DIMS(4, 3));
    add_node("n", "GatherNd", "x,i");
    cr_assert_str_eq(output_of("n"), "FP32 [4]");
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(5, 6, 7));
    add_input("i", "DT_INT32", DIMS(4, 4));
    add_node("n", "GatherNd", "x,i");
    refuse_model("n", INF_INVALID, "node 'n' (gather_nd)");
}

Test(tfjs_ops_shape, select_chooses_rows_by_a_vector)
{
    begin_model();
    add_input("c", "DT_BOOL", DIMS(5));
    add_input("a", "DT_FLOAT", DIMS(5, 3, 2));
    add_node("n", "Select", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3,2]");
    uint32_t value = inf_tfjs_case_node(0, INF_OP_EXPAND_DIMS)->outputs[0];
    cr_assert(inf_shape_equal(&inf_tfjs_case.graph->values[value].shape, &INF_SHAPE(5, 1, 1)));
    begin_model();
    add_input("c", "DT_BOOL", NULL, 0);
    add_input("a", "DT_FLOAT", DIMS(5, 3));
    add_node("n", "Select", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3]");
    begin_model();
    add_input("c", "DT_BOOL", DIMS(3));
    add_input("a", "DT_FLOAT", DIMS(5, 3));
    add_node("n", "SelectV2", "c,a,a");
    cr_assert_str_eq(output_of("n"), "FP32 [5,3]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
}

Test(tfjs_ops_shape, casts_between_types_that_are_one_here_vanish)
{
    begin_model();
    add_input("x", "DT_UINT8", DIMS(2));
    add_node("a", "Cast", "x");
    inf_tfjs_writer_attr_type(w, "DstT", "DT_INT64");
    add_node("b", "Cast", "a");
    inf_tfjs_writer_attr_type(w, "DstT", "DT_HALF");
    add_node("c", "StopGradient", "b");
    add_node("d", "FakeQuantWithMinMaxVars", "c,c,c");
    cr_assert_str_eq(output_of("d"), "FP32 [2]");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 1u);
    cr_assert_eq(attrs_of(0, INF_OP_CAST)->cast.dtype, INF_DTYPE_F32);
    begin_model();
    add_input("x", "DT_UINT8", DIMS(2));
    add_node("a", "Cast", "x");
    refuse_model("a", INF_INVALID, "node 'a' (Cast): has no attribute DstT");
}

Test(tfjs_ops_shape, sums_of_many_resizes_and_defaults)
{
    begin_model();
    add_input("a", "DT_FLOAT", DIMS(2));
    add_node("n", "AddN", "a,a,a");
    output_of("n");
    cr_assert_eq(inf_tfjs_case.graph->node_count, 2u);
    begin_model();
    add_input("x", "DT_FLOAT", DIMS(1, 4, 4, 3));
    add_ints("size", (int32_t[]){7, 9}, 2);
    add_node("n", "ResizeBilinear", "x,size");
    inf_tfjs_writer_attr_bool(w, "half_pixel_centers", 1);
    cr_assert_str_eq(output_of("n"), "FP32 [1,7,9,3]");
    cr_assert(attrs_of(0, INF_OP_RESIZE)->resize.half_pixel_centers);
    cr_assert_not(attrs_of(0, INF_OP_RESIZE)->resize.align_corners);
    begin_model();
    add_scalar("half", 0.5f);
    add_node("p", "PlaceholderWithDefault", "half");
    add_node("n", "Neg", "p");
    cr_assert_str_eq(output_of("n"), "FP32 []");
    cr_assert_eq(inf_tfjs_case.graph->input_count, 0u);
}
