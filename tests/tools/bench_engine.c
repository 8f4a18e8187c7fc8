// SPDX-License-Identifier: Apache-2.0
// bench_engine [--backend NAME] [--isa-max SET] [--dim N]
//              [--profile | --declined | --compare-kernels | --first DIR]
//              (--threads N --ms MS | N MS) MODEL...
//
// Times one inference after the other, in process, and prints a line a model:
//     inferd MODEL THREADS median X p99 Y min Z      (milliseconds)
// MODEL is a model file, or its name without suffix where NAME.tfjs/model.json or NAME.json lies.
// Without --threads and --ms they are the first two arguments, as shared/bench/peers.py -x gives
// them. A fifth of the time is spent on warming up first. Unknown dimensions of inputs are 1 for the
// batch, else --dim (224).
//
// --isa-max caps the instruction set of the cpu device's own loops (cpu_isa_max of inferd).
//
// --profile adds a line a step: its least time over some runs, multiply-adds a second, their share of
// what the cores can do, the bytes of its tensors, and the kernel. A step may compute several nodes. The last line is the
// least time that a run took of the calling thread's processor: the host's part, where another device computes.
//
// --first prints how long it took from before the device was opened, with its caches in DIR, to the first answer.
// Mesa's drivers keep what they compiled in MESA_SHADER_CACHE_DIR.
//
// --compare-kernels runs nothing. It prints the least time of each kernel of the cpu device that computes a
// node, in us, for nodes that several compute, each alone. In a model some are computed together.
//
// --declined runs nothing. It prints how many nodes the plan has, how many of them the backend takes, and
// why it declines each of the others.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/base/blob.h"
#include "backends/base/clock.h"
#include "tests/tools/compare_kernels.h"
#include "tests/tools/engine.h"
#include "tests/tools/peak.h"

#define RUNS_MIN     5u
#define RUNS_MAX     1000000u
#define PROFILE_RUNS 20u

struct bench {
    const char *backend;
    const char *isa_max;
    uint32_t threads;
    double ms;
    int64_t dim;
    bool profile, declined, compare;
    const char *cache; // --first
    uint64_t begin_ns; // of the process
    double peak;       // GFLOP/s of all threads
    struct tool_engine engine;
};

struct subject {
    struct inf_model *model;
    struct inf_executable *executable;
    const struct inf_graph *graph;
    struct inf_blob *inputs[INF_LIMIT_TENSORS], *outputs[INF_LIMIT_TENSORS];
    const void *input_data[INF_LIMIT_TENSORS];
    void *output_data[INF_LIMIT_TENSORS];
};

// --- models ---

// The file that `model` names.
static void find_file(char *path, size_t size, const char *model)
{
    static const char *const suffixes[] = {"", ".tfjs/model.json", ".json", "/model.json"};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(suffixes); i++) {
        snprintf(path, size, "%s%s", model, suffixes[i]);
        const char *end = strrchr(path, '.');
        if (end != NULL && strcmp(end, ".json") == 0 && access(path, R_OK) == 0)
            return;
    }
    snprintf(path, size, "%s", model);
}

// What the line calls it: the last part of `model` that says more than "model", without suffix.
static void find_name(char *name, size_t size, const char *model)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s", model);
    for (;;) {
        char *slash = strrchr(path, '/');
        snprintf(name, size, "%.*s", (int)size - 1, slash != NULL ? slash + 1 : path);
        char *dot = strrchr(name, '.');
        if (dot != NULL && (strcmp(dot, ".json") == 0 || strcmp(dot, ".tfjs") == 0))
            *dot = '\0';
        if (slash == NULL || strcmp(name, "model") != 0)
            return;
        *slash = '\0';
    }
}

static enum inf_code make_tensor(struct inf_blob **out_blob, const struct inf_value *value,
                                 struct inf_error *err)
{
    size_t size;
    if (!inf_shape_bytes(&value->shape, value->dtype, &size))
        return inf_fail(err, INF_UNSUPPORTED, "'%s' has no known size", value->name);
    *out_blob = inf_blob_create(size);
    if (*out_blob == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size);
    return INF_OK;
}

