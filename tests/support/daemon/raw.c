// SPDX-License-Identifier: Apache-2.0
// The client part of the fixture, which sends and receives raw frames over a socket.
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/daemon/fixture.h"

static void *frame_alloc(void *context, size_t size)
{
    (void)context;
    return aligned_alloc(64, inf_size_align(size, 64));
}

static void frame_free(void *context, void *memory, size_t size)
{
    (void)context;
    (void)size;
    free(memory);
}

void inf_raw_connect(struct inf_raw *raw, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct inf_error err;
    *raw = (struct inf_raw){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    cr_assert_geq(raw->fd, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    cr_assert_eq(connect(raw->fd, (const struct sockaddr *)&address, sizeof address), 0,
                 "connect %s: %s", path, strerror(errno));
    const struct inf_assembler_limits limits = {.meta_bytes = INF_LIMIT_META_BYTES,
                                                .data_bytes = INF_LIMIT_DATA_BYTES};
    const struct inf_assembler_memory memory = {.alloc = frame_alloc, .free = frame_free};
    inf_assembler_init(&raw->assembler, &limits, &memory);
    cr_assert_eq(inf_scratch_create(&raw->scratch, &err), INF_OK);
}

void inf_raw_open(struct inf_raw *raw, const char *path)
{
    const struct inf_hello hello = {.major = INF_PROTOCOL_MAJOR,
                                    .minor = INF_PROTOCOL_MINOR,
                                    .client_name = "test",
                                    .limits = {.streams = INF_LIMIT_STREAMS}};
    inf_raw_open_as(raw, path, &hello);
}

void inf_raw_open_as(struct inf_raw *raw, const char *path, const struct inf_hello *hello)
{
    const union inf_message message = {.hello = *hello};
    inf_raw_connect(raw, path);
    inf_raw_send(raw, (struct inf_frame_header){.type = INF_FRAME_HELLO}, INF_MESSAGE_HELLO,
                 &message, (struct inf_span){0}, -1);
    inf_raw_expect(raw, INF_FRAME_HELLO_ACK);
    inf_raw_decode(raw, INF_MESSAGE_HELLO_ACK);
}

void inf_raw_close(struct inf_raw *raw)
{
    close(raw->fd);
    free(raw->frame.data);
    inf_assembler_fini(&raw->assembler);
    inf_scratch_destroy(&raw->scratch);
}

bool inf_raw_send_bytes(struct inf_raw *raw, const void *bytes, size_t size, int fd)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        struct iovec part = {.iov_base = (void *)at, .iov_len = size};
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        if (fd >= 0) {
            message.msg_control = control.bytes;
            message.msg_controllen = sizeof control.bytes;
            *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
                .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
            memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof fd);
        }
        ssize_t sent = sendmsg(raw->fd, &message, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
            return false;
        cr_assert_gt(sent, 0, "sendmsg: %s", strerror(errno));
        at += sent;
        size -= (size_t)sent;
        fd = -1;
    }
    return true;
}

size_t inf_raw_encode(struct inf_raw *raw, struct inf_frame_header header,
                      enum inf_message_kind kind, const union inf_message *message,
                      struct inf_span data, uint8_t *bytes, size_t capacity)
{
    struct inf_error err;
    size_t meta_bytes = 0;
    cr_assert_geq(capacity, INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES + data.size);
    cr_assert_eq(inf_message_encode(message, kind, bytes + INF_FRAME_HEADER_BYTES,
                                    INF_LIMIT_META_BYTES, &meta_bytes, raw->scratch, &err),
                 INF_OK, "%s", err.text);
    header.meta_bytes = (uint32_t)meta_bytes;
    header.data_bytes = (uint32_t)data.size;
    inf_frame_header_encode(&header, bytes);
    if (data.size > 0)
        memcpy(bytes + INF_FRAME_HEADER_BYTES + meta_bytes, data.data, data.size);
    return INF_FRAME_HEADER_BYTES + meta_bytes + data.size;
}

void inf_raw_send(struct inf_raw *raw, struct inf_frame_header header, enum inf_message_kind kind,
                  const union inf_message *message, struct inf_span data, int fd)
{
    size_t capacity = INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES + data.size;
    uint8_t *bytes = malloc(capacity);
    cr_assert_not_null(bytes);
    header.fd_count = fd >= 0;
    size_t size = inf_raw_encode(raw, header, kind, message, data, bytes, capacity);
    inf_raw_send_bytes(raw, bytes, size, fd);
    free(bytes);
}

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Reads the available bytes. Returns false at the end of the connection.
static bool fill_buffer(struct inf_raw *raw)
{
    struct iovec part = {.iov_base = raw->waiting, .iov_len = sizeof raw->waiting};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got = recvmsg(raw->fd, &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) {
        raw->closed = true;
        return false;
    }
    const struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights != NULL && rights->cmsg_type == SCM_RIGHTS) {
        int fd;
        struct inf_error err;
        memcpy(&fd, CMSG_DATA(rights), sizeof fd);
        cr_assert_eq(inf_assembler_add_fds(&raw->assembler, &fd, 1, &err), INF_OK, "%s", err.text);
    }
    raw->waiting_bytes = (size_t)got;
    return true;
}

