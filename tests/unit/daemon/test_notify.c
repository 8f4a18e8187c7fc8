// SPDX-License-Identifier: Apache-2.0
// Notifications to systemd, the watchdog, and inherited sockets.
#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/system/notify.h"
#include "proto/core/attributes.h"

// Creates an imitated service manager: a socket that receives notifications, by path or by abstract
// name.
static int make_manager(bool abstract)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    cr_assert_geq(fd, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof address.sun_path, "%sinferd-notify-%d",
                          abstract ? "@" : "/tmp/", (int)getpid());
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    unlink(address.sun_path);
    if (abstract)
        address.sun_path[0] = '\0';
    socklen_t size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length + (abstract ? 0 : 1));
    cr_assert_eq(bind(fd, (const struct sockaddr *)&address, size), 0);
    return fd;
}

static void expect_message(int manager, const char *expected)
{
    char text[1024] = "";
    ssize_t size = recv(manager, text, sizeof text - 1, 0);
    cr_assert_gt(size, 0, "nothing came, wanted %s", expected);
    cr_expect_str_eq(text, expected);
}

static struct inf_notify *make_notify(const struct inf_notify_options *options)
{
    struct inf_notify *notify = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_notify_create(&notify, options, &err), INF_OK, "%s", err.text);
    return notify;
}

static void tell_all(struct inf_notify *notify)
{
    inf_role_enter_loop();
    inf_notify_ready(notify, "serving");
    // The line break in the text must not begin a second assignment, READY=0.
    inf_notify_status(notify, "2 models\nREADY=0");
    inf_notify_reloading(notify);
    inf_notify_stopping(notify, "draining");
    inf_notify_extend_start(notify, 90000);
}

static void check_all(bool abstract)
{
    unsetenv("WATCHDOG_USEC");
    int manager = make_manager(abstract);
    struct event_base *base = event_base_new();
    struct inf_notify *notify = make_notify(&(struct inf_notify_options){.base = base});
    tell_all(notify);
    expect_message(manager, "READY=1\nSTATUS=serving");
    expect_message(manager, "STATUS=2 models READY=0");
    char text[256] = "";
    cr_assert_gt(recv(manager, text, sizeof text - 1, 0), 0);
    cr_expect_eq(strncmp(text, "RELOADING=1\nMONOTONIC_USEC=", 27), 0, "%s", text);
    cr_expect_gt(strtoull(text + 27, NULL, 10), 0u);
    expect_message(manager, "STOPPING=1\nSTATUS=draining");
    expect_message(manager, "EXTEND_TIMEOUT_USEC=90000000");
    inf_notify_destroy(&notify);
    cr_expect_null(notify);
    event_base_free(base);
    unlink(getenv("NOTIFY_SOCKET"));
    close(manager);
}

Test(notify, reports_ready_status_reloading_stopping)
{
    check_all(false);
}

Test(notify, accepts_abstract_names)
{
    check_all(true);
}

Test(notify, does_nothing_without_systemd)
{
    unsetenv("NOTIFY_SOCKET");
    setenv("WATCHDOG_USEC", "1000", 1);
    struct event_base *base = event_base_new();
    struct inf_notify *notify = make_notify(&(struct inf_notify_options){.base = base});
    tell_all(notify);
    cr_expect_eq(event_base_loop(base, EVLOOP_NONBLOCK), 1, "there is an event, wanted none");
    inf_notify_destroy(&notify);
    event_base_free(base);
}

Test(notify, refuses_malformed_addresses)
{
    struct event_base *base = event_base_new();
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[299] = '\0';
    const char *const addresses[] = {"relative", "/", "@", longest};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(addresses); i++) {
        setenv("NOTIFY_SOCKET", addresses[i], 1);
        struct inf_notify *notify = NULL;
        struct inf_error err = {0};
        const struct inf_notify_options options = {.base = base};
        cr_expect_eq(inf_notify_create(&notify, &options, &err), INF_INVALID, "%s", addresses[i]);
        cr_expect_null(notify);
    }
    setenv("NOTIFY_SOCKET", "/nonexistent/socket", 1);
    setenv("WATCHDOG_USEC", "soon", 1);
    unsetenv("WATCHDOG_PID");
    struct inf_notify *notify = NULL;
    struct inf_error err = {0};
    const struct inf_notify_options options = {.base = base};
    cr_expect_eq(inf_notify_create(&notify, &options, &err), INF_INVALID);
    unsetenv("WATCHDOG_USEC");
    notify = make_notify(&options); // no process receives notifications, which is not an error
    tell_all(notify);
    inf_notify_destroy(&notify);
    event_base_free(base);
}

static bool return_true(void *context)
{
    return *(const bool *)context;
}

// Runs the event loop for 200 ms with a watchdog timeout of 20 ms. Returns how many watchdog pings
// arrived.
static int count_pings(bool healthy)
{
    int manager = make_manager(false);
    setenv("WATCHDOG_USEC", "20000", 1);
    unsetenv("WATCHDOG_PID");
    struct event_base *base = event_base_new();
    struct inf_notify *notify = make_notify(
        &(struct inf_notify_options){.base = base, .healthy = return_true, .context = &healthy});
    const struct timeval end = {0, 200000};
    event_base_loopexit(base, &end);
    event_base_dispatch(base);
    int pings = 0;
    char text[64] = "";
    while (recv(manager, text, sizeof text - 1, 0) > 0) {
        cr_expect_str_eq(text, "WATCHDOG=1");
        pings++;
    }
    inf_notify_destroy(&notify);
    event_base_free(base);
    unlink(getenv("NOTIFY_SOCKET"));
    close(manager);
    return pings;
}

