// SPDX-License-Identifier: Apache-2.0
// Custom operators of MediaPipe's networks: pooling that remembers where each maximum was, its way
// back, and three operators of attention meshes, which cut a rotated part out of a picture of
// features and bring landmarks back from it.
//
// MediaPipe counts the place of a maximum within its window, row by row, and stores it as a float,
// with 0.1 added so that truncation gives the integer. The graph's pooling counts within the
// picture instead. The difference is a constant for each place of the result.
//
// A transform is a matrix [n,4,4]. Only its elements (0,0) (0,1) (0,3) and (1,0) (1,1) (1,3) are
// used: they map a column and a row of the cut-out part to those of the whole picture.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/flexbuffer.h"
#include "backends/import/tflite/op_table.h"

// --- pooling with places ---

// The options of both pooling operators: a C structure of TFLite (TfLitePoolParams).
struct pooling {
    int32_t padding; // enum padding
    int32_t stride_w, stride_h, filter_w, filter_h;
    int32_t activation;
};

enum padding {
    PADDING_SAME = 1,
    PADDING_VALID = 2
};

// The most elements of a window, a stride or the side of a picture.
#define SIDE_MAX 65535
// The most landmarks around which a part is cut out.
#define SUBSET_MAX 1024

static bool is_window_size(int32_t size)
{
    return size >= 1 && size <= SIDE_MAX;
}

static struct pooling read_pooling(struct inf_tflite_scope *s)
{
    int32_t words[6] = {PADDING_VALID, 1, 1, 1, 1, 0};
    inf_tflite_option_words(s, words, 6);
    if ((words[0] != PADDING_SAME && words[0] != PADDING_VALID) || !is_window_size(words[1]) ||
        !is_window_size(words[2]) || !is_window_size(words[3]) || !is_window_size(words[4]))
        inf_build_fail(&s->b, INF_INVALID, "has padding %d, strides %d, %d and a window of %d x %d",
                       words[0], words[1], words[2], words[4], words[3]);
    if (words[5] != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has fused activation %d", words[5]);
    return (struct pooling){words[0], words[1], words[2], words[3], words[4], words[5]};
}

// Adds the constant i32 of shape [1,count,1,1] (axis 0) or [1,1,count,1] (axis 1) with the numbers
// first, first + step and so on.
static uint32_t add_ramp(struct inf_builder *b, int32_t axis, int64_t count, int64_t first,
                         int64_t step)
{
    int32_t *numbers;
    const struct inf_shape shape =
        axis == 0 ? INF_SHAPE(1, count, 1, 1) : INF_SHAPE(1, 1, count, 1);
    uint32_t ramp = inf_build_const(b, INF_DTYPE_I32, &shape, &numbers);
    for (int64_t i = 0; numbers != NULL && i < count; i++)
        numbers[i] = (int32_t)(first + i * step);
    return ramp;
}

// Returns the number of elements before the picture that the first window covers, for `windows`
// windows of `filter` elements on an axis of `size` elements.
static int64_t pad_before(int64_t size, int64_t windows, int64_t filter, int64_t stride)
{
    return INF_MAX((windows - 1) * stride + filter - size, 0) / 2;
}

// MaxPoolingWithArgmax2D: the largest of each window, and its place in the window.
static void lower_max_pooling(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    struct pooling p = read_pooling(s);
    uint32_t x = inf_tflite_real(s, 0), results[2];
    struct inf_shape shape = inf_build_known_shape(b, x);
    struct inf_build_node node =
        inf_build_describe(INF_OP_POOL_ND, x, INF_VALUE_NONE, INF_VALUE_NONE);
    struct inf_attrs_pool_nd *attrs = &node.attrs.pool_nd;
    attrs->kind = INF_POOL_MAX;
    attrs->kernel = (struct inf_ints){.count = 2, .values = {p.filter_h, p.filter_w}};
    attrs->strides = (struct inf_ints){.count = 2, .values = {p.stride_h, p.stride_w}};
    attrs->padding = p.padding == PADDING_SAME ? INF_PADDING_SAME : INF_PADDING_VALID;
    node.output_count = 2;
    if (inf_build_ok(b) && shape.rank != 4)
        inf_build_fail(b, INF_INVALID, "has a picture of rank %d, wanted 4", shape.rank);
    inf_build_emit(b, &node, results);
    int64_t rows = inf_build_known_dim(b, results[0], 1);
    int64_t columns = inf_build_known_dim(b, results[0], 2);
    if (!inf_build_ok(b))
        return;
    bool same = p.padding == PADDING_SAME;
    int64_t above = same ? pad_before(shape.dims[1], rows, p.filter_h, p.stride_h) : 0;
    int64_t left = same ? pad_before(shape.dims[2], columns, p.filter_w, p.stride_w) : 0;
    // The place in the picture is (row * width + column) * channels + channel.
    double width = (double)INF_MAX(shape.dims[2], 1), channels = (double)INF_MAX(shape.dims[3], 1);
    uint32_t pixel = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, results[1], channels);
    uint32_t row = inf_build_binary_number(b, INF_BINARY_FLOOR_DIV, pixel, width);
    uint32_t column = inf_build_binary_number(b, INF_BINARY_FLOOR_MOD, pixel, width);
    row = inf_build_sub(b, row, add_ramp(b, 0, rows, -above, p.stride_h));
    column = inf_build_sub(b, column, add_ramp(b, 1, columns, -left, p.stride_w));
    uint32_t place =
        inf_build_add(b, inf_build_binary_number(b, INF_BINARY_MUL, row, p.filter_w), column);
    place = inf_build_cast(b, place, INF_DTYPE_F32);
    s->outputs[0] = results[0];
    s->outputs[1] = inf_build_binary_number(b, INF_BINARY_ADD, place, 0.1f);
}

