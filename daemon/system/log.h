// SPDX-License-Identifier: Apache-2.0
// Writes the log lines of the daemon. Any thread puts lines into a bounded ring, and one thread
// writes them to stderr, so that a slow journal or a full pipe blocks no other thread. Lines that
// do not fit are counted, and the count is logged later.
#ifndef INF_DAEMON_SYSTEM_LOG_H
#define INF_DAEMON_SYSTEM_LOG_H

#include <stdint.h>

#include "backends/base/role.h"
#include "daemon/config/log_level.h"
#include "proto/core/status.h"

// Capacity of the ring, in lines.
#define INF_LOG_RING_LINES 256
// Bytes of one line, including the final NUL byte; longer lines are cut.
#define INF_LOG_LINE_BYTES 1024

struct inf_log_writer;

struct inf_log_options {
    // Levels of the log parts, indexed by enum inf_log_part. Lines of a less severe level are not
    // written, nor counted as lost.
    enum inf_log_level levels[INF_LOG_PARTS];
    // The most warnings and errors of one kind in a minute; others are counted, and the count is
    // logged. 0: no limit.
    uint32_t kind_lines;
    int fd; // descriptor to write to, such as stderr; the caller keeps ownership
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

// Returns the logs of the parts, indexed by enum inf_log_part, through which any thread may log. A
// caller blocks only while a line is copied. Valid as long as the writer exists.
const struct inf_log *inf_log_writer_logs(const struct inf_log_writer *writer);

// Changes the levels of the parts. Any thread may call it.
void inf_log_writer_set_levels(struct inf_log_writer *writer,
                               const enum inf_log_level levels[INF_LOG_PARTS]);

// Changes how many warnings and errors of one kind are written in a minute. Any thread may call it.
void inf_log_writer_set_kind_lines(struct inf_log_writer *writer, uint32_t kind_lines);

// Returns the number of lines lost because the ring was full. Any thread may call it.
uint64_t inf_log_writer_dropped(const struct inf_log_writer *writer);

#endif
