// SPDX-License-Identifier: Apache-2.0
// What races found out, kept for the next start: a text file that is only appended to, each line
// with a checksum. A line that is broken, cut off or of another version is passed over; the worst
// that a damaged file can cause is a new race.
#ifndef INF_BACKENDS_PLACE_TUNE_H
#define INF_BACKENDS_PLACE_TUNE_H

#include "backends/base/log.h"
#include "backends/place/race.h"

// Decisions that are kept; the oldest go.
#define INF_TUNE_RECORDS 1024u

struct inf_tune;

// What one candidate did in a race.
struct inf_tune_entry {
    char device[32];
    struct inf_run_options options;
    enum inf_race_verdict verdict;
    uint32_t runs;
    uint64_t first_ns, median_ns, memory_bytes;
};

// One decision.
struct inf_tune_record {
    uint64_t key; // of inf_tune_key()
    struct inf_tune_entry entries[INF_RACE_ENTRIES];
    uint32_t count, chosen;
    uint64_t pins[INF_RACE_PINS]; // as in struct inf_race
    uint32_t pin_count;
};

// What a decision holds for: the model's bytes, the shapes of its `count` inputs, the candidates of
// the race with their drivers (UUID and build, of GPUs) and modes, what it was about, and this
// version or build of inferd.
uint64_t inf_tune_key(uint64_t content_hash, const struct inf_shape *shapes, uint32_t count,
                      const struct inf_race *race, const char *version);

// Reads DIRECTORY/tune.db, where there is one; NULL as directory: nothing is kept beyond this run.
// *out_tune is the caller's to close. What is wrong with the file is logged as a warning.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_tune_open(struct inf_tune **out_tune, const char *directory,
                            const struct inf_log *log,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees it. NULL is fine.
void inf_tune_close(struct inf_tune **tune);

// The last decision for `key`, valid until the next inf_tune_add(); NULL where there is none.
const struct inf_tune_record *inf_tune_find(const struct inf_tune *tune, uint64_t key);

// Remembers how a race ended, and appends it to the file. A file that cannot be written is logged
// once. Not thread-safe: one thread owns a tune.
void inf_tune_add(struct inf_tune *tune, uint64_t key, const struct inf_race *race) INF_MAY_BLOCK;

#endif
