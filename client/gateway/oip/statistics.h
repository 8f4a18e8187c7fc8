// SPDX-License-Identifier: Apache-2.0
// Statistics of models in the form of the Open Inference Protocol, computed from the daemon's
// metrics.
#ifndef INF_GATEWAY_OIP_STATISTICS_H
#define INF_GATEWAY_OIP_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/attributes.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"

// A number of inferences and the sum of their times.
struct inf_oip_duration {
    uint64_t count, ns;
};

// Statistics of one version of a model since the daemon started.
struct inf_oip_model_statistics {
    char name[INF_LIMIT_MODEL_NAME + 1];
    char version[24];
    uint64_t rows;                                         // rows of successful inferences
    struct inf_oip_duration success, fail, queue, compute; // `fail` has no time
};

struct inf_oip_statistics {
    struct inf_oip_model_statistics *rows;
    size_t count;
};

// Reads the daemon's metrics (a JSON text that ends with NUL) and sums the numbers of each version
// of a model over devices. `name` and `version` choose models; "": all. The caller frees
// statistics->rows with free(). Fails if there is no memory or the text does not have the form of
// the daemon's metrics.
enum inf_code inf_oip_statistics_read(const char *metrics, const char *name, const char *version,
                                      struct inf_oip_statistics *statistics,
                                      struct inf_error *err) INF_NODISCARD;

// Returns the statistics as JSON, or NULL if there is no memory. The caller frees the text with
// free().
char *inf_oip_statistics_encode(const struct inf_oip_statistics *statistics);

#endif
