// SPDX-License-Identifier: Apache-2.0
// Evicts constants that no run reads, and restores them before the next compilation.
//
// A weight exists in two forms: the bytes of the model file, and the packed form that kernels read.
// Compiling needs the bytes of all constants; runs need only the packed form. After compilation,
// the bytes of every constant whose uses are all packed are freed. They are recomputed from the
// packed form (bit for bit) when the next shape class is compiled:
//
//     acquire()                         release(), review
//     ───────────────> all bytes present ───────────────────> only bytes that some run reads
//                      users > 0                               users == 0
//
// Three operations exclude each other: a compilation reads bytes, a review frees bytes, and a
// restore writes bytes. `users` counts compilations; `busy` marks a review or a restore in
// progress. A review starts only if users == 0, and waits while busy. acquire() waits while busy,
// then restores the evicted bytes, and increments `users`. Therefore no bytes are freed while a
// compilation uses them. A review that finds a compilation in progress does nothing, because that
// compilation requests a review when it is done.
//
// Eviction is best effort: if there is no memory for the list, all constants stay. If a restore
// finds no memory, the compilation fails with INF_EXHAUSTED, and no constant is lost.
#include "backends/exec/model/weight_residency.h"

#include <malloc.h>
#include <stdlib.h>

void inf_weight_residency_init(struct inf_weight_residency *residency)
{
    *residency = (struct inf_weight_residency){0};
    inf_mutex_init(&residency->mutex);
    inf_cond_init(&residency->changed);
}

static void forget_gone(struct inf_weight_residency *residency)
{
    for (size_t i = 0; i < residency->gone_count; i++)
        inf_blob_unref(&residency->gone[i]);
    free(residency->gone);
    residency->gone = NULL;
    residency->gone_count = 0;
}

void inf_weight_residency_fini(struct inf_weight_residency *residency)
{
    inf_weight_residency_charge(residency, NULL);
    forget_gone(residency);
    inf_cond_fini(&residency->changed);
    inf_mutex_fini(&residency->mutex);
}

// --- restoring evicted constants before a compilation ---

static void wait_until_idle(struct inf_weight_residency *residency)
    INF_ATTR(requires_capability(residency->mutex))
{
    while (residency->busy)
        inf_cond_wait(&residency->changed, &residency->mutex);
}

// Restores the bytes of all evicted blobs. The caller has set `busy`, which excludes other threads.
// After a failure some blobs stay restored, which does no harm.
static enum inf_code restore_blobs(struct inf_weight_residency *residency, struct inf_error *err)
{
    for (size_t i = 0; i < residency->gone_count; i++)
        if (!inf_blob_restore(residency->gone[i]))
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for %zu bytes of weights while shapes are compiled",
                                   residency->gone[i]->size_bytes);
    forget_gone(residency);
    return INF_OK;
}

enum inf_code inf_weight_residency_acquire(struct inf_weight_residency *residency,
                                           struct inf_error *err)
{
    enum inf_code code = INF_OK;
    inf_mutex_lock(&residency->mutex);
    wait_until_idle(residency);
    if (residency->gone_count > 0) {
        residency->busy = true;
        inf_mutex_unlock(&residency->mutex);
        code = restore_blobs(residency, err);
        inf_mutex_lock(&residency->mutex);
        residency->busy = false;
    }
    residency->users += code == INF_OK;
    inf_mutex_unlock(&residency->mutex);
    inf_cond_broadcast(&residency->changed);
    return code;
}

void inf_weight_residency_hold(struct inf_weight_residency *residency)
{
    inf_mutex_lock(&residency->mutex);
    wait_until_idle(residency);
    residency->users++;
    inf_mutex_unlock(&residency->mutex);
}

void inf_weight_residency_release(struct inf_weight_residency *residency)
{
    inf_mutex_lock(&residency->mutex);
    residency->users--;
    inf_mutex_unlock(&residency->mutex);
}

// --- reviews: evicting constants that no run reads ---

void inf_weight_residency_allow_eviction(struct inf_weight_residency *residency)
{
    inf_mutex_lock(&residency->mutex);
    residency->gives_up = true;
    inf_mutex_unlock(&residency->mutex);
}

bool inf_weight_residency_begin_review(struct inf_weight_residency *residency)
{
    inf_mutex_lock(&residency->mutex);
    wait_until_idle(residency);
    bool begun = residency->users == 0;
    residency->busy = begun;
    inf_mutex_unlock(&residency->mutex);
    return begun;
}

static bool may_go(const struct inf_constant_use *use)
{
    return inf_constant_is_evictable(use) && use->blob->data != NULL;
}

// Makes room for `count` more evicted blobs. Returns false if there is no memory.
static bool grow_gone(struct inf_weight_residency *residency, size_t count)
{
    struct inf_blob **gone =
        realloc(residency->gone, (residency->gone_count + count + 1) * sizeof *gone);
    if (gone != NULL)
        residency->gone = gone;
    return gone != NULL;
}

