// SPDX-License-Identifier: Apache-2.0
// Reads from the socket.
//
// recvmsg() reads into two places: directly into the tensor memory that the assembler is filling,
// and, after that, into a buffer from which the assembler takes headers and metadata. So the kernel
// copies a tensor that is larger than the buffer only once.
//
// A handler of a frame may call the library again, and that call may read. Such a read first
// handles the bytes that are left in the buffer.
#include "client/lib/io/receive.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/lib/client.h"
#include "client/lib/incoming.h"
#include "proto/core/span.h"

// The most bytes read in one round, so that a round ends even if the daemon never stops sending.
#define RECEIVE_MAX_BYTES ((size_t)4 << 20)

static void take_frame(inferd_client *client)
{
    struct inf_frame frame;
    inf_assembler_take(&client->input.assembler, &frame);
    for (uint32_t i = 0; i < frame.fd_count; i++)
        close(frame.fds[i]); // the daemon sends no descriptors that the library uses
    inf_client_incoming_handle_frame(client, &frame);
}

// Ends the connection because the daemon's bytes are not a valid frame.
static void fail_protocol(inferd_client *client, struct inf_error *err)
{
    inf_error_prefix(err, INF_INTERNAL, "the daemon broke the protocol");
    inf_client_connection_fail(client, err);
}

// Ends the connection because the assembler has found invalid bytes earlier (state BROKEN). The
// assembler returns the error for that when it gets further bytes.
static void fail_broken(inferd_client *client)
{
    struct inf_error err = {.code = INF_OK};
    size_t consumed;
    if (inf_assembler_feed(&client->input.assembler, (struct inf_span){0}, &consumed, &err) !=
        INF_OK)
        fail_protocol(client, &err);
}

// Passes the bytes in the buffer to the assembler, and handles each frame that becomes complete.
static void handle_bytes(inferd_client *client)
{
    struct inf_error err;
    while (client->connection.failure.code == INF_OK && client->input.begin < client->input.end) {
        size_t consumed = 0;
        struct inf_span bytes = {client->input.bytes + client->input.begin,
                                 client->input.end - client->input.begin};
        enum inf_code code = inf_assembler_feed(&client->input.assembler, bytes, &consumed, &err);
        client->input.begin += consumed;
        if (code != INF_OK)
            fail_protocol(client, &err);
        else if (client->input.assembler.state == INF_ASSEMBLER_READY)
            take_frame(client);
    }
}

// Passes the descriptors of a message to the assembler, which refuses descriptors that no frame
// declares.
static enum inf_code take_descriptors(inferd_client *client, struct msghdr *message,
                                      struct inf_error *err)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header != NULL;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        int fds[INF_LIMIT_FRAME_FDS];
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
        INF_TRY(inf_assembler_add_fds(&client->input.assembler, fds, (uint32_t)count, err));
    }
    if ((message->msg_flags & MSG_CTRUNC) != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "more than %u file descriptors with one frame", INF_LIMIT_FRAME_FDS);
    return INF_OK;
}

// Calls recvmsg() once. The bytes go into the tensor memory that the assembler is filling, and the
// rest into the buffer. Returns the result of recvmsg(). Sets *full if there may be more bytes in
// the socket.
static ssize_t receive_some(inferd_client *client, bool *full)
{
    uint8_t *room = NULL;
    size_t room_size = 0;
    inf_assembler_data_room(&client->input.assembler, &room, &room_size);
    struct iovec parts[2] = {{room, room_size}, {client->input.bytes, sizeof client->input.bytes}};
    size_t skip = room_size == 0 ? 1 : 0;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * INF_LIMIT_FRAME_FDS)];
    } control;
    struct msghdr message = {.msg_iov = parts + skip,
                             .msg_iovlen = 2 - skip,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t size = recvmsg(client->connection.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size <= 0)
        return size;
    client->statistics.bytes_received += (size_t)size;
    *full = (size_t)size == room_size + sizeof client->input.bytes;
    struct inf_error err;
    if (take_descriptors(client, &message, &err) != INF_OK) {
        fail_protocol(client, &err);
        return size;
    }
    size_t placed = INF_MIN((size_t)size, room_size);
    client->input.begin = 0;
    client->input.end = (size_t)size - placed;
    if (placed > 0) {
        inf_assembler_advance(&client->input.assembler, placed);
        if (client->input.assembler.state == INF_ASSEMBLER_READY)
            take_frame(client);
        else if (client->input.assembler.state == INF_ASSEMBLER_BROKEN)
            fail_broken(client);
    }
    return size;
}

void inf_client_receive_frames(inferd_client *client)
{
    // Handle bytes that are left in the buffer from the last call. Bytes are left if the handler of
    // a frame has called the library and that call has read from the socket.
    handle_bytes(client);
    size_t total = 0;
    bool full = true;
    while (client->connection.failure.code == INF_OK && full && total < RECEIVE_MAX_BYTES) {
        ssize_t size = receive_some(client, &full);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN)
            return;
        if (size <= 0) {
            struct inf_error err;
            if (size == 0 ||
                // ECONNRESET: the daemon closed the connection without reading everything
                errno == ECONNRESET)
                inf_fail_reason(&err, INF_UNAVAILABLE, INF_REASON_DISCONNECT,
                                "the daemon closed the connection");
            else
                inf_fail_reason(&err, INF_UNAVAILABLE, INF_REASON_DISCONNECT,
                                "the connection to the daemon broke: %s", strerror(errno));
            inf_client_connection_fail(client, &err);
            return;
        }
        total += (size_t)size;
        handle_bytes(client);
    }
}
