// SPDX-License-Identifier: Apache-2.0
// The winners of the timing comparisons ("races") of a cpu device. Winners are kept in a file, so
// that the next start of the process makes the same choices without timing.
#ifndef INF_BACKENDS_CPU_PROGRAM_RACE_RESULTS_H
#define INF_BACKENDS_CPU_PROGRAM_RACE_RESULTS_H

#include "backends/base/role.h"
#include "backends/cpu/core/kernel.h"

struct inf_cpu_race_results;

// The size of a winner's name, including the terminating zero.
#define INF_CPU_WINNER_TEXT 24

// Reads DIRECTORY/kernels.db, if it exists and was written by this build. If `directory` is NULL,
// results are lost when the process ends. `info` names the processor and its ISA level, because the
// results depend on both. The caller closes *out_results.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_cpu_race_results_open(struct inf_cpu_race_results **out_results,
                                        const char *directory, const struct inf_device_info *info,
                                        const struct inf_log *log,
                                        struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the results. NULL is allowed.
void inf_cpu_race_results_close(struct inf_cpu_race_results **results);

// Copies the name of the recorded winner for `key`. Returns false and an empty name if no winner is
// recorded. A recorded winner never changes. Any thread.
bool inf_cpu_race_results_find(struct inf_cpu_race_results *results, uint64_t key,
                               char winner[INF_CPU_WINNER_TEXT]);

// Returns true if the limits on the total time of comparisons and on the number of records allow
// another timing comparison. Once it has returned false, it always returns false. Any thread.
bool inf_cpu_race_results_may_race(struct inf_cpu_race_results *results);

// Chooses the winner for `key` among the timed candidates for `node`, and records the winner unless
// another thread has recorded one. The comparison began at time `start_ns`. The first candidate is
// the choice of the fixed rule; another candidate wins only if it is clearly faster. Any thread
// that may block.
void inf_cpu_race_results_record(struct inf_cpu_race_results *results, uint64_t key,
                                 uint64_t start_ns, const struct inf_node *node,
                                 const struct inf_cpu_candidate *candidates,
                                 uint32_t count) INF_MAY_BLOCK;

// Records, without timing, that `winner` is used for `key` until the device is closed. Any thread.
void inf_cpu_race_results_fix(struct inf_cpu_race_results *results, uint64_t key,
                              const char *winner);

// How a kernel or a level of fusion was chosen: by a race, by the result of an earlier one, or by
// the fixed rule.
enum inf_cpu_choice {
    INF_CPU_CHOICE_MEASURED,
    INF_CPU_CHOICE_KNOWN,
    INF_CPU_CHOICE_RULE,
    INF_CPU_CHOICE_COUNT
};

// Counts a choice. Any thread.
void inf_cpu_race_results_count(struct inf_cpu_race_results *results, enum inf_cpu_choice choice);

// Returns the numbers of choices that were counted. Any thread.
struct inf_kernel_choices inf_cpu_race_results_choices(const struct inf_cpu_race_results *results);

// --- building the key under which a winner is recorded ---

// Returns the start value for a key. The value covers the processor, the ISA level, and the most
// threads of a run.
uint64_t inf_cpu_race_results_key(const struct inf_cpu_race_results *results, size_t threads);

// Adds a node to a key: its operator, attributes and results.
uint64_t inf_cpu_race_results_hash_node(uint64_t key, const struct inf_graph *graph, uint32_t node);

// Adds an operand to a key: its type, its shape, and whether it is constant.
uint64_t inf_cpu_race_results_hash_value(uint64_t key, const struct inf_graph *graph,
                                         uint32_t value);

#endif
