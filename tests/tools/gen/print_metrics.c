// SPDX-License-Identifier: Apache-2.0
// print_metrics - writes docs/reference/metrics.md: every metric of metrics.def with its type,
// labels and meaning, and what the labels stand for.
#include <stdio.h>
#include <string.h>

#include "daemon/observe/histogram.h"
#include "daemon/observe/metrics.h"

// Prints the names of labels as code, separated by commas.
static void print_labels(const char *labels)
{
    for (const char *label = labels; *label != '\0';) {
        size_t length = strcspn(label, ",");
        printf("%s`%.*s`", label > labels ? ", " : "", (int)length, label);
        label += length;
        label += *label == ',';
    }
}

static void print_table(void)
{
    printf("| metric | type | labels | meaning |\n|---|---|---|---|\n");
    for (int i = 0; i < INF_METRIC_COUNT; i++) {
        const struct inf_metric *metric = &inf_metric_table[i];
        printf("| `%s` | %s | ", metric->name, inf_metric_type_name(metric->type));
        print_labels(metric->labels);
        printf("%s| %s |\n", metric->labels[0] != '\0' ? " " : "", metric->help);
    }
}

static void print_notes(void)
{
    printf(
        "\n## Labels\n\n"
        "`outcome` of an inference is `ok`, `rejected` (RESOURCE_EXHAUSTED or UNAVAILABLE: a limit "
        "was reached, or the daemon was not ready), `cancelled` (CANCELLED, also because the "
        "client disconnected or the daemon stopped), `deadline` (DEADLINE_EXCEEDED) or `failed` "
        "(every other code). `reason` is the reason of the [error](errors.md), and empty for `ok`. "
        "A combination that did not occur has no sample.\n\n"
        "`model`, `version` and `device` are empty for requests that were refused before their "
        "model was known, for example because no model has this name. A failure before the device "
        "is chosen has the device on which the model is placed.\n\n"
        "%d combinations of model, version and device, and %d users, have samples of their own. "
        "All further ones are counted together with the labels `other`. A combination or user that "
        "was unused for 10 minutes makes room for a new one, and what it counted is added to "
        "`other`: sums over all models never lose a request.\n\n",
        INF_METRICS_SERIES_MAX, INF_METRICS_USERS_MAX);
    printf(
        "## Histograms\n\n"
        "The daemon counts in buckets of Prometheus' native histograms of schema 2: four buckets "
        "for each power of two, %d in all, from 2^%d to 2^%d. JSON has all that are not empty, as "
        "pairs of index and number; the upper bound of index *i* is 2^(*i*/4). The text formats "
        "have one bucket for each power of two, from 7.6 microseconds to 128 seconds.\n\n"
        "## The machine\n\n"
        "Pressure is that of the daemon's control group, or of the whole machine where the group "
        "has no files of it; a kernel without pressure stall information has no samples. The "
        "number of open descriptors needs Linux 6.2.\n\n"
        "## Who sees what\n\n"
        "The admin socket shows everything. On the data socket a client sees the samples of models "
        "that its user has used, of its own user, and of the daemon as a whole.\n",
        INF_HISTOGRAM_BUCKETS, INF_HISTOGRAM_LEAST_POWER, INF_HISTOGRAM_GREATEST_POWER);
}

int main(void)
{
    printf(
        "# Metrics\n\n"
        "Made from `daemon/observe/metrics.def` by `meson compile -C build update-metrics-doc`; "
        "a test compares them. `inferctl metrics`, `inferd_metrics()`, `Client.metrics()` and "
        "the method Metrics of the [protocol](protocol.md) return them as Prometheus' text "
        "format 0.0.4, OpenMetrics 1.0 or JSON. [Monitor](../howto/monitor.md) says how to "
        "collect them.\n\n");
    print_table();
    print_notes();
    return 0;
}
