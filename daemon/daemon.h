// SPDX-License-Identifier: Apache-2.0
// The daemon as a whole: puts the parts together, runs the loop until a signal ends it, and takes
// them apart again.
#ifndef INF_DAEMON_DAEMON_H
#define INF_DAEMON_DAEMON_H

#include "backends/base/role.h"
#include "daemon/config/config.h"
#include "daemon/system/log.h"

// What the process exits with; inferd(8) lists them.
enum inf_exit_code {
    INF_EXIT_OK = 0,
    INF_EXIT_CONFIG = 2, // the configuration is wrong
    INF_EXIT_START = 3,  // something that is needed cannot be had
    INF_EXIT_RUNS = 4,   // another daemon serves the socket
};

struct inf_daemon_options {
    struct inf_config *config; // the daemon's to change while it runs
    struct inf_log_writer *log_writer;
    const char *version;
};

// Serves until SIGTERM or SIGINT and a drain, and returns what to exit with; what went wrong is
// logged. SIGHUP reads the repository again. Everything in `options` outlives the call.
enum inf_exit_code inf_daemon_run(const struct inf_daemon_options *options) INF_MAY_BLOCK;

#endif
