// SPDX-License-Identifier: Apache-2.0
// A real daemon for a test, in its own directory with a repository of small models. Also a client
// that sends raw frames to the daemon. Every failure in these functions fails the test.
#ifndef INF_TESTS_SUPPORT_DAEMON_FIXTURE_H
#define INF_TESTS_SUPPORT_DAEMON_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/wire/assembler.h"
#include "proto/wire/message.h"

// --- starting and stopping a real daemon ---

struct inf_fixture {
    char directory[64]; // removed by inf_fixture_stop()
    char repository[96];
    char socket[96];
    char admin_socket[96];
    pid_t pid;
};

// Writes the models add, brief, conv and slow, starts the daemon ($INFERD) and waits until all
// models are ready. The settings of brief and slow are "warmup = no". The daemon has one slot (one
// concurrent run) per device, makes no timing comparison of devices, does not watch its repository,
// and gets the settings in `arguments` (terminated by NULL; `arguments` may be NULL).
void inf_fixture_start(struct inf_fixture *fixture, const char *const *arguments);

// Like inf_fixture_start(), but the daemon logs to the file `log`, which is created or emptied.
void inf_fixture_start_logged(struct inf_fixture *fixture, const char *log,
                              const char *const *arguments);

// Stops the daemon with SIGTERM, checks that its exit status is 0, and starts another daemon in the
// same directory.
void inf_fixture_restart(struct inf_fixture *fixture, const char *const *arguments);

// Stops the daemon with SIGTERM, checks that its exit status is 0, and removes the directory.
void inf_fixture_stop(struct inf_fixture *fixture);

// Waits until the daemon exits by itself, and returns its exit status.
int inf_fixture_wait(struct inf_fixture *fixture);

// Removes the directory of a daemon that has exited.
void inf_fixture_remove(struct inf_fixture *fixture);

// Writes a model of `count` products to the directory of a version. The reference device takes
// about 30 ms for each product. The models slow and brief are of this kind.
void inf_fixture_write_products(const char *directory, int count);

// Replaces the settings (model.conf) of a model. They count from its next load on.
void inf_fixture_write_settings(const struct inf_fixture *fixture, const char *model,
                                const char *text);

// Returns how many file descriptors the daemon has open.
uint32_t inf_fixture_fds(const struct inf_fixture *fixture);

// Returns how many file descriptors of the daemon refer to a file whose name in /proc begins with
// `prefix`.
uint32_t inf_fixture_fds_of(const struct inf_fixture *fixture, const char *prefix);

// Waits at most ten seconds until the daemon has no more than `count` file descriptors open. The
// wait is needed because a separate thread of the daemon closes sockets and descriptors from
// clients, so some can still be open when the client gets its reply. Fewer descriptors are allowed,
// because `count` can include a connection of the fixture that was just being closed when `count`
// was taken.
void inf_fixture_expect_fds(const struct inf_fixture *fixture, uint32_t count);

// Returns how many mappings of memfds the daemon has.
uint32_t inf_fixture_memfds(const struct inf_fixture *fixture);

// --- a client that sends raw frames ---

struct inf_raw {
    int fd;
    bool closed; // the daemon has closed the connection
    struct inf_assembler assembler;
    struct inf_scratch *scratch;
    uint64_t last_stream;
    struct inf_frame frame;    // the frame that was received last; owns its data
    union inf_message message; // the message that was decoded last
    uint8_t waiting[4096];     // received bytes that the frame assembler has not processed yet
    size_t waiting_bytes;
};

// Connects to the daemon of the fixture as another user, as inf_raw_open() does. Only root can do
// this.
void inf_fixture_open_as(const struct inf_fixture *fixture, struct inf_raw *raw, uid_t uid);

// Connects without sending HELLO.
void inf_raw_connect(struct inf_raw *raw, const char *path);

// Connects and exchanges HELLO; raw->message holds the HELLO_ACK.
void inf_raw_open(struct inf_raw *raw, const char *path);

// Connects and exchanges HELLO, as inf_raw_open() does, but sends the HELLO message `hello`.
void inf_raw_open_as(struct inf_raw *raw, const char *path, const struct inf_hello *hello);

// Closes the connection and frees the last frame.
void inf_raw_close(struct inf_raw *raw);

// Sends bytes that need not be a valid frame, with the file descriptor `fd` unless it is -1.
// Returns false if the daemon has closed the connection.
bool inf_raw_send_bytes(struct inf_raw *raw, const void *bytes, size_t size, int fd);

// Encodes a whole frame, and sets the sizes in `header`. Returns the size of the frame.
size_t inf_raw_encode(struct inf_raw *raw, struct inf_frame_header header,
                      enum inf_message_kind kind, const union inf_message *message,
                      struct inf_span data, uint8_t *bytes, size_t capacity);

// Encodes a frame and sends it.
void inf_raw_send(struct inf_raw *raw, struct inf_frame_header header, enum inf_message_kind kind,
                  const union inf_message *message, struct inf_span data, int fd);

// Waits for the next frame, at most `timeout_ms`. Returns false if no frame arrives in time or the
// connection ends.
bool inf_raw_next(struct inf_raw *raw, int timeout_ms);

// Waits for the next frame, which must have this type.
void inf_raw_expect(struct inf_raw *raw, uint8_t type);

// Decodes the last frame into raw->message.
void inf_raw_decode(struct inf_raw *raw, enum inf_message_kind kind);

// Checks that the last frame is a failure with this code and reason, and decodes the frame to
// raw->message.status.
void inf_raw_check_failure(struct inf_raw *raw, enum inf_code code, enum inf_reason reason);

// Waits for an ERROR frame with this code and reason, and then for the end of the connection.
void inf_raw_expect_error(struct inf_raw *raw, enum inf_code code, enum inf_reason reason);

// Sends a request of any method on a new stream. Returns the stream.
uint64_t inf_raw_request(struct inf_raw *raw, uint16_t method, enum inf_message_kind kind,
                         const union inf_message *message, struct inf_span data);

// Sends a request of any method on a new stream, and waits for its final reply, which may be a
// failure. The reply is raw->frame.
void inf_raw_call(struct inf_raw *raw, uint16_t method, enum inf_message_kind kind,
                  const union inf_message *message, struct inf_span data);

// --- requests for the models of the daemon's repository ---

// Fills a request for the model "add". The data segment has `rows` rows of the input a, followed by
// `rows` rows of the input b.
void inf_add_request(union inf_message *message, int64_t rows);

// Fills a request for the model slow, which runs for more than a second on the reference device.
// The model brief has the same input and takes an eighth of that time. It is for tests that wait
// until a run ends.
void inf_slow_request(union inf_message *message);

// Returns the data segment of inf_slow_request().
struct inf_span inf_slow_data(void);

// Waits for the final reply of an inference, which must be OK, and decodes the reply.
void inf_raw_expect_infer(struct inf_raw *raw, uint64_t stream_id);

// Reads the daemon's counters.
struct inf_server_status inf_raw_server_status(struct inf_raw *raw);

// Waits until the daemon's counters show these numbers of requests in flight and of regions. Fails
// after ten seconds.
void inf_raw_wait_for(struct inf_raw *raw, uint32_t requests_in_flight, uint32_t regions);

// Returns a memfd of `size` written bytes, sealed with `seals`. The caller closes the descriptor.
int inf_memfd(size_t size, int seals);

// Registers a memfd as region `id` and checks that the daemon accepts it. Closes `fd`.
void inf_raw_register(struct inf_raw *raw, uint64_t id, int fd, uint64_t size, bool writable);

#endif
