// SPDX-License-Identifier: Apache-2.0
// Runs inferctl ($INFERCTL) for a test and keeps what it prints. Whatever goes wrong in here fails
// the test.
#ifndef INF_TESTS_SUPPORT_DAEMON_INFERCTL_H
#define INF_TESTS_SUPPORT_DAEMON_INFERCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

// One run.
struct inf_inferctl {
    pid_t pid;
    int code;  // exit code; -N where signal N ended it
    char *out; // standard output
    char *err; // standard error
    int out_fd, err_fd;
};

// Where the output goes.
struct inf_inferctl_setting {
    const char *socket; // of the daemon; NULL: as inferctl finds it
    bool terminal;      // standard error is a terminal
    int out_fd;         // standard output goes here and is not kept; 0: it is kept
};

// Starts inferctl with arguments that end with NULL.
void inf_inferctl_start(struct inf_inferctl *run, const struct inf_inferctl_setting *setting,
                        const char *const *arguments);

// Waits for the end and collects the output.
void inf_inferctl_wait(struct inf_inferctl *run);

// Both, with nothing unusual.
void inf_inferctl_run(struct inf_inferctl *run, const char *socket, const char *const *arguments);

// Parses standard output, which has to be JSON. The caller's to json_decref().
json_t *inf_inferctl_json(const struct inf_inferctl *run);

// Frees the output.
void inf_inferctl_free(struct inf_inferctl *run);

#endif
