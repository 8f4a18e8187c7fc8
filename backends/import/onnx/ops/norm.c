// SPDX-License-Identifier: Apache-2.0
// Normalisations. Uses the graph's operator if devices have a kernel for it, otherwise computes
// means and variances along axes.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

static struct inf_ints make_axes_from(int32_t first, int32_t rank)
{
    struct inf_ints axes = {.count = 0};
    for (int32_t i = first; i < rank; i++)
        axes.values[axes.count++] = i;
    return axes;
}

// The parts of a normalisation of x along axes: x minus its mean, the mean, and the inverse of the
// standard deviation.
struct normalized {
    uint32_t value, mean, inverse;
};

static struct normalized add_normalized(struct inf_onnx_scope *s, uint32_t x,
                                        const struct inf_ints *axes, float epsilon)
{
    struct normalized result;
    result.mean = inf_build_reduce(&s->b, INF_REDUCE_MEAN, x, axes, true);
    uint32_t centred = inf_build_sub(&s->b, x, result.mean);
    uint32_t variance = inf_build_reduce(
        &s->b, INF_REDUCE_MEAN, inf_build_unary(&s->b, INF_UNARY_SQUARE, centred), axes, true);
    variance = inf_build_binary_number(&s->b, INF_BINARY_ADD, variance, (double)epsilon);
    result.inverse = inf_build_unary(&s->b, INF_UNARY_RECIPROCAL,
                                     inf_build_unary(&s->b, INF_UNARY_SQRT, variance));
    result.value = inf_build_mul(&s->b, centred, result.inverse);
    return result;
}

// Adds a node of the graph's normalisation operator on x, scale and offset. Scale and offset may be
// INF_VALUE_NONE.
static uint32_t add_normalization_node(struct inf_onnx_scope *s, enum inf_normalize_kind kind,
                                       const uint32_t operands[3], const struct inf_ints *axes,
                                       float epsilon)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_NORMALIZE, operands, 3);
    node.attrs.normalize.kind = kind;
    node.attrs.normalize.axes = *axes;
    node.attrs.normalize.epsilon = epsilon;
    while (node.input_count > 1 && operands[node.input_count - 1] == INF_VALUE_NONE)
        node.input_count--;
    return inf_build_value(&s->b, &node);
}

// Returns true for a normalisation of f32 along the last axis with one weight for each element,
// because devices have a kernel for it. Other normalisations are built from several nodes, through
// which the layout pass can move transposes.
static bool is_row_norm(struct inf_onnx_scope *s, int32_t axis, enum inf_dtype stash)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    if (!inf_build_ok(&s->b) || stash != INF_DTYPE_F32 || axis != rank - 1)
        return false;
    int64_t width = inf_build_dim(&s->b, s->inputs[0], -1);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t value = inf_onnx_input(s, i);
        if (value == INF_VALUE_NONE)
            continue;
        // If the rank of an operand is unknown, return false. Several nodes are then built, which
        // accept any rank.
        const struct inf_shape *shape = &s->b.graph->values[value].shape;
        if (inf_build_dtype(&s->b, value) != INF_DTYPE_F32 ||
            (i > 0 && (shape->rank != 1 || width < 1 || shape->dims[0] != width)))
            return false;
    }
    return true;
}

// Reshapes one number per channel so that it aligns with axis 1 of x.
static uint32_t align_channels(struct inf_onnx_scope *s, uint32_t x, int32_t rank)
{
    return inf_build_expand_dims(&s->b, x, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - 2);
}

