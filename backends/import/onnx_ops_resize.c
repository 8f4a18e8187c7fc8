// SPDX-License-Identifier: Apache-2.0
// Resize and Upsample. Where sizes are known each axis is resampled on its own, from taps and weights
// computed here, which covers every mode there is; otherwise the graph's operator serves, in the
// modes that it has.
#include <math.h>
#include <string.h>

#include "backends/import/onnx_lower.h"

#define TAPS_MAX 64

enum mode {
    MODE_NEAREST,
    MODE_LINEAR,
    MODE_CUBIC
};

enum coordinates {
    COORDINATES_HALF_PIXEL,
    COORDINATES_SYMMETRIC,
    COORDINATES_PYTORCH,
    COORDINATES_CORNERS,
    COORDINATES_ASYMMETRIC,
    COORDINATES_TF_NEAREST,
    COORDINATES_CROP,
};

enum nearest {
    NEAREST_PREFER_FLOOR,
    NEAREST_PREFER_CEIL,
    NEAREST_FLOOR,
    NEAREST_CEIL
};

struct resize {
    enum mode mode;
    enum coordinates coordinates;
    enum nearest nearest;
    double cubic; // coefficient a
    bool outside; // taps outside x count nothing, and the rest is scaled up
    bool antialias;
    double extrapolation;
};

// How one axis is resampled.
struct axis_plan {
    int32_t axis;
    int64_t in, out;
    double scale;      // of sizes, as given
    double start, end; // of the region, for tf_crop_and_resize
};

static int find_text(struct inf_onnx_scope *s, const char *name, const char *const *texts,
                     int count, int fallback)
{
    const char *text = inf_ox_attr_text(s, name, texts[fallback]);
    for (int i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0)
            return i;
    inf_ox_fail(s, INF_UNSUPPORTED, "attribute '%s' is '%.40s'", name, text);
    return fallback;
}

static void read_modes(struct inf_onnx_scope *s, struct resize *resize)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const nearests[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                           "ceil"};
    bool old = s->opset < 11; // Upsample, and Resize in its first version
    *resize = (struct resize){.mode = (enum mode)find_text(s, "mode", modes, 3, 0)};
    resize->coordinates = (enum coordinates)find_text(s, "coordinate_transformation_mode",
                                                      coordinates, 7, old ? 4 : 0);
    resize->nearest = (enum nearest)find_text(s, "nearest_mode", nearests, 4, old ? 2 : 0);
    resize->cubic = (double)inf_ox_attr_float(s, "cubic_coeff_a", -0.75f);
    resize->outside = inf_ox_attr_int(s, "exclude_outside", 0) != 0;
    resize->antialias = inf_ox_attr_int(s, "antialias", 0) != 0;
    resize->extrapolation = (double)inf_ox_attr_float(s, "extrapolation_value", 0);
}

// --- one axis ---

// Where in x the middle of element `i` of y lies.
static double source_of(const struct resize *resize, const struct axis_plan *plan, int64_t i)
{
    double in = (double)plan->in, out = (double)plan->out;
    double length = in * plan->scale; // not rounded
    switch (resize->coordinates) {
    case COORDINATES_SYMMETRIC: {
        double centre = in / 2;
        double offset = centre * (1 - out / length);
        return offset + ((double)i + 0.5) / plan->scale - 0.5;
    }
    case COORDINATES_PYTORCH:
        return length > 1 ? ((double)i + 0.5) / plan->scale - 0.5 : 0;
    case COORDINATES_CORNERS:
        return length == 1 || out == 1 ? 0 : (double)i * (in - 1) / (length - 1);
    case COORDINATES_ASYMMETRIC:
        return (double)i / plan->scale;
    case COORDINATES_TF_NEAREST:
        return ((double)i + 0.5) / plan->scale;
    case COORDINATES_CROP:
        return out > 1 ? plan->start * (in - 1) +
                             (double)i * (plan->end - plan->start) * (in - 1) / (out - 1)
                       : 0.5 * (plan->start + plan->end) * (in - 1);
    default:
        return ((double)i + 0.5) / plan->scale - 0.5;
    }
}

