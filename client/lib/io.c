// SPDX-License-Identifier: Apache-2.0
// Frames out of and into the socket, and the pools of their buffers.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/lib/client.h"

#define SEND_FRAMES        16u        // in one system call
#define SMALL_FRAME_BYTES  (8u << 10) // room of a frame without tensors: a path is the longest
#define RECEIVE_MAX_BYTES  ((size_t)4 << 20) // in one inferd_process(), so that it ends
#define DATA_CLASS_MIN_LOG 9u

// --- data segments ---

static uint32_t data_class(size_t size)
{
    uint32_t log2 = 0;
    while (((size_t)1 << (DATA_CLASS_MIN_LOG + log2)) < size)
        log2++;
    return log2;
}

void *inf_client_data_alloc(void *context, size_t size)
{
    inferd_client *client = context;
    uint32_t log2 = data_class(size);
    size_t bytes = (size_t)1 << (DATA_CLASS_MIN_LOG + log2);
    if (log2 >= INF_CLIENT_DATA_CLASSES)
        return aligned_alloc(INF_FRAME_DATA_ALIGNMENT, bytes);
    void **unused = client->unused_data[log2];
    if (unused == NULL)
        return aligned_alloc(INF_FRAME_DATA_ALIGNMENT, bytes);
    client->unused_data[log2] = *unused;
    client->unused_data_bytes -= bytes;
    return unused;
}

void inf_client_data_free(void *context, void *data, size_t size)
{
    inferd_client *client = context;
    if (data == NULL)
        return;
    uint32_t log2 = data_class(size);
    size_t bytes = (size_t)1 << (DATA_CLASS_MIN_LOG + log2);
    if (log2 >= INF_CLIENT_DATA_CLASSES ||
        client->unused_data_bytes + bytes > INF_CLIENT_POOL_BYTES) {
        free(data);
        return;
    }
    *(void **)data = client->unused_data[log2];
    client->unused_data[log2] = data;
    client->unused_data_bytes += bytes;
}

// --- frames to the daemon ---

