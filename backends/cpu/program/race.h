// SPDX-License-Identifier: Apache-2.0
// What all races of the cpu device share: operands of zeros, turns, and the shortest time of each
// candidate.
#ifndef INF_BACKENDS_CPU_PROGRAM_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_RACE_H

#include "backends/cpu/core/kernel.h"

// What all candidates read and write, by value of the graph. Embedded; all zero is empty.
struct inf_cpu_race_operands {
    struct inf_binding *bindings; // host is NULL for constants and for values of other nodes
    uint32_t count;
};

// Allocates zeroed memory, with the slack that XNNPACK reads, for all values except constants that
// the `node_count` nodes (indices into `graph`) read and write.
//
// INF_EXHAUSTED  no memory; inf_cpu_race_operands_fini() frees what was allocated.
enum inf_code inf_cpu_race_operands_init(struct inf_cpu_race_operands *operands,
                                         const struct inf_graph *graph, const uint32_t *nodes,
                                         uint32_t node_count, struct inf_error *err) INF_NODISCARD;

// Frees the memory. Partly initialised and all-zero operands are allowed.
void inf_cpu_race_operands_fini(struct inf_cpu_race_operands *operands);

// Calls `run` twice: once to warm up threads and caches, once to time it. Keeps the shortest time
// of the candidate. Returns the error of `run`, and sets the time to 0 in that case.
enum inf_code inf_cpu_race_time_candidate(struct inf_cpu_candidate *candidate,
                                          enum inf_code (*run)(void *context), void *context);

// Calls `take_turn` for each candidate in turn until there were enough turns, about 20 ms have
// passed, or one candidate is clearly the fastest. `take_turn` calls inf_cpu_race_time_candidate()
// at most once.
void inf_cpu_race_run_turns(const struct inf_cpu_candidate *candidates, uint32_t count,
                            void (*take_turn)(void *context, uint32_t index), void *context);

#endif
