// SPDX-License-Identifier: Apache-2.0
// Starts and stops a daemon for a benchmark.
#include "tests/tools/bench/rpc_daemon.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/inferd.h"
#include "tests/tools/bench/rpc_samples.h"

#define ARGUMENTS_MAX 16

const char *rpc_daemon_path(void)
{
    static char path[PATH_MAX];
    const char *named = getenv("INFERD");
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 32);
    if (named != NULL || size < 0)
        return named != NULL ? named : "inferd";
    path[size] = '\0';
    // go up three folders: build/tests/tools/bench_rpc -> build, for build/daemon/inferd
    for (int i = 0; i < 3; i++) {
        char *slash = strrchr(path, '/');
        if (slash != NULL)
            *slash = '\0';
    }
    strcat(path, "/daemon/inferd");
    return path;
}

static void make_directory(const char *path)
{
    if (mkdir(path, 0755) != 0)
        rpc_die("cannot make %s: %s", path, strerror(errno));
}

void rpc_daemon_make(struct rpc_daemon *daemon)
{
    char models[64];
    *daemon = (struct rpc_daemon){.pid = -1};
    strcpy(daemon->directory, "/tmp/inferd-bench-XXXXXX");
    if (mkdtemp(daemon->directory) == NULL || chmod(daemon->directory, 0755) != 0)
        rpc_die("cannot make a directory in /tmp: %s", strerror(errno));
    snprintf(daemon->socket, sizeof daemon->socket, "%s/inferd.sock", daemon->directory);
    snprintf(models, sizeof models, "%s/models", daemon->directory);
    make_directory(models);
}

void rpc_daemon_add_model(struct rpc_daemon *daemon, const char *name, char directory[96])
{
    snprintf(daemon->models[daemon->model_count++], sizeof daemon->models[0], "%s", name);
    snprintf(directory, 96, "%s/models/%s", daemon->directory, name);
    make_directory(directory);
    strcat(directory, "/1");
    make_directory(directory);
}

static bool all_ready(const struct rpc_daemon *daemon)
{
    inferd_client *client = NULL;
    bool ready = inferd_connect(&client, daemon->socket, NULL) == INFERD_OK;
    for (unsigned i = 0; i < daemon->model_count && ready; i++)
        if (inferd_model_ready(client, daemon->models[i], NULL, &ready, NULL) != INFERD_OK)
            ready = false;
    inferd_close(client);
    return ready;
}

static bool wait_until_ready(const struct rpc_daemon *daemon)
{
    for (int tries = 0; tries < 6000; tries++) {
        if (all_ready(daemon))
            return true;
        siginfo_t ended = {0};
        if (waitid(P_PID, (id_t)daemon->pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            ended.si_pid != 0)
            return false;
        poll(NULL, 0, 10);
    }
    return false;
}

void rpc_daemon_start(struct rpc_daemon *daemon, const char *path, const char *const *arguments)
{
    char runtime[64];
    char repository[64];
    snprintf(runtime, sizeof runtime, "--runtime-dir=%s", daemon->directory);
    snprintf(repository, sizeof repository, "--repository=%s/models", daemon->directory);
    const char *argv[ARGUMENTS_MAX + 5] = {path, runtime, repository, "--log-level=warning"};
    for (int i = 0; i < ARGUMENTS_MAX && arguments[i] != NULL; i++)
        argv[4 + i] = arguments[i];
    daemon->pid = fork();
    if (daemon->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); // the daemon ends with the benchmark
        execv(path, (char **)argv);
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        _exit(127);
    }
    if (daemon->pid < 0)
        rpc_die("cannot fork: %s", strerror(errno));
    if (!wait_until_ready(daemon)) {
        rpc_daemon_stop(daemon);
        rpc_die("%s does not get ready", path);
    }
    (void)chmod(daemon->socket, 0666);
}

static int remove_entry(const char *path, const struct stat *entry, int type, struct FTW *place)
{
    (void)entry;
    (void)type;
    (void)place;
    return remove(path);
}

void rpc_daemon_stop(struct rpc_daemon *daemon)
{
    if (daemon->pid > 0) {
        kill(daemon->pid, SIGTERM);
        waitpid(daemon->pid, NULL, 0);
    }
    nftw(daemon->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}
