// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample. Uses the graph's RESIZE, which every device supports, if it computes the
// same result, otherwise RESAMPLE, which supports every mode. Sizes and scales may be computed at
// run time.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

// The largest size along an axis.
#define SIZE_MAX_ONNX (1 << 24)

// The requested resize, for every axis of x.
struct request {
    int32_t rank;
    int32_t count; // number of axes that the node names
    int32_t axes[INF_LIMIT_RANK];
    uint32_t sizes;  // value, i32 [rank]: the sizes of y
    uint32_t scales; // value, f32 [rank]; INF_VALUE_NONE: sizes are given instead
    uint32_t region; // f32 [2 * rank]; INF_VALUE_NONE unless the mode is tf_crop_and_resize
    struct inf_attrs_resample attrs;
};

static int find_text(struct inf_onnx_scope *s, const char *name, const char *const *texts,
                     int count, int fallback)
{
    const char *text = inf_onnx_attr_text(s, name, texts[fallback]);
    for (int i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return i;
    inf_build_fail(&s->b, INF_UNSUPPORTED, "attribute '%s' is '%.40s'", name, text);
    return fallback;
}

static void read_modes(struct inf_onnx_scope *s, struct inf_attrs_resample *attrs)
{
    // The names that ONNX gives to the modes, in the order of the graph's enums.
    static const char *const kinds[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    bool old = s->opset < 11; // Upsample, and the first version of Resize
    attrs->kind = (enum inf_sample_kind)find_text(s, "mode", kinds, 3, 0);
    attrs->coordinates = (enum inf_coordinates)find_text(s, "coordinate_transformation_mode",
                                                         coordinates, 7, old ? 4 : 0);
    attrs->rounding = (enum inf_rounding)find_text(s, "nearest_mode", roundings, 4, old ? 2 : 0);
    attrs->cubic_a = inf_onnx_attr_float(s, "cubic_coeff_a", -0.75f);
    attrs->exclude_outside = inf_onnx_attr_int(s, "exclude_outside", 0) != 0;
    attrs->antialias = inf_onnx_attr_int(s, "antialias", 0) != 0;
    attrs->extrapolation = inf_onnx_attr_float(s, "extrapolation_value", 0);
}

// --- extending a list for some axes to all axes ---

// Adds a node that takes one element of a list.
static uint32_t take_item(struct inf_onnx_scope *s, uint32_t list, int64_t index)
{
    return inf_build_slice(&s->b, list, 0, index, index + 1, 1);
}

// Extends a list that has elements only for the axes that the node names to a list for all axes.
// The other axes get the value `rest`.
static uint32_t extend_to_all_axes(struct inf_onnx_scope *s, const struct request *request,
                                   uint32_t list, uint32_t rest)
{
    uint32_t parts[INF_LIMIT_RANK];
    for (int32_t i = 0; i < request->rank; i++)
        parts[i] = rest;
    for (int32_t i = 0; i < request->count; i++)
        parts[request->axes[i]] = take_item(s, list, i);
    return inf_build_concat(&s->b, parts, (uint32_t)request->rank, 0);
}

static uint32_t add_float_list(struct inf_onnx_scope *s, float number)
{
    float *data;
    uint32_t value = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(1), &data);
    if (data != NULL)
        *data = number;
    return value;
}

// Returns true if a list has elements. In old versions, an empty list means an absent list.
static bool has_elements(struct inf_onnx_scope *s, uint32_t value)
{
    return value != INF_VALUE_NONE && inf_build_rank(&s->b, value) == 1 &&
           inf_build_dim(&s->b, value, 0) != 0;
}

static void check_count(struct inf_onnx_scope *s, const char *what, uint32_t list, int64_t wanted)
{
    int64_t count = inf_build_known_dim(&s->b, list, 0);
    if (inf_build_ok(&s->b) && count != wanted)
        inf_build_fail(&s->b, INF_INVALID, "%s has %lld numbers, wanted %lld", what,
                       (long long)count, (long long)wanted);
}

static void read_axes(struct inf_onnx_scope *s, struct request *request)
{
    struct inf_build_ints axes = {.count = 0};
    if (!inf_onnx_attr_ints(s, "axes", &axes))
        for (int32_t i = 0; i < request->rank; i++)
            axes.values[axes.count++] = i;
    if (axes.count > (uint32_t)request->rank)
        inf_build_fail(&s->b, INF_INVALID, "has %u axes, x has rank %d", axes.count, request->rank);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < axes.count; i++)
        request->axes[request->count++] = inf_build_axis(&s->b, axes.values[i], request->rank);
}

