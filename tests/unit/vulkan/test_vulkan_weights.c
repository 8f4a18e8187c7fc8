// SPDX-License-Identifier: Apache-2.0
// Weights of programs in device memory. They are uploaded by the first run, evicted while the
// program is idle and other programs need the memory, and uploaded again by the next run.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/base/thread.h"
#include "backends/device/counts.h"
#include "backends/vulkan/device/device_create.h"
#include "backends/vulkan/device/transfer.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"

#define SIDE 1024
// Weight bytes of one program: a matrix that is packed for the kernel, and a vector that is not
// packed.
#define WEIGHTS ((uint64_t)(SIDE * SIDE + SIDE) * sizeof(float))
#define MIB     ((uint64_t)1 << 20)

static struct vulkan_faults *faults;

static void install_hooks(void)
{
    faults = vulkan_faults_install();
    cr_assert_not_null(faults);
}

TestSuite(vulkan_weights, .init = install_hooks, .timeout = 120);

// A program for y [1024] = x [1024] times a matrix with `factor` on its diagonal, plus a vector of
// 1, 2, ...
struct product {
    struct inf_graph *graph;
    struct inf_program *program;
    struct inf_buffer *x, *y;
    uint32_t x_value, y_value;
    float factor;
};

static uint32_t add_constant(struct inf_graph *graph, const struct inf_shape *shape,
                             const float *elements)
{
    uint32_t value;
    size_t size;
    cr_assert(inf_shape_bytes(shape, INF_DTYPE_F32, &size));
    cr_assert_eq(inf_graph_add_value(graph, "", INF_DTYPE_F32, shape, &value, NULL), INF_OK);
    graph->values[value].data = inf_blob_create(size);
    memcpy(graph->values[value].data->data, elements, size);
    return value;
}

static void build_graph(struct product *product, uint32_t nodes[2])
{
    const struct inf_shape row = INF_SHAPE(1, SIDE), square = INF_SHAPE(SIDE, SIDE);
    struct inf_graph *graph;
    float *elements = calloc(SIDE * SIDE, sizeof(float)), ordinals[SIDE];
    uint32_t operands[2];
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    product->graph = graph;
    for (size_t i = 0; i < SIDE; i++) {
        elements[i * SIDE + i] = product->factor;
        ordinals[i] = (float)i + 1;
    }
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &row, &product->x_value, NULL),
                 INF_OK);
    operands[0] = product->x_value;
    operands[1] = add_constant(graph, &square, elements);
    free(elements);
    cr_assert_eq(
        inf_graph_add_node(graph, INF_OP_MATMUL, "product", "", operands, 2, 1, &nodes[0], NULL),
        INF_OK);
    operands[0] = graph->nodes[nodes[0]].outputs[0];
    operands[1] = add_constant(graph, &row, ordinals);
    cr_assert_eq(
        inf_graph_add_node(graph, INF_OP_BINARY, "sum", "", operands, 2, 1, &nodes[1], NULL),
        INF_OK);
    product->y_value = graph->nodes[nodes[1]].outputs[0];
    for (int i = 0; i < 2; i++) {
        struct inf_value *value = &graph->values[graph->nodes[nodes[i]].outputs[0]];
        value->dtype = INF_DTYPE_F32;
        value->shape = row;
    }
}

static struct inf_buffer *make_buffer(struct inf_device *device)
{
    struct inf_buffer *buffer = NULL;
    struct inf_error err = {0};
    cr_assert_eq(
        inf_buffer_alloc(&buffer, device, 2 * SIDE * sizeof(float), INF_BUFFER_STAGING, &err),
        INF_OK, "%s", err.text);
    return buffer;
}

static void product_init(struct product *product, struct inf_device *device, float factor)
{
    uint32_t nodes[2];
    struct inf_error err = {0};
    *product = (struct product){.factor = factor};
    build_graph(product, nodes);
    product->x = make_buffer(device);
    product->y = make_buffer(device);
    const struct inf_segment segment = {
        .graph = product->graph, .nodes = nodes, .node_count = 2, .slots = 1};
    cr_assert_eq(inf_program_compile(&product->program, device, &segment, 0, &err), INF_OK, "%s",
                 err.text);
}

static void product_fini(struct product *product)
{
    inf_program_destroy(&product->program);
    inf_buffer_free(&product->x);
    inf_buffer_free(&product->y);
    inf_graph_destroy(&product->graph);
}

static enum inf_code product_run(struct product *product, struct inf_device *device, float first,
                                 struct inf_error *err)
{
    struct inf_binding bindings[8] = {0};
    float *x = inf_buffer_host(product->x);
    for (int i = 0; i < SIDE; i++)
        x[i] = first + (float)i;
    for (uint32_t v = 0; v < product->graph->value_count; v++)
        bindings[v].buffer = product->y; // the value between the two nodes is stored after y
    bindings[product->graph->nodes[0].outputs[0]].offset = SIDE * sizeof(float);
    bindings[product->x_value].buffer = product->x;
    struct inf_run run = {.bindings = bindings};
    struct inf_ticket ticket;
    INF_TRY(inf_program_run(product->program, &run, &ticket, err));
    return inf_device_wait(device, ticket, UINT64_MAX, err);
}

