// SPDX-License-Identifier: Apache-2.0
// Cuts a stream of bytes into frames.
//
// The problem: reads from a stream socket end anywhere. One read may bring the end of a frame,
// several whole frames and a part of a header. The peer may be hostile: it may announce gigabytes,
// or send nonsense.
//
// The states are the parts of a frame. Each part has a size and a destination. When a part is full,
// the next one begins:
//
//               24 bytes            meta_bytes          data_bytes
//   HEADER -> header_bytes -> META -> meta -> DATA -> memory.alloc() -> READY -> take() -> HEADER
//     |            |                             |                     ^
//     |            +-- larger than limits, no memory --> SKIP (dropped)+  (frame.rejected is set)
//     +-- invalid header, wrong number of descriptors, larger than INF_LIMIT_SKIP_BYTES --> BROKEN
//
// The limits bound the memory, whatever the headers say: nothing is allocated before the sizes in
// the header have been checked; the metadata buffer is reused for all frames and grows to at most
// limits.meta_bytes; and at most one data segment exists at a time. A frame that is too large is
// skipped without being stored, so the client gets an answer and the connection stays open.
//
// File descriptors: on Linux, a read of a stream socket that returns descriptors ends with the last
// byte of the sendmsg() that they were sent with. Bytes of earlier sends may come first in the same
// read.
//
//   peer:   sendmsg(frame A)  sendmsg(frame B + fd)  sendmsg(frame C)
//   reads:  [ A ... | B ... ] + fd                   [ C ... ]
//                           ^ the read ends with the last byte of B
//
// If the peer sends nothing after the frame in the same sendmsg(), the descriptors of a read belong
// to the frame in which the read ends. So inf_assembler_add_fds() appends them to `fds`, and they
// are bound to a frame (`bound_fds`) when the last byte of the read is consumed.
#include "proto/wire/assembler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The size of the first allocation for metadata. Metadata of common requests fits.
#define META_CAPACITY_FIRST 1024u

static void close_fd(const struct inf_assembler *assembler, int fd)
{
    if (assembler->memory.close_fd != NULL)
        assembler->memory.close_fd(assembler->memory.context, fd);
    else
        close(fd);
}

static void close_fds(struct inf_assembler *assembler, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        close_fd(assembler, assembler->fds[i]);
    assembler->fd_count -= count;
    memmove(assembler->fds, assembler->fds + count, assembler->fd_count * sizeof assembler->fds[0]);
    assembler->bound_fds -= INF_MIN(assembler->bound_fds, count);
}

static void free_data(struct inf_assembler *assembler)
{
    if (assembler->data != NULL)
        assembler->memory.free(assembler->memory.context, assembler->data,
                               assembler->header.data_bytes);
    assembler->data = NULL;
}

// Ends the stream with the error `rejected`.
static enum inf_code break_stream(struct inf_assembler *assembler, struct inf_error *err)
{
    assembler->state = INF_ASSEMBLER_BROKEN;
    close_fds(assembler, assembler->fd_count);
    free_data(assembler);
    if (err != NULL)
        *err = assembler->rejected;
    return assembler->rejected.code;
}

void inf_assembler_init(struct inf_assembler *assembler, const struct inf_assembler_limits *limits,
                        const struct inf_assembler_memory *memory)
{
    *assembler = (struct inf_assembler){
        .state = INF_ASSEMBLER_HEADER,
        .limits = *limits,
        .memory = *memory,
    };
}

void inf_assembler_fini(struct inf_assembler *assembler)
{
    close_fds(assembler, assembler->fd_count);
    free_data(assembler);
    free(assembler->meta);
    assembler->meta = NULL;
    assembler->meta_capacity = 0;
    assembler->state = INF_ASSEMBLER_BROKEN;
}

static void enter_state(struct inf_assembler *assembler, enum inf_assembler_state state)
{
    assembler->state = state;
    assembler->got = 0;
}

