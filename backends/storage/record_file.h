// SPDX-License-Identifier: Apache-2.0
// A text file of records that is only appended to, for what was found out and need not be found out
// again. A file that is damaged, cut off, of another version or too long is begun anew from what could be
// read; one that cannot be written is logged once. One thread owns a file.
#ifndef INF_BACKENDS_STORAGE_RECORD_FILE_H
#define INF_BACKENDS_STORAGE_RECORD_FILE_H

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "backends/storage/record.h"
#include "proto/core/status.h"

// Characters of a line, its end included: a longer one is not kept.
#define INF_RECORD_LINE 6144u

// The caller fills the first group; all texts are static.
struct inf_record_file {
    const char *name;   // "shapes.db"
    const char *header; // its first line, with its end: of another version nothing is read
    const char *what;   // for the log: "memory of shapes"
    uint64_t bytes_max; // of the file; a longer one is begun anew
    const struct inf_log *log;
    void *context; // of the two calls
    // Takes a line without its checksum and end; false where it is none of ours.
    bool (*take)(void *context, const char *line);
    // Writes record `index` as a line, without checksum and end, and returns its length; 0: there is none.
    size_t (*write)(void *context, uint32_t index, char *line, size_t capacity);

    int directory_fd; // -1: nothing is kept
    bool damaged;     // it is to be begun anew
    bool complained;  // that it cannot be written
};

// Opens DIRECTORY/NAME and gives each of its lines to `take`; NULL as directory: nothing is kept. Never
// fails: what is wrong is logged, as a warning, another version's file for information.
void inf_record_file_open(struct inf_record_file *file, const char *directory) INF_MAY_BLOCK;

// Appends record `index` of `count`; all of them into a new file, where the old one will not do.
void inf_record_file_append(struct inf_record_file *file, uint32_t index,
                            uint32_t count) INF_MAY_BLOCK;

// Closes it.
void inf_record_file_close(struct inf_record_file *file);

#endif