// Returns true if y is the result for the operands first, first + 1, ... The numbers are small
// integers, so nothing is rounded.
static bool product_holds(const struct product *product, float first)
{
    const float *y = inf_buffer_host(product->y);
    for (int i = 0; i < SIDE; i++)
        if (y[i] != (first + (float)i) * product->factor + (float)i + 1)
            return false;
    return true;
}

static void expect_runs(struct product *product, struct inf_device *device, float first)
{
    struct inf_error err = {0};
    cr_assert_eq(product_run(product, device, first, &err), INF_OK, "%s", err.text);
    cr_assert(product_holds(product, first), "factor %g", (double)product->factor);
}

static uint64_t read_count(const struct inf_device *device, enum inf_device_count count)
{
    return inf_device_get_count(device, count);
}

// Limits device memory to `bytes` more than the memory in use.
static void leave_room(struct inf_device *device, uint64_t bytes)
{
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct vk_device *made;
    cr_assert_eq(vk_gpu_acquire(gpu, &made, NULL), INF_OK);
    gpu->budget = false;
    for (uint32_t i = 0; i < gpu->memory.memoryHeapCount; i++)
        gpu->memory.memoryHeaps[i].size = made->heap_bytes[i] + bytes;
    vk_device_unref(&made);
}

static void uploads_lazily(void)
{
    struct inf_device *device = vulkan_open(NULL);
    struct product product;
    product_init(&product, device, 3);
    cr_expect_eq(inf_device_memory(device).weight_bytes, 0u);
    cr_expect_eq(read_count(device, INF_COUNT_UPLOADS), 0u);
    cr_expect_geq(inf_program_weight_bytes(product.program), WEIGHTS);
    uint64_t uploaded = 0;
    for (int i = 0; i < 3; i++) {
        expect_runs(&product, device, (float)i);
        cr_expect_eq(read_count(device, INF_COUNT_UPLOADS), 1u);
        uploaded = uploaded == 0 ? read_count(device, INF_COUNT_UPLOAD_BYTES) : uploaded;
        cr_expect_geq(uploaded, WEIGHTS);
        cr_expect_eq(read_count(device, INF_COUNT_UPLOAD_BYTES), uploaded);
        cr_expect_eq(inf_device_memory(device).weight_bytes,
                     inf_program_weight_bytes(product.program));
    }
    product_fini(&product);
    cr_expect_eq(inf_device_memory(device).weight_bytes, 0u);
    cr_expect_eq(faults->allocations, 0);
    inf_device_unref(&device);
}

Test(vulkan_weights, are_uploaded_by_the_first_run)
{
    uploads_lazily();
}

Test(vulkan_weights, are_uploaded_to_memory_that_the_host_cannot_see)
{
    faults->discrete = true;
    uploads_lazily();
    // The weights exceed 4 MiB, so they are uploaded in two submissions. Three runs follow.
    cr_expect_eq(faults->submits, 2u + 3u);
}

Test(vulkan_weights, are_uploaded_by_a_queue_that_only_copies)
{
    faults->discrete = true;
    faults->copies = true;
    uploads_lazily();
    cr_expect_eq(faults->copy_pools, 1u);
    cr_expect_eq(faults->submits, 2u + 3u);
}

// The bytes of a large transfer, and of small ones behind it. Their sizes are no multiples of a
// word.
#define LARGE ((size_t)41 << 20)
static const size_t sizes[] = {1, 0, LARGE + 3, 255, 70001, 5};

// Writes bytes to the device and reads them back, with room for two staging buffers of 4 MiB.
static void move_much(void)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_device *made;
    struct vk_span spans[INF_ARRAY_LENGTH(sizes)] = {0};
    struct vk_transfer out[INF_ARRAY_LENGTH(sizes)], in[INF_ARRAY_LENGTH(sizes)];
    struct inf_error err = {0};
    cr_assert_eq(vk_gpu_acquire((struct vk_gpu *)device, &made, NULL), INF_OK);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sizes); i++) {
        uint8_t *bytes = malloc(sizes[i] + 1);
        cr_assert_eq(vk_span_alloc(&spans[i], made, sizes[i], VK_SPAN_WEIGHTS, &err), INF_OK, "%s",
                     err.text);
        for (size_t k = 0; k < sizes[i]; k++)
            bytes[k] = (uint8_t)(k * 7919 / 251 + i);
        out[i] = (struct vk_transfer){&spans[i], bytes, sizes[i]};
        in[i] = (struct vk_transfer){&spans[i], calloc(1, sizes[i] + 1), sizes[i]};
    }
    leave_room(device, 9 * MIB);
    cr_assert_eq(vk_transfer_write(made, out, INF_ARRAY_LENGTH(sizes), &err), INF_OK, "%s",
                 err.text);
    cr_assert_eq(vk_transfer_read(made, in, INF_ARRAY_LENGTH(sizes), &err), INF_OK, "%s", err.text);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sizes); i++) {
        cr_expect_eq(memcmp(in[i].bytes, out[i].bytes, sizes[i]), 0, "transfer %zu", i);
        free(in[i].bytes);
        free(out[i].bytes);
        vk_span_free(made, &spans[i]);
    }
    vk_device_unref(&made);
    cr_expect_eq(faults->allocations, 0);
    inf_device_unref(&device);
}

