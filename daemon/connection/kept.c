// SPDX-License-Identifier: Apache-2.0
// Records the state of kept connections for the next process. docs/explanation/handover.md has the
// design, send_log.c the part about answers, restore.c the other side.
#include "daemon/connection/kept.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/resource/session_choice.h"
#include "daemon/resource/session_image.h"
#include "daemon/system/fd_store.h"

bool inf_connection_is_kept(const struct inf_connection *connection)
{
    return connection->kept != NULL && !connection->kept->given_up;
}

// --- beginning and ending ---

static struct inf_stored_name make_name(const struct inf_kept *kept, enum inf_stored_kind kind,
                                        uint32_t region)
{
    return (struct inf_stored_name){
        .kind = kind, .slot = kept->index, .generation = kept->slot->generation, .region = region};
}

static bool store_fd(struct inf_connection *connection, enum inf_stored_kind kind, uint32_t region,
                     int fd) INF_ON_LOOP
{
    char text[INF_HANDOVER_NAME_BYTES];
    const struct inf_stored_name name = make_name(connection->kept, kind, region);
    inf_stored_name_format(&name, text);
    return inf_fd_store_add(connection->set->options.fd_store, text, fd);
}

void inf_connections_remove_stored(struct inf_connections *connections,
                                   const struct inf_stored_name *name)
{
    char text[INF_HANDOVER_NAME_BYTES];
    inf_stored_name_format(name, text);
    inf_fd_store_remove(connections->options.fd_store, text);
}

static void remove_fd(struct inf_connection *connection, enum inf_stored_kind kind,
                      uint32_t region) INF_ON_LOOP
{
    const struct inf_stored_name name = make_name(connection->kept, kind, region);
    inf_connections_remove_stored(connection->set, &name);
}

void inf_connection_give_up(struct inf_connection *connection)
{
    struct inf_kept *kept = connection->kept;
    if (kept->given_up)
        return;
    kept->given_up = true;
    atomic_store_explicit(&kept->slot->state, INF_KEPT_FREE, memory_order_release);
    for (uint32_t i = 0; i < INF_LIMIT_REGIONS; i++)
        if (kept->slot->regions[i].flags != 0)
            remove_fd(connection, INF_STORED_REGION, i);
    remove_fd(connection, INF_STORED_CONNECTION, 0);
}

enum inf_code inf_connection_attach_slot(struct inf_connection *connection, uint32_t index,
                                         bool fresh, struct inf_error *err)
{
    struct inf_kept *kept = calloc(1, sizeof *kept);
    if (kept == NULL || !inf_reply_writer_enter_loop(connection->writer)) {
        free(kept);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a kept connection");
    }
    kept->slot = inf_handover_slot(connection->set->options.handover, index);
    kept->index = index;
    kept->log = inf_reply_writer_start_log(connection->writer, &kept->slot->sent,
                                           kept->slot->pendings, fresh);
    inf_reply_writer_leave_loop(connection->writer);
    kept->writer = inf_reply_writer_ref(connection->writer);
    connection->kept = kept;
    return INF_OK;
}

// Returns true if nothing is in flight on the connection, so that an empty record describes it.
static bool is_quiet(const struct inf_connection *connection) INF_ON_LOOP
{
    return connection->state == INF_CONNECTION_OPEN && connection->call_count == 0 &&
           connection->upload_count == 0 && connection->first_ordered == NULL &&
           connection->output.first == NULL && !inf_assembler_partial(&connection->assembler) &&
           !inf_reply_writer_busy(connection->writer);
}

static void record_region(struct inf_connection *connection, const struct inf_region *region,
                          uint64_t stream_id) INF_ON_LOOP
{
    uint32_t index = 0;
    while (index < INF_LIMIT_REGIONS && connection->kept->slot->regions[index].flags != 0)
        index++;
    if (index == INF_LIMIT_REGIONS || !store_fd(connection, INF_STORED_REGION, index, region->fd)) {
        inf_connection_give_up(connection);
        return;
    }
    struct inf_kept_region *record = &connection->kept->slot->regions[index];
    record->id = region->id;
    record->size_bytes = region->size_bytes;
    record->stream_id = stream_id;
    atomic_signal_fence(memory_order_release);
    record->flags = INF_KEPT_REGION_USED | (region->writable ? INF_KEPT_REGION_WRITABLE : 0) |
                    (region->made_here ? INF_KEPT_REGION_MADE_HERE : 0);
}

static void fill_slot(struct inf_connection *connection)
{
    struct inf_kept_slot *slot = connection->kept->slot;
    slot->last_stream = connection->last_stream;
    slot->reply_bytes_max = connection->reply_bytes_max;
    slot->streams_granted = connection->streams_granted;
    slot->data_bytes = connection->limits.data_bytes;
    memcpy(slot->name, connection->name.text, sizeof slot->name);
    atomic_store_explicit(&slot->state, INF_KEPT_OPEN, memory_order_release);
}

