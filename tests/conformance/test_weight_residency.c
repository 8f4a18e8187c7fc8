// SPDX-License-Identifier: Apache-2.0
// Weights are in memory only once. Executables share packed weights. Constants that no other node
// reads are freed, and restored when the model is compiled for other shapes.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/model/model.h"
#include "backends/registry.h"

#define INNER  80
#define MIDDLE 97
#define OUTER  33
#define SLOTS  2

static struct inf_device *ref, *cpu;

static void open_devices(void)
{
    const struct inf_device_options options = {.slots = SLOTS, .threads = 1};
    cr_assert_eq(inf_device_open(&ref, inf_registry_find("ref"), 0, &options, NULL), INF_OK);
    if (inf_registry_find("cpu") == NULL)
        cr_skip("built without the cpu backend");
    cr_assert_eq(inf_device_open(&cpu, inf_registry_find("cpu"), 0, &options, NULL), INF_OK);
}

static void close_devices(void)
{
    for (int i = 0; i < 2; i++) {
        struct inf_device **device = i == 0 ? &cpu : &ref;
        if (*device == NULL)
            continue;
        struct inf_device_memory memory = inf_device_memory(*device);
        cr_assert_eq(memory.weight_bytes + memory.buffer_bytes + memory.held.bytes, 0u);
        cr_assert_eq(memory.allocations, 0u);
        inf_device_unref(device);
    }
}

TestSuite(residency, .init = open_devices, .fini = close_devices);

// --- making models for the tests ---

static float weight_at(size_t i)
{
    return (float)((i * 7919 + 13) % 251) / 251 - 0.5f;
}

static uint32_t add_weights(struct inf_graph *graph, int64_t rows, int64_t columns)
{
    uint32_t value;
    size_t count = (size_t)(rows * columns);
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    cr_assert_not_null(blob);
    for (size_t i = 0; i < count; i++)
        ((float *)blob->data)[i] = weight_at(i);
    cr_assert_eq(inf_graph_add_const(graph, "w", INF_DTYPE_F32, &INF_SHAPE(rows, columns), blob,
                                     &value, NULL),
                 INF_OK);
    return value;
}

static uint32_t add_node(struct inf_graph *graph, enum inf_op op, uint32_t a, uint32_t b,
                         union inf_attrs **out_attrs)
{
    uint32_t node;
    struct inf_error err;
    cr_assert_eq(inf_graph_add_node(graph, op, inf_op_info(op)->name, "", (uint32_t[]){a, b}, 2, 1,
                                    &node, &err),
                 INF_OK, "%s", err.text);
    if (out_attrs != NULL)
        *out_attrs = &graph->nodes[node].attrs;
    return graph->nodes[node].outputs[0];
}

// Makes y [n,33] = relu(x [n,80] a) b^T. If `adds`, the model also has z [80,97] = a + a[0][0..],
// so that the run itself reads a.
static struct inf_model *make_model(struct inf_device *const *hosts, uint32_t host_count, bool adds)
{
    struct inf_graph *graph;
    union inf_attrs *attrs;
    uint32_t x;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &INF_SHAPE(INF_DIM_UNKNOWN, INNER),
                                     &x, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    uint32_t a = add_weights(graph, INNER, MIDDLE);
    uint32_t b = add_weights(graph, OUTER, MIDDLE);
    uint32_t middle = add_node(graph, INF_OP_MATMUL, x, a, &attrs);
    attrs->matmul.activation = INF_ACTIVATION_RELU;
    uint32_t y = add_node(graph, INF_OP_MATMUL, middle, b, &attrs);
    attrs->matmul.transpose_b = true;
    cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
    if (adds) {
        uint32_t z = add_node(graph, INF_OP_MATMUL, middle, a, &attrs);
        attrs->matmul.transpose_b = true;
        // The sum depends on an input, so the passes cannot fold it into a constant.
        uint32_t one = add_node(graph, INF_OP_MATMUL, z, a, NULL);
        uint32_t row = add_node(graph, INF_OP_MATMUL, one, b, &attrs);
        attrs->matmul.transpose_b = true;
        cr_assert_eq(inf_graph_add_output(graph, "z", row, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_output(graph, "a", a, NULL), INF_OK);
    }
    struct inf_model *model = NULL;
    struct inf_error err = {0};
    const struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    cr_assert_eq(inf_model_create(&model, &graph, hosts, host_count, &options, &err), INF_OK, "%s",
                 err.text);
    return model;
}

static struct inf_model *make_cpu_model(bool adds)
{
    struct inf_device *const hosts[] = {cpu, ref};
    return make_model(hosts, 2, adds);
}

static struct inf_executable *acquire_executable(struct inf_model *model, struct inf_device *device,
                                                 int64_t rows)
{
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_acquire(model, device, &INF_SHAPE(rows, INNER), &executable, &err),
                 INF_OK, "%s", err.text);
    return executable;
}

