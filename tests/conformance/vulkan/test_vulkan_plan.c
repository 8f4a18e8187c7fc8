// SPDX-License-Identifier: Apache-2.0
// Plans over a device with its own memory. Nodes that the device cannot compute run on the
// reference device `ref`, and every output is returned, whichever device computed it.
#include <criterion/criterion.h>
#include <math.h>

#include "backends/device/counts.h"
#include "backends/exec/static_executable.h"
#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

#define ROWS     5
#define COLUMNS  7
#define ELEMENTS (ROWS * COLUMNS)

static struct inf_device *open_ref(void)
{
    struct inf_device *ref = NULL;
    struct inf_device_options options = {.slots = 2};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &options, NULL), INF_OK);
    return ref;
}

// Computes abs = |x| on the device, wide = abs as f64 and half = wide / 2 as f32 on `ref`, y =
// -half on the device, flat = y as one row, and same = x.
static struct inf_graph *make_graph(void)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(ROWS, COLUMNS));
    uint32_t abs = node(graph, INF_OP_UNARY, "abs", x);
    last_attrs(graph)->unary.kind = INF_UNARY_ABS;
    uint32_t wide = node(graph, INF_OP_CAST, "wide", abs);
    last_attrs(graph)->cast.dtype = INF_DTYPE_F64;
    uint32_t two = add_constant(graph, INF_DTYPE_F64, INF_SHAPE(1), &(double){2});
    uint32_t half = node(graph, INF_OP_BINARY, "half", wide, two);
    last_attrs(graph)->binary.kind = INF_BINARY_DIV;
    uint32_t narrow = node(graph, INF_OP_CAST, "narrow", half);
    uint32_t y = node(graph, INF_OP_UNARY, "y", narrow);
    uint32_t flat = node(graph, INF_OP_RESHAPE, "flat", y, ints(graph, 1, -1));
    add_output(graph, "y", y);
    add_output(graph, "abs", abs);
    add_output(graph, "half", half);
    add_output(graph, "flat", flat);
    add_output(graph, "same", x);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph;
}

// Runs the slot (one concurrent run) with x = first, first - 1, ... and checks all outputs.
static void run_slot(struct inf_executable *executable, uint32_t slot, float first, bool all)
{
    float x[ELEMENTS + 16], y[ELEMENTS], abs[ELEMENTS], flat[ELEMENTS], same[ELEMENTS];
    double half[ELEMENTS];
    struct inf_error err = {0};
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = first - (float)i;
    const void *inputs[] = {x};
    void *outputs[] = {y, all ? abs : NULL, all ? half : NULL, all ? flat : NULL,
                       all ? same : NULL};
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs, .slot = slot};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    for (int i = 0; i < ELEMENTS; i++) {
        cr_assert_eq(y[i], -fabsf(x[i]) / 2, "element %d", i);
        if (!all)
            continue;
        cr_assert_eq(abs[i], fabsf(x[i]), "element %d", i);
        cr_assert_eq(half[i], fabs((double)x[i]) / 2, "element %d", i);
        cr_assert_eq(flat[i], y[i], "element %d", i);
        cr_assert_eq(same[i], x[i], "element %d", i);
    }
}

Test(vulkan_plan, crosses_to_ref_and_back)
{
    struct inf_device *devices[] = {vulkan_open(NULL), open_ref()};
    struct inf_graph *graph = make_graph();
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, NULL, &err), INF_OK,
                 "%s", err.text);
    const struct inf_plan *plan = inf_executable_plan(executable);
    cr_assert_eq(plan->segment_count, 3u);
    cr_assert_eq(plan->segments[0].device, 0u);
    cr_assert_eq(plan->segments[1].device, 1u);
    cr_assert_eq(plan->segments[2].device, 0u);
    for (int i = 0; i < 4; i++)
        run_slot(executable, (uint32_t)i % 2, (float)i * 3, i < 3);
    inf_executable_destroy(&executable);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(inf_device_memory(devices[i]).buffer_bytes, 0u);
        inf_device_unref(&devices[i]);
    }
}

