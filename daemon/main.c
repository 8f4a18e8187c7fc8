// SPDX-License-Identifier: Apache-2.0
// The entry point: reads the arguments, starts the log and returns the exit code. daemon.c does the
// rest, or compile.c if a plan is to be made ahead.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/compile.h"
#include "daemon/config/config.h"
#include "daemon/daemon.h"
#include "daemon/system/journal.h"
#include "daemon/system/log.h"
#include "daemon/system/notify.h"
#include "proto/core/fd_table.h"

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

static enum inf_code create_log(struct inf_log_writer **out_writer, const struct inf_config *config,
                                struct inf_error *err)
{
    struct inf_log_options log = {.kind_lines = config->log_kind_lines,
                                  .fd = STDERR_FILENO,
                                  .journal_socket = INF_JOURNAL_SOCKET};
    inf_config_log_levels(config, log.levels);
    return inf_log_writer_create(out_writer, &log, err);
}

// Runs the server, with a separate thread that writes the log.
static enum inf_exit_code serve_requests(struct inf_config *config, int argc, char **argv,
                                         struct inf_error *err)
{
    struct inf_log_writer *log_writer = NULL;
    if (create_log(&log_writer, config, err) != INF_OK) {
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

// Handles "inferd compile MODEL FILE [SETTING]...". Returns the exit code.
static int compile_model(int argc, char **argv)
{
    struct inf_config config;
    struct inf_error err = {0};
    struct inf_log_writer *log_writer = NULL;
    if (argc < 4) {
        fputs("usage: inferd compile MODEL FILE [--KEY=VALUE]...\n", stderr);
        return INF_EXIT_CONFIG;
    }
    struct inf_compile_options options = {
        .model = argv[2], .file = argv[3], .config = &config, .version = INF_VERSION};
    // The settings follow the two names.
    enum inf_code code = inf_config_read(&config, argc - 3, argv + 3, &err);
    if (code != INF_OK) {
        fprintf(stderr, "inferd: %s\n", err.text);
        return INF_EXIT_CONFIG;
    }
    // What a daemon of this machine keeps is not touched.
    config.cache_dir[0] = '\0';
    if (config.origins[INF_FLAG_ID_log_level] == INF_ORIGIN_DEFAULT)
        snprintf(config.log_level, sizeof config.log_level, "warning");
    code = create_log(&log_writer, &config, &err);
    if (code == INF_OK) {
        options.logs = inf_log_writer_logs(log_writer);
        code = inf_compile_model(&options, &err);
    }
    inf_log_writer_destroy(&log_writer);
    if (code != INF_OK)
        fprintf(stderr, "inferd: %s\n", err.text);
    if (code == INF_NOT_FOUND)
        return INF_EXIT_NO_MODEL;
    return code == INF_OK ? INF_EXIT_OK : INF_EXIT_NOT_COMPILED;
}

int main(int argc, char **argv)
{
    struct inf_config config;
    struct inf_error err = {0};
    if (argc > 1 && strcmp(argv[1], "compile") == 0)
        return compile_model(argc, argv);
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
    inf_fd_table_reserve();
    return serve_requests(&config, argc, argv, &err);
}
