// SPDX-License-Identifier: Apache-2.0
// Keeps the results of races (timing comparisons of candidates) for the next start, in a text file
// that is only appended to. Each line has a checksum. Lines that are damaged, truncated or of
// another version are skipped, so that a damaged file can only cause another race.
#ifndef INF_BACKENDS_PLACE_TUNE_H
#define INF_BACKENDS_PLACE_TUNE_H

#include "backends/base/log.h"
#include "backends/place/race.h"

// Room for a stored reason.
#define INF_TUNE_REASON 96

// Maximum number of stored race results. When it is reached, a new one replaces the oldest one.
#define INF_TUNE_RECORDS 1024u

struct inf_tune;

// What a race measured for one candidate, as stored in the file.
struct inf_tune_entry {
    char device[32];
    struct inf_run_options options;
    enum inf_race_verdict verdict;
    uint32_t runs;
    uint64_t first_ns, median_ns, memory_bytes;
    // Why the candidate may not be chosen, cut to the first characters; "": there is no reason.
    char why[INF_TUNE_REASON];
};

// The result of one race: the chosen candidate, and what was measured for each candidate.
struct inf_tune_record {
    uint64_t key; // from inf_tune_key()
    struct inf_tune_entry entries[INF_RACE_ENTRIES];
    uint32_t count, chosen;
    // inf_node_hash() of the nodes that stay in fp32 with the chosen candidate
    uint64_t pins[INF_RACE_PINS];
    uint32_t pin_count;
};

// Returns the key under which the result of a race is stored. The key is a hash of the model's
// bytes, the shapes of its `count` inputs, the candidates with their drivers (UUID and build, for
// GPUs), precisions and threads, the criterion, and the version or build of inferd.
uint64_t inf_tune_key(uint64_t content_hash, const struct inf_shape *shapes, uint32_t count,
                      const struct inf_race *race, const char *version);

// Reads DIRECTORY/tune.db, if it exists. If `directory` is NULL, decisions are kept only while the
// process runs. The caller closes *out_tune. Faults of the file are logged as a warning.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_tune_open(struct inf_tune **out_tune, const char *directory,
                            const struct inf_log *log,
                            struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the records and closes the file. Accepts NULL.
void inf_tune_close(struct inf_tune **tune);

// Returns the latest decision for `key`, valid until the next inf_tune_add(); NULL if there is
// none.
const struct inf_tune_record *inf_tune_find(const struct inf_tune *tune, uint64_t key);

// Stores the result of a race and appends it to the file. If the file cannot be written, one
// warning is logged. Not thread-safe: only one thread may use a struct inf_tune.
void inf_tune_add(struct inf_tune *tune, uint64_t key, const struct inf_race *race) INF_MAY_BLOCK;

#endif
