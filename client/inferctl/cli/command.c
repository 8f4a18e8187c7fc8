// SPDX-License-Identifier: Apache-2.0
// Code that all verbs of inferctl share: it parses options and arguments, connects to the daemon,
// and prints error messages with their exit codes.
#include "client/inferctl/cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/inferctl/cli/json_errors.h"
#include "client/inferctl/cli/nearest.h"

#define DATA_SOCKET  "/run/inferd/inferd.sock"
#define ADMIN_SOCKET "/run/inferd/admin.sock"

// Values of the long options that every verb has. The values are outside the range of letters, so
// that each verb may use all letters for its own options.
enum {
    OPTION_HELP = 0x1000,
    OPTION_JSON,
    OPTION_SOCKET,
};

static const struct option common_options[] = {{"help", no_argument, NULL, OPTION_HELP},
                                               {"json", no_argument, NULL, OPTION_JSON},
                                               {"socket", required_argument, NULL, OPTION_SOCKET}};

#define COMMON_COUNT     (sizeof common_options / sizeof common_options[0])
#define LONG_OPTIONS_MAX 24

// --- parsing options and arguments ---

// Returns whether the verb defines an option -o of its own, which then replaces the common -o
// FORMAT.
static bool has_own_output(const struct command *command)
{
    return command->short_options != NULL && strchr(command->short_options, 'o') != NULL;
}

static int print_usage(const struct command *command, bool asked)
{
    FILE *out = asked ? stdout : stderr;
    bool has_names = command->names[0] != '\0';
    fprintf(out, "usage: inferctl %s [OPTION ...]%s%s\n", command->name, has_names ? " " : "",
            command->names);
    if (!asked) {
        fprintf(out, "see inferctl %s --help\n", command->name);
        return EXIT_USAGE;
    }
    fprintf(out, "\n%c%s.\n\n%s", command->summary[0] - 'a' + 'A', command->summary + 1,
            command->help);
    if (!has_own_output(command))
        fputs("  -o, --output FORMAT    table (the default) or json\n", out);
    fputs(
        "      --json             print the result as JSON\n"
        "      --socket PATH      the daemon's socket\n"
        "      --help             show this help\n",
        out);
    return EXIT_OK;
}

// The tables of short and long options for getopt_long(): options of the verb, and common options.
struct option_set {
    char shorts[64];
    struct option longs[LONG_OPTIONS_MAX];
};

static void collect_options(struct option_set *set, const struct command *command)
{
    bool own_output = has_own_output(command);
    bool has_own = command->short_options != NULL;
    snprintf(set->shorts, sizeof set->shorts, "h%s%s", has_own ? command->short_options : "",
             own_output ? "" : "o:");
    size_t count = 0;
    for (; has_own && command->long_options[count].name != NULL; count++)
        set->longs[count] = command->long_options[count];
    memcpy(&set->longs[count], common_options, sizeof common_options);
    count += COMMON_COUNT;
    if (!own_output)
        set->longs[count++] = (struct option){"output", required_argument, NULL, 'o'};
    set->longs[count] = (struct option){0};
}

// Handles an option that every verb has, and sets *code. Returns false if the option belongs to the
// verb.
static bool take_common(struct context *context, const struct command *command, int option,
                        int *code)
{
    *code = EXIT_OK;
    if (option == OPTION_JSON)
        context->format = OUTPUT_JSON;
    else if (option == OPTION_SOCKET)
        context->socket = optarg;
    else if (option == '?')
        *code = print_usage(command, false);
    else if (option == 'o' && !has_own_output(command))
        *code = command_format(&context->format, optarg) ? EXIT_OK : EXIT_USAGE;
    else
        return false;
    return true;
}

static int take_names(struct arguments *arguments, const struct command *command, size_t count,
                      char **names)
{
    if (count > command->names_most)
        command_say(EXIT_USAGE, "'%s' is one argument too many", names[command->names_most]);
    if (count < command->names_least)
        command_say(EXIT_USAGE, "%s wants %s", command->name, command->names);
    if (count > command->names_most || count < command->names_least)
        return print_usage(command, false);
    for (size_t i = 0; i < count; i++)
        arguments->names[i] = names[i];
    return EXIT_OK;
}

