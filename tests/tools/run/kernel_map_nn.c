// SPDX-License-Identifier: Apache-2.0
// Maps TensorFlow.js kernels with windows and matrices.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/common/einsum.h"
#include "tests/tools/run/kernel_case.h"

#define AXES_MAX 3

// The window sizes, strides, dilations and padding of a convolution, pooling or dilation kernel,
// one number per spatial axis.
struct windows {
    int axes;
    enum inf_padding padding;
    int64_t kernel[AXES_MAX], strides[AXES_MAX], dilations[AXES_MAX];
    int64_t before[AXES_MAX], after[AXES_MAX];
};

// Reads one number per spatial axis. A single number applies to all axes.
static void read_spatial(const struct kernel_case *call, const char *name, int axes,
                         int64_t *values)
{
    int count = kernel_list(call, name, values, AXES_MAX);
    for (int i = INF_MAX(count, 0); i < axes; i++)
        values[i] = count < 1 ? 1 : values[0];
}

// Handles kernels for which TensorFlow.js rounds the output size up or to nearest. Increases the
// padding at the end, so that rounding down gives the same size.
static void round_output(const struct kernel_case *call, int axis, int64_t input,
                         struct windows *windows)
{
    const char *mode = kernel_text(call, "dimRoundingMode");
    int64_t reach = (windows->kernel[axis] - 1) * windows->dilations[axis] + 1;
    int64_t stride = windows->strides[axis];
    double steps =
        (double)(input - reach + windows->before[axis] + windows->after[axis]) / (double)stride + 1;
    double output = strcmp(mode, "ceil") == 0    ? ceil(steps)
                    : strcmp(mode, "round") == 0 ? floor(steps + 0.5)
                                                 : floor(steps);
    int64_t needed = ((int64_t)output - 1) * stride + reach;
    int64_t has = input + windows->before[axis] + windows->after[axis];
    if (needed > has)
        windows->after[axis] += needed - has;
}

// Reads strides, dilations and padding for windows of size `kernel` over the spatial axes of
// `shape`. The first spatial axis is `first`.
static struct windows read_windows(const struct kernel_case *call, const struct inf_shape *shape,
                                   int first, int axes, const int64_t *kernel)
{
    struct windows windows = {.axes = axes};
    const char *pad = kernel_text(call, "pad");
    int64_t pads[2 * INF_LIMIT_RANK] = {0};
    memcpy(windows.kernel, kernel, sizeof(*kernel) * (size_t)axes);
    read_spatial(call, "strides", axes, windows.strides);
    read_spatial(call, "dilations", axes, windows.dilations);
    if (strcmp(pad, "same") == 0)
        windows.padding = INF_PADDING_SAME;
    if (strcmp(pad, "valid") == 0)
        windows.padding = INF_PADDING_VALID;
    int count = pad[0] != '\0' ? 0 : kernel_list(call, "pad", pads, 2 * INF_LIMIT_RANK);
    for (int i = 0; i < axes && windows.padding == INF_PADDING_EXPLICIT; i++) {
        windows.before[i] = count == 1 ? pads[0] : pads[2 * (first + i)];
        windows.after[i] = count == 1 ? pads[0] : pads[2 * (first + i) + 1];
        round_output(call, i, shape->dims[first + i], &windows);
    }
    return windows;
}

// Sets the attributes that have the same names in conv2d, depthwise_conv2d and conv2d_transpose.
#define SET_WINDOWS(attrs, windows)                                                                \
    do {                                                                                           \
        (attrs)->padding = (windows)->padding;                                                     \
        (attrs)->stride_h = (int32_t)(windows)->strides[0];                                        \
        (attrs)->stride_w = (int32_t)(windows)->strides[1];                                        \
        (attrs)->pad_top = (int32_t)(windows)->before[0];                                          \
        (attrs)->pad_bottom = (int32_t)(windows)->after[0];                                        \
        (attrs)->pad_left = (int32_t)(windows)->before[1];                                         \
        (attrs)->pad_right = (int32_t)(windows)->after[1];                                         \
        (attrs)->dilation_h = (int32_t)(windows)->dilations[0];                                    \
        (attrs)->dilation_w = (int32_t)(windows)->dilations[1];                                    \
    } while (0)

