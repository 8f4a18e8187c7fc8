// SPDX-License-Identifier: Apache-2.0
// Runs inferctl and collects its output and its exit code.
#include "tests/support/daemon/inferctl.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define ARGUMENTS_MAX 40
#define WAIT_MS       120000

extern char **environ;

// Opens a temporary file for the output of inferctl. A write to a file never blocks; a write to a
// pipe blocks if no process reads.
static int make_sink(void)
{
    int fd = memfd_create("inferctl-output", MFD_CLOEXEC);
    cr_assert_geq(fd, 0);
    return fd;
}

// Opens both ends of a pseudo-terminal in raw mode, which does not change the bytes that are
// written to it.
static int make_terminal(int *out_slave)
{
    int master;
    struct termios settings;
    cr_assert_eq(openpty(&master, out_slave, NULL, NULL, NULL), 0, "openpty: %s", strerror(errno));
    cr_assert_eq(tcgetattr(*out_slave, &settings), 0);
    cfmakeraw(&settings);
    cr_assert_eq(tcsetattr(*out_slave, TCSANOW, &settings), 0);
    fcntl(master, F_SETFD, FD_CLOEXEC);
    fcntl(*out_slave, F_SETFD, FD_CLOEXEC);
    return master;
}

static void spawn_inferctl(struct inf_inferctl *run, const char **argv, int out_fd, int err_fd)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigemptyset(&defaults);
    // Start inferctl with the default action of SIGPIPE, as a shell does.
    sigaddset(&defaults, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int result =
        posix_spawn(&run->pid, argv[0], &actions, &attributes, (char *const *)argv, environ);
    cr_assert_eq(result, 0, "%s: %s", argv[0], strerror(result));
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
}

void inf_inferctl_start(struct inf_inferctl *run, const struct inf_inferctl_setting *setting,
                        const char *const *arguments)
{
    const char *argv[ARGUMENTS_MAX + 4] = {getenv("INFERCTL"), "--socket", setting->socket};
    size_t count = setting->socket != NULL ? 3 : 1;
    cr_assert_not_null(argv[0], "$INFERCTL does not name inferctl");
    for (; *arguments != NULL; arguments++) {
        cr_assert_lt(count, (size_t)ARGUMENTS_MAX);
        argv[count++] = *arguments;
    }
    argv[count] = NULL;
    *run = (struct inf_inferctl){.out_fd = setting->out_fd != 0 ? -1 : make_sink()};
    int err_fd;
    if (setting->terminal)
        run->err_fd = make_terminal(&err_fd);
    else
        err_fd = run->err_fd = make_sink();
    spawn_inferctl(run, argv, setting->out_fd != 0 ? setting->out_fd : run->out_fd, err_fd);
    if (setting->terminal)
        close(err_fd);
}

// Reads everything and closes the descriptor. On a terminal, EIO marks the end of the output.
static char *read_all(int fd)
{
    size_t size = 0;
    size_t capacity = 65536;
    char *text = malloc(capacity);
    cr_assert_not_null(text);
    if (fd < 0) {
        text[0] = '\0';
        return text;
    }
    lseek(fd, 0, SEEK_SET);
    for (ssize_t got; (got = read(fd, text + size, capacity - size - 1)) > 0;) {
        size += (size_t)got;
        if (size + 1 < capacity)
            continue;
        capacity *= 2;
        text = realloc(text, capacity);
        cr_assert_not_null(text);
    }
    text[size] = '\0';
    close(fd);
    return text;
}

void inf_inferctl_wait(struct inf_inferctl *run)
{
    int status = 0;
    int waited_ms = 0;
    while (waitpid(run->pid, &status, WNOHANG) != run->pid) {
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        waited_ms += 5;
        if (waited_ms == WAIT_MS)
            kill(run->pid, SIGKILL);
    }
    run->out = read_all(run->out_fd);
    run->err = read_all(run->err_fd);
    run->code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    cr_assert_lt(waited_ms, WAIT_MS, "inferctl does not end; it said: %s%s", run->out, run->err);
}

void inf_inferctl_run(struct inf_inferctl *run, const char *socket, const char *const *arguments)
{
    inf_inferctl_start(run, &(struct inf_inferctl_setting){.socket = socket}, arguments);
    inf_inferctl_wait(run);
}

json_t *inf_inferctl_json(const struct inf_inferctl *run)
{
    json_error_t error;
    json_t *json = json_loads(run->out, JSON_REJECT_DUPLICATES, &error);
    cr_assert_not_null(json, "no JSON: %s: %s%s", error.text, run->out, run->err);
    return json;
}

void inf_inferctl_free(struct inf_inferctl *run)
{
    free(run->out);
    free(run->err);
    run->out = run->err = NULL;
}
