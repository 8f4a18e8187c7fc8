// SPDX-License-Identifier: Apache-2.0
// An append-only text file of records: results that need not be found again at the next start. A
// file that is damaged, cut off, too long or of another version is rewritten from the records that
// could be read. A file that cannot be written is logged once. One thread owns a file.
#ifndef INF_BACKENDS_STORAGE_RECORD_FILE_H
#define INF_BACKENDS_STORAGE_RECORD_FILE_H

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "backends/storage/record.h"
#include "proto/core/status.h"

// Maximum length of a line with its end. A longer record is not kept.
#define INF_RECORD_LINE 6144u

// The caller fills the members above the blank line. All texts are static.
struct inf_record_file {
    const char *name; // "shapes.db"
    const char
        *header; // first line of the file, with its end; files with another header are not read
    const char *what;   // description for log lines: "memory of shapes"
    uint64_t bytes_max; // maximum size; a larger file is rewritten
    const struct inf_log *log;
    void *context; // argument of `take` and `write`
    // Parses a line, without checksum and end. Returns false if it is not a valid record.
    bool (*take)(void *context, const char *line);
    // Prints record `index` without checksum and end. Returns its length; 0: there is no such
    // record.
    size_t (*write)(void *context, uint32_t index, char *line, size_t capacity);

    int directory_fd; // of the file's directory; -1: nothing is kept
    bool damaged;     // the file must be rewritten before the next record is appended
    bool complained;  // a failed write was logged
};

// Opens DIRECTORY/NAME and passes each valid line to `take`. `directory` NULL: nothing is kept.
// Never fails: problems are logged as warnings, a file of another version as information.
void inf_record_file_open(struct inf_record_file *file, const char *directory) INF_MAY_BLOCK;

// Appends record `index`, or rewrites the file with all `count` records if it is damaged or too
// large.
void inf_record_file_append(struct inf_record_file *file, uint32_t index,
                            uint32_t count) INF_MAY_BLOCK;

// Closes the file.
void inf_record_file_close(struct inf_record_file *file);

#endif
