// SPDX-License-Identifier: Apache-2.0
// Distinct slices, and differences of lists, found by sorting indices. All NaN count as the same
// value, which is larger than all other values.
#include <math.h>
#include <stdlib.h>

#include "backends/ref/dynamic.h"
#include "backends/ref/text.h"

// Describes how a tensor x is divided into `count` slices along one axis.
struct slices {
    const struct inf_ref_tensor *x;
    const struct inf_strings *strings; // the strings of a tensor of BYTES
    size_t outer, count, inner;
};

static int compare_elements(const struct slices *slices, size_t i, const struct inf_ref_tensor *b,
                            size_t j)
{
    const struct inf_ref_tensor *a = slices->x;
    if (a->dtype == INF_DTYPE_BYTES)
        return inf_ref_order_strings(slices->strings, ((const uint64_t *)a->data)[i],
                                     ((const uint64_t *)b->data)[j]);
    if (inf_dtype_is_float(a->dtype)) {
        double left = inf_ref_get(a, i), right = inf_ref_get(b, j);
        if (isnan(left) || isnan(right))
            return isnan(left) - isnan(right);
        return (left > right) - (left < right);
    }
    __int128 left = inf_ref_load_int(a, i), right = inf_ref_load_int(b, j);
    return (left > right) - (left < right);
}

static int compare_slices(const struct slices *slices, size_t i, size_t j)
{
    for (size_t outer = 0; outer < slices->outer; outer++)
        for (size_t inner = 0; inner < slices->inner; inner++) {
            size_t base = outer * slices->count;
            int order = compare_elements(slices, (base + i) * slices->inner + inner, slices->x,
                                         (base + j) * slices->inner + inner);
            if (order != 0)
                return order;
        }
    return 0;
}

static int by_value_then_place(const void *a, const void *b, void *context)
{
    uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
    int order = compare_slices(context, i, j);
    return order != 0 ? order : (i > j) - (i < j);
}

// A group of equal slices: the index of its first slice in x, and the number of slices.
struct group {
    uint32_t first, count;
};

static int by_first(const void *a, const void *b)
{
    const struct group *left = a, *right = b;
    return (left->first > right->first) - (left->first < right->first);
}

struct unique {
    struct slices slices;
    uint32_t *order;      // indices of slices, sorted so that equal slices are adjacent
    struct group *groups; // groups of equal slices, in the order in which the outputs list them
    uint32_t group_count;
};

static struct slices slices_of(const struct inf_ref_call *call, uint32_t input, int32_t axis)
{
    const struct inf_ref_tensor *x = &call->inputs[input];
    return (struct slices){.x = x,
                           .strings = &call->strings,
                           .outer = inf_ref_extent(x->shape, 0, axis),
                           .count = (size_t)x->shape->dims[axis],
                           .inner = inf_ref_extent(x->shape, axis + 1, x->shape->rank)};
}

static enum inf_code begin_unique(struct unique *unique, const struct inf_ref_call *call,
                                  struct inf_error *err)
{
    const struct inf_attrs_unique *attrs = &call->node->attrs.unique;
    const struct inf_ref_tensor *x = &call->inputs[0];
    struct slices slices = slices_of(call, 0, inf_ref_axis(attrs->axis, x->shape->rank));
    *unique = (struct unique){
        .slices = slices,
        .order = calloc(slices.count + 1, sizeof *unique->order),
        .groups = calloc(slices.count + 1, sizeof *unique->groups),
    };
    if (unique->order == NULL || unique->groups == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for %zu slices",
                               slices.count);
    for (size_t i = 0; i < slices.count; i++)
        unique->order[i] = (uint32_t)i;
    qsort_r(unique->order, slices.count, sizeof *unique->order, by_value_then_place,
            &unique->slices);
    for (size_t i = 0; i < slices.count; i++) {
        bool is_new =
            i == 0 || compare_slices(&unique->slices, unique->order[i - 1], unique->order[i]) != 0;
        if (is_new)
            unique->groups[unique->group_count++] = (struct group){.first = unique->order[i]};
        unique->groups[unique->group_count - 1].count++;
    }
    if (!attrs->sorted)
        qsort(unique->groups, unique->group_count, sizeof *unique->groups, by_first);
    return INF_OK;
}

