// SPDX-License-Identifier: Apache-2.0
// Packs constant matrices into panels, restores the constants from the panels, and keeps the table
// of all packs (packed matrices) of a device. pack.h describes the layout.
#include "backends/cpu/core/pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/bulk/parallel.h"
#include "backends/base/clock.h"
#include "backends/base/half.h"
#include "backends/base/pages.h"
#include "backends/cpu/core/kernel.h"
#include "backends/cpu/core/pack_narrow.h"
#include "backends/cpu/core/pack_record.h"
#include "backends/cpu/core/winograd_weights.h"
#include "proto/core/span.h"

#define ALIGNMENT     64 // bytes; with this alignment no vector of a panel crosses a cache line
#define LINE          16 // floats in a cache line
#define PREFETCH_ROWS 16 // how many rows of the matrix are prefetched while it is packed

void inf_cpu_packs_init(struct inf_cpu_packs *packs, const struct inf_isa *isa)
{
    packs->isa = isa;
    inf_mutex_init(&packs->mutex);
}

void inf_cpu_packs_fini(struct inf_cpu_packs *packs)
{
    inf_mutex_fini(&packs->mutex);
}

// --- cutting a matrix into panels, and copying elements to and from panels ---

struct inf_cpu_panel inf_cpu_panel_at(const struct inf_nn *nn, size_t first, size_t columns)
{
    assert(first < columns);
    size_t rest = columns - first;
    size_t whole = nn->gemm->width;
    size_t half = nn->gemm_half->width;
    struct inf_cpu_panel panel = {.gemm = nn->gemm, .vectors = 1, .first = first};
    // A panel of two vectors is used only if more than one and a half vectors of columns are left.
    // Fewer columns get a panel of one vector, and the columns after it another panel, because one
    // panel for all of them would be padded by half a vector or more.
    if (rest > whole + (half < whole ? half : 0))
        panel.vectors = 2;
    else if (rest <= half)
        panel.gemm = nn->gemm_half;
    panel.width = panel.vectors * panel.gemm->width;
    panel.columns = INF_MIN(panel.width, rest);
    return panel;
}

struct inf_cpu_panel inf_cpu_matrix_panel(const struct inf_nn *nn,
                                          const struct inf_cpu_matrix *matrix, size_t first)
{
    size_t group = matrix->group > 0 ? matrix->group : matrix->columns;
    return inf_cpu_panel_at(nn, first, first - first % group + group);
}

size_t inf_cpu_panel_count(const struct inf_nn *nn, size_t columns, size_t *out_width)
{
    size_t count = 0;
    size_t width = 0;
    for (size_t first = 0; first < columns; count++) {
        struct inf_cpu_panel panel = inf_cpu_panel_at(nn, first, columns);
        width += panel.width;
        first += panel.columns;
    }
    if (out_width != NULL)
        *out_width = width;
    return count;
}

// Calls `copy` for each contiguous run of matrix elements that the panel holds. A run has `count`
// elements. They are contiguous in the matrix and `step` elements apart in the panel.
static void for_runs(const struct inf_cpu_matrix *matrix, const struct inf_cpu_panel *panel,
                     float *plain, float *packed,
                     void (*copy)(float *plain, float *packed, size_t count, size_t step))
{
    if (!matrix->transposed) {
        plain += panel->first;
        for (size_t row = 0; row < matrix->rows; row++, plain += matrix->columns) {
            // Prefetch explicitly, because the rows are too far apart for the hardware prefetcher.
            for (size_t line = 0; line < panel->columns; line += LINE)
                __builtin_prefetch(plain + PREFETCH_ROWS * matrix->columns + line);
            copy(plain, packed + row * panel->width, panel->columns, 1);
        }
        return;
    }
    plain += panel->first * matrix->rows;
    for (size_t row = 0; row < matrix->rows; row += LINE)
        for (size_t c = 0; c < panel->columns; c++)
            copy(plain + c * matrix->rows + row, packed + row * panel->width + c,
                 INF_MIN((size_t)LINE, matrix->rows - row), panel->width);
}

