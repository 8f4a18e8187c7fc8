// SPDX-License-Identifier: Apache-2.0
// Decides which thread may write to a connection, without a lock.
//
// The problem: a worker that has a small reply can write it itself; passing it to the loop would
// cost a wake-up of another thread, which takes longer than the write. But frames must not be mixed
// on the socket, replies that the loop queued first must go first, and a worker must never wait for
// the loop or the other way round.
//
// The idea: one atomic state per connection. A thread that wants to write changes it from FREE; a
// thread that fails goes away: a worker then passes its reply to the loop, and the loop marks that
// it waits and is notified later.
//
//              loop enters                     worker enters
//   LOOP  <------------------  FREE  ------------------->  WORKER --loop wants to enter--> WANTED
//    |   ------------------->   ^                           |  |                             |
//    |      loop leaves         +------ wrote everything ---+  |                             |
//    +<-- loop takes it back -- LEFT <-- part not written -----+<----------------------------+
//
//   close: FREE, LOOP, LEFT -> CLOSED (the loop closes the socket)
//          WORKER, WANTED -> CLOSING -> CLOSED (the worker closes it when it leaves)
//
// Why it is correct: every transition is one compare-and-swap with acquire and release order, and
// only the thread that is in (LOOP, or WORKER/WANTED/CLOSING) touches the socket and `rest`. A
// worker enters only from FREE, and the loop stays in LOOP as long as it has frames queued, so a
// worker never overtakes them. If the socket takes only a part of a worker's frame, the rest is
// copied to `rest` and the writer goes through LEFT to the loop, which writes it before anything
// else. The writer owns the descriptor: it is closed only after the last thread left, so a recycled
// descriptor number is never written to.
#include "daemon/output/reply_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum state {
    FREE,
    LOOP,    // the loop may write to the socket
    WORKER,  // a worker may write to the socket
    WANTED,  // a worker may write to the socket, and the loop wants to write after it
    LEFT,    // a worker is done; the writer is in the list of writers returned to the loop
    CLOSING, // a worker may write to the socket, and then closes it; no other thread may write
    CLOSED,
};

struct inf_reply_writer {
    struct inf_reply_writer_returns *returns;
    atomic_uint references;
    _Atomic enum state state;
    int fd;
    void (*close_fd)(void *context, int fd); // function that closes the socket; NULL: close()
    void *close_context;
    struct inf_send_log log; // log.record is NULL: writes are not recorded
    bool keep_open;          // closing leaves the connection open
    // `rest` and `rest_bytes` are used only by the thread that may write in the present state.
    uint8_t *rest; // bytes that a worker could not write, in a buffer of the pool; NULL: none
    size_t rest_bytes;
    uint32_t rest_pending_plus_1;
    bool rest_partial;
    // `owner` is used only by the event loop.
    void *owner;
    struct inf_reply_writer *next; // link of the list of writers returned to the loop
};

struct inf_reply_writer_returns {
    struct inf_pool *pool;
    int fd;
    // Stack of writers that workers returned to the loop, the latest first.
    _Atomic(struct inf_reply_writer *) pushed;
    struct inf_reply_writer *taken; // writers that the loop has taken from `pushed`
};

// --- the list of writers that workers returned to the loop ---