// Passes the received bytes to the frame assembler. Returns true if a frame is complete.
static bool feed_assembler(struct inf_raw *raw)
{
    struct inf_error err;
    size_t used = 0;
    cr_assert_eq(inf_assembler_feed(&raw->assembler,
                                    (struct inf_span){raw->waiting, raw->waiting_bytes}, &used,
                                    &err),
                 INF_OK, "%s", err.text);
    memmove(raw->waiting, raw->waiting + used, raw->waiting_bytes - used);
    raw->waiting_bytes -= used;
    return raw->assembler.state == INF_ASSEMBLER_READY;
}

bool inf_raw_next(struct inf_raw *raw, int timeout_ms)
{
    int64_t end = now_ms() + timeout_ms;
    free(raw->frame.data);
    raw->frame.data = NULL;
    for (;;) {
        if (raw->waiting_bytes > 0 && feed_assembler(raw)) {
            inf_assembler_take(&raw->assembler, &raw->frame);
            return true;
        }
        struct pollfd wait = {.fd = raw->fd, .events = POLLIN};
        int left = (int)(end - now_ms());
        if (poll(&wait, 1, left > 0 ? left : 0) <= 0 || !fill_buffer(raw))
            return false;
    }
}

void inf_raw_expect(struct inf_raw *raw, uint8_t type)
{
    bool came = inf_raw_next(raw, 30000);
    cr_assert(came, "no frame came, wanted %s%s", inf_frame_type_name(type),
              raw->closed ? "; the connection is closed" : "");
    bool failure = (raw->frame.header.flags & INF_FRAME_FLAG_ERROR) != 0;
    if (raw->frame.header.type != type && failure) {
        inf_raw_decode(raw, INF_MESSAGE_STATUS);
        cr_assert_fail("%s came, wanted %s: %s", inf_frame_type_name(raw->frame.header.type),
                       inf_frame_type_name(type), raw->message.status.message);
    }
    cr_assert_eq(raw->frame.header.type, type, "%s came, wanted %s",
                 inf_frame_type_name(raw->frame.header.type), inf_frame_type_name(type));
}

void inf_raw_decode(struct inf_raw *raw, enum inf_message_kind kind)
{
    struct inf_error err;
    cr_assert_eq(inf_message_decode(&raw->message, kind, raw->frame.meta, raw->scratch, &err),
                 INF_OK, "%s", err.text);
}

void inf_raw_check_failure(struct inf_raw *raw, enum inf_code code, enum inf_reason reason)
{
    cr_assert((raw->frame.header.flags & INF_FRAME_FLAG_ERROR) != 0, "no failure came, wanted %s",
              inf_reason_name(reason));
    inf_raw_decode(raw, INF_MESSAGE_STATUS);
    const struct inf_status *status = &raw->message.status;
    cr_assert(status->code == code && status->reason == reason, "%s/%s came (%s), wanted %s/%s",
              inf_code_name(status->code), inf_reason_name(status->reason), status->message,
              inf_code_name(code), inf_reason_name(reason));
    cr_assert_gt(strlen(status->message), 0);
    cr_assert_null(strstr(status->message, "/tmp"), "a path of the server's: %s", status->message);
    const char *number = strstr(status->message, "0x");
    cr_assert(number == NULL || strspn(number + 2, "0123456789abcdef") <= 8, "an address: %s",
              status->message);
}

void inf_raw_expect_error(struct inf_raw *raw, enum inf_code code, enum inf_reason reason)
{
    inf_raw_expect(raw, INF_FRAME_ERROR);
    inf_raw_check_failure(raw, code, reason);
    cr_assert_not(inf_raw_next(raw, 10000), "a frame came after ERROR");
    cr_assert(raw->closed, "the connection is still open after ERROR");
}

uint64_t inf_raw_request(struct inf_raw *raw, uint16_t method, enum inf_message_kind kind,
                         const union inf_message *message, struct inf_span data)
{
    const struct inf_frame_header header = {
        .type = INF_FRAME_REQUEST, .stream_id = ++raw->last_stream, .method = method};
    inf_raw_send(raw, header, kind, message, data, -1);
    return raw->last_stream;
}

