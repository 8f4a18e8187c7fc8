// SPDX-License-Identifier: Apache-2.0
// Writes the spans of requests to a file or to a datagram socket. The loop puts records into a ring
// of fixed size, and one thread prints and writes them, so that a slow disk blocks no request.
// Records that do not fit, and lines that cannot be written, are counted.
#ifndef INF_DAEMON_OBSERVE_TRACE_WRITER_H
#define INF_DAEMON_OBSERVE_TRACE_WRITER_H

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "daemon/observe/request_record.h"

// Capacity of the ring, in requests.
#define INF_TRACE_WRITER_RING 1024u

struct inf_trace_writer;

struct inf_trace_writer_options {
    const char *file;        // path of the file; "": no file
    uint64_t file_bytes_max; // a longer file is renamed to FILE.1, and a new one is begun
    const char *socket;      // path of a datagram socket that gets each line; "": no socket
    const char *version;     // of the daemon
    const struct inf_log *log;
};

struct inf_trace_writer_totals {
    uint64_t written; // requests whose line was written to each of the targets
    uint64_t dropped; // requests that found no room in the ring, or whose line was not written
};

// Opens the file and starts the thread. The texts of the options outlive the writer. The caller
// destroys *out_writer.
//
// INF_INVALID    the file cannot be opened.
// INF_EXHAUSTED  no memory, or no thread.
enum inf_code inf_trace_writer_create(struct inf_trace_writer **out_writer,
                                      const struct inf_trace_writer_options *options,
                                      struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Writes the records that are left, which blocks for at most half a second, and frees the writer.
// NULL is allowed.
void inf_trace_writer_destroy(struct inf_trace_writer **writer);

// Puts a copy of a record into the ring. Blocks only while it is copied.
void inf_trace_writer_push(struct inf_trace_writer *writer,
                           const struct inf_request_record *record) INF_ON_LOOP;

// Returns how many records were written and dropped.
struct inf_trace_writer_totals inf_trace_writer_read_totals(const struct inf_trace_writer *writer);

#endif
