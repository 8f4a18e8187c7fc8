// SPDX-License-Identifier: Apache-2.0
// The output queue of a connection, and the buffer pool.
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/output/output_queue.h"

static struct inf_pool *pool;
static struct inf_output_store store;
static struct inf_output output;
static int ends[2];

static void start_test(void)
{
    struct inf_error err;
    int small = 4096;
    cr_assert_eq(inf_pool_create(&pool, 16 << 20, &err), INF_OK);
    inf_output_store_init(&store, pool);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    inf_role_enter_loop();
}

static void end_test(void)
{
    inf_role_enter_loop();
    inf_output_clear(&output, &store);
    inf_output_store_fini(&store);
    inf_pool_destroy(&pool);
    close(ends[0]);
    close(ends[1]);
}

TestSuite(output, .init = start_test, .fini = end_test);

// Value of the next byte; all frames together contain one sequence of bytes.
static uint8_t next_byte;

// Queues a frame whose bytes continue the sequence that `next_byte` counts.
static void push_frame(size_t head_bytes, size_t data_bytes) INF_ON_LOOP
{
    static uint8_t head[70000];
    struct inf_output_item item = {.head = {head, head_bytes}};
    struct inf_error err;
    for (size_t i = 0; i < head_bytes; i++)
        head[i] = next_byte++;
    if (data_bytes > 0) {
        item.buffer = inf_pool_acquire(pool, data_bytes);
        item.data = (struct inf_span){item.buffer, data_bytes};
        item.capacity = data_bytes;
        for (size_t i = 0; i < data_bytes; i++)
            item.buffer[i] = next_byte++;
    }
    cr_assert_eq(inf_output_push(&output, &store, &item, &err), INF_OK);
}

// Reads `size` bytes from the socket and checks that they continue the sequence. Flushes the queue
// whenever the socket has room.
static void drain_output(size_t size) INF_ON_LOOP
{
    uint8_t bytes[1777];
    uint8_t wanted = 0;
    size_t got = 0;
    while (got < size) {
        inf_output_flush(&output, &store, ends[0], NULL);
        ssize_t part = recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT);
        cr_assert_gt(part, 0);
        for (ssize_t i = 0; i < part; i++)
            cr_assert_eq(bytes[i], wanted++);
        got += (size_t)part;
    }
    cr_assert_eq(got, size);
}

Test(output, is_written_completely_and_in_order_through_a_small_socket_buffer)
{
    static const size_t sizes[][2] = {{24, 0},      {24, 1},    {960, 64}, {961, 0},
                                      {65560, 100}, {24, 9999}, {30, 1},   {24, 1 << 20}};
    size_t total = 0;
    inf_role_enter_loop();
    for (int round = 0; round < 5; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            push_frame(sizes[i][0], sizes[i][1]);
            total += sizes[i][0] + sizes[i][1];
        }
    cr_assert_eq(output.bytes, total);
    cr_assert_eq(inf_output_flush(&output, &store, ends[0], NULL), INF_OUTPUT_BLOCKED);
    cr_assert_neq(output.first_since_ns, 0);
    drain_output(total);
    cr_assert_eq(inf_output_flush(&output, &store, ends[0], NULL), INF_OUTPUT_EMPTY);
    cr_assert_eq(output.bytes, 0);
    cr_assert_eq(output.first_since_ns, 0);
    cr_assert_null(output.first);
    cr_assert_null(output.last);
}

Test(output, many_small_frames_take_few_system_calls)
{
    inf_role_enter_loop();
    for (int i = 0; i < 40; i++)
        push_frame(24, 3);
    drain_output(40 * 27);
    cr_assert_eq(inf_output_flush(&output, &store, ends[0], NULL), INF_OUTPUT_EMPTY);
}

Test(output, reports_a_disconnected_client)
{
    inf_role_enter_loop();
    push_frame(24, 10);
    close(ends[1]);
    cr_assert_eq(inf_output_flush(&output, &store, ends[0], NULL), INF_OUTPUT_BROKEN);
    ends[1] = -1;
}

Test(output, pool_keeps_buffers_and_their_alignment)
{
    static const size_t sizes[] = {1, 4096, 4097, 65536, INF_POOL_BYTES_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *buffer = inf_pool_acquire(pool, sizes[i]);
        cr_assert_not_null(buffer);
        cr_assert_eq((uintptr_t)buffer % 64, 0);
        // Also write to the 64 bytes of slack behind the buffer. If they do not exist, ASan reports
        // an error.
        memset(buffer, 0xff, sizes[i] + 64);
        inf_pool_release(pool, buffer, sizes[i]);
        cr_assert_eq(inf_pool_acquire(pool, sizes[i]), buffer, "not used again");
        inf_pool_release(pool, buffer, sizes[i]);
    }
}

// Several frames share one buffer, which the last frame owns. Given that the others are dropped,
// expect that the partly written frame keeps the buffer. ASan checks this.
Test(output, drop_unsent_keeps_the_partly_written_frame_and_its_buffer)
{
    static const uint8_t head[24];
    struct inf_error err;
    inf_role_enter_loop();
    for (size_t read = 1; read < 60000; read += 7777) {
        uint8_t *buffer = inf_pool_acquire(pool, 100000);
        uint8_t got[4096];
        memset(buffer, 0x5a, 100000);
        for (size_t piece = 0; piece < 5; piece++) {
            struct inf_output_item item = {.head = {head, sizeof head},
                                           .data = {buffer + piece * 20000, 20000}};
            if (piece == 4) {
                item.buffer = buffer;
                item.capacity = 100000;
            }
            cr_assert_eq(inf_output_push(&output, &store, &item, &err), INF_OK);
        }
        size_t total = 0;
        ssize_t part;
        while (total < read) {
            cr_assert_eq(inf_output_flush(&output, &store, ends[0], NULL), INF_OUTPUT_BLOCKED);
            part = recv(ends[1], got, INF_MIN(sizeof got, read - total), 0);
            cr_assert_gt(part, 0);
            total += (size_t)part;
        }
        inf_output_drop_unsent(&output, &store);
        cr_assert_leq(output.bytes, 20024);
        push_frame(24, 100);
        enum inf_output_state state;
        do {
            state = inf_output_flush(&output, &store, ends[0], NULL);
            while ((part = recv(ends[1], got, sizeof got, MSG_DONTWAIT)) > 0)
                total += (size_t)part;
        } while (state == INF_OUTPUT_BLOCKED);
        cr_assert_eq(total % 20024, 124);
        cr_assert_lt(total, 5 * 20024);
    }
}
