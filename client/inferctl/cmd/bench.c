// SPDX-License-Identifier: Apache-2.0
// inferctl bench: measures how long a model takes through the daemon. In a closed loop, each of N
// streams sends its next request when the previous answer has arrived. In an open loop, requests
// are sent at a fixed rate (bench/open_loop.h).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/inferctl/bench/comparison.h"
#include "client/inferctl/bench/engine_program.h"
#include "client/inferctl/bench/open_loop.h"
#include "client/inferctl/bench/options.h"
#include "client/inferctl/bench/plot.h"
#include "client/inferctl/bench/table.h"
#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/progress.h"

#define WARMUP_RUNS 3

// One benchmark: the request that is sent, and the times measured so far.
struct bench {
    inferd_client *client;
    inferd_client *const *clients; // `client`, and for an open loop further connections
    inferd_request request;
    struct table *table;       // a table with the columns of `parts`
    unsigned parts;            // bits of enum bench_part, which choose the columns
    struct plot_point *points; // the points measured so far
    size_t point_count;
    double *total_ms, *queue_ms, *compute_ms, *added_ms; // one element for each answer
    double *engine_ms; // times of the engine alone; NULL: not measured
    double *socket_ms; // times of round trips through a bare socket; NULL: not measured
    size_t sent_bytes, received_bytes; // bytes of the tensors in one request, and in its answer
    unsigned long sent, answered, wanted;
    double first_ms;
    char device[32], precision[16];
    struct progress progress;
    struct inferd_error err; // the first failure; code 0: no failure
};

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void on_answer(void *context, inferd_result *result, const struct inferd_error *err);

static void send_next(struct bench *bench)
{
    struct inferd_error err;
    if (bench->err.code != 0 || bench->sent == bench->wanted)
        return;
    bench->sent++;
    if (inferd_infer_async(bench->client, &bench->request, on_answer, bench, NULL, &err) != 0)
        bench->err = err;
}

static void on_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct bench *bench = context;
    if (result == NULL) {
        if (bench->err.code == 0)
            bench->err = *err;
        return;
    }
    inferd_timing timing = inferd_result_timing(result);
    bench->total_ms[bench->answered] = (double)timing.total_ns / 1e6;
    bench->queue_ms[bench->answered] = (double)timing.queue_ns / 1e6;
    bench->compute_ms[bench->answered] = (double)timing.compute_ns / 1e6;
    bench->added_ms[bench->answered] = ((double)timing.total_ns - (double)timing.compute_ns) / 1e6;
    bench->answered++;
    inferd_result_free(result);
    progress_tick(&bench->progress, "requests", (unsigned)(bench->answered * 100 / bench->wanted));
    send_next(bench);
}

static void note_sizes(struct bench *bench, const inferd_result *result)
{
    bench->sent_bytes = bench->received_bytes = 0;
    for (size_t i = 0; i < bench->request.input_count; i++)
        bench->sent_bytes += bench->request.inputs[i].size;
    for (size_t i = 0; i < inferd_result_output_count(result); i++)
        bench->received_bytes += inferd_result_output(result, i)->size;
}

// Sends the first request, which compiles, and a few more to warm up caches. The table does not
// include these requests. Returns false and sets bench->err if one fails.
static bool warm_up(struct bench *bench)
{
    progress_show(&bench->progress, "warm-up", 0);
    for (int i = 0; i < WARMUP_RUNS; i++) {
        inferd_result *result;
        if (inferd_infer(bench->client, &bench->request, &result, &bench->err) != 0) {
            progress_end(&bench->progress);
            return false;
        }
        if (i == 0)
            bench->first_ms = (double)inferd_result_timing(result).total_ns / 1e6;
        snprintf(bench->device, sizeof bench->device, "%s", inferd_result_device(result));
        snprintf(bench->precision, sizeof bench->precision, "%s", inferd_result_precision(result));
        note_sizes(bench, result);
        inferd_result_free(result);
    }
    return true;
}

// --- adding rows to the printed table ---

static unsigned parts_of(const struct bench_options *options)
{
    return (options->streams.count > 0 ? BENCH_CLOSED : 0u) |
           (options->rates.count > 0 ? BENCH_OPEN : 0u) | (options->beside ? BENCH_SOCKET : 0u) |
           (options->direct != NULL ? BENCH_ENGINE : 0u) |
           (options->all_backends ? BENCH_DEVICES : 0u);
}

