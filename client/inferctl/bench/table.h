// SPDX-License-Identifier: Apache-2.0
// The table of inferctl bench: one row for each load.
#ifndef INF_CLIENT_INFERCTL_BENCH_TABLE_H
#define INF_CLIENT_INFERCTL_BENCH_TABLE_H

#include <stdint.h>

#include "client/inferctl/bench/latency.h"
#include "client/inferctl/text/table.h"

// Groups of rows and columns that a table can have. Values can be combined.
enum bench_part {
    BENCH_CLOSED = 1,
    BENCH_OPEN = 2,
    BENCH_SOCKET = 4,
    BENCH_ENGINE = 8,
    BENCH_DEVICES = 16 // one row for each device: its memory, or why it failed
};

// The measurements of one load.
struct bench_row {
    const char *model, *device;
    const char *failure; // why the load could not be measured; NULL: it was measured
    int64_t requests;
    int64_t streams, rate; // the load of a closed loop, or the load of an open loop; the other is 0
    int64_t refused;       // only for an open loop
    int64_t memory_bytes;  // 0: unknown
    double per_second;
    struct latency total;
    // Only for a closed loop; the last three are medians.
    double first_ms, queue_ms, compute_ms, added_ms;
    double late_ms;              // only for an open loop
    double socket_ms, engine_ms; // medians
};

// Starts a table with the columns of these parts (bits of enum bench_part).
struct table *bench_table_start(unsigned parts);

// Adds a row to a table with these parts. Values that do not exist for the row's kind of loop are
// null.
void bench_table_add(struct table *table, unsigned parts, const struct bench_row *row);

#endif
