// SPDX-License-Identifier: Apache-2.0
// The table of inferctl bench: one row for each load.
#ifndef INF_CLIENT_INFERCTL_BENCH_TABLE_H
#define INF_CLIENT_INFERCTL_BENCH_TABLE_H

#include <stdint.h>

#include "client/inferctl/bench/latency.h"
#include "client/inferctl/text/table.h"

// Groups of rows and columns that a table may have.
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
    const char *failure; // why it was not measured; NULL: it was
    int64_t requests;
    int64_t streams, rate; // of a closed loop, of an open one; the other is 0
    int64_t refused;       // of an open loop
    int64_t memory_bytes;  // 0: not known
    double per_second;
    struct latency total;
    double first_ms, queue_ms, compute_ms, added_ms; // of a closed loop; the last three are medians
    double late_ms;                                  // of an open loop
    double socket_ms, engine_ms;                     // medians
};

// Starts a table with the columns for these parts (of enum bench_part).
struct table *bench_table_start(unsigned parts);

// Adds a row to a table with these parts. Values that its kind of loop does not have are null.
void bench_table_add(struct table *table, unsigned parts, const struct bench_row *row);

#endif
