// SPDX-License-Identifier: Apache-2.0
// Cuts the bytes of a stream socket into frames, in bounded memory. The caller reads the socket and
// passes the bytes to the assembler. Not thread-safe.
#ifndef INF_PROTO_WIRE_ASSEMBLER_H
#define INF_PROTO_WIRE_ASSEMBLER_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/wire/frame.h"

// Functions for memory and descriptors that the owner of the assembler provides.
struct inf_assembler_memory {
    // Returns memory for the data segment of a frame, aligned to 64 bytes. Called once for each
    // frame with data. The assembler owns the memory until the frame is taken. If alloc() returns
    // NULL, the frame is skipped and reported as rejected.
    void *(*alloc)(void *context, size_t size);
    // Frees memory that alloc() returned for the same size.
    void (*free)(void *context, void *memory, size_t size);
    void *context;
    // Closes a descriptor that belongs to no frame. If NULL, the assembler calls close(), which may
    // block because the client chose the descriptor.
    void (*close_fd)(void *context, int fd);
};

struct inf_assembler_limits {
    uint32_t meta_bytes; // maximum metadata of one frame
    uint32_t data_bytes; // maximum data of one frame
};

enum inf_assembler_state {
    INF_ASSEMBLER_HEADER, // the next byte belongs to a header
    INF_ASSEMBLER_META,   // the next byte belongs to the metadata of a frame
    INF_ASSEMBLER_DATA,   // the next byte belongs to the data of a frame
    INF_ASSEMBLER_SKIP,   // the next bytes are the rest of a rejected frame and are discarded
    INF_ASSEMBLER_READY,  // a whole frame is ready to be taken
    INF_ASSEMBLER_BROKEN  // the stream is invalid, and bytes after the error cannot be interpreted
};

// Cuts a byte stream into frames. The struct is a member of the struct of a connection. Other
// modules may read `state`, `limits` and `memory`, but must not write to them.
struct inf_assembler {
    enum inf_assembler_state state;
    struct inf_assembler_limits limits;
    struct inf_assembler_memory memory;
    uint8_t header_bytes[INF_FRAME_HEADER_BYTES];
    struct inf_frame_header header;
    uint8_t *meta; // metadata of the current frame; the buffer grows up to limits.meta_bytes
    size_t meta_capacity;
    uint8_t *data;       // data of the current frame, from memory.alloc(); NULL: it has none
    uint64_t got;        // bytes received of the header, metadata or data that `state` names
    uint64_t skip_bytes; // in the state SKIP: number of bytes to discard
    int fds[INF_LIMIT_FRAME_FDS];
    uint32_t fd_count;         // number of descriptors in `fds`
    uint32_t bound_fds;        // the first `bound_fds` descriptors belong to the current frame
    struct inf_error rejected; // why the current frame is rejected, or why the stream is broken
    // The error for a frame whose descriptors are missing, see inf_assembler_expect_lost_fds();
    // NULL: the stream is broken then.
    const struct inf_error *lost_fds;
};

// A complete frame.
struct inf_frame {
    struct inf_frame_header header;
    // Metadata of the frame; owned by the assembler, valid until the next call of its functions.
    struct inf_span meta;
    uint8_t *data; // header.data_bytes bytes from memory.alloc, owned by the caller; NULL: none
    int fds[INF_LIMIT_FRAME_FDS]; // descriptors sent with the frame; owned by the caller
    uint32_t fd_count;
    // INF_OK, or the reason why the frame was not accepted (FRAME_TOO_LARGE, HOST_OOM). In that
    // case the bytes of the frame were skipped, and `meta` and `data` are empty. The connection can
    // continue.
    struct inf_error rejected;
};

// Initialises `assembler`, which the caller has allocated.
void inf_assembler_init(struct inf_assembler *assembler, const struct inf_assembler_limits *limits,
                        const struct inf_assembler_memory *memory);

// Frees the assembler's memory and closes the file descriptors that it still owns.
void inf_assembler_fini(struct inf_assembler *assembler);

// Consumes bytes up to the end of the first whole frame, and sets *consumed to their number. If the
// state is READY afterwards, call inf_assembler_take() and then pass the remaining bytes. In the
// state READY no bytes are consumed. After an error every further call returns the same error.
//
// INF_INVALID    (BAD_FRAME) the stream is broken. The caller reports the error and closes the
//                connection.
// INF_EXHAUSTED  (FRAME_TOO_LARGE) a frame is larger than INF_LIMIT_SKIP_BYTES. The caller reports
//                the error and closes the connection.
enum inf_code inf_assembler_feed(struct inf_assembler *assembler, struct inf_span bytes,
                                 size_t *consumed, struct inf_error *err) INF_NODISCARD;

// Takes ownership of the file descriptors that a read has returned together with bytes. The caller
// passes these bytes afterwards. The descriptors belong to the frame in which the bytes end
// (assembler.c has the explanation); inf_assembler_feed() fails if that frame declares another
// number. On failure, the function closes the descriptors.
//
// INF_INVALID  (BAD_FRAME) there are more than INF_LIMIT_FRAME_FDS descriptors.
enum inf_code inf_assembler_add_fds(struct inf_assembler *assembler, const int *fds, uint32_t count,
                                    struct inf_error *err) INF_NODISCARD;

// Returns the memory for the rest of the current data segment, so that the caller can read from the
// socket directly into it. The size is 0 unless the state is DATA. After reading, call
// inf_assembler_advance().
void inf_assembler_data_room(struct inf_assembler *assembler, uint8_t **room, size_t *size);

// Tells the assembler that `size` bytes were read into the memory of inf_assembler_data_room(). If
// the bytes complete a frame with a wrong number of file descriptors, the state becomes BROKEN. The
// next inf_assembler_feed() then returns the error, even if it is called without bytes.
void inf_assembler_advance(struct inf_assembler *assembler, size_t size);

// Moves the complete frame to *frame. The state must be READY. If the frame is rejected, its file
// descriptors are closed.
void inf_assembler_take(struct inf_assembler *assembler, struct inf_frame *frame);

// Returns how many bytes of the frame that has begun are missing, if its header is complete.
uint64_t inf_assembler_rest(const struct inf_assembler *assembler);

// Returns how many bytes the part of the frame that is being received needs: header, metadata,
// data, or what is skipped. More bytes may follow; fewer would leave the part incomplete.
size_t inf_assembler_wanted(const struct inf_assembler *assembler);

// Continues a frame of which another process has received the header and a part of the rest. The
// missing `rest_bytes` bytes are skipped, and the frame is then reported as rejected with the error
// `why`. The assembler must be at the beginning of a frame.
//
// INF_INVALID  the header is invalid, or does not have as many bytes behind it.
enum inf_code inf_assembler_resume(struct inf_assembler *assembler,
                                   const uint8_t header_bytes[INF_FRAME_HEADER_BYTES],
                                   uint64_t rest_bytes, const struct inf_error *why,
                                   struct inf_error *err) INF_NODISCARD;

// Announces that descriptors may be lost: those of the frame that has begun, and of all frames up
// to the first one that ends together with the bytes of a read. A frame without its descriptors is
// then reported as rejected with the error `why`, which outlives the assembler, instead of ending
// the stream.
void inf_assembler_expect_lost_fds(struct inf_assembler *assembler, const struct inf_error *why);

// Returns whether a frame has begun and is not complete. While this is true, the caller must
// enforce the time limit INF_LIMIT_FRAME_MS.
bool inf_assembler_partial(const struct inf_assembler *assembler);

#endif
