// SPDX-License-Identifier: Apache-2.0
// The send log of a connection.
//
// The problem: a process that is killed cannot say what it has sent. If the next process answers a
// request again, the client gets two answers; if it does not, the client may wait for ever.
//
// The idea: everything that the next process must know is in shared memory before it is true for
// the client. Each accepted frame has an entry, which is freed when its answer is sent. A send is
// announced first: which entries its frames answer, and how many bytes each frame has. The count of
// sent bytes is written by the kernel: sendmmsg() stores it in msg_len, which lies in the shared
// memory, before the process can be killed at its return to user mode. So the next process knows to
// the byte what the client can read:
//
//   announce {entry 7: 200 bytes, entry 9: 300 bytes}, msg_len 0  --killed-->  nothing was sent
//   sendmmsg(): msg_len 500                                       --killed-->  7 and 9 are answered
//   settle: 7 and 9 are freed, nothing is announced
//
// The announcement has two halves. A new one is written to the half that is not active, and becomes
// valid by one store to `active`. Freeing an entry again is harmless: the announcement has the
// stream of the entry too, and an entry that was reused meanwhile has another one.
//
// The first INF_SEND_LOG_DIRECT entries are for requests whose answer a worker may send. The thread
// that sends the answer frees such an entry, and the loop searches these entries for a free one.
// All other entries belong to the loop, which keeps the free ones in a list.
#include "daemon/output/send_log.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "proto/core/span.h"

static void set_state(struct inf_pending *pending, enum inf_pending_state state)
{
    atomic_store_explicit(&pending->state, (uint8_t)state, memory_order_release);
}

static bool is_free(const struct inf_pending *pending)
{
    return atomic_load_explicit(&pending->state, memory_order_acquire) == INF_PENDING_FREE;
}

static void push_free(struct inf_send_log *log, uint32_t index)
{
    log->pendings[index].value = log->first_free;
    log->first_free = index + 1;
}

void inf_send_log_init(struct inf_send_log *log, struct inf_sent_record *record,
                       struct inf_pending *pendings, bool fresh)
{
    *log =
        (struct inf_send_log){.record = record, .pendings = pendings, .used = INF_SEND_LOG_DIRECT};
    if (fresh)
        return;
    uint32_t used = INF_LIMIT_KEPT_PENDINGS;
    while (used > INF_SEND_LOG_DIRECT && is_free(&pendings[used - 1]))
        used--;
    log->used = used;
    for (uint32_t i = used; i > INF_SEND_LOG_DIRECT; i--)
        if (is_free(&pendings[i - 1]))
            push_free(log, i - 1);
}

// Finds a free entry. Returns INF_LIMIT_KEPT_PENDINGS if there is none.
static uint32_t find_entry(struct inf_send_log *log, bool direct)
{
    if (direct) {
        for (uint32_t i = 0; i < INF_SEND_LOG_DIRECT; i++)
            if (is_free(&log->pendings[i]))
                return i;
        return INF_LIMIT_KEPT_PENDINGS;
    }
    if (log->first_free == 0)
        return log->used < INF_LIMIT_KEPT_PENDINGS ? log->used++ : INF_LIMIT_KEPT_PENDINGS;
    uint32_t index = log->first_free - 1;
    log->first_free = (uint32_t)log->pendings[index].value;
    return index;
}

uint32_t inf_send_log_add(struct inf_send_log *log, const struct inf_pending *frame, bool direct)
{
    uint32_t index = find_entry(log, direct);
    if (index == INF_LIMIT_KEPT_PENDINGS)
        return 0;
    struct inf_pending *pending = &log->pendings[index];
    pending->stream_id = frame->stream_id;
    pending->value = frame->value;
    pending->read_number = frame->read_number;
    pending->read_end = frame->read_end;
    pending->method = frame->method;
    pending->type = frame->type;
    set_state(pending, INF_PENDING_TAKEN);
    return index + 1;
}

void inf_send_log_remove(struct inf_send_log *log, uint32_t pending_plus_1)
{
    if (pending_plus_1 == 0 || is_free(&log->pendings[pending_plus_1 - 1]))
        return;
    set_state(&log->pendings[pending_plus_1 - 1], INF_PENDING_FREE);
    if (pending_plus_1 > INF_SEND_LOG_DIRECT)
        push_free(log, pending_plus_1 - 1);
}

static struct inf_sent_half *find_half(const struct inf_send_log *log, bool active)
{
    uint32_t index = atomic_load_explicit(&log->record->active, memory_order_acquire) & 1;
    return &log->record->halves[active ? index : 1 - index];
}

