// SPDX-License-Identifier: Apache-2.0
// Tests of nodes whose shaders run many iterations of loops. llvmpipe ends the loops of an
// invocation after 65,535 iterations of all of them together, without an error, so its results
// would be wrong. The backend must decline such nodes, and must compute the largest node that it
// takes correctly. Every shader with a loop whose length depends on a shape has a case here.
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/support/models/one_node.h"

TestSuite(vulkan_loops, .timeout = 300);

// A node whose shader has more iterations the larger `size` is.
struct loop_case {
    const char *name;
    void (*make)(struct one_node *one, int64_t size);
    int64_t least; // the device takes at least this size
    bool alone;    // true: the device has no subgroups that share the terms of a row
    bool rounds;   // true: the result is rounded, so that it may differ a little
};

// --- operands ---

// Adds an input of small whole numbers, so that sums are exact and each term changes them. The last
// number is the largest.
static void add_floats(struct one_node *one, struct inf_shape shape, bool constant)
{
    size_t count = inf_shape_elements(&shape);
    float *floats = malloc(count * sizeof *floats);
    cr_assert_not_null(floats);
    for (size_t i = 0; i < count; i++)
        floats[i] = (float)(1 + i % 3);
    floats[count - 1] = 5;
    (constant ? one_node_const : one_node_input)(one, INF_DTYPE_F32, shape, floats);
    free(floats);
}

static void add_bytes(struct one_node *one, struct inf_shape shape, bool constant)
{
    size_t count = inf_shape_elements(&shape);
    uint8_t *bytes = malloc(count);
    cr_assert_not_null(bytes);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(1 + i % 3);
    (constant ? one_node_const : one_node_input)(one, INF_DTYPE_U8, shape, bytes);
    free(bytes);
}

// --- products ---

static void make_pair(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_MATMUL);
    add_floats(one, INF_SHAPE(2, size), false);
    add_floats(one, INF_SHAPE(size, 3), false);
}

static void make_product(struct one_node *one, int64_t rows, int64_t depth)
{
    one_node_init(one, INF_OP_MATMUL);
    add_floats(one, INF_SHAPE(rows, depth), false);
    add_floats(one, INF_SHAPE(depth, 3), true);
}

static void make_row(struct one_node *one, int64_t size)
{
    make_product(one, 1, 2 * size + 1);
}

static void make_row_of_vectors(struct one_node *one, int64_t size)
{
    make_product(one, 1, 4 * size);
}

static void make_tile(struct one_node *one, int64_t size)
{
    make_product(one, 5, 6 * size + 1);
}

static void make_tile_of_triples(struct one_node *one, int64_t size)
{
    make_product(one, 5, 6 * size + 3);
}

static void make_tile_of_vectors(struct one_node *one, int64_t size)
{
    make_product(one, 5, 4 * size);
}

static void make_blocks(struct one_node *one, int64_t rows, int64_t depth)
{
    one_node_init(one, INF_OP_MATMUL_BLOCKS);
    one->attrs.matmul_blocks.bits = 8;
    one->attrs.matmul_blocks.block = 16;
    int64_t blocks = (depth + 15) / 16;
    add_floats(one, INF_SHAPE(rows, depth), false);
    add_bytes(one, INF_SHAPE(2, blocks, 16), true);
    add_floats(one, INF_SHAPE(2 * blocks), true);
    float *zeros = calloc((size_t)(2 * blocks), sizeof *zeros);
    cr_assert_not_null(zeros);
    one_node_const(one, INF_DTYPE_F32, INF_SHAPE(2 * blocks), zeros);
    free(zeros);
}

static void make_few_rows_of_blocks(struct one_node *one, int64_t size)
{
    make_blocks(one, 1, 16 * size);
}

static void make_eight_rows_of_blocks(struct one_node *one, int64_t size)
{
    make_blocks(one, 8, 16 * size);
}

static void make_rows_of_blocks(struct one_node *one, int64_t size)
{
    make_blocks(one, 25, 6 * size + 1);
}

// --- windows ---

// A convolution of x [1, height, width + across - 1, channels] in windows of `height` rows and
// `width` columns, which gives `across` pixels.
static void make_conv(struct one_node *one, int64_t height, int64_t width, int64_t across,
                      int64_t channels)
{
    one_node_init(one, INF_OP_CONV2D);
    add_floats(one, INF_SHAPE(1, height, width + across - 1, channels), false);
    add_floats(one, INF_SHAPE(height, width, channels, 2), true);
}

static void make_conv_pixel(struct one_node *one, int64_t size)
{
    make_conv(one, size, 30, 1, 1);
}

static void make_conv_vectors(struct one_node *one, int64_t size)
{
    make_conv(one, size, 10, 1, 8);
}

static void make_conv_groups(struct one_node *one, int64_t size)
{
    make_conv(one, size, 10, 16, 4);
    one->attrs.conv2d.groups = 2;
    one->inputs[1].shape.dims[2] = 2;
    one->inputs[1].size_bytes /= 2;
}

static void make_conv_tile(struct one_node *one, int64_t size)
{
    make_conv(one, size, 30, 16, 1);
}

