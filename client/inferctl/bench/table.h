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
    BENCH_DEVICES = 16 // one row for each device: its memory, or why it failed
};

// One row of the table: what was measured under one load.
struct bench_row {
    const char *model, *device;
    const char *failure; // why the load could not be measured; NULL: it was measured
    int64_t requests;
    // requests in flight (closed loop) or requests per second (open loop); the other field is 0
    int64_t streams, rate;
    int64_t refused;      // only for an open loop
    int64_t memory_bytes; // 0: unknown
    double per_second;
    struct latency total;
    // Times of a closed loop, in milliseconds: first_ms is the time of the first request, the
    // others are medians over all requests.
    double first_ms, queue_ms, compute_ms, added_ms;
    double late_ms;              // only for an open loop
    double socket_ms, engine_ms; // medians
};

// Creates an empty table. Bits of enum bench_part in `parts` choose the columns.
struct table *bench_table_start(unsigned parts);

// Adds a row, and fills the columns that `parts` (bits of enum bench_part) chooses. Columns that do
// not apply to the row's kind of loop are null.
void bench_table_add(struct table *table, unsigned parts, const struct bench_row *row);

#endif
