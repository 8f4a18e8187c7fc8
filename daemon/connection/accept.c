// SPDX-License-Identifier: Apache-2.0
// Accepts the frames of kept connections, and stops that while the daemon drains.
//
// A frame is accepted in two steps: its entry is written to the send log, and then the store to
// `done` of the read record makes it count. Until that store, the next process handles the frame
// again from the bytes of the read; after it, the process answers the frame.
#include "daemon/connection/accept.h"

#include "daemon/connection/kept.h"
#include "daemon/connection/upload.h"
#include "daemon/connection/watch.h"

// Returns true if the client gets an answer to a frame of this type. A DATA frame that begins the
// data of a request has an entry too, because the answer to the REQUEST depends on it.
static bool wants_answer(const struct inf_connection *connection,
                         const struct inf_frame *frame) INF_ON_LOOP
{
    switch (frame->header.type) {
    case INF_FRAME_REQUEST:
    case INF_FRAME_MEM_REGISTER:
    case INF_FRAME_MEM_ALLOC:
    case INF_FRAME_MEM_UNREGISTER:
    case INF_FRAME_PING:
        return true;
    case INF_FRAME_DATA:
        return frame->header.stream_id > connection->last_stream &&
               inf_connection_find_upload(connection, frame->header.stream_id) == NULL;
    default:
        return false;
    }
}

void inf_connection_accept_frame(struct inf_connection *connection, const struct inf_frame *frame)
{
    struct inf_connections *set = connection->set;
    connection->frame_pending_plus_1 = 0;
    if (!inf_connection_is_kept(connection))
        return;
    struct inf_read_record *record = inf_handover_read_record(set->options.handover);
    uint32_t end = record->direct != 0 ? 1 : set->frame_end;
    if (wants_answer(connection, frame)) {
        const struct inf_pending pending = {.stream_id = frame->header.stream_id,
                                            .read_number = record->number,
                                            .read_end = end,
                                            .method = frame->header.method,
                                            .type = frame->header.type};
        struct inf_send_log *log = connection->kept->log;
        bool direct = frame->header.type == INF_FRAME_REQUEST && connection->in_flight == 0;
        uint32_t entry = direct ? inf_send_log_add(log, &pending, true) : 0;
        if (entry == 0)
            entry = inf_send_log_add(log, &pending, false);
        connection->frame_pending_plus_1 = entry;
        if (entry == 0)
            inf_connection_give_up(connection);
    }
    atomic_store_explicit(&record->done, end, memory_order_release);
}

void inf_connection_pause(struct inf_connection *connection)
{
    if (!inf_connection_is_kept(connection) || connection->state != INF_CONNECTION_OPEN ||
        connection->upload_count > 0 || inf_assembler_partial(&connection->assembler))
        return;
    connection->paused = true;
    inf_connection_set_reading(connection, false);
}

size_t inf_connection_read_limit(const struct inf_connection *connection, size_t size)
{
    if (!connection->set->draining || !inf_connection_is_kept(connection))
        return size;
    return INF_MIN(size, inf_assembler_wanted(&connection->assembler));
}
