// SPDX-License-Identifier: Apache-2.0
// Tests of requests that are cancelled or late, and of clients that are closed.
#include <criterion/criterion.h>
#include <dirent.h>
#include <poll.h>
#include <stdlib.h>

#include "client/lib/error.h"
#include "tests/support/daemon/client_case.h"

static uint64_t now_ms(void)
{
    return inf_client_now_ns() / 1000000;
}

// Until the test sets `awake`, the fake daemon answers only CANCEL frames.
struct sleeper {
    atomic_bool awake;
    uint64_t stream;
};

static bool sleep_on_it(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    struct sleeper *sleeper = context;
    if (sleeper->awake)
        return false;
    if (frame->header.type == INF_FRAME_CANCEL)
        fake_refuse(daemon, frame->header.stream_id,
                    &(struct inf_status){.code = INF_CANCELLED,
                                         .reason = INF_REASON_BY_CLIENT,
                                         .message = "cancelled"});
    return frame->header.type == INF_FRAME_REQUEST;
}

Test(client_cancel, ends_with_cancelled_and_gives_the_memory_up)
{
    struct sleeper sleeper = {.awake = false};
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = sleep_on_it, .context = &sleeper});
    inferd_client *client = client_case_connect(daemon);
    struct client_answers answers = {0};
    struct inferd_error err;
    uint8_t *bytes = calloc(1, 50000);
    inferd_tensor in = {.name = "in",
                        .dtype = INFERD_UINT8,
                        .rank = 1,
                        .shape = {50000},
                        .data = bytes,
                        .size = 50000};
    inferd_request request = {.model = "echo", .inputs = &in, .input_count = 1};
    uint64_t stream = 0;
    cr_assert_eq(inferd_infer_async(client, &request, client_case_count, &answers, &stream, &err),
                 INFERD_OK);
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_OK);
    cr_assert_eq(inferd_wait(client, &err), INFERD_OK);
    cr_assert_eq(answers.failed, 1u);
    cr_assert_eq(answers.last.code, INFERD_CANCELLED);
    cr_assert_str_eq(answers.last.reason, "BY_CLIENT");
    cr_assert_eq(inferd_cancel(client, stream, &err), INFERD_NOT_FOUND);
    sleeper.awake = true;
    cr_assert_eq(client_case_ask(client, 0, &err), INFERD_OK);
    // The region is not reused for the next request, because the device may still be reading it.
    cr_assert_eq(fake_daemon_counts(daemon)->releases, 1u);
    free(bytes);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// The fake daemon answers the first request only after the second one has arrived.
static bool hang_on_first(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    struct sleeper *sleeper = context;
    if (frame->header.type != INF_FRAME_REQUEST)
        return true;
    if (sleeper->stream == 0) {
        sleeper->stream = frame->header.stream_id;
        return true;
    }
    fake_refuse(daemon, sleeper->stream,
                &(struct inf_status){
                    .code = INF_DEADLINE, .reason = INF_REASON_IN_EXEC, .message = "at last"});
    return false;
}

Test(client_time, is_up_even_if_the_daemon_hangs)
{
    struct sleeper sleeper = {.awake = false};
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = hang_on_first, .context = &sleeper});
    inferd_client *client = client_case_connect(daemon);
    struct inferd_error err;
    uint64_t start_ms = now_ms();
    cr_assert_eq(client_case_ask(client, 50, &err), INFERD_DEADLINE_EXCEEDED);
    uint64_t took_ms = now_ms() - start_ms;
    cr_assert_geq(took_ms, 1050u, "the daemon gets a second's grace");
    cr_assert_lt(took_ms, 1900u);
    cr_assert_eq(client_case_ask(client, 1000, &err), INFERD_OK, "the late answer does no harm: %s",
                 err.text);
    cr_assert_eq(fake_daemon_counts(daemon)->cancels, 1u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

static bool look_at_timeout(struct fake_daemon *daemon, const struct fake_frame *frame,
                            void *context)
{
    (void)daemon;
    atomic_ullong *timeout_ns = context;
    if (frame->header.type == INF_FRAME_REQUEST)
        *timeout_ns = frame->message->infer_request.timeout_ns;
    return false;
}

Test(client_time, goes_to_the_daemon)
{
    atomic_ullong timeout_ns = 1;
    struct fake_daemon *daemon = fake_daemon_start(
        &(struct fake_options){.on_frame = look_at_timeout, .context = &timeout_ns});
    inferd_client *client = client_case_connect(daemon);
    cr_assert_eq(client_case_ask(client, 0, NULL), INFERD_OK);
    cr_assert_eq(timeout_ns, 0u);
    cr_assert_eq(client_case_ask(client, 1500, NULL), INFERD_OK);
    cr_assert_eq(timeout_ns, 1500000000u);
    cr_assert_eq(client_case_ask(client, UINT64_MAX, NULL), INFERD_OK);
    cr_assert_eq(timeout_ns, 0u, "a time beyond the clock is no limit");
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// --- closing a client frees all of its memory ---

static unsigned open_fds(void)
{
    unsigned count = 0;
    DIR *directory = opendir("/proc/self/fd");
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

Test(client_close, leaves_no_file_descriptor_behind)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){.connections = 20});
    unsigned before = open_fds();
    for (int i = 0; i < 20; i++) {
        inferd_client *client = client_case_connect(daemon);
        inferd_memory *memory = NULL;
        cr_assert_eq(inferd_memory_alloc(client, 123456, &memory, NULL), INFERD_OK);
        cr_assert_eq(client_case_ask(client, 0, NULL), INFERD_OK);
        cr_assert_eq(open_fds(), before + 2, "the socket's two ends; regions need none");
        struct client_answers answers = {0};
        client_case_start(client, &answers);
        inferd_close(client); // a request is in flight and memory is in use
        for (int wait = 0; wait < 1000 && open_fds() > before; wait++)
            poll(NULL, 0, 1); // wait until the fake daemon closes its end of the connection
        cr_assert_eq(answers.ok + answers.failed, 0u);
    }
    cr_assert_eq(open_fds(), before);
    fake_daemon_stop(daemon);
}
