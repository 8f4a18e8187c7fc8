// SPDX-License-Identifier: Apache-2.0
// A daemon for tests of the client: one thread that takes connections on a socket in a directory of
// its own, one after the other, and speaks the protocol with a script's help. What goes wrong in it
// aborts the test.
//
// Its models:
//   echo   input "in" UINT8 [n] -> output "out", the same
//   grow   input "n" INT32 [1] -> outputs "small" INT32 [1], the same, and "big" UINT8 [n], byte i of
//          which is fake_big_byte(i)
// Places of outputs are honoured as by the real daemon, with its refusals.
#ifndef INF_TESTS_SUPPORT_DAEMON_FAKE_DAEMON_H
#define INF_TESTS_SUPPORT_DAEMON_FAKE_DAEMON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire/assembler.h"
#include "proto/wire/message.h"

struct fake_daemon;

// A frame that has come. `message` is decoded for the types and methods that clients send.
struct fake_frame {
    struct inf_frame_header header;
    union inf_message *message;
    uint8_t *data; // the daemon's until the next read
};

// What a test looks at afterwards, or while the daemon runs.
struct fake_counts {
    atomic_uint requests, registrations, releases, cancels, metadata, pongs;
};

struct fake_options {
    // Runs instead of the loop below, from the greeting on. NULL: fake_serve().
    void (*script)(struct fake_daemon *daemon, void *context);
    // Sees each frame after the greeting first; true: dealt with. NULL: none.
    bool (*on_frame)(struct fake_daemon *daemon, const struct fake_frame *frame, void *context);
    void *context;
    uint32_t credit;      // 0: 64
    uint32_t regions;     // 0: the protocol's limit
    uint32_t reply_bytes; // largest data segment of an answer; 0: the protocol's limit
    bool byte_at_a_time;  // writes
    uint32_t connections; // how many to take; 0: 1
};

// Starts the thread; the socket is there when this returns.
struct fake_daemon *fake_daemon_start(const struct fake_options *options);

const char *fake_daemon_path(const struct fake_daemon *daemon);
struct fake_counts *fake_daemon_counts(struct fake_daemon *daemon);

// Waits for the thread, which ends when the last client has gone, and frees everything.
void fake_daemon_stop(struct fake_daemon *daemon);

// --- for scripts, on the daemon's thread ---

// Reads the next frame; false where the client has gone.
bool fake_read(struct fake_daemon *daemon, struct fake_frame *frame);

// Reads HELLO and answers it.
void fake_greet(struct fake_daemon *daemon);

// Reads and answers until the client has gone.
void fake_serve(struct fake_daemon *daemon);

// Answers a frame as the loop does.
void fake_answer(struct fake_daemon *daemon, const struct fake_frame *frame);

// Sends a frame; lengths in `header` are filled in.
void fake_send(struct fake_daemon *daemon, struct inf_frame_header header,
               const union inf_message *message, enum inf_message_kind kind, const void *data,
               size_t data_size);

// Sends a Status as the last answer on a stream.
void fake_refuse(struct fake_daemon *daemon, uint64_t stream, const struct inf_status *status);

// Sends bytes as they are.
void fake_send_bytes(struct fake_daemon *daemon, const void *bytes, size_t size);

// Closes the connection.
void fake_hang_up(struct fake_daemon *daemon);

uint8_t fake_big_byte(size_t index);

#endif
