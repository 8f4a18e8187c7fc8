// SPDX-License-Identifier: Apache-2.0
// A daemon for unit tests of libinferd: a thread that speaks the protocol on a socket. The test
// decides what the daemon answers.
#include "tests/support/daemon/fake_daemon.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct fake_region {
    uint64_t id;
    uint8_t *data;
    size_t size;
};

struct fake_daemon {
    struct fake_options options;
    struct fake_counts counts;
    char directory[32];
    char path[64];
    pthread_t thread;
    int listen_fd, fd;
    struct inf_assembler assembler;
    uint8_t in[4096];
    size_t in_begin, in_end;
    struct inf_scratch *scratch;
    union inf_message message, reply;
    uint8_t *data; // data segment of the frame that was read last
    size_t data_size;
    struct fake_region regions[INF_LIMIT_REGIONS];
    uint8_t out[INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES + INF_LIMIT_DATA_BYTES];
    uint8_t outputs[INF_LIMIT_DATA_BYTES];
};

uint8_t fake_big_byte(size_t index)
{
    return (uint8_t)(index * 7 + (index >> 8));
}

static void *data_alloc(void *context, size_t size)
{
    (void)context;
    return aligned_alloc(64, (size + 63) / 64 * 64);
}

static void data_free(void *context, void *data, size_t size)
{
    (void)context;
    (void)size;
    free(data);
}

// --- sending frames to the client ---

void fake_send_bytes(struct fake_daemon *daemon, const void *bytes, size_t size)
{
    const uint8_t *next = bytes;
    while (size > 0) {
        size_t part = daemon->options.byte_at_a_time ? 1 : size;
        ssize_t sent = send(daemon->fd, next, part, MSG_NOSIGNAL);
        if (sent < 0)
            return; // the client has closed the connection, which the next read reports
        next += sent;
        size -= (size_t)sent;
    }
}

void fake_send(struct fake_daemon *daemon, struct inf_frame_header header,
               const union inf_message *message, enum inf_message_kind kind, const void *data,
               size_t data_size)
{
    uint8_t *bytes = daemon->out;
    struct inf_error err;
    size_t meta_size = 0;
    enum inf_code code =
        inf_message_encode(message, kind, bytes + INF_FRAME_HEADER_BYTES, INF_LIMIT_META_BYTES,
                           &meta_size, daemon->scratch, &err);
    assert(code == INF_OK);
    header.meta_bytes = (uint32_t)meta_size;
    header.data_bytes = (uint32_t)data_size;
    inf_frame_header_encode(&header, bytes);
    if (data_size > 0)
        memcpy(bytes + INF_FRAME_HEADER_BYTES + meta_size, data, data_size);
    fake_send_bytes(daemon, bytes, INF_FRAME_HEADER_BYTES + meta_size + data_size);
}

void fake_refuse(struct fake_daemon *daemon, uint64_t stream, const struct inf_status *status)
{
    struct inf_frame_header header = {.type = INF_FRAME_RESPONSE,
                                      .stream_id = stream,
                                      .flags = INF_FRAME_FINAL | INF_FRAME_FLAG_ERROR};
    fake_send(daemon, header, &(union inf_message){.status = *status}, INF_MESSAGE_STATUS, NULL, 0);
}

void fake_hang_up(struct fake_daemon *daemon)
{
    shutdown(daemon->fd, SHUT_RDWR);
}

// --- reading frames of the client ---

static enum inf_message_kind kind_of(const struct inf_frame_header *header)
{
    if (header->type == INF_FRAME_HELLO)
        return INF_MESSAGE_HELLO;
    if (header->type == INF_FRAME_MEM_REGISTER)
        return INF_MESSAGE_REGION_REGISTER;
    if (header->type == INF_FRAME_MEM_UNREGISTER)
        return INF_MESSAGE_REGION_UNREGISTER;
    if (header->type != INF_FRAME_REQUEST)
        return INF_MESSAGE_EMPTY;
    switch (header->method) {
    case INF_METHOD_MODEL_INFER:
        return INF_MESSAGE_INFER_REQUEST;
    case INF_METHOD_METRICS:
        return INF_MESSAGE_METRICS_REQUEST;
    case INF_METHOD_MODEL_READY:
        return INF_MESSAGE_MODEL_READY_REQUEST;
    case INF_METHOD_MODEL_METADATA:
        return INF_MESSAGE_MODEL_METADATA_REQUEST;
    case INF_METHOD_REPOSITORY_MODEL_LOAD:
        return INF_MESSAGE_MODEL_LOAD_REQUEST;
    case INF_METHOD_REPOSITORY_MODEL_UNLOAD:
        return INF_MESSAGE_MODEL_UNLOAD_REQUEST;
    default:
        return INF_MESSAGE_EMPTY;
    }
}

