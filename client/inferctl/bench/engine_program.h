// SPDX-License-Identifier: Apache-2.0
// Times the engine without the daemon. The program inferd-check contains the engine, so that
// inferctl need not link it.
#ifndef INF_CLIENT_INFERCTL_BENCH_ENGINE_PROGRAM_H
#define INF_CLIENT_INFERCTL_BENCH_ENGINE_PROGRAM_H

#include "client/inferctl/cli/command.h"

// Returns the path of the program: $INFERD_CHECK, or the path of the installed program.
const char *engine_program_path(void);

// The model and the settings with which inferd-check runs the model to measure its time.
struct engine_timing {
    const char *file;              // path of the model file
    const inferd_request *request; // the request whose input shapes the run uses
    const char *device, *precision;
    unsigned threads; // threads that compute the run; 0: all threads of the device
    unsigned long runs;
};

// Runs the model in inferd-check, and sets total_ms[0 ... runs - 1] to the milliseconds that each
// run took. Returns an exit code; on failure inferd-check has printed the reason.
int engine_program_time(const struct engine_timing *timing, double *total_ms);

#endif
