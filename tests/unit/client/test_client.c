// SPDX-License-Identifier: Apache-2.0
// Inferences against a fake daemon. The tests check how tensors are sent, in which order answers
// arrive, and which memory is reused.
#include <criterion/criterion.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/daemon/client_case.h"

static inferd_tensor bytes_tensor(const char *name, void *data, size_t size)
{
    return (inferd_tensor){.name = name,
                           .dtype = INFERD_UINT8,
                           .rank = 1,
                           .shape = {(int64_t)size},
                           .data = data,
                           .size = size};
}

static void fill_pattern(uint8_t *bytes, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i * 31 + seed);
}

// Sends `size` bytes to the model "echo" and expects the same bytes back.
static void check_echo(inferd_client *client, size_t size, unsigned seed)
{
    uint8_t *bytes = malloc(size + 1);
    fill_pattern(bytes, size, seed);
    inferd_tensor in = bytes_tensor("in", bytes, size);
    inferd_request request = {.model = "echo", .inputs = &in, .input_count = 1};
    inferd_result *result = NULL;
    struct inferd_error err;
    int code = inferd_infer(client, &request, &result, &err);
    cr_assert_eq(code, INFERD_OK, "%zu bytes: %s %s", size, err.reason, err.text);
    cr_assert_eq(inferd_result_output_count(result), 1u);
    const inferd_tensor *out = inferd_result_find(result, "out");
    cr_assert_not_null(out);
    cr_assert_eq(out->dtype, INFERD_UINT8);
    cr_assert_eq(out->rank, 1);
    cr_assert_eq(out->shape[0], (int64_t)size);
    cr_assert_eq(out->size, size);
    cr_assert(size == 0 || memcmp(out->data, bytes, size) == 0, "%zu bytes", size);
    cr_assert_eq((uintptr_t)out->data % 64, 0u, "tensors are aligned to 64");
    inferd_result_free(result);
    free(bytes);
}

// Requests `count` bytes from the model "grow" and checks the answer.
static void check_grow(inferd_client *client, int32_t count)
{
    inferd_tensor in = client_case_tensor(&count);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1};
    inferd_result *result = NULL;
    struct inferd_error err;
    int code = inferd_infer(client, &request, &result, &err);
    cr_assert_eq(code, INFERD_OK, "%d bytes: %s %s", count, err.reason, err.text);
    cr_assert_eq(inferd_result_output_count(result), 2u);
    const inferd_tensor *small = inferd_result_output(result, 0);
    const inferd_tensor *big = inferd_result_output(result, 1);
    cr_assert_str_eq(small->name, "small");
    cr_assert_eq(*(const int32_t *)small->data, count);
    cr_assert_str_eq(big->name, "big");
    cr_assert_eq(big->size, (size_t)count);
    for (size_t i = 0; i < (size_t)count; i++)
        if (((const uint8_t *)big->data)[i] != fake_big_byte(i))
            cr_assert_fail("%d bytes: byte %zu differs", count, i);
    inferd_result_free(result);
}

