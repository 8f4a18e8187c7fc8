// SPDX-License-Identifier: Apache-2.0
// Bytes of a stream socket in, whole frames out, in bounded memory. Knows no socket: the caller
// reads and feeds. One owner, one thread.
#ifndef INF_PROTO_WIRE_ASSEMBLER_H
#define INF_PROTO_WIRE_ASSEMBLER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/wire/frame.h"

// Where the bytes of data segments go, and descriptors that are not wanted. alloc() is asked once a frame whose data_bytes is above 0;
// the memory is aligned to 64 and belongs to the assembler until the frame is taken.
struct inf_assembler_memory {
    void *(*alloc)(void *context,
                   size_t size); // NULL: no memory, the frame is skipped and reported
    void (*free)(void *context, void *memory, size_t size);
    void *context;
    // (optional: close()) Closes a descriptor that no frame takes. It may be of any kind, also one
    // whose close() waits for the client.
    void (*close_fd)(void *context, int fd);
};

struct inf_assembler_limits {
    uint32_t meta_bytes; // of one frame
    uint32_t data_bytes;
};

enum inf_assembler_state {
    INF_ASSEMBLER_HEADER, // between frames, or inside a header
    INF_ASSEMBLER_META,
    INF_ASSEMBLER_DATA,
    INF_ASSEMBLER_SKIP,  // discarding the rest of a frame that was too large
    INF_ASSEMBLER_READY, // a whole frame waits to be taken
    INF_ASSEMBLER_BROKEN // the byte stream makes no sense any more
};

// Embedded in a connection. Fields are the assembler's own, except where a function says so.
struct inf_assembler {
    enum inf_assembler_state state;
    struct inf_assembler_limits limits;
    struct inf_assembler_memory memory;
    uint8_t header_bytes[INF_FRAME_HEADER_BYTES];
    struct inf_frame_header header;
    uint8_t *meta; // limits.meta_bytes of room, grown as needed
    size_t meta_capacity;
    uint8_t *data; // from memory.alloc; NULL where the frame has none
    uint64_t got;  // bytes of the current part
    uint64_t skip_bytes;
    int fds[INF_LIMIT_FRAME_FDS];
    uint32_t fd_count;
    uint32_t bound_fds;        // the first of fds: those that belong to the current frame
    struct inf_error rejected; // why the frame being skipped is refused, or the stream is broken
};

// A frame taken out of the assembler.
struct inf_frame {
    struct inf_frame_header header;
    struct inf_span meta; // the assembler's, valid until the next call on it
    uint8_t *data;        // header.data_bytes from memory.alloc, now the caller's; NULL where none
    int fds[INF_LIMIT_FRAME_FDS]; // now the caller's to close
    uint32_t fd_count;
    // INF_OK, or why the frame could not be accepted (FRAME_TOO_LARGE, HOST_OOM): its bytes were
    // skipped, `meta` and `data` are empty, the connection goes on.
    struct inf_error rejected;
};

// Prepares an embedded assembler.
void inf_assembler_init(struct inf_assembler *assembler, const struct inf_assembler_limits *limits,
                        const struct inf_assembler_memory *memory);

// Frees what it holds and closes file descriptors not handed over.
void inf_assembler_fini(struct inf_assembler *assembler);

// Takes bytes in. Stops behind the first whole frame: `*consumed` tells how many bytes were used;
// call inf_assembler_take() when the state is READY, then feed the rest. While READY it uses none.
//
// INF_INVALID    (BAD_FRAME) the stream is broken: report and close. Sticky.
// INF_EXHAUSTED  (FRAME_TOO_LARGE) a frame beyond even INF_LIMIT_SKIP_BYTES: report and close.
enum inf_code inf_assembler_feed(struct inf_assembler *assembler, struct inf_span bytes,
                                 size_t *consumed, struct inf_error *err) INF_NODISCARD;

// Hands over file descriptors that came with the bytes about to be fed, which end with the bytes of
// the frame they belong to (Linux ends a read there). They go to the frame that is current once
// all those bytes are fed; inf_assembler_feed() fails where that frame declared another number.
// Closes them on failure.
//
// INF_INVALID  (BAD_FRAME) more than INF_LIMIT_FRAME_FDS wait.
enum inf_code inf_assembler_add_fds(struct inf_assembler *assembler, const int *fds, uint32_t count,
                                    struct inf_error *err) INF_NODISCARD;

// The room that the rest of the current data segment goes to, for reading from the socket straight
// into place; empty unless the state is DATA. Follow with inf_assembler_advance().
void inf_assembler_data_room(struct inf_assembler *assembler, uint8_t **room, size_t *size);

// Tells that `size` bytes were read into that room. Where they complete a frame with a wrong number
// of file descriptors the state becomes BROKEN, and inf_assembler_feed() (of no bytes, too) tells
// why.
void inf_assembler_advance(struct inf_assembler *assembler, size_t size);

// Takes the whole frame out; the state must be READY. File descriptors of a rejected frame are
// closed.
void inf_assembler_take(struct inf_assembler *assembler, struct inf_frame *frame);

// Whether a frame has begun and is not complete: the whole-frame deadline runs.
bool inf_assembler_partial(const struct inf_assembler *assembler);

#endif
