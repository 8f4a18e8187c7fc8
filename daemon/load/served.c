// SPDX-License-Identifier: Apache-2.0
// Reference counting of served models. Any thread may drop the last reference, but freeing a model
// blocks. Therefore the model is passed to the loader, which frees it on its own thread. Also finds
// the signatures of a model, and says whether its decoding steps are joined.
#include "daemon/load/served.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/load/source/read_files.h"

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

// Appends to the text in the buffer, as far as there is room.
static void append_text(char text[INF_STEPS_TEXT], const char *format, ...) INF_PRINTF(2, 3);

static void append_text(char text[INF_STEPS_TEXT], const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, INF_STEPS_TEXT - used, format, arguments);
    va_end(arguments);
}

// Appends what a trial has measured, and why the last compilation for joined steps failed.
static void explain_findings(const struct inf_served *served, char text[INF_STEPS_TEXT])
{
    const struct inf_batch_ladder *ladder = &served->ladder;
    const struct inf_step_findings *findings = &served->step_findings;
    if (ladder->count > 0) {
        const struct inf_batch_rung *top = &ladder->rungs[ladder->count - 1];
        append_text(text, "up to %u steps in a run: a step takes %.2f of its time alone", top->rows,
                    (double)top->run_ns / top->rows / (double)ladder->rungs[0].run_ns);
    } else {
        append_text(text, "no");
    }
    if (findings->refused > 0)
        append_text(text,
                    "; in a run of %u, a step takes %.2f of its time in one of %u, wanted %.2f",
                    findings->refused, findings->refused_permille / 1000.0, findings->refused / 2,
                    INF_STEP_LIMIT);
    if (findings->why[0] != '\0')
        append_text(text, "; %s", findings->why);
    if (served->join_failure[0] != '\0')
        append_text(text, "; not made: %s", served->join_failure);
}

const char *inf_served_explain_steps(const struct inf_served *served, char text[INF_STEPS_TEXT])
{
    const struct inf_history *history = inf_model_history(served->model);
    text[0] = '\0';
    if (history == NULL)
        return text;
    if (!inf_served_joins_steps(served))
        append_text(text, "no: the model writes rows over caches of a fixed size");
    else if (served->steps_due)
        append_text(text, "not yet: this is measured while no request is served");
    else if (served->rows_max == 0)
        append_text(text, "no: nothing was measured, because the model was not warmed up");
    else if (served->rows_max == 1)
        append_text(text, "no: batch_rows_max allows one step in a run");
    else
        explain_findings(served, text);
    return text;
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
    inf_read_files_unref(&self->files);
    free(self->first_shapes);
    inf_compilations_destroy(&self->compilations);
    for (uint32_t i = 0; i < self->signature_count; i++)
        drop_signature(&self->signatures[i].served);
    free(self->signatures);
    free(self);
    *served = NULL;
}
