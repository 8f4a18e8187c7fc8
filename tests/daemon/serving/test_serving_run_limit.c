// SPDX-License-Identifier: Apache-2.0
// Runs that take too long: they are cancelled and answered, the log says whose they were, and the
// daemon serves on. Only a run that ignores its cancellation stops the notification of systemd.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"
#include "tests/support/device/odd_devices.h"

#define LIMIT_MS 1000

static struct inf_fixture fixture;
static char log_path[] = "/tmp/inferd-log-XXXXXX";

static uint64_t clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// Starts a daemon whose first device is `lazy`, and whose log goes to the file `log_path`.
static void start_server(void)
{
    int log = mkstemp(log_path);
    cr_assert_geq(log, 0);
    close(log);
    inf_fixture_start_logged(&fixture, log_path,
                             (const char *const[]){"--backends=lazy", "--shadow_interval=0",
                                                   "--run_limit_ms=1000", "--run_grace_ms=500",
                                                   NULL});
}

static void stop_server(void)
{
    inf_fixture_stop(&fixture);
    unlink(log_path);
}

TestSuite(serving_run_limit, .init = start_server, .fini = stop_server, .timeout = 120);

// Returns the first line of the log that contains `event`; waits up to ten seconds for it.
static const char *find_line(const char *event)
{
    static char line[4096];
    for (int tries = 0; tries < 1000; tries++) {
        FILE *log = fopen(log_path, "re");
        cr_assert_not_null(log);
        while (fgets(line, sizeof line, log) != NULL) {
            if (strstr(line, event) == NULL)
                continue;
            fclose(log);
            return line;
        }
        fclose(log);
        usleep(10000);
    }
    cr_assert_fail("the log has no line '%s'", event);
    return NULL;
}

static uint64_t send_add(struct inf_raw *raw, float first)
{
    float data[20] = {first};
    union inf_message message;
    inf_add_request(&message, 1);
    return inf_raw_request(raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           (struct inf_span){(const uint8_t *)data, sizeof data});
}

static void expect_limit(struct inf_raw *raw, uint64_t stream)
{
    inf_raw_expect(raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw->frame.header.stream_id, stream);
    inf_raw_check_failure(raw, INF_DEADLINE, INF_REASON_IN_EXEC);
    cr_expect_not_null(strstr(raw->message.status.message, "model 'add'"), "%s",
                       raw->message.status.message);
    cr_expect_not_null(strstr(raw->message.status.message, "1000 ms of run_limit_ms"), "%s",
                       raw->message.status.message);
}

// Checks that the connection gets no second answer, and that the daemon still computes.
static void expect_service(struct inf_raw *raw)
{
    cr_assert(!inf_raw_next(raw, 100), "a request was answered twice");
    uint64_t stream = send_add(raw, 1);
    inf_raw_expect_infer(raw, stream);
}

Test(serving_run_limit, cancels_a_run_and_logs_model_user_device_and_node)
{
    struct inf_raw raw;
    char uid[32];
    inf_raw_open(&raw, fixture.socket);
    uint64_t begin_ms = clock_ms();
    uint64_t stream = send_add(&raw, INF_LAZY_UNTIL_CANCELLED);
    expect_limit(&raw, stream);
    uint64_t took_ms = clock_ms() - begin_ms;
    cr_expect_geq(took_ms, LIMIT_MS);
    cr_expect_leq(took_ms, 20 * LIMIT_MS, "%lu ms", (unsigned long)took_ms);
    expect_service(&raw);
    inf_raw_close(&raw);
    const char *line = find_line("run cancelled");
    snprintf(uid, sizeof uid, "uid=%u ", (unsigned)getuid());
    static const char *const parts[] = {"model=add ", "device=lazy ", "node=\"sum\"", "requests=1 ",
                                        "run_limit_ms=1000"};
    cr_expect_not_null(strstr(line, uid), "%s", line);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_expect_not_null(strstr(line, parts[i]), "%s in %s", parts[i], line);
}

Test(serving_run_limit, cancels_a_batch_and_answers_each_request_once)
{
    enum {
        COUNT = 4
    };
    struct inf_raw first, others[COUNT];
    uint64_t streams[COUNT];
    inf_raw_open(&first, fixture.socket);
    for (int i = 0; i < COUNT; i++)
        inf_raw_open(&others[i], fixture.socket);
    // The other requests wait until the only worker is free, and then run together.
    uint64_t stream = send_add(&first, INF_LAZY_UNTIL_CANCELLED);
    usleep(200000);
    for (int i = 0; i < COUNT; i++)
        streams[i] = send_add(&others[i], INF_LAZY_UNTIL_CANCELLED);
    expect_limit(&first, stream);
    for (int i = 0; i < COUNT; i++)
        expect_limit(&others[i], streams[i]);
    (void)find_line("requests=4 ");
    for (int i = 0; i < COUNT; i++) {
        expect_service(&others[i]);
        inf_raw_close(&others[i]);
    }
    inf_raw_close(&first);
}

// --- the watchdog ---

static int watchdog; // the notification socket of a service manager
static char notify_path[] = "/tmp/inferd-notify-XXXXXX";

static void start_watched_server(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    cr_assert_geq(close(mkstemp(notify_path)), 0);
    unlink(notify_path);
    memcpy(address.sun_path, notify_path, sizeof notify_path);
    watchdog = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    cr_assert_eq(bind(watchdog, (const struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", notify_path, 1);
    setenv("WATCHDOG_USEC", "200000", 1);
    start_server();
}

// Returns how many notifications of the watchdog came since the last call.
static uint32_t count_notifications(void)
{
    char text[1024];
    uint32_t count = 0;
    for (ssize_t size; (size = recv(watchdog, text, sizeof text - 1, 0)) > 0;) {
        text[size] = '\0';
        count += strstr(text, "WATCHDOG=1") != NULL;
    }
    return count;
}

TestSuite(serving_watchdog, .init = start_watched_server, .fini = stop_server, .timeout = 120);

Test(serving_watchdog, is_notified_until_a_run_ignores_its_cancellation)
{
    struct inf_raw raw;
    inf_raw_open(&raw, fixture.socket);
    uint64_t stream = send_add(&raw, INF_LAZY_UNTIL_CANCELLED);
    expect_limit(&raw, stream);
    (void)count_notifications();
    usleep(500000);
    cr_expect_gt(count_notifications(), 0, "a cancelled run must not cost the process");
    send_add(&raw, INF_LAZY_DEAF);
    const char *line = find_line("run does not end");
    static const char *const parts[] = {"model=add ", "uid=", "device=lazy ", "node=\"sum\"",
                                        "run_grace_ms=500"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        cr_expect_not_null(strstr(line, parts[i]), "%s in %s", parts[i], line);
    usleep(300000); // a notification may be under way
    (void)count_notifications();
    usleep(500000);
    cr_expect_eq(count_notifications(), 0, "a lost worker must cost the process");
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_close(&raw);
    close(watchdog);
    unlink(notify_path);
}
