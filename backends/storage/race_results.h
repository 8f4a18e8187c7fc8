// SPDX-License-Identifier: Apache-2.0
// The winners of timing comparisons ("races") of a device. Winners are kept in a file, so that the
// next start of the process makes the same choices without timing.
#ifndef INF_BACKENDS_STORAGE_RACE_RESULTS_H
#define INF_BACKENDS_STORAGE_RACE_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/status.h"

struct inf_race_results;

// The size of a winner's name, including the terminating zero. A name has lower-case letters,
// digits and underscores.
#define INF_RACE_WINNER_TEXT 24

// The file of a device's winners. The strings are static.
struct inf_race_file {
    const char *name;   // name of the file, such as "kernels.db"
    const char *format; // kind and version of the records: "inferd-kernels 2"
    const char *what;   // description for log lines: "memory of kernels"
};

// One candidate of a race.
struct inf_race_time {
    const char *name;  // shorter than INF_RACE_WINNER_TEXT
    uint64_t least_ns; // its shortest time; 0: it was not timed, and cannot win unless it is first
};

// How a kernel was chosen.
enum inf_race_choice {
    INF_RACE_CHOICE_MEASURED, // by a race
    INF_RACE_CHOICE_KNOWN,    // by the result of an earlier race
    INF_RACE_CHOICE_RULE,     // by the fixed rule, because no race is possible
    INF_RACE_CHOICE_LATER,    // by the fixed rule, until a race in the background
    INF_RACE_CHOICE_COUNT
};

// Reads DIRECTORY/NAME of the file, if it exists and was written by this build. If `directory` is
// NULL, results are lost when the process ends. `seed` names all that the results depend on and the
// keys do not cover: the processor or GPU, its driver, the ISA level. The caller closes
// *out_results.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_race_results_open(struct inf_race_results **out_results, const char *directory,
                                    const struct inf_race_file *file, const char *seed,
                                    const struct inf_log *log,
                                    struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the results. NULL is allowed.
void inf_race_results_close(struct inf_race_results **results);

// Returns the start value of all keys, a hash of the seed. Callers extend it by
// inf_record_hash(). Any thread.
uint64_t inf_race_results_seed(const struct inf_race_results *results);

// Copies the name of the winner for `key` that was recorded by the time `until_ns`; 0: at any time.
// Returns false and an empty name if there is none. A recorded winner never changes. Any thread.
bool inf_race_results_find(struct inf_race_results *results, uint64_t key, uint64_t until_ns,
                           char winner[INF_RACE_WINNER_TEXT]);

// Returns true if the limits on the total time of races and on the number of records allow another
// race. Once it has returned false, it always returns false. Any thread.
bool inf_race_results_may_race(struct inf_race_results *results);

// Chooses the winner for `key` among the timed candidates, of which there is at least one, and
// records it unless another thread has recorded one. The race took `spent_ns`. The first candidate
// is the choice of the fixed rule; another candidate wins only if it is clearly faster.
// `what` describes the race in the log. Any thread that may block.
void inf_race_results_record(struct inf_race_results *results, uint64_t key, uint64_t spent_ns,
                             const char *what, const struct inf_race_time *candidates,
                             uint32_t count) INF_MAY_BLOCK;

// Records, without timing, that `winner` is used for `key` until the results are closed. Any
// thread.
void inf_race_results_fix(struct inf_race_results *results, uint64_t key, const char *winner);

// Counts a choice. Any thread.
void inf_race_results_count(struct inf_race_results *results, enum inf_race_choice choice);

// Returns how many races another candidate than the choice of the fixed rule has won. Any thread.
uint64_t inf_race_results_overturned(const struct inf_race_results *results);

// Returns how many choices were made in the way `choice`. Any thread.
uint64_t inf_race_results_choices(const struct inf_race_results *results,
                                  enum inf_race_choice choice);

#endif
