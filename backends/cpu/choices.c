// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/record_file.h"
#include "backends/cpu/kernel_race.h"
#include "proto/core/span.h"

// Choices that are kept; a kind of node that is met when there are so many is chosen by rule.
#define RECORDS_MAX 2048u
// What all races of a device may take together.
#define RACES_NS (3 * (uint64_t)INF_NS_PER_S)
// The rule's row stays unless another takes less than so much of its time: a race is short, and weights
// of XNNPACK's operators cannot be shared.
#define CLEARLY      0.9
#define FAMILY_CHARS 24

struct record {
    uint64_t key;
    char family[FAMILY_CHARS];
};

struct inf_cpu_choices {
    const struct inf_log *log;
    uint64_t seed; // of keys: what all choices hold for

    struct inf_mutex mutex; // guards what follows
    struct record *records;
    uint32_t count, written; // of them in the file
    bool writing;            // by a thread that will write all that there are
    uint64_t spent_ns;

    struct inf_record_file file; // of the thread that writes
};

// --- keys ---

static uint64_t hash_value(uint64_t key, const struct inf_graph *graph, uint32_t value)
{
    if (value == INF_VALUE_NONE)
        return inf_record_hash(key, "-", 1);
    const struct inf_value *of = &graph->values[value];
    bool constant = inf_graph_is_const(graph, value);
    key = inf_record_hash(key, &of->dtype, sizeof of->dtype);
    key = inf_record_hash(key, &constant, sizeof constant);
    return inf_record_hash(key, of->shape.dims, (size_t)of->shape.rank * sizeof of->shape.dims[0]);
}

// What a choice hangs on: threads, the node's operator, attributes and operands.
static uint64_t key_of(const struct inf_cpu_choices *choices, const struct inf_cpu_step *step)
{
    const struct inf_node *node = step->node;
    uint64_t key = inf_record_hash_text(choices->seed, inf_op_info(node->op)->name);
    size_t threads = pthreadpool_get_threads_count(step->pool);
    key = inf_record_hash(key, &threads, sizeof threads);
    key = inf_record_hash(key, &node->attrs, sizeof node->attrs);
    for (uint32_t i = 0; i < node->input_count; i++)
        key = hash_value(key, step->graph, node->inputs[i]);
    return hash_value(key, step->graph, node->outputs[0]);
}

// --- records ---

static const struct record *find(const struct inf_cpu_choices *choices, uint64_t key)
{
    for (uint32_t i = 0; i < choices->count; i++)
        if (choices->records[i].key == key)
            return &choices->records[i];
    return NULL;
}

static void add(struct inf_cpu_choices *choices, uint64_t key, const char *family)
{
    if (choices->count == RECORDS_MAX || find(choices, key) != NULL)
        return;
    struct record *record = &choices->records[choices->count++];
    record->key = key;
    snprintf(record->family, sizeof record->family, "%s", family);
}

// KEY FAMILY
static bool take_line(void *context, const char *line)
{
    struct inf_cpu_choices *choices = context;
    struct record record;
    int length = -1;
    if (sscanf(line, "%" SCNx64 " %23[a-z0-9_]%n", &record.key, record.family, &length) != 2 ||
        length != (int)strlen(line))
        return false;
    add(choices, record.key, record.family);
    return true;
}

static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_cpu_choices *choices = context;
    const struct record *record = &choices->records[index];
    return (size_t)snprintf(line, capacity, "%016" PRIx64 " %s", record->key, record->family);
}

// Appends what the file lacks. No lock is held meanwhile: records never change, and one thread writes.
static void keep(struct inf_cpu_choices *choices) INF_MAY_BLOCK
{
    inf_mutex_lock(&choices->mutex);
    bool mine = !choices->writing;
    choices->writing = true;
    while (mine && choices->written < choices->count) {
        uint32_t index = choices->written++;
        inf_mutex_unlock(&choices->mutex);
        inf_record_file_append(&choices->file, index, index + 1);
        inf_mutex_lock(&choices->mutex);
    }
    if (mine)
        choices->writing = false;
    inf_mutex_unlock(&choices->mutex);
}

// --- choices ---

