// SPDX-License-Identifier: Apache-2.0
// Writes the log lines of the daemon. Any thread puts lines into a bounded ring, and one thread
// writes them to stderr, so that a slow journal or a full pipe blocks no other thread. Lines that
// do not fit are counted, and the count is logged later.
#ifndef INF_DAEMON_SYSTEM_LOG_H
#define INF_DAEMON_SYSTEM_LOG_H

#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/status.h"

// Capacity of the ring, in lines.
#define INF_LOG_RING_LINES 256
// Bytes of one line, including the final NUL byte; longer lines are cut.
#define INF_LOG_LINE_BYTES 1024

struct inf_log_writer;

struct inf_log_options {
    enum inf_log_level level; // lines of a less severe level are not written, nor counted as lost
    int fd;                   // descriptor to write to, such as stderr; the caller keeps ownership
    // Path of the socket of the journal. If `fd` is the stream of the journal, lines are sent to
    // this socket as entries with fields; NULL: lines are written to `fd`.
    const char *journal_socket;
};

// Starts the writer thread. If `fd` is the stream of the journal (systemd sets JOURNAL_STREAM),
// each line is written as "<N>text", otherwise as "level text". Control characters become '?'. The
// caller destroys *out_writer.
//
// INF_EXHAUSTED  no memory, or no thread.
enum inf_code inf_log_writer_create(struct inf_log_writer **out_writer,
                                    const struct inf_log_options *options,
                                    struct inf_error *err) INF_NODISCARD;

// Writes the lines that are left in the ring for at most half a second, stops the thread and frees
// everything. No thread may log afterwards. NULL is allowed.
void inf_log_writer_destroy(struct inf_log_writer **writer) INF_MAY_BLOCK;

// Returns the log sink, through which any thread may log. A caller blocks only while a line is
// copied. Valid as long as the writer exists.
const struct inf_log *inf_log_writer_log(const struct inf_log_writer *writer);

// Changes the level below which lines are not written. Any thread may call it.
void inf_log_writer_set_level(struct inf_log_writer *writer, enum inf_log_level level);

// Returns the number of lines lost because the ring was full. Any thread may call it.
uint64_t inf_log_writer_dropped(const struct inf_log_writer *writer);

#endif