static void set_list(struct inf_ints *list, const int64_t *values, int count)
{
    list->count = count;
    memcpy(list->values, values, sizeof(*values) * (size_t)count);
}

// Sets the attributes that have the same names in conv_nd and pool_nd.
#define SET_LISTS(attrs, windows)                                                                  \
    do {                                                                                           \
        (attrs)->padding = (windows)->padding;                                                     \
        set_list(&(attrs)->strides, (windows)->strides, (windows)->axes);                          \
        set_list(&(attrs)->dilations, (windows)->dilations, (windows)->axes);                      \
        set_list(&(attrs)->pads_before, (windows)->before, (windows)->axes);                       \
        set_list(&(attrs)->pads_after, (windows)->after, (windows)->axes);                         \
    } while (0)

static bool is_nchw(const struct kernel_case *call)
{
    return strcmp(kernel_text(call, "dataFormat"), "NCHW") == 0;
}

static uint32_t to_nhwc(struct kernel_case *call, uint32_t x)
{
    return is_nchw(call) ? kernel_transpose(call, x, (const int64_t[]){0, 2, 3, 1}, 4) : x;
}

static uint32_t to_nchw(struct kernel_case *call, uint32_t x)
{
    return is_nchw(call) ? kernel_transpose(call, x, (const int64_t[]){0, 3, 1, 2}, 4) : x;
}

// --- adding bias and activation ---

// Reshapes a list of one number per channel so that it broadcasts along the channels.
static uint32_t per_channel(struct kernel_case *call, uint32_t list)
{
    if (!is_nchw(call) || kernel_shape(call, list)->rank != 1)
        return list;
    return kernel_reshape(call, list, (const int64_t[]){-1, 1, 1}, 3);
}

static uint32_t add_activation(struct kernel_case *call, uint32_t y)
{
    static const struct {
        const char *name;
        enum inf_unary_kind kind;
    } rows[] = {{"relu", INF_UNARY_RELU},
                {"relu6", INF_UNARY_RELU6},
                {"elu", INF_UNARY_ELU},
                {"sigmoid", INF_UNARY_SIGMOID},
                {"leakyrelu", INF_UNARY_LEAKY_RELU}};
    const char *name = kernel_text(call, "activation");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        if (strcmp(rows[i].name, name) != 0)
            continue;
        union inf_attrs attrs = kernel_attrs(INF_OP_UNARY);
        attrs.unary.kind = rows[i].kind;
        attrs.unary.alpha =
            rows[i].kind == INF_UNARY_ELU ? 1 : (float)kernel_attr(call, "leakyreluAlpha");
        return kernel_add(call, INF_OP_UNARY, &attrs, y);
    }
    if (strcmp(name, "prelu") == 0)
        return kernel_add(call, INF_OP_PRELU, NULL, y,
                          per_channel(call, kernel_input(call, "preluActivationWeights")));
    if (name[0] != '\0' && strcmp(name, "linear") != 0)
        kernel_refuse(call, "an activation of this name is not known");
    return y;
}

static uint32_t add_bias(struct kernel_case *call, uint32_t y)
{
    if (!kernel_has(call, "bias"))
        return y;
    return kernel_binary(call, INF_BINARY_ADD, y, per_channel(call, kernel_input(call, "bias")));
}

// Adds bias and activation as separate nodes, because fusing them is the job of the passes.
static void finish_output(struct kernel_case *call, uint32_t y)
{
    kernel_result(call, add_activation(call, add_bias(call, y)));
}

// --- kernels that compute convolutions ---

static void map_conv(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CONV2D);
    uint32_t x = kernel_input(call, "x"), filter = kernel_input(call, "filter");
    struct windows windows = read_windows(call, kernel_shape(call, x), is_nchw(call) ? 2 : 1, 2,
                                          kernel_shape(call, filter)->dims);
    SET_WINDOWS(&attrs.conv2d, &windows);
    uint32_t y = kernel_add(call, INF_OP_CONV2D, &attrs, to_nhwc(call, x), filter);
    finish_output(call, to_nchw(call, y));
}

