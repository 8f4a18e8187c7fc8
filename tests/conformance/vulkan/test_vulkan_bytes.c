// SPDX-License-Identifier: Apache-2.0
// Operators on bytes on the vulkan backend give the bytes of `ref`: at the floats where rounding
// changes, without the instruction for products of bytes, and at the ends of whole words. A device
// that cannot store bytes declines them.
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "backends/vulkan/device/gpu.h"
#include "tests/conformance/cases.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_kit.h"

TestSuite(vulkan_bytes, .timeout = 300);

// Runs the node on `ref` and on the device, and asserts that all bytes of the outputs are equal.
// Returns false if the device declines the node.
static bool check_agrees(struct one_node *one, struct inf_device *device, struct inf_device *ref,
                         const char *what)
{
    struct inf_error err = {0};
    cr_assert_eq(one_node_run(one, ref, &err), INF_OK, "%s: ref: %s", what, err.text);
    struct one_tensor wanted = one->outputs[0];
    memset(one->outputs, 0, sizeof one->outputs);
    enum inf_code code = one_node_run(one, device, &err);
    cr_assert(code == INF_OK || code == INF_UNSUPPORTED, "%s: %s", what, err.text);
    if (code == INF_OK) {
        const uint8_t *got = one->outputs[0].data, *bytes = wanted.data;
        cr_assert_eq(one->outputs[0].size_bytes, wanted.size_bytes);
        for (size_t i = 0; i < wanted.size_bytes; i++)
            cr_assert_eq(got[i], bytes[i], "%s: byte %zu is %u, ref has %u", what, i, got[i],
                         bytes[i]);
        one_node_drop_outputs(one);
    }
    one->outputs[0] = wanted;
    one_node_drop_outputs(one);
    return code == INF_OK;
}

// --- quantize and dequantize ---

#define FLOATS_MAX 4096

// Lists floats at which the result changes for this scale, their neighbours, and extreme floats.
static size_t list_floats(float *floats, float scale)
{
    static const float extremes[] = {0.0f,     -0.0f,   INFINITY, -INFINITY, NAN,   FLT_MAX,
                                     -FLT_MAX, FLT_MIN, 1e-45f,   -1e-45f,   1e30f, -1e30f,
                                     2.5e9f,   -2.5e9f, 1.0f,     -1.0f};
    size_t count = INF_ARRAY_LENGTH(extremes);
    memcpy(floats, extremes, sizeof extremes);
    for (int i = -300; i <= 300; i++) {
        float half = ((float)i + 0.5f) * scale;
        floats[count++] = half;
        floats[count++] = nextafterf(half, INFINITY);
        floats[count++] = nextafterf(half, -INFINITY);
        floats[count++] = (float)i * scale;
    }
    return count;
}

static void check_quantize(struct inf_device *device, struct inf_device *ref, float scale,
                           enum inf_dtype dtype, int zero, size_t less)
{
    float floats[FLOATS_MAX];
    struct one_node one;
    char what[64];
    snprintf(what, sizeof what, "scale %g, zero %d", (double)scale, zero);
    one_node_init(&one, INF_OP_QUANTIZE);
    one.attrs.quantize.dtype = dtype;
    size_t count = list_floats(floats, scale) - less;
    one_node_input(&one, INF_DTYPE_F32, INF_SHAPE((int64_t)count), floats);
    one_node_const(&one, INF_DTYPE_F32, INF_SHAPE(1), &scale);
    uint8_t byte = (uint8_t)zero;
    if (zero != 0)
        one_node_const(&one, dtype, INF_SHAPE(1), &byte);
    cr_expect(check_agrees(&one, device, ref, what), "%s was declined", what);
    one_node_fini(&one);
}

