// SPDX-License-Identifier: Apache-2.0
// Weight matrices packed for the kernels. All users of the same matrix share one packed copy, from
// which the constant can be restored bit by bit.
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/base/pages.h"
#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/pack_fill.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/isa.h"

static struct inf_device *device;
static struct inf_cpu_packs packs;

static void create_cache(void)
{
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, NULL, NULL), INF_OK);
    inf_cpu_packs_init(&packs, inf_isa_best());
}

static void destroy_cache(void)
{
    cr_assert_eq(inf_device_memory(device).weight_bytes, 0u, "a pack is left");
    cr_assert_eq(inf_device_memory(device).allocations, 0u);
    inf_cpu_packs_fini(&packs);
    inf_device_unref(&device);
}

TestSuite(pack, .init = create_cache, .fini = destroy_cache);

// Makes a constant with all kinds of floats: normal numbers, infinities, NaNs with payloads,
// subnormal numbers.
static struct inf_blob *blob_of(size_t count)
{
    struct inf_blob *blob = inf_blob_create(count * sizeof(uint32_t));
    uint64_t state = count;
    cr_assert_not_null(blob);
    for (size_t i = 0; i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        ((uint32_t *)blob->data)[i] = (uint32_t)(state >> 32);
    }
    return blob;
}

static struct inf_cpu_pack *get_pack(const struct inf_cpu_matrix *matrix)
{
    struct inf_cpu_pack *pack = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_cpu_pack_get(&pack, &packs, device, matrix, &err), INF_OK, "%s", err.text);
    return pack;
}

static void put_pack(struct inf_cpu_pack *pack)
{
    struct inf_blob_form *form = &pack->form;
    inf_blob_form_unref(&form);
}

// Returns element [row][column] of the matrix, read from the packed panels by their documented
// layout.
static uint32_t element_of(const struct inf_cpu_pack *pack, size_t row, size_t column)
{
    const struct inf_cpu_matrix *matrix = &pack->matrix;
    const float *at = pack->panels;
    for (size_t first = 0;;) {
        struct inf_cpu_panel panel = inf_cpu_matrix_panel(pack->isa->nn, matrix, first);
        if (column < first + panel.columns) {
            uint32_t bits;
            memcpy(&bits, &at[row * panel.width + column - first], sizeof bits);
            return bits;
        }
        at += matrix->rows * panel.width;
        first += panel.columns;
    }
}

static void check_groups(size_t rows, size_t columns, bool transposed, size_t group)
{
    struct inf_blob *blob = blob_of(rows * columns);
    const struct inf_cpu_matrix matrix = {blob, rows, columns, transposed, .group = group};
    struct inf_cpu_pack *pack = get_pack(&matrix);
    const uint32_t *bits = blob->data;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            cr_assert_eq(element_of(pack, r, c), bits[transposed ? c * rows + r : r * columns + c],
                         "%zu x %zu: element %zu, %zu", rows, columns, r, c);
    uint32_t *again = malloc(blob->size_bytes);
    pack->form.restore(&pack->form, again);
    cr_assert_eq(memcmp(again, bits, blob->size_bytes), 0, "%zu x %zu", rows, columns);
    free(again);
    cr_assert_eq(inf_device_memory(device).weight_bytes, pack->form.size_bytes);
    put_pack(pack);
    inf_blob_unref(&blob);
}

static void check_pack(size_t rows, size_t columns, bool transposed)
{
    check_groups(rows, columns, transposed, 0);
}

Test(pack, begins_every_group_of_columns_with_a_panel)
{
    for (size_t group = 1; group <= 70; group++) {
        check_groups(3, 4 * group, false, group);
        check_groups(5, 6 * group, true, group);
    }
}

Test(pack, has_every_element_and_restores_the_constant)
{
    static const size_t rows[] = {1, 2, 3, 9, 64};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t columns = 1; columns <= 100; columns++) {
            check_pack(rows[i], columns, false);
            check_pack(rows[i], columns, true);
        }
}

// Several threads fill the panels of large weights.
Test(pack, of_large_weights_has_every_element)
{
    check_pack(700, 1100, false);
    check_pack(700, 1100, true);
}

