// SPDX-License-Identifier: Apache-2.0
// Keeps the results of races (timing comparisons of candidates) in memory and in a record file.
#include "backends/place/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/storage/record_file.h"

#define FILE_BYTES_MAX ((uint64_t)4 << 20)

struct inf_tune {
    struct inf_record_file file;
    struct inf_tune_record *records;
    uint32_t count;
    // index of the oldest record, which is replaced next; used only when the array is full
    uint32_t next;
};

// --- keys ---

static uint64_t hash_number(uint64_t hash, uint32_t number)
{
    return inf_record_hash(hash, &number, sizeof number);
}

uint64_t inf_tune_key(uint64_t content_hash, const struct inf_shape *shapes, uint32_t count,
                      const struct inf_race *race, const char *version)
{
    uint64_t hash = inf_record_hash_text(INF_RECORD_HASH_INIT, version);
    hash = inf_record_hash(hash, &content_hash, sizeof content_hash);
    for (uint32_t i = 0; i < count; i++) {
        hash = inf_record_hash(hash, &shapes[i].rank, sizeof shapes[i].rank);
        hash =
            inf_record_hash(hash, shapes[i].dims, (size_t)shapes[i].rank * sizeof *shapes[i].dims);
    }
    hash = inf_record_hash(hash, &race->aim, sizeof race->aim);
    for (uint32_t i = 0; i < race->count; i++) {
        const struct inf_device_info *info = inf_device_info(race->entries[i].device);
        hash = inf_record_hash_text(inf_record_hash_text(hash, info->name), info->description);
        hash = inf_record_hash_text(hash, info->identity);
        hash = inf_record_hash(hash, &info->threads, sizeof info->threads);
        hash = hash_number(hash, race->entries[i].options.precision);
        hash = hash_number(hash, race->entries[i].options.threads);
    }
    return hash;
}

// --- lines ---

// Writes a record as one line: KEY CHOSEN COUNT PINS (DEVICE PRECISION THREADS VERDICT RUNS
// FIRST_NS MEDIAN_NS MEMORY)... PIN...
static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_tune *tune = context;
    const struct inf_tune_record *record = &tune->records[index];
    size_t at = (size_t)snprintf(line, capacity, "%016" PRIx64 " %u %u %u", record->key,
                                 record->chosen, record->count, record->pin_count);
    for (uint32_t i = 0; i < record->count && at < capacity; i++) {
        const struct inf_tune_entry *entry = &record->entries[i];
        at += (size_t)snprintf(line + at, capacity - at,
                               " %s %s %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64, entry->device,
                               inf_precision_name(entry->options.precision), entry->options.threads,
                               (unsigned)entry->verdict, entry->runs, entry->first_ns,
                               entry->median_ns, entry->memory_bytes);
    }
    for (uint32_t i = 0; i < record->pin_count && at < capacity; i++)
        at += (size_t)snprintf(line + at, capacity - at, " %016" PRIx64, record->pins[i]);
    return at < capacity ? at : 0;
}

// Parses the pins (hashes of nodes that stay in fp32) at the end of a line. Returns true if the
// line has all of them and nothing after them.
static bool read_pins(const char *text, struct inf_tune_record *record)
{
    for (uint32_t i = 0; i < record->pin_count; i++) {
        int length = -1;
        if (sscanf(text, " %" SCNx64 "%n", &record->pins[i], &length) != 1 || length < 0)
            return false;
        text += length;
    }
    return *text == '\0';
}

// Parses the candidates' results and the pins of a line, which follow its key and counts. Returns
// true if the line has all of them and nothing after them.
static bool read_entries(const char *text, struct inf_tune_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct inf_tune_entry *entry = &record->entries[i];
        unsigned verdict;
        int length = -1;
        char precision[8];
        if (sscanf(text, " %31s %7s %u %u %u %" SCNu64 " %" SCNu64 " %" SCNu64 "%n", entry->device,
                   precision, &entry->options.threads, &verdict, &entry->runs, &entry->first_ns,
                   &entry->median_ns, &entry->memory_bytes, &length) != 8 ||
            length < 0 || verdict > INF_RACE_LEFT_OUT ||
            !inf_precision_parse(precision, &entry->options.precision))
            return false;
        entry->verdict = (enum inf_race_verdict)verdict;
        text += length;
    }
    return read_pins(text, record);
}