enum inf_code inf_weight_residency_add_evicted(struct inf_weight_residency *residency,
                                               const struct inf_graph *graph, struct inf_error *err)
{
    struct inf_constants constants = {0};
    enum inf_code code = inf_constants_add_graph(&constants, graph, err);
    inf_constants_merge(&constants);
    inf_mutex_lock(&residency->mutex);
    if (code == INF_OK && !grow_gone(residency, constants.count))
        code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to list %zu constants", constants.count);
    for (size_t i = 0; code == INF_OK && i < constants.count; i++)
        if (constants.uses[i].blob->data == NULL)
            residency->gone[residency->gone_count++] = inf_blob_ref(constants.uses[i].blob);
    inf_mutex_unlock(&residency->mutex);
    inf_constants_fini(&constants);
    return code;
}

// Evicts all constants that may be evicted. The caller has set `busy`, which excludes other
// threads.
static void give_up(struct inf_weight_residency *residency, const struct inf_constants *constants)
{
    size_t count = 0;
    for (size_t i = 0; i < constants->count; i++)
        count += may_go(&constants->uses[i]);
    // Without memory for the list of evicted blobs, no constant is evicted.
    if (count == 0 || !grow_gone(residency, count))
        return;
    for (size_t i = 0; i < constants->count; i++) {
        const struct inf_constant_use *use = &constants->uses[i];
        if (!may_go(use))
            continue;
        inf_blob_evict(use->blob, use->form);
        residency->gone[residency->gone_count++] = inf_blob_ref(use->blob);
    }
    // Tell the allocator to return freed memory to the operating system. Otherwise it keeps freed
    // blocks that lie between other allocations.
    malloc_trim(0);
}

static void count_constants(const struct inf_constants *constants, struct inf_device_held *held)
{
    for (size_t i = 0; i < constants->count; i++) {
        const struct inf_blob *blob = constants->uses[i].blob;
        held->buffers += blob->data != NULL;
        held->bytes += blob->data != NULL ? blob->size_bytes : 0;
    }
}

// Changes the memory that is counted for `device` from the amount `from` to the amount `to`. What
// decreased is subtracted first, so that the recorded peak is not overstated.
static void move_charge(struct inf_device *device, const struct inf_device_held *from,
                        const struct inf_device_held *to)
{
    const struct inf_device_held less = {
        .bytes = from->bytes - INF_MIN(from->bytes, to->bytes),
        .tensors = from->tensors - INF_MIN(from->tensors, to->tensors),
        .buffers = from->buffers - INF_MIN(from->buffers, to->buffers),
    };
    const struct inf_device_held more = {
        .bytes = to->bytes - INF_MIN(from->bytes, to->bytes),
        .tensors = to->tensors - INF_MIN(from->tensors, to->tensors),
        .buffers = to->buffers - INF_MIN(from->buffers, to->buffers),
    };
    if (device == NULL)
        return;
    inf_device_remove_held(device, &less);
    inf_device_add_held(device, &more);
}

bool inf_weight_residency_evicts(struct inf_weight_residency *residency)
{
    inf_mutex_lock(&residency->mutex);
    bool allowed = residency->gives_up;
    inf_mutex_unlock(&residency->mutex);
    return allowed;
}

void inf_weight_residency_review(struct inf_weight_residency *residency,
                                 struct inf_constants *constants, uint32_t tensors)
{
    struct inf_device_held held = {.tensors = tensors};
    struct inf_form_cost forms = inf_constants_form_cost(constants);
    inf_constants_merge(constants);
    if (inf_weight_residency_evicts(residency))
        give_up(residency, constants);
    count_constants(constants, &held);
    inf_mutex_lock(&residency->mutex);
    move_charge(residency->device, &residency->held, &held);
    residency->held = held;
    residency->forms = forms;
    inf_mutex_unlock(&residency->mutex);
}

void inf_weight_residency_end_review(struct inf_weight_residency *residency)
{
    inf_mutex_lock(&residency->mutex);
    residency->busy = false;
    inf_mutex_unlock(&residency->mutex);
    inf_cond_broadcast(&residency->changed);
}

// --- counting the memory of constants for a device ---

void inf_weight_residency_charge(struct inf_weight_residency *residency, struct inf_device *device)
{
    const struct inf_device_held nothing = {0};
    inf_mutex_lock(&residency->mutex);
    struct inf_device *old = residency->device;
    move_charge(old, &residency->held, &nothing);
    residency->device = device != NULL ? inf_device_ref(device) : NULL;
    move_charge(device, &nothing, &residency->held);
    inf_mutex_unlock(&residency->mutex);
    inf_device_unref(&old);
}

struct inf_device_held inf_weight_residency_memory(struct inf_weight_residency *residency,
                                                   struct inf_form_cost *forms)
{
    inf_mutex_lock(&residency->mutex);
    struct inf_device_held held = residency->held;
    *forms = residency->forms;
    inf_mutex_unlock(&residency->mutex);
    return held;
}
