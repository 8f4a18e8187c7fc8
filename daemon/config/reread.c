// SPDX-License-Identifier: Apache-2.0
// Starts one short-lived thread per reading, and wakes the loop by an eventfd when the thread is
// done. The thread writes the result before it writes to the eventfd, and the loop joins the thread
// before it reads the result, so that no lock is needed.
#include "daemon/config/reread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backends/base/thread.h"

struct inf_config_reread {
    int argc;
    char **argv;
    int fd; // eventfd
    struct inf_thread thread;
    bool running; // the thread was started and not joined
    bool again;   // a reading was requested while one was in progress

    // Written by the thread, read by the loop after it has joined the thread.
    struct inf_config config;
    enum inf_code code;
    struct inf_error err;
};

enum inf_code inf_config_reread_create(struct inf_config_reread **out_reread, int argc, char **argv,
                                       struct inf_error *err)
{
    struct inf_config_reread *reread = calloc(1, sizeof *reread);
    if (reread == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for reading the configuration");
    *reread = (struct inf_config_reread){.argc = argc, .argv = argv};
    reread->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reread->fd < 0) {
        free(reread);
        return inf_fail(err, INF_EXHAUSTED, "eventfd: %s", strerror(errno));
    }
    *out_reread = reread;
    return INF_OK;
}

void inf_config_reread_destroy(struct inf_config_reread **reread)
{
    if (*reread == NULL)
        return;
    if ((*reread)->running)
        inf_thread_join(&(*reread)->thread);
    close((*reread)->fd);
    free(*reread);
    *reread = NULL;
}

int inf_config_reread_fd(const struct inf_config_reread *reread)
{
    return reread->fd;
}

static void read_sources(void *context)
{
    struct inf_config_reread *reread = context;
    reread->err = (struct inf_error){0};
    reread->code = inf_config_read(&reread->config, reread->argc, reread->argv, &reread->err);
    uint64_t one = 1;
    // The write cannot fail: the loop resets the counter to 0 after each reading.
    (void)!write(reread->fd, &one, sizeof one);
}

enum inf_code inf_config_reread_start(struct inf_config_reread *reread, struct inf_error *err)
{
    if (reread->running) {
        reread->again = true;
        return INF_OK;
    }
    INF_TRY(inf_thread_start(&reread->thread, "config", read_sources, reread, err));
    reread->running = true;
    return INF_OK;
}

bool inf_config_reread_finish(struct inf_config_reread *reread,
                              const struct inf_config **out_config, struct inf_error *err)
{
    uint64_t count;
    *out_config = NULL;
    if (!reread->running || read(reread->fd, &count, sizeof count) < 0)
        return false;
    // The thread writes to the eventfd as its last act, so that joining it takes hardly any time.
    inf_thread_join(&reread->thread);
    reread->thread = (struct inf_thread){0};
    reread->running = false;
    bool again = reread->again;
    reread->again = false;
    // If no thread can be started for another reading, the present result is used.
    if (again && inf_config_reread_start(reread, err) == INF_OK)
        return false;
    if (reread->code == INF_OK)
        *out_config = &reread->config;
    else
        *err = reread->err;
    return true;
}
