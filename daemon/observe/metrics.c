// SPDX-License-Identifier: Apache-2.0
// Counts how inferences end. Each series (model, version and device) and each user has a struct of
// 64-bit counters; two key tables bound how many there are. If a series or user loses its place to
// another one, its counters are added to "other", so that sums over all series only grow.
#include "daemon/observe/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/observe/key_table.h"
#include "proto/core/span.h"

// How an inference ended. docs/reference/metrics.md lists the codes of each outcome.
enum outcome {
    OUTCOME_OK,
    OUTCOME_FAILED,
    OUTCOME_REJECTED, // a limit was reached, or the daemon was not ready: a retry may succeed
    OUTCOME_CANCELLED,
    OUTCOME_DEADLINE,
    OUTCOME_COUNT
};

static const char *const outcome_names[OUTCOME_COUNT] = {"ok", "failed", "rejected", "cancelled",
                                                         "deadline"};

// Counters of one series. All members consist of uint64_t.
struct series {
    uint64_t ended[OUTCOME_COUNT][INF_REASON_COUNT];
    uint64_t rows, input_bytes, output_bytes, recomputed;
    struct inf_histogram duration, queue, input, compute, output, batch_rows;
};

// Counters of one user. All members consist of uint64_t.
struct user {
    uint64_t ended[OUTCOME_COUNT];
    uint64_t device_ns;
};

#define WORD_BITS 64
// The set of series that a user has used, as bits.
struct series_set {
    uint64_t words[(INF_METRICS_SERIES_MAX + WORD_BITS - 1) / WORD_BITS];
};

struct inf_metrics {
    struct inf_key_table *series_keys; // key: model NUL version NUL device NUL
    struct inf_key_table *user_keys;   // key: the user id, a uint32_t
    struct series series[INF_METRICS_SERIES_COUNT];
    uint32_t given[INF_METRICS_SERIES_MAX];       // how often each series was given to a key
    struct user users[INF_METRICS_USERS_MAX + 1]; // the last one is "other"
    struct series_set used[INF_METRICS_USERS_MAX + 1];
    // The user of the last search in user_keys, which is usually that of the next one too, and its
    // number; INF_METRICS_USERS_MAX: not valid. A number changes its user only in a search.
    uint32_t last_uid, last_user;
    struct inf_histogram loop_delay, loop_turn;
    struct inf_histogram failure_time[OUTCOME_COUNT]; // that of OUTCOME_OK stays empty
    uint64_t loads_ok, loads_failed;
};

