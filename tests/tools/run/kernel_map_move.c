// SPDX-License-Identifier: Apache-2.0
// Maps TensorFlow.js kernels that move, create, pick and place data.
#include <math.h>
#include <string.h>

#include "tests/tools/run/kernel_case.h"

static void map_concat(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CONCAT);
    attrs.concat.axis = (int32_t)kernel_attr(call, "axis");
    uint32_t inputs[KERNEL_TENSORS], all[KERNEL_TENSORS], count = 0, total = 0;
    while (total < kernel_input_count(call) && total < KERNEL_TENSORS) {
        uint32_t input = kernel_input_at(call, total);
        all[total++] = input;
        // Leave out empty inputs, whatever their shape.
        if (inf_shape_elements(kernel_shape(call, input)) != 0)
            inputs[count++] = input;
    }
    kernel_result(call, kernel_node(call, INF_OP_CONCAT, &attrs, count != 0 ? inputs : all,
                                    count != 0 ? count : total, 1));
}

static uint32_t expand_axis(struct kernel_case *call, uint32_t x, int64_t axis)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_EXPAND_DIMS);
    attrs.expand_dims.axes = (struct inf_ints){.count = 1, .values = {axis}};
    return kernel_add(call, INF_OP_EXPAND_DIMS, &attrs, x);
}

static void map_pack(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CONCAT);
    attrs.concat.axis = (int32_t)kernel_attr(call, "axis");
    uint32_t inputs[KERNEL_TENSORS], count = 0;
    while (count < kernel_input_count(call) && count < KERNEL_TENSORS) {
        inputs[count] = expand_axis(call, kernel_input_at(call, count), attrs.concat.axis);
        count++;
    }
    kernel_result(call, kernel_node(call, INF_OP_CONCAT, &attrs, inputs, count, 1));
}

static void map_unpack(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_SPLIT);
    union inf_attrs squeeze = kernel_attrs(INF_OP_SQUEEZE);
    attrs.split.axis = (int32_t)kernel_attr(call, "axis");
    squeeze.squeeze.axes = (struct inf_ints){.count = 1, .values = {attrs.split.axis}};
    uint32_t x = kernel_input(call, "value"), count = (uint32_t)json_array_size(call->outputs);
    uint32_t first = kernel_node(call, INF_OP_SPLIT, &attrs, &x, 1, count);
    for (uint32_t i = 0; i < count; i++)
        kernel_result(call, kernel_add(call, INF_OP_SQUEEZE, &squeeze, first + i));
}

static void map_split(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_SPLIT);
    attrs.split.axis = (int32_t)kernel_attr(call, "axis");
    int64_t sizes[KERNEL_TENSORS];
    bool equal = json_is_integer(json_object_get(call->attrs, "numOrSizeSplits"));
    int listed = kernel_list(call, "numOrSizeSplits", sizes, KERNEL_TENSORS);
    uint32_t count = (uint32_t)json_array_size(call->outputs);
    uint32_t inputs[2] = {kernel_input(call, "x")};
    if (!equal)
        inputs[1] = kernel_ints(call, sizes, listed);
    uint32_t first = kernel_node(call, INF_OP_SPLIT, &attrs, inputs, equal ? 1 : 2, count);
    for (uint32_t i = 0; i < count; i++)
        kernel_result(call, first + i);
}

static void map_reshape(struct kernel_case *call, int unused)
{
    (void)unused;
    int64_t shape[INF_LIMIT_RANK];
    int rank = kernel_list(call, "shape", shape, INF_LIMIT_RANK);
    kernel_result(call, kernel_reshape(call, kernel_input(call, "x"), shape, rank));
}

static void map_expand_dims(struct kernel_case *call, int unused)
{
    (void)unused;
    kernel_result(
        call, expand_axis(call, kernel_input(call, "input"), (int64_t)kernel_attr(call, "dim")));
}

static void map_transpose(struct kernel_case *call, int unused)
{
    (void)unused;
    int64_t perm[INF_LIMIT_RANK];
    int rank = kernel_list(call, "perm", perm, INF_LIMIT_RANK);
    kernel_result(call, kernel_transpose(call, kernel_input(call, "x"), perm, rank));
}

static void map_tile(struct kernel_case *call, int unused)
{
    (void)unused;
    int64_t repeats[INF_LIMIT_RANK];
    int rank = kernel_list(call, "reps", repeats, INF_LIMIT_RANK);
    uint32_t x = kernel_input(call, "x");
    kernel_result(call, kernel_add(call, INF_OP_TILE, NULL, x, kernel_ints(call, repeats, rank)));
}

