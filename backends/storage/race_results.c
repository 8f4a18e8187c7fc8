// SPDX-License-Identifier: Apache-2.0
// The winners of timing comparisons ("races"): a list in memory, and a text file to which lines are
// appended. What is timed, and how, is up to the devices.
#include "backends/storage/race_results.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/storage/build_id.h"
#include "backends/storage/record_file.h"
#include "proto/core/span.h"

// The largest number of recorded winners. When it is reached, kernels are chosen by the fixed
// rules, without timing.
#define RECORDS_MAX 2048u
// The total time that all timing comparisons of a device may take.
#define RACES_NS (4 * (uint64_t)INF_NS_PER_S)
// The first candidate, which is the choice of the fixed rule, is the winner at the beginning. A
// further candidate becomes the winner only if its time is less than this share of the winner's
// time. A small lead is not enough, because a timing comparison is short, and because later
// candidates need more memory: XNNPACK's operators have a copy of the weights in each slot, and
// each form of Winograd's algorithm has larger weights than the previous form.
#define CLEARLY 0.9

struct record {
    uint64_t key;
    char winner[INF_RACE_WINNER_TEXT];
    // True: the winner was found by timing; false: chosen by rule and not written to the file.
    bool raced;
    uint64_t made_ns; // time at which it was recorded; 0: it was read from the file
};

struct inf_race_results {
    const struct inf_log *log;
    _Atomic uint64_t choices[INF_RACE_CHOICE_COUNT]; // numbers of choices
    _Atomic uint64_t overturned; // races that another candidate than the first one has won
    uint64_t seed;               // start value of all keys

    struct inf_mutex mutex; // guards the following members
    struct record *records;
    uint32_t count, written; // number of records in memory, and number of records in the file
    // True if a thread is writing the file. That thread also writes the records that other threads
    // add meanwhile.
    bool writing;
    uint64_t spent_ns;

    struct inf_record_file file; // used only by the thread that is writing
    char header[64];             // first line of the file
};

// --- finding and adding records in memory ---

static const struct record *find_record(const struct inf_race_results *results, uint64_t key)
{
    for (uint32_t i = 0; i < results->count; i++)
        if (results->records[i].key == key)
            return &results->records[i];
    return NULL;
}

static void add_record(struct inf_race_results *results, uint64_t key, const char *winner,
                       bool raced, uint64_t made_ns)
{
    if (results->count == RECORDS_MAX || find_record(results, key) != NULL)
        return;
    struct record *record = &results->records[results->count++];
    record->key = key;
    record->raced = raced;
    record->made_ns = made_ns;
    snprintf(record->winner, sizeof record->winner, "%s", winner);
}

bool inf_race_results_find(struct inf_race_results *results, uint64_t key, uint64_t until_ns,
                           char winner[INF_RACE_WINNER_TEXT])
{
    inf_mutex_lock(&results->mutex);
    const struct record *record = find_record(results, key);
    if (record != NULL && until_ns != 0 && record->made_ns > until_ns)
        record = NULL;
    snprintf(winner, INF_RACE_WINNER_TEXT, "%s", record != NULL ? record->winner : "");
    inf_mutex_unlock(&results->mutex);
    return winner[0] != '\0';
}

bool inf_race_results_may_race(struct inf_race_results *results)
{
    inf_mutex_lock(&results->mutex);
    bool may = results->spent_ns < RACES_NS && results->count < RECORDS_MAX;
    inf_mutex_unlock(&results->mutex);
    return may;
}

void inf_race_results_fix(struct inf_race_results *results, uint64_t key, const char *winner)
{
    inf_mutex_lock(&results->mutex);
    add_record(results, key, winner, false, inf_clock_ns());
    inf_mutex_unlock(&results->mutex);
}

// --- reading and appending to the file of records ---

// Parses a line of the file, which has the form: KEY WINNER
static bool parse_line(void *context, const char *line)
{
    struct inf_race_results *results = context;
    struct record record;
    int length = -1;
    if (sscanf(line, "%" SCNx64 " %23[a-z0-9_]%n", &record.key, record.winner, &length) != 2 ||
        length != (int)strlen(line))
        return false;
    add_record(results, record.key, record.winner, true, 0);
    return true;
}

static size_t format_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_race_results *results = context;
    const struct record *record = &results->records[index];
    if (!record->raced)
        return 0;
    return (size_t)snprintf(line, capacity, "%016" PRIx64 " %s", record->key, record->winner);
}

