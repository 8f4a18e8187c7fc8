// SPDX-License-Identifier: Apache-2.0
// Requests that wait for a model to be loaded: one queue for each model, in the order of arrival,
// with limits. Used by the loop only.
#ifndef INF_DAEMON_POLICY_MODEL_WAITS_H
#define INF_DAEMON_POLICY_MODEL_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/attributes.h"

// Most requests that wait for one model, of one client, and in all.
#define INF_WAITS_PER_MODEL  1024u
#define INF_WAITS_PER_CLIENT 128u
#define INF_WAITS_MAX        8192u
// Most bytes of metadata that all waiting requests keep. Users are charged for their data.
#define INF_WAITS_META_BYTES ((uint64_t)16 << 20)

// Buffer size for the reason why a load failed.
#define INF_WAITS_FAILURE 256

struct inf_wait_queue;

// One waiting request; embedded in the object that has it. Zeroed, except for the first two
// members, before it is added.
struct inf_model_wait {
    uint32_t *client_count;       // number of waiting requests of its client; outlives the wait
    uint32_t meta_bytes;          // bytes of metadata that the request keeps
    struct inf_wait_queue *queue; // NULL: the request does not wait
    struct inf_model_wait *previous, *next;
};

// All waiting requests. A zeroed struct is empty.
struct inf_model_waits {
    struct inf_wait_queue *buckets[64]; // queues of models that are being loaded, by hash of name
    struct inf_wait_queue *woken;       // queues whose requests are to be tried again
    uint32_t count;
    uint64_t meta_bytes;
    // Why the load failed for which the request that inf_model_waits_next() returned last has
    // waited; "": it did not fail, or nothing is known about it.
    char failure[INF_WAITS_FAILURE];
};

// Adds a request to the queue of a model; `name` "": it waits for any load to end. Returns false if
// a limit is reached or memory is exhausted.
bool inf_model_waits_add(struct inf_model_waits *waits, struct inf_model_wait *wait,
                         const char *name) INF_NODISCARD INF_ON_LOOP;

// Removes a request, whether it waits or is woken. Does nothing if it is in no queue.
void inf_model_waits_remove(struct inf_model_waits *waits, struct inf_model_wait *wait) INF_ON_LOOP;

// Wakes all requests that wait for a model, in the order of their arrival. `failure` is the reason
// why its load failed; "": it did not.
void inf_model_waits_wake(struct inf_model_waits *waits, const char *name,
                          const char *failure) INF_ON_LOOP;

// Wakes all requests.
void inf_model_waits_wake_all(struct inf_model_waits *waits) INF_ON_LOOP;

// Removes and returns the next request that is woken, and sets waits->failure; NULL if there is
// none.
struct inf_model_wait *inf_model_waits_next(struct inf_model_waits *waits) INF_ON_LOOP;

#endif
