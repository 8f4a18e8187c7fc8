// SPDX-License-Identifier: Apache-2.0
// The daemon as a whole: opens devices, model store and server, runs the loop until a signal ends
// it, and closes them in reverse order.
#ifndef INF_DAEMON_DAEMON_H
#define INF_DAEMON_DAEMON_H

#include "backends/base/role.h"
#include "daemon/config/config.h"
#include "daemon/system/log.h"

// Exit codes of the process; inferd(8) lists them.
enum inf_exit_code {
    INF_EXIT_OK = 0,
    INF_EXIT_NOT_COMPILED = 1, // inferd compile: the plan could not be made or written
    INF_EXIT_CONFIG = 2,       // the configuration is wrong
    INF_EXIT_START = 3,        // a resource that the daemon needs is not available
    INF_EXIT_RUNS = 4,         // another daemon serves the socket
    INF_EXIT_NO_MODEL = 5,     // inferd compile: there is no such model
};

struct inf_daemon_options {
    struct inf_config *config; // the daemon changes it when an admin sets a flag
    struct inf_log_writer *log_writer;
    const char *version;
    // The arguments of the process, which are read again with the configuration.
    int argc;
    char **argv;
};

// Serves until SIGTERM or SIGINT arrives, drains, and returns the exit code. Errors are logged,
// and *err is the reason if the daemon could not start. SIGHUP makes the daemon read the
// configuration and the repository again. Everything in `options` outlives the call.
enum inf_exit_code inf_daemon_run(const struct inf_daemon_options *options,
                                  struct inf_error *err) INF_MAY_BLOCK;

#endif
