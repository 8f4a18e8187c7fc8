// SPDX-License-Identifier: Apache-2.0
// What inferctl bench finds under each load, as rows of one table.
#ifndef INF_CLIENT_INFERCTL_BENCH_TABLE_H
#define INF_CLIENT_INFERCTL_BENCH_TABLE_H

#include <stdint.h>

#include "client/inferctl/bench/latency.h"
#include "client/inferctl/text/table.h"

// What a table has rows, or columns, of.
enum bench_part {
    BENCH_CLOSED = 1,
    BENCH_OPEN = 2,
    BENCH_SOCKET = 4,
    BENCH_ENGINE = 8,
    BENCH_DEVICES = 16 // memory, and why there is nothing else
};

// One load.
struct bench_row {
    const char *model, *device;
    const char *failure; // NULL: none. Else nothing but model and device is known
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

// Adds a row to a table of these parts. What its loop does not have is null.
void bench_table_add(struct table *table, unsigned parts, const struct bench_row *row);

#endif