Test(vulkan_plan, has_no_second_device_with_memory_of_its_own)
{
    struct inf_device *devices[] = {open_ref(), vulkan_open(NULL)};
    struct inf_graph *graph = make_graph();
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    // `ref` supports every node, so the plan does not query the second device.
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, NULL, &err), INF_OK,
                 "%s", err.text);
    run_slot(executable, 0, 3, true);
    inf_executable_destroy(&executable);
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}

// --- inputs that the device reads in place ---

#define LARGE ((int64_t)1 << 18) // number of floats: 1 MiB

// Makes less = -x and flat = x reshaped, of floats, and twice = index + index, of integers.
static struct inf_graph *make_pair(int64_t count)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(count));
    uint32_t index = add_input(graph, "index", INF_DTYPE_I32, INF_SHAPE(count));
    add_output(graph, "less", node(graph, INF_OP_UNARY, "less", x));
    add_output(graph, "flat", node(graph, INF_OP_RESHAPE, "flat", x, ints(graph, 2, 2, -1)));
    add_output(graph, "twice", node(graph, INF_OP_BINARY, "twice", index, index));
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph;
}

struct pair {
    struct inf_device *devices[2];
    struct inf_executable *executable;
    int64_t count;
    float *x;
    int32_t *index;
    struct inf_mapping *mapping; // the mapping that contains both inputs
    float *less, *flat;
    int32_t *twice;
};

static void pair_init(struct pair *pair, int64_t count)
{
    struct inf_graph *graph = make_pair(count);
    size_t bytes = (size_t)count * 4;
    *pair = (struct pair){.devices = {vulkan_open(NULL), open_ref()}, .count = count};
    cr_assert_eq(
        inf_static_executable_create(&pair->executable, &graph, pair->devices, 2, NULL, NULL),
        INF_OK);
    size_t total = (4 * bytes + 8191) / 4096 * 4096; // rounded up to whole pages
    pair->x = aligned_alloc(4096, total);
    pair->index = (int32_t *)(void *)((char *)pair->x + 2 * bytes);
    cr_assert_eq(inf_mapping_create(&pair->mapping, pair->x, total, NULL), INF_OK);
    pair->less = malloc(bytes);
    pair->flat = malloc(bytes);
    pair->twice = malloc(bytes);
}

static void pair_fini(struct pair *pair)
{
    inf_mapping_destroy(&pair->mapping);
    free(pair->x);
    free(pair->less);
    free(pair->flat);
    free(pair->twice);
    inf_executable_destroy(&pair->executable);
    for (int i = 0; i < 2; i++)
        inf_device_unref(&pair->devices[i]);
}

// Runs the executable on x = first, first + 1, ..., stored from pair->x + `at`. Returns how many
// inputs the device read in place.
static uint64_t run_pair(struct pair *pair, int64_t at, float first)
{
    struct inf_error err = {0};
    uint64_t before = inf_device_get_count(pair->devices[0], INF_COUNT_INPUTS_IN_PLACE);
    for (int64_t i = 0; i < pair->count; i++) {
        pair->x[at + i] = first + (float)i;
        pair->index[i] = (int32_t)i;
    }
    struct inf_execution execution = {
        .inputs = (const void *[]){pair->x + at, pair->index},
        .mappings = (struct inf_mapping *const[]){pair->mapping, pair->mapping},
        .outputs = (void *[]){pair->less, pair->flat, pair->twice}};
    cr_assert_eq(inf_executable_run(pair->executable, &execution, &err), INF_OK, "%s", err.text);
    for (int64_t i = 0; i < pair->count; i++) {
        cr_assert_eq(pair->less[i], -(first + (float)i), "element %lld", (long long)i);
        cr_assert_eq(pair->flat[i], first + (float)i, "element %lld", (long long)i);
        cr_assert_eq(pair->twice[i], 2 * i, "element %lld", (long long)i);
    }
    return inf_device_get_count(pair->devices[0], INF_COUNT_INPUTS_IN_PLACE) - before;
}

