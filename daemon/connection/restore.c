// SPDX-License-Identifier: Apache-2.0
// Takes over connections. The steps for one connection:
//
//   1. entries of frames that were not accepted are dropped: their bytes are handled again (6)
//   2. entries of answers that were sent whole are freed; an answer that was sent in part is ended
//   3. regions are mapped again
//   4. a request of which only data has come gets a refused upload, so it is refused when it comes
//   5. all other entries are answered, in the order of their streams
//   6. what was read and not accepted is handled as if it had just been read
//
// Step 6 happens in inf_connections_resume(), when models are loaded.
#include "daemon/connection/restore.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "daemon/connection/close.h"
#include "daemon/connection/fail.h"
#include "daemon/connection/io.h"
#include "daemon/connection/kept.h"
#include "daemon/connection/reply.h"
#include "daemon/connection/upload.h"
#include "daemon/connection/watch.h"

static const struct inf_error not_begun = {
    .code = INF_UNAVAILABLE,
    .reason = INF_REASON_NOT_BEGUN,
    .text = "the daemon ended before it began the request; send it again"};

static const struct inf_error outcome_unknown = {
    .code = INF_UNAVAILABLE,
    .reason = INF_REASON_OUTCOME_UNKNOWN,
    .text = "the daemon ended after it began the request, which may have had its effect"};

// The entries of one connection that await an answer, ordered by their streams. The REQUEST of a
// stream is before its other frames.
struct pending_list {
    uint32_t count;
    uint16_t indexes[INF_LIMIT_KEPT_PENDINGS];
    struct inf_pending *pendings;
};

static int compare_pendings(const void *a, const void *b, void *context)
{
    const struct inf_pending *pendings = context;
    const struct inf_pending *first = &pendings[*(const uint16_t *)a];
    const struct inf_pending *second = &pendings[*(const uint16_t *)b];
    if (first->stream_id != second->stream_id)
        return first->stream_id < second->stream_id ? -1 : 1;
    return (second->type == INF_FRAME_REQUEST) - (first->type == INF_FRAME_REQUEST);
}

// --- the slot ---

// Copies what HELLO granted, within the limits of this version.
static enum inf_code read_slot(struct inf_connection *connection, const struct inf_kept_slot *slot,
                               struct inf_error *err)
{
    if (slot->streams_granted == 0 || slot->streams_granted > INF_LIMIT_STREAMS ||
        slot->data_bytes == 0 || slot->data_bytes > INF_LIMIT_DATA_BYTES ||
        slot->reply_bytes_max == 0 || slot->reply_bytes_max > INF_LIMIT_STREAM_DATA_BYTES ||
        memchr(slot->name, '\0', sizeof slot->name) == NULL)
        return inf_fail(err, INF_INVALID, "the slot of a connection is damaged");
    const struct inf_config *config = connection->set->options.config;
    connection->streams_granted = slot->streams_granted;
    connection->reply_bytes_max = slot->reply_bytes_max;
    connection->credit_bytes = config->request_bytes_per_connection_max;
    connection->name = inf_quote(slot->name);
    connection->limits = (struct inf_limits_message){
        .meta_bytes = INF_LIMIT_META_BYTES,
        .data_bytes = slot->data_bytes,
        .streams = INF_MIN(slot->streams_granted, config->requests_per_connection_max),
        .regions = INF_LIMIT_REGIONS,
        .region_bytes = INF_LIMIT_REGION_BYTES,
        .frame_fds = INF_LIMIT_FRAME_FDS,
        .stream_bytes = INF_LIMIT_STREAM_DATA_BYTES,
    };
    connection->state = INF_CONNECTION_OPEN;
    return INF_OK;
}

// Returns true if the frame of an entry was accepted, see struct inf_read_record.
static bool is_accepted(const struct inf_pending *pending, const struct inf_read_record *record)
{
    return pending->read_number != record->number ||
           pending->read_end <= atomic_load_explicit(&record->done, memory_order_relaxed);
}

