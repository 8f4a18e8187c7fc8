// SPDX-License-Identifier: Apache-2.0
// DeformConv: a convolution whose taps are moved by offsets. A moved tap reads the picture at a
// position between its pixels. So the operator is a grid_sample, which makes a column of samples
// for each place (pixel of the result), and a product of the columns with the weights:
//
//   x [n,c,h,w]  grid_sample at (place * stride + tap * dilation - pad + offset)  -> [n,places,k,c]
//   times mask, times weights [k,c/group,co]                                      -> [n,places,co]
//
// k counts the taps, and each group of offsets moves the taps of its own channels.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

struct deform {
    uint32_t x, weights, offset, bias, mask; // bias and mask may be absent
    int64_t taps[2];
    int64_t strides[2], dilations[2], pads[2];
    int64_t groups, offset_groups;
    uint32_t batch, channels, places[2]; // dimensions of n, c and the result's h and w, i32 [1]
};

static uint32_t add_number(struct inf_onnx_scope *s, int64_t number)
{
    return inf_build_list(&s->b, &number, 1);
}

static uint32_t reshape_by(struct inf_onnx_scope *s, uint32_t x, const uint32_t *dims,
                           uint32_t count)
{
    return inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, count, 0));
}

// Reads an attribute of two numbers. If it is absent, both are `fallback`.
static void read_pair(struct inf_onnx_scope *s, const char *name, int64_t fallback, int64_t *pair)
{
    struct inf_build_ints ints;
    pair[0] = pair[1] = fallback;
    if (!inf_onnx_attr_ints(s, name, &ints))
        return;
    if (ints.count < 2 || ints.values[0] < 0 || ints.values[1] < 0 || ints.values[0] > UINT16_MAX ||
        ints.values[1] > UINT16_MAX)
        inf_build_fail(&s->b, INF_INVALID, "%s is not two numbers of 0 to %d", name, UINT16_MAX);
    else
        memcpy(pair, ints.values, 2 * sizeof *pair);
}

static void read_deform(struct inf_onnx_scope *s, struct deform *deform)
{
    deform->x = s->inputs[0];
    deform->weights = s->inputs[1];
    deform->offset = s->inputs[2];
    deform->bias = inf_onnx_input(s, 3);
    deform->mask = inf_onnx_input(s, 4);
    read_pair(s, "strides", 1, deform->strides);
    read_pair(s, "dilations", 1, deform->dilations);
    read_pair(s, "pads", 0, deform->pads); // the pads at the end follow from the offsets' shape
    deform->groups = inf_onnx_attr_int(s, "group", 1);
    deform->offset_groups = inf_onnx_attr_int(s, "offset_group", 1);
    (void)inf_onnx_find_attr(s, "kernel_shape"); // repeats the shape of the weights
    if (inf_build_rank(&s->b, deform->x) != 4 || inf_build_rank(&s->b, deform->weights) != 4 ||
        inf_build_rank(&s->b, deform->offset) != 4)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x, weights or offsets are not of rank 4");
    for (int i = 0; inf_build_ok(&s->b) && i < 2; i++) {
        deform->taps[i] = inf_build_known_dim(&s->b, deform->weights, 2 + i);
        deform->places[i] = inf_build_dim_value(&s->b, deform->offset, 2 + i);
    }
    deform->batch = inf_build_dim_value(&s->b, deform->x, 0);
    deform->channels = inf_build_dim_value(&s->b, deform->x, 1);
    int64_t channels = inf_build_dim(&s->b, deform->x, 1);
    if (inf_build_ok(&s->b) &&
        (deform->groups < 1 || deform->offset_groups < 1 ||
         (channels != INF_DIM_UNKNOWN &&
          (channels % deform->groups != 0 || channels % deform->offset_groups != 0))))
        inf_build_fail(&s->b, INF_INVALID, "%lld channels do not divide into %lld and %lld groups",
                       (long long)channels, (long long)deform->groups,
                       (long long)deform->offset_groups);
}

// Adds the positions along axis `axis` (0: rows) that the taps would read without offsets,
// [k,1,h',1] or [k,1,1,w'].
static uint32_t add_places(struct inf_onnx_scope *s, const struct deform *deform, int axis)
{
    int64_t count = deform->taps[0] * deform->taps[1];
    float *taps;
    uint32_t end = inf_build_reshape(&s->b, deform->places[axis], NULL, 0);
    uint32_t at = inf_build_cast(&s->b, inf_build_range(&s->b, end), INF_DTYPE_F32);
    at = inf_build_binary_number(&s->b, INF_BINARY_MUL, at, (double)deform->strides[axis]);
    at = inf_build_reshape(&s->b, at, axis == 0 ? (int64_t[]){-1, 1} : (int64_t[]){1, -1}, 2);
    uint32_t shifts = inf_build_const(&s->b, INF_DTYPE_F32, &INF_SHAPE(count, 1, 1, 1), &taps);
    for (int64_t i = 0; taps != NULL && i < count; i++) {
        int64_t tap = axis == 0 ? i / deform->taps[1] : i % deform->taps[1];
        taps[i] = (float)(tap * deform->dilations[axis] - deform->pads[axis]);
    }
    return inf_build_add(&s->b, shifts, at);
}

