// SPDX-License-Identifier: Apache-2.0
// Order keys. Requests of a connection with the same key are answered in the order of the requests:
// a reply that is ready too early waits in a stash until the earlier replies are queued.
#include "daemon/connection/order.h"

#include <assert.h>
#include <stdlib.h>

// A request with an order key whose final reply is not queued yet.
struct inf_ordered {
    struct inf_ordered *next;
    uint64_t stream_id, key;
    bool ready;
    struct inf_output stash;
};

bool inf_connection_order_begin(struct inf_connection *connection, uint64_t stream_id,
                                uint64_t order_key)
{
    struct inf_connections *set = connection->set;
    struct inf_ordered *ordered = set->unused_ordered;
    if (ordered != NULL)
        set->unused_ordered = ordered->next;
    else
        ordered = malloc(sizeof *ordered);
    if (ordered == NULL)
        return false;
    *ordered = (struct inf_ordered){.stream_id = stream_id, .key = order_key};
    if (connection->last_ordered != NULL)
        connection->last_ordered->next = ordered;
    else
        connection->first_ordered = ordered;
    connection->last_ordered = ordered;
    return true;
}

static struct inf_ordered *find_ordered(struct inf_connection *connection, uint64_t stream_id)
{
    struct inf_ordered *ordered = connection->first_ordered;
    while (ordered != NULL && ordered->stream_id != stream_id)
        ordered = ordered->next;
    assert(ordered != NULL && "a second final reply");
    return ordered;
}

// Returns the oldest request with this order key whose final reply is not queued yet.
static struct inf_ordered *find_first(struct inf_connection *connection, uint64_t key)
{
    struct inf_ordered *ordered = connection->first_ordered;
    while (ordered != NULL && ordered->key != key)
        ordered = ordered->next;
    return ordered;
}

struct inf_output *inf_connection_order_place(struct inf_connection *connection, uint64_t stream_id)
{
    struct inf_ordered *ordered = find_ordered(connection, stream_id);
    return find_first(connection, ordered->key) == ordered ? &connection->output : &ordered->stash;
}

static void remove_ordered(struct inf_connection *connection, struct inf_ordered *ordered)
{
    struct inf_ordered *previous = NULL;
    struct inf_ordered **link = &connection->first_ordered;
    while (*link != ordered) {
        previous = *link;
        link = &(*link)->next;
    }
    *link = ordered->next;
    if (connection->last_ordered == ordered)
        connection->last_ordered = previous;
    ordered->next = connection->set->unused_ordered;
    connection->set->unused_ordered = ordered;
}

void inf_connection_order_end(struct inf_connection *connection, uint64_t stream_id)
{
    struct inf_ordered *ordered = find_ordered(connection, stream_id);
    uint64_t key = ordered->key;
    ordered->ready = true;
    if (ordered->stash.first != NULL) {
        connection->stashed++;
        connection->stashed_bytes += ordered->stash.bytes;
        return;
    }
    do {
        if (ordered->stash.first != NULL) {
            connection->stashed--;
            connection->stashed_bytes -= ordered->stash.bytes;
            inf_output_append(&connection->output, &ordered->stash);
        }
        remove_ordered(connection, ordered);
        ordered = find_first(connection, key);
    } while (ordered != NULL && ordered->ready);
}

void inf_connection_order_clear(struct inf_connection *connection)
{
    while (connection->first_ordered != NULL) {
        inf_output_clear(&connection->first_ordered->stash, &connection->set->output_store);
        remove_ordered(connection, connection->first_ordered);
    }
    connection->stashed = 0;
    connection->stashed_bytes = 0;
}

void inf_connections_order_fini(struct inf_connections *connections)
{
    while (connections->unused_ordered != NULL) {
        struct inf_ordered *gone = connections->unused_ordered;
        connections->unused_ordered = gone->next;
        free(gone);
    }
}
