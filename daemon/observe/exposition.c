// SPDX-License-Identifier: Apache-2.0
// Writes metrics as text. The three formats differ in the frame around the samples:
//
//   Prometheus 0.0.4  # HELP NAME ..., # TYPE NAME counter, then NAME{label="value"} 3
//   OpenMetrics 1.0   the name of a counter in HELP, TYPE and UNIT lacks "_total", and the name of
//                     an information lacks "_info"; the text ends with "# EOF"
//   JSON              a list of objects, one for each metric, with its row of the table
//
// The loop thread writes the text, so the samples are composed without printf().
#include "daemon/observe/exposition.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/span.h"

// The powers of two that are bounds of buckets: these for times, and these for numbers.
#define TIME_POWER_LEAST     INF_EXPOSITION_POWER_LEAST
#define TIME_POWER_GREATEST  7
#define COUNT_POWER_LEAST    0
#define COUNT_POWER_GREATEST INF_EXPOSITION_POWER_GREATEST

// Buffer size for the labels of one sample: names and escaped values.
#define LABELS_TEXT 1024

// --- appending to the text ---

static void append_bytes(struct inf_exposition *exposition, const char *bytes, size_t size)
{
    if (exposition->full || size > exposition->capacity - exposition->size) {
        exposition->full = true;
        return;
    }
    memcpy(exposition->text + exposition->size, bytes, size);
    exposition->size += size;
}

static void append_text(struct inf_exposition *exposition, const char *text)
{
    append_bytes(exposition, text, strlen(text));
}

// Appends a text, with a backslash before quotes and backslashes. Control characters other than the
// line end, which no label has, become '?'.
static void append_escaped(struct inf_exposition *exposition, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n')
            append_text(exposition, "\\n");
        else if ((unsigned char)*text < ' ')
            append_text(exposition, "?");
        else {
            if (*text == '"' || *text == '\\')
                append_text(exposition, "\\");
            append_bytes(exposition, text, 1);
        }
    }
}

static void append_whole(struct inf_exposition *exposition, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    append_bytes(exposition, digits + at, sizeof digits - at);
}

// Appends a value in billionths as a decimal number without trailing zeros.
static void append_billionths(struct inf_exposition *exposition, uint64_t value)
{
    char digits[10] = ".";
    size_t size = 10;
    append_whole(exposition, value / INF_HISTOGRAM_SCALE);
    for (uint64_t rest = value % INF_HISTOGRAM_SCALE, i = 9; i > 0; i--, rest /= 10)
        digits[i] = (char)('0' + rest % 10);
    while (size > 1 && digits[size - 1] == '0')
        size--;
    if (size > 1)
        append_bytes(exposition, digits, size);
}

static bool is_time(const struct inf_metric *metric)
{
    return strcmp(metric->unit, "seconds") == 0;
}

static void append_value(struct inf_exposition *exposition, uint64_t value)
{
    if (is_time(exposition->metric))
        append_billionths(exposition, value);
    else
        append_whole(exposition, value);
}

// --- the frame of the formats ---

enum inf_code inf_exposition_parse_format(const char *name, enum inf_exposition_format *out_format,
                                          struct inf_error *err)
{
    if (name[0] == '\0' || strcmp(name, "prometheus") == 0)
        *out_format = INF_EXPOSITION_PROMETHEUS;
    else if (strcmp(name, "openmetrics") == 0)
        *out_format = INF_EXPOSITION_OPENMETRICS;
    else if (strcmp(name, "json") == 0)
        *out_format = INF_EXPOSITION_JSON;
    else
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "format '%.64s', wanted prometheus, openmetrics or json", name);
    return INF_OK;
}