Test(client, gets_back_what_it_sends_whatever_the_size)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    static const size_t sizes[] = {1,         0,       63,     64,    65,    4099,
                                   16383,     16384,   16385,  65536, 65537, (1 << 20) - 1,
                                   (1 << 20), 1200007, 1 << 22};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_echo(client, sizes[i], i);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_echo(client, sizes[i], 100 + i);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, tells_what_the_answer_says)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    int32_t count = 5;
    inferd_tensor in = client_case_tensor(&count);
    inferd_tensor wanted[] = {{.name = "big"}, {.name = "small"}};
    inferd_request request = {.model = "grow",
                              .id = "request 7",
                              .inputs = &in,
                              .input_count = 1,
                              .outputs = wanted,
                              .output_count = 2};
    inferd_result *result = NULL;
    cr_assert_eq(inferd_infer(client, &request, &result, NULL), INFERD_OK);
    cr_assert_str_eq(inferd_result_output(result, 0)->name, "big", "the request's order");
    cr_assert_str_eq(inferd_result_output(result, 1)->name, "small");
    cr_assert_null(inferd_result_output(result, 2));
    cr_assert_null(inferd_result_find(result, "bigger"));
    cr_assert_str_eq(inferd_result_id(result), "request 7");
    cr_assert_str_eq(inferd_result_model_version(result), "3");
    cr_assert_str_eq(inferd_result_device(result), "fake0");
    cr_assert_str_eq(inferd_result_precision(result), "fp32");
    inferd_timing timing = inferd_result_timing(result);
    cr_assert_eq(timing.queue_ns, 1u);
    cr_assert_eq(timing.input_ns, 2u);
    cr_assert_eq(timing.compute_ns, 3u);
    cr_assert_eq(timing.output_ns, 4u);
    cr_assert_gt(timing.total_ns, 0u);
    cr_assert_eq(inferd_result_core_ns(result), 5u);
    cr_assert_eq(inferd_result_threads(result), 6u);
    inferd_result_free(result);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, makes_one_region_for_many_requests)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    for (unsigned i = 0; i < 200; i++)
        check_echo(client, 100000, i);
    struct fake_counts *counts = fake_daemon_counts(daemon);
    cr_assert_eq(counts->requests, 200u);
    cr_assert_eq(counts->registrations, 2u, "one for inputs, one for outputs");
    cr_assert_eq(counts->releases, 0u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, finds_room_for_large_outputs_once)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    struct fake_counts *counts = fake_daemon_counts(daemon);
    // The first request is refused, because the output does not fit in a frame. The library asks
    // for the model's metadata and sends the request again with 1 MiB of memory for the output,
    // which is too small. The third request has enough memory.
    check_grow(client, 3000001);
    cr_assert_eq(counts->requests, 3u);
    cr_assert_eq(counts->metadata, 1u);
    check_grow(client, 3000001);
    check_grow(client, 2999999);
    cr_assert_eq(counts->requests, 5u, "the size is known now");
    // The output is one byte larger than before, so the first request fails and the next succeeds.
    check_grow(client, 3000002);
    cr_assert_eq(counts->requests, 7u);
    check_grow(client, 10);
    check_grow(client, 0);
    cr_assert_eq(counts->requests, 9u);
    cr_assert_eq(counts->metadata, 1u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, finds_room_for_outputs_that_grow)
{
    // The fake daemon puts at most 32 KiB of data in an answer, so that even outputs of 50 kB do
    // not fit in a frame.
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){.reply_bytes = 32768});
    inferd_client *client = client_case_connect(daemon);
    check_grow(client, 100);
    check_grow(client, 50000);
    check_grow(client, 20000);
    check_grow(client, 1500000);
    check_grow(client, 1);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, names_the_wanted_large_output_only)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){.reply_bytes = 32768});
    inferd_client *client = client_case_connect(daemon);
    int32_t count = 70000;
    inferd_tensor in = client_case_tensor(&count);
    inferd_tensor wanted = {.name = "big"};
    inferd_request request = {
        .model = "grow", .inputs = &in, .input_count = 1, .outputs = &wanted, .output_count = 1};
    for (int i = 0; i < 3; i++) {
        inferd_result *result = NULL;
        struct inferd_error err;
        cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
        cr_assert_eq(inferd_result_output_count(result), 1u);
        cr_assert_eq(inferd_result_output(result, 0)->size, 70000u);
        inferd_result_free(result);
    }
    cr_assert_eq(fake_daemon_counts(daemon)->metadata, 0u, "the name is the caller's");
    cr_assert_eq(fake_daemon_counts(daemon)->requests, 4u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, uses_the_callers_memory_in_place)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    inferd_memory *memory = NULL;
    cr_assert_eq(inferd_memory_alloc(client, 300000, &memory, NULL), INFERD_OK);
    cr_assert_eq(inferd_memory_size(memory), 300000u);
    uint8_t *data = inferd_memory_data(memory);
    fill_pattern(data, 100001, 3);
    inferd_tensor in = bytes_tensor("in", data, 100001);
    in.memory = memory;
    inferd_tensor out = {.name = "out", .data = data + 102400, .size = 197600, .memory = memory};
    inferd_request request = {
        .model = "echo", .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OK, "%s", err.text);
    const inferd_tensor *got = inferd_result_output(result, 0);
    cr_assert_eq(got->data, (void *)(data + 102400));
    cr_assert_eq(got->memory, memory);
    cr_assert_eq(got->size, 100001u);
    cr_assert_eq(memcmp(got->data, data, 100001), 0);
    inferd_result_free(result);
    out.size = 100000; // too small: the library does not enlarge memory of the caller
    cr_assert_eq(inferd_infer(client, &request, &result, &err), INFERD_OUT_OF_RANGE);
    cr_assert_str_eq(err.reason, "OUTPUT_TOO_SMALL");
    cr_assert_null(result);
    inferd_memory_free(memory);
    cr_assert_eq(fake_daemon_counts(daemon)->registrations, 1u);
    cr_assert_eq(fake_daemon_counts(daemon)->requests, 2u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, keeps_within_the_daemons_number_of_regions)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){.regions = 2});
    inferd_client *client = client_case_connect(daemon);
    inferd_memory *memories[3] = {NULL};
    struct inferd_error err;
    cr_assert_eq(inferd_memory_alloc(client, 1, &memories[0], &err), INFERD_OK);
    cr_assert_eq(inferd_memory_alloc(client, 1 << 20, &memories[1], &err), INFERD_OK);
    cr_assert_eq(inferd_memory_alloc(client, 1, &memories[2], &err), INFERD_RESOURCE_EXHAUSTED);
    cr_assert_null(memories[2]);
    check_echo(client, 200000, 1); // sent in the frame, because no region is left
    inferd_memory_free(memories[0]);
    cr_assert_eq(inferd_memory_alloc(client, 1 << 21, &memories[2], &err), INFERD_OK,
                 "an idle region makes room: %s", err.text);
    check_echo(client, 10, 1);
    cr_assert_eq(fake_daemon_counts(daemon)->releases, 1u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// --- clients with many requests in flight ---

struct tally {
    unsigned ok, failed;
    int last_code;
    int order[64];
    unsigned order_count;
    inferd_client *client;
};

struct async {
    struct tally *tally;
    int number;
};

static void count_answer(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct async *async = context;
    struct tally *tally = async->tally;
    tally->order[tally->order_count++ % 64] = async->number;
    tally->last_code = err->code;
    if (result != NULL) {
        const inferd_tensor *out = inferd_result_find(result, "small");
        tally->ok += *(const int32_t *)out->data == async->number;
        inferd_result_free(result);
    } else {
        tally->failed++;
    }
}

// The requests that the fake daemon has received but not answered. When there are eight, it answers
// them, the last one first.
struct held {
    uint64_t streams[8];
    int32_t numbers[8];
    unsigned count;
};

static void answer_small(struct fake_daemon *daemon, uint64_t stream, int32_t number)
{
    union inf_message reply = {
        .infer_reply = {
            .model_name = "grow", .model_version = "3", .output_count = 1, .credit_return = 1}};
    reply.infer_reply.outputs[0] =
        (struct inf_tensor_entry){.name = "small", .dtype = INF_DTYPE_I32};
    reply.infer_reply.outputs[0].shape = INF_SHAPE(1);
    reply.infer_reply.outputs[0].location = (struct inf_location){true, 0, 0, 4};
    struct inf_frame_header header = {
        .type = INF_FRAME_RESPONSE, .stream_id = stream, .flags = INF_FRAME_FINAL};
    fake_send(daemon, header, &reply, INF_MESSAGE_INFER_REPLY, &number, sizeof number);
}

static bool hold_eight(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    struct held *held = context;
    if (frame->header.type != INF_FRAME_REQUEST)
        return false;
    held->streams[held->count] = frame->header.stream_id;
    memcpy(&held->numbers[held->count], frame->data, 4);
    if (++held->count < 8)
        return true;
    while (held->count > 0) {
        held->count--;
        answer_small(daemon, held->streams[held->count], held->numbers[held->count]);
    }
    return true;
}

static int start_number(inferd_client *client, struct async *async, uint64_t *stream,
                        struct inferd_error *err)
{
    int32_t number = async->number;
    inferd_tensor in = client_case_tensor(&number);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1};
    return inferd_infer_async(client, &request, count_answer, async, stream, err);
}

