// SPDX-License-Identifier: Apache-2.0
// Sparse tensors, which are lists of indices and values.
#include <inttypes.h>
#include <stdlib.h>

#include "backends/ref/dynamic.h"

static size_t element_row(const struct inf_ref_call *call, size_t i, int64_t rows, bool *ok)
{
    const struct inf_ref_tensor *indices = &call->inputs[0];
    int64_t row = inf_ref_index(indices, i * (size_t)indices->shape->dims[1]);
    *ok = inf_ref_index_ok(&row, rows, false);
    return (size_t)row;
}

// Allocates and fills the number of elements of each row. The caller frees *out_counts.
static enum inf_code count_elements(const struct inf_ref_call *call, uint32_t **out_counts,
                                    int64_t *rows, struct inf_error *err)
{
    *rows = inf_ref_index(&call->inputs[2], 0);
    *out_counts = NULL;
    if (*rows < 0 || *rows >= INF_LIMIT_DIM)
        return inf_fail(err, INF_INVALID, "%" PRId64 " rows", *rows);
    uint32_t *counts = calloc((size_t)*rows + 1, sizeof *counts);
    if (counts == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for %" PRId64 " rows", *rows);
    *out_counts = counts;
    for (size_t i = 0; i < call->inputs[1].count; i++) {
        bool ok;
        size_t row = element_row(call, i, *rows, &ok);
        if (!ok)
            return inf_fail(err, INF_INVALID, "index %zu is in none of %" PRId64 " rows", i, *rows);
        counts[row]++;
    }
    return INF_OK;
}

enum inf_code inf_ref_sparse_fill_rows_rows(const struct inf_ref_call *call, int64_t *rows,
                                            struct inf_error *err)
{
    uint32_t *counts;
    int64_t row_count;
    enum inf_code code = count_elements(call, &counts, &row_count, err);
    *rows = 0;
    for (int64_t i = 0; code == INF_OK && i < row_count; i++)
        *rows += INF_MAX(counts[i], 1u);
    free(counts);
    return code;
}

// Makes element `to` the default value in a row, at index 0 of the further axes.
static void store_default(const struct inf_ref_call *call, size_t to, int64_t row)
{
    const struct inf_ref_tensor *indices = &call->outputs[0];
    int64_t rank = indices->shape->dims[1];
    for (int64_t axis = 0; axis < rank; axis++)
        inf_ref_store_int(indices, to * (size_t)rank + (size_t)axis, axis == 0 ? row : 0);
    inf_ref_copy(&call->outputs[1], to, &call->inputs[3], 0, 1);
}

// Stores all elements. counts[i] becomes the place of the next element of row i.
static enum inf_code store_elements(const struct inf_ref_call *call, uint32_t *counts, int64_t rows,
                                    struct inf_error *err)
{
    size_t at = 0, rank = (size_t)call->inputs[0].shape->dims[1];
    for (int64_t i = 0; i < rows; i++) {
        uint32_t count = counts[i];
        if (at + INF_MAX(count, 1u) > call->outputs[1].count)
            return inf_fail(err, INF_INVALID, "more than %zu elements", call->outputs[1].count);
        if (count == 0)
            store_default(call, at, i);
        counts[i] = (uint32_t)at;
        at += INF_MAX(count, 1u);
    }
    for (size_t i = 0; i < call->inputs[1].count; i++) {
        bool ok;
        size_t row = element_row(call, i, rows, &ok);
        if (!ok || counts[row] >= call->outputs[1].count)
            return inf_fail(err, INF_INVALID, "index %zu is in none of %" PRId64 " rows", i, rows);
        size_t to = counts[row]++;
        inf_ref_copy(&call->outputs[0], to * rank, &call->inputs[0], i * rank, rank);
        inf_ref_copy(&call->outputs[1], to, &call->inputs[1], i, 1);
        inf_ref_store_int(&call->outputs[2], i, (int64_t)to);
    }
    return INF_OK;
}

enum inf_code inf_ref_sparse_fill_rows(const struct inf_ref_call *call, struct inf_error *err)
{
    uint32_t *counts;
    int64_t rows;
    enum inf_code code = count_elements(call, &counts, &rows, err);
    if (code == INF_OK)
        code = store_elements(call, counts, rows, err);
    free(counts);
    return code;
}