// Appends the records that the file lacks. Releases the lock while it writes the file. This is safe
// because records never change and only one thread writes the file.
static void append_records(struct inf_race_results *results) INF_MAY_BLOCK
{
    inf_mutex_lock(&results->mutex);
    bool mine = !results->writing;
    results->writing = true;
    while (mine && results->written < results->count) {
        uint32_t index = results->written++;
        inf_mutex_unlock(&results->mutex);
        inf_record_file_append(&results->file, index, index + 1);
        inf_mutex_lock(&results->mutex);
    }
    if (mine)
        results->writing = false;
    inf_mutex_unlock(&results->mutex);
}

// --- choosing the winner ---

static void log_race(const struct inf_race_results *results, const char *what,
                     const struct inf_race_time *candidates, uint32_t count, const char *chosen)
{
    char times[320] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < count && used < sizeof times; i++)
        used += (size_t)snprintf(times + used, sizeof times - used, " %s=%.1fus",
                                 candidates[i].name, (double)candidates[i].least_ns / 1000);
    inf_log(results->log, INF_LOG_DEBUG, "kernels raced %s%s chosen=%s", what, times, chosen);
}

void inf_race_results_record(struct inf_race_results *results, uint64_t key, uint64_t spent_ns,
                             const char *what, const struct inf_race_time *candidates,
                             uint32_t count)
{
    assert(count > 0);
    const char *winner = candidates[0].name;
    double bound = CLEARLY * (double)candidates[0].least_ns;
    for (uint32_t i = 1; i < count; i++)
        if (candidates[i].least_ns > 0 && (double)candidates[i].least_ns < bound) {
            winner = candidates[i].name;
            bound = CLEARLY * (double)candidates[i].least_ns;
        }
    log_race(results, what, candidates, count, winner);
    if (winner != candidates[0].name)
        atomic_fetch_add_explicit(&results->overturned, 1, memory_order_relaxed);
    inf_mutex_lock(&results->mutex);
    results->spent_ns += spent_ns;
    add_record(results, key, winner, true, inf_clock_ns());
    inf_mutex_unlock(&results->mutex);
    append_records(results);
}

void inf_race_results_count(struct inf_race_results *results, enum inf_race_choice choice)
{
    atomic_fetch_add_explicit(&results->choices[choice], 1, memory_order_relaxed);
}

uint64_t inf_race_results_overturned(const struct inf_race_results *results)
{
    return atomic_load_explicit(&results->overturned, memory_order_relaxed);
}

uint64_t inf_race_results_choices(const struct inf_race_results *results,
                                  enum inf_race_choice choice)
{
    return atomic_load_explicit(&results->choices[choice], memory_order_relaxed);
}

uint64_t inf_race_results_seed(const struct inf_race_results *results)
{
    return results->seed;
}

// --- opening and closing ---

enum inf_code inf_race_results_open(struct inf_race_results **out_results, const char *directory,
                                    const struct inf_race_file *file, const char *seed,
                                    const struct inf_log *log, struct inf_error *err)
{
    char build[INF_BUILD_ID_TEXT];
    struct inf_race_results *results = calloc(1, sizeof *results);
    if (results != NULL)
        results->records = calloc(RECORDS_MAX, sizeof *results->records);
    if (results == NULL || results->records == NULL) {
        free(results);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for the %s",
                               file->what);
    }
    inf_mutex_init(&results->mutex);
    results->log = log;
    results->seed = inf_record_hash_text(INF_RECORD_HASH_INIT, seed);
    // The header contains the build id, because another build may have other kernels, so its
    // results must not be used.
    inf_build_id(build);
    snprintf(results->header, sizeof results->header, "%s %.40s\n", file->format, build);
    results->file = (struct inf_record_file){.name = file->name,
                                             .header = results->header,
                                             .what = file->what,
                                             .bytes_max = RECORDS_MAX * 128,
                                             .log = log,
                                             .context = results,
                                             .take = parse_line,
                                             .write = format_line};
    inf_record_file_open(&results->file, directory);
    results->written = results->count;
    *out_results = results;
    return INF_OK;
}

void inf_race_results_close(struct inf_race_results **pointer)
{
    struct inf_race_results *results = *pointer;
    *pointer = NULL;
    if (results == NULL)
        return;
    inf_record_file_close(&results->file);
    inf_mutex_fini(&results->mutex);
    free(results->records);
    free(results);
}
