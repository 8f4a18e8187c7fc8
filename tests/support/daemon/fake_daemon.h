// SPDX-License-Identifier: Apache-2.0
// A daemon for unit tests of libinferd: a thread that accepts connections, one after the other, on
// a socket in its own directory, and speaks the protocol. A script or a hook of the test decides
// what the daemon answers. A protocol error aborts the test.
//
// The daemon has two models:
//   echo   input "in" UINT8 [n] -> output "out", equal to the input
//   grow   input "n" INT32 [1] -> outputs "small" INT32 [1], equal to the input, and "big"
//          UINT8 [n], whose byte i is fake_big_byte(i)
// The daemon writes outputs to the locations in the request, and refuses a location that is too
// small, as the real daemon does.
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

// Counters of the fake daemon, such as the registered regions. A test may read them at any time.
struct fake_counts {
    atomic_uint requests, registrations, releases, cancels, metadata, pongs;
};

struct fake_options {
    // Called in place of fake_serve(), which reads and answers all frames. The script must also
    // answer the greeting. NULL: fake_serve() is called.
    void (*script)(struct fake_daemon *daemon, void *context);
    // Called with each frame after the greeting. Returns true if the hook has answered the frame.
    // NULL: no hook.
    bool (*on_frame)(struct fake_daemon *daemon, const struct fake_frame *frame, void *context);
    void *context;
    uint32_t credit;      // number of requests that the client may have in flight; 0 stands for 64
    uint32_t regions;     // maximum number of regions; 0: the protocol's limit
    uint32_t reply_bytes; // largest data segment of an answer; 0: the protocol's limit
    bool byte_at_a_time;  // each write sends one byte
    uint32_t connections; // number of connections to accept, one after the other; 0 stands for 1
};

// Starts the thread. The socket exists when this function returns.
struct fake_daemon *fake_daemon_start(const struct fake_options *options);

const char *fake_daemon_path(const struct fake_daemon *daemon);
struct fake_counts *fake_daemon_counts(struct fake_daemon *daemon);

// Waits for the thread and frees everything. The thread ends when the last client has closed its
// connection.
void fake_daemon_stop(struct fake_daemon *daemon);

// --- functions that scripts call on the fake daemon's thread ---

// Reads the next frame. Returns false if the client has closed the connection.
bool fake_read(struct fake_daemon *daemon, struct fake_frame *frame);

// Reads HELLO and answers it.
void fake_greet(struct fake_daemon *daemon);

// Answers all frames as a real daemon would, until the client closes the connection.
void fake_serve(struct fake_daemon *daemon);

// Answers one frame as a real daemon would. fake_serve() calls this function for each frame.
void fake_answer(struct fake_daemon *daemon, const struct fake_frame *frame);

// Sends a frame. The function sets the lengths in `header`.
void fake_send(struct fake_daemon *daemon, struct inf_frame_header header,
               const union inf_message *message, enum inf_message_kind kind, const void *data,
               size_t data_size);

// Sends a Status message as the final answer on a stream.
void fake_refuse(struct fake_daemon *daemon, uint64_t stream, const struct inf_status *status);

// Sends bytes that need not be a valid frame.
void fake_send_bytes(struct fake_daemon *daemon, const void *bytes, size_t size);

// Closes the connection.
void fake_hang_up(struct fake_daemon *daemon);

uint8_t fake_big_byte(size_t index);

#endif
