// SPDX-License-Identifier: Apache-2.0
// Counts how inferences end: by model, version and device, and by user. Recording allocates
// nothing, takes no lock and uses no atomic operation, because every request ends on the loop: only
// the loop uses these functions.
#ifndef INF_DAEMON_OBSERVE_METRICS_H
#define INF_DAEMON_OBSERVE_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "daemon/observe/exposition.h"
#include "proto/core/status.h"

// The most combinations of model, version and device with metrics of their own. All further ones
// are counted together, with the labels "other". A combination that is unused for 10 minutes makes
// room for a new one; what it counted is then added to "other".
#define INF_METRICS_SERIES_MAX 64
// The most users with metrics of their own; the same rules as for models.
#define INF_METRICS_USERS_MAX 64

// Numbers of series that every daemon has, beside those for models.
enum inf_metrics_series {
    INF_METRICS_OTHER = INF_METRICS_SERIES_MAX, // models without a series of their own
    INF_METRICS_UNKNOWN, // requests that were refused before their model was known
    INF_METRICS_SERIES_COUNT
};

struct inf_metrics;

// Creates metrics that have counted nothing. The caller destroys *out_metrics.
//
// INF_EXHAUSTED  memory.
enum inf_code inf_metrics_create(struct inf_metrics **out_metrics,
                                 struct inf_error *err) INF_NODISCARD;

// Frees the metrics. NULL is allowed.
void inf_metrics_destroy(struct inf_metrics **metrics);

// What a series counts.
struct inf_metrics_labels {
    const char *model, *version, *device;
};

// Returns the series for a model, version and device, or INF_METRICS_OTHER. Valid until the next
// call of this function. `now_ns` is the time of inf_clock_ns(), or a little earlier. *handle,
// which is 0 at first, shortens the next search for the same labels; NULL: no handle is kept.
uint32_t inf_metrics_series(struct inf_metrics *metrics, const struct inf_metrics_labels *labels,
                            uint64_t *handle, uint64_t now_ns) INF_ON_LOOP;

// A successful inference. Times are in nanoseconds.
struct inf_metrics_answer {
    uint32_t series, uid;
    uint32_t rows;       // rows of the inference
    uint32_t batch_rows; // rows of the run that computed it
    bool recomputed;     // a run in a lower precision gave values that were not finite
    uint64_t duration_ns, queue_ns, input_ns, compute_ns, output_ns;
    uint64_t loop_delay_ns; // time from its end on the worker until the loop handled it
    uint64_t device_ns;     // its share of the device's time
    uint64_t input_bytes, output_bytes;
};

// Counts a successful inference.
void inf_metrics_count_answer(struct inf_metrics *metrics, const struct inf_metrics_answer *answer,
                              uint64_t now_ns) INF_ON_LOOP;

// An inference that ended with a failure.
struct inf_metrics_failure {
    uint32_t series, uid;
    enum inf_code code; // not INF_OK
    enum inf_reason reason;
    uint64_t accepted_ns; // time of its arrival; 0: it was refused at once
};

// Counts an inference that ended with a failure.
void inf_metrics_count_failure(struct inf_metrics *metrics,
                               const struct inf_metrics_failure *failure,
                               uint64_t now_ns) INF_ON_LOOP;

// Counts the end of a load, placement, compilation or inspection of a model.
void inf_metrics_count_load(struct inf_metrics *metrics, bool ok) INF_ON_LOOP;

// Counts one turn of the loop, which took `ns`.
void inf_metrics_count_turn(struct inf_metrics *metrics, uint64_t ns) INF_ON_LOOP;

// Who reads the metrics. An admin sees all series and users. Another client sees the series of
// models that its user has used, and its own user.
struct inf_metrics_reader {
    bool admin;
    uint32_t uid;
};

// Writes the metrics LOOP_DELAY, LOOP_TURN, all from INFERENCES to USER_DEVICE_TIME in the order of
// metrics.def, and LOADS.
void inf_metrics_print(const struct inf_metrics *metrics, const struct inf_metrics_reader *reader,
                       struct inf_exposition *exposition) INF_ON_LOOP;

#endif