enum inf_code inf_reply_writer_returns_create(struct inf_reply_writer_returns **out_returns,
                                              struct inf_pool *pool, struct inf_error *err)
{
    struct inf_reply_writer_returns *returns = calloc(1, sizeof *returns);
    if (returns == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a list of reply writers");
    returns->pool = pool;
    atomic_init(&returns->pushed, NULL);
    returns->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (returns->fd < 0) {
        enum inf_code code = inf_fail(err, INF_EXHAUSTED, "eventfd: %s", strerror(errno));
        inf_reply_writer_returns_destroy(&returns);
        return code;
    }
    *out_returns = returns;
    return INF_OK;
}

static void unref_list(struct inf_reply_writer *first)
{
    while (first != NULL) {
        struct inf_reply_writer *writer = first;
        first = writer->next;
        inf_reply_writer_unref(&writer);
    }
}

void inf_reply_writer_returns_destroy(struct inf_reply_writer_returns **returns)
{
    if (*returns == NULL)
        return;
    unref_list((*returns)->taken);
    unref_list(atomic_load(&(*returns)->pushed));
    if ((*returns)->fd >= 0)
        close((*returns)->fd);
    free(*returns);
    *returns = NULL;
}

int inf_reply_writer_returns_fd(const struct inf_reply_writer_returns *returns)
{
    return returns->fd;
}

// Returns a writer to the loop, and notifies the loop if the list of returned writers was empty.
static void push_returned(struct inf_reply_writer *writer)
{
    struct inf_reply_writer_returns *returns = writer->returns;
    struct inf_reply_writer *first = atomic_load_explicit(&returns->pushed, memory_order_relaxed);
    do
        writer->next = first;
    while (!atomic_compare_exchange_weak_explicit(&returns->pushed, &first, writer,
                                                  memory_order_release, memory_order_relaxed));
    uint64_t one = 1;
    while (first == NULL && write(returns->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

bool inf_reply_writer_returns_next(struct inf_reply_writer_returns *returns,
                                   struct inf_reply_writer_rest *rest)
{
    for (;;) {
        // Acquire order makes everything that the workers wrote to these writers visible to the
        // loop.
        if (returns->taken == NULL)
            returns->taken = atomic_exchange_explicit(&returns->pushed, NULL, memory_order_acquire);
        struct inf_reply_writer *writer = returns->taken;
        if (writer == NULL)
            return false;
        returns->taken = writer->next;
        enum state state = LEFT;
        bool open = atomic_compare_exchange_strong_explicit(
            &writer->state, &state, LOOP, memory_order_acquire, memory_order_relaxed);
        if (open) {
            *rest = (struct inf_reply_writer_rest){.owner = writer->owner,
                                                   .buffer = writer->rest,
                                                   .size_bytes = writer->rest_bytes,
                                                   .pending_plus_1 = writer->rest_pending_plus_1,
                                                   .partial = writer->rest_partial};
            writer->rest = NULL;
        }
        inf_reply_writer_unref(&writer);
        if (open)
            return true;
    }
}

// --- counting the references of a writer, and closing it ---

enum inf_code inf_reply_writer_create(struct inf_reply_writer **out_writer,
                                      struct inf_reply_writer_returns *returns, int fd, void *owner,
                                      struct inf_error *err)
{
    struct inf_reply_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a connection");
    writer->returns = returns;
    writer->fd = fd;
    writer->owner = owner;
    atomic_init(&writer->references, 1);
    atomic_init(&writer->state, FREE);
    *out_writer = writer;
    return INF_OK;
}

void inf_reply_writer_set_close(struct inf_reply_writer *writer,
                                void (*close_fd)(void *context, int fd), void *context)
{
    writer->close_fd = close_fd;
    writer->close_context = context;
}

struct inf_send_log *inf_reply_writer_start_log(struct inf_reply_writer *writer,
                                                struct inf_sent_record *record,
                                                struct inf_pending *pendings, bool fresh)
{
    assert(atomic_load_explicit(&writer->state, memory_order_relaxed) == LOOP);
    inf_send_log_init(&writer->log, record, pendings, fresh);
    return &writer->log;
}

void inf_reply_writer_keep_open(struct inf_reply_writer *writer)
{
    writer->keep_open = true;
}

bool inf_reply_writer_is_closed(const struct inf_reply_writer *writer)
{
    return atomic_load_explicit(&writer->state, memory_order_acquire) == CLOSED;
}

// Shuts the connection down and closes the socket. The shutdown comes first, so that the client is
// disconnected at once even if a close_fd callback closes the descriptor much later.
static void close_socket(struct inf_reply_writer *writer)
{
    if (writer->close_fd == NULL) {
        close(writer->fd);
        return;
    }
    if (!writer->keep_open)
        shutdown(writer->fd, SHUT_RDWR);
    writer->close_fd(writer->close_context, writer->fd);
}

struct inf_reply_writer *inf_reply_writer_ref(struct inf_reply_writer *writer)
{
    // Relaxed memory order is enough, because the caller already holds a reference.
    atomic_fetch_add_explicit(&writer->references, 1, memory_order_relaxed);
    return writer;
}

void inf_reply_writer_unref(struct inf_reply_writer **writer)
{
    struct inf_reply_writer *gone = *writer;
    *writer = NULL;
    // Acquire and release order makes all writes of the threads that held a reference visible to
    // the thread that frees the writer.
    if (gone == NULL || atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) != 1)
        return;
    inf_pool_release(gone->returns->pool, gone->rest, gone->rest_bytes);
    free(gone);
}

// --- changing the state of a writer ---

// Changes the state from *state to `next`. On failure, sets *state to the present state.
static bool change_state(struct inf_reply_writer *writer, enum state *state, enum state next)
{
    return atomic_compare_exchange_strong_explicit(&writer->state, state, next,
                                                   memory_order_acq_rel, memory_order_acquire);
}

bool inf_reply_writer_enter_loop(struct inf_reply_writer *writer)
{
    enum state state = FREE;
    while (!change_state(writer, &state, state == FREE ? LOOP : WANTED))
        if (state != FREE && state != WORKER)
            return state == LOOP;
    return state == FREE;
}

void inf_reply_writer_leave_loop(struct inf_reply_writer *writer)
{
    enum state state = LOOP;
    bool left = change_state(writer, &state, FREE);
    assert(left && "the loop was not in");
    (void)left;
}

bool inf_reply_writer_busy(const struct inf_reply_writer *writer)
{
    return atomic_load_explicit(&writer->state, memory_order_relaxed) != FREE;
}

void inf_reply_writer_close(struct inf_reply_writer *writer)
{
    enum state state = atomic_load_explicit(&writer->state, memory_order_relaxed);
    assert(state != CLOSING && state != CLOSED);
    while (!change_state(writer, &state, state == WORKER || state == WANTED ? CLOSING : CLOSED))
        ;
    writer->owner = NULL;
    if (state != WORKER && state != WANTED)
        close_socket(writer);
}

bool inf_reply_writer_enter_worker(struct inf_reply_writer *writer)
{
    enum state state = FREE;
    return change_state(writer, &state, WORKER);
}

void inf_reply_writer_leave_worker(struct inf_reply_writer *writer)
{
    enum state state = WORKER;
    bool left = writer->rest != NULL;
    for (;;) {
        enum state next = left || state == WANTED ? LEFT : FREE;
        if (state == CLOSING)
            next = CLOSED;
        // Take a reference for the list of returned writers before the state changes, because
        // afterwards the loop may find the writer and release it.
        if (next == LEFT)
            (void)!inf_reply_writer_ref(writer);
        if (change_state(writer, &state, next)) {
            if (next == LEFT)
                push_returned(writer);
            else if (next == CLOSED)
                close_socket(writer);
            return;
        }
        if (next == LEFT) {
            struct inf_reply_writer *again = writer;
            inf_reply_writer_unref(&again);
        }
    }
}

// Copies the bytes of a frame after the first `sent` ones into a buffer, which the loop writes
// later.
static void copy_rest(struct inf_reply_writer *writer, const struct iovec *parts, size_t count,
                      size_t sent)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += parts[i].iov_len;
    if (sent == total)
        return;
    writer->rest_bytes = total - sent;
    writer->rest = inf_pool_acquire(writer->returns->pool, writer->rest_bytes);
    if (writer->rest == NULL) {
        // Without a buffer, the unwritten bytes of this frame are lost. Shut the connection down,
        // because no other frame may follow a partly written one.
        shutdown(writer->fd, SHUT_RDWR);
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t skipped = sent < parts[i].iov_len ? sent : parts[i].iov_len;
        sent -= skipped;
        memcpy(writer->rest + used, (const uint8_t *)parts[i].iov_base + skipped,
               parts[i].iov_len - skipped);
        used += parts[i].iov_len - skipped;
    }
}

// Calls sendmsg() once, through the send log if there is one.
static ssize_t send_parts(struct inf_reply_writer *writer, const struct iovec *parts, size_t count,
                          uint32_t pending_plus_1)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
    if (writer->log.record == NULL)
        return sendmsg(writer->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    struct inf_sent_frame frame = {.pending_plus_1 = (uint16_t)pending_plus_1};
    for (size_t i = 0; i < count; i++)
        frame.bytes += (uint32_t)parts[i].iov_len;
    return inf_send_log_send(&writer->log, writer->fd, &message, &frame, 1,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
}

void inf_reply_writer_write(struct inf_reply_writer *writer, const struct iovec *parts,
                            size_t count, uint32_t pending_plus_1)
{
    ssize_t sent;
    do
        sent = send_parts(writer, parts, count, pending_plus_1);
    while (sent < 0 && errno == EINTR);
    writer->rest_pending_plus_1 = pending_plus_1;
    writer->rest_partial = sent > 0;
    if (sent >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
        copy_rest(writer, parts, count, sent > 0 ? (size_t)sent : 0);
    inf_reply_writer_leave_worker(writer);
}