enum inf_code inf_outgoing_acquire(inferd_client *client, size_t capacity,
                                   struct inf_outgoing **out_outgoing, struct inf_error *err)
{
    struct inf_outgoing *outgoing = client->unused_frames;
    if (outgoing != NULL) {
        client->unused_frames = outgoing->next;
        client->unused_frame_bytes -= outgoing->capacity;
    } else {
        outgoing = calloc(1, sizeof *outgoing);
        if (outgoing == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a frame");
    }
    if (outgoing->capacity < capacity) {
        free(outgoing->bytes);
        outgoing->capacity = inf_size_align(capacity, 4096);
        outgoing->bytes = malloc(outgoing->capacity);
        if (outgoing->bytes == NULL) {
            free(outgoing);
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for a frame of %zu bytes", capacity);
        }
    }
    outgoing->next = NULL;
    outgoing->size = outgoing->sent = outgoing->meta_size = 0;
    outgoing->owner = NULL;
    outgoing->tail = NULL;
    outgoing->tail_size = outgoing->covers = 0;
    outgoing->fd = -1;
    outgoing->references = 1;
    *out_outgoing = outgoing;
    return INF_OK;
}

void inf_outgoing_release(inferd_client *client, struct inf_outgoing **outgoing)
{
    struct inf_outgoing *frame = *outgoing;
    *outgoing = NULL;
    if (frame == NULL || --frame->references > 0)
        return;
    if (frame->fd >= 0)
        close(frame->fd);
    inf_outgoing_release(client, &frame->owner);
    if (client->unused_frame_bytes + frame->capacity > INF_CLIENT_POOL_BYTES) {
        free(frame->bytes);
        free(frame);
        return;
    }
    frame->next = client->unused_frames;
    client->unused_frames = frame;
    client->unused_frame_bytes += frame->capacity;
}

enum inf_code inf_outgoing_encode(inferd_client *client, struct inf_outgoing *outgoing,
                                  const union inf_message *message, enum inf_message_kind kind,
                                  struct inf_error *err)
{
    size_t room = INF_MIN(outgoing->capacity - INF_FRAME_HEADER_BYTES, INF_LIMIT_META_BYTES);
    if (client->limits.meta_bytes != 0)
        room = INF_MIN(room, client->limits.meta_bytes);
    INF_TRY(inf_message_encode(message, kind, outgoing->bytes + INF_FRAME_HEADER_BYTES, room,
                               &outgoing->meta_size, client->scratch, err));
    outgoing->size = INF_FRAME_HEADER_BYTES + outgoing->meta_size;
    return INF_OK;
}

void inf_client_queue(inferd_client *client, struct inf_outgoing *outgoing,
                      struct inf_frame_header header)
{
    header.meta_bytes = (uint32_t)outgoing->meta_size;
    header.data_bytes = (uint32_t)(outgoing->size - INF_FRAME_HEADER_BYTES - outgoing->meta_size +
                                   outgoing->tail_size);
    header.fd_count = outgoing->fd >= 0 ? 1 : 0;
    inf_frame_header_encode(&header, outgoing->bytes);
    if (client->send_dead)
        return; // reading finds out why, and ends every call
    outgoing->references++;
    *client->out_tail = outgoing;
    client->out_tail = &outgoing->next;
}

enum inf_code inf_client_send(inferd_client *client, struct inf_frame_header header,
                              enum inf_message_kind kind, int fd, struct inf_error *err)
{
    struct inf_outgoing *outgoing = NULL;
    enum inf_code code = inf_outgoing_acquire(client, SMALL_FRAME_BYTES, &outgoing, err);
    if (code != INF_OK) {
        if (fd >= 0)
            close(fd);
        return code;
    }
    outgoing->fd = fd;
    code = inf_outgoing_encode(client, outgoing, &client->control, kind, err);
    if (code == INF_OK)
        inf_client_queue(client, outgoing, header);
    inf_outgoing_release(client, &outgoing);
    return code;
}

size_t inf_client_frame_data_max(const inferd_client *client)
{
    return INF_MIN(client->limits.data_bytes, INF_LIMIT_DATA_BYTES);
}

size_t inf_client_request_data_max(const inferd_client *client)
{
    size_t pieces_max = (size_t)INF_MIN(client->limits.stream_bytes, INF_LIMIT_STREAM_DATA_BYTES);
    return INF_MAX(inf_client_frame_data_max(client), pieces_max); // 0 of daemons that take none
}

// Queues [at, at + size) of the whole's data, behind what `piece` has of its own. Lets go of `piece`.
static void queue_piece(inferd_client *client, struct inf_outgoing *piece,
                        struct inf_outgoing *whole, const uint8_t *at, size_t size,
                        struct inf_frame_header header)
{
    whole->references++;
    piece->owner = whole;
    piece->tail = at;
    piece->tail_size = size;
    piece->covers += size;
    inf_client_queue(client, piece, header);
    inf_outgoing_release(client, &piece);
}

enum inf_code inf_client_queue_request(inferd_client *client, struct inf_outgoing *whole,
                                       struct inf_frame_header header, struct inf_error *err)
{
    size_t head_size = INF_FRAME_HEADER_BYTES + whole->meta_size;
    size_t left = whole->size - head_size, most = inf_client_frame_data_max(client);
    const uint8_t *at = whole->bytes + head_size;
    struct inf_outgoing *piece = NULL;
    if (left <= most) {
        inf_client_queue(client, whole, header);
        return INF_OK;
    }
    const struct inf_frame_header data = {.type = INF_FRAME_DATA, .stream_id = header.stream_id};
    client->control.data = (struct inf_data_message){.total_bytes = left};
    for (; left > most; left -= most, at += most) {
        INF_TRY(inf_outgoing_acquire(client, SMALL_FRAME_BYTES, &piece, err));
        enum inf_code code =
            inf_outgoing_encode(client, piece, &client->control, INF_MESSAGE_DATA, err);
        if (code != INF_OK) {
            inf_outgoing_release(client, &piece);
            return code;
        }
        queue_piece(client, piece, whole, at, most, data);
    }
    INF_TRY(inf_outgoing_acquire(client, head_size, &piece, err));
    memcpy(piece->bytes, whole->bytes, head_size);
    piece->size = piece->covers = head_size;
    piece->meta_size = whole->meta_size;
    queue_piece(client, piece, whole, at, left, header);
    return INF_OK;
}

static void drop_queue(inferd_client *client)
{
    while (client->out_head != NULL) {
        struct inf_outgoing *outgoing = client->out_head;
        client->out_head = outgoing->next;
        inf_outgoing_release(client, &outgoing);
    }
    client->out_tail = &client->out_head;
}

// Takes what was sent off the queue's head.
static void sent(inferd_client *client, size_t size)
{
    client->statistics.bytes_sent += size;
    while (client->out_head != NULL) {
        struct inf_outgoing *outgoing = client->out_head;
        size_t all = outgoing->size + outgoing->tail_size;
        size_t part = INF_MIN(size, all - outgoing->sent);
        outgoing->sent += part;
        size -= part;
        if (part > 0 && outgoing->fd >= 0) {
            close(outgoing->fd);
            outgoing->fd = -1;
        }
        if (outgoing->sent < all)
            return;
        if (outgoing->owner != NULL)
            outgoing->owner->sent += outgoing->covers;
        client->out_head = outgoing->next;
        if (client->out_head == NULL)
            client->out_tail = &client->out_head;
        inf_outgoing_release(client, &outgoing);
    }
}

// One system call. A frame with a file descriptor goes alone: the daemon's read ends with the bytes
// that the descriptor came with, and the frame has to end there too.
static ssize_t send_some(inferd_client *client)
{
    struct iovec parts[2 * SEND_FRAMES];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = parts};
    struct inf_outgoing *outgoing = client->out_head;
    do {
        size_t head = INF_MIN(outgoing->sent, outgoing->size), tail = outgoing->sent - head;
        if (head < outgoing->size)
            parts[message.msg_iovlen++] = (struct iovec){
                .iov_base = outgoing->bytes + head,
                .iov_len = outgoing->size - head,
            };
        if (tail < outgoing->tail_size)
            parts[message.msg_iovlen++] = (struct iovec){
                .iov_base = (uint8_t *)outgoing->tail + tail,
                .iov_len = outgoing->tail_size - tail,
            };
        if (outgoing->fd >= 0)
            break;
        outgoing = outgoing->next;
    } while (outgoing != NULL && outgoing->fd < 0 && message.msg_iovlen < 2 * SEND_FRAMES - 1);
    if (client->out_head->fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &client->out_head->fd, sizeof(int));
    }
    return sendmsg(client->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void inf_client_flush(inferd_client *client)
{
    while (client->out_head != NULL) {
        ssize_t size = send_some(client);
        if (size > 0) {
            sent(client, (size_t)size);
            continue;
        }
        if (size < 0 && errno == EINTR)
            continue;
        // The last three: the kernel lacks memory, or too many descriptors are on their way.
        if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS)
            return;
        client->send_dead = true;
        shutdown(client->fd, SHUT_RDWR); // what the daemon said last can still be read
        drop_queue(client);
    }
}

