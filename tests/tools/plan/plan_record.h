// SPDX-License-Identifier: Apache-2.0
// Records a run on one thread: serial work, and the time of each tile of parallel work. A program
// that links plan_record.c must pass the linker --wrap for the functions that begin with __wrap_.
#ifndef INF_TESTS_TOOLS_PLAN_PLAN_RECORD_H
#define INF_TESTS_TOOLS_PLAN_PLAN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

enum plan_event_kind {
    PLAN_SERIAL, // work of the calling thread
    PLAN_REGION, // a parallel region begins or ends
    PLAN_JOB,    // `count` tiles follow, for at most `workers` threads
    PLAN_TILE,
    PLAN_SHARED, // an operator of XNNPACK
};

struct plan_event {
    enum plan_event_kind kind;
    uint32_t count, workers;
    double ns;
};

struct plan_record {
    const struct plan_event *events;
    uint32_t count;
    bool full; // true: there was no room for some events
};

// Begins to record what the calling thread does. No other run may be in progress.
void plan_record_begin(void);

// Ends the record, which is valid until the next call of plan_record_begin().
struct plan_record plan_record_end(void);

#endif
