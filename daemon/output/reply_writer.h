// SPDX-License-Identifier: Apache-2.0
// Decides which thread may write to a client's socket: none, the loop, or one worker. A worker may
// enter only if nothing is queued before its reply; it writes what the socket takes, and leaves.
// The loop is notified of the rest and writes it. Neither waits for the other. reply_writer.c
// explains the states.
#ifndef INF_DAEMON_OUTPUT_REPLY_WRITER_H
#define INF_DAEMON_OUTPUT_REPLY_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backends/base/role.h"
#include "daemon/output/buffer_pool.h"

// The writer of one connection. Shared by reference between the connection and those of its
// requests that workers have. Owns the descriptor of the socket, so that a closed and reused
// descriptor number is never written to.
struct inf_reply_writer;

// Writers that workers left to the loop. Outlives all writers.
struct inf_reply_writer_returns;

// Creates an empty list with an eventfd. `pool` outlives it. *out_returns is the caller's to
// destroy.
//
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_reply_writer_returns_create(struct inf_reply_writer_returns **out_returns,
                                              struct inf_pool *pool,
                                              struct inf_error *err) INF_NODISCARD;

// Frees the list. No worker may use a writer any longer. NULL is allowed.
void inf_reply_writer_returns_destroy(struct inf_reply_writer_returns **returns);

// Returns a descriptor that becomes readable each time a writer returns; to be watched
// edge-triggered.
int inf_reply_writer_returns_fd(const struct inf_reply_writer_returns *returns);

// What a worker left unwritten.
struct inf_reply_writer_rest {
    void *owner;     // as given to inf_reply_writer_create()
    uint8_t *buffer; // of the pool, now the caller's; to be written before all else; NULL: nothing
    size_t size_bytes;
};

// Takes the next returned writer that is not closed; the loop may write then. Returns false if
// there is none.
bool inf_reply_writer_returns_next(struct inf_reply_writer_returns *returns,
                                   struct inf_reply_writer_rest *rest) INF_NODISCARD INF_ON_LOOP;

// Creates a writer for a socket, which no thread has entered, with one reference. On success the
// writer owns the descriptor.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code inf_reply_writer_create(struct inf_reply_writer **out_writer,
                                      struct inf_reply_writer_returns *returns, int fd, void *owner,
                                      struct inf_error *err) INF_NODISCARD;

// Sets the function that closes the socket, instead of close(), on the thread that leaves last.
// close() of a socket also closes descriptors that the client sent and the daemon did not receive,
// and may block for as long as the client likes. The socket is shut down before.
void inf_reply_writer_set_close(struct inf_reply_writer *writer,
                                void (*close_fd)(void *context, int fd), void *context);

// Takes another reference.
struct inf_reply_writer *inf_reply_writer_ref(struct inf_reply_writer *writer) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. NULL is allowed.
void inf_reply_writer_unref(struct inf_reply_writer **writer);

// --- for the loop ---

// Enters, or stays in. Returns false if a worker is in; then the writer returns through the list.
bool inf_reply_writer_enter_loop(struct inf_reply_writer *writer) INF_NODISCARD INF_ON_LOOP;

// Leaves, after everything that was queued is written.
void inf_reply_writer_leave_loop(struct inf_reply_writer *writer) INF_ON_LOOP;

// Returns true if a thread is in, or left something to write.
bool inf_reply_writer_busy(const struct inf_reply_writer *writer) INF_ON_LOOP;

// Closes the socket, at once or when the worker that is in leaves. No thread can enter afterwards.
void inf_reply_writer_close(struct inf_reply_writer *writer) INF_ON_LOOP;

// --- for workers ---

// Enters. Returns false if another thread is in, or the writer is closed.
bool inf_reply_writer_enter_worker(struct inf_reply_writer *writer) INF_NODISCARD;

// Writes one frame as far as the socket takes it, keeps the rest for the loop, and leaves. Never
// blocks. Errors are ignored: the loop notices a disconnected client.
void inf_reply_writer_write(struct inf_reply_writer *writer, const struct iovec *parts,
                            size_t count);

// Leaves without writing.
void inf_reply_writer_leave_worker(struct inf_reply_writer *writer);

#endif
