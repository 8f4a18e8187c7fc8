// SPDX-License-Identifier: Apache-2.0
// Times the engine alone, by starting inferd-check and parsing the times that it prints.
#include "client/inferctl/bench/engine_program.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

const char *engine_program_path(void)
{
    const char *program = getenv("INFERD_CHECK");
    return program != NULL && program[0] != '\0' ? program : INFERD_CHECK_PROGRAM;
}

// Returns the shapes of the inputs as text: "x=1x3x224x224 y=scalar". The caller frees it. Returns
// NULL if there is no memory.
static char *write_shapes(const inferd_request *request)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    if (file == NULL)
        return NULL;
    for (size_t i = 0; i < request->input_count; i++) {
        const inferd_tensor *input = &request->inputs[i];
        fprintf(file, "%s%s=%s", i > 0 ? " " : "", input->name, input->rank == 0 ? "scalar" : "");
        for (int k = 0; k < input->rank; k++)
            fprintf(file, "%s%lld", k > 0 ? "x" : "", (long long)input->shape[k]);
    }
    return fclose(file) == 0 ? text : NULL;
}

// Starts the program with its output in a pipe, and sets *fd to the reading end. Returns 0, or an
// errno value on failure.
static int start_program(const char *const *words, pid_t *pid, int *fd)
{
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int error =
        posix_spawn(pid, engine_program_path(), &actions, NULL, (char *const *)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    *fd = ends[0];
    if (error != 0)
        close(ends[0]);
    return error;
}

// Parses the run times that inferd-check has printed. Returns false if the output lacks some of
// them.
static bool take_times(FILE *output, unsigned long runs, double *total_ms)
{
    json_t *report = json_loadf(output, 0, NULL);
    const json_t *times = json_object_get(report, "times_ms");
    bool all = json_array_size(times) == runs;
    for (size_t i = 0; all && i < runs; i++)
        total_ms[i] = json_number_value(json_array_get(times, i));
    json_decref(report);
    return all;
}

int engine_program_time(const struct engine_timing *timing, double *total_ms)
{
    char runs[24], threads[16];
    char *shapes = write_shapes(timing->request);
    snprintf(runs, sizeof runs, "%lu", timing->runs);
    snprintf(threads, sizeof threads, "%u", timing->threads);
    const char *const words[] = {
        "inferd-check", "--time",          runs,        "--device", timing->device,
        "--precision",  timing->precision, "--threads", threads,    "--shapes",
        shapes,         timing->file,      NULL};
    pid_t pid;
    int fd, status = 0;
    int error = shapes == NULL ? ENOMEM : start_program(words, &pid, &fd);
    free(shapes);
    if (error != 0)
        return command_say(EXIT_FAILED, "'%s': %s; it comes with the daemon", engine_program_path(),
                           strerror(error));
    FILE *output = fdopen(fd, "r");
    bool all = output != NULL && take_times(output, timing->runs, total_ms);
    if (output != NULL)
        fclose(output);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return EXIT_FAILED;
    return all ? EXIT_OK
               : command_say(EXIT_FAILED, "'%s' did not tell its times", engine_program_path());
}