static void map_depthwise(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_DEPTHWISE_CONV2D);
    uint32_t x = kernel_input(call, "x"), filter = kernel_input(call, "filter");
    struct windows windows =
        read_windows(call, kernel_shape(call, x), 1, 2, kernel_shape(call, filter)->dims);
    SET_WINDOWS(&attrs.depthwise_conv2d, &windows);
    finish_output(call, kernel_add(call, INF_OP_DEPTHWISE_CONV2D, &attrs, x, filter));
}

static void map_conv_backprop(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CONV2D_TRANSPOSE);
    uint32_t dy = kernel_input(call, "dy"), filter = kernel_input(call, "filter");
    struct inf_shape shape = {.rank = 4};
    kernel_list(call, "inputShape", shape.dims, 4);
    struct windows windows =
        read_windows(call, &shape, is_nchw(call) ? 2 : 1, 2, kernel_shape(call, filter)->dims);
    SET_WINDOWS(&attrs.conv2d_transpose, &windows);
    const int64_t *d = shape.dims;
    int64_t nhwc[] = {d[0], d[2], d[3], d[1]};
    uint32_t size = kernel_ints(call, is_nchw(call) ? nhwc : d, 4);
    struct inf_build_node node =
        inf_build_describe(INF_OP_CONV2D_TRANSPOSE, to_nhwc(call, dy), filter, size);
    node.attrs = attrs;
    struct inf_builder builder = {.graph = call->graph,
                                  .noun = "kernel",
                                  .name = "crop",
                                  .source = "Conv2DBackpropInput",
                                  .code = call->code,
                                  .err = &call->err};
    dy = inf_build_crop_gradient(&builder, &node);
    call->code = builder.code;
    uint32_t y = kernel_add(call, INF_OP_CONV2D_TRANSPOSE, &attrs, dy, filter, size);
    kernel_result(call, to_nchw(call, y));
}

static void map_conv3d(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CONV_ND);
    uint32_t x = kernel_input(call, "x"), filter = kernel_input(call, "filter");
    struct windows windows =
        read_windows(call, kernel_shape(call, x), 1, 3, kernel_shape(call, filter)->dims);
    SET_LISTS(&attrs.conv_nd, &windows);
    kernel_result(call, kernel_add(call, INF_OP_CONV_ND, &attrs, x, filter));
}

static void map_conv3d_backprop(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CONV_ND_TRANSPOSE);
    uint32_t dy = kernel_input(call, "dy"), filter = kernel_input(call, "filter");
    struct inf_shape shape = {.rank = 5};
    kernel_list(call, "inputShape", shape.dims, 5);
    struct windows windows = read_windows(call, &shape, 1, 3, kernel_shape(call, filter)->dims);
    SET_LISTS(&attrs.conv_nd_transpose, &windows);
    uint32_t size = kernel_ints(call, shape.dims, 5);
    kernel_result(call, kernel_add(call, INF_OP_CONV_ND_TRANSPOSE, &attrs, dy, filter, size));
}

static void map_dilation(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_DILATION2D);
    uint32_t x = kernel_input(call, "x"), filter = kernel_input(call, "filter");
    struct windows windows =
        read_windows(call, kernel_shape(call, x), 1, 2, kernel_shape(call, filter)->dims);
    SET_WINDOWS(&attrs.dilation2d, &windows);
    kernel_result(call, kernel_add(call, INF_OP_DILATION2D, &attrs, x, filter));
}

// --- kernels that compute pooling ---

// Returns true if pool2d accepts the windows: no window may cover only padding.
static bool fits_pool2d(const struct windows *windows)
{
    bool fits = windows->axes == 2;
    for (int i = 0; fits && i < 2; i++)
        fits = windows->before[i] < windows->kernel[i] && windows->after[i] < windows->kernel[i] &&
               windows->dilations[i] == 1;
    return fits;
}