void inf_raw_call(struct inf_raw *raw, uint16_t method, enum inf_message_kind kind,
                  const union inf_message *message, struct inf_span data)
{
    uint64_t stream_id = inf_raw_request(raw, method, kind, message, data);
    do {
        inf_raw_expect(raw, INF_FRAME_RESPONSE);
        cr_assert_eq(raw->frame.header.stream_id, stream_id);
        cr_assert_eq(raw->frame.header.method, method);
    } while ((raw->frame.header.flags & INF_FRAME_FINAL) == 0);
}

void inf_add_request(union inf_message *message, int64_t rows)
{
    struct inf_infer_request *request = &message->infer_request;
    uint64_t bytes = (uint64_t)rows * 4 * sizeof(float);
    *request = (struct inf_infer_request){.model_name = "add", .input_count = 2};
    for (uint64_t i = 0; i < 2; i++)
        request->inputs[i] = (struct inf_tensor_entry){
            .name = i == 0 ? "a" : "b",
            .dtype = INF_DTYPE_F32,
            .shape = INF_SHAPE(rows, 4),
            .location = {.present = true,
                         .offset = i * inf_size_align(bytes, INF_FRAME_DATA_ALIGNMENT),
                         .length = bytes},
        };
}

void inf_slow_request(union inf_message *message)
{
    message->infer_request = (struct inf_infer_request){
        .model_name = "slow",
        .device = "ref",
        .input_count = 1,
        .inputs = {{.name = "x",
                    .dtype = INF_DTYPE_F32,
                    .shape = INF_SHAPE(1, 1),
                    .location = {.present = true, .length = sizeof(float)}}}};
}

struct inf_span inf_slow_data(void)
{
    static const float zero;
    return (struct inf_span){(const uint8_t *)&zero, sizeof zero};
}

void inf_raw_expect_infer(struct inf_raw *raw, uint64_t stream_id)
{
    struct inf_error err;
    inf_raw_expect(raw, INF_FRAME_RESPONSE);
    cr_assert_eq(raw->frame.header.stream_id, stream_id);
    if ((raw->frame.header.flags & INF_FRAME_FLAG_ERROR) != 0) {
        inf_raw_decode(raw, INF_MESSAGE_STATUS);
        cr_assert_fail("refused: %s", raw->message.status.message);
    }
    cr_assert_eq(raw->frame.header.flags, INF_FRAME_FINAL);
    cr_assert_eq(raw->frame.header.method, INF_METHOD_MODEL_INFER);
    inf_raw_decode(raw, INF_MESSAGE_INFER_REPLY);
    cr_assert_eq(inf_infer_reply_resolve_inline(&raw->message.infer_reply,
                                                raw->frame.header.data_bytes, &err),
                 INF_OK, "%s", err.text);
}

struct inf_server_status inf_raw_server_status(struct inf_raw *raw)
{
    inf_raw_call(raw, INF_METHOD_SERVER_STATUS, INF_MESSAGE_EMPTY, NULL, (struct inf_span){0});
    inf_raw_decode(raw, INF_MESSAGE_SERVER_STATUS);
    return raw->message.server_status;
}

void inf_raw_wait_for(struct inf_raw *raw, uint32_t requests_in_flight, uint32_t regions)
{
    struct inf_server_status status = {0};
    for (int i = 0; i < 1000; i++) {
        status = inf_raw_server_status(raw);
        // The status request itself counts as one request in flight.
        if (status.requests_in_flight == requests_in_flight + 1 && status.regions == regions)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    cr_assert_fail("%u requests in flight, %u regions; wanted %u and %u",
                   status.requests_in_flight - 1, status.regions, requests_in_flight, regions);
}

int inf_memfd(size_t size, int seals)
{
    int fd = memfd_create("inferd-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert_geq(fd, 0);
    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    cr_assert_eq(fallocate(fd, 0, 0, (off_t)size), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

void inf_raw_register(struct inf_raw *raw, uint64_t id, int fd, uint64_t size, bool writable)
{
    const union inf_message message = {
        .region = {.region_id = id, .size = size, .writable = writable}};
    const struct inf_frame_header header = {.type = INF_FRAME_MEM_REGISTER,
                                            .stream_id = ++raw->last_stream};
    inf_raw_send(raw, header, INF_MESSAGE_REGION_REGISTER, &message, (struct inf_span){0}, fd);
    close(fd);
    inf_raw_expect(raw, INF_FRAME_MEM_REGISTERED);
    if ((raw->frame.header.flags & INF_FRAME_FLAG_ERROR) != 0) {
        inf_raw_decode(raw, INF_MESSAGE_STATUS);
        cr_assert_fail("region refused: %s", raw->message.status.message);
    }
}