static void run_slot(struct inf_executable *executable, uint32_t slot, int64_t rows, float *y)
{
    struct inf_blob *x = inf_blob_create((size_t)rows * INNER * sizeof(float));
    for (size_t i = 0; i < (size_t)rows * INNER; i++)
        ((float *)x->data)[i] = weight_at(i * 31);
    const void *inputs[] = {x->data};
    void *outputs[3] = {y};
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs, .slot = slot};
    struct inf_error err = {0};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_blob_unref(&x);
}

// Computes y row by row in double precision from the same weights, and compares.
static void check_answer(const float *y, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++) {
        double middle[MIDDLE];
        for (size_t m = 0; m < MIDDLE; m++) {
            middle[m] = 0;
            for (size_t i = 0; i < INNER; i++)
                middle[m] += (double)weight_at(((size_t)r * INNER + i) * 31) *
                             (double)weight_at(i * MIDDLE + m);
            middle[m] = middle[m] > 0 ? middle[m] : 0;
        }
        for (size_t o = 0; o < OUTER; o++) {
            double wanted = 0;
            for (size_t m = 0; m < MIDDLE; m++)
                wanted += middle[m] * (double)weight_at(o * MIDDLE + m);
            cr_assert_float_eq((double)y[(size_t)r * OUTER + o], wanted, 1e-4, "row %d, column %zu",
                               (int)r, o);
        }
    }
}

static void check_run(struct inf_model *model, struct inf_device *device, int64_t rows,
                      uint32_t slot)
{
    float *y = malloc(((size_t)rows * OUTER + 16) * sizeof *y);
    struct inf_executable *executable = acquire_executable(model, device, rows);
    run_slot(executable, slot, rows, y);
    check_answer(y, rows);
    inf_model_release(model, &executable);
    free(y);
}

// Returns true if the project's own kernels pack the weights. If XNNPACK wins the timing race, it
// packs the weights into private memory.
static bool packs_itself(void)
{
    return strstr(inf_device_info(cpu)->description, "AVX") != NULL;
}

#define A_BYTES ((uint64_t)INNER * MIDDLE * sizeof(float))
#define B_BYTES ((uint64_t)OUTER * MIDDLE * sizeof(float))

// --- sharing, freeing and restoring weights ---

