// SPDX-License-Identifier: Apache-2.0
// Limits of one user over all connections.
#include <criterion/criterion.h>
#include <unistd.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"

static struct inf_fixture fixture;
static struct inf_raw raw;

static void start_server(void)
{
    static const char *const arguments[] = {
        "--requests-per-uid-max=4", "--request-bytes-per-uid-max=1M", "--regions-per-uid-max=3",
        "--region-bytes-per-uid-max=1M", NULL};
    inf_fixture_start(&fixture, arguments);
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_quota, .init = start_server, .fini = stop_server, .timeout = 120);

static uint64_t ask_slow(struct inf_raw *client)
{
    union inf_message message;
    inf_slow_request(&message);
    return inf_raw_request(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

static void expect_refused(struct inf_raw *client, uint64_t stream, enum inf_reason reason)
{
    inf_raw_expect(client, INF_FRAME_RESPONSE);
    cr_assert_eq(client->frame.header.stream_id, stream);
    inf_raw_check_failure(client, INF_EXHAUSTED, reason);
}

// Repeats a cheap request until the daemon accepts it, that is, until the user is below its limits
// again.
static void wait_for_room(struct inf_raw *client)
{
    static const float zeros[24];
    union inf_message message;
    for (int i = 0; i < 1000; i++) {
        inf_add_request(&message, 2);
        inf_raw_call(client, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                     (struct inf_span){(const uint8_t *)zeros, 96});
        if ((client->frame.header.flags & INF_FRAME_FLAG_ERROR) == 0)
            return;
        usleep(10000);
    }
    cr_assert_fail("the room never came back");
}

Test(serving_quota, requests_of_all_connections_count_and_are_refunded)
{
    struct inf_raw other;
    inf_raw_open(&other, fixture.socket);
    for (int i = 0; i < 4; i++)
        ask_slow(i < 2 ? &raw : &other);
    // Wait for the PONG, because frames of a connection are handled in order, so the requests sent
    // before are then counted. A status request also counts against the limit of four requests, but
    // only until it is answered, which happens at once.
    inf_raw_send(&other, (struct inf_frame_header){.type = INF_FRAME_PING, .stream_id = 1},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    inf_raw_expect(&other, INF_FRAME_PONG);
    expect_refused(&raw, ask_slow(&raw), INF_REASON_QUOTA_REQUESTS);
    cr_expect_gt(raw.message.status.retry_after_ms, 0);
    // When a client disconnects, its requests are refunded to the user: a queued one at once, a
    // running one when its worker is done.
    inf_raw_close(&other);
    for (uint64_t stream = 1; stream <= 2; stream++)
        inf_raw_send(&raw, (struct inf_frame_header){.type = INF_FRAME_CANCEL, .stream_id = stream},
                     INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    for (int i = 0; i < 2; i++)
        inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    wait_for_room(&raw);
}

Test(serving_quota, regions_of_all_connections_count_and_are_refunded)
{
    struct inf_raw other;
    inf_raw_open(&other, fixture.socket);
    inf_raw_register(&raw, 1, inf_memfd(4096, 7), 4096, true);
    inf_raw_register(&raw, 2, inf_memfd(4096, 7), 4096, true);
    inf_raw_register(&other, 1, inf_memfd(4096, 7), 4096, true);
    union inf_message message = {.region = {.region_id = 3, .size = 4096}};
    const struct inf_frame_header header = {
        .type = INF_FRAME_MEM_REGISTER, .fd_count = 1, .stream_id = 9};
    int fd = inf_memfd(4096, 7);
    inf_raw_send(&raw, header, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, fd);
    inf_raw_expect(&raw, INF_FRAME_MEM_REGISTERED);
    inf_raw_check_failure(&raw, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    inf_raw_close(&other);
    inf_raw_wait_for(&raw, 0, 2);
    inf_raw_register(&raw, 3, fd, 4096, true);
    // Test the limit of bytes. Two pages less than one MiB are left.
    struct inf_raw third;
    inf_raw_open(&third, fixture.socket);
    message.region = (struct inf_region_message){.region_id = 1};
    inf_raw_send(&raw, (struct inf_frame_header){.type = INF_FRAME_MEM_UNREGISTER, .stream_id = 10},
                 INF_MESSAGE_REGION_UNREGISTER, &message, (struct inf_span){0}, -1);
    inf_raw_expect(&raw, INF_FRAME_MEM_RELEASED);
    message.region = (struct inf_region_message){.region_id = 1, .size = 1 << 20};
    fd = inf_memfd(1 << 20, 7);
    inf_raw_send(&third, header, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, fd);
    inf_raw_expect(&third, INF_FRAME_MEM_REGISTERED);
    inf_raw_check_failure(&third, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES);
    inf_raw_register(&third, 1, fd, (1 << 20) - 8192, true);
    inf_raw_close(&third);
}

Test(serving_quota, another_user_has_separate_limits)
{
    if (geteuid() != 0)
        return;
    struct inf_raw other;
    for (int i = 0; i < 4; i++)
        ask_slow(&raw);
    expect_refused(&raw, ask_slow(&raw), INF_REASON_QUOTA_REQUESTS);
    inf_fixture_open_as(&fixture, &other, 12001);
    uint64_t stream = ask_slow(&other);
    inf_raw_send(&other, (struct inf_frame_header){.type = INF_FRAME_CANCEL, .stream_id = stream},
                 INF_MESSAGE_EMPTY, NULL, (struct inf_span){0}, -1);
    inf_raw_expect(&other, INF_FRAME_RESPONSE);
    inf_raw_check_failure(&other, INF_CANCELLED, INF_REASON_BY_CLIENT);
    inf_raw_close(&other);
}

Test(serving_quota, device_time_is_refused_until_the_debt_is_paid)
{
    inf_raw_close(&raw);
    inf_fixture_restart(&fixture, (const char *const[]){"--device-ms-per-uid-max=100", NULL});
    inf_raw_open(&raw, fixture.socket);
    union inf_message message;
    inf_slow_request(&message); // the model `brief`, which runs for an eighth of a second or longer
    message.infer_request.model_name = "brief";
    inf_raw_expect_infer(&raw,
                         inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST,
                                         &message, inf_slow_data()));
    // Expect that reconnecting does not clear the user's debt of device time.
    inf_raw_close(&raw);
    inf_raw_open(&raw, fixture.socket);
    expect_refused(&raw, ask_slow(&raw), INF_REASON_QUOTA_TIME);
    uint32_t wait_ms = raw.message.status.retry_after_ms;
    cr_assert(wait_ms > 0 && wait_ms < 60000, "%u ms", wait_ms);
    struct inf_server_status status = inf_raw_server_status(&raw);
    cr_expect_eq(status.connections, 1u, "what takes no device's time is answered");
    usleep(wait_ms * 1000);
    wait_for_room(&raw);
}

Test(serving_quota, file_descriptors_count)
{
    struct inf_raw others[15], refused;
    inf_raw_close(&raw);
    inf_fixture_restart(&fixture, (const char *const[]){"--fds-per-uid-max=16", NULL});
    inf_raw_open(&raw, fixture.socket);
    uint32_t fds = inf_fixture_fds(&fixture);
    for (int i = 0; i < 14; i++)
        inf_raw_open(&others[i], fixture.socket);
    // 15 of the 16 allowed descriptors are in use. A descriptor in a frame counts only until the
    // daemon closes it, which happens at once; an open connection keeps counting.
    inf_raw_register(&raw, 1, inf_memfd(4096, 7), 4096, true);
    inf_raw_register(&raw, 2, inf_memfd(4096, 7), 4096, true);
    inf_raw_open(&others[14], fixture.socket);
    inf_raw_connect(&refused, fixture.socket);
    inf_raw_expect_error(&refused, INF_EXHAUSTED, INF_REASON_QUOTA_REQUESTS);
    inf_raw_close(&refused);
    for (int i = 0; i < 15; i++)
        inf_raw_close(&others[i]);
    for (int i = 0; i < 1000 && inf_raw_server_status(&raw).connections > 1; i++)
        usleep(10000);
    // The user is charged until the daemon has closed the sockets. The daemon keeps one descriptor
    // for each of the two regions.
    inf_fixture_expect_fds(&fixture, fds + 2);
    inf_raw_register(&raw, 3, inf_memfd(4096, 7), 4096, true);
}
