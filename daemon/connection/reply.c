// SPDX-License-Identifier: Apache-2.0
// Encodes frames and queues them. The frame is assembled in a buffer that all connections share,
// and copied or linked into the output queue; inf_connections_flush() writes it. A reply with more
// data than one frame may carry is sent as DATA frames before the final RESPONSE.
#include "daemon/connection/reply.h"

#include <assert.h>

#include "daemon/connection/close.h"
#include "daemon/connection/order.h"

// The most data in the final RESPONSE of a kept connection, so that the frame with its metadata
// fits INF_SEND_LOG_WHOLE_BYTES.
#define FINAL_BYTES 8192u

void inf_connection_mark_dirty(struct inf_connection *connection)
{
    if (connection->dirty)
        return;
    connection->dirty = true;
    connection->next_dirty = connection->set->dirty;
    connection->set->dirty = connection;
}

// Encodes the metadata of a frame into set->head, after the bytes left free for the frame header.
static enum inf_code encode_metadata(struct inf_connections *set, enum inf_message_kind kind,
                                     const union inf_message *message, size_t *out_size,
                                     struct inf_error *err)
{
    return inf_message_encode(message, kind, set->head + INF_FRAME_HEADER_BYTES,
                              INF_LIMIT_META_BYTES, out_size, set->scratch, err);
}

static void queue_frame(struct inf_connection *connection, const struct inf_reply *reply,
                        size_t meta_bytes) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_frame_header header = {.meta_bytes = (uint32_t)meta_bytes,
                                            .data_bytes = (uint32_t)reply->data.size,
                                            .stream_id = reply->stream_id,
                                            .type = reply->type,
                                            .fd_count = reply->fd_plus_1 != 0,
                                            .flags = reply->flags,
                                            .method = reply->method};
    inf_frame_header_encode(&header, set->head);
    const struct inf_output_item item = {.head = {set->head, INF_FRAME_HEADER_BYTES + meta_bytes},
                                         .data = reply->data,
                                         .buffer = reply->buffer,
                                         .capacity = reply->capacity,
                                         .fd_plus_1 = reply->fd_plus_1,
                                         .pending_plus_1 = reply->pending_plus_1,
                                         .fill = reply->type == INF_FRAME_DATA};
    struct inf_output *output = &connection->output;
    if (reply->order_key != 0)
        output = inf_connection_order_place(connection, reply->stream_id);
    if (inf_output_push(output, &set->output_store, &item, NULL) != INF_OK) {
        inf_connection_close(connection);
        return;
    }
    if (reply->order_key != 0 && (reply->flags & INF_FRAME_FINAL) != 0)
        inf_connection_order_end(connection, reply->stream_id);
    inf_connection_mark_dirty(connection);
}

void inf_connection_send_fault(struct inf_connection *connection, const struct inf_reply *reply,
                               const struct inf_fault *fault)
{
    struct inf_connections *set = connection->set;
    if (connection->state == INF_CONNECTION_OVER) {
        inf_pool_release(set->options.pool, reply->buffer, reply->capacity);
        return;
    }
    union inf_message message;
    size_t meta_bytes = 0;
    inf_fault_status(fault, &message.status);
    // This cannot fail, because an encoded Status always fits into the buffer for metadata.
    enum inf_code code = encode_metadata(set, INF_MESSAGE_STATUS, &message, &meta_bytes, NULL);
    assert(code == INF_OK);
    (void)code;
    struct inf_reply failure = *reply;
    failure.flags |= INF_FRAME_FLAG_ERROR;
    // Drop only the pointer to the data, not the pool buffer: DATA frames that are already queued
    // may point into this buffer.
    failure.data = (struct inf_span){NULL, 0};
    queue_frame(connection, &failure, meta_bytes);
}

void inf_connection_send(struct inf_connection *connection, const struct inf_reply *reply,
                         enum inf_message_kind kind, const union inf_message *message)
{
    struct inf_connections *set = connection->set;
    size_t meta_bytes = 0;
    struct inf_fault fault;
    if (connection->state == INF_CONNECTION_OVER) {
        inf_pool_release(set->options.pool, reply->buffer, reply->capacity);
        return;
    }
    if (encode_metadata(set, kind, message, &meta_bytes, &set->fault.err) == INF_OK) {
        queue_frame(connection, reply, meta_bytes);
        return;
    }
    inf_fault_init(&fault);
    fault.err = set->fault.err;
    inf_connection_send_fault(connection, reply, &fault);
}

// Returns how many bytes of data the final RESPONSE of a reply may carry. If the connection is
// kept, the final frame must go to the socket whole or not at all: the next process can end a reply
// of which DATA frames are sent with an error, but not one whose final frame is sent in part.
static size_t find_final_bytes(const struct inf_connection *connection)
{
    bool takes_pieces = connection->reply_bytes_max > connection->limits.data_bytes;
    return connection->kept != NULL && takes_pieces ? FINAL_BYTES : connection->limits.data_bytes;
}

// Sends as many DATA frames as needed for reply data that does not fit into the final RESPONSE
// frame. Returns the remaining data, which the final frame carries.
static struct inf_span send_pieces(struct inf_connection *connection, const struct inf_reply *final,
                                   struct inf_span data) INF_ON_LOOP
{
    const union inf_message message = {.data = {.total_bytes = data.size}};
    struct inf_reply piece = {.type = INF_FRAME_DATA,
                              .method = final->method,
                              .stream_id = final->stream_id,
                              .order_key = final->order_key};
    size_t final_bytes = find_final_bytes(connection);
    while (data.size > final_bytes) {
        piece.data = (struct inf_span){
            data.data, INF_MIN(data.size - final_bytes / 2, connection->limits.data_bytes)};
        data.data += piece.data.size;
        data.size -= piece.data.size;
        inf_connection_send(connection, &piece, INF_MESSAGE_DATA, &message);
    }
    return data;
}

void inf_connection_answer(struct inf_connection *connection, const struct inf_reply *reply,
                           const struct inf_answer *answer, const struct inf_fault *fault)
{
    struct inf_counters *counters = connection->set->options.counters;
    struct inf_reply final = *reply;
    final.type = INF_FRAME_RESPONSE;
    final.flags = INF_FRAME_FINAL;
    assert(counters->requests_in_flight > 0);
    counters->requests_in_flight--;
    if (fault != NULL) {
        counters->requests_failed++;
        inf_connection_send_fault(connection, &final, fault);
        return;
    }
    counters->requests_ok++;
    final.data = (struct inf_span){answer->data, answer->data_bytes};
    final.buffer = answer->data;
    final.capacity = answer->data_capacity;
    if (final.data.size > find_final_bytes(connection))
        final.data = send_pieces(connection, &final, final.data);
    inf_connection_send(connection, &final, answer->kind, answer->message);
}

void inf_connection_report_released(struct inf_connection *connection)
{
    union inf_message message;
    struct inf_released_region released;
    while (inf_region_table_next_released(&connection->regions, &released)) {
        const struct inf_reply reply = {.type = INF_FRAME_MEM_RELEASED,
                                        .flags = INF_FRAME_FINAL,
                                        .stream_id = released.stream_id,
                                        .pending_plus_1 = released.pending_plus_1};
        message.region.region_id = released.id;
        message.region.size = 0;
        message.region.writable = false;
        inf_connection_send(connection, &reply, INF_MESSAGE_REGION_RELEASED, &message);
    }
}