static void end_unique(struct unique *unique)
{
    free(unique->order);
    free(unique->groups);
}

enum inf_code inf_ref_unique_rows(const struct inf_ref_call *call, int64_t *rows,
                                  struct inf_error *err)
{
    struct unique unique;
    enum inf_code code = begin_unique(&unique, call, err);
    *rows = unique.group_count;
    end_unique(&unique);
    return code;
}

// Copies slice `from` of x to index `to` of y.
static void copy_slice(const struct slices *slices, const struct inf_ref_tensor *y, size_t y_count,
                       size_t to, size_t from)
{
    for (size_t outer = 0; outer < slices->outer; outer++)
        inf_ref_copy(y, (outer * y_count + to) * slices->inner, slices->x,
                     (outer * slices->count + from) * slices->inner, slices->inner);
}

// Stores in `numbers` for each slice the number of its group. Visits the slices in sorted order, in
// which equal slices are adjacent.
static void number_slices(const struct unique *unique, const struct inf_ref_tensor *numbers)
{
    size_t place = 0;
    for (uint32_t g = 0; g < unique->group_count; g++)
        inf_ref_store_int(numbers, unique->groups[g].first, g);
    while (place < unique->slices.count) {
        // The first slice of each group already has its number. Give the same number to the equal
        // slices that follow.
        __int128 number = inf_ref_load_int(numbers, unique->order[place]);
        size_t first = place++;
        while (place < unique->slices.count &&
               compare_slices(&unique->slices, unique->order[first], unique->order[place]) == 0)
            inf_ref_store_int(numbers, unique->order[place++], number);
    }
}

enum inf_code inf_ref_unique(const struct inf_ref_call *call, struct inf_error *err)
{
    struct unique unique;
    enum inf_code code = begin_unique(&unique, call, err);
    if (code == INF_OK && unique.group_count != call->outputs[2].count)
        code = inf_fail(err, INF_INVALID, "%u different slices, wanted %zu", unique.group_count,
                        call->outputs[2].count);
    if (code == INF_OK) {
        for (uint32_t g = 0; g < unique.group_count; g++) {
            copy_slice(&unique.slices, &call->outputs[0], unique.group_count, g,
                       unique.groups[g].first);
            inf_ref_store_int(&call->outputs[2], g, unique.groups[g].first);
            inf_ref_store_int(&call->outputs[3], g, unique.groups[g].count);
        }
        number_slices(&unique, &call->outputs[1]);
    }
    end_unique(&unique);
    return code;
}

// --- list_diff: the elements of one list that are not in another ---

static bool contains_slice(const struct slices *sorted, const uint32_t *order,
                           const struct inf_ref_tensor *x, size_t i)
{
    size_t low = 0, high = sorted->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int compared = compare_elements(sorted, order[middle], x, i);
        if (compared == 0)
            return true;
        if (compared < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

// Counts the elements of x that are not in y; also stores them if `write` is true.
static enum inf_code list_diff(const struct inf_ref_call *call, bool write, int64_t *rows,
                               struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    struct slices slices = slices_of(call, 1, 0);
    uint32_t *order = calloc(slices.count + 1, sizeof *order);
    if (order == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for %zu elements", slices.count);
    for (size_t i = 0; i < slices.count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, slices.count, sizeof *order, by_value_then_place, &slices);
    *rows = 0;
    for (size_t i = 0; i < x->count; i++) {
        if (contains_slice(&slices, order, x, i))
            continue;
        if (write && (size_t)*rows < call->outputs[1].count) {
            inf_ref_copy(&call->outputs[0], (size_t)*rows, x, i, 1);
            inf_ref_store_int(&call->outputs[1], (size_t)*rows, (int64_t)i);
        }
        ++*rows;
    }
    free(order);
    return INF_OK;
}

enum inf_code inf_ref_list_diff_rows(const struct inf_ref_call *call, int64_t *rows,
                                     struct inf_error *err)
{
    return list_diff(call, false, rows, err);
}

enum inf_code inf_ref_list_diff(const struct inf_ref_call *call, struct inf_error *err)
{
    int64_t rows;
    return list_diff(call, true, &rows, err);
}