static void map_reverse(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_REVERSE);
    struct inf_ints *axes = &attrs.reverse.axes;
    uint32_t x = kernel_input(call, "x");
    axes->count = kernel_list(call, "dims", axes->values, INF_LIMIT_RANK);
    if (axes->count < 0) { // no list was recorded, so all axes are reversed
        axes->count = kernel_shape(call, x)->rank;
        for (int32_t i = 0; i < axes->count; i++)
            axes->values[i] = i;
    }
    kernel_result(call, kernel_add(call, INF_OP_REVERSE, &attrs, x));
}

static void map_flip(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_REVERSE);
    attrs.reverse.axes = (struct inf_ints){.count = 1, .values = {2}};
    kernel_result(call, kernel_add(call, INF_OP_REVERSE, &attrs, kernel_input(call, "image")));
}

static void map_pad(struct kernel_case *call, int mirror)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_PAD);
    if (mirror)
        attrs.pad.mode =
            strcmp(kernel_text(call, "mode"), "reflect") == 0 ? INF_PAD_REFLECT : INF_PAD_SYMMETRIC;
    int64_t paddings[2 * INF_LIMIT_RANK];
    int count = kernel_list(call, "paddings", paddings, 2 * INF_LIMIT_RANK);
    uint32_t x = kernel_input(call, "x");
    uint32_t inputs[] = {
        x, kernel_matrix(call, paddings, count / 2, 2),
        kernel_scalar(call, kernel_dtype(call, x), kernel_attr(call, "constantValue"))};
    kernel_result(call, kernel_node(call, INF_OP_PAD, &attrs, inputs, mirror ? 2 : 3, 1));
}

static void map_slice(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t x = kernel_input(call, "x");
    const struct inf_shape shape = *kernel_shape(call, x);
    int64_t begin[INF_LIMIT_RANK] = {0}, size[INF_LIMIT_RANK], stride[INF_LIMIT_RANK];
    kernel_list(call, "begin", begin, INF_LIMIT_RANK);
    int sizes = kernel_list(call, "size", size, INF_LIMIT_RANK);
    for (int32_t i = 0; i < shape.rank; i++) {
        bool rest = i >= sizes || size[i] < 0;
        // From here on, `size` holds the end of the slice.
        size[i] = rest ? shape.dims[i] : begin[i] + size[i];
        stride[i] = 1;
    }
    kernel_result(call,
                  kernel_add(call, INF_OP_SLICE, NULL, x, kernel_ints(call, begin, shape.rank),
                             kernel_ints(call, size, shape.rank),
                             kernel_ints(call, stride, shape.rank)));
}

static void map_strided_slice(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_SLICE);
    attrs.slice.begin_mask = (int32_t)kernel_attr(call, "beginMask");
    attrs.slice.end_mask = (int32_t)kernel_attr(call, "endMask");
    attrs.slice.ellipsis_mask = (int32_t)kernel_attr(call, "ellipsisMask");
    attrs.slice.new_axis_mask = (int32_t)kernel_attr(call, "newAxisMask");
    attrs.slice.shrink_axis_mask = (int32_t)kernel_attr(call, "shrinkAxisMask");
    static const char *const names[] = {"begin", "end", "strides"};
    uint32_t inputs[4] = {kernel_input(call, "x")};
    for (int i = 0; i < 3; i++) {
        int64_t list[INF_LIMIT_RANK];
        inputs[1 + i] = kernel_ints(call, list, kernel_list(call, names[i], list, INF_LIMIT_RANK));
    }
    kernel_result(call, kernel_node(call, INF_OP_SLICE, &attrs, inputs, 4, 1));
}

static void map_blocks(struct kernel_case *call, int op)
{
    int64_t sizes[INF_LIMIT_RANK], edges[2 * INF_LIMIT_RANK];
    bool to_batch = op == INF_OP_SPACE_TO_BATCH;
    int count = kernel_list(call, "blockShape", sizes, INF_LIMIT_RANK);
    kernel_list(call, to_batch ? "paddings" : "crops", edges, 2 * INF_LIMIT_RANK);
    uint32_t x = kernel_input(call, "x");
    kernel_result(call, kernel_add(call, (enum inf_op)op, NULL, x, kernel_ints(call, sizes, count),
                                   kernel_matrix(call, edges, count, 2)));
}

static void map_depth_to_space(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_DEPTH_TO_SPACE);
    attrs.depth_to_space.block = (int32_t)kernel_attr(call, "blockSize");
    kernel_result(call, kernel_add(call, INF_OP_DEPTH_TO_SPACE, &attrs, kernel_input(call, "x")));
}

// --- kernels that create data ---

static void map_fill(struct kernel_case *call, int unused)
{
    (void)unused;
    int64_t shape[INF_LIMIT_RANK];
    int rank = kernel_list(call, "shape", shape, INF_LIMIT_RANK);
    const char *name = kernel_text(call, "dtype");
    enum inf_dtype dtype = strcmp(name, "int32") == 0  ? INF_DTYPE_I32
                           : strcmp(name, "bool") == 0 ? INF_DTYPE_BOOL
                                                       : INF_DTYPE_F32;
    kernel_result(call, kernel_fill(call, shape, rank, dtype, kernel_attr(call, "value")));
}

