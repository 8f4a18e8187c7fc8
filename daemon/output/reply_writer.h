// SPDX-License-Identifier: Apache-2.0
// Decides which thread may write to a client's socket: none, the loop, or one worker. A worker may
// enter only if no other reply is queued before its own. The worker writes the bytes that the
// socket accepts, and leaves. If bytes remain, the loop is notified and writes them. Neither thread
// waits for the other. reply_writer.c explains the states.
#ifndef INF_DAEMON_OUTPUT_REPLY_WRITER_H
#define INF_DAEMON_OUTPUT_REPLY_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backends/base/role.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/output/send_log.h"

// The writer of one connection. The connection holds a reference, and so does each of its requests
// that a worker has. The writer owns the descriptor of the socket, so that no thread writes to a
// descriptor number that was closed and reused.
struct inf_reply_writer;

// The list of writers that workers returned to the loop. Outlives all writers.
struct inf_reply_writer_returns;

// Creates an empty list with an eventfd. `pool` outlives the list. The caller destroys
// *out_returns.
//
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_reply_writer_returns_create(struct inf_reply_writer_returns **out_returns,
                                              struct inf_pool *pool,
                                              struct inf_error *err) INF_NODISCARD;

// Frees the list of returned writers. The caller ensures that no worker uses a writer that would be
// returned to this list. *returns may be NULL.
void inf_reply_writer_returns_destroy(struct inf_reply_writer_returns **returns);

// Returns a descriptor that becomes readable when a worker returns a writer to the loop. The loop
// must watch it edge-triggered.
int inf_reply_writer_returns_fd(const struct inf_reply_writer_returns *returns);

// The part of a frame that a worker could not write.
struct inf_reply_writer_rest {
    void *owner; // the owner that was passed to inf_reply_writer_create()
    // A pool buffer with the unwritten bytes, now owned by the caller, who must write them before
    // any other frame; NULL: no bytes remain.
    uint8_t *buffer;
    size_t size_bytes;
    uint32_t pending_plus_1; // as in struct inf_output_item
    bool partial;            // the client got the bytes before these
};

// Removes the next writer that is not closed from the list of returned writers; the loop may then
// write to its socket. Returns false if there is none.
bool inf_reply_writer_returns_next(struct inf_reply_writer_returns *returns,
                                   struct inf_reply_writer_rest *rest) INF_NODISCARD INF_ON_LOOP;

// Creates a writer for a socket, with one reference. No thread may write to the socket until
// inf_reply_writer_enter_loop() or inf_reply_writer_enter_worker() gives it the right to. On
// success the writer owns the descriptor.
//
// INF_EXHAUSTED  (HOST_OOM) memory is exhausted.
enum inf_code inf_reply_writer_create(struct inf_reply_writer **out_writer,
                                      struct inf_reply_writer_returns *returns, int fd, void *owner,
                                      struct inf_error *err) INF_NODISCARD;

// Sets the function that closes the socket instead of close(). The last thread that may write to
// the socket calls it, after shutting the socket down. A replacement is useful because close() of a
// socket also closes descriptors that the client sent and the daemon did not receive, which may
// block as long as the client wants.
void inf_reply_writer_set_close(struct inf_reply_writer *writer,
                                void (*close_fd)(void *context, int fd), void *context);

// Makes every write go through a send log, see inf_send_log_init(). Returns the log, which belongs
// to the writer. The shared memory must outlive the writer. The loop must have the right to write.
struct inf_send_log *inf_reply_writer_start_log(struct inf_reply_writer *writer,
                                                struct inf_sent_record *record,
                                                struct inf_pending *pendings,
                                                bool fresh) INF_ON_LOOP;

// Makes closing the writer leave the connection open, because another descriptor of the socket is
// kept for the next process.
void inf_reply_writer_keep_open(struct inf_reply_writer *writer) INF_ON_LOOP;

// Returns true if no thread can write to the socket any longer.
bool inf_reply_writer_is_closed(const struct inf_reply_writer *writer) INF_ON_LOOP;

// Takes another reference to a writer.
struct inf_reply_writer *inf_reply_writer_ref(struct inf_reply_writer *writer) INF_NODISCARD;

// Drops a reference and sets the pointer to NULL. NULL is allowed.
void inf_reply_writer_unref(struct inf_reply_writer **writer);

// --- functions for the loop ---

// Gives the loop, or lets it keep, the right to write to the socket. Returns false if a worker has
// this right; then the writer comes to the loop through the list of returned writers.
bool inf_reply_writer_enter_loop(struct inf_reply_writer *writer) INF_NODISCARD INF_ON_LOOP;

// Ends the loop's right to write to the socket. All queued frames must have been written.
void inf_reply_writer_leave_loop(struct inf_reply_writer *writer) INF_ON_LOOP;

// Returns true if a thread has the right to write, or if a worker left bytes that the loop must
// write.
bool inf_reply_writer_busy(const struct inf_reply_writer *writer) INF_ON_LOOP;

// Closes the socket: at once, or if a worker is writing to it, when that worker is done. Afterwards
// no thread can get the right to write.
void inf_reply_writer_close(struct inf_reply_writer *writer) INF_ON_LOOP;

// --- functions for workers ---

// Gives the calling worker the right to write to the socket. Returns false if another thread has
// this right, or the writer is closed.
bool inf_reply_writer_enter_worker(struct inf_reply_writer *writer) INF_NODISCARD;

// Writes as much of one frame as the socket accepts, leaves the remaining bytes to the loop, and
// ends the worker's right to write. Never blocks. Errors are ignored, because the loop notices a
// disconnected client. `pending_plus_1` is the entry of the send log that the frame answers, plus
// 1; 0: none.
void inf_reply_writer_write(struct inf_reply_writer *writer, const struct iovec *parts,
                            size_t count, uint32_t pending_plus_1);

// Ends the worker's right to write to the socket, without writing.
void inf_reply_writer_leave_worker(struct inf_reply_writer *writer);

#endif