// Starts to discard the remaining `size` bytes of the frame. assembler->rejected has the reason.
static void skip_rest(struct inf_assembler *assembler, uint64_t size)
{
    enter_state(assembler, INF_ASSEMBLER_SKIP);
    assembler->skip_bytes = size;
}

static void reject_no_memory(struct inf_assembler *assembler, size_t size, uint64_t rest)
{
    inf_fail_reason(&assembler->rejected, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                    "no memory for the %zu bytes of a frame", size);
    skip_rest(assembler, rest);
}

// Makes room for the metadata of the current frame. The buffer doubles and never shrinks, so a
// connection soon needs no further allocation. Returns false if there is no memory.
static bool reserve_meta(struct inf_assembler *assembler)
{
    size_t wanted = assembler->header.meta_bytes;
    if (wanted <= assembler->meta_capacity)
        return true;
    size_t capacity = META_CAPACITY_FIRST;
    while (capacity < wanted)
        capacity *= 2;
    uint8_t *meta = realloc(assembler->meta, capacity);
    if (meta == NULL)
        return false;
    assembler->meta = meta;
    assembler->meta_capacity = capacity;
    return true;
}

static void begin_data(struct inf_assembler *assembler)
{
    uint32_t size = assembler->header.data_bytes;
    enter_state(assembler, INF_ASSEMBLER_DATA);
    if (size == 0)
        return;
    assembler->data = assembler->memory.alloc(assembler->memory.context, size);
    if (assembler->data == NULL)
        reject_no_memory(assembler, size, size);
}

// Decodes the complete header, and decides whether the frame is stored or skipped, or ends the
// stream with an error.
static enum inf_code begin_frame(struct inf_assembler *assembler, struct inf_error *err)
{
    struct inf_frame_header *header = &assembler->header;
    if (inf_frame_header_decode(header, assembler->header_bytes, &assembler->rejected) != INF_OK)
        return break_stream(assembler, err);

    uint64_t total = (uint64_t)header->meta_bytes + header->data_bytes;
    const struct inf_assembler_limits *limits = &assembler->limits;
    if (header->meta_bytes > limits->meta_bytes || header->data_bytes > limits->data_bytes) {
        inf_fail_reason(&assembler->rejected, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                        "%s frame: %u bytes of metadata and %u of data, at most %u and %u are "
                        "allowed",
                        inf_frame_type_name(header->type), header->meta_bytes, header->data_bytes,
                        limits->meta_bytes, limits->data_bytes);
        if (total > INF_LIMIT_SKIP_BYTES)
            return break_stream(assembler, err);
        skip_rest(assembler, total);
    } else if (!reserve_meta(assembler)) {
        reject_no_memory(assembler, header->meta_bytes, total);
    } else {
        enter_state(assembler, INF_ASSEMBLER_META);
    }
    return INF_OK;
}

// Ends the current frame after its last byte. `last` is true if this is also the last byte of the
// read, so that descriptors of the read belong to this frame.
static enum inf_code complete_frame(struct inf_assembler *assembler, bool last,
                                    struct inf_error *err)
{
    if (last)
        assembler->bound_fds = assembler->fd_count;
    if (assembler->lost_fds != NULL && assembler->bound_fds < assembler->header.fd_count) {
        free_data(assembler);
        assembler->rejected = *assembler->lost_fds;
        assembler->header.fd_count = (uint8_t)assembler->bound_fds;
    }
    // The descriptors of a read belong to its last frame, so the frames before it change nothing.
    if (last)
        assembler->lost_fds = NULL;
    if (assembler->bound_fds != assembler->header.fd_count) {
        inf_fail_reason(&assembler->rejected, INF_INVALID, INF_REASON_BAD_FRAME,
                        "%s frame: %u file descriptors declared, %u came with it",
                        inf_frame_type_name(assembler->header.type), assembler->header.fd_count,
                        assembler->bound_fds);
        return break_stream(assembler, err);
    }
    assembler->state = INF_ASSEMBLER_READY;
    return INF_OK;
}