// Collects the entries that await an answer, and drops those of frames that were not accepted.
static void list_pendings(struct inf_connection *connection, struct pending_list *list) INF_ON_LOOP
{
    const struct inf_read_record *record =
        inf_handover_read_record(connection->set->options.handover);
    list->count = 0;
    list->pendings = connection->kept->slot->pendings;
    for (uint32_t i = 0; i < INF_LIMIT_KEPT_PENDINGS; i++) {
        struct inf_pending *pending = &list->pendings[i];
        if (atomic_load_explicit(&pending->state, memory_order_relaxed) == INF_PENDING_FREE)
            continue;
        if (is_accepted(pending, record))
            list->indexes[list->count++] = (uint16_t)i;
        else
            inf_send_log_remove(connection->kept->log, i + 1);
    }
    qsort_r(list->indexes, list->count, sizeof list->indexes[0], compare_pendings, list->pendings);
}

// Completes a frame of which the earlier process sent a part. A DATA frame is completed with zeros,
// because the error that follows makes it void. Any other frame cannot be completed, so the
// connection ends.
static enum inf_code end_partial_frame(struct inf_connection *connection,
                                       struct inf_error *err) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_sent_rest rest;
    if (!inf_send_log_recover(connection->kept->log, &rest))
        return inf_fail(err, INF_INVALID, "the send log of a connection is damaged");
    if (rest.bytes == 0)
        return INF_OK;
    if (!rest.fill || rest.bytes > INF_LIMIT_DATA_BYTES)
        return inf_fail(err, INF_EXHAUSTED, "a reply was sent in part, and its rest is lost");
    struct inf_output_item item = {.buffer = inf_pool_acquire(set->options.pool, rest.bytes),
                                   .capacity = rest.bytes,
                                   .fill = true};
    if (item.buffer == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the rest of a reply");
    memset(item.buffer, 0, rest.bytes);
    INF_TRY(inf_output_push_rest(&connection->output, &set->output_store, &item, true, err));
    inf_connection_mark_dirty(connection);
    return INF_OK;
}

// --- regions ---

// Returns true if the frame of an entry made the region. Clients may use the streams of such frames
// again, so the stream alone does not tell.
static bool has_made(const struct inf_pending *pending, const struct inf_kept_region *record)
{
    return record->flags != 0 && record->stream_id == pending->stream_id &&
           record->id == pending->value;
}

// Returns true if the region was made for a MEM_ALLOC whose answer the client does not have.
static bool is_unknown_to_client(const struct pending_list *list,
                                 const struct inf_kept_region *record)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct inf_pending *pending = &list->pendings[list->indexes[i]];
        if (pending->type == INF_FRAME_MEM_ALLOC && has_made(pending, record))
            return true;
    }
    return false;
}

// Maps a region again. A descriptor that is no sealed memfd is refused, as one from a client is.
static bool restore_region(struct inf_connection *connection, const struct inf_kept_region *record,
                           int *fd) INF_ON_LOOP
{
    struct inf_deferred_close *deferred_close = connection->set->options.deferred_close;
    const struct inf_region_options options = {
        .id = record->id,
        .size_bytes = record->size_bytes,
        .writable = (record->flags & INF_KEPT_REGION_WRITABLE) != 0,
        .made_here = (record->flags & INF_KEPT_REGION_MADE_HERE) != 0,
        .fd = *fd};
    if (inf_deferred_close_reserve(deferred_close, 1, NULL) != INF_OK)
        return false;
    inf_quota_charge_held(connection->user, INF_QUOTA_FDS, 1);
    *fd = -1;
    return inf_region_register(&connection->regions, &options, NULL) == INF_OK;
}

// A process that is killed while it makes a region leaves a descriptor without a record. It must
// not stay in the store, because the next region with this index has the same name.
static void remove_unrecorded(struct inf_connection *connection, uint32_t region,
                              const int *fds) INF_ON_LOOP
{
    const struct inf_stored_name name = {.kind = INF_STORED_REGION,
                                         .slot = connection->kept->index,
                                         .generation = connection->kept->slot->generation,
                                         .region = region};
    if (fds != NULL && fds[region] >= 0)
        inf_connections_remove_stored(connection->set, &name);
}

static void restore_regions(struct inf_connection *connection, const struct pending_list *list,
                            int *fds) INF_ON_LOOP
{
    struct inf_kept_region *records = connection->kept->slot->regions;
    for (uint32_t i = 0; i < INF_LIMIT_REGIONS; i++) {
        if (records[i].flags == 0) {
            remove_unrecorded(connection, i, fds);
            continue;
        }
        bool restored = fds != NULL && fds[i] >= 0 && !is_unknown_to_client(list, &records[i]) &&
                        restore_region(connection, &records[i], &fds[i]);
        if (!restored)
            inf_connection_forget_region(connection, records[i].id);
    }
}

