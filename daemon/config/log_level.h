// SPDX-License-Identifier: Apache-2.0
// Log levels by name, and the parts of the daemon that have log levels of their own.
#ifndef INF_DAEMON_CONFIG_LOG_LEVEL_H
#define INF_DAEMON_CONFIG_LOG_LEVEL_H

#include <stdbool.h>

#include "backends/base/log.h"

// The parts of the daemon. Each part has a log of its own, so that it can have its own level.
enum inf_log_part {
    INF_LOG_PART_DAEMON,     // start, end, configuration
    INF_LOG_PART_DEVICE,     // devices and backends
    INF_LOG_PART_MODEL,      // repository, loads, placement
    INF_LOG_PART_SERVICE,    // acts of admins, slow requests
    INF_LOG_PART_SCHEDULER,  // runs, and checks of answers
    INF_LOG_PART_CONNECTION, // clients and their sockets
    INF_LOG_PART_ACCESS,     // at level debug: one line for each request
    INF_LOG_PARTS,
};

// The names of the parts, as the flag `log` takes them, for error messages.
#define INF_LOG_PART_NAMES "daemon, device, model, service, scheduler, connection or access"

// Parses the name of a level, such as "debug". Returns false if there is no such level.
bool inf_log_level_parse(const char *name, enum inf_log_level *out_level);

// Parses the flag `log`: pairs PART:LEVEL, separated by commas or semicolons, such as
// "scheduler:debug,access:debug"; later pairs override earlier ones. Parts that are not named get
// the level `base`. Returns false if the text is malformed; `levels` is then undefined.
bool inf_log_levels_parse(const char *text, enum inf_log_level base,
                          enum inf_log_level levels[INF_LOG_PARTS]);

#endif
