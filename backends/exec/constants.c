// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/constants.h"

#include <stdlib.h>

#include "proto/core/span.h"

static enum inf_code append(struct inf_constants *constants, const struct inf_constant_use *use,
                            struct inf_error *err)
{
    if (constants->count == constants->capacity) {
        size_t wanted = constants->capacity * 2 + 64;
        size_t size;
        struct inf_constant_use *grown = NULL;
        if (inf_size_mul(wanted, sizeof *grown, &size))
            grown = realloc(constants->uses, size);
        if (grown == NULL)
            return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory to list %zu constants", wanted);
        constants->uses = grown;
        constants->capacity = wanted;
    }
    constants->uses[constants->count++] = *use;
    return INF_OK;
}

// Recurses as deep as subgraphs nest: at most INF_LIMIT_GRAPH_DEPTH, by the verifier.
enum inf_code inf_constants_add_graph(struct inf_constants *constants,
                                      const struct inf_graph *graph, bool read,
                                      struct inf_error *err)
{
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct inf_constant_use use = {.blob = graph->values[v].data, .read = read};
        if (use.blob != NULL)
            INF_TRY(append(constants, &use, err));
    }
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        if (graph->subgraphs[i] != NULL)
            INF_TRY(inf_constants_add_graph(constants, graph->subgraphs[i], read, err));
    return INF_OK;
}

enum inf_code inf_constants_add(struct inf_constants *constants, struct inf_blob *blob,
                                struct inf_blob_form *form, struct inf_error *err)
{
    const struct inf_constant_use use = {.blob = blob, .form = form, .read = form == NULL};
    return append(constants, &use, err);
}

static int compare_pointers(const void *a, const void *b)
{
    return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static int compare_uses(const void *a, const void *b)
{
    const struct inf_constant_use *left = a;
    const struct inf_constant_use *right = b;
    int by_blob = compare_pointers(left->blob, right->blob);
    return by_blob != 0 ? by_blob : compare_pointers(left->form, right->form);
}

static void sort(struct inf_constants *constants)
{
    if (constants->count > 0)
        qsort(constants->uses, constants->count, sizeof *constants->uses, compare_uses);
}

uint64_t inf_constants_form_bytes(struct inf_constants *constants)
{
    uint64_t bytes = 0;
    sort(constants);
    for (size_t i = 0; i < constants->count; i++) {
        const struct inf_constant_use *use = &constants->uses[i];
        bool repeated = i > 0 && compare_uses(use, use - 1) == 0;
        bool first = i == 0 || use->blob != (use - 1)->blob;
        if (use->form != NULL && !repeated && use->form != use->blob->form)
            bytes += use->form->size_bytes;
        if (first && use->blob->form != NULL)
            bytes += use->blob->form->size_bytes;
    }
    return bytes;
}

void inf_constants_merge(struct inf_constants *constants)
{
    size_t kept = 0;
    sort(constants);
    for (size_t i = 0; i < constants->count; i++) {
        const struct inf_constant_use use = constants->uses[i];
        struct inf_constant_use *last = &constants->uses[kept - (kept > 0)];
        if (kept == 0 || last->blob != use.blob) {
            constants->uses[kept++] = use;
            continue;
        }
        last->read |= use.read;
        if (use.form != NULL)
            last->form = use.form;
    }
    constants->count = kept;
}

bool inf_constant_may_go(const struct inf_constant_use *use)
{
    return !use->read && use->form != NULL && use->blob->size_bytes >= INF_CONSTANT_SMALL_BYTES;
}

void inf_constants_fini(struct inf_constants *constants)
{
    free(constants->uses);
    *constants = (struct inf_constants){0};
}
