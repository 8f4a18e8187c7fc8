// SPDX-License-Identifier: Apache-2.0
// Computes the statistics of the protocol from the daemon's metrics. The daemon keeps counters and
// histograms by model, version and device; the protocol wants one row for each version. What the
// daemon does not measure, such as the time of failed inferences, is 0 or left out.
#include "client/gateway/oip/statistics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

// Maximum number of versions of models. The daemon's metrics have a smaller limit.
#define ROWS_MAX 4096u

// Returns the row of the model in `labels`, which is appended if there is none. Returns NULL if the
// model is not wanted or there is no room. The search begins behind the row *hint, and sets *hint
// to the row that it found. The samples of all metrics have the same order, so the search is short.
static struct inf_oip_model_statistics *find_row(struct inf_oip_statistics *statistics,
                                                 const json_t *labels, const char *name,
                                                 const char *version, size_t *hint)
{
    const char *model = json_string_value(json_object_get(labels, "model"));
    const char *number = json_string_value(json_object_get(labels, "version"));
    struct inf_oip_model_statistics *row = NULL;
    if (model == NULL || number == NULL || strlen(model) >= sizeof row->name ||
        strlen(number) >= sizeof row->version || (name[0] != '\0' && strcmp(name, model) != 0) ||
        (version[0] != '\0' && strcmp(version, number) != 0))
        return NULL;
    for (size_t i = 0; i < statistics->count; i++) {
        size_t index = (*hint + i) % statistics->count;
        row = &statistics->rows[index];
        if (strcmp(row->name, model) == 0 && strcmp(row->version, number) == 0) {
            *hint = index;
            return row;
        }
    }
    if (statistics->count == ROWS_MAX)
        return NULL;
    *hint = statistics->count;
    row = &statistics->rows[statistics->count++];
    snprintf(row->name, sizeof row->name, "%s", model);
    snprintf(row->version, sizeof row->version, "%s", number);
    return row;
}

static void add_histogram(struct inf_oip_duration *duration, const json_t *sample)
{
    duration->count += (uint64_t)json_integer_value(json_object_get(sample, "count"));
    duration->ns +=
        (uint64_t)llround(json_number_value(json_object_get(sample, "sum")) * 1000000000);
}

// Adds one sample of the metric `metric` to a row.
static void add_sample(struct inf_oip_model_statistics *row, const char *metric,
                       const json_t *sample)
{
    uint64_t value = (uint64_t)json_integer_value(json_object_get(sample, "value"));
    const char *outcome =
        json_string_value(json_object_get(json_object_get(sample, "labels"), "outcome"));
    if (strcmp(metric, "inferd_inferences_total") == 0) {
        if (outcome != NULL && strcmp(outcome, "ok") != 0)
            row->fail.count += value;
    } else if (strcmp(metric, "inferd_inference_rows_total") == 0) {
        row->rows += value;
    } else if (strcmp(metric, "inferd_inference_duration_seconds") == 0) {
        add_histogram(&row->success, sample);
    } else if (strcmp(metric, "inferd_inference_queue_seconds") == 0) {
        add_histogram(&row->queue, sample);
    } else if (strcmp(metric, "inferd_inference_compute_seconds") == 0) {
        add_histogram(&row->compute, sample);
    }
}

enum inf_code inf_oip_statistics_read(const char *metrics, const char *name, const char *version,
                                      struct inf_oip_statistics *statistics, struct inf_error *err)
{
    *statistics = (struct inf_oip_statistics){calloc(ROWS_MAX, sizeof *statistics->rows), 0};
    json_t *json = json_loads(metrics, 0, NULL);
    if (statistics->rows == NULL || json == NULL) {
        free(statistics->rows);
        statistics->rows = NULL;
        json_decref(json);
        return inf_fail(err, INF_INTERNAL, "the daemon's metrics cannot be read");
    }
    size_t hint = 0;
    for (size_t i = 0; i < json_array_size(json); i++) {
        const json_t *metric = json_array_get(json, i), *samples;
        const char *metric_name = json_string_value(json_object_get(metric, "name"));
        samples = json_object_get(metric, "samples");
        for (size_t k = 0; metric_name != NULL && k < json_array_size(samples); k++) {
            const json_t *sample = json_array_get(samples, k);
            struct inf_oip_model_statistics *row =
                find_row(statistics, json_object_get(sample, "labels"), name, version, &hint);
            if (row != NULL)
                add_sample(row, metric_name, sample);
        }
    }
    json_decref(json);
    return INF_OK;
}

static json_t *encode_duration(const struct inf_oip_duration *duration)
{
    return json_pack("{s:I, s:I}", "count", (json_int_t)duration->count, "ns",
                     (json_int_t)duration->ns);
}

char *inf_oip_statistics_encode(const struct inf_oip_statistics *statistics)
{
    json_t *list = json_array();
    for (size_t i = 0; i < statistics->count; i++) {
        const struct inf_oip_model_statistics *row = &statistics->rows[i];
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:I, s:{s:o, s:o, s:o, s:o}}", "name", row->name, "version",
                            row->version, "inference_count", (json_int_t)row->rows,
                            "inference_stats", "success", encode_duration(&row->success), "fail",
                            encode_duration(&row->fail), "queue", encode_duration(&row->queue),
                            "compute_infer", encode_duration(&row->compute)));
    }
    json_t *object = json_pack("{s:o}", "model_stats", list);
    char *text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}