Test(client, matches_answers_that_come_out_of_order)
{
    struct held held = {.count = 0};
    struct fake_daemon *daemon =
        fake_daemon_start(&(struct fake_options){.on_frame = hold_eight, .context = &held});
    inferd_client *client = client_case_connect(daemon);
    struct tally tally = {0};
    struct async asyncs[8];
    uint64_t last_stream = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t stream = 0;
        asyncs[i] = (struct async){&tally, i};
        cr_assert_eq(start_number(client, &asyncs[i], &stream, NULL), INFERD_OK);
        cr_assert_gt(stream, last_stream);
        last_stream = stream;
    }
    cr_assert_eq(tally.order_count, 0u, "callbacks come from inferd_process() only");
    cr_assert_eq(inferd_wait(client, NULL), INFERD_OK);
    cr_assert_eq(tally.ok, 8u);
    for (int i = 0; i < 8; i++)
        cr_assert_eq(tally.order[i], 7 - i);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, works_in_a_loop_of_the_callers)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){.byte_at_a_time = true});
    inferd_client *client = client_case_connect(daemon);
    struct tally tally = {0};
    struct async asyncs[20];
    for (int i = 0; i < 20; i++) {
        asyncs[i] = (struct async){&tally, i * 37};
        cr_assert_eq(start_number(client, &asyncs[i], NULL, NULL), INFERD_OK);
    }
    unsigned rounds = 0;
    while (tally.order_count < 20 && rounds++ < 100000) {
        struct pollfd fd = {.fd = inferd_fd(client), .events = inferd_events(client)};
        cr_assert_eq(poll(&fd, 1, 5000), 1);
        cr_assert_eq(inferd_process(client, NULL), INFERD_OK);
    }
    cr_assert_eq(tally.ok, 20u);
    cr_assert_eq(inferd_process(client, NULL), INFERD_OK, "nothing to do is fine");
    inferd_close(client);
    fake_daemon_stop(daemon);
}

