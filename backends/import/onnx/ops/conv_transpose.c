// SPDX-License-Identifier: Apache-2.0
// ConvTranspose and MaxUnpool: the inverse operations of convolution and pooling.

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/window.h"

// The largest number of groups. Each group becomes a node.
#define GROUPS_MAX 64

// A transposed convolution: x [n, spatial..., c], filter [c, m, spatial...].
struct transposed {
    uint32_t x, filter, bias;
    const struct inf_onnx_window *window;
    const int64_t *extra;  // for each axis: number of elements of y after those that x reaches
    const int64_t *wanted; // sizes of y, which is cut out of the result; NULL: the whole result
};

// --- reading the window and its padding ---

// Computes the padding that makes y as large as the model wants it. `surplus` has by how many
// elements y would be larger along each axis without padding. Elements of y that x does not reach
// get the bias.
static void pad_for_output(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                           const int64_t *surplus, int64_t *extra)
{
    const char *automatic = inf_onnx_attr_text(s, "auto_pad", "NOTSET");
    bool upper = automatic[0] == 'S' && automatic[5] == 'U';
    for (int32_t i = 0; i < window->axes; i++) {
        int64_t total = INF_MAX(surplus[i], 0);
        extra[i] += INF_MAX(-surplus[i], 0);
        window->before[i] = upper ? total / 2 : total - total / 2;
        window->after[i] = total - window->before[i];
    }
}

static void read_per_axis(struct inf_onnx_scope *s, const char *name, int32_t axes, int64_t *out,
                          bool *there)
{
    struct inf_build_ints ints;
    *there = inf_onnx_attr_ints(s, name, &ints);
    // The requested shape may include batch and channels, which come before the spatial axes.
    uint32_t skip = *there && ints.count == (uint32_t)axes + 2 ? 2 : 0;
    if (*there && ints.count != (uint32_t)axes + skip)
        inf_build_fail(&s->b, INF_INVALID, "%s has %u numbers, wanted %d", name, ints.count, axes);
    for (int32_t i = 0; i < axes; i++)
        out[i] = *there && inf_build_ok(&s->b) ? ints.values[(uint32_t)i + skip] : 0;
    for (int32_t i = 0; i < axes; i++)
        if (out[i] < 0 || out[i] >= INF_LIMIT_DIM)
            inf_build_fail(&s->b, INF_INVALID, "%s[%d] is %lld", name, i, (long long)out[i]);
}

// Reads the window and output_padding. With auto_pad, the output size is the input size times the
// stride. Returns true if the node has output_shape, which goes to `wanted`, and a size of x is not
// known: then the padding cannot be computed, the window has none, and y is cut out of the result.
static bool read_window(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x,
                        uint32_t filter, int64_t *extra, int64_t *wanted)
{
    int64_t kernel[INF_ONNX_WINDOW_AXES] = {1, 1, 1};
    int64_t surplus[INF_ONNX_WINDOW_AXES];
    int32_t rank = inf_build_rank(&s->b, x);
    bool there;
    if (rank != inf_build_rank(&s->b, filter))
        inf_build_fail(&s->b, INF_INVALID, "x has rank %d, the filter %d", rank,
                       inf_build_rank(&s->b, filter));
    inf_onnx_window_read_filter(s, filter, kernel);
    inf_onnx_window_read_transposed(s, window, x, kernel);
    read_per_axis(s, "output_padding", window->axes, extra, &there);
    read_per_axis(s, "output_shape", window->axes, wanted, &there);
    const char *automatic = inf_onnx_attr_text(s, "auto_pad", "NOTSET");
    if (!inf_build_ok(&s->b) || (!there && automatic[0] != 'S'))
        return false;
    if (there && !inf_onnx_window_has_sizes(s, x))
        return true;
    for (int32_t i = 0; i < window->axes; i++) {
        // Without padding y has stride * (size of x) + surplus elements.
        surplus[i] = extra[i] + inf_onnx_window_reach(window, i) - window->stride[i];
        if (there)
            surplus[i] += window->stride[i] * inf_build_known_dim(&s->b, x, i + 2) - wanted[i];
    }
    pad_for_output(s, window, surplus, extra);
    return false;
}

