// SPDX-License-Identifier: Apache-2.0
// The queue of a model exists as long as requests are in it. To wake a queue, it moves as a whole
// from its bucket to the list of woken queues, so every step takes the same time however many
// requests wait. A request that is refused once more enters a new queue of the model.
#include "daemon/policy/model_waits.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/hash.h"
#include "proto/core/limits.h"

struct inf_wait_queue {
    struct inf_wait_queue *next, **link; // `link` points at the pointer to this queue
    struct inf_model_wait *first, *last;
    uint32_t count;
    char failure[INF_WAITS_FAILURE];
    char name[INF_LIMIT_MODEL_NAME + 1];
};

static struct inf_wait_queue **find_bucket(struct inf_model_waits *waits, const char *name)
{
    uint64_t hash = inf_hash_bytes(INF_HASH_INIT, name, strlen(name));
    return &waits->buckets[hash % INF_ARRAY_LENGTH(waits->buckets)];
}

static struct inf_wait_queue *find_queue(struct inf_model_waits *waits, const char *name)
{
    struct inf_wait_queue *queue = *find_bucket(waits, name);
    while (queue != NULL && strcmp(queue->name, name) != 0)
        queue = queue->next;
    return queue;
}

static void link_queue(struct inf_wait_queue **link, struct inf_wait_queue *queue)
{
    queue->link = link;
    queue->next = *link;
    if (queue->next != NULL)
        queue->next->link = &queue->next;
    *link = queue;
}

static void unlink_queue(struct inf_wait_queue *queue)
{
    *queue->link = queue->next;
    if (queue->next != NULL)
        queue->next->link = queue->link;
}

// Returns the queue of a model, and creates it if there is none. NULL: memory is exhausted.
static struct inf_wait_queue *obtain_queue(struct inf_model_waits *waits, const char *name)
{
    struct inf_wait_queue *queue = find_queue(waits, name);
    if (queue != NULL)
        return queue;
    queue = calloc(1, sizeof *queue);
    if (queue == NULL)
        return NULL;
    snprintf(queue->name, sizeof queue->name, "%s", name);
    link_queue(find_bucket(waits, name), queue);
    return queue;
}

bool inf_model_waits_add(struct inf_model_waits *waits, struct inf_model_wait *wait,
                         const char *name)
{
    assert(wait->queue == NULL);
    if (waits->count >= INF_WAITS_MAX || *wait->client_count >= INF_WAITS_PER_CLIENT ||
        waits->meta_bytes + wait->meta_bytes > INF_WAITS_META_BYTES)
        return false;
    struct inf_wait_queue *queue = obtain_queue(waits, name);
    if (queue == NULL || queue->count >= INF_WAITS_PER_MODEL)
        return false;
    wait->queue = queue;
    wait->previous = queue->last;
    wait->next = NULL;
    if (queue->last != NULL)
        queue->last->next = wait;
    else
        queue->first = wait;
    queue->last = wait;
    queue->count++;
    waits->count++;
    waits->meta_bytes += wait->meta_bytes;
    (*wait->client_count)++;
    return true;
}

void inf_model_waits_remove(struct inf_model_waits *waits, struct inf_model_wait *wait)
{
    struct inf_wait_queue *queue = wait->queue;
    if (queue == NULL)
        return;
    if (wait->previous != NULL)
        wait->previous->next = wait->next;
    else
        queue->first = wait->next;
    if (wait->next != NULL)
        wait->next->previous = wait->previous;
    else
        queue->last = wait->previous;
    wait->queue = NULL;
    wait->previous = wait->next = NULL;
    waits->count--;
    waits->meta_bytes -= wait->meta_bytes;
    (*wait->client_count)--;
    if (--queue->count > 0)
        return;
    unlink_queue(queue);
    free(queue);
}

static void wake_queue(struct inf_model_waits *waits, struct inf_wait_queue *queue)
{
    unlink_queue(queue);
    link_queue(&waits->woken, queue);
}

void inf_model_waits_wake(struct inf_model_waits *waits, const char *name, const char *failure)
{
    struct inf_wait_queue *queue = find_queue(waits, name);
    if (queue == NULL)
        return;
    snprintf(queue->failure, sizeof queue->failure, "%.*s", INF_WAITS_FAILURE - 1, failure);
    wake_queue(waits, queue);
}

void inf_model_waits_wake_all(struct inf_model_waits *waits)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(waits->buckets); i++)
        while (waits->buckets[i] != NULL)
            wake_queue(waits, waits->buckets[i]);
}

struct inf_model_wait *inf_model_waits_next(struct inf_model_waits *waits)
{
    if (waits->woken == NULL)
        return NULL;
    struct inf_model_wait *wait = waits->woken->first;
    memcpy(waits->failure, waits->woken->failure, sizeof waits->failure);
    inf_model_waits_remove(waits, wait);
    return wait;
}
