// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/weight_residency.h"

#include <malloc.h>
#include <stdlib.h>

void inf_residence_init(struct inf_residence *residence)
{
    *residence = (struct inf_residence){0};
    inf_mutex_init(&residence->mutex);
    inf_cond_init(&residence->changed);
}

static void forget_gone(struct inf_residence *residence)
{
    for (size_t i = 0; i < residence->gone_count; i++)
        inf_blob_unref(&residence->gone[i]);
    free(residence->gone);
    residence->gone = NULL;
    residence->gone_count = 0;
}

void inf_residence_fini(struct inf_residence *residence)
{
    inf_residence_charge(residence, NULL);
    forget_gone(residence);
    inf_cond_fini(&residence->changed);
    inf_mutex_fini(&residence->mutex);
}

// --- whole constants ---

static void wait_until_idle(struct inf_residence *residence)
    INF_ATTR(requires_capability(residence->mutex))
{
    while (residence->busy)
        inf_cond_wait(&residence->changed, &residence->mutex);
}

// Called while `busy` keeps others away. Half of them restored is no harm.
static enum inf_code restore(struct inf_residence *residence, struct inf_error *err)
{
    for (size_t i = 0; i < residence->gone_count; i++)
        if (!inf_blob_restore(residence->gone[i]))
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory for %zu bytes of weights while shapes are compiled",
                                   residence->gone[i]->size_bytes);
    forget_gone(residence);
    return INF_OK;
}

enum inf_code inf_residence_acquire(struct inf_residence *residence, struct inf_error *err)
{
    enum inf_code code = INF_OK;
    inf_mutex_lock(&residence->mutex);
    wait_until_idle(residence);
    if (residence->gone_count > 0) {
        residence->busy = true;
        inf_mutex_unlock(&residence->mutex);
        code = restore(residence, err);
        inf_mutex_lock(&residence->mutex);
        residence->busy = false;
    }
    residence->users += code == INF_OK;
    inf_mutex_unlock(&residence->mutex);
    inf_cond_broadcast(&residence->changed);
    return code;
}

void inf_residence_release(struct inf_residence *residence)
{
    inf_mutex_lock(&residence->mutex);
    residence->users--;
    inf_mutex_unlock(&residence->mutex);
}

// --- reviews ---

void inf_residence_allow(struct inf_residence *residence)
{
    inf_mutex_lock(&residence->mutex);
    residence->gives_up = true;
    inf_mutex_unlock(&residence->mutex);
}

bool inf_residence_begin_review(struct inf_residence *residence)
{
    inf_mutex_lock(&residence->mutex);
    wait_until_idle(residence);
    bool begun = residence->users == 0;
    residence->busy = begun;
    inf_mutex_unlock(&residence->mutex);
    return begun;
}

static bool may_go(const struct inf_constant_use *use)
{
    return inf_constant_may_go(use) && use->blob->data != NULL;
}

// Called while `busy` keeps others away.
static void give_up(struct inf_residence *residence, const struct inf_constants *constants)
{
    size_t count = 0;
    for (size_t i = 0; i < constants->count; i++)
        count += may_go(&constants->uses[i]);
    struct inf_blob **gone = NULL;
    if (count > 0)
        gone = realloc(residence->gone, (residence->gone_count + count) * sizeof *gone);
    if (gone == NULL)
        return; // nothing may go, or all stays a little longer
    residence->gone = gone;
    for (size_t i = 0; i < constants->count; i++) {
        const struct inf_constant_use *use = &constants->uses[i];
        if (!may_go(use))
            continue;
        inf_blob_give_up(use->blob, use->form);
        gone[residence->gone_count++] = inf_blob_ref(use->blob);
    }
    // What lies between other allocations goes back to the system only when it is asked for.
    malloc_trim(0);
}

static void count(const struct inf_constants *constants, struct inf_device_held *held)
{
    for (size_t i = 0; i < constants->count; i++) {
        const struct inf_blob *blob = constants->uses[i].blob;
        held->buffers += blob->data != NULL;
        held->bytes += blob->data != NULL ? blob->size_bytes : 0;
    }
}

// Changes what is counted at the device from one to the other. What becomes less is taken back first,
// so that a peak is one.
static void recount(struct inf_device *device, const struct inf_device_held *from,
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
    inf_device_let_go(device, &less);
    inf_device_hold(device, &more);
}

static bool gives_up(struct inf_residence *residence)
{
    inf_mutex_lock(&residence->mutex);
    bool allowed = residence->gives_up;
    inf_mutex_unlock(&residence->mutex);
    return allowed;
}

void inf_residence_review(struct inf_residence *residence, struct inf_constants *constants,
                          uint32_t tensors)
{
    struct inf_device_held held = {.tensors = tensors};
    struct inf_form_cost forms = inf_constants_form_cost(constants);
    inf_constants_merge(constants);
    if (gives_up(residence))
        give_up(residence, constants);
    count(constants, &held);
    inf_mutex_lock(&residence->mutex);
    recount(residence->device, &residence->held, &held);
    residence->held = held;
    residence->forms = forms;
    inf_mutex_unlock(&residence->mutex);
}

void inf_residence_end_review(struct inf_residence *residence)
{
    inf_mutex_lock(&residence->mutex);
    residence->busy = false;
    inf_mutex_unlock(&residence->mutex);
    inf_cond_broadcast(&residence->changed);
}

// --- counting ---

void inf_residence_charge(struct inf_residence *residence, struct inf_device *device)
{
    const struct inf_device_held nothing = {0};
    inf_mutex_lock(&residence->mutex);
    struct inf_device *old = residence->device;
    recount(old, &residence->held, &nothing);
    residence->device = device != NULL ? inf_device_ref(device) : NULL;
    recount(device, &nothing, &residence->held);
    inf_mutex_unlock(&residence->mutex);
    inf_device_unref(&old);
}

struct inf_device_held inf_residence_held(struct inf_residence *residence,
                                          struct inf_form_cost *forms)
{
    inf_mutex_lock(&residence->mutex);
    struct inf_device_held held = residence->held;
    *forms = residence->forms;
    inf_mutex_unlock(&residence->mutex);
    return held;
}
