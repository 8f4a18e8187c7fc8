// SPDX-License-Identifier: Apache-2.0
// bench_engine [--backend NAME] [--isa-max SET] [--race] [--check-shaders] [--dim N]
//             [--input FILE.npy]...
//             [--profile | --declined | --compare-kernels | --first DIR | --host]
//             (--threads N --ms MS | N MS) MODEL...
//
// Times one inference after the other, in process, and prints one line for each model:
//
//    inferd MODEL THREADS median X p99 Y min Z      (milliseconds)
//
// MODEL is a model file, or its name without suffix if NAME.tfjs/model.json, NAME.json or NAME.onnx
// exists.
// Without --threads and --ms, the first two arguments are N and MS, as shared/bench/peers.py -x
// passes them. A fifth of the time is spent on warming up. An unknown batch dimension of an input
// becomes 1, and other unknown dimensions become --dim (224). --input names the files of the first,
// second, ... input.
//
// --isa-max limits the ISA level of the cpu device (cpu_isa_max of inferd).
//
// --race times the kernels that can compute a node when a model is loaded, and takes the fastest
// kernel, as inferd does unless it is configured with race=never. Without --race, rules choose the
// kernels. A device spends only a limited time on races, so with --race a new device is opened for
// each model.
//
// --check-shaders compares each shader with the reference device before its first use, as inferd
// does on GPUs, and adds a line: how many were right, wrong and not checked so far, and the time of
// that.
//
// --profile adds one line for each step: its shortest time over some runs, multiply-adds per
// second, their share of the peak of the cores in this precision, that of the peak of dot products
// of bytes without tile registers (such as VNNI) if the step computes on bytes, the bytes of its
// tensors, bytes per second, and the kernel. A step may compute several nodes. The last line is the
// shortest CPU time of the calling thread in a run. If another device computes, this is the time
// that the host needs.
//
// --first prints the time from before the device is opened, with its caches in DIR, to the first
// answer. Mesa's drivers keep compiled shaders in MESA_SHADER_CACHE_DIR.
//
// --host prints how the time of a run on a Vulkan device divides between inferd's code on the
// calling thread and the driver's submits and waits. VULKAN_FAULT_LAYER is the folder of the layer
// that times the driver (tests/support in the build directory).
//
// --compare-kernels runs no model. For each node that several kernels of the cpu device can
// compute, it prints the shortest time of each kernel, run alone, in us. It does the same for the
// fusion levels of nodes that one step can compute. On a vulkan device it prints the time of each
// shader that can compute a convolution.
//
// --declined runs no model. It prints the number of nodes of the plan, how many of them the backend
// accepts, and why the backend declines each of the others.
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/device/counts.h"
#include "backends/registry.h"
#include "tests/tools/bench/bench_host.h"
#include "tests/tools/bench/bench_profile.h"
#include "tests/tools/kernels/compare_kernels.h"
#include "tests/tools/kernels/compare_shaders.h"

#define RUNS_MIN 5u
#define RUNS_MAX 1000000u

struct bench {
    const char *backend;
    const char *isa_max;
    uint32_t threads;
    double ms;
    struct bench_inputs inputs;
    bool profile, declined, compare, host, race, check;
    struct vulkan_faults *faults; // only for --host: the layer that times the driver
    const char *cache;            // only for --first: the directory of the device's caches
    uint64_t begin_ns;            // start of the process
    struct tool_engine engine;
};

// --- timing a model ---

