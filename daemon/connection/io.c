// SPDX-License-Identifier: Apache-2.0
// The entry points from the event loop: read frames, write replies, check timeouts. Each callback
// ends with inf_connections_flush(), which writes what it produced and frees connections that were
// closed.
#include "daemon/connection/io.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/base/clock.h"
#include "daemon/connection/accept.h"
#include "daemon/connection/close.h"
#include "daemon/connection/fail.h"
#include "daemon/connection/flush.h"
#include "daemon/connection/frame.h"
#include "daemon/connection/kept.h"
#include "daemon/connection/watch.h"

// The most calls of recvmsg() per wake-up, so that one busy client does not starve the others.
#define READS_PER_WAKEUP 4
// The highest number of descriptors in one message (SCM_MAX_FD of the kernel). The buffer has room
// for all of them. Otherwise the kernel would close the remaining ones on the receiving thread,
// which is the loop, and close() may block.
#define FDS_PER_MESSAGE 253u
// Data of this size or more is read directly into its final buffer.
#define DIRECT_BYTES 4096u

static bool is_past(uint64_t since_ns, uint64_t ms, uint64_t now_ns)
{
    return since_ns != 0 && since_ns + ms * INF_NS_PER_MS <= now_ns;
}

void inf_connection_on_timer(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_connection *connection = context;
    struct inf_connections *set = connection->set;
    struct inf_error err;
    inf_service_begin_turn(set->options.service);
    connection->timer_ns = 0;
    uint64_t due = inf_connection_due_ns(connection);
    // Handle timeouts that expire within the next millisecond too, because a libevent timer may
    // fire up to a millisecond early.
    uint64_t now_ns = inf_clock_ns() + INF_NS_PER_MS;
    uint32_t timeout_ms = set->options.config->reply_soft_ms;
    if (due == 0 || due > now_ns) {
        inf_connection_watch(connection);
    } else if (is_past(connection->output.first_since_ns, timeout_ms, now_ns)) {
        inf_log(set->options.log, INF_LOG_INFO, "client does not read, closing uid=%u",
                (unsigned)connection->caller.uid);
        inf_connection_close(connection);
    } else if (is_past(connection->soft_since_ns, timeout_ms, now_ns)) {
        inf_connection_end_slow_reader(connection);
    } else {
        inf_fail_reason(&err, INF_DEADLINE, INF_REASON_BAD_FRAME,
                        connection->state == INF_CONNECTION_GREETING
                            ? "no HELLO within %u ms"
                            : "a frame, or a request's data, is not complete after %u ms",
                        connection->state == INF_CONNECTION_GREETING ? INF_CONNECTION_GREETING_MS
                                                                     : INF_LIMIT_FRAME_MS);
        inf_connection_fail(connection, &err);
    }
    inf_connections_flush(set);
}

// Takes the complete frame out of the assembler and handles it.
static void take_ready_frame(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_frame frame;
    inf_assembler_take(&connection->assembler, &frame);
    connection->frame_since_ns = 0;
    inf_connection_take_frame(connection, &frame);
}

void inf_connection_feed(struct inf_connection *connection, struct inf_span bytes)
{
    struct inf_error err;
    const uint8_t *begin = inf_connection_read_buffer(connection);
    do {
        size_t used = 0;
        if (inf_assembler_feed(&connection->assembler, bytes, &used, &err) != INF_OK) {
            inf_connection_fail(connection, &err);
            return;
        }
        bytes.data += used;
        bytes.size -= used;
        connection->set->frame_end = bytes.data != NULL ? (uint32_t)(bytes.data - begin) : 1;
        if (connection->assembler.state == INF_ASSEMBLER_READY)
            take_ready_frame(connection);
    } while (bytes.size > 0 && connection->state <= INF_CONNECTION_OPEN);
}

