// SPDX-License-Identifier: Apache-2.0
// The cpu device: settings, threads, slots, packed weights and profiles.
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/system/cores.h"
#include "backends/cpu/core/core_set.h"
#include "backends/cpu/core/counted_memory.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/graph/shape/infer.h"
#include "tests/unit/cpu/single_node.h"

// Makes a 1x1 convolution of x [1,2,2,1] to the two channels 2x + 1 and -x.
static void make_pointwise(struct single *single)
{
    const float filter[2] = {2, -1};
    const float bias[2] = {1, 0};
    start_graph(single);
    add_operand(single, INF_DTYPE_F32, &INF_SHAPE(1, 2, 2, 1));
    add_constant(single, &INF_SHAPE(1, 1, 1, 2), filter, NULL);
    add_constant(single, &INF_SHAPE(2), bias, NULL);
    add_node(single, INF_OP_CONV2D);
    cr_assert_eq(inf_shape_infer(single->graph, NULL), INF_OK);
}

// --- opening the cpu device with options ---

Test(cpu, has_the_configured_slots_and_threads)
{
    struct inf_device *device = device_of(3, 2);
    const struct inf_device_info *info = inf_device_info(device);
    cr_assert_str_eq(info->name, "cpu");
    cr_assert_str_eq(info->backend, "cpu");
    cr_assert_eq(info->kind, INF_DEVICE_CPU);
    cr_assert_eq(info->priority, 200);
    cr_assert_eq(info->slots, 3u);
    cr_assert_eq(info->threads, 2u);
    cr_assert(info->host_memory);
    cr_assert(strstr(info->description, "XNNPACK") != NULL);
    inf_device_unref(&device);

    device = device_of(0, 0);
    uint32_t cores = inf_cores_usable();
    cr_assert_eq(inf_device_info(device)->slots, cores > 8 ? 8 : cores);
    cr_assert_eq(inf_device_info(device)->threads, cores > 8 ? 8 : cores);
    inf_device_unref(&device);
}

static uint64_t cpu_time_ns(clockid_t clock)
{
    struct timespec time;
    cr_assert_eq(clock_gettime(clock, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

// Returns true if other threads do a considerable part of the work in 30 runs of a convolution that
// may use `threads` threads.
static bool is_shared(struct inf_device *device, uint32_t threads)
{
    static float x[64 * 64 * 64], y[64 * 64 * 64], filter[64 * 64];
    struct single single;
    struct inf_program *program = NULL;
    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(1, 64, 64, 64));
    add_constant(&single, &INF_SHAPE(1, 1, 64, 64), filter, NULL);
    add_node(&single, INF_OP_CONV2D);
    cr_assert_eq(inf_shape_infer(single.graph, NULL), INF_OK);
    const struct inf_segment segment = {.graph = single.graph,
                                        .nodes = &single.node,
                                        .node_count = 1,
                                        .slots = 1,
                                        .threads = threads};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    uint64_t all_ns = cpu_time_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t mine_ns = cpu_time_ns(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < 30; i++)
        cr_assert_eq(run_program(program, &single, x, y, (struct inf_run){0}), INF_OK);
    mine_ns = cpu_time_ns(CLOCK_THREAD_CPUTIME_ID) - mine_ns;
    all_ns = cpu_time_ns(CLOCK_PROCESS_CPUTIME_ID) - all_ns;
    inf_program_destroy(&program);
    inf_graph_destroy(&single.graph);
    return (double)all_ns > 1.1 * (double)mine_ns;
}

Test(cpu, uses_one_thread_if_a_program_may_use_one)
{
    struct inf_device *device = device_of(1, 2);
    cr_assert(inf_device_info(device)->fewer_threads);
    cr_assert_not(is_shared(device, 1));
    inf_device_unref(&device);
}

Test(cpu, refuses_too_many_slots_and_threads)
{
    struct inf_device *device = NULL;
    struct inf_error err = {0};
    struct inf_device_options slots = {.slots = 257};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &slots, &err), INF_INVALID);
    cr_assert(strstr(err.text, "257") != NULL, "%s", err.text);
    struct inf_device_options threads = {.threads = UINT32_MAX};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &threads, &err), INF_INVALID);
    cr_assert(strstr(err.text, "4294967295") != NULL, "%s", err.text);
    cr_assert_null(device);
}

