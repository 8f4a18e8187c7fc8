// SPDX-License-Identifier: Apache-2.0
// Runs inferctl ($INFERCTL) for a test and keeps its output. Every failure in here fails the test.
#ifndef INF_TESTS_SUPPORT_DAEMON_INFERCTL_H
#define INF_TESTS_SUPPORT_DAEMON_INFERCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

// One run of inferctl.
struct inf_inferctl {
    pid_t pid;
    int code;  // exit code; -N if the process was killed by signal N
    char *out; // text on standard output
    char *err; // text on standard error
    int out_fd, err_fd;
};

// The settings with which the test starts inferctl.
struct inf_inferctl_setting {
    const char *socket; // the daemon's socket; NULL: inferctl's default
    bool terminal;      // standard error is a terminal
    // descriptor that receives standard output, which is not kept then; 0: the output is kept
    int out_fd;
};

// Starts inferctl with arguments that end with NULL.
void inf_inferctl_start(struct inf_inferctl *run, const struct inf_inferctl_setting *setting,
                        const char *const *arguments);

// Waits until inferctl has ended, and collects its output.
void inf_inferctl_wait(struct inf_inferctl *run);

// Runs inferctl with the default setting, and waits until it has ended.
void inf_inferctl_run(struct inf_inferctl *run, const char *socket, const char *const *arguments);

// Parses standard output, which must be JSON. The caller releases the result with json_decref().
json_t *inf_inferctl_json(const struct inf_inferctl *run);

// Frees the output.
void inf_inferctl_free(struct inf_inferctl *run);

#endif