static void make_conv_transpose(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_CONV2D_TRANSPOSE);
    add_floats(one, INF_SHAPE(1, size, 30, 1), false);
    add_floats(one, INF_SHAPE(size, 30, 2, 1), true);
    const int32_t shape[] = {1, 1, 1, 2};
    one->attrs.conv2d_transpose.pad_top = one->attrs.conv2d_transpose.pad_bottom =
        (int32_t)size - 1;
    one->attrs.conv2d_transpose.pad_left = one->attrs.conv2d_transpose.pad_right = 29;
    one_node_const(one, INF_DTYPE_I32, INF_SHAPE(4), shape);
}

static void make_depthwise(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_DEPTHWISE_CONV2D);
    add_floats(one, INF_SHAPE(1, size, 41, 3), false);
    add_floats(one, INF_SHAPE(size, 40, 3, 1), true);
}

// A pool of x [1, height, width, 2] in windows of `rows` rows and `columns` columns.
static void make_pool(struct one_node *one, enum inf_pool_kind kind, int64_t height, int64_t width,
                      int64_t rows, int64_t columns)
{
    one_node_init(one, INF_OP_POOL2D);
    one->attrs.pool2d.kind = kind;
    one->attrs.pool2d.padding = INF_PADDING_SAME;
    one->attrs.pool2d.kernel_h = (int32_t)rows;
    one->attrs.pool2d.kernel_w = (int32_t)columns;
    add_floats(one, INF_SHAPE(1, height, width, 2), false);
}

static void make_pool_pixel(struct one_node *one, int64_t size)
{
    make_pool(one, INF_POOL_AVERAGE, size, 20, size, 20);
    one->attrs.pool2d.padding = INF_PADDING_VALID;
}

// The windows are wider than x.
static void make_pool_strip(struct one_node *one, int64_t size)
{
    make_pool(one, INF_POOL_MAX, 21, 8 * size, 20, 16 * size);
}

// --- products of bytes ---

static void make_bytes(struct one_node *one, int64_t height, int64_t width, int64_t across,
                       int64_t channels, int64_t groups)
{
    one_node_init(one, INF_OP_QCONV2D);
    one->attrs.qconv2d.groups = (int32_t)groups;
    one->attrs.qconv2d.dtype = INF_DTYPE_I32;
    add_bytes(one, INF_SHAPE(1, height, width + across - 1, channels), false);
    add_bytes(one, INF_SHAPE(height, width, channels / groups, 6), true);
    for (int i = 0; i < 3; i++)
        one_node_absent(one);
}

static void make_bytes_pixel(struct one_node *one, int64_t size)
{
    make_bytes(one, size, 20, 1, 3, 1);
}

static void make_bytes_strip(struct one_node *one, int64_t size)
{
    make_bytes(one, size, 20, 8, 3, 1);
}

static void make_bytes_channels(struct one_node *one, int64_t size)
{
    make_bytes(one, 1, 1, 1, 2 * size + 1, 1);
}

static void make_bytes_depthwise(struct one_node *one, int64_t size)
{
    make_bytes(one, size, 20, 8, 3, 3);
}

static void make_bytes_product(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_QMATMUL);
    one->attrs.qmatmul.dtype = INF_DTYPE_I32;
    add_bytes(one, INF_SHAPE(2, 4 * size), false);
    add_bytes(one, INF_SHAPE(4 * size, 3), true);
    for (int i = 0; i < 3; i++)
        one_node_absent(one);
}

// --- rows ---

static void make_sum(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_REDUCE);
    one->attrs.reduce.axes = (struct inf_ints){.count = 1, .values = {1}};
    add_floats(one, INF_SHAPE(3, size, 1), false);
}

static void make_sum_of_axes(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_REDUCE);
    one->attrs.reduce.axes = (struct inf_ints){.count = 3, .values = {0, 2, 4}};
    add_floats(one, INF_SHAPE(size, 2, 2, 2, 3), false);
}

static void make_arg(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_ARG);
    one->attrs.arg.axis = 1;
    add_floats(one, INF_SHAPE(2, size), false);
}

static void make_softmax(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_SOFTMAX);
    one->attrs.softmax.axis = 1;
    add_floats(one, INF_SHAPE(2, size), false);
}

static void make_normalize(struct one_node *one, int64_t size)
{
    one_node_init(one, INF_OP_NORMALIZE);
    one->attrs.normalize.axes = (struct inf_ints){.count = 1, .values = {1}};
    one->attrs.normalize.epsilon = 1e-5f;
    add_floats(one, INF_SHAPE(2, size), false);
}