Test(cpu, refuses_an_isa_level_that_the_architecture_does_not_have)
{
    struct inf_device *device = NULL;
    struct inf_error err = {0};
    struct inf_device_options options = {.isa_max = "mmx"};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, &err), INF_INVALID);
    cr_assert(strstr(err.text, "'mmx'") != NULL, "%s", err.text);
    cr_assert_null(device);
}

Test(cpu, reports_the_isa_level_that_it_is_limited_to)
{
    static const char *const names[] = {NULL, "", "auto"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        cr_assert_eq(inf_isa_at_most(names[i]), inf_isa_best());
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_isa *isa = inf_isa_level(level);
        cr_assert_eq(inf_isa_at_most(isa->name), isa);
        struct inf_device *device = NULL;
        struct inf_error err = {0};
        struct inf_device_options options = {.threads = 1, .isa_max = isa->name};
        cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, &err), INF_OK, "%s",
                     err.text);
        const char *what = inf_device_info(device)->description;
        size_t length = strlen(isa->title);
        cr_assert_str_eq(what + strlen(what) - length, isa->title);
        inf_device_unref(&device);
    }
}

Test(cpu, takes_the_best_level_that_is_present_up_to_a_named_one)
{
    const struct inf_isa *best = NULL;
    unsigned level = 0;
    for (const struct inf_isa_row *row = inf_isa_rows; row->present != NULL; row++) {
        if (row->present()) {
            best = &row->isa;
            cr_expect_eq(inf_isa_level(level++), best);
        }
        cr_expect_eq(inf_isa_at_most(row->isa.name), best, "%s", row->isa.name);
    }
    cr_expect_null(inf_isa_level(level));
    cr_expect_eq(inf_isa_best(), best);
}

static bool is_present(void)
{
    return true;
}

static bool is_absent(void)
{
    return false;
}

Test(cpu, has_the_levels_above_one_that_the_processor_lacks)
{
    const struct inf_isa_row rows[] = {{{"a"}, is_present},
                                       {{"b"}, is_absent},
                                       {{"c"}, is_present},
                                       {{"d"}, is_absent},
                                       {.present = NULL}};
    cr_expect_eq(inf_isa_level_of(rows, 0), &rows[0].isa);
    cr_expect_eq(inf_isa_level_of(rows, 1), &rows[2].isa);
    cr_expect_null(inf_isa_level_of(rows, 2));
    static const struct {
        const char *name;
        int row;
    } wanted[] = {{"a", 0}, {"b", 0}, {"c", 2}, {"d", 2}, {"auto", 2}, {"", 2}, {NULL, 2}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(wanted); i++)
        cr_expect_eq(inf_isa_at_most_of(rows, wanted[i].name), &rows[wanted[i].row].isa, "%s",
                     wanted[i].name != NULL ? wanted[i].name : "NULL");
    cr_expect_null(inf_isa_at_most_of(rows, "e"));
}