int command_run(struct context *context, const struct command *command, int argc, char **argv)
{
    struct option_set set;
    struct arguments arguments = {0};
    collect_options(&set, command);
    for (int option; (option = getopt_long(argc, argv, set.shorts, set.longs, NULL)) != -1;) {
        int code;
        if (option == OPTION_HELP || option == 'h')
            return print_usage(command, true);
        if (take_common(context, command, option, &code)) {
            if (code != EXIT_OK)
                return code;
            continue;
        }
        if (arguments.option_count == COMMAND_OPTIONS_MAX)
            return command_say(EXIT_USAGE, "more than %d options", COMMAND_OPTIONS_MAX);
        arguments.options[arguments.option_count++] =
            (struct option_given){.option = option, .value = optarg};
    }
    struct json_errors errors = {0};
    if (context->format == OUTPUT_JSON)
        json_errors_begin(&errors);
    int code = take_names(&arguments, command, (size_t)(argc - optind), argv + optind);
    if (code == EXIT_OK)
        code = command->run(context, &arguments);
    json_errors_end(&errors, code);
    return code;
}

bool command_format(enum output_format *format, const char *text)
{
    bool is_json = strcmp(text, "json") == 0;
    if (!is_json && strcmp(text, "table") != 0) {
        command_say(EXIT_USAGE, "-o '%s': wanted table or json", text);
        return false;
    }
    *format = is_json ? OUTPUT_JSON : OUTPUT_TABLE;
    return true;
}

bool command_number(const char *option, const char *text, unsigned long low, unsigned long high,
                    unsigned long *number)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || value < low ||
        value > high) {
        command_say(EXIT_USAGE, "%s '%s': wanted a whole number from %lu to %lu", option, text, low,
                    high);
        return false;
    }
    *number = value;
    return true;
}

// --- connecting to the daemon and describing models ---

// Returns whether the error means that the connection to the daemon failed. Otherwise the daemon
// answered with an error.
static bool is_gone(const struct inferd_error *err)
{
    return err->code == INFERD_UNAVAILABLE &&
           (strcmp(err->reason, "NONE") == 0 || strcmp(err->reason, "DISCONNECT") == 0 ||
            strcmp(err->reason, "DRAINING") == 0);
}

static int exit_code(const struct inferd_error *err)
{
    switch (err->code) {
    case INFERD_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case INFERD_PERMISSION_DENIED:
        return strcmp(err->reason, "ROLE") == 0 ? EXIT_DENIED : EXIT_FAILED;
    case INFERD_DEADLINE_EXCEEDED:
        return EXIT_DEADLINE;
    default:
        return is_gone(err) ? EXIT_NO_DAEMON : EXIT_FAILED;
    }
}

int command_failed(const struct inferd_error *err)
{
    int code = exit_code(err);
    if (err->retry_after_ms > 0)
        return command_say(code, "%s (try again in %u ms)", err->text, err->retry_after_ms);
    return command_say(code, "%s", err->text);
}

int command_connect(const struct context *context, bool admin, inferd_client **client)
{
    const char *path = context->socket;
    if (path == NULL)
        path = getenv("INFERD_SOCKET");
    if (path == NULL || path[0] == '\0')
        path = admin ? ADMIN_SOCKET : DATA_SOCKET;
    struct inferd_error err;
    if (inferd_connect_timeout(client, path, context->timeout_ms, &err) == 0)
        return EXIT_OK;
    int code = command_failed(&err);
    return err.code == INFERD_UNAVAILABLE ? EXIT_NO_DAEMON : code;
}

// Returns the loaded model whose name is most similar to `name`, or NULL if there is none. The
// caller frees the string.
static const char *nearest_model(inferd_client *client, const char *name, inferd_model_row **rows)
{
    size_t count;
    struct inferd_error err;
    *rows = NULL;
    if (inferd_models(client, rows, &count, &err) != 0)
        return NULL;
    struct nearest nearest = nearest_start(name);
    for (size_t i = 0; i < count; i++)
        nearest_consider(&nearest, (*rows)[i].name);
    return nearest.found;
}

int command_describe(inferd_client *client, const char *model, const char *version,
                     inferd_model_info **info)
{
    struct inferd_error err;
    if (inferd_model_describe(client, model, version, info, &err) == 0)
        return EXIT_OK;
    if (err.code != INFERD_NOT_FOUND)
        return command_failed(&err);
    inferd_model_row *rows;
    const char *near = nearest_model(client, model, &rows);
    int code = near != NULL && strcmp(near, model) != 0
                   ? command_say(EXIT_NOT_FOUND, "%s; is '%s' meant?", err.text, near)
                   : command_failed(&err);
    free(rows);
    return code;
}

int command_say(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("inferctl: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return code;
}