// Packs a constant as pairs of bf16 numbers, checks the rounded weights that products would read,
// and restores the constant from the packed form.
static void check_pairs(struct inf_blob *blob, size_t paired, size_t segments, size_t columns,
                        bool transposed)
{
    const size_t rows = paired * segments;
    const struct inf_cpu_matrix matrix = {blob, rows, columns, transposed, paired};
    struct inf_cpu_pack *pack = get_pack(&matrix);
    const float *floats = blob->data;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            struct inf_cpu_pack pairs = *pack; // the same pack, described as a matrix of row pairs
            pairs.matrix.rows = segments * ((paired + 1) / 2);
            size_t place = r % paired;
            uint32_t pair = element_of(&pairs, r / paired * ((paired + 1) / 2) + place / 2, c);
            float exact = floats[transposed ? c * rows + r : r * columns + c];
            float got = inf_bf16_to_float((uint16_t)(place % 2 == 0 ? pair : pair >> 16));
            cr_assert_leq(fabsf(got - exact), fabsf(exact) / 256, "%zu, %zu: %g, %g", r, c,
                          (double)got, (double)exact);
        }
    cr_assert_not_null(pack->form.restore);
    uint32_t *again = malloc(blob->size_bytes);
    pack->form.restore(&pack->form, again);
    cr_assert_eq(memcmp(again, blob->data, blob->size_bytes), 0, "%zu x %zu", rows, columns);
    free(again);
    put_pack(pack);
}

Test(pack, in_bf16_is_rounded_and_restores_the_constant)
{
    static const size_t paired[] = {1, 2, 3, 9, 64};
    for (size_t i = 0; i < sizeof paired / sizeof *paired; i++)
        for (size_t columns = 1; columns <= 70; columns++) {
            struct inf_blob *blob = blob_of(paired[i] * 3 * columns);
            uint32_t *bits = blob->data;
            for (size_t at = 0; at < paired[i] * 3 * columns; at++) {
                // exclude NaN and numbers close to 0
                bits[at] = (bits[at] & 0xbfffffffu) | 0x20000000u;
                if (at % 5 == 0)
                    // halfway between two bf16 numbers
                    bits[at] = (bits[at] & 0xffff0000u) | 0x8000u;
            }
            check_pairs(blob, paired[i], 3, columns, false);
            check_pairs(blob, paired[i], 3, columns, true);
            inf_blob_unref(&blob);
        }
}

// Returns the weight of row `row` and column `column` from the panels of a packed matrix of bytes.
// The position is computed from the documented layout.
static int8_t byte_of(const struct inf_q8_gemms *gemms, const struct inf_cpu_bytes *matrix,
                      const int8_t *panels, size_t row, size_t column)
{
    size_t quads = (matrix->rows + 3) / 4;
    size_t vectors = (matrix->group + gemms->width - 1) / gemms->width;
    const int8_t *panel = panels + column / matrix->group * vectors * gemms->width * quads * 4;
    size_t in_group = column % matrix->group;
    size_t before = in_group / (2 * gemms->width) * 2; // vectors of earlier panels of the group
    size_t width = gemms->width * (vectors - before > 1 ? 2 : 1);
    panel += before * gemms->width * quads * 4;
    return panel[(row / 4 * width + in_group - before * gemms->width) * 4 + row % 4];
}

// Packs a matrix of bytes at every ISA level. Expects that the panels have the documented layout,
// that the packed bytes can be restored, and that inf_cpu_bytes_sum_columns() sums the columns of
// the first panel.
static void check_bytes(const struct inf_cpu_bytes *matrix)
{
    size_t count = matrix->rows * matrix->columns;
    struct inf_blob *blob = blob_of(count / 4 + 1);
    const uint8_t *bytes = blob->data;
    uint8_t *again = malloc(count);
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_q8_gemms *gemms = inf_isa_level(level)->q8->gemm;
        int8_t *panels = malloc(inf_cpu_bytes_packed_size(gemms, matrix));
        inf_cpu_bytes_pack(gemms, matrix, bytes, panels);
        for (size_t r = 0; r < matrix->rows; r++)
            for (size_t c = 0; c < matrix->columns; c++) {
                size_t at = matrix->transposed ? c * matrix->rows + r : r * matrix->columns + c;
                cr_assert_eq(byte_of(gemms, matrix, panels, r, c),
                             (int8_t)(bytes[at] - matrix->zero), "%zu x %zu: element %zu, %zu",
                             matrix->rows, matrix->columns, r, c);
            }
        memset(again, 0, count);
        inf_cpu_bytes_restore(gemms, matrix, panels, again);
        cr_assert_eq(memcmp(again, bytes, count), 0, "%zu x %zu", matrix->rows, matrix->columns);
        size_t width = gemms->width * inf_cpu_bytes_panel_vectors(gemms, 0, matrix->group);
        uint32_t sums[128];
        cr_assert_leq(width, sizeof sums / sizeof *sums);
        inf_cpu_bytes_sum_columns(panels, (matrix->rows + 3) / 4, width, sums);
        for (size_t c = 0; c < width; c++) {
            int32_t sum = 0;
            for (size_t r = 0; c < matrix->group && r < matrix->rows; r++)
                sum += byte_of(gemms, matrix, panels, r, c);
            cr_assert_eq((int32_t)sums[c], sum);
        }
        free(panels);
    }
    free(again);
    inf_blob_unref(&blob);
}