static enum inf_code make_tensors(struct subject *subject, struct inf_error *err)
{
    const struct inf_graph *graph = subject->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct inf_value *value = &graph->values[graph->inputs[i].value];
        INF_TRY(make_tensor(&subject->inputs[i], value, err));
        subject->input_data[i] = subject->inputs[i]->data;
        if (value->dtype != INF_DTYPE_F32)
            continue;
        float *data = subject->inputs[i]->data;
        size_t count = inf_shape_elements(&value->shape);
        for (size_t k = 0; k < count; k++)
            data[k] = (float)(k * 7919 % 255) / 255;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        INF_TRY(make_tensor(&subject->outputs[i], value, err));
        subject->output_data[i] = subject->outputs[i]->data;
    }
    return INF_OK;
}

static enum inf_code load(struct subject *subject, const struct bench *bench, const char *path,
                          struct inf_error *err)
{
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    INF_TRY(tool_engine_load(&bench->engine, path, &subject->model, err));
    const struct inf_graph *graph = inf_model_graph(subject->model);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        shapes[i] = graph->values[graph->inputs[i].value].shape;
        for (int32_t axis = 0; axis < shapes[i].rank; axis++) {
            if (shapes[i].dims[axis] == INF_DIM_UNKNOWN)
                shapes[i].dims[axis] = axis == 0 ? 1 : bench->dim;
        }
    }
    INF_TRY(inf_model_acquire_in(subject->model, bench->engine.device, &bench->engine.mode, shapes,
                                 &subject->executable, err));
    subject->graph = inf_executable_graph(subject->executable);
    return make_tensors(subject, err);
}

static void unload(struct subject *subject)
{
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++) {
        inf_blob_unref(&subject->inputs[i]);
        inf_blob_unref(&subject->outputs[i]);
    }
    if (subject->executable != NULL)
        inf_model_release(subject->model, &subject->executable);
    inf_model_unref(&subject->model);
}

static enum inf_code run_once(const struct subject *subject, bool profile, struct inf_error *err)
{
    struct inf_execution execution = {
        .inputs = subject->input_data, .outputs = subject->output_data, .profile = profile};
    return inf_executable_run(subject->executable, &execution, err);
}

// --- times ---

