// SPDX-License-Identifier: Apache-2.0
// An open loop sends requests by a schedule, whether or not earlier requests were answered. Many
// independent users send requests in this way.
//
// A closed loop (send, wait, send) hides stalls: while the daemon stalls for a second, the loop
// sends nothing, so only one request is slow, instead of the thousand that users would have sent in
// that second. This error is called coordinated omission. An open loop avoids it by measuring each
// latency from the time at which the request was scheduled, not from the time at which it was sent:
//
//   scheduled   1 2 3 4 5 6          latency of 3 = answer 3 - scheduled 3,
//   sent        1 2 3 . . . 4 5 6    also if sending was late
//   answered     1 2 . . . 3 4 5 6
//
// late_ms reports how late requests were sent: if it is large, this program was too slow, not the
// daemon.
#ifndef INF_CLIENT_INFERCTL_BENCH_OPEN_LOOP_H
#define INF_CLIENT_INFERCTL_BENCH_OPEN_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"

// The maximum number of connections of one loop.
#define OPEN_LOOP_CLIENTS_MAX 64

struct open_loop_options {
    double rate;            // requests per second, above 0
    bool poisson;           // random (exponential) intervals; otherwise all intervals are equal
    unsigned long requests; // 1 or more
    uint64_t seed;
    // Array of `requests` elements. For each refused request it receives the milliseconds from the
    // scheduled time to the refusal. NULL: the caller does not want these times.
    double *refused_ms;
};

struct open_loop_result {
    unsigned long answered;
    // Number of requests that the daemon refused at once, with RESOURCE_EXHAUSTED or because it
    // could not meet the deadline.
    unsigned long refused;
    // number of requests that the daemon accepted but ended with DEADLINE_EXCEEDED
    unsigned long expired;
    double elapsed_ms;       // from the first scheduled request to the last answer
    double late_ms;          // the maximum delay between schedule and sending
    struct inferd_error err; // any other failure, which ends the loop; code 0: there was none
};

// Returns the milliseconds to the next request: 1000 / rate, or with `poisson` a random value with
// that mean. The caller sets *state to a seed; the function replaces it with the state of the
// generator.
double open_loop_gap_ms(double rate, bool poisson, uint64_t *state);

// Sends the requests, each on the next connection that has credit, among `client_count`. Sets
// total_ms[0 ... answered - 1] to the latencies, in the order of the answers. Returns 0, or the
// failure in result->err. No other request may be in flight on the clients. With more than one
// client, inputs must not be in inferd_memory.
int open_loop_run(inferd_client *const *clients, size_t client_count, const inferd_request *request,
                  const struct open_loop_options *options, double *total_ms,
                  struct open_loop_result *result);

#endif