Test(pack, of_bytes_has_quads_of_rows_and_restores_the_constant)
{
    static const size_t rows[] = {1, 3, 4, 5, 64};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t group = 1; group <= 70; group++) {
            check_bytes(&(struct inf_cpu_bytes){rows[i], group, false, group, 0});
            check_bytes(&(struct inf_cpu_bytes){rows[i], group, true, group, 101});
            check_bytes(&(struct inf_cpu_bytes){rows[i], 3 * group, i % 2 == 0, group, 128});
        }
}

Test(pack, of_bytes_replaces_its_constant)
{
    struct inf_blob *blob = blob_of(35);
    const struct inf_cpu_matrix matrix = {blob, 7, 20, false, .bytes = true, .zero = 128};
    const struct inf_cpu_matrix signed_bytes = {blob, 7, 20, false, .bytes = true};
    struct inf_cpu_pack *pack = get_pack(&matrix);
    struct inf_cpu_pack *other = get_pack(&signed_bytes);
    cr_assert_neq(pack, other, "the zero point is not part of the key");
    cr_assert_not_null(pack->form.restore);
    uint8_t again[140];
    pack->form.restore(&pack->form, again);
    cr_assert_eq(memcmp(again, blob->data, sizeof again), 0);
    put_pack(other);
    put_pack(pack);
    inf_blob_unref(&blob);
}

// Two constants with the same bytes have packs of their own, in the same memory.
Test(pack, of_equal_constants_shares_memory)
{
    struct inf_blob *a = blob_of(64 * 40);
    struct inf_blob *b = blob_of(64 * 40);
    struct inf_blob *other = blob_of(64 * 40);
    ((uint32_t *)other->data)[64 * 40 - 1] ^= 1;
    struct inf_cpu_pack *first = get_pack(&(struct inf_cpu_matrix){a, 64, 40, false});
    size_t size = first->form.size_bytes;
    struct inf_cpu_pack *second = get_pack(&(struct inf_cpu_matrix){b, 64, 40, false});
    cr_assert_neq(first, second);
    cr_assert_eq(first->panels, second->panels);
    // Each may be the last one that keeps the memory.
    cr_assert_eq(first->form.size_bytes, size);
    cr_assert_eq(second->form.size_bytes, size);
    cr_assert_eq(inf_device_memory(device).weight_bytes, size);
    struct inf_cpu_pack *third = get_pack(&(struct inf_cpu_matrix){other, 64, 40, false});
    cr_assert_neq(third->panels, first->panels);
    cr_assert_eq(inf_device_memory(device).weight_bytes, 2 * size);
    // The memory stays as long as one of the packs, and a pack that comes later finds it.
    put_pack(first);
    cr_assert_eq(inf_device_memory(device).weight_bytes, 2 * size);
    first = get_pack(&(struct inf_cpu_matrix){a, 64, 40, false});
    cr_assert_eq(first->panels, second->panels);
    put_pack(second);
    uint32_t *again = malloc(a->size_bytes);
    first->form.restore(&first->form, again);
    cr_assert_eq(memcmp(again, a->data, a->size_bytes), 0);
    free(again);
    put_pack(first);
    cr_assert_eq(inf_device_memory(device).weight_bytes, size);
    put_pack(third);
    inf_blob_unref(&a);
    inf_blob_unref(&b);
    inf_blob_unref(&other);
}