static int64_t nearest_of(const struct resize *resize, double at)
{
    switch (resize->nearest) {
    case NEAREST_PREFER_FLOOR:
        return (int64_t)ceil(at - 0.5);
    case NEAREST_PREFER_CEIL:
        return (int64_t)floor(at + 0.5);
    case NEAREST_CEIL:
        return (int64_t)ceil(at);
    default:
        return (int64_t)floor(at);
    }
}

// Weight of a tap at `distance` from where the value is wanted.
static double kernel(const struct resize *resize, double distance)
{
    double d = fabs(distance), a = resize->cubic;
    if (resize->mode == MODE_LINEAR)
        return d < 1 ? 1 - d : 0;
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

// Taps and weights for element `i`: indices are brought into x.
static void plan_element(const struct resize *resize, const struct axis_plan *plan, int64_t i,
                         int32_t taps, int32_t *index, float *weight)
{
    double at = source_of(resize, plan, i), total = 0, weights[TAPS_MAX];
    // Shrinking with antialias stretches the kernel over what one element of y covers.
    double stretch = resize->antialias && plan->scale < 1 ? 1 / plan->scale : 1;
    int64_t first = (int64_t)floor(at) - taps / 2 + 1;
    if (resize->mode == MODE_NEAREST) {
        int64_t nearest = nearest_of(resize, at);
        index[0] = (int32_t)INF_MAX(INF_MIN(nearest, plan->in - 1), 0);
        weight[0] = 1;
        return;
    }
    for (int32_t tap = 0; tap < taps; tap++) {
        int64_t j = first + tap;
        weights[tap] = kernel(resize, ((double)j - at) / stretch);
        if (resize->outside && (j < 0 || j >= plan->in))
            weights[tap] = 0;
        total += weights[tap];
        index[tap] = (int32_t)INF_MAX(INF_MIN(j, plan->in - 1), 0);
    }
    bool scales = resize->outside || stretch != 1;
    for (int32_t tap = 0; tap < taps; tap++)
        weight[tap] = (float)(scales && total != 0 ? weights[tap] / total : weights[tap]);
}

static int32_t count_taps(struct inf_onnx_scope *s, const struct resize *resize,
                          const struct axis_plan *plan)
{
    if (resize->mode == MODE_NEAREST)
        return 1;
    double reach = resize->mode == MODE_LINEAR ? 1 : 2;
    if (resize->antialias && plan->scale < 1)
        reach = ceil(reach / plan->scale) + 1;
    if (reach <= TAPS_MAX / 2)
        return 2 * (int32_t)reach;
    inf_ox_fail(s, INF_UNSUPPORTED, "antialias over more than %d elements", TAPS_MAX);
    return 1;
}

// Elements whose middle lies outside x are the extrapolation value.
static uint32_t extrapolate(struct inf_onnx_scope *s, const struct resize *resize,
                            const struct axis_plan *plan, uint32_t y)
{
    uint8_t *inside;
    int32_t rank = inf_ox_rank(s, y);
    uint32_t mask = inf_ox_const(s, INF_DTYPE_BOOL, &INF_SHAPE(plan->out), &inside);
    for (int64_t i = 0; inside != NULL && i < plan->out; i++) {
        double at = source_of(resize, plan, i);
        inside[i] = at >= 0 && at <= (double)(plan->in - 1);
    }
    mask = inf_ox_expand_dims(s, mask, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - 1 - plan->axis);
    return inf_ox_select(s, mask, y, inf_ox_scalar(s, inf_ox_dtype(s, y), resize->extrapolation));
}

static uint32_t resample_axis(struct inf_onnx_scope *s, const struct resize *resize,
                              const struct axis_plan *plan, uint32_t x)
{
    int32_t taps = count_taps(s, resize, plan), rank = inf_ox_rank(s, x);
    int32_t *indices[TAPS_MAX];
    float *weights[TAPS_MAX];
    uint32_t index_values[TAPS_MAX], weight_values[TAPS_MAX], y = INF_VALUE_NONE;
    for (int32_t tap = 0; inf_ox_ok(s) && tap < taps; tap++) {
        index_values[tap] = inf_ox_const(s, INF_DTYPE_I32, &INF_SHAPE(plan->out), &indices[tap]);
        weight_values[tap] = inf_ox_const(s, INF_DTYPE_F32, &INF_SHAPE(plan->out), &weights[tap]);
    }
    for (int64_t i = 0; inf_ox_ok(s) && i < plan->out; i++) {
        int32_t index[TAPS_MAX];
        float weight[TAPS_MAX];
        plan_element(resize, plan, i, taps, index, weight);
        for (int32_t tap = 0; tap < taps; tap++) {
            indices[tap][i] = index[tap];
            weights[tap][i] = weight[tap];
        }
    }
    for (int32_t tap = 0; inf_ox_ok(s) && tap < taps; tap++) {
        uint32_t part = inf_ox_gather(s, x, index_values[tap], plan->axis);
        uint32_t weight = inf_ox_cast(s, weight_values[tap], inf_ox_dtype(s, x));
        weight =
            inf_ox_expand_dims(s, weight, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - 1 - plan->axis);
        if (resize->mode != MODE_NEAREST)
            part = inf_ox_mul(s, part, weight);
        y = tap == 0 ? part : inf_ox_add(s, y, part);
    }
    return resize->coordinates == COORDINATES_CROP ? extrapolate(s, resize, plan, y) : y;
}

// --- what is asked for ---

struct request {
    int32_t count; // axes that are resized
    int32_t axes[INF_LIMIT_RANK];
    double scales[INF_LIMIT_RANK];
    int64_t sizes[INF_LIMIT_RANK];
    bool has_sizes;
    double start[INF_LIMIT_RANK], end[INF_LIMIT_RANK];
};

// The elements of a constant of FP32 (or wider) numbers.
static uint32_t const_floats(struct inf_onnx_scope *s, uint32_t value, const char *what,
                             double *out, uint32_t capacity)
{
    size_t count;
    if (!inf_ox_ok(s))
        return 0;
    if (!inf_ox_is_const(s, value)) {
        inf_ox_fail(s, INF_UNSUPPORTED, "%s is not constant", what);
        return 0;
    }
    value = inf_ox_cast(s, value, INF_DTYPE_F32);
    if (!inf_ox_ok(s) || !inf_ox_is_const(s, value) ||
        !inf_shape_count(&s->graph->values[value].shape, &count) || count > capacity) {
        inf_ox_fail(s, INF_INVALID, "%s is no list of up to %u numbers", what, capacity);
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = (double)((const float *)s->graph->values[value].data->data)[i];
    return (uint32_t)count;
}

static bool has_elements(struct inf_onnx_scope *s, uint32_t value)
{
    return value != INF_VALUE_NONE && inf_ox_rank(s, value) == 1 && inf_ox_dim(s, value, 0) != 0;
}

static void read_scales(struct inf_onnx_scope *s, uint32_t value, struct request *request)
{
    if (const_floats(s, value, "scales", request->scales, INF_LIMIT_RANK) !=
        (uint32_t)request->count)
        inf_ox_fail(s, INF_INVALID, "scales are not one number for each of %d axes",
                    request->count);
    for (int32_t i = 0; i < request->count; i++)
        if (!(request->scales[i] > 0 && request->scales[i] < 1e6))
            inf_ox_fail(s, INF_INVALID, "scales[%d] is %g", i, request->scales[i]);
}

static void read_sizes(struct inf_onnx_scope *s, uint32_t value, struct request *request)
{
    struct inf_ox_ints sizes = inf_ox_const_ints(s, value, "sizes");
    request->has_sizes = true;
    if (sizes.count != (uint32_t)request->count)
        inf_ox_fail(s, INF_INVALID, "sizes are not one number for each of %d axes", request->count);
    for (int32_t i = 0; inf_ox_ok(s) && i < request->count; i++) {
        request->sizes[i] = sizes.values[i];
        if (sizes.values[i] < 1 || sizes.values[i] > 1 << 24)
            inf_ox_fail(s, INF_INVALID, "sizes[%d] is %lld", i, (long long)sizes.values[i]);
    }
}

// Sizes may be bounds that the aspect ratio is kept within.
static void keep_aspect(struct inf_onnx_scope *s, struct request *request)
{
    static const char *const policies[] = {"stretch", "not_larger", "not_smaller"};
    int policy = find_text(s, "keep_aspect_ratio_policy", policies, 3, 0);
    double scale = 0;
    if (policy == 0 || !request->has_sizes)
        return;
    for (int32_t i = 0; i < request->count; i++) {
        double own = (double)request->sizes[i] /
                     (double)INF_MAX(inf_ox_known_dim(s, s->inputs[0], request->axes[i]), 1);
        if (i == 0 || (policy == 1 ? own < scale : own > scale))
            scale = own;
    }
    for (int32_t i = 0; i < request->count; i++) {
        double size = scale * (double)inf_ox_known_dim(s, s->inputs[0], request->axes[i]);
        request->sizes[i] = (int64_t)floor(size + 0.5);
        request->scales[i] = scale;
    }
}

static void read_region(struct inf_onnx_scope *s, uint32_t roi, const struct resize *resize,
                        struct request *request)
{
    double values[2 * INF_LIMIT_RANK];
    if (resize->coordinates != COORDINATES_CROP)
        return;
    if (const_floats(s, roi, "roi", values, 2 * INF_LIMIT_RANK) != 2 * (uint32_t)request->count)
        inf_ox_fail(s, INF_INVALID, "roi are not two numbers for each of %d axes", request->count);
    for (int32_t i = 0; inf_ox_ok(s) && i < request->count; i++) {
        request->start[i] = values[i];
        request->end[i] = values[i + request->count];
    }
}

static void read_request(struct inf_onnx_scope *s, const struct resize *resize,
                         struct request *request)
{
    bool is_upsample = s->op->kind != 0;
    struct inf_ox_ints axes = {.count = 0};
    int32_t rank = inf_ox_rank(s, s->inputs[0]);
    uint32_t roi = INF_VALUE_NONE, sizes = INF_VALUE_NONE, scales = inf_ox_in(s, 1);
    if (!is_upsample && s->opset >= 11) {
        roi = inf_ox_in(s, 1);
        scales = inf_ox_in(s, 2);
        sizes = inf_ox_in(s, 3);
    }
    *request = (struct request){.count = rank};
    if (!inf_ox_attr_ints(s, "axes", &axes))
        for (int32_t i = 0; i < rank; i++)
            axes.values[axes.count++] = i;
    request->count = (int32_t)INF_MIN(axes.count, INF_LIMIT_RANK);
    for (int32_t i = 0; i < request->count; i++)
        request->axes[i] = inf_ox_axis(s, axes.values[i], rank);
    read_region(s, roi, resize, request);
    if (inf_ox_ok(s) && has_elements(s, scales))
        read_scales(s, scales, request);
    else if (inf_ox_ok(s) && has_elements(s, sizes))
        read_sizes(s, sizes, request);
    else
        inf_ox_fail(s, INF_INVALID, "has neither scales nor sizes");
    keep_aspect(s, request);
}

// --- sizes that are not known yet ---

// Whole factors only, by which the graph's operator and ONNX agree.
static void resize_unknown(struct inf_onnx_scope *s, const struct resize *resize,
                           const struct request *request)
{
    int64_t factors[2] = {1, 1};
    uint32_t x = s->inputs[0];
    bool nearest =
        resize->mode == MODE_NEAREST &&
        ((resize->coordinates == COORDINATES_ASYMMETRIC && resize->nearest == NEAREST_FLOOR) ||
         (resize->coordinates == COORDINATES_HALF_PIXEL && resize->nearest <= NEAREST_PREFER_CEIL));
    bool linear = resize->mode == MODE_LINEAR && !resize->antialias && !resize->outside &&
                  (resize->coordinates == COORDINATES_HALF_PIXEL ||
                   resize->coordinates == COORDINATES_ASYMMETRIC);
    bool whole = !request->has_sizes && inf_ox_rank(s, x) == 4;
    for (int32_t i = 0; whole && i < request->count; i++) {
        double scale = request->scales[i];
        whole = scale == floor(scale) && (request->axes[i] >= 2 || scale == 1);
        if (request->axes[i] >= 2)
            factors[request->axes[i] - 2] = (int64_t)scale;
    }
    if (!whole || (!nearest && !linear))
        inf_ox_fail(s, INF_UNSUPPORTED, "the sizes of x must be known when it is imported");
    const uint32_t sizes[] = {inf_ox_dim_value(s, x, 2), inf_ox_dim_value(s, x, 3)};
    uint32_t size = inf_ox_mul(s, inf_ox_concat(s, sizes, 2, 0), inf_ox_list(s, factors, 2));
    const uint32_t inputs[] = {inf_ox_channels_last(s, x), size};
    struct inf_ox_call call = inf_ox_call(INF_OP_RESIZE, inputs, 2);
    call.attrs.resize.kind = nearest ? INF_RESIZE_NEAREST : INF_RESIZE_BILINEAR;
    call.attrs.resize.half_pixel_centers = linear && resize->coordinates == COORDINATES_HALF_PIXEL;
    s->outputs[0] = inf_ox_channels_first(s, inf_ox_value(s, &call));
}

// Whether the graph's operator does it, sizes being known: nearer to what a network wants.
static bool fits_operator(struct inf_onnx_scope *s, const struct resize *resize,
                          const struct request *request)
{
    if (request->has_sizes || inf_ox_rank(s, s->inputs[0]) != 4 || resize->antialias ||
        resize->outside || resize->mode == MODE_CUBIC ||
        inf_ox_dtype(s, s->inputs[0]) != INF_DTYPE_F32)
        return false;
    for (int32_t i = 0; i < request->count; i++)
        if (request->scales[i] != floor(request->scales[i]) ||
            (request->axes[i] < 2 && request->scales[i] != 1))
            return false;
    if (resize->mode == MODE_LINEAR)
        return resize->coordinates == COORDINATES_HALF_PIXEL ||
               resize->coordinates == COORDINATES_ASYMMETRIC;
    return (resize->coordinates == COORDINATES_ASYMMETRIC && resize->nearest == NEAREST_FLOOR) ||
           (resize->coordinates == COORDINATES_HALF_PIXEL &&
            resize->nearest <= NEAREST_PREFER_CEIL);
}

static void lower_resize(struct inf_onnx_scope *s)
{
    struct resize resize;
    struct request request;
    uint32_t y = s->inputs[0];
    struct inf_ox_ints ignored;
    if (s->op->kind != 0 && s->opset < 9)
        inf_ox_fail(s, INF_UNSUPPORTED, "scales are an attribute before opset 9");
    (void)ignored;
    read_modes(s, &resize);
    read_request(s, &resize, &request);
    if (!inf_ox_ok(s))
        return;
    bool known = true;
    for (int32_t i = 0; i < request.count; i++)
        known &= inf_ox_dim(s, y, request.axes[i]) != INF_DIM_UNKNOWN ||
                 (!request.has_sizes && request.scales[i] == 1 && request.axes[i] < 2);
    if (!known || fits_operator(s, &resize, &request)) {
        resize_unknown(s, &resize, &request);
        return;
    }
    if (resize.mode != MODE_NEAREST && !inf_dtype_is_float(inf_ox_dtype(s, y)))
        inf_ox_fail(s, INF_UNSUPPORTED, "x is %s, wanted floats",
                    inf_dtype_name(inf_ox_dtype(s, y)));
    for (int32_t i = 0; inf_ox_ok(s) && i < request.count; i++) {
        struct axis_plan plan = {
            .axis = request.axes[i], .start = request.start[i], .end = request.end[i]};
        bool crops = resize.coordinates == COORDINATES_CROP;
        if (!request.has_sizes && request.scales[i] == 1 &&
            (!crops || (plan.start == 0 && plan.end == 1)))
            continue;
        plan.in = inf_ox_known_dim(s, y, plan.axis);
        plan.out = request.has_sizes ? request.sizes[i]
                                     : (int64_t)floor((double)plan.in * request.scales[i]);
        if (crops && !request.has_sizes)
            plan.out =
                (int64_t)floor((double)plan.in * (plan.end - plan.start) * request.scales[i]);
        plan.scale =
            request.scales[i] != 0 ? request.scales[i] : (double)plan.out / (double)plan.in;
        if (plan.in < 1 || plan.out < 1 || plan.out > 1 << 24)
            inf_ox_fail(s, INF_INVALID, "axis %d goes from %lld to %lld", plan.axis,
                        (long long)plan.in, (long long)plan.out);
        else if (plan.in != plan.out || plan.scale != 1 || crops)
            y = resample_axis(s, &resize, &plan, y);
    }
    s->outputs[0] = y;
}

static const struct inf_onnx_op ops[] = {
    {"Resize", lower_resize, 1, 4, 1, 0},
    {"Upsample", lower_resize, 1, 2, 1, 1},
};

const struct inf_onnx_op_table inf_onnx_ops_resize = {ops, INF_ARRAY_LENGTH(ops)};
