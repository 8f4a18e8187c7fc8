// SPDX-License-Identifier: Apache-2.0
// Matrix products with broadcast leading dimensions.
#include "backends/ref/kernels.h"

// The number of columns of y that are summed at once.
#define BLOCK 64

struct matmul {
    const struct inf_ref_tensor *a, *b, *y;
    const struct inf_ref_tensor *bias, *alpha; // NULL if absent
    struct inf_ref_activation activation;
    size_t m, n, k;
    // distances in elements: from one row of a to the next, and from one element of a row to the
    // next
    size_t a_row, a_step;
    size_t b_column, b_step;
};

static struct matmul prepare_matmul(const struct inf_ref_call *call)
{
    const struct inf_attrs_matmul *attrs = &call->node->attrs.matmul;
    struct matmul mm = {
        .a = &call->inputs[0],
        .b = &call->inputs[1],
        .y = &call->outputs[0],
        .bias = inf_ref_has_input(call, 2) ? &call->inputs[2] : NULL,
        .alpha = inf_ref_has_input(call, 3) ? &call->inputs[3] : NULL,
        .activation = inf_ref_node_activation(call->node),
    };
    int32_t y_rank = mm.y->shape->rank;
    int32_t a_rank = mm.a->shape->rank;
    mm.m = (size_t)mm.y->shape->dims[y_rank - 2];
    mm.n = (size_t)mm.y->shape->dims[y_rank - 1];
    mm.k = (size_t)mm.a->shape->dims[attrs->transpose_a ? a_rank - 2 : a_rank - 1];
    mm.a_row = attrs->transpose_a ? 1 : mm.k;
    mm.a_step = attrs->transpose_a ? mm.m : 1;
    mm.b_column = attrs->transpose_b ? mm.k : 1;
    mm.b_step = attrs->transpose_b ? 1 : mm.n;
    return mm;
}

// Computes `count` columns, from column `first` on, of one row of y. a_at, b_at and y_at are the
// offsets of the current matrices in their tensors, in elements.
static void row_block(const struct matmul *mm, size_t a_at, size_t b_at, size_t y_at, size_t first,
                      size_t count)
{
    double sums[BLOCK] = {0};
    for (size_t k = 0; k < mm->k; k++) {
        double a = inf_ref_get(mm->a, a_at + k * mm->a_step);
        size_t b_row = b_at + k * mm->b_step + first * mm->b_column;
        for (size_t j = 0; j < count; j++)
            sums[j] += a * inf_ref_get(mm->b, b_row + j * mm->b_column);
    }
    for (size_t j = 0; j < count; j++) {
        if (mm->bias != NULL)
            sums[j] += inf_ref_get(mm->bias, first + j);
        double slope = mm->alpha != NULL ? inf_ref_get(mm->alpha, first + j) : 0;
        inf_ref_put(mm->y, y_at + first + j, inf_ref_activate(&mm->activation, sums[j], slope));
    }
}

enum inf_code inf_ref_matmul(const struct inf_ref_call *call, struct inf_error *err)
{
    struct matmul mm = prepare_matmul(call);
    struct inf_ref_walk walk;
    size_t matrices = inf_ref_walk_matrices(&walk, mm.y->shape, mm.a->shape, mm.b->shape);
    for (size_t i = 0; i < matrices; i++, inf_ref_walk_next(&walk)) {
        size_t a_at = (size_t)walk.offsets[0] * mm.m * mm.k;
        size_t b_at = (size_t)walk.offsets[1] * mm.k * mm.n;
        for (size_t row = 0; row < mm.m; row++) {
            INF_TRY(inf_ref_check_cancelled(call, err));
            for (size_t first = 0; first < mm.n; first += BLOCK)
                row_block(&mm, a_at + row * mm.a_row, b_at, (i * mm.m + row) * mm.n, first,
                          INF_MIN((size_t)BLOCK, mm.n - first));
        }
    }
    return INF_OK;
}
