// SPDX-License-Identifier: Apache-2.0
// Computes the output shapes of operators whose output size depends on values.
#include "backends/ref/dynamic.h"

#include <inttypes.h>

static inf_ref_rows *rows_of(enum inf_op op)
{
    switch (op) {
    case INF_OP_NONZERO:
        return inf_ref_nonzero_rows;
    case INF_OP_NMS:
        return inf_ref_nms_rows;
    case INF_OP_UNIQUE:
        return inf_ref_unique_rows;
    case INF_OP_LIST_DIFF:
        return inf_ref_list_diff_rows;
    case INF_OP_LIST_SET:
        return inf_ref_list_set_rows;
    case INF_OP_STRING_SPLIT:
        return inf_ref_string_split_rows;
    case INF_OP_STRING_NGRAMS:
        return inf_ref_string_ngrams_rows;
    case INF_OP_SPARSE_FILL_ROWS:
        return inf_ref_sparse_fill_rows_rows;
    case INF_OP_STRING_TOKENS:
        return inf_ref_string_tokens_rows;
    default:
        return NULL;
    }
}

enum inf_code inf_ref_measure_shapes(const struct inf_ref_call *call, struct inf_shape *shapes,
                                     struct inf_error *err)
{
    inf_ref_rows *rows_function = rows_of(call->node->op);
    int64_t rows = 0;
    if (rows_function == NULL)
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                               "the sizes of its outputs are not known");
    INF_TRY(rows_function(call, &rows, err));
    if (rows >= INF_LIMIT_DIM)
        return inf_fail(err, INF_EXHAUSTED, "an output of %" PRId64 " elements along one dimension",
                        rows);
    for (uint32_t i = 0; i < call->node->output_count; i++)
        for (int32_t axis = 0; axis < shapes[i].rank; axis++)
            if (shapes[i].dims[axis] == INF_DIM_UNKNOWN)
                shapes[i].dims[axis] = rows;
    return INF_OK;
}

// --- the nonzero operator ---

static bool is_nonzero(const struct inf_ref_tensor *x, size_t i)
{
    if (inf_dtype_is_float(x->dtype))
        return inf_ref_get(x, i) != 0;
    return inf_ref_load_int(x, i) != 0;
}

enum inf_code inf_ref_nonzero_rows(const struct inf_ref_call *call, int64_t *rows,
                                   struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    *rows = 0;
    for (size_t i = 0; i < x->count; i++)
        *rows += is_nonzero(x, i);
    return INF_OK;
}

enum inf_code inf_ref_nonzero(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk walk;
    int64_t row = 0;
    inf_ref_walk_init(&walk, x->shape);
    for (size_t i = 0; i < x->count; i++, inf_ref_walk_next(&walk)) {
        if (!is_nonzero(x, i))
            continue;
        if (row == y->shape->dims[0])
            return inf_fail(err, INF_INVALID, "more than %" PRId64 " elements are not 0", row);
        for (int32_t axis = 0; axis < x->shape->rank; axis++)
            inf_ref_store_int(y, (size_t)(row * x->shape->rank + axis), walk.index[axis]);
        row++;
    }
    return INF_OK;
}

// --- branch and loop, which have no kernels ---

static enum inf_code refuse_control(struct inf_error *err)
{
    return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_OPERATOR,
                           "branches and loops are no kernels: the executable runs them");
}

enum inf_code inf_ref_branch(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)call;
    return refuse_control(err);
}

enum inf_code inf_ref_loop(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)call;
    return refuse_control(err);
}