Test(vulkan_bytes, are_rounded_as_ref_rounds_floats)
{
    static const float scales[] = {0.1f, 1 / 3.0f, 1.0f, 0.0039215689f, 0.023528f, 7.5f, 3e-20f};
    struct inf_device *device = vulkan_open(NULL), *ref = open_ref();
    for (size_t i = 0; i < INF_ARRAY_LENGTH(scales); i++) {
        check_quantize(device, ref, scales[i], INF_DTYPE_U8, 0, 0);
        check_quantize(device, ref, scales[i], INF_DTYPE_U8, 128, i % 4);
        check_quantize(device, ref, scales[i], INF_DTYPE_I8, -128, i % 3);
        check_quantize(device, ref, scales[i], INF_DTYPE_I8, 77, 1);
    }
    inf_device_unref(&ref);
    inf_device_unref(&device);
}

Test(vulkan_bytes, are_not_made_with_scales_whose_steps_may_be_subnormal)
{
    static const float scales[] = {0.0f, -0.5f, 1e-38f, INFINITY, NAN};
    struct inf_device *device = vulkan_open(NULL);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(scales); i++) {
        struct one_node one;
        const float x[4] = {0.25f, 1, -1, 0};
        one_node_init(&one, INF_OP_QUANTIZE);
        one_node_input(&one, INF_DTYPE_F32, INF_SHAPE(4), x);
        one_node_const(&one, INF_DTYPE_F32, INF_SHAPE(1), &scales[i]);
        cr_expect_eq(one_node_run(&one, device, NULL), INF_UNSUPPORTED, "scale %g",
                     (double)scales[i]);
        one_node_fini(&one);
    }
    inf_device_unref(&device);
}

Test(vulkan_bytes, become_the_floats_of_ref)
{
    struct inf_device *device = vulkan_open(NULL), *ref = open_ref();
    for (int i = 0; i < 4; i++) {
        uint8_t bytes[256 + 3], zero = (uint8_t)(91 * i);
        const float scale = i % 2 == 0 ? 0.1f : 0.0078431377f;
        enum inf_dtype dtype = i < 2 ? INF_DTYPE_U8 : INF_DTYPE_I8;
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)(k * 7);
        struct one_node one;
        one_node_init(&one, INF_OP_DEQUANTIZE);
        one_node_input(&one, dtype, INF_SHAPE((int64_t)sizeof bytes - i), bytes);
        one_node_const(&one, INF_DTYPE_F32, INF_SHAPE(1), &scale);
        if (i > 0)
            one_node_const(&one, dtype, INF_SHAPE(1), &zero);
        cr_expect(check_agrees(&one, device, ref, "dequantize"), "dequantize was declined");
        one_node_fini(&one);
    }
    inf_device_unref(&ref);
    inf_device_unref(&device);
}

// --- products ---

// Runs cases of convolutions and products. Returns how many the device computed.
static uint32_t run_products(struct inf_device *device, uint32_t cases, const char *kernel)
{
    struct inf_device *ref = open_ref();
    uint32_t ran = 0, named = 0;
    for (uint32_t number = 0; number < cases; number++) {
        bool product = number % 4 == 3;
        struct random random = {.state = 4711 + number};
        struct one_node one;
        struct inf_graph *graph = NULL;
        one_node_init(&one, product ? INF_OP_QMATMUL : INF_OP_QCONV2D);
        (product ? make_qmatmul : make_qconv2d)(&one, &random, number);
        one.profiled = true;
        bool valid = one_node_graph(&one, &graph, NULL) == INF_OK;
        inf_graph_destroy(&graph);
        if (valid && check_agrees(&one, device, ref, product ? "qmatmul" : "qconv2d")) {
            ran++;
            named += one.kernel != NULL && strcmp(one.kernel, kernel) == 0;
        }
        one_node_fini(&one);
    }
    cr_expect(ran == 0 || named >= ran / 3, "%u of %u by %s", named, ran, kernel);
    inf_device_unref(&ref);
    return ran;
}

