// SPDX-License-Identifier: Apache-2.0
// The store of descriptors: messages to a service manager that does not read.
#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "backends/base/log.h"
#include "daemon/system/fd_store.h"

#define ROOM 40u

// Creates an imitated service manager, which reads only in count_messages().
static int make_manager(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length =
        snprintf(address.sun_path, sizeof address.sun_path, "@inferd-fd-store-%d", (int)getpid());
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    address.sun_path[0] = '\0';
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address,
                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)),
                 0);
    return fd;
}

// Reads all messages. Descriptors that come with them are closed, because there is no room.
static void count_messages(int manager, uint32_t *added, uint32_t *removed)
{
    char text[256];
    ssize_t size;
    while ((size = recv(manager, text, sizeof text - 1, 0)) > 0) {
        text[size] = '\0';
        *added += strcmp(text, "FDSTORE=1\nFDNAME=name\n") == 0;
        *removed += strcmp(text, "FDSTOREREMOVE=1\nFDNAME=name\n") == 0;
    }
}

Test(fd_store, is_bounded_if_the_manager_does_not_read)
{
    inf_role_enter_loop();
    int manager = make_manager(), fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct event_base *base = event_base_new();
    struct inf_fd_store *store = NULL;
    cr_assert_eq(inf_fd_store_create(&store, base, ROOM, 0, NULL, NULL), INF_OK);
    // As a client that connects and leaves would do.
    uint32_t stored = 0, added = 0, removed = 0;
    while (stored < 10000 && inf_fd_store_add(store, "name", fd)) {
        inf_fd_store_remove(store, "name");
        stored++;
    }
    cr_assert_geq(stored, ROOM / 2);
    cr_assert_lt(stored, 10000, "what waits is not bounded");
    for (int i = 0; i < 10000 && removed < stored; i++) {
        count_messages(manager, &added, &removed);
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    cr_assert_eq(added, stored);
    cr_assert_eq(removed, stored);
    cr_assert(inf_fd_store_add(store, "name", fd), "there is room again");
    inf_fd_store_destroy(&store);
    event_base_free(base);
    close(manager);
    close(fd);
}

struct lines {
    uint32_t count;
    char last[256];
};

static void keep_line(void *context, enum inf_log_level level, const char *line)
{
    struct lines *lines = context;
    cr_expect_eq(level, INF_LOG_WARNING);
    lines->count++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

// Creates a store in which `waiting` descriptors wait, because the manager does not read.
static struct inf_fd_store *make_waiting(struct event_base *base, const struct inf_log *log, int fd,
                                         uint32_t waiting) INF_ON_LOOP
{
    struct inf_fd_store *store = NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
                                 (size_t)snprintf(address.sun_path, sizeof address.sun_path,
                                                  "@inferd-fd-store-%d", (int)getpid()));
    int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sun_path[0] = '\0';
    while (sendto(other, "x", 1, 0, (const struct sockaddr *)&address, size) == 1)
        ;
    close(other);
    cr_assert_eq(inf_fd_store_create(&store, base, ROOM, 0, log, NULL), INF_OK);
    for (uint32_t i = 0; i < waiting; i++) {
        char name[32];
        snprintf(name, sizeof name, "region-%u", i);
        cr_assert(inf_fd_store_add(store, name, fd));
    }
    cr_assert_eq(inf_fd_store_lost(store), 0);
    return store;
}

Test(fd_store, reports_descriptors_that_are_refused_later)
{
    inf_role_enter_loop();
    int manager = make_manager(), fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct event_base *base = event_base_new();
    struct lines lines = {0};
    const struct inf_log log = {.level = INF_LOG_INFO, .write = keep_line, .context = &lines};
    struct inf_fd_store *store = make_waiting(base, &log, fd, 3);
    close(manager);
    event_base_loop(base, EVLOOP_NONBLOCK);
    cr_expect_eq(inf_fd_store_lost(store), 3, "%u", (unsigned)inf_fd_store_lost(store));
    cr_expect_eq(lines.count, 3);
    // The reason is that of the system.
    static const char text[] = "descriptor not stored for the next process name=region-2 reason=\"";
    cr_expect_eq(strncmp(lines.last, text, strlen(text)), 0, "%s", lines.last);
    inf_fd_store_destroy(&store);
    cr_expect_eq(lines.count, 3);
    event_base_free(base);
    close(fd);
}

Test(fd_store, reports_descriptors_for_which_the_end_does_not_wait)
{
    inf_role_enter_loop();
    int manager = make_manager(), fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct event_base *base = event_base_new();
    struct lines lines = {0};
    const struct inf_log log = {.level = INF_LOG_INFO, .write = keep_line, .context = &lines};
    struct inf_fd_store *store = make_waiting(base, &log, fd, 2);
    inf_fd_store_destroy(&store);
    cr_expect_eq(lines.count, 2);
    cr_expect_str_eq(lines.last,
                     "descriptor not stored for the next process name=region-1 "
                     "reason=\"the service manager has no room\"");
    event_base_free(base);
    close(manager);
    close(fd);
}

Test(fd_store, reports_a_descriptor_that_cannot_be_sent)
{
    inf_role_enter_loop();
    int manager = make_manager(), fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct event_base *base = event_base_new();
    struct inf_fd_store *store = NULL;
    cr_assert_eq(inf_fd_store_create(&store, base, ROOM, 0, NULL, NULL), INF_OK);
    cr_assert(inf_fd_store_add(store, "name", fd));
    close(manager);
    // ECONNREFUSED: an error other than a manager without room.
    cr_assert_not(inf_fd_store_add(store, "other", fd));
    inf_fd_store_remove(store, "name");
    inf_fd_store_destroy(&store);
    event_base_free(base);
    close(fd);
}
