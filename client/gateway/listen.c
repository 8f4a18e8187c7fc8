// SPDX-License-Identifier: Apache-2.0
// Opens the gateway's listening sockets, finds the sockets that systemd passed, and reports the
// state of the gateway to systemd.
#include "client/gateway/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

// Maximum number of connections that the kernel queues until the gateway accepts them.
#define BACKLOG 1024

static enum inf_code fail_address(const char *address, const char *why, struct inf_error *err)
{
    return inf_fail(err, INF_UNAVAILABLE, "cannot listen on '%s': %s", address, why);
}

static enum inf_code bind_socket(const char *address, const struct sockaddr *name, socklen_t size,
                                 int *fd, struct inf_error *err)
{
    int made = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int on = 1;
    if (made >= 0 && name->sa_family != AF_UNIX)
        (void)setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (made < 0 || bind(made, name, size) != 0 || listen(made, BACKLOG) != 0) {
        int error = errno;
        if (made >= 0)
            close(made);
        return fail_address(address, strerror(error), err);
    }
    *fd = made;
    return INF_OK;
}

static enum inf_code listen_unix(const char *address, const char *path, int *fd,
                                 struct inf_error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct stat found;
    if (strlen(path) >= sizeof name.sun_path)
        return fail_address(address, "the path is too long", err);
    memcpy(name.sun_path, path, strlen(path) + 1);
    if (lstat(path, &found) == 0 && S_ISSOCK(found.st_mode))
        (void)unlink(path);
    return bind_socket(address, (struct sockaddr *)&name, sizeof name, fd, err);
}

enum inf_code inf_gateway_listen(const char *address, int *fd, struct inf_error *err)
{
    if (strncmp(address, "unix:", 5) == 0)
        return listen_unix(address, address + 5, fd, err);
    char host[256];
    const char *colon = strrchr(address, ':');
    size_t size = colon != NULL ? (size_t)(colon - address) : 0;
    if (colon == NULL || size >= sizeof host)
        return fail_address(address, "wanted HOST:PORT, [HOST]:PORT or unix:PATH", err);
    bool brackets = size >= 2 && address[0] == '[' && address[size - 1] == ']';
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? size - 2 : size),
             brackets ? address + 1 : address);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(host[0] != '\0' ? host : NULL, colon + 1, &hints, &found);
    if (failure != 0)
        return fail_address(address, gai_strerror(failure), err);
    enum inf_code code = bind_socket(address, found->ai_addr, found->ai_addrlen, fd, err);
    freeaddrinfo(found);
    return code;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

enum inf_code inf_gateway_listen_passed(enum inf_code (*add)(void *context, int fd, bool admin,
                                                             struct inf_error *err),
                                        void *context, unsigned *count, struct inf_error *err)
{
    char **names = NULL;
    int found = sd_listen_fds_with_names(1, &names);
    enum inf_code code = INF_OK;
    *count = 0;
    for (int i = 0; i < found && code == INF_OK; i++) {
        int fd = SD_LISTEN_FDS_START + i;
        if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
            code =
                inf_fail(err, INF_INVALID, "the descriptor '%s' is no listening socket", names[i]);
        else
            code = add(context, fd, ends_with(names[i], "-admin"), err);
        *count += code == INF_OK;
    }
    for (int i = 0; i < found; i++)
        free(names[i]);
    free(names);
    return code;
}

void inf_gateway_notify(const char *state)
{
    (void)sd_notify(0, state);
}