// --- adding the nodes of a transposed convolution ---

// Adds the sizes of the output as a value: strides * (input - 1) plus a constant that depends only
// on the window, but at least those that the model wants.
static uint32_t add_output_shape(struct inf_onnx_scope *s, const struct transposed *conv)
{
    const struct inf_onnx_window *window = conv->window;
    int32_t last = window->axes + 1;
    uint32_t parts[INF_ONNX_WINDOW_AXES + 2];
    parts[0] = inf_build_dim_value(&s->b, conv->x, 0);
    for (int32_t i = 0; i < window->axes; i++) {
        int64_t term = conv->extra[i] + inf_onnx_window_reach(window, i) - window->before[i] -
                       window->after[i] - window->stride[i];
        uint32_t part = inf_build_dim_value(&s->b, conv->x, i + 1);
        part = inf_build_binary_number(&s->b, INF_BINARY_MUL, part, (double)window->stride[i]);
        parts[i + 1] = inf_build_binary_number(&s->b, INF_BINARY_ADD, part, (double)term);
        if (conv->wanted != NULL)
            parts[i + 1] = inf_build_binary_number(&s->b, INF_BINARY_MAX, parts[i + 1],
                                                   (double)conv->wanted[i]);
    }
    int64_t channels = inf_build_known_dim(&s->b, conv->filter, 1);
    parts[last] = inf_build_list(&s->b, &channels, 1);
    return inf_build_concat(&s->b, parts, (uint32_t)last + 1, 0);
}

static struct inf_ints make_axis_list(const int64_t *values, int32_t count)
{
    struct inf_ints ints = {.count = count};
    for (int32_t i = 0; i < count; i++)
        ints.values[i] = values[i];
    return ints;
}

static void set_attributes_2d(struct inf_attrs_conv2d_transpose *attrs,
                              const struct inf_onnx_window *window)
{
    attrs->stride_h = (int32_t)window->stride[0];
    attrs->stride_w = (int32_t)window->stride[1];
    attrs->dilation_h = (int32_t)window->dilation[0];
    attrs->dilation_w = (int32_t)window->dilation[1];
    attrs->padding = INF_PADDING_EXPLICIT;
    attrs->pad_top = (int32_t)window->before[0];
    attrs->pad_bottom = (int32_t)window->after[0];
    attrs->pad_left = (int32_t)window->before[1];
    attrs->pad_right = (int32_t)window->after[1];
}

static void set_attributes_nd(struct inf_attrs_conv_nd_transpose *attrs,
                              const struct inf_onnx_window *window)
{
    attrs->strides = make_axis_list(window->stride, window->axes);
    attrs->dilations = make_axis_list(window->dilation, window->axes);
    attrs->padding = INF_PADDING_EXPLICIT;
    attrs->pads_before = make_axis_list(window->before, window->axes);
    attrs->pads_after = make_axis_list(window->after, window->axes);
}

static uint32_t emit_transposed(struct inf_onnx_scope *s, const struct transposed *conv)
{
    int32_t axes = conv->window->axes;
    int64_t perm[INF_ONNX_WINDOW_AXES + 2];
    for (int32_t i = 0; i < axes; i++)
        perm[i] = i + 2;
    perm[axes] = 1;
    perm[axes + 1] = 0;
    const uint32_t inputs[] = {conv->x, inf_build_transpose(&s->b, conv->filter, perm, axes + 2),
                               add_output_shape(s, conv), conv->bias};
    enum inf_op op = axes == 2 ? INF_OP_CONV2D_TRANSPOSE : INF_OP_CONV_ND_TRANSPOSE;
    struct inf_build_node node =
        inf_build_describe_list(op, inputs, conv->bias != INF_VALUE_NONE ? 4 : 3);
    if (axes == 2)
        set_attributes_2d(&node.attrs.conv2d_transpose, conv->window);
    else
        set_attributes_nd(&node.attrs.conv_nd_transpose, conv->window);
    return inf_build_value(&s->b, &node);
}

