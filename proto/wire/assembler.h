// SPDX-License-Identifier: Apache-2.0
// Cuts the bytes of a stream socket into frames, in bounded memory. It does not read the socket:
// the caller reads, and feeds the bytes. Not thread-safe.
#ifndef INF_PROTO_WIRE_ASSEMBLER_H
#define INF_PROTO_WIRE_ASSEMBLER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/wire/frame.h"

// The owner's functions for memory and descriptors.
struct inf_assembler_memory {
    // Returns memory for the data segment of a frame, aligned to 64. Called once for each frame
    // with data. The assembler owns the memory until the frame is taken. If it returns NULL, the
    // frame is skipped and reported.
    void *(*alloc)(void *context, size_t size);
    // Frees memory of alloc() with the same size.
    void (*free)(void *context, void *memory, size_t size);
    void *context;
    // Closes a descriptor that belongs to no frame. The client chose it, so that close() may block.
    // NULL: close().
    void (*close_fd)(void *context, int fd);
};

struct inf_assembler_limits {
    uint32_t meta_bytes; // maximum of one frame
    uint32_t data_bytes; // maximum of one frame
};

enum inf_assembler_state {
    INF_ASSEMBLER_HEADER, // between two frames, or inside of a header
    INF_ASSEMBLER_META,   // inside of metadata
    INF_ASSEMBLER_DATA,   // inside of data
    INF_ASSEMBLER_SKIP,   // discarding the rest of a rejected frame
    INF_ASSEMBLER_READY,  // a whole frame is ready to be taken
    INF_ASSEMBLER_BROKEN  // the stream is invalid; nothing after it can be understood
};

// Embedded in a connection. Other modules may read `state`, `limits` and `memory`, and write none.
struct inf_assembler {
    enum inf_assembler_state state;
    struct inf_assembler_limits limits;
    struct inf_assembler_memory memory;
    uint8_t header_bytes[INF_FRAME_HEADER_BYTES];
    struct inf_frame_header header;
    uint8_t *meta; // grows up to limits.meta_bytes
    size_t meta_capacity;
    uint8_t *data;       // from memory.alloc; NULL: the frame has none
    uint64_t got;        // bytes of the current part that have come
    uint64_t skip_bytes; // size of the part in the state SKIP
    int fds[INF_LIMIT_FRAME_FDS];
    uint32_t fd_count;         // descriptors in `fds`
    uint32_t bound_fds;        // how many of them, from the first, belong to the current frame
    struct inf_error rejected; // why the current frame is rejected, or the stream is broken
};

// A whole frame.
struct inf_frame {
    struct inf_frame_header header;
    struct inf_span meta; // owned by the assembler, valid until the next call of a function of it
    uint8_t *data; // header.data_bytes bytes from memory.alloc, owned by the caller; NULL: none
    int fds[INF_LIMIT_FRAME_FDS]; // owned by the caller
    uint32_t fd_count;
    // INF_OK, or why the frame was not accepted (FRAME_TOO_LARGE, HOST_OOM). Its bytes were skipped
    // then, and `meta` and `data` are empty; the connection can go on.
    struct inf_error rejected;
};

// Prepares an embedded assembler.
void inf_assembler_init(struct inf_assembler *assembler, const struct inf_assembler_limits *limits,
                        const struct inf_assembler_memory *memory);

// Frees its memory and closes the file descriptors that it still owns.
void inf_assembler_fini(struct inf_assembler *assembler);

// Consumes bytes up to the end of the first whole frame, and sets *consumed to their number. If the
// state is READY afterwards, call inf_assembler_take() and feed the rest; in this state no bytes
// are consumed. After an error every further call returns the same error.
//
// INF_INVALID    (BAD_FRAME) the stream is broken: report it and close the connection.
// INF_EXHAUSTED  (FRAME_TOO_LARGE) a frame larger than INF_LIMIT_SKIP_BYTES: report it and close
//                the connection.
enum inf_code inf_assembler_feed(struct inf_assembler *assembler, struct inf_span bytes,
                                 size_t *consumed, struct inf_error *err) INF_NODISCARD;

// Takes the file descriptors that a read has returned together with bytes; call it before feeding
// those bytes. The descriptors belong to the frame in which the bytes end (assembler.c explains
// why); inf_assembler_feed() fails if that frame declares another number. If it fails, it closes
// them.
//
// INF_INVALID  (BAD_FRAME) there are more than INF_LIMIT_FRAME_FDS.
enum inf_code inf_assembler_add_fds(struct inf_assembler *assembler, const int *fds, uint32_t count,
                                    struct inf_error *err) INF_NODISCARD;

// Returns the memory for the rest of the current data segment, so that the caller can read from the
// socket directly into it. Its size is 0 unless the state is DATA. After reading, call
// inf_assembler_advance().
void inf_assembler_data_room(struct inf_assembler *assembler, uint8_t **room, size_t *size);

// Says that `size` bytes were read into the memory of inf_assembler_data_room(). If they complete a
// frame with a wrong number of file descriptors, the state becomes BROKEN, and inf_assembler_feed()
// returns the error, also without bytes.
void inf_assembler_advance(struct inf_assembler *assembler, size_t size);

// Moves the whole frame to *frame. The state must be READY. The file descriptors of a rejected
// frame are closed.
void inf_assembler_take(struct inf_assembler *assembler, struct inf_frame *frame);

// Returns whether a frame has begun and is not complete, so that INF_LIMIT_FRAME_MS applies.
bool inf_assembler_partial(const struct inf_assembler *assembler);

#endif