// --- frames from the daemon ---

static void take_frame(inferd_client *client)
{
    struct inf_frame frame;
    inf_assembler_take(&client->assembler, &frame);
    for (uint32_t i = 0; i < frame.fd_count; i++)
        close(frame.fds[i]); // the library asks for none
    inf_client_handle(client, &frame);
}

// The daemon's bytes make no sense.
static void fail_protocol(inferd_client *client, struct inf_error *err)
{
    inf_error_prefix(err, INF_INTERNAL, "the daemon broke the protocol");
    inf_client_fail(client, err);
}

// As fail_protocol(), for what the assembler knows.
static void fail_broken(inferd_client *client)
{
    struct inf_error err = {.code = INF_OK};
    size_t consumed;
    if (inf_assembler_feed(&client->assembler, (struct inf_span){0}, &consumed, &err) != INF_OK)
        fail_protocol(client, &err);
}

// Handles the bytes that have been read.
static void feed(inferd_client *client)
{
    struct inf_error err;
    while (client->failure.code == INF_OK && client->in_begin < client->in_end) {
        size_t consumed = 0;
        struct inf_span bytes = {client->in + client->in_begin, client->in_end - client->in_begin};
        enum inf_code code = inf_assembler_feed(&client->assembler, bytes, &consumed, &err);
        client->in_begin += consumed;
        if (code != INF_OK)
            fail_protocol(client, &err);
        else if (client->assembler.state == INF_ASSEMBLER_READY)
            take_frame(client);
    }
}

