// SPDX-License-Identifier: Apache-2.0
// Measures a daemon under more load than it can serve: overload, users who share a device, and
// batching.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/inferctl/bench/open_loop.h"
#include "tests/tools/bench/serving_parts.h"

#define WIDTH 256

// Use one worker with one thread, so that the requests have to compete for it.
#define ONE_WORKER                                                                                 \
    "--cpu-threads=1", "--cpu-slots=1", "--backends=cpu,ref", "--race=never",                      \
        "--connections-per-uid-max=512"

static struct serving_target chain_target(const struct rpc_daemon *daemon, const char *model,
                                          int64_t rows, int64_t width)
{
    return (struct serving_target){
        .socket = daemon->socket, .model = model, .input = "x", .rank = 2, .shape = {rows, width}};
}

// --- overload: more requests than the device can serve ---

struct burst {
    struct open_loop_result result;
    unsigned long sent;
    double p99_ms, refused_p50_ms, refused_p99_ms, per_second;
};

// The number of requests that a connection has credit for is larger than the device's queue, so
// that the client never holds requests back.
#define CONNECTIONS 8

static void run_burst(struct serving_caller *const *callers, double rate, double seconds,
                      struct burst *out)
{
    inferd_client *clients[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        clients[i] = callers[i]->client;
    struct open_loop_options loop = {
        .rate = rate, .poisson = true, .requests = (unsigned long)(rate * seconds), .seed = 7};
    double *answered_ms = calloc(2 * loop.requests, sizeof *answered_ms);
    if (answered_ms == NULL)
        rpc_die("no memory for %lu requests", loop.requests);
    loop.refused_ms = answered_ms + loop.requests;
    if (open_loop_run(clients, CONNECTIONS, &callers[0]->request, &loop, answered_ms,
                      &out->result) != 0)
        rpc_die("at %.0f a second: %s", rate, out->result.err.text);
    out->p99_ms = serving_quantile(answered_ms, out->result.answered, 0.99);
    out->refused_p50_ms = serving_quantile(loop.refused_ms, out->result.refused, 0.5);
    out->refused_p99_ms = serving_quantile(loop.refused_ms, out->result.refused, 0.99);
    out->sent = loop.requests;
    out->per_second = (double)out->result.answered * 1e3 / out->result.elapsed_ms;
    free(answered_ms);
}

static double measure_capacity(struct serving_target *target, double seconds)
{
    struct rpc_way way = serving_way(target);
    return (double)rpc_measure(&way, 4, (unsigned)(seconds * 1e3)).count / seconds;
}

void serving_show_overload(struct figures *figures, const struct serving_options *options)
{
    struct rpc_daemon daemon;
    char directory[96];
    double seconds = 3.0 * options->seconds;
    rpc_daemon_make(&daemon);
    rpc_daemon_add_model(&daemon, "chain", directory);
    serving_write_chain(directory, WIDTH, 600, false);
    rpc_daemon_start(&daemon, rpc_daemon_path(),
                     (const char *[]){ONE_WORKER, "--batch-rows-max=1", NULL});
    struct serving_target target = chain_target(&daemon, "chain", 1, WIDTH);
    struct serving_caller *callers[CONNECTIONS];
    struct burst usual;
    struct burst over;
    for (int i = 0; i < CONNECTIONS; i++)
        callers[i] = serving_open(&target);
    serving_trip(callers[0]);
    double capacity = measure_capacity(&target, seconds);
    run_burst(callers, 0.9 * capacity, 2 * seconds, &usual);
    // Set the deadline in the requests of all clients, so that the daemon can refuse a request that
    // it cannot answer in time.
    callers[0]->request.timeout_ms = (uint64_t)(usual.p99_ms * 1.25) + 1;
    // The machine's speed may change during the benchmark, so it is measured before and after.
    double before = measure_capacity(&target, seconds / 2);
    run_burst(callers, 3 * capacity, seconds, &over);
    double after = measure_capacity(&target, seconds / 2);
    capacity = (before + after) / 2;
    const struct figure lines[] = {
        {"capacity, 4 clients in a closed loop", capacity, "/s", FIGURE_NONE, 0},
        {"0.9 of it, p99", usual.p99_ms, "ms", FIGURE_NONE, 0},
        {"3 times it, p99 of what is answered, of that", over.p99_ms / usual.p99_ms, "x",
         FIGURE_AT_MOST, 1.5},
        {"3 times it, goodput of the capacity", 100 * over.per_second / capacity, "%",
         FIGURE_AT_LEAST, 95},
        {"3 times it, refused at once", 100.0 * (double)over.result.refused / (double)over.sent,
         "%", FIGURE_NONE, 0},
        {"3 times it, accepted and then too late",
         100.0 * (double)over.result.expired / (double)over.sent, "%", FIGURE_NONE, 0},
        {"3 times it, a refusal after, p50", over.refused_p50_ms, "ms", FIGURE_NONE, 0},
        {"3 times it, a refusal after, p99", over.refused_p99_ms, "ms", FIGURE_AT_MOST, 1},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        figures_add(figures, &lines[i]);
    for (int i = 0; i < CONNECTIONS; i++)
        serving_close(callers[i]);
    rpc_daemon_stop(&daemon);
}

// --- fairness: two users who share the device ---

#define USERS       2
#define FIRST_UID   40001
#define OUTSTANDING 8

struct user {
    struct serving_caller *caller;
    uint64_t begin_ns, end_ns;
    uint64_t device_ns;
};

static void take_share(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct user *user = context;
    struct inferd_error refused;
    uint64_t now_ns = rpc_now_ns();
    if (result == NULL)
        rpc_die("inference failed: %s", err->text);
    if (now_ns >= user->begin_ns && now_ns < user->end_ns)
        user->device_ns += inferd_result_timing(result).compute_ns;
    inferd_result_free(result);
    if (now_ns < user->end_ns && inferd_infer_async(user->caller->client, &user->caller->request,
                                                    take_share, user, NULL, &refused) != INFERD_OK)
        rpc_die("cannot send: %s", refused.text);
}

// Runs in a child process that acts as another user: sends requests without a pause. Returns the
// total device time of the answered requests.
static uint64_t be_user(const struct serving_target *target, unsigned index, uint64_t begin_ns,
                        uint64_t end_ns)
{
    struct inferd_error err;
    if (setgid(FIRST_UID + index) != 0 || setuid(FIRST_UID + index) != 0)
        rpc_die("cannot become user %u", FIRST_UID + index);
    struct user user = {.caller = serving_open(target), .begin_ns = begin_ns, .end_ns = end_ns};
    for (int i = 0; i < OUTSTANDING; i++)
        if (inferd_infer_async(user.caller->client, &user.caller->request, take_share, &user, NULL,
                               &err) != INFERD_OK)
            rpc_die("cannot send: %s", err.text);
    if (inferd_wait(user.caller->client, &err) != INFERD_OK)
        rpc_die("cannot wait: %s", err.text);
    serving_close(user.caller);
    return user.device_ns;
}

void serving_show_fairness(struct figures *figures, const struct serving_options *options)
{
    static const char *const names[USERS] = {"cheap", "dear"};
    static const unsigned layers[USERS] = {60, 600};
    struct rpc_daemon daemon;
    char directory[96];
    int pipes[USERS][2];
    uint64_t device_ns[USERS] = {0};
    if (geteuid() != 0) {
        figures_skip(figures, "two users, 10 x different costs", "wants to be root");
        return;
    }
    rpc_daemon_make(&daemon);
    for (int i = 0; i < USERS; i++) {
        rpc_daemon_add_model(&daemon, names[i], directory);
        serving_write_chain(directory, WIDTH, layers[i], false);
    }
    rpc_daemon_start(&daemon, rpc_daemon_path(),
                     (const char *[]){ONE_WORKER, "--batch-rows-max=1", NULL});
    uint64_t begin_ns = rpc_now_ns() + UINT64_C(500000000);
    uint64_t end_ns = begin_ns + options->seconds * UINT64_C(3000000000);
    for (unsigned i = 0; i < USERS; i++) {
        if (pipe(pipes[i]) != 0)
            rpc_die("cannot make a pipe");
        pid_t pid = fork();
        if (pid < 0)
            rpc_die("cannot fork");
        if (pid == 0) {
            struct serving_target target = chain_target(&daemon, names[i], 1, WIDTH);
            uint64_t mine_ns = be_user(&target, i, begin_ns, end_ns);
            _exit(write(pipes[i][1], &mine_ns, sizeof mine_ns) != sizeof mine_ns);
        }
        close(pipes[i][1]);
    }
    for (int i = 0; i < USERS; i++) {
        if (read(pipes[i][0], &device_ns[i], sizeof device_ns[i]) != sizeof device_ns[i])
            rpc_die("a user has failed");
        close(pipes[i][0]);
        wait(NULL);
    }
    double share = 100.0 * (double)device_ns[0] / (double)(device_ns[0] + device_ns[1]);
    figures_add(figures, &(struct figure){"the cheap user's device time, of both users'", share,
                                          "%", FIGURE_AT_LEAST, 45});
    figures_add(figures,
                &(struct figure){"the dear user's", 100 - share, "%", FIGURE_AT_LEAST, 45});
    rpc_daemon_stop(&daemon);
}

// --- batching: many clients that send single rows ---

#define BATCH_WIDTH 1024
// 32 MiB of constants: a run of a single row is limited by reading them from memory
#define BATCH_LAYERS 8
#define CLIENTS      16
#define CROWD_ROUNDS 9

struct batching {
    double alone_p50_us; // median time of a request if one client sends one row at a time
    // Rows per second of many clients with one row each, divided by those of the best static batch.
    double crowd_ratio;
    // Rows per second of the best number of clients that send the best number of rows in a request.
    double best_rows;
    unsigned best_clients, best;
};

static void start_batching(struct rpc_daemon *daemon, const char *const *options)
{
    char directory[96];
    rpc_daemon_make(daemon);
    rpc_daemon_add_model(daemon, "wide", directory);
    serving_write_chain(directory, BATCH_WIDTH, BATCH_LAYERS, true);
    rpc_daemon_start(daemon, rpc_daemon_path(), options);
}

static struct rpc_times measure_rows(const struct rpc_daemon *daemon, unsigned clients,
                                     unsigned rows, unsigned ms)
{
    struct serving_target target = chain_target(daemon, "wide", rows, BATCH_WIDTH);
    struct rpc_way way = serving_way(&target);
    return rpc_measure(&way, clients, ms);
}

static double count_rows(const struct rpc_daemon *daemon, unsigned clients, unsigned rows,
                         unsigned ms)
{
    return (double)measure_rows(daemon, clients, rows, ms).count * rows * 1e3 / ms;
}

// Measures static batches sent by 1 to `clients` clients. At most CLIENTS rows are in flight, as
// many as from CLIENTS clients with a row each.
static void find_best_static(struct batching *found, const struct rpc_daemon *daemon,
                             unsigned clients, unsigned ms)
{
    for (unsigned count = 1; count <= clients; count++)
        for (unsigned rows = 1; rows * count <= CLIENTS; rows *= 2) {
            double per_second = count_rows(daemon, count, rows, ms);
            if (per_second > found->best_rows) {
                found->best_rows = per_second;
                found->best_clients = count;
                found->best = rows;
            }
        }
}

// Compares CLIENTS clients of a row each with the best static batch, in alternating rounds. The
// speed of a shared machine changes within seconds, so only neighbouring measurements are compared.
// The rates that found the best batch are not used: the highest of many overstates the rate.
static void compare_crowd(struct batching *found, const struct rpc_daemon *daemon, unsigned ms)
{
    double best[CROWD_ROUNDS];
    double ratios[CROWD_ROUNDS];
    for (int i = 0; i < CROWD_ROUNDS; i++) {
        best[i] = count_rows(daemon, found->best_clients, found->best, ms);
        ratios[i] = count_rows(daemon, CLIENTS, 1, ms) / best[i];
    }
    found->best_rows = serving_quantile(best, CROWD_ROUNDS, 0.5);
    found->crowd_ratio = serving_quantile(ratios, CROWD_ROUNDS, 0.5);
}

// With the default settings, every core may serve a client with a batch of its own.
static void show_default_batching(struct figures *figures, unsigned ms)
{
    struct rpc_daemon daemon;
    struct batching found = {0};
    start_batching(&daemon, (const char *[]){"--backends=cpu,ref", "--batch-rows-max=16", NULL});
    find_best_static(&found, &daemon, 2, ms);
    compare_crowd(&found, &daemon, ms);
    const struct figure lines[] = {
        {"default settings: rows in the best static batch", found.best, "", FIGURE_NONE, 0},
        {"clients that send such batches", found.best_clients, "", FIGURE_NONE, 0},
        {"rows in such batches", found.best_rows, "/s", FIGURE_NONE, 0},
        {"rows of 16 clients with one each, of the best static", found.crowd_ratio, "x",
         FIGURE_AT_LEAST, 0.9},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        figures_add(figures, &lines[i]);
    rpc_daemon_stop(&daemon);
}

void serving_show_batching(struct figures *figures, const struct serving_options *options)
{
    struct rpc_daemon daemon;
    struct rpc_daemon plain;
    struct batching found = {0};
    double alone[5];
    double beside[5];
    unsigned ms = 500 * options->seconds;
    start_batching(&daemon, (const char *[]){ONE_WORKER, "--batch-rows-max=16", NULL});
    start_batching(&plain, (const char *[]){ONE_WORKER, "--batch-rows-max=1", NULL});
    for (int i = 0; i < 5; i++) {
        alone[i] = measure_rows(&daemon, 1, 1, ms / 2).p50_us;
        beside[i] = measure_rows(&plain, 1, 1, ms / 2).p50_us;
    }
    found.alone_p50_us = serving_quantile(alone, 5, 0.5);
    find_best_static(&found, &daemon, 1, ms);
    compare_crowd(&found, &daemon, ms);
    double without = count_rows(&plain, CLIENTS, 1, ms);
    const struct figure lines[] = {
        {"rows in the best static batch", found.best, "", FIGURE_NONE, 0},
        {"rows of one client in such batches", found.best_rows, "/s", FIGURE_NONE, 0},
        {"rows of 16 clients, none together", without, "/s", FIGURE_NONE, 0},
        {"rows of 16 clients with one each, of the best static", found.crowd_ratio, "x",
         FIGURE_AT_LEAST, 0.9},
        {"one client with one row, p50, over batches forbidden",
         100 * (found.alone_p50_us / serving_quantile(beside, 5, 0.5) - 1), "%", FIGURE_AT_MOST, 5},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        figures_add(figures, &lines[i]);
    rpc_daemon_stop(&plain);
    rpc_daemon_stop(&daemon);
    show_default_batching(figures, ms);
}
