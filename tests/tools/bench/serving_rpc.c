// SPDX-License-Identifier: Apache-2.0
// Compares round trips through the daemon that need almost no work with round trips over a bare
// socket; measures requests per second; compares real models through the daemon with the engine
// alone.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/models/tfjs_writer.h"
#include "tests/tools/bench/rpc_echo.h"
#include "tests/tools/bench/serving_parts.h"
#include "tests/tools/run/engine.h"

#define ROUNDS       5
#define PAIRS        6000
#define DEPTH        64
#define SMALL_BYTES  1024
#define LARGE_FLOATS (1 << 20)

static const char *const null_arguments[] = {"--cpu-threads=1", "--race=never",
                                             "--connections-per-uid-max=512", NULL};

static void start_null(struct rpc_daemon *daemon)
{
    char directory[96];
    rpc_daemon_make(daemon);
    rpc_daemon_add_model(daemon, "null", directory);
    inf_write_null_model(directory, 0);
    rpc_daemon_start(daemon, rpc_daemon_path(), null_arguments);
}

static struct serving_target small_target(const struct rpc_daemon *daemon)
{
    return (struct serving_target){.socket = daemon->socket,
                                   .model = "null",
                                   .input = "x",
                                   .rank = 1,
                                   .shape = {SMALL_BYTES / 4}};
}

// --- comparing round trips through the daemon with a bare socket ---

struct rounds {
    double p50[ROUNDS], p99[ROUNDS];
};

static struct rpc_times find_median(struct rounds *rounds)
{
    return (struct rpc_times){.p50_us = serving_quantile(rounds->p50, ROUNDS, 0.5),
                              .p99_us = serving_quantile(rounds->p99, ROUNDS, 0.5)};
}

static void note_result(struct rounds *rounds, int round, struct rpc_times times)
{
    rounds->p50[round] = times.p50_us;
    rounds->p99[round] = times.p99_us;
}

static struct rpc_times measure_bare(bool echo, unsigned clients, unsigned ms)
{
    struct rpc_bare bare;
    if (echo)
        rpc_echo_start(&bare, SMALL_BYTES, clients);
    else
        rpc_bare_start(&bare, SMALL_BYTES, clients);
    struct rpc_way way = rpc_bare_way(&bare);
    struct rpc_times times = rpc_measure(&way, clients, ms);
    rpc_bare_stop(&bare);
    return times;
}