// Hands descriptors that came along to the assembler, which refuses those that no frame declared.
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
        INF_TRY(inf_assembler_add_fds(&client->assembler, fds, (uint32_t)count, err));
    }
    if ((message->msg_flags & MSG_CTRUNC) != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_FRAME,
                               "more than %u file descriptors with one frame", INF_LIMIT_FRAME_FDS);
    return INF_OK;
}

// One system call: into the tensor memory that is being filled, and the rest into the buffer.
// Returns what recvmsg() does; *full tells that there may be more.
static ssize_t receive_some(inferd_client *client, bool *full)
{
    uint8_t *room = NULL;
    size_t room_size = 0;
    inf_assembler_data_room(&client->assembler, &room, &room_size);
    struct iovec parts[2] = {{room, room_size}, {client->in, sizeof client->in}};
    size_t skip = room_size == 0 ? 1 : 0;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * INF_LIMIT_FRAME_FDS)];
    } control;
    struct msghdr message = {.msg_iov = parts + skip,
                             .msg_iovlen = 2 - skip,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t size = recvmsg(client->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size <= 0)
        return size;
    client->statistics.bytes_received += (size_t)size;
    *full = (size_t)size == room_size + sizeof client->in;
    struct inf_error err;
    if (take_descriptors(client, &message, &err) != INF_OK) {
        fail_protocol(client, &err);
        return size;
    }
    size_t placed = INF_MIN((size_t)size, room_size);
    client->in_begin = 0;
    client->in_end = (size_t)size - placed;
    if (placed > 0) {
        inf_assembler_advance(&client->assembler, placed);
        if (client->assembler.state == INF_ASSEMBLER_READY)
            take_frame(client);
        else if (client->assembler.state == INF_ASSEMBLER_BROKEN)
            fail_broken(client);
    }
    return size;
}

void inf_client_receive(inferd_client *client)
{
    feed(client); // left over where a handler has called the library again
    size_t total = 0;
    bool full = true;
    while (client->failure.code == INF_OK && full && total < RECEIVE_MAX_BYTES) {
        ssize_t size = receive_some(client, &full);
        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && errno == EAGAIN)
            return;
        if (size <= 0) {
            struct inf_error err;
            if (size == 0 || errno == ECONNRESET) // reset: it had not read everything
                inf_fail_reason(&err, INF_UNAVAILABLE, INF_REASON_DISCONNECT,
                                "the daemon closed the connection");
            else
                inf_fail_reason(&err, INF_UNAVAILABLE, INF_REASON_DISCONNECT,
                                "the connection to the daemon broke: %s", strerror(errno));
            inf_client_fail(client, &err);
            return;
        }
        total += (size_t)size;
        feed(client);
    }
}

void inf_client_io_reset(inferd_client *client)
{
    drop_queue(client);
    struct inf_assembler_limits limits = client->assembler.limits;
    struct inf_assembler_memory memory = client->assembler.memory;
    inf_assembler_fini(&client->assembler);
    inf_assembler_init(&client->assembler, &limits, &memory);
    client->in_begin = client->in_end = 0;
    client->send_dead = false;
}

void inf_client_io_fini(inferd_client *client)
{
    drop_queue(client);
    while (client->unused_frames != NULL) {
        struct inf_outgoing *outgoing = client->unused_frames;
        client->unused_frames = outgoing->next;
        free(outgoing->bytes);
        free(outgoing);
    }
    inf_assembler_fini(&client->assembler);
    for (uint32_t log2 = 0; log2 < INF_CLIENT_DATA_CLASSES; log2++) {
        while (client->unused_data[log2] != NULL) {
            void **data = client->unused_data[log2];
            client->unused_data[log2] = *data;
            free(data);
        }
    }
}
