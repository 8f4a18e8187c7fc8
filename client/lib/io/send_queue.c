// SPDX-License-Identifier: Apache-2.0
// Sends frames without blocking and without copying tensors.
//
// A flush hands several frames to one sendmsg(). The socket may accept only a part of them, so each
// frame records how many of its bytes were sent, and the next flush continues there.
//
// A request with more data than one frame may have is cut into slices. Each slice has its own
// header and metadata, and refers to the data of the whole request. The slice holds a reference to
// the request, which keeps the data alive:
//
//   whole    | header | metadata | data: slice 0, slice 1, slice 2 |
//   queued   | DATA header, metadata | slice 0 |
//            | DATA header, metadata | slice 1 |
//            | header and metadata of whole | slice 2 |
//
// When a slice has been sent, whole->sent grows by the bytes of the slice, so that whole->sent ==
// whole->size means that the daemon has all of the request (retrying depends on that).
#include "client/lib/io/send_queue.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client/lib/client.h"
#include "proto/core/send_fd.h"

#define SEND_FRAMES 16u // the most frames that one system call sends
// The capacity in bytes of a frame without tensors. The longest content of such a frame is a path.
#define SMALL_FRAME_BYTES (8u << 10)

void inf_client_send_queue_push(inferd_client *client, struct inf_client_outgoing *outgoing,
                                struct inf_frame_header header)
{
    header.meta_bytes = (uint32_t)outgoing->meta_size;
    header.data_bytes = (uint32_t)(outgoing->size - INF_FRAME_HEADER_BYTES - outgoing->meta_size +
                                   outgoing->slice_size);
    header.fd_count = outgoing->fd >= 0 ? 1 : 0;
    inf_frame_header_encode(&header, outgoing->bytes);
    if (client->output.failed)
        // The next read from the socket reports the reason of the failure and ends every call.
        return;
    outgoing->references++;
    *client->output.tail = outgoing;
    client->output.tail = &outgoing->next;
}

enum inf_code inf_client_send_queue_push_control(inferd_client *client,
                                                 struct inf_frame_header header,
                                                 enum inf_message_kind kind, int fd,
                                                 struct inf_error *err)
{
    struct inf_client_outgoing *outgoing = NULL;
    enum inf_code code = inf_client_outgoing_acquire(client, SMALL_FRAME_BYTES, &outgoing, err);
    if (code != INF_OK) {
        if (fd >= 0)
            close(fd);
        return code;
    }
    outgoing->fd = fd;
    code = inf_client_outgoing_encode(client, outgoing, &client->control, kind, err);
    if (code == INF_OK)
        inf_client_send_queue_push(client, outgoing, header);
    inf_client_outgoing_release(client, &outgoing);
    return code;
}

size_t inf_client_send_queue_frame_data_max(const inferd_client *client)
{
    return INF_MIN(client->connection.limits.data_bytes, INF_LIMIT_DATA_BYTES);
}

size_t inf_client_send_queue_request_data_max(const inferd_client *client)
{
    // stream_bytes is 0 if the daemon does not accept DATA frames.
    size_t slices_max =
        (size_t)INF_MIN(client->connection.limits.stream_bytes, INF_LIMIT_STREAM_DATA_BYTES);
    return INF_MAX(inf_client_send_queue_frame_data_max(client), slices_max);
}

// Queues one slice (a part of a large request that is sent as a frame of its own): the header and
// metadata in `slice`, and `size` bytes of data at `data`, which is inside `whole`, the whole
// request. Releases `slice`.
static void push_slice(inferd_client *client, struct inf_client_outgoing *slice,
                       struct inf_client_outgoing *whole, const uint8_t *data, size_t size,
                       struct inf_frame_header header)
{
    whole->references++;
    slice->whole = whole;
    slice->slice = data;
    slice->slice_size = size;
    slice->whole_bytes += size;
    inf_client_send_queue_push(client, slice, header);
    inf_client_outgoing_release(client, &slice);
}

