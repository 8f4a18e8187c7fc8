// SPDX-License-Identifier: Apache-2.0
// The winners of timing comparisons ("races"): a list in memory, and a text file to which lines are
// appended.
#include "backends/cpu/program/race_results.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
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
    char winner[INF_CPU_WINNER_TEXT];
    // True: the winner was found by timing; false: chosen by rule and not written to the file.
    bool raced;
};

struct inf_cpu_race_results {
    const struct inf_log *log;
    _Atomic uint64_t choices[INF_CPU_CHOICE_COUNT]; // numbers of choices
    uint64_t seed; // start value of all keys: a hash of the processor, ISA level and so on

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

// --- hashing a node and its operands to the key of a record ---

uint64_t inf_cpu_race_results_key(const struct inf_cpu_race_results *results, size_t threads)
{
    return inf_record_hash(results->seed, &threads, sizeof threads);
}

uint64_t inf_cpu_race_results_hash_value(uint64_t key, const struct inf_graph *graph,
                                         uint32_t value)
{
    if (value == INF_VALUE_NONE)
        return inf_record_hash(key, "-", 1);
    const struct inf_value *of = &graph->values[value];
    bool constant = inf_graph_is_const(graph, value);
    key = inf_record_hash(key, &of->dtype, sizeof of->dtype);
    key = inf_record_hash(key, &constant, sizeof constant);
    return inf_record_hash(key, of->shape.dims, (size_t)of->shape.rank * sizeof of->shape.dims[0]);
}

uint64_t inf_cpu_race_results_hash_node(uint64_t key, const struct inf_graph *graph, uint32_t index)
{
    const struct inf_node *node = &graph->nodes[index];
    key = inf_record_hash_text(key, inf_op_info(node->op)->name);
    key = inf_record_hash(key, &node->attrs, sizeof node->attrs);
    return inf_cpu_race_results_hash_value(key, graph, node->outputs[0]);
}

// --- finding and adding records in memory ---

static const struct record *find_record(const struct inf_cpu_race_results *results, uint64_t key)
{
    for (uint32_t i = 0; i < results->count; i++)
        if (results->records[i].key == key)
            return &results->records[i];
    return NULL;
}

static void add_record(struct inf_cpu_race_results *results, uint64_t key, const char *winner,
                       bool raced)
{
    if (results->count == RECORDS_MAX || find_record(results, key) != NULL)
        return;
    struct record *record = &results->records[results->count++];
    record->key = key;
    record->raced = raced;
    snprintf(record->winner, sizeof record->winner, "%s", winner);
}

bool inf_cpu_race_results_find(struct inf_cpu_race_results *results, uint64_t key,
                               char winner[INF_CPU_WINNER_TEXT])
{
    inf_mutex_lock(&results->mutex);
    const struct record *record = find_record(results, key);
    snprintf(winner, INF_CPU_WINNER_TEXT, "%s", record != NULL ? record->winner : "");
    inf_mutex_unlock(&results->mutex);
    return winner[0] != '\0';
}

bool inf_cpu_race_results_may_race(struct inf_cpu_race_results *results)
{
    inf_mutex_lock(&results->mutex);
    bool may = results->spent_ns < RACES_NS && results->count < RECORDS_MAX;
    inf_mutex_unlock(&results->mutex);
    return may;
}

void inf_cpu_race_results_fix(struct inf_cpu_race_results *results, uint64_t key,
                              const char *winner)
{
    inf_mutex_lock(&results->mutex);
    add_record(results, key, winner, false);
    inf_mutex_unlock(&results->mutex);
}

// --- reading and appending to the file of records ---

// Parses a line of the file, which has the form: KEY WINNER
static bool parse_line(void *context, const char *line)
{
    struct inf_cpu_race_results *results = context;
    struct record record;
    int length = -1;
    if (sscanf(line, "%" SCNx64 " %23[a-z0-9_]%n", &record.key, record.winner, &length) != 2 ||
        length != (int)strlen(line))
        return false;
    add_record(results, record.key, record.winner, true);
    return true;
}

static size_t format_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_cpu_race_results *results = context;
    const struct record *record = &results->records[index];
    if (!record->raced)
        return 0;
    return (size_t)snprintf(line, capacity, "%016" PRIx64 " %s", record->key, record->winner);
}

