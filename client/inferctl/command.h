// SPDX-License-Identifier: Apache-2.0
// What a verb of inferctl is, and what every verb is given.
#ifndef INF_CLIENT_INFERCTL_COMMAND_H
#define INF_CLIENT_INFERCTL_COMMAND_H

#include <stdbool.h>

#include "client/inferd.h"

// Exit codes, documented in inferctl.1.
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,    // the daemon refused or the request failed
    EXIT_USAGE = 2,     // wrong arguments
    EXIT_NO_DAEMON = 3, // nobody listens on the socket
    EXIT_NOT_FOUND = 4, // no such model, version, device or file
    EXIT_DENIED = 5,    // needs the admin socket
    EXIT_DEADLINE = 6,  // out of time
    EXIT_FILE = 7,      // a file could not be read or written
};

// How results are printed.
enum output_format {
    OUTPUT_TABLE,
    OUTPUT_JSON,
};

// What main() worked out of the arguments before the verb.
struct context {
    const char *socket; // NULL: the verb's default
    enum output_format format;
};

// One verb. `options` and `arguments` are printed by --help.
struct command {
    const char *name;
    const char *arguments; // "MODEL [FILE]"
    const char *summary;   // one line
    const char *options;   // indented lines, "" for none
    // Runs the verb: argv[0] is its name. Returns an exit code.
    int (*run)(const struct context *context, const struct command *command, int argc, char **argv);
};

// The verbs, one file each.
extern const struct command command_status;
extern const struct command command_devices;
extern const struct command command_models;
extern const struct command command_load;
extern const struct command command_unload;
extern const struct command command_infer;
extern const struct command command_bench;

// Prints the verb's usage: to stdout with EXIT_OK where it was asked for, else to stderr with
// EXIT_USAGE. Returns that code.
int command_usage(const struct command *command, bool asked);

// Connects to the daemon's data socket, or to its admin socket where `admin`; --socket and
// $INFERD_SOCKET (which name either) go first. Prints why it failed and returns the exit code.
int command_connect(const struct context *context, bool admin, inferd_client **client);

// Prints "inferctl: TEXT" and returns the exit code that goes with the error.
int command_failed(const struct inferd_error *err);

// As command_failed(), for a wrong argument: EXIT_USAGE.
int command_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Reads a whole number between `low` and `high`; false, with a message, for anything else.
bool command_number(const char *option, const char *text, unsigned long low, unsigned long high,
                    unsigned long *number);

#endif
