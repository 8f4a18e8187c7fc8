// SPDX-License-Identifier: Apache-2.0
// Finds weights that fit 8 or 16 bits exactly, packs and restores them.
//
// To find the unit of a column, let `most` be the magnitude of its largest weight. If the column
// has a unit, it is near most / q for a q from 1 to 128. Quantisers use the whole range, so that q
// is usually 127, and neighbouring columns often have the same unit. Each candidate is tested with
// all weights of the column, beginning with a weight that refused an earlier candidate.
#include "backends/cpu/core/pack_narrow.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "backends/base/half.h"

// Adding and subtracting 1.5 * 2^23 rounds a float of a magnitude below 2^22 to an integer.
#define ROUNDING 12582912.0f
// How many weights may be compared with candidates, for each weight of the matrix and in addition.
// A file could otherwise be written so that each candidate is refused by the last weight only.
#define TESTS_EACH 8u
#define TESTS_MORE 65536u

// The weights of a column: weight i is at[i * step].
struct column {
    const float *at;
    size_t count, step;
};

// A search for the units of a matrix.
struct unit_search {
    uint64_t tests; // comparisons that may still be made
    size_t refuser; // index of the weight that refused the last candidate
};

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

// Returns the integer nearest to w / unit, if it is in range; otherwise any number.
static float quotient_of(float w, float per_unit)
{
    return w * per_unit + ROUNDING - ROUNDING;
}

static bool fits_unit(float w, float unit, float per_unit)
{
    float q = quotient_of(w, per_unit);
    return q >= INT8_MIN && q <= INT8_MAX && same_bits(q * unit, w);
}

static bool column_has_unit(struct unit_search *search, const struct column *column, float unit)
{
    float per_unit = 1 / unit;
    if (search->tests == 0 ||
        !fits_unit(column->at[search->refuser * column->step], unit, per_unit))
        return false;
    for (size_t i = 0; i < column->count; i++) {
        search->tests -= search->tests > 0;
        if (fits_unit(column->at[i * column->step], unit, per_unit))
            continue;
        search->refuser = i;
        return false;
    }
    return true;
}

static float find_largest(const struct column *column)
{
    float most = 0;
    for (size_t i = 0; i < column->count; i++) {
        float w = fabsf(column->at[i * column->step]);
        most = w > most ? w : most;
    }
    return most;
}

// Sets *unit to the unit of the column; on entry it is a candidate, that of the column before.
static bool find_unit(struct unit_search *search, const struct column *column, float *unit)
{
    float most = find_largest(column);
    if (column_has_unit(search, column, *unit))
        return true;
    if (most == 0 || isinf(most))
        return false;
    for (int i = 0; i < -INT8_MIN; i++) {
        int q = i == 0 ? INT8_MAX : i == 1 ? -INT8_MIN : INT8_MAX + 1 - i;
        const float near = most / (float)q;
        const float candidates[] = {near, nextafterf(near, 0), nextafterf(near, INFINITY)};
        for (size_t c = 0; c < INF_ARRAY_LENGTH(candidates); c++) {
            *unit = candidates[c];
            if (*unit * (float)q == most && column_has_unit(search, column, *unit))
                return true;
        }
    }
    return false;
}

static bool find_units(const struct inf_cpu_matrix *matrix, float *units)
{
    struct unit_search search = {.tests = TESTS_EACH * matrix->rows * matrix->columns + TESTS_MORE};
    const float *weights = matrix->blob->data;
    float unit = 1;
    for (size_t c = 0; c < matrix->columns; c++) {
        struct column column = {weights + c, matrix->rows, matrix->columns};
        if (matrix->transposed)
            column = (struct column){weights + c * matrix->rows, matrix->rows, 1};
        if (!find_unit(&search, &column, &unit))
            return false;
        units[c] = unit;
    }
    return true;
}

static bool is_half(float w)
{
    return isfinite(w) && same_bits(inf_half_to_float(inf_half_from_float(w)), w);
}

enum inf_cpu_element inf_cpu_narrow_find(const struct inf_cpu_matrix *matrix, float *units)
{
    const float *weights = matrix->blob->data;
    if (find_units(matrix, units))
        return INF_CPU_ELEMENT_UNITS;
    for (size_t i = 0; i < matrix->rows * matrix->columns; i++)
        if (!is_half(weights[i]))
            return INF_CPU_ELEMENT_F32;
    return INF_CPU_ELEMENT_F16;
}

size_t inf_cpu_narrow_panel_bytes(enum inf_cpu_element element, size_t rows, size_t width)
{
    if (element == INF_CPU_ELEMENT_UNITS)
        return width * sizeof(float) + rows * width;
    return rows * width * (element == INF_CPU_ELEMENT_F16 ? sizeof(uint16_t) : sizeof(float));
}

// Returns the index in the matrix of the element in row `row` and column `column` of a panel.
static size_t place_of(const struct inf_cpu_matrix *matrix, const struct inf_cpu_panel *panel,
                       size_t row, size_t column)
{
    column += panel->first;
    return matrix->transposed ? column * matrix->rows + row : row * matrix->columns + column;
}

void inf_cpu_narrow_pack_panel(enum inf_cpu_element element, const struct inf_cpu_matrix *matrix,
                               const struct inf_cpu_panel *panel, const float *units, void *to)
{
    const float *weights = matrix->blob->data;
    uint16_t *halves = to;
    float *to_units = to;
    int8_t *integers = (int8_t *)(to_units + panel->width);
    memset(to, 0, inf_cpu_narrow_panel_bytes(element, matrix->rows, panel->width));
    if (element == INF_CPU_ELEMENT_UNITS)
        memcpy(to_units, units + panel->first, panel->columns * sizeof(float));
    for (size_t row = 0; row < matrix->rows; row++)
        for (size_t c = 0; c < panel->columns; c++) {
            float w = weights[place_of(matrix, panel, row, c)];
            if (element == INF_CPU_ELEMENT_F16)
                halves[row * panel->width + c] = inf_half_from_float(w);
            else
                integers[row * panel->width + c] = (int8_t)quotient_of(w, 1 / to_units[c]);
        }
}

void inf_cpu_narrow_restore_panel(enum inf_cpu_element element, const struct inf_cpu_matrix *matrix,
                                  const struct inf_cpu_panel *panel, const void *from, float *data)
{
    const uint16_t *halves = from;
    const float *units = from;
    const int8_t *integers = (const int8_t *)(units + panel->width);
    for (size_t row = 0; row < matrix->rows; row++)
        for (size_t c = 0; c < panel->columns; c++) {
            size_t at = row * panel->width + c;
            data[place_of(matrix, panel, row, c)] = element == INF_CPU_ELEMENT_F16
                                                        ? inf_half_to_float(halves[at])
                                                        : (float)integers[at] * units[c];
        }
}

void inf_cpu_narrow_expand_panel(const struct inf_nn_expand *loops, enum inf_cpu_element element,
                                 size_t rows, size_t width, const void *from, float *to)
{
    const float *units = from;
    assert(element != INF_CPU_ELEMENT_F32);
    if (element == INF_CPU_ELEMENT_F16)
        loops->halves(rows * width, from, to);
    else
        loops->bytes(rows, width, (const int8_t *)(units + width), units, to);
}