// Reads the region of every axis: starts, then ends.
static void read_region(struct inf_onnx_scope *s, struct request *request, uint32_t roi)
{
    if (request->attrs.coordinates != INF_COORDINATES_CROP)
        return;
    if (!has_elements(s, roi))
        inf_build_fail(&s->b, INF_INVALID, "lacks roi");
    check_count(s, "roi", roi, 2 * request->count);
    if (!inf_build_ok(&s->b))
        return;
    roi = inf_build_cast(&s->b, roi, INF_DTYPE_F32);
    uint32_t starts = inf_build_slice(&s->b, roi, 0, 0, request->count, 1);
    uint32_t ends = inf_build_slice(&s->b, roi, 0, request->count, INT64_MAX, 1);
    const uint32_t halves[] = {extend_to_all_axes(s, request, starts, add_float_list(s, 0)),
                               extend_to_all_axes(s, request, ends, add_float_list(s, 1))};
    request->region = inf_build_concat(&s->b, halves, 2, 0);
}

// --- finding the sizes of the result y ---

// Adds the size of one axis of y, i32 [1], rounded down.
static uint32_t add_scaled_size(struct inf_onnx_scope *s, const struct request *request,
                                int32_t axis)
{
    double scale;
    uint32_t own = inf_build_dim_value(&s->b, s->inputs[0], axis),
             factor = take_item(s, request->scales, axis);
    bool crops = request->region != INF_VALUE_NONE;
    bool is_known = inf_build_const_number(&s->b, factor, &scale);
    if (is_known && !(scale > 0 && scale < 1e6))
        inf_build_fail(&s->b, INF_INVALID, "scales[%d] is %g", axis, scale);
    if (is_known && scale == 1 && !crops)
        return own;
    uint32_t size = inf_build_mul(&s->b, inf_build_cast(&s->b, own, INF_DTYPE_F64),
                                  inf_build_cast(&s->b, factor, INF_DTYPE_F64));
    if (crops) {
        uint32_t length = inf_build_sub(
            &s->b,
            inf_build_cast(&s->b, take_item(s, request->region, request->rank + axis),
                           INF_DTYPE_F64),
            inf_build_cast(&s->b, take_item(s, request->region, axis), INF_DTYPE_F64));
        size = inf_build_mul(&s->b, size, length);
    }
    return inf_build_cast(&s->b, inf_build_unary(&s->b, INF_UNARY_FLOOR, size), INF_DTYPE_I32);
}

static void read_scales(struct inf_onnx_scope *s, struct request *request, uint32_t scales)
{
    uint32_t parts[INF_LIMIT_RANK];
    check_count(s, "scales", scales, request->count);
    if (!inf_build_ok(&s->b))
        return;
    request->scales = extend_to_all_axes(s, request, inf_build_cast(&s->b, scales, INF_DTYPE_F32),
                                         add_float_list(s, 1));
    for (int32_t i = 0; inf_build_ok(&s->b) && i < request->rank; i++)
        parts[i] = add_scaled_size(s, request, i);
    request->sizes = inf_build_concat(&s->b, parts, (uint32_t)request->rank, 0);
}

// Treats the sizes as limits and keeps the aspect ratio, with one scale for all axes. Returns the
// sizes of y along the axes that the node names, i32.
static uint32_t keep_aspect_ratio(struct inf_onnx_scope *s, struct request *request, uint32_t sizes,
                                  bool is_larger)
{
    struct inf_builder *b = &s->b;
    uint32_t own[INF_LIMIT_RANK], results[INF_LIMIT_RANK], scales[INF_LIMIT_RANK], scale = 0;
    for (int32_t i = 0; i < request->count; i++) {
        uint32_t wanted = inf_build_cast(b, take_item(s, sizes, i), INF_DTYPE_F64);
        own[i] = inf_build_dim_value(b, s->inputs[0], request->axes[i]);
        own[i] = inf_build_cast(b, own[i], INF_DTYPE_F64);
        uint32_t ratio =
            inf_build_div(b, wanted, inf_build_binary_number(b, INF_BINARY_MAX, own[i], 1));
        enum inf_binary_kind kind = is_larger ? INF_BINARY_MAX : INF_BINARY_MIN;
        scale = i == 0 ? ratio : inf_build_binary(b, kind, scale, ratio);
    }
    for (int32_t i = 0; i < request->count; i++) {
        uint32_t size = inf_build_mul(b, scale, own[i]);
        size = inf_build_unary(b, INF_UNARY_FLOOR,
                               inf_build_binary_number(b, INF_BINARY_ADD, size, 0.5));
        results[i] = inf_build_cast(b, size, INF_DTYPE_I32);
        scales[i] = inf_build_cast(b, scale, INF_DTYPE_F32);
    }
    uint32_t count = (uint32_t)request->count;
    request->scales =
        extend_to_all_axes(s, request, inf_build_concat(b, scales, count, 0), add_float_list(s, 1));
    return inf_build_concat(b, results, count, 0);
}

