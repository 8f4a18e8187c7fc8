// SPDX-License-Identifier: Apache-2.0
// Where the daemon's log lines go: into a bounded ring, from which a thread of its own writes them
// to stderr, so that a journal that hangs or a pipe that nobody reads stops nobody. Lines that find
// the ring full are counted, and the count is logged when there is room again.
#ifndef INF_DAEMON_SYSTEM_LOG_H
#define INF_DAEMON_SYSTEM_LOG_H

#include <stdint.h>

#include "backends/base/log.h"
#include "backends/base/role.h"
#include "proto/core/status.h"

// Lines that may wait.
#define INF_LOG_RING_LINES 256
// Bytes of one line, its end included; longer ones are cut.
#define INF_LOG_LINE_BYTES 1024

struct inf_log_writer;

struct inf_log_options {
    enum inf_log_level level; // lines above it are dropped and not counted
    int fd;                   // where to write: stderr; stays the caller's
};

// Starts the thread. Each line is written as "<N>text" where `fd` is the journal's stream (systemd
// says so in JOURNAL_STREAM), "level text" elsewhere; control characters become '?'. *out_writer is
// the caller's to destroy.
//
// INF_EXHAUSTED  no memory, or no thread.
enum inf_code inf_log_writer_create(struct inf_log_writer **out_writer,
                                    const struct inf_log_options *options,
                                    struct inf_error *err) INF_NODISCARD;

// Writes what waits, for at most half a second, stops the thread and frees everything; nobody may
// log any more. NULL is fine.
void inf_log_writer_destroy(struct inf_log_writer **writer) INF_MAY_BLOCK;

// The sink to log to, from any thread; never blocks longer than a copy of one line. Valid as long
// as the writer.
const struct inf_log *inf_log_writer_log(const struct inf_log_writer *writer);

// Changes the level. Any thread; others see it soon.
void inf_log_writer_set_level(struct inf_log_writer *writer, enum inf_log_level level);

// Lines lost so far because the ring was full. Any thread.
uint64_t inf_log_writer_dropped(const struct inf_log_writer *writer);

#endif
