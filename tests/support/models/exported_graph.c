// SPDX-License-Identifier: Apache-2.0
// Random graphs like those that exporters write.
#include "tests/support/models/exported_graph.h"

#include <criterion/criterion.h>
#include <string.h>

#include "backends/graph/shape/infer.h"

// Returns a number below the bound from the SplitMix64 generator.
uint32_t exported_draw(struct exported_graph *maker, uint32_t bound)
{
    uint64_t z = maker->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % bound;
}

static const struct inf_shape *shape_now(const struct exported_graph *maker)
{
    return &maker->graph->values[maker->x].shape;
}

static int64_t channels_now(const struct exported_graph *maker)
{
    return shape_now(maker)->dims[shape_now(maker)->rank - 1];
}

// Adds an FP32 constant whose elements are between `low` and `high`.
static uint32_t number_const(struct exported_graph *maker, struct inf_shape shape, float low,
                             float high)
{
    size_t size_bytes;
    cr_assert(inf_shape_bytes(&shape, INF_DTYPE_F32, &size_bytes));
    struct inf_blob *blob = inf_blob_create(size_bytes);
    cr_assert_not_null(blob);
    for (size_t i = 0; i < size_bytes / sizeof(float); i++)
        ((float *)blob->data)[i] = low + (high - low) * (float)exported_draw(maker, 1000) / 999;
    uint32_t value;
    cr_assert_eq(
        inf_graph_add_const(maker->graph, "number", INF_DTYPE_F32, &shape, blob, &value, NULL),
        INF_OK);
    return value;
}

static uint32_t int_const(struct exported_graph *maker, struct inf_shape shape,
                          const int32_t *elements)
{
    size_t size_bytes;
    cr_assert(inf_shape_bytes(&shape, INF_DTYPE_I32, &size_bytes));
    struct inf_blob *blob = inf_blob_create(size_bytes);
    cr_assert_not_null(blob);
    memcpy(blob->data, elements, size_bytes);
    uint32_t value;
    cr_assert_eq(
        inf_graph_add_const(maker->graph, "int", INF_DTYPE_I32, &shape, blob, &value, NULL),
        INF_OK);
    return value;
}

// Appends a node that reads the current value, maker->x. The node's only output becomes the current
// value. Returns the node's attributes.
static union inf_attrs *append_node(struct exported_graph *maker, enum inf_op op,
                                    const uint32_t *inputs, uint32_t count)
{
    uint32_t node;
    struct inf_error err = {0};
    cr_assert_eq(inf_graph_add_node(maker->graph, op, inf_op_info(op)->name, "", inputs, count, 1,
                                    &node, &err),
                 INF_OK, "%s", err.text);
    maker->x = maker->graph->nodes[node].outputs[0];
    return &maker->graph->nodes[node].attrs;
}

// Makes a constant to add or multiply. It has one element, one element per channel, or one element
// per column of a picture. The pass must not fuse a constant with one element per column.
static uint32_t channel_const(struct exported_graph *maker)
{
    int64_t channels = channels_now(maker);
    bool image = shape_now(maker)->rank == 4;
    switch (exported_draw(maker, image ? 5 : 4)) {
    case 0:
        return number_const(maker, (struct inf_shape){0}, 0.5f, 2);
    case 1:
        return number_const(maker, INF_SHAPE(1, 1), 0.5f, 2);
    case 2:
        return number_const(maker, INF_SHAPE(1, channels), -2, 2);
    case 3:
        return number_const(maker, INF_SHAPE(channels), -2, 2);
    default:
        return number_const(maker, INF_SHAPE(shape_now(maker)->dims[2], 1), -2, 2);
    }
}