static int compare_times(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

// A fifth of the time is spent on warming up, because wide vectors slow some processors down for a
// while after their first use.
static enum inf_code warm_up(const struct bench_subject *subject, const struct bench *bench,
                             struct inf_error *err)
{
    uint64_t begin_ns = inf_clock_ns();
    double spent_ms = 0;
    for (uint32_t runs = 0; spent_ms < bench->ms / 5 || runs < RUNS_MIN; runs++) {
        INF_TRY(bench_subject_run(subject, false, err));
        spent_ms = (double)(inf_clock_ns() - begin_ns) / INF_NS_PER_MS;
    }
    return INF_OK;
}

static enum inf_code measure_model(const struct bench_subject *subject, const struct bench *bench,
                                   struct inf_error *err)
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
        code = bench_subject_run(subject, false, err);
        uint64_t end_ns = inf_clock_ns();
        times_ms[runs++] = (double)(end_ns - start_ns) / INF_NS_PER_MS;
        spent_ms = (double)(end_ns - begin_ns) / INF_NS_PER_MS;
    }
    if (code == INF_OK) {
        qsort(times_ms, runs, sizeof(*times_ms), compare_times);
        printf("inferd %s %u median %.4f p99 %.4f min %.4f\n", subject->name,
               inf_device_info(bench->engine.device)->threads, times_ms[runs / 2],
               times_ms[(size_t)(runs * 0.99)], times_ms[0]);
    }
    free(times_ms);
    return code;
}

static enum inf_code run_first(const struct bench_subject *subject, const struct bench *bench,
                               struct inf_error *err)
{
    INF_TRY(bench_subject_run(subject, false, err));
    printf("inferd %s first %.1f\n", subject->name,
           (double)(inf_clock_ns() - bench->begin_ns) / INF_NS_PER_MS);
    return INF_OK;
}

// --- listing the nodes that the backend declines ---

static void print_declined(const struct bench_subject *subject, const struct bench *bench)
{
    const struct inf_graph *graph = inf_executable_planned_graph(subject->executable);
    const struct inf_plan *plan = inf_executable_plan(subject->executable);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < plan->step_count; i++)
        taken += inf_device_supports(bench->engine.device, graph, plan->steps[i], NULL) == INF_OK;
    printf("inferd %s: %u of %u nodes on %s, %u interpreted\n", subject->name, taken,
           plan->step_count, inf_device_info(bench->engine.device)->name,
           inf_executable_interpreted_nodes(subject->executable));
    for (uint32_t i = 0; i < plan->step_count; i++) {
        struct inf_error why = {0};
        if (inf_device_supports(bench->engine.device, graph, plan->steps[i], &why) != INF_OK)
            printf("  %s: %s\n", graph->nodes[plan->steps[i]].name, why.text);
    }
}

static void print_checks(const struct bench_subject *subject, const struct inf_device *device)
{
    printf("inferd %s shaders right %" PRIu64 " wrong %" PRIu64 " unchecked %" PRIu64 " ms %.1f\n",
           subject->name, inf_device_get_count(device, INF_COUNT_SHADERS_CHECKED),
           inf_device_get_count(device, INF_COUNT_SHADERS_WRONG),
           inf_device_get_count(device, INF_COUNT_SHADERS_UNCHECKED),
           (double)inf_device_get_count(device, INF_COUNT_SHADER_CHECK_US) / 1000);
}

static enum inf_code compare_candidates(struct inf_device *device,
                                        const struct inf_executable *executable,
                                        struct inf_error *err)
{
    if (strcmp(inf_device_info(device)->backend, "vulkan") == 0)
        return tool_compare_shaders(device, executable, err);
    return tool_compare_kernels(device, executable, err);
}

