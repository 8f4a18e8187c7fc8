// SPDX-License-Identifier: Apache-2.0
// Sorting: topk and search_sorted.
#include <math.h>

#include "backends/ref/kernels.h"

// Returns -1, 0 or 1 if element `a` of one tensor is less than, equal to or greater than element
// `b` of another of the same type. NaN compares as less than every number and equal to itself.
static int compare_entries(const struct inf_ref_tensor *x, size_t a, const struct inf_ref_tensor *y,
                           size_t b)
{
    if (inf_dtype_is_float(x->dtype)) {
        double left = inf_ref_get(x, a), right = inf_ref_get(y, b);
        if (isnan(left) || isnan(right))
            return isnan(right) - isnan(left);
        return (left > right) - (left < right);
    }
    __int128 left = inf_ref_load_int(x, a), right = inf_ref_load_int(y, b);
    return (left > right) - (left < right);
}

// One line of x, and the indices of its best k elements. The index output holds them: as a heap
// with the worst element on top while the line is read, and sorted at the end.
struct selection {
    const struct inf_ref_tensor *x, *indices;
    size_t x_at;       // position in x of the line's first element
    size_t indices_at; // position in the index output of the line's first entry
    size_t stride;     // distance between neighbours of the line, in x and in the outputs
    size_t count;      // number of elements of the line
    bool smallest;
};

// Reads entry `i` of the heap and checks it, because a client may be able to write to the output
// that holds the heap.
static size_t read_entry(const struct selection *selection, size_t i)
{
    const volatile int32_t *indices = selection->indices->data;
    size_t index = (size_t)indices[selection->indices_at + i * selection->stride];
    return index < selection->count ? index : 0;
}

static void set_entry(const struct selection *selection, size_t i, size_t index)
{
    int32_t *indices = selection->indices->data;
    indices[selection->indices_at + i * selection->stride] = (int32_t)index;
}

// Returns true if element `a` of the line comes before element `b` in the result.
static bool comes_before(const struct selection *selection, size_t a, size_t b)
{
    size_t at_a = selection->x_at + a * selection->stride;
    size_t at_b = selection->x_at + b * selection->stride;
    int order = compare_entries(selection->x, at_a, selection->x, at_b);
    if (order == 0)
        return a < b;
    if (!selection->smallest || !inf_dtype_is_float(selection->x->dtype))
        return selection->smallest ? order < 0 : order > 0;
    // NaN comes last in both orders.
    if (isnan(inf_ref_get(selection->x, at_a)) || isnan(inf_ref_get(selection->x, at_b)))
        return order > 0;
    return order < 0;
}

// Puts `index` into a heap of `count` entries, starting at the empty position `hole` and moving
// down.
static void sink_entry(const struct selection *selection, size_t hole, size_t count, size_t index)
{
    for (;;) {
        size_t child = 2 * hole + 1;
        if (child >= count)
            break;
        if (child + 1 < count &&
            comes_before(selection, read_entry(selection, child), read_entry(selection, child + 1)))
            child++;
        if (!comes_before(selection, index, read_entry(selection, child)))
            break;
        set_entry(selection, hole, read_entry(selection, child));
        hole = child;
    }
    set_entry(selection, hole, index);
}

static void select_line(const struct selection *selection, size_t k)
{
    for (size_t i = 0; i < k; i++)
        set_entry(selection, i, i);
    for (size_t i = k / 2; i-- > 0;)
        sink_entry(selection, i, k, read_entry(selection, i));
    for (size_t i = k; i < selection->count; i++)
        if (comes_before(selection, i, read_entry(selection, 0)))
            sink_entry(selection, 0, k, i);
    for (size_t left = k; left-- > 1;) {
        size_t worst = read_entry(selection, 0), last = read_entry(selection, left);
        set_entry(selection, left, worst);
        sink_entry(selection, 0, left, last);
    }
}

enum inf_code inf_ref_topk(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_topk *attrs = &call->node->attrs.topk;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    int32_t axis = inf_ref_axis(attrs->axis, x->shape->rank);
    size_t k = (size_t)y->shape->dims[axis];
    struct selection selection = {
        .x = x, .indices = &call->outputs[1], .smallest = attrs->smallest};
    selection.stride = inf_ref_extent(x->shape, axis + 1, x->shape->rank);
    selection.count = (size_t)x->shape->dims[axis];
    size_t lines = k == 0 ? 0 : y->count / k;
    for (size_t i = 0; i < lines; i++) {
        size_t outer = i / selection.stride, inner = i % selection.stride;
        selection.x_at = outer * selection.count * selection.stride + inner;
        selection.indices_at = outer * k * selection.stride + inner;
        select_line(&selection, k);
        for (size_t j = 0; j < k; j++)
            inf_ref_copy(y, selection.indices_at + j * selection.stride, x,
                         selection.x_at + read_entry(&selection, j) * selection.stride, 1);
    }
    return INF_OK;
}

enum inf_code inf_ref_search_sorted(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *sorted = &call->inputs[0];
    const struct inf_ref_tensor *values = &call->inputs[1];
    // search_sorted counts the entries that are <= the value if `right` is set, or else those that
    // are < the value: those for which compare_entries() returns at most `most`.
    int most = call->node->attrs.search_sorted.right ? 0 : -1;
    size_t count = (size_t)sorted->shape->dims[sorted->shape->rank - 1];
    size_t wanted = (size_t)values->shape->dims[values->shape->rank - 1];
    for (size_t i = 0; i < values->count; i++) {
        size_t line = i / wanted * count, low = 0, high = count;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (compare_entries(sorted, line + middle, values, i) <= most)
                low = middle + 1;
            else
                high = middle;
        }
        inf_ref_store_int(&call->outputs[0], i, (__int128)low);
    }
    return INF_OK;
}
