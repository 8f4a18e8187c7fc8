// SPDX-License-Identifier: Apache-2.0
// What a connection waits for: bytes that come, room for bytes that go, time that runs out. Each of
// libevent's callbacks is here.
#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>

#include "backends/base/clock.h"
#include "daemon/connection/connection_private.h"

// Calls of recvmsg() in one turn of the loop, so that one busy client leaves room for the others.
#define READS_PER_TURN 4
// Data segments from this size on are read straight into their buffer.
#define DIRECT_BYTES 4096u

// --- timers ---

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 ? b : INF_MIN(a, b);
}

// Bytes of replies that wait for the client to read.
static uint64_t waiting_bytes(const struct inf_connection *connection)
{
    return connection->output.bytes + connection->stashed_bytes;
}

// When the client will have taken too long over what it is doing; 0: it may take for ever.
static uint64_t due_ns(const struct inf_connection *connection)
{
    uint64_t due = 0;
    if (connection->state == INF_CONNECTION_GREETING)
        due = connection->opened_ns + INF_CONNECTION_GREETING_MS * INF_NS_PER_MS;
    if (connection->frame_since_ns != 0)
        due = earlier(due, connection->frame_since_ns + INF_LIMIT_FRAME_MS * INF_NS_PER_MS);
    if (connection->uploads != NULL)
        due = earlier(due, inf_connection_uploads_due_ns(connection));
    uint64_t patience_ns = (uint64_t)connection->set->options.config->reply_soft_ms * INF_NS_PER_MS;
    if (connection->output.first_since_ns != 0)
        due = earlier(due, connection->output.first_since_ns + patience_ns);
    if (connection->soft_since_ns != 0)
        due = earlier(due, connection->soft_since_ns + patience_ns);
    return due;
}

static bool is_past(uint64_t since_ns, uint64_t ms, uint64_t now_ns)
{
    return since_ns != 0 && since_ns + ms * INF_NS_PER_MS <= now_ns;
}

// Ends the connection of a client that reads too slowly, or not at all: what it has not begun to read
// is dropped, and behind what it has comes the reason, should it go on.
static void end_slow_reader(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_error err;
    uint64_t bytes = waiting_bytes(connection);
    inf_log(set->options.log, INF_LOG_INFO, "client does not read, closing uid=%u bytes=%" PRIu64,
            (unsigned)connection->uid, bytes);
    if (connection->state > INF_CONNECTION_OPEN) {
        inf_connection_close(connection);
        return;
    }
    inf_output_cut(&connection->output, &set->output_store);
    connection->soft_since_ns = 0;
    inf_fail_reason(&err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                    "%" PRIu64 " bytes of replies were not read in time", bytes);
    inf_connection_fail(connection, &err);
}

// One that fires too early only looks around: most frames are complete long before, and would cost
// a timer each.
void inf_connection_watch(struct inf_connection *connection)
{
    if (connection->state == INF_CONNECTION_OVER)
        return;
    uint64_t due = due_ns(connection);
    if (due == 0 || (connection->timer_ns != 0 && connection->timer_ns <= due))
        return;
    uint64_t now = inf_clock_ns();
    uint64_t wait_us = due > now ? (due - now + 999) / 1000 : 0;
    struct timeval wait = {.tv_sec = (time_t)(wait_us / 1000000),
                           .tv_usec = (suseconds_t)(wait_us % 1000000)};
    if (event_add(connection->timer_event, &wait) == 0)
        connection->timer_ns = due;
}

void inf_connection_on_timer(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_connection *connection = context;
    struct inf_connections *set = connection->set;
    struct inf_error err;
    connection->timer_ns = 0;
    uint64_t due = due_ns(connection);
    // libevent may be a millisecond early.
    uint64_t now_ns = inf_clock_ns() + INF_NS_PER_MS;
    uint32_t patience_ms = set->options.config->reply_soft_ms;
    if (due == 0 || due > now_ns) {
        inf_connection_watch(connection);
    } else if (is_past(connection->output.first_since_ns, patience_ms, now_ns)) {
        inf_log(set->options.log, INF_LOG_INFO, "client does not read, closing uid=%u",
                (unsigned)connection->uid);
        inf_connection_close(connection);
    } else if (is_past(connection->soft_since_ns, patience_ms, now_ns)) {
        end_slow_reader(connection);
    } else {
        inf_fail_reason(&err, INF_DEADLINE, INF_REASON_BAD_FRAME,
                        connection->state == INF_CONNECTION_GREETING
                            ? "no HELLO within %u ms"
                            : "a frame, or a request's data, is not complete after %u ms",
                        connection->state == INF_CONNECTION_GREETING ? INF_CONNECTION_GREETING_MS
                                                                     : INF_LIMIT_FRAME_MS);
        inf_connection_fail(connection, &err);
    }
    inf_connections_settle(set);
}

// --- reading ---

// Takes the frame that is complete out of the assembler, and acts on it.
static void take_ready(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_frame frame;
    inf_assembler_take(&connection->assembler, &frame);
    connection->frame_since_ns = 0;
    inf_connection_take_frame(connection, &frame);
}

static void feed(struct inf_connection *connection, struct inf_span bytes) INF_ON_LOOP
{
    struct inf_error err;
    do {
        size_t used = 0;
        if (inf_assembler_feed(&connection->assembler, bytes, &used, &err) != INF_OK) {
            inf_connection_fail(connection, &err);
            return;
        }
        bytes.data += used;
        bytes.size -= used;
        if (connection->assembler.state == INF_ASSEMBLER_READY)
            take_ready(connection);
    } while (bytes.size > 0 && connection->state <= INF_CONNECTION_OPEN);
}