void inf_connection_keep(struct inf_connection *connection)
{
    struct inf_connections *set = connection->set;
    uint32_t index;
    if (set->options.handover == NULL || connection->kept != NULL || set->held || set->draining ||
        !is_quiet(connection))
        return;
    inf_connections_reap_slots(set);
    if (!inf_handover_take_slot(set->options.handover, &index))
        return;
    if (inf_connection_attach_slot(connection, index, true, NULL) != INF_OK) {
        inf_handover_free_slot(set->options.handover, index);
        return;
    }
    // Fill the slot first, because the next process closes a stored socket without a valid slot.
    fill_slot(connection);
    if (!store_fd(connection, INF_STORED_CONNECTION, 0, connection->fd)) {
        atomic_store_explicit(&connection->kept->slot->state, INF_KEPT_FREE, memory_order_release);
        connection->kept->given_up = true;
        return;
    }
    for (const struct inf_region *region = connection->regions.regions; region != NULL;
         region = region->next)
        if (region->registered)
            record_region(connection, region, 0);
}

static void free_kept(struct inf_kept *kept)
{
    inf_reply_writer_unref(&kept->writer);
    free(kept);
}

void inf_connections_reap_slots(struct inf_connections *connections)
{
    struct inf_kept **link = &connections->leaving;
    while (*link != NULL) {
        struct inf_kept *kept = *link;
        if (!inf_reply_writer_is_closed(kept->writer)) {
            link = &kept->next;
            continue;
        }
        *link = kept->next;
        inf_handover_free_slot(connections->options.handover, kept->index);
        free_kept(kept);
    }
}

void inf_connection_end_keeping(struct inf_connection *connection)
{
    struct inf_connections *set = connection->set;
    struct inf_kept *kept = connection->kept;
    if (kept == NULL)
        return;
    if (set->ending) {
        free_kept(kept); // the slot stays for the next process
    } else {
        inf_connection_give_up(connection);
        kept->next = set->leaving;
        set->leaving = kept;
        inf_connections_reap_slots(set);
    }
    connection->kept = NULL;
}

// --- reading ---

uint8_t *inf_connection_read_buffer(struct inf_connection *connection)
{
    struct inf_connections *set = connection->set;
    if (connection->kept == NULL)
        return set->read_buffer;
    return inf_handover_read_record(set->options.handover)->buffer;
}

ssize_t inf_connection_receive(struct inf_connection *connection, struct msghdr *message,
                               bool direct, int flags)
{
    if (connection->kept == NULL)
        return recvmsg(connection->fd, message, flags);
    struct inf_read_record *record = inf_handover_read_record(connection->set->options.handover);
    record->number++;
    record->direct = direct;
    record->message.msg_hdr = *message;
    record->message.msg_len = 0;
    // Reset `done` after the number has changed. Otherwise the entries of the earlier read, whose
    // ends are above 0, would look as if their frames were not accepted.
    atomic_store_explicit(&record->done, 0, memory_order_release);
    atomic_store_explicit(&record->slot_plus_1, connection->kept->index + 1, memory_order_release);
    int result = recvmmsg(connection->fd, &record->message, 1, flags, NULL);
    int error = errno;
    *message = record->message.msg_hdr;
    if (result == 1)
        return (ssize_t)record->message.msg_len;
    atomic_store_explicit(&record->slot_plus_1, 0, memory_order_release);
    errno = error;
    return -1;
}

// Describes the frame that has come in part.
static void fill_input(const struct inf_assembler *assembler, struct inf_kept_input *input)
{
    input->header_bytes = 0;
    input->rest_bytes = 0;
    if (!inf_assembler_partial(assembler))
        return;
    bool complete = assembler->state != INF_ASSEMBLER_HEADER;
    input->header_bytes = complete ? INF_HANDOVER_HEADER_BYTES : (uint32_t)assembler->got;
    input->rest_bytes = inf_assembler_rest(assembler);
    memcpy(input->header, assembler->header_bytes, sizeof input->header);
}

void inf_connection_end_read(struct inf_connection *connection)
{
    if (connection->set->options.handover == NULL)
        return;
    struct inf_read_record *record = inf_handover_read_record(connection->set->options.handover);
    if (connection->kept != NULL) {
        struct inf_kept_slot *slot = connection->kept->slot;
        uint32_t active = atomic_load_explicit(&slot->input, memory_order_relaxed) & 1;
        if (inf_assembler_partial(&connection->assembler) ||
            slot->inputs[active].header_bytes > 0) {
            fill_input(&connection->assembler, &slot->inputs[1 - active]);
            slot->inputs[1 - active].read_number = record->number;
            atomic_store_explicit(&slot->input, 1 - active, memory_order_release);
        }
    }
    atomic_store_explicit(&record->slot_plus_1, 0, memory_order_release);
}