// Adds positions 0, 1, ... along axis `axis` of a tensor with this shape, broadcast to it, with one
// more axis of size 1 at the end.
static uint32_t add_positions(struct inf_builder *b, int32_t axis, const struct inf_shape *shape)
{
    int64_t dims[INF_LIMIT_RANK] = {1, 1, 1, 1, 1};
    dims[axis] = shape->dims[axis];
    uint32_t ramp = inf_build_iota(b, INF_DTYPE_I32, shape->dims[axis]);
    return inf_build_reshape(b, ramp, dims, 5);
}

// MaxUnpooling2D: elements at the places that a pooling stored, and zeros elsewhere. A place
// outside of the result is left out.
static void lower_max_unpooling(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    struct pooling p = read_pooling(s);
    uint32_t x = inf_tflite_real(s, 0);
    struct inf_shape shape = inf_build_known_shape(b, x);
    if (inf_build_ok(b) && shape.rank != 4)
        inf_build_fail(b, INF_INVALID, "has a picture of rank %d, wanted 4", shape.rank);
    if (!inf_build_ok(b))
        return;
    const int64_t rows = shape.dims[1], columns = shape.dims[2];
    const int64_t y_dims[] = {shape.dims[0], rows * p.filter_h, columns * p.filter_w,
                              shape.dims[3]};
    bool same = p.padding == PADDING_SAME;
    int64_t above = same ? pad_before(y_dims[1], rows, p.filter_h, p.stride_h) : 0;
    int64_t left = same ? pad_before(y_dims[2], columns, p.filter_w, p.stride_w) : 0;
    uint32_t place = inf_build_cast(b, inf_tflite_real(s, 1), INF_DTYPE_I32);
    uint32_t row = inf_build_binary_number(b, INF_BINARY_DIV, place, p.filter_w);
    uint32_t column = inf_build_binary_number(b, INF_BINARY_MOD, place, p.filter_w);
    row = inf_build_add(b, row, add_ramp(b, 0, rows, -above, p.stride_h));
    column = inf_build_add(b, column, add_ramp(b, 1, columns, -left, p.stride_w));
    const int64_t last[] = {4}, index_dims[] = {shape.dims[0], rows, columns, shape.dims[3], 1};
    uint32_t full = inf_build_list(b, index_dims, 5);
    uint32_t parts[] = {inf_build_broadcast(b, add_positions(b, 0, &shape), full),
                        inf_build_expand_dims(b, row, last, 1),
                        inf_build_expand_dims(b, column, last, 1),
                        inf_build_broadcast(b, add_positions(b, 3, &shape), full)};
    uint32_t zero = inf_build_scalar(b, INF_DTYPE_F32, 0);
    struct inf_build_node node =
        inf_build_describe(INF_OP_SCATTER_ND, inf_build_fill(b, inf_build_list(b, y_dims, 4), zero),
                           inf_build_concat(b, parts, 4, 4), x);
    node.attrs.scatter_nd.drop = true;
    s->outputs[0] = inf_build_value(b, &node);
}

