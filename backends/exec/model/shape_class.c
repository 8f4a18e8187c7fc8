// SPDX-License-Identifier: Apache-2.0
// The executables of a model, by device, run options and input shapes.
//
// Compiling takes long, so it happens outside the lock. The thread that finds no class inserts an
// empty one, the promise, and compiles. Other threads that need the same class wait on a condition
// until the promise is fulfilled or withdrawn. In this way each executable is compiled once,
// regardless of how many threads request it.
//
//     acquire:  class with executable  -> users + 1, return it
//               class without          -> wait, then look again
//               no class               -> insert a promise; the caller compiles
//
// A class is freed only if it has no users. It is freed by the last release() if the device was
// lost, by keep() if the device has more than INF_SHAPE_CLASSES_MAX (the least recently used class
// is freed), by drop(), or by the budget of a user (arena_budget.h).
#include "backends/exec/model/shape_class.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"

void inf_shape_classes_init(struct inf_shape_classes *classes, uint32_t input_count)
{
    *classes = (struct inf_shape_classes){.input_count = input_count};
    inf_mutex_init(&classes->mutex);
    inf_cond_init(&classes->compiled);
}

static void free_class(struct inf_shape_class *class)
{
    if (class->classes->budget != NULL)
        inf_arena_budget_remove(class->classes->budget, &class->budget_entry);
    inf_executable_destroy(&class->executable);
    inf_device_unref(&class->device);
    free(class);
}

static void free_classes(struct inf_shape_class *classes)
{
    while (classes != NULL) {
        struct inf_shape_class *next = classes->next;
        free_class(classes);
        classes = next;
    }
}

void inf_shape_classes_fini(struct inf_shape_classes *classes)
{
    for (const struct inf_shape_class *class = classes->list; class != NULL; class = class->next)
        assert(class->users == 0 && "a model freed while one of its executables is held");
    free_classes(classes->list);
    inf_cond_fini(&classes->compiled);
    inf_mutex_fini(&classes->mutex);
}

static bool same_class(const struct inf_shape_classes *classes, const struct inf_shape_class *class,
                       const struct inf_shape_key *key)
{
    if (class->device != key->device || class->retired ||
        class->buffers.room != key->buffers.room ||
        class->buffers.sessions != key->buffers.sessions ||
        !inf_run_options_equal(&class->options, &key->options))
        return false;
    for (uint32_t i = 0; i < classes->input_count; i++)
        if (!inf_shape_equal(&class->shapes[i], &key->shapes[i]))
            return false;
    return true;
}

static struct inf_shape_class *find_class(struct inf_shape_classes *classes,
                                          const struct inf_shape_key *key)
    INF_ATTR(requires_capability(classes->mutex))
{
    struct inf_shape_class *class = classes->list;
    while (class != NULL && !same_class(classes, class, key))
        class = class->next;
    return class;
}

// If the model has too many classes like `added`, that is, for its device and for one session or
// several, removes from the list the least recently used one that has no users, and returns it; the
// caller frees it. Returns NULL if no class was removed.
static struct inf_shape_class *take_surplus(struct inf_shape_classes *classes,
                                            const struct inf_shape_class *added)
    INF_ATTR(requires_capability(classes->mutex))
{
    bool joined = added->buffers.sessions > 1;
    uint32_t count = 0, most = joined ? INF_JOINED_CLASSES_MAX : INF_SHAPE_CLASSES_MAX;
    struct inf_shape_class **oldest = NULL;
    for (struct inf_shape_class **link = &classes->list; *link != NULL; link = &(*link)->next) {
        if ((*link)->device != added->device || ((*link)->buffers.sessions > 1) != joined)
            continue;
        count++;
        if ((*link)->users == 0 && (oldest == NULL || (*link)->used_at < (*oldest)->used_at))
            oldest = link;
    }
    if (count <= most || oldest == NULL)
        return NULL;
    struct inf_shape_class *surplus = *oldest;
    *oldest = surplus->next;
    return surplus;
}

static void remove_class(struct inf_shape_classes *classes, struct inf_shape_class *class)
    INF_ATTR(requires_capability(classes->mutex))
{
    struct inf_shape_class **link = &classes->list;
    while (*link != class)
        link = &(*link)->next;
    *link = class->next;
}

// --- freeing classes for the budget ---

