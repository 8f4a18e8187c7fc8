// SPDX-License-Identifier: Apache-2.0
// Keeps the packs of a device in a table, so that all steps with the same matrix share one. A
// pack is a matrix in the order in which kernels read it (pack.h). Outside of this file: which
// columns are in a panel (panel.h), and how the elements are written to the panels (pack_fill.h).
#include "backends/cpu/core/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/pages.h"
#include "backends/cpu/core/kernel.h"
#include "backends/cpu/core/pack_fill.h"
#include "backends/cpu/core/pack_narrow.h"
#include "backends/cpu/core/pack_record.h"
#include "proto/core/span.h"

#define ALIGNMENT 64 // bytes; with this alignment no vector of a panel crosses a cache line

void inf_cpu_packs_init(struct inf_cpu_packs *packs, const struct inf_isa *isa)
{
    packs->isa = isa;
    inf_mutex_init(&packs->mutex);
}

void inf_cpu_packs_fini(struct inf_cpu_packs *packs)
{
    inf_mutex_fini(&packs->mutex);
}

// --- finding, creating and freeing the packs of a device ---

static struct inf_cpu_pack **bucket_of(struct inf_cpu_packs *packs, const struct inf_blob *blob)
{
    uint64_t hash = (uint64_t)(uintptr_t)blob * 0x9e3779b97f4a7c15u;
    return &packs->buckets[(hash >> 32) % INF_CPU_PACK_BUCKETS];
}

// Two forms of Winograd's algorithm are the same if they have the same points: a form that was read
// from a file is at another address.
static bool same_winograd(const struct inf_winograd_form *a, const struct inf_winograd_form *b)
{
    if (a == b || a == NULL || b == NULL)
        return a == b;
    return a->pairs == b->pairs && memcmp(a->points, b->points, a->pairs * sizeof *a->points) == 0;
}

static bool same_matrix(const struct inf_cpu_matrix *a, const struct inf_cpu_matrix *b)
{
    return a->blob == b->blob && a->rows == b->rows && a->columns == b->columns &&
           a->transposed == b->transposed && a->paired == b->paired && a->group == b->group &&
           a->bytes == b->bytes && a->zero == b->zero && a->narrow == b->narrow &&
           same_winograd(a->winograd, b->winograd);
}

// Takes a reference and returns true. Returns false if the reference count is already 0, because
// then another thread is about to free the pack.
static bool ref_if_alive(struct inf_cpu_pack *pack)
{
    size_t references = atomic_load_explicit(&pack->form.references, memory_order_relaxed);
    while (references > 0)
        if (atomic_compare_exchange_weak_explicit(&pack->form.references, &references,
                                                  references + 1, memory_order_acquire,
                                                  memory_order_relaxed))
            return true;
    return false;
}

// Returns a new reference to the pack of this matrix; NULL if there is none.
static struct inf_cpu_pack *find_pack(struct inf_cpu_packs *packs,
                                      const struct inf_cpu_matrix *matrix)
    INF_ATTR(requires_capability(packs->mutex))
{
    struct inf_cpu_pack *pack = *bucket_of(packs, matrix->blob);
    while (pack != NULL && !(same_matrix(&pack->matrix, matrix) && ref_if_alive(pack)))
        pack = pack->next;
    return pack;
}

// Frees a pack. Its memory was dropped or is not used by another pack.
static void free_pack(struct inf_cpu_pack *pack)
{
    inf_device_unref(&pack->device);
    free(pack);
}

static void destroy_pack(struct inf_blob_form *form)
{
    struct inf_cpu_pack *pack = (struct inf_cpu_pack *)form;
    inf_mutex_lock(&pack->packs->mutex);
    struct inf_cpu_pack **link = bucket_of(pack->packs, pack->matrix.blob);
    while (*link != pack)
        link = &(*link)->next;
    *link = pack->next;
    bool last = inf_cpu_panels_drop(&pack->packs->panels, pack->memory);
    inf_mutex_unlock(&pack->packs->mutex);
    if (last) {
        inf_device_uncount_weights(pack->device, pack->memory->held_bytes);
        inf_cpu_panels_free(pack->memory);
    }
    free_pack(pack);
}