Test(cpu, uses_at_least_one_core_and_no_more_than_the_machine_has)
{
    cr_assert_geq(inf_cores_usable(), 1u);
    cr_assert_leq(inf_cores_usable(), (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
}

// --- compiling and running programs ---

// Given two programs and slots (concurrent runs) that multiply with the same constant, expect that
// they share one packed copy.
Test(cpu, counts_packed_weights_once_and_frees_them)
{
    uint64_t live = inf_cpu_memory_live_bytes();
    struct inf_device *device = device_of(2, 1);
    struct single single;
    make_pointwise(&single);
    struct inf_program *one = program_of(device, &single, 1);
    struct inf_blob_form *form = inf_program_packed_form(one, single.node, 1);
    cr_assert_eq(form != NULL, inf_isa_best()->nn->fast, "XNNPACK keeps what it packs to itself");
    uint64_t packed = form != NULL ? form->size_bytes : 0;
    uint64_t bytes = inf_program_weight_bytes(one);
    cr_assert_geq(packed + bytes, 4 * sizeof(float)); // two weights and two biases
    cr_assert_eq(inf_device_memory(device).weight_bytes, packed + bytes);
    struct inf_program *two = program_of(device, &single, 2);
    cr_assert_eq(inf_program_packed_form(two, single.node, 1), form);
    // The sizes agree only approximately, because malloc() may round two equal sizes differently.
    uint64_t both = inf_program_weight_bytes(two);
    cr_assert_float_eq((double)both, 2 * (double)bytes, 256);
    cr_assert_eq(inf_device_memory(device).weight_bytes, packed + bytes + both);
    cr_assert_eq(inf_cpu_memory_live_bytes(), live + bytes + both);
    inf_program_destroy(&one);
    cr_assert_eq(inf_device_memory(device).weight_bytes, packed + both);
    inf_program_destroy(&two);
    cr_assert_eq(inf_device_memory(device).weight_bytes, 0u);
    cr_assert_eq(inf_cpu_memory_live_bytes(), live);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

// Every executable of a model has programs of its own. The packed weights are shared, but all else
// in a program is in memory once for each shape class. Zeros for 4100 columns would take 16 KiB.
// The last panel is narrower than the others.
Test(cpu, keeps_no_zeros_for_every_column_of_a_product_without_bias)
{
    struct inf_device *device = device_of(1, 1);
    struct single single;
    static const float matrix[4100] = {[0] = 2, [4099] = -3};
    struct inf_blob *x = inf_blob_create(sizeof(float));
    struct inf_blob *y = inf_blob_create(sizeof(matrix));
    const float *results = y->data;
    *(float *)x->data = 5;
    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(1, 1));
    add_constant(&single, &INF_SHAPE(1, 4100), matrix, NULL);
    add_node(&single, INF_OP_MATMUL);
    cr_assert_eq(inf_shape_infer(single.graph, NULL), INF_OK);
    struct inf_program *program = program_of(device, &single, 1);
    if (inf_program_packed_form(program, single.node, 1) != NULL)
        cr_assert_lt(inf_program_weight_bytes(program), 4096u);
    cr_assert_eq(run_program(program, &single, x->data, y->data, (struct inf_run){0}), INF_OK);
    cr_assert_eq(results[0], 10.0f);
    cr_assert_eq(results[2048], 0.0f);
    cr_assert_eq(results[4099], -15.0f);
    inf_blob_unref(&x);
    inf_blob_unref(&y);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

// Constants that runs read only in packed form may be freed. They must be restored unchanged.
Test(cpu, runs_without_the_constants_that_it_packed)
{
    struct inf_device *device = device_of(1, 1);
    struct single single;
    make_pointwise(&single);
    struct inf_blob *filter = single.graph->values[single.operands[1]].data;
    struct inf_program *program = program_of(device, &single, 1);
    struct inf_blob_form *form = inf_program_packed_form(program, single.node, 1);
    cr_assert_null(inf_program_packed_form(program, single.node, 0));
    cr_assert_null(inf_program_packed_form(program, single.node, 2));
    if (form != NULL)
        inf_blob_evict(filter, form);
    static struct buffer x = {.data = {1, 2, 3, -4}};
    static struct buffer y;
    const float wanted[8] = {3, -1, 5, -2, 7, -3, -7, 4};
    cr_assert_eq(run_program(program, &single, x.data, y.data, (struct inf_run){0}), INF_OK);
    cr_assert_eq(memcmp(y.data, wanted, sizeof(wanted)), 0);
    inf_program_destroy(&program);
    cr_assert(inf_blob_restore(filter));
    cr_assert_eq(((float *)filter->data)[0], 2.0f);
    cr_assert_eq(((float *)filter->data)[1], -1.0f);
    cr_assert_eq(inf_device_memory(device).weight_bytes, 0u);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

// The result has only one pixel, so the threads share its columns. Each thread applies the epilogue
// to its own columns.
Test(cpu, applies_the_epilogue_once_to_every_column)
{
    enum {
        CHANNELS = 1024
    };
    static float filter[CHANNELS * CHANNELS];
    static float bias[CHANNELS];
    for (int i = 0; i < CHANNELS; i++)
        bias[i] = 1;
    struct single single;
    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(1, 1, 1, CHANNELS));
    add_constant(&single, &INF_SHAPE(1, 1, CHANNELS, CHANNELS), filter, NULL);
    add_constant(&single, &INF_SHAPE(CHANNELS), bias, NULL);
    add_node(&single, INF_OP_CONV2D)->conv2d.activation = INF_ACTIVATION_SIGMOID;
    cr_assert_eq(inf_shape_infer(single.graph, NULL), INF_OK);
    struct inf_device *device = device_of(1, 4);
    struct inf_program *program = program_of(device, &single, 1);
    struct inf_blob *x = inf_blob_create(sizeof(bias));
    struct inf_blob *y = inf_blob_create(sizeof(bias));
    for (int turn = 0; turn < 20; turn++) {
        cr_assert_eq(run_program(program, &single, x->data, y->data, (struct inf_run){0}), INF_OK);
        for (int i = 0; i < CHANNELS; i++)
            cr_assert_float_eq(((float *)y->data)[i], 0.7310586f, 1e-6, "column %d: %g", i,
                               (double)((float *)y->data)[i]);
    }
    inf_blob_unref(&x);
    inf_blob_unref(&y);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

Test(cpu, follows_operands_that_move_without_allocating)
{
    struct inf_device *device = device_of(1, 1);
    struct single single;
    const float filter[9] = {0, 0, 0, 0, 1,
                             // Each result is the element at its own position plus ten times the
                             // element one row below and one column to the right.
                             0, 0, 0, 10};
    start_graph(&single);
    add_operand(&single, INF_DTYPE_F32, &INF_SHAPE(1, 2, 2, 1));
    add_constant(&single, &INF_SHAPE(3, 3, 1, 1), filter, NULL);
    add_node(&single, INF_OP_CONV2D)->conv2d.padding = INF_PADDING_SAME;
    cr_assert_eq(inf_shape_infer(single.graph, NULL), INF_OK);
    struct inf_program *program = program_of(device, &single, 1);
    int64_t held = inf_cpu_memory_thread_bytes();
    struct buffer x[3] = {{.data = {1, 2, 3, 4}}, {.data = {5, 6, 7, 8}}, {.data = {-1, 0, 0, -1}}};
    const float expected[3][4] = {{41, 2, 3, 4}, {85, 6, 7, 8}, {-11, 0, 0, -1}};
    for (int i = 0; i < 6; i++) {
        struct buffer y = {0};
        cr_assert_eq(run_program(program, &single, &x[i % 3], &y, (struct inf_run){0}), INF_OK);
        for (int k = 0; k < 4; k++)
            cr_assert_float_eq(y.data[k], expected[i % 3][k], 1e-6f, "run %d, %d", i, k);
        cr_assert_eq(y.data[4], 0.0f);
    }
    cr_assert_eq(inf_cpu_memory_thread_bytes(), held);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

Test(cpu, stops_before_a_step_when_it_is_cancelled)
{
    struct inf_device *device = device_of(1, 1);
    struct single single;
    make_pointwise(&single);
    struct inf_program *program = program_of(device, &single, 1);
    struct buffer x = {.data = {1, 2, 3, 4}};
    struct buffer y = {.data = {7}};
    atomic_bool cancelled = true;
    cr_assert_eq(run_program(program, &single, &x, &y, (struct inf_run){.cancelled = &cancelled}),
                 INF_CANCELLED);
    cr_assert_eq(y.data[0], 7.0f);
    cancelled = false;
    cr_assert_eq(run_program(program, &single, &x, &y, (struct inf_run){.cancelled = &cancelled}),
                 INF_OK);
    cr_assert_eq(y.data[0], 3.0f);
    cr_assert_eq(y.data[1], -1.0f);
    cr_assert_eq(y.data[7], -4.0f);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

Test(cpu, names_the_kernel_and_its_time_in_a_profile)
{
    struct inf_device *device = device_of(1, 1);
    struct single single;
    make_pointwise(&single);
    struct inf_program *program = program_of(device, &single, 1);
    struct buffer x = {0};
    struct buffer y;
    cr_assert_eq(run_program(program, &single, &x, &y, (struct inf_run){.profile = true}), INF_OK);
    struct inf_step_profile step = {0};
    cr_assert_eq(inf_program_profile(program, 0, &step, 1), 1u);
    cr_assert_str_eq(step.kernel, inf_isa_best()->nn->fast ? "1x1" : "xnn_conv2d_1x1");
    cr_assert_eq(step.node, single.node);
    cr_assert_gt(step.time_ns, 0u);
    cr_assert_eq(step.dot_rate, 0, "it has no dot products of bytes");
    cr_assert_eq(inf_program_profile(program, 0, NULL, 0), 1u);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

// Profiles a product of bytes with constant weights of this shape.
static void check_dot_rate(enum inf_op op, const struct inf_shape *x_shape,
                           const struct inf_shape *w_shape)
{
    struct inf_device *device = device_of(1, 1);
    struct single single;
    struct inf_blob *w = inf_blob_create(inf_shape_elements(w_shape));
    struct buffer x = {0};
    struct buffer y;
    struct inf_step_profile step = {0}, again = {0};
    start_graph(&single);
    add_operand(&single, INF_DTYPE_U8, x_shape);
    cr_assert_eq(inf_graph_add_const(single.graph, "w", INF_DTYPE_I8, w_shape, w,
                                     &single.operands[single.count++], NULL),
                 INF_OK);
    union inf_attrs *attrs = add_node(&single, op);
    if (op == INF_OP_QMATMUL)
        attrs->qmatmul.dtype = INF_DTYPE_I32;
    else
        attrs->qconv2d.dtype = INF_DTYPE_I32;
    cr_assert_eq(inf_shape_infer(single.graph, NULL), INF_OK);
    struct inf_program *program = program_of(device, &single, 1);
    cr_assert_eq(run_program(program, &single, &x, &y, (struct inf_run){.profile = true}), INF_OK);
    cr_assert_eq(inf_program_profile(program, 0, &step, 1), 1u);
    cr_expect_gt(step.dot_rate, 1e8);
    cr_expect_lt(step.dot_rate, 1e13);
    cr_assert_eq(inf_program_profile(program, 0, &again, 1), 1u);
    cr_expect_eq(again.dot_rate, step.dot_rate, "it is measured once");
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

Test(cpu, says_the_peak_of_dot_products_in_a_profile)
{
    check_dot_rate(INF_OP_QMATMUL, &INF_SHAPE(1, 8), &INF_SHAPE(8, 4));
    check_dot_rate(INF_OP_QCONV2D, &INF_SHAPE(1, 2, 2, 4), &INF_SHAPE(1, 1, 4, 2));
}

struct worker {
    struct inf_program *program;
    const struct single *single;
    uint32_t slot;
    unsigned wrong;
};

static void *run_thread(void *argument)
{
    struct worker *worker = argument;
    float base = (float)worker->slot * 100;
    for (int round = 0; round < 2000; round++) {
        struct buffer x = {.data = {base, base + 1, base + 2, base + 3}};
        struct buffer y = {0};
        if (run_program(worker->program, worker->single, &x, &y,
                        (struct inf_run){.slot = worker->slot}) != INF_OK)
            worker->wrong++;
        for (int k = 0; k < 4; k++)
            worker->wrong += y.data[2 * k] != 2 * x.data[k] + 1 || y.data[2 * k + 1] != -x.data[k];
    }
    return NULL;
}

// Runs a program with three slots concurrently, on a device opened with `slots` slots.
static void expect_slots_apart(uint32_t slots)
{
    struct inf_device *device = device_of(slots, 2);
    struct single single;
    make_pointwise(&single);
    struct inf_program *program = program_of(device, &single, 3);
    struct worker workers[3];
    pthread_t threads[3];
    for (uint32_t i = 0; i < 3; i++) {
        workers[i] = (struct worker){program, &single, i, 0};
        cr_assert_eq(pthread_create(&threads[i], NULL, run_thread, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        cr_assert_eq(workers[i].wrong, 0u, "slot %u", i);
    }
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&single.graph);
}

Test(cpu, runs_in_different_slots_do_not_interfere)
{
    expect_slots_apart(3);
}

// A plan for another device has that device's slot count. Nodes that fall back to cpu run in more
// slots than cpu has pools.
Test(cpu, runs_in_more_slots_than_pools_do_not_interfere)
{
    expect_slots_apart(1);
}