static struct inf_shape_class *class_of(struct inf_arena_entry *entry)
{
    return (struct inf_shape_class *)((char *)entry -
                                      offsetof(struct inf_shape_class, budget_entry));
}

// Removes the class of `entry` from its set of classes and returns true. Returns false if the class
// has users or was already removed. The set still exists, because the set cannot free a class while
// the budget handles the entry of the class.
static bool detach_class(struct inf_arena_entry *entry)
{
    struct inf_shape_class *class = class_of(entry);
    struct inf_shape_classes *classes = class->classes;
    inf_mutex_lock(&classes->mutex);
    struct inf_shape_class *found = classes->list;
    while (found != NULL && found != class)
        found = found->next;
    bool is_free = found != NULL && class->users == 0;
    if (is_free)
        remove_class(classes, class);
    inf_mutex_unlock(&classes->mutex);
    return is_free;
}

static void destroy_class(struct inf_arena_entry *entry)
{
    free_class(class_of(entry));
}

static const struct inf_arena_entry_ops entry_ops = {.detach = detach_class,
                                                     .destroy = destroy_class};

// Marks as retired the classes of `device` whose executables can never run again. Removes the
// retired classes that have no users, and returns the list of the removed classes, which the caller
// frees. A retired class with users is freed by its last user.
static struct inf_shape_class *retire_lost(struct inf_shape_classes *classes,
                                           const struct inf_device *device)
    INF_ATTR(requires_capability(classes->mutex))
{
    struct inf_shape_class *unused = NULL;
    for (struct inf_shape_class **link = &classes->list; *link != NULL;) {
        struct inf_shape_class *class = *link;
        if (class->device == device && class->executable != NULL && !class->retired)
            class->retired = inf_executable_lost(class->executable);
        if (!class->retired || class->users > 0) {
            link = &class->next;
            continue;
        }
        *link = class->next;
        class->next = unused;
        unused = class;
    }
    return unused;
}

static struct inf_shape_class *create_class(struct inf_shape_classes *classes,
                                            const struct inf_shape_key *key)
{
    size_t shapes_bytes = classes->input_count * sizeof *key->shapes;
    struct inf_shape_class *class = calloc(1, sizeof *class + shapes_bytes);
    if (class == NULL)
        return NULL;
    class->device = inf_device_ref(key->device);
    class->options = key->options;
    class->buffers = key->buffers;
    class->classes = classes;
    class->budget_entry.ops = &entry_ops;
    class->budget_entry.user = key->options.user;
    if (shapes_bytes > 0)
        memcpy(class->shapes, key->shapes, shapes_bytes);
    return class;
}

// Counts one more user of a class.
static void begin_use(struct inf_shape_classes *classes, struct inf_shape_class *class)
    INF_ATTR(requires_capability(classes->mutex))
{
    class->users++;
    class->used_at = ++classes->clock;
    if (class->budget_entry.user != 0)
        atomic_store_explicit(&class->budget_entry.used_ns, inf_clock_ns(), memory_order_relaxed);
}

struct inf_executable *inf_shape_classes_find(struct inf_shape_classes *classes,
                                              const struct inf_shape_key *key)
{
    struct inf_executable *executable = NULL;
    inf_mutex_lock(&classes->mutex);
    struct inf_shape_class *class = find_class(classes, key);
    if (class != NULL && class->executable != NULL) {
        begin_use(classes, class);
        executable = class->executable;
    }
    inf_mutex_unlock(&classes->mutex);
    return executable;
}

struct inf_executable *inf_shape_classes_acquire(struct inf_shape_classes *classes,
                                                 const struct inf_shape_key *key,
                                                 struct inf_shape_class **promise)
{
    struct inf_executable *executable = NULL;
    *promise = NULL;
    inf_mutex_lock(&classes->mutex);
    struct inf_shape_class *lost = retire_lost(classes, key->device);
    struct inf_shape_class *class = find_class(classes, key);
    while (class != NULL && class->executable == NULL) {
        inf_cond_wait(&classes->compiled, &classes->mutex);
        class = find_class(classes, key);
    }
    if (class == NULL) {
        class = create_class(classes, key);
        *promise = class;
        if (class != NULL) {
            class->next = classes->list;
            classes->list = class;
        }
    }
    if (class != NULL) {
        begin_use(classes, class);
        executable = class->executable;
    }
    inf_mutex_unlock(&classes->mutex);
    free_classes(lost);
    return executable;
}