Test(pack, in_bf16_does_not_replace_a_constant_that_it_cannot_restore)
{
    static const uint32_t odd[] = {0x7fc00001, 0x7f800000, 0xff800000, 0x7f7fffff};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct inf_blob *blob = inf_blob_create(4 * sizeof(float));
        const struct inf_cpu_matrix matrix = {blob, 2, 2, false, 2};
        memcpy(blob->data, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
        ((uint32_t *)blob->data)[i] = odd[i];
        struct inf_cpu_pack *pack = get_pack(&matrix);
        cr_assert_null(pack->form.restore, "%08x", odd[i]);
        put_pack(pack);
        inf_blob_unref(&blob);
    }
}

Test(pack, pads_less_than_a_vector)
{
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const struct inf_nn *nn = inf_isa_level(level)->nn;
        for (size_t columns = 1; columns <= 300; columns++) {
            size_t width;
            size_t count = inf_cpu_panel_count(nn, columns, &width);
            cr_assert_geq(width, columns);
            cr_assert_lt(width - columns, nn->gemm->width, "%zu columns: %zu", columns, width);
            cr_assert_leq(count, columns / (2 * nn->gemm->width) + 2);
        }
    }
}

Test(pack, is_shared_by_all_users_of_the_same_matrix)
{
    struct inf_blob *blob = blob_of(12);
    struct inf_blob *other = blob_of(12);
    const struct inf_cpu_matrix same = {blob, 3, 4, false};
    const struct inf_cpu_matrix different[] = {
        {blob, 4, 3, false}, {blob, 3, 4, true}, {other, 3, 4, false}};
    struct inf_cpu_pack *first = get_pack(&same);
    uint64_t bytes = inf_device_memory(device).weight_bytes;
    struct inf_cpu_pack *second = get_pack(&same);
    cr_assert_eq(first, second);
    cr_assert_eq(inf_device_memory(device).weight_bytes, bytes);
    struct inf_cpu_pack *others[3];
    for (int i = 0; i < 3; i++) {
        others[i] = get_pack(&different[i]);
        cr_assert_neq(others[i], first, "%d", i);
    }
    put_pack(first);
    struct inf_cpu_pack *third = get_pack(&same);
    cr_assert_eq(third, second, "it lives on");
    put_pack(second);
    put_pack(third);
    for (int i = 0; i < 3; i++)
        put_pack(others[i]);
    inf_blob_unref(&blob);
    inf_blob_unref(&other);
}

// --- packs that were kept in a file ---

// Kernels with tile registers read behind the last panel. A sanitizer reports a block that is too
// short.
Test(pack, shared_pages_are_followed_by_bytes_that_kernels_may_read)
{
    struct inf_shared_pages *pages = inf_shared_pages_create(4096);
    cr_assert_not_null(pages);
    memset(pages->memory, 0, 4096 + INF_PAGES_SLACK_BYTES);
    inf_shared_pages_unref(&pages);
}

// Copies a record with its parts, as if it had been written to a file and read again.
static struct inf_form_record copy_record(const struct inf_form_record *record)
{
    struct inf_form_record copy = *record;
    copy.pages = inf_shared_pages_create(record->part_bytes[0] + record->part_bytes[1]);
    cr_assert_not_null(copy.pages);
    for (size_t i = 0, at = 0; i < INF_FORM_PARTS; at += record->part_bytes[i++])
        if (record->part_bytes[i] > 0) {
            copy.parts[i] = (char *)copy.pages->memory + at;
            memcpy(copy.parts[i], record->parts[i], record->part_bytes[i]);
        }
    return copy;
}

static enum inf_code adopt_record(struct inf_blob *blob, struct inf_form_record *record,
                                  struct inf_blob_form **form)
{
    struct inf_error err = {0};
    enum inf_code code = inf_cpu_pack_adopt(form, &packs, device, blob, record, &err);
    cr_expect_eq(code != INF_OK, err.text[0] != '\0');
    return code;
}