// Stops the fake daemon from reading frames until `open` is true.
struct gate {
    atomic_bool open;
};

static bool wait_for_gate(struct fake_daemon *daemon, const struct fake_frame *frame, void *context)
{
    struct gate *gate = context;
    (void)daemon;
    (void)frame;
    while (!gate->open)
        poll(NULL, 0, 1);
    return false;
}

Test(client, refuses_async_and_delays_blocking_requests_without_credit)
{
    struct gate gate = {.open = false};
    struct fake_daemon *daemon = fake_daemon_start(
        &(struct fake_options){.on_frame = wait_for_gate, .context = &gate, .credit = 2});
    inferd_client *client = client_case_connect(daemon);
    struct tally tally = {0};
    struct async asyncs[3] = {{&tally, 0}, {&tally, 1}, {&tally, 2}};
    struct inferd_error err;
    cr_assert_eq(start_number(client, &asyncs[0], NULL, &err), INFERD_OK);
    cr_assert_eq(start_number(client, &asyncs[1], NULL, &err), INFERD_OK);
    cr_assert_eq(start_number(client, &asyncs[2], NULL, &err), INFERD_RESOURCE_EXHAUSTED);
    cr_assert_str_eq(err.reason, "QUOTA_REQUESTS");
    gate.open = true;
    check_grow(client, 9); // waits until one of the other requests is answered
    cr_assert_geq(tally.ok, 1u);
    cr_assert_eq(inferd_wait(client, NULL), INFERD_OK);
    cr_assert_eq(tally.ok, 2u);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

Test(client, does_not_block_on_a_daemon_that_does_not_read)
{
    struct gate gate = {.open = false};
    struct fake_daemon *daemon = fake_daemon_start(
        &(struct fake_options){.on_frame = wait_for_gate, .context = &gate, .credit = 500});
    inferd_client *client = client_case_connect(daemon);
    uint8_t bytes[15000];
    fill_pattern(bytes, sizeof bytes, 1);
    inferd_tensor in = bytes_tensor("in", bytes, sizeof bytes);
    inferd_request request = {.model = "echo", .inputs = &in, .input_count = 1};
    struct tally tally = {0};
    struct async async = {&tally, 0};
    unsigned started = 0;
    for (; started < 500; started++) // 7.5 MB, far more than the socket buffer holds
        if (inferd_infer_async(client, &request, count_answer, &async, NULL, NULL) != INFERD_OK)
            break;
    cr_assert_eq(started, 500u);
    cr_assert((inferd_events(client) & POLLOUT) != 0);
    inferd_close(client);
    gate.open = true;
    fake_daemon_stop(daemon);
}

// --- callbacks that call the library ---

struct chain {
    inferd_client *client;
    unsigned left, done;
    bool blocking;
};

static void go_on(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct chain *chain = context;
    cr_assert_eq(err->code, INFERD_OK);
    inferd_result_free(result);
    chain->done++;
    if (chain->left == 0)
        return;
    chain->left--;
    int32_t number = 1;
    inferd_tensor in = client_case_tensor(&number);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1};
    if (chain->blocking)
        check_grow(chain->client, 100);
    cr_assert_eq(inferd_infer_async(chain->client, &request, go_on, chain, NULL, NULL), INFERD_OK);
}

