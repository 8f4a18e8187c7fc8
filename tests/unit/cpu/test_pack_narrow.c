// SPDX-License-Identifier: Apache-2.0
// Packs of fp32 weights that fit 8 or 16 bits. The weights are restored bit by bit, and expanded
// panels hold the same floats, at every ISA level.
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/cpu/core/pack_narrow.h"
#include "backends/cpu/core/panel.h"
#include "backends/cpu/cpu.h"

static struct inf_device *device;
static struct inf_cpu_packs packs;
static uint32_t state = 1;

static void create_packs(void)
{
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, NULL, NULL), INF_OK);
    inf_cpu_packs_init(&packs, inf_isa_best());
}

static void destroy_packs(void)
{
    cr_assert_eq(inf_device_memory(device).weight_bytes, 0u, "a pack is left");
    inf_cpu_packs_fini(&packs);
    inf_device_unref(&device);
}

TestSuite(pack_narrow, .init = create_packs, .fini = destroy_packs);

static uint32_t draw_bits(void)
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static struct inf_blob *blob_of(size_t count)
{
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    cr_assert_not_null(blob);
    return blob;
}

// Fills a matrix with integers from -q to q times the unit of their column. Columns have units that
// differ by a power of two and a little more.
static void fill_units(const struct inf_cpu_matrix *matrix, int q, float unit)
{
    float *weights = matrix->blob->data;
    for (size_t c = 0; c < matrix->columns; c++, unit *= c % 3 == 0 ? 1.03f : 1)
        for (size_t r = 0; r < matrix->rows; r++) {
            int number = r == matrix->rows / 2 ? q : (int)(draw_bits() % (2 * (unsigned)q + 1)) - q;
            weights[matrix->transposed ? c * matrix->rows + r : r * matrix->columns + c] =
                (float)number * unit;
        }
}

static void fill_halves(const struct inf_cpu_matrix *matrix)
{
    float *weights = matrix->blob->data;
    for (size_t i = 0; i < matrix->rows * matrix->columns; i++)
        // Bits 0x7c00 are those of infinity and NaN.
        weights[i] = inf_half_to_float((uint16_t)(draw_bits() & 0xfbffu));
}

static struct inf_cpu_pack *get_pack(const struct inf_cpu_matrix *matrix)
{
    struct inf_cpu_pack *pack = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_cpu_pack_get(&pack, &packs, device, matrix, &err), INF_OK, "%s", err.text);
    return pack;
}

// Packs the matrix, and checks its form, its size, and the weights that it restores and expands.
static void check_pack(struct inf_cpu_matrix matrix, enum inf_cpu_element element)
{
    matrix.narrow = true;
    size_t count = matrix.rows * matrix.columns;
    struct inf_cpu_pack *pack = get_pack(&matrix);
    uint32_t *again = malloc(matrix.blob->size_bytes);
    float *floats = malloc(matrix.rows * 32 * sizeof *floats);
    size_t width;
    inf_cpu_panel_count(packs.isa->nn, matrix.columns, &width);
    cr_assert_eq(pack->element, element, "%zu x %zu", matrix.rows, matrix.columns);
    size_t size =
        element == INF_CPU_ELEMENT_UNITS ? width * (matrix.rows + 4) : width * matrix.rows * 2;
    cr_assert_eq(pack->form.size_bytes, (size + 63) / 64 * 64);
    pack->form.restore(&pack->form, again);
    cr_assert_eq(memcmp(again, matrix.blob->data, count * sizeof(float)), 0);
    const char *from = pack->panels;
    for (size_t first = 0; first < matrix.columns;) {
        struct inf_cpu_panel panel = inf_cpu_panel_at(packs.isa->nn, first, matrix.columns);
        inf_cpu_narrow_expand_panel(packs.isa->nn->expand, element, matrix.rows, panel.width, from,
                                    floats);
        for (size_t r = 0; r < matrix.rows; r++)
            for (size_t c = 0; c < panel.columns; c++) {
                size_t at = matrix.transposed ? (first + c) * matrix.rows + r
                                              : r * matrix.columns + first + c;
                cr_assert_eq(memcmp(&floats[r * panel.width + c], &again[at], sizeof *again), 0);
            }
        from += inf_cpu_narrow_panel_bytes(element, matrix.rows, panel.width);
        first += panel.columns;
    }
    struct inf_blob_form *form = &pack->form;
    inf_blob_form_unref(&form);
    free(floats);
    free(again);
}