static enum inf_code bench_model(const struct bench *bench, const char *model,
                                 struct inf_error *err)
{
    struct bench_subject *subject = calloc(1, sizeof(*subject));
    if (subject == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory");
    enum inf_code code = bench_subject_load(subject, &bench->engine, model, &bench->inputs, err);
    if (code == INF_OK && bench->declined)
        print_declined(subject, bench);
    else if (code == INF_OK && bench->compare)
        code = compare_candidates(bench->engine.device, subject->executable, err);
    else if (code == INF_OK && bench->cache != NULL)
        code = run_first(subject, bench, err);
    else if (code == INF_OK && bench->host)
        code = bench_host(subject, bench->faults, bench->ms, err);
    else if (code == INF_OK)
        code = measure_model(subject, bench, err);
    if (code == INF_OK && bench->profile && !bench->declined && !bench->compare)
        code = bench_profile(subject, &bench->engine, bench->threads, err);
    if (code == INF_OK && bench->check)
        print_checks(subject, bench->engine.device);
    bench_subject_unload(subject);
    free(subject);
    return code;
}

static int print_usage(void)
{
    fputs(
        "usage: bench_engine [--backend NAME] [--isa-max SET] [--race] [--check-shaders]\n"
        "                    [--dim N] [--input FILE.npy]...\n"
        "                    [--profile | --declined | --compare-kernels | --first DIR | --host]\n"
        "                    (--threads N --ms MS | N MS) MODEL...\n",
        stderr);
    return 2;
}

static bool parse_options(struct bench *bench, int argc, char **argv)
{
    static const struct option options[] = {
        {"backend", required_argument, NULL, 'b'},   {"threads", required_argument, NULL, 't'},
        {"ms", required_argument, NULL, 'm'},        {"dim", required_argument, NULL, 'd'},
        {"profile", no_argument, NULL, 'p'},         {"declined", no_argument, NULL, 'n'},
        {"compare-kernels", no_argument, NULL, 'c'}, {"isa-max", required_argument, NULL, 'i'},
        {"first", required_argument, NULL, 'f'},     {"host", no_argument, NULL, 'h'},
        {"input", required_argument, NULL, 'x'},     {"race", no_argument, NULL, 'r'},
        {"check-shaders", no_argument, NULL, 'k'},   {0}};
    struct bench_inputs *inputs = &bench->inputs;
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'b')
            bench->backend = optarg;
        else if (option == 't')
            bench->threads = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'm')
            bench->ms = strtod(optarg, NULL);
        else if (option == 'd')
            inputs->dim = strtol(optarg, NULL, 10);
        else if (option == 'x' && inputs->file_count < INF_LIMIT_TENSORS)
            inputs->files[inputs->file_count++] = optarg;
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
        else if (option == 'r')
            bench->race = true;
        else if (option == 'k')
            bench->check = true;
        else if (option == 'h')
            bench->host = true;
        else
            return false;
    }
    if (bench->threads == 0 && optind < argc)
        bench->threads = (uint32_t)strtoul(argv[optind++], NULL, 10);
    if (!(bench->ms > 0) && optind < argc)
        bench->ms = strtod(argv[optind++], NULL);
    return bench->threads > 0 && bench->ms > 0 && inputs->dim > 0 && optind < argc;
}

// Opens the devices, benchmarks the models, and closes the devices. Returns the exit status: 0 on
// success, 1 if a model failed, 2 if the devices could not be opened.
static int bench_models(struct bench *bench, char *const *models, int count)
{
    struct inf_error err = {0};
    const struct inf_device_options options = {.slots = 1,
                                               .threads = bench->threads,
                                               .isa_max = bench->isa_max,
                                               .kernel_races = bench->race,
                                               .shader_oracle =
                                                   bench->check ? inf_registry_evaluator() : NULL,
                                               .check_software = true,
                                               .cache_directory = bench->cache};
    if (tool_engine_open_with(&bench->engine, bench->backend, &options, &err) != INF_OK) {
        fprintf(stderr, "bench_engine: %s\n", err.text);
        return 2;
    }
    int status = 0;
    for (int i = 0; i < count; i++) {
        if (bench_model(bench, models[i], &err) != INF_OK) {
            fprintf(stderr, "bench_engine: %s: %s\n", models[i], err.text);
            status = 1;
        }
        fflush(stdout);
    }
    tool_engine_close(&bench->engine);
    return status;
}

int main(int argc, char **argv)
{
    struct bench bench = {.backend = "cpu", .inputs = {.dim = 224}, .begin_ns = inf_clock_ns()};
    if (!parse_options(&bench, argc, argv))
        return print_usage();
    struct inf_error err = {0};
    if (bench.host && bench_host_prepare(&bench.faults, &err) != INF_OK) {
        fprintf(stderr, "bench_engine: %s\n", err.text);
        return 2;
    }
    int status = 0;
    int each = bench.race ? 1 : argc - optind;
    for (int i = optind; i < argc && status != 2; i += each) {
        int result = bench_models(&bench, argv + i, each);
        status = INF_MAX(status, result);
    }
    return status;
}