// Checks a memfd as the real daemon does, and maps the memory.
static void keep_region(struct fake_daemon *daemon, int fd)
{
    const struct inf_region_message *region = &daemon->message.region;
    struct stat status;
    int result = fstat(fd, &status);
    assert(result == 0 && (uint64_t)status.st_size >= region->size);
    assert((uint64_t)status.st_blocks * 512 >= region->size); // the file must not be sparse
    int seals = fcntl(fd, F_GET_SEALS);
    int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    assert((seals & wanted) == wanted);
    struct fake_region *place = daemon->regions;
    while (place->data != NULL)
        place++;
    *place = (struct fake_region){.id = region->region_id, .size = region->size};
    place->data = mmap(NULL, place->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert(place->data != MAP_FAILED);
    close(fd);
}

static bool receive_bytes(struct fake_daemon *daemon)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * INF_LIMIT_FRAME_FDS)];
    } control;
    struct iovec part = {daemon->in, sizeof daemon->in};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t size = recvmsg(daemon->fd, &message, MSG_CMSG_CLOEXEC);
    if (size <= 0)
        return false;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header != NULL) {
        int fds[INF_LIMIT_FRAME_FDS];
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(header), count * sizeof(int));
        struct inf_error err;
        enum inf_code code = inf_assembler_add_fds(&daemon->assembler, fds, (uint32_t)count, &err);
        assert(code == INF_OK);
    }
    daemon->in_begin = 0;
    daemon->in_end = (size_t)size;
    return true;
}

bool fake_read(struct fake_daemon *daemon, struct fake_frame *frame)
{
    struct inf_error err;
    do {
        if (daemon->in_begin == daemon->in_end && !receive_bytes(daemon))
            return false;
        size_t consumed = 0;
        struct inf_span bytes = {daemon->in + daemon->in_begin, daemon->in_end - daemon->in_begin};
        enum inf_code code = inf_assembler_feed(&daemon->assembler, bytes, &consumed, &err);
        assert(code == INF_OK);
        daemon->in_begin += consumed;
    } while (daemon->assembler.state != INF_ASSEMBLER_READY);
    struct inf_frame taken;
    inf_assembler_take(&daemon->assembler, &taken);
    assert(taken.rejected.code == INF_OK);
    enum inf_code code = inf_message_decode(&daemon->message, kind_of(&taken.header), taken.meta,
                                            daemon->scratch, &err);
    assert(code == INF_OK);
    free(daemon->data);
    daemon->data = taken.data;
    if (taken.header.type == INF_FRAME_MEM_REGISTER) {
        assert(taken.fd_count == 1);
        keep_region(daemon, taken.fds[0]);
    } else {
        for (uint32_t i = 0; i < taken.fd_count; i++)
            close(taken.fds[i]);
    }
    *frame = (struct fake_frame){taken.header, &daemon->message, taken.data};
    return true;
}

void fake_greet(struct fake_daemon *daemon)
{
    struct fake_frame frame;
    bool ok = fake_read(daemon, &frame);
    assert(ok && frame.header.type == INF_FRAME_HELLO);
    assert(frame.message->hello.major == 1 && frame.message->hello.minor == 0);
    uint32_t regions = daemon->options.regions;
    struct inf_hello_ack ack = {
        .major = 1,
        .server_name = "fake",
        .server_version = "0",
        .limits = {.meta_bytes = INF_LIMIT_META_BYTES,
                   .data_bytes = INF_LIMIT_DATA_BYTES,
                   .streams = INF_LIMIT_STREAMS,
                   .regions = regions != 0 ? regions : INF_LIMIT_REGIONS,
                   .region_bytes = INF_LIMIT_REGION_BYTES,
                   .frame_fds = INF_LIMIT_FRAME_FDS},
        .credit_requests = daemon->options.credit != 0 ? daemon->options.credit : 64,
        .role = "admin",
        .clock = "CLOCK_MONOTONIC",
    };
    fake_send(daemon, (struct inf_frame_header){.type = INF_FRAME_HELLO_ACK},
              &(union inf_message){.hello_ack = ack}, INF_MESSAGE_HELLO_ACK, NULL, 0);
}