// Returns how many bytes of memory the model needs on the device that is measured. Returns 0 if the
// daemon has not reported that number.
static int64_t find_memory(const struct bench *bench)
{
    struct inferd_error err;
    inferd_placement *placement;
    uint64_t bytes = 0;
    if (inferd_explain(bench->client, bench->request.model, bench->request.version, &placement,
                       &err) == 0)
        // The daemon may list a device once for each precision, so use the largest value.
        for (size_t i = 0; i < placement->candidate_count; i++)
            if (strcmp(placement->candidates[i].device, bench->device) == 0 &&
                placement->candidates[i].memory_bytes > bytes)
                bytes = placement->candidates[i].memory_bytes;
    inferd_placement_free(placement);
    return (int64_t)bytes;
}

// Adds the measured times to the table, and a point to the plot. The caller has set the fields of
// `row` that depend on the kind of loop.
static void add_row(struct bench *bench, struct bench_row row, double elapsed_ms)
{
    row.model = bench->request.model;
    row.device = bench->device;
    row.per_second = (double)bench->answered / elapsed_ms * 1e3;
    row.total = latency_of(bench->total_ms, bench->answered);
    if (bench->socket_ms != NULL)
        row.socket_ms = latency_of(bench->socket_ms, bench->answered).median;
    if (bench->engine_ms != NULL)
        row.engine_ms = latency_of(bench->engine_ms, bench->answered).median;
    if ((bench->parts & BENCH_DEVICES) != 0)
        row.memory_bytes = find_memory(bench);
    bench_table_add(bench->table, bench->parts, &row);
    bench->points[bench->point_count++] =
        (struct plot_point){.open = row.rate != 0,
                            .load = (unsigned long)(row.rate != 0 ? row.rate : row.streams),
                            .per_second = row.per_second,
                            .median_ms = row.total.median,
                            .p99_ms = row.total.p99};
}

// Adds a row for a device that cannot run the model.
static void add_failure(const struct bench *bench)
{
    bench_table_add(bench->table, bench->parts,
                    &(struct bench_row){.model = bench->request.model,
                                        .device = bench->request.device,
                                        .failure = bench->err.text});
}

// --- comparison with the engine alone and with a bare socket ---

// Returns how many threads a run of the model uses on the measured device.
static unsigned find_threads(struct bench *bench)
{
    inferd_placement *placement;
    unsigned threads = 0;
    if (inferd_explain(bench->client, bench->request.model, bench->request.version, &placement,
                       NULL) != 0)
        return 0;
    for (size_t i = 0; i < placement->candidate_count; i++) {
        const inferd_candidate *candidate = &placement->candidates[i];
        if (strcmp(candidate->device, bench->device) == 0 &&
            (threads == 0 || strcmp(candidate->verdict, "chosen") == 0))
            threads = candidate->threads;
    }
    inferd_placement_free(placement);
    return threads;
}

// If the options ask for them, measures the times of the engine without the daemon and of round
// trips through a bare socket. Returns an exit code, and prints a message on failure.
static int measure_beside(struct bench *bench, const struct bench_options *options)
{
    if (bench->socket_ms != NULL && beside_socket(bench->sent_bytes, bench->received_bytes,
                                                  bench->answered, bench->socket_ms) != 0)
        return command_say(EXIT_FAILED, "no memory or threads for a bare socket");
    if (bench->engine_ms == NULL)
        return EXIT_OK;
    const struct engine_timing timing = {.file = options->direct,
                                         .request = &bench->request,
                                         .device = bench->device,
                                         .precision = bench->precision,
                                         .threads = find_threads(bench),
                                         .runs = bench->answered};
    return engine_program_time(&timing, bench->engine_ms);
}

// --- measuring closed and open loops ---

// Sends the requests of a closed loop. Returns false and sets bench->err if one fails.
static bool send_all(struct bench *bench, unsigned long streams, double *elapsed_ms)
{
    struct inferd_error err;
    bench->sent = bench->answered = 0;
    double started = now_ms();
    for (unsigned long i = 0; i < streams; i++)
        send_next(bench);
    if (inferd_wait(bench->client, &err) != 0 && bench->err.code == 0)
        bench->err = err;
    *elapsed_ms = now_ms() - started;
    progress_end(&bench->progress);
    return bench->err.code == 0;
}