// --- answers ---

static void answer_request(struct inf_connection *connection, const struct inf_pending *pending,
                           struct inf_reply *reply) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    struct inf_counters *counters = set->options.counters;
    bool begun = atomic_load_explicit(&pending->state, memory_order_relaxed) != INF_PENDING_TAKEN;
    reply->method = pending->method;
    counters->requests_accepted++;
    counters->requests_in_flight++;
    inf_fault_init(&set->fault);
    set->fault.err = begun ? outcome_unknown : not_begun;
    set->fault.phase = begun ? "exec" : "queue";
    inf_connection_answer(connection, reply, NULL, &set->fault);
}

static const struct inf_kept_region *find_record(const struct inf_connection *connection,
                                                 const struct inf_pending *pending)
{
    const struct inf_kept_region *records = connection->kept->slot->regions;
    for (uint32_t i = 0; i < INF_LIMIT_REGIONS; i++)
        if (has_made(pending, &records[i]))
            return &records[i];
    return NULL;
}

// Answers a MEM_REGISTER, MEM_ALLOC or MEM_UNREGISTER.
static void answer_region_frame(struct inf_connection *connection,
                                const struct inf_pending *pending,
                                struct inf_reply *reply) INF_ON_LOOP
{
    struct inf_connections *set = connection->set;
    const struct inf_kept_region *record = find_record(connection, pending);
    union inf_message message = {.region = {.region_id = pending->value}};
    bool released = pending->type == INF_FRAME_MEM_UNREGISTER;
    reply->flags = INF_FRAME_FINAL;
    reply->type = released ? INF_FRAME_MEM_RELEASED : INF_FRAME_MEM_REGISTERED;
    if (pending->type == INF_FRAME_MEM_REGISTER && record != NULL) {
        message.region.region_id = record->id;
        message.region.size = record->size_bytes;
        message.region.writable = (record->flags & INF_KEPT_REGION_WRITABLE) != 0;
        inf_connection_send(connection, reply, INF_MESSAGE_REGION_REGISTERED, &message);
    } else if (released && pending->value != 0) {
        const uint64_t id = pending->value;
        // The earlier process may have unregistered the region already.
        if (inf_region_unregister(&connection->regions, id, pending->stream_id,
                                  reply->pending_plus_1, NULL) == INF_OK) {
            inf_connection_forget_region(connection, id);
            inf_connection_report_released(connection);
        } else {
            inf_connection_send(connection, reply, INF_MESSAGE_REGION_RELEASED, &message);
        }
    } else {
        inf_fault_init(&set->fault);
        set->fault.err = not_begun;
        inf_connection_send_fault(connection, reply, &set->fault);
    }
}

// Makes a refused upload for each request whose data, but not the request itself, was received. The
// data is lost, so the request is answered with NOT_BEGUN when it comes.
static enum inf_code restore_uploads(struct inf_connection *connection,
                                     const struct pending_list *list,
                                     struct inf_error *err) INF_ON_LOOP
{
    const struct inf_pending *request = NULL; // the last one so far
    for (uint32_t i = 0; i < list->count; i++) {
        const struct inf_pending *pending = &list->pendings[list->indexes[i]];
        if (pending->type == INF_FRAME_REQUEST)
            request = pending;
        if (pending->type != INF_FRAME_DATA)
            continue;
        if (request != NULL && request->stream_id == pending->stream_id) {
            inf_send_log_remove(connection->kept->log, list->indexes[i] + 1u);
            continue;
        }
        struct inf_frame frame = {.header = {.stream_id = pending->stream_id},
                                  .rejected = not_begun};
        struct inf_upload *upload;
        if (frame.header.stream_id <= connection->last_stream)
            return inf_fail(err, INF_INVALID, "the streams of a connection are damaged");
        connection->frame_pending_plus_1 = list->indexes[i] + 1u;
        enum inf_code code = inf_connection_start_upload(connection, &frame, 0, &upload, err);
        connection->frame_pending_plus_1 = 0;
        INF_TRY(code);
    }
    return INF_OK;
}

