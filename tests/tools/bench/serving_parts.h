// SPDX-License-Identifier: Apache-2.0
// Shared code of the parts of bench_serving: clients and models of a known cost. Also declares the
// parts themselves.
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
    // Times of the last answer: how long the model ran, and the sum of the times in the queue, for
    // preparing inputs and for writing outputs.
    double compute_us, inside_us;
};

// The daemon and model to which clients send requests. It is the context of serving_way().
struct serving_target {
    const char *socket;
    const char *model;
    const char *input;
    int rank;
    int64_t shape[INFERD_RANK_MAX];
    bool in_place; // tensors are in memory shared with the daemon
};

// Returns the functions that make round trips to a target.
struct rpc_way serving_way(struct serving_target *target);
// The functions that serving_way() returns: open a connection, make a round trip, and close the
// connection. Errors exit the program.
struct serving_caller *serving_open(const struct serving_target *target);
void serving_trip(struct serving_caller *caller);
void serving_close(struct serving_caller *caller);

// Writes a model x FP32 [-1, width] -> y of `layers` products with square constant matrices. If
// `own` is true, each layer has a different matrix, so that the matrices of many layers do not fit
// a cache.
void serving_write_chain(const char *directory, int64_t width, unsigned layers, bool own);

// Sorts the values and returns a quantile: `part` is from 0 (the minimum) to 1 (the maximum).
double serving_quantile(double *values, size_t count, double part);

// The options of bench_serving.
struct serving_options {
    const char *models; // directory of real models; NULL if there is none
    unsigned seconds;   // scales the duration of measurements; at least 1
    bool pinned;
};

// --- parts that serving_rpc.c measures ---

// Compares round trips through the daemon with round trips over a bare socket, and measures
// requests per second.
void serving_show_rpc(struct figures *figures, const struct serving_options *options);
// Compares real models through the daemon with the engine alone.
void serving_show_engine(struct figures *figures, const struct serving_options *options);

// --- parts that serving_load.c measures ---

// Sends three times the load that the device can serve.
void serving_show_overload(struct figures *figures, const struct serving_options *options);
// Lets two users whose models differ tenfold in cost share the device.
void serving_show_fairness(struct figures *figures, const struct serving_options *options);
// Measures the batching of single rows from many clients.
void serving_show_batching(struct figures *figures, const struct serving_options *options);

// --- parts that serving_wait.c measures ---

// Measures deadlines and cancels while the device is busy.
void serving_show_deadlines(struct figures *figures, const struct serving_options *options);
// Measures the resources of an idle daemon and its connections.
void serving_show_idle(struct figures *figures, const struct serving_options *options);

#endif