// --- computing the models "echo" and "grow" ---

static struct fake_region *find_region(struct fake_daemon *daemon, uint64_t id)
{
    for (size_t i = 0; i < INF_LIMIT_REGIONS; i++)
        if (daemon->regions[i].data != NULL && daemon->regions[i].id == id)
            return &daemon->regions[i];
    return NULL;
}

static uint8_t *bytes_at(struct fake_daemon *daemon, const struct inf_location *location,
                         uint8_t *data)
{
    // Without a region, the bytes are in the frame's data segment. `data` is NULL if the frame has
    // no data, because an empty tensor needs none.
    if (location->region_id == 0)
        return data == NULL ? NULL : data + location->offset;
    struct fake_region *region = find_region(daemon, location->region_id);
    assert(region != NULL);
    assert(inf_range_ok(location->offset, location->length, region->size));
    assert(location->offset % 64 == 0);
    return region->data + location->offset;
}

struct fake_output {
    const char *name;
    enum inf_dtype dtype;
    size_t count;
    const uint8_t *bytes;
};

static void refuse_room(struct fake_daemon *daemon, uint64_t stream, const char *tensor,
                        size_t needed)
{
    char expected[24];
    snprintf(expected, sizeof expected, "%zu", needed);
    struct inf_status status = {.code = INF_RANGE,
                                .reason = INF_REASON_OUTPUT_TOO_SMALL,
                                .message = "too small",
                                .tensor = tensor,
                                .expected = expected};
    if (tensor == NULL)
        status = (struct inf_status){
            .code = INF_EXHAUSTED, .reason = INF_REASON_FRAME_TOO_LARGE, .message = "too large"};
    fake_refuse(daemon, stream, &status);
}

// Writes one output to the location in the request. Returns false if it does not fit.
static bool put_output(struct fake_daemon *daemon, uint64_t stream,
                       const struct fake_output *output, const struct inf_location *wanted,
                       struct inf_tensor_entry *entry, uint8_t *data, size_t *end)
{
    size_t limit =
        daemon->options.reply_bytes != 0 ? daemon->options.reply_bytes : INF_LIMIT_DATA_BYTES;
    size_t size = output->count * inf_dtype_size(output->dtype);
    *entry = (struct inf_tensor_entry){.name = output->name, .dtype = output->dtype};
    entry->shape = INF_SHAPE((int64_t)output->count);
    if (wanted != NULL && wanted->present) {
        uint8_t *room = bytes_at(daemon, wanted, NULL);
        if (wanted->length < size) {
            refuse_room(daemon, stream, output->name, size);
            return false;
        }
        if (size > 0)
            memcpy(room, output->bytes, size);
        entry->location = (struct inf_location){true, wanted->region_id, wanted->offset, size};
        return true;
    }
    size_t offset = inf_size_align(*end, 64);
    if (offset + size > limit) {
        refuse_room(daemon, stream, NULL, 0);
        return false;
    }
    memset(data + *end, 0, offset - *end);
    if (size > 0)
        memcpy(data + offset, output->bytes, size);
    *end = offset + size;
    entry->location = (struct inf_location){true, 0, offset, size};
    return true;
}

static void reply_outputs(struct fake_daemon *daemon, uint64_t stream,
                          const struct fake_output *outputs, uint32_t count)
{
    uint8_t *data = daemon->outputs;
    size_t end = 0;
    const struct inf_infer_request *request = &daemon->message.infer_request;
    struct inf_infer_reply *reply = &daemon->reply.infer_reply;
    *reply = (struct inf_infer_reply){.model_name = request->model_name,
                                      .model_version = "3",
                                      .id = request->id,
                                      .timing = {1, 2, 3, 4, 5, 6},
                                      .batch_size = 1,
                                      .device = "fake0",
                                      .precision = "fp32",
                                      .credit_return = 1};
    reply->output_count = request->output_count == 0 ? count : request->output_count;
    for (uint32_t i = 0; i < reply->output_count; i++) {
        const struct inf_tensor_entry *wanted =
            request->output_count == 0 ? NULL : &request->outputs[i];
        uint32_t which = request->output_count == 0 ? i : 0;
        while (wanted != NULL && which < count && strcmp(outputs[which].name, wanted->name) != 0)
            which++;
        if (which == count) {
            fake_refuse(daemon, stream,
                        &(struct inf_status){.code = INF_INVALID,
                                             .reason = INF_REASON_TENSOR_UNKNOWN,
                                             .message = "no such output",
                                             .tensor = wanted->name});
            return;
        }
        if (!put_output(daemon, stream, &outputs[which], wanted != NULL ? &wanted->location : NULL,
                        &reply->outputs[i], data, &end))
            return;
    }
    struct inf_frame_header header = {.type = INF_FRAME_RESPONSE,
                                      .stream_id = stream,
                                      .method = INF_METHOD_MODEL_INFER,
                                      .flags = INF_FRAME_FINAL};
    fake_send(daemon, header, &daemon->reply, INF_MESSAGE_INFER_REPLY, data, end);
}