static void show_null(struct figures *figures, const struct rpc_daemon *daemon,
                      const struct serving_options *options)
{
    struct rounds bare;
    struct rounds echo;
    struct rounds null;
    struct serving_target target = small_target(daemon);
    struct rpc_way way = serving_way(&target);
    unsigned ms = 300 * options->seconds;
    for (int round = 0; round < ROUNDS; round++) {
        note_result(&bare, round, measure_bare(false, 1, ms));
        note_result(&echo, round, measure_bare(true, 1, ms));
        note_result(&null, round, rpc_measure(&way, 1, ms));
    }
    struct rpc_times socket = find_median(&bare);
    struct rpc_times loop = find_median(&echo);
    struct rpc_times daemons = find_median(&null);
    const struct figure lines[] = {
        {"1 KiB, bare socket ping-pong, p50", socket.p50_us, "us", FIGURE_NONE, 0},
        {"1 KiB, bare socket ping-pong, p99", socket.p99_us, "us", FIGURE_NONE, 0},
        {"1 KiB, bare loop + worker + eventfd, p50", loop.p50_us, "us", FIGURE_NONE, 0},
        {"1 KiB, bare loop + worker + eventfd, p99", loop.p99_us, "us", FIGURE_NONE, 0},
        {"1 KiB null request, p50", daemons.p50_us, "us", FIGURE_NONE, 0},
        {"1 KiB null request, p99", daemons.p99_us, "us", FIGURE_NONE, 0},
        {"1 KiB null request, p50, of the bare loop's", daemons.p50_us / loop.p50_us, "x",
         FIGURE_AT_MOST, 2},
        {"1 KiB null request, p99, of the bare loop's", daemons.p99_us / loop.p99_us, "x",
         FIGURE_AT_MOST, 4},
        {"1 KiB null request, p50, of the bare socket's", daemons.p50_us / socket.p50_us, "x",
         FIGURE_NONE, 0},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        figures_add(figures, &lines[i]);
}

// --- the time that the daemon adds, and the time that large tensors add ---

static void show_pairs(struct figures *figures, const struct rpc_daemon *daemon)
{
    static double differences[PAIRS];
    static double inside[PAIRS];
    struct serving_target small = small_target(daemon);
    struct serving_target large = small;
    large.in_place = true;
    large.shape[0] = LARGE_FLOATS;
    struct serving_caller *caller = serving_open(&large);
    inferd_tensor large_input = caller->input;
    struct serving_caller *other = serving_open(&small);
    inferd_tensor small_input = other->input;
    for (int i = -200; i < PAIRS; i++) {
        uint64_t start_ns = rpc_now_ns();
        caller->input = small_input;
        serving_trip(caller);
        uint64_t middle_ns = rpc_now_ns();
        double inside_us = caller->inside_us;
        caller->input = large_input;
        serving_trip(caller);
        uint64_t end_ns = rpc_now_ns();
        if (i < 0)
            continue;
        inside[i] = inside_us;
        differences[i] = ((double)(end_ns - middle_ns) - (double)(middle_ns - start_ns)) / 1e3;
    }
    figures_add(figures,
                &(struct figure){"server-added time, in band, p50",
                                 serving_quantile(inside, PAIRS, 0.5), "us", FIGURE_AT_MOST, 20});
    figures_add(figures, &(struct figure){"4 MiB in a memfd over 1 KiB in the frame, median pair",
                                          serving_quantile(differences, PAIRS, 0.5), "us",
                                          FIGURE_AT_MOST, 10});
    serving_close(other);
    serving_close(caller);
}

// --- counting requests per second ---

struct pipeline {
    struct serving_caller *caller;
    uint64_t end_ns, answered;
};

static void count_answers(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct pipeline *pipeline = context;
    struct inferd_error refused;
    if (result == NULL)
        rpc_die("inference failed: %s: %s", err->reason, err->text);
    inferd_result_free(result);
    pipeline->answered++;
    if (rpc_now_ns() < pipeline->end_ns &&
        inferd_infer_async(pipeline->caller->client, &pipeline->caller->request, count_answers,
                           pipeline, NULL, &refused) != INFERD_OK)
        rpc_die("cannot send: %s", refused.text);
}

static double measure_pipeline(const struct rpc_daemon *daemon, unsigned ms)
{
    struct serving_target target = small_target(daemon);
    struct pipeline pipeline = {.caller = serving_open(&target)};
    struct inferd_error err;
    serving_trip(pipeline.caller);
    uint64_t begin_ns = rpc_now_ns();
    pipeline.end_ns = begin_ns + ms * UINT64_C(1000000);
    for (int i = 0; i < DEPTH; i++)
        if (inferd_infer_async(pipeline.caller->client, &pipeline.caller->request, count_answers,
                               &pipeline, NULL, &err) != INFERD_OK)
            rpc_die("cannot send: %s", err.text);
    if (inferd_wait(pipeline.caller->client, &err) != INFERD_OK)
        rpc_die("cannot wait: %s", err.text);
    double seconds = (double)(rpc_now_ns() - begin_ns) / 1e9;
    serving_close(pipeline.caller);
    return (double)pipeline.answered / seconds;
}

static void show_rates(struct figures *figures, const struct rpc_daemon *daemon,
                       const struct serving_options *options)
{
    double bare[ROUNDS];
    double closed[ROUNDS];
    double pipelined[ROUNDS];
    double p50[ROUNDS];
    struct serving_target target = small_target(daemon);
    struct rpc_way way = serving_way(&target);
    unsigned ms = 300 * options->seconds;
    for (int round = 0; round < ROUNDS; round++) {
        bare[round] = (double)measure_bare(true, 8, ms).count * 1e3 / ms;
        struct rpc_times times = rpc_measure(&way, 8, ms);
        closed[round] = (double)times.count * 1e3 / ms;
        p50[round] = times.p50_us;
        pipelined[round] = measure_pipeline(daemon, ms);
    }
    figures_add(figures,
                &(struct figure){"8 clients, closed loop, bare loop + worker + eventfd",
                                 serving_quantile(bare, ROUNDS, 0.5), "/s", FIGURE_NONE, 0});
    figures_add(figures,
                &(struct figure){"8 clients, closed loop, p50", serving_quantile(p50, ROUNDS, 0.5),
                                 "us", FIGURE_NONE, 0});
    figures_add(figures, &(struct figure){"8 clients, closed loop, requests",
                                          serving_quantile(closed, ROUNDS, 0.5), "/s",
                                          FIGURE_AT_LEAST, 70000});
    figures_add(figures, &(struct figure){"1 client, 64 in flight, requests",
                                          serving_quantile(pipelined, ROUNDS, 0.5), "/s",
                                          FIGURE_AT_LEAST, 100000});
}

void serving_show_rpc(struct figures *figures, const struct serving_options *options)
{
    struct rpc_daemon daemon;
    start_null(&daemon);
    show_null(figures, &daemon, options);
    show_pairs(figures, &daemon);
    if (!options->pinned)
        show_rates(figures, &daemon, options);
    rpc_daemon_stop(&daemon);
}

// --- comparing real models through the daemon with the engine alone ---

// A model that is compiled in this process with the options that the daemon uses.
struct direct {
    struct tool_engine engine;
    struct inf_model *model;
    struct inf_executable *executable;
    void *input, *outputs[INF_LIMIT_TENSORS];
    const void *inputs[1];
};

static void open_direct(struct direct *direct, const char *path,
                        const struct serving_target *target)
{
    struct inf_error err;
    struct inf_shape shape = {.rank = target->rank};
    size_t size = sizeof(float);
    for (int i = 0; i < target->rank; i++)
        size *= (size_t)(shape.dims[i] = target->shape[i]);
    if (tool_engine_open(&direct->engine, "cpu", 1, &err) != INF_OK ||
        tool_engine_load(&direct->engine, path, &direct->model, &err) != INF_OK ||
        inf_model_acquire(direct->model, direct->engine.device, &shape, &direct->executable,
                          &err) != INF_OK)
        rpc_die("%s: %s", path, err.text);
    direct->inputs[0] = calloc(1, size + 4096);
    const struct inf_graph *graph = inf_executable_graph(direct->executable);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        direct->outputs[i] =
            calloc(1, inf_shape_elements(&value->shape) * inf_dtype_size(value->dtype) + 4096);
    }
}