static void read_sizes(struct inf_onnx_scope *s, struct request *request, uint32_t sizes)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    uint32_t parts[INF_LIMIT_RANK];
    int policy = find_text(s, "keep_aspect_ratio_policy", policies, 3, 0);
    check_count(s, "sizes", sizes, request->count);
    if (inf_build_ok(&s->b) && inf_build_is_const(&s->b, sizes)) {
        struct inf_build_ints ints = inf_build_const_ints(&s->b, sizes, "sizes");
        for (uint32_t i = 0; inf_build_ok(&s->b) && i < ints.count; i++)
            if (ints.values[i] < 1 || ints.values[i] > SIZE_MAX_ONNX)
                inf_build_fail(&s->b, INF_INVALID, "sizes[%u] is %lld", i,
                               (long long)ints.values[i]);
        sizes = inf_build_list(&s->b, ints.values, ints.count);
    }
    if (!inf_build_ok(&s->b))
        return;
    sizes = inf_build_cast(&s->b, sizes, INF_DTYPE_I32);
    if (policy != 0 && request->count > 0)
        sizes = keep_aspect_ratio(s, request, sizes, policy == 2);
    for (int32_t i = 0; i < request->rank; i++)
        parts[i] = inf_build_dim_value(&s->b, s->inputs[0], i);
    for (int32_t i = 0; i < request->count; i++)
        parts[request->axes[i]] = take_item(s, sizes, i);
    request->sizes = inf_build_concat(&s->b, parts, (uint32_t)request->rank, 0);
}

static void read_request(struct inf_onnx_scope *s, struct request *request)
{
    // True unless the node is an Upsample or a Resize of opset 10.
    bool is_new = s->op->kind == 0 && s->opset >= 11;
    uint32_t scales = s->op->kind != 0 && s->opset < 9 ? inf_onnx_attr_floats(s, "scales")
                                                       : inf_onnx_input(s, is_new ? 2 : 1);
    uint32_t sizes = is_new ? inf_onnx_input(s, 3) : INF_VALUE_NONE;
    struct inf_build_node node = inf_build_describe_list(INF_OP_RESAMPLE, NULL, 0);
    *request = (struct request){.rank = inf_build_rank(&s->b, s->inputs[0]),
                                .sizes = INF_VALUE_NONE,
                                .scales = INF_VALUE_NONE,
                                .region = INF_VALUE_NONE,
                                .attrs = node.attrs.resample};
    read_modes(s, &request->attrs);
    read_axes(s, request);
    read_region(s, request, is_new ? inf_onnx_input(s, 1) : INF_VALUE_NONE);
    if (inf_build_ok(&s->b) && has_elements(s, scales))
        read_scales(s, request, scales);
    else if (inf_build_ok(&s->b) && has_elements(s, sizes))
        read_sizes(s, request, sizes);
    else
        inf_build_fail(&s->b, INF_INVALID, "has neither scales nor sizes");
}

// --- resizes of images that the graph's RESIZE can compute ---

// Returns true if the scale of an axis is known and is exactly the size of y divided by the size of
// x.
static bool find_exact_scale(struct inf_onnx_scope *s, const struct request *request, int32_t axis,
                             double *scale)
{
    int64_t in = inf_build_dim(&s->b, s->inputs[0], axis);
    double out;
    if (request->scales != INF_VALUE_NONE) {
        if (!inf_build_const_number(&s->b, take_item(s, request->scales, axis), scale))
            return false;
        return *scale == floor(*scale) ||
               (in > 0 && (double)in * *scale == floor((double)in * *scale));
    }
    *scale = 0;
    if (in > 0 && inf_build_const_number(&s->b, take_item(s, request->sizes, axis), &out))
        *scale = out / (double)in;
    return true;
}

