// SPDX-License-Identifier: Apache-2.0
// Operators of the reference device that have windows of any rank, or resample. The expected
// literals are worked out by hand or with Python's math module, or are the examples of ONNX's
// documentation.
#include "tests/unit/ref/ref_case.h"

// --- operators with windows of any rank ---

Test(ref, convolves_in_any_rank)
{
    begin_case(INF_OP_CONV_ND); // one axis: y[i] = x[i + 2] - x[i] + 0.5
    add_input(INF_DTYPE_F32, SHAPE(1, 5, 1), F32(1, 2, 4, 7, 11));
    add_input(INF_DTYPE_F32, SHAPE(2, 1, 1), F32(-1, 1));
    add_input(INF_DTYPE_F32, SHAPE(1), F32(0.5f));
    one.attrs.conv_nd.dilations = AXES(2);
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(3.5f, 5.5f, 7.5f));
    begin_case(INF_OP_CONV_ND); // three axes: the sum of a 2x2x2 cube
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 2, 1), F32(1, 2, 3, 4, 5, 6, 7, 8));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 2, 1, 1), F32(1, 1, 1, 1, 1, 1, 1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1, 1), F32(36));
    begin_case(INF_OP_CONV_ND); // two groups with one weight each; padding adds zeros
    one.attrs.conv_nd.groups = 2;
    one.attrs.conv_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2), F32(1, 10, 2, 20));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(3, -1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 2), F32(0, 0, 3, -10, 6, -20));
}

Test(ref, transposes_convolutions_in_any_rank)
{
    begin_case(INF_OP_CONV_ND_TRANSPOSE);
    one.attrs.conv_nd_transpose.strides = AXES(2);
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(1, 2, 3));
    add_input(INF_DTYPE_F32, SHAPE(3, 1, 1), F32(1, 10, 100));
    add_list(3, I32(1, 7, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 7, 1), F32(1, 10, 102, 20, 203, 30, 300));
    begin_case(INF_OP_CONV_ND_TRANSPOSE); // a transposed convolution in two groups
    one.attrs.conv_nd_transpose.groups = 2;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(5, 7));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(2, 3));
    add_list(3, I32(1, 1, 2));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2), F32(10, 21));
}

Test(ref, pools_in_any_rank)
{
    begin_case(INF_OP_POOL_ND);
    one.output_count = 2;
    one.attrs.pool_nd.kernel = AXES(2);
    one.attrs.pool_nd.index_batch = true;
    add_input(INF_DTYPE_F32, SHAPE(2, 3, 2), F32(1, 8, 5, 2, 5, 9, NAN, 0, -1, 0, -INFINITY, 1));
    expect_output(INF_DTYPE_F32, SHAPE(2, 2, 2), F32(5, 8, 5, 9, -1, 0, -1, 1));
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 2, 2), I32(2, 1, 2, 5, 8, 7, 8, 11));
    one.attrs.pool_nd.index_channels_first = true;
    run_case();
    one_node_expect(&one, 1, INF_DTYPE_I32, SHAPE(2, 2, 2), I32(1, 3, 1, 5, 7, 9, 7, 11));
    // expect first the mean over the elements inside x only, then the mean that also counts padding
    begin_case(INF_OP_POOL_ND);
    one.attrs.pool_nd.kind = INF_POOL_AVERAGE;
    one.attrs.pool_nd.kernel = AXES(2);
    one.attrs.pool_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(4, 6));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(4, 5));
    one.attrs.pool_nd.count_padding = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(2, 5));
    // Rounding the size up adds a last window that ends outside. Only its inner elements count.
    begin_case(INF_OP_POOL_ND);
    one.attrs.pool_nd.kind = INF_POOL_AVERAGE;
    one.attrs.pool_nd.kernel = AXES(2);
    one.attrs.pool_nd.strides = AXES(2);
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(4, 6, 9));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(5));
    one.attrs.pool_nd.ceil = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(5, 9));
    one.attrs.pool_nd.count_padding = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(5, 9));
    begin_case(INF_OP_POOL_ND);
    one.attrs.pool_nd.kind = INF_POOL_LP;
    one.attrs.pool_nd.kernel = AXES(2);
    add_input(INF_DTYPE_F32, SHAPE(1, 3, 1), F32(3, -4, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(5, 4));
    begin_case(INF_OP_POOL_ND); // a window that contains only padding has no mean
    one.attrs.pool_nd.kind = INF_POOL_AVERAGE;
    one.attrs.pool_nd.kernel = AXES(1);
    one.attrs.pool_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1), F32(3));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(NAN, 3));
    one.attrs.pool_nd.zero_if_empty = true;
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(0, 3));
    begin_case(INF_OP_POOL_ND); // the window is larger than x, so y is empty
    one.attrs.pool_nd.kernel = AXES(3);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 1), F32(3, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 0, 1), NULL);
    begin_case(INF_OP_POOL_ND); // the maximum of a window of padding is the smallest i8
    one.attrs.pool_nd.kernel = AXES(1);
    one.attrs.pool_nd.pads_before = AXES(1);
    add_input(INF_DTYPE_I8, SHAPE(1, 1, 1), I8(-5));
    expect_output(INF_DTYPE_I8, SHAPE(1, 2, 1), I8(INT8_MIN, -5));
}