// --- attention meshes ---

// Returns a number of the options, 0 if it is absent.
static double read_number(struct inf_tflite_scope *s, const char *key, double least, double most)
{
    double number = 0;
    (void)inf_flexbuffer_number(s->op->custom_options, key, &number);
    if (!(number >= least && number <= most))
        inf_build_fail(&s->b, INF_INVALID, "option %s is %g, wanted %g to %g", key, number, least,
                       most);
    return inf_build_ok(&s->b) ? number : least;
}

// Returns false, and latches a failure, unless the operator has version 2. Version 1 has other
// shapes and options.
static bool is_version_2(struct inf_tflite_scope *s)
{
    if (s->op->code->version != 2)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has version %d, only 2 is supported",
                       s->op->code->version);
    return inf_build_ok(&s->b);
}

// Returns elements first .. first + count - 1 of the last axis of x [n,m,k].
static uint32_t add_part(struct inf_builder *b, uint32_t x, int64_t first, int64_t count)
{
    return inf_build_slice(b, x, 2, first, first + count, 1);
}

// Reads the matrix that is input `index`: *linear [n,2,2], which is multiplied with (column, row),
// and *shift [n,2,1], which is added.
static void read_transform(struct inf_tflite_scope *s, uint32_t index, uint32_t *linear,
                           uint32_t *shift)
{
    struct inf_builder *b = &s->b;
    uint32_t matrix = inf_tflite_real(s, index);
    struct inf_shape shape = inf_build_known_shape(b, matrix);
    if (inf_build_ok(b) && (shape.rank != 3 || shape.dims[1] != 4 || shape.dims[2] != 4))
        inf_build_fail(b, INF_INVALID, "input %u is no transform: wanted [n,4,4]", index);
    uint32_t rows = inf_build_slice(b, matrix, 1, 0, 2, 1);
    *linear = add_part(b, rows, 0, 2);
    *shift = add_part(b, rows, 3, 1);
}

// TransformLandmarks: the first two coordinates of each point [n,points,2 or 3], transformed.
static void lower_transform_landmarks(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_real(s, 0), linear, shift;
    struct inf_shape shape = inf_build_known_shape(b, x);
    if (!is_version_2(s))
        return;
    if (shape.rank != 3 || (shape.dims[2] != 2 && shape.dims[2] != 3))
        inf_build_fail(b, INF_INVALID, "has landmarks of rank %d, wanted [n,points,2 or 3]",
                       shape.rank);
    read_transform(s, 1, &linear, &shift);
    const int64_t swap[] = {0, 2, 1};
    uint32_t points =
        inf_build_matmul(b, add_part(b, x, 0, 2), inf_build_transpose(b, linear, swap, 3));
    points = inf_build_add(b, points, inf_build_transpose(b, shift, swap, 3));
    if (inf_build_ok(b) && shape.dims[2] == 3)
        points = inf_build_concat(b, (uint32_t[]){points, add_part(b, x, 2, 1)}, 2, 2);
    s->outputs[0] = points;
}

// Adds whether low <= x <= high, element by element.
static uint32_t add_within(struct inf_builder *b, uint32_t x, double low, double high)
{
    uint32_t above =
        inf_build_compare(b, INF_COMPARE_GREATER_EQUAL, x, inf_build_scalar(b, INF_DTYPE_F32, low));
    uint32_t below =
        inf_build_compare(b, INF_COMPARE_LESS_EQUAL, x, inf_build_scalar(b, INF_DTYPE_F32, high));
    return inf_build_binary(b, INF_BINARY_LOGICAL_AND, above, below);
}

