// SPDX-License-Identifier: Apache-2.0
// The table of all metrics, which is generated from metrics.def: name, type, unit, labels and help
// text of each metric.
#ifndef INF_DAEMON_OBSERVE_METRIC_H
#define INF_DAEMON_OBSERVE_METRIC_H

enum inf_metric_type {
    INF_METRIC_COUNTER,   // a number that only grows while the daemon runs
    INF_METRIC_GAUGE,     // a number that goes up and down
    INF_METRIC_HISTOGRAM, // counts of values by size (histogram.h)
    INF_METRIC_INFO,      // always 1; its labels carry the information
    INF_METRIC_TYPE_COUNT
};

enum inf_metric_id {
#define INF_METRIC(ID, name, TYPE, unit, labels, help) INF_METRIC_##ID,
#include "daemon/observe/metrics.def"
#undef INF_METRIC
    INF_METRIC_COUNT
};

struct inf_metric {
    const char *name;
    enum inf_metric_type type;
    const char *unit;   // "seconds", "bytes", or "" for a number of things
    const char *labels; // names of the labels, separated by commas; "": none
    const char *help;   // one sentence
};

// The most labels that a metric has.
#define INF_METRIC_LABELS_MAX 5

// All metrics, indexed by enum inf_metric_id.
extern const struct inf_metric inf_metric_table[INF_METRIC_COUNT];

// Returns the name of a type as the text formats of Prometheus spell it: "counter", "gauge",
// "histogram" or "info".
const char *inf_metric_type_name(enum inf_metric_type type);

#endif
