// SPDX-License-Identifier: Apache-2.0
// inferctl report: collects what a person without access to this machine needs to find a fault, and
// packs it into one file. Each part of the report is the output of another verb, which this program
// runs as a child, or of journalctl; tar packs the parts.
//
// The report may be sent to strangers. It has no tensor, no path of a client, no name of a user or
// of a client's program, and no id that a client gave a request: clients and requests in flight are
// left out, and the slow requests lose their ids.
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/inferctl/cli/command.h"
#include "client/inferctl/text/json_value.h"

extern char **environ;

// Name of the directory in the packed file.
#define FOLDER "inferd-report"
// The temporary directory, and room for it and for a path below it.
#define TEMPORARY      "/tmp/inferctl-report-XXXXXX"
#define DIRECTORY_SIZE 64
#define PATH_SIZE      128

// A part of the report: a file, and the arguments of inferctl whose output it is.
struct part {
    const char *file;
    const char *arguments[5];
};

static const struct part parts[] = {
    {"version.txt", {"--version"}},
    {"status.json", {"status", "-o", "json"}},
    {"health.txt", {"health"}},
    {"environment.json", {"env", "-o", "json"}},
    {"flags.json", {"flags", "-o", "json"}},
    {"limits.json", {"limits", "-o", "json"}},
    {"devices.json", {"devices", "-o", "json"}},
    {"backends.json", {"backends", "-o", "json"}},
    {"models.json", {"models", "-o", "json"}},
    {"memory.json", {"memory", "-o", "json"}},
    {"metrics.txt", {"metrics", "--all"}},
    {"events.json", {"events", "--all", "-o", "json"}},
};
#define PART_COUNT (sizeof parts / sizeof parts[0])

// The arguments of the longest command and a NULL.
#define ARGUMENTS_MAX 12

// Runs a program, with its output and its errors in the file `output`; NULL: those of this program.
// Returns its exit code; -1 if it could not be run.
static int run_program(const char *program, char *const *argv, const char *output)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (output != NULL) {
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output,
                                         O_WRONLY | O_CREAT | O_TRUNC, 0600);
        posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    }
    int failed = posix_spawnp(&child, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Runs this program again with the arguments of a part.
static void collect_part(const struct context *context, const struct part *part,
                         const char *directory)
{
    char path[PATH_SIZE];
    char *argv[ARGUMENTS_MAX] = {(char *)"inferctl"};
    size_t count = 1;
    if (context->socket != NULL) {
        argv[count++] = (char *)"--socket";
        argv[count++] = (char *)context->socket;
    }
    for (size_t i = 0; i < sizeof part->arguments / sizeof part->arguments[0]; i++)
        if (part->arguments[i] != NULL)
            argv[count++] = (char *)part->arguments[i];
    snprintf(path, sizeof path, "%.63s/%.40s", directory, part->file);
    if (run_program("/proc/self/exe", argv, path) < 0)
        command_say(EXIT_FAILED, "%s could not be collected", part->file);
}

// Writes the slow requests without the ids that clients gave them.
static int collect_slow(inferd_client *client, const char *directory)
{
    struct inferd_error err;
    char *text;
    char path[PATH_SIZE];
    if (inferd_report(client, "slow", &text, NULL, &err) != 0)
        return command_failed(&err);
    json_t *rows = json_loads(text, 0, NULL);
    free(text);
    if (rows == NULL)
        return command_say(EXIT_FAILED, "slow.json could not be collected");
    size_t i;
    json_t *row;
    json_array_foreach(rows, i, row) json_object_del(row, "id");
    snprintf(path, sizeof path, "%.63s/slow.json", directory);
    int failed = json_dump_file(rows, path, JSON_INDENT(1));
    json_decref(rows);
    return failed == 0 ? EXIT_OK : command_say(EXIT_FILE, "'%s': %s", path, strerror(errno));
}

// Writes the last log lines of the service, if the journal of systemd has them.
static void collect_log(const char *directory)
{
    char path[PATH_SIZE];
    char *argv[] = {(char *)"journalctl",
                    (char *)"--unit=inferd",
                    (char *)"--lines=2000",
                    (char *)"--no-hostname",
                    (char *)"--no-pager",
                    (char *)"--output=short-unix",
                    (char *)"--grep=^(?!request slow )", // these lines have ids that clients gave
                    NULL};
    snprintf(path, sizeof path, "%.63s/log.txt", directory);
    if (run_program("journalctl", argv, path) < 0)
        command_say(EXIT_OK, "the report has no log: journalctl cannot be run");
}

static int pack_report(const char *temporary, const char *output)
{
    char *argv[] = {(char *)"tar",
                    (char *)"--create",
                    (char *)"--auto-compress",
                    (char *)"--file",
                    (char *)output,
                    (char *)"--owner=0",
                    (char *)"--group=0",
                    (char *)"--directory",
                    (char *)temporary,
                    (char *)FOLDER,
                    NULL};
    int code = run_program("tar", argv, NULL);
    return code == 0 ? EXIT_OK
                     : command_say(EXIT_FILE, "'%s': tar %s", output,
                                   code < 0 ? "cannot be run" : "failed");
}

static void remove_files(const char *temporary)
{
    char path[PATH_SIZE];
    char *argv[] = {(char *)"rm", (char *)"-r", (char *)"-f", (char *)"--", path, NULL};
    snprintf(path, sizeof path, "%s", temporary);
    (void)run_program("rm", argv, NULL);
}

static int write_report(const struct context *context, inferd_client *client, const char *output)
{
    char temporary[] = TEMPORARY;
    char directory[DIRECTORY_SIZE];
    if (mkdtemp(temporary) == NULL)
        return command_say(EXIT_FILE, "'%s': %s", temporary, strerror(errno));
    snprintf(directory, sizeof directory, "%s/" FOLDER, temporary);
    int code = mkdir(directory, 0700) == 0
                   ? EXIT_OK
                   : command_say(EXIT_FILE, "'%s': %s", directory, strerror(errno));
    if (code == EXIT_OK)
        code = collect_slow(client, directory);
    for (size_t i = 0; i < PART_COUNT && code == EXIT_OK; i++)
        collect_part(context, &parts[i], directory);
    if (code == EXIT_OK) {
        collect_log(directory);
        code = pack_report(temporary, output);
    }
    remove_files(temporary);
    return code;
}

static int run_report(const struct context *context, const struct arguments *arguments)
{
    if (arguments->option_count == 0)
        return command_say(EXIT_USAGE, "wanted -o FILE");
    const char *output = arguments->options[arguments->option_count - 1].value;
    inferd_client *client;
    struct context within = *context;
    int code = command_connect(&within, true, &client);
    if (code != EXIT_OK)
        return code;
    code = write_report(&within, client, output);
    inferd_close(client);
    if (code == EXIT_OK)
        printf("%s\n", output);
    return code;
}

static const struct option long_options[] = {{"output", required_argument, NULL, 'o'}, {0}};

const struct command command_report = {
    .name = "report",
    .names = "",
    .summary = "pack versions, settings, metrics and log for a report of a fault",
    .help =
        "  -o, --output FILE      write the report to FILE, such as report.tar.xz\n"
        "It has no tensors, paths of clients, names of users or ids of requests. Needs the admin\n"
        "socket.\n",
    .short_options = "o:",
    .long_options = long_options,
    .run = run_report,
};
