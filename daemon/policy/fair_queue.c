// SPDX-License-Identifier: Apache-2.0
// Fair queueing in device time, on two levels: between users, and between the models of one user.
//
// Every user and every flow (the requests of one user for one model) has a counter `served_ns`: the
// device time that it has used. The next entry belongs to the user with the smallest counter. Among
// the entries of that user the most urgent one is next, and among equally urgent entries the one
// whose flow has the smallest counter. When an entry starts, both counters are raised by its
// expected cost; when it ends, the charge is corrected to the time that it took. The charge must be
// made at the start, because otherwise several workers would all serve the same user.
//
// A user who was idle must not use up saved time later, and must not be punished either. So each
// level has a clock: the counter of the user (or flow) that was served last. When a user starts to
// wait, its counter is moved forward to the clock.
//
//   user  served_ns          clock = 40
//   A     40 (runs)
//   B     55 (waits)         goes after C, because B used more
//   C     12 -> 40 (arrives) was idle: catches up to the clock, saves nothing
//
// Memory is fixed at creation. The pools of users and flows are as large as the queue. This is
// enough, because each user and flow that is not idle owns an entry. Idle ones are kept while their
// counter is ahead of the clock (a debt), and are forgotten earlier only if the pool is empty. The
// lists are searched linearly, because there are few users.
#include "daemon/policy/fair_queue.h"

#include <assert.h>
#include <stdlib.h>

#include "backends/base/clock.h"

struct list {
    struct inf_fair_queue_entry *first, *last;
};

// A flow: the requests of one user for one model. An idle flow is kept as long as it owes device
// time.
struct inf_fair_queue_flow {
    uint64_t model;
    struct user *user;
    struct inf_fair_queue_flow *next; // link of the list `user->flows`
    // Device time used by this flow; after an idle time it is raised to the clock of the user.
    uint64_t served_ns;
    uint64_t waiting_ns[INF_PRIORITY_COUNT];
    uint32_t waiting, running;
    struct list lists[INF_PRIORITY_COUNT]; // entries of each priority, in order of arrival
};

struct user {
    uint64_t id;
    struct user *next;
    // Device time used by this user; after an idle time it is raised to the clock of the queue.
    uint64_t served_ns;
    uint64_t clock_ns; // served_ns of the flow of this user that was served last
    uint32_t waiting, running;
    struct inf_fair_queue_flow *flows;
};

// The fair queue of one device. Flows and users are taken from two pools with as many elements as
// the queue can have entries, which is enough because each flow or user that is not idle has an
// entry.
struct inf_fair_queue {
    // `capacity` is the number of elements of each pool. Elements from flows_used or users_used on
    // were never used.
    uint32_t capacity, flows_used, users_used;
    struct inf_fair_queue_flow *flow_pool, *free_flows;
    struct user *user_pool, *free_users;
    struct user *users;
    uint32_t active_users; // number of users with waiting entries
    uint64_t clock_ns;     // served_ns of the user who was served last
    uint64_t waiting_ns;   // expected cost of all waiting entries
};

