// SPDX-License-Identifier: Apache-2.0
// The program that has the engine in it (inferd-check), so that inferctl stays small and needs no daemon for it.
#ifndef INF_CLIENT_INFERCTL_BENCH_ENGINE_PROGRAM_H
#define INF_CLIENT_INFERCTL_BENCH_ENGINE_PROGRAM_H

#include "client/inferctl/cli/command.h"

// Its path: $INFERD_CHECK, or where it is installed.
const char *engine_program_path(void);

// What is to be timed there.
struct engine_timing {
    const char *file;              // the model's
    const inferd_request *request; // the shapes of its inputs
    const char *device, *precision;
    unsigned threads; // 0: all that the device has
    unsigned long runs;
};

// Has it run the model, which the daemon has no part in, and fills total_ms[0 ... runs - 1]. Where it fails, prints
// why (the program does) and returns an exit code.
int engine_program_time(const struct engine_timing *timing, double *total_ms);

#endif
