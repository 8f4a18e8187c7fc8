// SPDX-License-Identifier: Apache-2.0
// The options of inferctl bench.
#ifndef INF_CLIENT_INFERCTL_BENCH_OPTIONS_H
#define INF_CLIENT_INFERCTL_BENCH_OPTIONS_H

#include "client/inferctl/cli/command.h"
#include "client/inferctl/tensor/request_options.h"

#define BENCH_LOADS_MAX 32

struct bench_loads {
    unsigned long values[BENCH_LOADS_MAX];
    size_t count;
};

struct bench_options {
    struct request_options request;
    unsigned long runs, timeout_ms, queue_timeout_ms;
    // The loads to measure; each becomes a row of the printed table. `streams` are numbers of
    // requests in flight (closed loops), `rates` are requests per second (open loops).
    struct bench_loads streams, rates;
    bool even, all_backends, beside;
    unsigned long connections; // number of connections over which an open loop sends its requests
    const char *plot;          // file to write the plot to; NULL: no plot
    const char *direct;        // model file to time the engine alone; NULL: the engine is not timed
};

// Fills the options from the arguments and the defaults. Returns an exit code, and prints a message
// on failure.
int bench_options_read(struct bench_options *options, const struct arguments *arguments);

// The long options of inferctl bench, for `long_options` of its struct command.
extern const struct option bench_long_options[];
#define BENCH_SHORT_OPTIONS REQUEST_SHORT_OPTIONS "n:c:aBD:R:A:C:p:t:q:"
// clang-format off
#define BENCH_OPTIONS_HELP \
    "  -n, --runs N           requests (default 200)\n" \
    "  -c, --streams N,...    requests in flight at once (default 1); a row each\n" \
    "  -R, --rate N,...       an open loop of so many requests a second; a row each. With -c as\n" \
    "                         well: first the rows of -c, then these\n" \
    "  -A, --arrivals HOW     of an open loop: poisson (default) or even\n" \
    "  -C, --connections N    of an open loop: connections that take turns (default 1)\n" \
    "  -t, --timeout MS       that each request may take; an open loop counts those that may not\n"\
    "                         as refused\n" \
    "  -q, --queue-timeout MS that each request may wait until it is begun; counted likewise\n" \
    "  -p, --plot FILE        write latency against throughput to FILE, as SVG; with -a, a bar\n" \
    "                         for each device\n" \
    "  -B, --beside           after each row, as many bytes through a bare socket: its median\n" \
    "                         stands beside what the engine took and what the daemon added\n" \
    "  -D, --direct FILE      after each row, the engine alone with as many runs of FILE, the\n" \
    "                         model's, in a process without a daemon: its median\n" \
    "  -a, --all-backends     on every device in turn, a row each, with the memory it takes\n" \
    REQUEST_HELP
// clang-format on

#endif
