// SPDX-License-Identifier: Apache-2.0
// Verbs (subcommands) of inferctl: how a verb is described, its parsed arguments, and the functions
// that all verbs share.
#ifndef INF_CLIENT_INFERCTL_CLI_COMMAND_H
#define INF_CLIENT_INFERCTL_CLI_COMMAND_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/inferd.h"

// Exit codes, documented in inferctl.1.
enum exit_code {
    EXIT_OK = 0,
    EXIT_FAILED = 1,    // the daemon refused the request, or the request failed
    EXIT_USAGE = 2,     // wrong arguments
    EXIT_NO_DAEMON = 3, // no daemon listens on the socket, or the daemon closed the connection
    EXIT_NOT_FOUND = 4, // there is no such model, version, device or file
    EXIT_DENIED = 5,    // the verb needs the admin socket
    EXIT_DEADLINE = 6,  // the timeout passed
    EXIT_FILE = 7,      // a file could not be read or written
};

// How results are printed.
enum output_format {
    OUTPUT_TABLE,
    OUTPUT_JSON,
};

// The values of the options that every verb has.
struct context {
    const char *socket; // NULL: the verb's default socket
    enum output_format format;
    // How long to wait for the daemon's greeting and for answers to questions, in milliseconds; 0:
    // the default of the library. Verbs with --timeout set it.
    unsigned long timeout_ms;
};

#define COMMAND_OPTIONS_MAX 128
#define COMMAND_NAMES_MAX   16

// The arguments that follow the verb on the command line.
struct arguments {
    const char *names[COMMAND_NAMES_MAX]; // arguments that are not options; NULL: not present
    struct option_given {
        int option; // the option that follows: its letter, or `val` in its struct option
        const char *value;
    } options[COMMAND_OPTIONS_MAX];
    size_t option_count;
};

// One verb. `names`, `summary` and `help` are printed by --help.
struct command {
    const char *name;
    const char *names; // the arguments of the verb as the usage message shows them: "MODEL [FILE]"
    // Minimum and maximum number of arguments that are not options; at most COMMAND_NAMES_MAX.
    size_t names_least, names_most;
    const char *summary;               // what the verb does, in one line
    const char *help;                  // help for the verb's own options, in lines; "": none
    const char *short_options;         // the verb's own options for getopt_long(); NULL: none
    const struct option *long_options; // NULL if and only if short_options is NULL
    // Runs the verb and returns an exit code.
    int (*run)(const struct context *context, const struct arguments *arguments);
};

// The verbs of inferctl. The files of client/inferctl/cmd define them.
extern const struct command command_status;
extern const struct command command_backends;
extern const struct command command_devices;
extern const struct command command_memory;
extern const struct command command_metrics;
extern const struct command command_health;
extern const struct command command_limits;
extern const struct command command_models;
extern const struct command command_check;
extern const struct command command_inspect;
extern const struct command command_compile;
extern const struct command command_load;
extern const struct command command_unload;
extern const struct command command_reload;
extern const struct command command_infer;
extern const struct command command_verify;
extern const struct command command_bench;

extern const struct command command_explain;
extern const struct command command_advise;
extern const struct command command_place;
extern const struct command command_warm;
extern const struct command command_env;
extern const struct command command_flags;
extern const struct command command_profile;
extern const struct command command_debug;
extern const struct command command_diff;
extern const struct command command_wait;

extern const struct command command_requests;
extern const struct command command_clients;
extern const struct command command_cancel;
extern const struct command command_disconnect;
extern const struct command command_slow;
extern const struct command command_events;
extern const struct command command_top;
extern const struct command command_trace;
extern const struct command command_report;
extern const struct command command_selftest;

// Parses the arguments of a verb and runs it. argv[0] is the prefix of messages. Every verb accepts
// -o FORMAT, --json, --socket and --help, unless the verb defines the same option itself.
int command_run(struct context *context, const struct command *command, int argc, char **argv);

// Parses "table" or "json". Otherwise prints a message and returns false.
bool command_format(enum output_format *format, const char *text);

// Connects to the daemon's data socket or, if `admin` is true, to its admin socket. --socket and
// $INFERD_SOCKET override both paths. Returns an exit code, and prints a message on failure.
int command_connect(const struct context *context, bool admin, inferd_client **client);

// Returns the description of a model in *info, which the caller frees. If there is no such model,
// prints an error with the most similar name. Returns an exit code.
int command_describe(inferd_client *client, const char *model, const char *version,
                     inferd_model_info **info);

// Prints "inferctl: TEXT" and returns the exit code for this error.
int command_failed(const struct inferd_error *err);

// Prints "inferctl: " and the text, and returns `code`.
int command_say(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

// Parses a whole number from `low` to `high`. Otherwise prints a message and returns false.
bool command_number(const char *option, const char *text, unsigned long low, unsigned long high,
                    unsigned long *number);

#endif
