// SPDX-License-Identifier: Apache-2.0
// The keys under which a cpu device records the winners of its races (race_results.h), and the
// conversion of its candidates.
#ifndef INF_BACKENDS_CPU_PROGRAM_RACE_KEY_H
#define INF_BACKENDS_CPU_PROGRAM_RACE_KEY_H

#include "backends/cpu/core/kernel.h"
#include "backends/storage/race_results.h"

// Returns the start value for a key. The value covers the processor, the ISA level, and the most
// threads of a run.
uint64_t inf_cpu_race_key(const struct inf_race_results *results, size_t threads);

// Adds a node to a key: its operator, attributes and results.
uint64_t inf_cpu_race_hash_node(uint64_t key, const struct inf_graph *graph, uint32_t node);

// Adds an operand to a key: its type, its shape, and whether it is constant.
uint64_t inf_cpu_race_hash_value(uint64_t key, const struct inf_graph *graph, uint32_t value);

// Records the winner among the timed candidates for `node`, at most INF_CPU_CANDIDATES of them, as
// inf_race_results_record() describes.
void inf_cpu_race_record(struct inf_race_results *results, uint64_t key, uint64_t spent_ns,
                         const struct inf_node *node, const struct inf_cpu_candidate *candidates,
                         uint32_t count) INF_MAY_BLOCK;

#endif