// Returns the number of requests that were answered.
static uint32_t answer_pendings(struct inf_connection *connection,
                                const struct pending_list *list) INF_ON_LOOP
{
    uint32_t answered = 0;
    for (uint32_t i = 0; i < list->count && connection->state == INF_CONNECTION_OPEN; i++) {
        const struct inf_pending *pending = &list->pendings[list->indexes[i]];
        struct inf_reply reply = {.stream_id = pending->stream_id,
                                  .pending_plus_1 = list->indexes[i] + 1u};
        if (pending->type == INF_FRAME_REQUEST) {
            answer_request(connection, pending, &reply);
            answered++;
        } else if (pending->type == INF_FRAME_PING) {
            reply.type = INF_FRAME_PONG;
            inf_connection_send(connection, &reply, INF_MESSAGE_EMPTY, NULL);
        } else if (pending->type != INF_FRAME_DATA) {
            answer_region_frame(connection, pending, &reply);
        }
    }
    return answered;
}

// The last stream is that of the slot, or of a frame that was accepted and not noted there.
static uint64_t find_last_stream(const struct inf_kept_slot *slot, const struct pending_list *list)
{
    uint64_t last = slot->last_stream;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct inf_pending *pending = &list->pendings[list->indexes[i]];
        if (pending->type == INF_FRAME_REQUEST || pending->type == INF_FRAME_DATA)
            last = INF_MAX(last, pending->stream_id);
    }
    return last;
}

static enum inf_code restore_connection(struct inf_connection *connection,
                                        const struct inf_left_connection *left,
                                        struct pending_list *list, uint32_t *answered,
                                        struct inf_error *err) INF_ON_LOOP
{
    INF_TRY(inf_connection_attach_slot(connection, left->slot, false, err));
    struct inf_kept_slot *slot = connection->kept->slot;
    INF_TRY(read_slot(connection, slot, err));
    connection->paused = true;
    inf_connection_set_reading(connection, false);
    INF_TRY(end_partial_frame(connection, err));
    list_pendings(connection, list);
    const uint64_t last_stream = find_last_stream(slot, list);
    restore_regions(connection, list, left->region_fds);
    inf_connection_take_sessions(connection, left->sessions_fd);
    INF_TRY(restore_uploads(connection, list, err));
    connection->last_stream = last_stream;
    inf_connection_note_stream(connection);
    *answered += answer_pendings(connection, list);
    return INF_OK;
}

// Removes the descriptors of a connection that has no slot from the store.
static void remove_left(struct inf_connections *connections,
                        const struct inf_left_connection *left) INF_ON_LOOP
{
    struct inf_stored_name name = {
        .kind = INF_STORED_CONNECTION, .slot = left->slot, .generation = left->generation};
    inf_connections_remove_stored(connections, &name);
    name.kind = INF_STORED_SESSIONS;
    if (left->sessions_fd >= 0)
        inf_connections_remove_stored(connections, &name);
    name.kind = INF_STORED_REGION;
    for (; left->region_fds != NULL && name.region < INF_LIMIT_REGIONS; name.region++)
        if (left->region_fds[name.region] >= 0)
            inf_connections_remove_stored(connections, &name);
}

void inf_connections_drop_left(struct inf_connections *connections,
                               struct inf_left_connection *left)
{
    remove_left(connections, left);
    inf_connections_close_socket(connections, left->peer.fd);
    left->peer.fd = -1;
}

enum inf_code inf_connections_restore(struct inf_connections *connections,
                                      struct inf_left_connection *left, uint32_t *answered,
                                      struct inf_error *err)
{
    struct inf_handover *handover = connections->options.handover;
    struct inf_kept_slot *slot = inf_handover_slot(handover, left->slot);
    if (atomic_load(&slot->state) != INF_KEPT_OPEN || slot->generation != left->generation) {
        inf_connections_drop_left(connections, left);
        return inf_fail(err, INF_INVALID, "no slot belongs to a stored connection");
    }
    inf_handover_claim_slot(handover, left->slot);
    struct pending_list *list = malloc(sizeof *list);
    enum inf_code code = list == NULL ? inf_fail(err, INF_EXHAUSTED, "no memory") : INF_OK;
    if (code != INF_OK)
        inf_connections_close_socket(connections, left->peer.fd);
    else
        code = inf_connections_add(connections, &left->peer, err);
    if (code != INF_OK) {
        remove_left(connections, left);
        inf_handover_free_slot(handover, left->slot);
        free(list);
        return code;
    }
    connections->held = true;
    struct inf_connection *connection = connections->all;
    code = restore_connection(connection, left, list, answered, err);
    free(list);
    if (code == INF_OK)
        return INF_OK;
    // A connection that has its slot gives it back when it closes.
    bool attached = connection->kept != NULL;
    inf_connection_close(connection);
    if (!attached) {
        remove_left(connections, left);
        inf_handover_free_slot(handover, left->slot);
    }
    return code;
}