// Adds coordinate `row` (0: column, 1: row of the picture) of every pixel of the result, of shape
// [n,height,width,1], for transforms [n,2,3].
static uint32_t add_coordinate(struct inf_builder *b, uint32_t transforms, int64_t row,
                               int64_t height, int64_t width)
{
    const int64_t dims[] = {-1, 1, 1, 1};
    uint32_t parts[3];
    for (int64_t i = 0; i < 3; i++)
        parts[i] = inf_build_reshape(
            b, add_part(b, inf_build_slice(b, transforms, 1, row, row + 1, 1), i, 1), dims, 4);
    uint32_t x = inf_build_cast(b, add_ramp(b, 1, width, 0, 1), INF_DTYPE_F32);
    uint32_t y = inf_build_cast(b, add_ramp(b, 0, height, 0, 1), INF_DTYPE_F32);
    uint32_t sum = inf_build_add(b, inf_build_mul(b, parts[0], x), inf_build_mul(b, parts[1], y));
    return inf_build_add(b, sum, parts[2]);
}

// TransformTensorBilinear: the part of the pictures [n,h,w,c] that the transforms of its pixels
// name, between four pixels each. A pixel whose place is outside of the picture is 0. The places
// are those of pixels as areas: half a pixel is added before the transform and subtracted after it.
static void lower_transform_tensor(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_real(s, 0), linear, shift;
    struct inf_shape shape = inf_build_known_shape(b, x);
    if (!is_version_2(s))
        return;
    int64_t height = (int64_t)read_number(s, "output_height", 1, SIDE_MAX);
    int64_t width = (int64_t)read_number(s, "output_width", 1, SIDE_MAX);
    if (shape.rank != 4)
        inf_build_fail(b, INF_INVALID, "has a picture of rank %d, wanted 4", shape.rank);
    read_transform(s, 1, &linear, &shift);
    uint32_t half = inf_build_add(b, add_part(b, linear, 0, 1), add_part(b, linear, 1, 1));
    half = inf_build_binary_number(b, INF_BINARY_MUL, half, 0.5);
    half = inf_build_binary_number(b, INF_BINARY_SUB, half, 0.5);
    shift = inf_build_add(b, shift, half);
    uint32_t transforms = inf_build_concat(b, (uint32_t[]){linear, shift}, 2, 2);
    int64_t count = inf_build_known_dim(b, transforms, 0);
    if (!inf_build_ok(b))
        return;
    uint32_t flat = inf_build_reshape(b, transforms, (int64_t[]){count, 6}, 2);
    flat = inf_build_pad(b, flat, (int64_t[]){0, 0, 0, 2}, 2, INF_PAD_CONSTANT, INF_VALUE_NONE);
    struct inf_build_node node = inf_build_describe(
        INF_OP_IMAGE_TRANSFORM, x, flat, inf_build_list(b, (int64_t[]){height, width}, 2));
    node.attrs.image_transform.kind = INF_RESIZE_BILINEAR;
    uint32_t y = inf_build_value(b, &node);
    uint32_t inside =
        inf_build_binary(b, INF_BINARY_LOGICAL_AND,
                         add_within(b, add_coordinate(b, transforms, 0, height, width), 0,
                                    (double)(shape.dims[2] - 1)),
                         add_within(b, add_coordinate(b, transforms, 1, height, width), 0,
                                    (double)(shape.dims[1] - 1)));
    s->outputs[0] = inf_build_select(b, inside, y, inf_build_scalar(b, INF_DTYPE_F32, 0));
}

// A point of each row of the batch: two values of shape [n,1,1].
struct point {
    uint32_t x, y;
};

static struct point add_point(struct inf_builder *b, uint32_t landmarks, int64_t index)
{
    uint32_t one = inf_build_slice(b, landmarks, 1, index, index + 1, 1);
    return (struct point){add_part(b, one, 0, 1), add_part(b, one, 1, 1)};
}