// Measures a closed loop and adds a row. On failure returns false and either sets bench->err, or
// prints the reason and sets *code to an exit code.
static bool measure_closed(struct bench *bench, const struct bench_options *options,
                           unsigned long streams, int *code)
{
    double elapsed_ms;
    if (!send_all(bench, streams, &elapsed_ms))
        return false;
    *code = measure_beside(bench, options);
    if (*code == EXIT_OK)
        add_row(
            bench,
            (struct bench_row){.streams = (int64_t)streams,
                               .requests = (int64_t)bench->answered,
                               .first_ms = bench->first_ms,
                               .queue_ms = latency_of(bench->queue_ms, bench->answered).median,
                               .compute_ms = latency_of(bench->compute_ms, bench->answered).median,
                               .added_ms = latency_of(bench->added_ms, bench->answered).median},
            elapsed_ms);
    return *code == EXIT_OK;
}

// Measures an open loop and adds a row. On failure, as measure_closed(), returns false and either
// sets bench->err, or prints the reason and sets *code to an exit code.
static bool measure_open(struct bench *bench, const struct bench_options *options,
                         unsigned long rate, int *code)
{
    const struct open_loop_options loop = {
        .rate = (double)rate, .poisson = !options->even, .requests = bench->wanted, .seed = rate};
    struct open_loop_result result;
    int failed = open_loop_run(bench->clients, options->connections, &bench->request, &loop,
                               bench->total_ms, &result);
    progress_end(&bench->progress);
    bench->answered = result.answered;
    bench->err = result.err;
    if (failed == 0 && result.answered == 0) {
        bench->err.code = INFERD_RESOURCE_EXHAUSTED;
        snprintf(bench->err.text, sizeof bench->err.text,
                 "at %lu requests a second all were refused", rate);
        return false;
    }
    if (failed != 0)
        return false;
    *code = measure_beside(bench, options);
    if (*code == EXIT_OK)
        add_row(bench,
                (struct bench_row){.rate = (int64_t)rate,
                                   .requests = (int64_t)bench->wanted,
                                   .refused = (int64_t)(result.refused + result.expired),
                                   .late_ms = result.late_ms},
                result.elapsed_ms);
    return *code == EXIT_OK;
}

// Measures the model under each load that the options name, one load after the other.
static bool measure_all(struct bench *bench, const struct bench_options *options, int *code)
{
    bool measured = warm_up(bench);
    for (size_t i = 0; measured && i < options->streams.count; i++)
        measured = measure_closed(bench, options, options->streams.values[i], code);
    for (size_t i = 0; measured && i < options->rates.count; i++)
        measured = measure_open(bench, options, options->rates.values[i], code);
    return measured;
}

// Measures on the device that the request names, and sets *out_point (all 0 if nothing was
// measured). On failure prints a message or, with --all-backends, adds a row with the reason.
static int bench_device(struct table *table, inferd_client *const *clients,
                        const inferd_request *request, const struct bench_options *options,
                        struct plot_point *out_point)
{
    // Room for six times of each run: total, queue, compute, added, engine and socket.
    double *samples = calloc(options->runs, 6 * sizeof *samples);
    if (samples == NULL)
        return command_say(EXIT_FAILED, "no memory for %lu runs", options->runs);
    struct plot_point points[2 * BENCH_LOADS_MAX];
    int code = EXIT_OK;
    struct bench bench = {.client = clients[0],
                          .clients = clients,
                          .request = *request,
                          .table = table,
                          .parts = parts_of(options),
                          .points = points,
                          .wanted = options->runs,
                          .total_ms = samples,
                          .queue_ms = samples + options->runs,
                          .compute_ms = samples + 2 * options->runs,
                          .added_ms = samples + 3 * options->runs,
                          .socket_ms = options->beside ? samples + 4 * options->runs : NULL,
                          .engine_ms = options->direct != NULL ? samples + 5 * options->runs : NULL,
                          .progress = progress_start(request->model)};
    bool measured = measure_all(&bench, options, &code);
    free(samples);
    if (measured && options->all_backends)
        *out_point = points[0];
    else if (measured && options->plot != NULL)
        code = plot_write(options->plot, request->model, points, bench.point_count);
    if (!options->all_backends)
        return measured || code != EXIT_OK ? code : command_failed(&bench.err);
    if (!measured)
        add_failure(&bench);
    return EXIT_OK;
}

