// SPDX-License-Identifier: Apache-2.0
// Which thread may write to a connection.
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/thread.h"
#include "daemon/output/output_queue.h"
#include "daemon/output/reply_writer.h"

static struct inf_pool *pool;
static struct inf_reply_writer_returns *returns;
static struct inf_reply_writer *writer;
static int ends[2]; // the socket of the writer, and that of the client
static int owner;

static void start_test(void)
{
    struct inf_error err;
    int small = 4096;
    cr_assert_eq(inf_pool_create(&pool, 16 << 20, &err), INF_OK);
    cr_assert_eq(inf_reply_writer_returns_create(&returns, pool, &err), INF_OK);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    cr_assert_eq(inf_reply_writer_create(&writer, returns, ends[0], &owner, &err), INF_OK);
    inf_role_enter_loop();
}

static void end_test(void)
{
    inf_role_enter_loop();
    if (writer != NULL)
        inf_reply_writer_close(writer);
    inf_reply_writer_unref(&writer);
    inf_reply_writer_returns_destroy(&returns);
    inf_pool_destroy(&pool);
    close(ends[1]);
    inf_role_leave();
}

TestSuite(writer, .init = start_test, .fini = end_test, .timeout = 60);

static bool is_told(void)
{
    struct pollfd fd = {.fd = inf_reply_writer_returns_fd(returns), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void write_text(const char *text)
{
    const struct iovec part = {(void *)text, strlen(text)};
    inf_reply_writer_write(writer, &part, 1, 0);
}

static void expect_text(const char *text)
{
    char bytes[64];
    ssize_t size = recv(ends[1], bytes, sizeof bytes, MSG_DONTWAIT);
    cr_assert_eq(size, (ssize_t)strlen(text));
    cr_expect_arr_eq(bytes, text, strlen(text));
}

Test(writer, lets_one_worker_in_at_a_time)
{
    cr_assert(inf_reply_writer_enter_worker(writer));
    cr_expect_not(inf_reply_writer_enter_worker(writer));
    write_text("one");
    expect_text("one");
    cr_assert(inf_reply_writer_enter_worker(writer), "it has left");
    inf_reply_writer_leave_worker(writer);
    cr_expect_not(is_told(), "nothing is left to be done");
    inf_role_enter_loop();
    cr_expect_not(inf_reply_writer_busy(writer));
}

Test(writer, excludes_workers_while_the_loop_is_in)
{
    inf_role_enter_loop();
    cr_assert(inf_reply_writer_enter_loop(writer));
    cr_expect(inf_reply_writer_enter_loop(writer), "it is in already");
    cr_expect(inf_reply_writer_busy(writer));
    cr_expect_not(inf_reply_writer_enter_worker(writer));
    inf_reply_writer_leave_loop(writer);
    cr_expect(inf_reply_writer_enter_worker(writer));
    inf_reply_writer_leave_worker(writer);
}

Test(writer, returns_to_a_loop_that_wants_to_enter)
{
    struct inf_reply_writer_rest rest;
    inf_role_enter_loop();
    cr_assert(inf_reply_writer_enter_worker(writer));
    cr_expect_not(inf_reply_writer_enter_loop(writer));
    cr_expect_not(inf_reply_writer_enter_loop(writer), "asked again");
    cr_expect_not(inf_reply_writer_returns_next(returns, &rest), "the worker is still in");
    write_text("all");
    expect_text("all");
    cr_assert(is_told());
    cr_expect_not(inf_reply_writer_enter_worker(writer), "it is the loop's turn");
    cr_assert(inf_reply_writer_returns_next(returns, &rest));
    cr_expect_eq(rest.owner, &owner);
    cr_expect_null(rest.buffer);
    cr_expect_not(inf_reply_writer_returns_next(returns, &rest));
    cr_expect(inf_reply_writer_enter_loop(writer));
    inf_reply_writer_leave_loop(writer);
}

Test(writer, passes_the_unwritten_rest_to_the_loop)
{
    static uint8_t sent[100000];
    static uint8_t got[sizeof sent];
    struct inf_reply_writer_rest rest;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(i * 7 + i / 256);
    inf_role_enter_loop();
    cr_assert(inf_reply_writer_enter_worker(writer));
    const struct iovec parts[] = {{sent, 10}, {sent + 10, sizeof sent - 10}};
    inf_reply_writer_write(writer, parts, 2, 0);
    cr_assert(is_told());
    cr_assert(inf_reply_writer_returns_next(returns, &rest));
    cr_assert_not_null(rest.buffer);
    size_t first = 0;
    ssize_t part;
    while ((part = recv(ends[1], got + first, sizeof got - first, MSG_DONTWAIT)) > 0)
        first += (size_t)part;
    cr_assert_gt(first, 0);
    cr_assert_eq(first + rest.size_bytes, sizeof sent);
    memcpy(got + first, rest.buffer, rest.size_bytes);
    cr_expect_arr_eq(got, sent, sizeof sent);
    inf_pool_release(pool, rest.buffer, rest.size_bytes);
}

Test(writer, passes_the_whole_frame_on_if_the_socket_is_full)
{
    static const uint8_t bytes[70000];
    struct inf_reply_writer_rest rest;
    inf_role_enter_loop();
    while (send(ends[0], bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    cr_assert_eq(errno, EAGAIN);
    cr_assert(inf_reply_writer_enter_worker(writer));
    write_text("later");
    cr_assert(inf_reply_writer_returns_next(returns, &rest));
    cr_assert_eq(rest.size_bytes, 5);
    cr_expect_arr_eq(rest.buffer, "later", 5);
    inf_pool_release(pool, rest.buffer, rest.size_bytes);
}

Test(writer, is_closed_by_the_worker_that_is_in)
{
    struct inf_reply_writer *held = inf_reply_writer_ref(writer);
    char byte;
    inf_role_enter_loop();
    cr_assert(inf_reply_writer_enter_worker(writer));
    inf_reply_writer_close(writer);
    inf_reply_writer_unref(&writer);
    cr_expect_eq(recv(ends[1], &byte, 1, MSG_DONTWAIT), -1, "the writer still owns the descriptor");
    const struct iovec part = {(void *)"end", 3};
    inf_reply_writer_write(held, &part, 1, 0);
    expect_text("end");
    cr_expect_eq(recv(ends[1], &byte, 1, MSG_DONTWAIT), 0, "and is closed now");
    cr_expect_not(inf_reply_writer_enter_worker(held));
    cr_expect_not(is_told());
    inf_reply_writer_unref(&held);
}

Test(writer, drops_the_rest_if_it_is_closed)
{
    static const uint8_t bytes[70000];
    struct inf_reply_writer_rest rest;
    inf_role_enter_loop();
    cr_assert(inf_reply_writer_enter_worker(writer));
    const struct iovec part = {(void *)bytes, sizeof bytes};
    inf_reply_writer_write(writer, &part, 1, 0);
    inf_reply_writer_close(writer);
    inf_reply_writer_unref(&writer);
    cr_expect_not(inf_reply_writer_returns_next(returns, &rest), "there is no client to write to");
}

Test(writer, ignores_a_disconnected_client)
{
    inf_role_enter_loop();
    close(ends[1]);
    ends[1] = -1;
    cr_assert(inf_reply_writer_enter_worker(writer));
    write_text("absent");
    cr_expect_not(is_told());
    cr_expect_not(inf_reply_writer_busy(writer));
}

// --- many threads that write to one connection ---

#define WORKERS 3
#define FRAMES  4000
#define FRAME   600 // size of a frame in bytes; all bytes of a frame have the same value

static atomic_uint written;

// Thread that writes a frame whenever the reply writer gives it the right to write to the socket.
static void write_frames(void *context)
{
    struct inf_reply_writer *shared = context;
    uint8_t frame[FRAME];
    for (unsigned number; (number = atomic_fetch_add(&written, 1)) < FRAMES;) {
        memset(frame, (int)(number % 251), sizeof frame);
        const struct iovec parts[] = {{frame, 100}, {frame + 100, FRAME - 100}};
        while (!inf_reply_writer_enter_worker(shared))
            sched_yield();
        inf_reply_writer_write(shared, parts, 2, 0);
    }
    inf_reply_writer_unref(&shared);
}

struct reader {
    int fd;
    unsigned frames, torn;
};

static void read_frames(void *context)
{
    struct reader *reader = context;
    uint8_t frame[FRAME];
    while (recv(reader->fd, frame, FRAME, MSG_WAITALL) == FRAME) {
        reader->frames++;
        for (size_t i = 1; i < FRAME; i++)
            reader->torn += frame[i] != frame[0];
    }
}

// Several workers and the loop write frames, and any of them may find the socket full. Expect that
// every frame arrives complete.
Test(writer, never_mixes_frames_of_several_threads)
{
    struct inf_thread threads[WORKERS + 1];
    struct inf_output_store store;
    struct inf_output output = {0};
    struct reader reader = {.fd = ends[1]};
    struct inf_reply_writer_rest rest;
    struct inf_error err;
    unsigned own = 0;
    inf_role_enter_loop();
    inf_output_store_init(&store, pool);
    cr_assert_eq(inf_thread_start(&threads[WORKERS], "reader", read_frames, &reader, &err), INF_OK);
    for (int i = 0; i < WORKERS; i++)
        cr_assert_eq(inf_thread_start(&threads[i], "writer", write_frames,
                                      inf_reply_writer_ref(writer), &err),
                     INF_OK);
    while (atomic_load(&written) < FRAMES + WORKERS || inf_reply_writer_busy(writer) ||
           output.first != NULL) {
        uint8_t frame[FRAME];
        memset(frame, 0xff, sizeof frame);
        const struct inf_output_item item = {.head = {frame, sizeof frame}};
        while (inf_reply_writer_returns_next(returns, &rest))
            if (rest.buffer != NULL)
                cr_assert_eq(
                    inf_output_push_rest(&output, &store,
                                         &(struct inf_output_item){.buffer = rest.buffer,
                                                                   .capacity = rest.size_bytes},
                                         rest.partial, &err),
                    INF_OK);
        if (output.first == NULL && own < FRAMES / 8 && atomic_load(&written) < FRAMES) {
            cr_assert_eq(inf_output_push(&output, &store, &item, &err), INF_OK);
            own++;
        }
        // Ask for the right to write to the socket only if frames are queued, as the code of a
        // connection does.
        bool in = inf_reply_writer_enter_loop(writer);
        if (in && inf_output_flush(&output, &store, ends[0], NULL) == INF_OUTPUT_EMPTY)
            inf_reply_writer_leave_loop(writer);
        sched_yield();
    }
    inf_reply_writer_close(writer);
    inf_reply_writer_unref(&writer);
    for (int i = 0; i <= WORKERS; i++)
        inf_thread_join(&threads[i]);
    inf_output_store_fini(&store);
    cr_expect_eq(reader.frames, FRAMES + own);
    cr_expect_eq(reader.torn, 0);
}
