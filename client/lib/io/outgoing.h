// SPDX-License-Identifier: Apache-2.0
// Frames to the daemon: buffers from a pool, with reference counts.
//
// The send queue holds a reference to a frame while it is being sent; a call holds another one, so
// that it can send the request again.
#ifndef INF_CLIENT_LIB_IO_OUTGOING_H
#define INF_CLIENT_LIB_IO_OUTGOING_H

#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/status.h"
#include "proto/wire/message.h"

struct inf_client_outgoing {
    struct inf_client_outgoing *next; // link of the send queue or of the pool
    uint8_t *bytes;                   // header, metadata and data of the frame
    size_t capacity;                  // number of bytes for which `bytes` has room
    size_t size;                      // number of used bytes of `bytes`
    size_t sent;                      // number of bytes that were written to the socket
    size_t meta_size;                 // size of the metadata in bytes
    // A descriptor that is sent with the first byte and then closed; -1: none.
    int fd;
    uint32_t references;
    // A request whose data exceed one frame is sent as several slices. A slice has a header and
    // metadata of its own in `bytes`; its data are those of `whole`, so that nothing is copied.
    // `whole` holds a reference; NULL: this frame is no slice.
    struct inf_client_outgoing *whole;
    const uint8_t *slice; // the slice's data, inside whole->bytes
    size_t slice_size;
    size_t whole_bytes; // number of bytes to add to whole->sent when this slice has been sent
};

// Unused frames, kept for reuse. Zero-initialise.
struct inf_client_outgoing_pool {
    struct inf_client_outgoing *unused; // list of unused frames, linked by `next`
    size_t unused_bytes;
};

// Returns in *outgoing a frame with room for `capacity` bytes, header included, and one reference.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_client_outgoing_acquire(inferd_client *client, size_t capacity,
                                          struct inf_client_outgoing **outgoing,
                                          struct inf_error *err) INF_NODISCARD;

// Releases one reference and sets the pointer to NULL. A NULL frame is allowed.
void inf_client_outgoing_release(inferd_client *client, struct inf_client_outgoing **outgoing);

// Encodes `message` as the metadata of the frame, after the space for the header. Sets meta_size
// and size to the sizes with that metadata.
enum inf_code inf_client_outgoing_encode(inferd_client *client,
                                         struct inf_client_outgoing *outgoing,
                                         const union inf_message *message,
                                         enum inf_message_kind kind,
                                         struct inf_error *err) INF_NODISCARD;

// Returns the bytes of data after the metadata in `outgoing->bytes`.
size_t inf_client_outgoing_data_size(const struct inf_client_outgoing *outgoing);

// Returns the address of the first byte after the metadata.
uint8_t *inf_client_outgoing_data(const struct inf_client_outgoing *outgoing);

// Frees the unused frames in the client's pool.
void inf_client_outgoing_pool_fini(inferd_client *client);

#endif