static int compare_times(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

// A fifth of the time: wide vectors make some processors slow for a while after they come into use.
static enum inf_code warm_up(const struct subject *subject, const struct bench *bench,
                             struct inf_error *err)
{
    uint64_t begin_ns = inf_clock_ns();
    double spent_ms = 0;
    for (uint32_t runs = 0; spent_ms < bench->ms / 5 || runs < RUNS_MIN; runs++) {
        INF_TRY(run_once(subject, false, err));
        spent_ms = (double)(inf_clock_ns() - begin_ns) / INF_NS_PER_MS;
    }
    return INF_OK;
}

static enum inf_code measure(const struct subject *subject, const struct bench *bench,
                             const char *name, struct inf_error *err)
{
    double *times_ms = malloc(RUNS_MAX * sizeof(*times_ms));
    if (times_ms == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for times");
    uint32_t runs = 0;
    enum inf_code code = warm_up(subject, bench, err);
    uint64_t begin_ns = inf_clock_ns();
    double spent_ms = 0;
    while (code == INF_OK && runs < RUNS_MAX && (spent_ms < bench->ms || runs < RUNS_MIN)) {
        uint64_t start_ns = inf_clock_ns();
        code = run_once(subject, false, err);
        uint64_t end_ns = inf_clock_ns();
        times_ms[runs++] = (double)(end_ns - start_ns) / INF_NS_PER_MS;
        spent_ms = (double)(end_ns - begin_ns) / INF_NS_PER_MS;
    }
    if (code == INF_OK) {
        qsort(times_ms, runs, sizeof(*times_ms), compare_times);
        printf("inferd %s %u median %.4f p99 %.4f min %.4f\n", name,
               inf_device_info(bench->engine.device)->threads, times_ms[runs / 2],
               times_ms[(size_t)(runs * 0.99)], times_ms[0]);
    }
    free(times_ms);
    return code;
}

// --- profile ---

// Multiply-adds of a node that has a filter; 0 for others.
static double node_macs(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->input_count < 2 || node->inputs[1] == INF_VALUE_NONE)
        return 0;
    const struct inf_shape *x = &graph->values[node->inputs[0]].shape;
    const struct inf_shape *y = &graph->values[node->outputs[0]].shape;
    double filter = (double)inf_shape_elements(&graph->values[node->inputs[1]].shape);
    switch (node->op) {
    case INF_OP_CONV2D:
    case INF_OP_DEPTHWISE_CONV2D:
        return (double)inf_shape_elements(y) / (double)y->dims[3] * filter;
    case INF_OP_CONV2D_TRANSPOSE:
        return (double)inf_shape_elements(x) / (double)x->dims[3] * filter;
    case INF_OP_MATMUL:
        return (double)inf_shape_elements(y) *
               (double)x->dims[x->rank - (node->attrs.matmul.transpose_a ? 2 : 1)];
    default:
        return 0;
    }
}

// What a step did, summed over the nodes that it computed in one go.
struct work {
    double macs;
    double bytes; // of the tensors that it read and wrote
};

static double value_bytes(const struct inf_graph *graph, uint32_t value)
{
    size_t size;
    if (value == INF_VALUE_NONE ||
        !inf_shape_bytes(&graph->values[value].shape, graph->values[value].dtype, &size))
        return 0;
    return (double)size;
}

// The listed node that computed `node`: itself, or one that reads its result. INF_NODE_NONE: none.
static uint32_t computed_by(const struct inf_graph *graph, const bool *listed, uint32_t node)
{
    while (node != INF_NODE_NONE && !listed[node]) {
        uint32_t reader = INF_NODE_NONE;
        for (uint32_t n = node + 1; reader == INF_NODE_NONE && n < graph->node_count; n++) {
            for (uint32_t i = 0; i < graph->nodes[n].input_count; i++) {
                if (graph->nodes[n].inputs[i] == graph->nodes[node].outputs[0])
                    reader = n;
            }
        }
        node = reader;
    }
    return node;
}

// Fills work[n] for each listed node n.
static void sum_work(const struct inf_graph *graph, const bool *listed, struct work *work)
{
    for (uint32_t n = 0; n < graph->node_count; n++) {
        uint32_t step = computed_by(graph, listed, n);
        if (step == INF_NODE_NONE)
            continue;
        const struct inf_node *node = &graph->nodes[n];
        work[step].macs += node_macs(graph, node);
        for (uint32_t i = 0; i < node->input_count; i++) {
            uint32_t value = node->inputs[i];
            uint32_t made_by = value != INF_VALUE_NONE ? graph->values[value].producer : step;
            // What lies between the nodes of a step is neither read nor written.
            if (made_by == INF_NODE_NONE || computed_by(graph, listed, made_by) != step)
                work[step].bytes += value_bytes(graph, value);
        }
        for (uint32_t i = 0; i < node->output_count && n == step; i++)
            work[step].bytes += value_bytes(graph, node->outputs[i]);
    }
}

struct timed {
    struct inf_node_profile *nodes;
    double *best_us;
    struct work *work; // by node
    bool *listed;      // by node
    uint32_t count;
};

static void print_profile(const struct inf_graph *graph, const struct timed *timed, double peak,
                          const struct inf_device *device)
{
    double total_us = 0;
    for (uint32_t i = 0; i < timed->count; i++)
        total_us += timed->best_us[i];
    printf("  %9s %6s %8s %6s %9s  %-6s %-22s %-16s %s\n", "us", "%", "GFLOP/s", "%peak", "KiB",
           "device", "kernel", "op", "node");
    for (uint32_t i = 0; i < timed->count; i++) {
        const struct inf_node_profile *profile = &timed->nodes[i];
        const struct inf_node *node = &graph->nodes[profile->node];
        const struct work *work = &timed->work[profile->node];
        double us = timed->best_us[i];
        double gflops = us > 0 ? 2e-3 * work->macs / us : 0;
        printf("  %9.1f %6.1f %8.1f %6.1f %9.1f  %-6s %-22s %-16s %s\n", us, 100 * us / total_us,
               gflops, peak > 0 ? 100 * gflops / peak : 0, work->bytes / 1024, profile->device,
               profile->kernel != NULL ? profile->kernel : "", inf_op_info(node->op)->name,
               node->name);
    }
    printf("  %9.1f in %u steps; multiply-adds peak at %.1f GFLOP/s; %s\n", total_us, timed->count,
           peak, inf_device_info(device)->description);
}

// The least time of each step over some runs: what disturbs the machine only adds.
static enum inf_code time_steps(const struct subject *subject, struct timed *timed,
                                struct inf_error *err)
{
    uint32_t capacity = subject->graph->node_count;
    for (uint32_t run = 0; run < PROFILE_RUNS; run++) {
        INF_TRY(run_once(subject, true, err));
        timed->count = inf_executable_profile(subject->executable, 0, timed->nodes, capacity);
        for (uint32_t i = 0; i < timed->count; i++) {
            double us = (double)timed->nodes[i].time_ns / 1000;
            timed->best_us[i] = run == 0 ? us : INF_MIN(timed->best_us[i], us);
        }
    }
    for (uint32_t i = 0; i < timed->count; i++)
        timed->listed[timed->nodes[i].node] = true;
    return INF_OK;
}

static enum inf_code run_first(const struct subject *subject, const struct bench *bench,
                               const char *name, struct inf_error *err)
{
    INF_TRY(run_once(subject, false, err));
    printf("inferd %s first %.1f\n", name,
           (double)(inf_clock_ns() - bench->begin_ns) / INF_NS_PER_MS);
    return INF_OK;
}

// What a run takes of the calling thread's processor.
static enum inf_code print_host(const struct subject *subject, struct inf_error *err)
{
    double best_us = 0;
    for (uint32_t run = 0; run < PROFILE_RUNS; run++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        INF_TRY(run_once(subject, false, err));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        double us =
            (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) / 1e3;
        best_us = run == 0 ? us : INF_MIN(best_us, us);
    }
    printf("  %9.1f of the calling thread\n", best_us);
    return INF_OK;
}

static enum inf_code profile(const struct subject *subject, const struct bench *bench,
                             struct inf_error *err)
{
    size_t count = (size_t)subject->graph->node_count + 1;
    struct timed timed = {.nodes = calloc(count, sizeof(*timed.nodes)),
                          .best_us = calloc(count, sizeof(*timed.best_us)),
                          .work = calloc(count, sizeof(*timed.work)),
                          .listed = calloc(count, sizeof(*timed.listed))};
    enum inf_code code = INF_OK;
    if (timed.nodes == NULL || timed.best_us == NULL || timed.work == NULL || timed.listed == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory for a profile");
    else
        code = time_steps(subject, &timed, err);
    if (code == INF_OK) {
        sum_work(subject->graph, timed.listed, timed.work);
        print_profile(subject->graph, &timed, bench->peak, bench->engine.device);
        (void)!run_once(subject, false, NULL); // without timestamps again
        code = print_host(subject, err);
    }
    free(timed.nodes);
    free(timed.best_us);
    free(timed.work);
    free(timed.listed);
    return code;
}

// --- what the backend leaves to others ---

static void print_declined(const struct subject *subject, const struct bench *bench,
                           const char *name)
{
    const struct inf_graph *graph = inf_executable_planned_graph(subject->executable);
    const struct inf_plan *plan = inf_executable_plan(subject->executable);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < plan->step_count; i++)
        taken += inf_device_supports(bench->engine.device, graph, plan->steps[i], NULL) == INF_OK;
    printf("inferd %s: %u of %u nodes on %s, %u interpreted\n", name, taken, plan->step_count,
           inf_device_info(bench->engine.device)->name,
           inf_executable_interpreted_nodes(subject->executable));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        struct inf_error why = {0};
        if (inf_device_supports(bench->engine.device, graph, plan->steps[i], &why) != INF_OK)
            printf("  %s: %s\n", graph->nodes[plan->steps[i]].name, why.text);
    }
}