enum inf_code inf_fair_queue_create(struct inf_fair_queue **out_queue, uint32_t capacity,
                                    struct inf_error *err)
{
    struct inf_fair_queue *fair_queue = calloc(1, sizeof *fair_queue);
    if (fair_queue == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a queue");
    fair_queue->capacity = capacity;
    // A large capacity costs little, because calloc() gets zeroed pages from the kernel, which take
    // no physical memory until they are used.
    fair_queue->flow_pool = calloc(capacity, sizeof *fair_queue->flow_pool);
    fair_queue->user_pool = calloc(capacity, sizeof *fair_queue->user_pool);
    if (fair_queue->flow_pool == NULL || fair_queue->user_pool == NULL) {
        inf_fair_queue_destroy(&fair_queue);
        return inf_fail(err, INF_EXHAUSTED, "no memory for a queue of %u", capacity);
    }
    *out_queue = fair_queue;
    return INF_OK;
}

void inf_fair_queue_destroy(struct inf_fair_queue **fair_queue)
{
    if (*fair_queue == NULL)
        return;
    free((*fair_queue)->user_pool);
    free((*fair_queue)->flow_pool);
    free(*fair_queue);
    *fair_queue = NULL;
}

// --- finding and creating users and flows ---

static bool is_flow_idle(const struct inf_fair_queue_flow *flow)
{
    return flow->waiting == 0 && flow->running == 0;
}

static bool is_user_idle(const struct user *user)
{
    return user->waiting == 0 && user->running == 0;
}

// Returns true if an idle user or flow may be removed from memory. Its counter matters only if it
// is ahead of the clock (a debt of device time). If the pool is full, a user or flow with a debt
// may be removed, too.
static bool is_forgettable(uint64_t served_ns, uint64_t clock_ns, bool room_needed)
{
    return room_needed || served_ns <= clock_ns;
}

static void forget_idle_flows(struct inf_fair_queue *fair_queue, struct user *user,
                              bool room_needed)
{
    for (struct inf_fair_queue_flow **link = &user->flows; *link != NULL;) {
        struct inf_fair_queue_flow *flow = *link;
        if (!is_flow_idle(flow) || !is_forgettable(flow->served_ns, user->clock_ns, room_needed)) {
            link = &flow->next;
            continue;
        }
        *link = flow->next;
        flow->next = fair_queue->free_flows;
        fair_queue->free_flows = flow;
    }
}

static void forget_idle_users(struct inf_fair_queue *fair_queue, bool room_needed)
{
    for (struct user **link = &fair_queue->users; *link != NULL;) {
        struct user *user = *link;
        if (!is_user_idle(user) ||
            !is_forgettable(user->served_ns, fair_queue->clock_ns, room_needed)) {
            link = &user->next;
            continue;
        }
        forget_idle_flows(fair_queue, user, true);
        *link = user->next;
        user->next = fair_queue->free_users;
        fair_queue->free_users = user;
    }
}

static struct user *find_user(const struct inf_fair_queue *fair_queue, uint64_t id)
{
    struct user *user = fair_queue->users;
    while (user != NULL && user->id != id)
        user = user->next;
    return user;
}

static struct user *create_user(struct inf_fair_queue *fair_queue, uint64_t id)
{
    forget_idle_users(fair_queue, fair_queue->free_users == NULL &&
                                      fair_queue->users_used == fair_queue->capacity);
    struct user *user = fair_queue->free_users;
    if (user != NULL)
        fair_queue->free_users = user->next;
    else
        user = &fair_queue->user_pool[fair_queue->users_used++];
    *user = (struct user){.id = id, .next = fair_queue->users};
    fair_queue->users = user;
    return user;
}

static struct inf_fair_queue_flow *create_flow(struct inf_fair_queue *fair_queue, struct user *user,
                                               uint64_t model)
{
    forget_idle_flows(fair_queue, user, false);
    if (fair_queue->free_flows == NULL && fair_queue->flows_used == fair_queue->capacity)
        for (struct user *other = fair_queue->users; other != NULL; other = other->next)
            forget_idle_flows(fair_queue, other, true);
    struct inf_fair_queue_flow *flow = fair_queue->free_flows;
    if (flow != NULL)
        fair_queue->free_flows = flow->next;
    else
        flow = &fair_queue->flow_pool[fair_queue->flows_used++];
    *flow = (struct inf_fair_queue_flow){.model = model, .user = user, .next = user->flows};
    user->flows = flow;
    return flow;
}

// Returns the flow of a user and a model, and creates the flow if there is none.
static struct inf_fair_queue_flow *obtain_flow(struct inf_fair_queue *fair_queue, uint64_t id,
                                               uint64_t model)
{
    struct user *user = find_user(fair_queue, id);
    if (user == NULL)
        user = create_user(fair_queue, id);
    struct inf_fair_queue_flow *flow = user->flows;
    while (flow != NULL && flow->model != model)
        flow = flow->next;
    return flow != NULL ? flow : create_flow(fair_queue, user, model);
}

// --- adding, choosing and removing queued requests ---

// Moves the counters of a user or flow that starts to wait forward to the clock. As a result the
// idle time is neither saved nor counted against the user.
static void move_to_clock(struct inf_fair_queue *fair_queue, struct inf_fair_queue_flow *flow)
{
    struct user *user = flow->user;
    if (user->waiting == 0) {
        user->served_ns = INF_MAX(user->served_ns, fair_queue->clock_ns);
        fair_queue->active_users++;
    }
    if (flow->waiting == 0)
        flow->served_ns = INF_MAX(flow->served_ns, user->clock_ns);
}

void inf_fair_queue_add(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry)
{
    struct inf_fair_queue_flow *flow = obtain_flow(fair_queue, entry->user, entry->model);
    struct list *list = &flow->lists[entry->priority];
    move_to_clock(fair_queue, flow);
    entry->flow = flow;
    entry->next = NULL;
    entry->previous = list->last;
    if (list->last != NULL)
        list->last->next = entry;
    else
        list->first = entry;
    list->last = entry;
    flow->waiting++;
    flow->user->waiting++;
    flow->waiting_ns[entry->priority] += entry->cost_ns;
    fair_queue->waiting_ns += entry->cost_ns;
}

void inf_fair_queue_remove(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry)
{
    struct inf_fair_queue_flow *flow = entry->flow;
    struct list *list = &flow->lists[entry->priority];
    assert(flow->waiting > 0);
    if (entry->previous != NULL)
        entry->previous->next = entry->next;
    else
        list->first = entry->next;
    if (entry->next != NULL)
        entry->next->previous = entry->previous;
    else
        list->last = entry->previous;
    entry->previous = entry->next = NULL;
    flow->waiting--;
    if (--flow->user->waiting == 0)
        fair_queue->active_users--;
    flow->waiting_ns[entry->priority] -= entry->cost_ns;
    fair_queue->waiting_ns -= entry->cost_ns;
}

// Returns the priority class of an entry, raised by the time that it has waited; 0 is the most
// urgent.
static uint32_t find_urgency(const struct inf_fair_queue_entry *entry, uint64_t now_ns)
{
    uint64_t waited_ns = now_ns > entry->since_ns ? now_ns - entry->since_ns : 0;
    uint64_t older = waited_ns / (INF_FAIR_QUEUE_AGING_MS * INF_NS_PER_MS);
    return older >= (uint64_t)entry->priority ? 0 : (uint32_t)(entry->priority - older);
}

bool inf_fair_queue_is_low(const struct inf_fair_queue_entry *entry, uint64_t now_ns)
{
    return find_urgency(entry, now_ns) == INF_PRIORITY_LOW;
}

// Returns the most urgent entry of a flow; the oldest if there are several.
static struct inf_fair_queue_entry *find_flow_head(const struct inf_fair_queue_flow *flow,
                                                   uint64_t now_ns)
{
    struct inf_fair_queue_entry *head = NULL;
    for (int i = 0; i < INF_PRIORITY_COUNT; i++) {
        struct inf_fair_queue_entry *entry = flow->lists[i].first;
        if (entry == NULL)
            continue;
        if (head == NULL || find_urgency(entry, now_ns) < find_urgency(head, now_ns) ||
            (find_urgency(entry, now_ns) == find_urgency(head, now_ns) &&
             entry->since_ns < head->since_ns))
            head = entry;
    }
    return head;
}

// Returns true if entry `a` runs before `b`. Each is the first entry of a flow of the same user.
static bool goes_before(const struct inf_fair_queue_entry *a, const struct inf_fair_queue_entry *b,
                        uint64_t now_ns)
{
    uint32_t urgency_a = find_urgency(a, now_ns);
    uint32_t urgency_b = find_urgency(b, now_ns);
    if (urgency_a != urgency_b)
        return urgency_a < urgency_b;
    if (a->flow->served_ns != b->flow->served_ns)
        return a->flow->served_ns < b->flow->served_ns;
    return a->since_ns < b->since_ns;
}

// Returns the entry of this user that should run next; NULL if there is none that may run.
static struct inf_fair_queue_entry *
find_user_head(const struct user *user, const struct inf_fair_queue_filter *filter, uint64_t now_ns)
{
    struct inf_fair_queue_entry *head = NULL;
    for (const struct inf_fair_queue_flow *flow = user->flows; flow != NULL; flow = flow->next) {
        bool may_run = flow->waiting > 0 &&
                       (filter == NULL || filter->allows(filter->context, flow->model, now_ns));
        struct inf_fair_queue_entry *entry = may_run ? find_flow_head(flow, now_ns) : NULL;
        if (entry != NULL && filter != NULL && filter->skips_low &&
            inf_fair_queue_is_low(entry, now_ns))
            continue;
        if (entry != NULL && (head == NULL || goes_before(entry, head, now_ns)))
            head = entry;
    }
    return head;
}

struct inf_fair_queue_entry *inf_fair_queue_next(struct inf_fair_queue *fair_queue,
                                                 const struct inf_fair_queue_filter *filter,
                                                 uint64_t now_ns)
{
    const struct user *least = NULL;
    struct inf_fair_queue_entry *head = NULL;
    for (const struct user *user = fair_queue->users; user != NULL; user = user->next) {
        if (user->waiting == 0 || (least != NULL && user->served_ns > least->served_ns))
            continue;
        struct inf_fair_queue_entry *entry = find_user_head(user, filter, now_ns);
        if (entry == NULL || (least != NULL && user->served_ns == least->served_ns &&
                              entry->since_ns >= head->since_ns))
            continue;
        least = user;
        head = entry;
    }
    return head;
}

void inf_fair_queue_begin(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry)
{
    struct inf_fair_queue_flow *flow = entry->flow;
    struct user *user = flow->user;
    inf_fair_queue_remove(fair_queue, entry);
    fair_queue->clock_ns = INF_MAX(fair_queue->clock_ns, user->served_ns);
    user->clock_ns = INF_MAX(user->clock_ns, flow->served_ns);
    user->served_ns += entry->cost_ns;
    flow->served_ns += entry->cost_ns;
    user->running++;
    flow->running++;
}

void inf_fair_queue_end(struct inf_fair_queue *fair_queue, struct inf_fair_queue_entry *entry,
                        uint64_t took_ns)
{
    (void)fair_queue;
    struct inf_fair_queue_flow *flow = entry->flow;
    assert(flow->running > 0);
    flow->running--;
    flow->user->running--;
    // This cannot underflow, because both counters were raised by cost_ns when the job started.
    flow->served_ns += took_ns - entry->cost_ns;
    flow->user->served_ns += took_ns - entry->cost_ns;
    entry->flow = NULL;
}

// Appends the waiting entries of a flow except `first` to `entries`, and returns the new number of
// elements.
static uint32_t gather_flow(const struct inf_fair_queue_flow *flow,
                            const struct inf_fair_queue_entry *first,
                            struct inf_fair_queue_entry **entries, uint32_t count,
                            uint32_t capacity)
{
    for (int i = 0; i < INF_PRIORITY_COUNT; i++)
        for (struct inf_fair_queue_entry *entry = flow->lists[i].first;
             entry != NULL && count < capacity; entry = entry->next)
            if (entry != first)
                entries[count++] = entry;
    return count;
}

uint32_t inf_fair_queue_gather(const struct inf_fair_queue *fair_queue,
                               struct inf_fair_queue_entry *first,
                               struct inf_fair_queue_entry **entries, uint32_t capacity)
{
    assert(capacity > 0);
    entries[0] = first;
    uint32_t count = gather_flow(first->flow, first, entries, 1, capacity);
    for (const struct user *user = fair_queue->users; user != NULL; user = user->next)
        for (const struct inf_fair_queue_flow *flow = user->flows; flow != NULL; flow = flow->next)
            if (flow != first->flow && flow->model == first->flow->model)
                count = gather_flow(flow, first, entries, count, capacity);
    return count;
}

// --- estimates of the device time of waiting entries ---

uint64_t inf_fair_queue_waiting_ns(const struct inf_fair_queue *fair_queue)
{
    return fair_queue->waiting_ns;
}

uint64_t inf_fair_queue_ahead_ns(const struct inf_fair_queue *fair_queue, uint64_t id,
                                 enum inf_priority priority)
{
    const struct user *user = find_user(fair_queue, id);
    if (user == NULL || user->waiting == 0)
        return 0;
    uint64_t own_ns = 0;
    for (const struct inf_fair_queue_flow *flow = user->flows; flow != NULL; flow = flow->next)
        for (int i = 0; i <= (int)priority; i++)
            own_ns += flow->waiting_ns[i];
    uint64_t shared_ns;
    if (__builtin_mul_overflow(own_ns, (uint64_t)fair_queue->active_users, &shared_ns))
        return fair_queue->waiting_ns;
    return INF_MIN(shared_ns, fair_queue->waiting_ns);
}
