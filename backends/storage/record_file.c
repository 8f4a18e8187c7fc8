// SPDX-License-Identifier: Apache-2.0
// An append-only text file of records that survives crashes and damage.
//
//     header line            name and version of the format
//     record CHECKSUM        one line for each record; the last record for a key counts
//     record CHECKSUM
//
// Each record is appended by one write(2) at the end of the file, so a reader sees a whole line or
// none. A crash may leave half a line. Its checksum does not match, so it is skipped when the file
// is read. A file with skipped lines must not be appended to, because the next record would join
// the half line. It is rewritten instead: all records go to a temporary file, which then replaces
// the old one by rename(2). The file is also rewritten if it has another version or exceeds its
// limit.
//
// No function fails for the caller: a record that cannot be stored is measured or found again
// later.
#include "backends/storage/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/storage/file.h"
#include "proto/core/span.h"

// --- reading the file when it is opened ---

// Returns true if the first line is a complete header of this format with another version.
static bool is_of_another_version(const struct inf_record_file *file, const char *text)
{
    size_t name = strcspn(file->header, " \n");
    return strchr(text, '\n') != NULL && strncmp(text, file->header, name) == 0 &&
           text[name] == ' ';
}

static void read_text(struct inf_record_file *file, char *text)
{
    uint32_t broken = 0, kept = 0;
    if (strncmp(text, file->header, strlen(file->header)) != 0) {
        // Log a file of another version as information, because this is normal after an update.
        enum inf_log_level level =
            is_of_another_version(file, text) ? INF_LOG_INFO : INF_LOG_WARNING;
        inf_log(file->log, level, "%s rewritten reason=\"%s is none of this version\"", file->what,
                file->name);
        file->damaged = true;
        return;
    }
    for (char *line = text + strlen(file->header); *line != '\0';) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        bool sound = end != NULL && inf_record_open(line) && file->take(file->context, line);
        kept += sound;
        broken += !sound;
        line = end != NULL ? end + 1 : line + strlen(line);
    }
    file->damaged = broken > 0; // a new record must not be appended to half a line
    if (broken > 0)
        inf_log(file->log, INF_LOG_WARNING, "%s damaged lines=%" PRIu32 " kept=%" PRIu32,
                file->what, broken, kept);
}

static void read_file(struct inf_record_file *file) INF_MAY_BLOCK
{
    char *text = NULL;
    size_t size = 0;
    struct inf_error err = {0};
    enum inf_code code =
        inf_file_read_all(&text, &size, file->directory_fd, file->name, file->bytes_max, &err);
    if (code == INF_OK && strlen(text) != size)
        code = inf_fail(&err, INF_INVALID, "%s has a NUL byte", file->name);
    if (code == INF_OK) {
        read_text(file, text);
    } else {
        file->damaged = true;
        if (code != INF_NOT_FOUND)
            inf_log(file->log, INF_LOG_WARNING, "%s rewritten reason=\"%s\"", file->what, err.text);
    }
    free(text);
}

void inf_record_file_open(struct inf_record_file *file, const char *directory)
{
    struct inf_error err = {0};
    file->directory_fd = -1;
    file->damaged = file->complained = false;
    if (directory == NULL)
        return;
    if (inf_directory_open(&file->directory_fd, directory, &err) == INF_OK) {
        read_file(file);
        return;
    }
    file->directory_fd = -1;
    inf_log(file->log, INF_LOG_INFO, "%s not kept for the next start reason=\"%s\"", file->what,
            err.text);
}

// --- appending a record, or writing the file again ---

// Writes record `index` with its checksum to `line`. Returns its length; 0 if there is no such
// record or the line is too long.
static size_t make_line(const struct inf_record_file *file, uint32_t index,
                        char line[INF_RECORD_LINE])
{
    size_t size = file->write(file->context, index, line, INF_RECORD_LINE);
    return size > 0 && size < INF_RECORD_LINE ? inf_record_seal(line, size, INF_RECORD_LINE) : 0;
}

// Writes all records to a new file and replaces the old file by it.
static bool rewrite_file(struct inf_record_file *file, uint32_t count)
{
    char line[INF_RECORD_LINE], temporary[64];
    snprintf(temporary, sizeof temporary, "%s.new", file->name);
    int fd = openat(file->directory_fd, temporary,
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = inf_file_write_all(fd, file->header, strlen(file->header));
    for (uint32_t i = 0; i < count && ok; i++)
        ok = inf_file_write_all(fd, line, make_line(file, i, line));
    ok &= fsync(fd) == 0;
    close(fd);
    ok = ok && renameat(file->directory_fd, temporary, file->directory_fd, file->name) == 0;
    file->damaged &= !ok;
    return ok;
}

static bool append_line(const struct inf_record_file *file, uint32_t index)
{
    char line[INF_RECORD_LINE];
    size_t size = make_line(file, index, line);
    int fd = openat(file->directory_fd, file->name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    off_t end = lseek(fd, 0, SEEK_END);
    // Use a single write, so that a concurrent reader sees the whole line or none of it.
    bool ok = end >= 0 && (uint64_t)end + size <= file->bytes_max &&
              write(fd, line, size) == (ssize_t)size;
    close(fd);
    return ok;
}

void inf_record_file_append(struct inf_record_file *file, uint32_t index, uint32_t count)
{
    if (file->directory_fd < 0)
        return;
    if ((file->damaged || !append_line(file, index)) && !rewrite_file(file, count) &&
        !file->complained) {
        inf_log(file->log, INF_LOG_WARNING, "%s not written reason=\"%s\"", file->what,
                strerror(errno));
        file->complained = true;
    }
}

void inf_record_file_close(struct inf_record_file *file)
{
    if (file->directory_fd >= 0)
        close(file->directory_fd);
    file->directory_fd = -1;
}