// Passes descriptors that the client sent to the assembler. read_socket() has already charged them
// to the user's quota.
static enum inf_code take_fds(struct inf_connection *connection, struct msghdr *message,
                              struct inf_error *err) INF_ON_LOOP
{
    struct inf_deferred_close *deferred_close = connection->set->options.deferred_close;
    int fds[FDS_PER_MESSAGE];
    uint32_t count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t size = part->cmsg_len - CMSG_LEN(0);
        assert(size / sizeof(int) <= FDS_PER_MESSAGE - count);
        memcpy(fds + count, CMSG_DATA(part), size);
        count += (uint32_t)(size / sizeof(int));
    }
    inf_deferred_close_cancel(deferred_close, FDS_PER_MESSAGE - count);
    bool lost = (message->msg_flags & MSG_CTRUNC) != 0 || count > INF_LIMIT_FRAME_FDS;
    enum inf_code code = inf_quota_charge(connection->user, INF_QUOTA_FDS, count, err);
    // The descriptors stay charged to the user until they are closed, even if this exceeds the
    // user's limit.
    if (code != INF_OK)
        inf_quota_charge_held(connection->user, INF_QUOTA_FDS, count);
    for (uint32_t i = 0; i < count && (lost || code != INF_OK); i++)
        inf_deferred_close_fd(deferred_close, fds[i], connection->user);
    if (lost)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "file descriptors were lost: more than %u with one frame, or none "
                               "left here",
                               INF_LIMIT_FRAME_FDS);
    if (code != INF_OK)
        return code;
    return count > 0 ? inf_assembler_add_fds(&connection->assembler, fds, count, err) : INF_OK;
}

// Handles the bytes from one recvmsg(). If `direct` is set, the bytes are already in the buffer of
// the assembler.
static void take_message(struct inf_connection *connection, struct msghdr *message, size_t size,
                         bool direct) INF_ON_LOOP
{
    struct inf_error err;
    if (take_fds(connection, message, &err) != INF_OK) {
        inf_connection_fail(connection, &err);
        return;
    }
    if (!direct) {
        inf_connection_feed(connection, (struct inf_span){message->msg_iov->iov_base, size});
        return;
    }
    inf_assembler_advance(&connection->assembler, size);
    inf_connection_feed(connection, (struct inf_span){NULL, 0});
}

// Calls recvmsg() once. Returns true if more bytes may be waiting.
static bool read_socket(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    uint8_t *room = NULL;
    size_t size = 0;
    inf_assembler_data_room(&connection->assembler, &room, &size);
    bool direct = size >= DIRECT_BYTES;
    struct iovec part = {
        .iov_base = direct ? room : inf_connection_read_buffer(connection),
        .iov_len = inf_connection_read_limit(connection, direct ? size : sizeof set->read_buffer)};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE)];
    } control;
    struct inf_deferred_close *deferred_close = set->options.deferred_close;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (inf_deferred_close_reserve(deferred_close, FDS_PER_MESSAGE, NULL) != INF_OK) {
        inf_connection_close(connection);
        return false;
    }
    ssize_t got =
        inf_connection_receive(connection, &message, direct, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got <= 0)
        inf_deferred_close_cancel(deferred_close, FDS_PER_MESSAGE);
    if (got < 0 && errno == EINTR)
        return true;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (got <= 0) {
        inf_connection_close(connection);
        inf_connection_end_read(connection);
        return false;
    }
    take_message(connection, &message, (size_t)got, direct);
    inf_connection_end_read(connection);
    if (set->draining)
        inf_connection_pause(connection);
    return (size_t)got == part.iov_len && !connection->paused;
}

void inf_connection_on_readable(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_connection *connection = context;
    struct inf_connections *set = connection->set;
    const uint64_t client_id = connection->id;
    const uint64_t begin_ns = inf_service_begin_slice(set->options.service);
    inf_service_begin_turn(set->options.service);
    // Workers may have written replies to this client already. Record these replies first, because
    // they free credit that the next request of the client needs.
    inf_connections_take_done(set);
    inf_deferred_close_settle(set->options.deferred_close);
    for (int i = 0; connection->state <= INF_CONNECTION_OPEN && i < READS_PER_WAKEUP; i++)
        if (!read_socket(connection) || connection->state > INF_CONNECTION_OPEN)
            break;
    if (connection->state <= INF_CONNECTION_OPEN) {
        bool partial = inf_assembler_partial(&connection->assembler);
        if (partial && connection->frame_since_ns == 0)
            connection->frame_since_ns = inf_clock_ns();
        inf_connection_watch(connection);
    }
    inf_connections_flush(set);
    inf_service_note_slice(set->options.service, INF_TIMELINE_READ, client_id, begin_ns);
}

void inf_connection_on_writable(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_connection *connection = context;
    struct inf_connections *set = connection->set;
    inf_service_begin_turn(set->options.service);
    inf_connection_flush(connection);
    inf_connections_flush(set);
}
