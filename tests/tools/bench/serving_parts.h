// SPDX-License-Identifier: Apache-2.0
// What the parts of bench_serving share: clients, models of a known cost, and the parts themselves.
#ifndef INF_TESTS_TOOLS_BENCH_SERVING_PARTS_H
#define INF_TESTS_TOOLS_BENCH_SERVING_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "tests/tools/bench/figures.h"
#include "tests/tools/bench/rpc_daemon.h"
#include "tests/tools/bench/rpc_samples.h"

// A client with one request that is sent again and again.
struct serving_caller {
    inferd_client *client;
    inferd_tensor input;
    inferd_request request;
    double compute_us, inside_us; // of the last answer: the run; and queue, input and output
};

// What clients send their requests to. The context of serving_way().
struct serving_target {
    const char *socket;
    const char *model;
    const char *input;
    int rank;
    int64_t shape[INFERD_RANK_MAX];
    bool in_place; // in memory shared with the daemon
};

// Round trips to a target.
struct rpc_way serving_way(struct serving_target *target);
// The same step by step; errors exit the program.
struct serving_caller *serving_open(const struct serving_target *target);
void serving_trip(struct serving_caller *caller);
void serving_close(struct serving_caller *caller);

// Writes a model x FP32 [-1, width] -> y of `layers` products with square constant matrices. With
// `own` each layer has its own matrix, so that enough of them do not fit a cache.
void serving_write_chain(const char *directory, int64_t width, unsigned layers, bool own);

// Sorts the values and returns a percentile.
double serving_quantile(double *values, size_t count, double part);

// The options of bench_serving.
struct serving_options {
    const char *models; // directory of real models; NULL: none
    unsigned seconds;   // scales the duration of measurements; the least is 1
    bool pinned;
};

// --- serving_rpc.c ---

// Round trips compared with bare ones, and requests per second.
void serving_show_rpc(struct figures *figures, const struct serving_options *options);
// Real models through the daemon compared with the engine alone.
void serving_show_engine(struct figures *figures, const struct serving_options *options);

// --- serving_load.c ---

// Three times the load that the device can serve.
void serving_show_overload(struct figures *figures, const struct serving_options *options);
// Two users whose models differ tenfold in cost.
void serving_show_fairness(struct figures *figures, const struct serving_options *options);
// Batching of rows of many clients.
void serving_show_batching(struct figures *figures, const struct serving_options *options);

// --- serving_wait.c ---

// Deadlines and cancels while the device is busy.
void serving_show_deadlines(struct figures *figures, const struct serving_options *options);
// The resources of an idle daemon and its connections.
void serving_show_idle(struct figures *figures, const struct serving_options *options);

#endif