static void pack_run(float *plain, float *packed, size_t count, size_t step)
{
    if (step == 1)
        memcpy(packed, plain, count * sizeof(float));
    else
        for (size_t i = 0; i < count; i++)
            packed[i * step] = plain[i];
}

static void unpack_run(float *plain, float *packed, size_t count, size_t step)
{
    if (step == 1)
        memcpy(plain, packed, count * sizeof(float));
    else
        for (size_t i = 0; i < count; i++)
            plain[i] = packed[i * step];
}

// A float whose bits, without the sign, are below this can be restored exactly from two 16-bit
// halves: its nearest bf16 (ties away from 0) and the lower 16 bits of its fp32 form. Larger
// magnitudes round to infinity, or are infinity or NaN, so they cannot be restored.
#define RESTORED_BELOW 0x7f7f8000u

static bool can_restore(const struct inf_cpu_matrix *matrix)
{
    const uint32_t *bits = matrix->blob->data;
    for (size_t i = 0; i < matrix->rows * matrix->columns; i++)
        if ((bits[i] & 0x7fffffffu) >= RESTORED_BELOW)
            return false;
    return true;
}

// An element packed in bf16. Products read `upper`. `lower` keeps the lower half of the fp32 bits,
// for restoring the element.
struct halves {
    uint16_t upper, lower;
};

static struct halves split_halves(const float *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    uint16_t upper = (bits & 0x7fffffffu) < RESTORED_BELOW ? (uint16_t)((bits + 0x8000u) >> 16)
                                                           : inf_bf16_from_float(*at);
    return (struct halves){upper, (uint16_t)bits};
}