// Adds (x, y) turned: (c x - s y, s x + c y).
static struct point add_turned(struct inf_builder *b, struct point p, struct point turn)
{
    return (struct point){
        inf_build_sub(b, inf_build_mul(b, turn.x, p.x), inf_build_mul(b, turn.y, p.y)),
        inf_build_add(b, inf_build_mul(b, turn.y, p.x), inf_build_mul(b, turn.x, p.y))};
}

// Adds the middle and the size of the values along axis 1.
static void add_extent(struct inf_builder *b, uint32_t values, uint32_t *middle, uint32_t *size)
{
    const struct inf_ints axes = {.count = 1, .values = {1}};
    uint32_t most = inf_build_reduce(b, INF_REDUCE_MAX, values, &axes, true);
    uint32_t least = inf_build_reduce(b, INF_REDUCE_MIN, values, &axes, true);
    *size = inf_build_sub(b, most, least);
    *middle = inf_build_binary_number(b, INF_BINARY_MUL, inf_build_add(b, most, least), 0.5);
}

// The options of Landmarks2TransformMatrix.
struct cut {
    int64_t left, right; // the landmarks that become level
    int64_t subset[SUBSET_MAX];
    uint32_t subset_count;
    double angle, width, height, scale_x, scale_y;
};

static struct cut read_cut(struct inf_tflite_scope *s, int64_t points)
{
    struct cut cut = {0};
    double last = (double)points - 1;
    cut.left = (int64_t)read_number(s, "left_rotation_idx", 0, last);
    cut.right = (int64_t)read_number(s, "right_rotation_idx", 0, last);
    cut.angle = read_number(s, "target_rotation_radians", -1e6, 1e6);
    cut.width = read_number(s, "output_width", 1, SIDE_MAX);
    cut.height = read_number(s, "output_height", 1, SIDE_MAX);
    cut.scale_x = read_number(s, "scale_x", 1e-30, 1e30);
    cut.scale_y = read_number(s, "scale_y", 1e-30, 1e30);
    if (!inf_flexbuffer_integers(s->op->custom_options, "subset_idxs", cut.subset, SUBSET_MAX,
                                 &cut.subset_count) ||
        cut.subset_count == 0)
        inf_build_fail(&s->b, INF_INVALID, "option subset_idxs is no list of 1 to %d integers",
                       SUBSET_MAX);
    for (uint32_t i = 0; i < cut.subset_count; i++)
        if (cut.subset[i] < 0 || cut.subset[i] >= points)
            inf_build_fail(&s->b, INF_INVALID, "option subset_idxs has %lld, there are %lld points",
                           (long long)cut.subset[i], (long long)points);
    return cut;
}

// Adds the cosine and the sine of the angle by which the landmarks are turned, so that the line
// from the left to the right one gets the wanted angle.
static struct point add_turn(struct inf_builder *b, uint32_t landmarks, const struct cut *cut)
{
    struct point left = add_point(b, landmarks, cut->left);
    struct point right = add_point(b, landmarks, cut->right);
    uint32_t angle = inf_build_binary(b, INF_BINARY_ATAN2, inf_build_sub(b, right.y, left.y),
                                      inf_build_sub(b, right.x, left.x));
    angle = inf_build_sub(b, inf_build_scalar(b, INF_DTYPE_F32, cut->angle), angle);
    return (struct point){inf_build_unary(b, INF_UNARY_COS, angle),
                          inf_build_unary(b, INF_UNARY_SIN, angle)};
}

// Adds the matrix [n,4,4] of a transform whose first two rows are (m[0], m[1], 0, shift.x) and
// (m[2], m[3], 0, shift.y). All values have shape [n,1,1].
static uint32_t add_matrix(struct inf_builder *b, const uint32_t m[4], struct point shift,
                           int64_t count)
{
    uint32_t size = inf_build_list(b, (int64_t[]){count, 1, 1}, 3);
    uint32_t zero = inf_build_fill(b, size, inf_build_scalar(b, INF_DTYPE_F32, 0));
    uint32_t one = inf_build_fill(b, size, inf_build_scalar(b, INF_DTYPE_F32, 1));
    const uint32_t elements[4][4] = {{m[0], m[1], zero, shift.x},
                                     {m[2], m[3], zero, shift.y},
                                     {zero, zero, one, zero},
                                     {zero, zero, zero, one}};
    uint32_t rows[4];
    for (uint32_t i = 0; i < 4; i++)
        rows[i] = inf_build_concat(b, elements[i], 4, 2);
    return inf_build_concat(b, rows, 4, 1);
}