// --- continuing ---

// Continues the frame that had come in part before `read_bytes` bytes were read to a buffer that is
// lost (0: none were).
static enum inf_code restore_input(struct inf_connection *connection,
                                   const struct inf_kept_input *input, uint64_t read_bytes,
                                   struct inf_error *err) INF_ON_LOOP
{
    struct inf_assembler *assembler = &connection->assembler;
    if (input->header_bytes == 0)
        return INF_OK;
    if (input->header_bytes > INF_HANDOVER_HEADER_BYTES || read_bytes > input->rest_bytes)
        return inf_fail(err, INF_INVALID, "the input of a connection is damaged");
    if (input->header_bytes == INF_HANDOVER_HEADER_BYTES)
        return inf_assembler_resume(assembler, input->header, input->rest_bytes - read_bytes,
                                    &not_begun, err);
    size_t used;
    // The descriptors of a frame come with its first byte.
    inf_assembler_expect_lost_fds(assembler, &not_begun);
    return inf_assembler_feed(assembler, (struct inf_span){input->header, input->header_bytes},
                              &used, err);
}

// Handles the bytes that the earlier process had read and not accepted.
static void feed_again(struct inf_connection *connection,
                       struct inf_read_record *record) INF_ON_LOOP
{
    uint32_t done = atomic_load_explicit(&record->done, memory_order_relaxed);
    inf_assembler_expect_lost_fds(&connection->assembler, &not_begun);
    inf_connection_feed(connection,
                        (struct inf_span){record->buffer + done, record->message.msg_len - done});
}

// `record` is the read that the earlier process was making for this connection; NULL: none.
static void resume_connection(struct inf_connection *connection,
                              struct inf_read_record *record) INF_ON_LOOP
{
    const struct inf_kept_slot *slot = connection->kept->slot;
    const struct inf_kept_input *input =
        &slot->inputs[atomic_load_explicit(&slot->input, memory_order_relaxed) & 1];
    struct inf_error err;
    // The read is over if the slot describes what it left.
    if (record != NULL && input->read_number == record->number && input->read_number != 0)
        record = NULL;
    bool direct = record != NULL && record->direct != 0;
    uint32_t done = record != NULL ? atomic_load_explicit(&record->done, memory_order_relaxed) : 0;
    enum inf_code code = INF_OK;
    if (record != NULL && !direct &&
        (record->message.msg_len > sizeof record->buffer || done > record->message.msg_len))
        code = inf_fail(&err, INF_INVALID, "the last read is damaged");
    if (code == INF_OK && done == 0)
        code = restore_input(connection, input, direct ? record->message.msg_len : 0, &err);
    if (code != INF_OK) {
        inf_connection_fail(connection, &err);
        return;
    }
    if (record != NULL && !direct)
        feed_again(connection, record);
    else if (connection->assembler.state == INF_ASSEMBLER_READY)
        inf_connection_feed(connection, (struct inf_span){NULL, 0});
}

void inf_connections_resume(struct inf_connections *connections)
{
    if (!connections->held)
        return;
    connections->held = false;
    struct inf_read_record *record = inf_handover_read_record(connections->options.handover);
    uint32_t reading = atomic_load_explicit(&record->slot_plus_1, memory_order_relaxed);
    struct inf_connection *next;
    // First the connection that was being read, because the record is needed for other reads.
    for (int round = 0; round < 2; round++)
        for (struct inf_connection *connection = connections->all; connection != NULL;
             connection = next) {
            next = connection->next;
            if (connection->kept == NULL || !connection->paused ||
                (round == 0 && connection->kept->index + 1 != reading))
                continue;
            connection->paused = false;
            resume_connection(connection, round == 0 ? record : NULL);
            inf_connection_end_read(connection);
            if (connection->state == INF_CONNECTION_OPEN)
                inf_connection_set_reading(connection, true);
            if (connection->state == INF_CONNECTION_OPEN &&
                inf_assembler_partial(&connection->assembler))
                connection->frame_since_ns = inf_clock_ns();
            inf_connection_watch(connection);
        }
    atomic_store_explicit(&record->slot_plus_1, 0, memory_order_release);
    inf_connections_flush(connections);
}
