// SPDX-License-Identifier: Apache-2.0
// Each line of the record file is "NAME REQUESTS". The file is written as a whole, at most once in
// a few minutes.
#include "daemon/load/source/model_uses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/storage/record_file.h"
#include "proto/wire/message.h"

#define FILE_BYTES_MAX ((uint64_t)256 << 10)

struct inf_model_uses {
    struct inf_record_file file;
};

// Returns the index of a model, or the index at which it is to be inserted.
static uint32_t find_place(const struct inf_model_use_counts *counts, const char *name)
{
    uint32_t first = 0, end = counts->count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (strcmp(counts->models[middle].name, name) < 0)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static bool is_at(const struct inf_model_use_counts *counts, uint32_t place, const char *name)
{
    return place < counts->count && strcmp(counts->models[place].name, name) == 0;
}

static void move_models(struct inf_model_use_counts *counts, uint32_t to, uint32_t from)
{
    memmove(&counts->models[to], &counts->models[from],
            (counts->count - from) * sizeof counts->models[0]);
}

// Forgets the model with the fewest requests, if it has fewer than `requests`. Returns false
// otherwise.
static bool forget_least(struct inf_model_use_counts *counts, uint64_t requests)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < counts->count; i++)
        if (counts->models[i].requests < counts->models[least].requests)
            least = i;
    if (counts->models[least].requests >= requests)
        return false;
    move_models(counts, least, least + 1);
    counts->count--;
    return true;
}

uint64_t inf_model_use_counts_find(const struct inf_model_use_counts *counts, const char *name)
{
    uint32_t place = find_place(counts, name);
    return is_at(counts, place, name) ? counts->models[place].requests : 0;
}

void inf_model_use_counts_set(struct inf_model_use_counts *counts, const char *name,
                              uint64_t requests)
{
    uint32_t place = find_place(counts, name);
    if (!is_at(counts, place, name)) {
        if (counts->count == INF_MODEL_USES_MAX && !forget_least(counts, requests))
            return;
        place = find_place(counts, name);
        move_models(counts, place + 1, place);
        counts->count++;
        snprintf(counts->models[place].name, sizeof counts->models[place].name, "%s", name);
    }
    counts->models[place].requests = requests;
}

static bool take_line(void *context, const char *line)
{
    char name[INF_LIMIT_MODEL_NAME + 1];
    uint64_t requests;
    const char *space = strchr(line, ' ');
    int length = -1;
    if (space == NULL || space - line > INF_LIMIT_MODEL_NAME ||
        sscanf(space, " %" SCNu64 "%n", &requests, &length) != 1 || length < 0 ||
        space[length] != '\0')
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(space - line), line);
    if (!inf_model_name_valid(name))
        return false;
    inf_model_use_counts_set(context, name, requests / 2);
    return true;
}

static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_model_use_counts *counts = context;
    if (index >= counts->count)
        return 0;
    int length = snprintf(line, capacity, "%s %" PRIu64, counts->models[index].name,
                          counts->models[index].requests);
    return (size_t)length < capacity ? (size_t)length : 0;
}

enum inf_code inf_model_uses_open(struct inf_model_uses **out_uses, const char *directory,
                                  struct inf_model_use_counts *counts, const struct inf_log *log,
                                  struct inf_error *err)
{
    struct inf_model_uses *uses = calloc(1, sizeof *uses);
    if (uses == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the use of models");
    uses->file = (struct inf_record_file){.name = "uses.db",
                                          .header = "inferd-uses 1\n",
                                          .what = "use of models",
                                          .bytes_max = FILE_BYTES_MAX,
                                          .log = log,
                                          .context = counts,
                                          .take = take_line,
                                          .write = write_line};
    inf_record_file_open(&uses->file, directory);
    *out_uses = uses;
    return INF_OK;
}

void inf_model_uses_write(struct inf_model_uses *uses, struct inf_model_use_counts *counts)
{
    if (counts->count == 0)
        return;
    uses->file.context = counts;
    uses->file.damaged = true; // have the whole file written
    inf_record_file_append(&uses->file, 0, counts->count);
}

void inf_model_uses_close(struct inf_model_uses **uses)
{
    if (*uses == NULL)
        return;
    inf_record_file_close(&(*uses)->file);
    free(*uses);
    *uses = NULL;
}
