// SPDX-License-Identifier: Apache-2.0
// The output of one connection: a list of frames that are written in order with sendmsg().
//
// The problem: a socket takes as many bytes as fit, anywhere between two frames or inside one.
// Replies may be large, so they must not be copied, and many are small, so one system call per
// frame is too much.
//
// The idea: a frame has a head (header and metadata, copied, mostly into the frame itself) and data
// (borrowed from a pool buffer that the frame owns). `sent_bytes` counts what is written, across
// both. One sendmsg() gathers up to GATHER frames. A frame with a descriptor is sent alone, because
// a receiver gets all descriptors of one message together and could not tell which frame they
// belong to.
//
//   first --> [head|data]  [head]  [head|data]  --> last
//                   ^ sent_bytes: the rest of this frame is written next
//
// A reply in several frames has one buffer, owned by its last frame. So the buffer is released
// exactly when all of its frames are written. inf_output_drop_unsent(), which drops frames behind a
// partly written one, moves the buffer.
#include "daemon/output/output_queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "proto/core/send_fd.h"

// Size of the space inside a queued frame for its header and metadata (the head). The heads of
// inference replies fit; a longer head is stored in a buffer of the pool.
#define HEAD_BYTES 960
// The most unused frame objects that are kept for reuse; together they take 1 MiB.
#define UNUSED_MAX 1024
// The most frames written with one system call.
#define GATHER INF_SEND_LOG_FRAMES

struct inf_output_frame {
    struct inf_output_frame *next;
    uint8_t *head; // header and metadata: points to `own`, or to a buffer of the pool
    size_t head_bytes;
    const uint8_t *data;
    size_t data_bytes;
    // Pool buffer that contains `data`; NULL: a later frame of the same reply owns the buffer.
    uint8_t *buffer;
    size_t capacity;
    size_t sent_bytes; // number of bytes of head and data that are already written
    // True from the first write attempt on; the client may have received a part of the frame.
    bool begun;
    bool partial; // a part of the frame was sent before it was queued, or `sent_bytes` is not 0
    bool fill;
    uint32_t pending_plus_1; // as in struct inf_output_item
    int fd;                  // descriptor sent with the first byte; -1: none
    uint8_t own[HEAD_BYTES];
};

void inf_output_store_init(struct inf_output_store *store, struct inf_pool *pool)
{
    *store = (struct inf_output_store){.pool = pool};
}

void inf_output_store_fini(struct inf_output_store *store)
{
    while (store->unused != NULL) {
        struct inf_output_frame *gone = store->unused;
        store->unused = gone->next;
        free(gone);
    }
    store->unused_count = 0;
}

static void release_frame(struct inf_output_store *store, struct inf_output_frame *frame)
{
    if (frame->head != frame->own)
        inf_pool_release(store->pool, frame->head, frame->head_bytes);
    inf_pool_release(store->pool, frame->buffer, frame->capacity);
    if (frame->fd >= 0)
        close(frame->fd);
    if (store->unused_count >= UNUSED_MAX) {
        free(frame);
        return;
    }
    frame->next = store->unused;
    store->unused = frame;
    store->unused_count++;
}

static struct inf_output_frame *acquire_frame(struct inf_output_store *store, size_t head_bytes)
{
    struct inf_output_frame *frame = store->unused;
    if (frame != NULL) {
        store->unused = frame->next;
        store->unused_count--;
    } else {
        frame = malloc(sizeof *frame);
    }
    if (frame == NULL)
        return NULL;
    frame->next = NULL;
    frame->data = NULL;
    frame->buffer = NULL;
    frame->sent_bytes = 0;
    frame->begun = frame->partial = frame->fill = false;
    frame->pending_plus_1 = 0;
    frame->fd = -1;
    frame->head_bytes = head_bytes;
    frame->head = frame->own;
    if (head_bytes <= HEAD_BYTES)
        return frame;
    frame->head = inf_pool_acquire(store->pool, head_bytes);
    if (frame->head == NULL) {
        frame->head = frame->own;
        release_frame(store, frame);
        return NULL;
    }
    return frame;
}

