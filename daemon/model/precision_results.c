// SPDX-License-Identifier: Apache-2.0
// Keeps the results in an array and in a record file. If the array is full, a new result replaces
// the oldest one. Each result is one line of the file: KEY ADMISSIBLE COUNT PIN... TEXT.
#include "daemon/model/precision_results.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/storage/record_file.h"
#include "proto/core/utf8.h"

#define FILE_BYTES_MAX ((uint64_t)1 << 20)

struct inf_precision_results {
    struct inf_record_file file;
    struct inf_record_places places; // which of `entries` are used
    struct inf_precision_result entries[INF_PRECISION_RESULTS];
};

uint64_t inf_precision_results_key(uint64_t content_hash, const struct inf_shape *shapes,
                                   uint32_t count, enum inf_precision precision,
                                   const char *version)
{
    uint64_t hash = inf_record_hash_text(INF_RECORD_HASH_INIT, version);
    uint32_t number = precision;
    hash = inf_record_hash(hash, &content_hash, sizeof content_hash);
    hash = inf_record_hash(hash, &number, sizeof number);
    return inf_record_hash_shapes(hash, shapes, count);
}

const struct inf_precision_result *
inf_precision_results_find(const struct inf_precision_results *results, uint64_t key)
{
    for (uint32_t i = 0; i < results->places.count; i++)
        if (results->entries[i].key == key)
            return &results->entries[i];
    return NULL;
}

// Stores a result, replacing the result with the same key or the oldest one, and returns its index.
static uint32_t store_result(struct inf_precision_results *results,
                             const struct inf_precision_result *result)
{
    const struct inf_precision_result *known = inf_precision_results_find(results, result->key);
    uint32_t index = known != NULL ? (uint32_t)(known - results->entries)
                                   : inf_record_place(&results->places, INF_PRECISION_RESULTS);
    results->entries[index] = *result;
    return index;
}

static bool take_line(void *context, const char *line)
{
    struct inf_precision_result result = {0};
    unsigned admissible;
    int length = -1;
    if (sscanf(line, "%" SCNx64 " %u %u%n", &result.key, &admissible, &result.pin_count, &length) !=
            3 ||
        length < 0 || admissible > 1 || result.pin_count > INF_PRECISION_RESULT_PINS)
        return false;
    result.admissible = admissible == 1;
    for (uint32_t i = 0; i < result.pin_count; i++) {
        line += length;
        length = -1;
        if (sscanf(line, " %" SCNx64 "%n", &result.pins[i], &length) != 1 || length < 0)
            return false;
    }
    line += length;
    if (*line != ' ' || strlen(line + 1) >= sizeof result.text)
        return false;
    snprintf(result.text, sizeof result.text, "%s", line + 1);
    inf_text_clean(result.text);
    store_result(context, &result);
    return true;
}

static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_precision_results *results = context;
    const struct inf_precision_result *result = &results->entries[index];
    size_t at = (size_t)snprintf(line, capacity, "%016" PRIx64 " %u %" PRIu32, result->key,
                                 result->admissible ? 1u : 0u, result->pin_count);
    for (uint32_t i = 0; i < result->pin_count && at < capacity; i++)
        at += (size_t)snprintf(line + at, capacity - at, " %016" PRIx64, result->pins[i]);
    if (at < capacity)
        at += (size_t)snprintf(line + at, capacity - at, " %s", result->text);
    return at < capacity ? at : 0;
}

enum inf_code inf_precision_results_open(struct inf_precision_results **out_results,
                                         const char *directory, const struct inf_log *log,
                                         struct inf_error *err)
{
    struct inf_precision_results *results = calloc(1, sizeof *results);
    if (results == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the results of precision checks");
    results->file = (struct inf_record_file){.name = "precision.db",
                                             .header = "inferd-precision 1\n",
                                             .what = "results of precision checks",
                                             .bytes_max = FILE_BYTES_MAX,
                                             .log = log,
                                             .context = results,
                                             .take = take_line,
                                             .write = write_line};
    inf_record_file_open(&results->file, directory);
    *out_results = results;
    return INF_OK;
}

void inf_precision_results_close(struct inf_precision_results **pointer)
{
    struct inf_precision_results *results = *pointer;
    *pointer = NULL;
    if (results == NULL)
        return;
    inf_record_file_close(&results->file);
    free(results);
}

void inf_precision_results_add(struct inf_precision_results *results,
                               const struct inf_precision_result *result)
{
    uint32_t index = store_result(results, result);
    inf_record_file_append(&results->file, index, results->places.count);
}