static int bench_devices(struct table *table, inferd_client *const *clients,
                         const inferd_request *request, const struct bench_options *options)
{
    inferd_device_row *devices;
    size_t count, bar_count = 0;
    struct inferd_error err;
    int code = EXIT_OK;
    if (inferd_devices(clients[0], &devices, &count, &err) != 0)
        return command_failed(&err);
    struct plot_bar *bars = calloc(count + 1, sizeof *bars);
    if (bars == NULL)
        code = command_say(EXIT_FAILED, "no memory for %zu devices", count);
    for (size_t i = 0; i < count && code == EXIT_OK; i++) {
        inferd_request pinned = *request;
        struct plot_point point = {0};
        pinned.device = devices[i].name;
        code = bench_device(table, clients, &pinned, options, &point);
        if (point.median_ms > 0)
            bars[bar_count++] = (struct plot_bar){devices[i].name, point.median_ms, point.p99_ms};
    }
    if (code == EXIT_OK && options->plot != NULL && bar_count > 0)
        code = plot_write_bars(options->plot, request->model, bars, bar_count);
    free(bars);
    free(devices);
    return code;
}

static int bench_request(const struct context *context, inferd_client *const *clients,
                         const inferd_request *request, const struct bench_options *options)
{
    struct table *table = bench_table_start(parts_of(options));
    int code = options->all_backends ? bench_devices(table, clients, request, options)
                                     : bench_device(table, clients, request, options, NULL);
    if (code == EXIT_OK)
        table_print(table, context->format,
                    !options->all_backends && options->streams.count + options->rates.count == 1);
    else
        table_free(table);
    return code;
}

static int bench_model(const struct context *context, inferd_client *const *clients,
                       const char *model, const struct bench_options *options)
{
    inferd_model_info *info;
    int code = command_describe(clients[0], model, options->request.version, &info);
    if (code != EXIT_OK)
        return code;
    struct tensor_inputs inputs = {0};
    code = request_options_load(&inputs, &options->request, clients[0], model, info);
    if (code == EXIT_OK)
        code = tensor_inputs_complete(&inputs, info, TENSOR_ZEROS);
    for (unsigned long i = 0; code == EXIT_OK && i < options->connections; i++)
        code = request_options_apply(&options->request, clients[i], NULL);
    for (unsigned long i = 0; code == EXIT_OK && i < options->connections; i++)
        inferd_set_queue_timeout(clients[i], options->queue_timeout_ms);
    if (code == EXIT_OK)
        code = bench_request(context, clients,
                             &(inferd_request){.model = model,
                                               .version = options->request.version,
                                               .device = options->request.device,
                                               .inputs = inputs.tensors,
                                               .input_count = inputs.count,
                                               .timeout_ms = options->timeout_ms},
                             options);
    tensor_inputs_fini(&inputs);
    inferd_model_info_free(info);
    return code;
}

static int run_bench(const struct context *context, const struct arguments *arguments)
{
    struct bench_options options;
    inferd_client *clients[OPEN_LOOP_CLIENTS_MAX] = {NULL};
    int code = bench_options_read(&options, arguments);
    for (unsigned long i = 0; code == EXIT_OK && i < options.connections; i++)
        code = command_connect(context, false, &clients[i]);
    if (code == EXIT_OK)
        code = bench_model(context, clients, arguments->names[0], &options);
    for (unsigned long i = 0; i < OPEN_LOOP_CLIENTS_MAX; i++)
        inferd_close(clients[i]);
    return code;
}

const struct command command_bench = {
    .name = "bench",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "measure how long MODEL takes through the daemon",
    .help =
        "A closed loop: each stream sends its next request when its answer is there. The first\n"
        "request, which compiles, is shown apart. With --rate an open loop: requests come at\n"
        "that rate whatever the daemon does, and latency counts from when each was meant to be\n"
        "sent. Inputs that are not given are zeros.\n\n" BENCH_OPTIONS_HELP,
    .short_options = BENCH_SHORT_OPTIONS,
    .long_options = bench_long_options,
    .run = run_bench,
};