// Normalises by the statistics of the batch, and moves the running statistics towards them.
static void train_batch_norm(struct inf_onnx_scope *s, float epsilon)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    struct inf_ints axes = make_axes_from(1, rank);
    double momentum = (double)inf_onnx_attr_float(s, "momentum", 0.9f);
    axes.values[0] = 0;
    uint32_t x = s->inputs[0], now[2];
    now[0] = inf_build_reduce(&s->b, INF_REDUCE_MEAN, x, &axes, false);
    uint32_t centred = inf_build_sub(&s->b, x, align_channels(s, now[0], rank));
    now[1] = inf_build_reduce(&s->b, INF_REDUCE_MEAN,
                              inf_build_unary(&s->b, INF_UNARY_SQUARE, centred), &axes, false);
    uint32_t deviation =
        inf_build_unary(&s->b, INF_UNARY_SQRT,
                        inf_build_binary_number(&s->b, INF_BINARY_ADD, now[1], (double)epsilon));
    uint32_t y = inf_build_div(&s->b, centred, align_channels(s, deviation, rank));
    s->outputs[0] =
        inf_build_add(&s->b, inf_build_mul(&s->b, y, align_channels(s, s->inputs[1], rank)),
                      align_channels(s, s->inputs[2], rank));
    for (uint32_t i = 0; i < 2 && i + 1 < s->output_count; i++)
        s->outputs[i + 1] = inf_build_add(
            &s->b, inf_build_binary_number(&s->b, INF_BINARY_MUL, s->inputs[i + 3], momentum),
            inf_build_binary_number(&s->b, INF_BINARY_MUL, now[i], 1 - momentum));
}

// Lowers BatchNormalization of opset below 9 with `spatial` 0: each element of x [n, ...] except
// for the batch axis has its own mean, variance, scale and bias.
static void lower_element_norm(struct inf_onnx_scope *s, float epsilon)
{
    uint32_t variance =
        inf_build_binary_number(&s->b, INF_BINARY_ADD, s->inputs[4], (double)epsilon);
    uint32_t y = inf_build_div(&s->b, inf_build_sub(&s->b, s->inputs[0], s->inputs[3]),
                               inf_build_unary(&s->b, INF_UNARY_SQRT, variance));
    s->outputs[0] = inf_build_add(&s->b, inf_build_mul(&s->b, y, s->inputs[1]), s->inputs[2]);
}

static void lower_batch_norm(struct inf_onnx_scope *s)
{
    uint32_t inputs[5];
    float epsilon = inf_onnx_attr_float(s, "epsilon", 1e-5f);
    (void)inf_onnx_find_attr(s, "momentum");
    if (s->opset < 7 && inf_onnx_attr_int(s, "is_test", 0) == 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "is_test is not set, wanted a model made for inference");
    if (s->opset < 9 && inf_onnx_attr_int(s, "spatial", 1) == 0) {
        lower_element_norm(s, epsilon);
        return;
    }
    if (inf_onnx_attr_int(s, "training_mode", 0) != 0) {
        train_batch_norm(s, epsilon);
        return;
    }
    for (uint32_t i = 0; i < 5; i++)
        inputs[i] = inf_build_cast(&s->b, s->inputs[i], inf_build_dtype(&s->b, s->inputs[0]));
    // x of rank 1 is a batch of elements with one channel each.
    bool is_vector = inf_build_rank(&s->b, inputs[0]) == 1;
    inputs[0] = is_vector ? inf_build_expand_dims(&s->b, inputs[0], (int64_t[]){1}, 1)
                          : inf_build_channels_last(&s->b, inputs[0]);
    struct inf_build_node node = inf_build_describe_list(INF_OP_BATCH_NORM, inputs, 5);
    node.attrs.batch_norm.epsilon = epsilon;
    uint32_t y = inf_build_value(&s->b, &node);
    s->outputs[0] = is_vector ? inf_build_squeeze(&s->b, y, (int64_t[]){1}, 1)
                              : inf_build_channels_first(&s->b, y);
}

static void lower_instance_norm(struct inf_onnx_scope *s)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    struct inf_ints axes = make_axes_from(2, rank);
    struct normalized x =
        add_normalized(s, s->inputs[0], &axes, inf_onnx_attr_float(s, "epsilon", 1e-5f));
    s->outputs[0] =
        inf_build_add(&s->b, inf_build_mul(&s->b, x.value, align_channels(s, s->inputs[1], rank)),
                      align_channels(s, s->inputs[2], rank));
}

// Returns the type of means and variances: f32 for any x, unless stash_type says otherwise.
static enum inf_dtype read_stash_type(struct inf_onnx_scope *s)
{
    int32_t type = inf_onnx_attr_int(s, "stash_type", 1);
    if (inf_onnx_dtype(type) == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "stash_type is %s (%d)", inf_onnx_type_name(type),
                       type);
    return inf_onnx_dtype(type);
}