static void tell(const struct inf_cpu_choices *choices, const struct inf_cpu_step *step,
                 const struct inf_cpu_candidate *candidates, uint32_t count, uint32_t chosen)
{
    char times[160] = "";
    for (uint32_t i = 0; i < count; i++) {
        size_t used = strlen(times);
        snprintf(times + used, sizeof times - used, " %s=%.1fus", candidates[i].family,
                 (double)candidates[i].least_ns / 1000);
    }
    inf_log(choices->log, INF_LOG_DEBUG, "kernels raced node=\"%s\" op=%s%s chosen=%s",
            step->node->name, inf_op_info(step->node->op)->name, times, candidates[chosen].family);
}

// The candidate that won.
static uint32_t judge(const struct inf_cpu_candidate *candidates, uint32_t count)
{
    uint32_t best = 0;
    double bound = CLEARLY * (double)candidates[0].least_ns;
    for (uint32_t i = 1; i < count; i++)
        if (candidates[i].least_ns > 0 && (double)candidates[i].least_ns < bound) {
            best = i;
            bound = (double)candidates[i].least_ns;
        }
    return best;
}

// The candidate that is known to win, or that wins now; 0, the rule's, where there is no race.
static uint32_t choose(struct inf_cpu_choices *choices, const struct inf_cpu_step *step,
                       struct inf_cpu_candidate *candidates, uint32_t count) INF_MAY_BLOCK
{
    char family[FAMILY_CHARS] = "";
    uint64_t key = key_of(choices, step);
    inf_mutex_lock(&choices->mutex);
    const struct record *record = find(choices, key);
    if (record != NULL)
        memcpy(family, record->family, sizeof family);
    bool race = record == NULL && choices->spent_ns < RACES_NS && choices->count < RECORDS_MAX;
    inf_mutex_unlock(&choices->mutex);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(candidates[i].family, family) == 0)
            return i;
    uint64_t start_ns = inf_clock_ns();
    if (!race || inf_cpu_race(candidates, count, step, NULL) != INF_OK ||
        candidates[0].least_ns == 0)
        return 0;
    uint32_t chosen = judge(candidates, count);
    tell(choices, step, candidates, count, chosen);
    inf_mutex_lock(&choices->mutex);
    choices->spent_ns += inf_clock_ns() - start_ns;
    add(choices, key, candidates[chosen].family);
    inf_mutex_unlock(&choices->mutex);
    keep(choices);
    return chosen;
}

enum inf_code inf_cpu_choose(const struct inf_cpu_kernel **out_kernel,
                             struct inf_cpu_choices *choices, const struct inf_cpu_step *step,
                             struct inf_error *err)
{
    struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES];
    INF_TRY(inf_cpu_kernel_find(out_kernel, step->graph, step->node, err));
    // In bf16 rows do not compute the same.
    if (choices == NULL || step->bf16)
        return INF_OK;
    uint32_t count = inf_cpu_kernel_list(candidates, step->graph, step->node);
    if (count > 1)
        *out_kernel = candidates[choose(choices, step, candidates, count)].kernel;
    return INF_OK;
}

// --- all of them ---

enum inf_code inf_cpu_choices_open(struct inf_cpu_choices **out_choices, const char *directory,
                                   const struct inf_device_info *info, const struct inf_log *log,
                                   struct inf_error *err)
{
    struct inf_cpu_choices *choices = calloc(1, sizeof *choices);
    if (choices != NULL)
        choices->records = calloc(RECORDS_MAX, sizeof *choices->records);
    if (choices == NULL || choices->records == NULL) {
        free(choices);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory for choices of kernels");
    }
    inf_mutex_init(&choices->mutex);
    choices->log = log;
    choices->seed = inf_record_hash_text(INF_RECORD_HASH_INIT, info->description);
    choices->file = (struct inf_record_file){.name = "kernels.db",
                                             .header = "inferd-kernels 1\n",
                                             .what = "memory of kernels",
                                             .bytes_max = RECORDS_MAX * 128,
                                             .log = log,
                                             .context = choices,
                                             .take = take_line,
                                             .write = write_line};
    inf_record_file_open(&choices->file, directory);
    choices->written = choices->count;
    *out_choices = choices;
    return INF_OK;
}

void inf_cpu_choices_close(struct inf_cpu_choices **pointer)
{
    struct inf_cpu_choices *choices = *pointer;
    *pointer = NULL;
    if (choices == NULL)
        return;
    inf_record_file_close(&choices->file);
    inf_mutex_fini(&choices->mutex);
    free(choices->records);
    free(choices);
}