Test(vulkan_weights, go_through_two_buffers_whatever_their_size)
{
    faults->discrete = true;
    move_much();
    cr_expect_eq(faults->submits, 2u * 11u);
}

Test(vulkan_weights, go_through_two_buffers_to_a_queue_that_only_copies)
{
    faults->discrete = true;
    faults->copies = true;
    move_much();
    cr_expect_eq(faults->copy_pools, 2u);
}

Test(vulkan_weights, leave_no_memory_behind_if_the_device_is_lost_during_a_transfer)
{
    struct inf_error err = {0};
    faults->discrete = true;
    struct inf_device *device = vulkan_open(NULL);
    struct product product;
    product_init(&product, device, 3);
    faults->wait = VK_ERROR_DEVICE_LOST;
    cr_expect_eq(product_run(&product, device, 1, &err), INF_UNAVAILABLE);
    cr_expect_eq(err.reason, INF_REASON_DEVICE_LOST, "%s", err.text);
    faults->wait = 0;
    product_fini(&product);
    cr_expect_eq(inf_device_memory(device).weight_bytes, 0u);
    cr_expect_eq(faults->allocations, 0);
    inf_device_unref(&device);
}

static void make_room(void)
{
    struct inf_device *device = vulkan_open(NULL);
    struct product products[3];
    for (int i = 0; i < 3; i++)
        product_init(&products[i], device, (float)i + 2);
    expect_runs(&products[0], device, 1);
    leave_room(device, 6 * MIB);
    expect_runs(&products[1], device, 2);
    cr_expect_eq(read_count(device, INF_COUNT_EVICTIONS), 0u);
    // Device memory has room for the weights of two programs. Each run of the third program evicts
    // the weights of the program that ran longest ago.
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 3; i++) {
            uint64_t before = read_count(device, INF_COUNT_EVICTIONS);
            struct product *product = &products[(i + 2) % 3];
            expect_runs(product, device, (float)(round + i));
            cr_expect_eq(read_count(device, INF_COUNT_EVICTIONS), before + 1, "run %d of round %d",
                         i, round);
            expect_runs(product, device, (float)(round + i) + 1);
            cr_expect_eq(read_count(device, INF_COUNT_EVICTIONS), before + 1);
            cr_expect_eq(inf_device_memory(device).weight_bytes,
                         2 * inf_program_weight_bytes(product->program));
        }
    cr_expect_eq(read_count(device, INF_COUNT_UPLOADS), 2u + 9u);
    for (int i = 0; i < 3; i++)
        product_fini(&products[i]);
    cr_expect_eq(inf_device_memory(device).weight_bytes, 0u);
    cr_expect_eq(faults->allocations, 0);
    inf_device_unref(&device);
}

Test(vulkan_weights, are_evicted_from_the_least_recently_run_program)
{
    make_room();
}

Test(vulkan_weights, are_evicted_from_memory_that_the_host_cannot_see)
{
    faults->discrete = true;
    make_room();
}

Test(vulkan_weights, are_evicted_by_a_queue_that_only_copies)
{
    faults->discrete = true;
    faults->copies = true;
    make_room();
    cr_expect_geq(faults->copy_pools, 11u + 9u);
}

Test(vulkan_weights, are_evicted_if_a_setting_limits_memory)
{
    const uint64_t most = 12 * MIB;
    struct inf_device_options options = {.slots = 1, .memory_bytes = most};
    struct inf_device *device = vulkan_open_with(&options);
    struct product products[3];
    struct vk_device *made;
    cr_expect_eq(inf_device_info(device)->memory_bytes, most);
    for (int i = 0; i < 3; i++)
        product_init(&products[i], device, (float)i + 2);
    cr_assert_eq(vk_gpu_acquire((struct vk_gpu *)device, &made, NULL), INF_OK);
    for (int i = 0; i < 6; i++) {
        expect_runs(&products[i % 3], device, (float)i);
        cr_expect_leq(made->slab_bytes, most);
    }
    cr_expect_gt(read_count(device, INF_COUNT_EVICTIONS), 0u);
    struct inf_buffer *buffer = NULL;
    struct inf_error err = {0};
    cr_expect_eq(inf_buffer_alloc(&buffer, device, most + 1, INF_BUFFER_ARENA, &err),
                 INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_DEVICE_OOM);
    cr_expect_not_null(strstr(err.text, "gpu_memory_bytes"), "%s", err.text);
    vk_device_unref(&made);
    for (int i = 0; i < 3; i++)
        product_fini(&products[i]);
    inf_device_unref(&device);
}

