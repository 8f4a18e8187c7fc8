// SPDX-License-Identifier: Apache-2.0
// bench_in_place BACKEND RUNS [MODEL]
//
// Measures the time saved if a device reads an input in the memory that a client shares, instead of
// a copy. The model computes the maximum of each row of 4 MiB of floats, or is MODEL (unknown
// dimensions are 1). Runs alternate between three ways of passing the input:
//
//   copied    the input may change, so it is copied
//   in place  the input is in a mapping, always at the same address
//   moved     the input is in a mapping, alternately at two addresses; large inputs are read in
//   place
//
// Prints one line for each way: the minimum and the median of the elapsed time, the minimum CPU
// time of the calling thread, in us, and the number of inputs that the device read in place.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/base/clock.h"
#include "backends/device/counts.h"
#include "tests/tools/run/engine.h"

#define PAGE     4096
#define SIDE     1024
#define RUNS_MAX 100000

enum way {
    COPIED,
    IN_PLACE,
    MOVED,
    WAYS
};

static const char *const way_names[] = {"copied", "in place", "moved"};

struct bench {
    struct tool_engine engine;
    struct inf_model *model;
    struct inf_executable *executable;
    const struct inf_graph *graph;
    struct inf_mapping *mapping;
    char *memory; // start of the mapping, which has room for the first input at two addresses
    size_t input_bytes;
    void *outputs[INF_LIMIT_TENSORS];
    double *wall_us[WAYS], *host_us[WAYS];
    uint64_t in_place[WAYS];
};

// Builds a graph that computes y, the maximum of each row of x.
static enum inf_code make_graph(struct inf_graph **out_graph, struct inf_error *err)
{
    const struct inf_shape shape = INF_SHAPE(SIDE, SIDE);
    uint32_t x, node;
    INF_TRY(inf_graph_create(out_graph, err));
    INF_TRY(inf_graph_add_value(*out_graph, "x", INF_DTYPE_F32, &shape, &x, err));
    INF_TRY(inf_graph_add_input(*out_graph, "x", x, err));
    INF_TRY(inf_graph_add_node(*out_graph, INF_OP_REDUCE, "y", "", &x, 1, 1, &node, err));
    union inf_attrs *attrs = &(*out_graph)->nodes[node].attrs;
    attrs->reduce.kind = INF_REDUCE_MAX;
    attrs->reduce.axes = (struct inf_ints){.count = 1, .values = {1}};
    return inf_graph_add_output(*out_graph, "y", (*out_graph)->nodes[node].outputs[0], err);
}

static enum inf_code load_subject(struct bench *bench, const char *path, struct inf_error *err)
{
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    if (path != NULL)
        INF_TRY(tool_engine_import(&bench->engine, path, &graph, err));
    else
        INF_TRY(make_graph(&graph, err));
    INF_TRY(tool_engine_prepare(&bench->engine, &graph, &bench->model, err));
    const struct inf_graph *loaded = inf_model_graph(bench->model);
    if (loaded->input_count != 1)
        return inf_fail(err, INF_UNSUPPORTED, "the model has %u inputs, wanted one",
                        loaded->input_count);
    shapes[0] = loaded->values[loaded->inputs[0].value].shape;
    for (int32_t axis = 0; axis < shapes[0].rank; axis++)
        if (shapes[0].dims[axis] == INF_DIM_UNKNOWN)
            shapes[0].dims[axis] = 1;
    INF_TRY(inf_model_acquire_with(bench->model, bench->engine.device, &bench->engine.options,
                                   shapes, &bench->executable, err));
    bench->graph = inf_executable_graph(bench->executable);
    return INF_OK;
}