Test(pack_narrow, keeps_integers_and_a_unit_for_each_column)
{
    // The quotient of the largest weight and the unit, and the unit: also a prime, small and large.
    static const struct {
        int q;
        float unit;
    } kinds[] = {{127, 0.0123f}, {101, 3.0f}, {1, 0.7f}, {127, 0x1p-120f}, {90, 0x1.3p118f}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t columns = 1; columns <= 70; columns += 1 + columns / 5) {
            struct inf_cpu_matrix matrix = {blob_of(33 * columns), 33, columns, i % 2 == 0};
            fill_units(&matrix, kinds[i].q, kinds[i].unit);
            check_pack(matrix, INF_CPU_ELEMENT_UNITS);
            inf_blob_unref(&matrix.blob);
        }
}

Test(pack_narrow, keeps_the_whole_range_of_8_bits_and_columns_of_zeros)
{
    struct inf_cpu_matrix matrix = {blob_of(6), 2, 3, false};
    memcpy(matrix.blob->data, (float[]){0, -128 * 0.3f, 0, 0, 127 * 0.3f, -0.25f},
           6 * sizeof(float));
    check_pack(matrix, INF_CPU_ELEMENT_UNITS);
    inf_blob_unref(&matrix.blob);
}

Test(pack_narrow, keeps_binary16)
{
    for (size_t columns = 1; columns <= 70; columns += 1 + columns / 5) {
        struct inf_cpu_matrix matrix = {blob_of(33 * columns), 33, columns, columns % 2 == 0};
        fill_halves(&matrix);
        check_pack(matrix, INF_CPU_ELEMENT_F16);
        inf_blob_unref(&matrix.blob);
    }
}

// The form of a matrix of 8-bit integers and units, of which the last weight is replaced.
static enum inf_cpu_element form_with(float last)
{
    static float units[40];
    struct inf_cpu_matrix matrix = {blob_of(9 * 40), 9, 40, false};
    fill_units(&matrix, 127, 0.5f);
    ((float *)matrix.blob->data)[9 * 40 - 1] = last;
    enum inf_cpu_element element = inf_cpu_narrow_find(&matrix, units);
    inf_blob_unref(&matrix.blob);
    return element;
}

Test(pack_narrow, keeps_fp32_if_one_weight_does_not_fit)
{
    cr_expect_eq(form_with(0), INF_CPU_ELEMENT_UNITS);
    cr_expect_eq(form_with(0.1f), INF_CPU_ELEMENT_F32);
    cr_expect_eq(form_with(INFINITY), INF_CPU_ELEMENT_F32);
    cr_expect_eq(form_with(-INFINITY), INF_CPU_ELEMENT_F32);
    cr_expect_eq(form_with(NAN), INF_CPU_ELEMENT_F32);
    cr_expect_eq(form_with(FLT_MAX), INF_CPU_ELEMENT_F32);
    cr_expect_eq(form_with(-0.0f), INF_CPU_ELEMENT_F32, "a negative zero would become a zero");
    cr_expect_eq(form_with(0x1p-149f), INF_CPU_ELEMENT_F32);
}

Test(pack_narrow, tells_binary16_from_fp32)
{
    static const struct {
        float weight;
        enum inf_cpu_element element;
    } cases[] = {
        {1, INF_CPU_ELEMENT_F16},        {-0.0f, INF_CPU_ELEMENT_F16},
        {0x1p-24f, INF_CPU_ELEMENT_F16}, {65504, INF_CPU_ELEMENT_F16},
        {65505, INF_CPU_ELEMENT_F32},    {0x1p-25f, INF_CPU_ELEMENT_F32},
        {INFINITY, INF_CPU_ELEMENT_F32}, {NAN, INF_CPU_ELEMENT_F32},
        {1.0004f, INF_CPU_ELEMENT_F32},
    };
    float units[20];
    struct inf_cpu_matrix matrix = {blob_of(16 * 20), 16, 20, false};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fill_halves(&matrix);
        ((float *)matrix.blob->data)[16 * 20 - 1] = cases[i].weight;
        cr_expect_eq(inf_cpu_narrow_find(&matrix, units), cases[i].element, "%g",
                     (double)cases[i].weight);
    }
    inf_blob_unref(&matrix.blob);
}