Test(ref, dilates_pictures)
{
    begin_case(INF_OP_DILATION2D);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(0.1f, 0.2f, 0.3f, 0.4f));
    add_input(INF_DTYPE_F32, SHAPE(2, 2, 1), F32(0.4f, 0.3f, 0.1f, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(0.5f));
    one.attrs.dilation2d.padding = INF_PADDING_SAME; // padding never is the maximum
    expect_output(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(0.5f, 0.6f, 0.7f, 0.8f));
}

// --- resampling and sampling of pictures ---

static void run_resample(enum inf_sample_kind kind, enum inf_coordinates coordinates,
                         struct inf_shape from, const float *x, const int32_t *sizes)
{
    begin_case(INF_OP_RESAMPLE);
    one.attrs.resample.kind = kind;
    one.attrs.resample.coordinates = coordinates;
    add_input(INF_DTYPE_F32, from, x);
    add_list(from.rank, sizes);
}

Test(ref, resamples_linearly)
{
    // Expected results are from ONNX's resize_upsample_scales_linear and
    // resize_upsample_scales_linear_align_corners.
    const float x[] = {1, 2, 3, 4};
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_HALF_PIXEL, SHAPE(1, 1, 2, 2), x,
                 I32(1, 1, 4, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 4),
                  F32(1, 1.25f, 1.75f, 2, 1.5f, 1.75f, 2.25f, 2.5f, 2.5f, 2.75f, 3.25f, 3.5f, 3,
                      3.25f, 3.75f, 4));
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_ALIGN_CORNERS, SHAPE(2, 2), x, I32(2, 4));
    expect_output(INF_DTYPE_F32, SHAPE(2, 4),
                  F32(1, 4 / 3.0f, 5 / 3.0f, 2, 3, 10 / 3.0f, 11 / 3.0f, 4));
    // From ONNX's resize_downsample_scales_linear. The scale is 0.6, although the ratio of the
    // sizes is 0.5.
    const float eight[] = {1, 2, 3, 4, 5, 6, 7, 8};
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_HALF_PIXEL, SHAPE(2, 4), eight, I32(1, 2));
    one_node_const(&one, INF_DTYPE_F32, SHAPE(2), F32(0.6f, 0.6f));
    expect_output(INF_DTYPE_F32, SHAPE(1, 2), F32(2.6666665f, 4.3333331f));
    // Shrinks by 2 with antialiasing. The weights are 1/8, 3/8, 3/8, 1/8. Weights outside x are
    // dropped, and the others are normalised.
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_HALF_PIXEL, SHAPE(4), F32(0, 8, 0, 0), I32(2));
    one.attrs.resample.antialias = true;
    one.attrs.resample.exclude_outside = true;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(24 / 7.0f, 8 / 7.0f));
}

Test(ref, resamples_by_cubics)
{
    // The expected row is the first row of ONNX's resize_upsample_scales_cubic.
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    run_resample(INF_SAMPLE_CUBIC, INF_COORDINATES_HALF_PIXEL, SHAPE(1, 1, 4, 4), x,
                 I32(1, 1, 8, 8));
    run_case();
    const float *y = one.outputs[0].data;
    const float row[] = {0.47265625f, 0.76953125f, 1.24609375f, 1.875f,
                         2.28125f,    2.91015625f, 3.38671875f, 3.68359375f};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(row); i++)
        cr_expect_float_eq(y[i], row[i], 1e-6f, "element %zu is %g", i, (double)y[i]);
}

Test(ref, resamples_the_nearest)
{
    const float x[] = {1, 2, 3, 4};
    run_resample(INF_SAMPLE_NEAREST, INF_COORDINATES_HALF_PIXEL, SHAPE(4), x, I32(2));
    // positions 0.5 and 2.5 are halfway between two elements; this mode takes the lower one
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(1, 3));
    one.attrs.resample.rounding = INF_ROUNDING_PREFER_CEIL;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(2, 4));
    one.attrs.resample.coordinates = INF_COORDINATES_ASYMMETRIC;
    one.attrs.resample.rounding = INF_ROUNDING_CEIL;
    expect_output(INF_DTYPE_F32, SHAPE(2), F32(1, 3));
    run_resample(INF_SAMPLE_LINEAR, INF_COORDINATES_CROP, SHAPE(5), F32(0, 10, 20, 30, 40), I32(3));
    one.attrs.resample.extrapolation = -7;
    one_node_absent(&one);
    one_node_const(&one, INF_DTYPE_F32, SHAPE(2), F32(0.5f, 1.25f));
    expect_output(INF_DTYPE_F32, SHAPE(3), F32(20, 35, -7));
}

