// SPDX-License-Identifier: Apache-2.0
// Products with weights in blocks on the vulkan backend. The weights stay packed on the device, and
// values behind the end of a row of x change no result.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/device/counts.h"
#include "tests/conformance/cases.h"
#include "tests/support/device/vulkan_kit.h"

TestSuite(vulkan_blocks, .timeout = 120);

// A product of x [rows, depth], which is 1 but for the last row, which is `last`, with `columns`
// columns. All numbers are 2^bits - 1, and column c has scale c + 1 and the bias 0.5.
struct sample {
    int bits, block;
    int64_t rows, depth, columns;
    float last;
    enum inf_dtype zeros; // INF_DTYPE_U8 or INF_DTYPE_F32; all zero points are 1. 0: none
};

static void fill_floats(float *floats, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        floats[i] = value;
}

static void build_product(struct one_node *one, const struct sample *sample)
{
    static float floats[8192];
    static uint8_t bytes[16384];
    int64_t columns = sample->columns, blocks = (sample->depth + sample->block - 1) / sample->block;
    one_node_init(one, INF_OP_MATMUL_BLOCKS);
    one->attrs.matmul_blocks.bits = sample->bits;
    one->attrs.matmul_blocks.block = sample->block;
    fill_floats(floats, sample->rows * sample->depth, 1);
    fill_floats(floats + (sample->rows - 1) * sample->depth, sample->depth, sample->last);
    one_node_input(one, INF_DTYPE_F32, INF_SHAPE(sample->rows, sample->depth), floats);
    memset(bytes, 0xff, sizeof bytes);
    one_node_const(one, INF_DTYPE_U8, INF_SHAPE(columns, blocks, sample->block * sample->bits / 8),
                   bytes);
    for (int64_t i = 0; i < columns * blocks; i++)
        floats[i] = (float)(i / blocks + 1);
    one_node_const(one, INF_DTYPE_F32, INF_SHAPE(columns * blocks), floats);
    memset(bytes, 1, sizeof bytes);
    fill_floats(floats, columns * blocks, 1);
    if (sample->zeros == INF_DTYPE_U8)
        one_node_const(one, INF_DTYPE_U8, INF_SHAPE(columns, (blocks + 3) / 4 * 4), bytes);
    else if (sample->zeros == INF_DTYPE_F32)
        one_node_const(one, INF_DTYPE_F32, INF_SHAPE(columns * blocks), floats);
    else
        one_node_absent(one);
    fill_floats(floats, columns, 0.5f);
    one_node_const(one, INF_DTYPE_F32, INF_SHAPE(columns), floats);
}

Test(vulkan_blocks, give_the_sums_of_the_definition)
{
    // The depths are no multiples of a word, or not even of four numbers.
    const struct sample samples[] = {
        {2, 16, 2, 17, 3, NAN, 0},
        {4, 32, 3, 36, 33, INFINITY, INF_DTYPE_U8},
        {8, 16, 9, 31, 5, NAN, INF_DTYPE_F32},
        {4, 16, 17, 100, 34, 0, INF_DTYPE_U8},
        {2, 32, 4, 44, 64, -1, INF_DTYPE_F32},
        {8, 16, 23, 18, 6, NAN, INF_DTYPE_U8},
        // From 24 rows on, weights are converted to floats first.
        {4, 16, 24, 17, 3, NAN, 0},
        {4, 32, 40, 100, 35, INFINITY, INF_DTYPE_U8},
        {2, 16, 33, 30, 48, NAN, INF_DTYPE_F32},
        {8, 16, 25, 52, 19, 0, 0},
    };
    struct inf_device *device = vulkan_open(NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(samples); i++) {
        const struct sample *sample = &samples[i];
        struct one_node one;
        struct inf_error err = {0};
        build_product(&one, sample);
        cr_assert_eq(one_node_run(&one, device, &err), INF_OK, "sample %zu: %s", i, err.text);
        const float *y = one.outputs[0].data;
        int number = (1 << sample->bits) - 1;
        int weight = number - (sample->zeros != 0 ? 1 : 1 << (sample->bits - 1));
        for (int64_t at = 0; at < (sample->rows - 1) * sample->columns; at++) {
            int64_t column = at % sample->columns;
            float wanted = (float)(sample->depth * weight * (column + 1)) + 0.5f;
            cr_assert_float_eq(y[at], wanted, wanted * 1e-6f,
                               "sample %zu: element %d is %g, not %g", i, (int)at, (double)y[at],
                               (double)wanted);
        }
        one_node_fini(&one);
    }
    inf_device_unref(&device);
}

static void check_bytes(int64_t rows)
{
    const struct sample sample = {4, 32, rows, 256, 64, 1, INF_DTYPE_U8};
    struct inf_device *device = vulkan_open(NULL);
    struct one_node one;
    build_product(&one, &sample);
    uint64_t before = inf_device_get_count(device, INF_COUNT_UPLOAD_BYTES);
    cr_assert_eq(one_node_run(&one, device, NULL), INF_OK);
    uint64_t bytes = inf_device_get_count(device, INF_COUNT_UPLOAD_BYTES) - before;
    // Half a byte for each number, a float and a byte for each block, and the bias. In FP32 the
    // weights alone have 65,536 bytes.
    uint64_t least = 256 * 64 / 2 + 8 * 64 * 5 + 64 * 4;
    cr_expect(bytes >= least && bytes <= least + 512, "%d bytes were uploaded, wanted %d",
              (int)bytes, (int)least);
    one_node_fini(&one);
    inf_device_unref(&device);
}

Test(vulkan_blocks, stay_packed_on_the_device)
{
    check_bytes(1);
    check_bytes(30);
}