const char *inf_exposition_media_type(enum inf_exposition_format format)
{
    static const char *const types[] = {
        [INF_EXPOSITION_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
        [INF_EXPOSITION_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
        [INF_EXPOSITION_JSON] = "application/json",
    };
    return types[format];
}

// Prints the bounds of buckets as floating-point numbers, which OpenMetrics wants. This happens
// once for each text, because printf() would take most of the time of a histogram.
static void print_powers(struct inf_exposition *exposition)
{
    for (int i = 0; i < INF_EXPOSITION_POWERS; i++) {
        int power = INF_EXPOSITION_POWER_LEAST + i;
        double value = power >= 0 ? (double)(1u << power) : 1.0 / (double)(1u << -power);
        snprintf(exposition->powers[i], sizeof exposition->powers[i], power >= 0 ? "%.1f" : "%.17g",
                 value);
    }
}

void inf_exposition_begin(struct inf_exposition *exposition, enum inf_exposition_format format,
                          char *memory, size_t capacity)
{
    *exposition = (struct inf_exposition){.format = format, .text = memory, .capacity = capacity};
    if (format == INF_EXPOSITION_JSON)
        append_text(exposition, "[");
    else
        print_powers(exposition);
}

// Returns the length of the name of a metric in HELP, TYPE and UNIT.
static size_t family_length(const struct inf_exposition *exposition)
{
    const struct inf_metric *metric = exposition->metric;
    size_t length = strlen(metric->name);
    if (exposition->format != INF_EXPOSITION_OPENMETRICS)
        return length;
    if (metric->type == INF_METRIC_COUNTER)
        return length - strlen("_total");
    return metric->type == INF_METRIC_INFO ? length - strlen("_info") : length;
}

static void append_comment(struct inf_exposition *exposition, const char *keyword, const char *text)
{
    append_text(exposition, keyword);
    append_bytes(exposition, exposition->metric->name, family_length(exposition));
    append_text(exposition, " ");
    append_text(exposition, text);
    append_text(exposition, "\n");
}

static void begin_json_metric(struct inf_exposition *exposition)
{
    const struct inf_metric *metric = exposition->metric;
    append_text(exposition, exposition->metric_count > 1 ? ",\n{\"name\":\"" : "\n{\"name\":\"");
    append_text(exposition, metric->name);
    append_text(exposition, "\",\"type\":\"");
    append_text(exposition, inf_metric_type_name(metric->type));
    append_text(exposition, "\",\"unit\":\"");
    append_text(exposition, metric->unit);
    append_text(exposition, "\",\"help\":\"");
    append_escaped(exposition, metric->help);
    append_text(exposition, "\",\"samples\":[");
}

static void end_metric(struct inf_exposition *exposition)
{
    if (exposition->format == INF_EXPOSITION_JSON && exposition->metric_count > 0)
        append_text(exposition, "]}");
}

void inf_exposition_metric(struct inf_exposition *exposition, enum inf_metric_id id)
{
    end_metric(exposition);
    exposition->metric = &inf_metric_table[id];
    exposition->metric_count++;
    exposition->has_sample = false;
    const struct inf_metric *metric = exposition->metric;
    if (exposition->format == INF_EXPOSITION_JSON) {
        begin_json_metric(exposition);
        return;
    }
    bool open = exposition->format == INF_EXPOSITION_OPENMETRICS;
    append_comment(exposition, "# HELP ", metric->help);
    // The format 0.0.4 has no type for information.
    append_comment(exposition, "# TYPE ",
                   metric->type == INF_METRIC_INFO && !open ? "gauge"
                                                            : inf_metric_type_name(metric->type));
    if (open && metric->unit[0] != '\0')
        append_comment(exposition, "# UNIT ", metric->unit);
}

enum inf_code inf_exposition_end(struct inf_exposition *exposition, struct inf_error *err)
{
    end_metric(exposition);
    if (exposition->format == INF_EXPOSITION_JSON)
        append_text(exposition, "\n]\n");
    if (exposition->format == INF_EXPOSITION_OPENMETRICS)
        append_text(exposition, "# EOF\n");
    if (!exposition->full)
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                           "the metrics exceed the %zu bytes that one answer may have",
                           exposition->capacity);
}

// --- samples ---

// Appends the labels: `a="x",b="y"` for the text formats, `"a":"x","b":"y"` for JSON.
static void append_labels(struct inf_exposition *exposition, const char *const *labels)
{
    const char *name = exposition->metric->labels;
    const char *quote = exposition->format == INF_EXPOSITION_JSON ? "\"" : "";
    for (uint32_t i = 0; *name != '\0'; i++) {
        size_t length = strcspn(name, ",");
        assert(i < INF_METRIC_LABELS_MAX && labels[i] != NULL);
        append_text(exposition, i > 0 ? "," : "");
        append_text(exposition, quote);
        append_bytes(exposition, name, length);
        append_text(exposition, quote);
        append_text(exposition, quote[0] != '\0' ? ":\"" : "=\"");
        append_escaped(exposition, labels[i]);
        append_text(exposition, "\"");
        name += length;
        name += *name == ',';
    }
}

static void begin_json_sample(struct inf_exposition *exposition, const char *const *labels)
{
    append_text(exposition, exposition->has_sample ? ",\n {\"labels\":{" : "\n {\"labels\":{");
    append_labels(exposition, labels);
    append_text(exposition, "},");
    exposition->has_sample = true;
}

void inf_exposition_sample(struct inf_exposition *exposition, const char *const *labels,
                           uint64_t value)
{
    assert(exposition->metric->type != INF_METRIC_HISTOGRAM);
    if (exposition->format == INF_EXPOSITION_JSON) {
        begin_json_sample(exposition, labels);
        append_text(exposition, "\"value\":");
        append_value(exposition, value);
        append_text(exposition, "}");
        return;
    }
    append_text(exposition, exposition->metric->name);
    if (exposition->metric->labels[0] != '\0') {
        append_text(exposition, "{");
        append_labels(exposition, labels);
        append_text(exposition, "}");
    }
    append_text(exposition, " ");
    append_value(exposition, value);
    append_text(exposition, "\n");
}

// Appends one line of a histogram: NAME SUFFIX {labels,le="BOUND"}; `bound` NULL: no label le.
static void append_series(struct inf_exposition *exposition, const char *suffix,
                          const struct inf_exposition *labels, const char *bound)
{
    append_text(exposition, exposition->metric->name);
    append_text(exposition, suffix);
    if (labels->size > 0 || bound != NULL) {
        append_text(exposition, "{");
        append_bytes(exposition, labels->text, labels->size);
        if (bound != NULL) {
            append_text(exposition, labels->size > 0 ? ",le=\"" : "le=\"");
            append_text(exposition, bound);
            append_text(exposition, "\"");
        }
        append_text(exposition, "}");
    }
    append_text(exposition, " ");
}

static void append_text_histogram(struct inf_exposition *exposition, const char *const *labels,
                                  const struct inf_histogram *histogram)
{
    const struct inf_metric *metric = exposition->metric;
    char memory[LABELS_TEXT];
    struct inf_exposition prefix = {.format = INF_EXPOSITION_PROMETHEUS,
                                    .text = memory,
                                    .capacity = sizeof memory,
                                    .metric = metric};
    append_labels(&prefix, labels);
    exposition->full |= prefix.full;
    int least = is_time(metric) ? TIME_POWER_LEAST : COUNT_POWER_LEAST;
    int greatest = is_time(metric) ? TIME_POWER_GREATEST : COUNT_POWER_GREATEST;
    uint64_t count = 0;
    uint32_t next = 0;
    for (int power = least; power <= greatest; power++) {
        uint32_t last = (uint32_t)(power - INF_HISTOGRAM_LEAST_POWER) * INF_HISTOGRAM_PER_OCTAVE;
        while (next <= last)
            count += histogram->counts[next++];
        append_series(exposition, "_bucket", &prefix,
                      exposition->powers[power - INF_EXPOSITION_POWER_LEAST]);
        append_whole(exposition, count);
        append_text(exposition, "\n");
    }
    while (next < INF_HISTOGRAM_BUCKETS)
        count += histogram->counts[next++];
    append_series(exposition, "_bucket", &prefix, "+Inf");
    append_whole(exposition, count);
    append_text(exposition, "\n");
    append_series(exposition, "_sum", &prefix, NULL);
    append_billionths(exposition, histogram->sum);
    append_text(exposition, "\n");
    append_series(exposition, "_count", &prefix, NULL);
    append_whole(exposition, count);
    append_text(exposition, "\n");
}

// Appends the buckets that are not empty as pairs of the index of Prometheus' native histograms
// (the upper bound is 2^(index / 4)) and the number of values. The last bucket has no bound, and
// gets the index after the greatest one.
static void append_json_histogram(struct inf_exposition *exposition,
                                  const struct inf_histogram *histogram)
{
    uint64_t count = 0;
    bool first = true;
    append_text(exposition, "\"schema\":2,\"buckets\":[");
    for (int i = 0; i < INF_HISTOGRAM_BUCKETS; i++) {
        if (histogram->counts[i] == 0)
            continue;
        int index = i + INF_HISTOGRAM_LEAST_POWER * INF_HISTOGRAM_PER_OCTAVE;
        count += histogram->counts[i];
        append_text(exposition, first ? "[" : ",[");
        append_text(exposition, index < 0 ? "-" : "");
        append_whole(exposition, (uint64_t)(index < 0 ? -index : index));
        append_text(exposition, ",");
        append_whole(exposition, histogram->counts[i]);
        append_text(exposition, "]");
        first = false;
    }
    append_text(exposition, "],\"sum\":");
    append_billionths(exposition, histogram->sum);
    append_text(exposition, ",\"count\":");
    append_whole(exposition, count);
    append_text(exposition, "}");
}

void inf_exposition_histogram(struct inf_exposition *exposition, const char *const *labels,
                              const struct inf_histogram *histogram)
{
    assert(exposition->metric->type == INF_METRIC_HISTOGRAM);
    if (exposition->format == INF_EXPOSITION_JSON) {
        begin_json_sample(exposition, labels);
        append_json_histogram(exposition, histogram);
    } else {
        append_text_histogram(exposition, labels, histogram);
    }
}