// Returns true for windows of one element whose output has the shape of x. TensorFlow.js copies x
// then, even if padding would shift the elements.
static bool is_identity(const struct kernel_case *call, const struct windows *windows, uint32_t x)
{
    enum inf_dtype dtype;
    struct inf_shape shape;
    for (int i = 0; i < windows->axes; i++)
        if (windows->kernel[i] != 1)
            return false;
    struct inf_blob *recorded = kernel_tensor(json_array_get(call->outputs, 0), &dtype, &shape);
    inf_blob_unref(&recorded);
    return windows->axes == 2 && inf_shape_equal(&shape, kernel_shape(call, x));
}

static void build_pool(struct kernel_case *call, enum inf_pool_kind kind, int axes, bool indices)
{
    int64_t kernel[AXES_MAX];
    uint32_t x = kernel_input(call, "x");
    read_spatial(call, "filterSize", axes, kernel);
    struct windows windows = read_windows(call, kernel_shape(call, x), 1, axes, kernel);
    if (is_identity(call, &windows, x) && !indices) {
        kernel_result(call, kernel_add(call, INF_OP_IDENTITY, NULL, x));
        return;
    }
    if (fits_pool2d(&windows) && !indices) {
        union inf_attrs attrs = kernel_attrs(INF_OP_POOL2D);
        struct inf_attrs_pool2d *pool2d = &attrs.pool2d;
        pool2d->kind = kind;
        pool2d->kernel_h = (int32_t)kernel[0];
        pool2d->kernel_w = (int32_t)kernel[1];
        pool2d->padding = windows.padding;
        pool2d->stride_h = (int32_t)windows.strides[0];
        pool2d->stride_w = (int32_t)windows.strides[1];
        pool2d->pad_top = (int32_t)windows.before[0];
        pool2d->pad_bottom = (int32_t)windows.after[0];
        pool2d->pad_left = (int32_t)windows.before[1];
        pool2d->pad_right = (int32_t)windows.after[1];
        kernel_result(call, kernel_add(call, INF_OP_POOL2D, &attrs, x));
        return;
    }
    union inf_attrs attrs = kernel_attrs(INF_OP_POOL_ND);
    attrs.pool_nd.kind = kind;
    attrs.pool_nd.zero_if_empty = axes == 3;
    attrs.pool_nd.index_batch = kernel_flag(call, "includeBatchInIndex");
    set_list(&attrs.pool_nd.kernel, kernel, axes);
    SET_LISTS(&attrs.pool_nd, &windows);
    uint32_t first = kernel_node(call, INF_OP_POOL_ND, &attrs, &x, 1, indices ? 2 : 1);
    kernel_result(call, first);
    if (indices)
        kernel_result(call, first + 1);
}

static void map_pool(struct kernel_case *call, int kind)
{
    build_pool(call, (enum inf_pool_kind)kind, 2, false);
}

static void map_pool3d(struct kernel_case *call, int kind)
{
    build_pool(call, (enum inf_pool_kind)kind, 3, false);
}

static void map_pool_argmax(struct kernel_case *call, int unused)
{
    (void)unused;
    build_pool(call, INF_POOL_MAX, 2, true);
}

// --- kernels that compute matrix products ---

static void map_matmul(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_MATMUL);
    attrs.matmul.transpose_a = kernel_flag(call, "transposeA");
    attrs.matmul.transpose_b = kernel_flag(call, "transposeB");
    uint32_t a = kernel_input(call, "a"), b = kernel_input(call, "b");
    uint32_t y = kernel_add(call, INF_OP_MATMUL, &attrs, a, b);
    kernel_result(call, add_activation(call, add_bias(call, y)));
}

static void map_einsum(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t inputs[KERNEL_TENSORS], count = 0, y = 0;
    while (count < kernel_input_count(call) && count < KERNEL_TENSORS) {
        inputs[count] = kernel_input_at(call, count);
        count++;
    }
    if (call->code == INF_OK)
        call->code = inf_graph_add_einsum(call->graph, "einsum", kernel_text(call, "equation"),
                                          inputs, count, &y, &call->err);
    kernel_result(call, y);
}