Test(vulkan_bytes, are_multiplied_by_the_instruction_for_four_bytes)
{
    struct inf_device *device = vulkan_open(NULL);
    if (!((struct vk_gpu *)device)->byte_products)
        cr_skip_test("the device has no such instruction");
    cr_expect_geq(run_products(device, 120, "qconv_dot"), 60);
    inf_device_unref(&device);
}

Test(vulkan_bytes, are_multiplied_without_the_instruction)
{
    struct inf_device *device = vulkan_open(NULL);
    ((struct vk_gpu *)device)->byte_products = false;
    cr_expect_geq(run_products(device, 60, "qconv"), 30);
    inf_device_unref(&device);
}

// --- devices without 8-bit storage ---

static void build_pad(struct one_node *one, const uint8_t *x)
{
    const int32_t around[] = {1, 2, 0, 1};
    one_node_init(one, INF_OP_PAD);
    one_node_input(one, INF_DTYPE_U8, INF_SHAPE(5, 7), x);
    one_node_const(one, INF_DTYPE_I32, INF_SHAPE(2, 2), around);
    const uint8_t value = 200;
    one_node_const(one, INF_DTYPE_U8, INF_SHAPE(1), &value);
}

static void build_pool(struct one_node *one, const uint8_t *x)
{
    one_node_init(one, INF_OP_POOL2D);
    one->attrs.pool2d.kind = INF_POOL_MAX;
    one->attrs.pool2d.kernel_h = one->attrs.pool2d.kernel_w = 2;
    one_node_input(one, INF_DTYPE_I8, INF_SHAPE(1, 5, 7, 1), x);
}

static void build_concat(struct one_node *one, const uint8_t *x)
{
    one_node_init(one, INF_OP_CONCAT);
    one->attrs.concat.axis = 1;
    one_node_input(one, INF_DTYPE_I8, INF_SHAPE(5, 3), x);
    one_node_input(one, INF_DTYPE_I8, INF_SHAPE(5, 2), x + 15);
    one_node_input(one, INF_DTYPE_I8, INF_SHAPE(5, 1), x + 25);
}

static void build_transpose(struct one_node *one, const uint8_t *x)
{
    one_node_init(one, INF_OP_TRANSPOSE);
    one_node_input(one, INF_DTYPE_BOOL, INF_SHAPE(5, 7), x);
}

static void build_table(struct one_node *one, const uint8_t *x)
{
    uint8_t table[256];
    for (int i = 0; i < 256; i++)
        table[i] = (uint8_t)(i * 5 + 1);
    one_node_init(one, INF_OP_LOOKUP);
    one_node_input(one, INF_DTYPE_U8, INF_SHAPE(35), x);
    one_node_const(one, INF_DTYPE_U8, INF_SHAPE(256), table);
}

Test(vulkan_bytes, are_moved_only_if_the_device_can_store_them)
{
    void (*const makers[])(struct one_node *, const uint8_t *) = {
        build_pad, build_pool, build_concat, build_transpose, build_table};
    struct inf_device *device = vulkan_open(NULL), *ref = open_ref();
    uint8_t x[35];
    for (size_t i = 0; i < INF_ARRAY_LENGTH(makers); i++) {
        struct one_node one;
        for (size_t k = 0; k < sizeof x; k++)
            x[k] = makers[i] == build_transpose ? k % 3 == 0 : (uint8_t)(k * 37 + 90);
        makers[i](&one, x);
        cr_expect(check_agrees(&one, device, ref, inf_op_info(one.op)->name), "%s was declined",
                  inf_op_info(one.op)->name);
        ((struct vk_gpu *)device)->byte_storage = false;
        cr_expect_not(check_agrees(&one, device, ref, inf_op_info(one.op)->name), "%s was computed",
                      inf_op_info(one.op)->name);
        ((struct vk_gpu *)device)->byte_storage = true;
        one_node_fini(&one);
    }
    ((struct vk_gpu *)device)->byte_storage = false;
    cr_expect_eq(run_products(device, 20, ""), 0, "products without 8-bit storage");
    inf_device_unref(&ref);
    inf_device_unref(&device);
}