// Returns true if the graph's operator RESIZE computes the same result as the requested resize.
static bool fits_resize(struct inf_onnx_scope *s, const struct request *request)
{
    const struct inf_attrs_resample *attrs = &request->attrs;
    bool is_whole = true, is_plural = true;
    if (request->rank != 4 || attrs->antialias || attrs->exclude_outside ||
        attrs->kind == INF_SAMPLE_CUBIC || inf_build_dtype(&s->b, s->inputs[0]) != INF_DTYPE_F32)
        return false;
    for (int32_t i = 0; i < 4; i++) {
        double scale = 0, size = 0;
        if (!find_exact_scale(s, request, i, &scale))
            return false;
        is_whole &= i < 2 || (scale >= 1 && scale == floor(scale));
        (void)inf_build_const_number(&s->b, take_item(s, request->sizes, i), &size);
        is_plural &= i < 2 || size > 1 || scale > 1;
    }
    if (attrs->kind == INF_SAMPLE_LINEAR)
        return attrs->coordinates == INF_COORDINATES_HALF_PIXEL ||
               attrs->coordinates == INF_COORDINATES_ASYMMETRIC ||
               attrs->coordinates == INF_COORDINATES_ALIGN_CORNERS ||
               (attrs->coordinates == INF_COORDINATES_PYTORCH_HALF_PIXEL && is_plural);
    // With whole factors, sampling positions are never exactly between two pixels or close to that.
    return is_whole && ((attrs->coordinates == INF_COORDINATES_ASYMMETRIC &&
                         attrs->rounding == INF_ROUNDING_FLOOR) ||
                        (attrs->coordinates == INF_COORDINATES_HALF_PIXEL &&
                         attrs->rounding <= INF_ROUNDING_PREFER_CEIL));
}

// Resizes rows and columns. Batch and channels must keep their sizes, or be broadcast from one
// element; otherwise the run fails.
static uint32_t add_resize(struct inf_onnx_scope *s, const struct request *request)
{
    const uint32_t inputs[] = {inf_build_channels_last(&s->b, s->inputs[0]),
                               inf_build_slice(&s->b, request->sizes, 0, 2, 4, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_RESIZE, inputs, 2);
    bool linear = request->attrs.kind == INF_SAMPLE_LINEAR;
    node.attrs.resize.kind = linear ? INF_RESIZE_BILINEAR : INF_RESIZE_NEAREST;
    node.attrs.resize.align_corners =
        linear && request->attrs.coordinates == INF_COORDINATES_ALIGN_CORNERS;
    node.attrs.resize.half_pixel_centers = linear && !node.attrs.resize.align_corners &&
                                           request->attrs.coordinates != INF_COORDINATES_ASYMMETRIC;
    uint32_t y = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
    bool is_settled = true;
    for (int32_t i = 0; inf_build_ok(&s->b) && i < 2; i++) {
        double scale = 0;
        bool is_named = false;
        for (int32_t k = 0; k < request->count; k++)
            is_named |= request->axes[k] == i;
        is_settled &= !is_named || (find_exact_scale(s, request, i, &scale) && scale == 1);
    }
    return is_settled ? y : inf_build_broadcast(&s->b, y, request->sizes);
}

static uint32_t add_resample(struct inf_onnx_scope *s, const struct request *request)
{
    const uint32_t inputs[] = {s->inputs[0], request->sizes, request->scales, request->region};
    uint32_t count = request->region != INF_VALUE_NONE   ? 4
                     : request->scales != INF_VALUE_NONE ? 3
                                                         : 2;
    struct inf_build_node node = inf_build_describe_list(INF_OP_RESAMPLE, inputs, count);
    node.attrs.resample = request->attrs;
    if (request->attrs.kind != INF_SAMPLE_NEAREST &&
        !inf_dtype_is_float(inf_build_dtype(&s->b, s->inputs[0])))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x is %s, wanted floats",
                       inf_dtype_name(inf_build_dtype(&s->b, s->inputs[0])));
    return inf_build_value(&s->b, &node);
}

static void lower_resize(struct inf_onnx_scope *s)
{
    struct request request;
    read_request(s, &request);
    if (inf_build_ok(&s->b))
        s->outputs[0] =
            fits_resize(s, &request) ? add_resize(s, &request) : add_resample(s, &request);
}

static const struct inf_onnx_op ops[] = {
    {"Resize", lower_resize, 1, 4, 1, 0},
    {"Upsample", lower_resize, 1, 2, 1, 1},
};

const struct inf_onnx_op_table inf_onnx_ops_resize = {ops, INF_ARRAY_LENGTH(ops)};