Test(vulkan_plan, reads_large_floats_where_the_caller_has_them)
{
    struct pair pair;
    pair_init(&pair, LARGE);
    if (((struct vk_gpu *)pair.devices[0])->import_alignment == 0)
        cr_skip_test("the driver has no VK_EXT_external_memory_host");
    // Integers are copied, because the client could change them between the range check and their
    // use.
    cr_expect_eq(run_pair(&pair, 0, 1), 1u);
    cr_expect_eq(run_pair(&pair, 64, 2), 1u);
    cr_expect_eq(inf_device_get_count(pair.devices[0], INF_COUNT_IN_PLACE_BYTES), 2u * LARGE * 4);
    cr_expect_eq(inf_device_get_count(pair.devices[0], INF_COUNT_INPUTS_COPIED), 2u);
    // An input is copied if its alignment does not allow the device to read it in place.
    cr_expect_eq(run_pair(&pair, 1, 3), 0u);
    pair_fini(&pair);
}

Test(vulkan_plan, reads_smaller_floats_in_place_once_they_stay)
{
    struct pair pair;
    pair_init(&pair, 8192);
    if (((struct vk_gpu *)pair.devices[0])->import_alignment == 0)
        cr_skip_test("the driver has no VK_EXT_external_memory_host");
    cr_expect_eq(run_pair(&pair, 0, 1), 0u);
    cr_expect_eq(run_pair(&pair, 0, 2), 1u);
    cr_expect_eq(run_pair(&pair, 0, 3), 1u);
    cr_expect_eq(run_pair(&pair, 64, 4), 0u);
    cr_expect_eq(run_pair(&pair, 0, 5), 0u);
    pair_fini(&pair);
    pair_init(&pair, 100);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(run_pair(&pair, 0, (float)i), 0u);
    pair_fini(&pair);
}

// --- values stored in 16 bits ---

// Computes double = -x * 2, y = double / 2, same = |double| (so that double is stored), and z = -x
// times a matrix with an element that does not fit in 16 bits.
static struct inf_graph *make_wide_graph(void)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4));
    uint32_t less = node(graph, INF_OP_UNARY, "less", x);
    uint32_t twice = node(graph, INF_OP_BINARY, "double", less, floats(graph, INF_SHAPE(1), 2));
    last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    uint32_t y = node(graph, INF_OP_BINARY, "y", twice, floats(graph, INF_SHAPE(1), 2));
    last_attrs(graph)->binary.kind = INF_BINARY_DIV;
    uint32_t matrix = floats(graph, INF_SHAPE(4, 1), 70000, 1, 1, 1);
    uint32_t z = node(graph, INF_OP_MATMUL, "z", less, matrix);
    uint32_t same = node(graph, INF_OP_UNARY, "same", twice);
    last_attrs(graph)->unary.kind = INF_UNARY_ABS;
    add_output(graph, "y", y);
    add_output(graph, "z", z);
    add_output(graph, "same", same);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph;
}

// Returns true if the run reports that a value stored in 16 bits is not finite.
static bool run_wide(const struct inf_run_options *options, const float x[4], float y[4], float *z)
{
    struct inf_device *devices[] = {vulkan_open(NULL), open_ref()};
    struct inf_graph *graph = make_wide_graph();
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    if ((inf_device_info(devices[0])->precisions & INF_PRECISION_BIT(INF_PRECISION_FP16)) == 0)
        cr_skip_test("the device has no 16-bit storage");
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, options, &err),
                 INF_OK, "%s", err.text);
    float room[4 + 16] = {0};
    memcpy(room, x, 4 * sizeof(*x));
    struct inf_execution execution = {.inputs = (const void *[]){room},
                                      .outputs = (void *[]){y, z, NULL}};
    atomic_bool overflowed = false;
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    execution.overflowed = &overflowed;
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    cr_assert_eq(inf_executable_precision(executable), options->precision);
    inf_executable_destroy(&executable);
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
    return atomic_load(&overflowed);
}

