// SPDX-License-Identifier: Apache-2.0
// The cpu device with its default slots and threads: a request that is alone may use all cores, and
// requests at the same time run beside each other.
#include <criterion/criterion.h>
#include <string.h>

#include "proto/wire/frame.h"
#include "tests/support/daemon/fixture.h"

#define ROUNDS 10

static struct inf_fixture fixture;
static struct inf_raw raw;

static void start_server(void)
{
    inf_fixture_start(&fixture,
                      (const char *[]){"--cpu-slots=0", "--cpu-threads=0", "--device=cpu", NULL});
    inf_raw_open(&raw, fixture.socket);
}

static void stop_server(void)
{
    inf_raw_close(&raw);
    inf_fixture_stop(&fixture);
}

TestSuite(serving_cores, .init = start_server, .fini = stop_server, .timeout = 120);

static uint64_t send_slow(void)
{
    union inf_message message;
    inf_slow_request(&message);
    message.infer_request.device = "";
    return inf_raw_request(&raw, INF_METHOD_MODEL_INFER, INF_MESSAGE_INFER_REQUEST, &message,
                           inf_slow_data());
}

static struct inf_timing receive_timing(void)
{
    inf_raw_expect(&raw, INF_FRAME_RESPONSE);
    inf_raw_decode(&raw, INF_MESSAGE_INFER_REPLY);
    return raw.message.infer_reply.timing;
}

// Returns the slots of the device `cpu`, which are also its threads; 0 if there is no such device.
static uint32_t find_slots(void)
{
    inf_raw_call(&raw, INF_METHOD_DEVICE_LIST, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(&raw, INF_MESSAGE_DEVICE_INDEX);
    const struct inf_device_index *index = &raw.message.device_index;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct inf_device_entry *entry = &index->entries[i];
        if (strcmp(entry->name, "cpu") != 0)
            continue;
        cr_assert_eq(entry->slots, entry->threads);
        return entry->slots;
    }
    return 0;
}

Test(serving_cores, requests_at_the_same_time_run_beside_each_other)
{
    if (find_slots() < 2)
        cr_skip_test("there is no cpu device of two cores");
    inf_raw_expect_infer(&raw, send_slow());
    // On a busy machine a worker may start late, so one good round is enough. If requests ran one
    // after the other, the second would wait for the whole first run in every round.
    bool beside = false;
    for (int i = 0; i < ROUNDS && !beside; i++) {
        send_slow();
        send_slow();
        struct inf_timing one = receive_timing();
        struct inf_timing other = receive_timing();
        beside = one.queue_ns < other.compute_ns / 2 && other.queue_ns < one.compute_ns / 2;
    }
    cr_assert(beside);
    // Afterwards a request alone is still answered.
    inf_raw_expect_infer(&raw, send_slow());
}
