// SPDX-License-Identifier: Apache-2.0
// What races of the cpu device share: operands of zeros, turns, and the least time of each candidate.
#ifndef INF_BACKENDS_CPU_PROGRAM_RACE_H
#define INF_BACKENDS_CPU_PROGRAM_RACE_H

#include "backends/cpu/core/kernel.h"

// What all candidates read and write, by value of the graph; embedded, all zero is none.
struct inf_cpu_race_operands {
    struct inf_binding *bindings; // host is NULL for constants and for values of other nodes
    uint32_t count;
};

// Gets zeroed memory, with what XNNPACK reads behind operands, for all values but constants that the
// `node_count` nodes of `graph` (indices) read and write.
//
// INF_EXHAUSTED  memory; inf_cpu_race_operands_fini() frees what is there.
enum inf_code inf_cpu_race_operands_init(struct inf_cpu_race_operands *operands,
                                         const struct inf_graph *graph, const uint32_t *nodes,
                                         uint32_t node_count, struct inf_error *err) INF_NODISCARD;

// Frees the memory; half-made and all zero are fine.
void inf_cpu_race_operands_fini(struct inf_cpu_race_operands *operands);

// Calls `run` twice, once to bring threads and operands near, once to time it, and keeps the least time of
// the candidate. What `run` fails with is returned, and the candidate's time is 0 then.
enum inf_code inf_cpu_race_time_candidate(struct inf_cpu_candidate *candidate,
                                          enum inf_code (*run)(void *context), void *context);

// Calls `take_turn` for each candidate in turn, until the turns were enough, took some 20 ms, or one
// candidate is far ahead. It notes times by inf_cpu_race_time_candidate(), once a turn at most.
void inf_cpu_race_run_turns(const struct inf_cpu_candidate *candidates, uint32_t count,
                            void (*take_turn)(void *context, uint32_t index), void *context);

#endif