static void answer_infer(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    struct inf_infer_request *request = &frame->message->infer_request;
    struct inf_error err;
    enum inf_code code = inf_infer_request_resolve_inline(request, frame->header.data_bytes, &err);
    assert(code == INF_OK && request->input_count == 1);
    const uint8_t *in = bytes_at(daemon, &request->inputs[0].location, frame->data);
    if (strcmp(request->model_name, "echo") == 0) {
        struct fake_output output = {"out", INF_DTYPE_U8, request->inputs[0].location.length, in};
        reply_outputs(daemon, frame->header.stream_id, &output, 1);
        return;
    }
    int32_t count;
    memcpy(&count, in, sizeof count);
    uint8_t *big = malloc((size_t)count + 1);
    assert(big != NULL);
    for (size_t i = 0; i < (size_t)count; i++)
        big[i] = fake_big_byte(i);
    struct fake_output outputs[] = {{"small", INF_DTYPE_I32, 1, in},
                                    {"big", INF_DTYPE_U8, (size_t)count, big}};
    reply_outputs(daemon, frame->header.stream_id, outputs, 2);
    free(big);
}

static void answer_metadata(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    struct inf_model_metadata *model = &daemon->reply.model_metadata;
    model->name = frame->message->model.name;
    model->version = "3";
    model->platform = "fake_graph";
    model->input_count = 1;
    model->inputs[0] = (struct inf_tensor_entry){.name = "n", .dtype = INF_DTYPE_I32};
    model->inputs[0].shape = INF_SHAPE(1);
    model->output_count = 2;
    model->outputs[0] = (struct inf_tensor_entry){.name = "small", .dtype = INF_DTYPE_I32};
    model->outputs[0].shape = INF_SHAPE(1);
    model->outputs[1] = (struct inf_tensor_entry){.name = "big", .dtype = INF_DTYPE_U8};
    model->outputs[1].shape = INF_SHAPE(INF_DIM_UNKNOWN);
    struct inf_frame_header header = {
        .type = INF_FRAME_RESPONSE, .stream_id = frame->header.stream_id, .flags = INF_FRAME_FINAL};
    fake_send(daemon, header, &daemon->reply, INF_MESSAGE_MODEL_METADATA, NULL, 0);
}

static void answer_region(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    bool release = frame->header.type == INF_FRAME_MEM_UNREGISTER;
    struct fake_region *region = find_region(daemon, frame->message->region.region_id);
    assert(region != NULL);
    struct inf_region_message reply = {.region_id = region->id, .size = region->size};
    if (release) {
        munmap(region->data, region->size);
        region->data = NULL;
    }
    struct inf_frame_header header = {.type = release ? INF_FRAME_MEM_RELEASED
                                                      : INF_FRAME_MEM_REGISTERED,
                                      .stream_id = frame->header.stream_id};
    fake_send(daemon, header, &(union inf_message){.region = reply},
              release ? INF_MESSAGE_REGION_RELEASED : INF_MESSAGE_REGION_REGISTERED, NULL, 0);
}

void fake_answer(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    switch (frame->header.type) {
    case INF_FRAME_MEM_REGISTER:
    case INF_FRAME_MEM_UNREGISTER:
        answer_region(daemon, frame);
        return;
    case INF_FRAME_REQUEST:
        assert(frame->header.flags == 0);
        if (frame->header.method == INF_METHOD_MODEL_INFER)
            answer_infer(daemon, frame);
        else if (frame->header.method == INF_METHOD_MODEL_METADATA)
            answer_metadata(daemon, frame);
        else
            fake_refuse(daemon, frame->header.stream_id,
                        &(struct inf_status){.code = INF_UNSUPPORTED,
                                             .reason = INF_REASON_METHOD,
                                             .message = "no such method"});
        return;
    default:
        return;
    }
}