// Appends the records that the file lacks. Releases the lock while it writes the file. This is safe
// because records never change and only one thread writes the file.
static void append_records(struct inf_cpu_race_results *results) INF_MAY_BLOCK
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

static void log_race(const struct inf_cpu_race_results *results, const struct inf_node *node,
                     const struct inf_cpu_candidate *candidates, uint32_t count, const char *chosen)
{
    char times[160] = "";
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(times);
        snprintf(times + used, sizeof times - used, " %s=%.1fus", candidates[i].family,
                 (double)candidates[i].least_ns / 1000);
    }
    inf_log(results->log, INF_LOG_DEBUG, "kernels raced node=\"%s\" op=%s%s chosen=%s", node->name,
            inf_op_info(node->op)->name, times, chosen);
}

void inf_cpu_race_results_record(struct inf_cpu_race_results *results, uint64_t key,
                                 uint64_t start_ns, const struct inf_node *node,
                                 const struct inf_cpu_candidate *candidates, uint32_t count)
{
    assert(count > 0);
    const char *winner = candidates[0].family;
    double bound = CLEARLY * (double)candidates[0].least_ns;
    for (uint32_t i = 1; i < count; i++)
        if (candidates[i].least_ns > 0 && (double)candidates[i].least_ns < bound) {
            winner = candidates[i].family;
            bound = CLEARLY * (double)candidates[i].least_ns;
        }
    log_race(results, node, candidates, count, winner);
    inf_mutex_lock(&results->mutex);
    results->spent_ns += inf_clock_ns() - start_ns;
    add_record(results, key, winner, true);
    inf_mutex_unlock(&results->mutex);
    append_records(results);
}

void inf_cpu_race_results_count(struct inf_cpu_race_results *results, enum inf_cpu_choice choice)
{
    atomic_fetch_add_explicit(&results->choices[choice], 1, memory_order_relaxed);
}

struct inf_kernel_choices inf_cpu_race_results_choices(const struct inf_cpu_race_results *results)
{
    return (struct inf_kernel_choices){
        .measured = atomic_load(&results->choices[INF_CPU_CHOICE_MEASURED]),
        .known = atomic_load(&results->choices[INF_CPU_CHOICE_KNOWN]),
        .rule = atomic_load(&results->choices[INF_CPU_CHOICE_RULE]),
    };
}

// --- opening and closing ---

enum inf_code inf_cpu_race_results_open(struct inf_cpu_race_results **out_results,
                                        const char *directory, const struct inf_device_info *info,
                                        const struct inf_log *log, struct inf_error *err)
{
    char build[INF_BUILD_ID_TEXT];
    struct inf_cpu_race_results *results = calloc(1, sizeof *results);
    if (results != NULL)
        results->records = calloc(RECORDS_MAX, sizeof *results->records);
    if (results == NULL || results->records == NULL) {
        free(results);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory for results of kernels");
    }
    inf_mutex_init(&results->mutex);
    results->log = log;
    results->seed = inf_record_hash_text(INF_RECORD_HASH_INIT, info->description);
    // The header contains the build id, because another build may have other kernels, so its
    // results must not be used.
    inf_build_id(build);
    snprintf(results->header, sizeof results->header, "inferd-kernels 2 %.40s\n", build);
    results->file = (struct inf_record_file){.name = "kernels.db",
                                             .header = results->header,
                                             .what = "memory of kernels",
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

void inf_cpu_race_results_close(struct inf_cpu_race_results **pointer)
{
    struct inf_cpu_race_results *results = *pointer;
    *pointer = NULL;
    if (results == NULL)
        return;
    inf_record_file_close(&results->file);
    inf_mutex_fini(&results->mutex);
    free(results->records);
    free(results);
}
