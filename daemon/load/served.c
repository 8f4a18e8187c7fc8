// SPDX-License-Identifier: Apache-2.0
// Reference counting of served models. Any thread may drop the last reference, but freeing a model
// blocks. Therefore the model is passed to the loader, which frees it on its own thread.
#include "daemon/load/served.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct inf_served *inf_served_ref(struct inf_served *served)
{
    // Relaxed memory order is enough, because the caller already holds a reference and so the model
    // cannot be freed meanwhile.
    uint32_t before = atomic_fetch_add_explicit(&served->references, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return served;
}

void inf_served_unref(struct inf_served **served)
{
    struct inf_served *self = *served;
    *served = NULL;
    if (self == NULL)
        return;
    // Acquire-release order makes all writes of the threads that held a reference visible to the
    // thread that frees the model.
    uint32_t before = atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        self->retire(self);
}

void inf_served_take_steps(struct inf_served *served, const struct inf_step_findings *findings)
{
    assert(served->ladder.count == 0);
    served->ladder = findings->ladder;
    served->step_findings = *findings;
    served->step_findings.ladder = (struct inf_batch_ladder){.count = 0};
    served->steps_due = false;
}

bool inf_served_joins_steps(const struct inf_served *served)
{
    const struct inf_history *history = inf_model_history(served->model);
    return history != NULL && history->grows;
}

void inf_served_signature_name(char name[INF_LIMIT_MODEL_NAME + 1], const char *model,
                               const char *key)
{
    size_t length = strlen(model), key_length = strlen(key);
    assert(length + 1 + key_length <= INF_LIMIT_MODEL_NAME);
    memcpy(name, model, length);
    name[length] = ':';
    memcpy(name + length + 1, key, key_length + 1);
}

// Appends the key of a signature to a list for an error text, as far as there is room.
static void append_key(char *list, size_t capacity, const char *key)
{
    size_t used = strlen(list);
    if (key[0] != '\0')
        snprintf(list + used, capacity - used, "%s%s", used > 0 ? ", " : "", key);
}

enum inf_code inf_served_find_signature(struct inf_served *served, const char *key,
                                        struct inf_served **out_served, struct inf_error *err)
{
    char known[160] = "";
    *out_served = served;
    if (served->default_signature[0] != '\0' && strcmp(served->default_signature, key) == 0)
        return INF_OK;
    append_key(known, sizeof known, served->default_signature);
    for (uint32_t i = 0; i < served->signature_count; i++) {
        const struct inf_served_signature *signature = &served->signatures[i];
        append_key(known, sizeof known, signature->key);
        if (strcmp(signature->key, key) != 0)
            continue;
        *out_served = signature->served;
        if (signature->served != NULL)
            return INF_OK;
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_MODEL_FAILED,
                               "model '%s': signature '%s' did not load: %s", served->name, key,
                               signature->reason);
    }
    return inf_fail_reason(err, INF_NOT_FOUND, INF_REASON_MODEL_NOT_FOUND,
                           "model '%s' has no signature '%s'; it has %s", served->name, key,
                           known[0] != '\0' ? known : "none");
}

// Drops the reference that the model of the default signature holds. If the load of the file failed
// later, the model was never served: this is the last reference, and no loader frees the model.
static void drop_signature(struct inf_served **served) INF_MAY_BLOCK
{
    if (*served != NULL && (*served)->retire == NULL)
        inf_served_destroy(served);
    else
        inf_served_unref(served);
}

void inf_served_destroy(struct inf_served **served)
{
    struct inf_served *self = *served;
    if (self == NULL)
        return;
    inf_model_unref(&self->model);
    inf_device_unref(&self->device);
    inf_model_description_unref(&self->description);
    inf_model_description_unref(&self->described);
    inf_model_quota_unref(&self->quota);
    free(self->first_shapes);
    inf_compilations_destroy(&self->compilations);
    for (uint32_t i = 0; i < self->signature_count; i++)
        drop_signature(&self->signatures[i].served);
    free(self->signatures);
    free(self);
    *served = NULL;
}