void exported_append_conv(struct exported_graph *maker)
{
    int64_t in = channels_now(maker);
    int64_t out = 1 + exported_draw(maker, 4);
    int64_t kernel = 1 + exported_draw(maker, 3);
    bool depthwise = exported_draw(maker, 3) == 0;
    uint32_t filter = depthwise ? number_const(maker, INF_SHAPE(kernel, kernel, in, 2), -1, 1)
                                : number_const(maker, INF_SHAPE(kernel, kernel, in, out), -1, 1);
    uint32_t bias = exported_draw(maker, 2) == 0
                        ? INF_VALUE_NONE
                        : number_const(maker, INF_SHAPE(depthwise ? 2 * in : out), -1, 1);
    const uint32_t inputs[] = {maker->x, filter, bias};
    // VALID padding needs an input that is at least as large as the kernel.
    bool roomy = shape_now(maker)->dims[1] >= kernel && shape_now(maker)->dims[2] >= kernel;
    enum inf_padding padding =
        roomy ? (enum inf_padding)exported_draw(maker, INF_PADDING_COUNT) : INF_PADDING_SAME;
    uint32_t count = bias == INF_VALUE_NONE && exported_draw(maker, 2) == 0 ? 2 : 3;
    if (depthwise)
        append_node(maker, INF_OP_DEPTHWISE_CONV2D, inputs, count)->depthwise_conv2d.padding =
            padding;
    else
        append_node(maker, INF_OP_CONV2D, inputs, count)->conv2d.padding = padding;
}

static void append_transpose(struct exported_graph *maker)
{
    int64_t in = channels_now(maker);
    const struct inf_shape *x = shape_now(maker);
    const int32_t size[] = {(int32_t)x->dims[0], (int32_t)x->dims[1] + 1, (int32_t)x->dims[2] + 1,
                            3};
    uint32_t filter = number_const(maker, INF_SHAPE(2, 2, 3, in), -1, 1);
    const uint32_t inputs[] = {maker->x, filter, int_const(maker, INF_SHAPE(4), size)};
    append_node(maker, INF_OP_CONV2D_TRANSPOSE, inputs, 3);
}

static void append_matmul(struct exported_graph *maker)
{
    int64_t in = channels_now(maker);
    bool transposed = exported_draw(maker, 2) == 0;
    uint32_t b = number_const(maker, transposed ? INF_SHAPE(3, in) : INF_SHAPE(in, 3), -1, 1);
    const uint32_t inputs[] = {maker->x, b};
    append_node(maker, INF_OP_MATMUL, inputs, 2)->matmul.transpose_b = transposed;
}

static void append_batch_norm(struct exported_graph *maker)
{
    struct inf_shape shape = INF_SHAPE(channels_now(maker));
    uint32_t inputs[5] = {maker->x};
    for (int i = 1; i < 4; i++)
        inputs[i] = number_const(maker, shape, -1, 1);
    inputs[4] = number_const(maker, shape, 0.1f, 2);
    append_node(maker, INF_OP_BATCH_NORM, inputs, 5);
}

static void append_binary(struct exported_graph *maker)
{
    static const enum inf_binary_kind kinds[] = {INF_BINARY_ADD, INF_BINARY_MUL, INF_BINARY_SUB,
                                                 INF_BINARY_DIV};
    uint32_t c = channel_const(maker);
    bool first = exported_draw(maker, 3) == 0;
    const uint32_t inputs[] = {first ? c : maker->x, first ? maker->x : c};
    enum inf_binary_kind kind = kinds[exported_draw(maker, first ? 3 : 4)];
    append_node(maker, INF_OP_BINARY, inputs, 2)->binary.kind = kind;
}

static void append_bound(struct exported_graph *maker)
{
    uint32_t c = number_const(maker, (struct inf_shape){0}, -1, 3);
    bool first = exported_draw(maker, 3) == 0;
    const uint32_t inputs[] = {first ? c : maker->x, first ? maker->x : c};
    enum inf_binary_kind kind = exported_draw(maker, 2) == 0 ? INF_BINARY_MIN : INF_BINARY_MAX;
    append_node(maker, INF_OP_BINARY, inputs, 2)->binary.kind = kind;
}

