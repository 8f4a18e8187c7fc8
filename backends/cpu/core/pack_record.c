// SPDX-License-Identifier: Apache-2.0
// What a record of a pack says: the matrix, and the ISA level whose kernels read the panels.
#include "backends/cpu/core/pack_record.h"

#include <stdio.h>
#include <string.h>

#include "proto/core/span.h"

// What the panels of a record hold.
enum {
    HOLDS_FLOATS, // also pairs of bf16
    HOLDS_BYTES,
    HOLDS_NARROW // and enum inf_cpu_element, for a matrix that may be narrow
};

// What a record says about a pack. It has no padding.
struct pack_description {
    uint64_t rows, columns, paired, group;
    uint8_t transposed, holds, zero, has_winograd;
    uint32_t winograd_pairs;
    double winograd_points[INF_WINOGRAD_PAIRS_MAX];
    char isa[16]; // name of the ISA level
};
_Static_assert(sizeof(struct pack_description) ==
                   sizeof(((struct inf_form_record *)NULL)->description),
               "the description fits the record");

static uint8_t holds_of(const struct inf_cpu_pack *pack)
{
    if (pack->matrix.narrow)
        return (uint8_t)(HOLDS_NARROW + pack->element);
    return pack->matrix.bytes ? HOLDS_BYTES : HOLDS_FLOATS;
}

void inf_cpu_pack_record_write(const struct inf_blob_form *form, struct inf_form_record *record)
{
    const struct inf_cpu_pack *pack = (const struct inf_cpu_pack *)form;
    const struct inf_cpu_matrix *matrix = &pack->matrix;
    struct pack_description description = {.rows = matrix->rows,
                                           .columns = matrix->columns,
                                           .paired = matrix->paired,
                                           .group = matrix->group,
                                           .transposed = matrix->transposed,
                                           .holds = holds_of(pack),
                                           .zero = matrix->zero,
                                           .has_winograd = matrix->winograd != NULL};
    size_t held = pack->memory->held_bytes;
    size_t part = pack->lower != NULL ? held / 2 : held;
    snprintf(description.isa, sizeof description.isa, "%s", pack->isa->name);
    if (matrix->winograd != NULL) {
        description.winograd_pairs = matrix->winograd->pairs;
        memcpy(description.winograd_points, matrix->winograd->points,
               matrix->winograd->pairs * sizeof matrix->winograd->points[0]);
    }
    *record = (struct inf_form_record){
        .parts = {(void *)(uintptr_t)pack->panels, (void *)(uintptr_t)pack->lower},
        .part_bytes = {part, pack->lower != NULL ? part : 0}};
    snprintf(record->device, sizeof record->device, "%s", inf_device_info(pack->device)->name);
    memcpy(record->description, &description, sizeof description);
}

enum inf_code inf_cpu_pack_record_check_isa(const struct inf_form_record *record,
                                            const struct inf_isa *isa, struct inf_error *err)
{
    struct pack_description description;
    memcpy(&description, record->description, sizeof description);
    if (strncmp(description.isa, isa->name, sizeof description.isa) == 0)
        return INF_OK;
    return inf_fail(err, INF_UNSUPPORTED, "cpu: weights packed for %.16s, wanted %s",
                    description.isa, isa->name);
}

// Sets pack->own_winograd and the matrix to the form of Winograd's algorithm of a description, and
// *rows to the rows of the constant. Returns false if a matrix of this kind has no such form.
static bool read_winograd(struct inf_cpu_pack *pack, const struct pack_description *description,
                          uint64_t *rows)
{
    struct inf_winograd_form *form = &pack->own_winograd;
    const struct inf_cpu_matrix *matrix = &pack->matrix;
    form->pairs = description->winograd_pairs;
    if (form->pairs < 1 || form->pairs > INF_WINOGRAD_PAIRS_MAX || matrix->bytes ||
        matrix->narrow || matrix->transposed || matrix->paired > 0 || matrix->group > 0)
        return false;
    memcpy(form->points, description->winograd_points, sizeof form->points);
    uint64_t products = (uint64_t)inf_winograd_side(form) * inf_winograd_side(form);
    // The constant has 9 weights for each `products` numbers of the pack.
    bool whole = *rows % products == 0;
    *rows = *rows / products * 9;
    pack->matrix.winograd = form;
    return whole;
}

bool inf_cpu_pack_record_read(struct inf_cpu_pack *pack, const struct inf_form_record *record)
{
    struct pack_description fields;
    const struct pack_description *description = &fields;
    memcpy(&fields, record->description, sizeof fields);
    struct inf_cpu_matrix *matrix = &pack->matrix;
    size_t element_bytes = description->holds == HOLDS_BYTES ? 1 : sizeof(float), count;
    uint64_t rows = description->rows;
    matrix->rows = (size_t)rows;
    matrix->columns = (size_t)description->columns;
    matrix->paired = (size_t)description->paired;
    matrix->group = (size_t)description->group;
    matrix->transposed = description->transposed == 1;
    matrix->bytes = description->holds == HOLDS_BYTES;
    matrix->narrow = description->holds >= HOLDS_NARROW;
    if (matrix->narrow)
        pack->element = (enum inf_cpu_element)(description->holds - HOLDS_NARROW);
    matrix->zero = description->zero;
    if (description->transposed > 1 || description->holds > HOLDS_NARROW + INF_CPU_ELEMENT_UNITS ||
        description->has_winograd > 1 || (!matrix->bytes && description->zero != 0) ||
        matrix->columns == 0 || rows == 0 ||
        ((matrix->bytes || matrix->narrow) && matrix->paired > 0) ||
        (matrix->paired > 0 && rows % matrix->paired != 0) ||
        (matrix->group > 0 && matrix->columns % matrix->group != 0))
        return false;
    if (description->has_winograd == 1 && !read_winograd(pack, description, &rows))
        return false;
    return inf_size_mul((size_t)rows, matrix->columns, &count) &&
           inf_size_mul(count, element_bytes, &count) && count == matrix->blob->size_bytes;
}
