// SPDX-License-Identifier: Apache-2.0
// Sorts the descriptors that an earlier process stored: the handover, the sockets of connections,
// and the memfds of their regions. Their names say which is which; what the names say is checked
// against the handover.
#include "daemon/takeover.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/connection/restore.h"

// The connections of the earlier process, by their slots.
struct left_connections {
    struct inf_left_connection slots[INF_LIMIT_KEPT_CONNECTIONS]; // peer.fd is -1: none
};

// Adopts the first stored handover that this version reads. Returns true if the store has that
// handover and no other. Otherwise it has none afterwards, because a removal is by name.
static bool take_handover(struct inf_takeover *takeover, struct inf_listen_fds *fds) INF_ON_LOOP
{
    bool refused = false;
    for (uint32_t i = 0; i < fds->stored_count; i++) {
        struct inf_stored_fd *stored = &fds->stored[i];
        struct inf_error why = {.text = "another one is used"};
        if (inf_stored_name_parse(stored->name).kind != INF_STORED_MEMORY)
            continue;
        if (takeover->handover == NULL &&
            inf_handover_adopt(&takeover->handover, stored->fd, &why) == INF_OK) {
            stored->fd = -1;
            continue;
        }
        inf_log(takeover->log, INF_LOG_WARNING,
                "a handover of an earlier process is not used, its connections end reason=\"%s\"",
                why.text);
        refused = true;
    }
    if (refused)
        inf_fd_store_remove(takeover->fd_store, INF_HANDOVER_NAME);
    return takeover->handover != NULL && !refused;
}

enum inf_code inf_takeover_open(struct inf_takeover *takeover, struct event_base *base,
                                struct inf_listen_fds *fds, const struct inf_log *log,
                                struct inf_error *err)
{
    *takeover = (struct inf_takeover){.log = log};
    uint32_t room = inf_notify_store_room();
    if (room == 0)
        return INF_OK;
    INF_TRY(inf_fd_store_create(&takeover->fd_store, base, room, fds->stored_count, log, err));
    if (take_handover(takeover, fds))
        return INF_OK;
    if (takeover->handover == NULL)
        INF_TRY(inf_handover_create(&takeover->handover, err));
    if (inf_fd_store_add(takeover->fd_store, INF_HANDOVER_NAME,
                         inf_handover_fd(takeover->handover)))
        return INF_OK;
    // The handover cannot be stored. Without it, nothing else in the store is of use.
    inf_handover_destroy(&takeover->handover);
    return INF_OK;
}

static struct left_connections *alloc_left(void)
{
    struct left_connections *left = calloc(1, sizeof *left);
    for (uint32_t i = 0; left != NULL && i < INF_LIMIT_KEPT_CONNECTIONS; i++)
        left->slots[i].peer.fd = left->slots[i].sessions_fd = -1;
    return left;
}

static void free_left(struct left_connections *left)
{
    for (uint32_t i = 0; left != NULL && i < INF_LIMIT_KEPT_CONNECTIONS; i++) {
        for (uint32_t k = 0; left->slots[i].region_fds != NULL && k < INF_LIMIT_REGIONS; k++)
            if (left->slots[i].region_fds[k] >= 0)
                close(left->slots[i].region_fds[k]);
        if (left->slots[i].sessions_fd >= 0)
            close(left->slots[i].sessions_fd);
        free(left->slots[i].region_fds);
    }
    free(left);
}

// Closes a descriptor with the same name as one that is taken. Its name is not removed from the
// store yet, because a removal would remove both. It is removed when the connection ends.
static void close_duplicate(struct inf_stored_fd *stored)
{
    close(stored->fd);
    stored->fd = -1;
}

// Takes the socket of a connection, if the slot agrees.
static void place_connection(struct inf_takeover *takeover, struct left_connections *left,
                             const struct inf_stored_name *name, struct inf_stored_fd *stored)
{
    struct inf_left_connection *slot = &left->slots[name->slot];
    const struct inf_kept_slot *kept = inf_handover_slot(takeover->handover, name->slot);
    if (atomic_load(&kept->state) != INF_KEPT_OPEN || kept->generation != name->generation)
        return;
    if (slot->peer.fd >= 0) {
        close_duplicate(stored);
        return;
    }
    slot->slot = name->slot;
    slot->generation = name->generation;
    slot->peer.fd = stored->fd;
    stored->fd = -1;
}