// --- kernels that normalise ---

// Returns an operand of batch normalisation, or a constant if the operand was not recorded.
static uint32_t find_operand(struct kernel_case *call, const char *name, double otherwise)
{
    return kernel_has(call, name) ? kernel_input(call, name)
                                  : kernel_scalar(call, INF_DTYPE_F32, otherwise);
}

static void map_batch_norm(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t x = kernel_input(call, "x"), mean = kernel_input(call, "mean");
    uint32_t variance = kernel_input(call, "variance"), scale = find_operand(call, "scale", 1);
    uint32_t offset = find_operand(call, "offset", 0);
    const struct inf_shape shape = *kernel_shape(call, x);
    int64_t channels = shape.dims[INF_MAX(shape.rank - 1, 0)];
    float epsilon = (float)kernel_attr(call, "varianceEpsilon");
    bool per_channel =
        kernel_shape(call, mean)->rank == 1 && kernel_shape(call, mean)->dims[0] == channels;
    if (per_channel) {
        union inf_attrs attrs = kernel_attrs(INF_OP_BATCH_NORM);
        attrs.batch_norm.epsilon = epsilon;
        uint32_t wide = kernel_ints(call, &channels, 1);
        scale = kernel_add(call, INF_OP_BROADCAST, NULL, scale, wide);
        offset = kernel_add(call, INF_OP_BROADCAST, NULL, offset, wide);
        kernel_result(
            call, kernel_add(call, INF_OP_BATCH_NORM, &attrs, x, scale, offset, mean, variance));
        return;
    }
    uint32_t sum =
        kernel_binary(call, INF_BINARY_ADD, variance, kernel_scalar(call, INF_DTYPE_F32, epsilon));
    uint32_t factor =
        kernel_binary(call, INF_BINARY_MUL, kernel_unary(call, INF_UNARY_RSQRT, sum), scale);
    uint32_t centred = kernel_binary(call, INF_BINARY_SUB, x, mean);
    uint32_t scaled = kernel_binary(call, INF_BINARY_MUL, centred, factor);
    kernel_result(call, kernel_binary(call, INF_BINARY_ADD, scaled, offset));
}

static void map_lrn(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_LRN);
    attrs.lrn.before = attrs.lrn.after = (int32_t)kernel_attr(call, "depthRadius");
    attrs.lrn.bias = (float)kernel_attr(call, "bias");
    attrs.lrn.alpha = (float)kernel_attr(call, "alpha");
    attrs.lrn.beta = (float)kernel_attr(call, "beta");
    kernel_result(call, kernel_add(call, INF_OP_LRN, &attrs, kernel_input(call, "x")));
}

const struct kernel_row kernel_rows_nn[] = {
    {"AvgPool", map_pool, INF_POOL_AVERAGE},
    {"AvgPool3D", map_pool3d, INF_POOL_AVERAGE},
    {"BatchMatMul", map_matmul, 0},
    {"Conv2D", map_conv, 0},
    {"Conv2DBackpropInput", map_conv_backprop, 0},
    {"Conv3D", map_conv3d, 0},
    {"Conv3DBackpropInputV2", map_conv3d_backprop, 0},
    {"DepthwiseConv2dNative", map_depthwise, 0},
    {"Dilation2D", map_dilation, 0},
    {"Einsum", map_einsum, 0},
    {"FusedBatchNorm", map_batch_norm, 0},
    {"FusedConv2D", map_conv, 0},
    {"FusedDepthwiseConv2D", map_depthwise, 0},
    {"LRN", map_lrn, 0},
    {"MaxPool", map_pool, INF_POOL_MAX},
    {"MaxPool3D", map_pool3d, INF_POOL_MAX},
    {"MaxPoolWithArgmax", map_pool_argmax, 0},
    {"_FusedMatMul", map_matmul, 0},
    {0},
};
