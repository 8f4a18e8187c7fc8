// SPDX-License-Identifier: Apache-2.0
// inferctl bench: how long a model takes through the daemon. A closed loop: each of N streams sends
// its next request when its answer is there.
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferctl/command.h"
#include "client/inferctl/progress.h"
#include "client/inferctl/table.h"
#include "client/inferctl/tensor_input.h"

#define RUNS_DEFAULT 200
#define WARMUP_RUNS  3

struct options {
    const char *inputs[TENSOR_INPUTS_MAX];
    size_t input_count;
    const char *device;
    unsigned long runs, streams;
    struct picture_options picture;
};

// One benchmark under way.
struct bench {
    inferd_client *client;
    const char *model;
    inferd_request request;
    double *total_ms; // by answer
    double *compute_ms;
    unsigned long sent, answered, wanted;
    double first_ms;
    char device[32];
    struct inferd_error err; // the first failure; code 0: none
};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void answered(void *context, inferd_result *result, const struct inferd_error *err);

static void send_next(struct bench *bench)
{
    struct inferd_error err;
    if (bench->err.code != 0 || bench->sent == bench->wanted)
        return;
    bench->sent++;
    if (inferd_infer_async(bench->client, &bench->request, answered, bench, NULL, &err) != 0)
        bench->err = err;
}

static void answered(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct bench *bench = context;
    if (result == NULL) {
        if (bench->err.code == 0)
            bench->err = *err;
        return;
    }
    inferd_timing timing = inferd_result_timing(result);
    bench->total_ms[bench->answered] = (double)timing.total_ns / 1e6;
    bench->compute_ms[bench->answered] = (double)timing.compute_ns / 1e6;
    bench->answered++;
    inferd_result_free(result);
    if (bench->answered % 16 == 0)
        progress_show(bench->model, "requests", (unsigned)(bench->answered * 100 / bench->wanted));
    send_next(bench);
}

