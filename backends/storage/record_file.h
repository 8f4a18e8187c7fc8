// SPDX-License-Identifier: Apache-2.0
// An append-only text file of records: results that the next start of the process need not compute
// again. A file that is damaged, truncated, too long or of another version is rewritten from the
// records that could be read. If a file cannot be written, this is logged once. One thread owns a
// file.
#ifndef INF_BACKENDS_STORAGE_RECORD_FILE_H
#define INF_BACKENDS_STORAGE_RECORD_FILE_H

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "backends/storage/record.h"
#include "proto/core/status.h"

// The maximum length of a line including its end. Longer records are not stored.
#define INF_RECORD_LINE 6144u

// An open file. The caller fills the members before the blank line; inf_record_file_open() fills
// the others. All strings are static.
struct inf_record_file {
    const char *name; // name of the file, such as "shapes.db"
    const char
        *header; // first line of the file with its line end; a file with another header is not read
    const char *what;   // description for log lines: "memory of shapes"
    uint64_t bytes_max; // maximum size; a larger file is rewritten
    const struct inf_log *log;
    void *context; // passed to the callbacks `take` and `write`
    // Parses a line, which has no checksum and no line end. Returns false if it is not a valid
    // record.
    bool (*take)(void *context, const char *line);
    // Prints record `index` without checksum and line end. Returns its length; 0 if there is no
    // such record.
    size_t (*write)(void *context, uint32_t index, char *line, size_t capacity);

    int directory_fd; // directory of the file; -1: no file is kept
    bool damaged;     // true: the file must be rewritten before the next record is appended
    bool complained;  // true: a failed write was logged
};

// Opens DIRECTORY/NAME and passes each valid line to `take`. If `directory` is NULL, no file is
// kept. Never fails: problems are logged as warnings, a file of another version as information.
void inf_record_file_open(struct inf_record_file *file, const char *directory) INF_MAY_BLOCK;

// Appends record `index`, or rewrites the file with all `count` records if it is damaged or too
// large.
void inf_record_file_append(struct inf_record_file *file, uint32_t index,
                            uint32_t count) INF_MAY_BLOCK;

// Closes the file.
void inf_record_file_close(struct inf_record_file *file);

#endif