Test(ref, crops_and_resizes)
{
    begin_case(INF_OP_CROP_AND_RESIZE);
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 1, 1.5f));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    add_list(2, I32(3, 3));
    expect_output(INF_DTYPE_F32, SHAPE(1, 3, 3, 1), F32(1, 1.75f, 0, 2, 2.75f, 0, 3, 3.75f, 0));
    begin_case(INF_OP_CROP_AND_RESIZE); // a NaN coordinate is outside of the picture
    one.attrs.crop_and_resize.extrapolation = 9;
    add_input(INF_DTYPE_U8, SHAPE(1, 1, 1, 1), U8(5));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(NAN, 0, 1, 1e30f));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    add_list(2, I32(1, 1));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(9));
    begin_case(INF_OP_CROP_AND_RESIZE);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(5));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 1, 1));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(1));
    add_list(2, I32(1, 1));
    expect_failure(
        "node 'node' (crop_and_resize): index 1 (element 0 of the indices) is outside [0, 1)");
}

Test(ref, aligns_regions)
{
    begin_case(INF_OP_ROI_ALIGN);
    one.attrs.roi_align = (struct inf_attrs_roi_align){
        .kind = INF_POOL_AVERAGE, .output_h = 1, .output_w = 2, .samples = 1, .scale = 1};
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 3, 1), F32(0, 10, 20, 30, 40, 50));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 2, 1));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    // The samples are at (0.5, 0.5) and (0.5, 1.5). Each is the mean of four pixels.
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(20, 30));
    one.attrs.roi_align.kind = INF_POOL_MAX; // the largest of the four weighted pixels
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(10, 12.5f));
    begin_case(INF_OP_ROI_ALIGN);
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 1, 1), F32(1));
    add_input(INF_DTYPE_F32, SHAPE(1, 4), F32(0, 0, 1e9f, 1e9f));
    add_input(INF_DTYPE_I32, SHAPE(1), I32(0));
    expect_failure(
        "node 'node' (roi_align): region 0 has 1000000000 by 1000000000 pixels for one place, "
        "wanted at most 4096");
}

Test(ref, samples_grids)
{
    begin_case(INF_OP_GRID_SAMPLE);
    one.attrs.grid_sample.align_corners = true;
    add_input(INF_DTYPE_F32, SHAPE(1, 2, 2, 1), F32(1, 2, 3, 4));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 5, 2), F32(-1, -1, 1, 1, 0, 0, 2, -1, NAN, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 5, 1), F32(1, 4, 2.5f, 1, 0));
    one.attrs.grid_sample.border = INF_BORDER_EDGE;
    run_case();
    cr_assert_float_eq(((const float *)one.outputs[0].data)[3], 2, 1e-6f);
    begin_case(INF_OP_GRID_SAMPLE); // the part of a pixel area that is outside counts as 0
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 2, 1), F32(4, 8));
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 2), F32(-1, 0, -0.5f, 0, 0, 0));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(2, 4, 6));
    one.attrs.grid_sample.border = INF_BORDER_REFLECT;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(4, 4, 6));
    one.attrs.grid_sample.kind = INF_SAMPLE_NEAREST;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(4, 4, 4));
}

Test(ref, transforms_pictures)
{
    // each pixel of y is the pixel of x one column further right
    begin_case(INF_OP_IMAGE_TRANSFORM);
    one.attrs.image_transform.fill = 9;
    add_input(INF_DTYPE_F32, SHAPE(1, 1, 3, 1), F32(1, 2, 3));
    add_input(INF_DTYPE_F32, SHAPE(1, 8), F32(1, 0, 1, 0, 1, 0, 0, 0));
    add_list(2, I32(1, 4));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(2, 3, 9, 9));
    one.attrs.image_transform.border = INF_BORDER_EDGE;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(2, 3, 3, 3));
    one.attrs.image_transform.border = INF_BORDER_REFLECT;
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(2, 3, 3, 2));
    one.attrs.image_transform.border = INF_BORDER_CONSTANT;
    one.attrs.image_transform.kind = INF_RESIZE_BILINEAR;
    memcpy(one.inputs[1].data, F32(1, 0, 0.5f, 0, 1, 0, 0, 0), 8 * sizeof(float));
    expect_output(INF_DTYPE_F32, SHAPE(1, 1, 4, 1), F32(1.5f, 2.5f, 6, 9));
}
