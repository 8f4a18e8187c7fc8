// SPDX-License-Identifier: Apache-2.0
// Arguments, the log, and the exit code; the rest is daemon.c.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/config/config.h"
#include "daemon/daemon.h"
#include "daemon/system/log.h"

// One file descriptor a connection, more for regions: as many as the system allows.
static void raise_fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); // refused: the server lives with what there is
    }
}

// Serves, with everything logged through a thread of its own.
static enum inf_exit_code serve_requests(struct inf_config *config, struct inf_error *err)
{
    const struct inf_log_options log = {inf_config_log_level(config), STDERR_FILENO};
    struct inf_log_writer *log_writer = NULL;
    if (inf_log_writer_create(&log_writer, &log, err) != INF_OK) {
        fprintf(stderr, "inferd: %s\n", err->text);
        return INF_EXIT_START;
    }
    const struct inf_daemon_options options = {config, log_writer, INF_VERSION};
    enum inf_exit_code code = inf_daemon_run(&options);
    inf_log_writer_destroy(&log_writer);
    return code;
}

int main(int argc, char **argv)
{
    struct inf_config config;
    struct inf_error err = {0};
    if (inf_config_read(&config, argc, argv, &err) != INF_OK) {
        fprintf(stderr, "inferd: %s\n", err.text);
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
    return serve_requests(&config, &err);
}