// Weights that refuse every candidate as late as possible. Without a limit this takes minutes.
Test(pack_narrow, gives_up_in_bounded_time, .timeout = 20)
{
    const size_t rows = 1u << 22;
    float units[1];
    struct inf_cpu_matrix matrix = {blob_of(rows), rows, 1, false};
    float *weights = matrix.blob->data;
    weights[rows - 1] = 1;
    // Each candidate 1 / q is refused by a weight of its own, far behind the zeros.
    for (size_t q = 1; q < 128; q++)
        weights[rows - 1 - q] = 1 / (float)q;
    cr_expect_eq(inf_cpu_narrow_find(&matrix, units), INF_CPU_ELEMENT_F32);
    inf_blob_unref(&matrix.blob);
}

Test(pack_narrow, expands_the_same_floats_at_every_level)
{
    static const float units[32] = {1, -0.5f, 3, 0, 1e-30f, 1e30f, 0.1f, 7};
    static int8_t bytes[5 * 32];
    static uint16_t halves[0x10000];
    static float floats[0x10000];
    const struct inf_isa *isa;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (int8_t)(i * 37 - 128);
    size_t count = 0;
    for (unsigned bits = 0; bits < 0x10000; bits++)
        if ((bits & 0x7c00u) != 0x7c00u)
            halves[count++] = (uint16_t)bits;
    for (unsigned level = 0; (isa = inf_isa_level(level)) != NULL; level++) {
        for (size_t width = 1; width <= 32; width++) {
            floats[5 * width] = NAN;
            isa->nn->expand->bytes(5, width, bytes, units, floats);
            for (size_t i = 0; i < 5 * width; i++)
                cr_assert_eq(floats[i], (float)bytes[i] * units[i % width], "%s: %zu, %zu",
                             isa->name, width, i);
            cr_assert(isnan(floats[5 * width]));
        }
        isa->nn->expand->halves(count, halves, floats);
        for (size_t i = 0; i < count; i++) {
            float wanted = inf_half_to_float(halves[i]);
            cr_assert_eq(memcmp(&floats[i], &wanted, sizeof wanted), 0, "%s: %04x", isa->name,
                         (unsigned)halves[i]);
        }
        // Counts that are no multiple of a vector.
        for (size_t some = 0; some < 40; some++) {
            floats[some] = NAN;
            isa->nn->expand->halves(some, halves + 1000, floats);
            cr_assert(isnan(floats[some]));
            for (size_t i = 0; i < some; i++)
                cr_assert_eq(floats[i], inf_half_to_float(halves[1000 + i]));
        }
    }
}

// Evicts a constant to a pack of its matrix, and returns the form that it then seems to fit.
static enum inf_cpu_element element_if_evicted(struct inf_cpu_matrix matrix, bool narrow,
                                               size_t columns)
{
    matrix.narrow = narrow;
    struct inf_blob_form *form = &get_pack(&matrix)->form;
    inf_blob_evict(matrix.blob, form);
    cr_assert_null(matrix.blob->data);
    enum inf_cpu_element element = inf_cpu_constant_element(matrix.blob, columns);
    cr_assert_null(matrix.blob->data, "only the owner of a constant restores it");
    cr_assert(inf_blob_restore(matrix.blob));
    inf_blob_form_unref(&form);
    return element;
}

Test(pack_narrow, evicted_constants_are_as_narrow_as_present_ones)
{
    struct inf_cpu_matrix matrix = {blob_of(33 * 40), 33, 40, false};
    for (int fits = 0; fits <= 1; fits++) {
        fill_halves(&matrix);
        if (!fits)
            ((float *)matrix.blob->data)[33 * 40 - 1] = 1 + FLT_EPSILON;
        enum inf_cpu_element wanted = fits ? INF_CPU_ELEMENT_F16 : INF_CPU_ELEMENT_F32;
        cr_expect_eq(inf_cpu_constant_element(matrix.blob, 40), wanted);
        cr_expect_eq(element_if_evicted(matrix, true, 40), wanted, "a pack that may be narrow");
        cr_expect_eq(element_if_evicted(matrix, false, 40), wanted, "a pack in fp32");
    }
    // Read in other columns, integers times the unit of a column have no common unit.
    fill_units(&matrix, 127, 0.0123f);
    cr_expect_eq(element_if_evicted(matrix, true, 40), INF_CPU_ELEMENT_UNITS);
    cr_expect_eq(element_if_evicted(matrix, true, 33), INF_CPU_ELEMENT_F32);
    inf_blob_unref(&matrix.blob);
}
