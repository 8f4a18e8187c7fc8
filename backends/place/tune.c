// SPDX-License-Identifier: Apache-2.0
#include "backends/place/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/file.h"
#include "backends/place/record.h"
#include "proto/core/span.h"

#define FILE_NAME      "tune.db"
#define HEADER         "inferd-tune 2\n"
#define FILE_BYTES_MAX ((uint64_t)4 << 20) // a longer one is begun anew
#define LINE_BYTES_MAX 6144u

struct inf_tune {
    const struct inf_log *log;
    int directory_fd; // -1: nothing is kept
    bool damaged;     // the file is to be begun anew
    bool complained;  // that it cannot be written
    struct inf_tune_record *records;
    uint32_t count;
    uint32_t next; // the oldest, once all places are taken
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
        hash = inf_record_hash(hash, &info->threads, sizeof info->threads);
        hash = hash_number(hash, race->entries[i].mode.precision);
        hash = hash_number(hash, race->entries[i].mode.threads);
    }
    return hash;
}

// --- lines ---

// KEY CHOSEN COUNT PINS (DEVICE PRECISION THREADS VERDICT RUNS FIRST_NS MEDIAN_NS MEMORY)... PIN... CHECKSUM
static int write_line(char line[LINE_BYTES_MAX], const struct inf_tune_record *record)
{
    size_t at = (size_t)snprintf(line, LINE_BYTES_MAX, "%016" PRIx64 " %u %u %u", record->key,
                                 record->chosen, record->count, record->pin_count);
    for (uint32_t i = 0; i < record->count && at < LINE_BYTES_MAX; i++) {
        const struct inf_tune_entry *entry = &record->entries[i];
        at += (size_t)snprintf(line + at, LINE_BYTES_MAX - at,
                               " %s %s %u %u %u %" PRIu64 " %" PRIu64 " %" PRIu64, entry->device,
                               inf_precision_name(entry->mode.precision), entry->mode.threads,
                               (unsigned)entry->verdict, entry->runs, entry->first_ns,
                               entry->median_ns, entry->memory_bytes);
    }
    for (uint32_t i = 0; i < record->pin_count && at < LINE_BYTES_MAX; i++)
        at += (size_t)snprintf(line + at, LINE_BYTES_MAX - at, " %016" PRIx64, record->pins[i]);
    size_t sealed = at < LINE_BYTES_MAX ? inf_record_seal(line, at, LINE_BYTES_MAX) : 0;
    return sealed > 0 ? (int)sealed : -1;
}

// Reads the pins behind the entries; true where they are whole and nothing follows.
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

// Reads what is behind the head of a line; true where it is whole and nothing follows.
static bool read_entries(const char *text, struct inf_tune_record *record)
{
    for (uint32_t i = 0; i < record->count; i++) {
        struct inf_tune_entry *entry = &record->entries[i];
        unsigned verdict;
        int length = -1;
        char precision[8];
        if (sscanf(text, " %31s %7s %u %u %u %" SCNu64 " %" SCNu64 " %" SCNu64 "%n", entry->device,
                   precision, &entry->mode.threads, &verdict, &entry->runs, &entry->first_ns,
                   &entry->median_ns, &entry->memory_bytes, &length) != 8 ||
            length < 0 || verdict > INF_RACE_LEFT_OUT ||
            !inf_precision_parse(precision, &entry->mode.precision))
            return false;
        entry->verdict = (enum inf_race_verdict)verdict;
        text += length;
    }
    return read_pins(text, record);
}

// Reads a line without its end; false where it is not one that we wrote.
static bool read_line(char *line, struct inf_tune_record *record)
{
    int length = -1;
    if (!inf_record_open(line))
        return false;
    return sscanf(line, "%" SCNx64 " %u %u %u%n", &record->key, &record->chosen, &record->count,
                  &record->pin_count, &length) == 4 &&
           length > 0 && record->count <= INF_RACE_ENTRIES && record->chosen < record->count &&
           record->pin_count <= INF_RACE_PINS && read_entries(line + length, record);
}

// --- records ---

static struct inf_tune_record *find(const struct inf_tune *tune, uint64_t key)
{
    for (uint32_t i = 0; i < tune->count; i++)
        if (tune->records[i].key == key)
            return &tune->records[i];
    return NULL;
}

static void keep(struct inf_tune *tune, const struct inf_tune_record *record)
{
    struct inf_tune_record *place = find(tune, record->key);
    if (place == NULL && tune->count < INF_TUNE_RECORDS) {
        place = &tune->records[tune->count++];
    } else if (place == NULL) {
        place = &tune->records[tune->next];
        tune->next = (tune->next + 1) % INF_TUNE_RECORDS;
    }
    *place = *record;
}

const struct inf_tune_record *inf_tune_find(const struct inf_tune *tune, uint64_t key)
{
    return find(tune, key);
}

// --- the file ---

