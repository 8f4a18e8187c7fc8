// SPDX-License-Identifier: Apache-2.0
// Formats one line and hands it to the sink, if its level is enabled.
#include "backends/base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void inf_log(const struct inf_log *log, enum inf_log_level level, const char *format, ...)
{
    if (log == NULL || log->write == NULL ||
        level > atomic_load_explicit(&log->level, memory_order_relaxed))
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    log->write(log->context, level, line);
}