enum inf_code inf_output_push(struct inf_output *output, struct inf_output_store *store,
                              const struct inf_output_item *item, struct inf_error *err)
{
    struct inf_output_frame *frame = acquire_frame(store, item->head.size);
    if (frame == NULL) {
        inf_pool_release(store->pool, item->buffer, item->capacity);
        if (item->fd_plus_1 != 0)
            close(item->fd_plus_1 - 1);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to queue a frame of %zu bytes",
                               item->head.size + item->data.size);
    }
    memcpy(frame->head, item->head.data, item->head.size);
    frame->fd = item->fd_plus_1 - 1;
    frame->data = item->data.data;
    frame->data_bytes = item->data.size;
    frame->buffer = item->buffer;
    frame->capacity = item->capacity;
    frame->pending_plus_1 = item->pending_plus_1;
    frame->fill = item->fill;
    if (output->last != NULL)
        output->last->next = frame;
    else
        output->first = frame;
    output->last = frame;
    output->bytes += frame->head_bytes + frame->data_bytes;
    return INF_OK;
}

enum inf_code inf_output_push_rest(struct inf_output *output, struct inf_output_store *store,
                                   const struct inf_output_item *rest, bool partial,
                                   struct inf_error *err)
{
    uint8_t *buffer = rest->buffer;
    size_t size_bytes = rest->capacity;
    assert(output->first == NULL || !output->first->begun);
    struct inf_output_frame *frame = acquire_frame(store, 0);
    if (frame == NULL) {
        inf_pool_release(store->pool, buffer, size_bytes);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to queue %zu bytes", size_bytes);
    }
    frame->data = frame->buffer = buffer;
    frame->data_bytes = frame->capacity = size_bytes;
    frame->begun = true;
    frame->partial = partial;
    frame->fill = rest->fill;
    frame->pending_plus_1 = rest->pending_plus_1;
    frame->next = output->first;
    output->first = frame;
    if (output->last == NULL)
        output->last = frame;
    output->bytes += size_bytes;
    output->first_since_ns = 0;
    return INF_OK;
}

void inf_output_append(struct inf_output *output, struct inf_output *from)
{
    if (from->first == NULL)
        return;
    if (output->last != NULL)
        output->last->next = from->first;
    else
        output->first = from->first;
    output->last = from->last;
    output->bytes += from->bytes;
    *from = (struct inf_output){0};
}

// Appends to `parts`, the ranges for sendmsg(), a range of bytes without its first `sent` bytes,
// which are already written.
static size_t append_rest(struct iovec *parts, size_t count, const uint8_t *bytes, size_t size,
                          size_t sent)
{
    if (sent < size)
        parts[count++] = (struct iovec){.iov_base = (void *)(bytes + sent), .iov_len = size - sent};
    return count;
}

// The frames that one system call sends.
struct gathering {
    size_t part_count;
    struct iovec parts[2 * GATHER];
    uint32_t frame_count;
    struct inf_sent_frame frames[GATHER];
};

// Collects the bytes for one system call. A frame with a descriptor is sent alone, so that the
// receiver knows which frame the descriptor belongs to. `bytes_max` is the most bytes of several
// frames; a larger frame is sent alone.
static void gather_frames(const struct inf_output *output, size_t bytes_max,
                          struct gathering *gathering)
{
    size_t count = 0;
    size_t frames = 0;
    size_t total = 0;
    struct iovec *parts = gathering->parts;
    for (struct inf_output_frame *frame = output->first; frame != NULL && frames < GATHER;
         frame = frame->next, frames++) {
        size_t sent = frame->sent_bytes;
        size_t rest = frame->head_bytes + frame->data_bytes - sent;
        if (frames > 0 &&
            (frame->fd >= 0 || output->first->fd >= 0 || !inf_range_ok(total, rest, bytes_max)))
            break;
        total += rest;
        gathering->frames[frames] =
            (struct inf_sent_frame){.bytes = (uint32_t)rest,
                                    .pending_plus_1 = (uint16_t)frame->pending_plus_1,
                                    .flags = (uint8_t)((frame->partial ? INF_SENT_PARTIAL : 0) |
                                                       (frame->fill ? INF_SENT_FILL : 0))};
        count = append_rest(parts, count, frame->head, frame->head_bytes, sent);
        size_t data_sent = sent > frame->head_bytes ? sent - frame->head_bytes : 0;
        count = append_rest(parts, count, frame->data, frame->data_bytes, data_sent);
    }
    gathering->part_count = count;
    gathering->frame_count = (uint32_t)frames;
}