// Allocates `size` bytes for the panels, and another `size` bytes for the lower halves if they are
// kept. Returns false if memory is exhausted.
static bool alloc_panels(struct inf_cpu_pack *pack, size_t size)
{
    struct inf_cpu_panels *memory = calloc(1, sizeof *memory);
    bool paired = pack->matrix.paired > 0;
    pack->memory = memory;
    if (memory == NULL)
        return false;
    memory->references = 1;
    memory->used_bytes = size;
    size = inf_size_align(size, ALIGNMENT);
    // Packs of all kinds may share the memory, so it has the slack that some kernels need.
    memory->panels = inf_pages_alloc(ALIGNMENT, size + INF_PAGES_SLACK_BYTES);
    if (memory->panels == NULL)
        return false;
    memory->held_bytes = size;
    if (paired) {
        memset((void *)(uintptr_t)memory->panels, 0, size);
        if (inf_cpu_pack_can_restore(&pack->matrix)) {
            memory->lower = malloc(size);
            memory->held_bytes += size;
            if (memory->lower == NULL)
                return false;
        }
    }
    pack->panels = memory->panels;
    pack->lower = memory->lower;
    pack->form.size_bytes = memory->held_bytes;
    return true;
}

// Completes a pack whose matrix and memory are set.
static void init_pack(struct inf_cpu_pack *pack, struct inf_cpu_packs *packs,
                      struct inf_device *device)
{
    bool restores =
        pack->matrix.winograd == NULL && (pack->matrix.paired == 0 || pack->lower != NULL);
    pack->isa = packs->isa;
    pack->form.restore = restores ? inf_cpu_pack_restore : NULL;
    pack->form.describe = inf_cpu_pack_record_write;
    pack->form.destroy = destroy_pack;
    atomic_init(&pack->form.references, 1);
    pack->device = inf_device_ref(device);
    pack->packs = packs;
}

static enum inf_code create_pack(struct inf_cpu_pack **out_pack, struct inf_cpu_packs *packs,
                                 struct inf_device *device, const struct inf_cpu_matrix *matrix,
                                 struct inf_error *err)
{
    size_t size;
    struct inf_cpu_pack *pack = calloc(1, sizeof(*pack));
    float *units = matrix->narrow ? malloc(matrix->columns * sizeof *units) : NULL;
    bool made = false;
    uint64_t start_ns = inf_clock_ns();
    if (pack != NULL && (units != NULL || !matrix->narrow) && inf_blob_restore(matrix->blob)) {
        pack->matrix = *matrix;
        pack->isa = packs->isa;
        pack->element = matrix->narrow ? inf_cpu_narrow_find(matrix, units) : INF_CPU_ELEMENT_F32;
        made = inf_cpu_pack_size(packs->isa, matrix, pack->element, &size) &&
               alloc_panels(pack, size) && inf_cpu_pack_fill(pack, units);
    }
    free(units);
    if (!made) {
        if (pack != NULL) {
            inf_cpu_panels_free(pack->memory);
            free_pack(pack);
        }
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "cpu: no memory to pack %zu rows of %zu weights", matrix->rows,
                               matrix->columns);
    }
    init_pack(pack, packs, device);
    pack->form.made_ns = inf_clock_ns() - start_ns;
    *out_pack = pack;
    return INF_OK;
}

// Puts a new pack into the table of its device, unless the table has a pack of the same matrix,
// which another thread may have added meanwhile; the new pack is then freed. Returns the pack that
// is in the table. It uses the panels of another pack if these are equal.
static struct inf_cpu_pack *insert_pack(struct inf_cpu_packs *packs, struct inf_device *device,
                                        struct inf_cpu_pack *made)
{
    struct inf_cpu_panels *own = made->memory;
    inf_mutex_lock(&packs->mutex);
    struct inf_cpu_pack *found = find_pack(packs, &made->matrix);
    if (found == NULL) {
        struct inf_cpu_pack **bucket = bucket_of(packs, made->matrix.blob);
        made->next = *bucket;
        *bucket = made;
        made->memory = inf_cpu_panels_add(&packs->panels, own);
        made->panels = made->memory->panels;
        made->form.memory = made->memory;
    }
    inf_mutex_unlock(&packs->mutex);
    if (found == NULL && made->memory == own)
        inf_device_count_weights(device, own->held_bytes);
    else
        inf_cpu_panels_free(own);
    if (found == NULL)
        return made;
    free_pack(made);
    return found;
}

enum inf_code inf_cpu_pack_get(struct inf_cpu_pack **out_pack, struct inf_cpu_packs *packs,
                               struct inf_device *device, const struct inf_cpu_matrix *matrix,
                               struct inf_error *err)
{
    assert(matrix->blob != NULL && matrix->columns > 0);
    struct inf_cpu_pack *made = NULL;
    inf_mutex_lock(&packs->mutex);
    struct inf_cpu_pack *found = find_pack(packs, matrix);
    inf_mutex_unlock(&packs->mutex);
    if (found == NULL) {
        // Create the pack without the lock, because packing takes long.
        INF_TRY(create_pack(&made, packs, device, matrix, err));
        found = insert_pack(packs, device, made);
    }
    *out_pack = found;
    return INF_OK;
}