static void append_unary(struct exported_graph *maker)
{
    static const enum inf_unary_kind kinds[] = {
        INF_UNARY_RELU, INF_UNARY_RELU6,      INF_UNARY_SIGMOID,    INF_UNARY_TANH,
        INF_UNARY_ELU,  INF_UNARY_LEAKY_RELU, INF_UNARY_HARD_SWISH, INF_UNARY_NEG};
    enum inf_unary_kind kind = kinds[exported_draw(maker, INF_ARRAY_LENGTH(kinds))];
    union inf_attrs *attrs = append_node(maker, INF_OP_UNARY, &maker->x, 1);
    attrs->unary.kind = kind;
    attrs->unary.alpha = 0.3f;
}

static void append_clip(struct exported_graph *maker)
{
    bool nothing = exported_draw(maker, 3) == 0;
    union inf_attrs *attrs = append_node(maker, INF_OP_CLIP, &maker->x, 1);
    if (nothing)
        return;
    attrs->clip.min = exported_draw(maker, 2) == 0 ? 0 : -1;
    attrs->clip.max = (float)exported_draw(maker, 3) * 3;
}

static void append_prelu(struct exported_graph *maker)
{
    const uint32_t inputs[] = {maker->x, channel_const(maker)};
    append_node(maker, INF_OP_PRELU, inputs, 2);
}

void exported_append_pad(struct exported_graph *maker)
{
    int32_t paddings[8] = {0};
    for (int i = 2; i < 6; i++)
        paddings[i] = (int32_t)exported_draw(maker, 3);
    paddings[7] = exported_draw(maker, 5) == 0;
    const uint32_t inputs[] = {maker->x, int_const(maker, INF_SHAPE(4, 2), paddings)};
    append_node(maker, INF_OP_PAD, inputs, 2);
}

// Appends identity nodes, which change no element.
static void append_nothing(struct exported_graph *maker)
{
    const struct inf_ints front = {.count = 1, .values = {0}};
    int32_t sizes[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape_now(maker)->rank; i++)
        sizes[i] = (int32_t)shape_now(maker)->dims[i];
    sizes[1] = -1;
    switch (exported_draw(maker, 4)) {
    case 0:
        append_node(maker, INF_OP_IDENTITY, &maker->x, 1);
        break;
    case 1:
        append_node(maker, INF_OP_CAST, &maker->x, 1);
        break;
    case 2: {
        uint32_t same = int_const(maker, INF_SHAPE(shape_now(maker)->rank), sizes);
        append_node(maker, INF_OP_RESHAPE, (const uint32_t[]){maker->x, same}, 2);
        break;
    }
    default:
        append_node(maker, INF_OP_EXPAND_DIMS, &maker->x, 1)->expand_dims.axes = front;
        append_node(maker, INF_OP_SQUEEZE, &maker->x, 1)->squeeze.axes = front;
        break;
    }
}

// Appends a node that adds the sum of x's dimensions to x. That sum can be folded to a constant
// although x is not constant.
static void append_size_sum(struct exported_graph *maker)
{
    uint32_t x = maker->x;
    append_node(maker, INF_OP_SHAPE, &x, 1);
    append_node(maker, INF_OP_CAST, &maker->x, 1);
    append_node(maker, INF_OP_REDUCE, &maker->x, 1);
    append_node(maker, INF_OP_BINARY, (const uint32_t[]){x, maker->x}, 2);
}

// Appends a node that adds to x a tensor which other nodes compute from constants only.
static void append_const_sum(struct exported_graph *maker)
{
    uint32_t x = maker->x;
    uint32_t c = number_const(maker, INF_SHAPE(channels_now(maker)), -1, 1);
    append_node(maker, INF_OP_UNARY, &c, 1);
    append_node(maker, INF_OP_BINARY, (const uint32_t[]){x, maker->x}, 2);
}

static void append_residual(struct exported_graph *maker)
{
    uint32_t x = maker->x;
    append_unary(maker);
    append_node(maker, INF_OP_BINARY, (const uint32_t[]){x, maker->x}, 2);
}

static void append_kind(struct exported_graph *maker, enum inf_binary_kind kind, uint32_t a,
                        uint32_t b)
{
    append_node(maker, INF_OP_BINARY, (const uint32_t[]){a, b}, 2)->binary.kind = kind;
}