// Adds the coordinates of the samples along one axis as grid_sample counts them, from the outer
// edge of the first pixel (-1) to that of the last (1): [n,groups,k,1,h',w'].
static uint32_t add_coordinates(struct inf_onnx_scope *s, const struct deform *deform,
                                uint32_t offsets, int axis)
{
    uint32_t size =
        inf_build_reshape(&s->b, inf_build_dim_value(&s->b, deform->x, 2 + axis), NULL, 0);
    uint32_t own = inf_build_slice(&s->b, offsets, 3, axis, axis + 1, 1);
    uint32_t at = inf_build_add(&s->b, own, add_places(s, deform, axis));
    at = inf_build_binary_number(&s->b, INF_BINARY_MUL, at, 2);
    at = inf_build_binary_number(&s->b, INF_BINARY_ADD, at, 1);
    at = inf_build_div(&s->b, at, inf_build_cast(&s->b, size, INF_DTYPE_F32));
    return inf_build_binary_number(&s->b, INF_BINARY_SUB, at, 1);
}

// Adds the samples [n*groups, k*h', w', c/groups] of all taps, where groups are those of offsets.
static uint32_t add_samples(struct inf_onnx_scope *s, const struct deform *deform)
{
    struct inf_builder *b = &s->b;
    int64_t k = deform->taps[0] * deform->taps[1], groups = deform->offset_groups;
    const uint32_t *places = deform->places;
    const uint32_t split[] = {deform->batch,    add_number(s, groups),
                              add_number(s, k), add_number(s, 2),
                              places[0],        places[1]};
    uint32_t offsets = inf_build_cast(b, deform->offset, INF_DTYPE_F32);
    offsets = reshape_by(s, offsets, split, 6);
    const uint32_t both[] = {add_coordinates(s, deform, offsets, 1),
                             add_coordinates(s, deform, offsets, 0)};
    uint32_t grid = inf_build_concat(b, both, 2, 3);
    grid = inf_build_transpose(b, grid, (int64_t[]){0, 1, 2, 4, 5, 3}, 6);
    uint32_t rows = inf_build_binary_number(b, INF_BINARY_MUL, places[0], (double)k);
    uint32_t pictures = inf_build_binary_number(b, INF_BINARY_MUL, deform->batch, (double)groups);
    const uint32_t merged[] = {pictures, rows, places[1], add_number(s, 2)};
    grid = reshape_by(s, grid, merged, 4);
    const uint32_t parts[] = {
        pictures, inf_build_binary_number(b, INF_BINARY_DIV, deform->channels, (double)groups),
        inf_build_dim_value(b, deform->x, 2), inf_build_dim_value(b, deform->x, 3)};
    uint32_t x = inf_build_cast(b, deform->x, INF_DTYPE_F32);
    x = inf_build_channels_last(b, reshape_by(s, x, parts, 4));
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_GRID_SAMPLE, (const uint32_t[]){x, grid}, 2);
    node.attrs.grid_sample.border = INF_BORDER_CONSTANT;
    uint32_t samples = inf_build_value(b, &node);
    if (deform->mask == INF_VALUE_NONE)
        return samples;
    const uint32_t masks[] = {pictures, rows, places[1], add_number(s, 1)};
    uint32_t mask = inf_build_cast(b, deform->mask, INF_DTYPE_F32);
    return inf_build_mul(b, samples, reshape_by(s, mask, masks, 4));
}

// Adds the product of the columns [n, places, k, c] and the weights: [n, places, 1, co].
static uint32_t multiply_columns(struct inf_onnx_scope *s, const struct deform *deform,
                                 uint32_t columns)
{
    struct inf_builder *b = &s->b;
    struct inf_shape shape = inf_build_known_shape(b, deform->weights);
    if (!inf_build_ok(b))
        return INF_VALUE_NONE;
    int64_t k = shape.dims[2] * shape.dims[3];
    uint32_t filter = inf_build_cast(b, deform->weights, INF_DTYPE_F32);
    filter = inf_build_transpose(b, filter, (int64_t[]){2, 3, 1, 0}, 4);
    filter = inf_build_reshape(b, filter, (int64_t[]){1, k, shape.dims[1], shape.dims[0]}, 4);
    uint32_t bias = deform->bias;
    if (bias != INF_VALUE_NONE)
        bias = inf_build_cast(b, bias, INF_DTYPE_F32);
    struct inf_build_node node = inf_build_describe(INF_OP_CONV2D, columns, filter, bias);
    node.attrs.conv2d.groups = (int32_t)deform->groups;
    return inf_build_value(b, &node);
}

static void lower_deform_conv(struct inf_onnx_scope *s)
{
    struct deform deform = {.groups = 0};
    read_deform(s, &deform);
    if (!inf_build_ok(&s->b))
        return;
    struct inf_builder *b = &s->b;
    int64_t k = deform.taps[0] * deform.taps[1], groups = deform.offset_groups;
    uint32_t places = inf_build_mul(b, deform.places[0], deform.places[1]);
    const uint32_t split[] = {
        deform.batch, add_number(s, groups), add_number(s, k), places,
        inf_build_binary_number(b, INF_BINARY_DIV, deform.channels, (double)groups)};
    uint32_t columns = reshape_by(s, add_samples(s, &deform), split, 5);
    columns = inf_build_transpose(b, columns, (int64_t[]){0, 3, 2, 1, 4}, 5);
    const uint32_t merged[] = {deform.batch, places, add_number(s, k), deform.channels};
    uint32_t y = multiply_columns(s, &deform, reshape_by(s, columns, merged, 4));
    const uint32_t result[] = {deform.batch, deform.places[0], deform.places[1],
                               inf_build_dim_value(b, deform.weights, 0)};
    y = inf_build_channels_first(b, reshape_by(s, y, result, 4));
    s->outputs[0] = inf_build_cast(b, y, inf_build_dtype(b, deform.x));
}

static const struct inf_onnx_op ops[] = {
    {"DeformConv", lower_deform_conv, 3, 5, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_deform = {ops, INF_ARRAY_LENGTH(ops)};