static void lower_layer_norm(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    int32_t rank = inf_build_rank(&s->b, x);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", -1), rank);
    struct inf_ints axes = make_axes_from(axis, rank);
    float epsilon = inf_onnx_attr_float(s, "epsilon", 1e-5f);
    enum inf_dtype stash = read_stash_type(s);
    if (!inf_onnx_wants_output(s, 1) && !inf_onnx_wants_output(s, 2) &&
        is_row_norm(s, axis, stash)) {
        uint32_t operands[3] = {x, s->inputs[1], inf_onnx_input(s, 2)};
        s->outputs[0] = add_normalization_node(s, INF_NORMALIZE_STANDARD, operands, &axes, epsilon);
        return;
    }
    struct normalized y = add_normalized(s, inf_build_cast(&s->b, x, stash), &axes, epsilon);
    uint32_t scaled = inf_build_mul(&s->b, inf_build_cast(&s->b, y.value, dtype), s->inputs[1]);
    if (inf_onnx_input(s, 2) != INF_VALUE_NONE)
        scaled = inf_build_add(&s->b, scaled, s->inputs[2]);
    s->outputs[0] = scaled;
    if (inf_onnx_wants_output(s, 1))
        s->outputs[1] = y.mean;
    if (inf_onnx_wants_output(s, 2))
        s->outputs[2] = y.inverse;
}

static void lower_rms_norm(struct inf_onnx_scope *s)
{
    enum inf_dtype stash = read_stash_type(s);
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", -1), rank);
    struct inf_ints axes = make_axes_from(axis, rank);
    float epsilon = inf_onnx_attr_float(s, "epsilon", 1e-5f);
    if (is_row_norm(s, axis, stash)) {
        uint32_t operands[3] = {s->inputs[0], s->inputs[1], INF_VALUE_NONE};
        s->outputs[0] = add_normalization_node(s, INF_NORMALIZE_RMS, operands, &axes, epsilon);
        return;
    }
    uint32_t x = inf_build_cast(&s->b, s->inputs[0], stash);
    uint32_t mean = inf_build_reduce(&s->b, INF_REDUCE_MEAN,
                                     inf_build_unary(&s->b, INF_UNARY_SQUARE, x), &axes, true);
    mean = inf_build_binary_number(&s->b, INF_BINARY_ADD, mean, (double)epsilon);
    mean = inf_build_unary(&s->b, INF_UNARY_SQRT, mean);
    uint32_t y =
        inf_build_cast(&s->b, inf_build_div(&s->b, x, mean), inf_build_dtype(&s->b, s->inputs[0]));
    s->outputs[0] = inf_build_cast(
        &s->b,
        inf_build_mul(&s->b, y, inf_build_cast(&s->b, s->inputs[1], inf_build_dtype(&s->b, y))),
        inf_build_dtype(&s->b, s->inputs[1]));
}

static void lower_group_norm(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], shape = inf_build_shape(&s->b, x);
    int32_t groups = inf_onnx_attr_int(s, "num_groups", 0), rank = inf_build_rank(&s->b, x);
    float epsilon = inf_onnx_attr_float(s, "epsilon", 1e-5f);
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    bool by_channel = s->opset >= 21;
    int64_t channels = rank < 2 ? 0 : inf_build_dim(&s->b, x, 1);
    if (inf_build_ok(&s->b) &&
        (rank < 2 || groups < 1 || (channels != INF_DIM_UNKNOWN && channels % groups != 0)))
        inf_build_fail(&s->b, INF_INVALID, "num_groups is %d, wanted a divisor of the channels",
                       groups);
    if (!inf_build_ok(&s->b))
        return;
    enum inf_dtype stash = by_channel ? read_stash_type(s) : dtype;
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0),
                             inf_build_list(&s->b, (int64_t[]){groups, -1}, 2)};
    struct inf_ints axes = make_axes_from(2, 3);
    uint32_t y = inf_build_reshape_to(&s->b, inf_build_cast(&s->b, x, stash),
                                      inf_build_concat(&s->b, dims, 2, 0));
    y = stash == INF_DTYPE_F32
            ? add_normalization_node(s, INF_NORMALIZE_STANDARD,
                                     (uint32_t[]){y, INF_VALUE_NONE, INF_VALUE_NONE}, &axes,
                                     epsilon)
            : add_normalized(s, y, &axes, epsilon).value;
    y = inf_build_cast(&s->b, y, dtype);
    if (by_channel)
        y = inf_build_reshape_to(&s->b, y, shape);
    rank = by_channel ? rank : 3;
    y = inf_build_add(&s->b, inf_build_mul(&s->b, y, align_channels(s, s->inputs[1], rank)),
                      align_channels(s, s->inputs[2], rank));
    s->outputs[0] = by_channel ? y : inf_build_reshape_to(&s->b, y, shape);
}