// Adds one transposed convolution for each group, and joins the results.
static uint32_t emit_groups(struct inf_onnx_scope *s, const struct transposed *whole,
                            int32_t groups)
{
    uint32_t parts[GROUPS_MAX];
    int32_t last = whole->window->axes + 1;
    int64_t channels = inf_build_known_dim(&s->b, whole->filter, 0);
    int64_t outputs = inf_build_known_dim(&s->b, whole->filter, 1);
    if (groups == 1)
        return emit_transposed(s, whole);
    if (groups < 1 || groups > GROUPS_MAX || channels % groups != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "group is %d, wanted a divisor of the channels up to %d", groups,
                       GROUPS_MAX);
    for (int32_t i = 0; inf_build_ok(&s->b) && i < groups; i++) {
        struct transposed part = *whole;
        int64_t inputs = channels / groups;
        part.x = inf_build_slice(&s->b, whole->x, last, i * inputs, (i + 1) * inputs, 1);
        part.filter = inf_build_slice(&s->b, whole->filter, 0, i * inputs, (i + 1) * inputs, 1);
        if (whole->bias != INF_VALUE_NONE)
            part.bias = inf_build_slice(&s->b, whole->bias, 0, i * outputs, (i + 1) * outputs, 1);
        parts[i] = emit_transposed(s, &part);
    }
    return inf_build_ok(&s->b) ? inf_build_concat(&s->b, parts, (uint32_t)groups, last)
                               : INF_VALUE_NONE;
}

// Cuts the sizes that the model wants out of y [n, spatial..., c]. What is left over is divided as
// pad_for_output() divides padding.
static uint32_t cut_output(struct inf_onnx_scope *s, const struct transposed *conv, uint32_t y)
{
    struct inf_builder *b = &s->b;
    const char *automatic = inf_onnx_attr_text(s, "auto_pad", "NOTSET");
    double odd = automatic[0] == 'S' && automatic[5] == 'U' ? 0 : 1;
    for (int32_t i = 0; i < conv->window->axes; i++) {
        double size = (double)conv->wanted[i];
        uint32_t first = inf_build_dim_value(b, y, i + 1);
        first = inf_build_binary_number(b, INF_BINARY_ADD, first, odd - size);
        first = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, first, 2);
        first = inf_build_reshape(b, first, NULL, 0);
        uint32_t count = inf_build_iota(b, INF_DTYPE_I32, conv->wanted[i]);
        y = inf_build_gather(b, y, inf_build_add(b, count, first), i + 1);
    }
    return y;
}

static void lower_conv_transpose(struct inf_onnx_scope *s)
{
    struct inf_onnx_window window;
    int64_t extra[INF_ONNX_WINDOW_AXES] = {0}, wanted[INF_ONNX_WINDOW_AXES] = {0};
    uint32_t x = s->inputs[0], filter = s->inputs[1];
    int32_t rank = inf_build_rank(&s->b, x), groups = inf_onnx_attr_int(s, "group", 1);
    bool is_cut = read_window(s, &window, x, filter, extra, wanted);
    if (!inf_build_ok(&s->b))
        return;
    if (rank == 3) {
        x = inf_build_expand_dims(&s->b, x, (int64_t[]){2}, 1);
        filter = inf_build_expand_dims(&s->b, filter, (int64_t[]){2}, 1);
        inf_onnx_window_widen(&window);
        extra[1] = extra[0];
        extra[0] = 0;
        wanted[1] = wanted[0];
        wanted[0] = 1;
    }
    const struct transposed conv = {inf_build_channels_last(&s->b, x),
                                    filter,
                                    inf_onnx_input(s, 2),
                                    &window,
                                    extra,
                                    is_cut ? wanted : NULL};
    uint32_t y = emit_groups(s, &conv, groups);
    y = inf_build_channels_first(&s->b, is_cut ? cut_output(s, &conv, y) : y);
    s->outputs[0] = rank == 3 ? inf_build_squeeze(&s->b, y, (int64_t[]){2}, 1) : y;
}