static enum inf_code make_memory(struct bench *bench, uint32_t runs, struct inf_error *err)
{
    const struct inf_value *input = &bench->graph->values[bench->graph->inputs[0].value];
    bool ok = inf_shape_bytes(&input->shape, input->dtype, &bench->input_bytes);
    size_t total = (2 * bench->input_bytes + 2 * PAGE - 1) / PAGE * PAGE;
    bench->memory = ok ? aligned_alloc(PAGE, total) : NULL;
    ok = bench->memory != NULL;
    for (uint32_t i = 0; ok && i < bench->graph->output_count; i++) {
        const struct inf_value *output = &bench->graph->values[bench->graph->outputs[i].value];
        size_t size;
        ok = inf_shape_bytes(&output->shape, output->dtype, &size) &&
             (bench->outputs[i] = malloc(size)) != NULL;
    }
    for (int way = 0; ok && way < WAYS; way++)
        ok = (bench->wall_us[way] = calloc(runs, sizeof(double))) != NULL &&
             (bench->host_us[way] = calloc(runs, sizeof(double))) != NULL;
    if (!ok)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    for (size_t i = 0; i < total / sizeof(float); i++)
        ((float *)(void *)bench->memory)[i] = (float)(i * 7919 % 255) / 255;
    return inf_mapping_create(&bench->mapping, bench->memory, total, err);
}

static double thread_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

// Measures one block of runs that pass the input in the way `way`. Blocks of different ways
// alternate, so that other work on the machine affects all ways.
static enum inf_code run_block(struct bench *bench, enum way way, uint32_t first, uint32_t count,
                               struct inf_error *err)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t at = way == MOVED && i % 2 == 1 ? (bench->input_bytes + 63) / 64 * 64 : 0;
        struct inf_execution execution = {
            .inputs = (const void *[]){bench->memory + at},
            .mappings = (struct inf_mapping *const[]){way == COPIED ? NULL : bench->mapping},
            .outputs = bench->outputs};
        uint64_t before = inf_device_get_count(bench->engine.device, INF_COUNT_INPUTS_IN_PLACE);
        uint64_t begin_ns = inf_clock_ns();
        double begin_us = thread_us();
        INF_TRY(inf_executable_run(bench->executable, &execution, err));
        bench->host_us[way][first + i] = thread_us() - begin_us;
        bench->wall_us[way][first + i] = (double)(inf_clock_ns() - begin_ns) / 1e3;
        bench->in_place[way] +=
            inf_device_get_count(bench->engine.device, INF_COUNT_INPUTS_IN_PLACE) - before;
    }
    return INF_OK;
}

static int compare_times(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

#define BLOCK 10

static enum inf_code measure_block(struct bench *bench, uint32_t runs, struct inf_error *err)
{
    for (uint32_t first = 0; first < runs; first += BLOCK)
        for (enum way way = COPIED; way < WAYS; way++)
            INF_TRY(run_block(bench, way, first, BLOCK, err));
    for (enum way way = COPIED; way < WAYS; way++) {
        qsort(bench->wall_us[way], runs, sizeof(double), compare_times);
        qsort(bench->host_us[way], runs, sizeof(double), compare_times);
        printf(
            "%zu bytes, %-8s  wall least %.0f median %.0f us, calling thread %.0f us, %.0f of "
            "%u in place\n",
            bench->input_bytes, way_names[way], bench->wall_us[way][0],
            bench->wall_us[way][runs / 2], bench->host_us[way][0], (double)bench->in_place[way],
            runs);
    }
    return INF_OK;
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    struct inf_error err = {0};
    long runs = argc >= 3 ? strtol(argv[2], NULL, 10) / BLOCK * BLOCK : 0;
    if (runs < BLOCK || runs > RUNS_MAX) {
        fprintf(stderr, "usage: bench_in_place BACKEND RUNS [MODEL]\n");
        return 2;
    }
    enum inf_code code = tool_engine_open(&bench.engine, argv[1], 0, &err);
    if (code == INF_OK)
        code = load_subject(&bench, argc > 3 ? argv[3] : NULL, &err);
    if (code == INF_OK)
        code = make_memory(&bench, (uint32_t)runs, &err);
    if (code == INF_OK)
        code = measure_block(&bench, (uint32_t)runs, &err);
    if (code != INF_OK)
        fprintf(stderr, "%s\n", err.text);
    if (bench.executable != NULL)
        inf_model_release(bench.model, &bench.executable);
    inf_mapping_destroy(&bench.mapping);
    inf_model_unref(&bench.model);
    tool_engine_close(&bench.engine);
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++)
        free(bench.outputs[i]);
    for (int way = 0; way < WAYS; way++) {
        free(bench.wall_us[way]);
        free(bench.host_us[way]);
    }
    free(bench.memory);
    return code == INF_OK ? 0 : 1;
}