// Packs a matrix, keeps the pack, and adopts it for an evicted constant: a step that wants the same
// matrix of this constant finds it, and the constant is restored from it.
static void check_kept(struct inf_cpu_matrix matrix)
{
    struct inf_form_record record;
    struct inf_blob *blob = matrix.blob;
    struct inf_cpu_pack *pack = get_pack(&matrix);
    bool restores = pack->form.restore != NULL;
    pack->form.describe(&pack->form, &record);
    cr_expect_str_eq(record.device, "cpu");
    cr_expect_eq(record.part_bytes[0] + record.part_bytes[1], pack->form.size_bytes);
    struct inf_form_record copy = copy_record(&record), second = copy_record(&record);
    struct inf_blob *gone = inf_blob_create_evicted(blob->size_bytes);
    struct inf_blob_form *form, *again;
    cr_assert_eq(adopt_record(gone, &copy, &form), INF_OK);
    cr_expect_null(copy.pages);
    // A second adoption gives the same form.
    cr_assert_eq(adopt_record(gone, &second, &again), INF_OK);
    cr_expect_eq(again, form);
    matrix.blob = gone;
    struct inf_cpu_pack *found = get_pack(&matrix);
    cr_assert_eq(&found->form, form);
    cr_expect_eq(found->memory->held_bytes, pack->memory->held_bytes);
    cr_expect_eq(memcmp(found->panels, pack->panels, record.part_bytes[0]), 0);
    cr_expect_eq(found->lower != NULL, pack->lower != NULL);
    cr_assert_eq(found->form.restore != NULL, restores);
    if (restores) {
        inf_blob_set_form(gone, form);
        cr_assert(inf_blob_restore(gone));
        cr_expect_eq(memcmp(gone->data, blob->data, blob->size_bytes), 0);
    }
    put_pack(found);
    inf_blob_form_unref(&form);
    inf_blob_form_unref(&again);
    put_pack(pack);
    inf_blob_unref(&gone);
}

Test(pack, that_was_kept_is_adopted)
{
    static const struct inf_winograd_form winograd = {2, {0.625, 1.5}};
    struct inf_blob *blob = blob_of(9 * 6 * 40);
    for (size_t columns = 1; columns <= 40; columns++) {
        struct inf_blob *some = blob_of(6 * columns);
        for (size_t i = 0; i < 6 * columns; i++)
            ((float *)some->data)[i] = (float)i / 7;
        check_kept((struct inf_cpu_matrix){some, 6, columns, false});
        check_kept((struct inf_cpu_matrix){some, 6, columns, true});
        check_kept((struct inf_cpu_matrix){some, 6, columns, false, .paired = 3});
        check_kept((struct inf_cpu_matrix){some, 24, columns, false, .bytes = true, .zero = 128});
        check_kept((struct inf_cpu_matrix){some, 6, columns, false, .narrow = true});
        for (size_t i = 0; i < 6 * columns; i++)
            ((float *)some->data)[i] = (float)(i % 127) * 0.3f;
        check_kept((struct inf_cpu_matrix){some, 6, columns, true, .narrow = true});
        inf_blob_unref(&some);
    }
    check_kept((struct inf_cpu_matrix){blob, 6, 360, true, .group = 40});
    check_kept((struct inf_cpu_matrix){blob, 36 * 6, 40, false, .winograd = &winograd});
    // With numbers that are not restored from two halves.
    ((uint32_t *)blob->data)[5] = 0x7f800000;
    check_kept((struct inf_cpu_matrix){blob, 54, 40, false, .paired = 9});
    inf_blob_unref(&blob);
}

// The places of numbers in the description of a pack (pack.c).
enum {
    AT_ROWS,
    AT_COLUMNS,
    AT_PAIRED,
    AT_GROUP,
    AT_FLAGS,
    AT_POINTS,
    AT_ISA = 8
};