// --- packs that were kept in files ---

enum inf_code inf_cpu_pack_adopt(struct inf_blob_form **out_form, struct inf_cpu_packs *packs,
                                 struct inf_device *device, struct inf_blob *blob,
                                 struct inf_form_record *record, struct inf_error *err)
{
    size_t size;
    INF_TRY(inf_cpu_pack_record_check_isa(record, packs->isa, err));
    struct inf_cpu_pack *pack = calloc(1, sizeof *pack);
    struct inf_cpu_panels *memory = calloc(1, sizeof *memory);
    if (pack == NULL || memory == NULL) {
        free(pack);
        free(memory);
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "cpu: no memory");
    }
    pack->matrix.blob = blob;
    bool sound = inf_cpu_pack_record_read(pack, record) &&
                 inf_cpu_pack_size(packs->isa, &pack->matrix, pack->element, &size);
    memory->used_bytes = sound ? size : 0;
    size = sound ? inf_size_align(size, ALIGNMENT) : 0;
    if (!sound || record->part_bytes[0] != size ||
        (record->part_bytes[1] != 0 &&
         (record->part_bytes[1] != size || pack->matrix.paired == 0))) {
        free(pack);
        free(memory);
        return inf_fail(err, INF_INVALID, "cpu: packed weights do not fit a constant of %zu bytes",
                        blob->size_bytes);
    }
    memory->references = 1;
    memory->panels = pack->panels = record->parts[0];
    memory->lower = pack->lower = record->parts[1];
    memory->held_bytes = pack->form.size_bytes = size + record->part_bytes[1];
    memory->pages = record->pages;
    record->pages = NULL;
    pack->memory = memory;
    init_pack(pack, packs, device);
    *out_form = &insert_pack(packs, device, pack)->form;
    return INF_OK;
}

// --- constants that fit fewer bits ---

static enum inf_cpu_element find_element(const struct inf_cpu_matrix *matrix)
{
    float *units = malloc(matrix->columns * sizeof *units);
    enum inf_cpu_element element =
        units != NULL ? inf_cpu_narrow_find(matrix, units) : INF_CPU_ELEMENT_F32;
    free(units);
    return element;
}

enum inf_cpu_element inf_cpu_constant_element(const struct inf_blob *blob, size_t columns)
{
    // Only the owner of an evicted constant may restore it, so the search reads a copy.
    struct inf_blob copy = {.size_bytes = blob->size_bytes, .data = blob->data};
    struct inf_cpu_matrix matrix = {
        .blob = &copy, .rows = blob->size_bytes / sizeof(float) / columns, .columns = columns};
    if (blob->data != NULL)
        return find_element(&matrix);
    const struct inf_cpu_pack *pack = (const struct inf_cpu_pack *)blob->form;
    // Another device may have packed the constant. Only packs of the cpu device have a matrix.
    if (blob->form->restore == inf_cpu_pack_restore && pack->matrix.narrow &&
        pack->matrix.columns == columns)
        return pack->element;
    copy.data = malloc(blob->size_bytes);
    if (copy.data == NULL)
        return INF_CPU_ELEMENT_F32;
    blob->form->restore(blob->form, copy.data);
    enum inf_cpu_element element = find_element(&matrix);
    free(copy.data);
    return element;
}

// --- the packs that a step reads in place of its operands ---

enum inf_code inf_cpu_step_pack(struct inf_cpu_step *step, const struct inf_node *node,
                                uint32_t input, struct inf_cpu_matrix matrix,
                                const void **out_panels, struct inf_error *err)
{
    struct inf_cpu_pack_use *use = inf_arena_alloc(step->arena, sizeof(*use));
    if (use == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its weights", node->name);
    matrix.blob = step->graph->values[node->inputs[input]].data;
    INF_TRY(inf_cpu_pack_get(&use->pack, step->packs, step->device, &matrix, err));
    use->node = (uint32_t)(node - step->graph->nodes);
    use->input = input;
    use->next = step->pack_uses;
    step->pack_uses = use;
    *out_panels = use->pack->panels;
    return INF_OK;
}

enum inf_cpu_element inf_cpu_step_pack_element(const struct inf_cpu_step *step)
{
    return step->pack_uses->pack->element;
}

void inf_cpu_step_drop_pack(struct inf_cpu_step *step)
{
    struct inf_blob_form *form = &step->pack_uses->pack->form;
    step->pack_uses = step->pack_uses->next;
    inf_blob_form_unref(&form);
}

void inf_cpu_step_unpack(struct inf_cpu_step *step)
{
    while (step->pack_uses != NULL)
        inf_cpu_step_drop_pack(step);
}