static float join_halves(struct halves halves)
{
    uint32_t upper = halves.upper;
    uint32_t bits = (halves.lower >= 0x8000u ? upper - 1 : upper) << 16 | halves.lower;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// The arguments of for_pair_elements(): a bf16 matrix, and one of its panels, in which two
// neighbouring rows share 32 bits.
struct pairs {
    const struct inf_cpu_matrix *matrix;
    const struct inf_cpu_panel *panel;
    float *plain; // elements of the matrix, in fp32
    // The upper and lower 16 bits of elements in the panel; lower may be NULL.
    uint16_t *upper, *lower;
};

// Calls `meet` for each element of the matrix that the panel holds. The arguments are the addresses
// of the fp32 element in the matrix, and of its upper and lower 16 bits in the panel.
static void for_pair_elements(const struct pairs *pairs,
                              void (*meet)(float *plain, uint16_t *upper, uint16_t *lower))
{
    const struct inf_cpu_matrix *matrix = pairs->matrix;
    const struct inf_cpu_panel *panel = pairs->panel;
    size_t across = matrix->transposed ? matrix->rows : 1;  // elements between neighbouring columns
    size_t down = matrix->transposed ? 1 : matrix->columns; // elements between neighbouring rows
    size_t even = (matrix->paired + 1) / 2 * 2;
    for (size_t row = 0; row < matrix->rows; row++) {
        size_t place = row / matrix->paired * even + row % matrix->paired;
        float *plain = pairs->plain + panel->first * across + row * down;
        size_t at = place / 2 * panel->width * 2 + place % 2;
        for (size_t c = 0; c < panel->columns; c++, at += 2, plain += across)
            meet(plain, &pairs->upper[at], pairs->lower != NULL ? &pairs->lower[at] : NULL);
    }
}

static void split_pair_element(float *plain, uint16_t *upper, uint16_t *lower)
{
    struct halves halves = split_halves(plain);
    *upper = halves.upper;
    if (lower != NULL)
        *lower = halves.lower;
}

static void join_pair_element(float *plain, uint16_t *upper, uint16_t *lower)
{
    *plain = join_halves((struct halves){*upper, *lower});
}

// Returns the number of rows in a panel: the rows of the matrix, or half as many if two rows are
// packed together as pairs.
static size_t packed_rows(const struct inf_cpu_matrix *matrix)
{
    if (matrix->paired == 0)
        return matrix->rows;
    return matrix->rows / matrix->paired * ((matrix->paired + 1) / 2);
}

// Returns the description of a matrix of 8-bit numbers that the functions of pack_bytes.h take.
static struct inf_cpu_bytes bytes_of(const struct inf_cpu_matrix *matrix)
{
    return (struct inf_cpu_bytes){.rows = matrix->rows,
                                  .columns = matrix->columns,
                                  .transposed = matrix->transposed,
                                  .group = matrix->group > 0 ? matrix->group : matrix->columns,
                                  .zero = matrix->zero};
}

static void restore_narrow(const struct inf_cpu_pack *pack, float *data)
{
    const struct inf_cpu_matrix *matrix = &pack->matrix;
    const char *from = pack->panels;
    for (size_t first = 0; first < matrix->columns;) {
        struct inf_cpu_panel panel = inf_cpu_matrix_panel(pack->isa->nn, matrix, first);
        inf_cpu_narrow_restore_panel(pack->element, matrix, &panel, from, data);
        from += inf_cpu_narrow_panel_bytes(pack->element, matrix->rows, panel.width);
        first += panel.columns;
    }
}

// Writes the bytes of the original constant to `data`, restored from its panels.
static void restore_matrix(const struct inf_blob_form *form, void *data)
{
    const struct inf_cpu_pack *pack = (const struct inf_cpu_pack *)form;
    const struct inf_cpu_matrix *matrix = &pack->matrix;
    float *panels = (float *)(uintptr_t)pack->panels;
    size_t at = 0;
    if (matrix->bytes) {
        struct inf_cpu_bytes bytes = bytes_of(matrix);
        inf_cpu_bytes_restore(pack->isa->q8->gemm, &bytes, pack->panels, data);
        return;
    }
    if (pack->element != INF_CPU_ELEMENT_F32) {
        restore_narrow(pack, data);
        return;
    }
    for (size_t first = 0; first < matrix->columns;) {
        struct inf_cpu_panel panel = inf_cpu_matrix_panel(pack->isa->nn, matrix, first);
        if (matrix->paired > 0)
            for_pair_elements(&(struct pairs){matrix, &panel, data, (uint16_t *)(panels + at),
                                              (uint16_t *)pack->lower + 2 * at},
                              join_pair_element);
        else
            for_runs(matrix, &panel, data, panels + at, unpack_run);
        at += packed_rows(matrix) * panel.width;
        first += panel.columns;
    }
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
        if (can_restore(&pack->matrix)) {
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

static void pack_panel(const struct inf_cpu_matrix *matrix, const struct inf_cpu_panel *panel,
                       float *to)
{
    if (panel->columns < panel->width)
        memset(to, 0, matrix->rows * panel->width * sizeof(float));
    for_runs(matrix, panel, matrix->blob->data, to, pack_run);
}

// Fills the panels of a pack whose elements have 8 or 16 bits.
static void fill_narrow(const struct inf_cpu_pack *pack, const float *units)
{
    const struct inf_cpu_matrix *matrix = &pack->matrix;
    char *to = (char *)(uintptr_t)pack->panels;
    for (size_t first = 0; first < matrix->columns;) {
        struct inf_cpu_panel panel = inf_cpu_matrix_panel(pack->isa->nn, matrix, first);
        inf_cpu_narrow_pack_panel(pack->element, matrix, &panel, units, to);
        to += inf_cpu_narrow_panel_bytes(pack->element, matrix->rows, panel.width);
        first += panel.columns;
    }
}

// Panel `index` of a pack on its way, and where its elements begin in the panels of the pack.
struct place {
    struct inf_cpu_panel panel;
    size_t at; // in floats
};

struct filling {
    const struct inf_cpu_pack *pack;
    const struct place *places; // one for each panel
};

static void fill_panel(void *context, size_t index)
{
    const struct filling *filling = context;
    const struct place *place = &filling->places[index];
    const struct inf_cpu_matrix *matrix = &filling->pack->matrix;
    float *panels = (float *)(uintptr_t)filling->pack->panels + place->at;
    uint16_t *lower = (uint16_t *)(uintptr_t)filling->pack->lower;
    if (matrix->paired > 0)
        for_pair_elements(&(struct pairs){matrix, &place->panel, matrix->blob->data,
                                          (uint16_t *)panels,
                                          lower != NULL ? lower + 2 * place->at : NULL},
                          split_pair_element);
    else if (matrix->winograd != NULL)
        inf_cpu_winograd_pack_panel(matrix, &place->panel, panels);
    else
        pack_panel(matrix, &place->panel, panels);
}

// Fills the panels of a pack, on several cores if they are large. `units` are those that
// inf_cpu_narrow_find() set; NULL if the element is INF_CPU_ELEMENT_F32. Returns false if there is
// no memory for the list of panels.
static bool fill_pack(const struct inf_cpu_pack *pack, const float *units)
{
    const struct inf_cpu_matrix *matrix = &pack->matrix;
    size_t at = 0, count = 0;
    if (matrix->bytes) {
        struct inf_cpu_bytes bytes = bytes_of(matrix);
        inf_cpu_bytes_pack(pack->isa->q8->gemm, &bytes, matrix->blob->data,
                           (int8_t *)(uintptr_t)pack->panels);
        return true;
    }
    if (pack->element != INF_CPU_ELEMENT_F32) {
        fill_narrow(pack, units);
        return true;
    }
    size_t group = matrix->group > 0 ? matrix->group : matrix->columns;
    size_t most = inf_cpu_panel_count(pack->isa->nn, group, NULL) * (matrix->columns / group);
    struct place *places = calloc(most, sizeof *places);
    if (places == NULL)
        return false;
    for (size_t first = 0; first < matrix->columns; count++) {
        struct inf_cpu_panel panel = inf_cpu_matrix_panel(pack->isa->nn, matrix, first);
        places[count] = (struct place){panel, at};
        at += packed_rows(matrix) * panel.width;
        first += panel.columns;
    }
    struct filling filling = {pack, places};
    inf_parallel_run(&(struct inf_parallel){
        .run = fill_panel, .context = &filling, .pieces = count, .bytes = at * sizeof(float)});
    free(places);
    return true;
}

// Sets *out_size to the size in bytes of the panels of a matrix. Returns false if the size
// overflows.
static bool find_panels_size(const struct inf_isa *isa, const struct inf_cpu_matrix *matrix,
                             enum inf_cpu_element element, size_t *out_size)
{
    size_t group = matrix->group > 0 ? matrix->group : matrix->columns;
    size_t width; // total width, in columns with padding, of all panels of a column group
    if (matrix->bytes) {
        struct inf_cpu_bytes bytes = bytes_of(matrix);
        *out_size = inf_cpu_bytes_packed_size(isa->q8->gemm, &bytes);
        return true; // no overflow: panels are larger than the blob by a small factor at most
    }
    inf_cpu_panel_count(isa->nn, group, &width);
    width *= matrix->columns / group;
    if (!inf_size_mul(packed_rows(matrix), width * sizeof(float), out_size))
        return false;
    // The sizes of panels add up to that of one panel of all columns.
    if (element != INF_CPU_ELEMENT_F32)
        *out_size = inf_cpu_narrow_panel_bytes(element, matrix->rows, width);
    return true;
}

// Completes a pack whose matrix and memory are set.
static void init_pack(struct inf_cpu_pack *pack, struct inf_cpu_packs *packs,
                      struct inf_device *device)
{
    bool restores =
        pack->matrix.winograd == NULL && (pack->matrix.paired == 0 || pack->lower != NULL);
    pack->isa = packs->isa;
    pack->form.restore = restores ? restore_matrix : NULL;
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
        made = find_panels_size(packs->isa, matrix, pack->element, &size) &&
               alloc_panels(pack, size) && fill_pack(pack, units);
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
                 find_panels_size(packs->isa, &pack->matrix, pack->element, &size);
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
