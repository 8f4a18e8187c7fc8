// SPDX-License-Identifier: Apache-2.0
// Timing the engine without the daemon, in the program inferd-check, so that inferctl need not link
// the engine.
#ifndef INF_CLIENT_INFERCTL_BENCH_ENGINE_PROGRAM_H
#define INF_CLIENT_INFERCTL_BENCH_ENGINE_PROGRAM_H

#include "client/inferctl/cli/command.h"

// Returns the path of the program: $INFERD_CHECK, or where it is installed.
const char *engine_program_path(void);

// What to time.
struct engine_timing {
    const char *file;              // of the model
    const inferd_request *request; // the shapes of its inputs
    const char *device, *precision;
    unsigned threads; // 0: all of the device
    unsigned long runs;
};

// Runs the model in the program and sets total_ms[0 ... runs - 1] to the times. Returns an exit
// code; the program prints why it failed.
int engine_program_time(const struct engine_timing *timing, double *total_ms);

#endif