static enum inf_code bench_model(const struct bench *bench, const char *model,
                                 struct inf_error *err)
{
    char path[4096];
    char name[256];
    find_file(path, sizeof(path), model);
    find_name(name, sizeof(name), model);
    struct subject *subject = calloc(1, sizeof(*subject));
    if (subject == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    enum inf_code code = load(subject, bench, path, err);
    if (code == INF_OK && bench->declined)
        print_declined(subject, bench, name);
    else if (code == INF_OK && bench->compare)
        code = tool_compare_kernels(bench->engine.device, subject->executable, err);
    else if (code == INF_OK && bench->cache != NULL)
        code = run_first(subject, bench, name, err);
    else if (code == INF_OK)
        code = measure(subject, bench, name, err);
    if (code == INF_OK && bench->profile && !bench->declined && !bench->compare)
        code = profile(subject, bench, err);
    unload(subject);
    free(subject);
    return code;
}

static int usage(void)
{
    fputs(
        "usage: bench_engine [--backend NAME] [--isa-max SET] [--dim N]\n"
        "                    [--profile | --declined | --compare-kernels | --first DIR]\n"
        "                    (--threads N --ms MS | N MS) MODEL...\n",
        stderr);
    return 2;
}

static bool parse(struct bench *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'},   {"threads", required_argument, NULL, 't'},
        {"ms", required_argument, NULL, 'm'},        {"dim", required_argument, NULL, 'd'},
        {"profile", no_argument, NULL, 'p'},         {"declined", no_argument, NULL, 'n'},
        {"compare-kernels", no_argument, NULL, 'c'}, {"isa-max", required_argument, NULL, 'i'},
        {"first", required_argument, NULL, 'f'},     {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            bench->backend = optarg;
        else if (option == 't')
            bench->threads = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'm')
            bench->ms = strtod(optarg, NULL);
        else if (option == 'd')
            bench->dim = strtol(optarg, NULL, 10);
        else if (option == 'i')
            bench->isa_max = optarg;
        else if (option == 'f')
            bench->cache = optarg;
        else if (option == 'p')
            bench->profile = true;
        else if (option == 'c')
            bench->compare = true;
        else if (option == 'n')
            bench->declined = true;
        else
            return false;
    }
    if (bench->threads == 0 && optind < argc)
        bench->threads = (uint32_t)strtoul(argv[optind++], NULL, 10);
    if (!(bench->ms > 0) && optind < argc)
        bench->ms = strtod(argv[optind++], NULL);
    return bench->threads > 0 && bench->ms > 0 && bench->dim > 0 && optind < argc;
}

int main(int argc, char **argv)
{
    struct bench bench = {.backend = "cpu", .dim = 224, .begin_ns = inf_clock_ns()};
    if (!parse(&bench, argc, argv))
        return usage();
    struct inf_error err = {0};
    const struct inf_device_options options = {.slots = 1,
                                               .threads = bench.threads,
                                               .isa_max = bench.isa_max,
                                               .cache_directory = bench.cache};
    if (tool_engine_open_with(&bench.engine, bench.backend, &options, &err) != INF_OK) {
        fprintf(stderr, "bench_engine: %s\n", err.text);
        return 2;
    }
    if (bench.profile)
        bench.peak = tool_peak() * bench.threads;
    int status = 0;
    for (int i = optind; i < argc; i++) {
        if (bench_model(&bench, argv[i], &err) != INF_OK) {
            fprintf(stderr, "bench_engine: %s: %s\n", argv[i], err.text);
            status = 1;
        }
        fflush(stdout);
    }
    tool_engine_close(&bench.engine);
    return status;
}