// Lowers MeanVarianceNormalization: x minus its mean, divided by its deviation plus a small number.
static void lower_mvn(struct inf_onnx_scope *s)
{
    struct inf_build_ints listed = {.count = 3, .values = {0, 2, 3}}, given;
    struct inf_ints axes = {.count = 0};
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    if (inf_onnx_attr_ints(s, "axes", &given))
        listed = given;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < listed.count && i < INF_LIMIT_RANK; i++)
        axes.values[axes.count++] = inf_build_axis(&s->b, listed.values[i], rank);
    uint32_t mean = inf_build_reduce(&s->b, INF_REDUCE_MEAN, s->inputs[0], &axes, true);
    uint32_t centred = inf_build_sub(&s->b, s->inputs[0], mean);
    uint32_t variance = inf_build_reduce(
        &s->b, INF_REDUCE_MEAN, inf_build_unary(&s->b, INF_UNARY_SQUARE, centred), &axes, true);
    uint32_t deviation = inf_build_unary(&s->b, INF_UNARY_SQRT, variance);
    s->outputs[0] = inf_build_div(&s->b, centred,
                                  inf_build_binary_number(&s->b, INF_BINARY_ADD, deviation, 1e-9));
}

static void lower_lp_norm(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    int32_t p = inf_onnx_attr_int(s, "p", 2);
    struct inf_ints axes = {.count = 1};
    axes.values[0] =
        inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", -1), inf_build_rank(&s->b, x));
    if (p != 1 && p != 2)
        inf_build_fail(&s->b, INF_INVALID, "p is %d, wanted 1 or 2", p);
    uint32_t size = inf_build_unary(&s->b, p == 1 ? INF_UNARY_ABS : INF_UNARY_SQUARE, x);
    size = inf_build_reduce(&s->b, INF_REDUCE_SUM, size, &axes, true);
    if (p == 2)
        size = inf_build_unary(&s->b, INF_UNARY_SQRT, size);
    s->outputs[0] = inf_build_binary(&s->b, INF_BINARY_DIV_NO_NAN, x, size);
}

static void lower_lrn(struct inf_onnx_scope *s)
{
    int32_t size = inf_onnx_attr_int(s, "size", 0);
    if (size < 1 || size > 65535 || inf_build_rank(&s->b, s->inputs[0]) < 3)
        inf_build_fail(&s->b, INF_INVALID, "size is %d, wanted 1 to 65535", size);
    uint32_t x = inf_build_channels_last(&s->b, s->inputs[0]);
    struct inf_build_node node = inf_build_describe_list(INF_OP_LRN, &x, 1);
    node.attrs.lrn.before = (size - 1) / 2;
    node.attrs.lrn.after = size - 1 - (size - 1) / 2;
    node.attrs.lrn.alpha = inf_onnx_attr_float(s, "alpha", 1e-4f) / (float)INF_MAX(size, 1);
    node.attrs.lrn.beta = inf_onnx_attr_float(s, "beta", 0.75f);
    node.attrs.lrn.bias = inf_onnx_attr_float(s, "bias", 1.0f);
    s->outputs[0] = inf_build_channels_first(&s->b, inf_build_value(&s->b, &node));
}

static const struct inf_onnx_op ops[] = {
    {"BatchNormalization", lower_batch_norm, 5, 5, 3, 0},
    {"InstanceNormalization", lower_instance_norm, 3, 3, 1, 0},
    {"LayerNormalization", lower_layer_norm, 2, 3, 3, 0},
    {"RMSNormalization", lower_rms_norm, 2, 2, 1, 0},
    {"GroupNormalization", lower_group_norm, 3, 3, 1, 0},
    {"MeanVarianceNormalization", lower_mvn, 1, 1, 1, 0},
    {"LpNormalization", lower_lp_norm, 1, 1, 1, 0},
    {"LRN", lower_lrn, 1, 1, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_norm = {ops, INF_ARRAY_LENGTH(ops)};
