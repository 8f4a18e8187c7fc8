// SPDX-License-Identifier: Apache-2.0
// Functions that all timing comparisons ("races") of the cpu device use: they allocate zeroed
// operands, run the candidates in turn, and keep the shortest time of each candidate.
#ifndef INF_BACKENDS_CPU_PROGRAM_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_RACE_H

#include "backends/cpu/core/kernel.h"
#include "backends/device/kernel_races.h"

// The buffers that all candidates read and write. Embedded in other structs. A zeroed struct has no
// buffers.
struct inf_cpu_race_operands {
    // indexed by value of the graph; only values that the timed nodes read or write have a buffer
    struct inf_binding *bindings;
    uint32_t count;
};

// Allocates zeroed buffers for all values that the `node_count` nodes (indices into `graph`) read
// and write, except constants. Each buffer has the slack bytes that XNNPACK may read.
//
// INF_EXHAUSTED  no memory; inf_cpu_race_operands_fini() frees the buffers that were allocated.
enum inf_code inf_cpu_race_operands_init(struct inf_cpu_race_operands *operands,
                                         const struct inf_graph *graph, const uint32_t *nodes,
                                         uint32_t node_count, struct inf_error *err) INF_NODISCARD;

// Frees the buffers. `operands` may be partly initialised or all zero.
void inf_cpu_race_operands_fini(struct inf_cpu_race_operands *operands);

// Calls `run` twice: the first call warms up threads and caches, the second is timed. Keeps the
// shortest time of the candidate. If `run` fails, sets the time to 0 and returns the error.
enum inf_code inf_cpu_race_time_candidate(struct inf_cpu_candidate *candidate,
                                          enum inf_code (*run)(void *context), void *context);

// Calls `take_turn` for one candidate after the other, repeatedly. Stops after enough turns, after
// about 20 ms of this thread's processor time, or when one candidate is clearly the fastest. Each
// call of `take_turn` calls inf_cpu_race_time_candidate() at most once, and waits for `gate` (NULL
// allowed) before. Returns false if the gate gave up, so that the times mean nothing.
bool inf_cpu_race_run_turns(const struct inf_cpu_candidate *candidates, uint32_t count,
                            struct inf_race_gate *gate,
                            void (*take_turn)(void *context, uint32_t index),
                            void *context) INF_NODISCARD INF_MAY_BLOCK;

#endif
