// SPDX-License-Identifier: Apache-2.0
// What a device says it holds, against what the allocator says: a model is loaded, warmed up and
// unloaded on each device.
#include <criterion/criterion.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/model.h"
#include "backends/registry.h"
#include "tests/support/tfjs_case.h"

TestSuite(memory, .init = inf_tfjs_case_init, .fini = inf_tfjs_case_fini);

// Bytes that malloc() has given out, mapped ones too.
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

// Two dense layers of 1536 x 1536, 18 MiB of weights.
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

// What the model says of itself is what its device counts.
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

    // 1000 rows make arenas that count.
    struct inf_executable *executable = NULL;
    cr_assert_eq(
        inf_model_acquire(model, device, &INF_SHAPE(1000, 1536), &executable, &inf_tfjs_case.err),
        INF_OK, "%s", inf_tfjs_case.err.text);
    check_within(counted_bytes(device), allocated_bytes() - before);
    uint64_t most = counted_bytes(device);
    check_sum(model, device);
    inf_model_release(model, &executable);

    // What is packed is not kept beside it, whatever comes later.
    inf_model_settle(model);
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
