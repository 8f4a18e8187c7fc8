// SPDX-License-Identifier: Apache-2.0
// The table of all metrics, expanded from metrics.def. The code that records values and the code
// that prints them use the same rows, so that name, type and labels cannot disagree.
#include "daemon/observe/metric.h"

const struct inf_metric inf_metric_table[INF_METRIC_COUNT] = {
#define INF_METRIC(ID, metric_name, TYPE, metric_unit, metric_labels, metric_help)                 \
    [INF_METRIC_##ID] = {.name = metric_name,                                                      \
                         .type = INF_METRIC_##TYPE,                                                \
                         .unit = metric_unit,                                                      \
                         .labels = metric_labels,                                                  \
                         .help = metric_help},
#include "daemon/observe/metrics.def"
#undef INF_METRIC
};

const char *inf_metric_type_name(enum inf_metric_type type)
{
    static const char *const names[INF_METRIC_TYPE_COUNT] = {
        [INF_METRIC_COUNTER] = "counter",
        [INF_METRIC_GAUGE] = "gauge",
        [INF_METRIC_HISTOGRAM] = "histogram",
        [INF_METRIC_INFO] = "info",
    };
    return names[type];
}
