// SPDX-License-Identifier: Apache-2.0
#include "client/inferctl/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA_SOCKET  "/run/inferd/inferd.sock"
#define ADMIN_SOCKET "/run/inferd/admin.sock"

int command_usage(const struct command *command, bool asked)
{
    FILE *out = asked ? stdout : stderr;
    fprintf(out, "usage: inferctl %s%s%s\n\n%s\n", command->name,
            command->arguments[0] != '\0' ? " " : "", command->arguments, command->summary);
    if (command->options[0] != '\0')
        fprintf(out, "\n%s", command->options);
    return asked ? EXIT_OK : EXIT_USAGE;
}

int command_failed(const struct inferd_error *err)
{
    fprintf(stderr, "inferctl: %s", err->text);
    if (err->retry_after_ms > 0)
        fprintf(stderr, " (try again in %u ms)", err->retry_after_ms);
    fputc('\n', stderr);
    switch (err->code) {
    case INFERD_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case INFERD_PERMISSION_DENIED:
        return EXIT_DENIED;
    case INFERD_DEADLINE_EXCEEDED:
        return EXIT_DEADLINE;
    default:
        return EXIT_FAILED;
    }
}

int command_connect(const struct context *context, bool admin, inferd_client **client)
{
    const char *path = context->socket;
    if (path == NULL)
        path = getenv("INFERD_SOCKET");
    if (path == NULL)
        path = admin ? ADMIN_SOCKET : DATA_SOCKET;
    struct inferd_error err;
    if (inferd_connect(client, path, &err) == 0)
        return EXIT_OK;
    int code = command_failed(&err);
    return err.code == INFERD_UNAVAILABLE ? EXIT_NO_DAEMON : code;
}

int command_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("inferctl: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return EXIT_USAGE;
}

bool command_number(const char *option, const char *text, unsigned long low, unsigned long high,
                    unsigned long *number)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || value < low ||
        value > high) {
        command_wrong("%s '%s': wanted a whole number from %lu to %lu", option, text, low, high);
        return false;
    }
    *number = value;
    return true;
}
