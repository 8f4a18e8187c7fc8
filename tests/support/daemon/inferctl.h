// SPDX-License-Identifier: Apache-2.0
// Runs inferctl ($INFERCTL) for a test and keeps its output. Every failure in here fails the test.
#ifndef INF_TESTS_SUPPORT_DAEMON_INFERCTL_H
#define INF_TESTS_SUPPORT_DAEMON_INFERCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

// One run.
struct inf_inferctl {
    pid_t pid;
    int code;  // exit code; -N if signal N ended it
    char *out; // standard output
    char *err; // standard error
    int out_fd, err_fd;
};

// Where the output goes.
struct inf_inferctl_setting {
    const char *socket; // of the daemon; NULL: inferctl's default
    bool terminal;      // standard error is a terminal
    int out_fd;         // standard output goes here and is not kept; 0: it is kept
};

// Starts inferctl with arguments that end with NULL.
void inf_inferctl_start(struct inf_inferctl *run, const struct inf_inferctl_setting *setting,
                        const char *const *arguments);

// Waits until inferctl has ended, and collects its output.
void inf_inferctl_wait(struct inf_inferctl *run);

// Runs inferctl with the default setting, and waits until it has ended.
void inf_inferctl_run(struct inf_inferctl *run, const char *socket, const char *const *arguments);

// Parses standard output, which must be JSON. The caller calls json_decref().
json_t *inf_inferctl_json(const struct inf_inferctl *run);

// Frees the output.
void inf_inferctl_free(struct inf_inferctl *run);

#endif