Test(vulkan_weights, are_evicted_for_buffers)
{
    struct inf_device *device = vulkan_open(NULL);
    struct inf_buffer *buffer = NULL;
    struct product product;
    product_init(&product, device, 5);
    expect_runs(&product, device, 1);
    leave_room(device, MIB);
    cr_assert_eq(inf_buffer_alloc(&buffer, device, 8 * MIB, INF_BUFFER_ARENA, NULL), INF_OK);
    cr_expect_eq(inf_device_memory(device).weight_bytes, 0u);
    // No other idle program has weights that could be evicted.
    struct inf_error err = {0};
    cr_assert_eq(product_run(&product, device, 2, &err), INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_DEVICE_OOM);
    cr_expect_not_null(strstr(err.text, "vulkan0"), "%s", err.text);
    cr_expect_not_null(strstr(err.text, "weights of"), "%s", err.text);
    cr_expect(inf_device_caused_error(&err));
    cr_expect_eq(inf_device_memory(device).weight_bytes, 0u);
    inf_buffer_free(&buffer);
    expect_runs(&product, device, 3);
    product_fini(&product);
    inf_device_unref(&device);
}

Test(vulkan_weights, are_uploaded_once_the_driver_has_memory)
{
    struct inf_device *device = vulkan_open(NULL);
    struct product product, other;
    struct inf_error err = {0};
    product_init(&product, device, 5);
    product_init(&other, device, 6);
    expect_runs(&other, device, 1);
    faults->allocate = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    // The weights were evicted and freed, but the simulated driver still reports that it is out of
    // memory.
    cr_assert_eq(product_run(&product, device, 1, &err), INF_EXHAUSTED);
    cr_expect_eq(err.reason, INF_REASON_DEVICE_OOM, "%s", err.text);
    cr_expect_eq(read_count(device, INF_COUNT_EVICTIONS), 1u);
    cr_assert_eq(product_run(&other, device, 1, &err), INF_EXHAUSTED);
    faults->allocate = 0;
    expect_runs(&product, device, 2);
    expect_runs(&other, device, 3);
    cr_expect_eq(inf_device_health(device), INF_DEVICE_OK);
    product_fini(&product);
    product_fini(&other);
    inf_device_unref(&device);
}

// --- weights that other threads evict between runs ---

// How many runs of each worker must have enough memory.
#define WORKER_RUNS 20

struct worker {
    struct inf_thread thread;
    struct inf_device *device;
    struct product product;
    bool ok;
};

// Repeats runs until WORKER_RUNS of them had enough memory. The number of attempts is not limited,
// because on a busy machine one run of another worker may outlast many attempts. Workers that are
// done are idle, so their memory becomes free for the others.
static void run_thread(void *argument)
{
    struct worker *worker = argument;
    int runs = 0;
    worker->ok = true;
    for (int i = 0; runs < WORKER_RUNS && worker->ok; i++) {
        struct inf_error err = {0};
        float first = (float)(i % 100);
        enum inf_code code = product_run(&worker->product, worker->device, first, &err);
        worker->ok = code == INF_OK ? product_holds(&worker->product, first)
                                    : err.reason == INF_REASON_DEVICE_OOM;
        runs += code == INF_OK;
        // while the program is idle, its weights may be evicted
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

Test(vulkan_weights, are_not_evicted_during_a_run)
{
    struct inf_device *device = vulkan_open(NULL);
    struct worker workers[4];
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){.device = device};
        product_init(&workers[i].product, device, (float)i + 2);
    }
    leave_room(device, 10 * MIB);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(inf_thread_start(&workers[i].thread, "worker", run_thread, &workers[i], NULL),
                     INF_OK);
    for (int i = 0; i < 4; i++) {
        inf_thread_join(&workers[i].thread);
        cr_assert(workers[i].ok, "worker %d", i);
    }
    // Two programs fit at a time, so at least two of the four were evicted for others.
    cr_expect_geq(read_count(device, INF_COUNT_EVICTIONS), 2u);
    for (int i = 0; i < 4; i++)
        product_fini(&workers[i].product);
    cr_expect_eq(inf_device_memory(device).weight_bytes, 0u);
    inf_device_unref(&device);
}