// Maps Range. TensorFlow.js uses a step of 1 also if no step was given; it becomes -1 if the range
// is descending.
static void map_range(struct kernel_case *call, int unused)
{
    (void)unused;
    double start = kernel_attr(call, "start"), stop = kernel_attr(call, "stop");
    double step = kernel_attr(call, "step");
    enum inf_dtype dtype =
        strcmp(kernel_text(call, "dtype"), "int32") == 0 ? INF_DTYPE_I32 : INF_DTYPE_F32;
    if (stop < start && step == 1)
        step = -1;
    kernel_result(call,
                  kernel_add(call, INF_OP_RANGE, NULL, kernel_scalar(call, dtype, start),
                             kernel_scalar(call, dtype, stop), kernel_scalar(call, dtype, step)));
}

static void map_lin_space(struct kernel_case *call, int unused)
{
    (void)unused;
    double start = kernel_attr(call, "start"), stop = kernel_attr(call, "stop");
    double count = kernel_attr(call, "num");
    uint32_t steps = kernel_add(call, INF_OP_RANGE, NULL, kernel_scalar(call, INF_DTYPE_F32, 0),
                                kernel_scalar(call, INF_DTYPE_F32, count),
                                kernel_scalar(call, INF_DTYPE_F32, 1));
    uint32_t step = kernel_scalar(call, INF_DTYPE_F32, (stop - start) / fmax(count - 1, 1));
    uint32_t scaled = kernel_binary(call, INF_BINARY_MUL, steps, step);
    kernel_result(call, kernel_binary(call, INF_BINARY_ADD, scaled,
                                      kernel_scalar(call, INF_DTYPE_F32, start)));
}

static void map_one_hot(struct kernel_case *call, int unused)
{
    (void)unused;
    enum inf_dtype dtype =
        strcmp(kernel_text(call, "dtype"), "float32") == 0 ? INF_DTYPE_F32 : INF_DTYPE_I32;
    uint32_t indices = kernel_input(call, "indices");
    uint32_t depth = kernel_scalar(call, INF_DTYPE_I32, kernel_attr(call, "depth"));
    kernel_result(call, kernel_add(call, INF_OP_ONE_HOT, NULL, indices, depth,
                                   kernel_scalar(call, dtype, kernel_attr(call, "onValue")),
                                   kernel_scalar(call, dtype, kernel_attr(call, "offValue"))));
}

// Maps Diag: broadcasts x as a flat column, and selects its elements where an identity matrix is
// true.
static void map_diag(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t x = kernel_input(call, "x");
    const struct inf_shape shape = *kernel_shape(call, x);
    int64_t count = (int64_t)inf_shape_elements(&shape), dims[2 * INF_LIMIT_RANK];
    uint32_t column = kernel_reshape(call, x, (const int64_t[]){count, 1}, 2);
    union inf_attrs band = kernel_attrs(INF_OP_BAND);
    band.band.low = band.band.high = 0;
    uint32_t wide = kernel_add(call, INF_OP_BROADCAST, NULL, column,
                               kernel_ints(call, (const int64_t[]){count, count}, 2));
    for (int32_t i = 0; i < shape.rank; i++)
        dims[i] = dims[shape.rank + i] = shape.dims[i];
    kernel_result(call, kernel_reshape(call, kernel_add(call, INF_OP_BAND, &band, wide), dims,
                                       2 * shape.rank));
}

const struct kernel_row kernel_rows_move[] = {
    {"BatchToSpaceND", map_blocks, INF_OP_BATCH_TO_SPACE},
    {"Concat", map_concat, 0},
    {"DepthToSpace", map_depth_to_space, 0},
    {"Diag", map_diag, 0},
    {"ExpandDims", map_expand_dims, 0},
    {"Fill", map_fill, 0},
    {"FlipLeftRight", map_flip, 0},
    {"LinSpace", map_lin_space, 0},
    {"MirrorPad", map_pad, 1},
    {"OneHot", map_one_hot, 0},
    {"Pack", map_pack, 0},
    {"PadV2", map_pad, 0},
    {"Range", map_range, 0},
    {"Reshape", map_reshape, 0},
    {"Reverse", map_reverse, 0},
    {"Slice", map_slice, 0},
    {"SpaceToBatchND", map_blocks, INF_OP_SPACE_TO_BATCH},
    {"SplitV", map_split, 0},
    {"StridedSlice", map_strided_slice, 0},
    {"Tile", map_tile, 0},
    {"Transpose", map_transpose, 0},
    {"Unpack", map_unpack, 0},
    {0},
};
