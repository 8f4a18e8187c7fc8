// SPDX-License-Identifier: Apache-2.0
// Creates a listening socket safely. A lock file shows whether another daemon is running. A stale
// socket file is removed only after a connection to it was refused. The file never has wider
// permissions than the caller requested.
#include "daemon/system/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/system/caller.h"

#define BACKLOG 512

void inf_listener_init(struct inf_listener *listener)
{
    *listener = (struct inf_listener){.fd = -1, .lock_fd = -1};
}

void inf_listener_adopt(struct inf_listener *listener, int fd)
{
    listener->fd = fd;
}

static enum inf_code os_error(struct inf_error *err, const char *path, const char *doing)
{
    int error = errno;
    enum inf_code code = error == EACCES || error == EPERM || error == EROFS     ? INF_DENIED
                         : error == EMFILE || error == ENFILE || error == ENOMEM ? INF_EXHAUSTED
                                                                                 : INF_INVALID;
    return inf_fail(err, code, "socket %s: %s: %s", path, doing, strerror(error));
}

static enum inf_code lock_socket(struct inf_listener *listener, const char *path,
                                 struct inf_error *err)
{
    char lock_path[sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".lock"];
    snprintf(lock_path, sizeof lock_path, "%s.lock", path);
    listener->lock_fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (listener->lock_fd < 0)
        return os_error(err, path, "lock file");
    if (flock(listener->lock_fd, LOCK_EX | LOCK_NB) == 0)
        return INF_OK;
    if (errno == EWOULDBLOCK)
        return inf_fail(err, INF_EXISTS, "socket %s: another daemon holds its lock", path);
    return os_error(err, path, "flock");
}

// Removes the socket file of a daemon that no longer runs. Fails if a process listens on the
// socket.
static enum inf_code clear_path(const char *path, const struct sockaddr_un *address,
                                struct inf_error *err)
{
    struct stat file;
    if (lstat(path, &file) < 0)
        return errno == ENOENT ? INF_OK : os_error(err, path, "lstat");
    if (!S_ISSOCK(file.st_mode))
        return inf_fail(err, INF_EXISTS, "socket %s: a file that is no socket is there", path);
    int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return os_error(err, path, "socket");
    int result = connect(probe, (const struct sockaddr *)address, sizeof *address);
    int error = errno;
    close(probe);
    // Only a refused connection proves that no process listens. A full backlog, for example, means
    // that a process does.
    if (result == 0 || error != ECONNREFUSED)
        return inf_fail(err, INF_EXISTS, "socket %s: another process serves it", path);
    if (unlink(path) < 0)
        return os_error(err, path, "unlink");
    return INF_OK;
}

static enum inf_code bind_at(struct inf_listener *listener,
                             const struct inf_listener_options *options,
                             const struct sockaddr_un *address, struct inf_error *err)
{
    listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listener->fd < 0)
        return os_error(err, options->path, "socket");
    // The file gets the mode of the socket minus the umask, so it never has wider permissions than
    // requested. chmod() below restores the bits that the umask removed.
    if (fchmod(listener->fd, options->mode) < 0)
        return os_error(err, options->path, "fchmod");
    char *path = strdup(options->path);
    if (path == NULL)
        return inf_fail(err, INF_EXHAUSTED, "socket %s: no memory", options->path);
    if (bind(listener->fd, (const struct sockaddr *)address, sizeof *address) < 0) {
        enum inf_code code = os_error(err, options->path, "bind");
        free(path);
        return code;
    }
    listener->path = path;
    // A client that waits for the file may connect from now on.
    if (listen(listener->fd, BACKLOG) < 0)
        return os_error(err, options->path, "listen");
    if (options->group != (gid_t)-1 && chown(options->path, (uid_t)-1, options->group) < 0)
        return os_error(err, options->path, "chown");
    if (chmod(options->path, options->mode) < 0)
        return os_error(err, options->path, "chmod");
    return INF_OK;
}

enum inf_code inf_listener_open(struct inf_listener *listener,
                                const struct inf_listener_options *options, struct inf_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(options->path);
    if (length == 0 || length >= sizeof address.sun_path)
        return inf_fail(err, INF_INVALID, "socket '%s': wanted a path of 1 to %zu characters",
                        options->path, sizeof address.sun_path - 1);
    memcpy(address.sun_path, options->path, length);
    enum inf_code code = lock_socket(listener, options->path, err);
    if (code == INF_OK)
        code = clear_path(options->path, &address, err);
    if (code == INF_OK)
        code = bind_at(listener, options, &address, err);
    if (code != INF_OK)
        inf_listener_close(listener);
    return code;
}

void inf_listener_close(struct inf_listener *listener)
{
    if (listener->path != NULL)
        unlink(listener->path);
    free(listener->path);
    if (listener->fd >= 0)
        close(listener->fd);
    // Keep the lock file on disk: the next daemon may already have opened and locked it, and then
    // removing it would let a third daemon lock a new file.
    if (listener->lock_fd >= 0)
        close(listener->lock_fd);
    inf_listener_init(listener);
}

enum inf_code inf_peer_credentials(int fd, gid_t group, struct inf_credentials *credentials,
                                   struct inf_error *err)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
        return inf_fail(err, INF_UNAVAILABLE, "SO_PEERCRED: %s", strerror(errno));
    credentials->uid = peer.uid;
    credentials->pid = peer.pid;
    struct inf_caller caller;
    inf_caller_init(&caller, fd, peer.uid, false);
    credentials->in_group = group != (gid_t)-1 && inf_caller_is_member(&caller, group);
    inf_caller_fini(&caller);
    return INF_OK;
}