Test(pack, that_does_not_fit_its_constant_is_not_adopted)
{
    struct inf_blob *blob = blob_of(6 * 40);
    struct inf_cpu_pack *pack = get_pack(&(struct inf_cpu_matrix){blob, 6, 40, false});
    struct inf_form_record record;
    struct inf_blob_form *form;
    pack->form.describe(&pack->form, &record);
    static const struct {
        size_t at;
        uint64_t value;
    } changes[] = {{AT_ROWS, 5},
                   {AT_ROWS, 0},
                   {AT_ROWS, UINT64_MAX / 2},
                   {AT_COLUMNS, 41},
                   {AT_COLUMNS, 0},
                   {AT_PAIRED, 4},
                   {AT_PAIRED, 3}, // the panels of pairs have another size
                   {AT_GROUP, 7},
                   {AT_FLAGS, 2},             // transposed is 2
                   {AT_FLAGS, 0x0100},        // 8-bit numbers: four times as many fit
                   {AT_FLAGS, 0x0300},        // the panels of binary16 have another size
                   {AT_FLAGS, 0x0400},        // and so have those of units
                   {AT_FLAGS, 0x0500},        // nothing that panels hold
                   {AT_FLAGS, 0x010000},      // a zero point of floats
                   {AT_FLAGS, 0x01000000},    // Winograd's algorithm without pairs
                   {AT_FLAGS, 0x0201000000u}, // and with 2: 6 rows are no tiles
                   {AT_FLAGS, 0x4001000000u}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct inf_form_record changed = copy_record(&record);
        memcpy(changed.description + 8 * changes[i].at, &changes[i].value, 8);
        cr_expect_eq(adopt_record(blob, &changed, &form), INF_INVALID, "%zu", i);
        cr_expect_not_null(changed.pages);
        inf_shared_pages_unref(&changed.pages);
    }
    for (int more = -64; more <= 64; more += 128) {
        struct inf_form_record changed = copy_record(&record);
        changed.part_bytes[0] += (size_t)more;
        cr_expect_eq(adopt_record(blob, &changed, &form), INF_INVALID);
        changed.part_bytes[0] -= (size_t)more;
        changed.part_bytes[1] = changed.part_bytes[0];
        cr_expect_eq(adopt_record(blob, &changed, &form), INF_INVALID, "lower halves of fp32");
        inf_shared_pages_unref(&changed.pages);
    }
    struct inf_form_record changed = copy_record(&record);
    memcpy(changed.description + 8 * AT_ISA, "another", 8);
    cr_expect_eq(adopt_record(blob, &changed, &form), INF_UNSUPPORTED);
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const char *name = inf_isa_level(level)->name;
        memset(changed.description + 8 * AT_ISA, 0, 16);
        memcpy(changed.description + 8 * AT_ISA, name, strlen(name));
        if (strcmp(name, packs.isa->name) != 0)
            cr_expect_eq(adopt_record(blob, &changed, &form), INF_UNSUPPORTED, "%s", name);
    }
    inf_shared_pages_unref(&changed.pages);
    // Another constant.
    struct inf_blob *other = blob_of(6 * 41);
    changed = copy_record(&record);
    cr_expect_eq(adopt_record(other, &changed, &form), INF_INVALID);
    inf_shared_pages_unref(&changed.pages);
    inf_blob_unref(&other);
    put_pack(pack);
    inf_blob_unref(&blob);
}

// --- packing the same matrix in several threads ---

#define BLOBS 8

static struct inf_blob *blobs[BLOBS];

static void *come_and_go(void *argument)
{
    (void)argument;
    for (size_t turn = 0; turn < 400; turn++) {
        const struct inf_cpu_matrix matrix = {blobs[turn % BLOBS], 5, 7, false};
        struct inf_cpu_pack *pack = get_pack(&matrix);
        uint32_t bits[35];
        pack->form.restore(&pack->form, bits);
        cr_assert_eq(memcmp(bits, matrix.blob->data, sizeof bits), 0);
        put_pack(pack);
    }
    return NULL;
}

Test(pack, is_acquired_and_released_by_many_threads)
{
    pthread_t threads[4];
    for (int i = 0; i < BLOBS; i++)
        blobs[i] = blob_of(35);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, come_and_go, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < BLOBS; i++)
        inf_blob_unref(&blobs[i]);
}

Test(pack, columns_of_bytes_have_exact_sums)
{
    // Panels of eight columns: of the least byte, of the largest one, and of small numbers.
    enum {
        QUADS = 301,
        WIDTH = 8
    };
    static int8_t panel[QUADS * 4 * WIDTH];
    uint32_t sums[WIDTH];
    for (size_t i = 0; i < sizeof panel; i++)
        panel[i] = (int8_t)(i / 4 % WIDTH == 1   ? INT8_MIN
                            : i / 4 % WIDTH == 6 ? INT8_MAX
                                                 : (int)(i % 3));
    inf_cpu_bytes_sum_columns(panel, QUADS, WIDTH, sums);
    cr_expect_eq((int32_t)sums[1], -128 * 4 * QUADS);
    cr_expect_eq((int32_t)sums[6], 127 * 4 * QUADS);
    int32_t small = 0;
    for (size_t q = 0; q < QUADS; q++)
        for (size_t r = 0; r < 4; r++)
            small += (int32_t)((q * 4 * WIDTH + r) % 3);
    cr_expect_eq((int32_t)sums[0], small);
}
