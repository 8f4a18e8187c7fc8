// SPDX-License-Identifier: Apache-2.0
// Who won the races of a cpu device, by what raced. It is kept in a file, so that the next start chooses
// alike without a race.
#ifndef INF_BACKENDS_CPU_PROGRAM_CHOICES_H
#define INF_BACKENDS_CPU_PROGRAM_CHOICES_H

#include "backends/base/role.h"
#include "backends/cpu/core/kernel.h"

struct inf_cpu_race_results;

// Characters of a winner's name, its end included.
#define INF_CPU_WINNER_TEXT 24

// Reads DIRECTORY/kernels.db, where there is one of this build; NULL as directory: nothing is kept beyond
// this run. `info` says what the results hold for: the processor and its level of instruction sets.
// *out_results is the caller's to close.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_cpu_race_results_open(struct inf_cpu_race_results **out_results,
                                        const char *directory, const struct inf_device_info *info,
                                        const struct inf_log *log,
                                        struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees them. NULL is fine.
void inf_cpu_race_results_close(struct inf_cpu_race_results **results);

// Copies the name of who won the race `key`; false, and "", where none was run. A winner never changes.
// Any thread.
bool inf_cpu_race_results_find(struct inf_cpu_race_results *results, uint64_t key,
                               char winner[INF_CPU_WINNER_TEXT]);

// Whether there is time and room for another race. Once false, it stays so. Any thread.
bool inf_cpu_race_results_may_race(struct inf_cpu_race_results *results);

// Judges the race `key` for `node`, which was begun at `start_ns`, and keeps who won, unless somebody was
// quicker to keep another. The first candidate is the rule's, which others must beat clearly. Any thread
// that may block.
void inf_cpu_race_results_record(struct inf_cpu_race_results *results, uint64_t key,
                                 uint64_t start_ns, const struct inf_node *node,
                                 const struct inf_cpu_candidate *candidates,
                                 uint32_t count) INF_MAY_BLOCK;

// Notes that `winner` is taken under `key` without a race, for as long as the device is open. Any thread.
void inf_cpu_race_results_fix(struct inf_cpu_race_results *results, uint64_t key,
                              const char *winner);

// --- keys ---

// Where keys begin: with what all results hold for, and the threads of `pool`.
uint64_t inf_cpu_race_results_key(const struct inf_cpu_race_results *results, pthreadpool_t pool);

// Goes on with a node: its operator, attributes and results.
uint64_t inf_cpu_race_results_hash_node(uint64_t key, const struct inf_graph *graph, uint32_t node);

// Goes on with an operand.
uint64_t inf_cpu_race_results_hash_value(uint64_t key, const struct inf_graph *graph,
                                         uint32_t value);

#endif