Test(residency, keeps_weights_once_whatever_the_number_of_slots_and_shapes)
{
    struct inf_model *model = make_cpu_model(false);
    cr_assert_eq(inf_model_memory(model).const_bytes, A_BYTES + B_BYTES);
    check_run(model, cpu, 1, 0);
    cr_assert_eq(inf_model_memory(model).const_bytes, A_BYTES + B_BYTES, "not settled");
    uint64_t one = inf_model_memory(model).weight_bytes;
    cr_assert_geq(one, A_BYTES + B_BYTES);
    uint64_t packing_ns = inf_model_memory(model).packing_ns;
    cr_assert_eq(packing_ns > 0, packs_itself());
    inf_model_allow_eviction(model);
    for (int64_t rows = 1; rows <= 5; rows++)
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            check_run(model, cpu, rows, slot);
    struct inf_model_memory memory = inf_model_memory(model);
    cr_assert_eq(memory.executables, 5u);
    cr_assert_eq(memory.packing_ns, packing_ns, "packed once");
    if (packs_itself()) {
        cr_assert_eq(memory.const_bytes, 0u);
        cr_assert_eq(memory.const_blobs, 0u);
        cr_assert_leq(memory.weight_bytes, (A_BYTES + B_BYTES) * 13 / 10);
        cr_assert_leq(inf_device_memory(cpu).weight_bytes, (A_BYTES + B_BYTES) * 13 / 10);
    }
    cr_assert_eq(memory.constants, 2u);
    inf_model_unref(&model);
}

// Given an executable, expect that the memory it reports (shown by `inferctl inspect`) equals the
// memory that the device has counted.
Test(residency, is_told_beforehand)
{
    struct inf_model *model = make_cpu_model(true);
    struct inf_executable *executable = acquire_executable(model, cpu, 2);
    struct inf_executable_memory told;
    cr_assert_eq(inf_executable_memory(executable, &told, NULL), INF_OK);
    inf_model_allow_eviction(model);
    struct inf_model_memory memory = inf_model_memory(model);
    cr_assert_eq(told.const_bytes, memory.const_bytes);
    cr_assert_eq(told.weight_bytes + told.shared_bytes, memory.weight_bytes);
    cr_assert_eq(told.buffer_bytes, memory.arena_bytes);
    inf_model_release(model, &executable);
    inf_model_unref(&model);
}

Test(residency, keeps_what_a_run_reads)
{
    struct inf_model *model = make_cpu_model(true);
    inf_model_allow_eviction(model);
    struct inf_executable *executable = acquire_executable(model, cpu, 2);
    float y[2 * OUTER + 16], z[2 * OUTER + 16];
    static float a[INNER * MIDDLE + 16];
    static const float x[2 * INNER + 16];
    const void *inputs[] = {x};
    void *outputs[] = {y, z, a};
    const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    struct inf_error err = {0};
    if (packs_itself())
        cr_assert_eq(inf_model_memory(model).const_bytes, A_BYTES, "a is an output");
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    for (size_t i = 0; i < (size_t)INNER * MIDDLE; i++)
        cr_assert_eq(a[i], weight_at(i));
    inf_model_release(model, &executable);
    inf_model_unref(&model);
}

Test(residency, brings_weights_back_for_another_device)
{
    struct inf_model *model = make_cpu_model(false);
    inf_model_allow_eviction(model);
    check_run(model, cpu, 3, 0);
    check_run(model, ref, 3, 0);
    cr_assert_eq(inf_model_memory(model).const_bytes, A_BYTES + B_BYTES, "ref reads them");
    inf_model_drop(model, ref, &INF_SHAPE(3, INNER));
    if (packs_itself())
        cr_assert_eq(inf_model_memory(model).const_bytes, 0u);
    inf_model_drop(model, cpu, &INF_SHAPE(3, INNER));
    check_run(model, ref, 4, 1);
    check_run(model, cpu, 4, 1);
    inf_model_unref(&model);
}

Test(residency, copies_a_graph_with_weights_of_its_own)
{
    struct inf_device *const hosts[] = {cpu, ref};
    struct inf_model *model = make_cpu_model(false);
    inf_model_allow_eviction(model);
    check_run(model, cpu, 2, 0);
    struct inf_graph *graph;
    struct inf_model *copy;
    struct inf_error err = {0};
    cr_assert_eq(inf_model_copy_graph(model, &graph, &err), INF_OK, "%s", err.text);
    if (packs_itself())
        cr_assert_eq(inf_model_memory(model).const_bytes, 0u, "they go again");
    const struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    cr_assert_eq(inf_model_create(&copy, &graph, hosts, 2, &options, &err), INF_OK, "%s", err.text);
    cr_assert_eq(inf_model_memory(copy).const_bytes, A_BYTES + B_BYTES);
    check_run(copy, ref, 3, 0);
    inf_model_allow_eviction(copy);
    check_run(model, cpu, 4, 0);
    inf_model_unref(&model);
    check_run(copy, cpu, 5, 0);
    inf_model_unref(&copy);
}

