// SPDX-License-Identifier: Apache-2.0
// A daemon for unit tests of libinferd: a thread that accepts connections, one after the other, on
// a socket in its own directory, and speaks the protocol. A script or a hook of the test decides
// what it answers. A fault in it aborts the test.
//
// Its models:
//   echo   input "in" UINT8 [n] -> output "out", equal to the input
//   grow   input "n" INT32 [1] -> outputs "small" INT32 [1], equal to the input, and "big"
//          UINT8 [n], whose byte i is fake_big_byte(i)
// Outputs are written to the locations in the request, and refused, as the real daemon does.
#ifndef INF_TESTS_SUPPORT_DAEMON_FAKE_DAEMON_H
#define INF_TESTS_SUPPORT_DAEMON_FAKE_DAEMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire/assembler.h"
#include "proto/wire/message.h"

struct fake_daemon;

// A received frame. `message` is decoded for the types and methods that clients send.
struct fake_frame {
    struct inf_frame_header header;
    union inf_message *message;
    uint8_t *data; // owned by the daemon, valid until the next read
};

// Counters that a test may read at any time.
struct fake_counts {
    atomic_uint requests, registrations, releases, cancels, metadata, pongs;
};

struct fake_options {
    // Runs instead of fake_serve(), from the greeting on. NULL: fake_serve().
    void (*script)(struct fake_daemon *daemon, void *context);
    // Called with each frame after the greeting. Returns true if the frame has been answered. NULL:
    // none.
    bool (*on_frame)(struct fake_daemon *daemon, const struct fake_frame *frame, void *context);
    void *context;
    uint32_t credit;      // 0: 64
    uint32_t regions;     // 0: the protocol's limit
    uint32_t reply_bytes; // largest data segment of an answer; 0: the protocol's limit
    bool byte_at_a_time;  // each write has one byte
    uint32_t connections; // how many to accept; 0: 1
};

// Starts the thread. The socket exists when this function returns.
struct fake_daemon *fake_daemon_start(const struct fake_options *options);

const char *fake_daemon_path(const struct fake_daemon *daemon);
struct fake_counts *fake_daemon_counts(struct fake_daemon *daemon);

// Waits for the thread, which ends when the last client has closed its connection, and frees
// everything.
void fake_daemon_stop(struct fake_daemon *daemon);

// --- for scripts; called on the thread of the daemon ---

// Reads the next frame. Returns false if the client has closed the connection.
bool fake_read(struct fake_daemon *daemon, struct fake_frame *frame);

// Reads HELLO and answers it.
void fake_greet(struct fake_daemon *daemon);

// Reads and answers frames until the client closes the connection.
void fake_serve(struct fake_daemon *daemon);

// Answers a frame as fake_serve() does.
void fake_answer(struct fake_daemon *daemon, const struct fake_frame *frame);

// Sends a frame. Sets the lengths in `header`.
void fake_send(struct fake_daemon *daemon, struct inf_frame_header header,
               const union inf_message *message, enum inf_message_kind kind, const void *data,
               size_t data_size);

// Sends a Status as the final answer on a stream.
void fake_refuse(struct fake_daemon *daemon, uint64_t stream, const struct inf_status *status);

// Sends bytes that need not be a valid frame.
void fake_send_bytes(struct fake_daemon *daemon, const void *bytes, size_t size);

// Closes the connection.
void fake_hang_up(struct fake_daemon *daemon);

uint8_t fake_big_byte(size_t index);

#endif