Test(vulkan_plan, keeps_in_fp32_what_16_bits_do_not_hold)
{
    const float x[] = {-40000, 3, -0.25f, 1000};
    struct inf_node pinned = {.name = (char *)"double"};
    struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32}, fp16 = fp32;
    float y[4], z;
    cr_assert(!run_wide(&fp32, x, y, &z));
    cr_assert_eq(y[0], 40000);
    fp16.precision = INF_PRECISION_FP16;
    cr_assert(run_wide(&fp16, x, y, &z));
    cr_assert(isinf(y[0]), "80000 fits into 16 bits: %g", (double)y[0]);
    cr_assert_eq(y[3], -1000);
    // -x is a whole number that is exact in 16 bits, and the weights stay in 32 bits.
    cr_assert_eq(z, 40000.f * 70000.f - 3 + 0.25f - 1000);
    uint64_t hash = inf_node_hash(&pinned);
    fp16.pinned = &hash;
    fp16.pinned_count = 1;
    cr_assert(!run_wide(&fp16, x, y, &z));
    for (int i = 0; i < 4; i++)
        cr_assert_eq(y[i], -x[i], "element %d", i);
}

// Computes double = -x * 2, |double| and double / 2 for `count` numbers. double is stored, because
// two nodes read it.
static struct inf_graph *make_doubling(int64_t count)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(count));
    uint32_t less = node(graph, INF_OP_UNARY, "less", x);
    uint32_t twice = node(graph, INF_OP_BINARY, "double", less, floats(graph, INF_SHAPE(1), 2));
    last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    uint32_t same = node(graph, INF_OP_UNARY, "same", twice);
    last_attrs(graph)->unary.kind = INF_UNARY_ABS;
    uint32_t half = node(graph, INF_OP_BINARY, "half", twice, floats(graph, INF_SHAPE(1), 2));
    last_attrs(graph)->binary.kind = INF_BINARY_DIV;
    add_output(graph, "same", same);
    add_output(graph, "half", half);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph;
}

// Runs on an x that is 40000 at index `large` and 1 elsewhere; if `large` is -1, x is 1 everywhere.
// Returns true if the run reports that a doubled number is too large.
static bool range_check_fails(struct inf_executable *executable, int large)
{
    float x[16 + 16], same[16], half[16];
    struct inf_error err = {0};
    atomic_bool overflowed = false;
    for (int i = 0; i < 16; i++)
        x[i] = i == large ? 40000 : 1;
    struct inf_execution execution = {.inputs = (const void *[]){x},
                                      .outputs = (void *[]){same, half},
                                      .overflowed = &overflowed};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    return atomic_load(&overflowed);
}

Test(vulkan_plan, watches_every_number_in_16_bits_and_nothing_behind_the_last)
{
    struct inf_device *devices[] = {vulkan_open(NULL), open_ref()};
    const struct inf_run_options options = {.precision = INF_PRECISION_FP16};
    if ((inf_device_info(devices[0])->precisions & INF_PRECISION_BIT(INF_PRECISION_FP16)) == 0)
        cr_skip_test("the device has no 16-bit storage");
    for (int count = 1; count <= 13; count++) {
        struct inf_graph *graph = make_doubling(count);
        struct inf_executable *executable = NULL;
        cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, &options, NULL),
                     INF_OK);
        for (int large = 0; large < count; large++) {
            cr_expect(range_check_fails(executable, large), "number %d of %d", large, count);
            cr_expect(!range_check_fails(executable, -1), "none of %d after number %d", count,
                      large);
        }
        inf_executable_destroy(&executable);
    }
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}

Test(vulkan_plan, says_fp32_where_nothing_is_in_16_bits)
{
    struct inf_device *devices[] = {vulkan_open(NULL), open_ref()};
    struct inf_graph *graph = new_graph();
    struct inf_executable *executable = NULL;
    struct inf_run_options options = {.precision = INF_PRECISION_FP16};
    // Inputs and outputs are in fp32, and the graph has no intermediate values that could be stored
    // in 16 bits.
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4));
    add_output(graph, "y", node(graph, INF_OP_UNARY, "y", x));
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, &options, NULL),
                 INF_OK);
    cr_assert_eq(inf_executable_precision(executable), INF_PRECISION_FP32);
    inf_executable_destroy(&executable);
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}