static double trip_direct(struct direct *direct)
{
    struct inf_error err;
    const struct inf_execution execution = {.inputs = direct->inputs, .outputs = direct->outputs};
    uint64_t start_ns = rpc_now_ns();
    if (inf_executable_run(direct->executable, &execution, &err) != INF_OK)
        rpc_die("run: %s", err.text);
    return (double)(rpc_now_ns() - start_ns) / 1e3;
}

static void copy_model(const char *from, const char *to)
{
    char source[520];
    snprintf(source, sizeof source, "%s/.", from);
    pid_t pid = fork();
    if (pid == 0) {
        execlp("cp", "cp", "-rL", source, to, (char *)NULL);
        _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        rpc_die("cannot copy %s", from);
}

#define ENGINE_RUNS  400
#define ENGINE_BLOCK 20

// Daemon and engine run in alternating blocks, so that other work on the machine affects both. The
// first two runs of a block are not counted.
static void show_over(struct figures *figures, struct direct *direct,
                      const struct serving_target *target)
{
    static double direct_us[ENGINE_RUNS];
    static double daemon_us[ENGINE_RUNS];
    static double run_us[ENGINE_RUNS];
    static double inside_us[ENGINE_RUNS];
    const char *how = target->in_place ? ", in shared memory" : "";
    char what[128];
    size_t count = 0;
    struct serving_caller *caller = serving_open(target);
    for (int i = 0; i < ENGINE_RUNS; i += ENGINE_BLOCK, count += ENGINE_BLOCK - 2) {
        for (int k = -2; k < ENGINE_BLOCK - 2; k++) {
            double us = trip_direct(direct);
            if (k >= 0)
                direct_us[count + (size_t)k] = us;
        }
        for (int k = -2; k < ENGINE_BLOCK - 2; k++) {
            uint64_t start_ns = rpc_now_ns();
            serving_trip(caller);
            if (k < 0)
                continue;
            daemon_us[count + (size_t)k] = (double)(rpc_now_ns() - start_ns) / 1e3;
            run_us[count + (size_t)k] = caller->compute_us;
            inside_us[count + (size_t)k] = caller->inside_us;
        }
    }
    double alone_us = serving_quantile(direct_us, count, 0.5);
    double through_us = serving_quantile(daemon_us, count, 0.5);
    double bound_us = alone_us * 0.03 > 50 ? alone_us * 0.03 : 50;
    // Another program on the same physical core may make some blocks slower and not others. The
    // first deciles compare the quickest runs, which are the least disturbed ones.
    double alone_p10_us = serving_quantile(direct_us, count, 0.1);
    double through_p10_us = serving_quantile(daemon_us, count, 0.1);
    double run_p10_us = serving_quantile(run_us, count, 0.1);
    const struct {
        const char *what, *quantile;
        double us;
        enum figure_bound bound;
    } lines[] = {
        {"engine alone", "p50", alone_us, FIGURE_NONE},
        {"through the daemon over it", "p50", through_us - alone_us, FIGURE_AT_MOST},
        {"of that in the run itself", "p50", serving_quantile(run_us, count, 0.5) - alone_us,
         FIGURE_NONE},
        {"of that in the queue and with inputs and outputs", "p50",
         serving_quantile(inside_us, count, 0.5), FIGURE_NONE},
        {"engine alone", "p10", alone_p10_us, FIGURE_NONE},
        {"through the daemon over it", "p10", through_p10_us - alone_p10_us, FIGURE_NONE},
        {"of that in the run itself", "p10", run_p10_us - alone_p10_us, FIGURE_NONE},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        snprintf(what, sizeof what, "%s, %s%s, %s", target->model, lines[i].what, how,
                 lines[i].quantile);
        figures_add(figures, &(struct figure){what, lines[i].us, "us", lines[i].bound, bound_us});
    }
    serving_close(caller);
}

static void show_model(struct figures *figures, const char *directory, const char *file,
                       const struct serving_target *described)
{
    struct rpc_daemon daemon;
    struct direct direct = {0};
    char to[96];
    char path[600];
    rpc_daemon_make(&daemon);
    rpc_daemon_add_model(&daemon, described->model, to);
    copy_model(directory, to);
    rpc_daemon_start(
        &daemon, rpc_daemon_path(),
        (const char *[]){"--cpu-threads=1", "--backends=cpu,ref", "--race=never", NULL});
    snprintf(path, sizeof path, "%s/%s", directory, file);
    open_direct(&direct, path, described);
    struct serving_target target = *described;
    target.socket = daemon.socket;
    for (int shared = 0; shared < 2; shared++) {
        target.in_place = shared != 0;
        show_over(figures, &direct, &target);
    }
    inf_model_release(direct.model, &direct.executable);
    inf_model_unref(&direct.model);
    tool_engine_close(&direct.engine);
    free((void *)direct.inputs[0]);
    for (unsigned i = 0; i < INF_LIMIT_TENSORS; i++)
        free(direct.outputs[i]);
    rpc_daemon_stop(&daemon);
}

void serving_show_engine(struct figures *figures, const struct serving_options *options)
{
    static const struct {
        const char *directory, *file;
        struct serving_target target;
    } models[] = {
        {"blazeface-front/model",
         "blazeface-front.json",
         {.model = "blazeface", .input = "input:0", .rank = 4, .shape = {1, 128, 128, 3}}},
        {"mobilenet_v2_100_224-tfjs/model",
         "model.json",
         {.model = "mobilenet", .input = "input", .rank = 4, .shape = {1, 224, 224, 3}}},
    };
    char directory[512];
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        snprintf(directory, sizeof directory, "%s/%s", options->models ? options->models : "",
                 models[i].directory);
        if (options->models == NULL || access(directory, R_OK) != 0)
            figures_skip(figures, models[i].target.model, "the model is not there: --models DIR");
        else
            show_model(figures, directory, models[i].file, &models[i].target);
    }
}
