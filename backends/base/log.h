// SPDX-License-Identifier: Apache-2.0
// Where log lines go: a sink given at creation. Libraries log nothing above debug; NULL is a valid
// logger and drops everything. The daemon's sink hands lines to a thread of its own.
#ifndef INF_BACKENDS_BASE_LOG_H
#define INF_BACKENDS_BASE_LOG_H

#include <stdatomic.h>

#include "proto/core/attributes.h"

// The numbers are syslog's, as in sd-daemon.h.
enum inf_log_level {
    INF_LOG_ERROR = 3,
    INF_LOG_WARNING = 4,
    INF_LOG_NOTICE = 5,
    INF_LOG_INFO = 6,
    INF_LOG_DEBUG = 7,
};

struct inf_log {
    _Atomic(enum inf_log_level) level; // lines above it are dropped
    // Takes one line without its end. Any thread; must not block. `line` is valid for the call.
    void (*write)(void *context, enum inf_log_level level, const char *line);
    void *context;
};

// One event, one line: "what happened key=value key=value". Any thread; never blocks.
void inf_log(const struct inf_log *log, enum inf_log_level level, const char *format, ...)
    INF_PRINTF(3, 4);

#endif
