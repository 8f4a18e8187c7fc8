// SPDX-License-Identifier: Apache-2.0
// The entry point: reads the arguments, starts the log and returns the exit code. daemon.c does the
// rest.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/daemon.h"
#include "daemon/system/journal.h"
#include "daemon/system/log.h"
#include "daemon/system/notify.h"

// Raises the soft limit of open files to the hard limit, because every connection and every shared
// memory region needs a descriptor.
static void raise_fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        // If the system refuses, the daemon runs with the present limit and serves fewer clients.
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

// Runs the server, with a separate thread that writes the log.
static enum inf_exit_code serve_requests(struct inf_config *config, int argc, char **argv,
                                         struct inf_error *err)
{
    struct inf_log_options log = {.kind_lines = config->log_kind_lines,
                                  .fd = STDERR_FILENO,
                                  .journal_socket = INF_JOURNAL_SOCKET};
    inf_config_log_levels(config, log.levels);
    struct inf_log_writer *log_writer = NULL;
    if (inf_log_writer_create(&log_writer, &log, err) != INF_OK) {
        fprintf(stderr, "inferd: %s\n", err->text);
        inf_notify_failed_start(err->text);
        return INF_EXIT_START;
    }
    const struct inf_daemon_options options = {config, log_writer, INF_VERSION, argc, argv};
    enum inf_exit_code code = inf_daemon_run(&options, err);
    inf_log_writer_destroy(&log_writer);
    if (code != INF_EXIT_OK)
        inf_notify_failed_start(err->text);
    return code;
}

int main(int argc, char **argv)
{
    struct inf_config config;
    struct inf_error err = {0};
    if (inf_config_read(&config, argc, argv, &err) != INF_OK) {
        fprintf(stderr, "inferd: %s\n", err.text);
        if (!config.check)
            inf_notify_failed_start(err.text);
        return INF_EXIT_CONFIG;
    }
    if (config.help) {
        inf_config_help(stdout);
        return INF_EXIT_OK;
    }
    if (config.version || config.check) {
        puts(config.version ? "inferd " INF_VERSION : "the configuration is sound");
        return INF_EXIT_OK;
    }
    signal(SIGPIPE, SIG_IGN);
    raise_fd_limit();
    return serve_requests(&config, argc, argv, &err);
}
