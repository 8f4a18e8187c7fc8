// SPDX-License-Identifier: Apache-2.0
// Which sessions survive a restart.
//
// The problem: sessions are copied for the next process, and no client is served meanwhile. So the
// bytes are limited, and the limit must not let one user take the room of all others.
//
// The idea: order the sessions of each user by their last use. The *fill* of a session is the sum
// of the bytes of the user's sessions down to this one. Keep sessions in the order of their fills
// while they fit. This is max-min fairness: the users are filled up at the same rate.
//
//   limit 10     last used first            fills
//   user A       a1 = 3, a2 = 3, a3 = 5     3, 6, 11
//   user B       b1 = 4                     4
//   kept: a1, b1, a2 = 10 bytes. a3 is lost.
//
// A session that does not fit is left out, and smaller ones after it may still fit.
#include "daemon/resource/session_choice.h"

#include <stdlib.h>

#include "daemon/resource/session_image.h"
#include "proto/core/span.h"

#define CAPACITY_FIRST 64

struct inf_session_candidate {
    struct inf_session *session;
    struct inf_session_table *table;
    uint64_t bytes; // of its image
    uint64_t fill;  // bytes of the user's sessions that were used as recently or more recently
};

static bool reserve_candidates(struct inf_session_choice *choice, size_t count)
{
    if (count <= choice->capacity)
        return true;
    size_t capacity = INF_MAX(choice->capacity, CAPACITY_FIRST);
    while (capacity < count)
        capacity *= 2;
    struct inf_session_candidate *candidates =
        realloc(choice->candidates, capacity * sizeof *candidates);
    if (candidates == NULL)
        return false;
    choice->candidates = candidates;
    choice->capacity = capacity;
    return true;
}

bool inf_session_choice_add(struct inf_session_choice *choice, struct inf_session_table *table)
{
    table->kept_bytes = 0;
    for (struct inf_session *session = table->sessions; session != NULL; session = session->next)
        session->is_kept = false;
    if (!reserve_candidates(choice, choice->count + table->count))
        return false;
    for (struct inf_session *session = table->sessions; session != NULL; session = session->next)
        choice->candidates[choice->count++] = (struct inf_session_candidate){
            .session = session, .table = table, .bytes = inf_session_image_bytes(session)};
    return true;
}

// Orders by user, and then by last use, the most recent first.
static int compare_uses(const void *a, const void *b)
{
    const struct inf_session *first = ((const struct inf_session_candidate *)a)->session;
    const struct inf_session *second = ((const struct inf_session_candidate *)b)->session;
    if (first->user != second->user)
        return (uintptr_t)first->user < (uintptr_t)second->user ? -1 : 1;
    return (first->last_use < second->last_use) - (first->last_use > second->last_use);
}

// Orders by fill. Of equal fills, the session that was used most recently is first.
static int compare_fills(const void *a, const void *b)
{
    const struct inf_session_candidate *first = a, *second = b;
    if (first->fill != second->fill)
        return first->fill < second->fill ? -1 : 1;
    return (first->session->last_use < second->session->last_use) -
           (first->session->last_use > second->session->last_use);
}

static void sort_by_fill(struct inf_session_choice *choice)
{
    struct inf_session_candidate *candidates = choice->candidates;
    qsort(candidates, choice->count, sizeof candidates[0], compare_uses);
    for (size_t i = 0; i < choice->count; i++) {
        bool same = i > 0 && candidates[i].session->user == candidates[i - 1].session->user;
        candidates[i].fill = candidates[i].bytes + (same ? candidates[i - 1].fill : 0);
    }
    qsort(candidates, choice->count, sizeof candidates[0], compare_fills);
}

struct inf_session_choice_result inf_session_choice_decide(struct inf_session_choice *choice,
                                                           uint64_t bytes_max,
                                                           uint64_t table_bytes_max)
{
    struct inf_session_choice_result result = {0};
    if (choice->count == 0)
        return result;
    sort_by_fill(choice);
    for (size_t i = 0; i < choice->count; i++) {
        const struct inf_session_candidate *candidate = &choice->candidates[i];
        struct inf_session_table *table = candidate->table;
        if (!inf_range_ok(result.kept_bytes, candidate->bytes, bytes_max) ||
            !inf_range_ok(table->kept_bytes, candidate->bytes, table_bytes_max)) {
            result.lost++;
            result.lost_bytes += candidate->bytes;
            continue;
        }
        candidate->session->is_kept = true;
        table->kept_bytes += candidate->bytes;
        result.kept++;
        result.kept_bytes += candidate->bytes;
    }
    return result;
}

void inf_session_choice_fini(struct inf_session_choice *choice)
{
    free(choice->candidates);
    *choice = (struct inf_session_choice){0};
}