void inf_shape_classes_keep(struct inf_shape_classes *classes, struct inf_shape_class *promise,
                            struct inf_executable *executable)
{
    struct inf_executable_memory memory = {0};
    inf_executable_add_own_memory(executable, &memory);
    inf_mutex_lock(&classes->mutex);
    promise->weight_bytes = memory.weight_bytes;
    promise->arena_bytes = memory.buffer_bytes;
    promise->executable = executable;
    struct inf_shape_class *surplus = take_surplus(classes, promise);
    inf_mutex_unlock(&classes->mutex);
    inf_cond_broadcast(&classes->compiled);
    if (surplus != NULL)
        free_class(surplus);
    if (classes->budget != NULL && promise->budget_entry.user != 0) {
        promise->budget_entry.bytes = memory.weight_bytes + memory.buffer_bytes;
        inf_arena_budget_add(classes->budget, &promise->budget_entry);
    }
}

void inf_shape_classes_withdraw(struct inf_shape_classes *classes, struct inf_shape_class *promise)
{
    inf_mutex_lock(&classes->mutex);
    remove_class(classes, promise);
    inf_mutex_unlock(&classes->mutex);
    inf_cond_broadcast(&classes->compiled);
    free_class(promise);
}

// Ends one use of an executable. Frees its class if it was the last use, and the class is retired
// or `discard` is set and a request made it. Returns true if it was freed.
static bool end_use(struct inf_shape_classes *classes, const struct inf_executable *executable,
                    bool discard)
{
    inf_mutex_lock(&classes->mutex);
    struct inf_shape_class *class = classes->list;
    while (class->executable != executable)
        class = class->next;
    class->users--;
    bool unwanted = class->retired || (discard && class->budget_entry.user != 0);
    bool free_now = unwanted && class->users == 0;
    if (free_now)
        remove_class(classes, class);
    inf_mutex_unlock(&classes->mutex);
    if (free_now)
        free_class(class);
    return free_now;
}

void inf_shape_classes_release(struct inf_shape_classes *classes,
                               const struct inf_executable *executable)
{
    (void)end_use(classes, executable, false);
}

bool inf_shape_classes_discard(struct inf_shape_classes *classes,
                               const struct inf_executable *executable)
{
    return end_use(classes, executable, true);
}

bool inf_shape_classes_drop(struct inf_shape_classes *classes, const struct inf_shape_key *key)
{
    inf_mutex_lock(&classes->mutex);
    struct inf_shape_class *class = find_class(classes, key);
    bool free_now = class != NULL && class->users == 0;
    if (free_now)
        remove_class(classes, class);
    inf_mutex_unlock(&classes->mutex);
    if (free_now)
        free_class(class);
    return free_now;
}

void inf_shape_classes_pin(struct inf_shape_classes *classes, bool more)
{
    inf_mutex_lock(&classes->mutex);
    for (struct inf_shape_class *class = classes->list; class != NULL; class = class->next) {
        if (more && class->executable != NULL) {
            class->pinned = true;
            class->users++;
        } else if (!more && class->pinned) {
            class->pinned = false;
            class->users--;
        }
    }
    inf_mutex_unlock(&classes->mutex);
}

const struct inf_shape_class *inf_shape_classes_next_pinned(struct inf_shape_classes *classes,
                                                            const struct inf_shape_class *class)
{
    inf_mutex_lock(&classes->mutex);
    const struct inf_shape_class *next = class != NULL ? class->next : classes->list;
    while (next != NULL && !next->pinned)
        next = next->next;
    inf_mutex_unlock(&classes->mutex);
    return next;
}

struct inf_shape_memory inf_shape_classes_memory(struct inf_shape_classes *classes,
                                                 const struct inf_device *device)
{
    struct inf_shape_memory memory = {0};
    inf_mutex_lock(&classes->mutex);
    for (const struct inf_shape_class *class = classes->list; class != NULL; class = class->next) {
        if (device != NULL && class->device != device)
            continue;
        memory.weight_bytes += class->weight_bytes;
        memory.arena_bytes += class->arena_bytes;
        memory.executables += class->executable != NULL;
    }
    inf_mutex_unlock(&classes->mutex);
    return memory;
}