// --- records ---

static struct inf_tune_record *find_record(const struct inf_tune *tune, uint64_t key)
{
    for (uint32_t i = 0; i < tune->count; i++)
        if (tune->records[i].key == key)
            return &tune->records[i];
    return NULL;
}

// Stores a record and returns its index. A record with the same key is replaced. If the array is
// full, the oldest record is replaced.
static uint32_t keep_record(struct inf_tune *tune, const struct inf_tune_record *record)
{
    struct inf_tune_record *place = find_record(tune, record->key);
    if (place == NULL && tune->count < INF_TUNE_RECORDS) {
        place = &tune->records[tune->count++];
    } else if (place == NULL) {
        place = &tune->records[tune->next];
        tune->next = (tune->next + 1) % INF_TUNE_RECORDS;
    }
    *place = *record;
    return (uint32_t)(place - tune->records);
}

// Parses a line of the file and stores its record. Returns false if the line is malformed.
static bool take_line(void *context, const char *line)
{
    struct inf_tune_record record = {0};
    int length = -1;
    bool sound = sscanf(line, "%" SCNx64 " %u %u %u%n", &record.key, &record.chosen, &record.count,
                        &record.pin_count, &length) == 4 &&
                 length > 0 && record.count <= INF_RACE_ENTRIES && record.chosen < record.count &&
                 record.pin_count <= INF_RACE_PINS && read_entries(line + length, &record);
    if (sound)
        keep_record(context, &record);
    return sound;
}

const struct inf_tune_record *inf_tune_find(const struct inf_tune *tune, uint64_t key)
{
    return find_record(tune, key);
}

void inf_tune_add(struct inf_tune *tune, uint64_t key, const struct inf_race *race)
{
    struct inf_tune_record record = {
        .key = key, .count = race->count, .chosen = race->chosen, .pin_count = race->pin_count};
    memcpy(record.pins, race->pins, sizeof record.pins);
    for (uint32_t i = 0; i < race->count; i++) {
        const struct inf_race_entry *entry = &race->entries[i];
        struct inf_tune_entry *kept = &record.entries[i];
        *kept = (struct inf_tune_entry){.options = entry->options,
                                        .verdict = entry->verdict,
                                        .runs = entry->runs,
                                        .first_ns = entry->first_ns,
                                        .median_ns = entry->median_ns,
                                        .memory_bytes = entry->memory_bytes};
        snprintf(kept->device, sizeof kept->device, "%s", inf_device_info(entry->device)->name);
    }
    uint32_t index = keep_record(tune, &record);
    inf_record_file_append(&tune->file, index, tune->count);
}

enum inf_code inf_tune_open(struct inf_tune **out_tune, const char *directory,
                            const struct inf_log *log, struct inf_error *err)
{
    struct inf_tune *tune = calloc(1, sizeof *tune);
    if (tune != NULL)
        tune->records = calloc(INF_TUNE_RECORDS, sizeof *tune->records);
    if (tune == NULL || tune->records == NULL) {
        free(tune);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the tune database");
    }
    tune->file = (struct inf_record_file){.name = "tune.db",
                                          .header = "inferd-tune 2\n",
                                          .what = "tune database",
                                          .bytes_max = FILE_BYTES_MAX,
                                          .log = log,
                                          .context = tune,
                                          .take = take_line,
                                          .write = write_line};
    inf_record_file_open(&tune->file, directory);
    *out_tune = tune;
    return INF_OK;
}

void inf_tune_close(struct inf_tune **pointer)
{
    struct inf_tune *tune = *pointer;
    *pointer = NULL;
    if (tune == NULL)
        return;
    inf_record_file_close(&tune->file);
    free(tune->records);
    free(tune);
}