enum inf_code inf_metrics_create(struct inf_metrics **out_metrics, struct inf_error *err)
{
    struct inf_metrics *metrics = calloc(1, sizeof *metrics);
    if (metrics == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for metrics");
    enum inf_code code = inf_key_table_create(&metrics->series_keys, INF_METRICS_SERIES_MAX, err);
    if (code == INF_OK)
        code = inf_key_table_create(&metrics->user_keys, INF_METRICS_USERS_MAX, err);
    metrics->last_user = INF_METRICS_USERS_MAX;
    if (code == INF_OK)
        *out_metrics = metrics;
    else
        inf_metrics_destroy(&metrics);
    return code;
}

void inf_metrics_destroy(struct inf_metrics **metrics)
{
    if (*metrics == NULL)
        return;
    inf_key_table_destroy(&(*metrics)->series_keys);
    inf_key_table_destroy(&(*metrics)->user_keys);
    free(*metrics);
    *metrics = NULL;
}

// --- finding the counters ---

// Adds the counters in `from`, a struct of `size` bytes of uint64_t, to `to`, and clears `from`.
static void move_counters(void *to, void *from, size_t size)
{
    uint64_t *sums = to;
    uint64_t *numbers = from;
    for (size_t i = 0; i < size / sizeof *sums; i++)
        sums[i] += numbers[i];
    memset(from, 0, size);
}

// Appends a text with its NUL to a key, and returns the new size of the key.
static size_t append_to_key(char key[INF_KEY_BYTES_MAX], size_t size, const char *text)
{
    size_t length = INF_MIN(strlen(text), INF_KEY_BYTES_MAX - 1 - size);
    memcpy(key + size, text, length);
    key[size + length] = '\0';
    return INF_MIN(size + length + 1, INF_KEY_BYTES_MAX - 1);
}

// A handle has the number of the series in its lower half, and above it how often the series was
// given to a key. The second number is at least 1, so that no handle is 0.
#define HANDLE_SHIFT 32

static uint32_t find_series(struct inf_metrics *metrics, const struct inf_metrics_labels *labels,
                            uint64_t now_ns)
{
    char key[INF_KEY_BYTES_MAX];
    size_t size = append_to_key(key, 0, labels->model);
    size = append_to_key(key, size, labels->version);
    size = append_to_key(key, size, labels->device);
    bool replaced;
    uint32_t index = inf_key_table_obtain(metrics->series_keys, key, size, now_ns, &replaced);
    if (index == INF_METRICS_OTHER)
        return index;
    if (replaced) {
        move_counters(&metrics->series[INF_METRICS_OTHER], &metrics->series[index],
                      sizeof(struct series));
        for (uint32_t i = 0; i < INF_ARRAY_LENGTH(metrics->used); i++)
            metrics->used[i].words[index / WORD_BITS] &= ~(1ull << index % WORD_BITS);
    }
    if (replaced || metrics->given[index] == 0)
        metrics->given[index]++;
    return index;
}

uint32_t inf_metrics_series(struct inf_metrics *metrics, const struct inf_metrics_labels *labels,
                            uint64_t *handle, uint64_t now_ns)
{
    uint32_t index = handle != NULL ? (uint32_t)*handle : 0;
    assert(index < INF_METRICS_SERIES_MAX);
    if (handle != NULL && *handle != 0 && *handle >> HANDLE_SHIFT == metrics->given[index]) {
        inf_key_table_touch(metrics->series_keys, index, now_ns);
        return index;
    }
    index = find_series(metrics, labels, now_ns);
    if (handle != NULL)
        *handle = index == INF_METRICS_OTHER
                      ? 0
                      : (uint64_t)metrics->given[index] << HANDLE_SHIFT | index;
    return index;
}

// Returns the number of a user.
static uint32_t search_user(struct inf_metrics *metrics, uint32_t uid, uint64_t now_ns)
{
    bool replaced;
    uint32_t index = inf_key_table_obtain(metrics->user_keys, &uid, sizeof uid, now_ns, &replaced);
    if (replaced) {
        move_counters(&metrics->users[INF_METRICS_USERS_MAX], &metrics->users[index],
                      sizeof(struct user));
        metrics->used[index] = (struct series_set){0};
    }
    metrics->last_uid = uid;
    metrics->last_user = index;
    return index;
}

// Returns the counters of a user, and notes that the user has used the series.
static struct user *find_user(struct inf_metrics *metrics, uint32_t uid, uint32_t series,
                              uint64_t now_ns)
{
    uint32_t index = metrics->last_user;
    if (uid == metrics->last_uid && index != INF_METRICS_USERS_MAX)
        inf_key_table_touch(metrics->user_keys, index, now_ns);
    else
        index = search_user(metrics, uid, now_ns);
    if (series < INF_METRICS_SERIES_MAX)
        metrics->used[index].words[series / WORD_BITS] |= 1ull << series % WORD_BITS;
    return &metrics->users[index];
}

// --- counting ---

void inf_metrics_count_answer(struct inf_metrics *metrics, const struct inf_metrics_answer *answer,
                              uint64_t now_ns)
{
    assert(answer->series < INF_METRICS_SERIES_COUNT);
    struct series *series = &metrics->series[answer->series];
    series->ended[OUTCOME_OK][INF_REASON_NONE]++;
    series->rows += answer->rows;
    series->input_bytes += answer->input_bytes;
    series->output_bytes += answer->output_bytes;
    series->recomputed += answer->recomputed;
    inf_histogram_record(&series->duration, answer->duration_ns);
    inf_histogram_record(&series->queue, answer->queue_ns);
    inf_histogram_record(&series->input, answer->input_ns);
    inf_histogram_record(&series->compute, answer->compute_ns);
    inf_histogram_record(&series->output, answer->output_ns);
    inf_histogram_record(&series->batch_rows, (uint64_t)answer->batch_rows * INF_HISTOGRAM_SCALE);
    inf_histogram_record(&metrics->loop_delay, answer->loop_delay_ns);
    struct user *user = find_user(metrics, answer->uid, answer->series, now_ns);
    user->ended[OUTCOME_OK]++;
    user->device_ns += answer->device_ns;
}

static enum outcome outcome_of(enum inf_code code)
{
    switch (code) {
    case INF_OK:
        return OUTCOME_OK;
    case INF_CANCELLED:
        return OUTCOME_CANCELLED;
    case INF_DEADLINE:
        return OUTCOME_DEADLINE;
    case INF_EXHAUSTED:
    case INF_UNAVAILABLE:
        return OUTCOME_REJECTED;
    default:
        return OUTCOME_FAILED;
    }
}

void inf_metrics_count_failure(struct inf_metrics *metrics,
                               const struct inf_metrics_failure *failure, uint64_t now_ns)
{
    const uint32_t series = failure->series;
    assert(failure->code != INF_OK && series < INF_METRICS_SERIES_COUNT);
    assert(failure->reason < INF_REASON_COUNT);
    enum outcome outcome = outcome_of(failure->code);
    metrics->series[series].ended[outcome][failure->reason]++;
    find_user(metrics, failure->uid, series, now_ns)->ended[outcome]++;
    if (failure->accepted_ns != 0)
        inf_histogram_record(&metrics->failure_time[outcome], now_ns - failure->accepted_ns);
}

void inf_metrics_count_load(struct inf_metrics *metrics, bool ok)
{
    if (ok)
        metrics->loads_ok++;
    else
        metrics->loads_failed++;
}

void inf_metrics_count_turn(struct inf_metrics *metrics, uint64_t ns)
{
    inf_histogram_record(&metrics->loop_turn, ns);
}

// --- printing ---

// A series to be printed: its labels model, version and device, and its counters.
struct row {
    const char *labels[3];
    const struct series *series;
};

// Returns the set of series that a reader may see.
static struct series_set visible_series(const struct inf_metrics *metrics,
                                        const struct inf_metrics_reader *reader)
{
    struct series_set set = {0};
    if (reader->admin)
        memset(&set, 0xff, sizeof set);
    for (uint32_t i = 0; i < INF_METRICS_USERS_MAX && !reader->admin; i++) {
        size_t size;
        const void *key = inf_key_table_key(metrics->user_keys, i, &size);
        if (key != NULL && memcmp(key, &reader->uid, sizeof reader->uid) == 0)
            set = metrics->used[i];
    }
    return set;
}

// Fills `rows` with the series that a reader may see, and returns their number.
static uint32_t list_rows(const struct inf_metrics *metrics,
                          const struct inf_metrics_reader *reader,
                          struct row rows[INF_METRICS_SERIES_COUNT])
{
    const struct series_set visible = visible_series(metrics, reader);
    uint32_t count = 0;
    for (uint32_t i = 0; i < INF_METRICS_SERIES_MAX; i++) {
        size_t size;
        const char *key = inf_key_table_key(metrics->series_keys, i, &size);
        if (key == NULL || (visible.words[i / WORD_BITS] >> i % WORD_BITS & 1) == 0)
            continue;
        struct row *row = &rows[count++];
        row->series = &metrics->series[i];
        for (int label = 0; label < 3; label++, key += strlen(key) + 1)
            row->labels[label] = key;
    }
    if (reader->admin) {
        rows[count++] =
            (struct row){{"other", "other", "other"}, &metrics->series[INF_METRICS_OTHER]};
        rows[count++] = (struct row){{"", "", ""}, &metrics->series[INF_METRICS_UNKNOWN]};
    }
    return count;
}

static void print_ended(const struct row *row, struct inf_exposition *exposition)
{
    for (enum outcome outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        for (enum inf_reason reason = 0; reason < INF_REASON_COUNT; reason++) {
            uint64_t number = row->series->ended[outcome][reason];
            const char *const labels[] = {row->labels[0], row->labels[1], row->labels[2],
                                          outcome_names[outcome],
                                          reason == INF_REASON_NONE ? "" : inf_reason_name(reason)};
            if (number > 0)
                inf_exposition_sample(exposition, labels, number);
        }
}

// Where each metric of a series is in struct series.
static const struct {
    enum inf_metric_id id;
    size_t offset;
} series_metrics[] = {
    {INF_METRIC_ROWS, offsetof(struct series, rows)},
    {INF_METRIC_INPUT_BYTES, offsetof(struct series, input_bytes)},
    {INF_METRIC_OUTPUT_BYTES, offsetof(struct series, output_bytes)},
    {INF_METRIC_DURATION, offsetof(struct series, duration)},
    {INF_METRIC_QUEUE_TIME, offsetof(struct series, queue)},
    {INF_METRIC_COMPUTE_TIME, offsetof(struct series, compute)},
    {INF_METRIC_INPUT_TIME, offsetof(struct series, input)},
    {INF_METRIC_OUTPUT_TIME, offsetof(struct series, output)},
    {INF_METRIC_RECOMPUTED, offsetof(struct series, recomputed)},
    {INF_METRIC_BATCH_ROWS, offsetof(struct series, batch_rows)},
};

// A series that never had a successful answer has only the metric INFERENCES.
static void print_series(const struct row *rows, uint32_t count, struct inf_exposition *exposition)
{
    inf_exposition_metric(exposition, INF_METRIC_INFERENCES);
    for (uint32_t i = 0; i < count; i++)
        print_ended(&rows[i], exposition);
    for (size_t m = 0; m < INF_ARRAY_LENGTH(series_metrics); m++) {
        inf_exposition_metric(exposition, series_metrics[m].id);
        for (uint32_t i = 0; i < count; i++) {
            const void *field = (const char *)rows[i].series + series_metrics[m].offset;
            if (rows[i].series->ended[OUTCOME_OK][INF_REASON_NONE] == 0)
                continue;
            if (inf_metric_table[series_metrics[m].id].type == INF_METRIC_HISTOGRAM)
                inf_exposition_histogram(exposition, rows[i].labels, field);
            else
                inf_exposition_sample(exposition, rows[i].labels, *(const uint64_t *)field);
        }
    }
}

// Writes the user id of user `index` to `text`, or "other". Returns false if no user has this
// number or the reader may not see the user.
static bool name_user(const struct inf_metrics *metrics, uint32_t index,
                      const struct inf_metrics_reader *reader, char text[16])
{
    size_t size;
    const void *key = inf_key_table_key(metrics->user_keys, index, &size);
    uint32_t uid = 0;
    if (index == INF_METRICS_USERS_MAX) {
        snprintf(text, 16, "other");
        return reader->admin;
    }
    if (key == NULL)
        return false;
    memcpy(&uid, key, sizeof uid);
    snprintf(text, 16, "%" PRIu32, uid);
    return reader->admin || uid == reader->uid;
}

static void print_users(const struct inf_metrics *metrics, const struct inf_metrics_reader *reader,
                        struct inf_exposition *exposition)
{
    char uid[16];
    inf_exposition_metric(exposition, INF_METRIC_USER_INFERENCES);
    for (uint32_t i = 0; i <= INF_METRICS_USERS_MAX; i++)
        for (enum outcome outcome = 0;
             outcome < OUTCOME_COUNT && name_user(metrics, i, reader, uid); outcome++) {
            const char *const labels[] = {uid, outcome_names[outcome]};
            if (metrics->users[i].ended[outcome] > 0)
                inf_exposition_sample(exposition, labels, metrics->users[i].ended[outcome]);
        }
    inf_exposition_metric(exposition, INF_METRIC_USER_DEVICE_TIME);
    for (uint32_t i = 0; i <= INF_METRICS_USERS_MAX; i++) {
        const char *const labels[] = {uid};
        if (name_user(metrics, i, reader, uid))
            inf_exposition_sample(exposition, labels, metrics->users[i].device_ns);
    }
}

void inf_metrics_print(const struct inf_metrics *metrics, const struct inf_metrics_reader *reader,
                       struct inf_exposition *exposition)
{
    struct row rows[INF_METRICS_SERIES_COUNT];
    uint32_t count = list_rows(metrics, reader, rows);
    inf_exposition_metric(exposition, INF_METRIC_LOOP_DELAY);
    inf_exposition_histogram(exposition, NULL, &metrics->loop_delay);
    inf_exposition_metric(exposition, INF_METRIC_LOOP_TURN);
    inf_exposition_histogram(exposition, NULL, &metrics->loop_turn);
    print_series(rows, count, exposition);
    inf_exposition_metric(exposition, INF_METRIC_FAILURE_TIME);
    for (enum outcome outcome = OUTCOME_OK + 1; outcome < OUTCOME_COUNT; outcome++)
        inf_exposition_histogram(exposition, (const char *const[]){outcome_names[outcome]},
                                 &metrics->failure_time[outcome]);
    print_users(metrics, reader, exposition);
    inf_exposition_metric(exposition, INF_METRIC_LOADS);
    inf_exposition_sample(exposition, (const char *const[]){"ok"}, metrics->loads_ok);
    inf_exposition_sample(exposition, (const char *const[]){"failed"}, metrics->loads_failed);
}
