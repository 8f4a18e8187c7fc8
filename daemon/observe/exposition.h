// SPDX-License-Identifier: Apache-2.0
// Writes metrics as text: the Prometheus text format 0.0.4, OpenMetrics 1.0, or JSON. The caller
// begins a metric, gives its samples, and begins the next one. Not thread-safe.
#ifndef INF_DAEMON_OBSERVE_EXPOSITION_H
#define INF_DAEMON_OBSERVE_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/observe/histogram.h"
#include "daemon/observe/metric.h"
#include "proto/core/status.h"

enum inf_exposition_format {
    INF_EXPOSITION_PROMETHEUS, // text format 0.0.4
    INF_EXPOSITION_OPENMETRICS,
    INF_EXPOSITION_JSON,
};

// The powers of two that the text formats have as bounds of buckets.
#define INF_EXPOSITION_POWER_LEAST    (-17)
#define INF_EXPOSITION_POWER_GREATEST 10

// How many powers these are.
#define INF_EXPOSITION_POWERS (INF_EXPOSITION_POWER_GREATEST - INF_EXPOSITION_POWER_LEAST + 1)

// A text that is being written. The members are for exposition.c only.
struct inf_exposition {
    enum inf_exposition_format format;
    char *text; // memory of the caller
    size_t size, capacity;
    bool full; // the text did not fit, and its end is missing
    const struct inf_metric *metric;
    uint32_t metric_count;
    bool has_sample;                        // the current metric has a sample
    char powers[INF_EXPOSITION_POWERS][24]; // the bounds as texts, such as "0.0625" and "4.0"
};

// Sets *out_format to the format called "prometheus", "openmetrics" or "json"; "" is "prometheus".
//
// INF_INVALID  (BAD_PARAMETER) there is no such format; the text says which there are.
enum inf_code inf_exposition_parse_format(const char *name, enum inf_exposition_format *out_format,
                                          struct inf_error *err) INF_NODISCARD;

// Returns the media type of a format, such as "text/plain; version=0.0.4; charset=utf-8".
const char *inf_exposition_media_type(enum inf_exposition_format format);

// Starts an empty text in `memory`, which the caller keeps until the end.
void inf_exposition_begin(struct inf_exposition *exposition, enum inf_exposition_format format,
                          char *memory, size_t capacity);

// Ends the current metric, and begins the metric `id`. All samples of a metric must follow here, so
// each metric may be begun once only.
void inf_exposition_metric(struct inf_exposition *exposition, enum inf_metric_id id);

// Writes one sample of the current metric, which is no histogram. `labels` has one value for each
// label of the metric, in the order of its row; NULL if the metric has no labels. For a metric in
// seconds, `value` is in nanoseconds.
void inf_exposition_sample(struct inf_exposition *exposition, const char *const *labels,
                           uint64_t value);

// Writes one histogram of the current metric. Text formats get one bucket for each power of two
// from 7.6 microseconds to 128 (seconds), or from 1 to 1024 (things). JSON gets all buckets that
// are not empty.
void inf_exposition_histogram(struct inf_exposition *exposition, const char *const *labels,
                              const struct inf_histogram *histogram);

// Ends the text.
//
// INF_EXHAUSTED  (FRAME_TOO_LARGE) the text exceeds its memory.
enum inf_code inf_exposition_end(struct inf_exposition *exposition,
                                 struct inf_error *err) INF_NODISCARD;

#endif