// Takes the memfd of a region, if its connection is there.
static void place_region(struct left_connections *left, const struct inf_stored_name *name,
                         struct inf_stored_fd *stored)
{
    struct inf_left_connection *slot = &left->slots[name->slot];
    if (slot->peer.fd < 0 || slot->generation != name->generation)
        return;
    if (slot->region_fds == NULL) {
        slot->region_fds = malloc(INF_LIMIT_REGIONS * sizeof slot->region_fds[0]);
        for (uint32_t i = 0; slot->region_fds != NULL && i < INF_LIMIT_REGIONS; i++)
            slot->region_fds[i] = -1;
    }
    if (slot->region_fds == NULL)
        return;
    if (slot->region_fds[name->region] >= 0) {
        close_duplicate(stored);
        return;
    }
    slot->region_fds[name->region] = stored->fd;
    stored->fd = -1;
}

// Takes the memfd with the sessions of a connection.
static void place_sessions(struct left_connections *left, const struct inf_stored_name *name,
                           struct inf_stored_fd *stored)
{
    struct inf_left_connection *slot = &left->slots[name->slot];
    if (slot->peer.fd < 0 || slot->generation != name->generation)
        return;
    if (slot->sessions_fd >= 0) {
        close_duplicate(stored);
        return;
    }
    slot->sessions_fd = stored->fd;
    stored->fd = -1;
}

// Sorts the descriptors. Connections come first, because regions belong to them.
static void place_all(struct inf_takeover *takeover, struct inf_listen_fds *fds,
                      struct left_connections *left)
{
    for (int round = 0; round < 2; round++)
        for (uint32_t i = 0; i < fds->stored_count; i++) {
            struct inf_stored_fd *stored = &fds->stored[i];
            const struct inf_stored_name name = inf_stored_name_parse(stored->name);
            if (stored->fd < 0)
                continue;
            if (round == 0 && name.kind == INF_STORED_CONNECTION)
                place_connection(takeover, left, &name, stored);
            else if (round == 1 && name.kind == INF_STORED_REGION)
                place_region(left, &name, stored);
            else if (round == 1 && name.kind == INF_STORED_SESSIONS)
                place_sessions(left, &name, stored);
        }
}

static void restore_all(struct inf_takeover *takeover, struct left_connections *left,
                        struct inf_server *server) INF_ON_LOOP
{
    uint32_t kept = 0, lost = 0, answered = 0;
    for (uint32_t i = 0; i < INF_LIMIT_KEPT_CONNECTIONS; i++) {
        struct inf_error why = {0};
        if (left->slots[i].peer.fd < 0)
            continue;
        if (inf_server_restore(server, &left->slots[i], &answered, &why) == INF_OK) {
            kept++;
            continue;
        }
        lost++;
        inf_log(takeover->log, INF_LOG_INFO, "a connection was not taken over reason=\"%s\"",
                why.text);
    }
    if (kept + lost > 0)
        inf_log(takeover->log, INF_LOG_NOTICE,
                "connections taken over kept=%" PRIu32 " lost=%" PRIu32
                " requests_answered=%" PRIu32,
                kept, lost, answered);
}

// Removes a descriptor that was not taken from the store. inf_listen_fds_fini() closes it.
static void drop_stored(struct inf_takeover *takeover,
                        const struct inf_stored_fd *stored) INF_ON_LOOP
{
    const struct inf_stored_name name = inf_stored_name_parse(stored->name);
    if (stored->fd < 0)
        return;
    // The client must see the end at once, although the store has another descriptor. Another kind
    // of file is not affected.
    if (name.kind == INF_STORED_CONNECTION)
        (void)shutdown(stored->fd, SHUT_RDWR);
    if (takeover->fd_store != NULL && name.kind != INF_STORED_MEMORY)
        inf_fd_store_remove(takeover->fd_store, stored->name);
}

void inf_takeover_restore(struct inf_takeover *takeover, struct inf_listen_fds *fds,
                          struct inf_server *server)
{
    struct left_connections *left = takeover->handover != NULL ? alloc_left() : NULL;
    if (left != NULL) {
        place_all(takeover, fds, left);
        restore_all(takeover, left, server);
        free_left(left);
    }
    for (uint32_t i = 0; i < fds->stored_count; i++)
        drop_stored(takeover, &fds->stored[i]);
    inf_listen_fds_fini(fds);
}

void inf_takeover_fini(struct inf_takeover *takeover)
{
    inf_fd_store_destroy(&takeover->fd_store);
    inf_handover_destroy(&takeover->handover);
}