// --- failures injected by a Vulkan layer that also counts calls ---

static struct vulkan_faults *install_faults(void)
{
    if (getenv("VULKAN_FAULT_LAYER") == NULL)
        cr_skip_test("another layer is tested");
    struct vulkan_faults *faults = vulkan_faults_install();
    cr_assert_not_null(faults);
    return faults;
}

Test(vulkan_plan, plans_anew_without_what_the_driver_cannot_build)
{
    struct vulkan_faults *faults = install_faults();
    struct inf_device *devices[] = {vulkan_open(NULL), open_ref()};
    struct inf_graph *graph = make_graph();
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    faults->pipeline = VK_ERROR_UNKNOWN;
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, NULL, &err), INF_OK,
                 "%s", err.text);
    const struct inf_plan *plan = inf_executable_plan(executable);
    cr_assert_eq(plan->segment_count, 1u);
    cr_assert_eq(plan->segments[0].device, 1u);
    run_slot(executable, 0, 3, true);
    inf_executable_destroy(&executable);
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}

#define SIDE    16
#define RESULTS ((SIDE - 2) * (SIDE - 2))

// Makes y [1,14,14,1], the convolution of x [1,16,16,1] with a 3x3 filter, without padding.
static struct inf_graph *make_convolution(void)
{
    struct inf_graph *graph = new_graph();
    float filter[9];
    for (int i = 0; i < 9; i++)
        filter[i] = (float)(i * i - 20);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, SIDE, SIDE, 1));
    uint32_t w = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 1, 1), filter);
    uint32_t y = node(graph, INF_OP_CONV2D, "y", x, w);
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph;
}

static void run_convolution(struct inf_device *const *devices, uint32_t count, float *y)
{
    struct inf_graph *graph = make_convolution();
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, count, NULL, &err),
                 INF_OK, "%s", err.text);
    cr_assert_eq(inf_executable_plan(executable)->segments[0].device, 0u);
    float x[SIDE * SIDE + 16];
    for (int i = 0; i < SIDE * SIDE; i++)
        x[i] = (float)(i % 23 - 11);
    struct inf_execution execution = {.inputs = (const void *[]){x}, .outputs = (void *[]){y}};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_executable_destroy(&executable);
}

Test(vulkan_plan, takes_fewer_pixels_where_the_driver_cannot_build_many)
{
    struct vulkan_faults *faults = install_faults();
    struct inf_device *devices[] = {vulkan_open(NULL), open_ref()};
    float y[RESULTS], wanted[RESULTS];
    run_convolution(devices + 1, 1, wanted);
    faults->pipeline = VK_ERROR_UNKNOWN;
    // The driver refuses pipelines whose specialisation constant 2, the number of pixels that one
    // thread computes, has the value below.
    faults->pipeline_word = 2;
    for (uint32_t pixels = 16; pixels > 1; pixels /= 2) {
        faults->pipeline_value = pixels;
        run_convolution(devices, 2, y);
        for (int i = 0; i < RESULTS; i++)
            cr_assert_eq(y[i], wanted[i], "element %d", i); // whole numbers are not rounded
    }
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}

Test(vulkan_plan, gives_all_memory_back_however_often)
{
    struct vulkan_faults *faults = install_faults();
    struct inf_device *devices[] = {vulkan_open(NULL), open_ref()};
    float y[RESULTS];
    for (int i = 0; i < 100; i++) {
        run_convolution(devices, 2, y);
        cr_assert_eq(faults->allocations, 0, "allocations are left after cycle %d", i);
        cr_assert_eq(inf_device_memory(devices[0]).weight_bytes, 0u);
        cr_assert_eq(inf_device_memory(devices[0]).buffer_bytes, 0u);
    }
    for (int i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}
