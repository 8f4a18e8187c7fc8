// SPDX-License-Identifier: Apache-2.0
// The table of inferctl bench: one row for each load.
#ifndef INF_CLIENT_INFERCTL_BENCH_TABLE_H
#define INF_CLIENT_INFERCTL_BENCH_TABLE_H

#include <stdint.h>

#include "client/inferctl/bench/latency.h"
#include "client/inferctl/text/table.h"

// Bits that choose which columns a table of measurements has and which of them a row fills.
enum bench_part {
    BENCH_CLOSED = 1,
    BENCH_OPEN = 2,
    BENCH_SOCKET = 4,
    BENCH_ENGINE = 8,
    BENCH_DEVICES = 16 // columns of a table with one row for each device: memory, and failure
};

// One row of the table of inferctl bench: what was measured under one load.
struct bench_row {
    const char *model, *device;
    const char *failure; // why the load could not be measured; NULL: it was measured
    int64_t requests;
    // The load: requests in flight (closed loop) or requests per second (open loop). The field
    // that does not apply is 0.
    int64_t streams, rate;
    int64_t refused;      // number of refused requests; only for an open loop
    int64_t memory_bytes; // memory that the model needs on the device; 0: unknown
    double per_second;
    struct latency total;
    // Times of a closed loop, in milliseconds: first_ms is the time of the first request, the
    // others are medians over all requests.
    double first_ms, queue_ms, compute_ms, added_ms;
    double late_ms; // maximum delay between schedule and sending; only for an open loop
    double socket_ms, engine_ms; // median times of a bare socket and of the engine alone
};

// Creates an empty table. Bits of enum bench_part in `parts` choose the columns.
struct table *bench_table_start(unsigned parts);

// Adds a row, and fills the columns that `parts` (bits of enum bench_part) chooses. Columns that do
// not apply to the row's kind of loop are null.
void bench_table_add(struct table *table, unsigned parts, const struct bench_row *row);

#endif
