// SPDX-License-Identifier: Apache-2.0
// Remembers the results of precision checks, in memory and in a record file. A check runs the model
// twice on the slow reference kernels, which takes seconds, and its result is the same at every
// start. Used by the loader thread only.
#ifndef INF_DAEMON_MODEL_PRECISION_RESULTS_H
#define INF_DAEMON_MODEL_PRECISION_RESULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/precision.h"
#include "backends/base/role.h"
#include "proto/core/shape.h"
#include "proto/core/status.h"

// Maximum number of results. When the limit is reached, the oldest result is replaced.
#define INF_PRECISION_RESULTS 256u
// Maximum number of nodes that one result keeps in fp32.
#define INF_PRECISION_RESULT_PINS 64u
// Room for the text of a result.
#define INF_PRECISION_RESULT_TEXT 256

struct inf_precision_results;

// The result of one check.
struct inf_precision_result {
    uint64_t key; // from inf_precision_results_key()
    bool admissible;
    uint32_t pin_count;
    uint64_t pins[INF_PRECISION_RESULT_PINS]; // hashes of the nodes that stay in fp32
    char text[INF_PRECISION_RESULT_TEXT];     // the result as one line for people
};

// Returns the key of a result: a hash of the model's bytes, the shapes of its `count` inputs, the
// precision, and the version or build of inferd.
uint64_t inf_precision_results_key(uint64_t content_hash, const struct inf_shape *shapes,
                                   uint32_t count, enum inf_precision precision,
                                   const char *version);

// Reads DIRECTORY/precision.db, if it exists. If `directory` is NULL, results are kept only while
// the process runs. Faults of the file are logged as a warning. The caller closes *out_results.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_precision_results_open(struct inf_precision_results **out_results,
                                         const char *directory, const struct inf_log *log,
                                         struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Frees the results and closes the file. NULL is allowed.
void inf_precision_results_close(struct inf_precision_results **results);

// Returns the result for `key`, valid until the next inf_precision_results_add(); NULL if there is
// none.
const struct inf_precision_result *
inf_precision_results_find(const struct inf_precision_results *results, uint64_t key);

// Stores a copy of a result and appends it to the file. A file that cannot be written is logged
// once.
void inf_precision_results_add(struct inf_precision_results *results,
                               const struct inf_precision_result *result) INF_MAY_BLOCK;

#endif
