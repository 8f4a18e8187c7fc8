// SPDX-License-Identifier: Apache-2.0
// A daemon whose event loop cannot add events, and whose process has no free descriptor, for a
// while. Expect that it serves again afterwards, and that it still ends on request.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;
static char path[64]; // while this file exists, the preloaded library makes calls fail

static void start_failing(void)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    cr_assert_geq(fd, 0);
    close(fd);
}

static void start_server(void)
{
    snprintf(path, sizeof path, "/tmp/inferd-fail-events-%d", (int)getpid());
    setenv("INF_FAIL_EVENTS", path, 1);
    setenv("LD_PRELOAD", getenv("FAIL_EVENTS"), 1);
    inf_fixture_start(&fixture, NULL);
    unsetenv("LD_PRELOAD");
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    unlink(path);
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_exhausted, .init = start_server, .fini = stop_server, .timeout = 60);

static void check_ping(struct inf_raw *client)
{
    const struct inf_frame_header ping = {.type = INF_FRAME_PING, .stream_id = 7};
    inf_raw_send(client, ping, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    inf_raw_expect(client, INF_FRAME_PONG);
}

Test(serving_exhausted, accepts_clients_again)
{
    struct inf_raw other;
    start_failing();
    inf_raw_connect(&other, fixture.socket);
    usleep(500000);
    check_ping(&raw);
    inf_raw_close(&other);
    unlink(path);
    inf_raw_open(&other, fixture.socket);
    check_ping(&other);
    inf_raw_close(&other);
}

Test(serving_exhausted, ends_on_sigterm)
{
    start_failing();
    struct inf_raw other;
    inf_raw_connect(&other, fixture.socket);
    usleep(300000);
    inf_raw_close(&other);
    inf_raw_close(&raw);
    // Restarting stops the daemon first. The fixture fails the test if the daemon's exit status is
    // not 0.
    inf_fixture_restart(&fixture, NULL);
    unlink(path);
    inf_raw_open(&raw, fixture.socket);
}