struct inf_pending *inf_connection_frame_pending(struct inf_connection *connection)
{
    if (connection->frame_pending_plus_1 == 0)
        return NULL;
    return &connection->kept->slot->pendings[connection->frame_pending_plus_1 - 1];
}

void inf_connection_note_stream(struct inf_connection *connection)
{
    if (connection->kept != NULL)
        connection->kept->slot->last_stream = connection->last_stream;
}

void inf_connection_drop_pending(struct inf_connection *connection, uint32_t pending_plus_1)
{
    if (connection->kept != NULL && !connection->set->ending)
        inf_send_log_remove(connection->kept->log, pending_plus_1);
}

// --- regions ---

void inf_connection_keep_region(struct inf_connection *connection, uint64_t stream_id)
{
    // The region that was registered last is the first of the list.
    if (inf_connection_is_kept(connection))
        record_region(connection, connection->regions.regions, stream_id);
}

void inf_connection_forget_region(struct inf_connection *connection, uint64_t id)
{
    if (!inf_connection_is_kept(connection))
        return;
    struct inf_kept_region *regions = connection->kept->slot->regions;
    for (uint32_t i = 0; i < INF_LIMIT_REGIONS; i++)
        if (regions[i].flags != 0 && regions[i].id == id) {
            regions[i].flags = 0;
            remove_fd(connection, INF_STORED_REGION, i);
            return;
        }
}

// --- sessions ---

// Returns true if the next process can have the sessions of this connection.
static bool may_keep_sessions(const struct inf_connection *connection)
{
    return inf_connection_is_kept(connection) && connection->sessions.count > 0 &&
           connection->call_count == 0;
}

// Stores the sessions of a connection that were chosen. Returns false if they end with the process.
static bool keep_sessions(struct inf_connection *connection, struct inf_error *err) INF_ON_LOOP
{
    int fd = -1;
    enum inf_code code = inf_session_image_write(&connection->sessions, &fd, err);
    if (code == INF_OK && !store_fd(connection, INF_STORED_SESSIONS, 0, fd))
        code = inf_fail(err, INF_EXHAUSTED, "the store is full");
    if (fd >= 0)
        close(fd);
    return code == INF_OK;
}

// Chooses the sessions of which there is room. Returns how many.
static struct inf_session_choice_result choose_sessions(struct inf_connections *set) INF_ON_LOOP
{
    struct inf_session_choice choice = {0};
    uint32_t dropped = 0;
    for (struct inf_connection *connection = set->all; connection != NULL;
         connection = connection->next) {
        if (!may_keep_sessions(connection) ||
            !inf_session_choice_add(&choice, &connection->sessions))
            dropped += connection->sessions.count;
    }
    struct inf_session_choice_result result = inf_session_choice_decide(
        &choice, INF_LIMIT_ALL_KEPT_SESSION_BYTES, INF_LIMIT_KEPT_SESSION_BYTES);
    inf_session_choice_fini(&choice);
    result.lost += dropped;
    return result;
}

void inf_connections_keep_sessions(struct inf_connections *connections)
{
    if (connections->options.handover == NULL)
        return;
    struct inf_session_choice_result result = choose_sessions(connections);
    struct inf_error err = {0};
    uint32_t failed = 0;
    for (struct inf_connection *connection = connections->all; connection != NULL;
         connection = connection->next)
        if (may_keep_sessions(connection) && connection->sessions.kept_bytes > 0 &&
            !keep_sessions(connection, &err))
            failed++;
    if (result.lost > 0)
        inf_log(connections->options.log, INF_LOG_WARNING,
                "sessions end with the process kept=%" PRIu32 " lost=%" PRIu32
                " kept_bytes=%" PRIu64 " lost_bytes=%" PRIu64 " limit=%u",
                result.kept, result.lost, result.kept_bytes, result.lost_bytes,
                INF_LIMIT_ALL_KEPT_SESSION_BYTES);
    if (failed > 0)
        inf_log(connections->options.log, INF_LOG_WARNING,
                "sessions of clients end clients=%" PRIu32 " reason=\"%s\"", failed, err.text);
}

void inf_connection_take_sessions(struct inf_connection *connection, int fd)
{
    struct inf_error err;
    connection->sessions.is_restored = true;
    if (fd < 0)
        return;
    remove_fd(connection, INF_STORED_SESSIONS, 0);
    if (inf_session_image_read(&connection->sessions, fd, &err) == INF_OK)
        return;
    inf_session_table_fini(&connection->sessions);
    inf_log(connection->set->options.log, INF_LOG_WARNING,
            "sessions of a client end uid=%u reason=\"%s\"", (unsigned)connection->caller.uid,
            err.text);
}