Test(residency, keeps_weights_whole_for_an_executable_apart)
{
    struct inf_model *model = make_cpu_model(false);
    inf_model_allow_eviction(model);
    check_run(model, cpu, 2, 0);
    struct inf_executable *apart = NULL;
    struct inf_error err = {0};
    float y[2 * OUTER + 16];
    cr_assert_eq(inf_model_compile_private(
                     model,
                     &(struct inf_private_request){.device = ref, .shapes = &INF_SHAPE(2, INNER)},
                     &apart, &err),
                 INF_OK, "%s", err.text);
    check_run(model, cpu, 3, 0);
    run_slot(apart, 0, 2, y);
    check_answer(y, 2);
    inf_model_discard_private(model, &apart);
    cr_assert_null(apart);
    if (packs_itself())
        cr_assert_eq(inf_model_memory(model).const_bytes, 0u);
    inf_model_unref(&model);
}

Test(residency, counts_constants_where_it_is_told)
{
    struct inf_model *model = make_cpu_model(false);
    inf_model_charge(model, ref);
    cr_assert_eq(inf_device_memory(ref).held.bytes, A_BYTES + B_BYTES);
    cr_assert_eq(inf_device_memory(ref).held.tensors, 2u);
    inf_model_charge(model, cpu);
    cr_assert_eq(inf_device_memory(ref).held.bytes, 0u);
    cr_assert_eq(inf_device_memory(cpu).held.bytes, A_BYTES + B_BYTES);
    inf_model_allow_eviction(model);
    check_run(model, cpu, 1, 0);
    struct inf_device_memory counted = inf_device_memory(cpu);
    cr_assert_eq(counted.held.bytes, inf_model_memory(model).const_bytes);
    cr_assert_eq(counted.held.tensors, 2u);
    cr_assert_eq(counted.weight_bytes, inf_model_memory(model).weight_bytes);
    inf_model_unref(&model);
    cr_assert_eq(inf_device_memory(cpu).held.tensors, 0u);
}

// --- weights that only one branch of a model reads ---

// Makes the subgraph for one branch of a branch node: y [2,97] = x [2,80] a, doubled `times` times.
static struct inf_graph *make_side(int times)
{
    struct inf_graph *graph;
    uint32_t y;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &INF_SHAPE(2, INNER), &y, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", y, NULL), INF_OK);
    y = add_node(graph, INF_OP_MATMUL, y, add_weights(graph, INNER, MIDDLE), NULL);
    for (int i = 0; i < times; i++)
        y = add_node(graph, INF_OP_BINARY, y, y, NULL);
    cr_assert_eq(inf_graph_add_output(graph, "y", y, NULL), INF_OK);
    return graph;
}

// Makes y [2,97] = c ? 2^8 x a : 2^9 x a. The value of c is known only during the run.
static struct inf_model *make_branching_model(void)
{
    struct inf_graph *graph;
    struct inf_device *const hosts[] = {cpu, ref};
    uint32_t c, x, node;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "c", INF_DTYPE_BOOL, &(struct inf_shape){0}, &c, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &INF_SHAPE(2, INNER), &x, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "c", c, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_BRANCH, "branch", "", (uint32_t[]){c, x}, 2, 1,
                                    &node, NULL),
                 INF_OK);
    for (int i = 0; i < 2; i++) {
        uint32_t index;
        struct inf_graph *side = make_side(8 + i);
        cr_assert_eq(inf_graph_add_subgraph(graph, &side, &index, NULL), INF_OK);
        if (i == 0)
            graph->nodes[node].attrs.branch.then_graph = (int32_t)index;
        else
            graph->nodes[node].attrs.branch.else_graph = (int32_t)index;
    }
    cr_assert_eq(inf_graph_add_output(graph, "y", graph->nodes[node].outputs[0], NULL), INF_OK);
    struct inf_model *model = NULL;
    struct inf_error err = {0};
    const struct inf_pass_options options = {.evaluator = inf_registry_evaluator()};
    cr_assert_eq(inf_model_create(&model, &graph, hosts, 2, &options, &err), INF_OK, "%s",
                 err.text);
    return model;
}

