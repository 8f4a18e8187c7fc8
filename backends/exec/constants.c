// SPDX-License-Identifier: Apache-2.0
// Collects the uses of constants by several executables. With the list, a constant can be evicted
// if every use has a packed form, and shared memory is counted once.
#include "backends/exec/constants.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

static enum inf_code append_use(struct inf_constants *constants, const struct inf_constant_use *use,
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

enum inf_code inf_constants_add_values(struct inf_constants *constants,
                                       const struct inf_graph *graph, bool read,
                                       struct inf_error *err)
{
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const struct inf_constant_use use = {.blob = graph->values[v].data, .read = read};
        if (use.blob != NULL)
            INF_TRY(append_use(constants, &use, err));
    }
    return INF_OK;
}

// Recurses into subgraphs. The verifier has limited their nesting to INF_LIMIT_GRAPH_DEPTH.
enum inf_code inf_constants_add_graph(struct inf_constants *constants,
                                      const struct inf_graph *graph, struct inf_error *err)
{
    INF_TRY(inf_constants_add_values(constants, graph, false, err));
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        if (graph->subgraphs[i] != NULL)
            INF_TRY(inf_constants_add_graph(constants, graph->subgraphs[i], err));
    return INF_OK;
}

enum inf_code inf_constants_add(struct inf_constants *constants, struct inf_blob *blob,
                                struct inf_blob_form *form, struct inf_error *err)
{
    bool keeps = form != NULL && form->restore != NULL;
    const struct inf_constant_use use = {.blob = blob, .form = form, .read = !keeps};
    return append_use(constants, &use, err);
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

static void sort_uses(struct inf_constants *constants)
{
    if (constants->count > 0)
        qsort(constants->uses, constants->count, sizeof *constants->uses, compare_uses);
}

// The forms of constants, each once.
struct form_list {
    struct inf_form_cost cost;
    size_t count;
    const struct inf_blob_form **forms; // NULL: there was no memory for the list
};

static void add_form(struct form_list *list, const struct inf_blob_form *form)
{
    list->cost.bytes += form->size_bytes;
    list->cost.made_ns += form->made_ns;
    if (list->forms != NULL && form->memory != NULL)
        list->forms[list->count++] = form;
}

static int compare_memory(const void *a, const void *b)
{
    const struct inf_blob_form *const *left = a, *const *right = b;
    return compare_pointers((*left)->memory, (*right)->memory);
}

struct inf_form_cost inf_constants_form_cost(struct inf_constants *constants)
{
    // A constant whose bytes are evicted may have another form than the one of its use.
    struct form_list list = {.forms = malloc((2 * constants->count + 1) * sizeof *list.forms)};
    sort_uses(constants);
    for (size_t i = 0; i < constants->count; i++) {
        const struct inf_constant_use *use = &constants->uses[i];
        bool repeated = i > 0 && compare_uses(use, use - 1) == 0;
        bool first = i == 0 || use->blob != (use - 1)->blob;
        if (use->form != NULL && !repeated && use->form != use->blob->form)
            add_form(&list, use->form);
        if (first && use->blob->form != NULL)
            add_form(&list, use->blob->form);
    }
    if (list.count > 1)
        qsort(list.forms, list.count, sizeof *list.forms, compare_memory);
    for (size_t i = 1; i < list.count; i++)
        if (list.forms[i]->memory == list.forms[i - 1]->memory)
            list.cost.bytes -= list.forms[i]->size_bytes;
    free(list.forms);
    return list.cost;
}

void inf_constants_merge(struct inf_constants *constants)
{
    size_t kept = 0;
    sort_uses(constants);
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

// The constants of a graph and a copy of each: copies[i] is the copy of entry i of `originals`.
struct copies {
    // sorted; one entry for each constant; holds no references
    const struct inf_constants *originals;
    struct inf_blob **copies;
};

static enum inf_code copy_blob(struct inf_blob **out_copy, const struct inf_blob *blob,
                               struct inf_error *err)
{
    *out_copy = inf_blob_create_unset(blob->size_bytes);
    if (*out_copy == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to copy a constant of %zu bytes", blob->size_bytes);
    memcpy((*out_copy)->data, blob->data, blob->size_bytes);
    return INF_OK;
}

// Replaces the constants of the graph by their copies, and takes a reference to each copy. Recurses
// into subgraphs.
static void replace_blobs(struct inf_graph *graph, const struct copies *copies)
{
    const struct inf_constants *originals = copies->originals;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        struct inf_blob **data = &graph->values[v].data;
        const struct inf_constant_use key = {.blob = *data};
        if (*data == NULL)
            continue;
        const struct inf_constant_use *found =
            bsearch(&key, originals->uses, originals->count, sizeof *originals->uses, compare_uses);
        inf_blob_unref(data);
        *data = inf_blob_ref(copies->copies[found - originals->uses]);
    }
    for (uint32_t i = 0; i < graph->subgraph_count; i++)
        if (graph->subgraphs[i] != NULL)
            replace_blobs(graph->subgraphs[i], copies);
}

enum inf_code inf_constants_copy(struct inf_graph *graph, struct inf_error *err)
{
    struct inf_constants originals = {0};
    struct copies copies = {.originals = &originals};
    enum inf_code code = inf_constants_add_graph(&originals, graph, err);
    inf_constants_merge(&originals);
    if (code == INF_OK && originals.count > 0) {
        copies.copies = calloc(originals.count, sizeof(struct inf_blob *));
        if (copies.copies == NULL)
            code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "no memory to copy %zu constants", originals.count);
    }
    for (size_t i = 0; code == INF_OK && i < originals.count; i++)
        code = copy_blob(&copies.copies[i], originals.uses[i].blob, err);
    if (code == INF_OK)
        replace_blobs(graph, &copies);
    for (size_t i = 0; copies.copies != NULL && i < originals.count; i++)
        inf_blob_unref(&copies.copies[i]);
    free(copies.copies);
    inf_constants_fini(&originals);
    return code;
}

bool inf_constant_is_evictable(const struct inf_constant_use *use)
{
    return !use->read && use->form != NULL && use->blob->size_bytes >= INF_BLOB_EVICTED_BYTES_MIN;
}

void inf_constants_fini(struct inf_constants *constants)
{
    free(constants->uses);
    *constants = (struct inf_constants){0};
}
