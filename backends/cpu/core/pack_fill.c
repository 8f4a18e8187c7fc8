// SPDX-License-Identifier: Apache-2.0
// Copies the elements of a matrix to panels and back. A panel holds the elements as they are, in
// halves of 16 bits, in 8 or 16 bits (pack_narrow.h), or transformed for Winograd's algorithm.
#include "backends/cpu/core/pack_fill.h"

#include <stdlib.h>
#include <string.h>

#include "backends/base/bulk/parallel.h"
#include "backends/base/half.h"
#include "backends/cpu/core/pack_narrow.h"
#include "backends/cpu/core/panel.h"
#include "backends/cpu/core/winograd_weights.h"
#include "proto/core/span.h"

#define LINE          16 // floats in a cache line
#define PREFETCH_ROWS 16 // how many rows of the matrix are prefetched while it is packed

struct inf_cpu_panel inf_cpu_matrix_panel(const struct inf_nn *nn,
                                          const struct inf_cpu_matrix *matrix, size_t first)
{
    size_t group = matrix->group > 0 ? matrix->group : matrix->columns;
    return inf_cpu_panel_at(nn, first, first - first % group + group);
}

// --- copying elements to and from panels ---

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

bool inf_cpu_pack_can_restore(const struct inf_cpu_matrix *matrix)
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

// Returns the number of columns that are cut into panels together.
static size_t group_columns(const struct inf_cpu_matrix *matrix)
{
    return matrix->group > 0 ? matrix->group : matrix->columns;
}

// Returns the description of a matrix of 8-bit numbers that the functions of pack_bytes.h take.
static struct inf_cpu_bytes bytes_of(const struct inf_cpu_matrix *matrix)
{
    return (struct inf_cpu_bytes){.rows = matrix->rows,
                                  .columns = matrix->columns,
                                  .transposed = matrix->transposed,
                                  .group = group_columns(matrix),
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

void inf_cpu_pack_restore(const struct inf_blob_form *form, void *data)
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

// --- filling the panels of a pack ---

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

// One panel, and where its elements begin in the memory of the pack's panels.
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

bool inf_cpu_pack_fill(const struct inf_cpu_pack *pack, const float *units)
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
    size_t group = group_columns(matrix);
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

bool inf_cpu_pack_size(const struct inf_isa *isa, const struct inf_cpu_matrix *matrix,
                       enum inf_cpu_element element, size_t *out_size)
{
    size_t group = group_columns(matrix);
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