// The first request compiles; a few more settle caches. Neither is counted.
static int warm_up(struct bench *bench)
{
    for (int i = 0; i < WARMUP_RUNS; i++) {
        inferd_result *result;
        if (inferd_infer(bench->client, &bench->request, &result, &bench->err) != 0)
            return command_failed(&bench->err);
        if (i == 0)
            bench->first_ms = (double)inferd_result_timing(result).total_ns / 1e6;
        snprintf(bench->device, sizeof bench->device, "%s", inferd_result_device(result));
        inferd_result_free(result);
    }
    return EXIT_OK;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static void print(struct bench *bench, double elapsed_ms, unsigned long streams,
                  enum output_format format)
{
    static const char *const columns[] = {
        "model",   "device", "requests", "streams", "per_second", "first_ms",         "median_ms",
        "mean_ms", "p95_ms", "p99_ms",   "min_ms",  "max_ms",     "compute_median_ms"};
    unsigned long count = bench->answered;
    qsort(bench->total_ms, count, sizeof *bench->total_ms, ascending);
    qsort(bench->compute_ms, count, sizeof *bench->compute_ms, ascending);
    double sum = 0;
    for (unsigned long i = 0; i < count; i++)
        sum += bench->total_ms[i];
    struct table *table = table_create(columns, sizeof columns / sizeof columns[0]);
    table_text(table, bench->model);
    table_text(table, bench->device);
    table_number(table, (double)count, NULL);
    table_number(table, (double)streams, NULL);
    const double numbers[] = {(double)count / elapsed_ms * 1e3,
                              bench->first_ms,
                              bench->total_ms[count / 2],
                              sum / (double)count,
                              bench->total_ms[count * 95 / 100],
                              bench->total_ms[count * 99 / 100],
                              bench->total_ms[0],
                              bench->total_ms[count - 1],
                              bench->compute_ms[count / 2]};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        table_number(table, numbers[i], NULL);
    table_print(table, format, true);
}

static int measure(struct bench *bench, const struct options *options, enum output_format format)
{
    int code = warm_up(bench);
    if (code != EXIT_OK)
        return code;
    struct inferd_error err;
    double started = now_ms();
    for (unsigned long i = 0; i < options->streams; i++)
        send_next(bench);
    if (inferd_wait(bench->client, &err) != 0 && bench->err.code == 0)
        bench->err = err;
    double elapsed = now_ms() - started;
    progress_clear();
    if (bench->err.code != 0)
        return command_failed(&bench->err);
    print(bench, elapsed, options->streams, format);
    return EXIT_OK;
}

static int bench_model(const struct context *context, inferd_client *client, const char *model,
                       const struct options *options)
{
    struct inferd_error err;
    inferd_model_info *info;
    if (inferd_model_describe(client, model, NULL, &info, &err) != 0)
        return command_failed(&err);
    struct tensor_inputs inputs = {0};
    int code = EXIT_OK;
    for (size_t i = 0; i < options->input_count && code == EXIT_OK; i++)
        code = tensor_inputs_add(&inputs, options->inputs[i], info, &options->picture);
    if (code == EXIT_OK)
        code = tensor_inputs_complete(&inputs, info);
    struct bench bench = {.client = client,
                          .model = model,
                          .request = {.model = model,
                                      .device = options->device,
                                      .inputs = inputs.tensors,
                                      .input_count = inputs.count},
                          .wanted = options->runs,
                          .total_ms = calloc(options->runs, sizeof(double)),
                          .compute_ms = calloc(options->runs, sizeof(double))};
    if (bench.total_ms == NULL || bench.compute_ms == NULL)
        code = command_wrong("no memory for %lu runs", options->runs);
    if (code == EXIT_OK)
        code = measure(&bench, options, context->format);
    free(bench.total_ms);
    free(bench.compute_ms);
    tensor_inputs_fini(&inputs);
    inferd_model_info_free(info);
    return code;
}

// Takes one option; false where it makes no sense.
static bool take_option(struct options *options, int c)
{
    switch (c) {
    case 'i':
        if (options->input_count == TENSOR_INPUTS_MAX)
            return false;
        options->inputs[options->input_count++] = optarg;
        return true;
    case 'd':
        options->device = optarg;
        return true;
    case 'n':
        return command_number("--runs", optarg, 1, 10000000, &options->runs);
    case 'c':
        return command_number("--streams", optarg, 1, 1024, &options->streams);
    case 'r':
        return picture_options_range(&options->picture, optarg);
    default:
        return false;
    }
}

static int run(const struct context *context, const struct command *command, int argc, char **argv)
{
    static const struct option longs[] = {{"input", required_argument, NULL, 'i'},
                                          {"device", required_argument, NULL, 'd'},
                                          {"runs", required_argument, NULL, 'n'},
                                          {"streams", required_argument, NULL, 'c'},
                                          {"range", required_argument, NULL, 'r'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct options options = {.runs = RUNS_DEFAULT, .streams = 1, .picture = {.low = 0, .high = 1}};
    for (int c; (c = getopt_long(argc, argv, "i:d:n:c:r:h", longs, NULL)) != -1;) {
        if (c == 'h' || c == '?')
            return command_usage(command, c == 'h');
        if (!take_option(&options, c))
            return EXIT_USAGE;
    }
    if (argc - optind != 1)
        return command_usage(command, false);
    inferd_client *client;
    int code = command_connect(context, false, &client);
    if (code != EXIT_OK)
        return code;
    code = bench_model(context, client, argv[optind], &options);
    inferd_close(client);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .arguments = "MODEL",
    .summary = "measure how long MODEL takes through the daemon",
    .options =
        "  -n, --runs N           requests (default 200)\n"
        "  -c, --streams N        requests in flight at once (default 1)\n"
        "  -d, --device NAME      run on this device\n"
        "  -i, --input NAME=FILE  an input, as for infer; zeros where not given\n"
        "  -r, --range LOW:HIGH   as for infer\n",
    .run = run,
};
