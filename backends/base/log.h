// SPDX-License-Identifier: Apache-2.0
// Logging: a log passes lines to the sink given at its creation. Libraries log nothing above debug.
// A NULL log is valid and drops all lines. The daemon's sink passes lines to a separate thread.
#ifndef INF_BACKENDS_BASE_LOG_H
#define INF_BACKENDS_BASE_LOG_H

#include <stdatomic.h>

#include "proto/core/attributes.h"

// The numbers are the levels of syslog, as in sd-daemon.h.
enum inf_log_level {
    INF_LOG_ERROR = 3,
    INF_LOG_WARNING = 4,
    INF_LOG_NOTICE = 5,
    INF_LOG_INFO = 6,
    INF_LOG_DEBUG = 7,
};

struct inf_log {
    _Atomic(enum inf_log_level) level; // lines with a larger level number are dropped
    // Receives one line without a line end. Any thread; must not block. `line` is valid only during
    // the call.
    void (*write)(void *context, enum inf_log_level level, const char *line);
    void *context;
};

// Logs one event as one line: "what happened key=value key=value". Any thread; never blocks.
void inf_log(const struct inf_log *log, enum inf_log_level level, const char *format, ...)
    INF_PRINTF(3, 4);

#endif