Test(notify, pings_the_watchdog_only_while_healthy)
{
    int pings = count_pings(true);
    cr_expect_geq(pings, 3);
    cr_expect_leq(pings, 21);
    cr_expect_eq(count_pings(false), 0);
}

Test(notify, a_slow_manager_blocks_nothing_and_gets_the_last_status, .timeout = 20)
{
    unsetenv("WATCHDOG_USEC");
    int manager = make_manager(false);
    struct event_base *base = event_base_new();
    struct inf_notify *notify = make_notify(&(struct inf_notify_options){.base = base});
    inf_role_enter_loop();
    for (int i = 0; i < 20000; i++) // many times more than the queue of the socket holds
        inf_notify_status(notify, "x");
    inf_notify_stopping(notify, "end");
    char text[1024];
    while (recv(manager, text, sizeof text, 0) > 0)
        ;
    const struct timeval end = {0, 300000};
    event_base_loopexit(base, &end);
    event_base_dispatch(base);
    ssize_t size = recv(manager, text, sizeof text - 1, 0);
    cr_assert_gt(size, 0);
    text[size] = '\0';
    cr_expect(strstr(text, "STOPPING=1\nSTATUS=end") != NULL, "%s", text);
    inf_notify_destroy(&notify);
    event_base_free(base);
    unlink(getenv("NOTIFY_SOCKET"));
    close(manager);
}

// --- sockets that the daemon inherits from systemd ---

struct passed {
    const char *names; // LISTEN_FDNAMES; NULL: not set
    int count;
    int types[3];
    bool listening[3];
};

// Takes the sockets in a child process, as if systemd had started the child with them as
// descriptors 3 to 5. Returns 10 * (data descriptor) + (admin descriptor), where -1 counts as 0; or
// 200 + the error code.
static int take_in_child(const struct passed *passed)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        int made[3];
        for (int i = 0; i < passed->count; i++) {
            int fd = socket(AF_UNIX, passed->types[i], 0);
            // An address without a name makes the kernel choose one (autobind).
            const struct sockaddr_un address = {.sun_family = AF_UNIX};
            if (bind(fd, (const struct sockaddr *)&address, sizeof(sa_family_t)) != 0)
                _exit(99);
            if (passed->listening[i] && listen(fd, 8) != 0)
                _exit(98);
            made[i] = fcntl(fd, F_DUPFD, 50);
            close(fd);
        }
        for (int i = 0; i < passed->count; i++)
            dup2(made[i], 3 + i);
        char number[16];
        snprintf(number, sizeof number, "%d", (int)getpid());
        setenv("LISTEN_PID", number, 1);
        snprintf(number, sizeof number, "%d", passed->count);
        setenv("LISTEN_FDS", number, 1);
        unsetenv("LISTEN_FDNAMES");
        if (passed->names != NULL)
            setenv("LISTEN_FDNAMES", passed->names, 1);
        struct inf_listen_fds fds;
        enum inf_code code = inf_listen_fds_take(&fds, NULL);
        if (code != INF_OK)
            _exit(200 + (int)code);
        for (int i = 0; i < passed->count; i++)
            if ((fcntl(3 + i, F_GETFL) & O_NONBLOCK) == 0 || fcntl(3 + i, F_GETFD) != FD_CLOEXEC)
                _exit(97);
        _exit(10 * INF_MAX(fds.data, 0) + INF_MAX(fds.admin, 0));
    }
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

Test(notify, takes_sockets_by_name_or_by_order)
{
    static const struct {
        struct passed passed;
        int expected;
    } cases[] = {
        {{"inferd:inferd-admin", 2, {SOCK_STREAM, SOCK_STREAM}, {true, true}}, 34},
        {{"inferd-admin:inferd", 2, {SOCK_STREAM, SOCK_STREAM}, {true, true}}, 43},
        {{NULL, 2, {SOCK_STREAM, SOCK_STREAM}, {true, true}}, 34},
        {{"unknown:unknown", 2, {SOCK_STREAM, SOCK_STREAM}, {true, true}}, 34},
        {{"inferd", 1, {SOCK_STREAM}, {true}}, 30},
        {{"inferd-admin", 1, {SOCK_STREAM}, {true}}, 3},
        {{NULL, 1, {SOCK_STREAM}, {true}}, 30},
        {{NULL, 3, {SOCK_STREAM, SOCK_STREAM, SOCK_STREAM}, {true, true, true}}, 203},
        {{"inferd:inferd", 2, {SOCK_STREAM, SOCK_STREAM}, {true, true}}, 203},
        {{"inferd:other", 2, {SOCK_STREAM, SOCK_STREAM}, {true, true}}, 203},
        {{"inferd", 1, {SOCK_DGRAM}, {false}}, 203},
        {{"inferd", 1, {SOCK_SEQPACKET}, {true}}, 203},
        {{"inferd", 1, {SOCK_STREAM}, {false}}, 203},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++)
        cr_expect_eq(take_in_child(&cases[i].passed), cases[i].expected, "case %zu", i);
}

Test(notify, ignores_sockets_meant_for_another_process)
{
    setenv("LISTEN_PID", "1", 1);
    setenv("LISTEN_FDS", "2", 1);
    struct inf_listen_fds fds = {0, 0};
    struct inf_error err = {0};
    cr_assert_eq(inf_listen_fds_take(&fds, &err), INF_OK, "%s", err.text);
    cr_expect_eq(fds.data, -1);
    cr_expect_eq(fds.admin, -1);
}