static const struct loop_case cases[] = {
    {.name = "product of two tensors", make_pair, 64000},
    {.name = "one row", make_row, 32000},
    {.name = "one row of vectors", make_row_of_vectors, 64000},
    {.name = "tile", make_tile, 3550},
    {.name = "tile of triples", make_tile_of_triples, 8000},
    {.name = "tile of vectors", make_tile_of_vectors, 64000},
    {.name = "one row, weights in blocks", make_few_rows_of_blocks, 64000},
    {.name = "8 rows, weights in blocks", make_eight_rows_of_blocks, 64000},
    {.name = "25 rows, weights in blocks", make_rows_of_blocks, 3550},
    {.name = "window, one pixel", make_conv_pixel, 690},
    {.name = "window, vectors", make_conv_vectors, 1500},
    {.name = "window, groups", make_conv_groups, 1500},
    {.name = "window, tile", make_conv_tile, 710},
    {.name = "window, transposed", make_conv_transpose, 690},
    {.name = "depthwise", make_depthwise, 1530},
    {.name = "pool, one pixel", make_pool_pixel, 2920},
    {.name = "pool, strip", make_pool_strip, 48},
    {.name = "bytes, one pixel", make_bytes_pixel, 240},
    {.name = "bytes, strip", make_bytes_strip, 67},
    {.name = "bytes, channels", make_bytes_channels, 14300},
    {.name = "bytes, depthwise", make_bytes_depthwise, 62},
    {.name = "bytes, product", make_bytes_product, 64000},
    {.name = "sum", make_sum, 32000 * 8},
    {.name = "sum, one invocation", make_sum, 32000, .alone = true},
    {.name = "sum of three axes", make_sum_of_axes, 21500},
    {.name = "sum of three axes, one invocation", make_sum_of_axes, 2690, .alone = true},
    {.name = "arg", make_arg, 64000},
    {.name = "softmax", make_softmax, 21500 * 8, .rounds = true},
    {.name = "softmax, one invocation", make_softmax, 21500, .alone = true, .rounds = true},
    {.name = "normalize", make_normalize, 21500, .rounds = true},
};

// Returns whether the device takes the node of this size, and if not, asserts that the reason is
// the number of iterations.
static bool is_taken(const struct loop_case *test, int64_t size, struct inf_device *device)
{
    struct inf_graph *graph = NULL;
    struct inf_error err = {0};
    struct one_node one;
    test->make(&one, size);
    cr_assert_eq(one_node_graph(&one, &graph, &err), INF_OK, "%s: %s", test->name, err.text);
    enum inf_code code = inf_device_supports(device, graph, 0, &err);
    cr_assert(code == INF_OK || strstr(err.text, "iterations of a shader") != NULL, "%s: %s",
              test->name, err.text);
    inf_graph_destroy(&graph);
    one_node_fini(&one);
    return code == INF_OK;
}

// Returns the largest size that the device takes.
static int64_t find_largest(const struct loop_case *test, struct inf_device *device)
{
    int64_t low = test->least, high = 2 * test->least;
    cr_assert(is_taken(test, low, device), "%s: size %lld is declined", test->name, (long long)low);
    cr_assert(!is_taken(test, high, device), "%s: size %lld is taken", test->name, (long long)high);
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        *(is_taken(test, middle, device) ? &low : &high) = middle;
    }
    return low;
}

static void expect_right(const struct loop_case *test, int64_t size, struct inf_device *device)
{
    struct inf_device *ref = open_ref();
    struct inf_error err = {0};
    struct one_node one, wanted;
    test->make(&one, size);
    test->make(&wanted, size);
    cr_assert_eq(one_node_run(&wanted, ref, &err), INF_OK, "%s: %s", test->name, err.text);
    cr_assert_eq(one_node_run(&one, device, &err), INF_OK, "%s: %s", test->name, err.text);
    const struct one_tensor *y = &one.outputs[0], *z = &wanted.outputs[0];
    bool floats = y->dtype == INF_DTYPE_F32;
    cr_assert(floats || memcmp(y->data, z->data, z->size_bytes) == 0, "%s: size %lld is wrong",
              test->name, (long long)size);
    for (size_t i = 0; floats && i < z->size_bytes / sizeof(float); i++) {
        float got = ((const float *)y->data)[i], want = ((const float *)z->data)[i];
        cr_assert(one_node_near((double)got, (double)want, 1e-7, test->rounds ? 3e-4 : 1e-6),
                  "%s: size %lld: element %zu is %g, ref has %g", test->name, (long long)size, i,
                  (double)got, (double)want);
    }
    one_node_fini(&one);
    one_node_fini(&wanted);
    inf_device_unref(&ref);
}

Test(vulkan_loops, are_as_long_as_the_driver_runs_them)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    uint32_t subgroup_size = gpu->subgroup_size;
    if (gpu->base.info.kind != INF_DEVICE_SOFTWARE)
        cr_skip_test("only loops of software devices are limited");
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        gpu->subgroup_size = cases[i].alone ? 0 : subgroup_size;
        int64_t largest = find_largest(&cases[i], device);
        expect_right(&cases[i], largest, device);
    }
    gpu->subgroup_size = subgroup_size;
    inf_device_unref(&device);
}

Test(vulkan_loops, are_not_limited_on_other_devices)
{
    struct inf_device *device = vulkan_open(NULL);
    ((struct vk_gpu *)device)->loops_max = UINT32_MAX;
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++)
        cr_expect(is_taken(&cases[i], 2 * cases[i].least, device), "%s", cases[i].name);
    inf_device_unref(&device);
}