// Makes the other half valid. The release order keeps everything written to it before this store.
static void flip_halves(struct inf_send_log *log)
{
    uint32_t index = atomic_load_explicit(&log->record->active, memory_order_relaxed) & 1;
    atomic_store_explicit(&log->record->active, 1 - index, memory_order_release);
}

// Announces the frames of the next send. Returns the half that holds them.
static struct inf_sent_half *announce_frames(struct inf_send_log *log, const struct msghdr *message,
                                             const struct inf_sent_frame *frames, uint32_t count)
{
    struct inf_sent_half *half = find_half(log, false);
    half->message.msg_hdr = *message;
    half->message.msg_len = 0;
    half->count = count;
    memcpy(half->frames, frames, count * sizeof frames[0]);
    for (uint32_t i = 0; i < count; i++)
        if (frames[i].pending_plus_1 != 0)
            half->frames[i].stream_id = log->pendings[frames[i].pending_plus_1 - 1].stream_id;
    flip_halves(log);
    return half;
}

// Replaces the announcement by what remains of a frame of which a part is sent (NULL: none).
static void announce_rest(struct inf_send_log *log, const struct inf_sent_frame *rest)
{
    struct inf_sent_half *half = find_half(log, false);
    half->message.msg_len = 0;
    half->count = rest != NULL ? 1 : 0;
    if (rest != NULL)
        half->frames[0] = *rest;
    flip_halves(log);
}

// Returns how many of the first frames `sent` bytes cover whole. *rest is the next frame without
// its bytes that are sent.
static uint32_t count_whole(const struct inf_sent_half *half, uint64_t sent,
                            struct inf_sent_frame *rest)
{
    uint32_t whole = 0;
    while (whole < half->count && sent >= half->frames[whole].bytes)
        sent -= half->frames[whole++].bytes;
    *rest = (struct inf_sent_frame){0};
    if (whole == half->count)
        return whole;
    *rest = half->frames[whole];
    rest->bytes -= (uint32_t)sent;
    rest->flags |= sent > 0 ? INF_SENT_PARTIAL : 0;
    return whole;
}

// Records the result of the announced send. An entry of the loop is put into the list of free
// entries after the announcement that names it is replaced.
static void settle_send(struct inf_send_log *log, uint64_t sent)
{
    const struct inf_sent_half *half = find_half(log, true);
    struct inf_sent_frame rest;
    uint32_t whole = count_whole(half, sent, &rest);
    for (uint32_t i = 0; i < whole; i++)
        if (half->frames[i].pending_plus_1 != 0)
            set_state(&log->pendings[half->frames[i].pending_plus_1 - 1], INF_PENDING_FREE);
    announce_rest(log, (rest.flags & INF_SENT_PARTIAL) != 0 ? &rest : NULL);
    for (uint32_t i = 0; i < whole; i++)
        if (half->frames[i].pending_plus_1 > INF_SEND_LOG_DIRECT)
            push_free(log, half->frames[i].pending_plus_1 - 1u);
}

ssize_t inf_send_log_send(struct inf_send_log *log, int fd, const struct msghdr *message,
                          const struct inf_sent_frame *frames, uint32_t count, int flags)
{
    assert(count > 0 && count <= INF_SEND_LOG_FRAMES);
    struct inf_sent_half *half = announce_frames(log, message, frames, count);
    int result = sendmmsg(fd, &half->message, 1, flags);
    int error = errno;
    uint32_t sent = result == 1 ? half->message.msg_len : 0;
    settle_send(log, sent);
    errno = error;
    return result == 1 ? (ssize_t)sent : -1;
}

bool inf_send_log_recover(struct inf_send_log *log, struct inf_sent_rest *rest)
{
    const struct inf_sent_half *half = find_half(log, true);
    uint64_t total = 0;
    *rest = (struct inf_sent_rest){0};
    if (half->count > INF_SEND_LOG_FRAMES)
        return false;
    for (uint32_t i = 0; i < half->count; i++) {
        if (half->frames[i].pending_plus_1 > INF_LIMIT_KEPT_PENDINGS)
            return false;
        total += half->frames[i].bytes;
    }
    if (half->message.msg_len > total)
        return false;
    struct inf_sent_frame partial;
    uint32_t whole = count_whole(half, half->message.msg_len, &partial);
    for (uint32_t i = 0; i < whole; i++) {
        uint32_t pending = half->frames[i].pending_plus_1;
        if (pending != 0 && log->pendings[pending - 1].stream_id == half->frames[i].stream_id)
            inf_send_log_remove(log, pending);
    }
    if (whole == half->count || (partial.flags & INF_SENT_PARTIAL) == 0)
        return true;
    rest->bytes = partial.bytes;
    rest->fill = (partial.flags & INF_SENT_FILL) != 0;
    return true;
}
