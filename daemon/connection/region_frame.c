// SPDX-License-Identifier: Apache-2.0
// Turns the MEM_* frames of a client into operations on its regions (daemon/resource/region.h).
#include "daemon/connection/region_frame.h"

#include <inttypes.h>

#include "daemon/connection/kept.h"
#include "daemon/connection/reply.h"

// Notes which region the frame names, so that the next process knows it.
static void note_region(struct inf_connection *connection, uint64_t id) INF_ON_LOOP
{
    struct inf_pending *pending = inf_connection_frame_pending(connection);
    if (pending != NULL)
        pending->value = id;
}

static enum inf_code try_register(struct inf_connection *connection, struct inf_frame *frame,
                                  struct inf_error *err) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    if (frame->rejected.code != INF_OK)
        return (*err = frame->rejected).code;
    INF_TRY(inf_message_decode(&set->message, INF_MESSAGE_REGION_REGISTER, frame->meta,
                               set->scratch, err));
    if (frame->fd_count != 1)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "MEM_REGISTER frame: %" PRIu32 " file descriptors, wanted 1",
                               frame->fd_count);
    const struct inf_region_options options = {.id = set->message.region.region_id,
                                               .size_bytes = set->message.region.size,
                                               .writable = set->message.region.writable,
                                               .fd = frame->fds[0]};
    frame->fd_count = 0;
    note_region(connection, options.id);
    return inf_region_register(&connection->regions, &options, err);
}

void inf_connection_register_region(struct inf_connection *connection, struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    const struct inf_reply reply = {.type = INF_FRAME_MEM_REGISTERED,
                                    .flags = INF_FRAME_FINAL,
                                    .stream_id = frame->header.stream_id,
                                    .pending_plus_1 = connection->frame_pending_plus_1};
    inf_fault_init(&set->fault);
    if (try_register(connection, frame, &set->fault.err) == INF_OK) {
        inf_connection_keep_region(connection, frame->header.stream_id);
        inf_connection_send(connection, &reply, INF_MESSAGE_REGION_REGISTERED, &set->message);
    } else {
        inf_connection_send_fault(connection, &reply, &set->fault);
    }
}

static enum inf_code try_allocate(struct inf_connection *connection, const struct inf_frame *frame,
                                  int *out_fd, struct inf_error *err) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    if (frame->rejected.code != INF_OK)
        return (*err = frame->rejected).code;
    INF_TRY(inf_message_decode(&set->message, INF_MESSAGE_REGION_ALLOC, frame->meta, set->scratch,
                               err));
    note_region(connection, set->message.region.region_id);
    INF_TRY(inf_service_claim_memory(set->options.service, set->message.region.size, "the region",
                                     err));
    return inf_region_allocate(&connection->regions, set->message.region.region_id,
                               set->message.region.size, out_fd, err);
}

void inf_connection_allocate_region(struct inf_connection *connection,
                                    const struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    struct inf_reply reply = {.type = INF_FRAME_MEM_REGISTERED,
                              .flags = INF_FRAME_FINAL,
                              .stream_id = frame->header.stream_id,
                              .pending_plus_1 = connection->frame_pending_plus_1};
    int fd = -1;
    inf_fault_init(&set->fault);
    if (try_allocate(connection, frame, &fd, &set->fault.err) == INF_OK) {
        inf_connection_keep_region(connection, frame->header.stream_id);
        reply.fd_plus_1 = fd + 1;
        inf_connection_send(connection, &reply, INF_MESSAGE_REGION_REGISTERED, &set->message);
    } else {
        inf_connection_send_fault(connection, &reply, &set->fault);
    }
}

void inf_connection_unregister_region(struct inf_connection *connection,
                                      const struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    const struct inf_reply reply = {.type = INF_FRAME_MEM_RELEASED,
                                    .flags = INF_FRAME_FINAL,
                                    .stream_id = frame->header.stream_id,
                                    .pending_plus_1 = connection->frame_pending_plus_1};
    inf_fault_init(&set->fault);
    struct inf_error *err = &set->fault.err;
    enum inf_code code = frame->rejected.code;
    if (code != INF_OK)
        *err = frame->rejected;
    else
        code = inf_message_decode(&set->message, INF_MESSAGE_REGION_UNREGISTER, frame->meta,
                                  set->scratch, err);
    const uint64_t id = code == INF_OK ? set->message.region.region_id : 0;
    // From here on, the next process reports the region as released.
    note_region(connection, id);
    if (code == INF_OK)
        code = inf_region_unregister(&connection->regions, id, frame->header.stream_id,
                                     connection->frame_pending_plus_1, err);
    if (code == INF_OK) {
        inf_connection_forget_region(connection, id);
        inf_connection_report_released(connection);
    } else {
        inf_connection_send_fault(connection, &reply, &set->fault);
    }
}
