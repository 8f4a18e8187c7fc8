// SPDX-License-Identifier: Apache-2.0
// Who may write to a client's socket: nobody, the loop, or one worker. A worker gets in only where nothing
// waits to be written before what it has, writes what the socket takes, and leaves; what is left then is
// the loop's to write, which is told of it. Neither waits for the other.
#ifndef INF_DAEMON_OUTPUT_REPLY_WRITER_H
#define INF_DAEMON_OUTPUT_REPLY_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "backends/base/role.h"
#include "daemon/output/buffer_pool.h"

// One connection's. Shared by reference between the connection and requests of it that workers have. It
// owns the socket's descriptor, so that none is written to that is somebody else's by now.
struct inf_reply_writer;

// Gates that workers have left for the loop to go on. Outlives all gates.
struct inf_reply_writer_returns;

// Makes an empty list with an eventfd. `pool` outlives it. *out_returns is the caller's to destroy.
//
// INF_EXHAUSTED  memory, or file descriptors.
enum inf_code inf_reply_writer_returns_create(struct inf_reply_writer_returns **out_returns,
                                              struct inf_pool *pool,
                                              struct inf_error *err) INF_NODISCARD;

// Frees the list; no worker has a gate any more. NULL is fine.
void inf_reply_writer_returns_destroy(struct inf_reply_writer_returns **returns);

// Becomes readable each time a gate comes back: to be watched edge-triggered.
int inf_reply_writer_returns_fd(const struct inf_reply_writer_returns *returns);

// What a worker has left.
struct inf_reply_writer_rest {
    void *owner;     // as given to inf_reply_writer_create()
    uint8_t *buffer; // of the pool, now the caller's: to be written before all else; NULL: nothing
    size_t size_bytes;
};

// Takes the next gate that came back and is not closed: it is the loop's now. False: there is none.
bool inf_reply_writer_returns_next(struct inf_reply_writer_returns *returns,
                                   struct inf_reply_writer_rest *rest) INF_NODISCARD INF_ON_LOOP;

// Makes a gate for a socket, and a reference to it; nobody is in. The descriptor is the gate's from then
// on, but not on failure.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code inf_reply_writer_create(struct inf_reply_writer **out_gate,
                                      struct inf_reply_writer_returns *returns, int fd, void *owner,
                                      struct inf_error *err) INF_NODISCARD;

// Another reference.
struct inf_reply_writer *inf_reply_writer_ref(struct inf_reply_writer *writer) INF_NODISCARD;

// Drops a reference and sets the pointer NULL. NULL is fine.
void inf_reply_writer_unref(struct inf_reply_writer **writer);

// --- the loop's ---

// Gets the loop in, which is fine where it is in already. False: a worker is; the gate will come back.
bool inf_reply_writer_enter_loop(struct inf_reply_writer *writer) INF_NODISCARD INF_ON_LOOP;

// The loop has written all it had.
void inf_reply_writer_leave_loop(struct inf_reply_writer *writer) INF_ON_LOOP;

// Whether somebody is in, or has something to write left.
bool inf_reply_writer_busy(const struct inf_reply_writer *writer) INF_ON_LOOP;

// Closes the socket, now or as soon as the worker that is in leaves. Nobody gets in any more.
void inf_reply_writer_close(struct inf_reply_writer *writer) INF_ON_LOOP;

// --- a worker's ---

// Gets a worker in. False: somebody is in, or it is closed.
bool inf_reply_writer_enter_worker(struct inf_reply_writer *writer) INF_NODISCARD;

// Writes one frame as far as the socket takes it, keeps the rest of it for the loop, and leaves. Never
// blocks. A client that is gone is left to the loop to find out.
void inf_reply_writer_write(struct inf_reply_writer *writer, const struct iovec *parts,
                            size_t count);

// Leaves without having written.
void inf_reply_writer_leave_worker(struct inf_reply_writer *writer);

#endif