Test(residency, keeps_the_weights_of_compiled_branches_once_too)
{
    struct inf_model *model = make_branching_model();
    struct inf_executable *executable = NULL;
    const struct inf_shape shapes[] = {{0}, INF_SHAPE(2, INNER)};
    struct inf_error err = {0};
    inf_model_allow_eviction(model);
    cr_assert_eq(inf_model_acquire(model, cpu, shapes, &executable, &err), INF_OK, "%s", err.text);
    struct inf_model_memory memory = inf_model_memory(model);
    if (packs_itself())
        cr_assert_lt(memory.const_bytes, A_BYTES, "two sides have one each, both packed");
    cr_assert_eq(memory.arena_bytes, inf_device_memory(cpu).buffer_bytes);
    cr_assert_gt(memory.arena_bytes, 0u, "the sides have arenas");
    cr_assert_eq(memory.weight_bytes, inf_device_memory(cpu).weight_bytes);
    float x[2 * INNER + 16], y[2 * MIDDLE + 16];
    for (size_t i = 0; i < (size_t)2 * INNER; i++)
        x[i] = weight_at(i * 31);
    for (int side = 0; side < 2; side++) {
        const _Alignas(64) uint8_t c[128] = {side == 0};
        const void *inputs[] = {c, x};
        void *outputs[] = {y};
        const struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
        cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
        for (size_t m = 0; m < (size_t)2 * MIDDLE; m++) {
            double wanted = 0;
            for (size_t i = 0; i < INNER; i++)
                wanted +=
                    (double)x[m / MIDDLE * INNER + i] * (double)weight_at(i * MIDDLE + m % MIDDLE);
            wanted *= side == 0 ? 256 : 512;
            cr_assert_float_eq((double)y[m], wanted, 1e-2, "side %d, element %zu", side, m);
        }
    }
    inf_model_release(model, &executable);
    inf_model_unref(&model);
}

// --- models that several threads run at the same time ---

struct runner {
    struct inf_model *model;
    uint32_t slot;
};

static void *run_many_shapes(void *argument)
{
    const struct runner *runner = argument;
    for (int64_t turn = 0; turn < 60; turn++) {
        int64_t rows = 1 + (turn * 7 + runner->slot * 3) % 12;
        // `ref` reads the unpacked weights, which are freed while only cpu runs the model
        struct inf_device *device = turn % 4 == 3 ? ref : cpu;
        check_run(runner->model, device, rows, runner->slot);
        if (device == ref || turn % 10 == 9)
            inf_model_drop(runner->model, device, &INF_SHAPE(rows, INNER));
    }
    return NULL;
}

Test(residency, holds_while_threads_compile_and_run)
{
    struct inf_model *model = make_cpu_model(false);
    inf_model_allow_eviction(model);
    pthread_t threads[SLOTS];
    struct runner runners[SLOTS];
    for (uint32_t i = 0; i < SLOTS; i++) {
        runners[i] = (struct runner){model, i};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_many_shapes, &runners[i]), 0);
    }
    for (uint32_t i = 0; i < SLOTS; i++)
        pthread_join(threads[i], NULL);
    for (int64_t rows = 1; rows <= 12; rows++)
        inf_model_drop(model, ref, &INF_SHAPE(rows, INNER));
    if (packs_itself())
        cr_assert_eq(inf_model_memory(model).const_bytes, 0u);
    inf_model_unref(&model);
}
