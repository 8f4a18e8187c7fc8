// SPDX-License-Identifier: Apache-2.0
// Creates, shares and frees descriptions of models.
#include "backends/import/common/description.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum inf_code inf_model_description_create(struct inf_model_description **out_description,
                                           struct inf_error *err)
{
    struct inf_model_description *description = calloc(1, sizeof *description);
    if (description == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the description of a model");
    atomic_init(&description->references, 1);
    description->title = description->text = description->version = "";
    description->author = description->license = "";
    *out_description = description;
    return INF_OK;
}

struct inf_model_description *inf_model_description_ref(struct inf_model_description *description)
{
    if (description != NULL) {
        uint32_t before =
            atomic_fetch_add_explicit(&description->references, 1, memory_order_relaxed);
        assert(before > 0);
        (void)before;
    }
    return description;
}

void inf_model_description_unref(struct inf_model_description **description)
{
    struct inf_model_description *self = *description;
    *description = NULL;
    if (self == NULL)
        return;
    uint32_t before = atomic_fetch_sub_explicit(&self->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before > 1)
        return;
    inf_arena_fini(&self->arena);
    free(self);
}

void inf_description_note_problem(struct inf_model_description *description,
                                  const struct inf_error *err)
{
    if (description->problem[0] == '\0')
        snprintf(description->problem, sizeof description->problem, "%.255s", err->text);
}

void *inf_description_alloc(struct inf_model_description *description, size_t size_bytes)
{
    void *memory = inf_arena_alloc(&description->arena, size_bytes);
    if (memory == NULL)
        inf_description_note_problem(description,
                                     &(struct inf_error){.text = "no memory for the metadata"});
    return memory;
}

uint32_t inf_description_split_labels(char *text, size_t size)
{
    uint32_t count = 0;
    while (size > 0 && (text[size - 1] == '\n' || text[size - 1] == '\r'))
        size--;
    if (size == 0)
        return 0;
    size_t kept = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\r' && text[i + 1] == '\n')
            continue;
        count += text[i] == '\n';
        text[kept++] = text[i] == '\n' ? '\0' : text[i];
    }
    text[kept] = '\0';
    return count + 1;
}