static void count_frame(struct fake_daemon *daemon, const struct fake_frame *frame)
{
    struct fake_counts *counts = &daemon->counts;
    counts->requests +=
        frame->header.type == INF_FRAME_REQUEST && frame->header.method == INF_METHOD_MODEL_INFER;
    counts->metadata += frame->header.type == INF_FRAME_REQUEST &&
                        frame->header.method == INF_METHOD_MODEL_METADATA;
    counts->registrations += frame->header.type == INF_FRAME_MEM_REGISTER;
    counts->releases += frame->header.type == INF_FRAME_MEM_UNREGISTER;
    counts->cancels += frame->header.type == INF_FRAME_CANCEL;
    counts->pongs += frame->header.type == INF_FRAME_PONG;
}

void fake_serve(struct fake_daemon *daemon)
{
    struct fake_frame frame;
    while (fake_read(daemon, &frame)) {
        count_frame(daemon, &frame);
        if (daemon->options.on_frame == NULL ||
            !daemon->options.on_frame(daemon, &frame, daemon->options.context))
            fake_answer(daemon, &frame);
    }
}

// --- starting and stopping the fake daemon ---

static void drop_connection(struct fake_daemon *daemon)
{
    close(daemon->fd);
    inf_assembler_fini(&daemon->assembler);
    free(daemon->data);
    daemon->data = NULL;
    daemon->in_begin = daemon->in_end = 0;
    for (size_t i = 0; i < INF_LIMIT_REGIONS; i++) {
        if (daemon->regions[i].data != NULL)
            munmap(daemon->regions[i].data, daemon->regions[i].size);
        daemon->regions[i].data = NULL;
    }
}

static void *run_daemon(void *context)
{
    struct fake_daemon *daemon = context;
    uint32_t connections = daemon->options.connections != 0 ? daemon->options.connections : 1;
    struct inf_assembler_limits limits = {INF_LIMIT_META_BYTES, INF_LIMIT_DATA_BYTES};
    struct inf_assembler_memory memory = {.alloc = data_alloc, .free = data_free};
    for (uint32_t i = 0; i < connections; i++) {
        daemon->fd = accept4(daemon->listen_fd, NULL, NULL, SOCK_CLOEXEC);
        assert(daemon->fd >= 0);
        inf_assembler_init(&daemon->assembler, &limits, &memory);
        if (daemon->options.script != NULL) {
            daemon->options.script(daemon, daemon->options.context);
        } else {
            fake_greet(daemon);
            fake_serve(daemon);
        }
        drop_connection(daemon);
    }
    return NULL;
}

struct fake_daemon *fake_daemon_start(const struct fake_options *options)
{
    struct fake_daemon *daemon = calloc(1, sizeof *daemon);
    struct inf_error err;
    assert(daemon != NULL);
    daemon->options = *options;
    enum inf_code code = inf_scratch_create(&daemon->scratch, &err);
    assert(code == INF_OK);
    strcpy(daemon->directory, "/tmp/inferd-test-XXXXXX");
    char *made = mkdtemp(daemon->directory);
    assert(made != NULL);
    snprintf(daemon->path, sizeof daemon->path, "%s/socket", daemon->directory);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, daemon->path);
    daemon->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int failed = bind(daemon->listen_fd, (struct sockaddr *)&address, sizeof address);
    failed = failed != 0 ? failed : listen(daemon->listen_fd, 16);
    failed = failed != 0 ? failed : pthread_create(&daemon->thread, NULL, run_daemon, daemon);
    assert(failed == 0);
    return daemon;
}

const char *fake_daemon_path(const struct fake_daemon *daemon)
{
    return daemon->path;
}

struct fake_counts *fake_daemon_counts(struct fake_daemon *daemon)
{
    return &daemon->counts;
}

void fake_daemon_stop(struct fake_daemon *daemon)
{
    pthread_join(daemon->thread, NULL);
    close(daemon->listen_fd);
    unlink(daemon->path);
    rmdir(daemon->directory);
    inf_scratch_destroy(&daemon->scratch);
    free(daemon);
}