static void run_chain(bool blocking)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    struct chain chain = {.client = client_case_connect(daemon), .left = 100, .blocking = blocking};
    int32_t number = 1;
    inferd_tensor in = client_case_tensor(&number);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(inferd_infer_async(chain.client, &request, go_on, &chain, NULL, NULL),
                     INFERD_OK);
    cr_assert_eq(inferd_wait(chain.client, NULL), INFERD_OK);
    cr_assert_eq(chain.done, 103u);
    inferd_close(chain.client);
    fake_daemon_stop(daemon);
}

Test(client, lets_callbacks_start_requests)
{
    run_chain(false);
}

Test(client, lets_callbacks_wait_for_requests)
{
    run_chain(true);
}

static void close_it(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct chain *chain = context;
    (void)err;
    inferd_result_free(result);
    chain->done++;
    inferd_close(chain->client);
}

Test(client, lets_a_callback_close_the_client)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    struct chain chain = {.client = client_case_connect(daemon)};
    int32_t number = 1;
    inferd_tensor in = client_case_tensor(&number);
    inferd_request request = {.model = "grow", .inputs = &in, .input_count = 1};
    for (int i = 0; i < 3; i++)
        cr_assert_eq(inferd_infer_async(chain.client, &request, close_it, &chain, NULL, NULL),
                     INFERD_OK);
    inferd_result *result = NULL;
    struct inferd_error err;
    cr_assert_eq(inferd_infer(chain.client, &request, &result, &err), INFERD_CANCELLED);
    cr_assert_null(result);
    cr_assert_eq(chain.done, 1u, "no callback after inferd_close()");
    fake_daemon_stop(daemon);
}

// --- memory that the client reuses ---

Test(client, needs_no_more_memory_after_warming_up)
{
    struct fake_daemon *daemon = fake_daemon_start(&(struct fake_options){0});
    inferd_client *client = client_case_connect(daemon);
    uint8_t bytes[1000];
    fill_pattern(bytes, sizeof bytes, 1);
    inferd_tensor in = bytes_tensor("in", bytes, sizeof bytes);
    inferd_request request = {.model = "echo", .inputs = &in, .input_count = 1};
    size_t used[2] = {0};
    int failed = 0;
    for (int i = 0; i <= 1000; i++) { // the loop has no assertion, because assertions allocate
        inferd_result *result = NULL;
        failed += inferd_infer(client, &request, &result, NULL) != INFERD_OK;
        if (i == 100)
            used[0] = mallinfo2().uordblks;
        if (i == 1000)
            used[1] = mallinfo2().uordblks;
        inferd_result_free(result);
    }
    cr_assert_eq(failed, 0);
    cr_assert_eq(used[0], used[1], "%zu bytes before, %zu after", used[0], used[1]);
    inferd_close(client);
    fake_daemon_stop(daemon);
}

static void *use_a_client(void *context)
{
    struct fake_daemon *daemon = context;
    inferd_client *client = client_case_connect(daemon);
    for (unsigned i = 0; i < 50; i++)
        check_echo(client, 10 + i * 2000, i);
    check_grow(client, 2000000);
    inferd_close(client);
    return NULL;
}

Test(client, is_one_of_many_in_threads)
{
    enum {
        THREADS = 4
    };
    struct fake_daemon *daemons[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        daemons[i] = fake_daemon_start(&(struct fake_options){0});
        cr_assert_eq(pthread_create(&threads[i], NULL, use_a_client, daemons[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        fake_daemon_stop(daemons[i]);
    }
}