// Hands the descriptors that came to the assembler.
static enum inf_code take_fds(struct inf_connection *connection, struct msghdr *message,
                              struct inf_error *err) INF_ON_LOOP
{
    int fds[INF_LIMIT_FRAME_FDS];
    uint32_t count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        size_t size = part->cmsg_len - CMSG_LEN(0);
        assert(size / sizeof(int) <= INF_LIMIT_FRAME_FDS - count);
        memcpy(fds + count, CMSG_DATA(part), size);
        count += (uint32_t)(size / sizeof(int));
    }
    bool lost = (message->msg_flags & MSG_CTRUNC) != 0;
    enum inf_code code = inf_quota_charge(connection->user, INF_QUOTA_FDS, lost ? 0 : count, err);
    for (uint32_t i = 0; i < count && (lost || code != INF_OK); i++)
        inf_deferred_close_close(connection->set->options.deferred_close, fds[i]);
    if (lost)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "file descriptors were lost: more than %u with one frame, or none "
                               "left here",
                               INF_LIMIT_FRAME_FDS);
    if (code != INF_OK)
        return code;
    connection->fds += count;
    return count > 0 ? inf_assembler_add_fds(&connection->assembler, fds, count, err) : INF_OK;
}

// Acts on what recvmsg() gave.
static void take_bytes(struct inf_connection *connection, struct msghdr *message, size_t size,
                       bool direct) INF_ON_LOOP
{
    struct inf_error err;
    if (take_fds(connection, message, &err) != INF_OK) {
        inf_connection_fail(connection, &err);
        return;
    }
    if (!direct) {
        feed(connection, (struct inf_span){message->msg_iov->iov_base, size});
        return;
    }
    inf_assembler_advance(&connection->assembler, size);
    feed(connection, (struct inf_span){NULL, 0});
}

// Reads once. Whether more may wait.
static bool read_once(struct inf_connection *connection) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    uint8_t *room = NULL;
    size_t size = 0;
    inf_assembler_data_room(&connection->assembler, &room, &size);
    bool direct = size >= DIRECT_BYTES;
    struct iovec part = {.iov_base = direct ? room : set->read_buffer,
                         .iov_len = direct ? size : sizeof set->read_buffer};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * INF_LIMIT_FRAME_FDS)];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(connection->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR)
        return true;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (got <= 0) {
        inf_connection_close(connection);
        return false;
    }
    take_bytes(connection, &message, (size_t)got, direct);
    return (size_t)got == part.iov_len;
}

void inf_connection_on_readable(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_connection *connection = context;
    struct inf_connections *set = connection->set;
    // Whoever has been answered may ask again: what he was answered must be in the books.
    inf_connections_take_done(set);
    for (int i = 0; connection->state <= INF_CONNECTION_OPEN && i < READS_PER_TURN; i++)
        if (!read_once(connection) || connection->state > INF_CONNECTION_OPEN)
            break;
    if (connection->state <= INF_CONNECTION_OPEN) {
        bool partial = inf_assembler_partial(&connection->assembler);
        if (partial && connection->frame_since_ns == 0)
            connection->frame_since_ns = inf_clock_ns();
        inf_connection_watch(connection);
    }
    inf_connections_settle(set);
}

// --- writing ---

void inf_connection_set_reading(struct inf_connection *connection, bool on)
{
    if (connection->reading == on)
        return;
    int result = on ? event_add(connection->read_event, NULL) : event_del(connection->read_event);
    if (result == 0)
        connection->reading = on;
}

static void set_writing(struct inf_connection *connection, bool on)
{
    if (connection->writing == on)
        return;
    int result = on ? event_add(connection->write_event, NULL) : event_del(connection->write_event);
    if (result == 0)
        connection->writing = on;
}

void inf_connection_flush(struct inf_connection *connection)
{
    struct inf_output *output = &connection->output;
    if (connection->state == INF_CONNECTION_OVER)
        return;
    enum inf_output_state state = INF_OUTPUT_EMPTY;
    if (output->first != NULL || connection->state == INF_CONNECTION_CLOSING) {
        if (!inf_reply_writer_enter_loop(connection->writer))
            return;
        state = inf_output_flush(output, &connection->set->output_store, connection->fd);
        if (state == INF_OUTPUT_EMPTY)
            inf_reply_writer_leave_loop(connection->writer);
    }
    if (state == INF_OUTPUT_BROKEN ||
        (state == INF_OUTPUT_EMPTY && connection->state == INF_CONNECTION_CLOSING)) {
        inf_connection_close(connection);
        return;
    }
    set_writing(connection, state == INF_OUTPUT_BLOCKED);
    const struct inf_config *config = connection->set->options.config;
    bool open = connection->state <= INF_CONNECTION_OPEN;
    uint64_t bytes = waiting_bytes(connection);
    if (open && bytes > config->reply_bytes_hard_max) {
        end_slow_reader(connection); // which marks it to be flushed again
        return;
    }
    // A client that does not read its replies makes no more of them.
    if (bytes > config->reply_bytes_soft_max)
        inf_connection_set_reading(connection, false);
    else if (bytes <= config->reply_bytes_soft_max / 2)
        inf_connection_set_reading(connection, open);
    if (!open || bytes <= config->reply_bytes_soft_max)
        connection->soft_since_ns = 0;
    else if (connection->soft_since_ns == 0)
        connection->soft_since_ns = inf_clock_ns();
    inf_connection_watch(connection);
}

void inf_connection_on_writable(int fd, short what, void *context)
{
    (void)fd;
    (void)what;
    inf_role_enter_loop();
    struct inf_connection *connection = context;
    struct inf_connections *set = connection->set;
    inf_connection_flush(connection);
    inf_connections_settle(set);
}
