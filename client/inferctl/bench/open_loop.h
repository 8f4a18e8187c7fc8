// SPDX-License-Identifier: Apache-2.0
// Requests at times that do not hang on the answers, as those of many independent users. Latency counts
// from when a request was meant to be sent: a daemon that stalls cannot hide it by holding up the one
// who measures.
#ifndef INF_CLIENT_INFERCTL_BENCH_OPEN_LOOP_H
#define INF_CLIENT_INFERCTL_BENCH_OPEN_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"

// Connections that one loop may use.
#define OPEN_LOOP_CLIENTS_MAX 64

struct open_loop_options {
    double rate;            // requests a second, above 0
    bool poisson;           // times between them are random; else all the same
    unsigned long requests; // 1 or more
    uint64_t seed;
    double *refused_ms; // room for as many: how long after it was meant each was refused; or NULL
};

struct open_loop_result {
    unsigned long answered;
    unsigned long refused;   // at once: RESOURCE_EXHAUSTED, or a deadline that could not be kept
    unsigned long expired;   // DEADLINE_EXCEEDED later on
    double elapsed_ms;       // from the first request meant to the last answer
    double late_ms;          // by which a request was sent too late, at most
    struct inferd_error err; // any other failure, which ends it; code 0: none
};

// Milliseconds to the next request: 1000 / rate, or with `poisson` random with that mean. `state` is
// the seed to begin with.
double open_loop_gap_ms(double rate, bool poisson, uint64_t *state);

// Sends the requests, each on the next of `client_count` connections that has credit left, and fills
// total_ms[0 ... answered - 1], by answer. 0, or a failure in result->err. There must be nothing else in
// flight on the clients; with more than one, inputs must not lie in inferd_memory.
int open_loop_run(inferd_client *const *clients, size_t client_count, const inferd_request *request,
                  const struct open_loop_options *options, double *total_ms,
                  struct open_loop_result *result);

#endif
