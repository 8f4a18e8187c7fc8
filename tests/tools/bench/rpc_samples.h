// SPDX-License-Identifier: Apache-2.0
// Round trips of many threads for some time, and their percentiles.
#ifndef INF_TESTS_TOOLS_BENCH_RPC_SAMPLES_H
#define INF_TESTS_TOOLS_BENCH_RPC_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

// The functions that make round trips to one kind of server. They run on the client's own thread,
// and exit the program if something fails.
struct rpc_way {
    void *(*open)(void *context, unsigned index); // connects one client
    void (*trip)(void *client);                   // makes one round trip
    void (*close)(void *client);
    void *context;
};

struct rpc_times {
    size_t count;
    double p50_us, p99_us, max_us;
};

// Runs `clients` threads, each with one round trip at a time, for `ms` milliseconds after a warm-up
// of a tenth of that.
struct rpc_times rpc_measure(const struct rpc_way *way, unsigned clients, unsigned ms);

// Returns the nanoseconds of CLOCK_MONOTONIC.
uint64_t rpc_now_ns(void);

// Exits the program with a line on stderr.
__attribute__((noreturn, format(printf, 1, 2))) void rpc_die(const char *format, ...);

#endif