static void append_function(struct exported_graph *maker, enum inf_unary_kind kind)
{
    append_node(maker, INF_OP_UNARY, &maker->x, 1)->unary.kind = kind;
}

// Makes a constant of one element.
static uint32_t scalar_const(struct exported_graph *maker, float number)
{
    struct inf_shape shape = exported_draw(maker, 2) == 0 ? (struct inf_shape){0} : INF_SHAPE(1, 1);
    return number_const(maker, shape, number, number);
}

// Appends a * b, or b * a.
static void append_factor(struct exported_graph *maker, uint32_t a, uint32_t b)
{
    bool first = exported_draw(maker, 2) == 0;
    append_kind(maker, INF_BINARY_MUL, first ? a : b, first ? b : a);
}

// Appends the product of x, the current value and `scale`, in one of three orders.
static void append_gate(struct exported_graph *maker, uint32_t x, float scale)
{
    uint32_t factor = maker->x, c = scalar_const(maker, scale);
    uint32_t order[3][3] = {{x, factor, c}, {x, c, factor}, {factor, c, x}};
    const uint32_t *chosen = order[exported_draw(maker, 3)];
    append_factor(maker, chosen[0], chosen[1]);
    append_factor(maker, maker->x, chosen[2]);
}

// Appends the nodes of gelu as exporters write it, with erf or tanh. In some graphs a constant is
// wrong, so that the nodes do not compute gelu.
static void append_long_gelu(struct exported_graph *maker)
{
    uint32_t x = maker->x;
    float cubic = exported_draw(maker, 5) == 0 ? 0.05f : 0.044715f;
    float one = exported_draw(maker, 5) == 0 ? 1.5f : 1.0f;
    switch (exported_draw(maker, 4)) {
    case 0:
        append_kind(maker, INF_BINARY_DIV, x, scalar_const(maker, 1.41421356f));
        append_function(maker, INF_UNARY_ERF);
        break;
    case 1:
        append_factor(maker, x, scalar_const(maker, 0.70710678f));
        append_function(maker, INF_UNARY_ERF);
        break;
    case 2:
        append_kind(maker, INF_BINARY_POW, x, scalar_const(maker, 3));
        append_factor(maker, maker->x, scalar_const(maker, cubic));
        append_kind(maker, INF_BINARY_ADD, x, maker->x);
        append_factor(maker, maker->x, scalar_const(maker, 0.79788456f));
        append_function(maker, INF_UNARY_TANH);
        break;
    default:
        append_kind(maker, INF_BINARY_MUL, x, x);
        append_factor(maker, maker->x, scalar_const(maker, cubic));
        append_kind(maker, INF_BINARY_ADD, maker->x, scalar_const(maker, 1));
        uint32_t inner = maker->x;
        append_factor(maker, x, scalar_const(maker, 0.79788456f));
        append_factor(maker, maker->x, inner);
        append_function(maker, INF_UNARY_TANH);
        break;
    }
    append_kind(maker, INF_BINARY_ADD, maker->x, scalar_const(maker, one));
    append_gate(maker, x, exported_draw(maker, 5) == 0 ? 0.25f : 0.5f);
}

static void append_long_silu(struct exported_graph *maker)
{
    uint32_t x = maker->x;
    append_function(maker, INF_UNARY_SIGMOID);
    append_factor(maker, x, maker->x);
}