enum inf_code inf_client_send_queue_push_request(inferd_client *client,
                                                 struct inf_client_outgoing *whole,
                                                 struct inf_frame_header header,
                                                 struct inf_error *err)
{
    size_t head_size = INF_FRAME_HEADER_BYTES + whole->meta_size;
    size_t data_left = whole->size - head_size;
    size_t slice_max = inf_client_send_queue_frame_data_max(client);
    const uint8_t *data = whole->bytes + head_size;
    struct inf_client_outgoing *slice = NULL;
    if (data_left <= slice_max) {
        inf_client_send_queue_push(client, whole, header);
        return INF_OK;
    }
    const struct inf_frame_header data_header = {.type = INF_FRAME_DATA,
                                                 .stream_id = header.stream_id};
    client->control.data = (struct inf_data_message){.total_bytes = data_left};
    for (; data_left > slice_max; data_left -= slice_max, data += slice_max) {
        INF_TRY(inf_client_outgoing_acquire(client, SMALL_FRAME_BYTES, &slice, err));
        enum inf_code code =
            inf_client_outgoing_encode(client, slice, &client->control, INF_MESSAGE_DATA, err);
        if (code != INF_OK) {
            inf_client_outgoing_release(client, &slice);
            return code;
        }
        push_slice(client, slice, whole, data, slice_max, data_header);
    }
    INF_TRY(inf_client_outgoing_acquire(client, head_size, &slice, err));
    memcpy(slice->bytes, whole->bytes, head_size);
    slice->size = slice->whole_bytes = head_size;
    slice->meta_size = whole->meta_size;
    push_slice(client, slice, whole, data, data_left, header);
    return INF_OK;
}

static void drop_frames(inferd_client *client)
{
    while (client->output.head != NULL) {
        struct inf_client_outgoing *outgoing = client->output.head;
        client->output.head = outgoing->next;
        inf_client_outgoing_release(client, &outgoing);
    }
    client->output.tail = &client->output.head;
}

// Records that the socket accepted `size` bytes, and removes the frames that were sent completely.
static void mark_sent(inferd_client *client, size_t size)
{
    client->statistics.bytes_sent += size;
    while (client->output.head != NULL) {
        struct inf_client_outgoing *outgoing = client->output.head;
        size_t all = outgoing->size + outgoing->slice_size;
        size_t part = INF_MIN(size, all - outgoing->sent);
        outgoing->sent += part;
        size -= part;
        if (part > 0 && outgoing->fd >= 0) {
            close(outgoing->fd);
            outgoing->fd = -1;
        }
        if (outgoing->sent < all)
            return;
        if (outgoing->whole != NULL)
            outgoing->whole->sent += outgoing->whole_bytes;
        client->output.head = outgoing->next;
        if (client->output.head == NULL)
            client->output.tail = &client->output.head;
        inf_client_outgoing_release(client, &outgoing);
    }
}

// Calls sendmsg() once. A frame with a file descriptor is sent alone: the daemon's read ends after
// the bytes that were sent with a descriptor, and the frame must end at the same byte.
static ssize_t send_some(inferd_client *client)
{
    struct iovec parts[2 * SEND_FRAMES];
    union inf_send_fd_control control;
    struct msghdr message = {.msg_iov = parts};
    struct inf_client_outgoing *outgoing = client->output.head;
    do {
        size_t head = INF_MIN(outgoing->sent, outgoing->size);
        size_t slice_sent = outgoing->sent - head;
        if (head < outgoing->size)
            parts[message.msg_iovlen++] = (struct iovec){
                .iov_base = outgoing->bytes + head,
                .iov_len = outgoing->size - head,
            };
        if (slice_sent < outgoing->slice_size)
            parts[message.msg_iovlen++] = (struct iovec){
                .iov_base = (uint8_t *)outgoing->slice + slice_sent,
                .iov_len = outgoing->slice_size - slice_sent,
            };
        if (outgoing->fd >= 0)
            break;
        outgoing = outgoing->next;
    } while (outgoing != NULL && outgoing->fd < 0 && message.msg_iovlen < 2 * SEND_FRAMES - 1);
    if (client->output.head->fd >= 0)
        inf_send_fd_attach(&message, &control, client->output.head->fd);
    return sendmsg(client->connection.fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void inf_client_send_queue_flush(inferd_client *client)
{
    while (client->output.head != NULL) {
        ssize_t size = send_some(client);
        if (size > 0) {
            mark_sent(client, (size_t)size);
            continue;
        }
        if (size < 0 && errno == EINTR)
            continue;
        // ENOBUFS, ENOMEM and ETOOMANYREFS mean that the kernel lacks memory, or that too many
        // descriptors are in flight. The next flush tries again.
        if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS)
            return;
        client->output.failed = true;
        // Close only the sending direction: bytes that the daemon has sent can still be read.
        shutdown(client->connection.fd, SHUT_RDWR);
        drop_frames(client);
    }
}

void inf_client_send_queue_reset(inferd_client *client)
{
    drop_frames(client);
    client->output.failed = false;
}
