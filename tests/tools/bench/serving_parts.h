// SPDX-License-Identifier: Apache-2.0
// What the parts of bench_serving share: callers, models of a known cost, and the parts themselves.
#ifndef INF_TESTS_TOOLS_BENCH_SERVING_PARTS_H
#define INF_TESTS_TOOLS_BENCH_SERVING_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "tests/tools/bench/figures.h"
#include "tests/tools/bench/rpc_daemon.h"
#include "tests/tools/bench/rpc_samples.h"

// A client with one request, made again and again.
struct serving_caller {
    inferd_client *client;
    inferd_tensor input;
    inferd_request request;
    double compute_us, inside_us; // of the last answer: the run; queue, input and output
};

// What callers ask for. The context of serving_way().
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
// The same by hand; what goes wrong ends the program.
struct serving_caller *serving_open(const struct serving_target *target);
void serving_trip(struct serving_caller *caller);
void serving_close(struct serving_caller *caller);

// Writes x FP32 [-1, width] -> y, `layers` products with square matrices of constants; with `own` each
// layer has its own, which does not fit a cache where there are enough of them.
void serving_write_chain(const char *directory, int64_t width, unsigned layers, bool own);

// Sorts and picks.
double serving_quantile(double *values, size_t count, double part);

// What bench_serving was told.
struct serving_options {
    const char *models; // directory of real models; NULL: none
    unsigned seconds;   // scales how long things are measured; 1 is least
    bool pinned;
};

// --- serving_rpc.c ---

// Round trips beside bare ones, requests a second.
void serving_show_rpc(struct figures *figures, const struct serving_options *options);
// Real models through the daemon beside the engine alone.
void serving_show_engine(struct figures *figures, const struct serving_options *options);

// --- serving_load.c ---

// Three times what the device can do.
void serving_show_overload(struct figures *figures, const struct serving_options *options);
// Two users whose models differ tenfold.
void serving_show_fairness(struct figures *figures, const struct serving_options *options);
// Rows of many clients run together.
void serving_show_batching(struct figures *figures, const struct serving_options *options);

// --- serving_wait.c ---

// Deadlines and cancels while the device is busy.
void serving_show_deadlines(struct figures *figures, const struct serving_options *options);
// What an idle daemon and its connections take.
void serving_show_idle(struct figures *figures, const struct serving_options *options);

#endif
