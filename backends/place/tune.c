// SPDX-License-Identifier: Apache-2.0
// Keeps the results of races (timing comparisons of candidates) in memory and in a record file.
#include "backends/place/tune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/storage/record_file.h"
#include "proto/core/utf8.h"

#define FILE_BYTES_MAX ((uint64_t)4 << 20)

struct inf_tune {
    struct inf_record_file file;
    struct inf_tune_record *records;
    struct inf_record_places places; // which elements of `records` are used
};

// --- computing the key of a race ---

static uint64_t hash_number(uint64_t hash, uint32_t number)
{
    return inf_record_hash(hash, &number, sizeof number);
}

uint64_t inf_tune_key(uint64_t content_hash, const struct inf_shape *shapes, uint32_t count,
                      const struct inf_race *race, const char *version)
{
    uint64_t hash = inf_record_hash_text(INF_RECORD_HASH_INIT, version);
    hash = inf_record_hash(hash, &content_hash, sizeof content_hash);
    hash = inf_record_hash_shapes(hash, shapes, count);
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

// --- reasons as words ---

// Room for a reason as a word. The format of read_entries() has the same number.
#define REASON_WORD (3 * INF_TUNE_REASON)
_Static_assert(REASON_WORD == 288, "the format of read_entries() has room for 287 characters");

// The word that stands for an empty reason.
#define NO_REASON "-"

// Writes a text as one word: each blank, control character and '%' becomes '%' and two hexadecimal
// digits.
static void encode_word(const char *text, char word[REASON_WORD])
{
    size_t at = 0;
    snprintf(word, REASON_WORD, "%s", NO_REASON);
    for (const char *c = text; *c != '\0' && at + 3 < REASON_WORD; c++) {
        bool plain = (unsigned char)*c > ' ' && *c != '%' && *c != 0x7f;
        at += (size_t)snprintf(word + at, REASON_WORD - at, plain ? "%c" : "%%%02x",
                               (unsigned char)*c);
    }
}

// Reads what encode_word() wrote. Text that does not fit is cut.
static void decode_word(const char *word, char text[INF_TUNE_REASON])
{
    size_t at = 0;
    unsigned code;
    if (strcmp(word, NO_REASON) == 0)
        word = "";
    while (*word != '\0' && at + 1 < INF_TUNE_REASON) {
        bool escaped = sscanf(word, "%%%2x", &code) == 1;
        text[at++] = escaped && word[1] != '\0' && word[2] != '\0' ? (char)code : *word;
        word += escaped && word[1] != '\0' && word[2] != '\0' ? 3 : 1;
    }
    text[at] = '\0';
    inf_text_clean(text);
}

// --- writing and parsing lines of the file ---

// Writes a record as one line: KEY CHOSEN COUNT PINS (DEVICE PRECISION THREADS VERDICT RUNS
// FIRST_NS MEDIAN_NS MEMORY REASON)... PIN...
static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_tune *tune = context;
    const struct inf_tune_record *record = &tune->records[index];
    size_t at = (size_t)snprintf(line, capacity, "%016" PRIx64 " %u %u %u", record->key,
                                 record->chosen, record->count, record->pin_count);
    for (uint32_t i = 0; i < record->count && at < capacity; i++) {
        const struct inf_tune_entry *entry = &record->entries[i];
        char word[REASON_WORD];
        encode_word(entry->why, word);
        at += (size_t)snprintf(line + at, capacity - at,
                               " %s %s %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
                               entry->device, inf_precision_name(entry->options.precision),
                               entry->options.threads, (unsigned)entry->verdict, entry->runs,
                               entry->first_ns, entry->median_ns, entry->memory_bytes, word);
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
        char precision[8], word[REASON_WORD];
        if (sscanf(text, " %31s %7s %u %u %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %287s%n",
                   entry->device, precision, &entry->options.threads, &verdict, &entry->runs,
                   &entry->first_ns, &entry->median_ns, &entry->memory_bytes, word, &length) != 9 ||
            length < 0 || verdict > INF_RACE_LEFT_OUT ||
            !inf_precision_parse(precision, &entry->options.precision))
            return false;
        entry->verdict = (enum inf_race_verdict)verdict;
        decode_word(word, entry->why);
        text += length;
    }
    return read_pins(text, record);
}

// --- records in memory ---

static struct inf_tune_record *find_record(const struct inf_tune *tune, uint64_t key)
{
    for (uint32_t i = 0; i < tune->places.count; i++)
        if (tune->records[i].key == key)
            return &tune->records[i];
    return NULL;
}

// Stores a record and returns its index. A record with the same key is replaced. If the array is
// full, the oldest record is replaced.
static uint32_t keep_record(struct inf_tune *tune, const struct inf_tune_record *record)
{
    struct inf_tune_record *place = find_record(tune, record->key);
    if (place == NULL)
        place = &tune->records[inf_record_place(&tune->places, INF_TUNE_RECORDS)];
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
        snprintf(kept->why, sizeof kept->why, "%.*s", INF_TUNE_REASON - 1, entry->why);
    }
    uint32_t index = keep_record(tune, &record);
    inf_record_file_append(&tune->file, index, tune->places.count);
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
                                          .header = "inferd-tune 3\n",
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