// Records that the socket accepted `size` more bytes, and releases frames that are complete.
static void advance_frames(struct inf_output *output, struct inf_output_store *store, size_t size)
{
    output->bytes -= size;
    while (output->first != NULL) {
        struct inf_output_frame *frame = output->first;
        size_t rest = frame->head_bytes + frame->data_bytes - frame->sent_bytes;
        if (size < rest) {
            frame->sent_bytes += size;
            frame->begun = size > 0 || frame->begun;
            frame->partial = size > 0 || frame->partial;
            return;
        }
        size -= rest;
        output->first = frame->next;
        output->first_since_ns = 0;
        if (output->first == NULL)
            output->last = NULL;
        release_frame(store, frame);
    }
    assert(size == 0);
}

enum inf_output_state inf_output_flush(struct inf_output *output, struct inf_output_store *store,
                                       int fd, struct inf_send_log *log)
{
    while (output->first != NULL) {
        struct gathering gathering;
        gather_frames(output, log != NULL ? INF_SEND_LOG_WHOLE_BYTES : SIZE_MAX, &gathering);
        struct msghdr message = {.msg_iov = gathering.parts, .msg_iovlen = gathering.part_count};
        union inf_send_fd_control control;
        bool with_fd = output->first->fd >= 0;
        if (with_fd)
            inf_send_fd_attach(&message, &control, output->first->fd);
        const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
        ssize_t sent = log == NULL ? sendmsg(fd, &message, flags)
                                   : inf_send_log_send(log, fd, &message, gathering.frames,
                                                       gathering.frame_count, flags);
        if (sent > 0 && with_fd) {
            close(output->first->fd);
            output->first->fd = -1;
        }
        if (sent >= 0) {
            advance_frames(output, store, (size_t)sent);
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS)
            return INF_OUTPUT_BROKEN;
        if (output->first_since_ns == 0)
            output->first_since_ns = inf_clock_ns();
        return INF_OUTPUT_BLOCKED;
    }
    return INF_OUTPUT_EMPTY;
}

// Moves the buffer that contains the frame's data to this frame, because its present owner, a later
// frame, is dropped.
static void take_buffer(struct inf_output_frame *frame)
{
    struct inf_output_frame *owner = frame;
    while (owner->buffer == NULL)
        owner = owner->next;
    uint8_t *buffer = owner->buffer;
    owner->buffer = NULL;
    frame->buffer = buffer;
    frame->capacity = owner->capacity;
}

void inf_output_drop_unsent(struct inf_output *output, struct inf_output_store *store)
{
    struct inf_output_frame *begun = output->first;
    if (begun == NULL || !begun->begun) {
        inf_output_clear(output, store);
        return;
    }
    if (begun->data_bytes > 0)
        take_buffer(begun);
    while (begun->next != NULL) {
        struct inf_output_frame *gone = begun->next;
        begun->next = gone->next;
        output->bytes -= gone->head_bytes + gone->data_bytes;
        release_frame(store, gone);
    }
    output->last = begun;
}

void inf_output_clear(struct inf_output *output, struct inf_output_store *store)
{
    while (output->first != NULL) {
        struct inf_output_frame *gone = output->first;
        output->first = gone->next;
        release_frame(store, gone);
    }
    *output = (struct inf_output){0};
}
