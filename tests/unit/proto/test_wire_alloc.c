// SPDX-License-Identifier: Apache-2.0
// Tests that a request in steady state allocates nothing. The test replaces malloc() and related
// functions with functions that count their calls, in this process and the libraries that it has
// loaded.
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "proto/wire/assembler.h"
#include "proto/wire/message.h"
#include "tests/support/wire/wire_samples.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);

static atomic_uint calls;

void *malloc(size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    atomic_fetch_add(&calls, 1);
    return __libc_realloc(memory, size);
}

static _Alignas(64) uint8_t pool[512];

static void *pool_alloc(void *context, size_t size)
{
    (void)context;
    return size <= sizeof pool ? pool : NULL;
}

static void pool_free(void *context, void *memory, size_t size)
{
    (void)context;
    (void)memory;
    (void)size;
}

// Writes the frame of the sample request and returns the frame's size.
static size_t put_request(uint8_t *frame, size_t room, struct inf_scratch *scratch)
{
    static union inf_message message;
    wire_sample(&message, INF_MESSAGE_INFER_REQUEST);
    size_t size = 0;
    cr_assert_eq(inf_message_encode(&message, INF_MESSAGE_INFER_REQUEST,
                                    frame + INF_FRAME_HEADER_BYTES, room, &size, scratch, NULL),
                 INF_OK);
    struct inf_frame_header header = {.meta_bytes = (uint32_t)size,
                                      .data_bytes = 420,
                                      .stream_id = 1,
                                      .type = INF_FRAME_REQUEST,
                                      .method = INF_METHOD_MODEL_INFER};
    inf_frame_header_encode(&header, frame);
    return INF_FRAME_HEADER_BYTES + size + 420;
}

Test(wire_alloc, counts)
{
    unsigned before = calls;
    void *volatile memory = malloc(1);
    free(memory);
    cr_assert_eq(calls, before + 1);
}

Test(wire_alloc, request_and_reply_allocate_nothing)
{
    static uint8_t frame_bytes[4096];
    static union inf_message request;
    static union inf_message reply;
    struct inf_scratch *scratch;
    cr_assert_eq(inf_scratch_create(&scratch, NULL), INF_OK);
    struct inf_assembler assembler;
    inf_assembler_init(&assembler, &(struct inf_assembler_limits){65536, 1048576},
                       &(struct inf_assembler_memory){pool_alloc, pool_free, NULL});
    size_t size = put_request(frame_bytes, 3000, scratch);
    wire_sample(&reply, INF_MESSAGE_INFER_REPLY);

    unsigned after_warm_up = 0;
    for (int i = 0; i < 100; i++) {
        size_t used = 0;
        struct inf_frame frame;
        uint8_t buffer[1024];
        struct inf_span span = {frame_bytes, size};
        if (i == 1)
            after_warm_up = calls;
        enum inf_code code = inf_assembler_feed(&assembler, span, &used, NULL);
        if (code == INF_OK)
            inf_assembler_take(&assembler, &frame);
        if (code == INF_OK)
            code =
                inf_message_decode(&request, INF_MESSAGE_INFER_REQUEST, frame.meta, scratch, NULL);
        if (code == INF_OK)
            code = inf_infer_request_resolve_inline(&request.infer_request, 420, NULL);
        if (code == INF_OK)
            code = inf_message_encode(&reply, INF_MESSAGE_INFER_REPLY, buffer, sizeof buffer, &used,
                                      scratch, NULL);
        // Call an assertion only after a failure, because assertions of Criterion allocate even if
        // they pass.
        if (code != INF_OK)
            cr_assert_fail("round %d", i);
    }
    unsigned calls_made = calls - after_warm_up;
    cr_assert_eq(calls_made, 0, "%u allocations", calls_made);
    inf_assembler_fini(&assembler);
    inf_scratch_destroy(&scratch);
}