static void read_text(struct inf_tune *tune, char *text)
{
    uint32_t broken = 0;
    if (strncmp(text, HEADER, strlen(HEADER)) != 0) {
        inf_log(tune->log, INF_LOG_WARNING,
                "tune database begun anew reason=\"" FILE_NAME " is none of this version\"");
        tune->damaged = true;
        return;
    }
    char *line = text + strlen(HEADER);
    while (*line != '\0') {
        struct inf_tune_record record = {0};
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        if (end != NULL && read_line(line, &record))
            keep(tune, &record);
        else
            broken++;
        line = end != NULL ? end + 1 : line + strlen(line);
    }
    tune->damaged = broken > 0; // what is appended must not join half a line
    if (broken > 0)
        inf_log(tune->log, INF_LOG_WARNING, "tune database damaged lines=%" PRIu32 " kept=%" PRIu32,
                broken, tune->count);
}

static void read_file(struct inf_tune *tune)
{
    char *text;
    size_t size;
    struct inf_error err = {0};
    enum inf_code code =
        inf_file_read_all(&text, &size, tune->directory_fd, FILE_NAME, FILE_BYTES_MAX, &err);
    if (code == INF_OK && strlen(text) != size)
        inf_log(tune->log, INF_LOG_WARNING,
                "tune database begun anew reason=\"" FILE_NAME " is no text\"");
    if (code == INF_OK && strlen(text) == size)
        read_text(tune, text);
    else
        tune->damaged = true;
    if (code == INF_OK)
        free(text);
    else if (code != INF_NOT_FOUND)
        inf_log(tune->log, INF_LOG_WARNING, "tune database begun anew reason=\"%s\"", err.text);
}

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        data += written;
        size -= (size_t)written;
    }
    return true;
}

// Writes everything that is known into a file that takes the old one's place.
static bool rewrite(struct inf_tune *tune)
{
    char line[LINE_BYTES_MAX];
    int fd = openat(tune->directory_fd, FILE_NAME ".new",
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write_all(fd, HEADER, strlen(HEADER));
    for (uint32_t i = 0; i < tune->count && ok; i++) {
        int length = write_line(line, &tune->records[i]);
        ok = length < 0 || write_all(fd, line, (size_t)length);
    }
    ok &= fsync(fd) == 0;
    close(fd);
    ok = ok && renameat(tune->directory_fd, FILE_NAME ".new", tune->directory_fd, FILE_NAME) == 0;
    if (ok)
        tune->damaged = false;
    return ok;
}

static bool append(struct inf_tune *tune, const struct inf_tune_record *record)
{
    char line[LINE_BYTES_MAX];
    int length = write_line(line, record);
    int fd = openat(tune->directory_fd, FILE_NAME, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    off_t size = lseek(fd, 0, SEEK_END);
    // One write: whoever reads meanwhile sees the line whole or not at all.
    bool ok = length < 0 || (size >= 0 && (uint64_t)size + (uint64_t)length <= FILE_BYTES_MAX &&
                             write(fd, line, (size_t)length) == length);
    close(fd);
    return ok;
}

void inf_tune_add(struct inf_tune *tune, uint64_t key, const struct inf_race *race)
{
    struct inf_tune_record record = {
        .key = key, .count = race->count, .chosen = race->chosen, .pin_count = race->pin_count};
    memcpy(record.pins, race->pins, sizeof record.pins);
    for (uint32_t i = 0; i < race->count; i++) {
        const struct inf_race_entry *entry = &race->entries[i];
        struct inf_tune_entry *kept = &record.entries[i];
        *kept = (struct inf_tune_entry){.mode = entry->mode,
                                        .verdict = entry->verdict,
                                        .runs = entry->runs,
                                        .first_ns = entry->first_ns,
                                        .median_ns = entry->median_ns,
                                        .memory_bytes = entry->memory_bytes};
        snprintf(kept->device, sizeof kept->device, "%s", inf_device_info(entry->device)->name);
    }
    keep(tune, &record);
    if (tune->directory_fd < 0)
        return;
    if ((tune->damaged || !append(tune, &record)) && !rewrite(tune) && !tune->complained) {
        inf_log(tune->log, INF_LOG_WARNING, "tune database not written reason=\"%s\"",
                strerror(errno));
        tune->complained = true;
    }
}

enum inf_code inf_tune_open(struct inf_tune **out_tune, const char *directory,
                            const struct inf_log *log, struct inf_error *err)
{
    struct inf_error ignored = {0};
    struct inf_tune *tune = calloc(1, sizeof *tune);
    if (tune != NULL)
        tune->records = calloc(INF_TUNE_RECORDS, sizeof *tune->records);
    if (tune == NULL || tune->records == NULL) {
        free(tune);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the tune database");
    }
    tune->log = log;
    tune->directory_fd = -1;
    *out_tune = tune;
    // Without its directory the daemon serves all the same.
    if (directory == NULL)
        return INF_OK;
    if (inf_directory_open(&tune->directory_fd, directory, &ignored) == INF_OK)
        read_file(tune);
    else
        inf_log(log, INF_LOG_INFO, "nothing is kept for the next start reason=\"%s\"",
                ignored.text);
    return INF_OK;
}

void inf_tune_close(struct inf_tune **pointer)
{
    struct inf_tune *tune = *pointer;
    *pointer = NULL;
    if (tune == NULL)
        return;
    if (tune->directory_fd >= 0)
        close(tune->directory_fd);
    free(tune->records);
    free(tune);
}
