// SPDX-License-Identifier: Apache-2.0
// Each line of the file is "KEY STATE CRASHES": the state is 1 from the begin of a load to its end.
// A line that was written last with state 1 is of a load that did not end, so that reading it adds
// one crash. The file is not synced to the disk: it has to survive the process, not the machine.
//
// The notes of crashed runs are in a file of their own, which a signal handler can append to. They
// are counted once and then removed.
#include "daemon/model/load_journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/base/system/crash_note.h"
#include "backends/storage/record_file.h"
#include "proto/core/attributes.h"

#define FILE_BYTES_MAX ((uint64_t)64 << 10)
#define NOTES_NAME     "crashes.db"
// The most notes that are counted. A process leaves one.
#define NOTES_MAX 256u

struct journal_entry {
    uint64_t key;
    bool loading;
    uint32_t crashes; // without the load that is in progress
};

struct inf_load_journal {
    struct inf_record_file file;
    struct inf_record_places places; // which of `entries` are used
    struct journal_entry entries[INF_LOAD_JOURNAL_MODELS];
    int notes_fd; // file of notes; -1: none
};

static struct journal_entry *find_entry(struct inf_load_journal *journal, uint64_t key)
{
    for (uint32_t i = 0; i < journal->places.count; i++)
        if (journal->entries[i].key == key)
            return &journal->entries[i];
    return NULL;
}

// Returns the entry with this key, and makes one if there is none.
static struct journal_entry *obtain_entry(struct inf_load_journal *journal, uint64_t key)
{
    struct journal_entry *entry = find_entry(journal, key);
    if (entry != NULL)
        return entry;
    entry = &journal->entries[inf_record_place(&journal->places, INF_LOAD_JOURNAL_MODELS)];
    *entry = (struct journal_entry){.key = key};
    return entry;
}

static bool take_line(void *context, const char *line)
{
    uint64_t key;
    uint32_t loading, crashes;
    int length = -1;
    if (sscanf(line, "%" SCNx64 " %" SCNu32 " %" SCNu32 "%n", &key, &loading, &crashes, &length) !=
            3 ||
        length < 0 || line[length] != '\0' || loading > 1)
        return false;
    struct journal_entry *entry = obtain_entry(context, key);
    entry->loading = loading == 1;
    entry->crashes = crashes;
    return true;
}

static size_t write_line(void *context, uint32_t index, char *line, size_t capacity)
{
    const struct inf_load_journal *journal = context;
    const struct journal_entry *entry = &journal->entries[index];
    int length = snprintf(line, capacity, "%016" PRIx64 " %u %" PRIu32, entry->key,
                          entry->loading ? 1u : 0u, entry->crashes);
    return (size_t)length < capacity ? (size_t)length : 0;
}

static void append_entry(struct inf_load_journal *journal, const struct journal_entry *entry)
{
    inf_record_file_append(&journal->file, (uint32_t)(entry - journal->entries),
                           journal->places.count);
}

// Counts the notes of earlier processes.
static void count_notes(struct inf_load_journal *journal) INF_MAY_BLOCK
{
    char notes[NOTES_MAX * INF_CRASH_NOTE_BYTES];
    ssize_t size = pread(journal->notes_fd, notes, sizeof notes, 0);
    for (ssize_t at = 0; at + (ssize_t)INF_CRASH_NOTE_BYTES <= size; at += INF_CRASH_NOTE_BYTES) {
        uint64_t key = inf_crash_note_parse(notes + at);
        if (key == 0) {
            inf_log(journal->file.log, INF_LOG_WARNING, "notes of crashes are damaged, ignoring");
            break;
        }
        struct journal_entry *entry = obtain_entry(journal, key);
        entry->crashes += entry->crashes < UINT32_MAX;
        append_entry(journal, entry);
    }
    if (size > 0 && ftruncate(journal->notes_fd, 0) != 0)
        inf_log(journal->file.log, INF_LOG_WARNING, "notes of crashes stay reason=\"%s\"",
                strerror(errno));
}

// Opens the file of notes, which must be a regular file of the daemon's user.
static void open_notes(struct inf_load_journal *journal) INF_MAY_BLOCK
{
    struct stat status;
    if (journal->file.directory_fd < 0)
        return;
    journal->notes_fd =
        openat(journal->file.directory_fd, NOTES_NAME,
               O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (journal->notes_fd >= 0 && fstat(journal->notes_fd, &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
        count_notes(journal);
        return;
    }
    inf_log(journal->file.log, INF_LOG_INFO, "crashes of runs are not noted file=%s", NOTES_NAME);
    if (journal->notes_fd >= 0)
        close(journal->notes_fd);
    journal->notes_fd = -1;
}

enum inf_code inf_load_journal_open(struct inf_load_journal **out_journal, const char *directory,
                                    const struct inf_log *log, struct inf_error *err)
{
    struct inf_load_journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the journal of loads");
    journal->file = (struct inf_record_file){.name = "loads.db",
                                             .header = "inferd-loads 1\n",
                                             .what = "journal of loads",
                                             .bytes_max = FILE_BYTES_MAX,
                                             .log = log,
                                             .context = journal,
                                             .take = take_line,
                                             .write = write_line};
    journal->notes_fd = -1;
    inf_record_file_open(&journal->file, directory);
    for (uint32_t i = 0; i < journal->places.count; i++) {
        struct journal_entry *entry = &journal->entries[i];
        entry->crashes += entry->loading && entry->crashes < UINT32_MAX;
        entry->loading = false;
    }
    open_notes(journal);
    *out_journal = journal;
    return INF_OK;
}

void inf_load_journal_close(struct inf_load_journal **pointer)
{
    struct inf_load_journal *journal = *pointer;
    *pointer = NULL;
    if (journal == NULL)
        return;
    inf_record_file_close(&journal->file);
    if (journal->notes_fd >= 0)
        close(journal->notes_fd);
    free(journal);
}

int inf_load_journal_notes_fd(const struct inf_load_journal *journal)
{
    return journal->notes_fd;
}

uint32_t inf_load_journal_crashes(const struct inf_load_journal *journal, uint64_t key)
{
    const struct journal_entry *entry = find_entry((struct inf_load_journal *)journal, key);
    return entry != NULL ? entry->crashes : 0;
}

void inf_load_journal_begin(struct inf_load_journal *journal, uint64_t key)
{
    struct journal_entry *entry = obtain_entry(journal, key);
    entry->loading = true;
    append_entry(journal, entry);
}

void inf_load_journal_end(struct inf_load_journal *journal, uint64_t key)
{
    struct journal_entry *entry = find_entry(journal, key);
    if (entry == NULL)
        return;
    entry->loading = false;
    entry->crashes = 0;
    append_entry(journal, entry);
}
