// SPDX-License-Identifier: Apache-2.0
// Maps TensorFlow.js kernels that sample pictures.
#include <string.h>

#include "tests/tools/run/kernel_case.h"

static bool is_nearest(const struct kernel_case *call, const char *attr)
{
    return strcmp(kernel_text(call, attr), "nearest") == 0;
}

static void map_resize(struct kernel_case *call, int kind)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_RESIZE);
    attrs.resize.kind = (enum inf_resize_kind)kind;
    attrs.resize.align_corners = kernel_flag(call, "alignCorners");
    attrs.resize.half_pixel_centers = kernel_flag(call, "halfPixelCenters");
    int64_t size[2] = {0};
    kernel_list(call, "size", size, 2);
    uint32_t x = kernel_input(call, "images");
    if (kind == INF_RESIZE_BILINEAR)
        x = kernel_cast(call, x, INF_DTYPE_F32);
    kernel_result(call, kernel_add(call, INF_OP_RESIZE, &attrs, x, kernel_ints(call, size, 2)));
}

static void map_crop(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CROP_AND_RESIZE);
    attrs.crop_and_resize.kind =
        is_nearest(call, "method") ? INF_RESIZE_NEAREST : INF_RESIZE_BILINEAR;
    attrs.crop_and_resize.extrapolation = (float)kernel_attr(call, "extrapolationValue");
    int64_t size[2] = {0};
    kernel_list(call, "cropSize", size, 2);
    uint32_t image = kernel_input(call, "image"), boxes = kernel_input(call, "boxes");
    uint32_t index = kernel_input(call, "boxInd");
    kernel_result(call, kernel_add(call, INF_OP_CROP_AND_RESIZE, &attrs, image, boxes, index,
                                   kernel_ints(call, size, 2)));
}

static void map_transform(struct kernel_case *call, int unused)
{
    (void)unused;
    static const struct {
        const char *name;
        enum inf_border_mode mode;
    } modes[] = {{"constant", INF_BORDER_CONSTANT},
                 {"nearest", INF_BORDER_EDGE},
                 {"reflect", INF_BORDER_REFLECT},
                 {"wrap", INF_BORDER_WRAP}};
    union inf_attrs attrs = kernel_attrs(INF_OP_IMAGE_TRANSFORM);
    attrs.image_transform.kind =
        is_nearest(call, "interpolation") ? INF_RESIZE_NEAREST : INF_RESIZE_BILINEAR;
    attrs.image_transform.fill = (float)kernel_attr(call, "fillValue");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(modes); i++)
        if (strcmp(modes[i].name, kernel_text(call, "fillMode")) == 0)
            attrs.image_transform.border = modes[i].mode;
    uint32_t image = kernel_input(call, "image"), transforms = kernel_input(call, "transforms");
    int64_t size[2] = {kernel_shape(call, image)->dims[1], kernel_shape(call, image)->dims[2]};
    kernel_list(call, "outputShape", size, 2);
    kernel_result(call, kernel_add(call, INF_OP_IMAGE_TRANSFORM, &attrs, image, transforms,
                                   kernel_ints(call, size, 2)));
}

const struct kernel_row kernel_rows_picture[] = {
    {"CropAndResize", map_crop, 0},
    {"ResizeBilinear", map_resize, INF_RESIZE_BILINEAR},
    {"ResizeNearestNeighbor", map_resize, INF_RESIZE_NEAREST},
    {"Transform", map_transform, 0},
    {0},
};