// Appends a normalisation as exporters write it. One or two axes are normalised. One time in five,
// the mean and the variance have different axes.
static void append_long_norm(struct exported_graph *maker)
{
    uint32_t x = maker->x, top = x;
    int32_t rank = shape_now(maker)->rank;
    // Make the constants first: the shape of x is known, but the shapes of the nodes that are
    // appended below are not inferred yet.
    uint32_t scale = number_const(maker, INF_SHAPE(channels_now(maker)), 0.5f, 2);
    uint32_t offset = channel_const(maker);
    struct inf_ints axes = {.count = 1, .values = {-1}};
    if (exported_draw(maker, 3) == 0)
        axes = (struct inf_ints){.count = 2, .values = {rank - 1, rank - 2}};
    if (exported_draw(maker, 2) == 0) {
        union inf_attrs *attrs = append_node(maker, INF_OP_REDUCE, &x, 1);
        attrs->reduce.kind = INF_REDUCE_MEAN;
        attrs->reduce.keep_dims = true;
        attrs->reduce.axes = axes;
        append_kind(maker, INF_BINARY_SUB, x, maker->x);
        top = maker->x;
    }
    if (exported_draw(maker, 2) == 0)
        append_kind(maker, INF_BINARY_MUL, top, top);
    else
        append_kind(maker, INF_BINARY_POW, top, scalar_const(maker, 2));
    if (exported_draw(maker, 5) == 0)
        axes = (struct inf_ints){.count = 1, .values = {0}};
    union inf_attrs *attrs = append_node(maker, INF_OP_REDUCE, &maker->x, 1);
    attrs->reduce.kind = INF_REDUCE_MEAN;
    attrs->reduce.keep_dims = true;
    attrs->reduce.axes = axes;
    append_kind(maker, INF_BINARY_ADD, maker->x, scalar_const(maker, 0.01f));
    uint32_t form = exported_draw(maker, 3);
    append_function(maker, form == 0 ? INF_UNARY_RSQRT : INF_UNARY_SQRT);
    if (form == 1)
        append_kind(maker, INF_BINARY_DIV, scalar_const(maker, 1), maker->x);
    if (form == 2)
        append_kind(maker, INF_BINARY_DIV, top, maker->x);
    else
        append_factor(maker, top, maker->x);
    if (exported_draw(maker, 2) == 0)
        append_factor(maker, maker->x, scale);
    if (exported_draw(maker, 2) == 0)
        append_kind(maker, INF_BINARY_ADD, maker->x, offset);
}

static void append_any(struct exported_graph *maker)
{
    static void (*const steps[])(struct exported_graph *) = {
        exported_append_conv, exported_append_conv, append_transpose, exported_append_pad,
        append_matmul,        append_binary,        append_binary,    append_batch_norm,
        append_bound,         append_bound,         append_unary,     append_unary,
        append_clip,          append_prelu,         append_nothing,   append_const_sum,
        append_residual,      append_size_sum,
    };
    static void (*const forms[])(struct exported_graph *) = {append_long_gelu, append_long_silu,
                                                             append_long_norm};
    uint32_t count = INF_ARRAY_LENGTH(steps);
    uint32_t step = exported_draw(maker, count + (maker->plain ? 0 : INF_ARRAY_LENGTH(forms)));
    (step < count ? steps[step] : forms[step - count])(maker);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(maker->graph, &err), INF_OK, "%s", err.text);
}

void exported_add_output(struct exported_graph *maker)
{
    char name[] = {(char)('a' + maker->graph->output_count), 0};
    cr_assert_eq(inf_graph_add_output(maker->graph, name, maker->x, NULL), INF_OK);
}

struct inf_graph *exported_graph_make(uint64_t seed, bool plain)
{
    struct exported_graph maker = {.state = seed, .plain = plain};
    struct inf_shape shape = INF_SHAPE(1 + exported_draw(&maker, 2), 3 + exported_draw(&maker, 3),
                                       3 + exported_draw(&maker, 3), 1 + exported_draw(&maker, 4));
    cr_assert_eq(inf_graph_create(&maker.graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(maker.graph, "x", INF_DTYPE_F32, &shape, &maker.x, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(maker.graph, "x", maker.x, NULL), INF_OK);
    for (uint32_t i = 4 + exported_draw(&maker, 10); i > 0; i--) {
        append_any(&maker);
        if (exported_draw(&maker, 8) == 0 && maker.graph->output_count < EXPORTED_OUTPUTS_MAX - 1)
            exported_add_output(&maker);
    }
    exported_add_output(&maker);
    return maker.graph;
}
