// SPDX-License-Identifier: Apache-2.0
// inferctl compile: makes the plan of a model ahead, without a daemon. It runs the daemon's own
// program, because a plan is valid for one build of that program only.
#include <errno.h>
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

// The most settings that are passed to the program.
#define SETTINGS_MAX 16

// Exit codes of "inferd compile", as inferd.8 lists them.
enum {
    PROGRAM_WRONG_SETTINGS = 2,
    PROGRAM_NO_MODEL = 5
};

enum {
    OPTION_SET = 0x100
};

static const char *find_program(void)
{
    const char *program = getenv("INFERD");
    return program != NULL && program[0] != '\0' ? program : INFERD_PROGRAM;
}

// Runs the program with these words, and waits for its end. Returns an exit code of inferctl.
static int run_program(const char *const *words)
{
    const char *program = find_program();
    pid_t pid;
    int status = 0;
    int error = posix_spawn(&pid, program, NULL, NULL, (char *const *)words, environ);
    if (error != 0)
        return command_say(EXIT_FAILED, "'%s': %s; compile needs the daemon's program", program,
                           strerror(error));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status))
        return command_say(EXIT_FAILED, "'%s' was ended by a signal", program);
    switch (WEXITSTATUS(status)) {
    case 0:
        return EXIT_OK;
    case PROGRAM_WRONG_SETTINGS:
        return EXIT_USAGE;
    case PROGRAM_NO_MODEL:
        return EXIT_NOT_FOUND;
    default:
        return EXIT_FAILED;
    }
}

// Prints which file was written. `file` "": it is beside the model.
static int print_plan(const struct context *context, const char *model, const char *file)
{
    struct stat status;
    bool known = file[0] != '\0';
    if (known && stat(file, &status) != 0)
        return command_say(EXIT_FILE, "'%s': %s", file, strerror(errno));
    if (context->format == OUTPUT_TABLE) {
        if (known)
            printf("%s: plan of %s, %.2f MB\n", file, model, (double)status.st_size / 1e6);
        else
            printf("the plan of %s is beside it\n", model);
        return EXIT_OK;
    }
    json_t *answer = json_value_must(json_object());
    json_object_set_new(answer, "model", json_value_text(model));
    if (known) {
        json_object_set_new(answer, "file", json_value_text(file));
        json_object_set_new(answer, "bytes", json_value_must(json_integer(status.st_size)));
    }
    json_value_print(answer);
    return EXIT_OK;
}

static int run_compile(const struct context *context, const struct arguments *arguments)
{
    char settings[SETTINGS_MAX][256];
    const char *model = arguments->names[0], *file = "";
    const char *words[SETTINGS_MAX + 5] = {"inferd", "compile", model};
    size_t count = 0;
    for (size_t i = 0; i < arguments->option_count; i++) {
        const struct option_given *given = &arguments->options[i];
        if (given->option == 'o') {
            file = given->value;
            continue;
        }
        if (count == SETTINGS_MAX)
            return command_say(EXIT_USAGE, "more than %d settings", SETTINGS_MAX);
        int length = snprintf(settings[count], sizeof settings[count], "--%s%s",
                              given->option == 'd' ? "device=" : "", given->value);
        if (length < 0 || (size_t)length >= sizeof settings[count])
            return command_say(EXIT_USAGE, "'%s' is too long", given->value);
        if (strchr(settings[count], '=') == NULL)
            return command_say(EXIT_USAGE, "--set '%s': wanted KEY=VALUE", given->value);
        words[4 + count] = settings[count];
        count++;
    }
    words[3] = file;
    fflush(stdout);
    int code = run_program(words);
    return code == EXIT_OK ? print_plan(context, model, file) : code;
}

static const struct option compile_options[] = {{"output", required_argument, NULL, 'o'},
                                                {"device", required_argument, NULL, 'd'},
                                                {"set", required_argument, NULL, OPTION_SET},
                                                {0}};

const struct command command_compile = {
    .name = "compile",
    .names = "MODEL",
    .names_least = 1,
    .names_most = 1,
    .summary = "make the plan of a model ahead, without a daemon",
    .help =
        "MODEL is a model file or its directory. A daemon of the same build on a machine with the\n"
        "same instruction set loads the model from the plan, if root puts it beside the model in\n"
        "the repository: model.plan beside model.onnx, NAME.plan beside NAME.onnx.\n\n"
        "  -o, --output FILE      write the plan to FILE (default: beside the model)\n"
        "  -d, --device NAME      for this device (default: the one that a daemon would choose)\n"
        "      --set KEY=VALUE    a setting of the daemon, such as cpu_isa_max=avx2\n",
    .short_options = "o:d:",
    .long_options = compile_options,
    .run = run_compile,
};
