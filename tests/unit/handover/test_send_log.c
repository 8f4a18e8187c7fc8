// SPDX-License-Identifier: Apache-2.0
// The send log: what the next process learns from it after each step.
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/output/send_log.h"

static struct inf_sent_record record;
static struct inf_pending pendings[INF_LIMIT_KEPT_PENDINGS];
static struct inf_send_log send_log;
static uint8_t bytes[1 << 20];
static int ends[2];

static void start_test(void)
{
    memset(&record, 0, sizeof record);
    memset(pendings, 0, sizeof pendings);
    inf_send_log_init(&send_log, &record, pendings, true);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

static void end_test(void)
{
    close(ends[0]);
    close(ends[1]);
}

TestSuite(send_log, .init = start_test, .fini = end_test);

static uint32_t add_entry(uint64_t stream_id, bool direct)
{
    const struct inf_pending frame = {
        .stream_id = stream_id, .read_number = 3, .read_end = 77, .method = 6, .type = 3};
    return inf_send_log_add(&send_log, &frame, direct);
}

static uint8_t find_state(uint32_t pending_plus_1)
{
    return atomic_load(&pendings[pending_plus_1 - 1].state);
}

// Sends frames of these sizes with one call, as parts of `bytes`.
static ssize_t send_frames(const struct inf_sent_frame *frames, uint32_t count)
{
    struct iovec part = {.iov_base = bytes};
    for (uint32_t i = 0; i < count; i++)
        part.iov_len += frames[i].bytes;
    const struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return inf_send_log_send(&send_log, ends[0], &message, frames, count, MSG_DONTWAIT);
}

// What another process finds in the same memory.
static struct inf_sent_rest recover_log(struct inf_send_log *other)
{
    struct inf_sent_rest rest;
    inf_send_log_init(other, &record, pendings, false);
    cr_assert(inf_send_log_recover(other, &rest));
    return rest;
}

Test(send_log, has_an_entry_for_each_frame_until_its_answer_is_sent)
{
    struct inf_send_log other;
    uint32_t first = add_entry(1, false), second = add_entry(2, false);
    cr_assert(first != 0 && second != 0 && first != second);
    cr_assert_eq(pendings[first - 1].stream_id, 1);
    cr_assert_eq(pendings[first - 1].read_number, 3);
    cr_assert_eq(pendings[first - 1].read_end, 77);
    cr_assert_eq(pendings[first - 1].method, 6);
    cr_assert_eq(pendings[first - 1].type, 3);
    cr_assert_eq(recover_log(&other).bytes, 0);
    cr_assert_eq(find_state(first), INF_PENDING_TAKEN);
    inf_pending_begin(&pendings[second - 1]);
    cr_assert_eq(find_state(second), INF_PENDING_BEGUN);

    const struct inf_sent_frame frame = {.bytes = 200, .pending_plus_1 = (uint16_t)first};
    cr_assert_eq(send_frames(&frame, 1), 200);
    cr_assert_eq(find_state(first), INF_PENDING_FREE);
    cr_assert_eq(find_state(second), INF_PENDING_BEGUN);
    inf_pending_begin(&pendings[first - 1]);
    cr_assert_eq(find_state(first), INF_PENDING_FREE, "a worker that is late changes nothing");
    cr_assert_eq(recover_log(&other).bytes, 0);
    cr_assert_eq(add_entry(3, false), first, "a free entry is used again");
}

Test(send_log, keeps_the_entries_of_workers_apart)
{
    for (uint32_t i = 0; i < INF_SEND_LOG_DIRECT; i++)
        cr_assert_eq(add_entry(i + 1, true), i + 1);
    cr_assert_eq(add_entry(9, true), 0);
    const struct inf_sent_frame frame = {.bytes = 10, .pending_plus_1 = 2};
    cr_assert_eq(send_frames(&frame, 1), 10);
    cr_assert_eq(add_entry(9, true), 2);
    cr_assert_gt(add_entry(10, false), INF_SEND_LOG_DIRECT);
}

Test(send_log, is_bounded)
{
    uint32_t count = 0;
    while (add_entry(count + 1, false) != 0)
        count++;
    cr_assert_eq(count, INF_LIMIT_KEPT_PENDINGS - INF_SEND_LOG_DIRECT);
    inf_send_log_remove(&send_log, 100);
    inf_send_log_remove(&send_log, 100);
    inf_send_log_remove(&send_log, 0);
    cr_assert_eq(add_entry(7777, false), 100);
    cr_assert_eq(add_entry(7778, false), 0, "an entry that is removed twice is free once");
}

// The process is killed between the system call and the record of its result.
Test(send_log, tells_what_was_sent_when_the_process_is_killed)
{
    struct inf_send_log other;
    uint32_t first = add_entry(1, false), second = add_entry(2, false), third = add_entry(3, false);
    struct inf_sent_half *half = &record.halves[1 - (record.active & 1)];
    *half = (struct inf_sent_half){
        .message = {.msg_len = 30},
        .count = 3,
        .frames = {{.stream_id = 1, .bytes = 10, .pending_plus_1 = (uint16_t)first},
                   {.stream_id = 2, .bytes = 15, .pending_plus_1 = (uint16_t)second},
                   {.stream_id = 3,
                    .bytes = 20,
                    .pending_plus_1 = (uint16_t)third,
                    .flags = INF_SENT_FILL}}};
    record.active = 1 - (record.active & 1);
    struct inf_sent_rest rest = recover_log(&other);
    cr_assert_eq(find_state(first), INF_PENDING_FREE);
    cr_assert_eq(find_state(second), INF_PENDING_FREE);
    cr_assert_eq(find_state(third), INF_PENDING_TAKEN);
    cr_assert_eq(rest.bytes, 15);
    cr_assert(rest.fill);
    // A process that is killed while it recovers finds the same.
    rest = recover_log(&other);
    cr_assert_eq(rest.bytes, 15);

    // An entry that was used again meanwhile has another stream, and stays.
    pendings[first - 1].stream_id = 4;
    atomic_store(&pendings[first - 1].state, INF_PENDING_TAKEN);
    (void)recover_log(&other);
    cr_assert_eq(find_state(first), INF_PENDING_TAKEN);

    // Before the call, nothing was sent.
    half->message.msg_len = 0;
    rest = recover_log(&other);
    cr_assert_eq(rest.bytes, 0);
    cr_assert_eq(find_state(third), INF_PENDING_TAKEN);
}

Test(send_log, knows_the_rest_of_a_frame_that_the_socket_took_in_part)
{
    struct inf_send_log other;
    uint32_t entry = add_entry(5, false);
    struct inf_sent_frame frame = {.bytes = sizeof bytes, .pending_plus_1 = (uint16_t)entry};
    ssize_t sent = send_frames(&frame, 1);
    cr_assert(sent > 0 && (size_t)sent < sizeof bytes);
    struct inf_sent_rest rest = recover_log(&other);
    cr_assert_eq(rest.bytes, sizeof bytes - (size_t)sent);
    cr_assert_not(rest.fill);
    cr_assert_eq(find_state(entry), INF_PENDING_TAKEN);
    // The socket is full: nothing changes.
    frame.bytes -= (uint32_t)sent;
    frame.flags = INF_SENT_PARTIAL;
    cr_assert_eq(send_frames(&frame, 1), -1);
    cr_assert(errno == EAGAIN || errno == EWOULDBLOCK);
    cr_assert_eq(recover_log(&other).bytes, sizeof bytes - (size_t)sent);
    // A frame that is not begun leaves nothing.
    memset(&record, 0, sizeof record);
    frame.flags = 0;
    cr_assert_eq(send_frames(&frame, 1), -1);
    cr_assert_eq(recover_log(&other).bytes, 0);
}

// The kernel takes this many bytes whole or not at all, whatever room the socket has.
Test(send_log, sends_small_frames_whole_or_not_at_all)
{
    const struct inf_sent_frame frame = {.bytes = INF_SEND_LOG_WHOLE_BYTES};
    for (size_t first = 1; first < 64; first += 7) {
        close(ends[0]);
        close(ends[1]);
        cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        const struct inf_sent_frame odd = {.bytes = (uint32_t)(first * 331)};
        cr_assert_eq(send_frames(&odd, 1), (ssize_t)odd.bytes);
        ssize_t sent;
        while ((sent = send_frames(&frame, 1)) > 0)
            cr_assert_eq(sent, INF_SEND_LOG_WHOLE_BYTES);
        cr_assert_eq(sent, -1);
    }
}

Test(send_log, refuses_a_damaged_record)
{
    struct inf_send_log other;
    struct inf_sent_rest rest;
    inf_send_log_init(&other, &record, pendings, false);
    record.halves[0].count = INF_SEND_LOG_FRAMES + 1;
    cr_assert_not(inf_send_log_recover(&other, &rest));
    record.halves[0].count = 1;
    record.halves[0].frames[0].pending_plus_1 = INF_LIMIT_KEPT_PENDINGS + 1;
    cr_assert_not(inf_send_log_recover(&other, &rest));
    record.halves[0].frames[0].pending_plus_1 = INF_LIMIT_KEPT_PENDINGS;
    record.halves[0].frames[0].bytes = 10;
    record.halves[0].message.msg_len = 11;
    cr_assert_not(inf_send_log_recover(&other, &rest));
    record.halves[0].message.msg_len = 10;
    cr_assert(inf_send_log_recover(&other, &rest));
}

Test(send_log, finds_the_free_entries_of_another_process)
{
    struct inf_send_log other;
    uint32_t first = add_entry(1, false), second = add_entry(2, false), third = add_entry(3, false);
    inf_send_log_remove(&send_log, second);
    inf_send_log_init(&other, &record, pendings, false);
    const struct inf_pending frame = {.stream_id = 9};
    cr_assert_eq(inf_send_log_add(&other, &frame, false), second);
    cr_assert_eq(inf_send_log_add(&other, &frame, false), third + 1);
    cr_assert_eq(find_state(first), INF_PENDING_TAKEN);
}