// Returns the size of the part of the frame that is being received (header, metadata, data or bytes
// to skip), and sets *part to the memory for it (NULL: the bytes are dropped).
static uint64_t current_part(struct inf_assembler *assembler, uint8_t **part)
{
    switch (assembler->state) {
    case INF_ASSEMBLER_HEADER:
        *part = assembler->header_bytes;
        return INF_FRAME_HEADER_BYTES;
    case INF_ASSEMBLER_META:
        *part = assembler->meta;
        return assembler->header.meta_bytes;
    case INF_ASSEMBLER_DATA:
        *part = assembler->data;
        return assembler->header.data_bytes;
    default:
        *part = NULL;
        return assembler->skip_bytes;
    }
}

// If the part of the frame that is being received is complete, goes on to the next part that is not
// empty, or to the state READY.
static enum inf_code advance_parts(struct inf_assembler *assembler, bool last,
                                   struct inf_error *err)
{
    for (;;) {
        uint8_t *part;
        if (assembler->got < current_part(assembler, &part))
            return INF_OK;
        switch (assembler->state) {
        case INF_ASSEMBLER_HEADER:
            INF_TRY(begin_frame(assembler, err));
            break;
        case INF_ASSEMBLER_META:
            begin_data(assembler);
            break;
        default:
            return complete_frame(assembler, last, err);
        }
    }
}

enum inf_code inf_assembler_feed(struct inf_assembler *assembler, struct inf_span bytes,
                                 size_t *consumed, struct inf_error *err)
{
    size_t used = 0;
    *consumed = 0;
    if (assembler->state == INF_ASSEMBLER_BROKEN)
        return break_stream(assembler, err);

    while (used < bytes.size && assembler->state != INF_ASSEMBLER_READY) {
        uint8_t *part;
        uint64_t wanted = current_part(assembler, &part) - assembler->got;
        size_t size = (size_t)INF_MIN(wanted, (uint64_t)(bytes.size - used));
        if (part != NULL)
            memcpy(part + assembler->got, bytes.data + used, size);
        assembler->got += size;
        used += size;
        *consumed = used;
        INF_TRY(advance_parts(assembler, used == bytes.size, err));
    }
    if (used == bytes.size && used > 0 && assembler->state != INF_ASSEMBLER_READY)
        assembler->bound_fds = assembler->fd_count;
    return INF_OK;
}

enum inf_code inf_assembler_add_fds(struct inf_assembler *assembler, const int *fds, uint32_t count,
                                    struct inf_error *err)
{
    bool broken = assembler->state == INF_ASSEMBLER_BROKEN;
    if (!broken && count <= INF_LIMIT_FRAME_FDS - assembler->fd_count) {
        memcpy(assembler->fds + assembler->fd_count, fds, count * sizeof fds[0]);
        assembler->fd_count += count;
        return INF_OK;
    }
    for (uint32_t i = 0; i < count; i++)
        close_fd(assembler, fds[i]);
    if (!broken)
        inf_fail_reason(&assembler->rejected, INF_INVALID, INF_REASON_BAD_FRAME,
                        "%u file descriptors came while %u wait for their frame, at most %u may",
                        count, assembler->fd_count, INF_LIMIT_FRAME_FDS);
    return break_stream(assembler, err);
}

void inf_assembler_data_room(struct inf_assembler *assembler, uint8_t **room, size_t *size)
{
    *room = NULL;
    *size = 0;
    if (assembler->state != INF_ASSEMBLER_DATA)
        return;
    *room = assembler->data + assembler->got;
    *size = (size_t)(assembler->header.data_bytes - assembler->got);
}

void inf_assembler_advance(struct inf_assembler *assembler, size_t size)
{
    assert(assembler->state == INF_ASSEMBLER_DATA);
    assert(size <= assembler->header.data_bytes - assembler->got);
    if (size == 0)
        return;
    assembler->got += size;
    assembler->bound_fds = assembler->fd_count;
    // Ignore the result: after a failure the state is BROKEN, and the next inf_assembler_feed()
    // returns the error.
    (void)!advance_parts(assembler, true, NULL);
}

