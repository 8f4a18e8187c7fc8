// SPDX-License-Identifier: Apache-2.0
// Compares the memory that a device reports with the memory that the allocator has handed out. A
// model is loaded, warmed up and unloaded on each device.
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/model/model.h"
#include "backends/registry.h"
#include "tests/support/models/tfjs_case.h"

TestSuite(memory, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

// Returns the number of bytes that malloc() has handed out, including mapped blocks.
static uint64_t allocated_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static uint64_t counted_bytes(struct inf_device *device)
{
    struct inf_device_memory memory = inf_device_memory(device);
    return memory.held.bytes + memory.weight_bytes + memory.buffer_bytes;
}

// Writes a model with two dense layers of 1536 x 1536, which have 18 MiB of weights.
static void write_model(void)
{
    static const char document[] =
        "{'modelTopology':{'class_name':'Sequential','config':["
        "{'class_name':'Dense','config':{'name':'a','units':1536,'use_bias':false,"
        "'batch_input_shape':[null,1536]}},"
        "{'class_name':'Dense','config':{'name':'b','units':1536,'use_bias':false}}]},"
        "'weightsManifest':[{'paths':['w.bin'],'weights':["
        "{'name':'a/kernel','shape':[1536,1536],'dtype':'float32'},"
        "{'name':'b/kernel','shape':[1536,1536],'dtype':'float32'}]}]}";
    size_t size = (size_t)2 * 1536 * 1536 * 4;
    float *weights = calloc(1, size);
    inf_tfjs_case_write("w.bin", weights, size);
    free(weights);
    cr_assert_eq(inf_tfjs_case_import_text(document), INF_OK, "%s", inf_tfjs_case.err.text);
}

static void check_within(uint64_t counted, uint64_t truth)
{
    uint64_t error = counted > truth ? counted - truth : truth - counted;
    cr_assert_leq(error, truth / 50, "%lu counted, %lu allocated", counted, truth);
}

// Asserts that the memory that the model reports equals the memory that its device has counted.
static void check_sum(struct inf_model *model, struct inf_device *device)
{
    struct inf_model_memory memory = inf_model_memory(model);
    struct inf_device_memory counted = inf_device_memory(device);
    cr_assert_eq(memory.const_bytes, counted.held.bytes);
    cr_assert_eq(memory.constants, counted.held.tensors);
    cr_assert_eq(memory.const_blobs, counted.held.buffers);
    cr_assert_eq(memory.weight_bytes, counted.weight_bytes);
    cr_assert_eq(memory.arena_bytes, counted.buffer_bytes);
}

static void check_device(const char *backend)
{
    struct inf_device *device = NULL, *ref = NULL;
    struct inf_device_options options = {.slots = 2, .threads = 1};
    cr_assert_eq(inf_device_open(&ref, inf_registry_find("ref"), 0, &options, NULL), INF_OK);
    cr_assert_eq(inf_device_open(&device, inf_registry_find(backend), 0, &options, NULL), INF_OK);
    cr_assert_eq(counted_bytes(device), 0u);
    uint64_t before = allocated_bytes();
    write_model();
    struct inf_graph *graph = inf_tfjs_case.graph;
    inf_tfjs_case.graph = NULL;
    struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_model *model = NULL;
    cr_assert_eq(inf_model_create(&model, &graph, &ref, 1, &passes, NULL), INF_OK);
    struct inf_model_memory memory = inf_model_memory(model);
    cr_assert_eq(memory.constants, 2u);
    cr_assert_eq(memory.const_blobs, 2u);
    cr_assert_eq(memory.const_bytes, (uint64_t)2 * 1536 * 1536 * 4);
    inf_model_charge(model, device);
    check_within(counted_bytes(device), allocated_bytes() - before);

    // Run on 1000 rows, because the intermediate tensors then need a large arena (memory block).
    struct inf_executable *executable = NULL;
    cr_assert_eq(
        inf_model_acquire(model, device, &INF_SHAPE(1000, 1536), &executable, &inf_tfjs_case.err),
        INF_OK, "%s", inf_tfjs_case.err.text);
    check_within(counted_bytes(device), allocated_bytes() - before);
    uint64_t most = counted_bytes(device);
    check_sum(model, device);
    inf_model_release(model, &executable);

    // After a weight is packed for the kernels, the unpacked copy is freed.
    inf_model_allow_eviction(model);
    check_within(counted_bytes(device), allocated_bytes() - before);
    check_sum(model, device);
    for (int64_t rows = 1; rows <= 3; rows++) {
        cr_assert_eq(inf_model_acquire(model, device, &INF_SHAPE(rows, 1536), &executable,
                                       &inf_tfjs_case.err),
                     INF_OK, "%s", inf_tfjs_case.err.text);
        inf_model_release(model, &executable);
        check_within(counted_bytes(device), allocated_bytes() - before);
        check_sum(model, device);
    }
    cr_assert_eq(inf_model_memory(model).constants, 2u);
    inf_model_unref(&model);
    cr_assert_eq(counted_bytes(device), 0u);
    cr_assert_geq(inf_device_memory(device).peak_bytes, most);
    cr_assert_eq(inf_device_memory(device).allocations, 0u);
    inf_device_unref(&device);
    inf_device_unref(&ref);
}

Test(memory, of_ref_is_what_the_allocator_gave)
{
    check_device("ref");
}

Test(memory, of_cpu_is_what_the_allocator_gave)
{
    if (inf_registry_find("cpu") == NULL)
        cr_skip("built without the cpu backend");
    check_device("cpu");
}

// --- checking an upper bound on the memory of a model ---

// A model may use RATIO_MAX times the size of its weights and arena, plus OVERHEAD_BYTES for its
// graph.
#define RATIO_MAX      1.3
#define OVERHEAD_BYTES (192u << 10)

// Writes a model with convolutions of `channels` channels on pictures of 32 x 32 pixels, one of
// them depthwise, and a dense layer. *weight_bytes is the size of all weights.
static void write_convolutions(unsigned channels, uint64_t *weight_bytes)
{
    char document[2048];
    uint64_t weights = 9 * 3 * channels + 2 * 9 * channels * channels + 9 * channels +
                       (uint64_t)channels * channels + 256 * channels;
    snprintf(document, sizeof document,
             "{'modelTopology':{'class_name':'Sequential','config':["
             "{'class_name':'Conv2D','config':{'name':'a','filters':%u,'kernel_size':[3,3],"
             "'padding':'same','strides':[2,2],'use_bias':false,'activation':'relu',"
             "'batch_input_shape':[null,32,32,3]}},"
             "{'class_name':'Conv2D','config':{'name':'b','filters':%u,'kernel_size':[3,3],"
             "'padding':'same','use_bias':false,'activation':'relu'}},"
             "{'class_name':'Conv2D','config':{'name':'c','filters':%u,'kernel_size':[3,3],"
             "'padding':'same','use_bias':false,'activation':'relu'}},"
             "{'class_name':'DepthwiseConv2D','config':{'name':'d','kernel_size':[3,3],"
             "'padding':'same','use_bias':false}},"
             "{'class_name':'Conv2D','config':{'name':'e','filters':%u,'kernel_size':[1,1],"
             "'use_bias':false}},"
             "{'class_name':'GlobalAveragePooling2D','config':{'name':'p'}},"
             "{'class_name':'Dense','config':{'name':'f','units':256,'use_bias':false}}]},"
             "'weightsManifest':[{'paths':['w.bin'],'weights':["
             "{'name':'a/kernel','shape':[3,3,3,%u],'dtype':'float32'},"
             "{'name':'b/kernel','shape':[3,3,%u,%u],'dtype':'float32'},"
             "{'name':'c/kernel','shape':[3,3,%u,%u],'dtype':'float32'},"
             "{'name':'d/depthwise_kernel','shape':[3,3,%u,1],'dtype':'float32'},"
             "{'name':'e/kernel','shape':[1,1,%u,%u],'dtype':'float32'},"
             "{'name':'f/kernel','shape':[%u,256],'dtype':'float32'}]}]}",
             channels, channels, channels, channels, channels, channels, channels, channels,
             channels, channels, channels, channels, channels);
    *weight_bytes = weights * sizeof(float);
    float *data = calloc(1, *weight_bytes);
    inf_tfjs_case_write("w.bin", data, *weight_bytes);
    free(data);
    cr_assert_eq(inf_tfjs_case_import_text(document), INF_OK, "%s", inf_tfjs_case.err.text);
}

// Asserts that the model stays within the bound after its timing races, and after a run on `rows`
// rows.
static void check_bound(struct inf_device *const *hosts, unsigned channels, int64_t rows)
{
    uint64_t weight_bytes;
    struct inf_executable *executable = NULL;
    uint64_t before = allocated_bytes();
    write_convolutions(channels, &weight_bytes);
    struct inf_graph *graph = inf_tfjs_case.graph;
    inf_tfjs_case.graph = NULL;
    const struct inf_pass_options passes = {.evaluator = inf_registry_evaluator()};
    struct inf_model *model = NULL;
    cr_assert_eq(inf_model_create(&model, &graph, hosts, 2, &passes, NULL), INF_OK);
    inf_model_allow_eviction(model);
    cr_assert_eq(inf_model_acquire(model, hosts[0], &INF_SHAPE(rows, 32, 32, 3), &executable,
                                   &inf_tfjs_case.err),
                 INF_OK, "%s", inf_tfjs_case.err.text);
    struct inf_blob *x = inf_blob_create((size_t)rows * 32 * 32 * 3 * sizeof(float));
    struct inf_blob *y = inf_blob_create((size_t)rows * 256 * sizeof(float));
    const void *inputs[] = {x->data};
    void *outputs[] = {y->data};
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, NULL), INF_OK);
    inf_blob_unref(&x);
    inf_blob_unref(&y);
    uint64_t resident = allocated_bytes() - before;
    uint64_t bound = weight_bytes + inf_executable_plan(executable)->arena_bytes;
    cr_assert_leq((double)resident, RATIO_MAX * (double)bound + OVERHEAD_BYTES,
                  "%u channels, %d rows: %lu bytes, weights %lu, arena %lu", channels, (int)rows,
                  resident, weight_bytes, bound - weight_bytes);
    inf_model_release(model, &executable);
    inf_model_unref(&model);
}

Test(memory, of_a_model_is_little_more_than_its_weights_and_its_arena)
{
    static const unsigned channels[] = {8, 13, 24, 64, 100, 256, 511};
    struct inf_device *hosts[2];
    const struct inf_device_options options = {.slots = 1, .threads = 1};
    if (inf_registry_find("cpu") == NULL)
        cr_skip("built without the cpu backend");
    cr_assert_eq(inf_device_open(&hosts[0], inf_registry_find("cpu"), 0, &options, NULL), INF_OK);
    cr_assert_eq(inf_device_open(&hosts[1], inf_registry_find("ref"), 0, &options, NULL), INF_OK);
    if (strstr(inf_device_info(hosts[0])->description, "AVX") == NULL)
        cr_skip("XNNPACK packs here, and keeps that to itself");
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        check_bound(hosts, channels[i], 1);
        check_bound(hosts, channels[i], 5);
    }
    inf_device_unref(&hosts[0]);
    inf_device_unref(&hosts[1]);
}
