// SPDX-License-Identifier: Apache-2.0
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
    LOOP,    // the loop is in
    WORKER,  // a worker is
    WANTED,  // a worker is, and the loop waits for it to leave
    LEFT,    // a worker has left something to the loop, which is being told
    CLOSING, // a worker is in, and the last one
    CLOSED,
};

struct inf_gate {
    struct inf_gate_returns *returns;
    atomic_uint references;
    _Atomic enum state state;
    int fd;
    // Whose turn it is, by `state`.
    uint8_t *rest; // of the pool; NULL: nothing
    size_t rest_bytes;
    // The loop's.
    void *owner;
    struct inf_gate *next; // in the list of those that came back
};

struct inf_gate_returns {
    struct inf_pool *pool;
    int fd;
    _Atomic(struct inf_gate *) pushed; // by workers, the latest first
    struct inf_gate *taken;            // the loop's
};

// --- those that came back ---

enum inf_code inf_gate_returns_create(struct inf_gate_returns **out_returns, struct inf_pool *pool,
                                      struct inf_error *err)
{
    struct inf_gate_returns *returns = calloc(1, sizeof *returns);
    if (returns == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a list of gates");
    returns->pool = pool;
    atomic_init(&returns->pushed, NULL);
    returns->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (returns->fd < 0) {
        enum inf_code code = inf_fail(err, INF_EXHAUSTED, "eventfd: %s", strerror(errno));
        inf_gate_returns_destroy(&returns);
        return code;
    }
    *out_returns = returns;
    return INF_OK;
}

static void drop_list(struct inf_gate *first)
{
    while (first != NULL) {
        struct inf_gate *gate = first;
        first = gate->next;
        inf_gate_unref(&gate);
    }
}

void inf_gate_returns_destroy(struct inf_gate_returns **returns)
{
    if (*returns == NULL)
        return;
    drop_list((*returns)->taken);
    drop_list(atomic_load(&(*returns)->pushed));
    if ((*returns)->fd >= 0)
        close((*returns)->fd);
    free(*returns);
    *returns = NULL;
}

int inf_gate_returns_fd(const struct inf_gate_returns *returns)
{
    return returns->fd;
}

// Tells the loop of a gate that is in nobody's hands but the list's until it takes it.
static void push(struct inf_gate *gate)
{
    struct inf_gate_returns *returns = gate->returns;
    struct inf_gate *first = atomic_load_explicit(&returns->pushed, memory_order_relaxed);
    do
        gate->next = first;
    while (!atomic_compare_exchange_weak_explicit(&returns->pushed, &first, gate,
                                                  memory_order_release, memory_order_relaxed));
    uint64_t one = 1;
    while (first == NULL && write(returns->fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

bool inf_gate_returns_next(struct inf_gate_returns *returns, struct inf_gate_rest *rest)
{
    for (;;) {
        // Acquire: what the worker wrote into the gates, down to the last of the list.
        if (returns->taken == NULL)
            returns->taken = atomic_exchange_explicit(&returns->pushed, NULL, memory_order_acquire);
        struct inf_gate *gate = returns->taken;
        if (gate == NULL)
            return false;
        returns->taken = gate->next;
        enum state state = LEFT;
        bool open = atomic_compare_exchange_strong_explicit(
            &gate->state, &state, LOOP, memory_order_acquire, memory_order_relaxed);
        if (open) {
            *rest = (struct inf_gate_rest){
                .owner = gate->owner, .buffer = gate->rest, .size_bytes = gate->rest_bytes};
            gate->rest = NULL;
        }
        inf_gate_unref(&gate);
        if (open)
            return true;
    }
}

// --- life ---

enum inf_code inf_gate_create(struct inf_gate **out_gate, struct inf_gate_returns *returns, int fd,
                              void *owner, struct inf_error *err)
{
    struct inf_gate *gate = calloc(1, sizeof *gate);
    if (gate == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a connection");
    gate->returns = returns;
    gate->fd = fd;
    gate->owner = owner;
    atomic_init(&gate->references, 1);
    atomic_init(&gate->state, FREE);
    *out_gate = gate;
    return INF_OK;
}

struct inf_gate *inf_gate_ref(struct inf_gate *gate)
{
    // Relaxed: whoever hands over a pointer holds a reference.
    atomic_fetch_add_explicit(&gate->references, 1, memory_order_relaxed);
    return gate;
}

void inf_gate_unref(struct inf_gate **gate)
{
    struct inf_gate *gone = *gate;
    *gate = NULL;
    // Acquire and release: whoever frees sees what others wrote.
    if (gone == NULL || atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) != 1)
        return;
    inf_pool_release(gone->returns->pool, gone->rest, gone->rest_bytes);
    free(gone);
}

// --- who is in ---

// Goes from one state to another, unless it is in a third, which is what `*state` becomes then.
static bool change(struct inf_gate *gate, enum state *state, enum state next)
{
    return atomic_compare_exchange_strong_explicit(&gate->state, state, next, memory_order_acq_rel,
                                                   memory_order_acquire);
}

bool inf_gate_enter_loop(struct inf_gate *gate)
{
    enum state state = FREE;
    while (!change(gate, &state, state == FREE ? LOOP : WANTED))
        if (state != FREE && state != WORKER)
            return state == LOOP;
    return state == FREE;
}

void inf_gate_leave_loop(struct inf_gate *gate)
{
    enum state state = LOOP;
    bool left = change(gate, &state, FREE);
    assert(left && "the loop was not in");
    (void)left;
}

bool inf_gate_busy(const struct inf_gate *gate)
{
    return atomic_load_explicit(&gate->state, memory_order_relaxed) != FREE;
}

void inf_gate_close(struct inf_gate *gate)
{
    enum state state = atomic_load_explicit(&gate->state, memory_order_relaxed);
    assert(state != CLOSING && state != CLOSED);
    while (!change(gate, &state, state == WORKER || state == WANTED ? CLOSING : CLOSED))
        ;
    gate->owner = NULL;
    if (state != WORKER && state != WANTED)
        close(gate->fd);
}

bool inf_gate_enter_worker(struct inf_gate *gate)
{
    enum state state = FREE;
    return change(gate, &state, WORKER);
}

void inf_gate_leave_worker(struct inf_gate *gate)
{
    enum state state = WORKER;
    bool left = gate->rest != NULL;
    for (;;) {
        enum state next = left || state == WANTED ? LEFT : FREE;
        if (state == CLOSING)
            next = CLOSED;
        // The list's reference comes before the loop can know of it.
        if (next == LEFT)
            (void)!inf_gate_ref(gate);
        if (change(gate, &state, next)) {
            if (next == LEFT)
                push(gate);
            else if (next == CLOSED)
                close(gate->fd);
            return;
        }
        if (next == LEFT) {
            struct inf_gate *again = gate;
            inf_gate_unref(&again);
        }
    }
}

// Copies what is behind the first `sent` bytes.
static void keep_rest(struct inf_gate *gate, const struct iovec *parts, size_t count, size_t sent)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += parts[i].iov_len;
    if (sent == total)
        return;
    gate->rest_bytes = total - sent;
    gate->rest = inf_pool_acquire(gate->returns->pool, gate->rest_bytes);
    if (gate->rest == NULL) {
        // Half a frame and then another would be nonsense: the client gets an end instead.
        shutdown(gate->fd, SHUT_RDWR);
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t skipped = sent < parts[i].iov_len ? sent : parts[i].iov_len;
        sent -= skipped;
        memcpy(gate->rest + used, (const uint8_t *)parts[i].iov_base + skipped,
               parts[i].iov_len - skipped);
        used += parts[i].iov_len - skipped;
    }
}

void inf_gate_write(struct inf_gate *gate, const struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)parts, .msg_iovlen = count};
    ssize_t sent;
    do
        sent = sendmsg(gate->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)
        keep_rest(gate, parts, count, sent > 0 ? (size_t)sent : 0);
    inf_gate_leave_worker(gate);
}