void inf_assembler_take(struct inf_assembler *assembler, struct inf_frame *frame)
{
    assert(assembler->state == INF_ASSEMBLER_READY);
    bool rejected = assembler->rejected.code != INF_OK;
    frame->header = assembler->header;
    frame->meta = (struct inf_span){0};
    frame->data = NULL;
    frame->fd_count = 0;
    frame->rejected.code = INF_OK;
    frame->rejected.reason = INF_REASON_NONE;
    frame->rejected.text[0] = '\0';

    if (rejected) {
        frame->rejected = assembler->rejected;
        assembler->rejected.code = INF_OK;
        close_fds(assembler, assembler->bound_fds);
    } else {
        frame->meta = (struct inf_span){assembler->meta, assembler->header.meta_bytes};
        frame->data = assembler->data;
        frame->fd_count = assembler->bound_fds;
        memcpy(frame->fds, assembler->fds, assembler->bound_fds * sizeof frame->fds[0]);
        assembler->fd_count -= assembler->bound_fds;
        memmove(assembler->fds, assembler->fds + assembler->bound_fds,
                assembler->fd_count * sizeof assembler->fds[0]);
    }
    assembler->data = NULL;
    assembler->bound_fds = 0;
    enter_state(assembler, INF_ASSEMBLER_HEADER);
}

bool inf_assembler_partial(const struct inf_assembler *assembler)
{
    switch (assembler->state) {
    case INF_ASSEMBLER_HEADER:
        return assembler->got > 0;
    case INF_ASSEMBLER_META:
    case INF_ASSEMBLER_DATA:
    case INF_ASSEMBLER_SKIP:
        return true;
    default:
        return false;
    }
}

uint64_t inf_assembler_rest(const struct inf_assembler *assembler)
{
    switch (assembler->state) {
    case INF_ASSEMBLER_META:
        return assembler->header.meta_bytes - assembler->got + assembler->header.data_bytes;
    case INF_ASSEMBLER_DATA:
        return assembler->header.data_bytes - assembler->got;
    case INF_ASSEMBLER_SKIP:
        return assembler->skip_bytes - assembler->got;
    default:
        return 0;
    }
}

size_t inf_assembler_wanted(const struct inf_assembler *assembler)
{
    switch (assembler->state) {
    case INF_ASSEMBLER_HEADER:
        return (size_t)(INF_FRAME_HEADER_BYTES - assembler->got);
    case INF_ASSEMBLER_META:
        return (size_t)(assembler->header.meta_bytes - assembler->got);
    default:
        return (size_t)inf_assembler_rest(assembler);
    }
}

enum inf_code inf_assembler_resume(struct inf_assembler *assembler,
                                   const uint8_t header_bytes[INF_FRAME_HEADER_BYTES],
                                   uint64_t rest_bytes, const struct inf_error *why,
                                   struct inf_error *err)
{
    assert(assembler->state == INF_ASSEMBLER_HEADER && assembler->got == 0);
    struct inf_frame_header *header = &assembler->header;
    INF_TRY(inf_frame_header_decode(header, header_bytes, err));
    if (rest_bytes > (uint64_t)header->meta_bytes + header->data_bytes)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "a frame cannot miss %llu bytes", (unsigned long long)rest_bytes);
    memcpy(assembler->header_bytes, header_bytes, INF_FRAME_HEADER_BYTES);
    // Descriptors came with the first byte, to the other process.
    header->fd_count = 0;
    assembler->rejected = *why;
    skip_rest(assembler, rest_bytes);
    if (rest_bytes == 0)
        return complete_frame(assembler, true, err);
    return INF_OK;
}

void inf_assembler_expect_lost_fds(struct inf_assembler *assembler, const struct inf_error *why)
{
    assembler->lost_fds = why;
}