// Landmarks2TransformMatrix: the transform from a cut-out part to the whole picture. The part is
// turned so that two landmarks are level, and is the box around a subset of the landmarks,
// stretched about its middle:
//
//     place = middle + turned back (scale * (pixel - size of the part / 2))
static void lower_landmarks_to_matrix(struct inf_tflite_scope *s)
{
    struct inf_builder *b = &s->b;
    uint32_t landmarks = inf_tflite_real(s, 0);
    struct inf_shape shape = inf_build_known_shape(b, landmarks);
    if (!is_version_2(s))
        return;
    if (shape.rank != 3 || shape.dims[2] < 2)
        inf_build_fail(b, INF_INVALID, "has landmarks of rank %d, wanted [n,points,3]", shape.rank);
    struct cut cut = read_cut(s, inf_build_ok(b) ? shape.dims[1] : 1);
    if (!inf_build_ok(b))
        return;
    struct point turn = add_turn(b, landmarks, &cut);
    struct point back = {turn.x, inf_build_unary(b, INF_UNARY_NEG, turn.y)};
    uint32_t chosen =
        inf_build_gather(b, landmarks, inf_build_list(b, cut.subset, cut.subset_count), 1);
    struct point box =
        add_turned(b, (struct point){add_part(b, chosen, 0, 1), add_part(b, chosen, 1, 1)}, turn);
    struct point middle, scale;
    add_extent(b, box.x, &middle.x, &scale.x);
    add_extent(b, box.y, &middle.y, &scale.y);
    middle = add_turned(b, middle, back);
    scale.x = inf_build_binary_number(b, INF_BINARY_MUL, scale.x, cut.scale_x / cut.width);
    scale.y = inf_build_binary_number(b, INF_BINARY_MUL, scale.y, cut.scale_y / cut.height);
    // A pixel (x, y) becomes x * column_x + y * column_y.
    struct point column_x = {inf_build_mul(b, back.x, scale.x), inf_build_mul(b, back.y, scale.x)};
    struct point column_y = {inf_build_mul(b, turn.y, scale.y), inf_build_mul(b, back.x, scale.y)};
    struct point half = {inf_build_scalar(b, INF_DTYPE_F32, cut.width / 2),
                         inf_build_scalar(b, INF_DTYPE_F32, cut.height / 2)};
    struct point shift = {inf_build_add(b, inf_build_mul(b, column_x.x, half.x),
                                        inf_build_mul(b, column_y.x, half.y)),
                          inf_build_add(b, inf_build_mul(b, column_x.y, half.x),
                                        inf_build_mul(b, column_y.y, half.y))};
    shift.x = inf_build_sub(b, middle.x, shift.x);
    shift.y = inf_build_sub(b, middle.y, shift.y);
    const uint32_t m[4] = {column_x.x, column_y.x, column_x.y, column_y.y};
    s->outputs[0] = add_matrix(b, m, shift, shape.dims[0]);
}

#define CUSTOM(name, lower, inputs, outputs)                                                       \
    {                                                                                              \
        INF_TFLITE_CUSTOM, name, lower, inputs, inputs, outputs, INF_TFLITE_MODE_REAL, 0, 0        \
    }

static const struct inf_tflite_op ops[] = {
    CUSTOM("MaxPoolingWithArgmax2D", lower_max_pooling, 1, 2),
    CUSTOM("MaxUnpooling2D", lower_max_unpooling, 2, 1),
    CUSTOM("TransformLandmarks", lower_transform_landmarks, 2, 1),
    CUSTOM("TransformTensorBilinear", lower_transform_tensor, 2, 1),
    CUSTOM("Landmarks2TransformMatrix", lower_landmarks_to_matrix, 1, 1),
};

const struct inf_tflite_op_table inf_tflite_ops_mediapipe = {ops, INF_ARRAY_LENGTH(ops)};