// --- operator MaxUnpool ---

// Adds the size of axis `axis` of y without an output_shape, i32 [1].
static uint32_t add_unpooled_size(struct inf_onnx_scope *s, const struct inf_onnx_window *window,
                                  int32_t axis)
{
    uint32_t size = inf_build_dim_value(&s->b, s->inputs[0], axis);
    int32_t i = axis - 2;
    if (i < 0)
        return size;
    size = inf_build_binary_number(&s->b, INF_BINARY_MUL, size, (double)window->stride[i]);
    int64_t term = window->kernel[i] - window->stride[i] - window->before[i] - window->after[i];
    return inf_build_binary_number(&s->b, INF_BINARY_ADD, size, (double)term);
}

// Pads y at the end of each axis to the shape that the model wants.
static uint32_t pad_to_shape(struct inf_onnx_scope *s, uint32_t y, uint32_t dims, uint32_t shape)
{
    int32_t rank = inf_build_rank(&s->b, y);
    uint32_t zeros = inf_build_fill(&s->b, inf_build_list(&s->b, (int64_t[]){rank}, 1),
                                    inf_build_scalar(&s->b, INF_DTYPE_I32, 0));
    uint32_t missing = inf_build_sub(&s->b, inf_build_cast(&s->b, shape, INF_DTYPE_I32), dims);
    uint32_t columns[] = {inf_build_expand_dims(&s->b, zeros, (int64_t[]){1}, 1),
                          inf_build_expand_dims(&s->b, missing, (int64_t[]){1}, 1)};
    uint32_t pairs = inf_build_concat(&s->b, columns, 2, 1);
    return inf_build_pad_by(&s->b, y, pairs, INF_PAD_CONSTANT, INF_VALUE_NONE);
}

// Lowers MaxUnpool: moves each element to the position from which a MaxPool took it; other elements
// are 0. Indices count through the whole input of the pooling. If a larger output is requested, it
// is padded at the end.
static void lower_max_unpool(struct inf_onnx_scope *s)
{
    struct inf_onnx_window window;
    uint32_t sizes[INF_ONNX_WINDOW_AXES + 2], flat[2], x = s->inputs[0];
    inf_onnx_window_read(s, &window, x, NULL);
    int32_t rank = inf_build_rank(&s->b, x);
    if (window.same || window.lower)
        inf_build_fail(&s->b, INF_INVALID, "has auto_pad, which MaxUnpool does not have");
    if (!inf_build_ok(&s->b))
        return;
    uint32_t count = inf_build_list(&s->b, (int64_t[]){1}, 1);
    for (int32_t i = 0; i < rank; i++) {
        sizes[i] = add_unpooled_size(s, &window, i);
        count = inf_build_mul(&s->b, count, sizes[i]);
    }
    uint32_t dims = inf_build_concat(&s->b, sizes, (uint32_t)rank, 0);
    for (uint32_t i = 0; i < 2; i++)
        flat[i] = inf_build_reshape(&s->b, s->inputs[i], (int64_t[]){-1}, 1);
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, x), 0);
    struct inf_build_node node = inf_build_describe(
        INF_OP_SCATTER_ELEMENTS, inf_build_fill(&s->b, count, zero), flat[1], flat[0]);
    uint32_t y = inf_build_reshape_to(&s->b, inf_build_value(&s->b, &node), dims);
    uint32_t shape = inf_onnx_input(s, 2);
    s->outputs[0] = shape != INF_VALUE_NONE ? pad_to_shape(s, y, dims, shape) : y;
}

static const struct inf_onnx_op ops[] = {
    {"ConvTranspose", lower_conv_transpose, 2, 3, 1, 0},
    {"MaxUnpool", lower_max_unpool, 2, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_unconv = {ops, INF_ARRAY_LENGTH(ops)};
